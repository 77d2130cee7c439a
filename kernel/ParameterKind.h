// What an argument of an emitted kernel is bound to at launch, for all who pass arguments:
// emission, plans, the runtime and measuring jobs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weft {

enum class ParameterKind : uint8_t {
  input,          ///< the address of an input's element zero
  output,         ///< likewise of an output's
  dropoutKey,     ///< the address of the key
  dropoutStream,  ///< the number of a dropout op
  dropoutOuter,   ///< rows of the outer axes before this chunk of the whole tensor
  inputMap,       ///< a tensor map of an input, passed by value
  outputMap,      ///< likewise of an output
  workspace,      ///< the address of memory that the launch works in (Family::workspaceBytes)
  status,         ///< the address of the word that says which element of an input is out of range
};

/// In the order of the enumeration, as plan.json and measuring jobs have them.
constexpr std::array<std::string_view, 9> parameterKindNames = {
    "input",    "output",    "dropoutKey", "dropoutStream", "dropoutOuter",
    "inputMap", "outputMap", "workspace",  "status"};
constexpr std::string_view nameOf(ParameterKind kind) {
  return parameterKindNames.at(static_cast<size_t>(kind));
}
/// Nothing for a name that no kind has.
std::optional<ParameterKind> parseParameterKind(std::string_view name);

/// Whether an argument is a 32-bit number and no address.
constexpr bool isNumber(ParameterKind kind) {
  return kind == ParameterKind::dropoutStream || kind == ParameterKind::dropoutOuter;
}
/// Whether an argument is a tensor map, passed by value.
constexpr bool isMap(ParameterKind kind) {
  return kind == ParameterKind::inputMap || kind == ParameterKind::outputMap;
}
/// Whether it leads to an input: by its address, or by a map of it.
constexpr bool isOfInput(ParameterKind kind) {
  return kind == ParameterKind::input || kind == ParameterKind::inputMap;
}
/// Whether it leads to an output.
constexpr bool isOfOutput(ParameterKind kind) {
  return kind == ParameterKind::output || kind == ParameterKind::outputMap;
}
/// Whether it is an address that the kernel writes to.
constexpr bool isWrittenTo(ParameterKind kind) {
  return kind == ParameterKind::output || kind == ParameterKind::workspace ||
         kind == ParameterKind::status;
}

}  // namespace weft
