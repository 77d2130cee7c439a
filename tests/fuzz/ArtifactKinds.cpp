// Inputs around an artifact: plan.json with its folder, and files of tensors for one; see Kinds.h.
#include "runtime/artifact/Artifact.h"
#include "runtime/commands/RunCommand.h"
#include "runtime/execute/Safetensors.h"
#include "runtime/train/TrainingState.h"
#include "tests/fuzz/BaseArtifacts.h"
#include "tests/fuzz/GraphMutation.h"
#include "tests/fuzz/JsonMutation.h"
#include "tests/fuzz/Kinds.h"
#include "tests/fuzz/TextMutation.h"
#include "tests/support/PlanMutations.h"

#include "runtime/system/Files.h"
#include "runtime/system/Sha256.h"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace weft::fuzz {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char *planPath = "artifact/plan.json", *manifestPath = "artifact/manifest.json";

void collectWords(const json &document, std::set<std::string> &words) {
  if (document.is_string() && words.size() < 600) words.insert(document.get<std::string>());
  if (document.is_object())
    for (const auto &[name, value] : document.items()) words.insert(name);
  if (document.is_structured())
    for (const json &value : document) collectWords(value, words);
}

/// An artifact as it was made, and its plan.
struct Base {
  std::string name;
  Files files;
  json plan;
  std::vector<std::string> words, kernels, tensors;
  bool usesLibrary = false;
};

Base baseOf(const BaseArtifact &artifact) {
  Base base{.name = artifact.name,
            .files = filesOf(artifact.folder, "artifact"),
            .plan = {},
            .words = {},
            .kernels = {},
            .tensors = {}};
  base.plan = json::parse(base.files.at(planPath));
  std::set<std::string> words;
  collectWords(base.plan, words);
  base.words = {words.begin(), words.end()};
  for (const json &kernel : base.plan["kernels"]) {
    base.kernels.push_back(kernel["name"]);
    base.usesLibrary |= !kernel["library"].is_null();
  }
  for (const json &tensor : base.plan["tensors"]) base.tensors.push_back(tensor["name"]);
  return base;
}

/// A manifest that calls everything as it is now written by weft: who edits an artifact with care
/// does so, too, and edits get past it to the checks behind. A plan that is no JSON goes in as it
/// is.
std::string manifestAnew(const Base &base, const Files &files) {
  json manifest = json::parse(base.files.at(manifestPath));
  for (const auto &[name, bytes] : files) {
    const auto old = base.files.find(name);
    if (name != manifestPath && old != base.files.end() && old->second != bytes)
      manifest["files"][name.substr(name.find('/') + 1)] = runtime::sha256(bytes);
  }
  constexpr const char *place = "@plan@";
  manifest["plan"] = place;
  std::string text = manifest.dump();
  const auto plan = files.find(planPath);
  return text.replace(text.find(json(place).dump()), json(place).dump().size(),
                      plan == files.end() ? "{}" : plan->second);
}

/// plan.json with its folder. What is kept is {"base", "patch", "removed", "texts", "manifest"}: a
/// patch (RFC 6902) of the plan of that base artifact, files that are gone, other files as a whole,
/// and "anew" where the manifest fits all of it.
class PlanKind : public Kind {
public:
  PlanKind(const fs::path &corpus, const fs::path &scratch) {
    for (const BaseArtifact &artifact : makeBaseArtifacts(corpus, scratch))
      bases.push_back(baseOf(artifact));
  }

  std::string name() const override { return "plan"; }

  Files input(Random &random) const override {
    const Base &base = random.pick(bases);
    Files files = base.files;
    if (random.oneIn(4)) files["artifact/mine.txt"] = userText;
    files[original] = base.name;
    if (random.oneIn(6)) mutateOther(files, base, random);
    else mutatePlan(files[planPath], base, random);
    if (random.oneIn(6)) files.erase(manifestPath);
    else if (!random.oneIn(3) && files.contains(manifestPath) &&
             files.at(manifestPath) == base.files.at(manifestPath))
      files[manifestPath] = manifestAnew(base, files);
    return files;
  }

