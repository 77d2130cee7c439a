// weft verify on stand-ins for compiler and driver, with host functions as kernels: what passes,
// what fails, what was not checked, and what is recorded of it; the plan on small extents is the
// plan that was chosen.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include "ir/Weft.h"
#include "ir/interpreter/Interpreter.h"
#include "kernel/Error.h"
#include "kernel/reference/StoredElement.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/artifact/VerificationRecords.h"
#include "runtime/execute/RandomInputs.h"
#include "runtime/execute/Safetensors.h"
#include "runtime/system/Files.h"
#include "runtime/system/JsonText.h"
#include "tests/support/HostKernels.h"
#include "tests/support/NonEmpty.h"
#include "tests/support/TemporaryTestFolder.h"
#include "tools/driver/ExactTexts.h"
#include "tools/driver/Verification.h"
#include "tools/driver/commands/CommandLine.h"

#include "mlir/Parser/Parser.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <sstream>

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

using namespace weft;
using namespace weft::driver;
using namespace weft::runtime;
using nlohmann::json;
using weft::test::Fault;
using weft::test::HostKernels;
using weft::test::nonEmpty;
using weft::test::ScopedVariable;
namespace fs = std::filesystem;

int main(int argumentCount, char **arguments) {
  if (const auto code = serveAsBuildWorker(argumentCount, arguments)) return *code;
  return Catch::Session().run(argumentCount, arguments);
}

namespace {

constexpr int64_t length = 24;  ///< axis j of the artifact
const std::vector<std::string> layer = {
    "paper-encoder", "--dim",       "b=2",     "--dim",        "j=24",      "--dim", "h=4",
    "--dim",         "p=8",         "--dim",   "i=32",         "--dim",     "u=40",  "--stacking",
    "three",         "--attention", "unfused", "--no-library", "--profile", "none"};

/// The command in this process; its standard output.
struct Said {
  int code = 0;
  std::string out;
};
Said command(std::vector<std::string> words) {
  words.insert(words.begin(), "weft");
  std::vector<char *> arguments;
  for (std::string &word : words) arguments.push_back(word.data());
  const test::TemporaryTestFolder folder;
  std::fflush(stdout);
  const int kept = dup(1), file = open((folder / "out").c_str(), O_CREAT | O_WRONLY, 0600);
  dup2(file, 1);
  Said said{.code = runCommandLine(int(arguments.size()), arguments.data()), .out = {}};
  std::fflush(stdout);
  dup2(kept, 1);
  close(kept), close(file);
  said.out = readFile(folder / "out");
  return said;
}

struct StandIns {
  StandIns() {
    void *const driver =
        dlopen(WEFT_BINARY_DIR "/tests/fakecuda/libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    REQUIRE(driver);
    kernels = reinterpret_cast<FakeCudaKernels *(*)()>(dlsym(driver, "fakeCudaKernels"))();
  }
  FakeCudaKernels *kernels;
};

/// Environment of a machine whose cache lies below the folder.
struct Environment {
  explicit Environment(const fs::path &folder)
      : cache("WEFT_CACHE_DIR", folder / "cache"),
        compiler("WEFT_NVRTC", WEFT_BINARY_DIR "/tests/fakenvrtc/libnvrtc.so"),
        workers("WEFT_WORKERS", "1") {}
  const ScopedVariable cache, compiler, workers;
};

/// An artifact, its cache, and host functions for all its kernels and those of its small plan; made
/// once for each list of flags.
struct Prepared {
  explicit Prepared(const std::vector<std::string> &more) {
    const Environment environment(folder.path());
    std::vector<std::string> words = {"compile"};
    // Flags of the layer, or another model.
    const bool isLayer = more.empty() || more.front().starts_with("--");
    if (isLayer) words.insert(words.end(), layer.begin(), layer.end());
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"-o", folder / "artifact"});
    REQUIRE(command(words).code == 0);
    const Artifact artifact = readArtifact(folder / "artifact");
    const ExactTexts texts = exactTexts(artifact, folder / "artifact");
    kernels.add(texts.planned, texts.emitted);
    ScaledPlan scaled = scaledPlan(artifact);
    const BuiltPlan built = buildScaled(scaled, artifact.plan.target);
    kernels.add(scaled.planned, built.emitted);
    // A backward pass may keep its length, where other extents leave more kernels their knobs: no
    // faults are planted there.
    const bool isTrained = std::ranges::find(more, "--train") != more.end();
    smallLength = scaled.dims.contains("j") ? scaled.dims.at("j") : length;
    REQUIRE((smallLength < length || isTrained || !isLayer));
    REQUIRE(scaled.unscaled == "");
  }
  test::TemporaryTestFolder folder;
  HostKernels kernels;
  int64_t smallLength = 0;  ///< axis j of the small plan
};

/// A machine with the stand-ins and a copy of a prepared artifact.
class Machine {
public:
  explicit Machine(const std::vector<std::string> &more = {}) : environment(folder.path()) {
    static std::map<std::vector<std::string>, std::unique_ptr<Prepared>> prepared;
    std::unique_ptr<Prepared> &one = prepared[more];
    if (!one) one = std::make_unique<Prepared>(more);
    fs::copy(one->folder.path(), folder.path(), fs::copy_options::recursive);
    kernels = one->kernels;
    smallLength = one->smallLength;
    *standIns().kernels = [this](const std::string &cubin, const std::string &entry,
                                 void **arguments) { return kernels(cubin, entry, arguments); };
  }
  ~Machine() { *standIns().kernels = nullptr; }

  /// The small plan of an artifact that was changed in memory.
  void learnSmall(const Artifact &artifact) {
    ScaledPlan scaled = scaledPlan(artifact);
    const BuiltPlan built = buildScaled(scaled, artifact.plan.target);
    kernels = {};
    kernels.add(scaled.planned, built.emitted);
  }
  std::string artifact() const { return folder / "artifact"; }
  Plan plan() const { return readArtifact(artifact(), Cubins::left).plan; }
  const PlanKernel &kernel(const std::string &name) {
    held = plan();
    const auto found = std::ranges::find_if(
        held.kernels, [&](const PlanKernel &one) { return one.name.starts_with(name); });
    REQUIRE(found != held.kernels.end());
    return *found;
  }

