// See TimedKernels.h.
#include "bench/contractions/TimedKernels.h"

#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"
#include "codegen/families/library/LibraryEpilogue.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "kernel/Device.h"
#include "kernel/Error.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Families.h"
#include "runtime/cuda/TensorMaps.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace weft::bench {

using namespace runtime;

/// A part of a kernel as a separate one: ops [first, end), values that they read from outside as
/// inputs.
Kernel partOf(const Kernel &whole, size_t first, size_t end, const std::vector<ValueId> &outputs) {
  Kernel part{
      .name = whole.name, .axes = {}, .values = {}, .inputs = {}, .outputs = {}, .body = {}};
  std::map<AxisId, AxisId> axes;
  std::map<ValueId, ValueId> values;
  const auto axisOf = [&](AxisId axis) {
    const auto [found, isNew] = axes.try_emplace(axis, int(part.axes.size()));
    if (isNew) part.axes.push_back(whole.axes[size_t(axis)]);
    return found->second;
  };
  const auto add = [&](ValueId value) {
    values[value] = int(part.values.size());
    part.values.push_back(whole.values[size_t(value)]);
    for (AxisId &axis : part.values.back().axes) axis = axisOf(axis);
    return values[value];
  };
  std::vector<ValueId> made;
  for (size_t op = first; op < end; ++op)
    made.insert(made.end(), whole.body[op].results.begin(), whole.body[op].results.end());
  for (size_t op = first; op < end; ++op)
    for (const ValueId operand : whole.body[op].operands)
      if (!values.contains(operand) && std::ranges::find(made, operand) == made.end())
        part.inputs.push_back(add(operand));
  for (size_t op = first; op < end; ++op) {
    BodyOp copy = whole.body[op];
    for (ValueId &operand : copy.operands) operand = values.at(operand);
    for (ValueId &result : copy.results) result = add(result);
    for (AxisId &axis : copy.reducedAxes) axis = axisOf(axis);
    part.body.push_back(std::move(copy));
  }
  for (const ValueId output : outputs) part.outputs.push_back(values.at(output));
  verify(part);
  return part;
}

namespace {

LayoutConstraints rowMajorLayouts(const Kernel &kernel) {
  LayoutConstraints constraints;
  for (const ValueId value : kernel.inputs)
    constraints.inputs.push_back(rowMajor(kernel.values[size_t(value)].axes.size()));
  for (const ValueId value : kernel.outputs)
    constraints.outputs.push_back(rowMajor(kernel.values[size_t(value)].axes.size()));
  return constraints;
}

}  // namespace

namespace {

std::vector<TimedKernel> fastestPriced(const Kernel &kernel,
                                       std::vector<std::pair<double, Configuration>> priced,
                                       size_t most) {
  std::ranges::sort(priced);
  std::vector<TimedKernel> contenders;
  for (size_t i = 0; i < std::min(most, priced.size()); ++i)
    contenders.push_back({.kernel = kernel,
                          .configuration = priced[i].second,
                          .emitted = codegen::emit(kernel, priced[i].second, "sm_90a")});
  return contenders;
}

}  // namespace

std::vector<TimedKernel> contendersOf(const Kernel &kernel, const Family &family, size_t most) {
  const std::unique_ptr<CostModel> model = analyticCostModel(findDevice("h200"));
  std::vector<std::pair<double, Configuration>> priced;
  const Device &offering = family == sm80GemmFamily ? findDevice("a100") : model->device();
  forEachConfiguration(kernel, offering, rowMajorLayouts(kernel), [&](const Configuration &one) {
    if (one.knobs.family() == family) priced.emplace_back(model->cost(kernel, one).seconds, one);
    return true;
  });
  return fastestPriced(kernel, std::move(priced), most);
}

std::vector<TimedKernel> contendersOf(const Kernel &kernel, const std::vector<Configuration> &all,
                                      size_t most) {
  const std::unique_ptr<CostModel> model = analyticCostModel(findDevice("h200"));
  std::vector<std::pair<double, Configuration>> priced;
  for (const Configuration &one : all) priced.emplace_back(model->cost(kernel, one).seconds, one);
  return fastestPriced(kernel, std::move(priced), most);
}

void build(const std::vector<TimedKernel *> &contenders) {
  std::vector<BuildRequest> requests;
  for (const TimedKernel *one : contenders)
    requests.push_back({.name = one->kernel.name,
                        .text = one->emitted.text,
                        .entry = one->emitted.entry,
                        .architecture = "sm_90a",
                        .extraFlags = {}});
  BuildOptions options;
  options.headers = codegen::deviceHeaders();
  std::vector<BuildResult> results = runtime::build(requests, options);
  for (size_t i = 0; i < contenders.size(); ++i) contenders[i]->built = std::move(results[i]);
}

const TimedKernel &fastest(const std::vector<TimedKernel> &side) {
  return *std::ranges::min_element(side, {}, &TimedKernel::seconds);
}

Tensors::Tensors(const Kernel &kernel, int sets) : count(sets), key(16) {
  add(kernel);
  cuda::fill(key.address(), 0, 16);
}

void Tensors::add(const Kernel &kernel) {
  std::vector<uint16_t> elements;
  for (const Value &value : kernel.values) {
    if (buffers.contains(value.name)) continue;
    int64_t extent = 1;
    for (const AxisId axis : value.axes) extent *= kernel.axes[size_t(axis)].extent;
    elements.resize(size_t(extent * sizeOf(value.dtype) + 1) / 2);  // of other widths: any numbers
    uint32_t state = uint32_t(buffers.size()) + 1;
    for (uint16_t &element : elements)
      state = state * 1664525u + 1013904223u,
      element = uint16_t((value.dtype == DType::f16 ? 0x3700 : 0x3e80) + (state >> 24) +
                         (state >> 8 & 0x8000));
    for (int set = 0; set < count; ++set)
      cuda::upload(buffers[value.name].emplace_back(int64_t(2 * elements.size())).address(),
                   std::as_bytes(std::span(elements)));
  }
}

