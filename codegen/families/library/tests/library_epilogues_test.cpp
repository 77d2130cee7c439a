// Epilogues of library GEMMs: which kernels have a form, which layouts it serves, what the
// GEMM then is, what a profile and people read of it, and its place in a plan.
#include "codegen/families/library/LibraryCostConstants.h"
#include "codegen/families/library/LibraryGemm.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "kernel/ConfigurationText.h"
#include "kernel/Error.h"
#include "kernel/Schedule.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Families.h"
#include "passes/configure/Margins.h"
#include "passes/select/Selection.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/measure/MeasureJobs.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/FusedGemms.h"
#include "tests/unit/samples/SampleTokens.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::samples;

namespace {

const std::map<char, int64_t> even{{'m', 64}, {'n', 48}, {'k', 32}};

std::string formOf(const FusedGemm &gemm) {
  const Expected<LibraryForm, Reason> answer = libraryForm(fusedGemm(gemm));
  return answer ? describe(*answer) : "";
}
std::string rejectionOf(const Kernel &kernel) {
  const Expected<LibraryForm, Reason> answer = libraryForm(kernel);
  return answer ? "" : reasonOf(answer);
}
std::string rejectionOf(const FusedGemm &gemm) { return rejectionOf(fusedGemm(gemm)); }

/// Every operand row-major, or all of the GEMM's result column-major.
Configuration configurationOf(const Kernel &kernel, bool isColumnMajor = false) {
  Configuration configuration{.knobs = LibraryKnobs{}};
  const auto layoutOf = [&](ValueId value) {
    const size_t rank = kernel.values[size_t(value)].axes.size();
    const bool isOfResult =
        kernel.values[size_t(value)].axes == kernel.values[size_t(kernel.body[0].results[0])].axes;
    Layout layout = rowMajor(rank);
    if (isColumnMajor && isOfResult) std::swap(layout.order[rank - 1], layout.order[rank - 2]);
    return layout;
  };
  for (const ValueId value : kernel.inputs) configuration.inputs.push_back(layoutOf(value));
  for (const ValueId value : kernel.outputs) configuration.outputs.push_back(layoutOf(value));
  return configuration;
}

Expected<LibraryGemm, Reason> problemOf(const FusedGemm &gemm, bool isColumnMajor = false) {
  const Kernel kernel = fusedGemm(gemm);
  return asLibraryGemm(kernel, libraryForm(kernel).value(), configurationOf(kernel, isColumnMajor));
}

std::vector<Configuration> libraryConfigurations(const Kernel &kernel) {
  std::vector<Configuration> result;
  for (const Configuration &configuration : enumerate(kernel, findDevice("h200")).legal)
    if (configuration.knobs.is<LibraryKnobs>()) result.push_back(configuration);
  return result;
}

}  // namespace

TEST_CASE("kernels that the library computes by one of its epilogues") {
  CHECK(formOf({.extents = even}) == "");
  CHECK(libraryForm(fusedGemm({.extents = even})).has_value());
  for (const char *bias : {"m", "n"}) {
    CHECK(formOf({.extents = even, .bias = bias}) == "bias");
    CHECK(formOf({.extents = even, .bias = bias, .function = "relu"}) == "relu_bias");
    CHECK(formOf({.extents = even, .bias = bias, .function = "gelu_tanh"}) == "gelu_bias");
    CHECK(formOf({.extents = even, .bias = bias, .function = "gelu_tanh", .keepsOperand = true}) ==
          "gelu_aux_bias");
    CHECK(formOf({.extents = even, .function = "gelu_tanh_dx", .summed = "y", .gradient = bias}) ==
          "dgelu_bgrad");
  }
  CHECK(formOf({.extents = even, .function = "relu"}) == "relu");
  CHECK(formOf({.extents = even, .function = "gelu_tanh"}) == "gelu");
  CHECK(formOf({.extents = even, .function = "gelu_tanh", .keepsOperand = true}) == "gelu_aux");
  CHECK(formOf({.extents = even, .function = "gelu_tanh_dx"}) == "dgelu");
  CHECK(formOf({.extents = even, .summed = "a", .gradient = "m"}) == "bgrada");
  CHECK(formOf({.extents = even, .summed = "b", .gradient = "n"}) == "bgradb");
  for (const char *op : {"add", "sub", "residual"}) {
    CHECK(formOf({.extents = even, .residual = op}) == "residual");
    CHECK(formOf({.extents = even, .residual = op, .bias = "n", .function = "relu"}) ==
          "relu_bias + residual");
  }
}

