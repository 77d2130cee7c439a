// Strided copies between memory order and logical order; see TensorLayout.h.
#include "plan/TensorLayout.h"

#include "kernel/Error.h"

#include <cstring>

namespace weft {

namespace {

/// Calls copy(logical element, memory element) for every element, in logical order.
template <typename Copy>
void forEachElement(const PlanTensor &tensor, Copy &&copy) {
  const size_t rank = tensor.extents.size();
  const int64_t inner = rank == 0 ? 1 : tensor.extents.back();
  const int64_t innerStride = rank == 0 ? 0 : tensor.strides.back();
  std::vector<int64_t> index(rank, 0);
  int64_t place = 0;
  for (int64_t logical = 0, count = elementCount(tensor); logical < count; logical += inner) {
    for (int64_t i = 0; i < inner; ++i) copy(logical + i, place + i * innerStride);
    for (size_t axis = rank - std::min<size_t>(rank, 1); axis-- > 0;) {
      place += tensor.strides[axis];
      if (++index[axis] < tensor.extents[axis]) break;
      place -= tensor.strides[axis] * tensor.extents[axis];
      index[axis] = 0;
    }
  }
}

template <size_t bytes>
void copyElements(const PlanTensor &tensor, std::byte *logical, std::byte *memory, bool toMemory) {
  forEachElement(tensor, [&](int64_t from, int64_t to) {
    std::byte *const a = logical + from * int64_t(bytes), *const b = memory + to * int64_t(bytes);
    if (toMemory) std::memcpy(b, a, bytes);
    else std::memcpy(a, b, bytes);
  });
}

void copyAll(const PlanTensor &tensor, std::byte *logical, std::byte *memory, bool toMemory) {
  if (isRowMajor(tensor)) {
    if (toMemory) std::memcpy(memory, logical, size_t(logicalBytes(tensor)));
    else std::memcpy(logical, memory, size_t(logicalBytes(tensor)));
    return;
  }
  switch (elementBytes(tensor)) {
    case 1: return copyElements<1>(tensor, logical, memory, toMemory);
    case 2: return copyElements<2>(tensor, logical, memory, toMemory);
    case 4: return copyElements<4>(tensor, logical, memory, toMemory);
    default: return copyElements<8>(tensor, logical, memory, toMemory);
  }
}

void requireBytes(const PlanTensor &tensor, size_t logical, size_t memory) {
  if (int64_t(logical) != logicalBytes(tensor))
    throw Error::badInput("tensor '{}' holds {} bytes, {} were given", tensor.name,
                          logicalBytes(tensor), logical);
  if (int64_t(memory) < spanBytes(tensor))
    throw Error::checkFailed("tensor '{}' takes {} bytes in memory, there are {}", tensor.name,
                             spanBytes(tensor), memory);
}

}  // namespace

int64_t elementCount(const PlanTensor &tensor) {
  int64_t count = 1;
  for (const int64_t extent : tensor.extents) count *= extent;
  return count;
}

int64_t elementBytes(const PlanTensor &tensor) { return sizeOf(tensor.dtype); }

int64_t logicalBytes(const PlanTensor &tensor) {
  return elementCount(tensor) * elementBytes(tensor);
}

int64_t spanBytes(const PlanTensor &tensor) {
  int64_t last = 0;
  for (size_t axis = 0; axis < tensor.extents.size(); ++axis)
    last += (tensor.extents[axis] - 1) * tensor.strides[axis];
  return (last + 1) * elementBytes(tensor);
}

bool isRowMajor(const PlanTensor &tensor) {
  int64_t stride = 1;
  for (size_t axis = tensor.extents.size(); axis-- > 0;) {
    if (tensor.extents[axis] > 1 && tensor.strides[axis] != stride) return false;
    stride *= tensor.extents[axis];
  }
  return true;
}

void scatter(const PlanTensor &tensor, std::span<const std::byte> logical,
             std::span<std::byte> memory) {
  requireBytes(tensor, logical.size(), memory.size());
  copyAll(tensor, const_cast<std::byte *>(logical.data()), memory.data(), true);
}

void gather(const PlanTensor &tensor, std::span<const std::byte> memory,
            std::span<std::byte> logical) {
  requireBytes(tensor, logical.size(), memory.size());
  copyAll(tensor, logical.data(), const_cast<std::byte *>(memory.data()), false);
}

}  // namespace weft
