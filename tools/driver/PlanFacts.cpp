// Facts of a plan; see PlanFacts.h.
#include "tools/driver/PlanFacts.h"

#include "kernel/Device.h"
#include "kernel/Error.h"
#include "kernel/Format.h"
#include "kernel/LayerNames.h"
#include "kernel/Nearest.h"
#include "passes/account/Stages.h"
#include "passes/decide/Roofline.h"
#include "plan/PlanBuilder.h"
#include "plan/PlanChunks.h"
#include "plan/PlanFigures.h"
#include "tools/driver/Console.h"
#include "tools/driver/EstimateError.h"
#include "tools/driver/FoldedReport.h"
#include "tools/driver/MemoryReport.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace weft::driver {
namespace {

using nlohmann::json;

/// Differences below this are noise, or ties.
constexpr double negligibleSeconds = 5e-8;
/// What is printed of a time below this is zeros.
constexpr double leastShown = 5e-9;
/// Of the plan's time: what a layout must save to be worth a line.
constexpr double notableShare = 0.002;

std::string nameOfWhole(const PlanKernel &kernel) { return wholeName(kernel); }

ptrdiff_t contractionsOf(const PlanKernel &kernel) {
  return std::ranges::count(kernel.ops, OpKind::contract, &PlanOp::kind);
}
bool contracts(const PlanKernel &kernel) { return contractionsOf(kernel) > 0; }

json list(const json &report, const char *member) { return report.value(member, json::array()); }

std::set<int> opsOf(const json &report, const std::string &kernel) {
  const auto ops = report.find("kernelOps");
  return ops != report.end() && ops->contains(kernel) ? ops->at(kernel).get<std::set<int>>()
                                                      : std::set<int>();
}

/// The kernels of a plan, chunks as one, by the ops of the graph that they hold.
class Exchanges {
public:
  explicit Exchanges(const Plan &plan, const json &report) : plan(plan) {
    for (const PlanKernel &kernel : plan.kernels) {
      const std::string whole = nameOfWhole(kernel);
      kernels[whole].push_back(&kernel);
      std::set<int> ops = opsOf(report, kernel.name);
      for (const int op : ops) kernelOf[op] = whole;
      opsOfKernel[whole].merge(ops);
      for (const int output : kernel.outputs) writers[output] = &kernel;
    }
    for (const PlanKernel &kernel : plan.kernels)
      if (!isView(kernel))
        for (const int input : kernel.inputs) readers[originOf(input)].insert(nameOfWhole(kernel));
  }

  std::string kernelWith(int op) const {
    const auto found = kernelOf.find(op);
    return found == kernelOf.end() ? "" : found->second;
  }
  const std::set<int> &opsIn(const std::string &kernel) const { return opsOfKernel.at(kernel); }
  /// The kernel of this name, or the first chunk of it.
  const PlanKernel &first(const std::string &whole) const { return *kernels.at(whole).front(); }
  bool contracts(const std::string &whole) const {
    return std::ranges::any_of(kernels.at(whole),
                               [](const PlanKernel *one) { return driver::contracts(*one); });
  }

  /// What one kernel for both would not move: reads, and writes where nobody else needs the tensor.
  /// The largest tensor by its name.
  std::pair<int64_t, std::string> between(const std::string &writer,
                                          const std::string &reader) const {
    int64_t bytes = 0, largest = 0;
    std::string name;
    std::set<int> stored;
    for (const PlanKernel *kernel : kernels.at(reader)) {
      if (isView(*kernel)) continue;
      for (const int input : kernel->inputs) {
        const int origin = originOf(input);
        const auto source = writers.find(origin);
        if (source == writers.end() || nameOfWhole(*source->second) != writer) continue;
        const PlanTensor &tensor = plan.tensors[size_t(origin)];
        if (isUpdated(*source->second, tensor)) continue;
        bytes += plan.tensors[size_t(input)].bytes;
        if (tensor.role == TensorRole::temporary && readers.at(origin).size() == 1 &&
            stored.insert(origin).second)
          bytes += tensor.bytes;
        if (tensor.bytes > largest) largest = tensor.bytes, name = tensor.logical;
      }
    }
    return {bytes, name};
  }

private:
  /// Whether a kernel writes some elements of what a caller brought: a cache, say. Whoever reads it
  /// reads the others in any kernel.
  bool isUpdated(const PlanKernel &writer, const PlanTensor &tensor) const {
    return std::ranges::any_of(writer.inputs, [&](int input) {
      const PlanTensor &from = plan.tensors[size_t(input)];
      return from.role == TensorRole::argument && from.buffer == tensor.buffer;
    });
  }

