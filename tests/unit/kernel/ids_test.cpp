// Indices into lists of a kernel: each is an int, and none is an index into another list.
#include "kernel/Kernel.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>
#include <set>
#include <type_traits>
#include <vector>

using namespace weft;

namespace {

template <typename A, typename B>
constexpr bool convert =
    std::is_convertible_v<A, B> || std::is_constructible_v<B, A> || std::is_assignable_v<B &, A>;
template <typename A, typename B>
constexpr bool compare = requires(A a, B b) {
  a == b;
}
|| requires(A a, B b) { a != b; };

template <typename A, typename B>
constexpr bool areApart = !convert<A, B> && !convert<B, A> && !compare<A, B> && !compare<B, A> &&
                          !convert<std::vector<A>, std::vector<B>>;

static_assert(areApart<AxisId, ValueId>);
static_assert(areApart<ValueId, OpId>);
static_assert(areApart<OpId, AxisId>);

// Of an int alone: what counts elements is none.
template <typename Index>
constexpr bool isMadeOfInt =
    std::is_convertible_v<int, Index> &&std::is_convertible_v<Index, int> &&
    !std::is_constructible_v<Index, int64_t> && !std::is_constructible_v<Index, size_t> &&
    compare<Index, int> && compare<Index, Index>;
static_assert(isMadeOfInt<AxisId> && isMadeOfInt<ValueId> && isMadeOfInt<OpId>);

// What takes one kind takes no other.
static_assert(std::is_invocable_v<decltype(&Kernel::elements), Kernel, ValueId>);
static_assert(!std::is_invocable_v<decltype(&Kernel::elements), Kernel, AxisId>);
static_assert(!std::is_invocable_v<decltype(&Kernel::bytes), Kernel, OpId>);

}  // namespace

TEST_CASE("an id is none until it is given, and reads as an int then") {
  const AxisId none;
  CHECK(none < 0);
  CHECK(none == -1);
  const AxisId axis = 2;
  CHECK(axis.index == 2);
  CHECK(axis + 1 == 3);
  CHECK(axis == AxisId(2));
  CHECK(axis != none);
}

TEST_CASE("ids index lists, are ordered and are found among others by an int") {
  const std::vector<std::string> names = {"b", "j", "k"};
  CHECK(names[AxisId(1)] == "j");

  std::vector<ValueId> values = {3, 1, 2};
  std::ranges::sort(values);
  CHECK(values == std::vector<ValueId>{1, 2, 3});
  const int wanted = 2;
  CHECK(std::ranges::find(values, wanted) == values.begin() + 1);
  CHECK(std::set<ValueId>(values.begin(), values.end()).contains(wanted));
  CHECK(std::accumulate(values.begin(), values.end(), 0) == 6);
}

TEST_CASE("a kernel's lists are read with the ids that it keeps") {
  Kernel kernel{.name = "row_sums",
                .axes = {{"j", 6}, {"i", 4}},
                .values = {{.name = "x", .axes = {0, 1}}, {.name = "y", .axes = {0}}},
                .inputs = {0},
                .outputs = {1},
                .body = {}};
  const ValueId x = kernel.inputs.front(), y = kernel.outputs.front();
  CHECK(kernel.elements(x) == 24);
  CHECK(kernel.elements(y) == 6);
  const AxisId fastest = kernel.values[x].axes.back();
  CHECK(kernel.axes[fastest].name == "i");
}
