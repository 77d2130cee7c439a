// What a plan must satisfy beyond the types of its members: every index resolves, places are sizes
// that do not overflow (PlanBounds.h), kernels stand in a topological order, every tensor is
// written once and read later, and what shares memory lives apart. The runtime relies on exactly
// this.
#include "kernel/Family.h"
#include "plan/Plan.h"

#include "codegen/families/library/GemmFields.h"
#include "kernel/Configuration.h"
#include "kernel/Error.h"
#include "kernel/LaunchCheck.h"
#include "plan/CheckedSizes.h"
#include "plan/PlanBounds.h"
#include "plan/PlanLiveness.h"
#include "plan/TensorLayout.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace weft {

namespace {

/// Whether a field of its schedule has the value with which texts wait by themselves.
bool waitsItself(const PlanKernel &kernel) {
  const Knobs &knobs = kernel.knobs.knobs;
  if (kernel.knobs == PlanKnobs() || !(kernel.family == knobs.family())) return false;
  return std::ranges::any_of(knobs.family().schedule, [&](const ScheduleField &field) {
    return field.waitsItself >= 0 && field.get(knobs) == field.waitsItself;
  });
}

/// "single-consumer tiles of gemm-sm90": what such schedules are, of all families.
std::string waitingTiles() {
  std::vector<std::string> tiles;
  for (const Family *family : families())
    for (const ScheduleField &field : family->schedule)
      if (field.waitsItself >= 0)
        tiles.push_back(
            fmt::format("{} tiles of {}", field.choices[size_t(field.waitsItself)], *family));
  return fmt::format("{}", fmt::join(tiles, " or "));
}

class PlanChecker {
public:
  PlanChecker(const Plan &plan, const std::string &where) : plan(plan), where(where) {}

  void run() const {
    checkPlaces(plan, where);
    std::set<std::string> names;
    for (size_t i = 0; i < plan.kernels.size(); ++i) {
      const PlanKernel &kernel = plan.kernels[i];
      const std::string place = fmt::format("kernels[{}] ({})", i, kernel.name);
      require(names.insert(kernel.name).second, place, "the name is taken by an earlier kernel");
      require(!kernel.name.empty(), place, "it has no name");
      checkKernel(kernel, int(i), place);
    }
    checkRelations();
    checkTrainingRoles();
    checkWriters();
    checkDataFlow();
    checkMemory();
    for (const auto &[kind, kernels] : plan.entryPoints) checkEntryPoint(kernels, placeOf(kind));
    checkCut();
  }

  void runDerived() const {
    for (size_t i = 0; i < plan.kernels.size(); ++i) {
      if (!plan.kernels[i].library) continue;
      const PlanLibraryGemm &gemm = *plan.kernels[i].library;
      const StridedBatchedGemm &shape = gemm.shape;
      const std::string place = fmt::format("kernels[{}] ({}): library", i, plan.kernels[i].name);
      const GemmTypes types = gemm.types;
      checkOperand(gemm, gemm.a, types.a, {shape.m, shape.k}, {shape.strideAm, shape.strideAk},
                   shape.batchStrideA, place);
      checkOperand(gemm, gemm.b, types.b, {shape.k, shape.n}, {shape.strideBk, shape.strideBn},
                   shape.batchStrideB, place);
      checkOperand(gemm, gemm.c, types.c, {shape.m, shape.n}, {shape.strideCm, shape.strideCn},
                   shape.batchStrideC, place);
      if (gemm.epilogue) checkEpilogue(gemm, *gemm.epilogue, place);
    }
    for (size_t index = 0; index < plan.tensors.size(); ++index)
      checkDerived(plan.tensors[index],
                   fmt::format("tensors[{}] ({})", index, plan.tensors[index].name));
    for (size_t index = 0; index < plan.kernels.size(); ++index)
      checkFamily(plan.kernels[index],
                  fmt::format("kernels[{}] ({})", index, plan.kernels[index].name));
    const int64_t workspace = PlanMemory(plan).bytes(BufferKind::temporary);
    require(plan.workspaceBytes == workspace, "workspaceBytes",
            fmt::format("{} bytes, but its temporaries take {}", plan.workspaceBytes, workspace));
  }

private:
  void require(bool holds, const std::string &place, const std::string &problem) const {
    if (!holds) throw Error::badInput("{}: {}: {}", where, place, problem);
  }