  /// The tensor that a kernel computed, behind views of it.
  int originOf(int tensor) const {
    for (auto writer = writers.find(tensor);
         writer != writers.end() && isView(*writer->second) && writer->second->inputs.size() == 1;
         writer = writers.find(tensor))
      tensor = writer->second->inputs.front();
    return tensor;
  }

  const Plan &plan;
  std::map<std::string, std::vector<const PlanKernel *>> kernels;  ///< by the whole's name
  std::map<int, std::string> kernelOf;
  std::map<std::string, std::set<int>> opsOfKernel;
  std::map<int, const PlanKernel *> writers;
  std::map<int, std::set<std::string>> readers;
};

/// The rejected attempt with the fewest ops that would join the two; it says most about just them.
std::optional<json> rejectionBetween(const json &report, const std::set<int> &a,
                                     const std::set<int> &b) {
  std::optional<json> best;
  std::tuple<size_t, size_t> bestRank;
  for (json &record : fusionsBetween(report, a, b)) {
    if (record["accepted"].get<bool>() || record["code"].get_ref<const std::string &>().empty())
      continue;
    size_t inA = 0, inB = 0;
    for (const json &op : record["ops"])
      inA += a.contains(op.get<int>()), inB += b.contains(op.get<int>());
    const std::tuple rank(record["ops"].size() - inA - inB, record["ops"].size());
    if (!best || rank < bestRank) best = std::move(record), bestRank = rank;
  }
  return best;
}

/// What another layout of a tensor changes, by the prices of the selection graph: the two of the
/// least loss beside the one that it has.
struct LayoutPrices {
  std::string tensor;
  NamedLayout layout;
  std::vector<std::string> others = {};
  double seconds = 0;  ///< that the first of them adds, less than zero where it saves
};

std::optional<LayoutPrices> pricesOf(const PlanTensor &tensor, const json &layouts) {
  constexpr size_t most = 2;
  std::vector<std::pair<double, std::string>> prices;
  if (layouts.contains(tensor.logical))
    for (const json &price : list(layouts.at(tensor.logical), "prices"))
      prices.emplace_back(price["loss"], price["layout"]);
  std::ranges::stable_sort(prices, {}, &std::pair<double, std::string>::first);
  LayoutPrices result{.tensor = tensor.logical, .layout = namedLayout(tensor)};
  const std::string ownText = shortText(result.layout);
  std::optional<double> own, least;
  for (const auto &[loss, layout] : prices)
    if (layout == ownText) own = loss;
    else if (result.others.size() < most) {
      if (!least) least = loss;
      result.others.push_back(layout);
    }
  if (!own || !least) return std::nullopt;
  result.seconds = *least - *own;
  return result;
}

/// Below which a saving is not worth a line.
double leastSaving(const Plan &plan) {
  return std::max(negligibleSeconds, notableShare * plan.predictedSeconds);
}

struct Transposes {
  size_t count = 0;
  double seconds = 0;
};

Transposes transposesOf(const Plan &plan) {
  Transposes all;
  for (const PlanKernel &kernel : plan.kernels)
    if (kernel.family.isTranspose()) all.seconds += kernel.seconds, ++all.count;
  return all;
}

std::string signedSeconds(double seconds) {
  return (seconds < 0 ? "-" : "+") + formatSeconds(std::abs(seconds));
}

}  // namespace

std::optional<Coverage> coverageOf(const json &report) {
  Coverage coverage;
  bool isKnown = false;
  for (const json &variant : list(report, "variants")) {
    if (!variant.contains("statistics")) continue;
    isKnown = true;
    coverage.legal += variant["statistics"].value("legalConfigurations", 0.0);
    coverage.offered += variant["statistics"].value("configurations", int64_t(0));
    coverage.measured += variant["statistics"].value("measured", int64_t(0));
  }
  return isKnown ? std::optional(coverage) : std::nullopt;
}

