// weft explain --memory of a model, or of an artifact that trains: the frontier of time and memory,
// each plan of it with what it computes again and the flags that compile it; as a table, JSON and a
// figure.
#include "kernel/ByteText.h"
#include "kernel/Error.h"
#include "passes/decide/MemoryFrontier.h"
#include "runtime/system/Files.h"
#include "tools/driver/Compilation.h"
#include "tools/driver/Console.h"
#include "tools/driver/FrontierSvg.h"
#include "tools/driver/LayeredModel.h"
#include "tools/driver/commands/Explain.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace weft::driver {
namespace {

using decision::FrontierPoint;
using nlohmann::json;

/// What the backward pass computes again instead of reading what forward kept.
std::vector<std::string> recomputedOf(const FrontierPoint &point, bool isTraining) {
  std::vector<std::string> names;
  for (const Rewrite &rewrite : point.rewrites) {
    if (rewrite.kind == Rewrite::Kind::fuseAttention && isTraining)
      names.push_back("attention scores");
    if (rewrite.kind == Rewrite::Kind::recompute) names.push_back(rewrite.subject);
  }
  return names;
}

/// A size that admits this plan and none of the next ones: round where that is possible.
std::string limitOf(const std::vector<FrontierPoint> &frontier, size_t index) {
  const int64_t own = frontier[index].workspaceBytes;
  for (const char *unit : {"1M", "1K"}) {
    const std::string text = printBytesAs(std::max<int64_t>(own, 1), unit);
    if (index + 1 == frontier.size() ||
        parseBytes(text, "--max-memory") < frontier[index + 1].workspaceBytes)
      return text;
  }
  return std::to_string(std::max<int64_t>(own, 1));
}

/// What distinguishes the plan: what it computes again, in training, and its chunks.
std::string whatOf(const FrontierPoint &point, const std::vector<std::string> &recomputed,
                   bool isTraining) {
  const std::string chunks = point.chunks > 1 ? fmt::format("in {} chunks", point.chunks) : "";
  if (!isTraining) return chunks.empty() ? "whole" : chunks;
  const std::string again =
      recomputed.empty() ? "nothing" : fmt::format("{}", fmt::join(recomputed, "; "));
  return chunks.empty() ? again : fmt::format("{} ({})", again, chunks);
}

/// The plans that a limit of memory could choose, whatever --max-memory, --chunks and
/// --memory-trade say.
std::vector<FrontierPoint> pointsOf(const Compilation &compilation, Phase first) {
  if (compilation.isLayered()) return layeredPoints(compilation);
  const std::vector<ProposedVariant> proposed = compilation.proposeForMemory(first);
  decision::Options options = compilation.options(proposed);
  options.chunks = 0, options.maxMemory.reset(), options.memoryTrade = 0;
  return valueOrThrow(decision::memoryPoints(compilation.problem(proposed), options));
}

}  // namespace

Explanation explainFrontier(const Compilation &compilation, Phase first, const std::string &command,
                            const std::string &output) {
  const std::vector<FrontierPoint> points = pointsOf(compilation, first);
  const std::vector<FrontierPoint> frontier = decision::undominated(points);
  const bool isTraining = compilation.model().train;
  Table table({{"", right},
               {"kernels alone", right},
               {"whole graph", right},
               {"slower", right},
               {"workspace", right},
               {isTraining ? "computed again" : "runs", left}});
  std::string commands;
  json list = json::array();
  std::vector<FrontierMark> marks;
  for (size_t index = 0; index < frontier.size(); ++index) {
    const FrontierPoint &point = frontier[index];
    const std::vector<std::string> recomputed = recomputedOf(point, isTraining);
    const double slower = point.seconds / frontier.back().seconds - 1;
    const std::string flags = "--max-memory " + limitOf(frontier, index);
    table.addRow({std::to_string(index + 1), formatSeconds(point.seconds),
                  formatSeconds(point.graphSeconds), fmt::format("{:.1f}%", 100 * slower),
                  formatBytes(point.workspaceBytes), whatOf(point, recomputed, isTraining)});
    commands += fmt::format("  {}  {} {}\n", index + 1, command, flags);
    list.push_back({{"seconds", point.seconds},
                    {"graphSeconds", point.graphSeconds},
                    {"slowerShare", slower},
                    {"workspace", point.workspaceBytes},
                    {"variant", point.variant},
                    {"recomputed", recomputed},
                    {"chunks", point.chunks},
                    {"flags", flags},
                    {"command", command + " " + flags}});
    marks.push_back(
        {.seconds = point.seconds,
         .workspaceBytes = point.workspaceBytes,
         .label = fmt::format(
             "{}, {}, {}", formatSeconds(point.seconds), formatBytes(point.workspaceBytes),
             (isTraining ? "computed again: " : "") + whatOf(point, recomputed, isTraining)),
         .isUndominated = true});
  }
  const auto isKept = [&](const FrontierPoint &point) {
    return std::ranges::any_of(frontier, [&](const FrontierPoint &kept) {
      return kept.workspaceBytes == point.workspaceBytes && kept.seconds == point.seconds;
    });
  };
  for (const FrontierPoint &point : points)
    if (!isKept(point))
      marks.push_back({.seconds = point.seconds, .workspaceBytes = point.workspaceBytes});
  const std::string head = fmt::format(
      "frontier of time and memory: {} of {} priced plans, none of which another beats in both; "
      "without --max-memory the fastest is chosen",
      frontier.size(), points.size());
  if (!output.empty())
    runtime::writeFile(
        output,
        drawFrontier(marks, fmt::format("{}: time and workspace", compilation.description().name),
                     {"predicted, of the kernels one by one; " + command}));
  return {
      .text = fmt::format("{}\n{}compiled, with -o DIR, by\n{}", head, table.print(), commands) +
              (output.empty() ? "" : fmt::format("wrote {}\n", output)),
      .json = {{"model", compilation.description().name},
               {"frontier", list},
               {"plansPriced", points.size()},
               {"figure", output}}};
}

}  // namespace weft::driver
