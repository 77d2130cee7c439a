// weft cache stat|verify|gc: the folder of built kernels.
#include "tools/driver/Console.h"
#include "tools/driver/Flags.h"
#include "tools/driver/commands/Commands.h"

#include "kernel/ByteText.h"
#include "kernel/PlainText.h"
#include "runtime/build/Build.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

namespace weft::driver {
namespace {

int stat(bool json) {
  const runtime::CacheStatistics statistics = runtime::cacheStatistics();
  if (json)
    printResult(nlohmann::json{{"folder", statistics.folder.string()},
                               {"entries", statistics.entries},
                               {"bytes", statistics.bytes}});
  else
    printResult(fmt::format("{}: {}, {}\n", printableLine(statistics.folder.string()),
                            countOf(statistics.entries, "kernel"), formatBytes(statistics.bytes)));
  return 0;
}

int verify(bool json) {
  const std::vector<std::string> broken = runtime::cacheVerify();
  const runtime::CacheStatistics statistics = runtime::cacheStatistics();
  if (json) {
    printResult(nlohmann::json{{"entries", statistics.entries}, {"broken", broken}});
  } else {
    std::string text;
    for (const std::string &entry : broken) text += "broken: " + entry + "\n";
    printResult(text + fmt::format("{}, {} broken\n", countOf(statistics.entries, "kernel"),
                                   broken.size()));
  }
  return broken.empty() ? 0 : 1;
}

int collect(const std::string &keep, bool json) {
  const int64_t freed = runtime::cacheCollect(keep == "0" ? 0 : parseBytes(keep, "--keep"));
  if (json) printResult(nlohmann::json{{"freedBytes", freed}});
  else printResult(fmt::format("freed {}\n", formatBytes(freed)));
  return 0;
}

}  // namespace

Action addCache(CLI::App &command) {
  struct Flags {
    CLI::App *stat, *verify, *collect;
    std::string keep = "1G";
  };
  auto flags = std::make_shared<Flags>();
  command.require_subcommand(1);
  command.fallthrough();
  flags->stat = command.add_subcommand("stat", "where it is, how many kernels, how large");
  flags->verify = command.add_subcommand(
      "verify", "check every kernel against its hash; exit 1 if one is broken");
  flags->collect = command.add_subcommand("gc", "remove the kernels unused for longest");
  flags->collect->add_option("--keep", flags->keep, "size to keep")
      ->capture_default_str()
      ->type_name("SIZE");
  for (CLI::App *subcommand : {flags->stat, flags->verify, flags->collect})
    subcommand->fallthrough();
  return [flags](bool json) {
    if (flags->stat->parsed()) return stat(json);
    if (flags->verify->parsed()) return verify(json);
    return collect(flags->keep, json);
  };
}

}  // namespace weft::driver
