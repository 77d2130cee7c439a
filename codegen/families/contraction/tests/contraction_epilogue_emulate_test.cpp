// Epilogues of contractions on the host: one warp a block of 16 x 16 computes the sums of its
// fragments by a plain loop and hands them to the emitted function, in every layout of the result.
// Compared with single elements in fp64.
#include "codegen/Emit.h"
#include "codegen/families/contraction/ContractionEpilogue.h"
#include "codegen/families/contraction/ContractionLayouts.h"
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "passes/configure/Family.h"
#include "tests/emulate/EmittedRun.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleContractions.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <set>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::codegen;

namespace {

using emulate::Tensor;
using samples::KernelBuilder;

int map(KernelBuilder &builder, const std::string &name, const std::string &spelling,
        std::vector<ValueId> operands, const std::string &result, const std::string &letters,
        DType type) {
  const ValueId value =
      builder.op(name, OperatorClass::elementwise, std::move(operands), result, letters, "", type);
  builder.last().expression = Expression::parse(spelling);
  return value;
}

int dropout(KernelBuilder &builder, int x, const std::string &result, const std::string &letters,
            DType type) {
  const int value = map(builder, "dropout", "", {x}, result, letters, type);
  builder.last().attributes = {{"p", 0.25}, {"stream", int64_t(3)}};
  return value;
}

/// All roles of inputs, two outputs, and a mask.
Kernel projection(int64_t j, DType type) {
  KernelBuilder builder("projection", {{'b', 2}, {'j', j}, {'i', 5}, {'u', 10}});
  const int bias = builder.input("bias", "u", type), w = builder.input("w", "iu", type),
            x = builder.input("x", "bji", type);
  const int rows = builder.input("rows", "bj", type), rest = builder.input("rest", "bju", type),
            some = builder.input("some", "bu", type);
  const int factor = builder.input("factor", "", type), other = builder.input("other", "ujb", type);
  const int gemm =
      builder.op("contract", OperatorClass::contraction, {x, w}, "gemm", "bju", "i", type);
  builder.last().attributes = {{"spec", std::string("bji,iu->bju")}, {"scale", 0.5}};
  const int biased = map(builder, "bias", "{0} + {1}", {gemm, bias}, "biased", "bju", type);
  const int kept = dropout(builder, biased, "kept", "bju", type);
  const int sum = map(builder, "residual", "{0} + {1}", {kept, rest}, "sum", "bju", type);
  const int scaled = map(builder, "mul", "{0} * {1}", {sum, rows}, "scaled", "bju", type);
  const int moved = map(builder, "sub", "{0} - {1}", {scaled, some}, "moved", "bju", type);
  const int larger = map(builder, "add", "{0} + {1}", {moved, factor}, "larger", "bju", type);
  const int gated = map(builder, "mul", "{0} * {1}", {larger, other}, "gated", "bju", type);
  const int end = map(builder, "scale", "{0} * {factor}", {gated}, "end", "bju", type);
  builder.last().attributes = {{"factor", 0.75}};
  return builder.build({end, biased});
}

/// Down to `letters` of bju.
int sum(KernelBuilder &builder, int x, const std::string &result, const std::string &letters) {
  const std::string_view all = "bju";
  std::string others;
  std::vector<int64_t> axes;
  for (size_t axis = 0; axis < all.size(); ++axis)
    if (letters.find(all[axis]) == std::string::npos)
      others += all[axis], axes.push_back(int64_t(axis));
  const int value =
      builder.op("reduce", OperatorClass::normalization, {x}, result, letters, others, DType::f32);
  builder.last().attributes = {{"kind", std::string("sum")}, {"axes", axes}};
  return value;
}

/// Sums of what is stored, of what is not, and of the GEMM; C itself is a second output
/// behind a first that takes its place.
Kernel summed(DType type) {
  KernelBuilder builder("summed", {{'b', 2}, {'j', 12}, {'i', 5}, {'u', 22}});
  const int bias = builder.input("bias", "u", type), w = builder.input("w", "iu", type),
            x = builder.input("x", "bji", type);
  const int rest = builder.input("rest", "bju", type);
  const int gemm =
      builder.op("contract", OperatorClass::contraction, {x, w}, "gemm", "bju", "i", type);
  builder.last().attributes = {{"spec", std::string("bji,iu->bju")}};
  const int biased = map(builder, "bias", "{0} + {1}", {gemm, bias}, "biased", "bju", type);
  const int end = map(builder, "residual", "{0} + {1}", {biased, rest}, "end", "bju", type);
  const int square = map(builder, "mul", "{0} * {1}", {end, end}, "square", "bju", type);
  return builder.build({end, gemm, sum(builder, biased, "of_columns", "u"),
                        sum(builder, square, "of_rows", "bj"),
                        sum(builder, gemm, "of_product", "u")});
}

/// Members of a batch.
Kernel scores(DType type) {
  KernelBuilder builder("scores", {{'h', 2}, {'j', 20}, {'k', 18}, {'p', 4}});
  const int q = builder.input("q", "hjp", type), key = builder.input("keys", "hkp", type),
            rest = builder.input("rest", "hjk", type);
  const int gemm =
      builder.op("contract", OperatorClass::contraction, {q, key}, "gemm", "hjk", "p", type);
  builder.last().attributes = {{"spec", std::string("hjp,hkp->hjk")}};
  const int active = map(builder, "gelu", "weft::gelu({0})", {gemm}, "active", "hjk", type);
  const int kept = dropout(builder, active, "kept", "hjk", type);
  return builder.build({map(builder, "residual", "{0} + {1}", {kept, rest}, "sum", "hjk", type)});
}

/// A kernel under one layout, as text of one warp a block.
struct Subject {
  Kernel kernel;
  Configuration configuration;
  StridedBatchedGemm gemm;
  bool rowsAlongN = false;
  emulate::Source source = {};
  std::vector<Parameter> parameters = {};  ///< of the epilogue; inputs and outputs come before them

