// Lines of a kernel's text that hold its constants against the launch in plan.json: who edits `rowsPerBlock` by hand gets an error of
// the compiler at that line, and no kernel that half of the blocks run out of bounds with.
//
//   static_assert(rowsPerBlock * threadsPerRow == 128, "plan.json: 128 threads a block");
//
// They make no code. Hashes of what runs, by which measured times and verification records are found, leave them out; a kernel thus
// has the hash that it had before it had such lines.
#pragma once

#include <string>
#include <string_view>

namespace weft {

/// One line without indentation and end: `condition` is an expression without strings, `what` a few words on what was launched.
std::string launchCheck(std::string_view condition, std::string_view what);
/// The text without its lines that are launch checks and nothing else.
std::string withoutLaunchChecks(std::string_view text);
/// Whether a compiler's log has a launch check that failed.
bool hasFailedLaunchCheck(std::string_view log);

}  // namespace weft
