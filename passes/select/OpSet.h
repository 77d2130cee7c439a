// A set of op indices of one problem, a map key.
//
// Invariant: the last word is not zero, so that equal sets have equal words.
#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::select {

class OpSet {
public:
  OpSet() = default;
  explicit OpSet(const std::vector<int> &ops) {
    for (int op : ops) insert(op);
  }
  static OpSet firstOps(int count) {
    OpSet set;
    for (int op = 0; op < count; ++op) set.insert(op);
    return set;
  }

  void insert(int op) {
    const std::size_t word = static_cast<std::size_t>(op) / 64;
    if (word >= words.size()) words.resize(word + 1);
    words[word] |= uint64_t(1) << (op % 64);
  }
  bool contains(int op) const {
    const std::size_t word = static_cast<std::size_t>(op) / 64;
    return word < words.size() && (words[word] >> (op % 64)) & 1;
  }
  bool containsAll(const OpSet &other) const {
    if (other.words.size() > words.size()) return false;
    for (std::size_t i = 0; i < other.words.size(); ++i)
      if (other.words[i] & ~words[i]) return false;
    return true;
  }
  bool intersects(const OpSet &other) const {
    for (std::size_t i = 0; i < std::min(words.size(), other.words.size()); ++i)
      if (words[i] & other.words[i]) return true;
    return false;
  }
  bool isEmpty() const { return words.empty(); }
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
    OpSet result = words.size() < other.words.size() ? other : *this;
    const OpSet &shorter = words.size() < other.words.size() ? *this : other;
    for (std::size_t i = 0; i < shorter.words.size(); ++i) result.words[i] |= shorter.words[i];
    return result;
  }
  OpSet operator-(const OpSet &other) const {
    OpSet result = *this;
    for (std::size_t i = 0; i < std::min(words.size(), other.words.size()); ++i)
      result.words[i] &= ~other.words[i];
    while (!result.words.empty() && result.words.back() == 0) result.words.pop_back();
    return result;
  }
  /// That it takes.
  std::size_t bytes() const { return sizeof(OpSet) + words.capacity() * sizeof(uint64_t); }
  auto operator<=>(const OpSet &) const = default;

private:
  std::vector<uint64_t> words;
};

}  // namespace weft::select
