// What report.json says of a model that was decided by parts, where it stands in the whole: records
// of fusions and prices of other choices are kept once for each distinct part, in the part's
// numbers and names, with every place where the part stands. No MLIR.
//
// Invariant: a reader that asks here sees what a report without parts would list, in the order of
// the parts, and of each part in the order of its places.
#pragma once

#include <nlohmann/json.hpp>

#include <set>
#include <vector>

namespace weft::driver {

/// Records of attempts to fuse that have an op of both. Those of parts are placed: ops by the
/// numbers of the whole, names and details as they are there.
std::vector<nlohmann::json> fusionsBetween(const nlohmann::json &report, const std::set<int> &a,
                                           const std::set<int> &b);

/// `fusionPrices`, of parts for every place.
nlohmann::json fusionPricesOf(const nlohmann::json &report);

}  // namespace weft::driver