std::vector<std::string> itemsOf(const Coverage &coverage) {
  const std::string measured = coverage.measured == 0 ? "none"
                               : coverage.measured == coverage.offered
                                   ? "all"
                                   : formatCount(coverage.measured);
  return {fmt::format("{} of {} legal configurations offered", formatCount(coverage.offered),
                      formatLargeCount(coverage.legal)),
          measured + " measured"};
}

std::string describe(const Coverage &coverage) {
  return fmt::format("{}", fmt::join(itemsOf(coverage), ", "));
}

Evidence evidenceOf(const Plan &plan, const runtime::BelievedRecords &records) {
  using enum runtime::Verification::State;
  Evidence evidence;
  for (const PlanKernel &kernel : plan.kernels) {
    if (isView(kernel)) continue;
    ++evidence.launched;
    evidence.measured += timeSourceOf(kernel) == TimeSource::measured;
    evidence.edited += kernel.edited;
    evidence.untold += kernel.isUntold;
    const runtime::Verification::State state = records.of(kernel).state;
    evidence.verified += state == agrees;
    evidence.older += state == older;
    evidence.failed += state == fails || state == planFails;
  }
  return evidence;
}

std::vector<FoldedKernel> foldedKernels(const Plan &plan) {
  std::vector<FoldedKernel> folded;
  std::map<std::string, size_t> known;
  for (size_t index = 0; index < plan.kernels.size(); ++index) {
    const PlanKernel &kernel = plan.kernels[index];
    if (isView(kernel)) continue;
    // Chunks have the whole's name; repeats have one text, one price and one kind of ops.
    const std::string key =
        kernel.chunk ? "chunk of " + wholeName(kernel)
                     : fmt::format("{} {} {} {} {}", kernel.key, kernel.seconds, kernel.edited,
                                   kernel.configuration, fmt::join(opNames(kernel), " "));
    const auto [place, isNew] = known.try_emplace(key, folded.size());
    if (isNew) folded.push_back({.name = nameOfWhole(kernel), .kernels = {}});
    folded[place->second].kernels.push_back(int(index));
    folded[place->second].seconds += kernel.seconds;
  }
  return folded;
}

std::vector<std::string> opNames(const PlanKernel &kernel) {
  std::vector<std::string> names;
  for (const PlanOp &op : kernel.ops)
    if (std::ranges::count(names, nameOf(op.kind)) == 0) names.emplace_back(nameOf(op.kind));
  return names;
}

std::vector<std::pair<std::string, double>> stageShares(const Plan &plan, const json &report) {
  const json stages = report.value("stages", json::object());
  std::map<std::string, double> seconds;
  double total = 0;
  for (const PlanKernel &kernel : plan.kernels) {
    if (isView(kernel) || !stages.contains(kernel.name)) continue;
    seconds[stages.at(kernel.name).get<std::string>()] += kernel.seconds;
    total += kernel.seconds;
  }
  std::vector<std::pair<std::string, double>> shares;
  for (const auto &[stage, sum] : seconds)
    if (sum > 0) shares.emplace_back(stage, sum / total);
  std::ranges::stable_sort(shares, std::ranges::greater(), &std::pair<std::string, double>::second);
  return shares;
}

