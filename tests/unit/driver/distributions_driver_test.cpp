// Distributions of measured times, their densities, and the violins that are drawn of them.
#include "tests/support/NonEmpty.h"
#include "tools/driver/ViolinSvg.h"

#include "tests/unit/samples/SampleKernels.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::driver;

namespace {

size_t count(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++found;
  return found;
}

Distribution sample(const std::string &name, std::vector<double> seconds,
                    std::optional<double> chosen = {}) {
  return {.kernel = name,
          .subject = "softmax",
          .seconds = std::move(seconds),
          .best = "loop 01>01",
          .chosen = "loop 10>01",
          .chosenSeconds = chosen};
}

/// Tags that are opened are closed, in order; text holds no bare markup.
bool isWellFormed(const std::string &svg) {
  std::vector<std::string> open;
  for (size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
    const size_t end = svg.find('>', at);
    if (end == std::string::npos || svg.substr(at + 1, end - at - 1).find('<') != std::string::npos)
      return false;
    const std::string tag = svg.substr(at + 1, end - at - 1);
    if (tag.ends_with("/")) continue;
    if (!tag.starts_with("/")) {
      open.push_back(tag.substr(0, tag.find(' ')));
      continue;
    }
    if (open.empty() || open.back() != tag.substr(1)) return false;
    open.pop_back();
  }
  return open.empty();
}

}  // namespace

TEST_CASE("quantiles lie between neighbours") {
  const std::vector<double> values{1, 2, 3, 4, 5};
  CHECK(quantile(values, 0) == 1);
  CHECK(quantile(values, 0.5) == 3);
  CHECK(quantile(values, 0.625) == Approx(3.5));
  CHECK(quantile(values, 1) == 5);
  CHECK(quantile({7}, 0.3) == 7);
}

TEST_CASE("a density has its peaks where the times are") {
  // Two modes, 10 us (30 times) and 1 ms (10 times), nothing between.
  std::vector<double> seconds;
  for (int n = 0; n < 30; ++n) seconds.push_back(1e-5 * (1 + 1e-3 * n));
  for (int n = 0; n < 10; ++n) seconds.push_back(1e-3 * (1 + 1e-3 * n));
  const Density density = densityOf(seconds, 201);
  REQUIRE(density.values.size() == 201);
  CHECK(density.first == Approx(-5));
  const auto largest = std::max_element(density.values.begin(), density.values.end());
  CHECK(*largest == 1);
  CHECK(largest - density.values.begin() < 10);
  CHECK(density.values.back() > 0.2);
  CHECK(density.values.back() < 0.6);
  CHECK(density.values[100] < 0.05);
  for (const double value : nonEmpty(density.values)) CHECK((value >= 0 && value <= 1));
}

TEST_CASE("one configuration still has a density") {
  const Density density = densityOf({2e-6});
  for (const double value : nonEmpty(density.values)) CHECK((value > 0.9 && value <= 1));
}

TEST_CASE("a figure has one violin a kernel, and the marks") {
  const std::vector<Distribution> distributions{sample("scaled<softmax>", {1e-6, 2e-6, 9e-6}, 2e-6),
                                                sample("bias & relu", {3e-6, 4e-5})};
  const std::string svg = drawViolins(distributions, "title", {"cold L2", "rows of 5 of 7"});
  CHECK(isWellFormed(svg));
  CHECK(count(svg, "class=\"violin\"") == 2);
  CHECK(count(svg, "<circle class=\"chosen\"") == 2);  // one kernel and the legend
  CHECK(svg.find("scaled&lt;softmax&gt;") != std::string::npos);
  CHECK(svg.find("bias &amp; relu") != std::string::npos);
  CHECK(svg.find("cold L2") < svg.find("rows of 5 of 7"));
  CHECK(svg.find("rows of 5 of 7") != std::string::npos);
  CHECK(svg.find("(2.00x)") != std::string::npos);
  CHECK(svg.find("(not measured)") != std::string::npos);
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(svg == drawViolins(distributions, "title", {"cold L2", "rows of 5 of 7"}));
  CHECK(isWellFormed(drawViolins({}, "title", {})));
}

TEST_CASE(
    "what ships says that it keeps the rows near the best, other profiles say how many rows they "
    "have") {
  Distribution one = sample("a", {1e-6, 2e-6}), other = sample("b", {1e-6});
  one.legal = 40;
  one.failed = 1;
  other.legal = 2e9;
  const MeasurementCoverage own = coverageOf({one, other}, false),
                            shipped = coverageOf({one, other}, true);
  CHECK(own.lines() ==
        std::vector<std::string>{
            "measurements of 4 of 2.0e+09 legal configurations; the others are not shown"});
  REQUIRE(shipped.lines().size() == 2);
  CHECK(shipped.lines().front() ==
        "measurements of 4 of 2.0e+09 legal configurations: the profile that ships keeps only the "
        "best "
        "measurements of each kernel, so slow tails are missing");
  CHECK(shipped.lines().back().find("--layouts 1000000 --layout-factor 1000000 --knobs 1") !=
        std::string::npos);
  CHECK(toJson(shipped)["legal"] == 2e9 + 40);
}

TEST_CASE("csv marks the best and the chosen time once") {
  const std::string text =
      printCsv({sample("a", {1e-6, 2e-6, 2e-6}, 2e-6), sample("b", {1e-6}, 1e-6)});
  CHECK(text ==
        "kernel,subject,seconds,mark\na,softmax,1e-06,best\na,softmax,2e-06,chosen\na,softmax,2e-"
        "06,\nb,softmax,1e-06,best chosen\n");
}
