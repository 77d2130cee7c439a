// Timing of built kernels, interleaved with the reference copy, and the check of what they wrote.
//
// Protocol: a CUDA graph of several launches over rotating sets of tensors, so that nothing is in L2 when it is read; one
// graph of each candidate and of the copy a round; medians over the rounds.
#pragma once

#include "bench/kernels/Probe.h"
#include "codegen/Emit.h"

namespace weft::bench {

/// One configuration of one case, emitted and built.
struct Candidate {
  const Case *subject = nullptr;
  Configuration configuration;
  codegen::EmittedKernel emitted;
  std::string cubin = {};
  int registers = -1, spillBytes = -1, sharedBytes = -1;
  std::string failure = {};  ///< why there is no figure: not built, wrong result
  double seconds = 0;        ///< median
  double worstError = 0;     ///< of the sampled elements, in units of the tolerance
  double copyShare = 0;      ///< of the copy's rate in the same rounds
};

struct Protocol {
  int rounds = 7;
  double graphSeconds = 1e-3;   ///< launches of one graph together, about
  int64_t coldBytes = 256 << 20;  ///< of all sets together, at least: well beyond the L2
};

class Bench {
public:
  explicit Bench(const Protocol &protocol);

  /// Fills in failure, seconds, worstError and copyShare of all candidates, which belong to one case.
  /// Returns the copy's rate in these rounds, in bytes/s.
  double measure(std::span<Candidate> candidates);
  const runtime::cuda::GpuProperties &gpu() const { return context.gpu(); }

private:
  using Set = std::vector<runtime::cuda::DevicePointer>;  ///< inputs, then outputs

  std::vector<Set> setsFor(const Case &subject) const;
  struct Expected {
    std::vector<Point> points;
    std::vector<double> values;
  };
  void check(Candidate &candidate, runtime::cuda::FunctionHandle *function, const Set &set, const Expected &expected);
  void launch(const Candidate &candidate, runtime::cuda::FunctionHandle *function, const Set &set,
              runtime::cuda::StreamHandle *on) const;
  double time(const runtime::cuda::Graph &graph);

  Protocol protocol;
  runtime::cuda::Context context;
  runtime::cuda::Stream stream;
  runtime::cuda::Event start, end;
  Probe probe;
  runtime::cuda::Buffer arena, key, copied;
};

}  // namespace weft::bench
