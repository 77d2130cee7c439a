// What a graph's entry points are for: which pass of a training step the ops behind one belong to.
// A plan names its entry points (Plan::entryPoints), which callers ask for by these names.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace weft {

/// In the order in which they are called.
enum class EntryPointKind : uint8_t {
  forward,   ///< returns the graph's own results
  backward,  ///< returns gradients
  update,    ///< returns next values of parameters
};
constexpr std::string_view nameOf(EntryPointKind kind) {
  constexpr std::array<std::string_view, 3> names = {"forward", "backward", "update"};
  return names.at(static_cast<size_t>(kind));
}

}  // namespace weft
