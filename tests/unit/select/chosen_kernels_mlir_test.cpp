// The plan that selection chooses for a training step, with the profile that ships: each kernel of
// Table A.1 of "Data Movement Is All You Need" lies inside one kernel of the plan, apart from ops
// that are the epilogue of a contraction, or the plan has larger kernels that take its ops and it
// is faster so.
#include "kernel/StridedBatchedGemm.h"
#include "tests/unit/samples/PaperKernels.h"
#include "tools/driver/Compilation.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace weft;
using namespace weft::driver;
using namespace weft::test;

namespace {

/// Per op by the name of its first result: its number, and the candidate of the plan that computes
/// it.
struct Chosen {
  int op = -1, candidate = -1;
};
std::map<std::string, Chosen> chosenOps(const select::Problem &problem,
                                        const select::SelectionResult &plan) {
  std::map<std::string, Chosen> chosen;
  for (const select::Step &step : plan.steps)
    if (step.candidate >= 0)
      for (const int op : problem.candidates[size_t(step.candidate)].ops)
        chosen[problem.tensors[size_t(problem.opOutputs[size_t(op)].front())].name] = {
            op, step.candidate};
  return chosen;
}

/// Whether a candidate holds all that the variant has of some paper kernel.
bool holdsSomeKernel(const std::map<std::string, Chosen> &chosen, int candidate) {
  const auto isInside = [&](const std::string &op) {
    return !chosen.contains(op) || chosen.at(op).candidate == candidate;
  };
  return std::any_of(tableA1.begin(), tableA1.end(), [&](const PaperKernel &kernel) {
    return std::any_of(kernel.ops.begin(), kernel.ops.end(),
                       [&](const std::string &op) { return chosen.contains(op); }) &&
           std::all_of(kernel.ops.begin(), kernel.ops.end(), isInside);
  });
}

void checkKernels(const decision::SelectedVariant &variant) {
  const select::Problem &problem = variant.selection.problem();
  const std::map<std::string, Chosen> chosen = chosenOps(problem, variant.path());
  size_t whole = 0;
  for (const PaperKernel &kernel : tableA1) {
    INFO(kernel.name);
    std::vector<Chosen> members;  // stacking replaces some
    for (const std::string &op : kernel.ops)
      if (const auto found = chosen.find(op); found != chosen.end())
        members.push_back(found->second);
    if (members.empty()) continue;
    const bool isFinishedByGemms =
        std::erase_if(members, [&](const Chosen &one) {
          return contractionValues(problem.candidates[size_t(one.candidate)].kernel).has_value();
        }) > 0;
    if (members.empty()) {
      ++whole;
      continue;
    }
    const auto stray = std::find_if(members.begin(), members.end(), [&](const Chosen &one) {
      return one.candidate != members.front().candidate;
    });
    whole += stray == members.end();
    if (stray == members.end()) continue;
    if (!isFinishedByGemms)
      CHECK((holdsSomeKernel(chosen, stray->candidate) ||
             holdsSomeKernel(chosen, members.front().candidate)));
    const std::optional<double> loss = variant.selection.whatIfFused(
        std::min(members.front().op, stray->op), std::max(members.front().op, stray->op), true);
    if (loss) CHECK(*loss >= 0);
  }
  CHECK(whole >= tableA1.size() - 2);
}

void checkChosen(const std::string &batch, const std::string &length) {
  Compilation compilation(
      {.model = "paper-encoder", .train = true, .dims = {batch, length}},
      {.attention = AttentionChoice::unfused, .stacking = StackingChoice::separate}, {});
  compilation.import();
  checkKernels(compilation.decide(compilation.propose(Phase::import)).best());
}

}  // namespace

TEST_CASE("the chosen plan has the kernels of Table A.1, batch 8 of 512") {
  checkChosen("b=8", "j=512");
}
