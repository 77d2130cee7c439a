// Emitted kernels with inputs of known elements in guarded memory, every element of their outputs
// compared with fp64. Outputs and workspaces are poisoned.
#pragma once

#include "codegen/Emit.h"
#include "kernel/Append.h"
#include "kernel/ArgumentStatus.h"
#include "kernel/ContractionRegion.h"
#include "kernel/reference/PointEvaluator.h"
#include "kernel/reference/StoredElement.h"
#include "passes/configure/Family.h"
#include "passes/configure/StridedViews.h"
#include "tests/emulate/EmulatedMap.h"
#include "tests/emulate/Emulator.h"
#include "tests/emulate/GuardedBuffer.h"
#include "tests/emulate/HostCompiler.h"
#include "tests/unit/samples/SampleSoftmaxes.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace weft::emulate {

/// Multiples of 1 / 16, zeros among them; or odd multiples of 1 / 32, for kernels that divide; or
/// numbers from 64 on, for sums of squares.
inline double elementOf(size_t input, int64_t place, bool hasZeros, bool isOfSquares) {
  const int64_t number = (place * 7 + int64_t(input) * 5 + place / 11) % 31;
  return isOfSquares ? double(64 + number)
         : hasZeros  ? double(number - 15) / 16
                     : double(2 * number - 31) / 32;
}

/// A tensor in memory under its layout.
class Tensor {
public:
  Tensor(const Kernel &kernel, ValueId value, const Layout &layout)
      : type(kernel.values[size_t(value)].dtype),
        extents(extentsOf(kernel, value)),
        strides(stridesOf(layout, extents)),
        buffer(size_t(spanBytes(kernel, value, layout))) {}

  std::byte *at(std::span<const int64_t> coordinates) const {
    int64_t offset = 0;
    for (size_t d = 0; d < strides.size(); ++d) offset += coordinates[d] * strides[d];
    return &buffer.bytes()[size_t(offset * sizeOf(type))];
  }
  void fillMask() const {
    forEach([&](std::span<const int64_t> coordinates) {
      reference::storeElement(
          type, at(coordinates),
          samples::isSeen(coordinates.back()) ? 0.0 : -std::numeric_limits<double>::infinity());
    });
  }
  /// Integers are lengths: none, some, more than there are.
  void fill(size_t input, bool hasZeros = true, bool isOfSquares = false) const {
    int64_t place = 0;
    forEach([&](std::span<const int64_t> coordinates) {
      const double element = type == DType::i32 ? double((place++ * 61 + 23) % 107)
                                                : elementOf(input, place++, hasZeros, isOfSquares);
      reference::storeElement(type, at(coordinates), element);
    });
  }
  double operator()(std::span<const int64_t> coordinates) const {
    return reference::loadElement(type, at(coordinates));
  }
  template <typename Visit>
  void forEach(Visit visit) const {
    std::vector<int64_t> coordinates(extents.size());
    while (true) {
      visit(std::span<const int64_t>(coordinates));
      size_t d = extents.size();
      while (d > 0 && ++coordinates[d - 1] == extents[d - 1]) coordinates[--d] = 0;
      if (d == 0) return;
    }
  }
  const DType type;
  const std::vector<int64_t> extents, strides;
  const GuardedBuffer buffer;
};

/// Elements of outputs that may be anything.
using MayDiffer = std::function<bool(size_t output, std::span<const int64_t> at)>;

/// Every element of every output against fp64.
inline int64_t countWrong(const Kernel &kernel, const std::vector<std::unique_ptr<Tensor>> &tensors,
                          const reference::DropoutSource &source, const MayDiffer &mayDiffer = {}) {
  std::vector<reference::ElementReader> readers;
  for (size_t i = 0; i < kernel.inputs.size(); ++i)
    readers.push_back(
        [tensor = tensors[i].get()](std::span<const int64_t> at) { return (*tensor)(at); });
  reference::PointEvaluator evaluator(kernel, readers, source);
  int64_t wrong = 0;
  for (size_t output = 0; output < kernel.outputs.size(); ++output) {
    const Tensor &tensor = *tensors[kernel.inputs.size() + output];
    tensor.forEach([&](std::span<const int64_t> at) {
      if (mayDiffer && mayDiffer(output, at)) return;
      wrong += reference::agrees(tensor(at), evaluator.output(output, at), tensor.type) ? 0 : 1;
    });
  }
  return wrong;
}

/// Fills an input, or leaves it to the caller.
using FillInput = std::function<bool(size_t input, const Tensor &tensor)>;
/// Changes inputs, all of which are filled: what depends on others.
using FillRest = std::function<void(std::span<const std::unique_ptr<Tensor>> tensors)>;

