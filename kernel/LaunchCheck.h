// Lines of a kernel's text that check its constants against the launch in plan.json: whoever edits
// `rowsPerBlock` by hand gets a compiler error at that line, and not a kernel in which half of the
// blocks run out of bounds.
//
//   static_assert(rowsPerBlock * threadsPerRow == 128, "plan.json: 128 threads a block");
//
// An edited text must keep them, and the signature that the launch passes its arguments to:
// lostLaunch() says which it lacks.
//
// They generate no code. The hashes by which measurements and verification records are found leave
// them out, so that a kernel has the same hash with and without these lines.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// The symbol, of a text with this entry point, of one that waits by itself for the kernels before
/// it, so that it may be launched while these end: "NAME_early". A cubin says it nowhere else, and
/// names of other entry points end with an extent (codegen/EntryName.h).
std::string waitingEntry(std::string_view entry);
/// Whether the text with this symbol waits by itself.
bool isWaitingEntry(std::string_view symbol);

/// One line without indentation and end: `condition` is an expression without strings, `what` a few
/// words on what was launched.
std::string launchCheck(std::string_view condition, std::string_view what);
/// The text without its lines that are launch checks and nothing else.
std::string withoutLaunchChecks(std::string_view text);
/// What the edited text of a kernel lacks of the generated one, each as a line of code for people:
/// the signature, but for the minimum of blocks in its launch bounds, and the static_asserts at the
/// top of its function. Comments, white space and what stands under #if do not count, and no
/// word of these lines may become a macro in the text or in `headers` (by name: those that the text
/// includes and weft did not write). Empty: the plan launches the edited text correctly.
std::vector<std::string> lostLaunch(std::string_view generated, std::string_view edited,
                                    const std::map<std::string, std::string_view> &headers = {});
/// A text as its compiler takes it, as short as it can be: without line splices and comments, white
/// space only where words need it, preprocessor directives on lines for themselves.
std::string compactCode(std::string_view text);
/// Whether two texts differ in comments at most.
bool sameCode(std::string_view a, std::string_view b);
/// Whether a compiler's log has a launch check that failed.
bool hasFailedLaunchCheck(std::string_view log);

}  // namespace weft
