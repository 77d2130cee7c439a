// A program that calls the kernel template of backward attention; see Sm80AttentionBackward.h.
#include "codegen/families/attention_backward_sm80/Sm80AttentionBackward.h"

#include "codegen/EntryName.h"
#include "codegen/ExpressionText.h"
#include "codegen/families/attention/AttentionPlaces.h"
#include "codegen/families/attention_backward/AttentionGradients.h"
#include "codegen/families/attention_backward_sm80/Sm80AttentionBackwardTile.h"
#include "codegen/families/contraction/ContractionTexts.h"
#include "kernel/Error.h"

#include <algorithm>
#include <limits>

namespace weft::codegen {
namespace {

AttentionBackwardRegion checkedRegion(const Kernel &kernel) {
  Expected<AttentionBackwardRegion, Reason> answer = attentionBackwardRegion(kernel);
  if (!answer)
    throw Error::unsupported("kernel '{}': no backward pass of an attention: {}", kernel.name,
                             answer.error().text);
  return std::move(*answer);
}

AttentionBackwardProblem checkedProblem(const Kernel &kernel, const AttentionBackwardRegion &region,
                                        const Configuration &configuration,
                                        const Sm80AttentionBackwardKnobs &knobs) {
  const auto check = [&](const std::string &reason) {
    if (!reason.empty()) throw Error::unsupported("kernel '{}': {}", kernel.name, reason);
  };
  const Expected<AttentionBackwardProblem> answer =
      attentionBackwardProblem(kernel, region, configuration);
  if (!answer) check(answer.error().what());
  check(gradientRejection(kernel, region, *answer));
  check(sm80AttentionBackwardLayoutRejection(*answer));
  check(sm80AttentionBackwardTileRejection(*answer, knobs, rowFloatsOf(kernel, region)));
  if (const int64_t blocks = sm80AttentionBackwardBlocks(*answer, knobs);
      blocks > std::numeric_limits<int32_t>::max())
    check(fmt::format("{} blocks; the limit is {}", blocks, std::numeric_limits<int32_t>::max()));
  return *answer;
}

class Sm80AttentionBackwardLowering {
public:
  Sm80AttentionBackwardLowering(const Kernel &kernel, const Configuration &configuration,
                                const Sm80AttentionBackwardKnobs &knobs)
      : kernel(kernel),
        configuration(configuration),
        knobs(knobs),
        region(checkedRegion(kernel)),
        problem(checkedProblem(kernel, region, configuration, knobs)),
        attention(problem.attention),
        isTf32(attention.operandType == DType::tf32),
        isWide(sm80AttentionBackwardIsWide(problem)) {}

  Program run() {
    program.entry = names.reserve(entryName(kernel));
    nameAxes();
    nameTensors();
    const AttentionGradients gradients = attentionGradients({.kernel = kernel,
                                                             .configuration = configuration,
                                                             .region = region,
                                                             .problem = problem,
                                                             .names = names,
                                                             .axes = axes,
                                                             .inputs = inputs,
                                                             .dScores = nameOfScores()});
    rowFloats = gradients.rowFloats;
    program.headers = gradients.headers;
    program.headers.push_back(attention.packed ? "weft/sm80_packed_attention_backward.cuh"
                              : isTf32         ? "weft/sm80_tf32_attention_backward.cuh"
                              : isWide         ? "weft/sm80_wide_attention_backward.cuh"
                                               : "weft/sm80_attention_backward.cuh");
    std::ranges::sort(program.headers);
    program.parameters.insert(program.parameters.end(), gradients.parameters.begin(),
                              gradients.parameters.end());
    program.constants.insert(program.constants.end(), gradients.constants.begin(),
                             gradients.constants.end());
    describeProblem();
    program.constants.push_back({"weft::sm80::BackwardTile",
                                 {{tile, ConstantValue::text(fmt::format(
                                             "{{.rows = {}, .columns = {}, .stages = {}}}",
                                             knobs.tileRows, knobs.tileColumns, knobs.stages))}},
                                 "",
                                 {ConstantSubject::Kind::unchecked}});
    addChecks();
    program.body.insert(program.body.end(), gradients.functions.begin(), gradients.functions.end());
    const std::string sequences = attention.packed ? addSequences() : "";
    call(gradients, addPlaces(), sequences);
    if (attention.packed) zeroUnused(sequences);
    const int threads = sm80AttentionBackwardThreads(knobs);
    program.launchBounds = fmt::format("{}, 1", threads);
    program.launch = {.grid = {sm80AttentionBackwardBlocks(problem, knobs), 1, 1},
                      .block = {threads, 1, 1},
                      .sharedBytes = sm80AttentionBackwardSharedBytes(problem, knobs, rowFloats)};
    program.mapping = describe(kernel, knobs);
    pruneUnused(program);
    return std::move(program);
  }

private:
  void nameAxes() {
    ConstantLine extents{.type = "int",
                         .entries = {},
                         .note = "extents",
                         .subject = {ConstantSubject::Kind::extents}};
    for (const Axis &axis : kernel.axes) {
      axes.push_back(names.reserve(axis.name));
      extents.entries.emplace_back(axes.back(), axis.extent);
    }
    program.constants = {extents};
    for (std::string *name : {&shape, &tile}) *name = names.reserve(*name);
  }