  std::string kept(const Files &files) const override {
    const Base &base = baseNamed(files.at(original));
    json kept = {{"base", base.name}, {"removed", json::array()}, {"texts", json::object()}};
    for (const auto &[name, bytes] : base.files) {
      const auto now = files.find(name);
      if (now == files.end()) kept["removed"].push_back(name);
      else if (name == manifestPath && now->second == manifestAnew(base, files))
        kept["manifest"] = "anew";
      else if (now->second != bytes) {
        const json plan = name == planPath && now->second.size() < (1u << 20)
                              ? json::parse(now->second, nullptr, false)
                              : json(json::value_t::discarded);
        if (plan.is_discarded()) kept["texts"][name] = now->second;
        else kept["patch"] = json::diff(base.plan, plan);
      }
    }
    if (files.contains("artifact/mine.txt")) kept["texts"]["artifact/mine.txt"] = userText;
    return kept.dump(1, ' ', true, json::error_handler_t::replace) + "\n";
  }

  Files regression(const std::string &bytes) const override {
    const json kept = json::parse(bytes);
    const Base &base = baseNamed(kept.at("base"));
    Files files = base.files;
    files[original] = base.name;
    if (kept.contains("patch")) files[planPath] = textOf(base.plan.patch(kept["patch"]));
    for (const json &name : kept.value("removed", json::array()))
      files.erase(name.get<std::string>());
    const json texts = kept.value("texts", json::object());
    for (const auto &[name, text] : texts.items()) files[name] = text.get<std::string>();
    if (kept.value("manifest", "") == "anew") files[manifestPath] = manifestAnew(base, files);
    return files;
  }

  void run(Session &session, const Files &files, Random &random, bool everything) const override {
    const Base &base = baseNamed(files.at(original));
    const std::string &kernel = random.pick(base.kernels), &tensor = random.pick(base.tensors);
    const std::vector<std::vector<std::string>> readers = {
        {"explain", "artifact"},
        {"explain", "artifact", "--json"},
        {"explain", "artifact", "--kernel", kernel},
        {"explain", "artifact", "--kernel", kernel, "--json"},
        {"explain", "artifact", "--fusion", base.kernels.front() + "," + kernel},
        {"explain", "artifact", "--movement"},
        {"explain", "artifact", "--cache-miss"},
        {"explain", "artifact", "--movement", "--json"},
        {"run", "artifact", "--check"},
        {"run", "artifact", "--check", "--json"}};
    // On the stand-in for a GPU; there is none for the library.
    const std::vector<std::vector<std::string>> launches = {
        {"run", "artifact", "--json"},
        {"run", "artifact", "--entry", "forward"},
        {"run", "artifact", "--kernel", kernel}};
    // Decides again with each layout pinned, which takes twenty times as long as the others.
    const std::vector<std::vector<std::string>> searches = {
        {"explain", "artifact", "--layout", tensor},
        {"explain", "artifact", "--layout", tensor, "--json"}};
    const auto some = [&](const std::vector<std::vector<std::string>> &commands, uint64_t each) {
      for (const std::vector<std::string> &arguments : commands)
        if (everything || random.oneIn(each))
          session.command(arguments, {.json = arguments.back() == "--json"});
    };
    some(readers, 8);
    some(searches, 60);
    if (!base.usesLibrary) some(launches, 6);
    const bool isCompared = everything || random.oneIn(5),
               isComparedBack = everything || random.oneIn(8);
    if (isCompared || isComparedBack)
      for (const auto &[name, bytes] : base.files)
        session.write("before" + name.substr(name.find('/')), bytes);
    if (isCompared) session.command({"diff", "before", "artifact"}, {.oneIsAnswer = true});
    if (isComparedBack)
      session.command({"diff", "artifact", "before", "--json"},
                      {.oneIsAnswer = true, .json = true});
    const bool isCopied = everything || random.oneIn(4), isInPlace = everything || random.oneIn(4);
    if (isCopied && session.command({"emit", "artifact", "--profile", "none", "-o", "out"},
                                    {.writes = {"out"}}) == 0)
      readBack(session, "out");
    if (isInPlace &&
        session.command({"emit", "artifact", "--profile", "none"}, {.writes = {"artifact"}}) == 0)
      readBack(session, "artifact");
    if (files.contains("artifact/mine.txt"))
      session.expect(session.read("artifact/mine.txt") == userText,
                     "a user's file removed or changed", "artifact/mine.txt");
  }

private:
  static constexpr const char *original =
      ".made-from";  ///< a file that names the artifact an input was made from
  static constexpr const char *userText = "my own notes\n";

