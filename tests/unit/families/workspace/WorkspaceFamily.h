// A kernel family that only tests have: relu that works in a workspace. Every thread writes its
// element there as fp32, once a round, each round to another place, and stores what the last place
// holds. It shows what a family with a workspace needs (Family::workspaceBytes), and that plans,
// artifacts and whoever launches kernels take its memory from there.
#pragma once

#include "codegen/EntryName.h"
#include "codegen/Names.h"
#include "codegen/Program.h"
#include "kernel/Family.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Family.h"

namespace weft::test {

struct WorkspaceKnobs {
  int rounds = 1;
  static const Family &family();
  auto operator<=>(const WorkspaceKnobs &) const = default;
};

namespace workspace {

constexpr int threads = 128;

inline std::string describe(const Kernel &, const Knobs &knobs) {
  return fmt::format("relu through a workspace in {} rounds", knobs.get<WorkspaceKnobs>().rounds);
}

inline Expected<ConfigurationSpace, Reason> space(const Kernel &kernel, const Device &) {
  if (kernel.body.size() != 1 || kernel.body[0].kind != OpKind::relu || kernel.axes.size() != 2)
    return rejected("the body is not one relu of a matrix");
  ConfigurationSpace space{.family = &WorkspaceKnobs::family(),
                           .knobs = {WorkspaceKnobs{}, WorkspaceKnobs{2}}};
  for (const Layout &layout : distinctLayouts(extentsOf(kernel, kernel.inputs[0])))
    space.tuples.push_back({layout, layout});
  return space;
}

/// Cheaper than whatever moves the elements; one round is the cheapest.
inline Cost price(const Kernel &kernel, const Configuration &configuration, const Device &) {
  return {.seconds = 1e-9 * configuration.knobs.get<WorkspaceKnobs>().rounds,
          .bytesMoved = kernel.necessaryBytes()};
}

inline int64_t workspaceBytes(const Kernel &kernel, const Configuration &configuration) {
  return kernel.elements(kernel.inputs[0]) * int64_t(sizeof(float)) *
         configuration.knobs.get<WorkspaceKnobs>().rounds;
}

inline codegen::Program lower(const Kernel &kernel, const Configuration &configuration) {
  using namespace codegen;
  const int rounds = configuration.knobs.get<WorkspaceKnobs>().rounds;
  const int64_t elements = kernel.elements(kernel.inputs[0]);
  Names names;
  Program program{.entry = names.reserve(entryName(kernel)),
                  .headers = {"weft/workspace_relu.cuh"}};
  const auto parameter = [&](std::string_view wanted, Parameter::Kind kind, DType type) {
    const std::string name = names.reserve(std::string(wanted));
    program.parameters.push_back({kind, 0, name, std::string(cudaNameOf(type))});
    return Code::name(name);
  };
  const auto tensor = [&](ValueId value, Parameter::Kind kind) {
    const Value &one = kernel.values[size_t(value)];
    return parameter(one.name, kind, one.dtype);
  };
  const Code from = tensor(kernel.inputs[0], Parameter::Kind::input),
             to = tensor(kernel.outputs[0], Parameter::Kind::output),
             places = parameter("places", Parameter::Kind::workspace, DType::f32),
             at = Code::name(names.reserve("at"));
  program.body = {
      declareConstant("int", at, code("blockIdx.x * {} + threadIdx.x", threads)),
      evaluate(code("weft::reluThrough<{}>({}, {}, {}, {}, {})", rounds, to, from, places, at,
                    elements)),
  };
  program.launchBounds = Code::plain(std::to_string(threads));
  program.launch = {.grid = {(elements + threads - 1) / threads, 1, 1}, .block = {threads, 1, 1}};
  program.mapping = workspace::describe(kernel, configuration.knobs);
  return program;
}

inline const ScheduleField fields[] = {scheduleField<&WorkspaceKnobs::rounds>(
    {.name = "rounds", .rowName = "rounds", .meaning = "places that an element is written to"})};

}  // namespace workspace

inline const Family workspaceFamily = {
    .name = "dummy-workspace",
    .schedule = workspace::fields,
    .defaults = defaultKnobs<WorkspaceKnobs>,
    .compare = compareKnobs<WorkspaceKnobs>,
    .describe = workspace::describe,
    .space = workspace::space,
    .price = workspace::price,
    .lower = workspace::lower,
    .workspaceBytes = workspace::workspaceBytes,
};
inline const Family &WorkspaceKnobs::family() { return workspaceFamily; }

}  // namespace weft::test
