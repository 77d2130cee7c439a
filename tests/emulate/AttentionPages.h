// Tables of pages for fused attentions on the host: pages far from the order of the positions that
// they hold, entries that are none of the pages, and poison in all pages that no entry lists and
// behind the last position that a query sees.
#pragma once

#include "kernel/AttentionRegion.h"
#include "kernel/Pages.h"
#include "tests/emulate/AttentionPoison.h"

namespace weft::emulate {

/// Of a kernel whose keys lie in pages; `lengths`: positions of each sequence in front of its
/// queries, which run along the axis j. Nothing of any other kernel. The reference reads zeros in
/// the place of poison.
inline void fillPages(const Kernel &kernel, const std::vector<double> &lengths,
                      std::span<const std::unique_ptr<Tensor>> tensors,
                      PoisonStep step = PoisonStep::fill) {
  const AttentionRegion region = attentionRegion(kernel).value();
  if (!region.paged) return;
  const auto extent = [&](AxisId axis) { return kernel.axes[size_t(axis)].extent; };
  const int64_t pages = extent(region.paged->kPages), positions = extent(region.paged->kPositions),
                queries = std::ranges::find(kernel.axes, "j", &Axis::name)->extent;
  const Tensor &table = *tensors[region.paged->input];
  const ShuffledPages shuffled(table.extents[0], pages, 5);
  std::vector<int64_t> seen(size_t(pages), 0);  // positions of each that any query sees
  int64_t listed = 0;
  table.forEach([&](std::span<const int64_t> at) {
    const int64_t left = int64_t(lengths.at(size_t(at[0]))) + queries - at[1] * positions;
    const bool isNeeded = left > 0;
    const int64_t others[] = {-1, pages, int64_t(1) << 30};
    const int64_t page = isNeeded ? shuffled.page(listed++) : others[at[1] % 3];
    if (isNeeded) seen.at(size_t(page)) = std::min(left, positions);
    reference::storeElement(table.type, table.at(at), double(page));
  });
  REQUIRE(listed > 1);
  REQUIRE(std::ranges::count(seen, 0) > 0);
  const auto positionsAxis = [&](size_t input, AxisId axis) {
    const std::vector<AxisId> &axes = kernel.values[size_t(kernel.inputs[input])].axes;
    return size_t(std::ranges::find(axes, axis) - axes.begin());
  };
  for (const auto &[input, axis] : {std::pair(region.kInput, region.paged->kPositions),
                                    {region.vInput, region.paged->vPositions}}) {
    const Tensor &tensor = *tensors[input];
    const size_t along = positionsAxis(input, axis);
    tensor.forEach([&](std::span<const int64_t> at) {
      if (at[along] >= seen[size_t(at[0])])
        reference::storeElement(tensor.type, tensor.at(at),
                                step == PoisonStep::fill ? notNumber(at[0] + at[along]) : 0);
    });
  }
}

}  // namespace weft::emulate