  bool isTensor(int index) const { return index >= 0 && index < int(plan.tensors.size()); }

  /// A view launches nothing, and nothing else does so.
  void checkFamily(const PlanKernel &kernel, const std::string &place) const {
    if (kernel.knobs != PlanKnobs())
      require(kernel.family == kernel.knobs.knobs.family(), place,
              fmt::format("its family is {}, but its knobs are of \"{}\"", kernel.family,
                          kernel.knobs.knobs.family()));
    require(!isView(kernel) || kernel.workspaceBytes == 0, place,
            "it is a view, and works in a workspace");
    require(isView(kernel) == kernel.family.isView(), place,
            isView(kernel) ? "it has neither source nor library GEMM, and is no view"
                           : "it is a view, and has a source or a library GEMM");
  }

  /// What `weft emit` derives of extents and order.
  void checkDerived(const PlanTensor &tensor, const std::string &place) const {
    require(tensor.bytes == logicalBytes(tensor), place,
            fmt::format("{} bytes, but its extents and dtype {} make {}", tensor.bytes,
                        nameOf(tensor.dtype), logicalBytes(tensor)));
    int64_t slower = mostBytes + 1;
    for (const int dimension : tensor.order) {
      if (tensor.extents[size_t(dimension)] == 1) continue;
      const int64_t stride = tensor.strides[size_t(dimension)];
      require(stride < slower, place,
              fmt::format("strides [{}] are not in the order [{}]", fmt::join(tensor.strides, ", "),
                          fmt::join(tensor.order, ", ")));
      slower = stride;
    }
  }

  const PlanTensor *argumentNamed(const std::string &logical) const {
    const auto found = std::ranges::find_if(plan.tensors, [&](const PlanTensor &tensor) {
      return tensor.role == TensorRole::argument && tensor.logical == logical;
    });
    return found == plan.tensors.end() ? nullptr : &*found;
  }

  /// Roles in training are of one tensor of the graph each, which can have them.
  void checkTrainingRoles() const {
    std::map<TrainingRole, std::string> taken;
    for (size_t index = 0; index < plan.tensors.size(); ++index) {
      const PlanTensor &tensor = plan.tensors[index];
      const std::string place = fmt::format("tensors[{}] ({})", index, tensor.name);
      require(tensor.layer >= 0, place, fmt::format("layer is {}, not 0 or more", tensor.layer));
      if (tensor.training == TrainingRole::none) continue;
      const bool ofResult = isOfResult(tensor.training);
      require(tensor.role == (ofResult ? TensorRole::result : TensorRole::argument), place,
              fmt::format("training is '{}', which {} alone has", nameOf(tensor.training),
                          ofResult ? "a result" : "an argument"));
      require(!isScalar(tensor.training) || (tensor.dtype == DType::f32 && tensor.extents.empty()),
              place,
              fmt::format("training is '{}', which is one number of f32", nameOf(tensor.training)));
      const auto [other, isNew] = taken.try_emplace(tensor.training, tensor.logical);
      require(isNew || other->second == tensor.logical, place,
              fmt::format("training is '{}', which '{}' has already", nameOf(tensor.training),
                          other->second));
    }
  }

  /// Masters and next values name arguments that can have them.
  void checkRelations() const {
    std::set<std::string> updated;
    for (size_t index = 0; index < plan.tensors.size(); ++index) {
      const PlanTensor &tensor = plan.tensors[index];
      const std::string place = fmt::format("tensors[{}] ({})", index, tensor.name);
      if (!tensor.masterOf.empty()) {
        const PlanTensor *rounding = argumentNamed(tensor.masterOf);
        require(tensor.role == TensorRole::argument && tensor.dtype == DType::f32 && rounding &&
                    (rounding->dtype == DType::f16 || rounding->dtype == DType::bf16) &&
                    rounding->extents == tensor.extents,
                place,
                fmt::format("masterOf is '{}': an argument of f32 is the master of an argument of "
                            "f16 or bf16 and its extents alone",
                            tensor.masterOf));
      }
      if (tensor.nextOf.empty()) continue;
      require(tensor.role == TensorRole::result && argumentNamed(tensor.nextOf), place,
              fmt::format("nextOf is '{}': a result is the next value of an argument alone",
                          tensor.nextOf));
      require(updated.insert(tensor.nextOf).second, place,
              fmt::format("argument '{}' has another next value already", tensor.nextOf));
    }
  }