  /// The exit code is checked; JSON.
  json verify(int code, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"verify", artifact(), "--json"});
    const Said said = command(more);
    INFO(said.out);
    CHECK(said.code == code);
    return json::parse(said.out);
  }
  Verification recorded(const PlanKernel &kernel) const {
    return BelievedRecords({}, readRecords(machineRecordsFile())).of(kernel);
  }
  /// Names of kernels that launch something, and whose record is in this state.
  std::set<std::string> launched() const {
    std::set<std::string> names;
    for (const PlanKernel &one : plan().kernels)
      if (!isView(one)) names.insert(one.name);
    return names;
  }
  std::set<std::string> ofSameText(const std::string &kernel) const {
    const Plan now = plan();
    const std::string hash =
        recordHashOf(*std::ranges::find(now.kernels, kernel, &PlanKernel::name));
    std::set<std::string> names;
    for (const PlanKernel &one : now.kernels)
      if (recordHashOf(one) == hash) names.insert(one.name);
    return names;
  }
  std::set<std::string> inState(Verification::State state) const {
    std::set<std::string> names;
    for (const PlanKernel &one : plan().kernels)
      if (!isView(one) && recorded(one).state == state) names.insert(one.name);
    return names;
  }

  test::TemporaryTestFolder folder;
  HostKernels kernels;
  int64_t smallLength = 0;

private:
  static const StandIns &standIns() {
    static const StandIns found;
    return found;
  }
  const Environment environment;
  Plan held;
};

json rowOf(const json &said, const std::string &kernel) {
  for (const json &row : said["kernels"])
    if (row["name"] == kernel) return row;
  FAIL("no row of " << kernel);
  return {};
}

}  // namespace

using State = Verification::State;

TEST_CASE(
    "kernels that compute what the graph says agree, alone and as a whole, and are recorded") {
  Machine machine;
  const std::string store = machine.folder / "store.txt";
  const json said = machine.verify(0, {"--store", store});
  CHECK(said["failed"] == 0);
  CHECK(said["agreed"] == machine.launched().size());
  CHECK(said["unchecked"].empty());
  CHECK(said["whole"]["passed"] == true);
  CHECK(said["whole"]["results"].size() == 1);
  CHECK(machine.launched().size() >= 8);
  CHECK(machine.inState(State::agrees) == machine.launched());
  const Plan plan = machine.plan();
  for (const PlanKernel &kernel : nonEmpty(plan.kernels)) {
    if (isView(kernel)) continue;
    const VerificationRecord record = machine.recorded(kernel).record;
    CHECK(record.gpu == "Stand-in");
    CHECK(record.verifier == verifierVersion);
    CHECK(record.points == rowOf(said, kernel.name)["points"]);
  }
  CHECK(readFile(store).starts_with("# weft verified 3\n"));
  CHECK(readRecords(store) == readRecords(machineRecordsFile()));
}

TEST_CASE("a layer of packed tokens agrees, whole on small extents, too") {
  Machine machine(GENERATE(std::vector<std::string>{"--ragged", "j"},
                           std::vector<std::string>{"--ragged", "j", "--train"}));
  const json said = machine.verify(0);
  CHECK(said["failed"] == 0);
  CHECK(said["unchecked"].empty());
  CHECK(said["whole"]["passed"] == true);
  CHECK(std::ranges::any_of(machine.launched(),
                            [](const std::string &name) { return name.starts_with("offsets"); }));
}

namespace {

/// A whole model of three layers, small.
std::vector<std::string> wholeModel(const std::string &preset, const std::string &part) {
  std::vector<std::string> words = {preset,         "--part",    part,   "--layers",   "3",
                                    "--no-library", "--profile", "none", "--stacking", "three"};
  for (const char *dim : {"b=2", "j=24", "h=4", "i=32", "u=40"})
    words.insert(words.end(), {"--dim", dim});
  if (part == "model") words.insert(words.end(), {"--dim", "v=48"});
  if (preset == "llama-3-8b") words.insert(words.end(), {"--dim", "g=2", "--dim", "p=8"});
  if (preset == "albert-base") words.insert(words.end(), {"--dim", "d=16"});
  return words;
}

std::vector<std::string> raggedModel(const std::string &preset, const std::string &part) {
  std::vector<std::string> words = wholeModel(preset, part);
  words.insert(words.end(), {"--ragged", "j", "--lengths", "mean=0.6"});
  return words;
}

}  // namespace

TEST_CASE("a packed layer turns its tokens by their positions, and attends to them in groups") {
  // Positions in the sequences, not among the tokens, and attention that reads packed tokens.
  std::vector<std::string> words = {"llama-3-8b", "--ragged",  "j",    "--lengths",
                                    "mean=0.6",   "--profile", "none", "--no-library"};
  for (const char *dim : {"b=3", "j=40", "h=4", "g=2", "p=64", "i=64", "u=40"})
    words.insert(words.end(), {"--dim", dim});
  Machine machine(words);
  const json said = machine.verify(0);
  CHECK(said["failed"] == 0);
  CHECK(said["unchecked"].empty());
  CHECK(said["whole"]["passed"] == true);
  const auto launches = [&](const char *part) {
    return std::ranges::any_of(
        machine.launched(), [&](const std::string &name) { return name.find(part) != name.npos; });
  };
  CHECK(launches("rotary"));
  CHECK(launches("attention_unpack"));
}

TEST_CASE("layers that append to caches agree, whole on small extents, too") {
  const auto cached = [](const std::string &preset, std::vector<std::string> more) {
    more.insert(more.begin(), {preset, "--cache", "48", "--no-library", "--profile", "none"});
    for (const char *dim : {"b=3", "h=4", "i=32", "u=40"}) more.insert(more.end(), {"--dim", dim});
    if (preset == "llama-3-8b") more.insert(more.end(), {"--dim", "g=2", "--dim", "p=8"});
    return more;
  };
  Machine machine(
      GENERATE_COPY(cached("llama-3-8b", {"--dim", "j=2"}), cached("gpt2", {"--dim", "j=5"}),
                    cached("llama-3-8b", {"--dim", "j=6", "--ragged", "j"}),
                    cached("llama-3-8b", {"--dim", "j=2", "--page", "16", "--dim", "f=8"}),
                    cached("llama-3-8b", {"--dim", "j=4", "--page", "16", "--chunks", "2"}),
                    cached("llama-3-8b", {"--dim", "j=2", "--layers", "2", "--mask", "window=9"})));
  const json said = machine.verify(0);
  CHECK(said["failed"] == 0);
  CHECK(said["unchecked"].empty());
  CHECK(said["whole"]["passed"] == true);
  CHECK(std::ranges::any_of(machine.launched(), [](const std::string &name) {
    return name.find("append__") != name.npos;
  }));
}