std::optional<UnfusedLoss> largestUnfused(const Plan &plan, const json &report) {
  const Exchanges exchanges(plan, report);
  std::set<std::pair<std::string, std::string>> pairs;  // kernels of which no plan makes one
  std::set<std::pair<std::string, std::string>> waiting;
  for (const json &price : fusionPricesOf(report)) {
    if (price["fused"].get<bool>() || !price["lossOfOther"].is_null()) continue;
    const std::string writer = exchanges.kernelWith(price["ops"][0]),
                      reader = exchanges.kernelWith(price["ops"][1]);
    if (writer.empty() || reader.empty() || writer == reader) continue;
    pairs.emplace(writer, reader);
    if (!price.value("whyNone", json()).is_null()) waiting.emplace(writer, reader);
  }
  std::vector<std::pair<std::string, std::string>> inOrder(pairs.begin(), pairs.end());
  const auto positionOf = [&](const std::string &whole) {
    return &exchanges.first(whole) - plan.kernels.data();
  };
  if (std::ranges::any_of(inOrder,
                          [&](const auto &pair) { return exchanges.first(pair.first).layer > 0; }))
    std::ranges::stable_sort(inOrder, {}, [&](const auto &pair) {
      return std::pair(positionOf(pair.first), positionOf(pair.second));
    });
  std::optional<UnfusedLoss> largest;
  std::pair<std::string, std::string> where;
  const auto isRepeat = [&](const std::string &writer, const std::string &reader, int64_t bytes) {
    return largest && bytes == largest->bytes &&
           areAlikeInLayers(exchanges.first(writer), exchanges.first(where.first)) &&
           areAlikeInLayers(exchanges.first(reader), exchanges.first(where.second));
  };
  const Device device = findDevice(plan.device);
  const json stages = report.value("stages", json::object());
  const auto stageOf = [&](const std::string &whole) {  // nothing where the report does not give it
    return stageNamed(stages.value(exchanges.first(whole).name, ""));
  };
  for (const auto &[writer, reader] : inOrder) {
    if (exchanges.contracts(writer) && exchanges.contracts(reader) &&
        (stageOf(writer) != Stage::attention || stageOf(reader) != Stage::attention))
      continue;
    const auto [bytes, tensor] = exchanges.between(writer, reader);
    if (isRepeat(writer, reader, bytes)) ++largest->repeats;
    if (bytes == 0 || (largest && bytes <= largest->bytes)) continue;
    largest = UnfusedLoss{.tensor = tensor,
                          .writer = shortName(exchanges.first(writer)),
                          .reader = shortName(exchanges.first(reader)),
                          .bytes = bytes,
                          .seconds = decision::copySeconds(bytes, device),
                          .code = {},
                          .reason = {}};
    where = {writer, reader};
  }
  if (largest && largest->seconds < leastShown) return std::nullopt;
  if (!largest || waiting.contains(where)) return largest;
  if (const std::optional<json> rejection =
          rejectionBetween(report, exchanges.opsIn(where.first), exchanges.opsIn(where.second))) {
    largest->code = (*rejection)["code"];
    largest->reason = (*rejection)["reason"];
  }
  return largest;
}

std::vector<LayoutQuestion> layoutQuestions(const Plan &plan, const json &layouts) {
  std::vector<LayoutPrices> savings, costs;
  std::set<std::string> seen;  // chunks of a tensor lie alike
  std::set<int> read;
  for (const PlanKernel &kernel : plan.kernels)
    read.insert(kernel.inputs.begin(), kernel.inputs.end());
  for (size_t index = 0; index < plan.tensors.size(); ++index) {
    const PlanTensor &tensor = plan.tensors[index];
    // Nobody asks how a gradient lies that nothing reads.
    if (tensor.role == TensorRole::temporary && !read.contains(int(index))) continue;
    const std::optional<LayoutPrices> prices =
        tensor.role == TensorRole::parameter ? std::nullopt : pricesOf(tensor, layouts);
    if (!prices || !seen.insert(prices->tensor + " " + shortText(prices->layout)).second) continue;
    if (-prices->seconds > leastSaving(plan)) savings.push_back(*prices);
    else if (prices->seconds > negligibleSeconds) costs.push_back(*prices);
  }
  std::ranges::stable_sort(savings, {}, &LayoutPrices::seconds);
  std::ranges::stable_sort(costs, std::ranges::greater(), &LayoutPrices::seconds);
  if (transposesOf(plan).count > 0) costs.clear();
  std::vector<LayoutQuestion> questions;
  for (std::vector<LayoutPrices> *list : {&savings, &costs})
    for (LayoutPrices &prices : *list)
      questions.push_back({.tensor = std::move(prices.tensor),
                           .layout = std::move(prices.layout),
                           .others = std::move(prices.others)});
  return questions;
}

bool isNotable(const Plan &plan, const LayoutChange &change) {
  return change.seconds > negligibleSeconds || -change.seconds > leastSaving(plan);
}

