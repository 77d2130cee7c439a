// The entry point of a kernel is named by its canonical form: by ops, element type and extents.
#include "codegen/EntryName.h"

#include "codegen/Emit.h"
#include "codegen/Names.h"
#include "kernel/Family.h"
#include "kernel/LaunchCheck.h"
#include "passes/configure/Families.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleAttentions.h"
#include "tests/unit/samples/SampleContractions.h"
#include "tests/unit/samples/SampleFloat8.h"
#include "tests/unit/samples/SamplePrologues.h"
#include "tests/unit/samples/SampleTf32.h"

#include <catch2/catch.hpp>

#include <regex>
#include <set>

using namespace weft;
using namespace weft::samples;
using codegen::entryName;
using weft::test::nonEmpty;

namespace {

const std::map<char, int64_t> small{{'b', 4}, {'i', 64}};

/// So many ops on one value, one after another.
Kernel chain(const std::vector<std::string> &ops) {
  samples::KernelBuilder builder("chain", small);
  int value = builder.input("x", "bi");
  for (size_t i = 0; i < ops.size(); ++i)
    value = builder.op(ops[i], OperatorClass::elementwise, {value}, "v" + std::to_string(i), "bi");
  return builder.build({value});
}

}  // namespace

TEST_CASE("a GEMM is named by its epilogue, its element type and batch, m, n and k") {
  const ContractionExtents extents{.b = 8, .j = 512, .i = 1024, .u = 3072};
  CHECK(entryName(gemmBiasGelu(extents, DType::f16, true)) == "gemm_bias_gelu_f16_4096x3072x1024");
  CHECK(entryName(gemmBiasDropoutResidual(extents, DType::bf16)) ==
        "gemm_bias_dropout_residual_bf16_4096x3072x1024");
  CHECK(entryName(contractKernel({{'b', 2}, {'h', 3}, {'j', 5}, {'k', 7}, {'p', 11}}, "phbk",
                                 "hbjk", "phbj")) == "gemm_f16_6x11x5x7");
  CHECK(entryName(contractKernel({{'m', 1}, {'n', 8}, {'k', 64}}, "mk", "nk", "mn")) ==
        "gemm_f16_1x8x64");
}

TEST_CASE("a prologue stands before the GEMM, and operands of other types in the name") {
  CHECK(entryName(scaledContext({}, DType::f16)).starts_with("mul_gemm_f16_"));
  CHECK(entryName(scaledFloat8Gemm({.b = 1, .m = 64, .n = 32, .k = 128},
                                   {DType::f8e4m3, DType::f8e5m2, DType::f16})) ==
        "gemm_mul_x2_bias_cast_f8e4m3_f8e5m2_f16_64x32x128");
  CHECK(entryName(inTf32(gemmBias({.b = 1, .j = 16, .i = 32, .u = 64}, DType::f32))) ==
        "gemm_bias_tf32_16x64x32");
}

TEST_CASE("a fused attention is named by the ops on its scores, its types and its extents") {
  for (const bool isMasked : {false, true}) {
    samples::KernelBuilder builder(
        "attention",
        {{'b', 2}, {'h', 4}, {'j', 64}, {'k', 96}, {'p', 16}, {'w', isMasked ? 32 : 16}});
    const int q = builder.input("q", "bhjp"), k = builder.input("k", "bhkp"),
              v = builder.input("v", "bhkw");
    int scores = builder.op("contract", OperatorClass::contraction, {q, k}, "scores", "bhjk", "p");
    if (isMasked) {
      scores = builder.op("mask", OperatorClass::elementwise, {scores}, "masked", "bhjk");
      builder.last().attributes["kind"] = std::string("causal");
      builder.last().expression = Expression::parse("[2] < [3] ? {0} : 0.0f");
      scores = builder.op("tanh", OperatorClass::elementwise, {scores}, "capped", "bhjk");
      builder.last().expression = Expression::parse("weft::tanh({0})");
    }
    const int output = builder.op("online_softmax_contract", OperatorClass::contraction,
                                  {scores, v}, "output", "bhjw", "k");
    CHECK(entryName(builder.build({output})) ==
          (isMasked ? "attention_causal_tanh_f16_8x64x96x16x32" : "attention_f16_8x64x96x16"));
  }
  CHECK(entryName(rotatedCachedAttention({.b = 2, .h = 3, .j = 5, .k = 7, .p = 16}, DType::f16, {}))
            .starts_with("attention_rotated_causal_f16_"));
  CHECK(entryName(rotatedPackedAttention({.b = 2, .j = 8, .k = 8, .p = 16, .tokens = 16},
                                         DType::f16, {}, true))
            .starts_with("attention_packed_rotated_padding_causal_f16_"));
}