TEST_CASE("factors before and behind a residual become alpha and beta") {
  const LibraryForm form =
      libraryForm(
          fusedGemm(
              {.extents = even, .alpha = 0.5, .residual = "sub", .factor = 0.25, .bias = "n"}))
          .value();
  CHECK(form.alpha == 0.125);
  CHECK(form.beta == -0.25);
  // residual - GEMM
  KernelBuilder builder("difference", even);
  const int a = builder.input("a", "mk"), b = builder.input("b", "kn"),
            residual = builder.input("residual", "mn");
  const int c = builder.op("contract", OperatorClass::contraction, {a, b}, "c", "mn", "k");
  const int d = builder.op("sub", OperatorClass::elementwise, {residual, c}, "d", "mn");
  builder.last().expression = Expression::parse(spellingOf("sub"));
  const LibraryForm difference = libraryForm(builder.build({d})).value();
  CHECK(difference.alpha == -1);
  CHECK(difference.beta == 1);
  CHECK(difference.residual == residual);
}

TEST_CASE("what the library does not compute is rejected by name") {
  // Another function than the library's.
  CHECK_THAT(rejectionOf({.extents = even, .bias = "n", .function = "gelu"}),
             Catch::Contains("'gelu'") && Catch::Contains("tanh approximation"));
  CHECK_THAT(rejectionOf({.extents = even, .function = "gelu_dx"}),
             Catch::Contains("'gelu_dx'") && Catch::Contains("tanh approximation"));
  CHECK_THAT(rejectionOf({.extents = even, .function = "relu_dx"}),
             Catch::Contains("'relu_dx'") && Catch::Contains("mask of bits"));
  CHECK_THAT(rejectionOf({.extents = even, .function = "silu"}),
             Catch::Contains("'silu'") && Catch::Contains("none of the library's"));
  // Rows whose number only the device knows.
  CHECK_THAT(rejectionOf(gemmOfTokens({.t = 64, .i = 32, .u = 48, .sequences = 2}, DType::f16,
                                      false, false, true)),
             Catch::Contains("'mask'") && Catch::Contains("counted on the device"));
  // Something else is stored.
  CHECK_THAT(rejectionOf({.extents = even, .bias = "n", .function = "relu", .keepsOperand = true}),
             Catch::Contains("'biased' is stored") && Catch::Contains("bits"));
  // Factors of a bias; a derivative of a sum; sums of other things.
  CHECK_THAT(rejectionOf({.extents = even, .bias = "n", .function = "gelu_tanh_dx"}),
             Catch::Contains("'gelu_tanh_dx' is of a sum"));
  CHECK_THAT(rejectionOf({.extents = even, .residual = "add", .function = "gelu_tanh_dx"}),
             Catch::Contains("'gelu_tanh_dx' is of a sum"));
  CHECK_THAT(rejectionOf({.extents = even, .bias = "n", .summed = "y", .gradient = "n"}),
             Catch::Contains("'reduce' is over 'biased'"));
  CHECK_THAT(rejectionOf({.extents = even, .alpha = 0.5, .summed = "a", .gradient = "m"}),
             Catch::Contains("beside a plain GEMM only"));
  CHECK_THAT(rejectionOf({.extents = even, .function = "relu", .summed = "b", .gradient = "n"}),
             Catch::Contains("beside a plain GEMM only"));
  CHECK_THAT(rejectionOf({.extents = even, .summed = "a", .gradient = "k"}),
             Catch::Contains("'gradient'"));
  CHECK_THAT(rejectionOf({.extents = {{'p', 4}, {'m', 16}, {'n', 8}, {'k', 8}},
                          .a = "pmk",
                          .c = "pmn",
                          .function = "gelu_tanh_dx",
                          .summed = "y",
                          .gradient = "m"}),
             Catch::Contains("axes of one side"));
  CHECK_THAT(rejectionOf({.extents = {{'g', 4}, {'m', 16}, {'n', 8}, {'k', 8}},
                          .a = "gmk",
                          .b = "gkn",
                          .c = "gmn",
                          .function = "gelu_tanh_dx",
                          .summed = "y",
                          .gradient = "n"}),
             Catch::Contains("axes of one side"));
  // A bias along part of a side, and along the batch.
  CHECK_THAT(rejectionOf({.extents = {{'p', 4}, {'m', 16}, {'n', 8}, {'k', 8}},
                          .a = "pmk",
                          .c = "pmn",
                          .bias = "m"}),
             Catch::Contains("adds 'bias'"));
  CHECK_THAT(rejectionOf({.extents = {{'g', 4}, {'m', 16}, {'n', 8}, {'k', 8}},
                          .a = "gmk",
                          .b = "gkn",
                          .c = "gmn",
                          .bias = "gn"}),
             Catch::Contains("adds 'bias'"));
  CHECK_THAT(rejectionOf(reluKernel({{'j', 4}, {'i', 8}}, "ji")),
             Catch::Contains("contraction of two operands"));
}