  void checkKernel(const PlanKernel &kernel, int index, const std::string &place) const {
    require(kernel.layer >= 0, place, fmt::format("layer is {}, not 0 or more", kernel.layer));
    for (const int tensor : kernel.inputs)
      require(isTensor(tensor), place, fmt::format("input {} is no tensor of the plan", tensor));
    for (const int tensor : kernel.outputs)
      require(isTensor(tensor), place, fmt::format("output {} is no tensor of the plan", tensor));
    require(kernel.inputLayouts.size() == kernel.inputs.size() &&
                kernel.outputLayouts.size() == kernel.outputs.size(),
            place, "there is not one layout for each input and output");
    for (size_t i = 0; i < kernel.after.size(); ++i) {
      const int before = kernel.after[i];
      require(before >= 0 && before < index, place,
              fmt::format("it waits for kernel {}, which does not stand before it", before));
      require(i == 0 || kernel.after[i - 1] < before, place,
              fmt::format("it waits for kernel {} twice, or out of order", before));
    }
    for (const PlanParameter &parameter : kernel.parameters)
      checkParameter(kernel, parameter, place + ": parameter " + parameter.name);
    if (!kernel.source.empty() && !kernel.library) checkPassed(kernel, place);
    const auto positive = [](int64_t extent) { return extent > 0; };
    require(
        std::ranges::all_of(kernel.grid, positive) && std::ranges::all_of(kernel.block, positive),
        place, "a launch extent is not positive");
    require(kernel.source.empty() || !kernel.entry.empty(), place,
            "it has a source but no entry symbol");
    // Texts that wait by themselves: those whose schedule says so, and those whose entry point
    // does, which no other cubin has.
    require(
        waitsItself(kernel) || isWaitingEntry(kernel.entry) || !kernel.startsEarly, place,
        fmt::format("it starts early, and its text does not wait for what it reads: it has no {}, "
                    "and its entry point is not called '{}'",
                    waitingTiles(), waitingEntry("NAME")));
    if (kernel.library) checkLibrary(kernel, *kernel.library, place + ": library");
  }

  void checkLibrary(const PlanKernel &kernel, const PlanLibraryGemm &gemm,
                    const std::string &place) const {
    require(kernel.source.empty() && kernel.cubin.empty(), place,
            "a library GEMM has neither source nor cubin");
    require(std::isfinite(gemm.alpha), place, "alpha is not finite");
    for (const auto &[name, member] : gemmFields)
      require(gemm.shape.*member >= 0 && gemm.shape.*member <= mostBytes, place,
              fmt::format("{} is {}", name, gemm.shape.*member));
    require(kernel.workspaceBytes == 0, place,
            "a library GEMM has no workspaceBytes: its knobs say them");
    const LibraryGemm asked = libraryGemm(gemm);
    std::vector<int> inputs{gemm.a, gemm.b}, outputs{gemm.c};
    if (gemm.epilogue) addTensors(*gemm.epilogue, traitsOf(asked.epilogue), inputs, outputs, place);
    const auto sorted = [](std::vector<int> list) {
      std::ranges::sort(list);
      return list;
    };
    require(sorted(kernel.inputs) == sorted(inputs) && sorted(kernel.outputs) == sorted(outputs),
            place,
            gemm.epilogue ? "its tensors are not the kernel's inputs and outputs"
                          : "a, b and c are not the kernel's inputs and output");
    const std::string rejection = libraryRejection(asked);
    require(rejection.empty(), place, rejection);
    libraryKnobs(kernel);
  }

  /// Just the tensors that the epilogue has.
  void addTensors(const PlanLibraryEpilogue &epilogue, const LibraryEpilogueTraits &traits,
                  std::vector<int> &inputs, std::vector<int> &outputs,
                  const std::string &place) const {
    const auto add = [&](const char *name, int tensor, bool isRead, bool isWritten) {
      require((tensor >= 0) == (isRead || isWritten), place,
              fmt::format("epilogue {} {} tensor \"{}\"", traits.name,
                          isRead || isWritten ? "lacks its" : "has no", name));
      if (isRead) inputs.push_back(tensor);
      if (isWritten) outputs.push_back(tensor);
    };
    require(std::isfinite(epilogue.beta), place, "beta is not finite");
    add("residual", epilogue.residual, epilogue.beta != 0, false);
    add("auxiliary", epilogue.auxiliary, traits.readsAuxiliary, traits.writesAuxiliary);
    add("bias", epilogue.bias, traits.readsBias, false);
    add("gradient", epilogue.gradient, false, traits.writesGradient);
  }

