// weft explain --fills: what a plan of packed tokens takes at each fill that runs have, what it
// would take at full length, and what it loses against the plan that would be
// chosen for that fill alone.
#include "kernel/Error.h"
#include "passes/decide/KernelPrices.h"
#include "tools/driver/Console.h"
#include "tools/driver/Fills.h"
#include "tools/driver/ProfileModel.h"
#include "tools/driver/Request.h"
#include "tools/driver/commands/Explain.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft::driver {
namespace {

using nlohmann::json;

/// As one graph; or why there is no such plan.
Expected<double> chosenForAlone(const Request &request, const FillLevel &level) {
  ChoiceFlags choices = request.choices;
  choices.fill = ExpectedFill{.tokens = level.tokens, .pairs = level.pairs};
  Compilation compilation(request.model, choices, request.target);
  compilation.importTexts(request.graphs, request.first);
  const std::vector<ProposedVariant> proposed = compilation.propose(request.first);
  const Expected<decision::Decision> decided =
      decision::decidePlan(compilation.problem(proposed), compilation.options(proposed));
  if (!decided) return Unexpected(decided.error());
  return decision::graphSecondsBy(compilation.costModel(), decided->planned);
}

double weightedMean(const json &fills, const char *member) {
  double sum = 0, weights = 0;
  for (const json &fill : fills) {
    sum += fill["weight"].get<double>() * fill[member].get<double>();
    weights += fill["weight"].get<double>();
  }
  return weights > 0 ? sum / weights : 0;
}

double weightOf(const json &fill) { return fill["weight"]; }

std::string percent(double share) { return fmt::format("{:.1f}%", 100 * share); }

std::string expectedLine(const json &fills, double tokens, bool areAsked, double full,
                         bool hasRegrets) {
  const double expected = weightedMean(fills, "graphSeconds");
  if (expected == 0 && (tokens < 1 || areAsked))
    return fmt::format("every run is expected at {} of the tokens\n", percent(tokens));
  if (expected == 0)
    return "no lengths are expected: --lengths mean=R or FILE of compile prices and chooses for "
           "them\n";
  const bool areEqual = std::ranges::count(fills, 1.0, weightOf) > 0;
  std::string text = fmt::format(
      "{}: {}, {} less than at full length",
      areEqual ? fmt::format("every run is expected at {} of the tokens", percent(tokens))
               : "expected",
      formatSeconds(expected), percent(1 - expected / full));
  if (hasRegrets) {
    double worst = 0;
    for (const json &fill : fills) worst = std::max(worst, fill["regret"].get<double>());
    text += fmt::format("; regret {} on average, at most {}",
                        percent(weightedMean(fills, "regret")), percent(worst));
  }
  return text + "\n";
}

std::string fillsText(const json &fills, double tokens, bool areAsked, double full,
                      const std::string &whyNoRegrets) {
  Table table({{"fill", right},
               {"pairs", right},
               {"of runs", right},
               {"time", right},
               {"at full length", right},
               {"less", right},
               {"chosen for it", right},
               {"regret", right}});
  for (const json &fill : fills) {
    const double seconds = fill["graphSeconds"], weight = fill["weight"];
    const bool hasRegret = fill.contains("regret");
    table.addRow({percent(fill["tokens"]), percent(fill["pairs"]),
                  weight > 0 ? percent(weight) : "-", formatSeconds(seconds), formatSeconds(full),
                  percent(1 - seconds / full),
                  hasRegret ? formatSeconds(fill["aloneSeconds"].get<double>()) : "-",
                  hasRegret ? percent(fill["regret"]) : "-"});
  }
  std::string text =
      table.print() + expectedLine(fills, tokens, areAsked, full, whyNoRegrets.empty()) +
      "each as one graph, predicted; fill: tokens over the bound, pairs: of tokens of a sequence; "
      "at full length: this plan, every sequence at the bound, where one of padded sequences may "
      "take "
      "less; chosen for it: the plan that compile would choose for that fill alone\n";
  if (!whyNoRegrets.empty()) text += "no regret: " + whyNoRegrets + "\n";
  return text;
}

/// What the plan of padded sequences takes at the same lengths, where that was asked.
std::string paddedLine(const json &padded, double packed) {
  if (padded.empty()) return "";
  if (!padded.contains("graphSeconds"))
    return fmt::format("padded: no plan: {}\n", padded.value("why", ""));
  const double seconds = padded["graphSeconds"];
  return fmt::format(
      "padded: {} at these lengths, packed {}: {}\n", formatSeconds(seconds), formatSeconds(packed),
      seconds < packed ? "faster with --mask padding, not --ragged" : "packing pays");
}

}  // namespace

Explanation explainFills(const runtime::Artifact &artifact, const std::string &profile) {
  const json lengths = artifact.report.value("lengths", json::object());
  if (lengths.empty())
    throw Error::badInput(
        "explain --fills: no argument of {} counts tokens; nearest: compile with --ragged AXIS, "
        "which packs them, or --cache N",
        artifact.plan.model);
  if (!lengths.contains("fills"))
    throw Error::badInput(
        "explain --fills: the plan is of an older weft, which priced one fill; compile it again");
  json fills = lengths["fills"];
  std::string whyNoRegrets;
  bool haveSamePrices = true;
  try {
    Request request = requestOf(artifact.report);
    if (!profile.empty()) request.target.profile = profile;
    haveSamePrices = sourceOfPrices(request.target, *costModelOf(request.target)) == request.prices;
    for (json &fill : fills) {
      const Expected<double> alone =
          chosenForAlone(request, {.tokens = fill["tokens"], .pairs = fill["pairs"]});
      if (!alone) throw alone.error();
      fill["aloneSeconds"] = *alone;
      fill["regret"] = fill["graphSeconds"].get<double>() / *alone - 1;
    }
  } catch (const Error &error) {
    if (error.kind != ErrorKind::unsupported) throw;
    whyNoRegrets = error.what();
    for (json &fill : fills) fill.erase("regret"), fill.erase("aloneSeconds");
  }
  const double full = lengths["fullGraphSeconds"];
  std::string text =
      fillsText(fills, lengths["tokens"], lengths["asked"] != "", full, whyNoRegrets);
  const json padded = lengths.value("padded", json::object());
  text += paddedLine(padded, decision::graphOf(artifact.plan).seconds());
  if (!haveSamePrices) text += "note: the prices are others than when this plan was chosen\n";
  return {.text = text,
          .json = {{"asked", lengths["asked"]},
                   {"fills", fills},
                   {"fullSeconds", full},
                   {"expectedSeconds", weightedMean(fills, "graphSeconds")},
                   {"padded", padded},
                   {"whyNoRegrets", whyNoRegrets},
                   {"samePrices", haveSamePrices}}};
}

}  // namespace weft::driver
