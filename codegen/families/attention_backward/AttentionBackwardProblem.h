// The backward pass of a fused attention (kernel/AttentionBackwardRegion.h) under the layouts of a
// configuration: the attention that it computes again, as AttentionProblem.h has it, and the
// gradients that it stores.
//
// Heads of one group have the same keys and values: gradients of these are sums over the group.
#pragma once

#include "codegen/families/attention/AttentionProblem.h"
#include "kernel/AttentionBackwardRegion.h"

namespace weft {

struct AttentionBackwardProblem {
  /// Its output is the gradient of the output, an input of the kernel; it has no log sums.
  AttentionProblem attention;
  AttentionTensor dQ, dK, dV;  ///< dK and dV do not depend on the head of a group
  /// The gradient of scores that the kernel stores, if it does; rows are queries, columns keys.
  std::optional<AttentionTensor> dScores = {};
  bool operator==(const AttentionBackwardProblem &) const = default;

  const AttentionTensor &dOutput() const { return attention.output; }
  /// Groups of heads: so many heads have keys and values.
  int64_t groups() const { return attention.heads / attention.headsOfGroup; }
};

/// The attention whose scores a backward pass computes again, for what deals with score ops: its
/// output is d_output, its fold the op that makes probabilities, its inputs those of all
/// element-wise ops.
AttentionRegion attentionOf(const Kernel &kernel, const AttentionBackwardRegion &region);

/// What storing the gradients of scores takes, masked ones too; 0 where none are stored. A warp
/// writes half of every sector of 32 bytes, at 40 GB/s a multiprocessor (estimate).
double storedScoreSeconds(const AttentionBackwardProblem &problem, const Device &device);

/// The error says what no kernel takes: as that of attentionProblem().
Expected<AttentionBackwardProblem> attentionBackwardProblem(const Kernel &kernel,
                                                            const AttentionBackwardRegion &region,
                                                            const Configuration &configuration);

/// The same of the kernel's own region, kept as by keptAttentionProblem().
const Expected<AttentionBackwardProblem> &keptAttentionBackwardProblem(
    const Kernel &kernel, const AttentionBackwardRegion &region,
    const Configuration &configuration);

/// Why families that multiply by tensor cores do not take the region's element types on a device;
/// empty if they do. takesTf32: the family takes f32 that may be read as tf32.
std::string attentionBackwardTypeRejection(const Kernel &kernel,
                                           const AttentionBackwardRegion &region,
                                           const Device &device, bool takesTf32 = false);

}  // namespace weft