namespace {

/// Element-wise ops on a b -> c, one after another; operands -1 stand for the value before.
Kernel chain(const std::vector<std::pair<std::string, std::vector<std::string>>> &ops,
             const std::map<std::string, std::string> &inputs, bool storesAll = false) {
  KernelBuilder builder("chain", even);
  const int a = builder.input("a", "mk"), b = builder.input("b", "kn");
  std::map<std::string, int> values;
  for (const auto &[name, letters] : inputs) values[name] = builder.input(name, letters);
  values["last"] = builder.op("contract", OperatorClass::contraction, {a, b}, "c", "mn", "k");
  std::vector<ValueId> all{values["last"]};
  for (size_t i = 0; i < ops.size(); ++i) {
    std::vector<ValueId> operands;
    for (const std::string &operand : ops[i].second) operands.push_back(values.at(operand));
    values["last"] = builder.op(ops[i].first, OperatorClass::elementwise, operands,
                                "v" + std::to_string(i), "mn");
    builder.last().expression = Expression::parse(spellingOf(ops[i].first));
    if (ops[i].first == "scale") builder.last().attributes["factor"] = 2.0;
    all.push_back(values["last"]);
  }
  return builder.build(storesAll ? all : std::vector<ValueId>{values["last"]});
}

}  // namespace

TEST_CASE("chains that the library's one sum and one function do not cover are rejected") {
  CHECK_THAT(rejectionOf(chain({{"bias", {"last", "x"}}, {"scale", {"last"}}}, {{"x", "n"}})),
             Catch::Contains("'scale' multiplies a bias"));
  CHECK_THAT(rejectionOf(chain({{"bias", {"last", "x"}}, {"bias", {"last", "y"}}},
                               {{"x", "n"}, {"y", "m"}})),
             Catch::Contains("second bias"));
  CHECK_THAT(rejectionOf(chain({{"add", {"last", "x"}}, {"add", {"last", "x"}}}, {{"x", "mn"}})),
             Catch::Contains("a second tensor of the result's shape"));
  CHECK_THAT(rejectionOf(chain({{"sub", {"last", "x"}}}, {{"x", "n"}})),
             Catch::Contains("subtracts a bias"));
  CHECK_THAT(rejectionOf(chain({{"bias", {"last", "x"}}, {"sub", {"y", "last"}}},
                               {{"x", "n"}, {"y", "mn"}})),
             Catch::Contains("subtracts a bias"));
  CHECK_THAT(rejectionOf(chain({{"relu", {"last"}}, {"add", {"last", "x"}}}, {{"x", "mn"}})),
             Catch::Contains("'add' follows the function"));
  CHECK_THAT(rejectionOf(chain({{"relu", {"last"}}, {"relu", {"last"}}}, {})),
             Catch::Contains("'relu' follows the function"));
  CHECK_THAT(rejectionOf(chain({{"add", {"last", "last"}}}, {})),
             Catch::Contains("'add' reads not just the value before it"));
  CHECK_THAT(rejectionOf(chain({{"mul", {"last", "x"}}}, {{"x", "mn"}})),
             Catch::Contains("'mul' is none of the library's"));
  CHECK_THAT(rejectionOf(chain({{"gelu_tanh_dx", {"x", "last"}}}, {{"x", "mn"}})),
             Catch::Contains("not from the GEMM"));
  CHECK_THAT(rejectionOf(chain({{"bias", {"last", "x"}}}, {{"x", "n"}}, true)),
             Catch::Contains("'c' is stored beside"));
  CHECK_THAT(
      rejectionOf(chain({{"bias", {"last", "x"}}, {"gelu_tanh", {"last"}}}, {{"x", "n"}}, true)),
      Catch::Contains("'c' is stored beside"));
  CHECK(rejectionOf(chain({{"bias", {"last", "x"}}, {"scale", {"last"}}}, {{"x", "mn"}})).empty());
}

