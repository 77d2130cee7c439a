// Violins as SVG; see ViolinSvg.h.
#include "tools/driver/ViolinSvg.h"

#include "kernel/Format.h"
#include "kernel/PlainText.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace weft::driver {
namespace {

// Pixels.
constexpr double labelWidth = 300, plotWidth = 620, rightMargin = 130, titleHeight = 24,
                 noteHeight = 16, legendHeight = 38, rowHeight = 44, halfViolin = 17,
                 axisHeight = 44;
constexpr double width = labelWidth + plotWidth + rightMargin;

constexpr const char *style = R"(<style>
  text { font: 12px sans-serif; fill: #222 }
  .title { font-size: 15px; font-weight: bold } .note { font-size: 11px; fill: #666 }
  .violin { fill: #9db8d9; stroke: #4a6f9f; stroke-width: 0.8 }
  .grid { stroke: #ddd } .median { stroke: #222; stroke-width: 1.5 }
  .best { fill: #2a8a3e } .chosen { fill: none; stroke: #c4441a; stroke-width: 2 }
</style>
)";

std::string textAt(double x, double y, const std::string &text, const char *attributes = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, attributes,
                     markup(text));
}

/// Logarithms of time to pixels.
struct Scale {
  double first = 0, last = 1;
  double at(double logarithm) const {
    return labelWidth + plotWidth * (logarithm - first) / (last - first);
  }
  double of(double seconds) const { return at(std::log10(seconds)); }
};

Scale scaleOf(const std::vector<Distribution> &distributions) {
  double least = distributions.front().seconds.front(), most = distributions.front().seconds.back();
  for (const Distribution &one : distributions) {
    least = std::min(least, one.seconds.front());
    most = std::max(most, one.seconds.back());
  }
  constexpr double margin = 0.04;  // decades
  return {.first = std::log10(least) - margin, .last = std::log10(most) + margin};
}

/// 1, 2, 5 of every decade; more where the axis is short.
std::string axis(const Scale &scale, double top, double bottom) {
  constexpr double shortAxis = 0.7;  // decades
  const std::vector<double> steps = scale.last - scale.first < shortAxis
                                        ? std::vector<double>{1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9}
                                        : std::vector<double>{1, 2, 5};
  std::string text;
  for (int decade = int(std::floor(scale.first)); decade <= int(std::ceil(scale.last)); ++decade)
    for (const double step : steps) {
      const double seconds = step * std::pow(10.0, decade), logarithm = std::log10(seconds);
      if (logarithm < scale.first || logarithm > scale.last) continue;
      const double x = scale.at(logarithm);
      text += fmt::format(
          "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>\n", x,
          top, bottom);
      text += textAt(x, bottom + 16, formatSeconds(seconds), "text-anchor=\"middle\"");
    }
  return text;
}

std::string outline(const Density &density, const Scale &scale, double middle) {
  const size_t points = density.values.size();
  const auto place = [&](size_t index, double side) {
    const double logarithm =
        density.first + (density.last - density.first) * double(index) / double(points - 1);
    return fmt::format("{:.1f},{:.1f}", scale.at(logarithm),
                       middle + side * halfViolin * density.values[index]);
  };
  std::string path;
  for (size_t index = 0; index < points; ++index)
    path += (index == 0 ? "M" : " L") + place(index, -1);
  for (size_t index = points; index-- > 0;) path += " L" + place(index, 1);
  return fmt::format("<path class=\"violin\" d=\"{} Z\"/>\n", path);
}

std::string countsOf(const Distribution &one) {
  std::string text = fmt::format("{} configurations", one.seconds.size());
  if (one.slow > 0) text += fmt::format(", {} slow", one.slow);
  if (one.sharedBy > 1) text += fmt::format("; {} kernels", one.sharedBy);
  return text;
}

std::string violin(const Distribution &one, const Scale &scale, double middle) {
  std::string text = "<g>\n<title>" +
                     markup(one.kernel + "\nbest   " + one.best + "\nchosen " + one.chosen) +
                     "</title>\n";
  text += textAt(8, middle - 2, one.kernel) +
          textAt(8, middle + 12,
                 one.subject == one.kernel ? countsOf(one) : one.subject + ", " + countsOf(one),
                 "class=\"note\"");
  text += outline(densityOf(one.seconds), scale, middle);
  const double median = scale.of(quantile(one.seconds, 0.5)), best = scale.of(one.seconds.front());
  text += fmt::format(
      "<line class=\"median\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>\n",
      median, middle - 6, middle + 6);
  text +=
      fmt::format("<path class=\"best\" d=\"M{:.1f},{:.1f} l-5,9 l10,0 Z\"/>\n", best, middle - 4);
  if (one.chosenSeconds)
    text += fmt::format("<circle class=\"chosen\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"/>\n",
                        scale.of(*one.chosenSeconds), middle);
  const std::string ratio =
      one.chosenSeconds ? fmt::format(" ({:.2f}x)", *one.chosenSeconds / one.seconds.front())
                        : " (not measured)";
  return text +
         textAt(labelWidth + plotWidth + 10, middle + 4,
                formatSeconds(one.seconds.front()) + ratio) +
         "</g>\n";
}

std::string legend(double y) {
  const double x = labelWidth;
  return fmt::format("<path class=\"best\" d=\"M{0:.1f},{1:.1f} l-5,9 l10,0 Z\"/>\n", x + 5,
                     y - 9) +
         textAt(x + 15, y, "best") +
         fmt::format("<circle class=\"chosen\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"/>\n", x + 65,
                     y - 4) +
         textAt(x + 76, y, "chosen by the plan") +
         fmt::format(
             "<line class=\"median\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" "
             "y2=\"{2:.1f}\"/>\n",
             x + 205, y - 10, y + 2) +
         textAt(x + 213, y, "median") +
         textAt(labelWidth + plotWidth + 10, y, "best (chosen / best)", "class=\"note\"");
}

}  // namespace

Density densityOf(const std::vector<double> &seconds, int points, double leastBandwidth) {
  std::vector<double> logarithms;
  for (const double one : seconds) logarithms.push_back(std::log10(one));
  const auto n = double(logarithms.size());
  const double mean = std::accumulate(logarithms.begin(), logarithms.end(), 0.0) / n;
  double squares = 0;
  for (const double one : logarithms) squares += (one - mean) * (one - mean);
  // Silverman: 0.9 min(deviation, interquartile range / 1.34) n^(-1/5).
  const double deviation = std::sqrt(squares / n),
               range = (quantile(logarithms, 0.75) - quantile(logarithms, 0.25)) / 1.34;
  const double bandwidth =
      std::max(leastBandwidth,
               0.9 * (range > 0 ? std::min(deviation, range) : deviation) * std::pow(n, -0.2));
  Density density{.first = logarithms.front(),
                  .last = std::max(logarithms.back(), logarithms.front() + 1e-9),
                  .values = {}};
  for (int point = 0; point < points; ++point) {
    const double at = density.first + (density.last - density.first) * point / (points - 1);
    double sum = 0;
    for (const double one : logarithms) sum += std::exp(-0.5 * std::pow((at - one) / bandwidth, 2));
    density.values.push_back(sum);
  }
  const double largest = *std::max_element(density.values.begin(), density.values.end());
  for (double &value : density.values) value /= largest;
  return density;
}

std::string drawViolins(const std::vector<Distribution> &distributions, const std::string &title,
                        const std::vector<std::string> &notes) {
  const double headHeight = titleHeight + noteHeight * double(notes.size()) + legendHeight;
  const double bottom = headHeight + rowHeight * double(distributions.size()),
               height = bottom + axisHeight;
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 "
      "0 {0:.0f} {1:.0f}\">\n",
      width, height);
  text += style +
          fmt::format("<rect width=\"{:.0f}\" height=\"{:.0f}\" fill=\"white\"/>\n", width, height);
  text += textAt(8, titleHeight - 2, title, "class=\"title\"");
  for (size_t line = 0; line < notes.size(); ++line)
    text += textAt(8, titleHeight + noteHeight * double(line + 1), notes[line], "class=\"note\"");
  if (distributions.empty())
    return text + textAt(8, headHeight, "no kernel of this kind has measurements") + "</svg>\n";
  const Scale scale = scaleOf(distributions);
  text += legend(headHeight - 14) + axis(scale, headHeight, bottom);
  for (size_t row = 0; row < distributions.size(); ++row)
    text += violin(distributions[row], scale, headHeight + rowHeight * (double(row) + 0.5));
  return text + "</svg>\n";
}

}  // namespace weft::driver
