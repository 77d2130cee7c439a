// The name of a kernel's entry point: the symbol in its cubin, which nsys and ncu show.
//
// It follows from the canonical form alone, so that equal kernels of different models, and the
// hashed and the readable text of one kernel, have one name and one cubin:
//
//   gemm_bias_gelu_f16_4096x4096x1024    ops of the body in their order, element type, m x n x k
//   attention_causal_f16_128x512x512x64  batch x queries x keys x head dimension
//   softmax_dropout_f16_16x8x512x512     the extents of the largest tensor
//
// Extents are in the name because profilers add up kernels of one name: the projections of a layer
// are all gemm_bias_f16. They cost nothing, since the text has them as constants. Kernels that
// differ only in layouts or schedule share a name; each is a module, so that nothing else depends
// on names being different.
#pragma once

#include "kernel/Kernel.h"

#include <string>
#include <string_view>

namespace weft::codegen {

/// A valid C identifier. A contraction is called gemm, a fused attention with the ops on its scores
/// attention, equal neighbours are counted (reduce_x3), and long bodies are cut
/// (add_mul_and_7_more). `copy`: what a body that computes nothing and
/// moves everything is called; "transpose" where layouts differ.
std::string entryName(const Kernel &kernel, std::string_view copy = "copy");

}  // namespace weft::codegen