  /// One member as somebody would who knows the format, or any.
  void mutatePlan(std::string &text, const Base &base, Random &random) const {
    json plan = base.plan;
    size_t count = mutationCount(random);
    if (random.oneIn(4)) count -= random.pick(knownMutations).apply(plan).empty() ? 0 : 1;
    while (count-- > 0) mutateJson(plan, random, base.words);
    text = random.oneIn(100) ? nestedDeeply(plan, random, size_t(10) << random.below(15))
                             : textOf(plan);
  }

  static void mutateOther(Files &files, const Base &base, Random &random) {
    std::vector<std::string> names;
    for (const auto &[name, bytes] : files)
      if (base.files.contains(name)) names.push_back(name);
    const std::string name = random.pick(names);
    if (random.oneIn(8)) files.erase(name);
    else if (name.ends_with(".mlir") && !random.oneIn(4)) mutateGraph(files[name], random);
    else if (json report = json::parse(files[name], nullptr, false);
             !report.is_discarded() && !random.oneIn(4)) {
      mutateJson(report, random, base.words);
      files[name] = textOf(report);
    } else mutateText(files[name], random, {}, base.words);
  }

  static void readBack(Session &session, const std::string &folder) {
    for (const std::vector<std::string> &arguments :
         {std::vector<std::string>{"explain", folder}, {"run", folder, "--check"}})
      if (session.command(arguments) != 0)
        session.expect(false, "what emit wrote is not read back", session.last().err);
  }

  const Base &baseNamed(const std::string &name) const {
    const auto base = std::ranges::find(bases, name, &Base::name);
    if (base == bases.end()) throw std::runtime_error("no base artifact " + name);
    return *base;
  }

  std::vector<Base> bases;
  const std::vector<test::PlanMutation> knownMutations = test::planMutations();
};

/// The file of tensors that an artifact takes, with its header apart.
struct TensorFile {
  Files artifact;
  bool isState = false;
  json header;
  std::string data;
  std::vector<std::string> words;
};

std::string fileOf(const std::string &header, const std::string &data, uint64_t length) {
  std::string bytes;
  for (int byte = 0; byte < 8; ++byte) bytes.push_back(char(length >> (8 * byte) & 0xFF));
  return bytes + header + data;
}

/// Inputs of `weft run --inputs`, and states of `weft run --state`.
class SafetensorsKind : public Kind {
public:
  SafetensorsKind(const fs::path &corpus, const fs::path &scratch) {
    for (const BaseArtifact &artifact : makeBaseArtifacts(corpus, scratch))
      if (artifact.isTraining || artifact.name == "chunks") files.push_back(tensorFileOf(artifact));
  }

  std::string name() const override { return "safetensors"; }
  std::string kept(const Files &input) const override {
    return std::string(input.contains(statePath) ? "S" : "I") +
           input.at(input.contains(statePath) ? statePath : inputPath);
  }

  /// The first letter says which artifact it is for.
  Files regression(const std::string &bytes) const override {
    const bool isState = !bytes.empty() && bytes[0] == 'S';
    const auto file = std::ranges::find(files, isState, &TensorFile::isState);
    Files input = file->artifact;
    input[isState ? statePath : inputPath] = bytes.empty() ? "" : bytes.substr(1);
    return input;
  }