  int64_t rows() const { return rowsAlongN ? gemm.n : gemm.m; }
  int64_t columns() const { return rowsAlongN ? gemm.m : gemm.n; }
};

constexpr const char *gemmTemplate = R"(
struct Fragment { int batch, row, column; };
struct GemmProblem { weft::Offset m, n, k, strideRow, strideAk, batchA, strideBk, strideColumn,
    batchB, strideCm, batchStrideC; };
)";

std::string gemmText(const Subject &subject) {
  const StridedBatchedGemm &p = subject.gemm;
  const bool n = subject.rowsAlongN;
  const std::vector<int64_t> members = {subject.rows(),
                                        subject.columns(),
                                        p.k,
                                        n ? p.strideBn : p.strideAm,
                                        n ? p.strideBk : p.strideAk,
                                        n ? p.batchStrideB : p.batchStrideA,
                                        n ? p.strideAk : p.strideBk,
                                        n ? p.strideAm : p.strideBn,
                                        n ? p.batchStrideA : p.batchStrideB,
                                        n ? p.strideCn : p.strideCm,
                                        p.batchStrideC};
  return fmt::format("constexpr GemmProblem gemm{{{}}};\n", fmt::join(members, ", "));
}

/// The sums of a fragment, the epilogue, and the first output.
/// Threads run one after the other: sums are added in memory, which is zero at first.
std::string bodyText(const Subject &subject, const std::vector<std::string> &outputs,
                     const std::string &rows, const std::string &columns,
                     const std::string &subtile, const std::string &result) {
  std::string text = R"(  const int lane = threadIdx.x;
  const Fragment at{int(blockIdx.z), int(blockIdx.y) * 16 + lane / 4, int(blockIdx.x) *
      16 + lane % 4 * 2};
  float sums[8], operand[8], summed[SUMS][8];
  for (int e = 0; e < 8; ++e) {
    const int row = at.row + weft::rowInFragment(e), column = at.column + weft::columnInFragment(e);
    const bool inside = row < gemm.m && column < gemm.n;
    sums[e] = operand[e] = 0;
    for (int depth = 0; inside && depth < gemm.k; ++depth)
      sums[e] += weft::loadOne(ROWS + at.batch * gemm.batchA + row * gemm.strideRow + depth *
          gemm.strideAk) *
                 weft::loadOne(COLUMNS + at.batch * gemm.batchB + column *
                     gemm.strideColumn + depth * gemm.strideBk);
    if (inside) operand[e] = PANEL;
  }
  epilogueOp(CALL);
  for (int e = 0; e < 8; ++e) {
    const int row = at.row + weft::rowInFragment(e), column = at.column + weft::columnInFragment(e);
    if (row < gemm.m && column < gemm.n) weft::storeOne(RESULT + PLACE, sums[e]);
    if (row < gemm.m && column < gemm.n) { ADDED }
  }
)";
  const std::string place = "at.batch * gemm.batchStrideC + row * gemm.strideCm + column";
  const ContractionRegion region = contractionRegion(subject.kernel).value();
  std::string added;
  for (size_t n = 0; n < region.reductions.size(); ++n) {
    const bool isOfRows = (region.reductions[n].role == EpilogueRole::n) == subject.rowsAlongN;
    added += fmt::format("{}[{}] += summed[{}][e]; ", outputs[region.reductions[n].output],
                         isOfRows ? "row" : "column", n);
  }
  const std::string call = fmt::format("sums, {}{}at", subtile.empty() ? "" : "operand, ",
                                       region.reductions.empty() ? "" : "summed, ");
  const std::vector<std::pair<std::string, std::string>> words = {
      {"SUMS", std::to_string(std::max<size_t>(1, region.reductions.size()))},
      {"ADDED", added},
      {"ROWS", subject.rowsAlongN ? columns : rows},
      {"COLUMNS", subject.rowsAlongN ? rows : columns},
      {"PANEL",
       subtile.empty() ? std::string("0") : fmt::format("weft::loadOne({} + {})", subtile, place)},
      {"CALL", call},
      {"RESULT", result},
      {"PLACE", place}};
  for (const auto &[word, by] : words) text.replace(text.find(word), word.size(), by);
  return text;
}

