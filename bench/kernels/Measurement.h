// Timing of built kernels, interleaved with the reference copy, and the check of what they wrote.
//
// Protocol: a CUDA graph of several launches over rotating sets of tensors, so that nothing is in
// L2 when it is read; one graph of each candidate and of the copy a round; medians over the rounds.
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
  std::string failure = {};   ///< why there is no figure: not built, wrong result
  double seconds = 0;         ///< median
  double worstError = 0;      ///< of the sampled elements, in units of the tolerance
  double copyShare = 0;       ///< of the copy's rate in the same rounds
  double equalCopyShare = 0;  ///< of the rate of a copy that moves as many bytes
  double modelSeconds = 0;    ///< by the analytic model
};

/// In bytes/s: of a copy much larger than the L2, and of one that moves as many bytes as the case.
struct CopyRates {
  double large = 0, equal = 0;
};

struct Protocol {
  int rounds = 7;
  double graphSeconds = 1e-3;     ///< launches of one graph together, about
  int64_t coldBytes = 256 << 20;  ///< of all sets together, at least: well beyond the L2
};

class Bench {
public:
  explicit Bench(const Protocol &protocol);

  /// Fills in failure, seconds, worstError and shares of all candidates, which belong to one case.
  /// Returns the rates of the copies in these rounds.
  CopyRates measure(std::span<Candidate> candidates);
  const runtime::cuda::GpuProperties &gpu() const { return context.gpu(); }

private:
  using Set = std::vector<runtime::cuda::DevicePointer>;  ///< inputs, then outputs

  std::vector<Set> setsFor(const Case &subject) const;
  struct Expected {
    std::vector<Point> points;
    std::vector<double> values;
  };
  void check(Candidate &candidate, runtime::cuda::FunctionHandle *function, const Set &set,
             const Expected &expected);
  void launch(const Candidate &candidate, runtime::cuda::FunctionHandle *function, const Set &set,
              runtime::cuda::StreamHandle *on) const;
  double time(const runtime::cuda::Graph &graph);
  runtime::cuda::Graph copyGraph(int64_t bytes, int64_t count);

  Protocol protocol;
  runtime::cuda::Context context;
  runtime::cuda::Stream stream;
  runtime::cuda::Event start, end;
  Probe probe;
  runtime::cuda::Buffer arena, key, copied, workspace;
};

}  // namespace weft::bench
