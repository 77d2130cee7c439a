// The figure of time over workspace: every plan is drawn, those of the frontier in order and with
// their labels, within the plot.
#include "tools/driver/FrontierSvg.h"

#include <catch2/catch.hpp>

#include <regex>

using namespace weft::driver;

namespace {

size_t countOf(const std::string &text, const std::string &part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

struct Circle {
  double x, y;
};
std::vector<Circle> circles(const std::string &text, const std::string &kind) {
  const std::regex circle("<circle class=\"" + kind + "\" cx=\"([0-9.]+)\" cy=\"([0-9.]+)\"");
  std::vector<Circle> found;
  for (std::sregex_iterator at(text.begin(), text.end(), circle), end; at != end; ++at)
    found.push_back({std::stod((*at)[1]), std::stod((*at)[2])});
  return found;
}

const std::vector<FrontierMark> marks = {
    {.seconds = 1e-3, .workspaceBytes = 40'000'000, .label = "fast & large", .isUndominated = true},
    {.seconds = 1.5e-3, .workspaceBytes = 42'000'000},
    {.seconds = 2e-3, .workspaceBytes = 10'000'000, .label = "small", .isUndominated = true}};

}  // namespace

TEST_CASE("the frontier falls to the right, and no plan lies outside of the plot") {
  const std::string text = drawFrontier(marks, "gpt2: time < workspace", {"a note"});
  const std::vector<Circle> kept = circles(text, "kept"), others = circles(text, "plan");
  REQUIRE(kept.size() == 2);
  REQUIRE(others.size() == 1);
  CHECK((kept[0].x < kept[1].x && kept[0].y < kept[1].y));  // y grows downwards
  CHECK((others[0].x > kept[1].x && others[0].y < kept[1].y && others[0].y > kept[0].y));
  for (const Circle &one : {kept[0], kept[1], others[0]})
    CHECK((one.x > 90 && one.x < 810 && one.y > 40 && one.y < 430));
  CHECK(text.find("1: small") != std::string::npos);
  CHECK(text.find("2: fast &amp; large") != std::string::npos);
  CHECK(text.find("gpt2: time &lt; workspace") != std::string::npos);
  CHECK(countOf(text, "class=\"frontier\"") == 1);
  CHECK(text == drawFrontier(marks, "gpt2: time < workspace", {"a note"}));
}

TEST_CASE("one plan, equal plans and none have a figure, too") {
  CHECK(drawFrontier({}, "t", {}).find("no plan") != std::string::npos);
  for (const int64_t bytes : {int64_t(0), int64_t(5)}) {
    const FrontierMark one{.seconds = 1e-3, .workspaceBytes = bytes, .isUndominated = true};
    const std::string text = drawFrontier({one, one}, "t", {});
    CHECK(text.find("nan") == std::string::npos);
    CHECK(text.find("inf") == std::string::npos);
    CHECK(circles(text, "kept").size() == 2);
    CHECK(text.ends_with("</svg>\n"));
  }
}
