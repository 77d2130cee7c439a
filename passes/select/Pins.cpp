// What is settled before anything is priced: layouts that callers fix, kernels that run at load,
// candidates that flags exclude.
#include "passes/select/Prices.h"

#include "kernel/Error.h"
#include "kernel/UnusedTokens.h"
#include "passes/configure/Packing.h"
#include "passes/configure/StridedViews.h"

#include <algorithm>
#include <numeric>

namespace weft::select {

void Prices::choosePins() {
  for (const Tensor &tensor : problem.tensors) {
    const std::vector<int64_t> extents = tensor.extents();
    std::optional<Layout> pin;
    if (tensor.pinned) {
      if (tensor.pinned->order.size() != extents.size())
        throw Error::badInput("tensor '{}' has {} dimensions, its pinned layout {}", tensor.name,
                              extents.size(), tensor.pinned->order.size());
      pin = normalized(*tensor.pinned, extents);
    } else if ((tensor.isArgument || tensor.isResult) && (!options.free || tensor.isParameter)) {
      pin = normalized(rowMajor(extents.size()), extents);
    }
    pins.push_back(pin);
  }
  for (const auto &[a, b] : problem.tiedTensors) {
    auto &first = pins[static_cast<size_t>(a)], &second = pins[static_cast<size_t>(b)];
    if (first && second && *first != *second)
      throw Error::badInput(
          "tensors '{}' and '{}' share one layout but are pinned to different ones",
          problem.tensors[static_cast<size_t>(a)].name,
          problem.tensors[static_cast<size_t>(b)].name);
    if (!first) first = second;
    if (!second) second = first;
  }
}

void Prices::findFolded() {
  for (const Tensor &tensor : problem.tensors) {
    freeToPack.push_back(tensor.isArgument && tensor.isParameter);
    fixed.push_back(tensor.mustBeStored && tensor.pinned && !tensor.isResult &&
                    (!tensor.isArgument || tensor.isParameter));
  }
  for (const auto &[a, b] : problem.tiedTensors)
    freeToPack[static_cast<size_t>(a)] = freeToPack[static_cast<size_t>(b)] = false;
  std::vector<int> order(problem.candidates.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return problem.candidates[static_cast<size_t>(a)].ops <
           problem.candidates[static_cast<size_t>(b)].ops;
  });
  candidates.resize(problem.candidates.size());
  for (int index : order) {
    const Candidate &candidate = problem.candidates[static_cast<size_t>(index)];
    if (candidate.ops.size() != 1 || candidate.inputs.empty() || !isPackedAtLoad(candidate.kernel))
      continue;
    const bool fromParameters =
        std::all_of(candidate.inputs.begin(), candidate.inputs.end(),
                    [&](int t) { return freeToPack[static_cast<size_t>(t)]; });
    const bool leaves = std::any_of(candidate.outputs.begin(), candidate.outputs.end(), [&](int t) {
      return problem.tensors[static_cast<size_t>(t)].isResult;
    });
    // A part of a packed tensor lies as the whole does: a pinned one is packed with no other.
    const bool isFixed = std::any_of(candidate.inputs.begin(), candidate.inputs.end(),
                                     [&](int t) { return fixed[static_cast<size_t>(t)]; });
    if (!fromParameters || leaves || isFixed) continue;
    candidates[static_cast<size_t>(index)].isFolded = true;
    for (int tensor : candidate.outputs) {
      freeToPack[static_cast<size_t>(tensor)] = true;
      const std::vector<int64_t> extents = tensorOf(tensor).extents();
      if (!pins[static_cast<size_t>(tensor)])
        pins[static_cast<size_t>(tensor)] = normalized(rowMajor(extents.size()), extents);
    }
  }
}

