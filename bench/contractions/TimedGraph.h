// A captured graph of one thing called several times around the sets of operands, and the seconds
// of one call.
#pragma once

#include "runtime/cuda/Cuda.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace weft::bench {

/// Enqueues one call on operands of a set.
using Enqueue = std::function<void(runtime::cuda::StreamHandle *stream, int set)>;

class TimedGraph {
public:
  TimedGraph(const runtime::cuda::Stream &stream, const Enqueue &enqueue, int sets, int calls)
      : stream(stream),
        calls(calls),
        graph(runtime::cuda::Graph::capture(stream, [&](runtime::cuda::StreamHandle *handle) {
          for (int call = 0; call < calls; ++call) enqueue(handle, call % sets);
        })) {}

  void launch() const { graph.launch(stream.handle()); }
  double time() {
    start.record(stream.handle());
    launch();
    end.record(stream.handle());
    end.synchronize();
    return secondsBetween(start, end) / calls;
  }

private:
  const runtime::cuda::Stream &stream;
  int calls;
  runtime::cuda::Graph graph;
  runtime::cuda::Event start, end;
};

inline double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + ptrdiff_t(values.size() / 2));
  return values[values.size() / 2];
}

}  // namespace weft::bench
