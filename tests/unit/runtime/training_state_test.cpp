// What a training run starts from and keeps in its file.
#include "kernel/Error.h"
#include "kernel/RandomValues.h"
#include "kernel/reference/Rounding.h"
#include "kernel/reference/StoredElement.h"
#include "runtime/system/Files.h"
#include "runtime/train/TrainingState.h"
#include "tests/support/NonEmpty.h"

#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cstring>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::runtime;

namespace {

PlanTensor tensor(const std::string &name, TensorRole role, std::vector<int64_t> extents) {
  PlanTensor result{.name = name,
                    .logical = name,
                    .dtype = DType::f32,
                    .axes = {},
                    .extents = extents,
                    .order = {},
                    .strides = {},
                    .role = role};
  int64_t stride = 1;
  for (size_t d = extents.size(); d-- > 0; stride *= extents[d])
    result.strides.insert(result.strides.begin(), stride);
  for (size_t d = 0; d < extents.size(); ++d) {
    result.axes.push_back(std::string(1, char('i' + d)));
    result.order.push_back(int(d));
  }
  result.bytes = 4 * stride;
  return result;
}

/// Four parameters that start as their kinds say, with their averages. No name says which result is
/// whose next value.
Plan plan(const std::array<std::string, 4> &names = {"layer1_wq", "layer1_bq", "gamma0", "beta0"}) {
  constexpr std::array initial = {InitialValue::normal(0.02), InitialValue::zeros(),
                                  InitialValue::ones(), InitialValue::zeros()};
  Plan result{.model = "toy"};
  for (size_t n = 0; n < names.size(); ++n)
    for (const std::string suffix : {"", "_mean", "_square"}) {
      result.tensors.push_back(tensor(names[n] + suffix, TensorRole::argument, {3, 4}));
      result.tensors.back().initial = suffix.empty() ? initial[n] : InitialValue::zeros();
      result.tensors.push_back(tensor("after " + names[n] + suffix, TensorRole::result, {3, 4}));
      result.tensors.back().nextOf = names[n] + suffix;
    }
  result.tensors.push_back(tensor("weights", TensorRole::argument, {2}));
  return result;
}

/// A parameter of the type, its master, which is called "exact", and its averages.
Plan mixedPlan(DType dtype) {
  Plan result{.model = "toy"};
  for (const std::string suffix : {"", "_master", "_mean", "_square"}) {
    const std::string name = suffix == "_master" ? "exact" : "wq" + suffix;
    PlanTensor argument = tensor(name, TensorRole::argument, {3, 4});
    if (suffix.empty()) argument.dtype = dtype, argument.bytes = 2 * 12;
    if (suffix.empty() || suffix == "_master") argument.initial = InitialValue::normal(0.02);
    else argument.initial = InitialValue::zeros();
    PlanTensor next = argument;
    next.role = TensorRole::result;
    next.name = next.logical = "after " + name;
    next.nextOf = name;
    if (suffix == "_master") argument.masterOf = "wq";
    result.tensors.push_back(std::move(argument));
    result.tensors.push_back(std::move(next));
  }
  return result;
}

std::vector<float> valuesOf(const TrainingState &state, const std::string &name) {
  const std::vector<std::byte> &bytes = state.tensors.at(name);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / "weft_training_state_test";
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("arguments and their next values are found, and must agree") {
  CHECK(carriedTensors(plan()).size() == 12);
  Plan turned = plan();
  turned.tensors[1].strides = {1, 3};
  CHECK_THROWS_WITH(carriedTensors(turned),
                    Catch::Contains("'layer1_wq' and 'after layer1_wq' differ"));
  CHECK_THROWS_WITH(carriedTensors(Plan{.model = "toy"}), Catch::Contains("--optimizer adamw"));
}

TEST_CASE("no suffix makes a tensor another's next value or master") {
  Plan named = mixedPlan(DType::f16);
  for (PlanTensor &tensor : named.tensors) {
    if (tensor.role == TensorRole::result) tensor.name = tensor.logical = tensor.nextOf + "_next";
    tensor.nextOf.clear(), tensor.masterOf.clear();
    if (tensor.logical == "exact") tensor.name = tensor.logical = "wq_master";
  }
  CHECK_THROWS_WITH(carriedTensors(named), Catch::Contains("no result has the member \"nextOf\""));
  for (PlanTensor &tensor : named.tensors)
    if (tensor.logical == "exact_next") tensor.nextOf = "wq_master";
  const std::vector<float> values = valuesOf(initialState(named, 5), "wq_master");
  REQUIRE(values.size() == 12);
  CHECK(values[0] == float(RandomValues(5, "wq_master").real(0, 0.02)));
}

TEST_CASE("initial values are those that the plan says") {
  const TrainingState state = initialState(plan(), 5);
  for (const std::string name : {"layer1_bq", "beta0", "layer1_wq_mean", "gamma0_square"})
    for (const float value : nonEmpty(valuesOf(state, name))) CHECK(value == 0);
  for (const float value : nonEmpty(valuesOf(state, "gamma0"))) CHECK(value == 1);
  float magnitude = 0;
  for (const float value : valuesOf(state, "layer1_wq")) magnitude += std::abs(value);
  CHECK(magnitude / 12 > 0.005f);
  CHECK(magnitude / 12 < 0.04f);
  CHECK(initialState(plan(), 6).tensors.at("layer1_wq") != state.tensors.at("layer1_wq"));
}

TEST_CASE("drawn values are a function of seed, name and element, to the bit") {
  const std::vector<float> values = valuesOf(initialState(plan(), 5), "layer1_wq");
  const RandomValues random(5, "layer1_wq");
  int64_t index = 0;
  for (const float value : nonEmpty(values))
    CHECK(std::bit_cast<uint32_t>(value) ==
          std::bit_cast<uint32_t>(float(random.real(index++, 0.02))));
  CHECK(index == 12);
}

TEST_CASE("a parameter of two bytes starts as the rounding of its master, drawn by its name") {
  const DType dtype = GENERATE(DType::f16, DType::bf16);
  const TrainingState state = initialState(mixedPlan(dtype), 5);
  CHECK(state.tensors.size() == 4);
  const std::vector<float> masters = valuesOf(state, "exact");
  const std::vector<std::byte> &halves = state.tensors.at("wq");
  REQUIRE(masters.size() == 12);
  REQUIRE(halves.size() == 24);
  const RandomValues random(5, "wq");
  for (size_t n = 0; n < masters.size(); ++n) {
    CHECK(masters[n] == float(random.real(int64_t(n), 0.02)));
    CHECK(reference::loadElement(dtype, &halves[2 * n]) ==
          reference::roundTo(dtype, double(masters[n])));
  }
}

TEST_CASE("a state file holds parameters of two bytes as they are") {
  const Folder folder;
  const Plan plan = mixedPlan(DType::bf16);
  const TrainingState state = initialState(plan, 3);
  writeState(plan, state, folder.path / "state");
  CHECK(readState(plan, folder.path / "state").tensors == state.tensors);
  CHECK_THROWS_WITH(readState(mixedPlan(DType::f16), folder.path / "state"), Catch::Contains("wq"));
}

TEST_CASE("a state of a plan that checks gradients holds what was skipped; an older one may not") {
  const Folder folder;
  Plan checked = mixedPlan(DType::f16);
  checked.tensors.push_back(tensor("sum", TensorRole::result, {}));
  checked.tensors.back().training = TrainingRole::gradientCheck;
  TrainingState state = initialState(checked, 3);
  writeState(mixedPlan(DType::f16), state, folder.path / "older");
  CHECK(readState(checked, folder.path / "older").lossScale == 0);
  state.step = 9, state.skipped = 2, state.lossScale = 0.125, state.takenAtScale = 4;
  writeState(checked, state, folder.path / "state");
  const TrainingState again = readState(checked, folder.path / "state");
  CHECK(again.skipped == 2);
  CHECK(again.lossScale == 0.125);
  CHECK(again.takenAtScale == 4);
  state.skipped = 10;
  writeState(checked, state, folder.path / "state");
  CHECK_THROWS_WITH(readState(checked, folder.path / "state"), Catch::Contains("10 of 9 steps"));
}

TEST_CASE("no name decides what a parameter starts from") {
  const TrainingState state = initialState(plan({"b1", "weight", "layer1_bq", "gamma"}), 5);
  for (const float value : nonEmpty(valuesOf(state, "b1"))) CHECK(value != 0);
  for (const float value : nonEmpty(valuesOf(state, "weight"))) CHECK(value == 0);
  for (const float value : nonEmpty(valuesOf(state, "layer1_bq"))) CHECK(value == 1);
  for (const float value : nonEmpty(valuesOf(state, "gamma"))) CHECK(value == 0);
}

TEST_CASE("a plan that does not say what a parameter starts from is rejected by the name") {
  Plan older = plan();
  for (PlanTensor &tensor : older.tensors)
    if (tensor.logical == "layer1_bq") tensor.initial.reset();
  CHECK_THROWS_WITH(initialState(older, 5),
                    Catch::Contains("tensor 'layer1_bq' has no member \"initial\"") &&
                        Catch::Contains("weft.initial") && Catch::Contains("compile again"));
}

TEST_CASE("a state file holds every tensor, the step and the seed") {
  const Folder folder;
  TrainingState state = initialState(plan(), (uint64_t(1) << 40) + 3);
  state.step = (int64_t(1) << 33) + 7;
  writeState(plan(), state, folder.path / "state");
  const TrainingState again = readState(plan(), folder.path / "state");
  CHECK(again.step == state.step);
  CHECK(again.seed == state.seed);
  CHECK(again.tensors == state.tensors);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) ==
        1);  // nothing temporary is left
}

TEST_CASE("a state that cannot be written leaves the one before") {
  const Folder folder;
  const TrainingState state = initialState(plan(), 3);
  writeState(plan(), state, folder.path / "state");
  std::filesystem::create_directory(folder.path /
                                    ".state.weft-tmp");  // where the new one would be written
  TrainingState later = state;
  later.step = 9;
  CHECK_THROWS_AS(writeState(plan(), later, folder.path / "state"), Error);
  CHECK(readState(plan(), folder.path / "state").step == 0);
}

TEST_CASE("a file of another model is rejected") {
  const Folder folder;
  writeState(plan(), initialState(plan(), 3), folder.path / "state");
  Plan other = plan();
  other.tensors[0].extents = other.tensors[1].extents = {4, 3};
  other.tensors[0].strides = other.tensors[1].strides = {3, 1};
  CHECK_THROWS_WITH(readState(other, folder.path / "state"), Catch::Contains("layer1_wq"));
  writeFile(folder.path / "cut", readFile(folder.path / "state").substr(0, 200));
  CHECK_THROWS_AS(readState(plan(), folder.path / "cut"), Error);
}
