// A kernel that a library may compute, on a GPU: random inputs, what fp64 gives, and runs in any
// configuration with poisoned outputs and guards around them.
#pragma once

#include "codegen/families/library/LibraryGemm.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "kernel/reference/PointEvaluator.h"
#include "kernel/reference/Rounding.h"
#include "kernel/reference/StoredElement.h"
#include "passes/configure/Family.h"
#include "runtime/cuda/CublasLt.h"
#include "runtime/cuda/Cuda.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace weft::gpu {

namespace cuda = runtime::cuda;

inline constexpr int64_t guardBytes = 512;  ///< before and after every output
inline constexpr auto poison = std::byte(0xff);

inline const runtime::CublasLt &library() {
  static const runtime::CublasLt loaded;
  return loaded;
}

/// Calls visit(logical index, offset in memory, coordinates) for every element.
template <typename Visit>
void forEachElement(const std::vector<int64_t> &extents, const Layout &layout, Visit &&visit) {
  const std::vector<int64_t> strides = stridesOf(layout, extents);
  const int64_t count =
      std::accumulate(extents.begin(), extents.end(), int64_t(1), std::multiplies<>());
  std::vector<int64_t> at(extents.size());
  for (int64_t index = 0; index < count; ++index) {
    int64_t rest = index, offset = 0;
    for (size_t d = extents.size(); d-- > 0; rest /= extents[d]) {
      at[d] = rest % extents[d];
      offset += at[d] * strides[d];
    }
    visit(index, offset, std::span<const int64_t>(at));
  }
}

/// One kernel with its inputs and outputs in logical order, kept for all layouts.
class Subject {
public:
  explicit Subject(Kernel given, double spread = 1)
      : kernel(std::move(given)),
        type(kernel.values[size_t(kernel.outputs[0])].dtype),
        form(libraryForm(kernel).value()) {
    std::mt19937 random(17);
    std::uniform_real_distribution<double> uniform(-spread, spread);
    for (size_t input = 0; input < kernel.inputs.size(); ++input) {
      values.emplace_back(size_t(kernel.elements(kernel.inputs[input])));
      for (double &value : values.back())
        value = reference::roundTo(typeOfInput(input), uniform(random));
    }
    evaluate();
  }
  Subject(const Subject &) = delete;

  std::vector<std::byte> stored(size_t input, const Layout &layout) const {
    const DType own = typeOfInput(input);
    std::vector<std::byte> bytes(values[input].size() * size_t(sizeOf(own)));
    forEachElement(extentsOf(kernel, kernel.inputs[input]), layout,
                   [&](int64_t index, int64_t offset, auto) {
                     reference::storeElement(own, &bytes[size_t(offset * sizeOf(own))],
                                             values[input][size_t(index)]);
                   });
    return bytes;
  }

  /// The largest error of an output over what fp32 accumulation and one rounding allow; infinite
  /// where there is NaN.
  double worst(size_t output, std::span<const std::byte> bytes, const Layout &layout) const {
    double ratio = 0;
    forEachElement(
        extentsOf(kernel, kernel.outputs[output]), layout,
        [&](int64_t index, int64_t offset, auto) {
          const double got = reference::loadElement(type, &bytes[size_t(offset * sizeOf(type))]);
          const reference::Point &point = expected[output][size_t(index)];
          const double one = std::abs(got - point.value) / reference::tolerance(point, type);
          ratio = std::isnan(one) ? HUGE_VAL : std::max(ratio, one);
        });
    return ratio;
  }

  /// Elements that are further from fp64 than that, and by more than `slack`.
  int64_t wrong(size_t output, std::span<const std::byte> bytes, const Layout &layout,
                double slack = 0) const {
    int64_t count = 0;
    forEachElement(
        extentsOf(kernel, kernel.outputs[output]), layout,
        [&](int64_t index, int64_t offset, auto) {
          const double got = reference::loadElement(type, &bytes[size_t(offset * sizeOf(type))]);
          const reference::Point &point = expected[output][size_t(index)];
          count += !(std::abs(got - point.value) <= reference::tolerance(point, type) + slack);
        });
    return count;
  }

  /// Another value in place of an element, before anything is stored; what is expected is not
  /// evaluated anew.
  void set(size_t input, size_t index, double value) { values[input][index] = value; }
  const std::vector<reference::Point> &expectedOf(size_t output) const { return expected[output]; }

  const Kernel kernel;
  const DType type;  ///< of the outputs
  const LibraryForm form;

private:
  DType typeOfInput(size_t input) const {
    return kernel.values[size_t(kernel.inputs[input])].dtype;
  }

  void evaluate() {
    std::vector<reference::ElementReader> readers;
    for (size_t input = 0; input < kernel.inputs.size(); ++input)
      readers.push_back([this, input, extents = extentsOf(kernel, kernel.inputs[input])](
                            std::span<const int64_t> at) {
        int64_t index = 0;
        for (size_t d = 0; d < extents.size(); ++d) index = index * extents[d] + at[d];
        return values[input][size_t(index)];
      });
    reference::PointEvaluator evaluator(kernel, readers, {});
    for (size_t output = 0; output < kernel.outputs.size(); ++output) {
      expected.emplace_back();
      const std::vector<int64_t> extents = extentsOf(kernel, kernel.outputs[output]);
      forEachElement(extents, rowMajor(extents.size()),
                     [&](int64_t, int64_t, std::span<const int64_t> at) {
                       expected[output].push_back(evaluator.output(output, at));
                     });
    }
  }