void emitText(Subject &subject) {
  const Kernel &kernel = subject.kernel;
  const ContractionRegion region = contractionRegion(kernel).value();
  Names names;
  for (const char *word : {"gemm", "lane", "operand", "epilogueOp", "Fragment", "GemmProblem"})
    names.reserve(word);
  Program program{.entry = names.reserve(kernel.name),
                  .headers = {"weft/fragment.cuh", "weft/types.cuh"}};
  std::vector<std::string> axes, inputs, outputs;
  ConstantLine extents{.type = "weft::Offset",
                       .entries = {},
                       .note = "extents",
                       .subject = {ConstantSubject::Kind::extents}};
  for (const Axis &axis : kernel.axes) {
    axes.push_back(names.reserve(axis.name));
    extents.entries.emplace_back(axes.back(), axis.extent);
  }
  program.constants = {extents};
  const auto addTensor = [&](Parameter::Kind kind, size_t index, ValueId value) {
    program.parameters.push_back({kind, int(index),
                                  names.reserve(kernel.values[size_t(value)].name),
                                  std::string(cudaNameOf(kernel.values[size_t(value)].dtype))});
    return program.parameters.back().name;
  };
  for (size_t i = 0; i < kernel.inputs.size(); ++i)
    inputs.push_back(addTensor(Parameter::Kind::input, i, kernel.inputs[i]));
  for (size_t i = 0; i < kernel.outputs.size(); ++i)
    outputs.push_back(addTensor(Parameter::Kind::output, i, kernel.outputs[i]));
  const auto subtile = subtileInputOf(kernel, region);
  const ContractionEpilogue epilogue = contractionEpilogue({.kernel = kernel,
                                                            .configuration = subject.configuration,
                                                            .region = region,
                                                            .names = names,
                                                            .axes = axes,
                                                            .inputs = inputs,
                                                            .outputs = outputs,
                                                            .gemm = "gemm",
                                                            .rowsAlongN = subject.rowsAlongN,
                                                            .fragmentType = "Fragment",
                                                            .subtileInput = subtile});
  program.headers.insert(program.headers.end(), epilogue.headers.begin(), epilogue.headers.end());
  program.constants.insert(program.constants.end(), epilogue.constants.begin(),
                           epilogue.constants.end());
  program.parameters.insert(program.parameters.end(), epilogue.parameters.begin(),
                            epilogue.parameters.end());
  program.body = epilogue.prologue;
  program.body.push_back({.kind = Statement::Kind::function,
                          .type = epilogue.arguments,
                          .name = "epilogueOp",
                          .body = epilogue.body});
  program.body.push_back(evaluate("BODY"));
  program.launchBounds = "32";
  std::string text = printCuda(program);
  const std::string call = "  BODY;\n";
  text.replace(text.find(call), call.size(),
               bodyText(subject, outputs, inputs[region.operands.a], inputs[region.operands.b],
                        subtile ? inputs[*subtile] : "", outputs[0]));
  text.insert(text.find("namespace {"), gemmTemplate + gemmText(subject));
  subject.source = {text, program.entry};
  subject.parameters = epilogue.parameters;
}

