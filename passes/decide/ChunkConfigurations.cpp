// Chunks at their measurements or by the model; see ChunkConfigurations.h.
#include "passes/decide/ChunkConfigurations.h"

#include "kernel/Error.h"
#include "passes/configure/FamilyConfigurations.h"
#include "plan/PlanChunks.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace weft::decision {
namespace {

class ChunkConfigurer {
public:
  explicit ChunkConfigurer(const Chunking &chunks) : chunks(chunks) {}

  /// Of all chunks, in their order. Throws an Error where one cannot be.
  void configure(ChunkCut &cut) {
    for (size_t chunk = 0; chunk < cut.kernels.size(); ++chunk)
      configureOnce(cut.kernels[chunk], cut.draft.planned.kernels[size_t(cut.wholes[chunk])]);
    if (!cut.rejection.empty()) throw Error::unsupported("{}", cut.rejection);
  }

private:
  /// Chunks of one size that differ in their names alone are configured as the first of them. A
  /// modelled price is scaled by measured over modelled time of the whole kernel.
  void configureOnce(ChosenKernel &chunk, const ChosenKernel &whole) {
    Kernel unnamed = chunk.kernel;
    unnamed.name.clear();
    ChunkConfigurations &all = chunks.known ? *chunks.known : own;
    const ChunkConfigurations::Known *known =
        all.find(whole.candidateName, unnamed, chunk.configuration);
    if (!known) {
      const Configuration asked = chunk.configuration;
      const bool isItsMeasurement = configure(chunk);
      known = &all.add({.candidate = whole.candidateName,
                        .kernel = std::move(unnamed),
                        .asked = asked,
                        .chosen = chunk.configuration,
                        .cost = chunk.cost,
                        .isItsMeasurement = isItsMeasurement});
    }
    chunk.configuration = known->chosen;
    chunk.cost = known->cost;
    if (known->isItsMeasurement || chunk.cost.measured || !whole.cost.measured) return;
    const double modelled = analytic->cost(whole.kernel, whole.configuration).seconds;
    if (modelled > 0) chunk.cost.seconds *= whole.cost.seconds / modelled;
  }

  /// The chunk's fastest measurement in these layouts: true. If it is unmeasured, the knobs of the
  /// whole kernel, or the model's best if a chunk does not accept those.
  bool configure(ChosenKernel &chunk) const {
    const Device &device = chunks.prices->device();
    for (const PricedConfiguration &row :
         chunks.prices->measuredAs(chunk.kernel, chunk.configuration)) {
      if (!isLegal(chunk.kernel, row.configuration, device)) continue;
      chunk.configuration = row.configuration;
      chunk.cost = row.cost;
      return true;
    }
    if (!isLegal(chunk.kernel, chunk.configuration, device)) takeBestModelled(chunk);
    chunk.cost = chunks.prices->cost(chunk.kernel, chunk.configuration);
    return false;
  }

  void takeBestModelled(ChosenKernel &chunk) const {
    std::optional<std::pair<double, Configuration>> best;
    forEachConfiguration(chunk.kernel, chunks.prices->device(), layoutsOf(chunk.configuration),
                         [&](const Configuration &candidate) {
                           const double seconds = analytic->cost(chunk.kernel, candidate).seconds;
                           if (!best || seconds < best->first) best.emplace(seconds, candidate);
                           return true;
                         });
    if (!best)
      throw Error::unsupported("kernel '{}' has no configuration on a chunk", chunk.kernel.name);
    chunk.configuration = std::move(best->second);
  }

  const Chunking &chunks;
  const std::unique_ptr<CostModel> analytic = analyticCostModel(chunks.prices->device());
  ChunkConfigurations own;
};

/// The draft in chunks; throws an Error saying why not.
PlanDraft drafted(const PlanDraft &draft, const Chunking &chunks) {
  const ChunkChain chain = chunkChain(draft, chunks.count, chunks.isPipelined);
  const PlanTensor &largest = draft.planned.plan.tensors[size_t(chain.inner.front())];
  ChunkConfigurer configurer(chunks);
  std::string reasons;
  for (const int dimension : dimensionsToCut(draft, chain)) try {
      ChunkCut cut = cutAlong(draft, chain, dimension);
      configurer.configure(cut);
      return inChunks(std::move(cut), chain, chunks.prices->device());
    } catch (const Error &error) {
      reasons += fmt::format("; along {}: {}", largest.axes[size_t(dimension)], error.what());
    }
  if (reasons.empty() && chunks.isPipelined)
    reasons = "; it has no outer axis of more than one index";
  throw Error::unsupported("'{}' is not cut{}", largest.name, reasons);
}

}  // namespace

const ChunkConfigurations::Known *ChunkConfigurations::find(const std::string &candidate,
                                                            const Kernel &kernel,
                                                            const Configuration &asked) const {
  const auto found = std::ranges::find_if(all, [&](const Known &one) {
    return one.asked == asked && one.candidate == candidate && one.kernel == kernel;
  });
  return found == all.end() ? nullptr : &*found;
}

PlanDraft draftInChunks(const PlanDraft &whole, const Chunking &chunks) {
  try {
    return drafted(whole, chunks);
  } catch (const Error &error) {
    throw Error::unsupported("no plan in {} {}: {}", chunks.count,
                             chunks.isPipelined ? "slices" : "chunks", error.what());
  }
}

}  // namespace weft::decision
