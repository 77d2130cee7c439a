#include "bench/kernels/Table.h"

#include "runtime/measure/Statistics.h"

#include <algorithm>
#include <cstdio>

namespace weft::bench {
namespace {

std::vector<const Candidate *> fastestFirst(std::span<const Candidate> candidates) {
  std::vector<const Candidate *> order;
  for (const Candidate &candidate : candidates)
    if (candidate.failure.empty()) order.push_back(&candidate);
  std::stable_sort(order.begin(), order.end(),
                   [](const Candidate *a, const Candidate *b) { return a->seconds < b->seconds; });
  return order;
}

}  // namespace

void printCase(std::span<const Candidate> candidates, const CopyRates &copy, size_t most) {
  const Kernel &kernel = candidates.front().subject->kernel;
  fmt::print("{}  {:.1f} MB, copy {:.0f} GB/s, of as many bytes {:.0f} GB/s\n",
             candidates.front().subject->name, static_cast<double>(kernel.necessaryBytes()) / 1e6,
             copy.large / 1e9, copy.equal / 1e9);
  const std::vector<const Candidate *> order = fastestFirst(candidates);
  for (size_t i = 0; i < std::min(most, order.size()); ++i) {
    const Candidate &candidate = *order[i];
    fmt::print(
        "  {:9.2f} us  {:5.0f} GB/s  {:5.1f}%  {:5.1f}%  model {:.2f} us  {:3} regs{}{}  err "
        "{:.2f}  {}\n",
        candidate.seconds * 1e6,
        static_cast<double>(kernel.necessaryBytes()) / candidate.seconds / 1e9,
        candidate.copyShare * 100, candidate.equalCopyShare * 100, candidate.modelSeconds * 1e6,
        candidate.registers,
        candidate.spillBytes > 0 ? fmt::format(" spills {} B", candidate.spillBytes) : "",
        candidate.sharedBytes > 0 ? fmt::format(" {} B shared", candidate.sharedBytes) : "",
        candidate.worstError, describe(kernel, candidate.configuration.knobs));
  }
  for (const Candidate &candidate : candidates)
    if (!candidate.failure.empty())
      fmt::print("  FAILED {}: {}\n", describe(kernel, candidate.configuration.knobs),
                 candidate.failure);
  std::fflush(stdout);
}

void printGroups(const std::vector<std::vector<Candidate>> &cases) {
  std::map<std::string, std::vector<double>> shares;
  for (const std::vector<Candidate> &candidates : cases) {
    const std::vector<const Candidate *> order = fastestFirst(candidates);
    shares[candidates.front().subject->group].push_back(
        order.empty() ? 0 : order.front()->copyShare * 100);
  }
  fmt::print(
      "\n{:<14} {:>5} {:>8} {:>8} {:>8}   (best configuration of each case, % of the copy rate)\n",
      "group", "cases", "median", "worst", "best");
  for (auto &[group, values] : shares) {
    const auto [worst, best] = std::ranges::minmax(values);
    fmt::print("{:<14} {:>5} {:>8.1f} {:>8.1f} {:>8.1f}\n", group, values.size(),
               runtime::summarize(values).median, worst, best);
  }
}

nlohmann::json toJson(std::span<const Candidate> candidates, const CopyRates &copy) {
  const Case &subject = *candidates.front().subject;
  nlohmann::json result = {{"case", subject.name},
                           {"group", subject.group},
                           {"bytes", subject.kernel.necessaryBytes()},
                           {"copyBytesPerSecond", copy.large},
                           {"equalCopyBytesPerSecond", copy.equal},
                           {"configurations", nlohmann::json::array()}};
  for (const Candidate &candidate : candidates) {
    nlohmann::json row = {
        {"configuration", describe(subject.kernel, candidate.configuration.knobs)},
        {"registers", candidate.registers},
        {"spillBytes", candidate.spillBytes},
        {"modelSeconds", candidate.modelSeconds}};
    if (candidate.failure.empty())
      row.update({{"seconds", candidate.seconds},
                  {"copyShare", candidate.copyShare},
                  {"equalCopyShare", candidate.equalCopyShare}});
    else row["failure"] = candidate.failure;
    result["configurations"].push_back(row);
  }
  return result;
}

}  // namespace weft::bench