TEST_CASE("whole models agree, every distinct kernel once, and whole on small extents") {
  Machine machine(GENERATE(wholeModel("bert-base", "model"), wholeModel("gpt2", "model"),
                           wholeModel("llama-3-8b", "model"), wholeModel("gpt2", "layer"),
                           raggedModel("bert-base", "model"), wholeModel("albert-base", "model")));
  const json said = machine.verify(0);
  CHECK(said["failed"] == 0);
  CHECK(said["agreed"] == machine.launched().size());
  CHECK(said["unchecked"].empty());
  CHECK(said["whole"]["passed"] == true);
  CHECK(machine.inState(State::agrees) == machine.launched());
  size_t shared = 0;
  for (const json &row : said["kernels"]) shared += row["sameAs"] != "";
  CHECK(shared >= 6);  // of three layers, the kernels of one at least
  CHECK(shared < machine.launched().size() / 2 + 4);
}

TEST_CASE("layers with global positions agree, whole on small extents, too") {
  std::vector<std::string> words = {"longformer-large", "--no-library", "--profile", "none"};
  for (const char *dim : {"b=1", "j=64", "a=16", "h=2", "i=32", "u=40"})
    words.insert(words.end(), {"--dim", dim});
  Machine machine(words);
  const json said = machine.verify(0);
  CHECK(said["failed"] == 0);
  CHECK(said["whole"]["passed"] == true);
}

TEST_CASE("a fused attention of documents agrees, whole on small extents, too") {
  Machine machine({"attention", "--mask", "document", "--attention", "fused", "--dim", "b=2",
                   "--dim", "h=2", "--dim", "j=330", "--dim", "p=32", "--no-library", "--profile",
                   "none"});
  const json said = machine.verify(0);
  CHECK(said["failed"] == 0);
  CHECK(said["whole"]["passed"] == true);
  CHECK(machine.launched().size() == 2);  // bounds of the segments, and the attention
}

TEST_CASE("a whole model of published size has small extents, its vocabulary included") {
  const test::TemporaryTestFolder folder;
  const std::string artifact = folder / "artifact";
  REQUIRE(command({"compile", "gpt2", "--part", "model", "--dim", "b=8", "--dim", "j=512",
                   "--stop-after", "emit", "-o", artifact})
              .code == 0);
  const ScaledPlan scaled = scaledPlan(readArtifact(artifact, Cubins::left));
  CHECK(scaled.unscaled == "");
  CHECK(scaled.dims.at("v") < 1024);
  CHECK(scaled.planned.kernels.size() > 12 * 7);
  INFO(printDims(scaled.dims) << " " << scaled.others.size());
  CHECK(scaled.flop < 2e9);
}

TEST_CASE("heads of few groups, sub-vectors of several softmaxes, and chunks have small extents") {
  const auto words =
      GENERATE(std::vector<std::string>{"attention", "h=15", "g=1", "j=112", "p=64"},
               std::vector<std::string>{"attention", "h=9", "g=3", "j=64", "k=2062", "p=160"},
               std::vector<std::string>{"t5-base-decoder", "h=6", "p=64", "i=384", "u=96", "j=72",
                                        "m=1883", "--attention", "recomposed"},
               // Chunks along p begin at multiples of 16 bytes.
               std::vector<std::string>{"bert-base", "b=32", "j=80", "h=10", "p=160", "i=1600",
                                        "u=128", "--dtype", "f32", "--chunks", "2"});
  std::vector<std::string> line = {"compile", words.front(), "--stop-after", "emit"};
  for (size_t n = 1; n < words.size(); ++n) {
    if (words[n].find('=') != std::string::npos) line.emplace_back("--dim");
    line.push_back(words[n]);
  }
  const test::TemporaryTestFolder folder;
  const std::string artifact = folder / "artifact";
  line.insert(line.end(), {"-o", artifact});
  REQUIRE(command(line).code == 0);
  CHECK(scaledPlan(readArtifact(artifact, Cubins::left)).unscaled == "");
}

TEST_CASE("a run of a whole model draws ids of its vocabulary, and rejects others") {
  Machine machine(wholeModel("gpt2", "model"));
  const Said said = command({"run", machine.artifact(), "--json"});
  REQUIRE(said.code == 0);
  const json logits = json::parse(said.out)["outputs"]["logits"];
  CHECK(logits["shape"] == json({2, 24, 48}));
  CHECK((logits["notNumbers"] == 0 && logits["infinities"] == 0));
  CHECK(logits["maximum"] > 0);
}

