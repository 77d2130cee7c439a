// Where the prices of a plan come from: what a cost model says of itself, and plans keep.
#pragma once

#include <string>
#include <string_view>

namespace weft {

struct PriceSource {
  std::string name;          ///< "shipped profile", "profile FILE", "analytic model of h200"
  std::string details = {};  ///< of a profile: "h200, 812 measurements"
  std::string remark = {};   ///< how other prices are made of these: " at 0.5 of the tokens ..."

  /// "shipped profile (h200, 812 measurements) at 0.5 of the tokens ..."
  std::string text() const;
  /// Of a text, as plan.json has it; one without measurements is a name.
  static PriceSource of(std::string_view text);

  bool operator==(const PriceSource &) const = default;
};

}  // namespace weft
