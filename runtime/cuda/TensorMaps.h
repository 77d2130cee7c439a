// The arguments of one launch: addresses, numbers, and maps of tensors for TMA, encoded
// by the driver.
#pragma once

#include "codegen/tma/TensorMap.h"
#include "runtime/cuda/Cuda.h"

#include <array>
#include <cstddef>
#include <deque>
#include <span>
#include <variant>
#include <vector>

namespace weft::runtime::cuda {

/// A map as the driver passes it to kernels: 128 bytes that depend on the tensor's address.
struct alignas(64) EncodedTensorMap {
  std::array<std::byte, 128> bytes{};
};
/// Throws Error(badInput) when the address is no multiple of tensorMapAlignment, DriverError when
/// the driver rejects the map.
EncodedTensorMap encode(const TensorMap &map, DevicePointer address);

/// Keeps the bytes of each argument until the launch has read them.
class ArgumentList {
public:
  void passPointer(DevicePointer pointer) { pass(pointer); }
  void passNumber(uint32_t number) { pass(number); }
  /// The map of a tensor whose element zero is at `address`.
  void passMap(const TensorMap &map, DevicePointer address) { pass(encode(map, address)); }
  std::span<void *const> span() const { return addresses; }

private:
  template <typename Value>
  void pass(const Value &value) {
    addresses.push_back(&std::get<Value>(values.emplace_back(value)));
  }
  std::deque<std::variant<DevicePointer, uint32_t, EncodedTensorMap>> values;
  std::vector<void *> addresses;
};

}  // namespace weft::runtime::cuda
