// Text of rewrites; see Rewrite.h.
#include "passes/select/Rewrite.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace weft {
namespace {

struct RewriteText {
  Rewrite::Kind kind;
  std::string_view words;
  bool hasSubject = true;
};

/// Words that begin like others come before them.
constexpr std::array texts = {
    RewriteText{Rewrite::Kind::stackInputGradients, "stack-dX-"},
    RewriteText{Rewrite::Kind::stackWeightGradients, "stack-dW-"},
    RewriteText{Rewrite::Kind::stack, "stack-"},
    RewriteText{Rewrite::Kind::recompute, "recompute-"},
    RewriteText{Rewrite::Kind::decomposeSoftmax, "decompose-softmax-"},
    RewriteText{Rewrite::Kind::recomposeSoftmax, "recompose-softmax-"},
    RewriteText{Rewrite::Kind::fuseAttention, "fuse-attention", false},
    RewriteText{Rewrite::Kind::allGradients, "all-gradients", false},
    RewriteText{Rewrite::Kind::decomposeNorms, "decompose-norms", false},
    RewriteText{Rewrite::Kind::deferNorms, "defer-norms", false},
    RewriteText{Rewrite::Kind::rotateInStack, "turn-in-"},
    RewriteText{Rewrite::Kind::rotateApart, "turn-apart-"},
    RewriteText{Rewrite::Kind::atSite, "for-"},
};

}  // namespace

std::string text(const Rewrite &rewrite) {
  const auto *known = std::ranges::find(texts, rewrite.kind, &RewriteText::kind);
  return (known == texts.end() ? "" : std::string(known->words)) + rewrite.subject;
}

Rewrite parseRewrite(std::string_view text) {
  for (const RewriteText &known : texts)
    if (known.hasSubject ? text.starts_with(known.words) && text.size() > known.words.size()
                         : text == known.words)
      return {.kind = known.kind, .subject = std::string(text.substr(known.words.size()))};
  return {.kind = Rewrite::Kind::other, .subject = std::string(text)};
}

std::vector<std::string> textsOf(const std::vector<Rewrite> &rewrites) {
  std::vector<std::string> all;
  for (const Rewrite &rewrite : rewrites) all.push_back(text(rewrite));
  return all;
}

std::string variantName(const std::vector<Rewrite> &rewrites) {
  return rewrites.empty() ? "unchanged" : fmt::format("{}", fmt::join(textsOf(rewrites), "+"));
}

}  // namespace weft