TEST_CASE("another kernel is named by the extents of its largest tensor") {
  CHECK(entryName(reluKernel(small, "bi")) == "relu_f16_4x64");
  CHECK(entryName(softmaxKernel(small, "bi")) == "softmax_f16_4x64");
  CHECK(entryName(reluKernel({{'b', 1}, {'i', 1}}, "bi")) == "relu_f16_1");
}

TEST_CASE("what moves everything and computes nothing is a copy, or a transpose") {
  const Kernel identity = identityKernel(small, "bi");
  CHECK(entryName(identity) == "copy_f16_4x64");
  CHECK(entryName(identity, "transpose") == "transpose_f16_4x64");
  CHECK(entryName(chain({"identity", "relu", "identity"})) == "relu_f16_4x64");
}

TEST_CASE("equal neighbours are counted, and long bodies are cut") {
  CHECK(entryName(chain({"exp", "exp", "exp"})) == "exp_x3_f16_4x64");
  CHECK(entryName(chain({"exp", "identity", "exp", "relu"})) == "exp_x2_relu_f16_4x64");
  CHECK(entryName(chain({"relu", "exp", "relu"})) == "relu_exp_relu_f16_4x64");
  std::vector<std::string> ops;
  for (int i = 0; i < 20; ++i) ops.insert(ops.end(), {"gelu_tanh", "sigmoid"});
  CHECK(entryName(chain(ops)) ==
        "gelu_tanh_sigmoid_gelu_tanh_sigmoid_gelu_tanh_and_35_more_f16_4x64");
  ops.assign(100, "exp");
  CHECK(entryName(chain(ops)) == "exp_x100_f16_4x64");
}

TEST_CASE("every kernel has a C identifier, and one for both texts whatever the model's names") {
  const std::regex identifier("[a-z][a-z0-9_]*");
  std::vector<Kernel> kernels = fusedContractions({.b = 2, .j = 32, .i = 64, .u = 128}, DType::f16);
  for (const Kernel &kernel : transformedContractions({}, DType::bf16)) kernels.push_back(kernel);
  for (const Kernel &kernel : {identityKernel(small, "bi"), softmaxKernel(small, "ib"),
                               reluKernel({{'b', 1}, {'i', 1}}, "bi")})
    kernels.push_back(kernel);
  for (const Kernel &kernel : kernels) {
    Kernel named = kernel;
    named.name = "a kernel";
    named.values[0].name = entryName(named);  // must not take the name away
    named.axes[0].name = "gemm";
    std::set<std::string> families;
    for (const Configuration &one : nonEmpty(enumerate(named, findDevice("h200")).legal)) {
      if (!one.knobs.family().hasText() || !families.emplace(one.knobs.family().name).second)
        continue;
      const codegen::EmittedKernel emitted = codegen::emit(named, one, "sm_90a");
      INFO(kernel.name << " " << emitted.entry);
      CHECK(std::regex_match(emitted.entry, identifier));
      CHECK(emitted.entry.find("__") == std::string::npos);
      CHECK_FALSE(isWaitingEntry(emitted.entry));
      CHECK(emitted.entry == codegen::emit(kernel, one, "sm_90a").entry);
      CHECK(emitted.text.find("\n" + emitted.entry + "(") != std::string::npos);
      CHECK(emitted.readable.find("\n" + emitted.entry + "(") != std::string::npos);
    }
    CHECK_FALSE(families.empty());
    CHECK(entryName(codegen::withCanonicalNames(named)) == entryName(kernel));
  }
}
