#include "runtime/verify/TensorImage.h"

#include "kernel/reference/Rounding.h"
#include "kernel/reference/StoredElement.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace weft::runtime {
TensorImage::TensorImage(DType dtype, std::vector<int64_t> extentsGiven,
                         std::vector<int64_t> stridesGiven, int64_t offset)
    : dtype(dtype),
      extents(std::move(extentsGiven)),
      strides(std::move(stridesGiven)),
      zero(margin + offset * sizeOf(dtype)) {
  int64_t last = 0;
  for (size_t d = 0; d < extents.size(); ++d) last += (extents[d] - 1) * strides[d];
  storage.assign(size_t(zero + (last + 1) * sizeOf(dtype) + margin), poison);
}

TensorImage::TensorImage(const Kernel &kernel, ValueId value, const Layout &layout)
    : TensorImage(kernel.values[value].dtype, extentsOf(kernel, value),
                  stridesOf(layout, extentsOf(kernel, value)), layout.offset) {}

int64_t TensorImage::elements() const {
  int64_t count = 1;
  for (int64_t extent : extents) count *= extent;
  return count;
}

int64_t TensorImage::position(std::span<const int64_t> coordinates) const {
  int64_t element = 0;
  for (size_t d = 0; d < extents.size(); ++d) element += coordinates[d] * strides[d];
  return zero + element * sizeOf(dtype);
}

template <typename Visit>
void TensorImage::forEachElement(int64_t begin, int64_t end, Visit visit) const {
  std::vector<int64_t> at(extents.size());
  const int64_t size = sizeOf(dtype);
  int64_t rest = begin;
  for (size_t d = extents.size(); d-- > 0; rest /= extents[d]) at[d] = rest % extents[d];
  int64_t byte = position(at);
  for (int64_t n = begin; n < end; ++n) {
    visit(byte);
    for (size_t d = extents.size(); d-- > 0;) {
      byte += strides[d] * size;
      if (++at[d] < extents[d]) break;
      byte -= strides[d] * size * extents[d];
      at[d] = 0;
    }
  }
}

void TensorImage::fill(const std::function<double(int64_t)> &value, int threads) {
  const int64_t count = elements();
  const auto fillFrom = [&](int64_t begin, int64_t end) {
    int64_t n = begin;
    forEachElement(begin, end, [&](int64_t byte) {
      reference::storeElement(dtype, &storage[size_t(byte)], reference::roundTo(dtype, value(n++)));
    });
  };
  constexpr int64_t worthAThread = 1 << 18;
  const int64_t workers = std::clamp<int64_t>(count / worthAThread, 1, std::max(1, threads));
  std::vector<std::jthread> others;
  for (int64_t worker = 1; worker < workers; ++worker)
    others.emplace_back(fillFrom, count * worker / workers, count * (worker + 1) / workers);
  fillFrom(0, count / workers);
}

double TensorImage::at(std::span<const int64_t> coordinates) const {
  return reference::loadElement(dtype, &storage[size_t(position(coordinates))]);
}

void TensorImage::set(std::span<const int64_t> coordinates, double value) {
  reference::storeElement(dtype, &storage[size_t(position(coordinates))],
                          reference::roundTo(dtype, value));
}

void TensorImage::copyTo(std::span<std::byte> memory) const {
  if (isDense()) std::memcpy(memory.data(), &storage[size_t(zero)], size_t(spanBytes()));
  else
    forEachElement(0, elements(), [&](int64_t byte) {
      std::memcpy(&memory[size_t(byte - zero)], &storage[size_t(byte)], size_t(sizeOf(dtype)));
    });
}

void TensorImage::copyFrom(std::span<const std::byte> memory) {
  if (isDense()) std::memcpy(&storage[size_t(zero)], memory.data(), size_t(spanBytes()));
  else
    forEachElement(0, elements(), [&](int64_t byte) {
      std::memcpy(&storage[size_t(byte)], &memory[size_t(byte - zero)], size_t(sizeOf(dtype)));
    });
}

bool TensorImage::intactAround() const {
  const auto isPoison = [](std::byte byte) { return byte == poison; };
  const auto begin = storage.begin(), end = storage.end();
  if (!std::all_of(begin, begin + zero, isPoison) || !std::all_of(end - margin, end, isPoison))
    return false;
  if (isDense()) return true;
  std::vector<std::byte> others = storage;
  forEachElement(0, elements(),
                 [&](int64_t byte) { std::fill_n(others.begin() + byte, sizeOf(dtype), poison); });
  return std::all_of(others.begin(), others.end(), isPoison);
}

}  // namespace weft::runtime
