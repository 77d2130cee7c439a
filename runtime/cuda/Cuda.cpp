// The owners of the driver's handles: contexts, memory, streams, events. Modules and graphs are in
// CudaModule.cpp.
#include "runtime/cuda/CudaDriver.h"

#include <fmt/format.h>

#include <utility>

namespace weft::runtime::cuda {

bool DriverError::isSticky() const {
  return result >= firstContextLost && result <= lastContextLost;
}

Context::Context(int gpu) {
  const Driver &cuda = driver();
  if (!cuda.problem.empty()) throw Error::unsupported("{}", cuda.problem);
  int count = 0;
  check(cuda.deviceCount(&count), "count the GPUs");
  if (gpu < 0 || gpu >= count)
    throw Error::badInput("there is no GPU {}: the driver lists {}, numbered from 0", gpu, count);
  properties = propertiesOf(gpu);
  check(cuda.retainContext(&handle, gpu), fmt::format("use GPU {} ({})", gpu, properties.name));
  makeCurrent();
}

Context::~Context() {
  driver().setContext(nullptr);
  driver().releaseContext(properties.index);
}

std::pair<int64_t, int64_t> Context::memory() const {
  size_t free = 0, total = 0;
  check(driver().memoryInfo(&free, &total), "read the free memory");
  return {int64_t(free), int64_t(total)};
}

void Context::synchronize() const {
  check(driver().synchronizeContext(), "finish the work on the GPU");
}
void Context::makeCurrent() const {
  check(driver().setContext(handle), "use the GPU on this thread");
}

Buffer::Buffer(int64_t bytes) : size(bytes) {
  if (bytes == 0) return;
  const int result = driver().allocate(&pointer, size_t(bytes));
  size_t free = 0, total = 0;
  if (result == outOfMemory && driver().memoryInfo(&free, &total) == success)
    throw DriverError(ErrorKind::unsupported, result,
                      fmt::format("out of GPU memory: {} bytes were asked for, {} of {} are free",
                                  bytes, free, total));
  check(result, fmt::format("allocate {} bytes on the GPU", bytes));
}

Buffer::~Buffer() {
  if (pointer) driver().release(pointer);
}

Buffer::Buffer(Buffer &&other) noexcept
    : pointer(std::exchange(other.pointer, 0)), size(std::exchange(other.size, 0)) {}

Buffer &Buffer::operator=(Buffer &&other) noexcept {
  std::swap(pointer, other.pointer);
  std::swap(size, other.size);
  return *this;
}

namespace {

/// Copies and fills of the default stream: our streams do not wait for it, so whoever says "done"
/// must.
void finishDefaultStream() {
  check(driver().synchronizeStream(nullptr), "finish a copy or fill on the GPU");
}

}  // namespace

// The driver's copy returns once pageable host memory may be reused: its last part may still be on
// the way.
void upload(DevicePointer to, std::span<const std::byte> from) {
  if (from.empty()) return;
  check(driver().copyToDevice(to, from.data(), from.size()),
        fmt::format("copy {} bytes to the GPU", from.size()));
  finishDefaultStream();
}

void download(std::span<std::byte> to, DevicePointer from) {
  if (!to.empty())
    check(driver().copyToHost(to.data(), from, to.size()),
          fmt::format("copy {} bytes from the GPU", to.size()));
}

void fill(DevicePointer to, uint8_t value, int64_t bytes) {
  if (bytes == 0) return;
  check(driver().fillBytes(to, value, size_t(bytes)),
        fmt::format("fill {} bytes on the GPU", bytes));
  finishDefaultStream();
}

void fillAsync(DevicePointer to, uint8_t value, int64_t bytes, StreamHandle *stream) {
  if (bytes > 0)
    check(driver().fillBytesAsync(to, value, size_t(bytes), stream),
          fmt::format("fill {} bytes on the GPU", bytes));
}

void copyAsync(DevicePointer to, DevicePointer from, int64_t bytes, StreamHandle *stream) {
  if (bytes > 0)
    check(driver().copyOnDevice(to, from, size_t(bytes), stream),
          fmt::format("copy {} bytes on the GPU", bytes));
}

Stream::Stream() { check(driver().createStream(&stream, nonBlockingStream), "create a stream"); }
Stream::~Stream() { driver().destroyStream(stream); }
void Stream::synchronize() const {
  check(driver().synchronizeStream(stream), "finish the work of a stream");
}

bool Stream::isFinished() const { return cuda::isFinished(stream); }

bool isFinished(StreamHandle *stream) {
  const int result = driver().queryStream(stream);
  if (result == notReady) return false;
  check(result, "finish the work of a stream");
  return true;
}

bool isCapturing(StreamHandle *stream) {
  int status = 0;
  check(driver().captureStatus(stream, &status), "ask whether a stream is captured");
  return status != 0;
}

void storeWordAsync(DevicePointer to, uint32_t value, StreamHandle *stream) {
  check(driver().fillWordsAsync(to, value, 1, stream), "store a word on the GPU");
}

Event::Event() { check(driver().createEvent(&event, 0), "create an event"); }
Event::~Event() { driver().destroyEvent(event); }
void Event::record(StreamHandle *stream) {
  check(driver().recordEvent(event, stream), "record an event");
}
void Event::recordInGraph(StreamHandle *stream) {
  constexpr unsigned external = 1;  // a node that records, not an edge between captured streams
  check(driver().recordEventWithFlags(event, stream, external), "record an event in a graph");
}
void Event::synchronize() const { check(driver().synchronizeEvent(event), "wait for an event"); }
void Event::holdBack(StreamHandle *stream) const {
  check(driver().streamWait(stream, event, 0), "make a stream wait");
}

double secondsBetween(const Event &start, const Event &end) {
  float milliseconds = 0;
  check(driver().elapsed(&milliseconds, start.handle(), end.handle()),
        "read the time between two events");
  return 1e-3 * double(milliseconds);
}

}  // namespace weft::runtime::cuda
