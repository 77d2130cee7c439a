// Device files: what is embedded is sound, and a broken description is rejected by name.
#include "kernel/Device.h"
#include "kernel/Error.h"
#include "tests/support/NonEmpty.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <functional>

using namespace weft;
using nlohmann::json;
using weft::test::nonEmpty;

namespace {

json goodDevice() {
  const Device &h200 = findDevice("h200");
  json sources = json::object();
  for (const auto &[figure, source] : h200.sources) sources[figure] = source;
  return {{"name", "toy"},
          {"title", "a toy"},
          {"architecture", "sm_80"},
          {"canEmit", true},
          {"multiprocessors", 4},
          {"copyBandwidth", 8e11},
          {"peakBandwidth", 9e11},
          {"memoryBytes", 8e9},
          {"l2Bytes", 4e6},
          {"tensorFlops", {{"f16", 1e14}}},
          {"fmaFlops", 1e13},
          {"launchSeconds", 2e-6},
          {"sharedMemoryPerBlock", 65536},
          {"measured", json::array({"launchSeconds"})},
          {"sources", sources}};
}

/// The message of the Error(badInput) that an edit provokes; it must name the file.
std::string rejectionOf(const std::function<void(json &)> &edit) {
  json device = goodDevice();
  edit(device);
  try {
    parseDevice(device.dump(), "toy.json");
  } catch (const Error &error) {
    CHECK(error.kind == ErrorKind::badInput);
    CHECK(std::string(error.what()).starts_with("toy.json: "));
    return error.what();
  }
  return "";
}

bool says(const std::string &message, const std::string &text) {
  return message.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("a device description is read whole") {
  const Device toy = parseDevice(goodDevice().dump(), "toy.json");
  CHECK(toy.name == "toy");
  CHECK(toy.multiprocessors == 4);
  CHECK(toy.tensorFlops == std::map<DType, double>{{DType::f16, 1e14}});
  CHECK(toy.sharedMemoryPerBlock == 65536);
}

TEST_CASE("broken device descriptions name the file and the member") {
  for (const char *text : {"", "{", "not json"})
    CHECK_THROWS_WITH(parseDevice(text, "toy.json"), Catch::Contains("toy.json: not JSON"));
  for (const char *text : {"[]", "3", "null"})
    CHECK_THROWS_AS(parseDevice(text, "toy.json"), Error);
  for (const char *member : {"name", "architecture", "canEmit", "multiprocessors", "copyBandwidth",
                             "memoryBytes", "tensorFlops", "fmaFlops", "launchSeconds",
                             "sharedMemoryPerBlock", "measured", "sources"}) {
    INFO(member);
    CHECK(says(rejectionOf([&](json &device) { device.erase(member); }), member));
  }
  for (const json &value : {json(0), json(-1), json("many"), json(nullptr)})
    CHECK(says(rejectionOf([&](json &device) { device["copyBandwidth"] = value; }),
               "'copyBandwidth' must be a positive number"));
  CHECK(says(rejectionOf([](json &device) { device["sources"].erase("l2Bytes"); }),
             "'l2Bytes' names no source"));
  CHECK(says(rejectionOf([](json &device) { device["sources"]["l2Bytes"] = 7; }),
             "'l2Bytes' names no source"));
  for (const json &figures : {json("l2Bytes"), json{7}, json(nullptr)})
    CHECK(says(rejectionOf([&](json &device) { device["measured"] = figures; }),
               "'measured' must be a list of figures"));
  CHECK(says(rejectionOf([](json &device) { device["measured"] = {"weight"}; }),
             "'weight' names no source"));
  CHECK(says(rejectionOf([](json &device) { device["tensorFlops"]["f17"] = 1e12; }),
             "unknown element type 'f17'"));
  CHECK(says(rejectionOf([](json &device) { device["tensorFlops"]["bf16"] = -1e12; }),
             "'tensorFlops' must be a positive number"));
}

TEST_CASE("every embedded device is plausible and names the source of each figure") {
  REQUIRE(devices().size() >= 6);
  for (const Device &device : nonEmpty(devices())) {
    INFO(device.name);
    CHECK(&findDevice(device.name) == &device);
    CHECK(device.copyBandwidth < device.peakBandwidth);
    CHECK(device.architecture.starts_with("sm_"));
    for (const char *figure :
         {"multiprocessors", "copyBandwidth", "peakBandwidth", "memoryBytes", "l2Bytes",
          "tensorFlops", "fmaFlops", "launchSeconds", "sharedMemoryPerBlock"})
      CHECK(device.sources.contains(figure));
    for (const auto &[type, flops] : nonEmpty(device.tensorFlops)) CHECK(flops > device.fmaFlops);
  }
  CHECK_THROWS_WITH(findDevice("h20"), Catch::Contains("unknown device 'h20'") &&
                                           Catch::Contains("nearest is 'h200'"));
}

TEST_CASE("a device that nothing was measured on is known by its data sheet") {
  for (const Device &device : nonEmpty(devices()))
    CHECK(device.isFromDataSheet() == (device.name != "h200"));
  json device = goodDevice();
  device["measured"] = json::array();
  for (auto &[figure, source] : device["sources"].items()) source = "measured on a toy";
  CHECK(parseDevice(device.dump(), "toy.json").isFromDataSheet());  // whatever its sources read
  device["measured"] = {"launchSeconds"};
  device["sources"]["launchSeconds"] = "timed by hand";
  CHECK_FALSE(parseDevice(device.dump(), "toy.json").isFromDataSheet());
}