  Files input(Random &random) const override {
    const TensorFile &file = random.pick(files);
    Files input = file.artifact;
    json header = file.header;
    std::string data = file.data, text;
    for (size_t count = mutationCount(random); count-- > 0;) mutateJson(header, random, file.words);
    text = random.oneIn(100) ? nestedDeeply(header, random, size_t(10) << random.below(15))
                             : textOf(header);
    if (random.oneIn(6)) text = file.header.dump();
    if (random.oneIn(6)) mutateText(text, random, {}, file.words);
    if (random.oneIn(8)) data.resize(random.below(data.size()));
    uint64_t length = text.size();
    if (random.oneIn(12))
      length = random.oneIn(2) ? random.next() >> random.below(63) : length + random.below(16) - 8;
    std::string bytes = fileOf(text, data, length);
    if (random.oneIn(30)) bytes.resize(random.below(bytes.size()));
    input[file.isState ? statePath : inputPath] = std::move(bytes);
    return input;
  }

  void run(Session &session, const Files &input, Random &random, bool everything) const override {
    if (input.contains(statePath)) {
      session.command({"run", "artifact", "--steps", "0", "--state", statePath},
                      {.writes = {statePath}});
      if (everything || random.oneIn(4))
        session.command({"run", "artifact", "--steps", "1", "--json", "--state", statePath},
                        {.json = true, .writes = {statePath}});
      return;
    }
    session.command({"run", "artifact", "--inputs", inputPath, "--outputs", "out.safetensors"},
                    {.writes = {"out.safetensors"}});
    if (everything || random.oneIn(4))
      session.command({"run", "artifact", "--inputs", inputPath, "--json"}, {.json = true});
  }

private:
  static constexpr const char *statePath = "state.safetensors", *inputPath = "inputs.safetensors";

  static TensorFile tensorFileOf(const BaseArtifact &artifact) {
    TensorFile file{.artifact = filesOf(artifact.folder, "artifact"),
                    .isState = artifact.isTraining,
                    .header = {},
                    .data = {},
                    .words = {}};
    const Plan plan = runtime::readArtifact(artifact.folder).plan;
    const fs::path path = artifact.folder.parent_path() / (artifact.name + ".safetensors");
    if (artifact.isTraining)
      runtime::writeState(plan, runtime::initialState(plan, runtime::RunRequest{}.seed), path);
    else writeInputs(plan, path);
    const std::string bytes = runtime::readFile(path);
    uint64_t length = 0;
    for (int byte = 8; byte-- > 0;) length = length << 8 | uint8_t(bytes[size_t(byte)]);
    file.header = json::parse(bytes.substr(8, length));
    file.data = bytes.substr(8 + length);
    std::set<std::string> words = {"__metadata__", "F32", "F16",  "BF16",    "F64", "I64",
                                   "I32",          "U8",  "BOOL", "F8_E4M3", "Q4"};
    collectWords(file.header, words);
    file.words = {words.begin(), words.end()};
    return file;
  }

  static void writeInputs(const Plan &plan, const fs::path &path) {
    std::map<std::string, const PlanTensor *> wanted;
    for (const PlanTensor &tensor : plan.tensors)
      if (isGiven(tensor.role)) wanted[tensor.logical] = &tensor;
    std::vector<runtime::TensorToWrite> tensors;
    for (const auto &[name, tensor] : wanted) {
      int64_t bytes = sizeOf(tensor->dtype);
      for (const int64_t extent : tensor->extents) bytes *= extent;
      tensors.push_back({.name = name,
                         .dtype = tensor->dtype,
                         .shape = tensor->extents,
                         .elements = std::vector<std::byte>(size_t(bytes))});
    }
    runtime::writeSafetensors(path, tensors);
  }

  std::vector<TensorFile> files;
};

}  // namespace

std::unique_ptr<Kind> planKind(const fs::path &corpus, const fs::path &scratch) {
  return std::make_unique<PlanKind>(corpus, scratch);
}
std::unique_ptr<Kind> safetensorsKind(const fs::path &corpus, const fs::path &scratch) {
  return std::make_unique<SafetensorsKind>(corpus, scratch);
}

}  // namespace weft::fuzz
