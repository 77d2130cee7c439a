// weft explain: why an artifact is as it is. Dispatch; the views are in Explain*.cpp.
#include "tools/driver/commands/Explain.h"

#include "kernel/Error.h"
#include "kernel/TextWidth.h"
#include "passes/account/LeastMovement.h"
#include "runtime/artifact/Artifact.h"
#include "tools/driver/Compilation.h"
#include "tools/driver/Console.h"
#include "tools/driver/ProfileModel.h"
#include "tools/driver/ReEmission.h"
#include "tools/driver/ReportShape.h"
#include "tools/driver/Request.h"
#include "tools/driver/commands/Commands.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

namespace weft::driver {
namespace {

struct ExplainFlags {
  ModelFlags model;  ///< or an artifact's folder
  ChoiceFlags choices;
  TargetFlags target;
  std::string kernel, fusion, layout;
  std::string attention;  ///< of --attention: a kind, or the folder behind it, or empty
  std::string output;
  bool movement = false, distributions = false, cacheMiss = false, fills = false, all = false;
  bool askedForAttention = false, askedForMemory = false;
  const CLI::App *command = nullptr;  ///< which says what was given
};

/// A choice that other commands take, and what tells of an artifact what the choice is asked for.
struct FormerChoice {
  const char *flag;
  const char *asks;  ///< of explain
  bool ofModels;     ///< whether explain MODEL --movement takes it
};
constexpr FormerChoice formerChoices[] = {
    {"--norms", "--all lists the variants with their times", true},
    {"--stacking", "--all lists the variants with their times", true},
    {"--variant", "--all lists the variants with their times", true},
    {"--fuse-rules", "--fusion A,B prices a fusion", true},
    {"--fuse", "--fusion A,B prices a fusion", true},
    {"--no-fuse", "--fusion A,B prices a fusion", true},
    {"--lengths", "--fills prices the plan at each fill", true},
    {"--search-memory", "--all says what the limits of the search left out", true},
    {"--softmax", "--kernel NAME shows how a kernel reduces", false},
    {"--pin", "--layout TENSOR prices every layout", false},
    {"--free", "--layout TENSOR prices every layout", false},
    {"--max-memory", "--memory shows what other workspaces cost", false},
    {"--memory-trade", "--memory shows what other workspaces cost", false},
    {"--chunks", "--memory shows what other workspaces cost", false},
    {"--pipeline", "--all says what slices were chosen from", false},
    {"--concurrent", "--all says whether kernels run at once", false},
    {"--alternatives", "--all lists the variants with their times", false},
};

/// Throws Error(badInput) for a choice on the command line.
void rejectChoices(const CLI::App &command, const std::string &folder, bool ofArtifact) {
  for (const FormerChoice &choice : formerChoices)
    if ((ofArtifact || !choice.ofModels) && command.count(choice.flag) > 0)
      throw Error::badInput(
          "explain {}: {} chooses, and explain shows what was chosen; nearest: explain {}; to "
          "choose anew: weft compile MODEL {} -o OTHER, then weft diff {} OTHER",
          folder, choice.flag, choice.asks, choice.flag, folder);
  if (!ofArtifact) return;
  for (const CLI::Option *option : command.get_options())
    if (option->get_group() == "Model" && !option->get_positional() && option->count() > 0)
      throw Error::badInput(
          "explain {}: {} belongs to a model (explain MODEL --movement), and an artifact is of one "
          "model already; weft compile MODEL {} -o OTHER, then weft diff {} OTHER",
          folder, option->get_name(), option->get_name(), folder);
}

/// Hidden from --help: what explain MODEL --movement takes none of, so that errors can name what
/// asks instead.
void declareFormerChoices(CLI::App &command) {
  for (const FormerChoice &choice : formerChoices)
    if (!command.get_option_no_throw(choice.flag))
      command.add_option(choice.flag)->expected(0, 1)->group("");
}

/// Without prices: of all variants, each with the kernels that save most, the one that moves least.
Explanation explainModel(const ExplainFlags &flags) {
  Compilation compilation(flags.model, flags.choices, flags.target);
  compilation.import();
  noteConfig(compilation.description());
  nlohmann::json least;
  for (const ProposedVariant &variant : compilation.propose(Phase::import)) {
    const Account account = compilation.account(variant);
    std::vector<AccountedKernel> kernels;
    std::map<std::string, int>
        uses;  // of a name: later kernels of one name are numbered, as in plans
    for (std::vector<int> &ops : leastMovementPartition(account.flow, variant.fusions)) {
      std::string name = kernelName(account.flow, ops);
      if (const int use = ++uses[name]; use > 1) name += fmt::format("_{}", use);
      const double share = compilation.movedShare(account.flow, ops);
      kernels.push_back({.name = std::move(name), .ops = std::move(ops), .share = share});
    }
    nlohmann::json report = accountReport(account, kernels);
    report["variant"] = variant.name();
    if (least.is_null() || report["phases"].back()["bytes"] < least["phases"].back()["bytes"])
      least = std::move(report);
  }
  return explainMovement(least, nullptr);
}

/// "weft compile gpt2 --train --dim j=512": the command line of explain without its views.
std::string compileCommand(const CLI::App &command, const std::string &model) {
  std::string text = "weft compile " + model;
  for (const CLI::Option *option : command.get_options()) {
    const std::string &group = option->get_group();
    if (option->get_positional() || option->count() == 0 ||
        (group != "Model" && group != "Choices" && group != "Target"))
      continue;
    if (option->get_expected_min() == 0) text += " " + option->get_name();
    else
      for (const std::string &value : option->results())
        text += fmt::format(" {} {}", option->get_name(), value);
  }
  return text;
}

/// The frontier of time and memory of a model that nothing was compiled of yet.
Explanation explainModelMemory(const ExplainFlags &flags) {
  Compilation compilation(flags.model, flags.choices, flags.target);
  compilation.import();
  noteConfig(compilation.description());
  return explainFrontier(compilation, Phase::import,
                         compileCommand(*flags.command, flags.model.model), flags.output);
}

/// What a plan takes; of one that trains also what others would.
Explanation explainMemoryOf(const ExplainFlags &flags, const runtime::Artifact &artifact) {
  Explanation explanation = explainMemory(artifact);
  const nlohmann::json request = artifact.report.value("request", nlohmann::json::object()),
                       asked = request.value("model", nlohmann::json::object());
  const bool isTraining = asked.value("train", false), isByParts = request.value("byParts", false);
  if (!isTraining || isByParts) {
    if (!flags.output.empty())
      throw Error::badInput(
          "explain {}: --output: with --memory it draws the frontier of plans of one layer that "
          "train; nearest: explain MODEL --memory -o {}",
          flags.model.model, flags.output);
    if (isTraining)
      explanation.text +=
          "frontier of time and memory: of several layers, weft explain MODEL --train --memory, "
          "with --layers or --part model, lists it\n";
    return explanation;
  }
  const ReopenedRequest reopened = reopen(artifact.report, flags.target.profile);
  const Explanation frontier = explainFrontier(*reopened.compilation, reopened.first,
                                               "weft compile MODEL --train", flags.output);
  explanation.text += frontier.text;
  for (const char *member : {"frontier", "plansPriced", "figure"})
    explanation.json[member] = frontier.json[member];
  return explanation;
}

/// What was changed by hand since weft wrote it; of many edits the first, and how many more.
std::string editWarnings(const std::vector<std::string> &edits, size_t most) {
  std::string text;
  for (size_t index = 0; index < std::min(edits.size(), most); ++index)
    text += "! edit: " + edits[index] + "\n";
  return edits.size() > most ? text + fmt::format("! {} more edits (--all)\n", edits.size() - most)
                             : text;
}

Explanation explainArtifact(const ExplainFlags &flags, const runtime::Artifact &artifact,
                            const std::string &folder) {
  if (flags.cacheMiss) return explainCache(artifact, folder, flags.kernel);
  if (!flags.kernel.empty()) return explainKernel(artifact, flags.kernel);
  if (!flags.fusion.empty()) return explainFusion(artifact, flags.fusion);
  if (flags.askedForAttention) return explainAttention(artifact, flags.target.profile);
  if (flags.askedForMemory) return explainMemoryOf(flags, artifact);
  if (flags.fills) return explainFills(artifact, flags.target.profile);
  if (!flags.layout.empty()) return explainLayout(artifact, flags.layout, flags.target.profile);
  if (flags.distributions) {
    TargetFlags target = flags.target;
    target.deviceName = artifact.plan.device;
    return explainDistributions(artifact, folder, target.profile, *costModelOf(target),
                                flags.output);
  }
  if (!flags.movement)
    return explainKernels(artifact,
                          {.all = flags.all, .wide = resultColumns() == unlimitedColumns});
  return explainMovement(artifact.report.value("movement", nlohmann::json::object()),
                         &artifact.plan);
}

/// Whether the name is a model, of which two views tell.
bool takesModel(const ExplainFlags &flags) {
  return (flags.movement || flags.askedForMemory) &&
         !std::filesystem::is_directory(flags.model.model);
}

Explanation explain(const ExplainFlags &flags) {
  const std::string &folder = flags.model.model;
  if (meansCodes(folder)) return explainCodes(folder);
  const bool isModel = takesModel(flags);
  rejectChoices(*flags.command, folder, !isModel);
  if (isModel) return flags.movement ? explainModel(flags) : explainModelMemory(flags);
  const runtime::Artifact artifact = runtime::readArtifact(folder, runtime::Cubins::left);
  checkArtifact(artifact, folder, Use::toLook);
  Explanation explanation = explainArtifact(flags, artifact, folder);
  constexpr size_t screenEdits = 4;
  const std::vector<std::string> edits = editLines(artifact);
  explanation.text = editWarnings(edits, flags.all ? edits.size() : screenEdits) +
                     explanation.text;  // first: all else stands under it
  explanation.json["edits"] = edits;
  return explanation;
}

}  // namespace

/// The folder may stand behind --attention, which takes a kind for models alone.
void sortAttention(ExplainFlags &flags) {
  const std::string &value = flags.attention;
  const bool isKind = parseSpelled<AttentionChoice>(value).has_value();
  if (flags.model.model.empty() && !value.empty() && !isKind)
    flags.model.model = std::exchange(flags.attention, "");
  if (flags.model.model.empty())
    throw Error::badInput("DIR is required (weft explain --help lists what there is)");
  const bool isModel = flags.movement && !std::filesystem::is_directory(flags.model.model);
  if (!flags.askedForAttention) return;
  if (isModel) {
    if (flags.attention.empty())
      throw Error::badInput("--attention: explain MODEL --movement takes a kind: {}",
                            fmt::join(allSpellings<AttentionChoice>(), ", "));
    flags.choices.attention.text = flags.attention;
  } else if (!flags.attention.empty()) {
    throw Error::badInput(
        "explain {}: --attention {} chooses, and explain shows what was chosen; nearest: explain "
        "{} --attention prices every kind; to choose anew: weft compile MODEL --attention {} -o "
        "OTHER, then weft diff {} OTHER",
        flags.model.model, flags.attention, flags.model.model, flags.attention, flags.model.model);
  }
}

Action addExplain(CLI::App &command) {
  auto flags = std::make_shared<ExplainFlags>();
  flags->model.declare(command);
  command.get_option("model")
      ->required(false)  // it may stand behind --attention
      ->description(
          "folder that compile wrote; a reason code (F024), or codes for all of them; with "
          "--movement and --memory also a preset name, config.json or .mlir")
      ->type_name("DIR");
  flags->choices.declareProposals(command);
  flags->target.declare(command, false);
  declareFormerChoices(command);
  const OptionGroup group(command, "View");
  CLI::Option *attention =
      command
          .add_option(
              "--attention", flags->attention,
              "every attention in every kind: time, bytes, workspace, error bound, and from "
              "which length on the fused one is faster; of a model with --movement: KIND "
              "alone")
          ->expected(0, 1)
          ->type_name("[KIND]");
  CLI::Option *memory =
      command.add_flag("--memory", flags->askedForMemory,
                       "what the plan takes of memory, and what more or less of it would cost; in "
                       "training, and of a model, the plans of which none beats another in both "
                       "time and memory, with their flags");
  CLI::Option *fills =
      command.add_flag("--fills", flags->fills,
                       "of packed tokens: what the plan takes at each fill that runs have, at "
                       "full length, and against the plan that would be chosen for that fill");
  CLI::Option *kernel =
      command.add_option("--kernel", flags->kernel, "everything about one kernel")
          ->type_name("NAME");
  CLI::Option *fusion = command
                            .add_option("--fusion", flags->fusion,
                                        "two kernels or ops: fused, or why not, and the price")
                            ->type_name("A,B");
  CLI::Option *layout = command
                            .add_option("--layout", flags->layout,
                                        "a tensor: its layout and the price of every other")
                            ->type_name("TENSOR");
  CLI::Option *movement =
      command.add_flag("--movement", flags->movement,
                       "operators, what they compute and move, and bytes before and after each "
                       "phase; of a model without selecting");
  CLI::Option *distributions =
      command.add_flag("--distributions", flags->distributions,
                       "measured times of every kernel over all its layouts and configurations");
  command
      .add_option("-o,--output", flags->output,
                  "folder for the distributions as violins (SVG), JSON and CSV; with --memory a "
                  "file for the figure (SVG)")
      ->type_name("DIR|FILE");
  command.add_flag("--all", flags->all, "every kernel, note and table of the plan")
      ->excludes(kernel)
      ->excludes(fusion)
      ->excludes(layout)
      ->excludes(movement)
      ->excludes(memory)
      ->excludes(distributions);
  for (CLI::Option *other : {kernel, fusion, layout, movement, distributions, attention})
    memory->excludes(other);
  for (CLI::Option *other : {kernel, fusion, layout, distributions}) attention->excludes(other);
  distributions->excludes(kernel)->excludes(fusion)->excludes(layout)->excludes(movement);
  for (CLI::Option *other : {kernel, fusion, layout, movement, distributions, attention, memory})
    fills->excludes(other);
  command.add_flag("--cache-miss", flags->cacheMiss, "parts of the kernels' cache keys")
      ->excludes(fusion)
      ->excludes(layout)
      ->excludes(movement)
      ->excludes(distributions);
  kernel->excludes(fusion)->excludes(layout)->excludes(movement);
  fusion->excludes(layout)->excludes(movement);
  layout->excludes(movement);
  return [flags, attention, &command](bool json) {
    flags->askedForAttention = attention->count() > 0;
    if (!flags->output.empty() && !flags->distributions && !flags->askedForMemory)
      throw Error::badInput("--output requires --distributions or --memory");
    flags->command = &command;
    sortAttention(*flags);
    const Explanation explanation =
        readingReport(flags->model.model + "/report.json", [&] { return explain(*flags); });
    if (json) printResult(explanation.json);
    else printResult(explanation.text);
    return 0;
  };
}

}  // namespace weft::driver
