// Sets of saved tensors that are tried; see Recomputations.h.
#include "passes/decide/Recomputations.h"

#include <cstddef>
#include <set>
#include <utility>

namespace weft::decision {
namespace {

constexpr size_t mostWithAllSubsets = 3;

}  // namespace

std::vector<std::vector<std::string>> recomputedSets(
    const std::vector<std::vector<std::string>> &chains) {
  std::set<std::vector<std::string>> sets;
  const auto add = [&](const auto &isIn) {
    std::vector<std::string> names;
    for (size_t chain = 0; chain < chains.size(); ++chain)
      if (isIn(chain)) names.insert(names.end(), chains[chain].begin(), chains[chain].end());
    if (!names.empty()) sets.insert(std::move(names));
  };
  if (chains.size() <= mostWithAllSubsets)
    for (size_t subset = 1; subset < size_t(1) << chains.size(); ++subset)
      add([&](size_t chain) { return subset >> chain & 1; });
  else
    for (size_t last = 0; last < chains.size(); ++last) {
      add([&](size_t chain) { return chain == last; });
      add([&](size_t chain) { return chain <= last; });
      add([&](size_t chain) { return chain == 0 || chain == last; });
    }
  return {sets.begin(), sets.end()};
}

}  // namespace weft::decision
