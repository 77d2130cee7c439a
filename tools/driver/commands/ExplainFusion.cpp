// weft explain --fusion A,B: whether two kernels or ops share a kernel, why, and what the other
// choice would cost.
#include "kernel/Error.h"
#include "kernel/Nearest.h"
#include "kernel/ReasonCodes.h"
#include "runtime/artifact/Artifact.h"
#include "tools/driver/Console.h"
#include "tools/driver/Flags.h"
#include "tools/driver/FoldedReport.h"
#include "tools/driver/commands/Explain.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace weft::driver {
namespace {

using nlohmann::json;
using Ops = std::set<int>;

constexpr size_t shownAttempts = 5;

Ops opsOf(const json &list) { return list.get<Ops>(); }

/// Ops that a name means: an op's number or name, a kernel's name or its beginning.
Ops resolve(const runtime::Artifact &artifact, const std::string &name) {
  const json &names = artifact.report.at("opLabels"), &kernels = artifact.report.at("kernelOps");
  const std::string digits = name.starts_with('%') ? name.substr(1) : name;
  int number = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error == std::errc() && end == digits.data() + digits.size()) {
    if (number < 0 || size_t(number) >= names.size())
      throw Error::badInput("op {} is outside 0 to {}", name, names.size() - 1);
    return {number};
  }
  std::vector<std::string> known;
  Ops exact;
  for (size_t op = 0; op < names.size(); ++op) {
    known.push_back(names[op].get<std::string>());
    if (known.back() == name) exact.insert(int(op));
  }
  if (exact.size() == 1) return exact;
  if (exact.size() > 1)
    throw Error::badInput("'{}' names the ops {}; name one by its number", name,
                          fmt::join(exact, ", "));
  Ops beginning;
  for (const auto &[kernel, ops] : kernels.items()) {
    if (kernel == name) return opsOf(ops);
    if (kernel.starts_with(name)) beginning.merge(opsOf(ops));
    known.push_back(kernel);
  }
  if (!beginning.empty()) return beginning;
  for (const PlanKernel &kernel : artifact.plan.kernels) {
    if (kernel.name != name || kernel.inputs.size() != 1) continue;
    const std::string &copied = artifact.plan.tensors[size_t(kernel.inputs[0])].logical;
    throw Error::badInput(
        "kernel '{}' copies '{}' from one layout to another and holds no op that "
        "could be fused; --layout {} says what other layouts cost",
        name, copied, copied);
  }
  throw Error::badInput("no kernel or op '{}'{}", name, nearestAndKnown(name, known));
}

bool isOp(const runtime::Artifact &artifact, const std::string &name) {
  const json &names = artifact.report.at("opLabels");
  return std::find(names.begin(), names.end(), json(name)) != names.end();
}

std::string kernelOf(const runtime::Artifact &artifact, const Ops &ops) {
  for (const auto &[kernel, list] : artifact.report.at("kernelOps").items())
    if (const Ops held = opsOf(list);
        std::includes(held.begin(), held.end(), ops.begin(), ops.end()))
      return kernel;
  return "";
}

/// Attempts that would join the two, those with the fewest other ops first, then those that save
/// most.
std::vector<json> attempts(const json &report, const Ops &a, const Ops &b) {
  std::vector<json> found = fusionsBetween(report, a, b);
  std::stable_sort(found.begin(), found.end(), [](const json &x, const json &y) {
    return std::pair(x["ops"].size(), -x["savedBytes"].get<int64_t>()) <
           std::pair(y["ops"].size(), -y["savedBytes"].get<int64_t>());
  });
  return found;
}

std::string savings(const json &record, bool fused) {
  const double seconds = record["savedSeconds"], bytes = record["savedBytes"];
  return fmt::format("{} {} against its ops one by one, {} at {}", fused ? "saves" : "would save",
                     formatBytes(record["savedBytes"]), formatSeconds(seconds),
                     seconds > 0 ? formatBandwidth(bytes / seconds) : "any bandwidth");
}

/// What blocks an attempt; ops by their names where an option names them.
std::string detailOf(const json &record, const json &labels) {
  const std::string detail = record["detail"];
  if (record["code"] != reasons::forbiddenByOption.code) return detail;
  const auto [first, second] = parsePair(detail, "report.json: fusions: detail");
  const auto name = [&](const std::string &number) {
    size_t op = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), op);
    return error == std::errc() && op < labels.size() ? labels[op].get<std::string>() : number;
  };
  return fmt::format("--no-fuse {},{}", name(first), name(second));
}

