// A small artifact whose plan satisfies every rule: two kernels in a row, with sources and a
// stand-in for a cubin.
#pragma once

#include "codegen/families/loop/LoopKnobs.h"
#include "runtime/artifact/Artifact.h"

#include <string>

namespace weft::test {

inline PlanTensor tensorOf(const std::string &name, TensorRole role, int buffer) {
  return {.name = name,
          .logical = name,
          .dtype = DType::f16,
          .axes = {"b", "i"},
          .extents = {8, 64},
          .order = {1, 0},
          .strides = {1, 8},
          .role = role,
          .buffer = buffer,
          .offset = 0,
          .bytes = 1024};
}

inline PlanKernel kernelOf(const std::string &name, int input, int output) {
  PlanKernel kernel;
  kernel.name = kernel.entry = name;
  kernel.family = loopFamily;
  kernel.ops = {{.kind = OpKind::relu, .results = {"2"}, .operands = {"1"}}};
  kernel.inputs = {input};
  kernel.outputs = {output};
  kernel.inputLayouts = kernel.outputLayouts = {{{"i", "b"}}};
  kernel.knobs = {LoopKnobs{.vectorWidth = 8}};
  kernel.source = "kernels/" + name + ".cu";
  kernel.parameters = {{.kind = ParameterKind::input,
                        .name = "x",
                        .type = elementsOf(DType::f16),
                        .tensor = input,
                        .value = 0},
                       {.kind = ParameterKind::output,
                        .name = "y",
                        .type = elementsOf(DType::f16),
                        .tensor = output,
                        .value = 0}};
  kernel.seconds = 1.0 / 3;
  return kernel;
}

inline runtime::Artifact exampleArtifact() {
  runtime::Artifact artifact;
  Plan &plan = artifact.plan;
  plan.model = "example";
  plan.dims = {{"b", 8}, {"i", 64}};
  plan.tensors = {tensorOf("x", TensorRole::argument, 0), tensorOf("t", TensorRole::temporary, 1),
                  tensorOf("y", TensorRole::result, 2)};
  plan.tensors[0].initial = InitialValue::normal(0.5);
  plan.kernels = {kernelOf("first", 0, 1), kernelOf("second", 1, 2)};
  plan.kernels[1].after = {0};
  plan.kernels[1].bytesMoved = int64_t(3) << 40;  // more than 32 bits
  plan.entryPoints = {{EntryPointKind::forward, {0, 1}}};
  plan.workspaceBytes = 1024;
  artifact.graph = "module {}\n";
  artifact.cubins[runtime::cubinName("binary")] = "binary";
  for (PlanKernel &kernel : plan.kernels) {
    kernel.cubin = runtime::cubinName("binary");
    artifact.sources[kernel.source] = "// " + kernel.name + "\n";
  }
  artifact.report = {{"records", nlohmann::json::array()}};
  return artifact;
}

}  // namespace weft::test
