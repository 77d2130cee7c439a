// What all kinds of input share, and the smaller ones: graphs, config.json, profiles; see Kinds.h.
#include "tests/fuzz/Kinds.h"

#include "tests/fuzz/BaseArtifacts.h"
#include "tests/fuzz/GraphMutation.h"
#include "tests/fuzz/JsonMutation.h"
#include "tests/fuzz/TextMutation.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>

namespace weft::fuzz {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::string bytesOf(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return std::move(bytes).str();
}

/// No prices: rows are a separate input, and reading those that ship takes longer than most
/// commands. A search that would take more memory ends with its best plan.
const std::vector<std::string> searchFlags = {"--profile", "none", "--search-memory", "1G"};

std::vector<std::string> with(std::vector<std::string> arguments,
                              const std::vector<std::string> &more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

class GraphKind : public Kind {
public:
  explicit GraphKind(const fs::path &corpus) : texts(textsOf(corpus / "mlir", ".mlir")) {}

  std::string name() const override { return "mlir"; }
  Files regression(const std::string &bytes) const override { return {{file, bytes}}; }
  std::string kept(const Files &files) const override { return files.at(file); }

  Files input(Random &random) const override {
    std::string text = random.pick(texts);
    for (size_t count = mutationCount(random); count-- > 0;)
      if (random.oneIn(4)) mutateText(text, random, texts, graphWords());
      else mutateGraph(text, random);
    return {{file, text}};
  }

  void run(Session &session, const Files &, Random &random, bool everything) const override {
    if (session.command({"import", file, "-o", "imported.mlir"}, {.writes = {"imported.mlir"}}) !=
        0)
      return;
    if (session.command({"import", "imported.mlir", "-o", "again.mlir"},
                        {.writes = {"again.mlir"}}) != 0)
      session.expect(false, "what import wrote is not read back", session.last().err);
    session.expect(session.read("imported.mlir") == session.read("again.mlir"),
                   "import changes what it wrote itself", "");
    const std::vector<std::vector<std::string>> cheap = {
        {"opt", file},
        {"opt", file, "--records"},
        {"opt", file, "--candidates"},
        {"opt", file, "--json"},
        {"import", file, "--train"},
        {"explain", file, "--movement", "--profile", "none"},
        {"compile", file, "--train", "--stop-after", "fuse", "--profile", "none"},
        {"compile", file, "--stop-after", "attention", "--profile", "none"}};
    const std::vector<std::vector<std::string>> costly = {
        {"select", file},
        {"select", file, "--json"},
        {"compile", file, "--stop-after", "select"},
        {"compile", file, "--stop-after", "lower"},
        {"select", file, "--train", "--stacking", "separate"}};
    const auto one = [&](const std::vector<std::string> &arguments) {
      session.command(arguments, {.json = std::ranges::count(arguments, "--json") > 0});
    };
    for (const std::vector<std::string> &arguments : cheap)
      if (everything || random.oneIn(4)) one(arguments);
    for (const std::vector<std::string> &arguments : costly)
      if (everything || random.oneIn(120)) one(with(arguments, searchFlags));
    if (!everything && !random.oneIn(100)) return;
    const int code =
        session.command(with({"compile", file, "--stop-after", "emit", "-o", "out"}, searchFlags),
                        {.writes = {"out"}});
    if (code == 0 && session.command({"explain", "out"}) != 0)
      session.expect(false, "what compile wrote is not read back", session.last().err);
  }

private:
  static constexpr const char *file = "graph.mlir";
  std::vector<std::string> texts;
};

class ConfigKind : public Kind {
public:
  explicit ConfigKind(const fs::path &corpus) : texts(textsOf(corpus / "config", ".json")) {
    for (const std::string &text : texts) {
      const json document = json::parse(text);
      for (const auto &[key, value] : document.items()) {
        words.push_back(key);
        if (value.is_string()) words.push_back(value.get<std::string>());
      }
    }
  }

  std::string name() const override { return "config"; }
  Files regression(const std::string &bytes) const override { return {{file, bytes}}; }
  std::string kept(const Files &files) const override { return files.at(file); }

  Files input(Random &random) const override {
    std::string text = random.pick(texts);
    if (random.oneIn(5)) {
      for (size_t count = mutationCount(random); count-- > 0;)
        mutateText(text, random, texts, words);
      return {{file, text}};
    }
    json document = json::parse(text);
    for (size_t count = mutationCount(random); count-- > 0;) mutateJson(document, random, words);
    if (random.oneIn(50))
      return {{file, nestedDeeply(document, random, size_t(10) << random.below(15))}};
    return {{file, textOf(document)}};
  }

  void run(Session &session, const Files &, Random &random, bool everything) const override {
    const std::vector<std::string> small = {"--dim", "b=1", "--dim", "j=16"};
    if (session.command({"import", file, "-o", "graph.mlir"}, {.writes = {"graph.mlir"}}) != 0 &&
        !everything) {
      if (random.oneIn(8)) session.command({"import", file, "--json"}, {.json = true});
      return;
    }
    const std::vector<std::vector<std::string>> commands = {
        {"import", file, "--json"},
        {"import", file, "--train"},
        {"import", file, "--dropout", "0.1"},
        {"import", file, "--dtype", "f32", "--tf32"},
        {"explain", file, "--profile", "none", "--movement"},
        {"opt", file},
        {"import", file, "--part", "attention"},
        {"import", file, "--part", "model"},
        {"import", "graph.mlir"}};
    for (const std::vector<std::string> &arguments : commands)
      if (everything || random.oneIn(commands.size()))
        session.command(arguments.front() == "import" || arguments.size() == 2
                            ? arguments
                            : with(arguments, small),
                        {.json = arguments.back() == "--json"});
  }

private:
  static constexpr const char *file = "config.json";
  std::vector<std::string> texts, words;
};

class ProfileKind : public Kind {
public:
  explicit ProfileKind(const fs::path &corpus)
      : texts(textsOf(corpus / "profile", ".txt")),
        graph(bytesOf(corpus / "profile" / "graph.mlir")) {
    texts.push_back(makeBaseProfile(corpus / "profile" / "graph.mlir"));
    for (const std::string &text : texts)
      for (const std::string &line : linesOf(text)) {
        std::istringstream stream(line);
        for (std::string word; stream >> word && words.size() < 400;) words.push_back(word);
      }
  }

  std::string name() const override { return "profile"; }
  Files regression(const std::string &bytes) const override {
    return {{file, bytes}, {"graph.mlir", graph}};
  }
  std::string kept(const Files &files) const override { return files.at(file); }

  Files input(Random &random) const override {
    std::string text = random.pick(texts);
    for (size_t count = mutationCount(random); count-- > 0;) mutateText(text, random, texts, words);
    return regression(text);
  }

  void run(Session &session, const Files &, Random &random, bool everything) const override {
    const CommandTraits store{.writes = {"rows.db"}};
    if (everything || random.oneIn(3))
      session.command({"profile", "import", "rows.db", file}, store);
    if (everything || random.oneIn(6))
      session.command({"profile", "merge", "rows.db", file, file}, store);
    const std::vector<std::string> priced = {"--search-memory", "1G", "--profile", file};
    if (everything || random.oneIn(3)) session.command(with({"select", "graph.mlir"}, priced));
    if (everything || random.oneIn(12))
      session.command(with({"select", "graph.mlir", "--json", "--strict"}, priced), {.json = true});
    if (everything || random.oneIn(30))
      session.command(with({"compile", "graph.mlir", "--stop-after", "emit", "-o", "out"}, priced),
                      {.writes = {"out"}});
    if (session.command({"profile", "export", file, "-o", "once.txt"}, {.writes = {"once.txt"}}) !=
        0)
      return;
    if (session.command({"profile", "export", "once.txt", "-o", "twice.txt"},
                        {.writes = {"twice.txt"}}) != 0)
      session.expect(false, "what profile export wrote is not read back", session.last().err);
    session.expect(session.read("once.txt") == session.read("twice.txt"),
                   "profile export changes what it wrote itself", "");
  }

private:
  static constexpr const char *file = "rows.txt";
  std::vector<std::string> texts;
  std::string graph;
  std::vector<std::string> words;
};

}  // namespace

std::unique_ptr<Kind> graphKind(const fs::path &corpus) {
  return std::make_unique<GraphKind>(corpus);
}
std::unique_ptr<Kind> configKind(const fs::path &corpus) {
  return std::make_unique<ConfigKind>(corpus);
}
std::unique_ptr<Kind> profileKind(const fs::path &corpus) {
  return std::make_unique<ProfileKind>(corpus);
}

std::vector<std::unique_ptr<Kind>> makeKinds(const std::vector<std::string> &names,
                                             const fs::path &corpus, const fs::path &scratch) {
  const std::map<std::string, std::function<std::unique_ptr<Kind>()>> makers = {
      {"mlir", [&] { return graphKind(corpus); }},
      {"config", [&] { return configKind(corpus); }},
      {"plan", [&] { return planKind(corpus, scratch); }},
      {"profile", [&] { return profileKind(corpus); }},
      {"safetensors", [&] { return safetensorsKind(corpus, scratch); }}};
  for (const std::string &name : names)
    if (!makers.contains(name)) throw std::runtime_error("no kind of input is called " + name);
  std::vector<std::unique_ptr<Kind>> kinds;
  for (const auto &[name, make] : makers)
    if (names.empty() || std::ranges::count(names, name) > 0) kinds.push_back(make());
  return kinds;
}

std::vector<std::string> textsOf(const fs::path &folder, const std::string &extension) {
  std::map<std::string, std::string> texts;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder))
    if (entry.path().extension() == extension)
      texts[entry.path().filename().string()] = bytesOf(entry.path());
  if (texts.empty()) throw std::runtime_error(folder.string() + " holds no " + extension);
  std::vector<std::string> list;
  for (auto &[name, text] : texts) list.push_back(std::move(text));
  return list;
}

Files filesOf(const fs::path &folder, const std::string &as) {
  Files files;
  for (const fs::directory_entry &entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files[as + "/" + entry.path().lexically_relative(folder).string()] = bytesOf(entry.path());
  return files;
}

size_t mutationCount(Random &random) {
  size_t count = 1;
  while (count < 6 && random.oneIn(3)) ++count;
  return count;
}

}  // namespace weft::fuzz
