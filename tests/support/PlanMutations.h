// Plans broken by hand, one member at a time: what a reader of artifacts must reject, and what its
// message names. For tests of the checks, and for whoever feeds broken artifacts to the commands.
//
// A mutation changes plan.json and nothing else. Every member of plan.json has a mutation, or is
// one of `toldMembers`: texts and figures that no kernel's work depends on, and members of the
// launch, which are held to the kernels' texts elsewhere.
#pragma once

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace weft::test {

struct PlanMutation {
  std::string member;  ///< "tensors.buffer"
  std::string name;
  /// Breaks the plan and returns what the rejection must name; empty: there is nothing in this plan
  /// to break.
  std::function<std::string(nlohmann::json &plan)> apply;
};

inline const std::set<std::string> toldMembers = {"tensors.chunkOf",
                                                  "kernels.chunk.whole",
                                                  "model",
                                                  "variant",
                                                  "rewrites",
                                                  "costModel",
                                                  "prices",
                                                  "predictedSeconds",
                                                  "lowerBoundSeconds",
                                                  "measurement",
                                                  "concurrent",
                                                  "notes.text",
                                                  "notes.code",
                                                  "device",
                                                  "target",
                                                  "kernels.entry",
                                                  "kernels.label",
                                                  "kernels.familyVersion",
                                                  "kernels.source",
                                                  "kernels.cubin",
                                                  "kernels.grid",
                                                  "kernels.block",
                                                  "kernels.sharedBytes",
                                                  "kernels.startsEarly",
                                                  "kernels.seconds",
                                                  "kernels.margin",
                                                  "kernels.measured",
                                                  "kernels.bytesMoved",
                                                  "kernels.bytesNecessary",
                                                  "kernels.flop",
                                                  "kernels.mue",
                                                  "kernels.bound",
                                                  "kernels.registers",
                                                  "kernels.spillBytes",
                                                  "kernels.staticSharedBytes",
                                                  "kernels.runnerUp",
                                                  "kernels.runnerUpLoss",
                                                  "kernels.textHash"};

namespace mutations {

using nlohmann::json;

inline constexpr int64_t farOut =
    std::numeric_limits<int64_t>::max() - 255;  // 2^63 - 256: with any size behind it, it overflows

inline bool isAlike(const json &a, const json &b) {
  return a["extents"] == b["extents"] && a["dtype"] == b["dtype"] && a["axes"] == b["axes"];
}

/// The first pair of tensors of a role that could be taken for each other; {} if there is none.
inline std::vector<size_t> pairOf(const json &plan, const std::string &role) {
  const json &tensors = plan["tensors"];
  for (size_t a = 0; a < tensors.size(); ++a)
    for (size_t b = a + 1; b < tensors.size(); ++b)
      if (tensors[a]["role"] == role && tensors[b]["role"] == role &&
          isAlike(tensors[a], tensors[b]) && tensors[a]["logical"] != tensors[b]["logical"])
        return {a, b};
  return {};
}

inline auto hasRole(const char *role) {
  return [role](const json &tensor) { return tensor["role"] == role; };
}

/// The first tensor for which a predicate holds; the number of tensors if there is none.
template <typename Predicate>
size_t tensorWhere(const json &plan, Predicate &&holds) {
  size_t index = 0;
  while (index < plan["tensors"].size() && !holds(plan["tensors"][index])) ++index;
  return index;
}

inline std::function<std::string(json &)> onTensor(std::function<bool(const json &)> which,
                                                   std::function<void(json &)> change) {
  return [which, change](json &plan) -> std::string {
    const size_t index = tensorWhere(plan, which);
    if (index == plan["tensors"].size()) return "";
    const std::string name = plan["tensors"][index]["name"];
    change(plan["tensors"][index]);
    return name;
  };
}

/// The change may reject a kernel by returning false.
inline std::function<std::string(json &)> onKernel(
    std::function<bool(json &kernel, json &plan)> change) {
  return [change](json &plan) -> std::string {
    for (json &kernel : plan["kernels"]) {
      const std::string name = kernel["name"];
      if (change(kernel, plan)) return name;
    }
    return "";
  };
}

inline bool always(const json &) { return true; }
inline bool isMatrix(const json &tensor) {
  return tensor["extents"].size() >= 2 &&
         std::ranges::none_of(tensor["extents"], [](const json &extent) { return extent == 1; });
}

/// Reads another tensor wherever the kernel names it, as someone would who edits with care.
inline void replaceTensor(json &kernel, const char *list, size_t position, int by) {
  const int old = kernel[list][position];
  kernel[list][position] = by;
  for (json &parameter : kernel["parameters"])
    if (parameter["tensor"] == old) parameter["tensor"] = by;
  if (!kernel["library"].is_object()) return;
  for (const char *member : {"a", "b", "c"})
    if (kernel["library"][member] == old) kernel["library"][member] = by;
  if (kernel["library"]["epilogue"].is_object())
    for (const char *member : {"residual", "auxiliary", "bias", "gradient"})
      if (kernel["library"]["epilogue"][member] == old) kernel["library"]["epilogue"][member] = by;
}

/// Two operands of one kernel exchanged that could be taken for each other: gamma and beta.
inline bool swapInputs(json &kernel, json &plan) {
  json &inputs = kernel["inputs"];
  for (size_t a = 0; a < inputs.size(); ++a)
    for (size_t b = a + 1; b < inputs.size(); ++b) {
      const int one = inputs[a], other = inputs[b];
      if (one == other || !isAlike(plan["tensors"][size_t(one)], plan["tensors"][size_t(other)]))
        continue;
      constexpr int neither = 1 << 30;
      replaceTensor(kernel, "inputs", a, neither);
      replaceTensor(kernel, "inputs", b, one);
      replaceTensor(kernel, "inputs", a, other);
      return true;
    }
  return false;
}

/// An operand that is read from another tensor of its shape, which is there by then: a residual
/// that reads what it should be added to.
inline bool readAnother(json &kernel, json &plan) {
  std::set<int> written;
  for (const json &earlier : plan["kernels"]) {
    if (earlier["name"] == kernel["name"]) break;
    for (const json &output : earlier["outputs"]) written.insert(output.get<int>());
  }
  for (size_t position = 0; position < kernel["inputs"].size(); ++position)
    for (const int other : written) {
      const json &read = plan["tensors"][kernel["inputs"][position].get<size_t>()],
                 &tensor = plan["tensors"][size_t(other)];
      if (!isAlike(read, tensor) || read["logical"] == tensor["logical"] ||
          std::ranges::count(kernel["inputs"], json(other)) > 0)
        continue;
      replaceTensor(kernel, "inputs", position, other);
      return true;
    }
  return false;
}

}  // namespace mutations

inline std::vector<PlanMutation> planMutations() {
  using namespace mutations;
  std::vector<PlanMutation> all;
  const auto isRole = [](const char *role) {
    return [role](const json &tensor) { return tensor["role"] == role; };
  };
  const auto swapMember = [](const char *role, const char *member) {
    return [role, member](json &plan) -> std::string {
      const std::vector<size_t> pair = pairOf(plan, role);
      if (pair.empty()) return "";
      std::swap(plan["tensors"][pair[0]][member], plan["tensors"][pair[1]][member]);
      return plan["tensors"][pair[0]]["name"];
    };
  };
  const auto onPlan = [](const char *names, std::function<void(json &)> change) {
    return [names = std::string(names), change](json &plan) {
      change(plan);
      return names;
    };
  };
  const auto onChunk = [](std::function<void(json & chunk)> change) {
    return [change](json &plan) -> std::string {
      for (json &kernel : plan["kernels"])
        if (kernel["chunk"].is_object()) {
          change(kernel["chunk"]);
          return "chunk";
        }
      return "";
    };
  };
  const auto onAllocation = [](std::function<void(json & allocation)> change) {
    return [change](json &plan) -> std::string {
      if (plan["memoryPlan"].empty()) return "";
      change(plan["memoryPlan"].back());
      return "memoryPlan[";
    };
  };
  const auto onMap = [](std::function<void(json & map)> change) {
    return onKernel([change](json &kernel, json &) {
      for (json &parameter : kernel["parameters"])
        if (parameter["map"].is_object()) {
          change(parameter["map"]);
          return true;
        }
      return false;
    });
  };
  const auto onWorkspace = [](std::function<void(json & kernel)> change) {
    return onKernel([change](json &kernel, json &) {
      const bool works = kernel.contains("workspaceBytes");
      if (works) change(kernel);
      return works;
    });
  };
  const auto onLibrary = [](std::function<bool(json & library)> change) {
    return onKernel([change](json &kernel, json &) {
      return kernel["library"].is_object() && change(kernel["library"]);
    });
  };
  const auto onEpilogue = [onLibrary](std::function<bool(json & epilogue)> change) {
    return onLibrary([change](json &library) {
      return library["epilogue"].is_object() && change(library["epilogue"]);
    });
  };
  const auto hasText = [](const json &kernel) { return kernel["source"] != ""; };
  for (const char *member : {"residual", "auxiliary", "bias", "gradient"})
    all.push_back({std::string("kernels.library.epilogue.") + member, "another",
                   onEpilogue([member](json &epilogue) {
                     epilogue[member] =
                         epilogue[member] == -1 ? 0 : epilogue[member].get<int>() + 1;
                     return true;
                   })});
  for (const char *member : {"residualStrides", "auxiliaryStrides"})
    for (const char *group : {"batch", "m", "n"})
      all.push_back({fmt::format("kernels.library.epilogue.{}.{}", member, group), "another",
                     onEpilogue([member, group](json &epilogue) {
                       epilogue[member][group] = epilogue[member][group].get<int64_t>() + 7;
                       return true;
                     })});
  const std::vector<PlanMutation> others = {
      {"formatVersion", "another format",
       onPlan("formatVersion", [](json &plan) { plan["formatVersion"] = "0"; })},
      {"dims", "another extent", onPlan("dims", [](json &plan) { plan["dims"]["b"] = 1000003; })},
      {"dtype", "another element type",
       onPlan("dtype", [](json &plan) { plan["dtype"] = plan["dtype"] == "f16" ? "f32" : "f16"; })},
      {"workspaceBytes", "negative",
       onPlan("workspaceBytes", [](json &plan) { plan["workspaceBytes"] = -1; })},
      {"workspaceBytes", "too few",
       onPlan("workspaceBytes", [](json &plan) {
         plan["workspaceBytes"] = plan["workspaceBytes"].get<int64_t>() - 256;
       })},

      {"tensors.name", "taken", [](json &plan) {
         plan["tensors"][1]["name"] = plan["tensors"][0]["name"];
         return plan["tensors"][0]["name"].get<std::string>();
       }},
      {"tensors.name", "of another",
       onTensor(always, [](json &tensor) { tensor["name"] = "another"; })},
      {"tensors.logical", "parameters exchanged", swapMember("parameter", "logical")},
      {"tensors.logical", "results exchanged", swapMember("result", "logical")},
      {"tensors.logical", "results exchanged with their names",
       [](json &plan) -> std::string {
         const std::vector<size_t> pair = pairOf(plan, "result");
         if (pair.empty()) return "";
         for (const char *member : {"name", "logical"})
           std::swap(plan["tensors"][pair[0]][member], plan["tensors"][pair[1]][member]);
         return plan["tensors"][pair[0]]["name"];
       }},
      {"tensors.logical", "a parameter that there is not",
       onTensor(isRole("parameter"), [](json &tensor) { tensor["logical"] = "omega"; })},
      {"tensors.dtype", "another",
       onTensor(isRole("argument"), [](json &tensor) {
         tensor["dtype"] = tensor["dtype"] == "f32" ? "i32" : "f32";
       })},
      {"tensors.dtype", "unknown", onTensor(always, [](json &tensor) { tensor["dtype"] = "f17"; })},
      {"tensors.axes", "renamed", onTensor(always, [](json &tensor) { tensor["axes"][0] = "zz"; })},
      {"tensors.extents", "more",
       onTensor(isRole("argument"), [](json &tensor) {
         tensor["extents"][0] = tensor["extents"][0].get<int64_t>() + 1;
       })},
      {"tensors.extents", "none", onTensor(always, [](json &tensor) { tensor["extents"][0] = 0; })},
      {"tensors.extents", "overflow",
       onTensor(isMatrix, [](json &tensor) {
         tensor["extents"] = json::array_t(tensor["extents"].size(), int64_t(1) << 62);
       })},
      {"tensors.order", "no permutation",
       onTensor(isMatrix, [](json &tensor) { tensor["order"][0] = tensor["order"][1]; })},
      {"tensors.order", "edited, not emitted", [](json &plan) {
         json &tensor = plan["tensors"][tensorWhere(plan, isMatrix)];
         std::swap(tensor["order"][0], tensor["order"][1]);
         return std::string("edited after it was emitted");
       }},
      {"tensors.strides", "negative",
       onTensor(isMatrix, [](json &tensor) {
         tensor["strides"][0] = -tensor["strides"][0].get<int64_t>();
       })},
      {"tensors.strides", "one place for two elements",
       onTensor(isMatrix, [](json &tensor) { tensor["strides"][0] = tensor["strides"][1]; })},
      {"tensors.strides", "overflow",
       onTensor(isMatrix, [](json &tensor) { tensor["strides"][0] = farOut; })},
      {"tensors.role", "a parameter as argument",
       onTensor(isRole("parameter"), [](json &tensor) { tensor["role"] = "argument"; })},
      {"tensors.role", "a result as temporary",
       onTensor(isRole("result"), [](json &tensor) { tensor["role"] = "temporary"; })},
      {"tensors.role", "a temporary as result",
       onTensor(isRole("temporary"), [](json &tensor) { tensor["role"] = "result"; })},
      {"tensors.buffer", "none", onTensor(always, [](json &tensor) { tensor["buffer"] = -1; })},
      {"tensors.buffer", "far beyond all",
       onTensor(always, [](json &tensor) { tensor["buffer"] = std::numeric_limits<int>::max(); })},
      {"tensors.buffer", "two parameters in one", [](json &plan) -> std::string {
         const std::vector<size_t> pair = pairOf(plan, "parameter");
         if (pair.empty()) return "";
         for (const char *member : {"buffer", "offset"})
            plan["tensors"][pair[1]][member] = plan["tensors"][pair[0]][member];
         return plan["tensors"][pair[1]]["name"];
       }},
      {"tensors.buffer", "an argument over a parameter", [](json &plan) -> std::string {
         const size_t argument = tensorWhere(plan, hasRole("argument"));
         const size_t parameter = tensorWhere(plan, hasRole("parameter"));
         if (parameter == plan["tensors"].size()) return "";
         plan["tensors"][argument]["buffer"] = plan["tensors"][parameter]["buffer"];
         return plan["tensors"][argument]["name"];
       }},
      {"tensors.offset", "negative",
       onTensor(isRole("argument"), [](json &tensor) { tensor["offset"] = -256; })},
      {"tensors.offset", "negative, of a temporary",
       onTensor(isRole("temporary"), [](json &tensor) { tensor["offset"] = -1; })},
      {"tensors.offset", "overflow",
       onTensor(isRole("result"), [](json &tensor) { tensor["offset"] = farOut; })},
      {"tensors.offset", "of a view", [](json &plan) -> std::string {
         for (const json &kernel : plan["kernels"])
           if (kernel["family"] == "view" && kernel["inputs"].size() == 1) {
             json &tensor = plan["tensors"][kernel["outputs"][0].get<size_t>()];
             tensor["offset"] = tensor["offset"].get<int64_t>() + 64;
             return kernel["name"];
           }
         return "";
       }},
      {"tensors.offset", "of a packed parameter", [](json &plan) -> std::string {
         for (json &tensor : plan["tensors"])
           if (tensor["role"] == "parameter" && tensor["offset"] != 0) {
             tensor["offset"] = tensor["offset"].get<int64_t>() * 64;
             return tensor["logical"];
           }
         return "";
       }},
      {"tensors.bytes", "others",
       onTensor(always, [](json &tensor) {
         tensor["bytes"] = 2 * tensor["bytes"].get<int64_t>();
       })},
      {"tensors.scale", "negative", onTensor(always, [](json &tensor) { tensor["scale"] = -1; })},
      {"tensors.initial", "unknown",
       onTensor(isRole("argument"), [](json &tensor) { tensor["initial"] = "twos"; })},
      {"tensors.initial", "another",
       onTensor(isRole("argument"), [](json &tensor) { tensor["initial"] = "normal(3)"; })},
      {"tensors.masterOf", "of another",
       onTensor(isRole("argument"), [](json &tensor) { tensor["masterOf"] = "x"; })},
      {"tensors.nextOf", "of an argument",
       onTensor(isRole("result"), [](json &tensor) { tensor["nextOf"] = "x"; })},
      {"tensors.nextOf", "of no argument",
       onTensor(isRole("result"), [](json &tensor) { tensor["nextOf"] = "omega"; })},
      {"tensors.nextOf", "of a temporary",
       onTensor(isRole("temporary"), [](json &tensor) { tensor["nextOf"] = "x"; })},
      {"tensors.training", "of a result",
       onTensor(isRole("argument"), [](json &tensor) { tensor["training"] = "loss"; })},
      {"tensors.training", "unknown",
       onTensor(isRole("argument"), [](json &tensor) { tensor["training"] = "token"; })},
      {"tensors.layer", "negative", onTensor(always, [](json &tensor) { tensor["layer"] = -1; })},
      {"tensors.layer", "of no layer in the graph",
       onTensor(isRole("argument"), [](json &tensor) { tensor["layer"] = 2; })},
      {"tensors.range", "empty", onTensor(always, [](json &tensor) { tensor["range"] = {5, 2}; })},

      {"kernels.name", "taken", [](json &plan) {
         plan["kernels"][1]["name"] = plan["kernels"][0]["name"];
         return plan["kernels"][0]["name"].get<std::string>();
       }},
      {"kernels.family", "another", onKernel([hasText](json &kernel, json &) {
         kernel["family"] = "view";
         return hasText(kernel);
       })},
      {"kernels.ops", "others", onKernel([](json &kernel, json &) {
         kernel["ops"][0] = "%1 = exp %0";
         return true;
       })},
      {"kernels.configuration", "another", onKernel([](json &kernel, json &) {
         kernel["configuration"] = "all in one cycle";
         return true;
       })},
      {"kernels.knobs", "another family", onKernel([](json &kernel, json &) {
         kernel["knobs"]["family"] = "lop";
         return true;
       })},
      {"kernels.knobs", "edited, not emitted", onKernel([](json &kernel, json &) {
         if (!kernel["knobs"].contains("threads")) return false;
         kernel["knobs"]["threads"] = kernel["knobs"]["threads"] == 128 ? 256 : 128;
         return true;
       })},
      {"kernels.key", "another", onKernel([](json &kernel, json &) {
         kernel["key"] = std::string(64, '0');
         return true;
       })},
      {"kernels.inputs", "exchanged", onKernel(swapInputs)},
      {"kernels.inputs", "another of the shape", onKernel(readAnother)},
      {"kernels.inputs", "no tensor", onKernel([](json &kernel, json &) {
         kernel["inputs"][0] = 100'000;
         return true;
       })},
      {"kernels.inputs", "one fewer", onKernel([](json &kernel, json &) {
         kernel["inputs"].erase(kernel["inputs"].size() - 1);
         kernel["inputLayouts"].erase(kernel["inputLayouts"].size() - 1);
         return true;
       })},
      {"kernels.outputs", "exchanged", [](json &plan) -> std::string {
         const auto isOne = [&](const json &kernel) {
           const json &outputs = kernel["outputs"];
           return kernel["family"] != "view" && outputs.size() >= 2 &&
                   isAlike(plan["tensors"][outputs[0].get<size_t>()],
                           plan["tensors"][outputs[1].get<size_t>()]);
         };
         const auto found = std::ranges::find_if(plan["kernels"], isOne);
         if (found == plan["kernels"].end()) return "";
         json &kernel = *found, &outputs = kernel["outputs"];
         const int one = outputs[0], other = outputs[1];
         constexpr int neither = 1 << 30;
         replaceTensor(kernel, "outputs", 0, neither);
         replaceTensor(kernel, "outputs", 1, one);
         replaceTensor(kernel, "outputs", 0, other);
         return plan["tensors"][size_t(one)]["name"];
       }},
      {"kernels.outputs", "of an earlier kernel", [](json &plan) -> std::string {
         for (size_t later = 1; later < plan["kernels"].size(); ++later)
           for (size_t earlier = 0; earlier < later; ++earlier) {
             const int one = plan["kernels"][earlier]["outputs"][0],
                        other = plan["kernels"][later]["outputs"][0];
             if (!isAlike(plan["tensors"][size_t(one)], plan["tensors"][size_t(other)])) continue;
             replaceTensor(plan["kernels"][later], "outputs", 0, one);
             return plan["kernels"][later]["name"];
           }
         return "";
       }},
      {"kernels.outputs", "an argument", onKernel([](json &kernel, json &plan) {
         replaceTensor(kernel, "outputs", 0, int(tensorWhere(plan, hasRole("argument"))));
         return true;
       })},
      {"kernels.inputLayouts", "others", onKernel([](json &kernel, json &plan) {
         if (!isMatrix(plan["tensors"][kernel["inputs"][0].get<size_t>()])) return false;
         kernel["inputLayouts"][0] = "xyz";
         return true;
       })},
      {"kernels.outputLayouts", "others", onKernel([](json &kernel, json &plan) {
         if (!isMatrix(plan["tensors"][kernel["outputs"][0].get<size_t>()])) return false;
         kernel["outputLayouts"][0] = "xyz";
         return true;
       })},
      {"kernels.after", "itself", [](json &plan) {
         plan["kernels"][1]["after"] = {1};
         return plan["kernels"][1]["name"].get<std::string>();
       }},
      {"kernels.after", "for nobody", onKernel([](json &kernel, json &) {
         const bool waits = !kernel["after"].empty();
         kernel["after"] = json::array();
         return waits;
       })},
      {"kernels.workspaceBuffer", "that of a tensor", onKernel([](json &kernel, json &plan) {
         kernel["workspaceBuffer"] = plan["tensors"][0]["buffer"];
         return true;
       })},
      {"kernels.workspaceBuffer", "far beyond all", onKernel([](json &kernel, json &) {
         kernel["workspaceBuffer"] = std::numeric_limits<int>::max();
         return true;
       })},

      {"kernels.workspaceBytes", "too few", onWorkspace([](json &kernel) {
         kernel["workspaceBytes"] = kernel["workspaceBytes"].get<int64_t>() - 256;
       })},
      {"kernels.workspaceBytes", "missing",
       onWorkspace([](json &kernel) { kernel.erase("workspaceBytes"); })},
      {"kernels.workspaceBytes", "negative",
       onWorkspace([](json &kernel) { kernel["workspaceBytes"] = -256; })},
      {"kernels.workspaceBytes", "overflow",
       onWorkspace([](json &kernel) { kernel["workspaceBytes"] = farOut; })},
      {"kernels.workspaceBuffer", "missing",
       onWorkspace([](json &kernel) { kernel["workspaceBuffer"] = -1; })},
      {"kernels.parameters.kind", "an output in place of a workspace",
       onWorkspace([](json &kernel) { kernel["parameters"].back()["kind"] = "output"; })},

      {"kernels.parameters.tensor", "exchanged", onKernel([](json &kernel, json &) {
         json &all = kernel["parameters"];
         for (size_t a = 0; a < all.size(); ++a)
           for (size_t b = a + 1; b < all.size(); ++b)
             if (all[a]["kind"] == "input" && all[b]["kind"] == "input" &&
                  all[a]["tensor"] != all[b]["tensor"]) {
               std::swap(all[a]["tensor"], all[b]["tensor"]);
               return true;
             }
         return false;
       })},
      {"kernels.parameters.kind", "unknown", onKernel([hasText](json &kernel, json &) {
         if (hasText(kernel)) kernel["parameters"][0]["kind"] = "seed";
         return hasText(kernel);
       })},
      {"kernels.parameters", "one fewer", onKernel([hasText](json &kernel, json &) {
         if (hasText(kernel)) kernel["parameters"].erase(0);
         return hasText(kernel);
       })},
      {"kernels.parameters.name", "another", onKernel([hasText](json &kernel, json &) {
         if (hasText(kernel)) kernel["parameters"][0]["name"] = "omega";
         return hasText(kernel);
       })},
      {"kernels.parameters.type", "another", onKernel([hasText](json &kernel, json &) {
         if (hasText(kernel)) kernel["parameters"][0]["type"] = "double";
         return hasText(kernel);
       })},
      {"kernels.parameters.value", "another stream of dropout", onKernel([](json &kernel, json &) {
         for (json &parameter : kernel["parameters"])
           if (parameter["kind"] == "dropoutStream") {
             parameter["value"] = parameter["value"].get<int>() + 1;
             return true;
           }
         return false;
       })},
      {"kernels.parameters.map", "missing", onMap([](json &map) { map = nullptr; })},
      {"kernels.parameters.map.dtype", "another", onMap([](json &map) { map["dtype"] = "f32"; })},
      {"kernels.parameters.map.extents", "overflow",
       onMap([](json &map) { map["extents"][0] = farOut; })},
      {"kernels.parameters.map.strides", "overflow",
       onMap([](json &map) { map["strides"][0] = farOut; })},
      {"kernels.parameters.map.box", "another",
       onMap([](json &map) { map["box"][0] = 2 * map["box"][0].get<int64_t>(); })},
      {"kernels.parameters.map.swizzleBytes", "another",
       onMap([](json &map) { map["swizzleBytes"] = 32; })},
      {"kernels.parameters.map.shift", "another", onMap([](json &map) { map["shift"] = 8; })},

      {"notes.kind", "unknown",
       [](json &plan) -> std::string {
         if (plan["notes"].empty()) return "";
         plan["notes"][0]["kind"] = "nonsense";
         return "nonsense";
       }},
      {"kernels.chunk.region", "of none", onChunk([](json &chunk) { chunk["region"] = 100'000; })},
      {"kernels.chunk.axis", "unknown", onChunk([](json &chunk) { chunk["axis"] = "zz"; })},
      {"kernels.chunk.start", "negative", onChunk([](json &chunk) { chunk["start"] = -1; })},
      {"kernels.chunk.start", "overflow",
       onChunk([](json &chunk) { chunk["start"] = std::numeric_limits<int64_t>::max(); })},
      {"kernels.chunk.size", "fewer",
       onChunk([](json &chunk) { chunk["size"] = chunk["size"].get<int64_t>() - 1; })},
      {"kernels.chunk.size", "more",
       onChunk([](json &chunk) { chunk["size"] = chunk["size"].get<int64_t>() + 1; })},
      {"kernels.chunk", "the whole", [](json &plan) -> std::string {
         for (json &kernel : plan["kernels"])
           if (kernel["chunk"].is_object()) {
             kernel["chunk"] = nullptr;
             return "graph.mlir holds";
           }
         return "";
       }},

      {"kernels.library.a", "exchanged with b", onLibrary([](json &library) {
         std::swap(library["a"], library["b"]);
         return true;
       })},
      {"kernels.library.b", "as a", onLibrary([](json &library) {
         library["b"] = library["a"];
         return true;
       })},
      {"kernels.library.c", "an operand", onLibrary([](json &library) {
         library["c"] = library["a"];
         return true;
       })},
      {"kernels.library.alpha", "another", onLibrary([](json &library) {
         library["alpha"] = library["alpha"].get<double>() + 1;
         return true;
       })},
      {"kernels.library.dtype", "another", onLibrary([](json &library) {
         library["dtype"] = "f128";
         return true;
       })},
      {"kernels.library.shape", "overflow", onLibrary([](json &library) {
         library["shape"]["m"] = farOut;
         return true;
       })},
      {"kernels.library.shape", "negative stride", onLibrary([](json &library) {
         library["shape"]["strideAm"] = -8;
         return true;
       })},
      {"kernels.library", "missing", onKernel([](json &kernel, json &) {
         const bool isLibrary = kernel["library"].is_object();
         kernel["library"] = nullptr;
         return isLibrary;
       })},
      {"kernels.library.epilogue", "missing", onLibrary([](json &library) {
         const bool has = library["epilogue"].is_object();
         library["epilogue"] = nullptr;
         return has;
       })},
      {"kernels.library.epilogue.kind", "unknown", onEpilogue([](json &epilogue) {
         epilogue["kind"] = "swish";
         return true;
       })},
      {"kernels.library.epilogue.beta", "another", onEpilogue([](json &epilogue) {
         epilogue["beta"] = 3;
         return true;
       })},

      {"memoryPlan.buffer", "of none",
       onAllocation([](json &one) { one["buffer"] = std::numeric_limits<int>::max(); })},
      {"memoryPlan.buffer", "negative",
       onAllocation([](json &allocation) { allocation["buffer"] = -1; })},
      {"memoryPlan.in", "in nothing",
       onAllocation([](json &allocation) { allocation["in"] = "nowhere"; })},
      {"memoryPlan.offset", "negative",
       onAllocation([](json &allocation) { allocation["offset"] = -256; })},
      {"memoryPlan.offset", "overflow",
       onAllocation([](json &allocation) { allocation["offset"] = farOut; })},
      {"memoryPlan.offset", "not aligned",
       onAllocation([](json &allocation) { allocation["offset"] = 7; })},
      {"memoryPlan", "all at one place", [](json &plan) -> std::string {
         if (plan["memoryPlan"].size() < 2) return "";
         for (json &allocation : plan["memoryPlan"])
            allocation["in"] = "workspace", allocation["offset"] = 0;
         return "kernels[";
       }},

      {"entryPoints", "a kernel is missing", onPlan("entryPoints", [](json &plan) {
         json &kernels = plan["entryPoints"]["forward"];
         kernels.erase(kernels.size() - 1);
       })},
      {"entryPoints", "a kernel twice", onPlan("entryPoints", [](json &plan) {
         json &kernels = plan["entryPoints"]["forward"];
         kernels.push_back(kernels.back());
       })},
      {"entryPoints", "named otherwise", onPlan("entryPoints", [](json &plan) {
         plan["entryPoints"]["onward"] = plan["entryPoints"]["forward"];
         plan["entryPoints"].erase("forward");
       })},
      {"entryPoints", "named as all of them", onPlan("entryPoints", [](json &plan) {
         plan["entryPoints"]["all"] = plan["entryPoints"]["forward"];
         plan["entryPoints"].erase("forward");
       })},
      {"entryPoints", "a backward kernel in the forward pass", [](json &plan) -> std::string {
         if (!plan["entryPoints"].contains("backward")) return "";
         json &backward = plan["entryPoints"]["backward"];
         plan["entryPoints"]["forward"].push_back(backward[0]);
         backward.erase(0);
         return "forward";
       }},
      {"kernels", "one is missing",
       onPlan("", [](json &plan) { plan["kernels"].erase(plan["kernels"].size() - 1); })},
      {"tensors", "one that nobody uses", [](json &plan) {
         json tensor = plan["tensors"].back();
         tensor["name"] = "nobodys";
         tensor["role"] = "temporary";
         plan["tensors"].push_back(tensor);
         return std::string("nobodys");
       }},
  };
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

/// Every member of a plan's objects, by its path without numbers: "kernels.chunk.axis".
inline void addMembers(const nlohmann::json &value, const std::string &path,
                       std::set<std::string> &members) {
  if (value.is_array())
    for (const nlohmann::json &item : value) addMembers(item, path, members);
  if (!value.is_object()) return;
  for (const auto &[name, member] : value.items()) {
    const std::string place = path.empty() ? name : path + "." + name;
    members.insert(place);
    // Members of these are names and numbers of one kind.
    if (place != "dims" && place != "entryPoints" && place != "kernels.knobs" &&
        place != "kernels.library.shape" && place != "measurement")
      addMembers(member, place, members);
  }
}

}  // namespace weft::test