TEST_CASE("a run takes weights of a checkpoint and ids of a file, and rejects ids of no row") {
  Machine machine(wholeModel("gpt2", "model"));
  constexpr int64_t words = 48, hidden = 32, wide = 40, positions = 64;
  std::vector<TensorToWrite> weights;
  const auto add = [&](const std::string &name, std::vector<int64_t> shape,
                       const std::function<float(int64_t)> &value) {
    TensorToWrite tensor{.name = name, .dtype = DType::f32, .shape = shape, .elements = {}};
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    tensor.elements.resize(size_t(count) * sizeof(float));
    for (int64_t n = 0; n < count; ++n) {
      const float element = value(n);
      std::memcpy(tensor.elements.data() + size_t(n) * sizeof(float), &element, sizeof(float));
    }
    weights.push_back(std::move(tensor));
  };
  const auto none = [](int64_t) { return 0.0F; };
  // Nothing reaches the end but the last norm's bias: each logit is the sum of its word's row.
  add("wte.weight", {words, hidden}, [](int64_t n) { return float(n / hidden) / 64; });
  add("wpe.weight", {positions, hidden}, none);
  add("ln_f.weight", {hidden}, none);
  add("ln_f.bias", {hidden}, [](int64_t) { return 1.0F; });
  for (int layer = 0; layer < 3; ++layer) {
    const std::string at = fmt::format("h.{}.", layer);
    for (const char *norm : {"ln_1", "ln_2"})
      for (const char *what : {".weight", ".bias"}) add(at + norm + what, {hidden}, none);
    for (const auto &[name, inputs, outputs] :
         {std::tuple("attn.c_attn", hidden, 3 * hidden), std::tuple("attn.c_proj", hidden, hidden),
          std::tuple("mlp.c_fc", hidden, wide), std::tuple("mlp.c_proj", wide, hidden)}) {
      add(at + name + ".weight", {inputs, outputs}, none);
      add(at + name + ".bias", {outputs}, none);
    }
  }
  const std::string checkpoint = machine.folder / "gpt2.safetensors",
                    ids = machine.folder / "ids.safetensors",
                    logits = machine.folder / "logits.safetensors";
  writeSafetensors(checkpoint, weights);
  const auto run = [&](int32_t last) {
    std::vector<int32_t> tokens(2 * 24, 7);
    tokens.back() = last;
    TensorToWrite one{.name = "tokens", .dtype = DType::i32, .shape = {2, 24}, .elements = {}};
    one.elements.resize(tokens.size() * sizeof(int32_t));
    std::memcpy(one.elements.data(), tokens.data(), one.elements.size());
    writeSafetensors(ids, std::array{one});
    return command(
        {"run", machine.artifact(), "--weights", checkpoint, "--inputs", ids, "--outputs", logits});
  };
  REQUIRE(run(words - 1).code == 0);
  const SafetensorsFile file(logits);
  const std::vector<std::byte> elements = file.read("logits");
  REQUIRE(elements.size() == 2 * 24 * words * 2);
  for (int64_t n = 0; n < 2 * 24 * words; ++n)
    REQUIRE(reference::loadElement(DType::f16, elements.data() + 2 * n) ==
            double(n % words) / 64 * hidden);
  CHECK(run(words).code == 2);
  CHECK(run(-1).code == 2);
}

TEST_CASE("a run hands pages out by the lengths, and names an entry that is none of them") {
  Machine machine({"llama-3-8b", "--cache", "48",    "--page", "16",    "--no-library",
                   "--profile",  "none",    "--dim", "b=3",    "--dim", "f=5",
                   "--dim",      "h=4",     "--dim", "g=2",    "--dim", "p=8",
                   "--dim",      "i=32",    "--dim", "u=40"});
  const std::string file = machine.folder / "lengths.txt";
  const auto run = [&](const std::string &lengths) {
    std::ofstream(file) << lengths << "\n";
    return command({"run", machine.artifact(), "--lengths", file}).code;
  };
  CHECK(run("31 15 15") == 0);  // 2, 1 and 1 pages with the new token
  CHECK(run("31 16 15") == 0);
  CHECK(run("31 16 16") == 2);  // six pages
  // The same from a file: sequence 1 needs two entries.
  std::vector<TensorToWrite> inputs;
  for (const PlanTensor &tensor : readArtifact(machine.artifact()).plan.tensors)
    if (tensor.role == TensorRole::argument || tensor.role == TensorRole::parameter)
      inputs.push_back({.name = tensor.logical,
                        .dtype = tensor.dtype,
                        .shape = tensor.extents,
                        .elements = randomElements(tensor, 1)});
  const auto runWith = [&](std::vector<int32_t> lengths, std::vector<int32_t> table) {
    for (TensorToWrite &tensor : inputs)
      if (tensor.name == "lengths" || tensor.name == "page_table") {
        const std::vector<int32_t> &own = tensor.name == "lengths" ? lengths : table;
        REQUIRE(tensor.elements.size() == own.size() * sizeof(int32_t));
        std::memcpy(tensor.elements.data(), own.data(), tensor.elements.size());
      }
    writeSafetensors(machine.folder / "inputs.safetensors", inputs);
    return command({"run", machine.artifact(), "--inputs", machine.folder / "inputs.safetensors"})
        .code;
  };
  CHECK(runWith({15, 16, 3}, {4, -1, -1, 0, 2, -1, 1, -1, 99}) == 0);
  CHECK(runWith({15, 16, 3}, {4, -1, -1, 0, -1, -1, 1, -1, -1}) == 2);
  CHECK(runWith({15, 16, 3}, {4, -1, -1, 0, 5, -1, 1, -1, -1}) == 2);
  CHECK(runWith({15, 15, 3}, {4, -1, -1, 0, 5, -1, 1, -1, -1}) == 0);
}

TEST_CASE("a run of packed tokens takes the lengths that it is given") {
  Machine machine(
      GENERATE(std::vector<std::string>{"--ragged", "j"}, raggedModel("bert-base", "model")));
  const auto run = [&](const std::string &lengths) {
    const Said said = command({"run", machine.artifact(), "--lengths", lengths, "--json"});
    CHECK(said.code == 0);
    return json::parse(said.out)["outputs"].front();
  };
  const std::string file = machine.folder / "lengths.txt";
  std::ofstream(file) << "0 0\n";
  const json none = run(file);
  CHECK((none["minimum"] == 0 && none["maximum"] == 0));
  const json some = run("mean=0.5");
  CHECK((some["minimum"] < 0 && some["maximum"] > 0));
  CHECK((some["notNumbers"] == 0 && some["infinities"] == 0));
  // Of half of the tokens: the layer ends in a norm, whose rows have mean 0 and deviation 1.
  std::ofstream(file) << "24 0\n";
  CHECK(run(file)["maximum"] > 1);
}

TEST_CASE("a kernel with a fault fails, is named, and loses the record of the run before") {
  Machine machine;
  const auto &[name, fault] = GENERATE(
      table<std::string, Fault>({{"softmax", Fault::wrongElement},
                                 {"attention_projection", Fault::unwrittenElement},
                                 {"score", Fault::notANumber},
                                 {"dropout_residual_layer_norm__b_j_i_2", Fault::otherTensor}}));
  const std::string store = machine.folder / "store.txt", kernel = machine.kernel(name).name;
  machine.verify(0, {"--store", store});
  const size_t before = readRecords(store).size();
  machine.kernels.plant(kernel, fault, length);
  const json said = machine.verify(1, {"--store", store});
  CHECK(said["failed"] == 1);
  CHECK(rowOf(said, kernel)["passed"] == false);
  const std::set<std::string> alike = machine.ofSameText(kernel);  // records are of texts
  CHECK(machine.inState(State::fails) == alike);
  CHECK(readRecords(store).size() == before - 1);
  machine.kernels.heal();
  machine.verify(0, {"--store", store});
  CHECK(machine.inState(State::agrees) == machine.launched());
  CHECK(readRecords(store).size() == before);
}