/// One subject for every dense layout of the result, as which the operand of the text above lies.
void addSubjects(const Kernel &kernel, std::vector<Subject> &subjects) {
  std::set<Layout> results;
  for (const LayoutTuple &tuple : contractionTuples(kernel)) {
    const Configuration configuration = toConfiguration(kernel, tuple, FmaGemmKnobs{});
    if (!std::ranges::all_of(tuple, &Layout::isDense) ||
        !results.insert(configuration.outputs[0]).second)
      continue;
    const StridedBatchedGemm gemm = stridedBatchedGemm(kernel, configuration).value();
    subjects.push_back({.kernel = kernel,
                        .configuration = configuration,
                        .gemm = gemm,
                        .rowsAlongN = gemm.strideCn != 1});
    emitText(subjects.back());
  }
}

void check(const Subject &subject, const emulate::HostKernel &host) {
  const Kernel &kernel = subject.kernel;
  std::vector<std::unique_ptr<Tensor>> tensors;
  std::vector<reference::ElementReader> readers;
  for (size_t i = 0; i < kernel.inputs.size(); ++i) {
    tensors.push_back(
        std::make_unique<Tensor>(kernel, kernel.inputs[i], subject.configuration.inputs[i]));
    tensors.back()->fill(i);
    readers.push_back(
        [tensor = tensors.back().get()](std::span<const int64_t> at) { return (*tensor)(at); });
  }
  for (size_t i = 0; i < kernel.outputs.size(); ++i)
    tensors.push_back(
        std::make_unique<Tensor>(kernel, kernel.outputs[i], subject.configuration.outputs[i]));
  const uint64_t key[2] = {11, 5};
  const void *keyPointer = key;
  uint32_t stream = 3;
  std::vector<void *> pointers, arguments;
  for (const auto &tensor : tensors) pointers.push_back(tensor->buffer.bytes().data());
  const ContractionRegion region = contractionRegion(kernel).value();
  for (const EpilogueReduction &sum : region.reductions)
    std::ranges::fill(tensors[kernel.inputs.size() + sum.output]->buffer.bytes(), std::byte{0});
  for (void *&pointer : pointers) arguments.push_back(&pointer);
  for (const Parameter &parameter : subject.parameters)
    arguments.push_back(parameter.kind == Parameter::Kind::dropoutKey
                            ? static_cast<void *>(&keyPointer)
                            : static_cast<void *>(&stream));
  const emulate::Grid grid{
      .blocks = {(subject.columns() + 15) / 16, (subject.rows() + 15) / 16, subject.gemm.batch},
      .threads = {32, 1, 1},
      .shared = host.shared};
  REQUIRE(emulate::run(grid, emulate::Schedule::ascending, [&] { host.call(arguments.data()); }) ==
          "");
  reference::PointEvaluator evaluator(kernel, readers, {.seed = 11, .step = 5});
  for (size_t output = 0; output < kernel.outputs.size(); ++output) {
    const Tensor &tensor = *tensors[kernel.inputs.size() + output];
    int64_t wrong = 0;
    tensor.forEach([&](std::span<const int64_t> at) {
      wrong += reference::agrees(tensor(at), evaluator.output(output, at), tensor.type) ? 0 : 1;
    });
    CHECK(wrong == 0);
  }
  for (const auto &tensor : nonEmpty(tensors)) CHECK(tensor->buffer.intact());
}

}  // namespace

