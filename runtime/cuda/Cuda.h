// The CUDA driver API as far as weft runs kernels through it: opened at run time, owned handles,
// errors that name the call.
//
// Invariant: every object belongs to the primary context of the GPU that `Context` made current on
// this thread; cuBLASLt and PyTorch use the same context. Nothing here synchronizes unless its name
// says so.
#pragma once

#include "kernel/Error.h"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::runtime::cuda {

using DevicePointer = uint64_t;

/// Opaque handles of the driver.
struct StreamHandle;
struct EventHandle;
struct ModuleHandle;
struct FunctionHandle;
struct GraphHandle;
struct NodeHandle;
struct ExecutableHandle;

/// A failed driver call: what was asked, the driver's name and text of the error
/// ("CUDA_ERROR_OUT_OF_MEMORY: ..."). Its exit code is 3 where this GPU or driver cannot do it (out
/// of memory, wrong architecture), 1 where a kernel failed.
class DriverError : public Error {
public:
  DriverError(ErrorKind kind, int result, const std::string &text)
      : Error(kind, text), result(result) {}
  bool isOutOfMemory() const { return result == 2; }
  /// After these the context is lost: nothing more can run in this process.
  bool isSticky() const;
  const int result;
};

/// What a GPU is, read from the driver.
struct GpuProperties {
  int index = 0;
  std::string name;           ///< "NVIDIA H200"
  std::string architecture;   ///< "sm_90"
  std::string driverVersion;  ///< CUDA version that the driver supports: "13.0"
  std::string uuid;           ///< 32 hexadecimal digits
  int multiprocessors = 0;
  int64_t memoryBytes = 0, l2Bytes = 0;
  int64_t sharedMemoryPerBlock = 0;  ///< the most that a kernel may ask for
};

/// The primary context of one GPU, current on the constructing thread until destruction.
/// Throws Error(unsupported) naming the reason: no driver, driver too old, no GPU, no such GPU.
class Context {
public:
  explicit Context(int gpu = 0);
  ~Context();
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;

  const GpuProperties &gpu() const { return properties; }
  /// Bytes free and in all.
  std::pair<int64_t, int64_t> memory() const;
  /// Waits for all work of the context; throws DriverError if a kernel failed.
  void synchronize() const;
  /// Makes the context current on the calling thread, too.
  void makeCurrent() const;

private:
  void *handle = nullptr;
  GpuProperties properties;
};

/// Device memory. Throws DriverError naming the bytes asked and the bytes free.
class Buffer {
public:
  Buffer() = default;
  explicit Buffer(int64_t bytes);
  ~Buffer();
  Buffer(Buffer &&other) noexcept;
  Buffer &operator=(Buffer &&other) noexcept;

  DevicePointer address() const { return pointer; }
  int64_t bytes() const { return size; }

private:
  DevicePointer pointer = 0;
  int64_t size = 0;
};

/// Host <-> device copies and fills; they return when done.
void upload(DevicePointer to, std::span<const std::byte> from);
void download(std::span<std::byte> to, DevicePointer from);
/// Every byte set; 0xff makes every floating type NaN.
void fill(DevicePointer to, uint8_t value, int64_t bytes);

class Stream {
public:
  Stream();
  ~Stream();
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;
  StreamHandle *handle() const { return stream; }
  void synchronize() const;
  /// Whether all work has finished, without waiting; throws DriverError if a kernel failed.
  bool isFinished() const;

private:
  StreamHandle *stream = nullptr;
};

/// Whether all work of any stream has finished, without waiting; throws DriverError if a kernel
/// failed.
bool isFinished(StreamHandle *stream);
/// Whether the stream's work is being captured instead of run: nothing may wait for it then.
bool isCapturing(StreamHandle *stream);

void fillAsync(DevicePointer to, uint8_t value, int64_t bytes, StreamHandle *stream);
/// One 32-bit word, from the argument itself: no host memory must outlive the call.
void storeWordAsync(DevicePointer to, uint32_t value, StreamHandle *stream);
void copyAsync(DevicePointer to, DevicePointer from, int64_t bytes, StreamHandle *stream);

class Event {
public:
  Event();
  ~Event();
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;
  EventHandle *handle() const { return event; }
  void record(StreamHandle *stream);
  /// On a stream that is captured: every launch of the graph records the event at this place.
  void recordInGraph(StreamHandle *stream);
  void synchronize() const;
  /// The stream waits for the event.
  void holdBack(StreamHandle *stream) const;

private:
  EventHandle *event = nullptr;
};
/// Seconds between two recorded, finished events.
double secondsBetween(const Event &start, const Event &end);

/// A loaded cubin.
class Module {
public:
  /// Throws DriverError(unsupported) if the cubin is for another architecture.
  explicit Module(std::string_view cubin);
  ~Module();
  Module(Module &&other) noexcept;
  Module &operator=(Module &&) = delete;
  /// Throws Error(badInput) naming the entry that the module lacks.
  FunctionHandle *function(const std::string &entry) const;

private:
  ModuleHandle *module = nullptr;
};

/// Raises the dynamic shared memory that a function may ask for (needed above 48 KB).
void allowSharedMemory(FunctionHandle *function, int64_t bytes);
struct FunctionResources {
  int registers = 0, localBytes = 0, staticSharedBytes = 0, threadsPerBlock = 0;
};
FunctionResources resourcesOf(FunctionHandle *function);

struct LaunchShape {
  std::array<int64_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  int64_t sharedBytes = 0;
  /// Blocks may start while the kernel before it in the stream ends, if that one allows it; the
  /// kernel's text waits for it.
  bool startsEarly = false;
};
/// `arguments`: one pointer to each argument's bytes, in order; read before the call returns.
void launch(FunctionHandle *function, const LaunchShape &shape, std::span<void *const> arguments,
            StreamHandle *stream);

/// A captured, instantiated graph: everything that `record` enqueues on the stream, without running
/// it.
class Graph {
public:
  template <typename Record>
  static Graph capture(const Stream &stream, Record &&record) {
    beginCapture(stream);
    try {
      record(stream.handle());
    } catch (...) {
      abandonCapture(stream);
      throw;
    }
    return Graph(endCapture(stream));
  }
  ~Graph();
  Graph(Graph &&other) noexcept;
  Graph &operator=(Graph &&other) noexcept;
  void launch(StreamHandle *stream) const;
  /// Kernels, copies and fills in the graph.
  int64_t nodeCount() const { return nodes; }

private:
  explicit Graph(GraphHandle *graph);
  static void beginCapture(const Stream &stream);
  static GraphHandle *endCapture(const Stream &stream);
  static void abandonCapture(const Stream &stream);
  ExecutableHandle *executable = nullptr;
  int64_t nodes = 0;
};

/// Nodes of a graph that is being captured.
using Nodes = std::vector<NodeHandle *>;
/// What the next work of a captured stream will wait for: the nodes of its last work, unless it was
/// told otherwise.
Nodes capturedEnds(StreamHandle *stream);
/// The next work of a captured stream waits for these nodes of its graph, and for nothing else.
/// Duplicates are taken once.
void continueAfter(StreamHandle *stream, Nodes nodes);

}  // namespace weft::runtime::cuda