TEST_CASE("vectors run along the axis in which the result is contiguous") {
  for (const char *function : {"", "relu", "gelu_tanh"})
    for (const bool isColumnMajor : {false, true})
      for (const std::string bias : {"m", "n"}) {
        const Expected<LibraryGemm, Reason> answer =
            problemOf({.extents = even, .bias = bias, .function = function}, isColumnMajor);
        INFO(function << " " << isColumnMajor << " " << bias << " " << reasonOf(answer));
        REQUIRE(answer.has_value() == (bias == (isColumnMajor ? "m" : "n")));
        if (answer) CHECK(vectorExtent(*answer) == even.at(bias[0]));
        else CHECK_THAT(reasonOf(answer), Catch::Contains("'bias' does not run along"));
      }
  CHECK_THAT(reasonOf(problemOf(
                 {.extents = even, .function = "gelu_tanh_dx", .summed = "y", .gradient = "m"})),
             Catch::Contains("'gradient'"));
  CHECK(problemOf({.extents = even, .function = "gelu_tanh_dx", .summed = "y", .gradient = "n"})
            .has_value());
}

TEST_CASE(
    "operands are summed where they are contiguous along the axis that stays, wherever the result "
    "is") {
  for (const bool isColumnMajor : {false, true}) {
    CHECK(vectorExtent(
              problemOf({.extents = even, .a = "km", .summed = "a", .gradient = "m"}, isColumnMajor)
                  .value()) == even.at('m'));
    CHECK(vectorExtent(
              problemOf({.extents = even, .b = "kn", .summed = "b", .gradient = "n"}, isColumnMajor)
                  .value()) == even.at('n'));
    CHECK_THAT(reasonOf(problemOf({.extents = even, .a = "mk", .summed = "a", .gradient = "m"},
                                  isColumnMajor)),
               Catch::Contains("summed over k"));
    CHECK_THAT(reasonOf(problemOf({.extents = even, .b = "nk", .summed = "b", .gradient = "n"},
                                  isColumnMajor)),
               Catch::Contains("summed over k"));
  }
}

TEST_CASE("what the library computes less precisely than kernels of ours is no configuration") {
  for (const char *function : {"gelu_tanh", "gelu_tanh_dx"}) {
    const FusedGemm one{.extents = even, .function = function};
    REQUIRE(problemOf(one).has_value());
    CHECK_THAT(precisionRejection(*problemOf(one)), Catch::Contains("GELU"));
    CHECK(libraryConfigurations(fusedGemm(one)).empty());
    CHECK_THROWS_WITH(libraryGemm(fusedGemm(one), configurationOf(fusedGemm(one))),
                      Catch::Contains("GELU"));
  }
  // Rows of 45 elements of 2 bytes.
  const std::map<char, int64_t> odd{{'m', 64}, {'n', 45}, {'k', 32}};
  CHECK_THAT(precisionRejection(*problemOf({.extents = odd, .bias = "n"})),
             Catch::Contains("multiples of 16 bytes"));
  CHECK_THAT(
      precisionRejection(*problemOf({.extents = odd, .residual = "add", .function = "relu"})),
      Catch::Contains("multiples of 16 bytes"));
  for (const FusedGemm &one : {FusedGemm{.extents = odd},
                               {.extents = odd, .function = "relu"},
                               {.extents = odd, .residual = "add"},
                               {.extents = odd, .summed = "b", .gradient = "n"},
                               {.extents = even, .bias = "n", .function = "relu"},
                               {.extents = even, .residual = "add", .bias = "n"}})
    CHECK(precisionRejection(*problemOf(one)).empty());
}