LayoutFact costliestLayout(const Plan &plan, const json &report) {
  const json change = report.value("layoutChange", json::object());
  const bool isKnown = change.contains("graphSeconds");  // older reports say kernel by kernel
  const double seconds = isKnown ? change["graphSeconds"].get<double>() : 0;
  const Transposes transposes = transposesOf(plan);
  if (transposes.count > 0 && seconds >= 0)
    return {.text = fmt::format("{} between layouts: {}, {:.1f}% of the time",
                                countOf(transposes.count, "transpose"),
                                formatSeconds(transposes.seconds),
                                100 * transposes.seconds / plan.predictedSeconds),
            .tensor = {},
            .layout = {},
            .other = {},
            .seconds = transposes.seconds};
  if (!isKnown) return {};
  const std::string tensor = change["tensor"], layout = change["layout"], other = change["other"];
  const int64_t workspaceBytes = change["workspaceBytes"];
  const std::string workspace =
      workspaceBytes == plan.workspaceBytes
          ? ""
          : fmt::format(" in a workspace of {}", formatBytes(workspaceBytes));
  const std::string would =
      seconds < 0 ? "save " + formatSeconds(-seconds) : "cost " + signedSeconds(seconds);
  return {.text = fmt::format(
              "{} lies as {}; {} would {} of graph time{} (weft explain DIR --layout {})", tensor,
              layout, other, would, workspace, tensor),
          .tensor = tensor,
          .layout = layout,
          .other = other,
          .seconds = seconds,
          .workspaceBytes = workspaceBytes};
}

MemoryTrade memoryTrade(const Plan &plan, const json &report) {
  std::string text = fmt::format("workspace {}", formatBytes(plan.workspaceBytes));
  const json chunkings = list(report, "chunks");
  const json *chosen = nullptr, *faster = nullptr, *smaller = nullptr;
  for (const json &one : chunkings)
    if (one["chosen"].get<bool>()) chosen = &one;
  if (chunkings.size() < 2 || !chosen) {
    const int chunks = mostChunks(plan);
    if (isPipelined(plan)) return {.text = text + fmt::format(" in {} slices at once", chunks)};
    if (chunks > 1) return {.text = text + fmt::format(" in {} chunks, as asked", chunks)};
    return {.text =
                text + (chunkings.empty()
                            ? ": no more than ops one by one take, so no plan in chunks was weighed"
                            : ": no plan in chunks takes less")};
  }
  for (const json &one : chunkings) {
    const double seconds = one["seconds"], own = (*chosen)["seconds"];
    const int64_t bytes = one["workspace"], ownBytes = (*chosen)["workspace"];
    if (seconds < own - negligibleSeconds &&
        (!faster || seconds < (*faster)["seconds"].get<double>()))
      faster = &one;
    if (bytes < ownBytes && (!smaller || seconds < (*smaller)["seconds"].get<double>()))
      smaller = &one;
  }
  MemoryTrade trade{.text = std::move(text)};
  for (const json *other : {faster, smaller}) {
    if (!other) continue;
    trade.others.push_back(
        {.chunks = (*other)["chunks"],
         .bytes = (*other)["workspace"],
         .seconds = (*other)["seconds"].get<double>() - (*chosen)["seconds"].get<double>()});
    const MemoryTrade::Other &added = trade.others.back();
    trade.text += fmt::format("; {} takes {}{} (--chunks {})", formatBytes(added.bytes),
                              signedSeconds(added.seconds),
                              trade.others.size() == 1 ? " of graph time" : "", added.chunks);
  }
  if (trade.others.empty()) trade.text += ": less and faster is none of the plans in chunks";
  return trade;
}