TEST_CASE("a plan that fails as a whole leaves no record, and takes those of its kernels") {
  Machine machine;
  const bool wasVerified = GENERATE(true, false);
  if (wasVerified) machine.verify(0);
  machine.kernels.plant(
      "dropout_residual_layer_norm",
      GENERATE(Fault::wrongElement, Fault::unwrittenElement, Fault::notANumber, Fault::otherTensor),
      machine.smallLength);
  const json said = machine.verify(1);
  CHECK(said["failed"] == 0);
  CHECK(said["whole"]["checked"] == true);
  CHECK(said["whole"]["passed"] == false);
  CHECK(machine.inState(State::planFails) == machine.launched());
  machine.kernels.heal();
  machine.verify(0, {"--kernels-only"});
  CHECK(machine.inState(State::planFails) ==
        machine.launched());  // the whole was in doubt, and was not checked
  machine.verify(0);
  CHECK(machine.inState(State::agrees) == machine.launched());
}

TEST_CASE("what was not checked is named and is no success unless it is allowed") {
  Machine machine;
  const PlanKernel softmax = machine.kernel("softmax");
  std::string reason;
  SECTION("a cubin is missing") {
    fs::remove(fs::path(machine.artifact()) / softmax.cubin);
    reason = softmax.cubin + " is missing";
  }
  SECTION("a cubin was damaged") {
    runtime::writeFile(fs::path(machine.artifact()) / softmax.cubin, "host\n");
    reason = softmax.cubin + " is missing or damaged";
  }
  SECTION("a text was edited and not built") {
    const fs::path file = fs::path(machine.artifact()) / softmax.source;
    runtime::writeFile(file, "// faster\n" + readFile(file));
    reason = softmax.cubin + " is of another text than " + softmax.source;
  }
  const json said = machine.verify(1);
  CHECK(said["failed"] == 0);
  CHECK(said["agreed"] == machine.launched().size() - 1);
  REQUIRE(said["unchecked"].size() == 1);
  CHECK_THAT(said["unchecked"][0].get<std::string>(),
             Catch::StartsWith(softmax.name + ": " + reason) && Catch::Contains("weft emit"));
  CHECK(machine.inState(State::never) == std::set{softmax.name});
  machine.verify(0, {"--allow-unchecked"});
  machine.kernels.plant("score", Fault::wrongElement);
  machine.verify(1, {"--allow-unchecked"});
}

TEST_CASE("without NVRTC nothing tells whether cubins are of their texts") {
  Machine machine;
  const ScopedVariable none("WEFT_NVRTC", "none");
  const json said = machine.verify(1);
  CHECK(said["agreed"] == 0);
  CHECK(said["unchecked"].size() == machine.launched().size() + 1);
  CHECK(machine.inState(State::never) == machine.launched());
}

TEST_CASE("a plan whose small texts do not build was not checked as a whole") {
  Machine machine;
  std::set<std::string> lines;
  const Artifact artifact = readArtifact(machine.artifact());
  ScaledPlan scaled = scaledPlan(artifact);
  const BuiltPlan built = buildScaled(scaled, artifact.plan.target);
  // A line of a small text that no text of the artifact has.
  std::string all, rejected;
  for (const BuildRequest &request : exactTexts(artifact, machine.artifact()).emitted.requests)
    all += request.text;
  std::istringstream text(built.emitted.requests.front().text);
  for (std::string line; rejected.empty() && std::getline(text, line);)
    if (line.size() > 20 && all.find(line) == std::string::npos) rejected = line;
  REQUIRE_FALSE(rejected.empty());
  fs::remove_all(cacheFolder());
  const ScopedVariable rejects("FAKE_NVRTC_REJECTS", rejected);
  const json said = machine.verify(1);
  REQUIRE(said["unchecked"].size() == 1);
  CHECK_THAT(said["unchecked"][0].get<std::string>(),
             Catch::StartsWith("the whole plan: ") && Catch::Contains("does not build"));
  CHECK(said["agreed"] == machine.launched().size());
  CHECK(machine.verify(0, {"--allow-unchecked"})["whole"]["checked"] == false);
}

TEST_CASE("a view is nothing to check, and --kernels-only asks for no whole plan") {
  Machine machine;
  size_t views = 0;
  const json said = machine.verify(0, {"--kernels-only"});
  for (const json &row : said["kernels"]) views += row["view"] == true;
  CHECK(views > 0);
  CHECK(said["whole"]["asked"] == false);
  CHECK(said["unchecked"].empty());
}

TEST_CASE("a whole plan that is wired wrongly fails") {
  Machine machine;
  Artifact artifact = readArtifact(machine.artifact());
  Plan &plan = artifact.plan;
  const auto tensorOf = [&](const std::string &name) {
    const auto found = std::ranges::find(plan.tensors, name, &PlanTensor::name);
    REQUIRE(found != plan.tensors.end());
    return int(found - plan.tensors.begin());
  };
  const auto kernelOf = [&](const std::string &name) -> PlanKernel & {
    const auto found = std::ranges::find_if(
        plan.kernels, [&](const PlanKernel &one) { return one.name.starts_with(name); });
    REQUIRE(found != plan.kernels.end());
    return *found;
  };
  SECTION("gamma and beta are exchanged") {
    std::vector<int> &inputs = kernelOf("dropout_residual_layer_norm__b_j_i").inputs;
    const auto gamma = std::ranges::find(inputs, tensorOf("gamma1")),
               beta = std::ranges::find(inputs, tensorOf("beta1"));
    REQUIRE((gamma != inputs.end() && beta != inputs.end()));
    std::iter_swap(gamma, beta);
  }
  SECTION("a residual reads another tensor") {
    std::vector<int> &inputs = kernelOf("dropout_residual_layer_norm__b_j_i_2").inputs;
    const auto residual = std::ranges::find(inputs, tensorOf("norm1"));
    REQUIRE(residual != inputs.end());
    *residual = tensorOf("x");
  }
  SECTION("two parameters lie in one buffer") {
    plan.tensors[size_t(tensorOf("beta2"))].buffer =
        plan.tensors[size_t(tensorOf("gamma2"))].buffer;
    const cuda::Context context(0);
    const WholeVerdict verdict =
        verifyWhole(artifact, {}, context, 1);  // it is no plan: nothing runs
    CHECK(verdict.failed());
    CHECK_THAT(verdict.problem, Catch::Contains("'gamma2'") && Catch::Contains("'beta2'"));
    return;
  }
  SECTION("nothing") {}
  const bool isWrong = plan != machine.plan();
  machine.learnSmall(artifact);
  const cuda::Context context(0);
  const WholeVerdict verdict = verifyWhole(artifact, {}, context, 1);
  INFO(verdict.unchecked << verdict.problem);
  CHECK(verdict.ran());
  CHECK(verdict.failed() == isWrong);
}

