// Loops over cases that are computed: if nothing is computed any more, the test fails instead of
// checking nothing.
#pragma once

#include <catch2/catch.hpp>

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft::test {

/// The range itself, to loop over. `tests/unit/test_rules` asks for it around every range that a
/// loop with checks computes.
template <typename Range>
Range nonEmpty(Range &&range) {
  INFO("the cases of a loop");
  REQUIRE(std::begin(range) != std::end(range));
  return std::forward<Range>(range);
}

/// Those of the range that the loop is about.
template <typename Range, typename Predicate>
auto nonEmpty(const Range &range, Predicate predicate) {
  std::vector<std::decay_t<decltype(*std::begin(range))>> chosen;
  std::copy_if(std::begin(range), std::end(range), std::back_inserter(chosen), predicate);
  return nonEmpty(std::move(chosen));
}

}  // namespace weft::test