  void checkEpilogue(const PlanLibraryGemm &gemm, const PlanLibraryEpilogue &epilogue,
                     const std::string &place) const {
    const StridedBatchedGemm &shape = gemm.shape;
    const auto checkMatrix = [&](int tensor, const GroupStrides &strides) {
      if (tensor >= 0)
        checkOperand(gemm, tensor, libraryGemm(gemm).dtype, {shape.m, shape.n},
                     {strides.m, strides.n}, strides.batch, place);
    };
    checkMatrix(epilogue.residual, epilogue.residualStrides);
    checkMatrix(epilogue.auxiliary, epilogue.auxiliaryStrides);
    PlanLibraryGemm one = gemm;  // all batch elements share a vector
    one.shape.batch = 1;
    for (const int vector : {epilogue.bias, epilogue.gradient})
      if (vector >= 0)
        checkOperand(one, vector, libraryGemm(gemm).dtype, {vectorExtent(libraryGemm(gemm)), 1},
                     {1, 0}, 0, place);
  }

  /// A library reads and writes where it is told: as many elements as the tensor has, and none
  /// beyond its last.
  void checkOperand(const PlanLibraryGemm &gemm, int index, DType type,
                    std::array<int64_t, 2> extents, std::array<int64_t, 2> strides,
                    int64_t batchStride, const std::string &place) const {
    const PlanTensor &tensor = plan.tensors[size_t(index)];
    require(
        tensor.dtype == storedAs(type), place,
        fmt::format("{} is {}, not {}", tensor.name, nameOf(tensor.dtype), nameOf(storedAs(type))));
    const std::array<int64_t, 3> all = {gemm.shape.batch, extents[0], extents[1]},
                                 steps = {batchStride, strides[0], strides[1]};
    require(
        std::ranges::min(all) >= 1 && std::ranges::min(steps) >= 0 && isWhole(all, steps, tensor),
        place, fmt::format("its extents and strides are not those of {}", tensor.name));
  }

  /// As many elements, and the last in the same place.
  static bool isWhole(std::span<const int64_t> extents, std::span<const int64_t> strides,
                      const PlanTensor &tensor) {
    const Checked count = checkedCount(extents), last = checkedLast(extents, strides);
    return count && last && count == checkedCount(tensor.extents) &&
           last == checkedLast(tensor.extents, tensor.strides);
  }

  /// A kernel gets the address of everything that it reads and writes.
  void checkPassed(const PlanKernel &kernel, const std::string &place) const {
    const auto isPassed = [&](int tensor, bool isInput) {
      return std::ranges::any_of(kernel.parameters, [&](const PlanParameter &parameter) {
        return parameter.tensor == tensor &&
               (isInput ? isOfInput(parameter.kind) : isOfOutput(parameter.kind));
      });
    };
    const auto workspaces =
        std::ranges::count(kernel.parameters, ParameterKind::workspace, &PlanParameter::kind);
    require(workspaces == (kernel.workspaceBytes > 0), place,
            fmt::format("{} parameters take a workspace, and its workspaceBytes are {}", workspaces,
                        kernel.workspaceBytes));
    for (const bool isInput : {true, false})
      for (const int tensor : isInput ? kernel.inputs : kernel.outputs)
        require(isPassed(tensor, isInput), place,
                fmt::format("no parameter takes its {} '{}'", isInput ? "input" : "output",
                            plan.tensors[size_t(tensor)].name));
  }

  void checkParameter(const PlanKernel &kernel, const PlanParameter &parameter,
                      const std::string &place) const {
    require(parameter.map.has_value() == isMap(parameter.kind), place,
            isMap(parameter.kind) ? "its map is missing" : "it has a map, but is none");
    const bool isInput = isOfInput(parameter.kind) || parameter.kind == ParameterKind::status;
    if (!isInput && !isOfOutput(parameter.kind)) return;
    const std::vector<int> &tensors = isInput ? kernel.inputs : kernel.outputs;
    require(std::ranges::find(tensors, parameter.tensor) != tensors.end(), place,
            fmt::format("tensor {} is no {} of its kernel", parameter.tensor,
                        isInput ? "input" : "output"));
    if (isMap(parameter.kind))
      checkMap(*parameter.map, plan.tensors[size_t(parameter.tensor)], place);
  }