TEST_CASE("operands of GELU have rows of multiples of 8 elements") {
  const std::map<char, int64_t> odd{{'m', 64}, {'n', 44}, {'k', 32}};
  CHECK_THAT(reasonOf(problemOf({.extents = odd, .function = "gelu_tanh", .keepsOperand = true})),
             Catch::Contains("44 elements") && Catch::Contains("multiples of 8"));
  CHECK_THAT(reasonOf(problemOf({.extents = odd, .function = "gelu_tanh_dx"})),
             Catch::Contains("multiples of 8"));
  CHECK(
      problemOf({.extents = odd, .function = "gelu_tanh", .keepsOperand = true}, true).has_value());
  CHECK(problemOf({.extents = odd, .function = "gelu_tanh"}).has_value());
}

TEST_CASE("residuals have a separate place, contiguous where the result is") {
  const Kernel kernel = fusedGemm({.extents = even, .residual = "add"});
  Configuration configuration = configurationOf(kernel);
  const LibraryForm form = libraryForm(kernel).value();
  CHECK(asLibraryGemm(kernel, form, configuration)->residual == GroupStrides{.m = 48, .n = 1});
  configuration.inputs[2].strides = {100, 1};  // part of a larger tensor
  const LibraryGemm gemm = asLibraryGemm(kernel, form, configuration).value();
  CHECK(gemm.residual == GroupStrides{.m = 100, .n = 1});
  CHECK(gemm.shape.strideCm == 48);
  CHECK(columnMajorBeside(gemm.shape, gemm.residual).leadingDimension == 100);
  configuration.inputs[2] = {.order = {1, 0}};
  CHECK_THAT(reasonOf(asLibraryGemm(kernel, form, configuration)),
             Catch::Contains("residual is not contiguous along the rows"));
}

TEST_CASE("several axes of one side are one vector, in the order in which the GEMM has them") {
  const Kernel kernel = fusedGemm({.extents = {{'h', 2}, {'p', 8}, {'b', 3}, {'j', 8}, {'i', 16}},
                                   .a = "bji",
                                   .b = "phi",
                                   .c = "bjph",
                                   .bias = "ph"});
  int64_t taken = 0;
  for (const Configuration &configuration : nonEmpty(libraryConfigurations(kernel))) {
    const LibraryGemm gemm = libraryGemm(kernel, configuration);
    CHECK(gemm.epilogue == LibraryEpilogue::bias);
    CHECK(gemm.shape.strideCn == 1);
    CHECK(vectorExtent(gemm) == 16);
    // The bias lies in the order of the result's fastest axes.
    const std::vector<int> result = configuration.outputs[0].order;
    CHECK((configuration.inputs[2].order == std::vector{0, 1}) == (result[3] == 3));
    ++taken;
  }
  CHECK(taken > 0);
}

TEST_CASE("everything has one element type") {
  KernelBuilder builder("gemm", even);
  const int a = builder.input("a", "mk"), b = builder.input("b", "kn"),
            bias = builder.input("bias", "n", DType::f32);
  const int c = builder.op("contract", OperatorClass::contraction, {a, b}, "c", "mn", "k");
  const int y = builder.op("bias", OperatorClass::elementwise, {c, bias}, "y", "mn");
  builder.last().expression = Expression::parse(spellingOf("bias"));
  const Kernel kernel = builder.build({y});
  CHECK_THAT(reasonOf(asLibraryGemm(kernel, libraryForm(kernel).value(), configurationOf(kernel))),
             Catch::Contains("'bias' is f32, the result f16"));
  CHECK(libraryConfigurations(kernel).empty());
}

TEST_CASE("products with epilogues are timed as themselves, in lines that can be read back") {
  const Kernel kernel = fusedGemm({.extents = even, .bias = "n", .function = "relu"});
  Configuration configuration = configurationOf(kernel);
  configuration.knobs = LibraryKnobs{.libraryVersion = 130100, .algorithm = 66, .tile = 20};
  const std::string line = configurationLine(kernel, configuration);
  CHECK(line == "cublaslt 01,01,0>01 libraryVersion=130100 algorithm=66 tile=20");
  CHECK(parseConfiguration(line, kernel) == configuration);
  CHECK(gemmLine(placeText(kernel, configuration), configuration.knobs) == line);
  CHECK(subjectOf(kernel, configuration).text == canonicalText(kernel));
  CHECK(describe(kernel, configuration.knobs) ==
        "cuBLASLt 13.1.0, epilogue relu_bias, algorithm 66, tile 20");
  CHECK(describe(kernel, LibraryKnobs{}) ==
        "cuBLASLt, epilogue relu_bias, first candidate of its heuristic");
}

