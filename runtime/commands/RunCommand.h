// `weft run` and `weft-run`: an artifact on a GPU, from the command line.
#pragma once

#include "plan/Plan.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace weft::runtime {

struct RunRequest {
  std::string folder;
  std::string inputs, outputs;  ///< safetensors files; without inputs, seeded random values
  /// The elements of a parameter, logical row-major; without, those of `inputs` or random ones.
  std::function<std::vector<std::byte>(const PlanTensor &)> weights;
  std::string weightsFrom;  ///< where these are read, for people
  std::string lengths;      ///< "mean=R" or a file (Lengths.h); empty: of the inputs
  std::string entry;        ///< empty: all
  std::string kernel;       ///< only this one, on random operands
  std::string concurrent;   ///< "on" or "off"; empty: as the plan says
  uint64_t seed = 1, step = 0;
  int repeat = 1, gpu = 0;
  double limitSeconds = 10;  ///< of every kernel's first launch
  bool check = false, json = false;
  std::optional<int64_t> steps;  ///< train (TrainCommand.h)
  std::string data, state;
  int64_t saveEvery = 100;
  double learningRate = 3e-4, weightDecay = 0.01;
  std::string lossScale;
  int64_t growthInterval = 2000;
};

/// Declares the flags on a CLI11 command (a template, so that the runtime needs no CLI11).
template <typename Command>
void addRunFlags(Command &command, RunRequest &request) {
  command.add_option("DIR", request.folder, "the artifact's folder")->required();
  command.add_option("--inputs", request.inputs,
                     "arguments and parameters, a safetensors file; without, seeded random values");
  command
      .add_option(
          "--lengths", request.lengths,
          "lengths of the sequences of a plan compiled with --ragged, --cache or --mask padding: "
          "mean=R draws them with a mean of R times the longest, a file holds one integer a "
          "sequence; of a file of batches, one a line, the first is taken")
      ->type_name("FILE|mean=R");
  command.add_option("--outputs", request.outputs, "write the results to a safetensors file");
  command.add_option(
      "--entry", request.entry,
      "entry point (those that it continues run before it); default: all, one after the other");
  command.add_option("--kernel", request.kernel, "run one kernel alone, on random operands");
  command.add_option("--concurrent", request.concurrent,
                     "on, off: whether kernels that do not wait for each other run at once; "
                     "default: as the plan says");
  command.add_option("--seed", request.seed, "seed of random inputs and of dropout")
      ->capture_default_str();
  command
      .add_option("--step", request.step,
                  "step of dropout's first launch; every repetition takes the next")
      ->capture_default_str();
  command.add_option("--repeat", request.repeat, "launches")->capture_default_str();
  command.add_option("--gpu", request.gpu, "number of the GPU, as the driver counts")
      ->capture_default_str();
  command
      .add_option("--limit", request.limitSeconds,
                  "seconds after which a kernel's first launch counts as hanging")
      ->capture_default_str();
  command.add_option("--steps", request.steps,
                     "train for N steps (compile with --train --optimizer adamw); loss per step");
  command.add_option("--data", request.data,
                     "with --steps: a text file; without, the text that ships");
  command.add_option(
      "--state", request.state,
      "with --steps: weights and averages, read if the file is there, written at the end");
  command
      .add_option("--save-every", request.saveEvery,
                  "with --steps: steps between writes of the state; 0: at the end")
      ->capture_default_str();
  command.add_option("--learning-rate", request.learningRate, "with --steps: of AdamW")
      ->capture_default_str();
  command.add_option("--weight-decay", request.weightDecay, "with --steps: of AdamW")
      ->capture_default_str();
  command.add_option("--loss-scale", request.lossScale,
                     "with --steps, of a plan with f16 or bf16 parameters: factor of the loss's "
                     "gradient, which updates divide by, or dynamic: halved where gradients "
                     "overflow, doubled now and then; default: dynamic for f16 (1024 where the "
                     "plan does not check gradients), 1 for bf16");
  command
      .add_option("--growth-interval", request.growthInterval,
                  "with --loss-scale dynamic: steps taken in a row that double the scale")
      ->capture_default_str();
  command.add_flag("--check", request.check, "stop after the checks: needs no GPU");
}

/// Prints to standard output. Returns the exit code; throws Error.
int runArtifact(const RunRequest &request);

}  // namespace weft::runtime
