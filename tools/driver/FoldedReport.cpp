// Placing what report.json says of parts; see FoldedReport.h.
#include "tools/driver/FoldedReport.h"

#include "kernel/Error.h"
#include "kernel/LayerNames.h"

#include <algorithm>
#include <string>

namespace weft::driver {
namespace {

using nlohmann::json;

const json &listOf(const json &object, const char *member) {
  static const json none = json::array();
  const auto found = object.find(member);
  return found == object.end() ? none : *found;
}

/// A place of a part in the whole.
class Place {
public:
  explicit Place(const json &place)
      : ops(place.at("ops").get<std::vector<int>>()),
        arguments(place.at("arguments").get<std::vector<std::string>>()),
        shift(place.at("shift").get<int64_t>()) {}

  /// An op of the part, as a number within it.
  size_t numberOf(const json &op) const {
    const auto number = op.get<int64_t>();
    if (number < 0 || size_t(number) >= ops.size())
      throw Error::badInput("report.json: parts: op {} of a part that has {} where it is placed",
                            number, ops.size());
    return size_t(number);
  }
  void place(json &text) const {
    if (text.is_string()) text = placedText(text.get<std::string>(), arguments, shift);
  }
  void placeAll(json &texts) const {
    for (json &text : texts) place(text);
  }
  void placeOps(json &record) const {
    for (json &op : record.at("ops")) op = ops[numberOf(op)];
  }

  std::vector<int> ops;  ///< of the whole, by the part's numbers

private:
  std::vector<std::string> arguments;  ///< names in the whole, by position
  int64_t shift = 0;                   ///< of its layers' numbers
};

/// Calls `take` with each part and each of its places.
template <typename Take>
void forEachPlace(const json &report, const Take &take) {
  for (const json &part : listOf(report, "parts"))
    for (const json &place : listOf(part, "placed")) take(part, Place(place));
}

json placedRecord(json record, const Place &place) {
  place.placeOps(record);
  for (const char *member : {"opNames", "steps"})
    if (record.contains(member)) place.placeAll(record[member]);
  if (record.contains("detail")) place.place(record["detail"]);
  return record;
}

json placedPrice(json price, const Place &place) {
  place.placeOps(price);
  if (price.contains("option")) place.place(price["option"]);
  for (const char *steps : {"steps", "otherSteps"})
    if (price.contains(steps))
      for (json &step : price[steps]) place.place(step.at("step"));
  return price;
}

}  // namespace

std::vector<json> fusionsBetween(const json &report, const std::set<int> &a,
                                 const std::set<int> &b) {
  std::vector<json> found;
  for (const json &record : listOf(report, "fusions")) {
    const auto meets = [&](const std::set<int> &asked) {
      return std::ranges::any_of(record.at("ops"),
                                 [&](const json &op) { return asked.contains(op.get<int>()); });
    };
    if (meets(a) && meets(b)) found.push_back(record);
  }
  forEachPlace(report, [&](const json &part, const Place &place) {
    const auto within = [&](const std::set<int> &asked) {
      std::vector<bool> asks(place.ops.size());
      for (size_t op = 0; op < place.ops.size(); ++op) asks[op] = asked.contains(place.ops[op]);
      return asks;
    };
    const std::vector<bool> ofA = within(a), ofB = within(b);
    if (std::ranges::count(ofA, true) == 0 || std::ranges::count(ofB, true) == 0) return;
    for (const json &record : listOf(part, "fusions")) {
      const auto meets = [&](const std::vector<bool> &asks) {
        return std::ranges::any_of(record.at("ops"),
                                   [&](const json &op) { return asks[place.numberOf(op)]; });
      };
      if (meets(ofA) && meets(ofB)) found.push_back(placedRecord(record, place));
    }
  });
  return found;
}

json fusionPricesOf(const json &report) {
  json all = listOf(report, "fusionPrices");
  forEachPlace(report, [&](const json &part, const Place &place) {
    for (const json &price : listOf(part, "fusionPrices")) all.push_back(placedPrice(price, place));
  });
  return all;
}

}  // namespace weft::driver
