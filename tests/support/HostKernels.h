// Kernels of a plan as host functions in fp64, for the stand-in for the driver: each computes what
// its region says, on the memory and with the numbers that its launch is given, whatever family it
// is of. Faults can be planted in one of them.
#pragma once

#include "kernel/reference/PointEvaluator.h"
#include "kernel/reference/Rounding.h"
#include "kernel/reference/StoredElement.h"
#include "tests/support/fakecuda/FakeCuda.h"
#include "tools/driver/Emission.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>

namespace weft::test {

enum class Fault { wrongElement, unwrittenElement, notANumber, otherTensor };

class HostKernels {
public:
  /// Kernels whose exact texts are the requests of `emitted`; a text that is there already stays.
  void add(const PlannedKernels &planned, const driver::EmittedPlan &emitted) {
    const auto own = std::make_shared<PlannedKernels>(planned);
    for (size_t request = 0; request < emitted.requests.size(); ++request)
      for (const size_t kernel : emitted.kernelsOfRequest[request])
        known["host\n" + emitted.requests[request].text].push_back(
            {.planned = own, .index = kernel});
  }
  /// In kernels whose name begins so, of the plan with this extent of axis "j", or of every plan
  /// (0).
  void plant(std::string kernel, Fault fault, int64_t extent = 0) {
    faulty = std::move(kernel);
    planted = fault;
    faultyExtent = extent;
  }
  void heal() { planted.reset(); }

  std::function<void()> operator()(const std::string &cubin, const std::string &,
                                   void **arguments) const {
    for (const Known &one : known.at(cubin))
      if (takes(one.entry(), arguments)) return launch(one, arguments);
    throw std::logic_error("a kernel was launched with other numbers than any plan gives it");
  }

private:
  struct Known {
    std::shared_ptr<const PlannedKernels> planned;
    size_t index = 0;
    const PlanKernel &entry() const { return planned->plan.kernels[index]; }
    const Kernel &kernel() const { return planned->kernels[index].kernel; }
  };
  struct Operand {
    const PlanTensor *tensor = nullptr;
    std::byte *memory = nullptr;
    std::byte *at(std::span<const int64_t> coordinates) const {
      int64_t element = 0;
      for (size_t d = 0; d < coordinates.size(); ++d)
        element += coordinates[d] * tensor->strides[d];
      return memory + element * sizeOf(type());
    }
    DType type() const { return tensor->dtype; }
  };

  /// One text may be of several kernels, chunks or repeats: they are told apart by the numbers that
  /// they are given.
  static bool takes(const PlanKernel &entry, void **arguments) {
    for (size_t n = 0; n < entry.parameters.size(); ++n) {
      if (isNumber(entry.parameters[n].kind) &&
          *static_cast<uint32_t *>(arguments[n]) != uint32_t(entry.parameters[n].value))
        return false;
    }
    return true;
  }

  /// The memory of a tensor that the launch is given; a kernel may be given one as an address or
  /// within a map.
  static Operand operandOf(int tensor, const Known &one, void **arguments) {
    for (size_t n = 0; n < one.entry().parameters.size(); ++n)
      if (one.entry().parameters[n].tensor == tensor) {
        std::byte *memory = nullptr;
        std::copy_n(static_cast<const char *>(arguments[n]), sizeof memory,
                    reinterpret_cast<char *>(&memory));
        return {.tensor = &one.planned->plan.tensors[size_t(tensor)], .memory = memory};
      }
    throw std::logic_error("a kernel is not given a tensor that it takes");
  }

  template <typename Visit>
  static void forEachElement(const PlanTensor &tensor, Visit &&visit) {
    std::vector<int64_t> at(tensor.extents.size(), 0);
    for (bool more = true; more;) {
      visit(at);
      more = false;
      for (size_t d = at.size(); d-- > 0 && !more;) {
        more = ++at[d] < tensor.extents[d];
        if (!more) at[d] = 0;
      }
    }
  }

  std::function<void()> launch(const Known &one, void **arguments) const {
    std::vector<Operand> inputs, outputs;
    for (const int input : one.entry().inputs) inputs.push_back(operandOf(input, one, arguments));
    for (const int output : one.entry().outputs)
      outputs.push_back(operandOf(output, one, arguments));
    const uint64_t *dropout = nullptr;
    for (size_t n = 0; n < one.entry().parameters.size(); ++n)
      if (one.entry().parameters[n].kind == ParameterKind::dropoutKey)
        dropout = *static_cast<const uint64_t **>(arguments[n]);
    std::optional<Fault> fault = one.entry().name.starts_with(faulty) ? planted : std::nullopt;
    if (faultyExtent > 0 && one.planned->plan.dims.at("j") != faultyExtent) fault.reset();
    return [=] { run(one.kernel(), inputs, outputs, dropout, fault); };
  }

  static void run(const Kernel &kernel, std::vector<Operand> inputs,
                  const std::vector<Operand> &outputs, const uint64_t *dropout,
                  std::optional<Fault> fault) {
    if (fault == Fault::otherTensor) exchangeTwo(inputs);
    std::vector<reference::ElementReader> readers;
    for (const Operand &input : inputs)
      readers.push_back([&input](std::span<const int64_t> at) {
        return reference::loadElement(input.type(), input.at(at));
      });
    reference::PointEvaluator points(
        kernel, readers,
        {.seed = dropout ? dropout[0] : 0, .step = dropout ? dropout[1] : 0, .stream = 0});
    std::vector<std::vector<double>> results(
        outputs.size());  // written when all is read: kernels may work in place
    for (size_t output = 0; output < outputs.size(); ++output)
      forEachElement(*outputs[output].tensor, [&](const std::vector<int64_t> &at) {
        results[output].push_back(points.output(output, at).value);
      });
    for (size_t output = 0; output < outputs.size(); ++output) {
      const Operand &to = outputs[output];
      size_t next = 0;
      forEachElement(*to.tensor, [&](const std::vector<int64_t> &at) {
        const bool isLast = next + 1 == results[output].size();
        double value = results[output][next++];
        if (isLast && fault == Fault::unwrittenElement) return;
        if (isLast && fault == Fault::wrongElement) value += 1;
        if (isLast && fault == Fault::notANumber) value = std::numeric_limits<double>::quiet_NaN();
        reference::storeElement(to.type(), to.at(at), reference::roundTo(to.type(), value));
      });
    }
  }

  /// Two inputs of one shape read each other's memory.
  static void exchangeTwo(std::vector<Operand> &inputs) {
    for (size_t a = 0; a < inputs.size(); ++a)
      for (size_t b = a + 1; b < inputs.size(); ++b)
        if (inputs[a].tensor != inputs[b].tensor &&
            inputs[a].tensor->extents == inputs[b].tensor->extents &&
            inputs[a].tensor->strides == inputs[b].tensor->strides)
          return std::swap(inputs[a].memory, inputs[b].memory);
    throw std::logic_error("the kernel has no two inputs of one shape");
  }

  std::map<std::string, std::vector<Known>> known;  ///< by cubin
  std::string faulty;
  std::optional<Fault> planted;
  int64_t faultyExtent = 0;
};

}  // namespace weft::test
