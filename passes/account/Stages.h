// Which stage of a transformer layer an op belongs to, found by the structure of the graph alone:
// names mean nothing. What `compile` and `explain` show as "where the time goes". MLIR-free.
//
//   attention      contractions with a batch axis (b, h) whose operands are both computed, and what
//                  lies between two of them
//   projections    contractions with a parameter that feed an attention contraction or read one,
//                  through element-wise ops and views
//   feed-forward   contractions with a parameter that feed each other so (up, gate, down)
//   norms          ops that reduce an axis and keep it
//   embedding      rows of a table by number, and their gradients
//   head and loss  cross entropy, the contraction with a parameter that it reads, and their
//                  gradients
//   optimizer      element-wise ops that compute next values of weights and of their averages, or
//                  values for these alone
//   other          contractions that are none of these, and what depends on them alone
//
// The gradient of a weight has no parameter among its operands: it belongs to the stage of the
// contraction that reads the same tensor. Other ops (bias, activation, residual, column sums)
// belong to the stage of what computes their operand.
#pragma once

#include "passes/fuse/Dataflow.h"

#include <optional>
#include <string_view>
#include <vector>

namespace weft {

enum class Stage : uint8_t {
  attention,
  projections,
  feedForward,
  norms,
  embedding,
  headAndLoss,
  optimizer,
  other
};
std::string_view nameOf(Stage stage);
/// Nothing for a word that names no stage.
std::optional<Stage> stageNamed(std::string_view name);

/// The stage of every op.
std::vector<Stage> stagesOf(const Dataflow &flow);

/// The stage of a kernel of these ops: that of its contractions (attention first), else of its
/// norms, else of its first op.
Stage stageOfKernel(const Dataflow &flow, const std::vector<Stage> &stages,
                    const std::vector<int> &ops);

}  // namespace weft
