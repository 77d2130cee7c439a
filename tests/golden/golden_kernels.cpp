// golden-kernels [--update]: emits the goldens of every family, one kernel of each kind, and
// compares their readable texts, byte by byte, with golden/NAME.cu in the family's folder. A
// difference is a change of generated code: read it, then run with --update. A text without its
// file fails, and so does a file that no golden emits. Of loop kernels every piece of text must
// know the names it reads.
#include "codegen/Emit.h"
#include "codegen/Program.h"
#include "codegen/families/loop/Loop.h"
#include "kernel/Error.h"
#include "tests/golden/Golden.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace weft {

GoldensByFamily &goldensOfFamilies() {
  static GoldensByFamily goldens;
  return goldens;
}

GoldenRegistration::GoldenRegistration(const std::string &family, const Goldens &goldens) {
  goldensOfFamilies().emplace(family, goldens);
}

namespace {

const std::filesystem::path source = WEFT_SOURCE_DIR;

std::string readFile(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// "line 12: `...` instead of `...`".
std::string firstDifference(const std::string &actual, const std::string &expected) {
  std::istringstream left(actual), right(expected);
  for (int line = 1;; ++line) {
    std::string a, b;
    const bool hasA = bool(std::getline(left, a)), hasB = bool(std::getline(right, b));
    if (!hasA && !hasB) return "line ends differ";
    if (hasA != hasB || a != b) return fmt::format("line {}: `{}` instead of `{}`", line, a, b);
  }
}

void addRaw(const codegen::Block &block, std::vector<std::string> &raw) {
  for (const codegen::Statement &s : block) {
    for (const codegen::Code *code : {&s.type, &s.name, &s.value, &s.pointer, &s.width, &s.stride,
                                      &s.count, &s.condition, &s.threads, &s.scratch})
      if (code->isRaw()) raw.push_back(code->str());
    for (const codegen::Code &term : s.terms)
      if (term.isRaw()) raw.push_back(term.str());
    addRaw(s.body, raw);
  }
}

/// Text of a loop kernel that was put together as a string, so that pruning must guess at its
/// names.
std::vector<std::string> rawTexts(const Golden &golden) {
  const auto *knobs = golden.configuration.knobs.getIf<LoopKnobs>();
  if (!knobs) return {};
  const codegen::Program program = codegen::lowerLoop(golden.kernel, golden.configuration, *knobs);
  std::vector<std::string> raw;
  addRaw(program.body, raw);
  addRaw(program.globals, raw);
  for (const codegen::ConstantLine &line : program.constants)
    for (const auto &[name, value] : line.entries)
      if (value.code().isRaw()) raw.push_back(value.str());
  return raw;
}

/// Compares the text with its file, or writes that; false if it differs or is not recorded.
bool compare(const Golden &golden, const std::filesystem::path &file, bool update) {
  const std::string text = codegen::emit(golden.kernel, golden.configuration, "sm_90a").readable;
  const bool isRecorded = std::filesystem::exists(file);
  const std::string expected = isRecorded ? readFile(file) : "";
  if (isRecorded && text == expected) return true;
  if (update) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }
  fmt::print("{} {}: {}\n", update ? "updated" : "FAILED", golden.name,
             isRecorded ? firstDifference(text, expected) : "not recorded in " + file.string());
  return update;
}

bool knowsItsNames(const Golden &golden) {
  const std::vector<std::string> raws = rawTexts(golden);
  for (const std::string &raw : raws)
    fmt::print("FAILED {}: '{}' does not know its names\n", golden.name, raw);
  return raws.empty();
}

/// Every file among the recorded texts of families is that of a golden.
bool areAllEmitted(const std::set<std::filesystem::path> &emitted) {
  bool all = true;
  for (const char *families : {"codegen/families", "tests/unit/families"})
    for (const auto &family : std::filesystem::directory_iterator(source / families)) {
      if (!std::filesystem::is_directory(family.path() / "golden")) continue;
      for (const auto &entry : std::filesystem::directory_iterator(family.path() / "golden")) {
        if (emitted.contains(entry.path())) continue;
        all = false;
        fmt::print("FAILED {}: no golden of {}/tests/goldens.cpp has this name\n",
                   entry.path().string(), family.path().string());
      }
    }
  return all;
}

/// Which folder has a name of a golden, and a family.
struct Owners {
  std::map<std::string, std::string> ofName, ofFamily;

  /// Names are unique, and a family has its goldens in one folder.
  bool add(const Golden &golden, const std::string &folder) {
    const std::string family(golden.configuration.knobs.family().name);
    const auto [other, isNew] = ofName.emplace(golden.name, folder);
    const auto [own, isFirst] = ofFamily.emplace(family, folder);
    const bool isOwn = own->second == folder;
    if (!isNew)
      fmt::print("FAILED {}: a golden of {} and of {}\n", golden.name, other->second, folder);
    if (!isOwn)
      fmt::print("FAILED {}: in {}, but {} has its goldens in {}\n", golden.name, folder, family,
                 own->second);
    return isNew && isOwn;
  }
};

int run(bool update) {
  bool isGood = true;
  std::set<std::filesystem::path> emitted;
  Owners owners;
  for (const auto &[folder, goldens] : goldensOfFamilies())
    for (const Golden &golden : goldens()) {
      const std::filesystem::path file = source / folder / "golden" / (golden.name + ".cu");
      isGood &= owners.add(golden, folder);
      isGood &= knowsItsNames(golden);
      isGood &= compare(golden, file, update);
      emitted.insert(file);
    }
  isGood &= areAllEmitted(emitted) && !emitted.empty();
  if (isGood) fmt::print("{} kernels {}\n", emitted.size(), update ? "recorded" : "as recorded");
  return isGood ? 0 : 1;
}

}  // namespace
}  // namespace weft

int main(int argc, char **argv) {
  const bool update = argc == 2 && std::string_view(argv[1]) == "--update";
  if (argc > 1 && !update) {
    fmt::print(stderr, "usage: golden-kernels [--update]\n");
    return 2;
  }
  try {
    return weft::run(update);
  } catch (const weft::Error &error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