  std::string addTensor(ValueId value, int index, Parameter::Kind kind) {
    const std::string name = names.reserve(kernel.values[size_t(value)].name);
    program.parameters.push_back(
        {.kind = kind,
         .index = index,
         .name = name,
         .type = std::string(cudaNameOf(kernel.values[size_t(value)].dtype))});
    return name;
  }
  void nameTensors() {
    for (size_t i = 0; i < kernel.inputs.size(); ++i)
      inputs.push_back(addTensor(kernel.inputs[i], int(i), Parameter::Kind::input));
    for (size_t i = 0; i < kernel.outputs.size(); ++i)
      outputs.push_back(addTensor(kernel.outputs[i], int(i), Parameter::Kind::output));
  }

  std::string nameOfScores() const {
    return problem.dScores ? outputs.at(problem.dScores->operand - inputs.size()) : "";
  }
  ConstantValue extentOf(AxisId axis) const {
    return axis < 0 ? ConstantValue(1) : ConstantValue::name(axes[size_t(axis)]);
  }
  bool isAligned(const AttentionTensor &tensor) const {
    return tensor.hasAlignedRows(sizeOf(attention.operandType), 16);
  }

  void describeProblem() {
    std::vector<AxisId> groupAxes;
    for (const AxisId axis : attention.headAxes)
      if (std::ranges::find(region.queries, axis) != region.queries.end())
        groupAxes.push_back(axis);
    std::vector<ConstantMember> members = {
        {"heads", extentProduct(kernel, attention.headAxes, axes), true},
        {"headsOfGroup", extentProduct(kernel, groupAxes, axes)},
        {"queries", extentOf(attention.queryAxis)},
        {"keys", extentOf(attention.keyAxis)},
        {"headDim", extentOf(attention.headDimAxis), true},
        {"valueDim", extentOf(attention.valueDimAxis)},
        {"rowQ", attention.q.rowStride, true},
        {"rowK", attention.k.rowStride},
        {"rowV", attention.v.rowStride},
        {"rowDOutput", problem.dOutput().rowStride},
        {"rowDQ", problem.dQ.rowStride, true},
        {"rowDK", problem.dK.rowStride},
        {"rowDV", problem.dV.rowStride},
        {"isDQAligned", ConstantValue::truth(isAligned(problem.dQ)), true},
        {"isDKAligned", ConstantValue::truth(isAligned(problem.dK))},
        {"isDVAligned", ConstantValue::truth(isAligned(problem.dV))},
        {"scaleDQ", ConstantValue::text(floatLiteral(region.dQScale)), true},
        {"scaleDK", ConstantValue::text(floatLiteral(region.dKScale))},
        {"scaleDV", ConstantValue::text(floatLiteral(region.dVScale))},
        {"rowFloats", rowFloats}};
    if (attention.zeroesUnseen)
      members.push_back({"zeroesUnseen", ConstantValue::truth(true), true});
    program.constants.push_back({"weft::sm80::BackwardShape",
                                 {{shape, ConstantValue::members(std::move(members))}},
                                 "",
                                 {ConstantSubject::Kind::strides, "the result"}});
  }

  void addChecks() {
    const std::string config = fmt::format(
        "weft::sm80::{}<{}, {}>", isTf32 ? "Tf32BackwardConfig" : "BackwardConfig", shape, tile);
    program.body.push_back(
        evaluate(fmt::format("static_assert({}::sharedBytes == {})", config,
                             sm80AttentionBackwardSharedBytes(problem, knobs, rowFloats))));
    const auto equal = [&](const char *member, int64_t value) {
      return fmt::format("{}.{} == {}", shape, member, value);
    };
    program.body.push_back(launchCheckOf(
        {equal("heads", attention.heads), equal("headsOfGroup", attention.headsOfGroup),
         equal("queries", attention.queries), equal("keys", attention.keys),
         equal("headDim", attention.headDim), equal("valueDim", attention.valueDim)},
        "these extents"));
    const int64_t blocks = sm80AttentionBackwardBlocks(problem, knobs);
    const int threads = sm80AttentionBackwardThreads(knobs);
    const auto tilesOf = [&](int64_t positions) {
      return fmt::format("(({} + {}.rows - 1) / {}.rows)", positions, tile, tile);
    };
    program.body.push_back(launchCheckOf(
        {fmt::format("{}{} * {} + {} * {} == {}", isWide ? "2 * " : "", problem.groups(),
                     tilesOf(attention.keys), attention.heads, tilesOf(attention.queries), blocks),
         fmt::format("2 * {}.rows == {}", tile, threads)},
        fmt::format("{} blocks of {} threads", blocks, threads)));
  }

