// The type of an emitted kernel's parameter. plan.json has its spelling in CUDA; no launch depends
// on it.
#pragma once

#include "kernel/DType.h"

#include <cstdint>
#include <string_view>

namespace weft {

struct ParameterType {
  enum class Kind : uint8_t {
    unknown,         ///< of a plan that spells it as no weft does today
    element,         ///< of a tensor or a workspace, by its address
    tensorMap,       ///< by value
    dropoutKey,      ///< by its address
    number,          ///< of 32 bits, by value
    argumentStatus,  ///< by its address
  };
  Kind kind = Kind::unknown;
  DType dtype = DType::f32;  ///< of Kind::element
  bool operator==(const ParameterType &) const = default;
};

/// Of the address of elements.
constexpr ParameterType elementsOf(DType dtype) {
  return {.kind = ParameterType::Kind::element, .dtype = dtype};
}

/// "weft::half", "weft::sm90::TensorMap", "unsigned"; empty where it is unknown.
std::string_view text(const ParameterType &type);
/// Unknown where text() prints no such thing.
ParameterType parseParameterType(std::string_view text);

}  // namespace weft
