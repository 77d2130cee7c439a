// Epilogues of cuBLASLt on a GPU: every form that codegen/families/library/LibraryEpilogue.h
// matches, in every layout, with even and odd extents and batches, against the fp64 meaning of the
// fused kernel. Outputs are poisoned with NaN first. Forms that are offered must agree as kernels
// of ours do; what is less precise (precisionRejection) must still be the same function.
#include "codegen/families/contraction/ContractionLayouts.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "codegen/families/library/tests/LibrarySubject.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/FusedGemms.h"

#include <cstdio>
#include <limits>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::gpu;
using namespace weft::runtime;
using samples::FusedGemm;
using samples::fusedGemm;

namespace {

const DType types[] = {DType::f16, DType::bf16, DType::f32};

std::string textOf(const FusedGemm &gemm) {
  const Kernel kernel = fusedGemm(gemm);
  return fmt::format("{} {}{}", nameOf(gemm.type), describe(*libraryForm(kernel)),
                     gemm.bias.empty() ? "" : " " + gemm.bias);
}

/// What becomes of a GEMM, whatever its extents.
std::vector<FusedGemm> forms() {
  std::vector<FusedGemm> all;
  for (const char *bias : {"m", "n"}) {
    all.push_back({.extents = {}, .bias = bias});
    all.push_back({.extents = {}, .alpha = 0.5, .bias = bias, .function = "relu"});
    all.push_back({.extents = {}, .bias = bias, .function = "gelu_tanh"});
    all.push_back(
        {.extents = {}, .alpha = 0.5, .bias = bias, .function = "gelu_tanh", .keepsOperand = true});
    all.push_back({.extents = {}, .residual = "add", .bias = bias});
    all.push_back(
        {.extents = {}, .residual = "sub", .factor = 0.25, .bias = bias, .function = "relu"});
    all.push_back({.extents = {}, .residual = "add", .bias = bias, .function = "gelu_tanh"});
    all.push_back({.extents = {},
                   .residual = "add",
                   .bias = bias,
                   .function = "gelu_tanh",
                   .keepsOperand = true});
    all.push_back(
        {.extents = {}, .alpha = 0.5, .function = "gelu_tanh_dx", .summed = "y", .gradient = bias});
    all.push_back({.extents = {}, .summed = *bias == 'm' ? "a" : "b", .gradient = bias});
  }
  all.push_back({.extents = {}, .residual = "add"});
  all.push_back({.extents = {}, .residual = "sub", .factor = 0.25});
  all.push_back({.extents = {}, .function = "relu"});
  all.push_back({.extents = {}, .function = "gelu_tanh"});
  all.push_back({.extents = {}, .function = "gelu_tanh", .keepsOperand = true});
  all.push_back({.extents = {}, .alpha = 0.5, .function = "gelu_tanh_dx"});
  return all;
}

/// In every layout that the library takes, whatever its precision.
std::vector<Configuration> allConfigurations(const Subject &subject) {
  std::vector<Configuration> result;
  for (const LayoutTuple &tuple : contractionTuples(subject.kernel)) {
    const Configuration configuration = toConfiguration(subject.kernel, tuple, LibraryKnobs{});
    if (asLibraryGemm(subject.kernel, subject.form, configuration)) result.push_back(configuration);
  }
  return result;
}

struct Tally {
  int64_t layouts = 0, offered = 0, wrong = 0;
  double worst = 0, worstOffered = 0;  ///< over what is allowed
};

/// Two roundings of the element type and a tanh of 11 bits, of the largest element.
double looseBound(DType type, const std::vector<reference::Point> &expected) {
  double largest = 0;
  for (const reference::Point &point : expected) largest = std::max(largest, std::abs(point.value));
  return largest * (type == DType::bf16 ? 0x1p-7 : 0x1p-9);
}

void tryAll(const FusedGemm &gemm, Tally &tally) {
  const Subject subject(fusedGemm(gemm));
  const std::vector<Configuration> all = allConfigurations(subject);
  for (const Configuration &configuration : all) {  // may be empty: odd extents; Tally::layouts
    INFO(textOf(gemm) << " " << layoutsText(configuration));
    ++tally.layouts;
    const LibraryGemm asked = *asLibraryGemm(subject.kernel, subject.form, configuration);
    const bool isOffered = precisionRejection(asked).empty();
    tally.offered += isOffered;
    const PreparedGemm prepared = library().prepare(asked, LibraryKnobs{}, subject.kernel.name);
    Placed placed(subject, configuration);
    const auto results = placed.run(prepared);
    for (size_t output = 0; output < results.size(); ++output) {
      const Layout &layout = configuration.outputs[output];
      tally.worst = std::max(tally.worst, subject.worst(output, results[output], layout));
      if (isOffered)
        tally.worstOffered =
            std::max(tally.worstOffered, subject.worst(output, results[output], layout));
      const double slack = isOffered ? 0 : looseBound(gemm.type, subject.expectedOf(output));
      const int64_t wrong = subject.wrong(output, results[output], layout, slack);
      tally.wrong += wrong;
      CHECK(wrong == 0);
    }
  }
}

void print(const std::string &what, const Tally &tally) {
  std::printf(
      "%-46s %3ld layouts, %3ld offered, %ld wrong; worst over what is allowed: offered %.3g, all "
      "%.3g\n",
      what.c_str(), long(tally.layouts), long(tally.offered), long(tally.wrong), tally.worstOffered,
      tally.worst);
}

}  // namespace

