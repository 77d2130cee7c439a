// Initial values and files of a training run; see TrainingState.h.
#include "runtime/train/TrainingState.h"

#include "kernel/Error.h"
#include "kernel/RandomValues.h"
#include "kernel/reference/Rounding.h"
#include "kernel/reference/StoredElement.h"
#include "plan/TensorLayout.h"
#include "runtime/execute/Safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace weft::runtime {

namespace {

bool isFloat(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

std::vector<std::byte> bytesOf(std::span<const float> values, DType dtype) {
  const auto size = size_t(sizeOf(dtype));
  std::vector<std::byte> bytes(values.size() * size);
  for (size_t index = 0; index < values.size(); ++index)
    reference::storeElement(dtype, bytes.data() + index * size,
                            reference::roundTo(dtype, double(values[index])));
  return bytes;
}

/// The name that its values are drawn by: of a master its parameter's.
const std::string &drawnName(const PlanTensor &tensor) {
  return tensor.masterOf.empty() ? tensor.logical : tensor.masterOf;
}

std::vector<std::byte> initialElements(const PlanTensor &tensor, uint64_t seed) {
  if (!tensor.initial)
    throw Error::badInput(
        "plan.json: tensor '{}' has no member \"initial\", so that training cannot start from it; "
        "mark the graph's argument weft.initial = {} and compile again (models of this weft have "
        "it), or start from a state with --state",
        tensor.name, initialValueForms);
  std::vector<float> values(size_t(logicalBytes(tensor) / sizeOf(tensor.dtype)));
  if (tensor.initial->kind == InitialValue::Kind::ones) std::ranges::fill(values, 1.0f);
  if (tensor.initial->kind != InitialValue::Kind::normal) return bytesOf(values, tensor.dtype);
  const RandomValues random(seed, drawnName(tensor));
  for (size_t index = 0; index < values.size(); ++index)
    values[index] = float(random.real(int64_t(index), tensor.initial->deviation));
  return bytesOf(values, tensor.dtype);
}

PlanTensor words(const std::string &name, int64_t count) {
  return {.name = name,
          .logical = name,
          .dtype = DType::i32,
          .axes = {"word"},
          .extents = {count},
          .order = {0},
          .strides = {1}};
}

std::vector<std::byte> wordsOf(uint64_t value) {
  const std::array<uint32_t, 2> parts{uint32_t(value), uint32_t(value >> 32)};
  const auto bytes = std::as_bytes(std::span(parts));
  return {bytes.begin(), bytes.end()};
}

struct Counter {
  const char *name;
  uint64_t value;
};
/// What a state holds beside tensors, and older files may lack; none of a plan that does not check
/// its gradients.
std::vector<Counter> countersOf(const Plan &plan, const TrainingState &state) {
  if (trainingTensor(plan, TrainingRole::gradientCheck) < 0) return {};
  return {{"skipped", uint64_t(state.skipped)},
          {"loss_scale", std::bit_cast<uint64_t>(state.lossScale)},
          {"taken_at_scale", uint64_t(state.takenAtScale)}};
}

uint64_t fromWords(const std::vector<std::byte> &bytes) {
  std::array<uint32_t, 2> parts{};
  std::memcpy(parts.data(), bytes.data(), sizeof parts);
  return parts[0] | uint64_t(parts[1]) << 32;
}

}  // namespace

int trainingTensor(const Plan &plan, TrainingRole role) {
  const auto found = std::ranges::find(plan.tensors, role, &PlanTensor::training);
  return found == plan.tensors.end() ? -1 : int(found - plan.tensors.begin());
}

std::vector<CarriedTensor> carriedTensors(const Plan &plan) {
  std::vector<CarriedTensor> carried;
  for (size_t index = 0; index < plan.tensors.size(); ++index) {
    const PlanTensor &argument = plan.tensors[index];
    if (argument.role != TensorRole::argument) continue;
    const auto found = std::ranges::find(plan.tensors, argument.logical, &PlanTensor::nextOf);
    if (found == plan.tensors.end()) continue;
    const PlanTensor &next = *found;
    if (!isFloat(argument.dtype) || next.dtype != argument.dtype ||
        next.extents != argument.extents || next.strides != argument.strides)
      throw Error::badInput(
          "'{}' and '{}' differ in type, extents or layout: the next step could not read what this "
          "one wrote",
          argument.name, next.name);
    carried.push_back({.argument = int(index), .result = int(found - plan.tensors.begin())});
  }
  if (carried.empty())
    throw Error::badInput(
        "the plan of {} has no optimizer: no result has the member \"nextOf\"; compile with "
        "--train "
        "--optimizer adamw to train (again, if an older weft compiled it)",
        plan.model);
  return carried;
}

TrainingState initialState(const Plan &plan, uint64_t seed) {
  TrainingState state{.seed = seed};
  for (const CarriedTensor &carried : carriedTensors(plan)) {
    const PlanTensor &tensor = plan.tensors[size_t(carried.argument)];
    state.tensors[tensor.logical] = initialElements(tensor, seed);
  }
  return state;
}

TrainingState readState(const Plan &plan, const std::filesystem::path &path) {
  const SafetensorsFile file(path);
  std::vector<const PlanTensor *> expected;
  std::vector<PlanTensor> counts = {words("step", 2), words("seed", 2)};
  const std::vector<Counter> counters = countersOf(plan, {});
  const bool hasCounters = std::ranges::any_of(
      counters, [&](const Counter &counter) { return file.entries().contains(counter.name); });
  for (const Counter &counter : counters)
    if (hasCounters) counts.push_back(words(counter.name, 2));
  for (const CarriedTensor &carried : carriedTensors(plan))
    expected.push_back(&plan.tensors[size_t(carried.argument)]);
  for (const PlanTensor &count : counts) expected.push_back(&count);
  file.requireExactly(expected);
  TrainingState state{.step = int64_t(fromWords(file.read("step"))),
                      .seed = fromWords(file.read("seed"))};
  if (hasCounters) {
    state.skipped = int64_t(fromWords(file.read("skipped")));
    state.lossScale = std::bit_cast<double>(fromWords(file.read("loss_scale")));
    state.takenAtScale = int64_t(fromWords(file.read("taken_at_scale")));
    if (!(state.lossScale >= 0 && std::isfinite(state.lossScale)) || state.skipped < 0 ||
        state.skipped > state.step || state.takenAtScale < 0)
      throw Error::badInput(
          "{}: loss scale {}, {} of {} steps skipped, {} taken at this scale: no state of training",
          path.string(), state.lossScale, state.skipped, state.step, state.takenAtScale);
  }
  for (const CarriedTensor &carried : carriedTensors(plan)) {
    const std::string &name = plan.tensors[size_t(carried.argument)].logical;
    state.tensors[name] = file.read(name);
  }
  return state;
}

void writeState(const Plan &plan, const TrainingState &state, const std::filesystem::path &path) {
  std::vector<TensorToWrite> tensors;
  for (const CarriedTensor &carried : carriedTensors(plan)) {
    const PlanTensor &tensor = plan.tensors[size_t(carried.argument)];
    tensors.push_back({.name = tensor.logical,
                       .dtype = tensor.dtype,
                       .shape = tensor.extents,
                       .elements = state.tensors.at(tensor.logical)});
  }
  tensors.push_back({.name = "step",
                     .dtype = DType::i32,
                     .shape = {2},
                     .elements = wordsOf(uint64_t(state.step))});
  tensors.push_back(
      {.name = "seed", .dtype = DType::i32, .shape = {2}, .elements = wordsOf(state.seed)});
  for (const Counter &counter : countersOf(plan, state))
    tensors.push_back({.name = counter.name,
                       .dtype = DType::i32,
                       .shape = {2},
                       .elements = wordsOf(counter.value)});
  std::filesystem::path whole = path;
  whole.replace_filename("." + path.filename().string() + ".weft-tmp");
  writeSafetensors(whole, tensors);  // on the disk when it returns
  std::error_code problem;
  std::filesystem::rename(whole, path, problem);
  if (problem) throw Error::badInput("cannot write {}: {}", path.string(), problem.message());
}

}  // namespace weft::runtime
