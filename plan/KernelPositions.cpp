// Ops of two plans by graph position; see KernelPositions.h.
#include "plan/KernelPositions.h"

#include <charconv>
#include <map>
#include <set>
#include <sstream>

namespace weft {
namespace {

using nlohmann::json;

/// "%7" and "%7," are tokens of values; text in quotes is one word of the op's kind.
std::vector<std::string> tokensOf(const std::string &text) {
  std::vector<std::string> tokens;
  std::istringstream stream(text);
  for (std::string token; stream >> token;) {
    if (token.ends_with(',')) token.pop_back();
    tokens.push_back(token);
  }
  return tokens;
}

int numberOf(const std::string &value) {
  int number = -1;
  const char *end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data() + 1, end, number);
  return error == std::errc() && stop == end ? number : -1;
}

/// An op goes by what it computes and how often the plan computed a value of that name before.
std::vector<std::string> namesOf(const std::vector<PrintedOp> &ops) {
  std::map<std::string, int> seen;
  std::vector<std::string> names;
  for (const PrintedOp &op : ops) {
    const std::string name = op.kind + " -> " + op.value;
    names.push_back(name + "#" + std::to_string(++seen[name]));
  }
  return names;
}

/// Positions of values by the number of the op that computes them; arguments go by their names.
using Values = std::map<std::string, std::string>;

std::string structureOf(const PrintedOp &op, const Values &values) {
  std::string text = op.kind;
  for (const std::string &operand : op.operands) {
    const auto known = values.find(operand);
    text += " " + (known == values.end() ? operand : known->second);
  }
  return text;
}

void setValue(Values &values, const PrintedOp &op, int position) {
  if (op.number >= 0) values["%" + std::to_string(op.number)] = "#" + std::to_string(position);
}

}  // namespace

PrintedOp parseOp(const std::string &line, const json &names) {
  PrintedOp op;
  const size_t equals = line.find(" = ");
  const std::vector<std::string> results =
      tokensOf(line.substr(0, equals == std::string::npos ? 0 : equals));
  if (!results.empty()) {
    op.number = numberOf(results.front());
    op.value = results.front().substr(1);
    if (op.number >= 0 && size_t(op.number) < names.size())
      op.value = names[size_t(op.number)].get<std::string>();
  }
  for (const std::string &token :
       tokensOf(equals == std::string::npos ? line : line.substr(equals + 3)))
    if (token.starts_with('%')) op.operands.push_back(token);
    else op.kind += (op.kind.empty() ? "" : " ") + token;
  if (op.kind.ends_with(printedTf32)) {
    op.precision = "tf32";
    op.kind.resize(op.kind.size() - printedTf32.size());
  }
  return op;
}

std::vector<PrintedOp> opsOf(const Plan &plan, const json &names) {
  std::set<int> regions;  // of chunks that were read already
  std::vector<PrintedOp> ops;
  for (const PlanKernel &kernel : plan.kernels)
    if (!kernel.chunk || regions.insert(kernel.chunk->region).second)
      for (const std::string &line : kernel.ops) ops.push_back(parseOp(line, names));
  return ops;
}

Positions positionsOf(const std::vector<PrintedOp> &before, const std::vector<PrintedOp> &after) {
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
