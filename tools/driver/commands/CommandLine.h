// The command line of `weft`: subcommands, exit codes, and where errors go.
#pragma once

namespace weft::driver {

/// Runs one command. Exit codes: 0 done, 1 a check failed, 2 usage or bad input, 3 not supported, 4
/// a miss under
/// --strict. Messages go to standard error as "weft: error: ...".
int runCommandLine(int argumentCount, char **arguments);

}  // namespace weft::driver
