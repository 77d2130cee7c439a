// counts.json; see Counts.h.
#include "tests/fuzz/Counts.h"

#include "runtime/system/Files.h"
#include "runtime/system/Sha256.h"

#include <nlohmann/json.hpp>

#include <fstream>
#include <stdexcept>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace weft::fuzz {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

CountedRuns runsFromJson(const json &object) {
  CountedRuns runs{
      .inputs = object.at("inputs"), .findings = object.at("findings"), .commands = {}};
  for (const auto &[verb, commands] : object.at("commands").items())
    runs.commands[verb] = {.run = commands.at("run"), .succeeded = commands.at("succeeded")};
  return runs;
}

json toJson(const CountedRuns &runs) {
  json commands = json::object();
  for (const auto &[verb, count] : runs.commands)
    commands[verb] = {{"run", count.run}, {"succeeded", count.succeeded}};
  return {{"inputs", runs.inputs}, {"findings", runs.findings}, {"commands", commands}};
}

}  // namespace

uint64_t Count::total() const {
  uint64_t sum = 0;
  for (const auto &[version, counted] : runs) sum += counted.inputs;
  return sum;
}

CountsFile::CountsFile(const fs::path &corpus)
    : path(corpus / "counts.json"), lock(open(corpus.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) != 0) {
    if (lock >= 0) close(lock);
    throw std::runtime_error("another weft-fuzz counts into " + corpus.string() +
                             "; --jobs gives one more processes");
  }
  std::ifstream file(path);
  if (!file) return;
  try {
    const json document = json::parse(file);
    for (const auto &[kind, object] : document.items()) {
      Count &count = counts[kind];
      count.nextSeed = object.at("nextSeed");
      for (const auto &[version, runs] : object.at("runs").items())
        count.runs[version] = runsFromJson(runs);
    }
  } catch (const json::exception &error) {
    close(lock);
    throw std::runtime_error(path.string() + ": " + error.what());
  }
}

CountsFile::~CountsFile() { close(lock); }

void CountsFile::add(const std::string &kind, const std::string &version, const Tally &tally) {
  Count &count = counts[kind];
  count.nextSeed = tally.next;
  CountedRuns &runs = count.runs[version];
  runs.inputs += tally.inputs;
  runs.findings += tally.findings;
  for (const auto &[verb, commands] : tally.commands) {
    runs.commands[verb].run += commands.run;
    runs.commands[verb].succeeded += commands.succeeded;
  }
  json document = json::object();
  for (const auto &[name, counted] : counts) {
    json all = json::object();
    for (const auto &[code, each] : counted.runs) all[code] = toJson(each);
    document[name] = {{"nextSeed", counted.nextSeed}, {"runs", all}, {"total", counted.total()}};
  }
  runtime::replaceFile(path, document.dump(2) + "\n");
}

std::string versionOf(const std::string &commit) {
  constexpr size_t shown = 12;
  return commit + " " + runtime::sha256(runtime::readFile("/proc/self/exe")).substr(0, shown);
}

}  // namespace weft::fuzz
