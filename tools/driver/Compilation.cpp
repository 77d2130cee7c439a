// The parts of a compilation that all others build on, and its questions to the phase that
// decides; see Compilation.h.
#include "tools/driver/Compilation.h"

#include "ir/Weft.h"
#include "kernel/Error.h"
#include "passes/Describe.h"
#include "passes/Rewrites.h"
#include "passes/configure/Families.h"
#include "passes/select/KernelSpaces.h"
#include "tools/driver/Diagnostics.h"
#include "tools/driver/ProfileModel.h"

#include "llvm/Support/raw_ostream.h"

#include <algorithm>

namespace weft::driver {

mlir::Operation *graphOf(mlir::ModuleOp module) {
  const auto graphs = module.getOps<GraphOp>();
  if (graphs.empty()) throw Error::badInput("the file holds no weft.graph");
  if (std::next(graphs.begin()) != graphs.end())
    throw Error::unsupported("the file holds more than one weft.graph; compile takes one");
  return *graphs.begin();
}

std::string ProposedVariant::name() const { return variantName(rewrites); }

Compilation::Compilation(ModelFlags model, ChoiceFlags choices, TargetFlags target)
    : modelFlags(std::move(model)),
      choices(std::move(choices)),
      targetFlags(std::move(target)),
      context(std::make_shared<mlir::MLIRContext>()) {
  this->choices.check();
  memory = this->choices.memoryOfSearch();
  modelFlags.check();
  priced.model = costModelOf(targetFlags);
  priced.spaces = std::make_shared<select::SharedSpaces>(costModel());
  priced.chunkConfigurations = std::make_shared<decision::ChunkConfigurations>();
  priced.key = keyOfPrices(targetFlags, costModel());
  const Device &device = costModel().device();
  epilogueRejection = epilogueRejections(device);
  prologueRejection = prologueRejections(device);
  attentionRejection = attentionRejections(device);
  attentionBackwardRejection = attentionBackwardRejections(device);
  context->disableMultithreading();     // graphs are small; threads cost more than they give
  context->printOpOnDiagnostic(false);  // messages name places; the generic form names nothing
  context->loadDialect<WeftDialect>();
}

Compilation::Compilation(const Compilation &whole, mlir::OwningOpRef<mlir::ModuleOp> part)
    : modelFlags(whole.modelFlags),
      choices(whole.choices),
      memory(whole.memory),
      targetFlags(whole.targetFlags),
      priced(whole.priced),
      tokens(whole.tokens),
      epilogueRejection(whole.epilogueRejection),
      prologueRejection(whole.prologueRejection),
      attentionRejection(whole.attentionRejection),
      attentionBackwardRejection(whole.attentionBackwardRejection),
      context(whole.context),
      described(whole.described),
      isPart(true) {
  choices.chunks = 1;  // which are of one tensor of a whole plan
  imported.push_back({.rewrites = {}, .module = std::move(part)});
}

Compilation::~Compilation() = default;

void Compilation::sharePrices(std::vector<SharedPrices> &known) {
  const auto equal = std::ranges::find_if(known, [&](const SharedPrices &one) {
    return one.key == priced.key && one.fill == priced.fill;
  });
  if (equal == known.end()) known.push_back(priced);
  else priced = *equal;
}

select::Problem Compilation::problemOf(const ProposedVariant &variant) const {
  return toProblem(graphOf(mlir::ModuleOp(variant.module.get())), variant.rewrites,
                   variant.fusions);
}

bool Compilation::variantHasTensor(const ProposedVariant &variant, const std::string &name) const {
  const std::vector<select::Tensor> tensors = problemOf(variant).tensors;
  return std::ranges::find(tensors, name, &select::Tensor::name) != tensors.end();
}

std::vector<select::Problem> Compilation::everyProblem() const {
  ChoiceFlags all = choices;
  all.attention = AttentionChoice::automatic;
  all.norms = NormChoice::automatic;
  all.stacking = StackingChoice::automatic;
  std::vector<select::Problem> result;
  for (const Variant &variant : imported)
    for (const ProposedVariant &proposed :
         rewriteOne(variant, all, false, firstPhase, Phase::attention))
      result.push_back(problemOf(proposed));
  return result;
}

std::vector<select::Problem> Compilation::problems(
    const std::vector<ProposedVariant> &proposed) const {
  std::vector<select::Problem> result;
  for (const ProposedVariant &variant : proposed) {
    result.push_back(problemOf(variant));
    for (select::Tensor &tensor : result.back().tensors)
      if (choices.free && !tensor.isParameter) tensor.pinned.reset();  // the caller's order
  }
  return result;
}

decision::PlanContext Compilation::planContext() const {
  return {.prices = priced.model.get(),
          .free = choices.free,
          .model = described.name,
          .dims = described.dims,
          .dtype = elementType(),
          .spaces = priced.spaces,
          .chunkConfigurations = priced.chunkConfigurations};
}

decision::Problem Compilation::problem(const std::vector<ProposedVariant> &proposed) const {
  decision::Problem result{
      .variants = {},
      .context = planContext(),
      .leftOut = proposed.empty() ? 0 : proposed.front().leftOut,
      .boundOfCombinations = proposed.empty() ? std::nullopt : proposed.front().boundOfCombinations,
      .cutsOfCombinations =
          proposed.empty() ? std::vector<std::string>() : proposed.front().cutsOfCombinations,
      .everyVariant = [this] { return everyProblem(); }};
  std::vector<select::Problem> problems = this->problems(proposed);
  for (size_t index = 0; index < proposed.size(); ++index)
    result.variants.push_back({.problem = std::move(problems[index]),
                               .notes = proposed[index].notes,
                               .forced = proposed[index].forced,
                               .forbidden = proposed[index].forbidden,
                               .isCut = proposed[index].fusions.isCut});
  return result;
}

namespace {

constexpr const char *wholePlan = "plan";

}  // namespace

/// Known for a graph, its choices and its prices (KnownTimes.h). Variants and fusions are functions
/// of the graph, of the rewrites that name a variant and of the choices, so they need not be
/// printed.
Compilation::KnownWithoutPins Compilation::knownWithoutPins(
    const std::vector<ProposedVariant> &proposed) const {
  KnownTimes known(priced.key);
  for (const Variant &variant : imported) known.add(print(*variant.module));
  for (const ProposedVariant &variant : proposed) known.add(variant.name());
  if (choices.namesSites())
    known.add(
        fmt::format("{} {} {}", choices.attention.text, choices.norms.text, choices.stacking.text));
  known.add(fmt::format("{} {} {} {} {} {} {}", nameOf(std::max(firstPhase, Phase::algebra)),
                        choices.free, choices.softmax.text, choices.fuseRules.text,
                        fmt::join(choices.fuse, " "), fmt::join(choices.noFuse, " "),
                        choices.searchMemory));
  KnownTimes ofPlan = known;
  ofPlan.add(fmt::format("{} {} {} {} {} {} {}", wholePlan, choices.maxMemory,
                         choices.memoryTrade.share(), choices.chunks, choices.concurrent.text,
                         choices.pipeline.text, choices.alternatives));
  return {.variants = std::move(known), .plan = std::move(ofPlan)};
}

decision::Options Compilation::options(const std::vector<ProposedVariant> &proposed) const {
  const auto known = std::make_shared<KnownWithoutPins>(knownWithoutPins(proposed));
  return {.pins = choices.pinned(),
          .alternatives = choices.alternatives,
          .chunks = choices.chunks,
          .slices = choices.pipeline.slices(),
          .maxMemory = choices.maxMemoryBytes(),
          .maxMemoryText = choices.maxMemory,
          .memoryTrade = choices.memoryTrade.share(),
          .concurrent = choices.concurrent.value(),
          .softmax = choices.softmax.value(),
          .earlyStarts = choices.earlyStarts(
              targetFlags.target.empty() ? costModel().device().architecture : targetFlags.target),
          .searchMemory = memory,
          .strict = targetFlags.strict,
          .recall = [known]() -> std::optional<decision::WithoutPins> {
            const auto times = known->variants.find(), plan = known->plan.find();
            if (!times || !plan || !plan->contains(wholePlan)) return std::nullopt;
            return decision::WithoutPins{.times = *times, .seconds = plan->at(wholePlan)};
          },
          .remember =
              [known](const decision::WithoutPins &found) {
                known->variants.store(found.times);
                known->plan.store({{wholePlan, found.seconds}});
              }};
}

decision::Decision Compilation::decide(const std::vector<ProposedVariant> &proposed,
                                       const decision::Measure &measure, int plansToMeasure) const {
  decision::Options asked = options(proposed);
  asked.plansToMeasure = plansToMeasure;
  return valueOrThrow(decision::decide(problem(proposed), asked, measure));
}

std::string Compilation::materialized(const std::vector<ProposedVariant> &proposed,
                                      const decision::Decision &decision) const {
  CapturedDiagnostics diagnostics(*context);
  const decision::SelectedVariant &variant = decision.best();
  const auto module = materialize(mlir::ModuleOp(proposed[variant.index].module.get()),
                                  variant.selection.problem(), decision.path());
  if (!module)
    throw diagnostics.error(ErrorKind::checkFailed, "the plan could not be written into the graph");
  return print(*module);
}

std::string Compilation::print(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  text += '\n';
  return text;
}

std::string Compilation::printWithFusions(const ProposedVariant &variant) {
  mlir::OwningOpRef<mlir::ModuleOp> module = variant.module.get().clone();
  attachFusions(graphOf(*module), variant.fusions);
  return print(*module);
}

}  // namespace weft::driver
