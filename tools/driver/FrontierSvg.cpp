// Time over workspace as SVG; see FrontierSvg.h.
#include "tools/driver/FrontierSvg.h"

#include "kernel/Format.h"
#include "kernel/PlainText.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace weft::driver {
namespace {

// Pixels.
constexpr double leftMargin = 90, plotWidth = 720, rightMargin = 50, titleHeight = 24,
                 noteHeight = 16, headGap = 14, plotHeight = 360, axisHeight = 56, labelHeight = 18;
constexpr double width = leftMargin + plotWidth + rightMargin;

constexpr const char *style = R"(<style>
  text { font: 12px sans-serif; fill: #222 }
  .title { font-size: 15px; font-weight: bold } .note { font-size: 11px; fill: #666 }
  .grid { stroke: #ddd } .plan { fill: #b8c4d4 } .frontier { fill: none; stroke: #4a6f9f }
  .kept { fill: #2a8a3e }
</style>
)";

std::string textAt(double x, double y, const std::string &text, const char *attributes = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, attributes,
                     markup(text));
}

/// Values to pixels, from `first` at `begin` to `last` at `end`.
struct PixelAxis {
  double first = 0, last = 1, begin = 0, end = 1;
  double at(double value) const { return begin + (end - begin) * (value - first) / (last - first); }
  /// Round values, about five of them.
  std::vector<double> ticks() const {
    const double rough = (last - first) / 5, decade = std::pow(10, std::floor(std::log10(rough)));
    const double step = decade * (rough / decade < 2 ? 2 : rough / decade < 5 ? 5 : 10);
    std::vector<double> values;
    for (double value = std::ceil(first / step) * step; value <= last; value += step)
      values.push_back(value);
    return values;
  }
};

PixelAxis axisOf(double least, double most, double begin, double end) {
  const double margin = most > least ? 0.06 * (most - least) : std::max(0.5 * most, 1e-9);
  return {
      .first = std::max(0.0, least - margin), .last = most + margin, .begin = begin, .end = end};
}

std::string grid(const PixelAxis &across, const PixelAxis &up) {
  std::string text;
  for (const double value : across.ticks()) {
    const double x = across.at(value);
    text += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>\n", x,
        up.begin, up.end);
    text += textAt(x, up.begin + 16, formatBytes(int64_t(value)), "text-anchor=\"middle\"");
  }
  for (const double value : up.ticks()) {
    const double y = up.at(value);
    text += fmt::format(
        "<line class=\"grid\" x1=\"{1:.1f}\" x2=\"{2:.1f}\" y1=\"{0:.1f}\" y2=\"{0:.1f}\"/>\n", y,
        across.begin, across.end);
    text += textAt(across.begin - 8, y + 4, formatSeconds(value), "text-anchor=\"end\"");
  }
  return text + textAt((across.begin + across.end) / 2, up.begin + 38, "workspace",
                       "class=\"note\" text-anchor=\"middle\"");
}

/// With more memory the time falls at each point of the frontier, and not between two.
std::string steps(const std::vector<FrontierMark> &kept, const PixelAxis &across,
                  const PixelAxis &up) {
  std::string path;
  for (size_t index = 0; index < kept.size(); ++index) {
    const double x = across.at(double(kept[index].workspaceBytes)), y = up.at(kept[index].seconds);
    path +=
        index == 0 ? fmt::format("M{:.1f},{:.1f}", x, y) : fmt::format(" H{:.1f} V{:.1f}", x, y);
  }
  return fmt::format("<path class=\"frontier\" d=\"{} H{:.1f}\"/>\n", path, across.end);
}

std::string dot(const FrontierMark &mark, const PixelAxis &across, const PixelAxis &up) {
  return fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"/>\n",
                     mark.isUndominated ? "kept" : "plan", across.at(double(mark.workspaceBytes)),
                     up.at(mark.seconds), mark.isUndominated ? 5 : 3);
}

}  // namespace

std::string drawFrontier(const std::vector<FrontierMark> &marks, const std::string &title,
                         const std::vector<std::string> &notes) {
  const double top = titleHeight + noteHeight * double(notes.size()) + headGap,
               bottom = top + plotHeight, labels = bottom + axisHeight,
               height = labels + labelHeight * double(std::ranges::count(
                                                   marks, true, &FrontierMark::isUndominated));
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 "
      "0 {0:.0f} {1:.0f}\">\n",
      width, height);
  text += style +
          fmt::format("<rect width=\"{:.0f}\" height=\"{:.0f}\" fill=\"white\"/>\n", width, height);
  text += textAt(8, titleHeight - 2, title, "class=\"title\"");
  for (size_t line = 0; line < notes.size(); ++line)
    text += textAt(8, titleHeight + noteHeight * double(line + 1), notes[line], "class=\"note\"");
  if (marks.empty()) return text + textAt(8, top, "no plan") + "</svg>\n";
  const auto [leastBytes, mostBytes] =
      std::ranges::minmax(marks, {}, &FrontierMark::workspaceBytes);
  const auto [fastest, slowest] = std::ranges::minmax(marks, {}, &FrontierMark::seconds);
  const PixelAxis across =
                      axisOf(double(leastBytes.workspaceBytes), double(mostBytes.workspaceBytes),
                             leftMargin, leftMargin + plotWidth),
                  up = axisOf(fastest.seconds, slowest.seconds, bottom, top);
  std::vector<FrontierMark> kept;
  text += grid(across, up);
  for (const FrontierMark &mark : marks) {
    if (mark.isUndominated) kept.push_back(mark);
    else text += dot(mark, across, up);
  }
  std::ranges::stable_sort(kept, {}, &FrontierMark::workspaceBytes);
  if (!kept.empty()) text += steps(kept, across, up);
  for (size_t index = 0; index < kept.size(); ++index)
    text += dot(kept[index], across, up) +
            textAt(across.at(double(kept[index].workspaceBytes)) + 8,
                   up.at(kept[index].seconds) - 6, std::to_string(index + 1)) +
            textAt(leftMargin, labels + labelHeight * (double(index) + 0.5),
                   fmt::format("{}: {}", index + 1, kept[index].label));
  return text + "</svg>\n";
}

}  // namespace weft::driver
