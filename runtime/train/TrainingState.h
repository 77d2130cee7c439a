// What a training run carries from step to step: parameters, the f32 masters of those of f16 and
// bf16, and the optimizer's averages, by the names and in the types of a plan's arguments. In a
// file: safetensors with these tensors, and in two words each the number of finished steps ("step")
// and the seed ("seed"); of plans that check their gradients also "skipped", "loss_scale" (the bits
// of an f64) and "taken_at_scale", which a file of an older weft may lack.
//
// Invariant: a state file is there and whole, or it is the one before: it is written under another
// name and renamed.
#pragma once

#include "runtime/artifact/Artifact.h"

#include <cstddef>
#include <filesystem>
#include <map>

namespace weft::runtime {

/// A tensor that a step takes and gives: an argument of a plan, and the result that is its next
/// value (PlanTensor::nextOf).
struct CarriedTensor {
  int argument = -1, result = -1;
};
/// In the plan's order. Throws Error(badInput) if a pair differs in type, extents or layout, or if
/// there is none.
std::vector<CarriedTensor> carriedTensors(const Plan &plan);

/// The tensor that is this to a training step (PlanTensor::training); -1: the plan has none.
int trainingTensor(const Plan &plan, TrainingRole role);

struct TrainingState {
  int64_t step = 0;
  uint64_t seed = 1;
  /// Of plans that check their gradients: steps that were not taken, the scale of the loss (0:
  /// whatever the run begins with), and the steps taken since it changed.
  int64_t skipped = 0;
  double lossScale = 0;
  int64_t takenAtScale = 0;
  /// Logical row-major, by the argument's name.
  std::map<std::string, std::vector<std::byte>> tensors = {};
};

/// As PlanTensor::initial says; what is drawn is a function of the seed, the tensor's name and the
/// element. A master is drawn by its parameter's name, whose rounding the parameter is. Throws
/// Error(badInput) naming the first tensor for which the plan does not say it.
TrainingState initialState(const Plan &plan, uint64_t seed);
/// Throws Error(badInput) naming the file and what it lacks.
TrainingState readState(const Plan &plan, const std::filesystem::path &path);
void writeState(const Plan &plan, const TrainingState &state, const std::filesystem::path &path);

}  // namespace weft::runtime
