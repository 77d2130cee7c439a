// Tensors in memory: element n of the logical order lies at offset + sum of coordinate times
// stride, in its stored type.
#include "tests/emulate/Launch.h"

#include "kernel/ArgumentStatus.h"
#include "kernel/reference/StoredElement.h"
#include "tests/emulate/GuardedBuffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <memory>

namespace weft::emulate {
namespace {

/// A tensor in memory, in one layout.
class StoredTensor {
public:
  StoredTensor(const Kernel &kernel, ValueId value, const Layout &layout)
      : dtype(kernel.values[value].dtype),
        extents(extentsOf(kernel, value)),
        strides(stridesOf(layout, extents)),
        offset(layout.offset),
        buffer(spannedElements() * sizeOf(dtype)) {}

  void write(const TensorValue &tensor) {
    for (size_t n = 0; n < tensor.elements.size(); ++n)
      reference::storeElement(dtype, addressOf(n), tensor.elements[n]);
  }
  TensorValue read() const {
    TensorValue tensor = reference::zeros(extents);
    for (size_t n = 0; n < tensor.elements.size(); ++n)
      tensor.elements[n] = reference::loadElement(dtype, addressOf(n));
    return tensor;
  }
  /// Bytes around the tensor, and between its elements where it is a view, are untouched.
  bool intact() const {
    std::vector<std::byte> others(buffer.bytes().begin(), buffer.bytes().end());
    for (int64_t n = 0; n < reference::elementCount(extents); ++n)
      std::fill_n(others.begin() + (addressOf(size_t(n)) - data()), sizeOf(dtype), std::byte{0xFF});
    return buffer.intact() && std::all_of(others.begin(), others.end(),
                                          [](std::byte byte) { return byte == std::byte{0xFF}; });
  }
  /// Element zero: what a kernel is given.
  std::byte *first() const { return data() + offset * sizeOf(dtype); }

private:
  std::byte *data() const { return buffer.bytes().data(); }
  size_t spannedElements() const {
    int64_t last = offset;
    for (size_t d = 0; d < extents.size(); ++d) last += (extents[d] - 1) * strides[d];
    return size_t(last + 1);
  }
  std::byte *addressOf(size_t position) const {
    const reference::Shape at = reference::coordinatesOf(int64_t(position), extents);
    int64_t element = offset;
    for (size_t d = 0; d < at.size(); ++d) element += at[d] * strides[d];
    return data() + element * sizeOf(dtype);
  }

  DType dtype;
  std::vector<int64_t> extents, strides;
  int64_t offset;
  GuardedBuffer buffer;
};

/// What the device reads at launch: seed and step, as SPEC.md lays them out.
struct DropoutKey {
  uint64_t seed, step;
};

}  // namespace

LaunchResult launch(const Kernel &kernel, const Configuration &configuration,
                    const codegen::EmittedKernel &emitted, const HostKernel &host,
                    const std::vector<TensorValue> &arguments, DropoutBits bits, Schedule schedule,
                    std::optional<size_t> overwritten) {
  std::vector<std::shared_ptr<StoredTensor>> inputs, outputs;
  for (size_t n = 0; n < kernel.inputs.size(); ++n) {
    inputs.push_back(
        std::make_shared<StoredTensor>(kernel, kernel.inputs[n], configuration.inputs[n]));
    inputs.back()->write(arguments[n]);
  }
  for (size_t n = 0; n < kernel.outputs.size(); ++n)
    outputs.push_back(
        n == 0 && overwritten
            ? inputs[*overwritten]
            : std::make_shared<StoredTensor>(kernel, kernel.outputs[n], configuration.outputs[n]));

  const DropoutKey key{bits.seed, bits.step};
  std::map<int, uint64_t> reported;
  const GuardedBuffer workspace(size_t(emitted.launch.workspaceBytes));
  std::list<void *> pointers;
  std::list<uint32_t> numbers;
  std::vector<void *> addresses;
  const auto passPointer = [&](const void *pointer) {
    addresses.push_back(&pointers.emplace_back(const_cast<void *>(pointer)));
  };
  for (const codegen::Parameter &parameter : emitted.parameters) {
    switch (parameter.kind) {
      case codegen::Parameter::Kind::input: passPointer(inputs[parameter.index]->first()); break;
      case codegen::Parameter::Kind::output: passPointer(outputs[parameter.index]->first()); break;
      case codegen::Parameter::Kind::dropoutKey: passPointer(&key); break;
      case codegen::Parameter::Kind::status:
        passPointer(&reported.emplace(parameter.index, noElement).first->second);
        break;
      case codegen::Parameter::Kind::dropoutStream:
      case codegen::Parameter::Kind::dropoutOuter:
        addresses.push_back(&numbers.emplace_back(numberOf(parameter, kernel)));
        break;
      case codegen::Parameter::Kind::inputMap:
      case codegen::Parameter::Kind::outputMap:
        return {
            .error = fmt::format("'{}' is a map for TMA, which is not emulated", parameter.name),
            .outputs = {}};
      case codegen::Parameter::Kind::workspace: passPointer(workspace.bytes().data()); break;
    }
  }

  const GuardedBuffer dynamic(size_t(emitted.launch.sharedBytes));
  const Grid grid{.blocks = emitted.launch.grid,
                  .threads = emitted.launch.block,
                  .cluster = emitted.launch.cluster,
                  .shared = host.shared,
                  .dynamicShared = dynamic.bytes()};
  LaunchResult result{.error = run(grid, schedule, [&] { host.call(addresses.data()); }),
                      .outputs = {}};
  for (const auto &tensors : {&inputs, &outputs})
    for (size_t n = 0; n < tensors->size(); ++n)
      if (result.error.empty() && !(*tensors)[n]->intact())
        result.error =
            fmt::format("writes outside {} {}", tensors == &inputs ? "input" : "output", n);
  if (result.error.empty() && !workspace.intact()) result.error = "writes outside its workspace";
  for (size_t n = 0; n < arguments.size(); ++n)
    if (result.error.empty() && overwritten != n &&
        distance(inputs[n]->read(), arguments[n], 0, 0) != 0)
      result.error = fmt::format("changes input {}", n);
  result.reported = reported;
  for (const auto &output : outputs) result.outputs.push_back(output->read());
  return result;
}

}  // namespace weft::emulate
