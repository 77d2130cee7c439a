// The same model without packing; see PaddedPlan.h.
#include "tools/driver/PaddedPlan.h"

#include "kernel/Error.h"
#include "passes/decide/KernelPrices.h"
#include "tools/driver/LayeredModel.h"

namespace weft::driver {
namespace {

/// Presets and configurations get their mask of lengths by --ragged; a file has its own.
ModelFlags withoutPacking(ModelFlags flags) {
  flags.ragged.clear();
  const models::ScoreMask mask = flags.scoreMask();
  if (!flags.isGraphFile() && !mask.padding && !mask.attentionMask)
    flags.masks.push_back("padding");
  return flags;
}

}  // namespace

nlohmann::json paddedPlan(const Compilation &packed, Phase first) {
  const ChoiceFlags &asked = packed.choiceFlags();
  if (packed.model().ragged.empty() || asked.lengths.empty() || !packed.expectedFill()) return {};
  try {
    ChoiceFlags choices = asked;
    choices.lengths.clear();
    choices.fill = packed.expectedFill();
    Compilation padded(withoutPacking(packed.model()), choices, packed.target());
    padded.import(first);
    const DecidedModel decided = decideModel(padded, first);
    return {{"graphSeconds", decision::graphOf(decided.decision.planned.plan).seconds()}};
  } catch (const Error &error) {  // flags that name ops of the packed graph alone, say
    return {{"why", error.what()}};
  }
}

}  // namespace weft::driver