TEST_CASE("the small plan is the plan that was chosen") {
  const std::vector<std::string> flags = GENERATE(values<std::vector<std::string>>(
      {{}, {"--chunks", "2", "--concurrent", "on"}, {"--pipeline", "2"}}));
  const bool isChunked = !flags.empty();
  Machine machine(flags);
  const Artifact artifact = readArtifact(machine.artifact());
  const Plan &plan = artifact.plan;
  const ScaledPlan scaled = scaledPlan(artifact);
  const Plan &small = scaled.planned.plan;
  REQUIRE(small.kernels.size() == plan.kernels.size());
  CHECK(small.concurrent == isChunked);
  CHECK(small.entryPoints == plan.entryPoints);
  size_t chunks = 0;
  for (size_t index = 0; index < plan.kernels.size(); ++index) {
    const PlanKernel &was = plan.kernels[index], &is = small.kernels[index];
    CHECK(is.inputs == was.inputs);
    CHECK(is.outputs == was.outputs);
    CHECK(is.after == was.after);
    CHECK(is.family == was.family);
    REQUIRE(is.chunk.has_value() == was.chunk.has_value());
    if (is.chunk) CHECK(is.chunk->isSlice == (flags.front() == "--pipeline"));
    chunks += was.chunk.has_value();
    const bool isTold =
        std::ranges::count(scaled.others, is.name, &decision::OtherKnobs::kernel) == 1;
    CHECK((is.knobs == was.knobs) != isTold);
  }
  CHECK((chunks > 0) == isChunked);
  for (size_t index = 0; index < plan.tensors.size(); ++index) {
    CHECK(small.tensors[index].order == plan.tensors[index].order);
    CHECK(small.tensors[index].buffer == plan.tensors[index].buffer);
  }
  CHECK(scaled.dims.at("j") < plan.dims.at("j"));
  const json said = machine.verify(0);
  CHECK(said["whole"]["dims"] == json(scaled.dims));
  CHECK(said["whole"]["otherKnobs"].size() == scaled.others.size());
}

TEST_CASE("every preset has a small plan, with most kernels as they were chosen") {
  // 16 x 16 tiles of 64, every second one, which small extents have not.
  const std::string tableOfTiles =
      fmt::format("table(block=64,heads=1,rows=16,columns=16,bits={})", std::string(64, '5'));
  const test::TemporaryTestFolder folder;
  const ScopedVariable cache("WEFT_CACHE_DIR", folder / "cache"), compiler("WEFT_NVRTC", "none");
  const std::vector<std::vector<std::string>> models = {
      {"bert-base"},  // a decomposed softmax, a GEMM whose rows have several strides, chunks
      {"bert-large", "--dim", "b=1", "--dim", "j=4096"},
      {"gpt2", "--dim", "b=4", "--max-memory", "200M"},
      {"llama-3-8b", "--dim", "j=333", "--norms", "decomposed"},
      {"paper-encoder", "--train"},
      {"gpt2", "--train", "--optimizer", "adamw", "--dim", "b=2", "--dim", "j=256"},  // merged axes
      {"longformer-large"},  // slices of positions, and a window with global ones
      {"gpt2", "--dim", "b=1", "--mask", tableOfTiles},
      {"gpt-neo-1.3b", "--attention", "recomposed", "--dim", "j=1000", "--sub-vector", "32"},
      {"paper-attention", "--train", "--attention", "recomposed"},
      // Bounds of tiles of documents.
      {"attention", "--train", "--mask", "document", "--attention", "fused", "--dim", "j=700"},
      {"attention", "--train", "--dim", "b=3", "--dim", "h=5", "--dim", "j=77", "--dim", "p=24"}};
  for (const std::vector<std::string> &model : nonEmpty(models)) {
    std::vector<std::string> words = {"compile"};
    words.insert(words.end(), model.begin(), model.end());
    words.insert(words.end(), {"--device", "h200", "--stop-after", "emit", "--overwrite", "-o",
                               folder / "artifact"});
    INFO(fmt::format("{}", fmt::join(words, " ")));
    REQUIRE(command(words).code == 0);
    const Artifact artifact = readArtifact(folder / "artifact", Cubins::left);
    ScaledPlan scaled = scaledPlan(artifact);
    CHECK(scaled.unscaled.empty());
    CHECK(scaled.dims.at("j") < artifact.plan.dims.at("j"));
    CHECK(2 * scaled.others.size() < scaled.planned.kernels.size());
    CHECK_NOTHROW(emitKernels(scaled.planned, artifact.plan.target,
                              [](const ChosenKernel &) { return std::vector<std::string>(); }));
    CHECK_NOTHROW(verify(scaled.planned.plan, "the plan on small extents"));
  }
}

