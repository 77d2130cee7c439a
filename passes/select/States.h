// The states of one layer of the search: masks of layouts, one a tracked tensor, with the cheapest
// way there that is known.
//
// Invariant: all masks of a layer are equally long and stand one after another in one piece of
// memory; states are found by a table of their numbers with open addressing.
#pragma once

#include "passes/select/Outcomes.h"

#include <algorithm>
#include <span>
#include <string_view>

namespace weft::select {

struct State {
  int node = -1;
  double seconds = infinite;
};

/// Gathered in any order, then sorted by masks.
class States {
public:
  struct Entry {
    MaskView masks;
    State state;
  };

  /// Until the states are sorted, and until the next call.
  State &at(MaskView masks) {
    stride = masks.size();
    if (2 * (found.size() + 1) > slots.size()) grow();
    int &slot = slots[slotOf(masks)];
    if (slot < 0) {
      slot = static_cast<int>(found.size());
      bytes.insert(bytes.end(), masks.begin(), masks.end());
      found.emplace_back();
    }
    return found[static_cast<size_t>(slot)];
  }

  void sort() {
    sorted.reserve(found.size());
    for (size_t number = 0; number < found.size(); ++number)
      sorted.push_back({masksOf(number), found[number]});
    std::ranges::sort(sorted, [](const Entry &a, const Entry &b) {
      return std::ranges::lexicographical_compare(a.masks, b.masks);
    });
    slots = {};
    found = {};
  }
  const std::vector<Entry> &all() const { return sorted; }
  void keep(const std::vector<bool> &isKept) {
    size_t kept = 0;
    for (size_t i = 0; i < sorted.size(); ++i)
      if (isKept[i]) sorted[kept++] = sorted[i];
    sorted.resize(kept);
  }

private:
  MaskView masksOf(size_t number) const { return MaskView(bytes).subspan(number * stride, stride); }

  /// Where the masks stand, or where they would. The table's length is a power of two, and it has
  /// empty slots.
  size_t slotOf(MaskView masks) const {
    size_t slot = std::hash<std::string_view>()(
                      {reinterpret_cast<const char *>(masks.data()), masks.size()}) &
                  (slots.size() - 1);
    while (slots[slot] >= 0 &&
           !std::ranges::equal(masksOf(static_cast<size_t>(slots[slot])), masks))
      slot = (slot + 1) & (slots.size() - 1);
    return slot;
  }

  void grow() {
    slots.assign(std::max<size_t>(16, 2 * slots.size()), -1);
    for (size_t number = 0; number < found.size(); ++number)
      slots[slotOf(masksOf(number))] = static_cast<int>(number);
  }

  size_t stride = 0;
  std::vector<LayoutMask> bytes;
  std::vector<State> found;
  std::vector<int> slots;  ///< numbers of states; -1: empty
  std::vector<Entry> sorted;
};

}  // namespace weft::select