TEST_CASE("epilogues compute what their ops say, wherever the result's axes lie") {
  std::vector<Subject> subjects;
  addSubjects(projection(16, DType::f32),
              subjects);  // masks by whole fragments where j is faster than b
  addSubjects(projection(6, DType::f32), subjects);  // masks element by element
  addSubjects(scores(DType::f16), subjects);
  addSubjects(summed(DType::f32), subjects);
  std::vector<emulate::Source> sources;
  for (const Subject &subject : subjects) sources.push_back(subject.source);
  CHECK(subjects.size() == 16);
  const emulate::HostLibrary library("contraction_epilogue", sources);
  size_t whole = 0, transposed = 0;
  for (size_t i = 0; i < subjects.size(); ++i) {
    INFO(subjects[i].source.text);
    whole += subjects[i].source.text.find("weft::keptFragment(") != std::string::npos ? 1 : 0;
    transposed +=
        subjects[i].source.text.find("weft::keptTransposedFragment(") != std::string::npos ? 1 : 0;
    check(subjects[i], library.kernel(i));
  }
  CHECK(whole > 0);
  CHECK(transposed > 0);
  CHECK(whole + transposed < subjects.size());
}

TEST_CASE("masks know the coordinates of the kernel's axes, wherever the result's axes lie") {
  std::vector<Subject> subjects;
  // Coordinates along axes that rows and columns run along alone and together; more keys than
  // queries and fewer.
  for (const samples::ContractionExtents &extents :
       {samples::ContractionExtents{.b = 2, .j = 9, .i = 5, .u = 21},
        {.b = 3, .j = 19, .i = 4, .u = 10},
        {.b = 1, .j = 20, .i = 4, .u = 22}})
    for (const Kernel &kernel : samples::maskedContractions(extents, DType::f16))
      addSubjects(kernel, subjects);
  CHECK(subjects.size() == 30);
  std::vector<emulate::Source> sources;
  for (const Subject &subject : subjects) sources.push_back(subject.source);
  const emulate::HostLibrary library("contraction_epilogue_masks", sources);
  for (size_t i = 0; i < subjects.size(); ++i) {
    INFO(subjects[i].source.text);
    check(subjects[i], library.kernel(i));
  }
}

TEST_CASE("elements are gathered from where an op computes them, wherever the result's axes lie") {
  std::vector<Subject> subjects;
  for (const samples::ContractionExtents &extents :
       {samples::ContractionExtents{.b = 2, .j = 9, .i = 5, .u = 21},
        {.b = 3, .j = 19, .i = 4, .u = 19},
        {.b = 1, .j = 20, .i = 4, .u = 22}})
    for (const Kernel &kernel : nonEmpty(samples::gatheredContractions(extents, DType::f16))) {
      const ContractionRegion region = contractionRegion(kernel).value();
      CHECK(std::ranges::count(region.inputs, EpilogueRole::gathered, &EpilogueInput::role) == 2);
      addSubjects(kernel, subjects);
    }
  std::vector<emulate::Source> sources;
  for (const Subject &subject : nonEmpty(subjects)) sources.push_back(subject.source);
  const emulate::HostLibrary library("contraction_epilogue_gathered", sources);
  for (size_t i = 0; i < subjects.size(); ++i) {
    INFO(subjects[i].source.text);
    check(subjects[i], library.kernel(i));
  }
}

TEST_CASE("a contraction without an epilogue leaves its sums as they are") {
  const Kernel kernel = samples::contractKernel({{'m', 4}, {'n', 5}, {'k', 6}}, "mk", "kn", "mn");
  const Configuration configuration{
      .inputs = {rowMajor(2), rowMajor(2)}, .outputs = {rowMajor(2)}, .knobs = FmaGemmKnobs{}};
  Names names;
  const ContractionRegion region = contractionRegion(kernel).value();
  const EpilogueContext context{.kernel = kernel,
                                .configuration = configuration,
                                .region = region,
                                .names = names,
                                .axes = {"m", "n", "k"},
                                .inputs = {"a", "b"},
                                .outputs = {"c"},
                                .gemm = "gemm",
                                .fragmentType = "Fragment"};
  CHECK(contractionEpilogue(context).isEmpty());
}