TEST_CASE("in training, of several layers and of whole models the check's numbers stay small") {
  // A layer norm without beta; a memory; two layers; padded gradients; global positions.
  const std::vector<std::vector<std::string>> models = {
      {"mpt-7b"},
      {"transformer-decoder", "--train"},
      {"gpt2", "--layers", "2", "--train"},
      {"albert-base", "--part", "model", "--layers", "1", "--train"},
      {"longformer-large", "--dim", "a=8", "--train"}};
  const test::TemporaryTestFolder folder;
  const ScopedVariable cache("WEFT_CACHE_DIR", folder / "cache"), compiler("WEFT_NVRTC", "none");
  for (const std::vector<std::string> &model : nonEmpty(models)) {
    std::vector<std::string> words = {"compile"};
    words.insert(words.end(), model.begin(), model.end());
    for (const char *dim : {"b=2", "j=48", "h=4", "i=64", "u=96"})
      words.insert(words.end(), {"--dim", dim});
    words.insert(words.end(), {"--device", "h200", "--profile", "none", "--search-memory", "64M",
                               "--stop-after", "emit", "--overwrite", "-o", folder / "artifact"});
    INFO(fmt::format("{}", fmt::join(words, " ")));
    REQUIRE(command(words).code == 0);
    const Artifact artifact = readArtifact(folder / "artifact", Cubins::left);
    ScaledPlan scaled = scaledPlan(artifact);
    INFO(printDims(scaled.dims));
    CHECK(scaled.unscaled == "");
    CHECK_NOTHROW(emitKernels(scaled.planned, artifact.plan.target,
                              [](const ChosenKernel &) { return std::vector<std::string>(); }));
    size_t results = 0, sharp = 0;
    for (const ResultCheck &check : nonEmpty(checkReference(scaled.graph, 1))) {
      INFO(check.name << ": " << check.largest << ", bound " << check.bound);
      CHECK(check.passed);
      CHECK(check.largest < 1000);  // sums over all tokens of what is near 1
      ++results;
      sharp += check.bound < check.largest / 10;
    }
    CHECK(2 * sharp > results);  // the others: sums that cancel, and ReLU near 0
  }
}

TEST_CASE("two layers in training fail as a whole where one kernel is wrong") {
  std::vector<std::string> words = {"gpt2",    "--layers",        "2",
                                    "--train", "--no-library",    "--profile",
                                    "none",    "--search-memory", "64M"};
  for (const char *dim : {"b=2", "j=12", "h=2", "i=16", "u=24"})
    words.insert(words.end(), {"--dim", dim});
  Machine machine(words);
  const Artifact artifact = readArtifact(machine.artifact());
  const cuda::Context context(0);
  CHECK(verifyWhole(artifact, {}, context, 1).passed());
  // Those of the other layer are the same functions, of the layer that runs first.
  for (const char *kernel : {"layer1_feed_forward", "layer2_layer_norm_dw"}) {
    INFO(kernel);
    CHECK(std::ranges::any_of(machine.launched(),
                              [&](const std::string &name) { return name.starts_with(kernel); }));
    machine.kernels.plant(kernel, Fault::wrongElement);
    CHECK(verifyWhole(artifact, {}, context, 1).failed());
  }
}

TEST_CASE("weights are drawn as small as the longest sums over them, stacked or not") {
  const char *const text = R"(
    !x = tensor<2x64xf16, #weft.axes<j, i>>
    !w = tensor<16x64xf16, #weft.axes<u, i>>
    !ww = tensor<32x64xf16, #weft.axes<u, i>>
    !y = tensor<2x32xf16, #weft.axes<j, u>>
    weft.graph @stacked(%x: !x, %w1: !w {weft.parameter}, %w2: !w {weft.parameter},
                        %w3: !ww {weft.parameter}) -> (!y, !x) {
      %both = weft.concat %w1, %w2 {axis = u} : !w, !w -> !ww
      %y = weft.contract "ui,ji->ju" %both, %x : !ww, !x -> !y
      %z = weft.contract "ui,ju->ji" %w3, %y : !ww, !y -> !x
      weft.return %y, %z : !y, !x
    })";
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<WeftDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  REQUIRE(module);
  const std::vector<TensorValue> arguments = randomArguments(*module->getOps<GraphOp>().begin(), 1);
  const std::vector<double> deviations = {1, 1. / 8, 1. / 8, 1 / std::sqrt(32.)};
  for (size_t n = 0; n < deviations.size(); ++n) {
    double squares = 0;
    for (const double element : arguments[n].elements) squares += element * element;
    const double measured = std::sqrt(squares / double(arguments[n].elements.size()));
    CHECK(measured == Approx(deviations[n]).epsilon(0.2));
  }
}

TEST_CASE("constants are cut to the small extents, kernels that hold them included") {
  const ScaledGraph scaled = scaledGraph(R"(
    !ji = tensor<4x6xf32, #weft.axes<j, i>>
    !i = tensor<6xf32, #weft.axes<i>>
    module {
      weft.graph @constants(%x: !ji) -> !ji {
        %beta = weft.constant dense<0.5> : !i
        %table = weft.constant dense<[
            [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0, 11.0],
            [12.0, 13.0, 14.0, 15.0, 16.0, 17.0], [18.0, 19.0, 20.0, 21.0, 22.0, 23.0]]> : !ji
        %shifted = weft.bias %x, %beta along (i) : !ji, !i
        %y = weft.add %shifted, %table : !ji, !ji
        weft.return %y : !ji
      }
    })",
                                         Scaling({{"j", 4}, {"i", 6}}, {{"j", 2}, {"i", 3}}));
  CHECK_THAT(scaled.ops, Catch::Contains("dense<5.000000e-01>"));
  CHECK_THAT(scaled.ops, Catch::Contains("[0.000000e+00, 1.000000e+00, 2.000000e+00], "
                                         "[6.000000e+00, 7.000000e+00, 8.000000e+00]]"));
  CHECK(checkReference(scaled, 1).front().passed);
}

TEST_CASE("heads that a rotary embedding turns keep their share of the small axis") {
  const ScaledGraph scaled = scaledGraph(R"(
    !x = tensor<48x6x8xf16, #weft.axes<g, j, p>>
    module {
      weft.graph @turned(%x: !x) -> !x {
        %y = weft.rotary %x
            {dim = p, position = j, base = 100.0, among = g, begin = 0, end = 40} : !x
        weft.return %y : !x
      }
    })",
                                         Scaling({{"g", 8}, {"j", 6}}, {{"g", 2}, {"j", 3}}));
  CHECK_THAT(scaled.ops, Catch::Contains("tensor<12x3x8xf16"));
  CHECK_THAT(scaled.ops, Catch::Contains("end = 10"));
  CHECK(checkReference(scaled, 1).front().passed);
}