TEST_CASE("every epilogue in every layout agrees with fp64") {
  const std::map<char, int64_t> shapes[] = {{{'m', 64}, {'n', 40}, {'k', 96}},
                                            {{'m', 136}, {'n', 72}, {'k', 64}},
                                            {{'m', 33}, {'n', 65}, {'k', 129}}};
  for (const DType type : types)
    for (FusedGemm gemm : nonEmpty(forms())) {
      gemm.type = type;
      Tally tally;
      for (const auto &extents : shapes) {
        gemm.extents = extents;
        tryAll(gemm, tally);
      }
      print(textOf(gemm), tally);
      CHECK(tally.layouts > 0);
    }
}

TEST_CASE("batches share one bias, and residuals and operands of GELU have their own members") {
  const std::map<char, int64_t> shapes[] = {{{'g', 3}, {'m', 48}, {'n', 56}, {'k', 64}},
                                            {{'g', 2}, {'m', 7}, {'n', 9}, {'k', 5}}};
  int products = 0;
  for (const DType type : types)
    for (FusedGemm gemm :
         {FusedGemm{.extents = {}, .bias = "n"},
          FusedGemm{.extents = {}, .residual = "add", .bias = "n", .function = "relu"},
          FusedGemm{.extents = {}, .bias = "n", .function = "gelu_tanh", .keepsOperand = true},
          FusedGemm{.extents = {}, .function = "gelu_tanh_dx"}}) {
      gemm.a = "gmk", gemm.b = "gkn", gemm.c = "gmn";
      gemm.type = type;
      Tally tally;
      bool isTaken = false;
      for (const auto &extents : shapes) {
        gemm.extents = extents;
        if (!libraryForm(fusedGemm(gemm))) continue;
        isTaken = true;
        tryAll(gemm, tally);
      }
      if (!isTaken) continue;
      ++products;
      print(fmt::format("batches of {}", textOf(gemm)), tally);
      CHECK(tally.layouts > 0);
    }
  CHECK(products > 0);
}

TEST_CASE(
    "every algorithm that is listed with an epilogue is made again, repeats itself, and is right") {
  for (const DType type : types)
    for (FusedGemm gemm : nonEmpty(forms())) {
      gemm.type = type;
      gemm.extents = {{'m', 64}, {'n', 72}, {'k', 256}};
      const Subject subject(fusedGemm(gemm), 0.25);
      const std::vector<Configuration> all = allConfigurations(subject);
      REQUIRE(!all.empty());
      const Configuration &configuration = all.front();
      const LibraryGemm asked = *asLibraryGemm(subject.kernel, subject.form, configuration);
      const bool isOffered = precisionRejection(asked).empty();
      Placed placed(subject, configuration);
      const std::vector<LibraryKnobs> list = library().candidates(asked);
      CHECK(!list.empty());
      int64_t wrong = 0;
      for (const LibraryKnobs &knobs : nonEmpty(list)) {
        INFO(textOf(gemm) << " " << describe(subject.kernel, knobs));
        const PreparedGemm prepared = library().prepare(asked, knobs, subject.kernel.name);
        CHECK(prepared.warning().empty());
        CHECK(prepared.algorithm() == knobs);
        const auto first = placed.run(prepared);
        if (isOffered) {
          wrong += placed.wrong(first);
          CHECK(placed.wrong(first) == 0);
        }
        CHECK(placed.run(prepared) == first);
        CHECK(placed.run(prepared, true) == first);
      }
      std::printf("%-32s %zu algorithms, %ld wrong\n", textOf(gemm).c_str(), list.size(),
                  long(wrong));
    }
}

TEST_CASE(
    "NaN of an operand and of a bias reaches the result through every function, and nothing else") {
  for (const DType type : types)
    for (const char *function : {"", "relu", "gelu_tanh"}) {
      const FusedGemm gemm{.extents = {{'m', 64}, {'n', 48}, {'k', 32}},
                           .type = type,
                           .bias = "n",
                           .function = function};
      const Kernel kernel = fusedGemm(gemm);
      Subject subject(kernel);
      subject.set(0, 5 * 32 + 7, std::numeric_limits<double>::quiet_NaN());
      subject.set(2, 9, std::numeric_limits<double>::quiet_NaN());
      const Configuration configuration{.inputs = {rowMajor(2), rowMajor(2), rowMajor(1)},
                                        .outputs = {rowMajor(2)},
                                        .knobs = LibraryKnobs{}};
      const PreparedGemm prepared = library().prepare(
          *asLibraryGemm(kernel, subject.form, configuration), LibraryKnobs{}, kernel.name);
      const auto results = Placed(subject, configuration).run(prepared);
      int64_t missing = 0, strange = 0;
      for (int64_t m = 0; m < 64; ++m)
        for (int64_t n = 0; n < 48; ++n) {
          const bool isNan = std::isnan(
              reference::loadElement(type, &results[0][size_t((m * 48 + n) * sizeOf(type))]));
          const bool mustBe = m == 5 || n == 9;
          missing += mustBe && !isNan;
          strange += !mustBe && isNan;
        }
      std::printf("NaN, %s bias %s: %ld of %d lost, %ld where there is none\n",
                  std::string(nameOf(type)).c_str(), function, long(missing), 64 + 47,
                  long(strange));
      CHECK(strange == 0);
      CHECK(missing == 0);
    }
}
