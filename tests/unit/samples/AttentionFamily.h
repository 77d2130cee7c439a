// A kernel family that only tests have: fused attentions in the logical order of every tensor, at a
// price that a test sets. It lowers nothing.
#pragma once

#include "kernel/AttentionRegion.h"
#include "kernel/Family.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Family.h"

namespace weft::samples {

struct SampleAttentionKnobs {
  int tile = 64;
  static const Family &family();
  auto operator<=>(const SampleAttentionKnobs &) const = default;
};

namespace sample_attention {

/// What tests set: the family cannot be removed once it is registered.
struct Setting {
  bool isOffered = true;
  double seconds = 1e-9;
};
inline Setting &setting() {
  static Setting setting;
  return setting;
}

inline std::string describe(const Kernel &, const Knobs &knobs) {
  return fmt::format("tiles of {} keys", knobs.get<SampleAttentionKnobs>().tile);
}

inline SpaceOrRejection space(const Kernel &kernel, const Device &) {
  AttentionRegionOrRejection recognised = attentionRegion(kernel);
  if (!recognised.region) return {.reason = std::move(recognised.rejection)};
  if (!setting().isOffered) return {.reason = "it is switched off"};
  LayoutTuple tuple;
  for (const int value : operandValues(kernel))
    tuple.push_back(
        normalized(rowMajor(kernel.values[size_t(value)].axes.size()), extentsOf(kernel, value)));
  return {.space = ConfigurationSpace{.family = &SampleAttentionKnobs::family(),
                                      .tuples = {std::move(tuple)},
                                      .knobs = {SampleAttentionKnobs{}}}};
}

inline Cost price(const Kernel &kernel, const Configuration &, const Device &) {
  return {.seconds = setting().seconds, .bytesMoved = kernel.necessaryBytes()};
}

inline const ScheduleField fields[] = {scheduleField<&SampleAttentionKnobs::tile>(
    {.name = "tile", .rowName = "tile", .meaning = "keys of a tile", .least = 16})};

}  // namespace sample_attention

inline const Family sampleAttentionFamily = {
    .name = "sample-attention",
    .takesAttention = true,
    .schedule = sample_attention::fields,
    .defaults = defaultKnobs<SampleAttentionKnobs>,
    .compare = compareKnobs<SampleAttentionKnobs>,
    .describe = sample_attention::describe,
    .space = sample_attention::space,
    .price = sample_attention::price,
};
inline const Family &SampleAttentionKnobs::family() { return sampleAttentionFamily; }

}  // namespace weft::samples