std::string printAttempt(const json &record, const json &labels) {
  const std::vector<std::string> names = record["opNames"];
  const std::string what =
      record["accepted"].get<bool>()
          ? "allowed: " + record["pattern"].get<std::string>()
          : fmt::format("not fused: {} {} ({})", record["code"].get<std::string>(),
                        record["reason"].get<std::string>(), detailOf(record, labels));
  return fmt::format("{}      {}   [{}]\n", what, savings(record, false), fmt::join(names, ", "));
}

double sumOf(const json &steps) {
  double sum = 0;
  for (const json &step : steps) sum += step["seconds"].get<double>();
  return sum;
}

/// The kernels by which two plans differ, with the price of each.
std::string printSteps(const std::string &title, const json &steps) {
  std::string text;
  for (const json &step : steps)
    text += fmt::format(
        "  {:<11} {:>8} {:<9} {}\n", text.empty() ? title : "", formatSeconds(step["seconds"]),
        nameOf(step["measured"].get<bool>() ? TimeSource::measured : TimeSource::estimated),
        step["step"].get<std::string>());
  return steps.size() > 1
             ? text + fmt::format("  {:<11} {:>8} together\n", "", formatSeconds(sumOf(steps)))
             : text;
}

/// Why no plan makes the other choice: an option, or a lack of measurements; null where the rules
/// of fusion are the cause, or where there is such a plan.
json whyNone(const json &price) {
  if (const std::string option = price.value("option", ""); !option.empty()) return option;
  return price.value("whyNone", json());
}

/// Prices of the other choice, of the whole plan and of the kernels that differ: for pairs of ops
/// that exchange a tensor, one of each side; of two that share a kernel and exchange none, for the
/// pairs between them.
json pricesOf(const runtime::Artifact &artifact, const Ops &a, const Ops &b) {
  json list = json::array();
  const json &names = artifact.report.at("opLabels");
  const json prices = fusionPricesOf(artifact.report);
  const auto isBetween = [](const json &price, const Ops &one, const Ops &other) {
    return one.contains(price["ops"][0].get<int>()) && other.contains(price["ops"][1].get<int>());
  };
  const auto isAsked = [&](const json &price) {
    return isBetween(price, a, b) || isBetween(price, b, a);
  };
  const bool areNeighbours = std::ranges::any_of(prices, isAsked);
  Ops both = a;
  both.insert(b.begin(), b.end());
  const std::string kernel = kernelOf(artifact, both);
  const Ops inside = kernel.empty() ? Ops{} : opsOf(artifact.report.at("kernelOps").at(kernel));
  for (const json &price : prices) {
    const int first = price["ops"][0], second = price["ops"][1];
    if (areNeighbours ? !isAsked(price)
                      : !price["fused"].get<bool>() || !isBetween(price, inside, inside))
      continue;
    const json steps = price.value("steps", json::array()),
               others = price.value("otherSteps", json::array());
    list.push_back({{"ops", {names[size_t(first)], names[size_t(second)]}},
                    {"fused", price["fused"]},
                    {"lossOfOther", price["lossOfOther"]},
                    {"whyNone", whyNone(price)},
                    {"steps", steps},
                    {"seconds", sumOf(steps)},
                    {"otherSteps", others},
                    {"otherSeconds", sumOf(others)}});
  }
  return list;
}

std::string printPrices(const json &prices) {
  std::string text;
  for (const json &price : prices) {
    const bool fused = price["fused"];
    const json &why = price["whyNone"];
    const std::string none =
        why.is_null() ? "no plan does" : "no plan does: " + why.get<std::string>();
    const std::string loss = price["lossOfOther"].is_null()
                                 ? none
                                 : formatSeconds(price["lossOfOther"]) + " slower, whole plan";
    text += fmt::format("{} and {} are {}; {} them: {}\n", price["ops"][0].get<std::string>(),
                        price["ops"][1].get<std::string>(), fused ? "fused" : "not fused",
                        fused ? "separating" : "fusing", loss);
    text += printSteps(fused ? "fused" : "separate", price["steps"]) +
            printSteps(fused ? "separate" : "fused", price["otherSteps"]);
  }
  return text;
}

