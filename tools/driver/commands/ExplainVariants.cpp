// weft explain DIR --all: the variants that were weighed, with their times, and the next best
// paths.
#include "kernel/LayerNames.h"
#include "kernel/TextWidth.h"
#include "passes/select/Prices.h"
#include "tools/driver/Console.h"
#include "tools/driver/commands/Explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace weft::driver {
namespace {

using nlohmann::json;

std::string difference(double seconds) {
  return (seconds < 0 ? "-" : "+") + formatSeconds(std::abs(seconds));
}

/// Whether its best plan may take less than the one that was found, by more than noise.
bool isAtMost(const json &variant) {
  return variant.value("statistics", json::object()).value("mostGain", 0.0) > select::noise;
}

/// Of variants of one search; `shown`: their names.
template <typename Shown>
std::string variantsTable(const json &variants, const Shown &shown) {
  Table table({{"variant", broken},
               {"time", right},
               {"loss", right},
               {"best weft could choose", right},
               {"", broken}});
  double chosen = 0;
  for (const json &variant : variants)
    if (variant.value("chosen", false)) chosen = variant.value("seconds", 0.0);
  bool isOneFaster = false, isAnyAtMost = false;
  for (const json &variant : variants) {
    const std::string name = shown(variant.value("name", ""));
    if (variant.contains("noPlan")) {
      table.addRow({name, "-", "-", "-", "no plan: " + variant["noPlan"].get<std::string>()});
    } else if (variant.contains("withoutPins")) {
      table.addRow({name, "-", "-", formatSeconds(variant["withoutPins"].get<double>()),
                    "not searched: without pins it takes no less"});
    } else {
      const bool isChosen = variant.value("chosen", false);
      const double seconds = variant.value("seconds", 0.0),
                   bound = variant.value("lowerBound", 0.0);
      isOneFaster = isOneFaster || seconds < chosen;
      const std::string most = !isChosen && isAtMost(variant) ? "<= " : "";
      isAnyAtMost = isAnyAtMost || !most.empty();
      table.addRow({(isChosen ? "* " : "") + name, most + formatSeconds(seconds),
                    isChosen ? "" : difference(seconds - chosen),
                    bound > 0 ? formatSeconds(bound) : "-", ""});
    }
  }
  std::string result = table.print();
  if (isAnyAtMost) result += std::string(atMostNote) + "\n";
  if (isOneFaster)
    result +=
        "* is not the fastest kernel by kernel: it was chosen as one graph, or for its memory "
        "(chunks, --memory)\n";
  return result;
}

/// "layers 2..11: 'layer2_q' to 'layer3_norm1'".
std::string placeOf(const json &part) {
  const auto layers = part.value("layers", std::set<int64_t>());
  const std::string span =
      fmt::format("'{}' to '{}'", part.value("first", ""), part.value("last", ""));
  if (layers.empty()) return span;
  return fmt::format("layer{} {}: {}", layers.size() == 1 ? "" : "s", layerRanges(layers), span);
}

json pricesOf(const json &variants) {
  json prices = json::array();
  for (const json &variant : variants) {
    json &one = prices.emplace_back(json::object());
    for (const char *member : {"name", "chosen", "seconds", "lowerBound", "noPlan", "withoutPins"})
      if (variant.contains(member)) one[member] = variant[member];
    if (variant.contains("seconds"))
      one["isAtMost"] = !variant.value("chosen", false) && isAtMost(variant);
  }
  return prices;
}

}  // namespace

json variantsJson(const json &report) {
  json parts = json::array(), paths = json::array();
  for (json part : report.value("parts", json::array())) {
    part["variants"] = pricesOf(part.value("variants", json::array()));
    for (const char *member : {"placed", "fusions", "fusionPrices"}) part.erase(member);
    parts.push_back(std::move(part));
  }
  for (const json &path : report.value("alternatives", json::array()))
    paths.push_back({{"loss", path.value("loss", 0.0)}, {"seconds", path.value("seconds", 0.0)}});
  return {{"variants", pricesOf(report.value("variants", json::array()))},
          {"parts", std::move(parts)},
          {"alternatives", std::move(paths)}};
}

std::string variantsLines(const json &report) {
  std::string result;
  const auto listOf = [&](const char *member) { return report.value(member, json::array()); };
  if (const json parts = listOf("parts"); !parts.empty()) {
    for (const json &part : parts) {
      const json ofPart = part.value("variants", json::array());
      if (ofPart.size() < 2) continue;
      const bool areSeveral = part.value("layers", std::set<int64_t>()).size() > 1;
      result += fmt::format("\nvariants of {}\n{}", placeOf(part),
                            variantsTable(ofPart, [&](const std::string &name) {
                              return areSeveral ? withoutLayers(name) : name;
                            }));
    }
  } else if (const json variants = listOf("variants"); !variants.empty()) {
    result +=
        "\nvariants\n" + variantsTable(variants, [](const std::string &name) { return name; });
  }
  if (result.empty()) return result;
  if (const json paths = listOf("alternatives"); paths.size() > 1) {
    result += "next best paths of the chosen variant:";
    const char *separator = " ";
    for (const json &path : paths)
      if (const double loss = path.value("loss", 0.0); !path.value("different", json()).empty())
        result += separator + difference(loss), separator = ", ";
    result += "\n";
  }
  return result + "\n";
}

}  // namespace weft::driver