TEST_CASE("an epilogue costs more than its GEMM by a margin, and less than a kernel behind it") {
  const auto model = analyticCostModel(findDevice("h200"));
  for (const auto &extents : {std::map<char, int64_t>{{'m', 4096}, {'n', 4096}, {'k', 1024}},
                              {{'m', 512}, {'n', 1024}, {'k', 64}},
                              {{'m', 8}, {'n', 4096}, {'k', 4096}}}) {
    const Kernel plain = fusedGemm({.extents = extents}),
                 fused = fusedGemm({.extents = extents, .bias = "n", .function = "relu"});
    const double alone = model->cost(plain, configurationOf(plain)).seconds;
    const Cost fusedCost = model->cost(fused, configurationOf(fused));
    const double together = fusedCost.seconds;
    const double again =
        2.0 * 2.0 * double(extents.at('m') * extents.at('n')) / findDevice("h200").copyBandwidth;
    CHECK(fusedCost.margin == Approx(margins::libraryEpilogue));
    CHECK(together > (1 + margins::libraryEpilogue) * alone);
    CHECK(together < 1.2 * (alone + again) + findDevice("h200").launchSeconds);
  }
}

TEST_CASE("products with epilogues reach the measuring process as they are") {
  for (const FusedGemm &one :
       {FusedGemm{.extents = even},
        {.extents = even, .residual = "sub", .factor = 0.25, .bias = "n"},
        {.extents = even, .bias = "n", .function = "gelu_tanh", .keepsOperand = true},
        {.extents = even, .summed = "b", .gradient = "n"}}) {
    const runtime::MeasureGroup group{
        .gemm = runtime::GemmJob{.gemm = problemOf(one).value(), .candidates = 16}};
    CHECK(runtime::measureGroupFrom(runtime::toBody(group)) == group);
  }
}

