// Emitted kernels and candidates of cuBLASLt on one set of tensors by name, timed interleaved.
#pragma once

#include "bench/contractions/TimedGraph.h"
#include "codegen/Emit.h"
#include "kernel/Error.h"
#include "kernel/LibraryProduct.h"
#include "runtime/Build.h"
#include "runtime/CublasLt.h"
#include "runtime/TensorMaps.h"

#include <array>
#include <cmath>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace weft::bench {

struct Contender {
  Kernel kernel;
  Configuration configuration;
  codegen::EmittedKernel emitted = {};
  runtime::BuildResult built = {};
  double seconds = 0;
};

/// Every tensor of a kernel and of its parts, by name, in several sets; all elements about one half.
class Tensors {
public:
  static constexpr int sets = 3;

  explicit Tensors(const Kernel &kernel) : key(16) {
    add(kernel);
    runtime::cuda::fill(key.address(), 0, 16);
  }
  /// Those of another kernel that are not there yet.
  void add(const Kernel &kernel) {
    std::vector<uint16_t> elements;
    for (const Value &value : kernel.values) {
      if (buffers.contains(value.name)) continue;
      int64_t count = 1;
      for (const int axis : value.axes) count *= kernel.axes[size_t(axis)].extent;
      const size_t words = size_t(sizeOf(value.dtype)) / 2;  // fp32: sums, which are written alone
      elements.resize(size_t(count) * words);
      uint32_t state = uint32_t(buffers.size()) + 1;
      for (uint16_t &element : elements) state = state * 1664525u + 1013904223u, element = uint16_t((value.dtype == DType::f16 ? 0x3700 : 0x3e80) + (state >> 24) + (state >> 8 & 0x8000));
      for (int set = 0; set < sets; ++set) {
        runtime::cuda::upload(buffers[value.name].emplace_back(int64_t(2 * elements.size())).address(), std::as_bytes(std::span(elements)));
      }
    }
  }
  runtime::cuda::DevicePointer at(const std::string &name, int set) const { return buffers.at(name)[size_t(set)].address(); }

  Enqueue enqueueOf(const Contender &one) {
    if (!one.built.error.empty()) throw Error::checkFailed("{}: {}", one.kernel.name, one.built.error);
    runtime::cuda::FunctionHandle *function = modules.emplace_back(one.built.cubin).function(one.emitted.entry);
    if (one.emitted.launch.sharedBytes > 48 << 10) runtime::cuda::allowSharedMemory(function, one.emitted.launch.sharedBytes);
    return [this, &one, function](runtime::cuda::StreamHandle *stream, int set) {
      runtime::cuda::ArgumentList arguments;
      for (const codegen::Parameter &parameter : one.emitted.parameters) {
        using enum codegen::Parameter::Kind;
        if (parameter.kind == dropoutKey) arguments.passPointer(key.address());
        else if (parameter.kind == dropoutStream || parameter.kind == dropoutOuter) arguments.passNumber(numberOf(parameter, one.kernel));
        else {
          const bool isInput = parameter.kind == input || parameter.kind == inputMap;
          const int value = (isInput ? one.kernel.inputs : one.kernel.outputs)[size_t(parameter.index)];
          const runtime::cuda::DevicePointer address = at(one.kernel.values[size_t(value)].name, set);
          if (parameter.map) arguments.passMap(*parameter.map, address);
          else arguments.passPointer(address);
        }
      }
      const codegen::Launch &launch = one.emitted.launch;
      runtime::cuda::launch(function, {.grid = launch.grid, .block = launch.block, .sharedBytes = launch.sharedBytes}, arguments.span(), stream);
    };
  }

private:
  std::map<std::string, std::vector<runtime::cuda::Buffer>> buffers;
  runtime::cuda::Buffer key;
  std::deque<runtime::cuda::Module> modules;
};

struct Row {
  double *seconds;
  Enqueue enqueue;
};

inline void interleave(std::vector<Row> &rows, int rounds, const runtime::cuda::Stream &stream) {
  constexpr int calls = 15;
  std::deque<TimedGraph> graphs;
  for (const Row &row : rows) graphs.emplace_back(stream, row.enqueue, Tensors::sets, calls);
  std::vector<std::vector<double>> samples(rows.size());
  for (int round = 0; round <= rounds; ++round)
    for (size_t i = 0; i < rows.size(); ++i)
      if (const double seconds = graphs[i].time(); round > 0) samples[i].push_back(seconds);
  for (size_t i = 0; i < rows.size(); ++i) *rows[i].seconds = median(samples[i]);
}

inline const Contender &fastest(const std::vector<Contender> &side) { return *std::ranges::min_element(side, {}, &Contender::seconds); }

/// Candidates of cuBLASLt for one product, as rows to be timed.
class LibraryRows {
public:
  /// `values`: A, B, the result, the residual, the auxiliary tensor and the vector, or null.
  LibraryRows(const LibraryProduct &product, const runtime::CublasLt &library, const Tensors &tensors, std::array<const Value *, 6> values,
              runtime::cuda::DevicePointer workspace)
      : candidates(library.candidates(product)), seconds(candidates.size(), INFINITY) {
    for (const LibraryKnobs &candidate : candidates) prepared.push_back(library.prepare(product, candidate, "candidate"));
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (!prepared[i].warning().empty()) continue;
      rows.push_back({&seconds[i], [this, i, &tensors, values, workspace](runtime::cuda::StreamHandle *on, int set) {
        const auto at = [&](const Value *value) { return value ? tensors.at(value->name, set) : runtime::cuda::DevicePointer(0); };
        prepared[i].enqueue({.a = at(values[0]), .b = at(values[1]), .result = at(values[2]), .residual = at(values[3]),
                             .auxiliary = at(values[4]), .vector = at(values[5])}, workspace, on);
      }});
    }
  }
  double fastest() const { return seconds.empty() ? INFINITY : *std::ranges::min_element(seconds); }

  std::vector<Row> rows;

private:
  std::vector<LibraryKnobs> candidates;
  std::vector<double> seconds;
  std::deque<runtime::PreparedProduct> prepared;
};

}  // namespace weft::bench
