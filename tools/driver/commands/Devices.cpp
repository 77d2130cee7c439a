// weft devices: the GPUs that can be chosen for, and where each figure is from.
#include "tools/driver/Console.h"
#include "tools/driver/commands/Commands.h"

#include "kernel/Device.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

namespace weft::driver {
namespace {

nlohmann::json toJson(const Device &device) {
  nlohmann::json tensorFlops = nlohmann::json::object();
  for (const auto &[type, flops] : device.tensorFlops)
    tensorFlops[std::string(nameOf(type))] = flops;
  return {{"name", device.name},
          {"title", device.title},
          {"architecture", device.architecture},
          {"canEmit", device.canEmit},
          {"multiprocessors", device.multiprocessors},
          {"copyBandwidth", device.copyBandwidth},
          {"peakBandwidth", device.peakBandwidth},
          {"memoryBytes", device.memoryBytes},
          {"l2Bytes", device.l2Bytes},
          {"tensorFlops", tensorFlops},
          {"fmaFlops", device.fmaFlops},
          {"launchSeconds", device.launchSeconds},
          {"sharedMemoryPerBlock", device.sharedMemoryPerBlock},
          {"measured", device.measured},
          {"sources", device.sources}};
}

std::string overview() {
  Table table({{"device", left},
               {"target", left},
               {"emits", left},
               {"copy", right},
               {"peak", right},
               {"f16 tensor", right},
               {"fp32 FMA", right},
               {"memory", right},
               {"L2", right},
               {"title", broken}});
  for (const Device &device : devices()) {
    const auto tensor = device.tensorFlops.find(DType::f16);
    table.addRow({device.name, device.architecture, device.canEmit ? "yes" : "model-only",
                  formatBandwidth(device.copyBandwidth), formatBandwidth(device.peakBandwidth),
                  tensor == device.tensorFlops.end() ? "-" : formatFlop(tensor->second) + "/s",
                  formatFlop(device.fmaFlops) + "/s", formatBytes(int64_t(device.memoryBytes)),
                  formatBytes(int64_t(device.l2Bytes)), device.title});
  }
  return table.print();
}

std::string details(const Device &device) {
  std::string text = fmt::format("{} ({}), {}\n", device.title, device.name, device.architecture);
  const nlohmann::json figures = toJson(device);
  for (const auto &[figure, source] : device.sources)
    text += fmt::format("  {:<22} {:<40} {}\n", figure,
                        figures.value(figure, nlohmann::json()).dump(), source);
  return text;
}

}  // namespace

Action addDevices(CLI::App &command) {
  auto name = std::make_shared<std::string>();
  command.add_option("device", *name, "one device: every figure with its source")
      ->type_name("NAME");
  return [name](bool json) {
    if (!name->empty()) {
      const Device &device = findDevice(*name);
      if (json) printResult(nlohmann::json{{"devices", nlohmann::json::array({toJson(device)})}});
      else printResult(details(device));
      return 0;
    }
    if (!json) {
      printResult(overview());
      return 0;
    }
    nlohmann::json list = nlohmann::json::array();
    for (const Device &device : devices()) list.push_back(toJson(device));
    printResult(nlohmann::json{{"devices", list}});
    return 0;
  };
}

}  // namespace weft::driver