  /// A function of a head that says where its elements begin; returns its name.
  std::string addPlaces() {
    const std::string name = names.reserve("placesOfHead"), head = names.reserve("number");
    std::string members;
    for (const auto &[member, tensor] :
         std::initializer_list<std::pair<const char *, const AttentionTensor *>>{
             {"q", &attention.q},
             {"k", &attention.k},
             {"v", &attention.v},
             {"dOutput", &problem.dOutput()},
             {"dQ", &problem.dQ},
             {"dK", &problem.dK},
             {"dV", &problem.dV}})
      members += fmt::format("{}.{} = {}", members.empty() ? "" : ", ", member,
                             placeOfHead(attention, *tensor, head));
    program.body.push_back(
        {.kind = Statement::Kind::function,
         .type = fmt::format("int {}", head),
         .name = name,
         .body = {evaluate(fmt::format("return weft::sm80::BackwardPlaces{{{}}}", members))}});
    return name;
  }

  /// Where sequences lie among packed tokens; returns its name.
  std::string addSequences() {
    const std::string name = names.reserve("sequences");
    program.body.push_back(
        {.kind = Statement::Kind::declare,
         .type =
             fmt::format("weft::PackedSequences<{}, {}, {}, {}, {}>", attention.packed->sequences,
                         attention.packed->divisor, attention.packed->offsetStride,
                         extentOf(attention.queryAxis), axes[size_t(region.packed->q)]),
         .name = name,
         .value = fmt::format("{{{}}}", inputs.at(region.packed->input)),
         .isConstant = true});
    return name;
  }

  /// Rows of gradients that are of no sequence become zeros.
  void zeroUnused(const std::string &sequences) {
    for (const auto &[tensor, columns, isAligned] :
         {std::tuple(&problem.dQ, attention.headDimAxis, "isDQAligned"),
          {&problem.dK, attention.headDimAxis, "isDKAligned"},
          {&problem.dV, attention.valueDimAxis, "isDVAligned"}}) {
      const std::string &name = outputs.at(tensor->operand - inputs.size()),
                        row = names.reserve(name + "_row");
      program.body.push_back(
          rowFunction(row, name, placeOfHead(attention, *tensor, "head"), tensor->rowStride));
      program.body.push_back(evaluate(
          fmt::format("weft::zeroUnused<{}, {}, {}.{}>({}, {}, threadIdx.x, {})", extentOf(columns),
                      extentProduct(kernel, attention.headAxes, axes), shape, isAligned, sequences,
                      row, sm80AttentionBackwardThreads(knobs))));
    }
  }

  void call(const AttentionGradients &gradients, const std::string &places,
            const std::string &sequences) {
    const auto output = [&](const AttentionTensor &tensor) {
      return outputs.at(tensor.operand - inputs.size());
    };
    std::vector<NamedArgument> arguments = {
        {"q", inputs.at(attention.q.operand)},
        {"k", inputs.at(attention.k.operand)},
        {"v", inputs.at(attention.v.operand)},
        {"dOutput", inputs.at(problem.dOutput().operand)},
        {"dQ", output(problem.dQ)},
        {"dK", output(problem.dK)},
        {"dV", output(problem.dV)},
        {"placesOfHead", places},
        {"rowOf", gradients.row},
        {"gradients", gradients.gradients},
        {"gradientsWithoutMasks", gradients.gradientsWithoutMasks},
        {"coverage", gradients.coverage},
        {"dropout", gradients.dropout},
        {"dropoutTransposed", gradients.dropoutTransposed}};
    if (region.storedScores >= 0) arguments.push_back({"storeScores", gradients.storeScores});
    const std::string type = isTf32 ? "" : fmt::format("{}, ", cudaNameOf(attention.operandType));
    program.body.push_back(templateCall(
        fmt::format("weft::sm80::{}<{}{}, {}>", functionName(), type, shape, tile),
        attention.packed ? sequences + ", weft::sm80::BackwardArgs" : "weft::sm80::BackwardArgs",
        arguments));
  }

  std::string_view functionName() const {
    if (attention.packed) return isTf32 ? "packedTf32AttentionBackward" : "packedAttentionBackward";
    return isTf32   ? "tf32AttentionBackward"
           : isWide ? "wideAttentionBackward"
                    : "attentionBackward";
  }

  const Kernel &kernel;
  const Configuration &configuration;
  const Sm80AttentionBackwardKnobs &knobs;
  const AttentionBackwardRegion region;
  const AttentionBackwardProblem problem;
  const AttentionProblem &attention;
  const bool isTf32, isWide;
  Names names;
  Program program;
  std::vector<std::string> axes, inputs, outputs;
  std::string shape = "shape", tile = "tile";
  int rowFloats = 1;
};

}  // namespace

Program lowerSm80AttentionBackward(const Kernel &kernel, const Configuration &configuration,
                                   const Sm80AttentionBackwardKnobs &knobs) {
  return Sm80AttentionBackwardLowering(kernel, configuration, knobs).run();
}

}  // namespace weft::codegen
