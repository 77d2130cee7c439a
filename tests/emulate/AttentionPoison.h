// Operands of fused attentions that hold no numbers where no result may depend on them.
#pragma once

#include "kernel/Error.h"
#include "tests/emulate/EmittedRun.h"

#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace weft::emulate {

/// What memory may hold that is no number, by turns along positions: what stops one of the two may
/// let the other through.
inline double notNumber(int64_t position) {
  return position % 2 == 0 ? std::numeric_limits<double>::quiet_NaN()
                           : std::numeric_limits<double>::infinity();
}

/// A coordinate of an element along the axis of that letter.
using CoordinateOf = std::function<int64_t(char axis)>;

/// Inputs, by name, whose elements are no numbers at some positions along an axis of a batch
/// element.
struct Poison {
  std::vector<std::string> inputs = {};
  char axis = 'k';
  std::function<bool(int64_t batchElement, int64_t position)> isHeld = {};
  /// Elements of results that it may reach; without it no element.
  std::function<bool(std::string_view output, const CoordinateOf &at)> mayReach = {};
};

inline CoordinateOf coordinatesOf(const Kernel &kernel, ValueId value,
                                  std::span<const int64_t> at) {
  return [&axes = kernel.axes, &own = kernel.values[size_t(value)].axes, at](char letter) {
    for (size_t d = 0; d < own.size(); ++d)
      if (axes[size_t(own[d])].name[0] == letter) return at[d];
    throw Error::checkFailed("no axis {}", letter);
  };
}

/// Poisons these elements, or makes them zeros again for the reference.
enum class PoisonStep { fill, remove };
inline void applyPoison(const Kernel &kernel, const Poison &poison, PoisonStep step,
                        std::span<const std::unique_ptr<Tensor>> tensors) {
  for (size_t input = 0; input < kernel.inputs.size(); ++input) {
    const ValueId value = kernel.inputs[input];
    const std::string &name = kernel.values[size_t(value)].name;
    if (std::ranges::find(poison.inputs, name) == poison.inputs.end()) continue;
    const Tensor &tensor = *tensors[input];
    bool isAnyHeld = false;
    tensor.forEach([&](std::span<const int64_t> place) {
      const CoordinateOf at = coordinatesOf(kernel, value, place);
      const int64_t position = at(poison.axis);
      if (!poison.isHeld(at('b'), position)) return;
      isAnyHeld = true;
      reference::storeElement(tensor.type, tensor.at(place),
                              step == PoisonStep::fill ? notNumber(position) : 0);
    });
    REQUIRE(isAnyHeld);
  }
}

/// For checkEmitted().
inline MayDiffer mayDiffer(const Kernel &kernel, const Poison &poison) {
  if (!poison.mayReach) return {};
  return [&kernel, &poison](size_t output, std::span<const int64_t> place) {
    const ValueId value = kernel.outputs[output];
    return poison.mayReach(kernel.values[size_t(value)].name, coordinatesOf(kernel, value, place));
  };
}

/// Keys and values behind counts of the batch elements, which no query sees.
inline Poison keysBehind(const std::vector<int64_t> &counts) {
  return {.inputs = {"keys", "v"},
          .isHeld = [=](int64_t b, int64_t key) { return key >= counts.at(size_t(b)); }};
}

/// Keys and values of a range, where no kernel reads them.
inline Poison unreadKeys(int64_t first, int64_t end) {
  return {.inputs = {"keys", "v"},
          .isHeld = [=](int64_t, int64_t key) { return key >= first && key < end; }};
}

}  // namespace weft::emulate
