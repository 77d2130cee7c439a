// Statements of inline PTX as the emulator calls them, once sources are translated
// (TranslatePtx.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <type_traits>

namespace weft::emulate {

/// A register of inline PTX: what it holds, and where it is written to, if it is.
struct PtxOperand {
  int64_t value = 0;
  void *address = nullptr;
  size_t size = 0;
};
template <typename T>
PtxOperand ptxInput(const T &value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(int64_t));
  PtxOperand operand{.size = sizeof(T)};
  if constexpr (std::is_integral_v<T>) operand.value = int64_t(value);
  else std::memcpy(&operand.value, &value, sizeof(T));
  return operand;
}
template <typename T>
PtxOperand ptxOutput(T &value) {
  return {.address = &value, .size = sizeof(T)};
}

struct PtxInstruction;

/// One statement; what instructions do: Ptx.cpp.
class PtxStatement {
public:
  explicit PtxStatement(const char *text);
  ~PtxStatement();
  PtxStatement(const PtxStatement &) = delete;
  PtxStatement &operator=(const PtxStatement &) = delete;
  void operator()(std::initializer_list<PtxOperand> operands, const char *file, int line) const;

private:
  const PtxInstruction *instruction;
};

}  // namespace weft::emulate
