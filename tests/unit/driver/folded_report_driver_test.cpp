// What report.json says of parts is read as if it stood in the whole.
#include "tools/driver/FoldedReport.h"

#include "kernel/Error.h"

#include <catch2/catch.hpp>

using namespace weft;
using namespace weft::driver;
using nlohmann::json;

namespace {

json record(std::vector<int> ops, std::vector<std::string> names, const std::string &detail) {
  return {{"ops", std::move(ops)}, {"opNames", std::move(names)}, {"detail", detail}};
}

/// A part of three ops, of layer 1, that stands twice: its ops are 0, 1, 4 and 2, 3, 5 of the
/// whole.
json report() {
  return {{"fusions", json::array({record({6, 7}, {"head", "loss"}, "whole")})},
          {"fusionPrices", json::array({{{"ops", {6, 7}}, {"fused", true}}})},
          {"parts",
           {{{"fusions",
              json::array({record({0, 1}, {"carried1", "layer1_q"}, "reads carried1"),
                           record({1, 2}, {"layer1_q", "d_layer1_q"}, "layer1_q, layer2_k")})},
             {"fusionPrices", json::array({{{"ops", {0, 2}},
                                            {"fused", false},
                                            {"option", "--no-fuse layer1_q,carried1"},
                                            {"steps", json::array({{{"step", "layer1_q: ij"}}})},
                                            {"otherSteps", json::array()}}})},
             {"placed",
              {{{"ops", {0, 1, 4}}, {"arguments", {"embedded"}}, {"shift", 0}},
               {{"ops", {2, 3, 5}}, {"arguments", {"layer2_norm"}}, {"shift", 2}}}}}}}};
}

}  // namespace

TEST_CASE("records of a part are found at each of its places, in the whole's numbers and names") {
  const json given = report();
  CHECK(fusionsBetween(given, {0}, {1}) ==
        std::vector<json>{record({0, 1}, {"embedded", "layer1_q"}, "reads embedded")});
  CHECK(fusionsBetween(given, {2}, {3}) ==
        std::vector<json>{record({2, 3}, {"layer2_norm", "layer3_q"}, "reads layer2_norm")});
  CHECK(fusionsBetween(given, {3, 1}, {4, 5}) ==
        std::vector<json>{record({1, 4}, {"layer1_q", "d_layer1_q"}, "layer1_q, layer2_k"),
                          record({3, 5}, {"layer3_q", "d_layer3_q"}, "layer3_q, layer4_k")});
  CHECK(fusionsBetween(given, {1}, {3}).empty());  // of two places
  CHECK(fusionsBetween(given, {0}, {4}).empty());  // no record has both
  CHECK(fusionsBetween(given, {7}, {6}) ==
        std::vector<json>{record({6, 7}, {"head", "loss"}, "whole")});
}

TEST_CASE("prices of a part are listed for each of its places, behind those of the whole") {
  const json prices = fusionPricesOf(report());
  REQUIRE(prices.size() == 3);
  CHECK(prices[0]["ops"] == json({6, 7}));
  CHECK(prices[1]["ops"] == json({0, 4}));
  CHECK(prices[1]["option"] == "--no-fuse layer1_q,embedded");
  CHECK(prices[2]["ops"] == json({2, 5}));
  CHECK(prices[2]["option"] == "--no-fuse layer3_q,layer2_norm");
  CHECK(prices[2]["steps"][0]["step"] == "layer3_q: ij");
}

TEST_CASE("a part's op that a place does not have is rejected") {
  json given = report();
  const auto said = [&]() -> std::string {
    try {
      fusionPricesOf(given);
      fusionsBetween(given, {2}, {3});
    } catch (const Error &error) {
      CHECK(error.kind == ErrorKind::badInput);
      return error.what();
    }
    return "";
  };
  CHECK(said() == "");
  given["parts"][0]["placed"][1]["ops"] = {2, 3};
  CHECK(said() == "report.json: parts: op 2 of a part that has 2 where it is placed");
  given = report();
  given["parts"][0]["fusions"][0]["ops"] = {0, -1};
  CHECK(said() == "report.json: parts: op -1 of a part that has 3 where it is placed");
}
