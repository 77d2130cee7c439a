// A kernel family that only tests have: dense copies, in one folder that is laid out as those of
// codegen/families. It shows what a family needs, and that nothing else has to know of it:
// configurations, price and lowering here, its device header (device), its recorded text (golden),
// and its tests (tests): of its space, on the CPU, by NVRTC and on a GPU.
#pragma once

#include "codegen/EntryName.h"
#include "codegen/Names.h"
#include "codegen/Program.h"
#include "kernel/Family.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Family.h"

namespace weft::test {

struct DummyKnobs {
  int threads = 128;
  static const Family &family();
  auto operator<=>(const DummyKnobs &) const = default;
};

namespace dummy {

inline std::string describe(const Kernel &, const Knobs &knobs) {
  return fmt::format("dense copy by {} threads a block", knobs.get<DummyKnobs>().threads);
}

inline Expected<ConfigurationSpace, Reason> space(const Kernel &kernel, const Device &) {
  if (kernel.body.size() != 1 || kernel.body[0].kind != OpKind::identity)
    return rejected("the body is not one copy");
  ConfigurationSpace space{.family = &DummyKnobs::family(),
                           .knobs = {DummyKnobs{}, DummyKnobs{256}}};
  for (const Layout &layout : distinctLayouts(extentsOf(kernel, kernel.inputs[0])))
    space.tuples.push_back({layout, layout});
  return space;
}

/// Cheaper than whatever moves the elements.
inline Cost price(const Kernel &kernel, const Configuration &, const Device &) {
  return {.seconds = 1e-9, .bytesMoved = kernel.necessaryBytes()};
}

inline codegen::Program lower(const Kernel &kernel, const Configuration &configuration) {
  using namespace codegen;
  const int threads = configuration.knobs.get<DummyKnobs>().threads;
  const int64_t elements = kernel.elements(kernel.inputs[0]);
  Names names;
  Program program{.entry = names.reserve(entryName(kernel)), .headers = {"weft/dummy_copy.cuh"}};
  const auto tensor = [&](ValueId value, Parameter::Kind kind) {
    const std::string name = names.reserve(kernel.values[size_t(value)].name);
    program.parameters.push_back(
        {kind, 0, name, std::string(cudaNameOf(kernel.values[size_t(value)].dtype))});
    return Code::name(name);
  };
  const Code from = tensor(kernel.inputs[0], Parameter::Kind::input),
             to = tensor(kernel.outputs[0], Parameter::Kind::output),
             at = Code::name(names.reserve("at"));
  program.body = {
      declareConstant("int", at, code("blockIdx.x * {} + threadIdx.x", threads)),
      evaluate(code("weft::copyElement({}, {}, {}, {})", to, from, at, elements)),
  };
  program.launchBounds = Code::plain(std::to_string(threads));
  program.launch = {.grid = {(elements + threads - 1) / threads, 1, 1}, .block = {threads, 1, 1}};
  program.mapping = dummy::describe(kernel, configuration.knobs);
  return program;
}

inline const ScheduleField fields[] = {scheduleField<&DummyKnobs::threads>(
    {.name = "threads", .rowName = "threads", .meaning = "threads of a block", .least = 32})};

}  // namespace dummy

inline const Family dummyFamily = {
    .name = "dummy",
    .schedule = dummy::fields,
    .defaults = defaultKnobs<DummyKnobs>,
    .compare = compareKnobs<DummyKnobs>,
    .describe = dummy::describe,
    .space = dummy::space,
    .price = dummy::price,
    .lower = dummy::lower,
};
inline const Family &DummyKnobs::family() { return dummyFamily; }

}  // namespace weft::test
