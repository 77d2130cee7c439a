// Ops of plans and their lines; see PlanOp.h.
#include "plan/PlanOp.h"

#include "kernel/Attributes.h"
#include "kernel/StridedBatchedGemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weft {
namespace {

constexpr std::string_view equals = " = ", overMark = " over ", tf32Mark = " in tf32",
                           separator = ", ";

/// The text before the mark, which is removed with it; nothing where there is no mark.
std::optional<std::string_view> takeUntil(std::string_view &rest, std::string_view mark) {
  const size_t at = rest.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view taken = rest.substr(0, at);
  rest.remove_prefix(at + mark.size());
  return taken;
}

/// "%a, %b" without the marks of values, or "k, j" with an empty mark.
std::vector<std::string> itemsOf(std::string_view list, std::string_view mark) {
  std::vector<std::string> items;
  while (!list.empty()) {
    const std::optional<std::string_view> head = takeUntil(list, separator);
    const std::string_view item = head ? *head : std::exchange(list, {});
    items.emplace_back(item.starts_with(mark) ? item.substr(mark.size()) : item);
  }
  return items;
}

/// Whether it can be told from what stands around it.
bool isWord(const std::string &name) {
  return !name.empty() && name.find_first_of(" ,%\"") == std::string::npos;
}

std::string valuesText(const std::vector<std::string> &values) {
  std::string text;
  for (const std::string &value : values)
    text += fmt::format("{}%{}", text.empty() ? std::string_view() : separator, value);
  return text;
}

}  // namespace

std::string text(const PlanOp &op) {
  std::string line = fmt::format("{} = {}", valuesText(op.results), nameOf(op.kind));
  if (!op.spec.empty()) line += fmt::format(" \"{}\"", op.spec);
  line += " " + valuesText(op.operands);
  if (!op.over.empty()) line += fmt::format("{}{}", overMark, fmt::join(op.over, separator));
  return line + std::string(op.readsTf32 ? tf32Mark : "");
}

std::optional<PlanOp> parsePlanOp(std::string_view line) {
  PlanOp op;
  std::string_view rest = line;
  const std::optional<std::string_view> results = takeUntil(rest, equals),
                                        name = takeUntil(rest, " ");
  const std::optional<OpKind> kind = name ? opKindNamed(*name) : std::nullopt;
  if (!results || !kind) return std::nullopt;
  op.kind = *kind;
  op.results = itemsOf(*results, "%");
  if (rest.starts_with('"')) {
    rest.remove_prefix(1);
    const std::optional<std::string_view> spec = takeUntil(rest, "\" ");
    if (!spec) return std::nullopt;
    op.spec = *spec;
  }
  if (rest.ends_with(tf32Mark)) {
    op.readsTf32 = true;
    rest.remove_suffix(tf32Mark.size());
  }
  const std::optional<std::string_view> operands = takeUntil(rest, overMark);
  op.operands = itemsOf(operands ? *operands : rest, "%");
  if (operands) op.over = itemsOf(rest, "");
  const bool hasWords = std::ranges::all_of(op.results, isWord) &&
                        std::ranges::all_of(op.operands, isWord) &&
                        std::ranges::all_of(op.over, isWord);
  if (!hasWords || text(op) != line) return std::nullopt;
  return op;
}

void to_json(nlohmann::json &json, const PlanOp &op) { json = text(op); }

std::vector<PlanOp> planOps(const Kernel &kernel) {
  const auto name = [&](ValueId value) {
    const Value &printed = kernel.values[size_t(value)];
    return printed.number >= 0 ? std::to_string(printed.number) : printed.name;
  };
  std::vector<PlanOp> ops;
  for (const BodyOp &op : kernel.body) {
    PlanOp &added = ops.emplace_back();
    added.kind = op.kind;
    for (const ValueId value : op.results) added.results.push_back(name(value));
    for (const ValueId value : op.operands) added.operands.push_back(name(value));
    added.spec = attributeOr(op, attribute::spec, "");
    if (added.spec.empty())
      for (const AxisId axis : op.reducedAxes) added.over.push_back(kernel.axes[size_t(axis)].name);
    added.readsTf32 = op.operatorClass == OperatorClass::contraction && isTf32(op);
  }
  return ops;
}

std::vector<std::string> textsOf(const std::vector<PlanOp> &ops) {
  std::vector<std::string> texts;
  for (const PlanOp &op : ops) texts.push_back(text(op));
  return texts;
}

}  // namespace weft
