// A profiler's library exports InitializeInjectionNvtx2. We hand it a function that gives tables by
// number; from the table of callbacks it takes the addresses of our function pointers, module by
// module, and overwrites those that it wants to hear of.
#include "runtime/cuda/Nvtx.h"

#include "runtime/system/Environment.h"

#include <dlfcn.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace weft::runtime::nvtx {

namespace {

using Callback = void (*)();
using PushRange = int (*)(const char *);
using PopRange = int (*)();

// Numbers of NVTX version 3, part of its stable binary interface.
constexpr uint32_t callbackTable = 1, versionTable = 3, version = 3;
constexpr int coreModule = 1;
constexpr size_t pushAscii = 9, pop = 11, callbackCount = 16;

/// Functions of one module that the profiler wants to hear of, and where it may write them: a null
/// stands behind the last.
struct Callbacks {
  std::array<Callback, callbackCount> functions{};
  std::array<Callback *, callbackCount + 1> addresses{};
};
Callbacks core, others;  // of the other modules we call nothing

int moduleTable(int module, Callback ***table, unsigned *size) {
  Callbacks &callbacks = module == coreModule ? core : others;
  for (size_t i = 0; i < callbackCount; ++i) callbacks.addresses[i] = &callbacks.functions[i];
  *table = callbacks.addresses.data();
  if (size) *size = callbackCount;
  return 1;
}

void takeVersion(uint32_t) {}

struct CallbackTable {
  size_t bytes = sizeof(CallbackTable);
  int (*moduleTable)(int, Callback ***, unsigned *) = &nvtx::moduleTable;
};
struct VersionTable {
  size_t bytes = sizeof(VersionTable);
  uint32_t version = nvtx::version, reserved = 0;
  void (*takeVersion)(uint32_t) = &nvtx::takeVersion;
};

const void *exportTable(uint32_t number) {
  static const CallbackTable callbackExports;
  static const VersionTable versionExports;
  if (number == callbackTable) return &callbackExports;
  return number == versionTable ? &versionExports : nullptr;
}

bool inject() {
  const std::optional<std::string> path = environmentValue("NVTX_INJECTION64_PATH");
  void *library = path ? dlopen(path->c_str(), RTLD_LAZY | RTLD_LOCAL) : nullptr;
  if (!library) return false;
  const auto initialize = reinterpret_cast<int (*)(const void *(*)(uint32_t))>(
      dlsym(library, "InitializeInjectionNvtx2"));
  return initialize && initialize(&exportTable) != 0 && core.functions[pushAscii] &&
         core.functions[pop];
}

}  // namespace

bool isActive() {
  static const bool active = inject();
  return active;
}

Range::Range(const std::string &name) {
  if (isActive()) reinterpret_cast<PushRange>(core.functions[pushAscii])(name.c_str());
}

Range::~Range() {
  if (isActive()) reinterpret_cast<PopRange>(core.functions[pop])();
}

}  // namespace weft::runtime::nvtx
