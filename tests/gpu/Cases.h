// What the gpu tests run: a kernel in one configuration each. Deterministic; grouped by what they
// cover.
#pragma once

#include "kernel/Configuration.h"
#include "tests/unit/samples/AdversarialScores.h"

#include <string>
#include <vector>

namespace weft::gputest {

/// What inputs hold.
///   usual   what the ops ask for (runtime/verify/KernelInputs.h)
///   whole   whole numbers from -2 to 2: sums of some hundred products of them are exact, and so
///           must the result be
///   spread  of every order of magnitude that the type has, beyond it too
///   masked  as usual, but "mask" is 0 or -inf (samples::isSeen)
///   hard    as usual, but "q" and "keys" give the adversarial scores of Case::scores; what a
///           backward pass reads of forward is that of these scores
///   unread  as usual, but of NaN and infinity where no kernel of attention may read
enum class Inputs { usual, whole, spread, masked, hard, unread };

struct Case {
  std::string name;  ///< "extents/softmax_f16/k127 hbjk -> hbjk, vector 8 ..."
  Kernel kernel;
  Configuration configuration;
  Inputs inputs = Inputs::usual;
  samples::ScoreKind scores = samples::ScoreKind::usual;
};

/// Every case of every family (tests/gpu/Collector.h), in an order that mixes the groups, so that a
/// run that stops early has seen something of each. What stands in front of the first '/' of a
/// case's name is its group; the families' files say what they hold. Of the registrations alone
/// whose names the regular expression `source` finds: each draws for itself, so that its cases are
/// those of a run with all of them.
std::vector<Case> allCases(const std::string &source);

}  // namespace weft::gputest
