// Redirected streams, a scratch folder, and the promises checked after every command; see
// Session.h.
#include "tests/fuzz/Session.h"

#include "tools/driver/commands/CommandLine.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <sys/stat.h>
#include <unistd.h>

namespace weft::fuzz {

namespace fs = std::filesystem;

namespace {

std::string takeAll(int descriptor) {
  const off_t size = lseek(descriptor, 0, SEEK_END);
  std::string text(size > 0 ? size_t(size) : 0, '\0');
  if (pread(descriptor, text.data(), text.size(), 0) != ssize_t(text.size()))
    throw std::runtime_error("a stream cannot be read back");
  if (ftruncate(descriptor, 0) != 0 || lseek(descriptor, 0, SEEK_SET) != 0)
    throw std::runtime_error("a stream cannot be emptied");
  return text;
}

double processorSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

/// The count of a command by its verb and first flag; of those that have no place left, the last.
VerbCount &countOf(Slot &slot, const std::vector<std::string> &arguments) {
  const auto flag = std::ranges::find_if(
      arguments, [](const std::string &text) { return text.starts_with("--"); });
  const std::string verb = arguments.front() + (flag == arguments.end() ? "" : " " + *flag);
  for (VerbCount &count : slot.verbs) {
    if (count.verb[0] == 0) std::snprintf(count.verb.data(), count.verb.size(), "%s", verb.c_str());
    if (verb == count.verb.data()) return count;
  }
  return slot.verbs.back();
}

}  // namespace

Session::Session(std::string folder, int out, int err, Slot &slot)
    : folder(std::move(folder)), out(out), err(err), slot(slot) {
  fs::create_directories(this->folder);
  if (chdir(this->folder.c_str()) != 0)
    throw std::runtime_error("no scratch folder " + this->folder);
  present = snapshotOf(this->folder);  // of a worker that crashed
}

void Session::begin(const std::map<std::string, std::string> &files) {
  names.clear();
  lines.clear();
  found = {};
  hold(files);
  for (const auto &[name, bytes] : files) names.push_back(name.substr(0, name.find('/')));
}

void Session::hold(const std::map<std::string, std::string> &files) {
  Snapshot wanted;
  for (const auto &[name, bytes] : files) {
    wanted[name] = hashOfBytes(bytes);
    for (size_t slash = name.find('/'); slash != std::string::npos;
         slash = name.find('/', slash + 1))
      wanted[name.substr(0, slash)] = folderContent;
  }
  for (const auto &[name, content] : present) {
    const auto stays = wanted.find(name);
    if (stays == wanted.end() ||
        (stays->second != content && (content == folderContent || stays->second == folderContent ||
                                      content.starts_with("link"))))
      fs::remove_all(fs::path(folder) / name);
  }
  for (const auto &[name, bytes] : files) {
    const auto old = present.find(name);
    if (old == present.end() || old->second != wanted.at(name)) write(name, bytes);
  }
  present = std::move(wanted);
}

void Session::write(const std::string &name, const std::string &bytes) {
  const fs::path path = fs::path(folder) / name;
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
  present[name] = hashOfBytes(bytes);
  for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1))
    present[name.substr(0, slash)] = folderContent;
}

bool Session::exists(const std::string &name) const { return fs::exists(fs::path(folder) / name); }

std::string Session::read(const std::string &name) const {
  std::ifstream file(fs::path(folder) / name, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return std::move(bytes).str();
}

void Session::expect(bool holds, const std::string &promise, const std::string &detail) {
  if (!found && !holds) found = {promise, detail};
}

void Session::run(const std::vector<std::string> &arguments) {
  std::vector<std::string> texts = {"weft"};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<char *> pointers;
  std::string line;
  for (std::string &text : texts) {
    pointers.push_back(text.data());
    line += (line.empty() ? "" : " ") + text;
  }
  pointers.push_back(nullptr);
  lines.push_back(line);
  std::snprintf(slot.command.data(), slot.command.size(), "%s", line.c_str());
  ++slot.commands;
  VerbCount &count = countOf(slot, arguments);
  ++count.commands;
  const double begin = processorSeconds();
  outcome.code = driver::runCommandLine(int(texts.size()), pointers.data());
  count.seconds += processorSeconds() - begin;
  std::fflush(stdout);
  std::fflush(stderr);
  if (outcome.code == 0) ++count.succeeded;
  outcome.out = takeAll(out);
  outcome.err = takeAll(err);
}

int Session::command(const std::vector<std::string> &arguments, const CommandTraits &traits) {
  if (found) return 2;
  const Snapshot before = present;
  run(arguments);
  present = snapshotOf(folder);
  found = judge(outcome, traits, names);
  if (!found) found = judgeFiles(before, present, outcome, traits);
  return outcome.code;
}

}  // namespace weft::fuzz
