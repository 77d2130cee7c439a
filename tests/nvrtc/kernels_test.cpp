// Every kind of emitted loop kernel, transpose and plain contraction compiles for every target
// without spills and warnings (design rule 4). Configurations are drawn from all legal ones: one
// from each stratum of knobs and innermost axes, so that every width, mapping and layout change is
// met.
#include "tests/golden/ExampleKernels.h"
#include "tests/nvrtc/KernelBatch.h"
#include "tests/nvrtc/WgmmaCode.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleContractions.h"
#include "tests/unit/samples/SampleFloat8.h"

using namespace weft;
using nvrtctest::Batch;

namespace {

const std::map<char, int64_t> attentionExtents{
    {'b', 8}, {'h', 16}, {'j', 512}, {'k', 512}, {'p', 64}};

}  // namespace

TEST_CASE("loop kernels at the extents of a BERT-large layer") {
  Batch batch;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const examples::Example &example : examples::loopExamples(dtype, 1))
      batch.addSamples(fmt::format("{} {}", example.name, nameOf(dtype)), example.kernel,
                       findDevice("h200"), 5);
  batch.buildAndCheck(100);
}

TEST_CASE("loop kernels at small odd extents") {
  Batch batch;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const examples::Example &example : examples::loopExamples(dtype, 0))
      batch.addSamples(fmt::format("{} {} odd", example.name, nameOf(dtype)), example.kernel,
                       findDevice("h200"), 2);
  batch.buildAndCheck(60);
}

TEST_CASE("kernels that start early read and write nothing before they wait") {
  std::vector<runtime::BuildRequest> requests;
  const auto add = [&](const std::string &name, const Kernel &kernel,
                       const Configuration &configuration) {
    codegen::EmittedKernel emitted =
        codegen::emit(kernel, configuration, "sm_90a", {}, {.startsEarly = true});
    requests.push_back({.name = name,
                        .text = std::move(emitted.text),
                        .entry = std::move(emitted.entry),
                        .architecture = "sm_90a",
                        .extraFlags = {}});
  };
  for (const examples::Example &example : examples::loopExamples(DType::f32, 1))
    for (const Configuration &one : nvrtctest::sample(example.kernel, findDevice("h200"), 1))
      add(example.name, example.kernel, one);
  for (const Kernel &kernel : test::nonEmpty(
           samples::singleConsumerEpilogues({.b = 1, .j = 8, .i = 1024, .u = 1024}, DType::f16))) {
    std::set<Sm90Schedule> seen;
    forEachConfiguration(kernel, findDevice("h200"), {}, [&](const Configuration &one) {
      const auto *knobs = one.knobs.getIf<Sm90GemmKnobs>();
      if (knobs && seen.insert(knobs->schedule).second) add(kernel.name, kernel, one);
      return true;
    });
    CHECK(seen.contains(Sm90Schedule::singleConsumer));
    CHECK(seen.size() > 1);
  }
  runtime::BuildOptions options;
  options.headers = codegen::deviceHeaders();
  int accesses = 0;
  for (size_t index = 0;
       const runtime::BuildResult &result : test::nonEmpty(runtime::build(requests, options))) {
    const runtime::BuildRequest &request = requests[index++];
    INFO(request.name << "\n" << result.log << "\n" << request.text);
    REQUIRE(result.failure().empty());
    const nvrtctest::EarlyCode code = nvrtctest::earlyCode(result.cubin);
    CHECK(code.waits > 0);
    CHECK(code.tooEarly == 0);
    CHECK(code.constants == 0);
    accesses += code.accesses;
  }
  CHECK(accesses > 4 * int(requests.size()));
}

TEST_CASE("transposes") {
  Batch batch;
  batch.addSamples("transpose bhjp", samples::identityKernel(attentionExtents, "bhjp"),
                   findDevice("h200"), 16);
  batch.addSamples("transpose odd",
                   samples::identityKernel({{'a', 7}, {'b', 33}, {'c', 129}}, "abc"),
                   findDevice("h200"), 12);
  batch.buildAndCheck(16);
}

TEST_CASE("plain contractions") {
  Batch batch;
  const Device &device = findDevice("h200");
  batch.addSamples("scores", samples::contractKernel(attentionExtents, "phbk", "phbj", "hbjk"),
                   device, 12);
  batch.addSamples(
      "projection",
      samples::contractKernel({{'b', 8}, {'h', 16}, {'i', 1024}, {'j', 512}, {'p', 64}}, "phi",
                              "bji", "phbj"),
      device, 12);
  batch.addSamples("odd gemm",
                   samples::contractKernel({{'i', 33}, {'k', 7}, {'n', 65}}, "ik", "kn", "in"),
                   device, 8);
  batch.buildAndCheck(20);
}

TEST_CASE("loop kernels and transposes of 8-bit floats") {
  Batch batch;
  for (const DType narrow : {DType::f8e4m3, DType::f8e5m2}) {
    for (const DType wide : {DType::f32, DType::f16, DType::bf16}) {
      batch.addSamples(
          "narrow", samples::castKernel({{'b', 3}, {'j', 512}, {'i', 1000}}, "bji", wide, narrow),
          findDevice("h200"), 6);
      batch.addSamples(
          "widen", samples::castKernel({{'b', 3}, {'j', 512}, {'i', 1000}}, "bji", narrow, wide),
          findDevice("h200"), 6);
    }
    Kernel transpose = samples::identityKernel({{'a', 7}, {'b', 33}, {'c', 256}}, "abc");
    for (Value &value : transpose.values) value.dtype = narrow;
    batch.addSamples("transpose", transpose, findDevice("h200"), 8);
    for (const examples::Example &example : examples::loopExamples(narrow, 0))
      batch.addSamples(example.name, example.kernel, findDevice("h200"), 2);
  }
  batch.buildAndCheck(100);
}
