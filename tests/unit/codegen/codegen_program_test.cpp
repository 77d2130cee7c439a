// Kernel programs: what pruning drops, and how statements are spelled in both printed forms.
#include <catch2/catch.hpp>

#include "codegen/ConstantChecks.h"
#include "codegen/Program.h"

#include <sstream>

using namespace weft::codegen;

namespace {

Program sample() {
  Program program{.entry = "sample", .headers = {"weft/vector.cuh"}};
  program.constants = {
      {"int", {{"i", 64}, {"unused", 3}}, "extents"},
      {"int", {{"width", 8}, {"twice", ConstantValue(2) * ConstantValue::name("i")}}, ""}};
  program.parameters = {{Parameter::Kind::input, 0, "x", "weft::half"},
                        {Parameter::Kind::output, 0, "y", "float"}};
  program.launchBounds = "twice";
  program.launch = {.grid = {3, 1, 1}, .block = {128, 1, 1}};
  Statement load{.kind = Statement::Kind::load,
                 .name = "x_v",
                 .pointer = "x + at",
                 .access = Access::packed,
                 .width = "width"};
  Statement unusedLoad = load;
  unusedLoad.name = "other_v";
  Statement store{.kind = Statement::Kind::store,
                  .value = "x_v",
                  .pointer = "y + at",
                  .access = Access::packed,
                  .width = "width"};
  program.body = {declareConstant("int", "at", "threadIdx.x * width", "(i)"),
                  declareConstant("int", "idle", "at + 1"), unusedLoad, load, store};
  return program;
}

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("launch checks name constants by their subject, whatever notes and members are called") {
  using Kind = ConstantSubject::Kind;
  const ConstantValue i = ConstantValue::name("i");
  // A floating-point number is no integer expression, though "1e-05" might be read as one.
  const ConstantValue tile = ConstantValue::members({{"m", 64}}),
                      shape = ConstantValue::members(
                          {{"m", i}, {"scale", ConstantValue::text("1e-05f")}});
  Program program;
  program.constants = {{"int", {{"i", 64}}, "stride of x along i", {Kind::extents}},
                       {"int", {{"x_i", ConstantValue(2) * i}}, "extents", {Kind::strides, "x"}},
                       {"int", {{"width", 8}}, "strides of y"},
                       {"Tile", {{"tile", tile}}, "", {Kind::unchecked}},
                       {"Shape", {{"shape", shape}}, "", {Kind::strides, "the result"}}};
  addConstantChecks(program);
  std::vector<std::string> checks;
  for (const Statement &statement : program.body)
    checks.push_back(statement.note + ": " + checkText(statement));
  CHECK(checks == std::vector<std::string>{"these extents: i == 64", "strides of x: x_i == 128",
                                           "these knobs: width == 8",
                                           "strides of the result: shape.m == 64"});
}

TEST_CASE("a constant prints as C++ and is worth what C++ makes of that") {
  const ConstantValue a = ConstantValue::name("a"), b = ConstantValue::name("b");
  const std::map<std::string, int64_t, std::less<>> known = {{"a", 7}, {"b", 2}};
  const auto is = [&](const ConstantValue &value, const std::string &text, int64_t number) {
    CHECK(value.str() == text);
    CHECK(value.evaluate(known) == number);
  };
  is((a + b - 1) / b, "(a + b - 1) / b", (7 + 2 - 1) / 2);
  is(a - (b - 1), "a - (b - 1)", 6);
  is(a * b / 3, "a * b / 3", 4);
  is(a / (b * 3), "a / (b * 3)", 1);
  is(b * (a / b), "b * (a / b)", 6);
  is(ConstantValue::group(a / b) * b, "(a / b) * b", 6);
  is(ConstantValue::offset(a) * b, "weft::Offset(a) * b", 14);
  is(ConstantValue::product({}), "1", 1);
  is(ConstantValue::truth(false), "false", 0);
  CHECK_FALSE((a / 0).evaluate(known));
  CHECK_FALSE((a * ConstantValue::name("c")).evaluate(known));
  CHECK_FALSE(ConstantValue::text("5").evaluate(known));
  const ConstantValue list = ConstantValue::members({{"m", a, true},
                                                     {"at", ConstantValue::items({b, 3})},
                                                     {"isWide", ConstantValue::truth(true), true}});
  CHECK(list.str() == "{\n    .m = a, .at = {b, 3},\n    .isWide = true}");
  CHECK(list.code().names().contains("a"));
  CHECK(list.code().names().contains("b"));
  CHECK_FALSE(list.code().names().contains("m"));  // a member keeps no constant of its name
}

TEST_CASE("pruning drops constants, declarations and loads that nothing uses") {
  Program program = sample();
  pruneUnused(program);
  const std::string text = printCuda(program);
  CHECK_FALSE(contains(text, "unused"));
  CHECK_FALSE(contains(text, "idle"));
  CHECK_FALSE(contains(text, "other_v"));
  CHECK(contains(text, "i = 64"));  // through twice, which the launch bounds use
  CHECK(contains(text, "twice = 2 * i"));
}

TEST_CASE("pruning knows a constant by its flag and not by its type") {
  Program program = sample();
  program.body = {declare("const float *", "cursor", "x"), declareConstant("float *", "fixed", "y"),
                  declareConstant("int", "read", "3"), evaluate(code("++{}", Code::name("read")))};
  pruneUnused(program);
  const std::string text = printCuda(program);
  CHECK(contains(text, "const float * cursor = x;"));  // a variable that leads to constants
  CHECK_FALSE(contains(text, "fixed"));
  CHECK(contains(text, "const int read = 3;"));
  CHECK(contains(print(program), "let read : const int = 3\n"));
}

TEST_CASE("a workspace is a pointer that the kernel writes through") {
  Program program = sample();
  program.parameters.push_back({Parameter::Kind::workspace, 0, "places", "float"});
  program.launch.workspaceBytes = 4096;
  CHECK(contains(printCuda(program), "float *__restrict__ y, float *__restrict__ places) {"));
  CHECK(contains(print(program), "  workspace 4096 bytes\n"));
  CHECK_FALSE(contains(print(sample()), "workspace"));
}

TEST_CASE("a member that is called like a constant does not keep it") {
  Program program = sample();
  const Code at = Code::name("at"), vector = Code::name("x_v");
  const auto body = [&](const Code &value) {
    return Block{declareConstant("int", at, "threadIdx.x"), declare("float", vector, "{}"),
                 evaluate(value)};
  };
  program.body = body(code("{}.at(0)", vector));
  pruneUnused(program);
  CHECK(program.body.size() == 2);
  program.body = body(code("{}.at({})", vector, at));
  pruneUnused(program);
  CHECK(program.body.size() == 3);
}

TEST_CASE("a launch check loses the terms whose constants are gone") {
  Program program = sample();
  const Code i = Code::name("i"), unused = Code::name("unused");
  program.body.insert(program.body.begin(),
                      launchCheckOf({code("{} == 64", i), code("{} == 3", unused)}, "extents"));
  pruneUnused(program);
  REQUIRE(program.body[0].kind == Statement::Kind::launchCheck);
  CHECK(checkText(program.body[0]) == "i == 64");
}

TEST_CASE("pruning follows chains inside loops") {
  Program program = sample();
  program.body = {
      declareConstant("int", "a", "1"), declareConstant("int", "b", "a"),
      loop("s", "i", 0,
           {declareConstant("int", "c", "b"), evaluate("weft::storeOne(y + s, 0.0f)")})};
  pruneUnused(program);
  REQUIRE(program.body.size() == 1);
  CHECK(program.body[0].body.size() == 1);
}

TEST_CASE("CUDA text of a program") {
  Program program = sample();
  pruneUnused(program);
  const std::string text = printCuda(program);
  CHECK(contains(text,
                 "extern \"C\" __global__ void __launch_bounds__(twice)\nsample(const weft::half "
                 "*__restrict__ x, float *__restrict__ y) {"));
  CHECK(contains(text, "  const auto x_v = weft::loadVector<width>(x + at);\n"));
  CHECK(contains(text, "  weft::storeVector<width>(y + at, x_v);\n"));
}

TEST_CASE("accesses and reductions are spelled by kind") {
  Program program{.entry = "k"};
  program.body = {{.kind = Statement::Kind::load,
                   .name = "a",
                   .value = "0.0f",
                   .pointer = "x",
                   .access = Access::single,
                   .condition = "e < 3"},
                  {.kind = Statement::Kind::load,
                   .name = "b",
                   .pointer = "x",
                   .access = Access::strided,
                   .width = "4",
                   .stride = "i",
                   .count = "valid"},
                  {.kind = Statement::Kind::reduce,
                   .name = "m",
                   .value = "m",
                   .declares = false,
                   .reduction = Reduction::maximum,
                   .across = Across::block,
                   .threads = "128",
                   .scratch = "scratch[0]"},
                  {.kind = Statement::Kind::barrier},
                  leave("row >= 5")};
  const std::string text = printCuda(program);
  CHECK(contains(text, "const auto a = e < 3 ? weft::loadOne(x) : 0.0f;"));
  CHECK(contains(text, "const auto b = weft::loadStrided<4>(x, i, valid);"));
  CHECK(contains(text, "  m = weft::blockMax<128>(m, scratch[0]);"));
  CHECK(contains(text, "weft::ptx::barrier();"));
  CHECK(contains(text, "if (row >= 5) return;"));
}

TEST_CASE("the readable form of a program names parameters and launch") {
  const std::string text = print(sample());
  CHECK(contains(text, "program sample\n"));
  CHECK(contains(text, "launch <<<(3, 1, 1), (128, 1, 1), 0>>>"));
  CHECK(contains(text, "parameter x : weft::half"));
  CHECK(contains(text, "load x_v <- width packed at x + at"));
}

TEST_CASE("notes of a program stay comments of one line, whatever they hold") {
  const std::string hostile = "x\nint evil; \\";
  Program program = sample();
  program.constants[0].note = program.body[0].note = hostile;
  program.body.push_back(comment(hostile));
  std::istringstream lines(printCuda(program));
  int notes = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find("evil");
    if (at == std::string::npos) continue;
    ++notes;
    CHECK(line.find("//") < at);
    CHECK_FALSE(line.ends_with('\\'));
  }
  CHECK(notes == 3);
}
