// What a folder holds beside what weft wrote; see OutputFolder.h.
#include "runtime/artifact/OutputFolder.h"

#include "kernel/Error.h"
#include "runtime/artifact/Manifest.h"
#include "runtime/system/Files.h"
#include "runtime/system/JsonText.h"
#include "runtime/system/Sha256.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include <sys/stat.h>

namespace weft::runtime {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

/// "out/" and "." have a last component too: the folder that is replaced as a whole.
fs::path normalized(const fs::path &folder) {
  const fs::path absolute = fs::absolute(folder).lexically_normal();
  return absolute.has_filename() ? absolute : absolute.parent_path();
}

/// "a, b, c and 2 more".
std::string firstOf(const std::vector<std::string> &names) {
  constexpr size_t shown = 3;
  std::string text = fmt::format(
      "{}",
      fmt::join(names.begin(), names.begin() + ptrdiff_t(std::min(shown, names.size())), ", "));
  return names.size() <= shown ? text : text + fmt::format(" and {} more", names.size() - shown);
}

std::optional<Manifest> manifestOf(const fs::path &folder) {
  std::error_code none;
  if (!fs::is_regular_file(fs::symlink_status(folder / manifestFile, none))) return std::nullopt;
  return parseManifest(readFile(folder / manifestFile), (folder / manifestFile).string());
}

/// What the plan of an artifact without a manifest names; nothing if there is no plan.
std::set<std::string> namedByPlan(const fs::path &folder) {
  std::error_code none;
  if (!fs::is_regular_file(fs::symlink_status(folder / planFile, none))) return {};
  const json plan = parseJson(readFile(folder / planFile), (folder / planFile).string());
  if (!plan.is_object() || !plan.contains("kernels") || !plan["kernels"].is_array() ||
      !plan.contains("formatVersion"))
    return {};
  std::set<std::string> names{planFile, "graph.mlir", "report.json"};
  for (const json &kernel : plan["kernels"])
    for (const char *member : {"source", "cubin"})
      if (kernel.is_object() && kernel.contains(member) && kernel[member].is_string())
        names.insert(kernel[member].get<std::string>());
  return names;
}

std::vector<std::string> namesIn(const fs::path &folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

dev_t deviceOf(const fs::path &path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0)
    throw std::system_error(errno, std::generic_category(), path.string());
  return status.st_dev;
}

}  // namespace

fs::path OutputFolder::targetOf(const fs::path &folder) {
  const fs::path target = normalized(folder);
  std::error_code code;
  if (!fs::is_symlink(fs::symlink_status(target, code))) return target;
  if (!fs::exists(target, code))
    throw Error::badInput("{} is a symbolic link to nothing; name another output", folder.string());
  return fs::canonical(target);
}

OutputFolder::OutputFolder(const fs::path &folder, const Overwrite &overwrite)
    : target(targetOf(folder)) {
  std::error_code code;
  const fs::file_status status = fs::status(target, code);
  exists = fs::exists(status);
  if (!exists) return;
  if (!fs::is_directory(status))
    throw Error::badInput("{} exists and is no folder; name another output", folder.string());
  try {
    findFiles(overwrite);
  } catch (const std::system_error &error) {
    throw Error::badInput("{} cannot be read: {}", folder.string(), error.what());
  }
}

void OutputFolder::findFiles(const Overwrite &overwrite) {
  const std::vector<std::string> names = namesIn(target);
  if (names.empty()) return;
  const std::optional<Manifest> manifest = manifestOf(target);
  const std::set<std::string> ofOlder = manifest ? std::set<std::string>() : namedByPlan(target);
  if (!manifest && ofOlder.empty())
    throw Error::badInput(
        "{} holds {} and no {}: it is no artifact and is not overwritten; name another output",
        target.string(), firstOf(names), manifestFile);
  if (!manifest && !overwrite.everything)
    throw Error::badInput(
        "{} holds a {} and no {}, which would tell weft's files from yours; "
        "name another output, or "
        "--overwrite replaces the files that its {} names",
        target.string(), planFile, manifestFile, planFile);
  std::vector<std::string> edited;
  std::set<std::string> foldersOfWeft;
  for (const std::string &name : ofOlder)
    foldersOfWeft.insert(fs::path(name).parent_path().string());
  if (manifest)
    for (const auto &[name, hash] : manifest->files)
      for (fs::path parent = fs::path(name).parent_path(); !parent.empty();
           parent = parent.parent_path()) {
        foldersOfWeft.insert(parent.string());
        if (parent == parent.parent_path()) break;
      }
  const dev_t device = deviceOf(target);
  for (const fs::directory_entry &entry : fs::recursive_directory_iterator(target)) {
    const std::string name = entry.path().lexically_relative(target).generic_string();
    if (deviceOf(entry.path()) != device)
      throw Error::badInput(
          "{} is another file system, which cannot move with the folder; name another output",
          entry.path().string());
    const fs::file_status status = entry.symlink_status();
    if (fs::is_directory(status)) {
      if (!foldersOfWeft.contains(name)) foreign.push_back(name);
      continue;
    }
    if (name == manifestFile || ofOlder.contains(name)) continue;
    if (!manifest || !manifest->files.contains(name)) foreign.push_back(name);
    else if (!fs::is_regular_file(status) ||
             sha256(readFile(entry.path())) != manifest->files.at(name))
      edited.push_back(name);
  }
  std::ranges::sort(foreign);  // a folder before what it holds
  std::erase_if(edited, [&](const std::string &name) {
    return overwrite.everything ||
           std::ranges::find(overwrite.edited, name) != overwrite.edited.end();
  });
  std::ranges::sort(edited);
  if (!edited.empty())
    throw Error::badInput(
        "{} holds what was edited since weft wrote it: {}; name another output, or --overwrite "
        "gives the edits up",
        target.string(), firstOf(edited));
}

void OutputFolder::keepForeignFiles(const fs::path &next) const {
  for (const std::string &name : foreign) {
    const fs::path from = target / name, to = next / name;
    if (fs::is_directory(fs::symlink_status(from))) {
      if (!fs::exists(to)) fs::create_directory(to, from);
      continue;
    }
    if (fs::is_regular_file(fs::symlink_status(to)) &&
        fs::is_regular_file(fs::symlink_status(from)) && readFile(from) == readFile(to))
      continue;  // a header of the owner's that kernels include
    if (fs::exists(fs::symlink_status(to)))
      throw Error::badInput(
          "{} is not weft's, and weft writes a file of this name: move it, or name another output",
          from.string());
    fs::create_directories(to.parent_path());  // a folder of weft that this artifact does not need
    std::error_code code;
    fs::create_hard_link(from, to, code);
    if (code)
      fs::copy(
          from, to,
          fs::copy_options::copy_symlinks);  // a file system or a file that takes no further links
  }
  if (exists) fs::permissions(next, fs::status(target).permissions());
}

}  // namespace weft::runtime
