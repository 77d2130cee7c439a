// The table of environment variables, and the one place that reads them.
#include "runtime/system/Environment.h"

#include "kernel/Error.h"
#include "kernel/TextWidth.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <stdexcept>

#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace weft::runtime {

namespace {

constexpr std::array knobTable{
    EnvironmentKnob{"COLUMNS", KnobEffect::neutral,
                    "Columns, 40 to 100, of results that go to a pipe or a file; default: 100."},
    EnvironmentKnob{"CUDA_HOME", KnobEffect::changesOutput,
                    "CUDA toolkit whose NVRTC compiles the kernels, unless WEFT_NVRTC names one."},
    EnvironmentKnob{"HOME", KnobEffect::neutral,
                    "Holds the kernel cache when no other folder is named."},
    EnvironmentKnob{"NO_COLOR", KnobEffect::neutral, "Set to anything: messages without colours."},
    EnvironmentKnob{"NVTX_INJECTION64_PATH", KnobEffect::neutral,
                    "Set by profilers: the library that hears of ranges named like kernels."},
    EnvironmentKnob{
        "PATH", KnobEffect::changesOutput,
        "The python3 found on it is asked for an installed NVRTC wheel when no toolkit is found."},
    EnvironmentKnob{"WEFT_CACHE_DIR", KnobEffect::neutral, "Folder of the kernel cache."},
    EnvironmentKnob{
        "WEFT_CUBLASLT", KnobEffect::changesOutput,
        "cuBLASLt library (or its folder) to use and no other; `none` runs without cuBLASLt."},
    EnvironmentKnob{
        "WEFT_NVRTC", KnobEffect::changesOutput,
        "NVRTC library (or its folder) to use and no other; `none` compiles without NVRTC."},
    EnvironmentKnob{"WEFT_WORKERS", KnobEffect::neutral,
                    "Number of compiler processes; default: the processors."},
    EnvironmentKnob{"XDG_CACHE_HOME", KnobEffect::neutral,
                    "Holds the kernel cache unless WEFT_CACHE_DIR names one."},
};
static_assert(std::ranges::is_sorted(knobTable, {}, &EnvironmentKnob::name));

/// Processors in this process's affinity mask: what a container or taskset leaves us, unlike the
/// machine's count.
int availableProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace

std::string_view nameOf(KnobEffect effect) {
  switch (effect) {
    case KnobEffect::changesOutput: return "changes output";
    case KnobEffect::neutral: return "neutral";
  }
  throw std::logic_error("unknown KnobEffect");
}

std::span<const EnvironmentKnob> environmentKnobs() { return knobTable; }

std::optional<std::string> environmentValue(std::string_view name) {
  if (!std::ranges::binary_search(knobTable, name, {}, &EnvironmentKnob::name))
    throw std::logic_error(
        fmt::format("{} is not in the table of runtime/system/Environment.cpp", name));
  const char *value = std::getenv(std::string(name).c_str());
  if (!value || !*value) return std::nullopt;
  return value;
}

int workerCount() {
  const std::optional<std::string> text = environmentValue("WEFT_WORKERS");
  if (!text) return availableProcessors();
  int count = 0;
  const char *end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, count);
  if (error != std::errc() || stop != end || count < 1 || count > 1024)
    throw Error::badInput("WEFT_WORKERS is \"{}\"; it must be a number from 1 to 1024", *text);
  return count;
}

bool colorWanted(int fileDescriptor) {
  return !environmentValue("NO_COLOR") && isatty(fileDescriptor) == 1;
}

namespace {

bool isWide = false;

/// $COLUMNS; what is no number counts as unset, since shells set it and not the user.
size_t columnsAsked() {
  const std::optional<std::string> text = environmentValue("COLUMNS");
  size_t columns = 0;
  if (!text) return defaultColumns;
  const char *end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, columns);
  return error == std::errc() && stop == end && columns > 0 ? columns : defaultColumns;
}

}  // namespace

void allowWide() { isWide = true; }

size_t outputColumns(int fileDescriptor) {
  if (isWide) return unlimitedColumns;
  winsize size{};
  const bool isTerminal = ioctl(fileDescriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  const size_t columns = isTerminal ? size_t(size.ws_col) : columnsAsked();
  return std::clamp(columns, fewestColumns, defaultColumns);
}

}  // namespace weft::runtime
