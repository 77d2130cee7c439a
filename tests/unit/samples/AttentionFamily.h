// Kernel families that only tests have: fused attentions, and their backward passes, in the logical
// order of every tensor, at a price that a test sets. They lower nothing.
#pragma once

#include "kernel/AttentionBackwardRegion.h"
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

struct SampleAttentionBackwardKnobs {
  int tile = 64;
  static const Family &family();
  auto operator<=>(const SampleAttentionBackwardKnobs &) const = default;
};

namespace sample_attention {

/// What tests set: the family cannot be removed once it is registered.
struct Setting {
  bool isOffered = true, isBackwardOffered = true;
  double seconds = 1e-9;
};
inline Setting &setting() {
  static Setting setting;
  return setting;
}

template <typename Struct>
std::string describe(const Kernel &, const Knobs &knobs) {
  return fmt::format("tiles of {} keys", knobs.get<Struct>().tile);
}

/// Of a kernel that was recognised.
template <typename Struct>
Expected<ConfigurationSpace, Reason> spaceOf(const Kernel &kernel, const std::string &rejection,
                                             bool isOffered) {
  if (!rejection.empty()) return rejected(rejection);
  if (!isOffered) return rejected("it is switched off");
  LayoutTuple tuple;
  for (const ValueId value : operandValues(kernel))
    tuple.push_back(
        normalized(rowMajor(kernel.values[size_t(value)].axes.size()), extentsOf(kernel, value)));
  return ConfigurationSpace{
      .family = &Struct::family(), .tuples = {std::move(tuple)}, .knobs = {Struct{}}};
}

inline Expected<ConfigurationSpace, Reason> space(const Kernel &kernel, const Device &) {
  return spaceOf<SampleAttentionKnobs>(kernel, reasonOf(attentionRegion(kernel)),
                                       setting().isOffered);
}
inline Expected<ConfigurationSpace, Reason> backwardSpace(const Kernel &kernel, const Device &) {
  return spaceOf<SampleAttentionBackwardKnobs>(kernel, reasonOf(attentionBackwardRegion(kernel)),
                                               setting().isBackwardOffered);
}

inline Cost price(const Kernel &kernel, const Configuration &, const Device &) {
  return {.seconds = setting().seconds, .bytesMoved = kernel.necessaryBytes()};
}

inline const ScheduleField fields[] = {scheduleField<&SampleAttentionKnobs::tile>(
    {.name = "tile", .rowName = "tile", .meaning = "keys of a tile", .least = 16})};
inline const ScheduleField backwardFields[] = {scheduleField<&SampleAttentionBackwardKnobs::tile>(
    {.name = "tile", .rowName = "tile", .meaning = "keys of a tile", .least = 16})};

}  // namespace sample_attention

inline const Family sampleAttentionFamily = {
    .name = "sample-attention",
    .takesAttention = true,
    .schedule = sample_attention::fields,
    .defaults = defaultKnobs<SampleAttentionKnobs>,
    .compare = compareKnobs<SampleAttentionKnobs>,
    .describe = sample_attention::describe<SampleAttentionKnobs>,
    .space = sample_attention::space,
    .price = sample_attention::price,
};
inline const Family &SampleAttentionKnobs::family() { return sampleAttentionFamily; }

inline const Family sampleAttentionBackwardFamily = {
    .name = "sample-attention-backward",
    .takesAttentionBackward = true,
    .schedule = sample_attention::backwardFields,
    .defaults = defaultKnobs<SampleAttentionBackwardKnobs>,
    .compare = compareKnobs<SampleAttentionBackwardKnobs>,
    .describe = sample_attention::describe<SampleAttentionBackwardKnobs>,
    .space = sample_attention::backwardSpace,
    .price = sample_attention::price,
};
inline const Family &SampleAttentionBackwardKnobs::family() {
  return sampleAttentionBackwardFamily;
}

}  // namespace weft::samples
