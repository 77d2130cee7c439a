// Text of proposals; see Proposal.h.
#include "passes/select/Proposal.h"

#include <utility>

namespace weft {
namespace {

constexpr std::pair<bool FusionPatterns::*, std::string_view> patternWords[] = {
    {&FusionPatterns::producerConsumer, "producer-consumer"},
    {&FusionPatterns::reductionConsumer, "reduction-consumer"},
    {&FusionPatterns::sharedInput, "shared-input"},
    {&FusionPatterns::launchMerging, "launch-merging"}};
constexpr std::string_view separator = " + ";

}  // namespace

std::string text(const FusionPatterns &patterns) {
  std::string words;
  for (const auto &[member, word] : patternWords)
    if (patterns.*member) words.append(words.empty() ? "" : separator).append(word);
  return words;
}

std::optional<FusionPatterns> parseFusionPatterns(std::string_view words) {
  FusionPatterns patterns;
  std::string_view rest = words;
  for (const auto &[member, word] : patternWords) {
    if (!rest.starts_with(word)) continue;
    patterns.*member = true;
    rest.remove_prefix(word.size());
    if (rest.starts_with(separator)) rest.remove_prefix(separator.size());
  }
  if (text(patterns) != words) return std::nullopt;
  return patterns;
}

std::string select::text(const Proposal &proposal) {
  switch (proposal.by) {
    case Proposal::By::op: return "alone";
    case Proposal::By::packing: return "pack: at load";
    case Proposal::By::fusion: return "fuse: " + weft::text(proposal.patterns);
  }
  return {};
}

}  // namespace weft
