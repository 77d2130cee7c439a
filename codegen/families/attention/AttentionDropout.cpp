// Keys, streams and coordinates of dropped probabilities; see AttentionDropout.h.
#include "codegen/families/attention/AttentionDropout.h"

#include "codegen/families/attention/ScoreOps.h"
#include "kernel/Attributes.h"
#include "kernel/Dropout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace weft {

std::string attentionDropoutRejection(const Kernel &kernel, const AttentionRegion &region,
                                      const AttentionProblem &problem) {
  if (!region.hasDropout) return "";
  const Value &probabilities = kernel.values[size_t(region.folded)];
  const size_t rank = probabilities.axes.size();
  if (rank >= 2 && probabilities.axes[rank - 2] == problem.queryAxis &&
      probabilities.axes[rank - 1] == problem.keyAxis)
    return "";
  return fmt::format("'{}' is dropped by other last axes than queries and keys",
                     probabilities.name);
}

namespace codegen {
namespace {

/// The slice of the probabilities that a head is, over their axes but the last two.
std::string outerOf(const Kernel &kernel, const AttentionRegion &region,
                    const AttentionProblem &problem, const std::vector<std::string> &axes,
                    const std::string &head) {
  std::string outer = "0";
  const std::vector<AxisId> &own = kernel.values[size_t(region.folded)].axes;
  for (size_t i = 0; i + 2 < own.size(); ++i) {
    if (kernel.axes[size_t(own[i])].extent == 1) continue;
    const std::string coordinate = headCoordinate(problem, axes, head, own[i]).str();
    outer = outer == "0" ? coordinate
                         : fmt::format("({}) * {} + {}", outer, axes[size_t(own[i])], coordinate);
  }
  return outer;
}

}  // namespace

AttentionDropout attentionDropout(const Kernel &kernel, const AttentionRegion &region,
                                  const AttentionProblem &problem, Names &names,
                                  const std::vector<std::string> &axes) {
  AttentionDropout result;
  const auto argument = [&](Parameter::Kind kind, std::string_view type, int index) {
    const std::string name = names.reserve(std::string(nameOf(kind)));
    result.parameters.push_back(
        {.kind = kind, .index = index, .name = name, .type = std::string(type)});
    return name;
  };
  const BodyOp &fold = kernel.body[region.fold];
  const double p = dropoutOf(fold)->p;
  const std::string pointer = argument(Parameter::Kind::dropoutKey, "weft::DropoutKey", 0),
                    stream = argument(Parameter::Kind::dropoutStream, "unsigned", int(region.fold)),
                    key = names.reserve("dropoutSeedAndStep"),
                    threshold = names.reserve("dropThreshold");
  result.kept = names.reserve("kept");
  std::string outer = outerOf(kernel, region, problem, axes, "head");
  if (hasAttribute(fold, attribute::outer))  // the slices before this part of an outer axis
    outer = (outer == "0" ? "" : outer + " + ") +
            argument(Parameter::Kind::dropoutOuter, "unsigned", int(region.fold));
  result.constants = {
      "unsigned",
      {{threshold, ConstantValue::text(fmt::format("{}u", std::llround(p * 65536)))}},
      fmt::format("{} of 65536 draws", p)};
  result.body.push_back(
      declareConstant("weft::DropoutKey", key, "*" + pointer, "a replay must not repeat masks"));
  result.body.push_back(
      {.kind = Statement::Kind::function,
       .type = "int head, int query, int key",
       .name = result.kept,
       .body = {{.kind = Statement::Kind::evaluate,
                 .value = fmt::format("return weft::keptFragment({}, {}, {}, query, key, {})", key,
                                      stream, outer, threshold)}}});
  result.keepScale = floatLiteral(dropoutScale(p)).str();
  return result;
}

void addAttentionDropout(AttentionDropout dropout, Program &program,
                         std::vector<NamedArgument> &arguments) {
  program.headers.push_back("weft/dropout.cuh");
  std::ranges::sort(program.headers);
  std::ranges::move(dropout.parameters, std::back_inserter(program.parameters));
  program.constants.push_back(dropout.constants);
  std::ranges::move(dropout.body, std::back_inserter(program.body));
  arguments.push_back({"dropout", dropout.kept});
  arguments.push_back({"keepScale", dropout.keepScale});
}

}  // namespace codegen
}  // namespace weft
