// Layouts and knobs as text and as strides. canonicalText() decides which configurations are the
// same kernel: layouts are compared by the strides they give, so that extents of 1 and strides that
// equal the dense ones make no difference.
#include "kernel/Configuration.h"

#include "kernel/CanonicalNames.h"
#include "kernel/Error.h"
#include "kernel/LibraryEpilogue.h"
#include "kernel/Schedule.h"

#include <algorithm>
#include <numeric>

namespace weft {

Layout rowMajor(size_t rank) {
  Layout layout;
  layout.order.resize(rank);
  std::iota(layout.order.begin(), layout.order.end(), 0);
  return layout;
}

std::vector<int64_t> stridesOf(const Layout &layout, const std::vector<int64_t> &extents) {
  if (!layout.strides.empty()) return layout.strides;
  if (layout.order.size() != extents.size())
    throw Error::checkFailed("a layout of {} dimensions was given to a tensor of {}",
                             layout.order.size(), extents.size());
  std::vector<int64_t> strides(extents.size());
  int64_t stride = 1;
  for (size_t i = layout.order.size(); i-- > 0;) {
    strides[layout.order[i]] = stride;
    stride *= extents[layout.order[i]];
  }
  return strides;
}

std::vector<Layout> allDenseLayouts(size_t rank) {
  std::vector<Layout> layouts;
  Layout layout = rowMajor(rank);
  do layouts.push_back(layout);
  while (std::next_permutation(layout.order.begin(), layout.order.end()));
  return layouts;
}

std::string print(const Layout &layout, const Kernel &kernel, const Value &value) {
  std::vector<std::string> names;
  for (int dimension : layout.order) names.push_back(kernel.axes[value.axes[dimension]].name);
  const bool letters = std::all_of(names.begin(), names.end(),
                                   [](const std::string &name) { return name.size() == 1; });
  std::string text = fmt::format("{}", fmt::join(names, letters ? "" : ","));
  if (!layout.strides.empty()) text += fmt::format("[{}]", fmt::join(layout.strides, ","));
  if (layout.offset != 0) text += fmt::format("+{}", layout.offset);
  return text;
}

std::string_view nameOf(ReductionMapping mapping) {
  switch (mapping) {
    case ReductionMapping::none: return "none";
    case ReductionMapping::sequential: return "sequential";
    case ReductionMapping::warp: return "warp";
    case ReductionMapping::block: return "block";
    case ReductionMapping::warpColumns: return "warp-columns";
    case ReductionMapping::blockColumns: return "block-columns";
    case ReductionMapping::clusterColumns: return "cluster-columns";
    case ReductionMapping::gridColumns: return "grid-columns";
  }
  return "";
}

bool isRowMapping(ReductionMapping mapping) {
  return mapping == ReductionMapping::warp || mapping == ReductionMapping::block;
}

bool isColumnMapping(ReductionMapping mapping) {
  return mapping == ReductionMapping::warpColumns || mapping == ReductionMapping::blockColumns ||
         mapping == ReductionMapping::clusterColumns || mapping == ReductionMapping::gridColumns;
}

std::string_view nameOf(BlockCombine combine) {
  switch (combine) {
    case BlockCombine::shuffle: return "shuffle";
    case BlockCombine::tree: return "tree";
    case BlockCombine::linear: return "linear";
  }
  return "";
}

std::string_view nameOf(Sm90Schedule schedule) {
  switch (schedule) {
    case Sm90Schedule::cooperative: return "cooperative";
    case Sm90Schedule::pingPong: return "ping-pong";
    case Sm90Schedule::singleConsumer: return "single-consumer";
  }
  return "";
}

std::string libraryVersionText(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string_view nameOf(Family family) {
  switch (family) {
    case Family::loop: return "loop";
    case Family::transpose: return "transpose";
    case Family::gemmFma: return "gemm-fma";
    case Family::view: return "view";
    case Family::library: return "cublaslt";
    case Family::gemmSm90: return "gemm-sm90";
    case Family::gemmSm80: return "gemm-sm80";
  }
  return "";
}

std::string_view familyOf(const Knobs &knobs) { return nameOf(familyIdOf(knobs)); }

bool hasText(const Knobs &knobs) {
  return !std::holds_alternative<ViewKnobs>(knobs) && !std::holds_alternative<LibraryKnobs>(knobs);
}

int familyVersion(std::string_view family) {
  if (!familyNamed(family)) throw Error::checkFailed("unknown kernel family '{}'", family);
  return 1;
}

namespace {

std::string counted(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string describeReduction(const LoopKnobs &knobs) {
  const std::string rows =
      fmt::format("{} a block", counted(knobs.threads / std::max(1, knobs.threadsPerRow), "row"));
  switch (knobs.reduction) {
    case ReductionMapping::none: return fmt::format("{} threads a block", knobs.threads);
    case ReductionMapping::sequential:
      return fmt::format("one thread a row, {} threads a block", knobs.threads);
    case ReductionMapping::warp:
      if (knobs.threadsPerRow == 32) return fmt::format("one warp a row, {}", rows);
      return fmt::format("{} of a warp a row, {}", counted(knobs.threadsPerRow, "lane"), rows);
    case ReductionMapping::block: {
      const std::string combined = knobs.combine == BlockCombine::shuffle
                                       ? ""
                                       : fmt::format(", {} combine", nameOf(knobs.combine));
      if (knobs.threadsPerRow == knobs.threads)
        return fmt::format("one block of {} threads a row{}", knobs.threads, combined);
      return fmt::format("{} threads a row, {}{}", knobs.threadsPerRow, rows, combined);
    }
    case ReductionMapping::warpColumns:
      return fmt::format("{} a column, {} a block", counted(knobs.threadsPerRow, "lane"),
                         counted(knobs.threads / knobs.threadsPerRow, "column"));
    case ReductionMapping::blockColumns:
    case ReductionMapping::clusterColumns:
    case ReductionMapping::gridColumns: {
      std::string shared;
      if (knobs.reduction == ReductionMapping::clusterColumns)
        shared = fmt::format(", clusters of {}", counted(knobs.blocksPerRow, "block"));
      if (knobs.reduction == ReductionMapping::gridColumns)
        shared = fmt::format(", {} of the grid a column", counted(knobs.blocksPerRow, "block"));
      return fmt::format("{} a column, {} a block{}", counted(knobs.threadsPerRow, "thread"),
                         counted(knobs.threads / knobs.threadsPerRow, "column"), shared);
    }
  }
  return "";
}

/// Attributes that differ from their defaults, but for the version, as "tile 20, stages 36".
std::string libraryAttributesText(const LibraryKnobs &knobs) {
  std::vector<std::string> texts;
  const Knobs own = knobs, &usual = defaultSchedule(Family::library);
  for (const ScheduleField &field : scheduleOf(Family::library))
    if (field.get(own) != field.get(usual))
      texts.push_back(fmt::format("{} {}", field.name, field.get(own)));
  return texts.empty() ? "-" : fmt::format("{}", fmt::join(texts, ", "));
}

struct Describe {
  const Kernel &kernel;

  std::string axis(int index) const { return kernel.axes[index].name; }

  std::string operator()(const LoopKnobs &knobs) const {
    std::string text = "scalar";
    if (knobs.vectorAxis >= 0 && knobs.vectorWidth > 1)
      text =
          fmt::format("vector {} x {} along {}", knobs.vectorWidth,
                      nameOf(kernel.values[kernel.outputs.front()].dtype), axis(knobs.vectorAxis));
    else if (knobs.vectorAxis >= 0)
      text = fmt::format("one element a thread along {}", axis(knobs.vectorAxis));
    if (knobs.laneAxis >= 0 && knobs.laneAxis != knobs.vectorAxis)
      text += fmt::format(", lanes along {}", axis(knobs.laneAxis));
    return text + ", " + describeReduction(knobs);
  }
  std::string operator()(const TransposeKnobs &knobs) const {
    return fmt::format("tile {0} x {0}, vector {1}, {2} threads a block", knobs.tile,
                       knobs.vectorWidth, knobs.threads);
  }
  std::string operator()(const FmaGemmKnobs &knobs) const {
    return fmt::format("plain FMA (placeholder), tile {} x {} x {}, {} x {} a thread", knobs.tileM,
                       knobs.tileN, knobs.tileK, knobs.threadM, knobs.threadN);
  }
  std::string operator()(const Sm90GemmKnobs &knobs) const {
    const std::string subtiles =
        knobs.schedule == Sm90Schedule::singleConsumer
            ? ""
            : fmt::format(", {} epilogue stages, group-M {}", knobs.epilogueStages, knobs.groupM);
    return fmt::format(
        "wgmma, {} tiles of {} x {}, {} stages{}{}{}{}", nameOf(knobs.schedule), knobs.tileM,
        knobs.tileN, knobs.stages, subtiles,
        knobs.splitK == 1 ? "" : fmt::format(", k over {} blocks", knobs.splitK),
        knobs.multicastB == 1 ? "" : fmt::format(", k-tiles of B for {} blocks", knobs.multicastB),
        knobs.streamK == 0 ? ""
                           : fmt::format(", stream-K runs of k-tiles for {} blocks", knobs.blocks));
  }
  std::string operator()(const Sm80GemmKnobs &knobs) const {
    return fmt::format("mma.sync, tile {} x {} x {}, {} stages, {} x {} warps, group-M {}",
                       knobs.tileM, knobs.tileN, knobs.tileK, knobs.stages, knobs.warpsM,
                       knobs.warpsN, knobs.groupM);
  }
  std::string operator()(const ViewKnobs &) const { return "view, no kernel"; }
  /// ", epilogue gelu_bias"; empty for the GEMM alone.
  std::string epilogue() const {
    if (kernel.body.size() < 2) return "";
    const LibraryFormOrRejection answer = libraryForm(kernel);
    return answer.form ? ", epilogue " + describe(*answer.form) : "";
  }
  std::string operator()(const LibraryKnobs &knobs) const {
    const std::string with = epilogue();
    if (knobs.algorithm < 0)
      return fmt::format("cuBLASLt{}, first candidate of its heuristic", with);
    LibraryKnobs attributes = knobs;
    attributes.libraryVersion = 0;
    return fmt::format("cuBLASLt {}{}, {}", libraryVersionText(knobs.libraryVersion), with,
                       libraryAttributesText(attributes));
  }
};

/// The layout as groups of axes that one stride serves, slowest first: "a0.a1:64 a2:1". Axes of
/// extent 1 vanish.
std::string canonicalLayout(const Kernel &kernel, const CanonicalNames &names, int valueIndex,
                            const Layout &layout) {
  const Value &value = kernel.values[valueIndex];
  std::vector<int64_t> extents;
  for (int axis : value.axes) extents.push_back(kernel.axes[axis].extent);
  const std::vector<int64_t> strides = stridesOf(layout, extents);
  std::vector<size_t> order;
  for (size_t i = 0; i < extents.size(); ++i)
    if (extents[i] > 1) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return strides[a] > strides[b]; });
  std::string text;
  for (size_t i = 0; i < order.size(); ++i) {
    const bool mergesWithNext =
        i + 1 < order.size() && strides[order[i]] == strides[order[i + 1]] * extents[order[i + 1]];
    text += names.axis(value.axes[order[i]]);
    text += mergesWithNext ? "." : fmt::format(":{} ", strides[order[i]]);
  }
  return fmt::format("{} {}offset {} align {}", names.value(valueIndex), text, layout.offset,
                     layout.alignment);
}

}  // namespace

std::string describe(const Kernel &kernel, const Knobs &knobs) {
  std::string text = std::visit(Describe{kernel}, knobs);
  const Family family = familyIdOf(knobs);
  for (const ScheduleField &field : scheduleOf(family))
    if (const int value = field.get(knobs);
        field.shown == ScheduleField::Shown::suffix && value != field.get(defaultSchedule(family)))
      text += fmt::format(", {} {}", field.name, valueText(field, value, [&](int axis) {
                            return kernel.axes[size_t(axis)].name;
                          }));
  return text;
}

std::string canonicalText(const Kernel &kernel, const Configuration &configuration,
                          std::string_view architecture) {
  if (configuration.inputs.size() != kernel.inputs.size() ||
      configuration.outputs.size() != kernel.outputs.size())
    throw Error::checkFailed(
        "kernel '{}' has {} inputs and {} outputs, its configuration {} and {}", kernel.name,
        kernel.inputs.size(), kernel.outputs.size(), configuration.inputs.size(),
        configuration.outputs.size());
  const CanonicalNames names(kernel);
  std::string text = canonicalText(kernel);
  for (size_t i = 0; i < kernel.inputs.size(); ++i)
    text += fmt::format("layout {}\n",
                        canonicalLayout(kernel, names, kernel.inputs[i], configuration.inputs[i]));
  for (size_t i = 0; i < kernel.outputs.size(); ++i)
    text += fmt::format(
        "layout {}\n", canonicalLayout(kernel, names, kernel.outputs[i], configuration.outputs[i]));
  const std::string_view family = familyOf(configuration.knobs);
  text += fmt::format("family {} {}\n", family, familyVersion(family));
  std::string schedule = scheduleText(configuration.knobs, names);
  std::ranges::replace(schedule, '=', ' ');
  text += fmt::format("knobs{}\n", schedule.empty() ? " -" : schedule);
  return text + fmt::format("target {}\n", architecture);
}

}  // namespace weft