TEST_CASE("a result outside one path's roundings is measured by several, and then fails or not") {
  const auto checked = [](int maps, double factor) {
    std::string text = R"(
      !t = tensor<8xf16, #weft.axes<i>>
      weft.graph @logistic(%x: !t) -> !t {
        %x0 = weft.tanh %x : !t
        %one = weft.constant dense<1.0> : !t)";
    for (int n = 0; n < maps; ++n)  // x' = 1 - 1.9 x x: in [-1, 1], and differences grow
      text += fmt::format(R"(
        %a{0} = weft.mul %x{0}, %x{0} : !t, !t
        %b{0} = weft.scale %a{0} {{factor = -1.9}} : !t
        %x{1} = weft.add %b{0}, %one : !t, !t)",
                          n, n + 1);
    text += fmt::format("\n weft.return %x{} : !t }}", maps);
    return checkReference(
               {.kernels = {}, .results = {"y"}, .ops = text}, 1,
               [&](double exact, double rounded) { return exact + factor * (rounded - exact); })
        .front();
  };
  CHECK(checked(1, 1).passed);
  CHECK(checked(1, 20).failed());
  const ResultCheck within = checked(6, 3), outside = checked(6, 4.5);
  INFO(within.worst << " of " << within.bound << " " << within.unchecked);
  CHECK(within.passed);
  CHECK(outside.bound > within.bound);
  CHECK(checked(6, 200).failed());
}

TEST_CASE("where terms cancel exactly, a result is bounded by what fp32 loses of them") {
  const auto checked = [](double left) {
    // Rounded alike, both terms cancel on every path; what a plan computes of them need not.
    const std::string text = R"(
      !t = tensor<64xf32, #weft.axes<i>>
      weft.graph @cancel(%x: !t) -> !t {
        %minus = weft.scale %x {factor = -1.0} : !t
        %y = weft.add %x, %minus : !t, !t
        weft.return %y : !t
      })";
    return checkReference({.kernels = {}, .results = {"y"}, .ops = text}, 1,
                          [&](double exact, double) { return exact + left; })
        .front();
  };
  CHECK(checked(5e-8).passed);
  CHECK(checked(1e-5).failed());
}

TEST_CASE("what the reference itself cannot hold was not checked, and did not fail") {
  const auto checked = [](const char *factor,
                          const std::function<double(double, double)> &resultOf = {}) {
    const std::string text = fmt::format(R"(
      !t = tensor<64xf16, #weft.axes<i>>
      weft.graph @grows(%x: !t) -> !t {{
        %large = weft.scale %x {{factor = {}}} : !t
        %y = weft.scale %large {{factor = 1.0e-02}} : !t
        weft.return %y : !t
      }})",
                                         factor);
    return checkReference({.kernels = {}, .results = {"y"}, .ops = text}, 1, resultOf).front();
  };
  CHECK(checked("1.0e+03").passed);
  const ResultCheck finite = checked(
      "1.0e+05", [](double, double rounded) { return std::isfinite(rounded) ? rounded : 0; });
  CHECK_FALSE(finite.passed);
  CHECK_THAT(finite.unchecked, Catch::Contains("leave the range of f16"));
  CHECK(checked("1.0e+05", [](double, double rounded) {
          return std::isfinite(rounded) ? 2 * rounded : 0;
        }).failed());
  const ResultCheck lost =
      checked("1.0e+05");  // y up to some 3000; what it is computed of: infinite
  CHECK_FALSE(lost.passed);
  CHECK_FALSE(lost.failed());
  CHECK_THAT(lost.unchecked, Catch::Contains("leave the range of f16"));
  // Beyond half of the range's end, what rounds otherwise may leave it.
  const auto infinite = [](double exact, double rounded) {
    return std::abs(exact) > 350 ? std::numeric_limits<double>::infinity() : rounded;
  };
  const ResultCheck near = checked("1.4e+04", infinite);
  CHECK_FALSE(near.failed());
  CHECK_THAT(near.unchecked, Catch::Contains("leave the range of f16"));
  CHECK(checked("1.0e+03", [](double, double) {
          return std::numeric_limits<double>::infinity();
        }).failed());
  ArtifactVerdict verdict;
  verdict.whole.results = {checked("1.0e+03"), lost};
  CHECK_FALSE(verdict.whole.failed());
  CHECK_FALSE(verdict.whole.passed());
  REQUIRE(verdict.unchecked().size() == 1);
  CHECK_THAT(verdict.unchecked().front(), Catch::StartsWith("the whole plan: 'y': element "));
  CHECK_FALSE(recordsOf(verdict).isWhole);
}

TEST_CASE("small extents end within tiles and vectors, and chunks stay chunks") {
  Plan plan;
  plan.dims = {{"b", 8},  {"j", 512},  {"k", 512},  {"h", 16}, {"p", 64},
               {"w", 64}, {"i", 1024}, {"u", 4096}, {"m", 512}};
  for (const int64_t step : {1, 8, 16, 32, 64}) {
    const Dims small = smallDims(plan, step, 128);
    for (const char *axis : {"j", "p", "u"}) {
      CHECK(small.at(axis) % step == 0);
      CHECK((small.at(axis) / step % 2 == 1 || small.at(axis) == plan.dims.at(axis)));
    }
    CHECK(small.at("j") > 128);  // more than a tile, and no whole number of tiles
    CHECK(small.at("j") % 128 != 0);
    CHECK(small.at("i") == small.at("h") * small.at("p"));
    for (const char *follows : {"k", "m"}) CHECK_FALSE(small.contains(follows));  // j
    CHECK(Scaling(plan.dims, small).extent("m", 512) == small.at("j"));
    CHECK(Scaling(plan.dims, small).extent("k", 512) == small.at("j"));
    CHECK(Scaling(plan.dims, small).extent("h", 48) == 3 * small.at("h"));
  }
  for (int chunk = 0; chunk < 4; ++chunk) {
    plan.kernels.emplace_back();
    plan.kernels.back().chunk = PlanChunk{.region = 0, .axis = "h", .start = 4 * chunk, .size = 4};
  }
  CHECK(smallDims(plan, 8, 128).at("h") == 8);
  plan.dims["u"] = plan.dims["i"];  // kernels may compute along both at once
  plan.dims["m"] = 256;
  const Dims small = smallDims(plan, 8, 128);
  CHECK(small.at("u") == small.at("i"));
  CHECK((small.at("m") < 256 && small.at("m") % 16 == 8));
}

TEST_CASE("records of another format are left alone, by name") {
  Machine machine;
  const std::string store = machine.folder / "store.txt";
  runtime::writeFile(store, "# weft verified 7\n");
  CHECK(command({"verify", machine.artifact(), "--store", store}).code == 2);
  CHECK(readFile(store) == "# weft verified 7\n");
}