  /// A TMA reads and writes where it is told: as many elements as the tensor has, and none
  /// beyond its last.
  void checkMap(const TensorMap &map, const PlanTensor &tensor, const std::string &place) const {
    const size_t rank = map.extents.size();
    require(rank >= 1 && rank <= 5 && map.strides.size() == rank - 1 && map.box.size() == rank,
            place, "extents, strides and box of its map do not fit");
    require(storedAs(map.dtype) == tensor.dtype, place,
            fmt::format("its map is of {}, {} of {}", nameOf(map.dtype), tensor.name,
                        nameOf(tensor.dtype)));
    const auto positive = [](int64_t extent) { return extent > 0; };
    require(std::ranges::all_of(map.extents, positive) && std::ranges::all_of(map.box, positive),
            place, "an extent of its map is not positive");
    require(std::ranges::all_of(map.strides, [](int64_t stride) { return stride >= 0; }), place,
            "a stride of its map is negative");
    std::vector<int64_t> extents = map.extents, strides = {1};
    strides.insert(strides.end(), map.strides.begin(), map.strides.end());
    if (map.shift != 0) {  // of packed tokens: the last dimension says where a sequence ends
      int64_t rows = 0;
      require(rank >= 3 && strides[1] == strides.back() && extents.back() > 1 &&
                  !__builtin_mul_overflow(extents[1], strides[1], &rows) && map.shift == rows,
              place, "its map begins in front of the tensor, and is none of packed tokens");
      extents[1] = extents.back() - 1;
      extents.pop_back(), strides.pop_back();
    }
    require(isWhole(extents, strides, tensor), place,
            fmt::format("extents and strides of its map are not those of {}", tensor.name));
  }

  /// A tensor has one writer, and what is given has none.
  void checkWriters() const {
    std::map<int, size_t> writers;
    for (size_t i = 0; i < plan.kernels.size(); ++i)
      for (const int output : plan.kernels[i].outputs) {
        const PlanTensor &tensor = plan.tensors[size_t(output)];
        const std::string place = fmt::format("kernels[{}] ({})", i, plan.kernels[i].name);
        require(!isGiven(tensor.role), place,
                fmt::format("it writes '{}', which is given", tensor.name));
        const auto [writer, isFirst] = writers.try_emplace(output, i);
        require(isFirst, place,
                fmt::format("it writes '{}', which {} writes", tensor.name,
                            writer->second == i ? "it" : plan.kernels[writer->second].name));
      }
  }

  /// A tensor is known once it, or a tensor that has elements in common with it (a view), has been
  /// given or written.
  void checkDataFlow() const {
    std::set<int> tensors;
    std::map<int, std::vector<int>> byBuffer;
    const auto know = [&](int index) {
      if (tensors.insert(index).second)
        byBuffer[plan.tensors[size_t(index)].buffer].push_back(index);
    };
    const auto isKnown = [&](int index) {
      const PlanTensor &tensor = plan.tensors[size_t(index)];
      return tensors.contains(index) ||
             std::ranges::any_of(byBuffer[tensor.buffer], [&](int other) {
               return sharesElements(plan.tensors[size_t(other)], tensor);
             });
    };
    for (size_t i = 0; i < plan.tensors.size(); ++i)
      if (isGiven(plan.tensors[i].role)) know(int(i));
    for (size_t i = 0; i < plan.kernels.size(); ++i) {
      for (const int input : plan.kernels[i].inputs)
        require(isKnown(input), fmt::format("kernels[{}] ({})", i, plan.kernels[i].name),
                fmt::format("it reads {}, which nothing before it writes",
                            plan.tensors[size_t(input)].name));
      std::ranges::for_each(plan.kernels[i].outputs, know);
    }
    for (size_t i = 0; i < plan.tensors.size(); ++i)
      require(plan.tensors[i].role != TensorRole::result || isKnown(int(i)),
              fmt::format("tensors[{}] ({})", i, plan.tensors[i].name),
              "it is a result, which no kernel writes");
  }

