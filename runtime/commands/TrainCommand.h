// `weft run DIR --steps N`: trains the masked-token model of an artifact compiled with --train
// --optimizer adamw.
//
// Invariant: the same artifact, text, seed and hyperparameters give the same losses and state bit
// for bit, on the same GPU, however often the run is interrupted and resumed: batches, dropout and
// updates are functions of (seed, step).
#pragma once

#include <cstdint>
#include <string>

namespace weft::runtime {

struct TrainRequest {
  std::string folder;
  int64_t steps = 0;  ///< further ones; with 0 the state is written and nothing runs
  std::string data;   ///< a text file; empty: the text that ships
  std::string state;  ///< read if it is there, written at the end, every `saveEvery` steps and on
                      ///< interrupt; empty: none
  int64_t saveEvery = 100;
  double learningRate = 3e-4, weightDecay = 0.01, epsilon = 1e-8;
  /// Factor of all gradients until they are applied, so that small ones do not vanish in f16: a
  /// positive number, or `dynamic` (runtime/train/LossScale.h). Empty: dynamic for f16, 1 for bf16.
  /// Of a plan without masters none can be asked for.
  std::string lossScale = {};
  int64_t growthInterval = 2000;  ///< steps taken in a row that double a dynamic scale
  uint64_t seed = 1;
  int gpu = 0;
  std::string concurrent = {};  ///< as in RunCommand.h
  double limitSeconds = 10;
  bool json = false;
};

/// Prints the loss of every step, and which were not taken because gradients overflowed. Returns
/// the exit code: 0, or 130 after an interrupt. Throws
/// Error(checkFailed) naming the step and the first tensor that holds a NaN, a weight or in the
/// order of the plan's kernels. The file of the state then holds the last finite one: from before
/// that step, or, if an update wrote the NaN, the last one saved before.
int trainArtifact(const TrainRequest &request);

}  // namespace weft::runtime
