// Ops of two plans by graph position; see KernelPositions.h.
#include "plan/KernelPositions.h"

#include <charconv>
#include <map>
#include <set>

namespace weft {
namespace {

using nlohmann::json;

int numberOf(const std::string &value) {
  int number = -1;
  const char *end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  return error == std::errc() && stop == end ? number : -1;
}

/// What an op does to operands of any names: "local_softmax over k", "contract phi,bji->phbj".
std::string actionOf(const PlanOp &op) {
  PlanOp action = op;
  action.results.clear();
  action.operands.clear();
  action.readsTf32 = false;  // the same computation, at another precision
  return text(action);
}

/// An op goes by what it computes and how often the plan computed a value of that name before.
std::vector<std::string> namesOf(const std::vector<NamedOp> &ops) {
  std::map<std::string, int> seen;
  std::vector<std::string> names;
  for (const NamedOp &op : ops) {
    const std::string name = actionOf(op.op) + " -> " + op.value;
    names.push_back(name + "#" + std::to_string(++seen[name]));
  }
  return names;
}

/// Positions of values by the number of the op that computes them; arguments go by their names.
using Values = std::map<std::string, std::string>;

std::string structureOf(const NamedOp &op, const Values &values) {
  std::string text = actionOf(op.op);
  for (const std::string &operand : op.op.operands) {
    const auto known = values.find(operand);
    text += " " + (known == values.end() ? operand : known->second);
  }
  return text;
}

void setValue(Values &values, const NamedOp &op, int position) {
  if (op.number >= 0) values[std::to_string(op.number)] = "#" + std::to_string(position);
}

}  // namespace

NamedOp namedOp(const PlanOp &op, const json &names) {
  NamedOp named{.op = op, .number = -1, .value = {}};
  if (op.results.empty()) return named;
  named.number = numberOf(op.results.front());
  named.value = op.results.front();
  if (named.number >= 0 && size_t(named.number) < names.size())
    named.value = names[size_t(named.number)].get<std::string>();
  return named;
}

std::vector<NamedOp> opsOf(const Plan &plan, const json &names) {
  std::set<int> regions;  // of chunks that were read already
  std::vector<NamedOp> ops;
  for (const PlanKernel &kernel : plan.kernels)
    if (!kernel.chunk || regions.insert(kernel.chunk->region).second)
      for (const PlanOp &op : kernel.ops) ops.push_back(namedOp(op, names));
  return ops;
}

Positions positionsOf(const std::vector<NamedOp> &before, const std::vector<NamedOp> &after) {
  const std::vector<std::string> namesBefore = namesOf(before), namesAfter = namesOf(after);
  const std::set<std::string> inAfter(namesAfter.begin(), namesAfter.end());
  Positions positions;
  std::map<std::string, int> byName;
  std::multimap<std::string, int> byStructure;  // of ops whose names the second plan does not have
  Values values;
  for (size_t op = 0; op < before.size(); ++op) {
    const int position = int(op);
    positions.before.push_back(position);
    byName[namesBefore[op]] = position;
    if (!inAfter.contains(namesBefore[op]))
      byStructure.emplace(structureOf(before[op], values), position);
    setValue(values, before[op], position);
  }
  int next = int(before.size());
  values.clear();
  for (size_t op = 0; op < after.size(); ++op) {
    int position = -1;
    if (const auto named = byName.find(namesAfter[op]); named != byName.end()) {
      position = named->second;
    } else if (const auto same = byStructure.find(structureOf(after[op], values));
               same != byStructure.end()) {
      position = same->second;
      byStructure.erase(same);
    } else {
      position = next++;
    }
    positions.after.push_back(position);
    setValue(values, after[op], position);
  }
  return positions;
}

}  // namespace weft
