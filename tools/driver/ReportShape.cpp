// One table of members and their types; see ReportShape.h.
#include "tools/driver/ReportShape.h"

#include "kernel/Error.h"

#include <string_view>

namespace weft::driver {
namespace {

using nlohmann::json;

enum class Type { text, integer, number, truth, object, opIndex, textOrNull, numberOrNull };
using enum Type;

struct Row {
  const char *path;  ///< "[]": every item; "{}": every member; a name behind "." must be there, but
                     ///< for "?", and for those of the report itself
  Type type;
};

constexpr Row rows[] = {
    {"numbers{}.ops[]", integer},
    {"numbers{}.values[]", integer},
    {"numbers{}.names[]", text},
    {"lowerBound", number},
    {"freeWorkspace", number},
    {"memoryTrade.allowedShare", number},
    {"memoryTrade.slowerShare", number},
    {"memoryTrade.bytesLess", integer},
    {"rooflineSeconds", number},
    {"lengths.asked", text},
    {"lengths.tokens", number},
    {"lengths.pairs", number},
    {"lengths.fullSeconds", number},
    {"lengths.?padded.?graphSeconds", number},
    {"lengths.?padded.?why", text},
    {"stages{}", text},
    {"generated{}", text},
    {"fusionNotes{}[]", text},
    {"opLabels[]", text},
    {"kernelOps{}[]", opIndex},
    {"variants[].name", text},
    {"variants[].chosen", truth},
    {"variants[].?seconds", number},
    {"variants[].?lowerBound", number},
    {"variants[].?noPlan", text},
    {"variants[].?withoutPins", number},
    {"parts[].variants[].name", text},
    {"parts[].variants[].chosen", truth},
    {"parts[].variants[].?seconds", number},
    {"parts[].variants[].?lowerBound", number},
    {"parts[].variants[].?noPlan", text},
    {"parts[].variants[].?withoutPins", number},
    {"parts[].first", text},
    {"parts[].last", text},
    {"parts[].layers[]", integer},
    {"parts[].?fusions[].ops[]", integer},
    {"parts[].?fusions[].accepted", truth},
    {"parts[].?fusions[].pattern", text},
    {"parts[].?fusions[].code", text},
    {"parts[].?fusions[].reason", text},
    {"parts[].?fusions[].detail", text},
    {"parts[].?fusions[].savedBytes", integer},
    {"parts[].?fusions[].savedSeconds", number},
    {"parts[].?fusionPrices[].ops[]", integer},
    {"parts[].?fusionPrices[].fused", truth},
    {"parts[].?fusionPrices[].lossOfOther", numberOrNull},
    {"parts[].?fusionPrices[].?option", text},
    {"parts[].?fusionPrices[].?whyNone", textOrNull},
    {"parts[].?fusionPrices[].?steps[].step", text},
    {"parts[].?fusionPrices[].?steps[].seconds", number},
    {"parts[].?fusionPrices[].?steps[].measured", truth},
    {"parts[].?fusionPrices[].?otherSteps[].step", text},
    {"parts[].?fusionPrices[].?otherSteps[].seconds", number},
    {"parts[].?fusionPrices[].?otherSteps[].measured", truth},
    {"parts[].?placed[].ops[]", opIndex},
    {"parts[].?placed[].arguments[]", text},
    {"parts[].?placed[].shift", integer},
    {"alternatives[].loss", number},
    {"alternatives[].different[]", text},
    {"fusions[].ops[]", opIndex},
    {"fusions[].accepted", truth},
    {"fusions[].pattern", text},
    {"fusions[].code", text},
    {"fusions[].reason", text},
    {"fusions[].detail", text},
    {"fusions[].savedBytes", integer},
    {"fusions[].savedSeconds", number},
    {"stackings[].opNames[]", text},
    {"stackings[].accepted", truth},
    {"stackings[].code", text},
    {"stackings[].reason", text},
    {"stackings[].detail", text},
    {"stackings[].pattern", text},
    {"stackings[].savedBytes", integer},
    {"stackings[].savedSeconds", number},
    {"fusionPrices[].ops[]", opIndex},
    {"fusionPrices[].fused", truth},
    {"fusionPrices[].lossOfOther", numberOrNull},
    {"fusionPrices[].?option", text},
    {"fusionPrices[].?whyNone", textOrNull},
    {"fusionPrices[].?steps[].step", text},
    {"fusionPrices[].?steps[].seconds", number},
    {"fusionPrices[].?steps[].measured", truth},
    {"fusionPrices[].?otherSteps[].step", text},
    {"fusionPrices[].?otherSteps[].seconds", number},
    {"fusionPrices[].?otherSteps[].measured", truth},
    {"layoutChange.tensor", text},
    {"layoutChange.layout", text},
    {"layoutChange.other", text},
    {"layoutChange.?graphSeconds", number},
    {"layoutChange.workspaceBytes", integer},
    {"searchLimits.reached", truth},
    {"searchLimits.leftOut[]", text},
    {"searchLimits.?boundIsOfAll", truth},
    {"request.?byParts", truth},
    {"request.?choices.?searchMemory", text},
    {"layouts{}.pinned", truth},
    {"layouts{}.prices[].layout", text},
    {"layouts{}.prices[].loss", number},
    {"pins[].tensor", text},
    {"pins[].layout", text},
    {"pins[].regret", number},
    {"saved[].tensor", text},
    {"saved[].bytes", integer},
    {"saved[].recomputed", truth},
    {"saved[].lossOfOther", numberOrNull},
    {"norms.form", text},
    {"norms.lossOfOthers{}", number},
    {"norms.attempts[].opNames[]", text},
    {"norms.attempts[].?steps[]", text},
    {"norms.attempts[].accepted", truth},
    {"norms.attempts[].code", text},
    {"norms.attempts[].reason", text},
    {"norms.attempts[].detail", text},
    {"chunks[].chosen", truth},
    {"chunks[].chunks", integer},
    {"chunks[].seconds", number},
    {"chunks[].sumSeconds", number},
    {"chunks[].workspace", integer},
    {"chunks[].measured", truth},
    {"pipeline[].chosen", truth},
    {"pipeline[].slices", integer},
    {"pipeline[].seconds", number},
    {"pipeline[].sumSeconds", number},
    {"pipeline[].workspace", integer},
    {"pipeline[].measured", truth},
    {"measuredPlans[].chosen", truth},
    {"measuredPlans[].variant", text},
    {"measuredPlans[].predicted", number},
    {"movement.?operators[].kind", text},
    {"movement.?operators[].results[]", text},
    {"movement.?operators[].class", text},
    {"movement.?operators[].flop", number},
    {"movement.?operators[].elementsRead", integer},
    {"movement.?operators[].elementsWritten", integer},
    {"movement.?operators[].kernels[]", text},
    {"movement.?shares[].class", text},
    {"movement.?shares[].operators", integer},
    {"movement.?shares[].flop", number},
    {"movement.?shares[].percentOfFlop", number},
    {"movement.?percentOfPeak{}", number},
    {"movement.classes{}.unfused", integer},
    {"movement.classes{}.fused", integer},
    {"movement.classes{}.moved", integer},
    {"movement.classes{}.seconds", number},
    {"movement.classes{}.kernels", integer},
    {"movement.classes{}.measured", integer},
    {"movement.phases[].phase", text},
    {"movement.phases[].bytes", integer},
    {"movement.phases[].kernels", integer},
    {"memory", object},
};

const char *nameOf(Type type) {
  switch (type) {
    case text: return "a string";
    case integer: return "an integer";
    case number: return "a number";
    case truth: return "true or false";
    case object: return "an object";
    case opIndex: return "the number of an op of opLabels";
    case textOrNull: return "a string or null";
    case numberOrNull: return "a number or null";
  }
  return "";
}

class Walk {
public:
  Walk(const json &report, const std::string &where, const Row &row)
      : report(report), where(where), row(row) {}

