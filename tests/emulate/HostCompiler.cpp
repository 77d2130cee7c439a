// Writes the translation unit and the device headers, runs the host compiler that built this test,
// loads the result.
#include "tests/emulate/HostCompiler.h"

#include "kernel/Error.h"
#include "tests/emulate/TranslatePtx.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include <dlfcn.h>

namespace weft::emulate {
namespace {

/// A misaligned vector access, which x86 would allow, and an index beyond a local array end in a
/// trap.
constexpr std::string_view sanitizers =
    "-fsanitize=alignment,bounds -fsanitize-undefined-trap-on-error";

/// Of the host compiler. Where the processor has no instruction for a * b + c, each operation
/// rounds even so.
std::string_view flagsOf(Rounding rounding) {
  return rounding == Rounding::contracted && __builtin_cpu_supports("fma")
             ? "-O1 -fexpensive-optimizations -mfma -ffp-contract=fast"
             : "-Og -ffp-contract=off";
}

std::string readFile(const std::filesystem::path &file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

/// Names of the headers that a text includes in quotes.
void collectIncludes(const std::string &text, std::set<std::string> &includes) {
  std::istringstream lines(text);
  const std::string start = "#include \"";
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(start))
      includes.insert(line.substr(start.size(), line.find('"', start.size()) - start.size()));
}

/// Headers first: inside a namespace they would declare their functions there. `#pragma once` then
/// makes the kernel's own include lines empty.
std::string translationUnit(const std::vector<Source> &sources, DeviceHeaders headers) {
  std::set<std::string> includes;
  for (const Source &source : sources) collectIncludes(source.text, includes);
  std::string text = headers == DeviceHeaders::translated ? "#include \"emulate_ptx.h\"\n"
                                                          : "#include \"emulate_keywords.h\"\n";
  for (const std::string &header : includes) text += fmt::format("#include \"{}\"\n", header);
  for (size_t n = 0; n < sources.size(); ++n) {
    const Source &source = sources[n];
    text += fmt::format("\n#define __shared__ static __attribute__((section(\"shared_{}\")))\n", n);
    text += fmt::format(
        "#define {0} kernel_{1}\nnamespace text_{1} {{\n{2}\n}}\n#undef {0}\n#undef __shared__\n",
        source.entry, n,
        headers == DeviceHeaders::translated ? translatePtx(source.text) : source.text);
    text += fmt::format(
        "extern \"C\" void call_{0}(void* const* arguments) {{\n"
        "  weft::emulate::call(text_{0}::kernel_{0}, arguments);\n}}\n"
        "extern \"C\" char __start_shared_{0}[] __attribute__((weak)), __stop_shared_{0}[] "
        "__attribute__((weak));\nextern \"C\" char *sharedStart_{0}() {{ return "
        "__start_shared_{0}; }}\n"
        "extern \"C\" char *sharedStop_{0}() {{ return __stop_shared_{0}; }}\n",
        n);
  }
  return text;
}

/// Writes the headers of sm_90a where they come before those that stand for them.
void translateHeaders(const std::filesystem::path &folder) {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  for (const auto &entry : std::filesystem::directory_iterator(WEFT_EMULATED_HEADERS "/weft")) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("sm90_") || name.starts_with("wgmma"))
      std::ofstream(folder / name) << translatePtx(readFile(entry.path()));
  }
}

/// Equal texts are compiled once: launches differ in their arguments alone, and what a kernel keeps
/// in shared memory is poisoned before every block.
struct DistinctSources {
  std::vector<Source> sources;
  std::vector<size_t> places;  ///< of each given source
};

DistinctSources distinctSources(const std::vector<Source> &sources) {
  DistinctSources distinct;
  std::map<std::pair<std::string, std::string>, size_t> seen;
  for (const Source &source : sources) {
    const auto [found, isNew] =
        seen.try_emplace({source.text, source.entry}, distinct.sources.size());
    if (isNew) distinct.sources.push_back(source);
    distinct.places.push_back(found->second);
  }
  return distinct;
}

template <typename Function>
Function symbol(void *handle, const std::string &name) {
  return reinterpret_cast<Function>(dlsym(handle, name.c_str()));
}

HostKernel load(void *handle, size_t n) {
  const auto address = [&](const char *which) {
    return symbol<char *(*)()>(handle, fmt::format("{}_{}", which, n))();
  };
  char *start = address("sharedStart"), *stop = address("sharedStop");
  return {.call = symbol<void (*)(void *const *)>(handle, fmt::format("call_{}", n)),
          .shared = {reinterpret_cast<std::byte *>(start), size_t(stop - start)}};
}

}  // namespace

HostLibrary::HostLibrary(const std::string &name, const std::vector<Source> &sources,
                         DeviceHeaders headers, Rounding rounding) {
  const std::filesystem::path folder = std::filesystem::path(WEFT_BINARY_DIR) / "emulate" / name;
  std::filesystem::create_directories(folder);
  const auto file = [&](const char *leaf) { return (folder / leaf).string(); };
  std::string first;  // of the include path
  if (headers == DeviceHeaders::translated) {
    translateHeaders(folder / "weft");
    first = fmt::format(" -I '{}'", folder.string());
  }
  const DistinctSources distinct = distinctSources(sources);
  std::ofstream(file("kernels.cpp")) << translationUnit(distinct.sources, headers);
  const auto run = [&](const std::string &step) {
    const std::string command = fmt::format("{} > '{}' 2>&1", step, file("log"));
    if (std::system(command.c_str()) != 0)
      throw Error::checkFailed("the host compiler rejects emitted text:\n{}\n{}", command,
                               readFile(file("log")).substr(0, 4000));
  };
  // Two steps: the launcher, a compiler cache, keeps objects and no shared objects.
  run(
      fmt::format("{} '{}' -std=c++20 {} -w -fPIC -fno-gnu-unique {}{}"
                  " -I '{}' -I '{}' -I '{}' -I '{}' -c -o '{}' '{}'",
                  WEFT_HOST_LAUNCHER, WEFT_HOST_COMPILER, flagsOf(rounding), sanitizers, first,
                  WEFT_SOURCE_DIR "/tests/emulate/host", WEFT_STAND_INS, WEFT_EMULATED_HEADERS,
                  WEFT_SOURCE_DIR, file("kernels.o"), file("kernels.cpp")));
  run(fmt::format("'{}' -shared -Wl,-Bsymbolic -o '{}' '{}'", WEFT_HOST_COMPILER,
                  file("kernels.so"), file("kernels.o")));
  handle = dlopen(file("kernels.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw Error::checkFailed("cannot load emulated kernels: {}", dlerror());
  for (const size_t n : distinct.places) kernels.push_back(load(handle, n));
}

HostLibrary::~HostLibrary() {
  if (handle) dlclose(handle);
}

}  // namespace weft::emulate
