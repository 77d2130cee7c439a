// The environment variables that weft reads, in one table. Nothing else in the project calls
// getenv: a check in CTest looks for it. Each knob says whether it can change what is written, so
// that a surprising output has few suspects.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weft::runtime {

enum class KnobEffect {
  changesOutput,  ///< can change bytes of an artifact
  neutral,        ///< changes only where things lie, how fast they are made, or how messages look
};
std::string_view nameOf(KnobEffect effect);

struct EnvironmentKnob {
  std::string_view name;
  KnobEffect effect;
  std::string_view meaning;  ///< one sentence, for `weft env`
};

/// Every variable that is ever read, sorted by name.
std::span<const EnvironmentKnob> environmentKnobs();

/// The value of a knob of the table; unset and empty are the same. Throws std::logic_error for a
/// name outside the table.
std::optional<std::string> environmentValue(std::string_view name);

/// $WEFT_WORKERS, else the number of processors this process may use. Throws Error(badInput) unless
/// it is 1 to 1024.
int workerCount();

/// Whether messages may be coloured on the given file descriptor: a terminal, and $NO_COLOR is not
/// set.
bool colorWanted(int fileDescriptor);

/// How many columns text on the given file descriptor may take: those of a terminal, and $COLUMNS
/// for a pipe or a file, but no fewer than fewestColumns and no more than defaultColumns
/// (kernel/TextWidth.h), the default; unlimitedColumns once allowWide() was called.
size_t outputColumns(int fileDescriptor);
/// --wide: lines of results may be as long as they are, and no cell is shortened.
void allowWide();

}  // namespace weft::runtime
