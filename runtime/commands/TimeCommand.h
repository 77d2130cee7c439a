// `weft time` and `weft-run time`: how long a plan and its kernels take on a GPU, from the command
// line.
#pragma once

#include <cstdint>
#include <string>

namespace weft::runtime {

struct TimeRequest {
  std::string folder;
  std::string against;              ///< a second artifact, measured in the same rounds
  std::string entry;                ///< empty: all, one after the other
  std::string kernel;               ///< only this one
  std::string lengths;              ///< "mean=R" or a file (Lengths.h); empty: random
  std::string concurrent;           ///< "on" or "off"; empty: as the plans say
  bool cold = false, warm = false;  ///< cold unless warm is asked for
  bool burst = false;               ///< rests between turns
  int rounds = 25, gpu = 0;
  uint64_t seed = 1;
  bool json = false;
};

/// Declares the flags on a CLI11 command (a template, so that the runtime needs no CLI11).
template <typename Command>
void addTimeFlags(Command &command, TimeRequest &request) {
  command.add_option("DIR", request.folder, "the artifact's folder")->required();
  command
      .add_option("--against", request.against, "a second artifact, measured in the same rounds")
      ->type_name("DIR");
  command.add_option("--entry", request.entry, "entry point; default: all, one after the other");
  command.add_option("--kernel", request.kernel, "time one kernel alone");
  command.add_option("--concurrent", request.concurrent,
                     "on, off: whether kernels that do not wait for each other run at once; "
                     "default: as the plan says");
  command
      .add_option(
          "--lengths", request.lengths,
          "lengths of the sequences of plans compiled with --ragged, --cache or --mask padding: "
          "mean=R draws them with a mean of R times the longest, a file holds one integer a "
          "sequence; of a file of batches, one a line, the first is taken")
      ->type_name("FILE|mean=R");
  command.add_flag("--cold", request.cold, "no call finds its data in the L2 cache (the default)");
  command.add_flag("--warm", request.warm, "the same buffers call after call");
  command.add_flag("--burst", request.burst,
                   "rest 20 ms before every turn: clocks as the prices of a profile have them, "
                   "whatever the power limit does to long runs");
  command.add_option("--rounds", request.rounds, "rounds, over which medians are taken")
      ->capture_default_str();
  command.add_option("--seed", request.seed, "seed of random inputs and of dropout")
      ->capture_default_str();
  command.add_option("--gpu", request.gpu, "number of the GPU, as the driver counts")
      ->capture_default_str();
}

/// Prints to standard output. Returns the exit code; throws Error.
int timeArtifact(const TimeRequest &request);

}  // namespace weft::runtime
