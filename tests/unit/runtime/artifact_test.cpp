// Artifacts: written whole or not at all, read strictly, replaced in one step.
#include <catch2/catch.hpp>

#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/view/ViewKnobs.h"
#include "kernel/Error.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/system/Files.h"
#include "runtime/system/JsonText.h"
#include "tests/support/ExampleArtifact.h"
#include "tests/support/NonEmpty.h"
#include "tests/support/TemporaryTestFolder.h"

#include <csignal>
#include <limits>

#include <sys/wait.h>
#include <unistd.h>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::runtime;
using nlohmann::json;
using weft::test::exampleArtifact;
using weft::test::kernelOf;
using weft::test::TemporaryTestFolder;
using weft::test::tensorOf;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> namesIn(const fs::path &folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

std::map<std::string, std::string> contentOf(const fs::path &folder) {
  std::map<std::string, std::string> content;
  for (const fs::directory_entry &entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      content[fs::relative(entry.path(), folder)] = readFile(entry.path());
  return content;
}

/// The message of the Error that the call throws, after checking its kind.
template <typename Call>
std::string errorOf(ErrorKind kind, Call &&call) {
  try {
    call();
  } catch (const Error &error) {
    CHECK(int(error.kind) == int(kind));
    return error.what();
  }
  FAIL("no error");
  return {};
}

}  // namespace

TEST_CASE("what is written is read back") {
  const TemporaryTestFolder folder;
  const Artifact artifact = exampleArtifact();
  writeArtifact(artifact, folder / "out/deep");
  const Artifact read = readArtifact(folder / "out/deep");
  CHECK(read.plan == artifact.plan);
  CHECK(read.graph == artifact.graph);
  CHECK(read.sources == artifact.sources);
  CHECK(read.cubins == artifact.cubins);
  CHECK(read.report == artifact.report);
  CHECK(namesIn(folder / "out") == std::vector<std::string>{"deep"});
}

TEST_CASE("notes keep their kinds; those of plans without kinds go by their words") {
  Plan plan = exampleArtifact().plan;
  plan.notes = {{.kind = NoteKind::copy, .text = "a copy", .code = "V003"},
                {.kind = NoteKind::rewrite, .text = "cubins: was edited by hand"},
                {.kind = NoteKind::build, .text = "no compiler"}};
  nlohmann::json text = toJson(plan);
  CHECK(text["notes"][0] == nlohmann::json{{"kind", "copy"}, {"text", "a copy"}, {"code", "V003"}});
  CHECK(planFromJson(text, "p").notes == plan.notes);
  const std::vector<PlanNote> old = {
      {.kind = NoteKind::packing, .text = "parameter wq is packed at load as iph"},
      {.kind = NoteKind::copy, .text = "slice is a copy: V001 reason (why)", .code = "V001"},
      {.kind = NoteKind::rewrite, .text = "d_active draws no mask: d_hidden reads it"},
      {.kind = NoteKind::stale, .text = "kernel k: stale, its time is of an older source"},
      {.kind = NoteKind::edit, .text = "kernels/k.cu was edited by hand"},
      {.kind = NoteKind::build, .text = "cubins: skipped, no NVRTC"},
      {.kind = NoteKind::unknown, .text = "anything else"}};
  text["notes"] = textsOf(old);
  CHECK(planFromJson(text, "p").notes == old);
  text["notes"] = {{{"kind", "gossip"}, {"text", "a note"}}};
  CHECK_THAT(errorOf(ErrorKind::badInput, [&] { planFromJson(text, "p"); }),
             Catch::Contains("p: notes[0]: kind \"gossip\" is none of packing, copy, chunks"));
}

TEST_CASE("the same artifact gives the same bytes") {
  const TemporaryTestFolder folder;
  writeArtifact(exampleArtifact(), folder / "one");
  writeArtifact(readArtifact(folder / "one"), folder / "two");
  CHECK(contentOf(folder / "one") == contentOf(folder / "two"));
}

TEST_CASE("plan.json is sorted, and a change of one stride changes one line") {
  Plan plan = exampleArtifact().plan;
  const std::string before = prettyText(toJson(plan));
  plan.tensors[0].strides = {64, 1};
  const std::string after = prettyText(toJson(plan));
  int changed = 0;
  for (size_t a = 0, b = 0; a < before.size() && b < after.size();) {
    const size_t endA = before.find('\n', a), endB = after.find('\n', b);
    changed += before.substr(a, endA - a) != after.substr(b, endB - b);
    a = endA + 1, b = endB + 1;
  }
  CHECK(changed == 1);
  const std::string tensors = before.substr(before.find("\"tensors\""));
  CHECK(tensors.find("\"axes\"") < tensors.find("\"buffer\""));
  CHECK(tensors.find("\"buffer\"") < tensors.find("\"strides\""));
}

TEST_CASE("every member is required, and named when it is missing") {
  const json plan = toJson(exampleArtifact().plan);
  const std::vector<json::json_pointer> objects{
      json::json_pointer(""), json::json_pointer("/tensors/1"), json::json_pointer("/kernels/1"),
      json::json_pointer("/kernels/1/parameters/0")};
  for (const json::json_pointer &place : objects)
    for (const auto &[name, value] : nonEmpty(plan[place].items())) {
      json broken = plan;
      broken[place].erase(name);
      if (name == "concurrent") {  // younger than the format
        CHECK_FALSE(planFromJson(broken, "some/plan.json").concurrent);
        continue;
      }
      if (name == "label") {  // likewise
        CHECK(planFromJson(broken, "some/plan.json").kernels[1].label.empty());
        continue;
      }
      const std::string message =
          errorOf(ErrorKind::badInput, [&] { planFromJson(broken, "some/plan.json"); });
      CHECK_THAT(message, Catch::StartsWith("some/plan.json: ") && Catch::Contains(name) &&
                              Catch::Contains("missing"));
    }
}

TEST_CASE(
    "kernels that start early are those of single-consumer tiles, and the member is written for "
    "them "
    "alone") {
  Plan plan = exampleArtifact().plan;
  CHECK(prettyText(toJson(plan)).find("startsEarly") == std::string::npos);
  plan.kernels[1].startsEarly = true;
  CHECK(planFromJson(toJson(plan), "p") == plan);
  CHECK(toJson(plan)["kernels"][1]["startsEarly"] == true);
  CHECK_THAT(errorOf(ErrorKind::badInput, [&] { verify(plan, "p"); }),
             Catch::Contains("kernels[1] (second): it starts early"));
  plan.kernels[1].family = sm90GemmFamily;
  plan.kernels[1].knobs = {Sm90GemmKnobs{.schedule = Sm90Schedule::singleConsumer}};
  CHECK_NOTHROW(verify(plan, "p"));
  plan.kernels[1].knobs = {Sm90GemmKnobs{.schedule = Sm90Schedule::pingPong}};
  CHECK_THROWS_AS(verify(plan, "p"), Error);
}

TEST_CASE("a plan says what its chunks are of, whatever they are called") {
  Plan plan = exampleArtifact().plan;
  plan.kernels[0].name = "renamed__by_hand";
  plan.kernels[0].chunk = PlanChunk{.axis = "i", .start = 8, .size = 8, .whole = "first"};
  plan.tensors[1].name = "t__i8", plan.tensors[1].chunkOf = "t";
  const Plan read = planFromJson(toJson(plan), "p");
  CHECK(read == plan);
  CHECK(wholeName(read.kernels[0]) == "first");
  CHECK(wholeName(read.kernels[1]) == "second");
  plan.tensors[1].name = "u__i8", plan.tensors[1].chunkOf = "";  // which is no chunk of u
  CHECK(planFromJson(toJson(plan), "p").tensors[1].chunkOf == "");
  // Plans from before say it by their names.
  json old = toJson(plan);
  old["kernels"][0]["name"] = "first__i8";
  old["kernels"][0]["chunk"].erase("whole");
  const Plan told = planFromJson(old, "p");
  CHECK(wholeName(told.kernels[0]) == "first");
  CHECK(told.tensors[1].chunkOf == "u");
}

TEST_CASE("knobs of plan.json are those of a family, and axes stand by their names") {
  const Plan plan = exampleArtifact().plan;
  json text = toJson(plan);
  json &knobs = text["kernels"][0]["knobs"];
  CHECK(knobs["family"] == "loop");
  CHECK(knobs["vectorWidth"] == 8);
  knobs["vectorAxis"] = "i", knobs["laneAxis"] = "b";
  const Plan edited = planFromJson(text, "p");
  CHECK(edited.kernels[0].knobs.axes == std::vector<std::string>{"i", "b"});
  CHECK(toJson(edited) == text);
  const auto rejected = [&](const char *name, const json &value) {
    json broken = text;
    broken["kernels"][0]["knobs"][name] = value;
    return errorOf(ErrorKind::badInput, [&] { planFromJson(broken, "p"); });
  };
  CHECK_THAT(rejected("vectorWidht", 8),
             Catch::Contains("kernel 'first': unknown knob") && Catch::Contains("'vectorWidth'"));
  CHECK_THAT(rejected("family", "lop"), Catch::Contains("unknown family 'lop'"));
  CHECK_THAT(rejected("threads", -5), Catch::Contains("'threads' must be an integer from"));
  CHECK_THAT(rejected("vectorAxis", 3), Catch::Contains("must name an axis, not 3"));
}

TEST_CASE("what limits a kernel is one of four, or nothing") {
  json text = toJson(exampleArtifact().plan);
  CHECK(text["kernels"][0]["bound"] == "");
  for (const char *bound : {"memory", "tensor", "fma", "launch"}) {
    text["kernels"][0]["bound"] = bound;
    CHECK(boundName(planFromJson(text, "p").kernels[0]) == bound);
  }
  text["kernels"][0]["bound"] = "cache";
  CHECK_THAT(errorOf(ErrorKind::badInput, [&] { planFromJson(text, "p"); }),
             Catch::Contains("\"cache\" is none of memory, tensor, fma, launch"));
}

TEST_CASE("rewrites are their words in plan.json, those of a person's file too") {
  Plan plan = exampleArtifact().plan;
  plan.rewrites = {{Rewrite::Kind::stack, "q-k"},
                   {Rewrite::Kind::fuseAttention},
                   {Rewrite::Kind::other, "by-hand"}};
  const json text = toJson(plan);
  CHECK(text["rewrites"] == json({"stack-q-k", "fuse-attention", "by-hand"}));
  CHECK(planFromJson(text, "p").rewrites == plan.rewrites);
}

TEST_CASE("what prices a plan is written where it is known; plans from before do not say") {
  Plan plan = exampleArtifact().plan;
  CHECK_FALSE(toJson(plan).contains("prices"));
  CHECK(planFromJson(toJson(plan), "p").prices.empty());
  plan.prices = "0123456789abcdef";
  CHECK(planFromJson(toJson(plan), "p").prices == plan.prices);
}

TEST_CASE("an initial value is written where a tensor has one; plans from before have none") {
  const Plan plan = exampleArtifact().plan;
  json text = toJson(plan);
  CHECK(text["tensors"][0]["initial"] == "normal(0.5)");
  CHECK_FALSE(text["tensors"][1].contains("initial"));
  text["tensors"][0].erase("initial");
  CHECK(planFromJson(text, "p").tensors[0].initial == std::nullopt);
}

TEST_CASE("masters and next values are written where there are any, and name fitting arguments") {
  Plan plan = exampleArtifact().plan;
  CHECK_FALSE(toJson(plan)["tensors"][0].contains("masterOf"));
  CHECK_FALSE(toJson(plan)["tensors"][2].contains("nextOf"));
  plan.tensors[2].nextOf = "x";
  const Plan read = planFromJson(toJson(plan), "p");
  CHECK(read == plan);
  CHECK_NOTHROW(verify(read, "p"));
  plan.tensors[2].nextOf = "t";  // a temporary
  CHECK_THAT(errorOf(ErrorKind::badInput, [&] { verify(plan, "p"); }),
             Catch::Contains("tensors[2] (y): nextOf is 't'"));
  plan.tensors[2].nextOf = "";
  plan.tensors[0].masterOf = "x";  // itself, which is no f32
  CHECK(planFromJson(toJson(plan), "p") == plan);
  CHECK_THAT(errorOf(ErrorKind::badInput, [&] { verify(plan, "p"); }),
             Catch::Contains("tensors[0] (x): masterOf is 'x'"));
}

TEST_CASE("a tensor's role in training is read back, and is of a tensor that can have it") {
  Plan plan = exampleArtifact().plan;
  CHECK_FALSE(toJson(plan)["tensors"][0].contains("training"));
  plan.tensors[0].training = TrainingRole::tokens;
  CHECK(toJson(plan)["tensors"][0]["training"] == "tokens");
  CHECK(planFromJson(toJson(plan), "p") == plan);
  CHECK_NOTHROW(verify(plan, "p"));
  json text = toJson(plan);
  for (const char *wrong : {"token", ""}) {
    text["tensors"][0]["training"] = wrong;
    CHECK_THAT(errorOf(ErrorKind::badInput, [&] { planFromJson(text, "p"); }),
               Catch::Contains("is none of tokens, labels, weights, lossGradient"));
  }
  const auto said = [&](size_t tensor, TrainingRole role) {
    Plan wrong = plan;
    wrong.tensors[tensor].training = role;
    return errorOf(ErrorKind::badInput, [&] { verify(wrong, "p"); });
  };
  CHECK_THAT(said(0, TrainingRole::loss),
             Catch::Contains("tensors[0] (x): training is 'loss', which a result alone has"));
  CHECK_THAT(said(2, TrainingRole::labels),
             Catch::Contains("tensors[2] (y): training is 'labels', which an argument alone has"));
  CHECK_THAT(said(0, TrainingRole::epsilon), Catch::Contains("which is one number of f32"));
}

TEST_CASE("layers of tensors and kernels are read back, and are none in plans from before") {
  Plan plan = exampleArtifact().plan;
  CHECK_FALSE(toJson(plan)["tensors"][0].contains("layer"));
  CHECK_FALSE(toJson(plan)["kernels"][0].contains("layer"));
  plan.tensors[0].layer = 3;
  plan.kernels[0].layer = 4;
  const json text = toJson(plan);
  CHECK(text["tensors"][0]["layer"] == 3);
  CHECK(text["kernels"][0]["layer"] == 4);
  CHECK(planFromJson(text, "p") == plan);
  CHECK_NOTHROW(verify(plan, "p"));
  plan.kernels[0].layer = -1;
  CHECK_THAT(errorOf(ErrorKind::badInput, [&] { verify(plan, "p"); }),
             Catch::Contains("layer is -1"));
  plan.kernels[0].layer = 0;
  plan.tensors[0].layer = -2;
  CHECK_THAT(errorOf(ErrorKind::badInput, [&] { verify(plan, "p"); }),
             Catch::Contains("tensors[0] (x): layer is -2"));
}

TEST_CASE("every member is checked for its type") {
  const json plan = toJson(exampleArtifact().plan);
  const json flat = plan.flatten();
  for (const auto &[place, value] : nonEmpty(flat.items())) {
    if (place.find("/knobs") != std::string::npos) continue;  // belongs to the family
    json broken = plan;
    broken[json::json_pointer(place)] = json{{"wrong", 1}};
    CHECK_THAT(errorOf(ErrorKind::badInput, [&] { planFromJson(broken, "p"); }),
               Catch::StartsWith("p: "));
  }
}

TEST_CASE("messages of the reader") {
  json plan = toJson(exampleArtifact().plan);
  SECTION("wrong type") {
    plan["kernels"][1]["grid"][2] = "many";
    CHECK(errorOf(ErrorKind::badInput, [&] { planFromJson(plan, "p"); }) ==
          "p: member \"kernels[1].grid[2]\" must be a 64-bit integer, not string (\"many\")");
  }
  SECTION("too large for the member") {
    plan["kernels"][0]["registers"] = int64_t(1) << 40;
    CHECK_THAT(errorOf(ErrorKind::badInput, [&] { planFromJson(plan, "p"); }),
               Catch::Contains("a 32-bit integer"));
  }
  SECTION("unknown member") {
    plan["tensors"][0]["colour"] = "red";
    CHECK_THAT(errorOf(ErrorKind::badInput, [&] { planFromJson(plan, "p"); }),
               Catch::Contains("tensors[0].colour"));
  }
  SECTION("another format") {
    plan["formatVersion"] = "2";
    plan.erase("model");
    CHECK_THAT(errorOf(ErrorKind::badInput, [&] { planFromJson(plan, "p"); }),
               Catch::Contains("formatVersion"));
  }
}

TEST_CASE(
    "the reader names a word that an enumeration lacks, where it stands, and the known ones") {
  json plan = toJson(exampleArtifact().plan);
  std::string expected;
  SECTION("kind of a parameter") {
    plan["kernels"][0]["parameters"][0]["kind"] = "seed";
    expected = "p: kernels[0].parameters[0]: kind \"seed\" is none of input, output, dropoutKey";
  }
  SECTION("dtype of a tensor") {
    plan["tensors"][2]["dtype"] = "f17";
    expected = "p: member \"tensors[2].dtype\" must be an element type, not string (\"f17\")";
  }
  SECTION("initial value of a tensor") {
    plan["tensors"][0]["initial"] = "normal(0)";
    expected = "p: member \"tensors[0].initial\" must be \"zeros\", \"ones\" or \"normal(D)\"";
  }
  SECTION("role of a tensor") {
    plan["tensors"][2]["role"] = "guest";
    expected = "p: tensors[2]: role \"guest\" is none of argument, parameter, result, temporary";
  }
  CHECK_THAT(errorOf(ErrorKind::badInput, [&] { planFromJson(plan, "p"); }),
             Catch::StartsWith(expected));
}

TEST_CASE("text that is no JSON is reported with its line") {
  CHECK_THAT(errorOf(ErrorKind::badInput, [] { parseJson("{\n \"a\": 1,\n oops\n}", "f.json"); }),
             Catch::StartsWith("f.json:3: "));
  CHECK_THAT(errorOf(ErrorKind::badInput, [] { parseJson("{\"a\": 1", "f.json"); }),
             Catch::StartsWith("f.json:1: "));
  CHECK_THAT(errorOf(ErrorKind::badInput, [] { parseJson("{\"a\": 1, \"a\": 2}", "f.json"); }),
             Catch::Contains("stands twice"));
  CHECK_THROWS_AS(prettyText(json(std::nan(""))), std::logic_error);
}

TEST_CASE("plans that contradict themselves") {
  Plan plan = exampleArtifact().plan;
  std::string expected;
  SECTION("no permutation") { plan.tensors[0].order = {1, 1}, expected = "tensors[0] (x): order"; }
  SECTION("lengths") { plan.tensors[2].strides = {1}, expected = "tensors[2] (y)"; }
  SECTION("no dtype of tensors") { plan.tensors[2].dtype = DType::tf32, expected = "tf32"; }
  SECTION("input out of range") {
    plan.kernels[0].inputs = {9}, expected = "kernels[0] (first): input 9";
  }
  SECTION("parameter of another kernel") {
    plan.kernels[0].parameters[0].tensor = 2, expected = "parameter x";
  }
  SECTION("waits for itself") { plan.kernels[1].after = {1}, expected = "waits for kernel 1"; }
  SECTION("read without waiting") {
    plan.kernels[1].after.clear(),
        expected = "(second): it shares buffer 1 with first, but does not wait";
  }
  SECTION("written while read") {
    plan.tensors.push_back(tensorOf("again", TensorRole::temporary, 1));
    plan.kernels.push_back(kernelOf("third", 2, 3));
    plan.kernels[2].after = {0};
    expected = "(third): it shares buffer";
  }
  SECTION("order") { std::swap(plan.kernels[0], plan.kernels[1]), expected = "waits for kernel 0"; }
  SECTION("read before written") {
    std::swap(plan.kernels[0], plan.kernels[1]);
    plan.kernels[0].after.clear();
    expected = "it reads t, which nothing before it writes";
  }
  SECTION("same name") { plan.kernels[1].name = "first", expected = "taken"; }
  SECTION("entry point order") {
    plan.entryPoints[EntryPointKind::forward] = {1, 0}, expected = "entryPoints.forward";
  }
  SECTION("entry point range") {
    plan.entryPoints[EntryPointKind::forward] = {0, 7}, expected = "7 is no kernel";
  }
  SECTION("entry point without a kernel of the plan") {
    plan.entryPoints[EntryPointKind::forward] = {0}, expected = "kernel 1 (second) belongs to none";
  }
  SECTION("kernel twice in an entry point") {
    plan.entryPoints[EntryPointKind::forward] = {0, 1, 1},
    expected = "kernel 1 does not stand after kernel 1";
  }
  SECTION("written twice") {
    plan.kernels[1].outputs = {1}, plan.kernels[1].parameters[1].tensor = 1,
    expected = "(second): it writes 't', which first writes";
  }
  SECTION("result that nothing writes") {
    plan.kernels.pop_back();
    plan.entryPoints[EntryPointKind::forward] = {0};
    expected = "tensors[2] (y): it is a result, which no kernel writes";
  }
  SECTION("address that is not passed") {
    plan.kernels[0].parameters.erase(plan.kernels[0].parameters.begin()),
        expected = "no parameter takes its input 'x'";
  }
  SECTION("offset before the buffer") {
    plan.tensors[0].offset = -256, expected = "tensors[0] (x): offset -256";
  }
  SECTION("offset that overflows") {
    plan.tensors[0].offset = std::numeric_limits<int64_t>::max() - 255,
    expected = "tensors[0] (x): from offset";
  }
  SECTION("extents that overflow") {
    plan.tensors[1].extents = {int64_t(1) << 32, int64_t(1) << 32},
    expected = "tensors[1] (t): strides";
  }
  SECTION("stride that overflows") {
    plan.tensors[1].strides = {1, std::numeric_limits<int64_t>::max()},
    expected = "tensors[1] (t): stride";
  }
  SECTION("negative stride") {
    plan.tensors[1].strides = {1, -8}, expected = "tensors[1] (t): stride -8 is negative";
  }
  SECTION("two elements in one place") {
    plan.tensors[1].strides = {1, 4}, expected = "put two of its elements in one place";
  }
  SECTION("buffer beyond all") {
    plan.tensors[1].buffer = std::numeric_limits<int>::max(),
    expected = "tensors[1] (t): nothing lies in buffer";
  }
  SECTION("placement that overflows") {
    plan.memoryPlan = {{.buffer = 1, .offset = std::numeric_limits<int64_t>::max() - 255}};
    expected = "memoryPlan[0]: offset 9223372036854775552 of buffer 1 lies beyond any memory";
  }
  SECTION("workspace of a tensor") {
    plan.kernels[1].workspaceBuffer = 1, expected = "(second): its workspaceBuffer 1 holds 't'";
  }
  SECTION("argument over argument") {
    plan.tensors.push_back(tensorOf("other", TensorRole::argument, 0));
    expected = "argument 'x' and argument 'other' share buffer 0";
  }
  SECTION("parameter over parameter") {
    plan.tensors.push_back(tensorOf("gamma", TensorRole::parameter, 3));
    plan.tensors.push_back(tensorOf("beta", TensorRole::parameter, 3));
    plan.tensors.back().offset = 511;
    expected = "tensors[4] (beta): parameters 'gamma' and 'beta' share memory of buffer 3";
  }
  SECTION("empty grid") { plan.kernels[1].grid[1] = 0, expected = "not positive"; }
  CHECK_THAT(errorOf(ErrorKind::badInput, [&] { verify(plan, "p"); }),
             Catch::StartsWith("p: ") && Catch::Contains(expected));
}

TEST_CASE("parameters are packed beside each other, also in turns") {
  Plan plan = exampleArtifact().plan;
  plan.tensors.push_back(tensorOf("gamma", TensorRole::parameter, 3));
  plan.tensors.push_back(tensorOf("beta", TensorRole::parameter, 3));
  SECTION("one after another") { plan.tensors[4].offset = 512; }
  SECTION("row after row") {
    plan.tensors[3].strides = plan.tensors[4].strides = {1, 16};
    plan.tensors[4].offset = 8;
  }
  SECTION("element after element") {
    plan.tensors[3].strides = plan.tensors[4].strides = {2, 16};
    plan.tensors[4].offset = 1;
  }
  CHECK_NOTHROW(verify(plan, "p"));
}

TEST_CASE("what emission derives must stand in a plan that runs") {
  Plan plan = exampleArtifact().plan;
  REQUIRE_NOTHROW(verifyDerived(plan, "p"));
  std::string expected;
  SECTION("bytes") { plan.tensors[0].bytes = 7, expected = "tensors[0] (x): 7 bytes"; }
  SECTION("order") {
    plan.tensors[1].order = {0, 1},
    expected = "tensors[1] (t): strides [1, 8] are not in the order [0, 1]";
  }
  SECTION("workspace") {
    plan.workspaceBytes = 512,
    expected = "workspaceBytes: 512 bytes, but its temporaries take 1024";
  }
  SECTION("view") {
    plan.kernels[0].source.clear(),
        expected = "kernels[0] (first): it has neither source nor library GEMM";
  }
  SECTION("family") {
    plan.kernels[0].knobs = {ViewKnobs{}}, expected = "kernels[0] (first): its family is loop";
  }
  REQUIRE_NOTHROW(verify(plan, "p"));
  CHECK_THAT(errorOf(ErrorKind::badInput, [&] { verifyDerived(plan, "p"); }),
             Catch::StartsWith("p: ") && Catch::Contains(expected));
}

TEST_CASE("waiting through others is waiting") {
  Plan plan = exampleArtifact().plan;
  plan.tensors.push_back(tensorOf("again", TensorRole::temporary, 1));
  plan.kernels.push_back(
      kernelOf("third", 2, 3));  // writes where "second" has read and "first" had written
  plan.kernels[2].after = {1};
  plan.entryPoints[EntryPointKind::forward].push_back(2);
  CHECK_NOTHROW(verify(plan, "p"));
}

TEST_CASE("a view of a written buffer may be read") {
  Plan plan = exampleArtifact().plan;
  plan.tensors.push_back(tensorOf("view of t", TensorRole::temporary, 1));
  plan.kernels[1].inputs = {3};
  plan.kernels[1].parameters[0].tensor = 3;
  CHECK_NOTHROW(verify(plan, "p"));
}

TEST_CASE("folders that are no artifact are rejected") {
  const TemporaryTestFolder folder;
  CHECK_THAT(errorOf(ErrorKind::badInput, [&] { readArtifact(folder / "none"); }),
             Catch::Contains("no artifact"));
  writeFile(folder / "thesis.tex", "years of work");
  CHECK_THAT(errorOf(ErrorKind::badInput, [&] { writeArtifact(exampleArtifact(), folder.path()); }),
             Catch::Contains("not overwritten"));
  CHECK_THAT(errorOf(ErrorKind::badInput,
                     [&] { writeArtifact(exampleArtifact(), folder / "thesis.tex"); }),
             Catch::Contains("no folder"));
  CHECK(readFile(folder / "thesis.tex") == "years of work");
  CHECK(namesIn(folder.path()) == std::vector<std::string>{"thesis.tex"});
}

TEST_CASE("folders that cannot be written") {
  const TemporaryTestFolder folder;
  writeFile(folder / "file", "");
  CHECK_THAT(
      errorOf(ErrorKind::badInput, [&] { writeArtifact(exampleArtifact(), folder / "file/out"); }),
      Catch::Contains("cannot write") && Catch::Contains("file/out"));
  CHECK_THAT(
      errorOf(ErrorKind::badInput, [&] { writeArtifact(exampleArtifact(), "/proc/weft-out"); }),
      Catch::Contains("/proc/weft-out"));
  CHECK(namesIn(folder.path()) == std::vector<std::string>{"file"});
}

TEST_CASE("an empty folder is filled, an artifact is replaced without remains") {
  const TemporaryTestFolder folder;
  fs::create_directory(folder / "out");
  writeArtifact(exampleArtifact(), folder / "out");
  Artifact next = exampleArtifact();
  next.plan.model = "next";
  next.plan.kernels = {kernelOf("first", 0, 2)};
  next.plan.kernels[0].cubin = cubinName("binary");
  next.plan.entryPoints[EntryPointKind::forward] = {0};
  next.sources.erase("kernels/second.cu");
  writeArtifact(next, (folder / "out").string() + "/");
  CHECK(readArtifact(folder / "out").plan == next.plan);
  CHECK_FALSE(fs::exists(folder / "out/kernels/second.cu"));
  CHECK(namesIn(folder.path()) == std::vector<std::string>{"out"});
}

TEST_CASE("an artifact that could not be read back is not written") {
  const TemporaryTestFolder folder;
  writeArtifact(exampleArtifact(), folder / "out");
  const auto before = contentOf(folder / "out");
  Artifact broken = exampleArtifact();
  SECTION("missing source") { broken.sources.erase("kernels/first.cu"); }
  SECTION("missing cubin") { broken.cubins.clear(); }
  SECTION("misnamed cubin") { broken.cubins.begin()->second = "other"; }
  SECTION("source elsewhere") { broken.sources["../elsewhere.cu"] = ""; }
  SECTION("contradiction") { broken.plan.tensors[0].order = {0, 0}; }
  errorOf(ErrorKind::checkFailed, [&] { writeArtifact(broken, folder / "out"); });
  CHECK(contentOf(folder / "out") == before);
  CHECK(namesIn(folder.path()) == std::vector<std::string>{"out"});
}

TEST_CASE("a broken artifact is rejected, naming the file") {
  const TemporaryTestFolder folder;
  writeArtifact(exampleArtifact(), folder / "out");
  std::string file;
  SECTION("plan cut off") {
    file = "plan.json";
    writeFile(folder / "out/plan.json", readFile(folder / "out/plan.json").substr(0, 500));
  }
  SECTION("cubin changed") { writeFile(folder / "out" / (file = cubinName("binary")), "tampered"); }
  SECTION("cubin missing") { fs::remove(folder / "out" / (file = cubinName("binary"))); }
  SECTION("source missing") { fs::remove(folder / "out" / (file = "kernels/second.cu")); }
  SECTION("graph missing") { fs::remove(folder / "out" / (file = "graph.mlir")); }
  SECTION("report missing") { fs::remove(folder / "out" / (file = "report.json")); }
  SECTION("a name that leads out") {
    file = "../../secret";
    json plan = toJson(exampleArtifact().plan);
    plan["kernels"][0]["source"] = file;
    writeFile(folder / "out/plan.json", prettyText(plan));
  }
  CHECK_THAT(errorOf(ErrorKind::badInput, [&] { readArtifact(folder / "out"); }),
             Catch::Contains(file));
}

TEST_CASE("who only looks at an artifact needs no cubins; who runs it is told how to get them") {
  const TemporaryTestFolder folder;
  writeArtifact(exampleArtifact(), folder / "out");
  fs::remove_all(folder / "out/cubin");
  const Artifact read = readArtifact(folder / "out", Cubins::left);
  CHECK(read.plan == exampleArtifact().plan);
  CHECK(read.sources == exampleArtifact().sources);
  CHECK(read.cubins.empty());
  CHECK_THAT(errorOf(ErrorKind::badInput, [&] { readArtifact(folder / "out"); }),
             Catch::Contains("'weft emit " + (folder / "out").string() + "' builds it again"));
}

TEST_CASE("hand edits of a kernel are read") {
  const TemporaryTestFolder folder;
  writeArtifact(exampleArtifact(), folder / "out");
  writeFile(folder / "out/kernels/first.cu", "// edited\n");
  CHECK(readArtifact(folder / "out").sources.at("kernels/first.cu") == "// edited\n");
}

TEST_CASE("a killed writer leaves the old artifact, and its remains go with the next write") {
  const TemporaryTestFolder folder;
  writeArtifact(exampleArtifact(), folder / "out");
  Artifact large = exampleArtifact();
  large.plan.model = "large";
  large.graph.assign(size_t(64) << 20, ' ');  // long enough to be killed in the middle
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    while (true) writeArtifact(large, folder / "out");
  }
  while (namesIn(folder.path()).size() < 2) usleep(100);
  CHECK(kill(child, SIGKILL) == 0);
  waitpid(child, nullptr, 0);
  const std::string model = readArtifact(folder / "out").plan.model;
  CHECK((model == "example" || model == "large"));
  writeArtifact(exampleArtifact(), folder / "out");
  CHECK(namesIn(folder.path()) == std::vector<std::string>{"out"});
  CHECK(readArtifact(folder / "out").plan == exampleArtifact().plan);
}

TEST_CASE("a writer does not touch the temporary folder of one that lives") {
  const TemporaryTestFolder folder;
  const TemporaryFolder other(folder / "out");
  writeFile(other.path() / "plan.json", "half");
  writeArtifact(exampleArtifact(), folder / "out");
  CHECK(readFile(other.path() / "plan.json") == "half");
}

TEST_CASE("an artifact that was moved away when its writer died comes back") {
  const TemporaryTestFolder folder;
  writeArtifact(exampleArtifact(), folder / "out");
  fs::rename(folder / "out", folder / ".out.weft-old-abcdef");
  removeLeftovers(folder / "out");
  CHECK(readArtifact(folder / "out").plan == exampleArtifact().plan);
}

TEST_CASE("two writers of one folder: one of the two artifacts stands") {
  const TemporaryTestFolder folder;
  std::vector<pid_t> children;
  for (const char *name : {"one", "two"}) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      Artifact artifact = exampleArtifact();
      artifact.plan.model = name;
      for (int i = 0; i < 20; ++i) writeArtifact(artifact, folder / "out");
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  const std::string model = readArtifact(folder / "out").plan.model;
  CHECK((model == "one" || model == "two"));
  CHECK(namesIn(folder.path()) == std::vector<std::string>{"out"});
}