namespace {

/// How far estimates lie from measurements, where that is known.
std::string estimateError(const Plan &plan) {
  const EstimateError &known = typicalEstimateError;
  if (plan.device == known.device && plan.dtype == known.dtype &&
      contractionPrecision(plan).empty())
    return fmt::format("typical error {:.0f}% of {} kernels profiled on {}", 100 * known.kernel,
                       nameOf(known.dtype), known.device);
  return fmt::format("error unknown: it was measured of {} kernels on {} alone{}",
                     nameOf(known.dtype), known.device,
                     findDevice(plan.device).isFromDataSheet()
                         ? fmt::format(", and {} is known by its data sheet alone", plan.device)
                         : "");
}

/// What does not fit into the GPU, with both figures.
std::string memoryWarning(const Plan &plan) {
  const double there = findDevice(plan.device).memoryBytes;
  const json memory = memoryReport(plan);
  int64_t taken = 0;
  for (const char *kind : {"parameters", "arguments", "results", "workspace"})
    taken += memory[kind].get<int64_t>();
  if (double(taken) <= there) return "";
  return fmt::format("takes {} (parameters, arguments, results, workspace); {} has {}",
                     formatBytes(taken), plan.device, formatBytes(int64_t(there)));
}

/// What the limits of the search left out, and what to do about it; empty where it was whole.
std::string searchWarning(const json &report) {
  const json search = report.value("searchLimits", json::object());
  if (!search.value("reached", false)) return "";
  const json choices = report.value("request", json::object()).value("choices", json::object());
  const std::string asked = choices.value("searchMemory", "");
  const json cuts = list(search, "leftOut");
  std::string text = fmt::format("a faster plan may be left out (--search-memory {}): ",
                                 asked.empty() ? "by default" : asked);
  if (!cuts.empty()) text += cuts.front().get<std::string>();
  if (cuts.size() > 1) text += fmt::format(", and {}", countOf(cuts.size() - 1, "more cut"));
  return text;
}

}  // namespace

std::vector<Warning> warningsOf(const Plan &plan, const json &report,
                                const runtime::BelievedRecords &records) {
  std::vector<Warning> warnings;
  const auto add = [&](WarningKind kind, std::string text) {
    warnings.push_back({.kind = kind, .text = std::move(text)});
  };
  const Evidence evidence = evidenceOf(plan, records);
  size_t stale = 0;
  std::string cubins;
  for (const PlanNote &note : plan.notes) {
    stale += note.kind == NoteKind::stale;
    if (note.kind == NoteKind::build) cubins = note.text;
    if (note.kind == NoteKind::serialized) add(WarningKind::kernels, note.text);
  }
  if (const std::string memory = memoryWarning(plan); !memory.empty())
    add(WarningKind::memory, memory);
  if (const std::string search = searchWarning(report); !search.empty())
    add(WarningKind::search, search);
  if (evidence.edited > 0)
    add(WarningKind::edits, fmt::format("{} edited by hand: not measured, not verified",
                                        countOf(evidence.edited, "kernel")));
  if (evidence.failed > 0)
    add(WarningKind::verification,
        fmt::format("{} of {} FAILED when last verified on a GPU (weft verify DIR)",
                    evidence.failed, countOf(evidence.launched, "kernel")));
  if (!cubins.empty()) add(WarningKind::build, cubins);
  if (const int estimated =
          evidence.launched - evidence.measured - evidence.edited - evidence.untold;
      estimated > 0)
    add(WarningKind::prices,
        fmt::format("{} of {} estimated, {} (weft profile DIR)", estimated,
                    countOf(evidence.launched, "kernel"), estimateError(plan)));
  if (stale > 0)
    add(WarningKind::prices,
        fmt::format("{} of an older version (weft profile DIR)", countOf(stale, "time")));
  for (const json &variant : list(report, "variants"))
    if (variant.contains("noPlan"))
      add(WarningKind::search,
          fmt::format("variant {} has no plan: {}", variant["name"].get<std::string>(),
                      variant["noPlan"].get<std::string>()));
  std::map<std::string, size_t> copies;  // by reason code
  for (const PlanNote &note : plan.notes)
    if (note.kind == NoteKind::copy) ++copies[note.code];
  for (const auto &[code, count] : copies)
    add(WarningKind::kernels,
        fmt::format("{} to move a part of a tensor, which could be no view [{}]",
                    count == 1 ? "1 kernel is there" : fmt::format("{} kernels are there", count),
                    code));
  if (evidence.older > 0)
    add(WarningKind::verification,
        fmt::format("{} of {} verified by an older verifier alone (weft verify DIR)",
                    evidence.older, countOf(evidence.launched, "kernel")));
  if (const int never = evidence.launched - evidence.verified - evidence.older - evidence.failed -
                        evidence.edited - evidence.untold;
      never > 0)
    add(WarningKind::verification, fmt::format("{} of {} never verified on a GPU (weft verify DIR)",
                                               never, countOf(evidence.launched, "kernel")));
  return warnings;
}

