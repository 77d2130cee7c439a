// The commands of `weft`. Each declares its flags on a CLI11 subcommand and returns what to run;
// what it returns is the exit code. CommandLine.cpp holds the table: a new command is one file, one
// line here and one row there.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace weft::driver {

/// `json`: print one JSON value on standard output and nothing else there.
using Action = std::function<int(bool json)>;

Action addCompile(CLI::App &command);
Action addImport(CLI::App &command);
Action addOpt(CLI::App &command);
Action addProfile(CLI::App &command);
Action addSelect(CLI::App &command);
Action addEmit(CLI::App &command);
Action addExplain(CLI::App &command);
Action addVerify(CLI::App &command);
Action addRun(CLI::App &command);
Action addTime(CLI::App &command);
Action addDiff(CLI::App &command);
Action addCache(CLI::App &command);
Action addEnv(CLI::App &command);
Action addDevices(CLI::App &command);
Action addModels(CLI::App &command);

}  // namespace weft::driver
