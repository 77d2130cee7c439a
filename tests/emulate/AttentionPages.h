// Tables of pages for fused attentions on the host: pages far from the order of the positions that
// they hold, entries that are none of the pages, and poison in all pages that no entry lists.
#pragma once

#include "kernel/AttentionRegion.h"
#include "kernel/Pages.h"
#include "tests/emulate/AttentionPoison.h"

namespace weft::emulate {

/// Of a kernel whose keys lie in pages; `lengths`: positions of each sequence in front of its
/// queries, which run along the axis j. Nothing of any other kernel.
inline void fillPages(const Kernel &kernel, const std::vector<double> &lengths,
                      std::span<const std::unique_ptr<Tensor>> tensors) {
  const AttentionRegion region = attentionRegion(kernel).value();
  if (!region.paged) return;
  const auto extent = [&](AxisId axis) { return kernel.axes[size_t(axis)].extent; };
  const int64_t pages = extent(region.paged->kPages), positions = extent(region.paged->kPositions),
                queries = std::ranges::find(kernel.axes, "j", &Axis::name)->extent;
  const Tensor &table = *tensors[region.paged->input];
  const ShuffledPages shuffled(table.extents[0], pages, 5);
  std::vector<bool> isListed(size_t(pages), false);
  int64_t turn = 0;
  table.forEach([&](std::span<const int64_t> at) {
    const bool isNeeded = double(at[1] * positions) < lengths.at(size_t(at[0])) + double(queries);
    const int64_t others[] = {-1, pages, int64_t(1) << 30};
    const int64_t page = isNeeded ? shuffled.page(turn++) : others[at[1] % 3];
    if (isNeeded) isListed.at(size_t(page)) = true;
    reference::storeElement(table.type, table.at(at), double(page));
  });
  REQUIRE(turn > 1);
  REQUIRE(std::ranges::count(isListed, false) > 0);
  for (const size_t input : {region.kInput, region.vInput}) {
    const Tensor &tensor = *tensors[input];
    tensor.forEach([&](std::span<const int64_t> at) {
      if (!isListed[size_t(at[0])])
        reference::storeElement(tensor.type, tensor.at(at), notNumber(at[0]));
    });
  }
}

}  // namespace weft::emulate