std::vector<std::string> textsOf(const std::vector<Warning> &warnings) {
  std::vector<std::string> texts;
  for (const Warning &warning : warnings) texts.push_back(warning.text);
  return texts;
}

std::string shortName(const PlanKernel &kernel) {
  return kernel.label.empty() ? nameOfWhole(kernel) : kernel.label;
}

const PlanKernel &findKernel(const Plan &plan, const std::string &name) {
  std::vector<const PlanKernel *> labelled, beginning;
  std::vector<std::string> names;
  for (const PlanKernel &kernel : plan.kernels) {
    if (kernel.name == name) return kernel;
    const std::string label = shortName(kernel);
    if (label == name || (kernel.layer > 0 && withoutLayers(label) == name) ||
        nameOfWhole(kernel) == name)
      labelled.push_back(&kernel);
    if (kernel.name.starts_with(name)) beginning.push_back(&kernel);
    names.push_back(kernel.name);
  }
  const std::vector<const PlanKernel *> &meant = labelled.empty() ? beginning : labelled;
  if (meant.size() == 1) return *meant.front();
  if (meant.empty()) throw Error::badInput("no kernel '{}'{}", name, nearestAndKnown(name, names));
  constexpr size_t shown = 12;
  std::vector<std::string> matches;
  for (const PlanKernel *kernel : meant)
    if (matches.size() < shown) matches.push_back(kernel->name);
  throw Error::badInput(
      "kernel '{}' may mean {} kernels: {}{}", name, meant.size(), fmt::join(matches, ", "),
      meant.size() > shown ? fmt::format(", and {} more", meant.size() - shown) : "");
}

AttentionBackwards attentionBackwards(const Plan &plan) {
  constexpr size_t gradients = 3;  // of queries, keys and values
  std::set<std::string> all, fused, storing;
  for (const PlanKernel &kernel : plan.kernels) {
    if (std::ranges::count(kernel.ops, OpKind::softmaxFromLogSums, &PlanOp::kind) == 0) continue;
    all.insert(nameOfWhole(kernel));
    if (contractionsOf(kernel) < 2) continue;
    fused.insert(nameOfWhole(kernel));
    if (kernel.outputs.size() > gradients) storing.insert(nameOfWhole(kernel));
  }
  return {.all = int(all.size()),
          .unfused = int(all.size() - fused.size()),
          .storing = int(storing.size())};
}

namespace {

/// "fused attention, backward pass unfused".
std::string fusedForm(const Plan &plan) {
  const AttentionBackwards backwards = attentionBackwards(plan);
  if (backwards.unfused == 0)
    return backwards.storing == 0 ? "fused attention"
                                  : "fused attention, gradient of scores stored for a bias";
  if (backwards.unfused == backwards.all) return "fused attention, backward pass unfused";
  return fmt::format("fused attention, {} of {} backward passes unfused", backwards.unfused,
                     backwards.all);
}

}  // namespace

std::string attentionForm(const Plan &plan) {
  bool hasSoftmax = false, hasLocal = false, isLocalApart = false, isScalingFused = false;
  for (const PlanKernel &kernel : plan.kernels) {
    const auto has = [&](OpKind kind) {
      return std::ranges::count(kernel.ops, kind, &PlanOp::kind) > 0;
    };
    if (has(OpKind::onlineSoftmaxContract)) return fusedForm(plan);
    hasLocal = hasLocal || has(OpKind::localSoftmax);
    isLocalApart = isLocalApart || (has(OpKind::localSoftmax) && !has(OpKind::contract));
    isScalingFused = isScalingFused || (has(OpKind::globalScaling) && has(OpKind::contract));
    hasSoftmax = hasSoftmax || has(OpKind::softmax);
    if (has(OpKind::softmax) && has(OpKind::contract)) return "fused attention";
  }
  if (hasLocal)
    return isScalingFused && !isLocalApart ? "recomposed attention" : "decomposed attention";
  return hasSoftmax ? "unfused attention" : "";
}

int mostChunks(const Plan &plan) {
  std::map<std::string, int> chunks;
  int most = 1;
  for (const PlanKernel &kernel : plan.kernels)
    if (kernel.chunk) most = std::max(most, ++chunks[wholeName(kernel)]);
  return most;
}

}  // namespace weft::driver