  void checkMemory() const {
    try {
      const PlanMemory memory(plan);
      checkLiveRanges(plan, memory, where);
      checkWorkspaces(memory);
    } catch (const Error &error) {
      const std::string text = error.what();
      throw Error(error.kind, text.starts_with(where) ? text : fmt::format("{}: {}", where, text));
    }
  }

  /// A kernel works in memory that holds none of its operands, which no order of kernels keeps
  /// apart.
  void checkWorkspaces(const PlanMemory &memory) const {
    for (size_t i = 0; i < plan.kernels.size(); ++i) {
      const PlanKernel &kernel = plan.kernels[i];
      if (kernel.workspaceBuffer < 0) continue;
      const MemoryRange workspace = memory.rangeOf(kernel.workspaceBuffer);
      for (const std::vector<int> *tensors : {&kernel.inputs, &kernel.outputs})
        for (const int tensor : *tensors)
          require(!workspace.overlaps(memory.rangeOf(plan.tensors[size_t(tensor)])),
                  fmt::format("kernels[{}] ({})", i, kernel.name),
                  fmt::format("its workspace shares memory with '{}'",
                              plan.tensors[size_t(tensor)].name));
    }
  }

  void checkEntryPoint(const std::vector<int> &kernels, const std::string &place) const {
    for (size_t i = 0; i < kernels.size(); ++i) {
      require(kernels[i] >= 0 && kernels[i] < int(plan.kernels.size()), place,
              fmt::format("{} is no kernel of the plan", kernels[i]));
      require(i == 0 || kernels[i - 1] < kernels[i], place,
              fmt::format("kernel {} does not stand after kernel {}", kernels[i],
                          i ? kernels[i - 1] : 0));
    }
  }

  static std::string placeOf(EntryPointKind kind) {
    return fmt::format("entryPoints.{}", nameOf(kind));
  }

  /// Every kernel belongs to one entry point. They are called one after the other: what one leaves
  /// for the next lies in memory that is there all the time, the workspace or the buffer of a
  /// result itself.
  void checkCut() const {
    std::map<int, EntryPointKind> entryOf;
    for (const auto &[kind, kernels] : plan.entryPoints)
      for (const int kernel : kernels) {
        const auto [known, isNew] = entryOf.try_emplace(kernel, kind);
        require(isNew, placeOf(kind),
                fmt::format("kernel {} belongs to {} already", plan.kernels[size_t(kernel)].name,
                            nameOf(known->second)));
      }
    for (size_t kernel = 0; kernel < plan.kernels.size(); ++kernel)
      require(entryOf.contains(int(kernel)), "entryPoints",
              fmt::format("kernel {} ({}) belongs to none", kernel, plan.kernels[kernel].name));
    for (const auto &[kind, kernels] : plan.entryPoints)
      require(!kernels.empty(), placeOf(kind), "it has no kernel");
    if (plan.entryPoints.size() < 2) return;
    std::map<int, std::set<EntryPointKind>> users;  // by buffer
    for (const auto &[kernel, kind] : entryOf)
      for (const std::vector<int> *tensors :
           {&plan.kernels[size_t(kernel)].inputs, &plan.kernels[size_t(kernel)].outputs})
        for (const int tensor : *tensors) users[plan.tensors[size_t(tensor)].buffer].insert(kind);
    for (const BufferAllocation &allocation : plan.memoryPlan) {
      if (allocation.in.isWorkspace()) continue;
      const PlanTensor &host = plan.tensors[size_t(allocation.in.result)];
      std::set<EntryPointKind> both = users[allocation.buffer];
      both.insert(users[host.buffer].begin(), users[host.buffer].end());
      std::vector<std::string_view> names;
      for (const EntryPointKind kind : both) names.push_back(nameOf(kind));
      require(names.size() == 1, "memoryPlan",
              fmt::format("buffer {} lies in '{}', but entry points {} use them: a caller of one "
                          "need not bring it",
                          allocation.buffer, host.name, fmt::join(names, ", ")));
    }
  }

  const Plan &plan;
  const std::string &where;
};

}  // namespace

void verify(const Plan &plan, const std::string &where) { PlanChecker(plan, where).run(); }
void verifyDerived(const Plan &plan, const std::string &where) {
  PlanChecker(plan, where).runDerived();
}

}  // namespace weft