/// Launches twice in one module and compares the bits; then with fp64. `restore` changes inputs
/// between the two, back to numbers: what a launch must not have read.
inline void checkEmitted(const Kernel &kernel, const Configuration &configuration,
                         const codegen::EmittedKernel &emitted, const HostKernel &host,
                         const std::array<int64_t, 3> &blocks,
                         const std::array<int64_t, 3> &threads, const FillInput &fill = {},
                         const FillRest &fillRest = {}, const FillRest &restore = {},
                         const MayDiffer &mayDiffer = {}) {
  const Expected<ContractionRegion, Reason> region = contractionRegion(kernel);
  const bool isTransformed = region && region->prologue;
  std::vector<std::unique_ptr<Tensor>> tensors;
  for (size_t i = 0; i < kernel.inputs.size(); ++i) {
    tensors.push_back(std::make_unique<Tensor>(kernel, kernel.inputs[i], configuration.inputs[i]));
    const std::string &name = kernel.values[size_t(kernel.inputs[i])].name;
    if (fill && fill(i, *tensors.back())) continue;
    if (name == "mask") tensors.back()->fillMask();
    else tensors.back()->fill(i, !isTransformed, name == "squares");
  }
  if (fillRest) fillRest(tensors);
  for (size_t i = 0; i < kernel.outputs.size(); ++i)
    tensors.push_back(
        std::make_unique<Tensor>(kernel, kernel.outputs[i], configuration.outputs[i]));
  // What is appended lies in the cache, whose other elements stay.
  const BodyOp *const append = appendOf(kernel);
  const size_t cache =
      append ? size_t(std::ranges::find(kernel.inputs, append->operands[appendedCache]) -
                      kernel.inputs.begin())
             : 0;
  const uint64_t key[2] = {11, 5};
  const void *keyPointer = key;
  uint32_t stream = 3;
  uint64_t reported = noElement;
  void *reportedPointer = &reported;
  const GuardedBuffer workspace(size_t(emitted.launch.workspaceBytes));
  void *workspacePointer = workspace.bytes().data();
  std::vector<EmulatedMap> maps(emitted.parameters.size());
  std::vector<void *> pointers(emitted.parameters.size()), arguments;
  for (size_t p = 0; p < pointers.size(); ++p) {
    const codegen::Parameter &parameter = emitted.parameters[p];
    const bool isInput = parameter.kind == codegen::Parameter::Kind::input ||
                         parameter.kind == codegen::Parameter::Kind::inputMap;
    if (parameter.kind == codegen::Parameter::Kind::dropoutKey) arguments.push_back(&keyPointer);
    else if (parameter.kind == codegen::Parameter::Kind::status)
      arguments.push_back(&reportedPointer);
    else if (isNumber(parameter.kind)) arguments.push_back(&stream);
    else if (parameter.kind == codegen::Parameter::Kind::workspace)
      arguments.push_back(&workspacePointer);
    else {
      const size_t tensor = isInput  ? size_t(parameter.index)
                            : append ? cache
                                     : size_t(parameter.index) + kernel.inputs.size();
      std::byte *start = tensors[tensor]->buffer.bytes().data();
      pointers[p] = start;
      if (const auto &map = parameter.map) maps[p] = EmulatedMap(start, *map);
      arguments.push_back(parameter.map ? static_cast<void *>(&maps[p]) : &pointers[p]);
    }
  }
  const GuardedBuffer dynamic(size_t(emitted.launch.sharedBytes));
  const Grid grid{.blocks = blocks,
                  .threads = threads,
                  .cluster = emitted.launch.sharedBytes > 0 ? 1 : emitted.launch.cluster,
                  .shared = host.shared,
                  .dynamicShared = dynamic.bytes()};
  std::vector<std::vector<std::byte>> first;
  for (const Schedule schedule : {Schedule::ascending, Schedule::descending}) {
    for (size_t i = 0; i < kernel.outputs.size(); ++i)
      std::ranges::fill(tensors[kernel.inputs.size() + i]->buffer.bytes(), std::byte{0xFF});
    std::ranges::fill(workspace.bytes(), std::byte{0xFF});
    REQUIRE(run(grid, schedule, [&] { host.call(arguments.data()); }) == "");
    for (size_t i = 0; i < kernel.outputs.size(); ++i) {
      const std::span<std::byte> bytes = tensors[kernel.inputs.size() + i]->buffer.bytes();
      if (append) std::ranges::copy(tensors[cache]->buffer.bytes(), bytes.begin());
      if (schedule == Schedule::ascending) first.emplace_back(bytes.begin(), bytes.end());
      else CHECK(std::ranges::equal(first[i], bytes));
    }
  }
  if (restore) restore(tensors);
  CHECK(countWrong(kernel, tensors, {.seed = 11, .step = 5}, mayDiffer) == 0);
  for (const auto &tensor : tensors) CHECK(tensor->buffer.intact());
  CHECK(workspace.intact());
  CHECK(dynamic.intact());
}

}  // namespace weft::emulate
