#include "bench/kernels/Measurement.h"

#include "ir/interpreter/Tensor.h"
#include "kernel/Error.h"
#include "runtime/cuda/TensorMaps.h"
#include "runtime/measure/Statistics.h"

#include <algorithm>
#include <cmath>

namespace weft::bench {
namespace {

namespace cuda = runtime::cuda;

constexpr int64_t arenaBytes = int64_t(4) << 30, copyBytes = 256 << 20;
constexpr int copiesPerGraph = 3;
constexpr int64_t copyGranule = 2048;  ///< bytes of one block of the copy
constexpr size_t sampledElements = 4096;

double median(const std::vector<double> &values) { return runtime::summarize(values).median; }

/// Of the stored result: its rounding, and fp32 arithmetic against fp64.
double relativeTolerance(DType type) {
  switch (type) {
    case DType::f16: return 0x1p-10;
    case DType::bf16: return 0x1p-7;
    default: return 2e-5;
  }
}

int64_t footprint(const Kernel &kernel) {
  int64_t bytes = 0;
  for (const std::vector<ValueId> *values : {&kernel.inputs, &kernel.outputs})
    for (ValueId value : *values) bytes += (kernel.bytes(value) + 255) / 256 * 256;
  return bytes;
}

}  // namespace

Bench::Bench(const Protocol &protocol)
    : protocol(protocol), probe(stream), arena(arenaBytes), key(16), copied(2 * copyBytes) {
  const uint64_t words[] = {dropoutSeed, dropoutStep};
  cuda::upload(key.address(), std::as_bytes(std::span(words)));
  cuda::fill(copied.address(), 1, copied.bytes());
}

std::vector<Bench::Set> Bench::setsFor(const Case &subject) const {
  const Kernel &kernel = subject.kernel;
  const int64_t bytes = footprint(kernel);
  if (bytes > arenaBytes)
    throw Error::unsupported("case '{}' takes {} bytes; the bench has {}", subject.name, bytes,
                             arenaBytes);
  const int64_t count =
      std::clamp<int64_t>((protocol.coldBytes + bytes - 1) / bytes, 1, arenaBytes / bytes);
  std::vector<Set> sets;
  cuda::DevicePointer next = arena.address();
  for (int64_t n = 0;
       n < std::max<int64_t>(count, 2) && next + bytes <= arena.address() + arenaBytes; ++n) {
    Set set;
    for (const std::vector<ValueId> *values : {&kernel.inputs, &kernel.outputs})
      for (ValueId value : *values) {
        set.push_back(next);
        next += static_cast<uint64_t>((kernel.bytes(value) + 255) / 256 * 256);
      }
    for (size_t i = 0; i < kernel.inputs.size(); ++i) {
      const ValueId value = kernel.inputs[i];
      const auto limit = subject.limits.find(value);
      probe.fillInput(set[i], kernel.values[value].dtype, kernel.elements(value),
                      static_cast<uint32_t>(i), limit == subject.limits.end() ? 1 : limit->second);
    }
    sets.push_back(std::move(set));
  }
  return sets;
}

void Bench::launch(const Candidate &candidate, cuda::FunctionHandle *function, const Set &set,
                   cuda::StreamHandle *on) const {
  const Kernel &kernel = candidate.subject->kernel;
  cuda::ArgumentList arguments;
  for (const codegen::Parameter &parameter : candidate.emitted.parameters) {
    using Kind = codegen::Parameter::Kind;
    const auto index = static_cast<size_t>(parameter.index);
    if (isNumber(parameter.kind)) arguments.passNumber(numberOf(parameter, kernel));
    else if (parameter.kind == Kind::workspace) arguments.passPointer(workspace.address());
    else if (parameter.kind == Kind::dropoutKey || parameter.kind == Kind::status)
      arguments.passPointer(key.address());
    else {
      const bool isInput = parameter.kind == Kind::input || parameter.kind == Kind::inputMap;
      const cuda::DevicePointer address = set[isInput ? index : kernel.inputs.size() + index];
      if (parameter.map) arguments.passMap(*parameter.map, address);
      else arguments.passPointer(address);
    }
  }
  const codegen::Launch &shape = candidate.emitted.launch;
  cuda::launch(function,
               {.grid = shape.grid, .block = shape.block, .sharedBytes = shape.sharedBytes},
               arguments.span(), on);
}

/// Every element written, and the sampled ones right.
void Bench::check(Candidate &candidate, cuda::FunctionHandle *function, const Set &set,
                  const Expected &expected) {
  const Kernel &kernel = candidate.subject->kernel;
  for (size_t n = 0; n < kernel.outputs.size(); ++n)
    cuda::fill(set[kernel.inputs.size() + n], 0xff, kernel.bytes(kernel.outputs[n]));
  launch(candidate, function, set, stream.handle());
  stream.synchronize();
  for (size_t n = 0; n < kernel.outputs.size(); ++n) {
    const DType type = kernel.values[kernel.outputs[n]].dtype;
    const cuda::DevicePointer output = set[kernel.inputs.size() + n];
    if (const int64_t poison = probe.countPoison(output, type, kernel.elements(kernel.outputs[n]));
        poison != 0)
      candidate.failure = fmt::format("{} elements of '{}' are not written", poison,
                                      kernel.values[kernel.outputs[n]].name);
    const std::vector<AxisId> axes = kernel.values[kernel.outputs[n]].axes,
                              reduced = kernel.reducedAxes();
    const bool isSum = !reduced.empty() && std::ranges::find_first_of(axes, reduced) == axes.end();
    const double absolute =
        isSum ? candidate.subject->sumTolerance : candidate.subject->rowTolerance;
    std::vector<int64_t> positions;
    std::vector<double> values;
    for (size_t i = 0; i < expected.points.size(); ++i)
      if (expected.points[i].output == static_cast<int>(n)) {
        positions.push_back(expected.points[i].position);
        values.push_back(expected.values[i]);
      }
    const std::vector<double> actual = probe.elementsAt(output, type, positions);
    for (size_t i = 0; i < actual.size(); ++i) {
      const double error =
          reference::elementDistance(actual[i], values[i], absolute, relativeTolerance(type));
      candidate.worstError = std::max(candidate.worstError, error);
      if (!(error <= 1) && candidate.failure.empty())
        candidate.failure =
            fmt::format("'{}' at {}: {} instead of {}", kernel.values[kernel.outputs[n]].name,
                        positions[i], actual[i], values[i]);
    }
  }
}

double Bench::time(const cuda::Graph &graph) {
  start.record(stream.handle());
  graph.launch(stream.handle());
  end.record(stream.handle());
  end.synchronize();
  return cuda::secondsBetween(start, end);
}

/// Copies that move `bytes` each, over all of the memory for copies in turn.
cuda::Graph Bench::copyGraph(int64_t bytes, int64_t count) {
  const int64_t half = std::clamp<int64_t>(
      (bytes / 2 + copyGranule - 1) / copyGranule * copyGranule, copyGranule, copyBytes);
  return cuda::Graph::capture(stream, [&](cuda::StreamHandle *on) {
    for (int64_t n = 0; n < count; ++n) {
      const cuda::DevicePointer from =
          copied.address() + static_cast<uint64_t>(n % (copyBytes / half) * half);
      probe.copy(from, from + copyBytes, half, on);
    }
  });
}

CopyRates Bench::measure(std::span<Candidate> candidates) {
  const std::vector<Set> sets = setsFor(*candidates.front().subject);
  struct Run {
    Candidate *candidate;
    cuda::Module module;
    cuda::Graph graph;
    int64_t launches;
    std::vector<double> seconds = {};
  };
  std::vector<Run> runs;
  const auto record = [&](const Candidate &candidate, cuda::FunctionHandle *function,
                          int64_t launches) {
    return cuda::Graph::capture(stream, [&](cuda::StreamHandle *on) {
      for (int64_t n = 0; n < launches; ++n)
        launch(candidate, function, sets[static_cast<size_t>(n) % sets.size()], on);
    });
  };
  int64_t workspaceBytes = 0;
  for (const Candidate &candidate : candidates)
    workspaceBytes = std::max(workspaceBytes, candidate.emitted.launch.workspaceBytes);
  if (workspaceBytes > workspace.bytes()) workspace = cuda::Buffer(workspaceBytes);
  Reference reference(*candidates.front().subject, candidates.front().configuration);
  Expected expected{.points = reference.samplePoints(sampledElements), .values = {}};
  for (const Point &point : expected.points) expected.values.push_back(reference.at(point));
  for (Candidate &candidate : candidates) {
    if (!candidate.failure.empty()) continue;
    cuda::Module module(candidate.cubin);
    cuda::FunctionHandle *function = module.function(candidate.emitted.entry);
    check(candidate, function, sets.front(), expected);
    if (!candidate.failure.empty()) continue;
    const cuda::Graph trial = record(candidate, function, static_cast<int64_t>(sets.size()));
    time(trial);
    const double once = time(trial) / static_cast<double>(sets.size());
    const auto launches = std::clamp<int64_t>(std::llround(protocol.graphSeconds / once), 3, 400);
    runs.push_back(
        {&candidate, std::move(module), record(candidate, function, launches), launches});
  }
  const int64_t bytes = candidates.front().subject->kernel.necessaryBytes();
  const int64_t equalCount = std::clamp<int64_t>(
      std::llround(protocol.graphSeconds * 4e12 / static_cast<double>(bytes)), 3, 400);
  const cuda::Graph copies = copyGraph(2 * copyBytes, copiesPerGraph),
                    equalCopies = copyGraph(bytes, equalCount);
  std::vector<double> copySeconds, equalSeconds;
  for (int round = 0; round <= protocol.rounds; ++round) {  // the first warms up
    const double copy = time(copies) / copiesPerGraph;
    const double equal = time(equalCopies) / static_cast<double>(equalCount);
    if (round > 0) copySeconds.push_back(copy), equalSeconds.push_back(equal);
    for (Run &run : runs) {
      const double seconds = time(run.graph) / static_cast<double>(run.launches);
      if (round > 0) run.seconds.push_back(seconds);
    }
  }
  const CopyRates rates{.large = 2.0 * copyBytes / median(copySeconds),
                        .equal = static_cast<double>(bytes) / median(equalSeconds)};
  for (Run &run : runs) {
    run.candidate->seconds = median(run.seconds);
    run.candidate->copyShare = static_cast<double>(bytes) / run.candidate->seconds / rates.large;
    run.candidate->equalCopyShare =
        static_cast<double>(bytes) / run.candidate->seconds / rates.equal;
  }
  return rates;
}

}  // namespace weft::bench
