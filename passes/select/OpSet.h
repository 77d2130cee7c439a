// A set of op indices of one problem, small enough to be a map key.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::select {

class OpSet {
public:
  static constexpr int capacity = 1024;

  OpSet() = default;
  explicit OpSet(const std::vector<int> &ops) {
    for (int op : ops) insert(op);
  }
  static OpSet firstOps(int count) {
    OpSet set;
    for (int op = 0; op < count; ++op) set.insert(op);
    return set;
  }

  void insert(int op) { words[static_cast<std::size_t>(op) / 64] |= uint64_t(1) << (op % 64); }
  bool contains(int op) const {
    return (words[static_cast<std::size_t>(op) / 64] >> (op % 64)) & 1;
  }
  bool containsAll(const OpSet &other) const {
    for (std::size_t i = 0; i < words.size(); ++i)
      if (other.words[i] & ~words[i]) return false;
    return true;
  }
  bool intersects(const OpSet &other) const {
    for (std::size_t i = 0; i < words.size(); ++i)
      if (words[i] & other.words[i]) return true;
    return false;
  }
  bool isEmpty() const { return *this == OpSet(); }
  int size() const {
    int count = 0;
    for (uint64_t word : words) count += std::popcount(word);
    return count;
  }
  /// The lowest member; -1 if there is none.
  int lowest() const {
    for (std::size_t i = 0; i < words.size(); ++i)
      if (words[i]) return static_cast<int>(i * 64) + std::countr_zero(words[i]);
    return -1;
  }
  /// Ascending.
  std::vector<int> members() const {
    std::vector<int> found;
    for (std::size_t i = 0; i < words.size(); ++i)
      for (uint64_t rest = words[i]; rest; rest &= rest - 1)
        found.push_back(static_cast<int>(i * 64) + std::countr_zero(rest));
    return found;
  }
  OpSet operator|(const OpSet &other) const {
    return combined(other, [](uint64_t a, uint64_t b) { return a | b; });
  }
  OpSet operator-(const OpSet &other) const {
    return combined(other, [](uint64_t a, uint64_t b) { return a & ~b; });
  }
  auto operator<=>(const OpSet &) const = default;

private:
  template <typename Combine>
  OpSet combined(const OpSet &other, Combine combine) const {
    OpSet result;
    for (std::size_t i = 0; i < words.size(); ++i)
      result.words[i] = combine(words[i], other.words[i]);
    return result;
  }
  std::array<uint64_t, capacity / 64> words{};
};

}  // namespace weft::select
