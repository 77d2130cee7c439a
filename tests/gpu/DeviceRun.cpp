#include "tests/gpu/DeviceRun.h"

#include "kernel/Error.h"
#include "runtime/cuda/TensorMaps.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <list>

namespace weft::gputest {
namespace {

using runtime::TensorImage;
namespace cuda = runtime::cuda;

std::span<std::byte> elementsOf(TensorImage &image) {
  return image.bytes().subspan(size_t(image.elementZero()), size_t(image.spanBytes()));
}

/// The elements, and what shares the widest access (16 bytes, aligned) with the first and the last
/// of them. Copies of rows that start anywhere read whole accesses and select in registers; none
/// reaches farther, which the uninitialized bytes around show.
std::span<std::byte> accessedBytes(TensorImage &image) {
  constexpr size_t access = 16;
  const size_t begin = size_t(image.elementZero()) / access * access;
  const size_t end =
      (size_t(image.elementZero() + image.spanBytes()) + access - 1) / access * access;
  return image.bytes().subspan(begin, std::min(end, image.bytes().size()) - begin);
}

/// One image on the GPU, in separate memory, so that accesses beside it are found.
struct DeviceImage {
  TensorImage &host;
  cuda::Buffer buffer;

  DeviceImage(TensorImage &host, bool isInput, const RunOptions &options)
      : host(host), buffer(int64_t(host.bytes().size())) {
    if (!options.leaveUninitialized) cuda::upload(buffer.address(), host.bytes());
    else if (isInput)
      cuda::upload(buffer.address() + uint64_t(accessedBytes(host).data() - host.bytes().data()),
                   accessedBytes(host));
  }
  cuda::DevicePointer elementZero() const {
    return buffer.address() + uint64_t(host.elementZero());
  }
  void download(const RunOptions &options) const {
    if (options.leaveUninitialized) cuda::download(elementsOf(host), elementZero());
    else cuda::download(host.bytes(), buffer.address());
  }
};

/// The memory that a launch works in, poisoned, between margins. Where inputs alone are
/// initialized, it is not.
class DeviceWorkspace {
public:
  DeviceWorkspace(int64_t bytes, const RunOptions &options)
      : bytes(bytes), buffer(bytes + 2 * TensorImage::margin) {
    for (const cuda::DevicePointer margin : {buffer.address(), end()})
      cuda::fill(margin, uint8_t(TensorImage::poison), TensorImage::margin);
    poison(options, 0);
  }
  /// What a launch finds there: nothing that one before has left. Every other time large numbers,
  /// so that whoever reads what is yet to be written takes part in no sum unseen.
  void poison(const RunOptions &options, int launch) const {
    constexpr uint8_t largeFloats = 0x7e;  // 8e37
    if (!options.leaveUninitialized)
      cuda::fill(start(), launch % 2 == 0 ? uint8_t(TensorImage::poison) : largeFloats, bytes);
  }
  cuda::DevicePointer start() const {
    return buffer.address() + cuda::DevicePointer(TensorImage::margin);
  }
  /// Whether nothing was written beside it.
  bool intactAround() const {
    std::vector<std::byte> margin(TensorImage::margin);
    return std::ranges::all_of(std::array{buffer.address(), end()}, [&](auto address) {
      cuda::download(margin, address);
      return std::ranges::count(margin, TensorImage::poison) == TensorImage::margin;
    });
  }

private:
  cuda::DevicePointer end() const { return start() + cuda::DevicePointer(bytes); }

  int64_t bytes;
  cuda::Buffer buffer;
};

}  // namespace

void runOnDevice(const Kernel &kernel, const codegen::EmittedKernel &emitted,
                 const std::string &cubin, std::vector<TensorImage> &inputs,
                 std::vector<TensorImage> &outputs, const RunOptions &options,
                 const cuda::Stream &stream) {
  std::list<DeviceImage> images;
  std::vector<const DeviceImage *> in, out;
  for (TensorImage &image : inputs) in.push_back(&images.emplace_back(image, true, options));
  for (TensorImage &image : outputs) out.push_back(&images.emplace_back(image, false, options));
  const cuda::Buffer key(sizeof options.dropout);
  cuda::upload(key.address(), std::as_bytes(std::span(&options.dropout, 1)));
  const cuda::Buffer reported(sizeof(uint64_t));
  const DeviceWorkspace ownWorkspace(emitted.launch.workspaceBytes, options);

  cuda::ArgumentList arguments;
  for (const codegen::Parameter &parameter : emitted.parameters) {
    using enum codegen::Parameter::Kind;
    switch (parameter.kind) {
      case workspace: arguments.passPointer(ownWorkspace.start()); break;
      case input: arguments.passPointer(in[size_t(parameter.index)]->elementZero()); break;
      case output: arguments.passPointer(out[size_t(parameter.index)]->elementZero()); break;
      case inputMap:
        arguments.passMap(*parameter.map, in[size_t(parameter.index)]->elementZero());
        break;
      case outputMap:
        arguments.passMap(*parameter.map, out[size_t(parameter.index)]->elementZero());
        break;
      case dropoutKey: arguments.passPointer(key.address()); break;
      case status: arguments.passPointer(reported.address()); break;
      case dropoutStream:
      case dropoutOuter: arguments.passNumber(numberOf(parameter, kernel)); break;
    }
  }
  const cuda::Module module(cubin);
  cuda::FunctionHandle *function = module.function(emitted.entry);
  if (emitted.launch.sharedBytes > 48 << 10)
    cuda::allowSharedMemory(function, emitted.launch.sharedBytes);
  const auto launch = [&] {
    cuda::launch(function,
                 {.grid = emitted.launch.grid,
                  .block = emitted.launch.block,
                  .sharedBytes = emitted.launch.sharedBytes},
                 arguments.span(), stream.handle());
    stream.synchronize();
    for (const DeviceImage &image : images) image.download(options);
    if (!ownWorkspace.intactAround())
      throw Error::checkFailed("kernel '{}': writes outside its workspace", kernel.name);
  };
  const std::vector<TensorImage> poisoned = outputs;
  launch();
  if (emitted.text.find("\n__device__ ") == std::string::npos && emitted.launch.workspaceBytes == 0)
    return;
  std::vector<TensorImage> first = outputs;
  constexpr int launches = 4;
  for (int number = 1; number < launches; ++number) {
    ownWorkspace.poison(options, number);
    std::ranges::copy(poisoned, outputs.begin());  // in place: the images on the GPU refer to them
    if (!options.leaveUninitialized)
      for (size_t n = 0; n < outputs.size(); ++n)
        cuda::upload(out[n]->buffer.address(), outputs[n].bytes());
    launch();
    if (!options.hasFixedBits) continue;
    for (size_t n = 0; n < outputs.size(); ++n)
      if (!std::ranges::equal(elementsOf(outputs[n]), elementsOf(first[n])))
        throw Error::checkFailed("kernel '{}': launch {} leaves other bits in output {}",
                                 kernel.name, number + 1, n);
  }
}

}  // namespace weft::gputest
