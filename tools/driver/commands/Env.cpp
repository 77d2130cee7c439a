// weft env: every environment variable that is read, and what was found on this machine.
#include "codegen/families/library/LibraryKnobs.h"
#include "tools/driver/Console.h"
#include "tools/driver/commands/Commands.h"

#include <fmt/format.h>
#include "runtime/build/Build.h"
#include "runtime/cuda/CublasLt.h"
#include "runtime/system/Environment.h"

namespace weft::driver {
namespace {

nlohmann::json environmentJson() {
  const std::optional<std::filesystem::path> cache = runtime::knownCacheFolder();
  nlohmann::json knobs = nlohmann::json::array();
  for (const runtime::EnvironmentKnob &knob : runtime::environmentKnobs()) {
    const std::optional<std::string> value = runtime::environmentValue(knob.name);
    knobs.push_back({{"name", knob.name},
                     {"effect", nameOf(knob.effect)},
                     {"meaning", knob.meaning},
                     {"value", value ? nlohmann::json(*value) : nlohmann::json()}});
  }
  const runtime::NvrtcLocation nvrtc = runtime::findNvrtc();
  const runtime::CublasLtLocation cublasLt = runtime::findCublasLt();
  const std::string cublasLtVersion =
      cublasLt.library.empty() ? "" : libraryVersionText(cublasLt.version);
  return {{"variables", knobs},
          {"nvrtc",
           {{"library", nvrtc.library.string()},
            {"version", nvrtc.version},
            {"searched", nvrtc.searched}}},
          {"cublasLt",
           {{"library", cublasLt.library.string()},
            {"version", cublasLtVersion},
            {"searched", cublasLt.searched}}},
          {"cache", cache ? nlohmann::json(cache->string()) : nlohmann::json()},
          {"workers", runtime::workerCount()}};
}

std::string text(const nlohmann::json &environment) {
  Table table({{"variable", left}, {"value", left}, {"changes output", left}, {"meaning", broken}});
  for (const nlohmann::json &knob : environment["variables"])
    table.addRow({knob["name"], knob["value"].is_null() ? "-" : knob["value"].get<std::string>(),
                  knob["effect"] == nameOf(runtime::KnobEffect::changesOutput) ? "yes" : "no",
                  knob["meaning"]});
  std::string result = table.print() + "\n";
  for (const auto &[name, member] :
       {std::pair("NVRTC", "nvrtc"), std::pair("cuBLASLt", "cublasLt")}) {
    const nlohmann::json &found = environment[member];
    const std::string library = found["library"];
    result += library.empty() ? fmt::format("{}: none; searched, in this order:\n", name)
                              : fmt::format("{} {}: {}; searched before it was found:\n", name,
                                            found["version"].get<std::string>(), library);
    for (const nlohmann::json &place : found["searched"])
      result += "  " + place.get<std::string>() + "\n";
  }
  return result + fmt::format("cache: {}\nbuild workers: {}\n",
                              environment["cache"].is_null()
                                  ? fmt::format("nothing is kept: {}", runtime::noCacheFolder)
                                  : environment["cache"].get<std::string>(),
                              environment["workers"].get<int>());
}

}  // namespace

Action addEnv(CLI::App &) {
  return [](bool json) {
    const nlohmann::json environment = environmentJson();
    if (json) printResult(environment);
    else printResult(text(environment));
    return 0;
  };
}

}  // namespace weft::driver
