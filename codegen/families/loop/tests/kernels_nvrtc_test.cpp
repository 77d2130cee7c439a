// Every kind of emitted loop kernel compiles for every target without spills and warnings (design
// rule 4). Configurations are drawn from all legal ones: one from each stratum of knobs and
// innermost axes, so that every width, mapping and layout change is met.
#include "tests/golden/ExampleKernels.h"
#include "tests/nvrtc/EarlyBatch.h"
#include "tests/nvrtc/KernelBatch.h"
#include "tests/unit/samples/SampleFloat8.h"

using namespace weft;
using nvrtctest::Batch;

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

TEST_CASE("loop kernels over packed tokens, which end with the last one") {
  Batch batch;
  for (const char *name : {"token_bias_gradient", "token_norm_gradients", "token_row_sums"})
    batch.addSamples(name, examples::findLoopExample(name, DType::f16, 1).kernel,
                     findDevice("h200"), 16);
  batch.buildAndCheck(40);
}

TEST_CASE("loop kernels that start early read and write nothing before they wait") {
  nvrtctest::EarlyBatch batch;
  for (const examples::Example &example : examples::loopExamples(DType::f32, 1))
    for (const Configuration &one : nvrtctest::sample(example.kernel, findDevice("h200"), 1))
      batch.add(example.name, example.kernel, one);
  batch.buildAndCheck();
}

TEST_CASE("loop kernels of 8-bit floats") {
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
    for (const examples::Example &example : examples::loopExamples(narrow, 0))
      batch.addSamples(example.name, example.kernel, findDevice("h200"), 2);
  }
  batch.buildAndCheck(100);
}
