// What a plan was asked from: the graph, the choices and the prices, as a member of report.json, so
// that `explain` can ask the same again with one thing changed and get what `compile` would choose.
//
// Invariant: a compilation made of a request decides what the compilation that wrote it decided,
// where the prices are the same.
#pragma once

#include "tools/driver/Compilation.h"

#include <nlohmann/json.hpp>

#include <memory>

namespace weft::driver {

/// Members: first, graphs, model, choices, target, prices.
nlohmann::json requestReport(const Compilation &compilation);

/// What the report says that was asked.
struct Request {
  ModelFlags model;
  ChoiceFlags choices;
  TargetFlags target;
  std::vector<VariantText> graphs;
  Phase first = Phase::algebra;  ///< with which to propose
  nlohmann::json prices;         ///< sourceOfPrices() then
};
/// Throws Error(badInput) for a report without a request, or with a damaged one.
Request requestOf(const nlohmann::json &report);

struct ReopenedRequest {
  std::unique_ptr<Compilation> compilation;
  Phase first = Phase::algebra;  ///< with which to propose
  bool haveSamePrices = true;    ///< as when the plan was chosen
};
/// `profile`: instead of the request's; empty: the request's own. Throws Error(badInput) for a
/// report without a request, or with a damaged one.
ReopenedRequest reopen(const nlohmann::json &report, const std::string &profile);

}  // namespace weft::driver
