// Reservoir sampling by class over the enumeration, which is too long to keep.
#include "tests/emulate/Sampling.h"

#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "codegen/families/transpose/TransposeKnobs.h"
#include "codegen/families/view/ViewKnobs.h"

#include <fmt/format.h>

#include <map>
#include <numeric>
#include <random>
#include <set>

namespace weft::emulate {
namespace {

struct CoarseClass {
  std::string operator()(const LoopKnobs &knobs) const {
    return fmt::format("loop vector {} {} {}{}", knobs.vectorWidth, nameOf(knobs.reduction),
                       knobs.threadsPerRow > 32 ? "many" : fmt::format("{}", knobs.threadsPerRow),
                       knobs.laneAxis == knobs.vectorAxis ? "" : " lanes apart");
  }
  std::string operator()(const TransposeKnobs &knobs) const {
    return fmt::format("transpose tile {} vector {}", knobs.tile, knobs.vectorWidth);
  }
  std::string operator()(const FmaGemmKnobs &knobs) const {
    return fmt::format("contraction {}x{}x{} by {}x{}", knobs.tileM, knobs.tileN, knobs.tileK,
                       knobs.threadM, knobs.threadN);
  }
  std::string operator()(const Sm90GemmKnobs &knobs) const {
    return fmt::format("{} tile {}x{}", nameOf(knobs.schedule), knobs.tileM, knobs.tileN);
  }
  std::string operator()(const Sm80GemmKnobs &knobs) const {
    return fmt::format("mma.sync tile {}x{}x{} warps {}x{}", knobs.tileM, knobs.tileN, knobs.tileK,
                       knobs.warpsM, knobs.warpsN);
  }
};

/// The fastest kernel axis of a value under a layout; -1 for rank 0.
AxisId fastestAxis(const Kernel &kernel, ValueId value, const Layout &layout) {
  const std::vector<AxisId> &axes = kernel.values[value].axes;
  return layout.order.empty() ? AxisId() : axes[layout.order.back()];
}

Layout asView(const Kernel &kernel, ValueId value, const Layout &layout, int64_t padding) {
  const std::vector<AxisId> &axes = kernel.values[value].axes;
  Layout view{
      .order = layout.order, .strides = std::vector<int64_t>(axes.size(), 0), .offset = padding};
  int64_t stride = 1;
  for (auto dimension = layout.order.rbegin(); dimension != layout.order.rend(); ++dimension) {
    view.strides[*dimension] = stride;
    stride *= kernel.axes[axes[*dimension]].extent;
    if (dimension == layout.order.rbegin()) stride += padding;
  }
  view.alignment = std::gcd<int64_t>(16, padding * sizeOf(kernel.values[value].dtype));
  return view;
}

/// A configuration drawn uniformly from those offered.
struct Reservoir {
  Configuration chosen;
  uint64_t offered = 0;

  void offer(const Configuration &configuration, std::mt19937_64 &random) {
    if (random() % ++offered == 0) chosen = configuration;
  }
};

}  // namespace

std::string coarseClass(const Knobs &knobs) {
  if (const auto *loop = knobs.getIf<LoopKnobs>()) return CoarseClass{}(*loop);
  if (const auto *transpose = knobs.getIf<TransposeKnobs>()) return CoarseClass{}(*transpose);
  if (const auto *gemm = knobs.getIf<FmaGemmKnobs>()) return CoarseClass{}(*gemm);
  if (const auto *gemm = knobs.getIf<Sm80GemmKnobs>()) return CoarseClass{}(*gemm);
  if (const auto *gemm = knobs.getIf<Sm90GemmKnobs>()) return CoarseClass{}(*gemm);
  return std::string(knobs.family().name);
}

std::string fineClass(const Kernel &kernel, const Configuration &configuration) {
  const auto *loop = configuration.knobs.getIf<LoopKnobs>();
  std::string text = coarseClass(configuration.knobs) + ":";
  const auto add = [&](ValueId value, const Layout &layout) {
    const AxisId fastest = fastestAxis(kernel, value, layout);
    if (loop)
      text += fastest == loop->vectorAxis ? " along"
              : fastest == loop->laneAxis ? " lanes"
                                          : " across";
    else text += fmt::format(" {}", fastest.index);
    if (!layout.strides.empty()) text += " strided";
  };
  for (size_t n = 0; n < kernel.inputs.size(); ++n) add(kernel.inputs[n], configuration.inputs[n]);
  for (size_t n = 0; n < kernel.outputs.size(); ++n)
    add(kernel.outputs[n], configuration.outputs[n]);
  return text;
}

std::vector<Configuration> sample(const Kernel &kernel, const Device &device,
                                  const LayoutConstraints &constraints, size_t limit) {
  std::mt19937_64 random(17);
  std::map<std::string, Reservoir> coarse, fine;
  forEachConfiguration(kernel, device, constraints, [&](const Configuration &configuration) {
    // Copy engines and products of warpgroups are not emulated.
    if (!configuration.knobs.family().hasText() || configuration.knobs.is<Sm90GemmKnobs>())
      return true;
    coarse[coarseClass(configuration.knobs)].offer(configuration, random);
    fine[fineClass(kernel, configuration)].offer(configuration, random);
    return true;
  });
  std::set<Configuration> chosen;
  for (const auto &[name, reservoir] : coarse) chosen.insert(reservoir.chosen);
  std::vector<std::string> names;
  for (const auto &[name, reservoir] : fine) names.push_back(name);
  std::shuffle(names.begin(), names.end(), random);
  for (const std::string &name : names)
    if (chosen.size() < limit) chosen.insert(fine.at(name).chosen);
  return {chosen.begin(), chosen.end()};
}

Configuration asViews(const Kernel &kernel, const Configuration &configuration, int64_t padding) {
  Configuration views{.knobs = configuration.knobs};
  for (size_t n = 0; n < kernel.inputs.size(); ++n)
    views.inputs.push_back(asView(kernel, kernel.inputs[n], configuration.inputs[n], padding));
  for (size_t n = 0; n < kernel.outputs.size(); ++n)
    views.outputs.push_back(asView(kernel, kernel.outputs[n], configuration.outputs[n], padding));
  return views;
}

}  // namespace weft::emulate