/// A tensor that must be stored and that the candidate computes for itself alone; -1 if there is
/// none.
int Prices::keptInside(const Candidate &candidate) const {
  for (const int op : candidate.ops)
    for (const int tensor : problem.opOutputs[static_cast<size_t>(op)])
      if (tensorOf(tensor).mustBeStored && std::ranges::count(candidate.outputs, tensor) == 0)
        return tensor;
  return -1;
}

/// Whether the candidate stores a temporary of more bytes than asked for.
bool Prices::storesTooMuch(const Candidate &candidate) const {
  const std::vector<BodyOp> &body = candidate.kernel.body;
  if (body.size() == 1 && mayBeView(body.front().kind)) return false;
  return std::ranges::any_of(candidate.outputs, [&](const int output) {
    const Tensor &tensor = tensorOf(output);
    return !tensor.isArgument && !tensor.isResult && tensor.bytes() > options.mostTemporary;
  });
}

void Prices::filterCandidates() {
  for (const Candidate &candidate : problem.candidates) {
    const auto has = [&](int op) {
      return std::find(candidate.ops.begin(), candidate.ops.end(), op) != candidate.ops.end();
    };
    bool isAllowed = keptInside(candidate) < 0 && !storesTooMuch(candidate);
    for (const auto &[a, b] : options.forbidFused) isAllowed = isAllowed && !(has(a) && has(b));
    for (const auto &[a, b] : options.forceFused) isAllowed = isAllowed && has(a) == has(b);
    usable.push_back(isAllowed);
  }
  leaveOutUncounted();
}

/// By tensor, the op that masks it from the number of tokens on, where no other op reads it and it
/// need not be stored.
std::map<int, int> Prices::masksOfTokens() const {
  std::map<int, int> masks, readers;
  for (const std::vector<int> &inputs : problem.opInputs)
    for (const int tensor : inputs) ++readers[tensor];
  for (const Candidate &candidate : problem.candidates) {
    const Kernel &kernel = candidate.kernel;
    if (candidate.ops.size() != 1 || kernel.body.size() != 1 || !isTokenMask(kernel.body[0]))
      continue;
    const auto masked = std::ranges::find(kernel.inputs, kernel.body[0].operands[0]);
    const int tensor = candidate.inputs[size_t(masked - kernel.inputs.begin())];
    if (readers[tensor] == 1 && !tensorOf(tensor).mustBeStored)
      masks[tensor] = candidate.ops.front();
  }
  return masks;
}

/// A contraction of packed tokens whose mask is in another kernel computes all rows up to the
/// bound, as a library does: only a kernel with the mask knows the number of tokens, which is on
/// the device. So where a kernel of ours takes both, the one without it is left out.
void Prices::leaveOutUncounted() {
  const std::map<int, int> masks = masksOfTokens();
  if (masks.empty()) return;
  std::map<std::vector<int>, size_t> byOps;
  for (size_t c = 0; c < problem.candidates.size(); ++c)
    if (usable[c]) byOps[problem.candidates[c].ops] = c;
  const auto isOurs = [&](const Candidate &candidate) {
    const SharedSpaces::Entry &entry = spaces.of(
        candidate.kernel, {.softmax = options.softmax, .mostWorkspace = options.mostWorkspace});
    return std::ranges::any_of(entry.spaces.legal, [](const KernelSpaces::Legal &legal) {
      return !legal.isView && !legal.space->family->isLibrary;
    });
  };
  for (const auto &[ops, c] : byOps) {
    const Candidate &candidate = problem.candidates[c];
    if (candidate.kernel.operatorClass() != OperatorClass::contraction) continue;
    for (const int tensor : candidate.outputs) {
      const auto mask = masks.find(tensor);
      if (mask == masks.end()) continue;
      std::vector<int> both = ops;
      both.insert(std::ranges::lower_bound(both, mask->second), mask->second);
      const auto found = byOps.find(both);
      if (found != byOps.end() && isOurs(problem.candidates[found->second])) {
        usable[c] = false;
        uncounted.insert(c);
      }
    }
  }
}

}  // namespace weft::select