Enqueue Tensors::enqueueOf(const TimedKernel &one, bool startsEarly) {
  if (!one.built.error.empty())
    throw Error::checkFailed("{}: {}", one.kernel.name, one.built.error);
  cuda::FunctionHandle *function =
      modules.emplace_back(one.built.cubin).function(one.emitted.entry);
  if (one.emitted.launch.sharedBytes > 48 << 10)
    cuda::allowSharedMemory(function, one.emitted.launch.sharedBytes);
  const auto ownWorkspace = std::make_shared<cuda::Buffer>(one.emitted.launch.workspaceBytes);
  return [this, &one, function, startsEarly, ownWorkspace](cuda::StreamHandle *stream, int set) {
    cuda::ArgumentList arguments;
    for (const codegen::Parameter &parameter : one.emitted.parameters) {
      using enum codegen::Parameter::Kind;
      if (parameter.kind == dropoutKey || parameter.kind == status)
        arguments.passPointer(key.address());
      else if (parameter.kind == workspace) arguments.passPointer(ownWorkspace->address());
      else if (parameter.kind == dropoutStream || parameter.kind == dropoutOuter)
        arguments.passNumber(numberOf(parameter, one.kernel));
      else {
        const bool isInput = parameter.kind == input || parameter.kind == inputMap;
        const ValueId value =
            (isInput ? one.kernel.inputs : one.kernel.outputs)[size_t(parameter.index)];
        const cuda::DevicePointer address = at(one.kernel.values[size_t(value)].name, set);
        if (parameter.map) arguments.passMap(*parameter.map, address);
        else arguments.passPointer(address);
      }
    }
    const codegen::Launch &launch = one.emitted.launch;
    cuda::launch(function,
                 {.grid = launch.grid,
                  .block = launch.block,
                  .sharedBytes = launch.sharedBytes,
                  .startsEarly = launch.startsEarly && startsEarly},
                 arguments.span(), stream);
  };
}

void interleave(std::vector<Row> &rows, int rounds, const cuda::Stream &stream, int sets) {
  constexpr int leastCalls = 15;
  std::deque<TimedGraph> graphs;
  for (const Row &row : rows)
    graphs.emplace_back(stream, row.enqueue, sets, std::max(leastCalls, sets));
  std::vector<std::vector<double>> samples(rows.size());
  for (int round = 0; round <= rounds; ++round)
    for (size_t i = 0; i < rows.size(); ++i)
      if (const double seconds = graphs[i].time(); round > 0) samples[i].push_back(seconds);
  for (size_t i = 0; i < rows.size(); ++i) *rows[i].seconds = median(samples[i]);
}

LibraryRows::LibraryRows(const LibraryGemm &gemm, const CublasLt &library, const Tensors &tensors,
                         std::array<const Value *, 6> values, cuda::DevicePointer workspace)
    : candidates(library.candidates(gemm)), seconds(candidates.size(), INFINITY) {
  for (const LibraryKnobs &candidate : candidates)
    prepared.push_back(library.prepare(gemm, candidate, "candidate"));
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!prepared[i].warning().empty()) continue;
    rows.push_back(
        {&seconds[i], [this, i, &tensors, values, workspace](cuda::StreamHandle *on, int set) {
           const auto at = [&](const Value *value) {
             return value ? tensors.at(value->name, set) : cuda::DevicePointer(0);
           };
           prepared[i].enqueue({.a = at(values[0]),
                                .b = at(values[1]),
                                .result = at(values[2]),
                                .residual = at(values[3]),
                                .auxiliary = at(values[4]),
                                .vector = at(values[5])},
                               workspace, on);
         }});
  }
}

namespace {

/// With the GELU that the library has: an approximation.
Kernel asLibraryHas(Kernel kernel) {
  for (BodyOp &op : kernel.body)
    if (op.kind == OpKind::gelu) op.kind = OpKind::geluTanh;
    else if (op.kind == OpKind::geluDx) op.kind = OpKind::geluTanhDx;
  return kernel;
}

}  // namespace

std::unique_ptr<LibraryRows> libraryEpilogueRows(const Kernel &kernel, Configuration configuration,
                                                 const CublasLt &library, const Tensors &tensors,
                                                 cuda::DevicePointer workspace) {
  const auto form = libraryForm(asLibraryHas(kernel));
  if (!form) return nullptr;
  configuration.knobs = LibraryKnobs{};
  const Expected<LibraryGemm, Reason> answer =
      asLibraryGemm(asLibraryHas(kernel), *form, configuration);
  if (!answer) return nullptr;
  const auto value = [&](int number) {
    return number < 0 ? nullptr : &kernel.values[size_t(number)];
  };
  const BodyOp &contraction = kernel.body[0];
  return std::make_unique<LibraryRows>(
      *answer, library, tensors,
      std::array{value(contraction.operands[0]), value(contraction.operands[1]),
                 value(form->result), value(form->residual), value(form->auxiliary),
                 value(form->bias >= 0 ? form->bias : form->gradient)},
      workspace);
}

double LibraryRows::fastest() const {
  return seconds.empty() ? INFINITY : *std::ranges::min_element(seconds);
}

}  // namespace weft::bench