namespace {

Plan planOf(LibraryEpilogue kind) {
  const auto tensor = [](const char *name, TensorRole role, std::vector<int64_t> extents,
                         int buffer) {
    std::vector<int64_t> strides(extents.size(), 1);
    if (extents.size() == 2) strides[0] = extents[1];
    std::vector<int> order(extents.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = int(i);
    return PlanTensor{.name = name,
                      .dtype = DType::f16,
                      .axes = std::vector<std::string>(extents.size(), "r"),
                      .extents = extents,
                      .order = order,
                      .strides = strides,
                      .role = role,
                      .buffer = buffer,
                      .bytes = 2 * extents[0] * (extents.size() == 2 ? extents[1] : 1)};
  };
  Plan plan;
  plan.tensors = {tensor("x", TensorRole::argument, {4, 8}, 0),
                  tensor("w", TensorRole::parameter, {8, 16}, 1),
                  tensor("y", TensorRole::result, {4, 16}, 2),
                  tensor("bias", TensorRole::parameter, {16}, 3),
                  tensor("kept", TensorRole::result, {4, 16}, 4),
                  tensor("residual", TensorRole::argument, {4, 16}, 5)};
  PlanKernel kernel;
  kernel.name = "gemm";
  kernel.family = libraryFamily;
  kernel.inputs = {0, 1, 3, 5};
  kernel.outputs = {4, 2};
  kernel.inputLayouts = {{{"r", "c"}}, {{"r", "c"}}, {{"c"}}, {{"r", "c"}}};
  kernel.outputLayouts = {{{"r", "c"}}, {{"r", "c"}}};
  kernel.knobs = {LibraryKnobs{}};
  kernel.library = {.a = 0,
                    .b = 1,
                    .c = 2,
                    .types = {DType::f16, DType::f16, DType::f16},
                    .alpha = 0.5,
                    .shape = {.m = 4,
                              .n = 16,
                              .k = 8,
                              .strideAm = 8,
                              .strideAk = 1,
                              .strideBk = 16,
                              .strideBn = 1,
                              .strideCm = 16,
                              .strideCn = 1}};
  kernel.library->epilogue = {.kind = kind,
                              .beta = -1,
                              .residual = 5,
                              .auxiliary = 4,
                              .bias = 3,
                              .residualStrides = {.m = 16, .n = 1},
                              .auxiliaryStrides = {.m = 16, .n = 1}};
  plan.kernels = {kernel};
  plan.entryPoints = {{EntryPointKind::forward, {0}}};
  return plan;
}

std::string rejectionOfPlan(void (*breakIt)(PlanLibraryEpilogue &epilogue, Plan &plan)) {
  Plan plan = planOf(LibraryEpilogue::geluAuxBias);
  breakIt(*plan.kernels[0].library->epilogue, plan);
  try {
    verify(plan, "plan.json");
    verifyDerived(plan, "plan.json");
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a plan keeps the epilogues of its library GEMMs") {
  const Plan plan = planOf(LibraryEpilogue::geluAuxBias);
  CHECK(planFromJson(toJson(plan), "plan.json") == plan);
  CHECK(toJson(plan)["kernels"][0]["library"]["epilogue"]["kind"] == "gelu_aux_bias");
  CHECK_NOTHROW(verify(plan, "plan.json"));
  CHECK_NOTHROW(verifyDerived(plan, "plan.json"));
  const LibraryGemm gemm = libraryGemm(*plan.kernels[0].library);
  CHECK(gemm.epilogue == LibraryEpilogue::geluAuxBias);
  CHECK(gemm.beta == -1);
  CHECK(gemm.auxiliary == GroupStrides{.m = 16, .n = 1});
}

TEST_CASE("plans with broken epilogues are rejected by name") {
  using Epilogue = PlanLibraryEpilogue;
  CHECK(rejectionOfPlan([](Epilogue &, Plan &) {}).empty());
  nlohmann::json unknown = toJson(planOf(LibraryEpilogue::geluAuxBias));
  unknown["kernels"][0]["library"]["epilogue"]["kind"] = "gelu_auxbias";
  CHECK_THROWS_WITH(planFromJson(unknown, "plan.json"),
                    Catch::Contains("\"gelu_auxbias\" is none of none, relu") &&
                        Catch::Contains("gelu_aux_bias"));
  CHECK_THAT(rejectionOfPlan([](Epilogue &one, Plan &) { one.kind = LibraryEpilogue::geluBias; }),
             Catch::Contains("has no tensor \"auxiliary\""));
  CHECK_THAT(rejectionOfPlan([](Epilogue &one, Plan &) { one.bias = -1; }),
             Catch::Contains("lacks its tensor \"bias\""));
  CHECK_THAT(rejectionOfPlan([](Epilogue &one, Plan &) { one.beta = 0; }),
             Catch::Contains("has no tensor \"residual\""));
  CHECK_THAT(rejectionOfPlan([](Epilogue &one, Plan &) { one.beta = NAN; }),
             Catch::Contains("beta"));
  CHECK_THAT(rejectionOfPlan([](Epilogue &one, Plan &) { one.bias = 5, one.residual = 3; }),
             Catch::Contains("those of bias"));
  CHECK_THAT(rejectionOfPlan([](Epilogue &one, Plan &) { one.residual = 2; }),
             Catch::Contains("not the kernel's inputs and outputs"));
  CHECK_THAT(rejectionOfPlan([](Epilogue &one, Plan &) { one.residualStrides = {.m = 1, .n = 4}; }),
             Catch::Contains("residual is not contiguous"));
  CHECK_THAT(rejectionOfPlan([](Epilogue &one, Plan &) { one.auxiliaryStrides.m = 20; }),
             Catch::Contains("multiples of 8"));
  CHECK_THAT(rejectionOfPlan([](Epilogue &one, Plan &) { one.auxiliaryStrides.m = 24; }),
             Catch::Contains("those of kept"));
  CHECK_THAT(rejectionOfPlan([](Epilogue &, Plan &plan) { plan.tensors[3].extents = {15}; }),
             Catch::Contains("those of bias"));
  CHECK_THAT(rejectionOfPlan([](Epilogue &, Plan &plan) { plan.tensors[5].dtype = DType::f32; }),
             Catch::Contains("residual is f32"));
}

namespace {

/// x w -> GEMM, + bias -> y: each alone, and both as one GEMM with an epilogue.
select::Problem linearLayer() {
  const std::map<char, int64_t> extents{{'m', 4096}, {'n', 1024}, {'k', 1024}};
  select::Problem problem{.name = "unchanged"};
  const auto tensor = [&](const char *name, const std::string &letters) {
    select::Tensor one{.name = name};
    for (const char letter : letters)
      one.axes.push_back({std::string(1, letter), extents.at(letter)});
    return one;
  };
  problem.tensors = {tensor("x", "mk"), tensor("w", "kn"), tensor("bias", "n"),
                     tensor("gemm", "mn"), tensor("y", "mn")};
  for (const size_t argument : {0, 1, 2}) problem.tensors[argument].isArgument = true;
  problem.tensors[4].isResult = true;
  for (const size_t pinned : {0, 1, 2, 4})
    problem.tensors[pinned].pinned = rowMajor(problem.tensors[pinned].axes.size());
  problem.ops = {"contract", "bias"};
  problem.opInputs = {{0, 1}, {3, 2}};
  problem.opOutputs = {{3}, {4}};
  KernelBuilder builder("bias", {{'m', extents.at('m')}, {'n', extents.at('n')}});
  const int x = builder.input("x", "mn"), bias = builder.input("bias", "n");
  const int y = builder.op("bias", OperatorClass::elementwise, {x, bias}, "y", "mn");
  builder.last().expression = Expression::parse(spellingOf("bias"));
  problem.candidates = {
      {.name = "contract",
       .ops = {0},
       .inputs = {0, 1},
       .outputs = {3},
       .kernel = fusedGemm({.extents = extents})},
      {.name = "bias", .ops = {1}, .inputs = {3, 2}, .outputs = {4}, .kernel = builder.build({y})},
      {.name = "contract_bias",
       .ops = {0, 1},
       .inputs = {0, 1, 2},
       .outputs = {4},
       .kernel = fusedGemm({.extents = extents, .bias = "n"})}};
  return problem;
}

/// Row-major rows of the candidates with these times; none where it is 0.
Profile profileOf(const select::Problem &problem, const std::vector<double> &seconds) {
  Profile profile{.device = "h200", .protocols = {{1, "pretended"}}, .kernels = {}};
  for (size_t candidate = 0; candidate < seconds.size(); ++candidate) {
    if (seconds[candidate] == 0) continue;
    const Kernel &kernel = problem.candidates[candidate].kernel;
    Configuration configuration = configurationOf(kernel);
    configuration.knobs = LibraryKnobs{.libraryVersion = 130100, .algorithm = 66, .tile = 20};
    if (candidate == 1)
      forEachConfiguration(kernel, findDevice("h200"), {}, [&](const Configuration &one) {
        if (one.knobs.is<LoopKnobs>()) configuration.knobs = one.knobs;
        return !configuration.knobs.is<LoopKnobs>();
      });
    addMeasurement(profile, kernel, configuration,
                   {.seconds = seconds[candidate],
                    .n = 9,
                    .spread = 0.01,
                    .familyVersion = configuration.knobs.family().version});
  }
  return profile;
}

}  // namespace

TEST_CASE(
    "without a profile an epilogue is chosen by its estimate; with --strict by measurements") {
  const select::Problem problem = linearLayer();
  Device device = findDevice("h200");
  device.architecture = "sm_70";  // contractions by the library and plain FMA alone
  const auto analytic = analyticCostModel(device);
  CHECK(select::select(problem, *analytic, {}).best().steps.size() == 1);

  // Products and what follows are slow, but measured; --strict does not ask for rows of the
  // epilogue.
  const auto apart =
      measuredCostModel(device, profileOf(problem, {1e-3, 1e-3, 0}), "profile p", true);
  const select::Selection two = select::select(problem, *apart, {});
  CHECK(two.best().steps.size() == 2);
  CHECK(two.best().seconds == Approx(2e-3));
  CHECK(two.statistics().unmeasuredKernels == 0);

  const auto together =
      measuredCostModel(device, profileOf(problem, {1e-3, 1e-3, 1.5e-3}), "profile p", true);
  const select::Selection one = select::select(problem, *together, {});
  REQUIRE(one.best().steps.size() == 1);
  CHECK(one.best().seconds == Approx(1.5e-3));
  CHECK(one.best().steps[0].cost.measured);
  CHECK(describe(problem.candidates[2].kernel, one.best().steps[0].configuration.knobs) ==
        "cuBLASLt 13.1.0, epilogue bias, algorithm 66, tile 20");
  CHECK(one.whatIfFused(0, 1, false).value() == Approx(0.5e-3));
}