  void run() const { follow(report, row.path, ""); }

private:
  void follow(const json &value, std::string_view path, const std::string &place) const {
    if (path.empty()) {
      if (!isOfType(value)) fail(place, nameOf(row.type), value);
      return;
    }
    if (path.starts_with("[]") || path.starts_with("{}")) {
      const bool isArray = path.front() == '[';
      if (isArray ? !value.is_array() : !value.is_object())
        fail(place, isArray ? "an array" : "an object", value);
      size_t index = 0;
      for (const auto &[name, item] : value.items())
        follow(item, path.substr(2),
               isArray ? fmt::format("{}[{}]", place, index++) : fmt::format("{}.{}", place, name));
      return;
    }
    if (path.front() == '.') path.remove_prefix(1);
    const bool mayLack = path.front() == '?' || place.empty();
    if (path.front() == '?') path.remove_prefix(1);
    const std::string name(path.substr(0, path.find_first_of(".[{")));
    const std::string next = place.empty() ? name : place + "." + name;
    if (!value.is_object()) fail(place, "an object", value);
    const auto member = value.find(name);
    if (member != value.end()) return follow(*member, path.substr(name.size()), next);
    if (!mayLack) throw Error::badInput("{}: member \"{}\" is missing", where, next);
  }

  bool isOfType(const json &value) const {
    switch (row.type) {
      case text: return value.is_string();
      case integer: return value.is_number_integer();
      case number: return value.is_number();
      case truth: return value.is_boolean();
      case object: return value.is_object();
      case opIndex:
        return value.is_number_integer() && value >= 0 && report.contains("opLabels") &&
               value < report["opLabels"].size();
      case textOrNull: return value.is_string() || value.is_null();
      case numberOrNull: return value.is_number() || value.is_null();
    }
    return false;
  }

  [[noreturn]] void fail(const std::string &place, const char *expected, const json &found) const {
    throw Error::badInput("{}: member \"{}\" must be {}, not {} ({})", where, place, expected,
                          found.type_name(),
                          found.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 40));
  }

  const json &report;
  const std::string &where;
  const Row &row;
};

}  // namespace

void checkReport(const json &report, const std::string &where) {
  if (!report.is_object())
    throw Error::badInput("{}: a report must be an object, not {}", where, report.type_name());
  for (const Row &row : rows) Walk(report, where, row).run();
}

void rejectReport(const std::string &where, const json::exception &exception) {
  const std::string_view what = exception.what();
  const size_t reason = what.find("] ");
  throw Error::badInput("{}: not a report of this weft: {}", where,
                        reason == what.npos ? what : what.substr(reason + 2));
}

}  // namespace weft::driver
