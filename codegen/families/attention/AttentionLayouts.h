// The layouts under which families offer a fused attention: elements of a head are neighbours, and
// all other axes stand in any order.
#pragma once

#include "kernel/AttentionRegion.h"
#include "kernel/Family.h"

#include <vector>

namespace weft {

/// Layouts of queries, keys, values and output with the head or value dimension fastest, of the
/// logarithms of sums and of inputs of score ops in every order; in the order of the kernel's
/// operands. Of more than `mostAttentionTuples` combinations, first inputs of score ops have their
/// logical order and logarithms of sums that of rows alone, then queries and output keep most of
/// their axes in logical order, then keys and values lie alike. Sorted, without duplicates.
std::vector<LayoutTuple> attentionTuples(const Kernel &kernel, const AttentionRegion &region);
constexpr size_t mostAttentionTuples = 5000;

// What lists of layouts are made of.

using LayoutChoices = std::vector<std::vector<Layout>>;  ///< by operand
double combinations(const LayoutChoices &choices);
/// The axes longer than 1 of a value, slowest first.
std::vector<AxisId> longAxes(const Kernel &kernel, ValueId value, const Layout &layout);
/// Those of all distinct layouts whose fastest axis is one of `columns`, where one of these is
/// longer than 1.
std::vector<Layout> withFastest(const Kernel &kernel, ValueId value,
                                const std::vector<AxisId> &columns);
/// Its dimensions in their order.
Layout logicalLayout(const Kernel &kernel, ValueId value);
/// Of a value with one element for every row of scores these as families number rows
/// (attentionRowAxes), which attention-sm90 asks for; of others the logical layout.
Layout plainLayout(const Kernel &kernel, const AttentionRegion &region, ValueId value);
/// Whether the axes that two operands share, `a` and `b` by longAxes(), stand in the same order.
bool lieAlike(const std::vector<AxisId> &a, const std::vector<AxisId> &b);

}  // namespace weft
