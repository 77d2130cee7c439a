// Layouts by names of axes: as text, and in plan.json.
#include "plan/NamedLayout.h"
#include "tests/support/ExampleArtifact.h"

#include <catch2/catch.hpp>

using namespace weft;

TEST_CASE("a layout is read as both spellings have it") {
  const NamedLayout letters{{"h", "b", "j"}}, words{{"q", "tokens"}}, rows{{"b", "u"}, 4096};
  CHECK(shortText(letters) == "hbj");
  CHECK(print(letters) == "h,b,j");
  CHECK(shortText(words) == "q,tokens");
  CHECK(shortText(rows) == "bu:4096");
  CHECK(print(rows) == "b,u:4096");
  CHECK(shortText({}) == "-");
  for (const NamedLayout &layout : {letters, words, rows}) {
    CHECK(parseNamedLayout(shortText(layout)) == layout);
    CHECK(parseNamedLayout(print(layout)) == layout);
  }
  for (const char *text : {"bu:", "bu:rows", "bu:0", "bu:-8", "bu:8:8"})
    CHECK(parseNamedLayout(text) == std::nullopt);
}

TEST_CASE("layouts of kernels come back from plan.json, of one axis with a long name, too") {
  Plan plan = test::exampleArtifact().plan;
  const std::pair<std::vector<std::string>, NamedLayout> cases[] = {
      {{"b", "i"}, {{"i", "b"}, 72}}, {{"tokens"}, {{"tokens"}}}, {{"t"}, {{"t"}}}, {{}, {}}};
  for (const auto &[axes, layout] : cases) {
    plan.tensors[0].axes = axes;
    plan.kernels[0].inputLayouts = {layout};
    const nlohmann::json json = toJson(plan);
    CHECK(json["kernels"][0]["inputLayouts"][0] == shortText(layout));
    CHECK(planFromJson(json, "plan.json").kernels[0].inputLayouts == std::vector{layout});
  }
}

TEST_CASE("a layout of plan.json whose rows have no number is rejected") {
  nlohmann::json json = toJson(test::exampleArtifact().plan);
  json["kernels"][0]["inputLayouts"][0] = "ib:wide";
  CHECK_THROWS_WITH(planFromJson(json, "plan.json"),
                    Catch::Contains("kernels[0].inputLayouts[0]") &&
                        Catch::Contains("a layout as \"bju\" or \"bju:4096\""));
}
