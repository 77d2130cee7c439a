// What a cubin says of a kernel is held against the launch of the plan; a damaged file is an error
// and nothing worse.
#include <catch2/catch.hpp>

#include "kernel/Error.h"
#include "runtime/artifact/CubinEntry.h"

#include <fmt/format.h>

#include <cstring>

using namespace weft;
using namespace weft::runtime;

namespace {

template <typename Number>
std::string raw(Number value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string attribute(int number, const std::string &content) {
  return std::string{char(4), char(number)} + raw(uint16_t(content.size())) + content;
}

struct SampleCubin {
  std::string name = "norm";
  uint8_t info = 0x12, other = 0x10;  ///< a global function, a kernel
  std::vector<uint32_t> parameterBytes = {8, 128, 4};
  uint32_t mostThreads = 128, registers = 64;

  std::string bytes() const {
    std::string attributes =
        attribute(0x05, raw(mostThreads) + raw(uint32_t(1)) + raw(uint32_t(1)));
    for (size_t position = parameterBytes.size();
         position-- > 0;)  // as ptxas has them: the last one first
      attributes += attribute(0x17, raw(uint32_t(0)) + raw(uint16_t(position)) + raw(uint16_t(0)) +
                                        raw(parameterBytes[position] << 18 | 0x1f000));
    const std::string symbol = raw(uint32_t(1)) + char(info) + char(other) + raw(uint16_t(5)) +
                               raw(uint64_t(0)) + raw(uint64_t(0));
    const std::string names[] = {"",        ".shstrtab", ".strtab",
                                 ".symtab", ".nv.info",  ".nv.info." + name};
    std::string sectionNames;
    for (const std::string &one : names) sectionNames += one + '\0';
    const std::string contents[] = {"",
                                    sectionNames,
                                    std::string(1, '\0') + name + '\0',
                                    std::string(24, '\0') + symbol,
                                    attribute(0x2f, raw(uint32_t(1)) + raw(registers)),
                                    attributes};
    const uint32_t types[] = {0, 3, 3, 2, 0x70000000, 0x70000000};
    std::string body, table;
    uint32_t nameAt = 0;
    for (size_t index = 0; index < std::size(names); ++index) {
      table += raw(nameAt) + raw(types[index]) + raw(uint64_t(0)) + raw(uint64_t(0)) +
               raw(uint64_t(64 + body.size())) + raw(uint64_t(contents[index].size())) +
               raw(uint32_t(2)) + raw(uint32_t(0)) + raw(uint64_t(1)) + raw(uint64_t(0));
      body += contents[index];
      nameAt += uint32_t(names[index].size() + 1);
    }
    std::string header = std::string(
                             "\x7f"
                             "ELF\x02\x01",
                             6) +
                         std::string(34, '\0') + raw(uint64_t(64 + body.size())) +
                         std::string(10, '\0') + raw(uint16_t(64)) +
                         raw(uint16_t(std::size(names))) + raw(uint16_t(1));
    REQUIRE(header.size() == 64);
    return header + body + table;
  }
};

PlanKernel launched() {
  PlanKernel kernel;
  kernel.name = kernel.entry = "norm";
  kernel.block = {128, 1, 1};
  kernel.parameters = {{.kind = ParameterKind::input},
                       {.kind = ParameterKind::inputMap, .map = TensorMap{}},
                       {.kind = ParameterKind::dropoutStream}};
  return kernel;
}

}  // namespace

TEST_CASE("a cubin whose kernel the plan can launch has nothing against it") {
  CHECK(launchRejection(launched(), SampleCubin().bytes()).empty());
  CHECK(launchRejection(launched(), SampleCubin{.mostThreads = 1024}.bytes()).empty());
  CHECK(launchRejection(launched(), ".entry norm").empty());  // PTX, for the driver
  const auto entry = entryOf(SampleCubin().bytes(), "norm");
  REQUIRE(entry);
  CHECK(entry->parameterBytes == std::vector<int64_t>{8, 128, 4});
  CHECK(entry->registers == 64);
  CHECK(entry->mostThreads == 128);
}

TEST_CASE("a cubin that the plan would launch wrongly is rejected with what differs") {
  const auto rejection = [](const SampleCubin &cubin) {
    return launchRejection(launched(), cubin.bytes());
  };
  CHECK(rejection({.name = "evil"}) == "its cubin has no kernel 'norm'; it has 'evil'");
  CHECK(rejection({.other = 0}) == "its cubin has no kernel 'norm'; it has none");
  CHECK(rejection({.info = 0x02}) == "'norm' is no global symbol of its cubin");
  CHECK(rejection({.parameterBytes = {8, 128}}) ==
        "'norm' takes parameters of [8, 128] bytes in its cubin, and the plan passes [8, 128, 4]");
  CHECK(
      rejection({.parameterBytes = {8, 128, 8}}) ==
      "'norm' takes parameters of [8, 128, 8] bytes in its cubin, and the plan passes [8, 128, 4]");
  CHECK(rejection({.parameterBytes = {}}) ==
        "'norm' takes parameters of [] bytes in its cubin, and the plan passes [8, 128, 4]");
  CHECK(rejection({.mostThreads = 64}) ==
        "'norm' was built for blocks of at most 64 threads, and the plan launches 128");
  PlanKernel wide = launched();
  wide.block = {1024, 1, 1};
  CHECK_THAT(launchRejection(wide, SampleCubin{.mostThreads = 1024, .registers = 65}.bytes()),
             Catch::Contains("65 registers a thread: 1024 threads"));
}

TEST_CASE("a damaged cubin is an error with a reason") {
  const std::string good = SampleCubin().bytes();
  constexpr size_t header = 64, unread = 20;  // of the last section's entry, at the end of the file
  size_t rejected = 0;
  for (size_t size = header; size < good.size() - unread; ++size) {
    try {
      launchRejection(launched(), good.substr(0, size));
    } catch (const Error &error) {
      CHECK(std::string(error.what()) == "it is a damaged ELF file");
      ++rejected;
    }
  }
  CHECK(rejected == good.size() - unread - header);  // the table of sections stands at the end
  for (size_t at = 6; at < good.size(); ++at)
    for (const char value : {'\0', '\x7f', '\xff'}) {
      std::string bytes = good;
      bytes[at] = value;
      try {
        launchRejection(launched(), bytes);
      } catch (const Error &) {
        ++rejected;
      }
    }
  CHECK(rejected > good.size());
}