  std::vector<std::vector<double>> values;
  std::vector<std::vector<reference::Point>> expected;
};

/// Device copies of a subject's tensors in one configuration.
class Placed {
public:
  Placed(const Subject &subject, const Configuration &configuration)
      : subject(subject), configuration(configuration) {
    for (size_t input = 0; input < subject.kernel.inputs.size(); ++input) {
      const std::vector<std::byte> bytes = subject.stored(input, configuration.inputs[input]);
      inputs.emplace_back(int64_t(bytes.size()));
      cuda::upload(inputs.back().address(), bytes);
    }
    for (const int output : subject.kernel.outputs)
      outputs.emplace_back(subject.kernel.bytes(output) + 2 * guardBytes);
  }

  /// Of operands of 8-bit floats, on the device.
  void setScales(float a, float b) {
    const float both[] = {a, 0, 0, 0, b, 0, 0, 0};  // each at a multiple of 16 bytes
    scales = cuda::Buffer(sizeof both);
    cuda::upload(scales.address(), std::as_bytes(std::span(both)));
  }

  /// Poisons, runs, and returns the bytes of every output; fails if bytes around one changed.
  std::vector<std::vector<std::byte>> run(const runtime::PreparedGemm &gemm,
                                          bool captured = false) {
    for (const cuda::Buffer &output : outputs)
      cuda::fill(output.address(), uint8_t(poison), output.bytes());
    const cuda::Buffer workspace =
        gemm.workspaceBytes() > 0 ? cuda::Buffer(gemm.workspaceBytes()) : cuda::Buffer();
    const runtime::GemmTensors tensors = addresses();
    const auto enqueue = [&](cuda::StreamHandle *on) {
      gemm.enqueue(tensors, workspace.address(), on);
    };
    if (captured) {
      const cuda::Graph graph = cuda::Graph::capture(stream, enqueue);
      graph.launch(stream.handle());
      stream.synchronize();
    } else {
      enqueue(stream.handle());
      stream.synchronize();
    }
    std::vector<std::vector<std::byte>> results;
    for (const cuda::Buffer &output : outputs) {
      std::vector<std::byte> bytes(size_t(output.bytes()));
      cuda::download(bytes, output.address());
      const auto isPoison = [](std::byte byte) { return byte == poison; };
      const auto begin = bytes.begin() + guardBytes, end = bytes.end() - guardBytes;
      CHECK(
          (std::all_of(bytes.begin(), begin, isPoison) && std::all_of(end, bytes.end(), isPoison)));
      results.emplace_back(begin, end);
    }
    return results;
  }

  int64_t wrong(const std::vector<std::vector<std::byte>> &results) const {
    int64_t count = 0;
    for (size_t output = 0; output < results.size(); ++output)
      count += subject.wrong(output, results[output], configuration.outputs[output]);
    return count;
  }
  int64_t wrong(const runtime::PreparedGemm &gemm, bool captured = false) {
    return wrong(run(gemm, captured));
  }

private:
  runtime::GemmTensors addresses() const {
    const auto of = [&](int value) -> cuda::DevicePointer {
      const auto input = std::ranges::find(subject.kernel.inputs, value),
                 output = std::ranges::find(subject.kernel.outputs, value);
      if (input != subject.kernel.inputs.end())
        return inputs[size_t(input - subject.kernel.inputs.begin())].address();
      if (output != subject.kernel.outputs.end())
        return outputs[size_t(output - subject.kernel.outputs.begin())].address() + guardBytes;
      return 0;
    };
    const LibraryForm &form = subject.form;
    const std::vector<ValueId> &operands = subject.kernel.body[0].operands;
    return {.a = of(operands[0]),
            .b = of(operands[1]),
            .result = of(form.result),
            .residual = of(form.residual),
            .auxiliary = of(form.auxiliary),
            .vector = of(form.bias >= 0 ? form.bias : form.gradient),
            .scaleA = scales.bytes() ? scales.address() : 0,
            .scaleB = scales.bytes() ? scales.address() + 16 : 0};
  }

  const Subject &subject;
  const Configuration configuration;
  std::vector<cuda::Buffer> inputs, outputs;
  cuda::Buffer scales;
  cuda::Stream stream;
};

inline std::vector<Configuration> libraryConfigurations(const Kernel &kernel) {
  std::vector<Configuration> result;
  forEachConfiguration(kernel, findDevice("h200"), {}, [&](const Configuration &configuration) {
    if (configuration.knobs.is<LibraryKnobs>()) result.push_back(configuration);
    return true;
  });
  return result;
}

inline std::string layoutsText(const Configuration &configuration) {
  return fmt::format("{},{}->{}", fmt::join(configuration.inputs[0].order, ""),
                     fmt::join(configuration.inputs[1].order, ""),
                     fmt::join(configuration.outputs[0].order, ""));
}

}  // namespace weft::gpu