/// Attempts to stack two projections, by the names of their results: the ops themselves are gone
/// where it was done.
std::vector<json> stackings(const runtime::Artifact &artifact, const std::string &first,
                            const std::string &second) {
  std::vector<json> found;
  for (const json &record : artifact.report.value("stackings", json::array())) {
    const std::vector<std::string> names = record["opNames"];
    if (names == std::vector{first, second} || names == std::vector{second, first})
      found.push_back(record);
  }
  return found;
}

std::string printStacking(const json &record, const std::string &variant) {
  const std::vector<std::string> names = record["opNames"];
  if (record["accepted"].get<bool>())
    return fmt::format("stacking {}: allowed, {}; the chosen variant is {}\n",
                       fmt::join(names, ", "), savings(record, false), variant);
  return fmt::format("stacking {}: not possible: {} {} ({}), {}\n", fmt::join(names, ", "),
                     record["code"].get<std::string>(), record["reason"].get<std::string>(),
                     record["detail"].get<std::string>(), savings(record, false));
}

/// The norms that two names are of: the norm's own, or one of its steps. How each is computed, and
/// what the other way would cost.
std::string printNorms(const json &report, const std::vector<std::string> &asked) {
  std::string text;
  for (const json &record : report.value("attempts", json::array())) {
    const std::string norm = record["opNames"].front();
    const auto steps = record.value("steps", std::vector<std::string>());
    const auto isOfNorm = [&](const std::string &name) {
      return name == norm || std::ranges::count(steps, name) > 0;
    };
    if (std::ranges::none_of(asked, isOfNorm)) continue;
    if (!record["accepted"].get<bool>()) {
      text += fmt::format("norm {}: whole: {} {} ({})\n", norm, record["code"].get<std::string>(),
                          record["reason"].get<std::string>(), record["detail"].get<std::string>());
      continue;
    }
    text += fmt::format("norm {}: {}", norm, report["form"].get<std::string>());
    for (const auto &[form, loss] : report["lossOfOthers"].items())
      text += fmt::format("; {} {} slower, whole plan", form, formatSeconds(loss));
    text += report["lossOfOthers"].empty() ? "; --norms auto prices the others\n" : "\n";
  }
  return text;
}

}  // namespace

Explanation explainFusion(const runtime::Artifact &artifact, const std::string &pair) {
  const auto [first, second] = parsePair(pair, "--fusion");
  const std::vector<json> stacked = stackings(artifact, first, second);
  const json norms = artifact.report.value("norms", json::object());
  std::string stackingText = printNorms(norms, {first, second});
  for (const json &record : stacked) stackingText += printStacking(record, artifact.plan.variant);
  const auto exists = [&](const std::string &name) { return isOp(artifact, name); };
  if (!stackingText.empty() && (!exists(first) || !exists(second)))
    return {.text = stackingText,
            .json = {{"fused", false},
                     {"kernel", ""},
                     {"attempts", json::array()},
                     {"prices", json::array()},
                     {"notes", json::array()},
                     {"stackings", stacked},
                     {"norms", norms}}};
  const Ops a = resolve(artifact, first), b = resolve(artifact, second);
  Ops both = a;
  both.insert(b.begin(), b.end());
  const std::string kernel = kernelOf(artifact, both);
  const std::vector<json> records = attempts(artifact.report, a, b);
  std::string text = stackingText;
  if (!kernel.empty()) {
    text += fmt::format("fused: both are in {}\n", kernel);
    const json notes =
        artifact.report.value("fusionNotes", json::object()).value(kernel, json::array());
    if (!notes.empty()) text += notes.front().get<std::string>() + "\n";
  } else {
    for (size_t index = 0; index < std::min(records.size(), shownAttempts); ++index)
      text += printAttempt(records[index], artifact.report.at("opLabels"));
    if (records.size() > shownAttempts)
      text +=
          fmt::format("and {} larger attempts (--json has all)\n", records.size() - shownAttempts);
    if (records.empty())
      text += "not fused: no pattern relates them (they exchange no tensor and share no operand)\n";
  }
  const json prices = pricesOf(artifact, a, b);
  const json notes =
      kernel.empty()
          ? json::array()
          : artifact.report.value("fusionNotes", json::object()).value(kernel, json::array());
  return {.text = text + printPrices(prices),
          .json = {{"fused", !kernel.empty()},
                   {"kernel", kernel},
                   {"attempts", records},
                   {"prices", prices},
                   {"notes", notes},
                   {"stackings", stacked},
                   {"norms", norms}}};
}

}  // namespace weft::driver
