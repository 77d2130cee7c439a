// weft explain DIR and --kernel: one screen about the plan, or one kernel in full.
#include "kernel/Device.h"
#include "kernel/Error.h"
#include "kernel/Family.h"
#include "kernel/LayerNames.h"
#include "passes/decide/Roofline.h"
#include "plan/ConcurrentLaunches.h"
#include "plan/PlanFigures.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/artifact/VerificationRecords.h"
#include "tools/driver/Assembly.h"
#include "tools/driver/Console.h"
#include "tools/driver/FirstLines.h"
#include "tools/driver/MemoryReport.h"
#include "tools/driver/PlanFacts.h"
#include "tools/driver/commands/Explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace weft::driver {
namespace {

using nlohmann::json;

std::vector<std::string> texts(const std::vector<NamedLayout> &layouts) {
  std::vector<std::string> texts;
  for (const NamedLayout &layout : layouts) texts.push_back(shortText(layout));
  return texts;
}

std::string layouts(const PlanKernel &kernel) {
  return fmt::format("{} -> {}", fmt::join(kernel.inputLayouts, " "),
                     fmt::join(kernel.outputLayouts, " "));
}

std::string known(int number) { return number < 0 ? "-" : std::to_string(number); }

std::string runnerUp(const PlanKernel &kernel) {
  if (kernel.runnerUpLoss == 0) return kernel.runnerUp;  // ties, or none
  return fmt::format("+{} {}", formatSeconds(kernel.runnerUpLoss), kernel.runnerUp);
}

json toJson(const runtime::Verification &verification) {
  const runtime::VerificationRecord &record = verification.record;
  if (record.hash.empty()) return {{"state", nameOf(verification.state)}};
  return {{"state", nameOf(verification.state)},
          {"gpu", record.gpu},
          {"verifier", record.verifier},
          {"points", record.points}};
}

json toJson(const PlanKernel &kernel, double total, const runtime::BelievedRecords &records) {
  return {{"name", kernel.name},
          {"ops", kernel.ops},
          {"family", kernel.family.name()},
          {"placeholder", kernel.family.isPlaceholder()},
          {"configuration", kernel.configuration},
          {"inputLayouts", texts(kernel.inputLayouts)},
          {"outputLayouts", texts(kernel.outputLayouts)},
          {"seconds", kernel.seconds},
          {"measured", kernel.measured},
          {"margin", kernel.margin},
          {"timeSource", nameOf(timeSourceOf(kernel))},
          {"view", isView(kernel)},
          {"share", total > 0 ? kernel.seconds / total : 0},
          {"bytesMoved", kernel.bytesMoved},
          {"bytesNecessary", kernel.bytesNecessary},
          {"flop", kernel.flop},
          {"mue", kernel.mue},
          {"bound", boundName(kernel)},
          {"registers", kernel.registers},
          {"spillBytes", kernel.spillBytes},
          {"runnerUp", kernel.runnerUp},
          {"runnerUpLoss", kernel.runnerUpLoss},
          {"library", kernel.library.has_value()},
          {"verification", isView(kernel) ? json() : toJson(records.of(kernel))},
          {"source", kernel.source},
          {"key", kernel.key}};
}

/// Which exact texts were verified on a GPU, which by an older verifier or never, and which failed;
/// views run nothing.
std::string verificationLines(const Plan &plan, const runtime::BelievedRecords &records) {
  using enum runtime::Verification::State;
  size_t launched = 0, agreed = 0;
  std::map<runtime::Verification::State, std::vector<std::string>> others;
  for (const PlanKernel &kernel : plan.kernels) {
    if (isView(kernel)) continue;
    ++launched;
    const runtime::Verification verification = records.of(kernel);
    if (verification.agrees()) ++agreed;
    else others[verification.state].push_back(kernel.name + (kernel.edited ? " (edited)" : ""));
  }
  std::string text = fmt::format("verified on a GPU: {} of {} kernels", agreed, launched);
  for (const auto &[state, label] :
       {std::pair(fails, "FAILED"), std::pair(planFails, "in doubt, a whole plan FAILED"),
        std::pair(older, "by an older verifier"), std::pair(never, "never"),
        std::pair(unknown, "not known (no manifest.json)")})
    if (others.contains(state))
      text += fmt::format("; {}: {}", label, fmt::join(others[state], ", "));
  return text + (others.empty() ? "\n" : " (weft verify)\n");
}

/// What a reader must know to weigh the table.
std::string footnotes(const Plan &plan, const runtime::BelievedRecords &records) {
  std::string text = fmt::format("prices: {}; the MUE of an estimated time is an estimate\n",
                                 plan.costModel.text());
  for (const Family *family : families())
    if (const auto count = std::ranges::count(plan.kernels, FamilyId(*family), &PlanKernel::family);
        count > 0 && family->isPlaceholder)
      text += fmt::format(
          "{} without tensor cores ({})\n",
          count == 1 ? "1 kernel is a GEMM" : fmt::format("{} kernels are GEMMs", count), *family);
  if (const auto count =
          std::ranges::count_if(plan.kernels, &FamilyId::isLibrary, &PlanKernel::family))
    text += fmt::format(
        "{} of cuBLASLt: NVIDIA's library, no text of ours; --no-library does without\n",
        count == 1 ? std::string("1 kernel is a GEMM")
                   : fmt::format("{} kernels are GEMMs", count));
  text += verificationLines(plan, records);
  for (const PlanNote &note : plan.notes) text += "note: " + note.text + "\n";
  return text;
}

std::string operandLines(const Plan &plan, const char *label, const std::vector<int> &tensors) {
  std::string text;
  for (const int index : tensors) {
    const PlanTensor &tensor = plan.tensors[size_t(index)];
    text += fmt::format("  {:<10} {}[{}] {}   layout {}   {}, {}\n", label, tensor.name,
                        fmt::join(tensor.axes, ","), nameOf(tensor.dtype),
                        printLayout(tensor) + (hasStridedView(tensor) ? " as a strided view" : ""),
                        formatBytes(tensor.bytes), nameOf(tensor.role));
    label = "";
  }
  return text;
}

json operandsJson(const Plan &plan, const std::vector<int> &tensors) {
  json list = json::array();
  for (const int index : tensors) {
    const PlanTensor &tensor = plan.tensors[size_t(index)];
    list.push_back({{"name", tensor.name},
                    {"axes", tensor.axes},
                    {"dtype", nameOf(tensor.dtype)},
                    {"layout", printLayout(tensor)},
                    {"isStridedView", hasStridedView(tensor)},
                    {"bytes", tensor.bytes},
                    {"role", nameOf(tensor.role)}});
  }
  return list;
}

/// "  epilogue   gelu_aux_bias (bias b1, auxiliary h), 1 residual x" of a GEMM that has one.
std::string epilogueLine(const PlanLibraryEpilogue &epilogue, const Plan &plan) {
  std::vector<std::string> tensors;
  const auto add = [&](const std::string &role, int tensor) {
    if (tensor >= 0)
      tensors.push_back(fmt::format("{} {}", role, plan.tensors[size_t(tensor)].name));
  };
  add("bias", epilogue.bias);
  add(epilogue.beta == 1 ? "residual" : fmt::format("{} x residual", epilogue.beta),
      epilogue.residual);
  add("auxiliary", epilogue.auxiliary);
  add("gradient", epilogue.gradient);
  return fmt::format("             epilogue {}{}{}\n", traitsOf(epilogue.kind).name,
                     tensors.empty() ? "" : ": ", fmt::join(tensors, ", "));
}

/// What a library is asked for, in place of text.
std::string gemmLine(const PlanLibraryGemm &gemm, const Plan &plan) {
  const StridedBatchedGemm &shape = gemm.shape;
  const auto operand = [&](int tensor, int64_t rows, int64_t rowStride, int64_t columns,
                           int64_t columnStride) {
    return fmt::format("{} {}x{} strides {}, {}", plan.tensors[size_t(tensor)].name, rows, columns,
                       rowStride, columnStride);
  };
  return fmt::format(
             "  GEMM       C = {}A B, {} of m {} n {} k {} by cuBLASLt (library, no text of ours)\n"
             "             A {}   B {}   C {}\n",
             gemm.alpha == 1 ? "" : fmt::format("{} ", gemm.alpha), shape.batch, shape.m, shape.n,
             shape.k, operand(gemm.a, shape.m, shape.strideAm, shape.k, shape.strideAk),
             operand(gemm.b, shape.k, shape.strideBk, shape.n, shape.strideBn),
             operand(gemm.c, shape.m, shape.strideCm, shape.n, shape.strideCn)) +
         (gemm.epilogue ? epilogueLine(*gemm.epilogue, plan) : "");
}

std::string priceLines(const PlanKernel &kernel, const Plan &plan,
                       const runtime::BelievedRecords &records) {
  std::string text =
      isView(kernel) ? "  time       none: nothing is launched for a view\n"
                     : fmt::format("  time       {} {}, {}-bound, {:.1f}% of the plan\n",
                                   formatSeconds(kernel.seconds), nameOf(timeSourceOf(kernel)),
                                   boundName(kernel),
                                   100 * kernel.seconds / std::max(plan.predictedSeconds, 1e-12));
  if (kernel.margin > 0)
    text += fmt::format(
        "  margin     of that {:.1f}% above what is expected: an estimate is chosen only where it\n"
        "             is expected to win (docs/selection.md)\n",
        100 * kernel.margin);
  text += fmt::format("  moves      {} of which {} necessary, {}; MUE {:.0f}\n",
                      formatBytes(kernel.bytesMoved), formatBytes(kernel.bytesNecessary),
                      formatFlop(kernel.flop), kernel.mue);
  if (kernel.registers >= 0)
    text += fmt::format("  built      {} registers, {} B spilled, {} B shared\n", kernel.registers,
                        kernel.spillBytes, kernel.staticSharedBytes + kernel.sharedBytes);
  if (!isView(kernel))
    text += kernel.edited ? "  verified   no: its text was edited by hand\n"
                          : fmt::format("  verified   {}, {}\n", describe(records.of(kernel)),
                                        kernel.textHash.substr(0, 16));
  if (!kernel.runnerUp.empty())
    text += fmt::format("  runner-up  {}{}\n", kernel.runnerUp,
                        kernel.runnerUpLoss == 0
                            ? ""
                            : fmt::format(": {} slower", formatSeconds(kernel.runnerUpLoss)));
  return text;
}

/// What later entry points read of earlier ones, and what they compute again.
std::string savedLines(const json &saved) {
  if (saved.empty()) return "";
  Table table({{"tensor", left}, {"bytes", right}, {"", left}, {"price of the other", right}});
  int64_t kept = 0;
  for (const json &one : saved) {
    const bool isRecomputed = one["recomputed"].get<bool>();
    const int64_t bytes = one["bytes"].get<int64_t>();
    kept += isRecomputed ? 0 : bytes;
    table.addRow(
        {one["tensor"].get<std::string>(), formatBytes(bytes), isRecomputed ? "recomputed" : "kept",
         one["lossOfOther"].is_null() ? "-"
                                      : "+" + formatSeconds(one["lossOfOther"].get<double>())});
  }
  return fmt::format(
      "between entry points: {} kept (-: nothing to choose, its chunks would have to be stored for "
      "it)\n{}",
      formatBytes(kept), table.print());
}

/// What running at once could give at most, where the plan allows it.
std::string concurrencyLine(const Plan &plan) {
  if (!plan.concurrent) return "";
  const std::vector<Launch> launches = launchesOf(plan);
  return fmt::format(
      "concurrent: kernels that do not wait for each other run at once; the longest chain of those "
      "that do takes {}\n",
      formatSeconds(longestChain(plan, launches)));
}

/// The plans that were timed as whole graphs, the chosen one marked.
std::string measuredPlans(const json &plans, const Plan &plan) {
  if (plans.empty() || !plan.measurement) return "";
  Table table({{"", left},
               {"plan", left},
               {"predicted", right},
               {"measured", right},
               {"ratio", right},
               {"other than its variant's best by", left}});
  for (const json &one : plans) {
    const bool measured = one.contains("measured");
    const int chunks = one.value("chunks", 1);
    const bool isPipelined = one.value("pipelined", false);
    table.addRow(
        {one["chosen"].get<bool>() ? "*" : "",
         one["variant"].get<std::string>() +
             (chunks > 1 ? fmt::format(", {} {}", chunks, isPipelined ? "slices" : "chunks") : "") +
             (one.value("concurrent", false) && !isPipelined ? ", concurrent" : ""),
         formatSeconds(one["predicted"].get<double>()),
         measured ? formatSeconds(one["measured"].get<double>()) : "-",
         measured ? fmt::format("{:.3f}", one["ratio"].get<double>()) : "-",
         measured
             ? fmt::format("{}", fmt::join(one["different"].get<std::vector<std::string>>(), "; "))
             : one["notMeasured"].get<std::string>()});
  }
  return fmt::format("timed as whole graphs: {}, {}\n{}", plan.measurement->gpu,
                     plan.measurement->protocol, table.print());
}

json list(const json &report, const char *member) { return report.value(member, json::array()); }

/// "99% TC", "85% DRAM": the device's sustained rate that the kernel comes nearest to.
std::string ofPeak(const PlanKernel &kernel, const json &report, const Device &device) {
  if (kernel.seconds <= 0) return "-";
  const json peaks =
      report.value("movement", json::object()).value("percentOfPeak", json::object());
  const double flop = peaks.value(kernel.name, 0.0),
               bytes = 100 * decision::copySeconds(kernel.bytesNecessary, device) / kernel.seconds;
  if (bytes >= flop) return fmt::format("{:.0f}% DRAM", bytes);
  return fmt::format("{:.0f}% {}", flop, kernel.bound == Bound::fma ? "FMA" : "TC");
}

constexpr size_t screenRows = 22, screenWarnings = 4;

std::vector<FoldedKernel> costliestFirst(const Plan &plan) {
  std::vector<FoldedKernel> folded = foldedKernels(plan);
  std::ranges::stable_sort(folded, std::ranges::greater(), &FoldedKernel::seconds);
  return folded;
}

json foldedReport(const Plan &plan) {
  json rows = json::array();
  double rest = 0;  // of this row and those below it, as the table sums up what it leaves out
  for (const FoldedKernel &kernel : costliestFirst(plan)) rest += kernel.seconds;
  for (const FoldedKernel &kernel : costliestFirst(plan)) {
    rows.push_back({{"name", kernel.name},
                    {"launches", kernel.kernels.size()},
                    {"seconds", kernel.seconds},
                    {"restSeconds", rest}});
    rest -= kernel.seconds;
  }
  return rows;
}

/// One row for all chunks or repeats of a kernel, costliest first, at most `most` rows.
std::string screenTable(const Plan &plan, const json &report, size_t most) {
  const std::vector<FoldedKernel> folded = costliestFirst(plan);
  std::map<std::string, int> shortNames;
  const auto shortNameOf = [&](const FoldedKernel &kernel) {
    return shortName(plan.kernels[size_t(kernel.kernels.front())]);
  };
  // Layers of two kinds have kernels that differ in their layers' numbers alone.
  std::map<std::string, int> repeated;
  for (const FoldedKernel &kernel : folded) {
    ++shortNames[shortNameOf(kernel)];
    if (kernel.kernels.size() > 1) ++repeated[withoutLayers(shortNameOf(kernel))];
  }
  const Device &device = findDevice(plan.device);
  Table table({{"time", right},
               {"%", right},
               {"of peak", right},
               {"kernel", left},
               {"", right},
               {"fused ops", left},
               {"price", left}});
  double rest = 0;
  for (size_t index = 0; index < folded.size(); ++index) {
    const FoldedKernel &kernel = folded[index];
    if (folded.size() > most && index >= most - 1) {
      rest += kernel.seconds;
      continue;
    }
    const PlanKernel &first = plan.kernels[size_t(kernel.kernels.front())];
    const std::string name = shortNameOf(kernel);
    const auto shown = [&](const std::string &text) {  // one row for all layers
      const auto found = repeated.find(withoutLayers(name));
      return kernel.kernels.size() > 1 && found != repeated.end() && found->second == 1
                 ? withoutLayers(text)
                 : text;
    };
    table.addRow(
        {formatSeconds(kernel.seconds),
         fmt::format("{:.0f}", 100 * kernel.seconds / std::max(plan.predictedSeconds, 1e-12)),
         ofPeak(first, report, device), shown(shortNames.at(name) == 1 ? name : kernel.name),
         kernel.kernels.size() > 1 ? fmt::format("x{}", kernel.kernels.size()) : "",
         fmt::format("{}", fmt::join(opNames(first), " + ")), nameOf(timeSourceOf(first))});
  }
  std::string text = table.print();
  if (rest > 0)
    text += fmt::format("{} more kernels take {}, {:.1f}% (--all)\n", folded.size() - (most - 1),
                        formatSeconds(rest), 100 * rest / plan.predictedSeconds);
  return text;
}

/// Every kernel of the plan, views and chunks too, with all that is known of each.
std::string wideTable(const Plan &plan) {
  Table table({{"kernel", left},
               {"ops", right},
               {"layouts", left},
               {"time", right},
               {"", left},
               {"share", right},
               {"moved", right},
               {"needed", right},
               {"MUE", right},
               {"bound", left},
               {"regs", right},
               {"spills", right},
               {"family", left},
               {"runner-up", left}});
  for (const PlanKernel &kernel : plan.kernels) {
    const double share =
        plan.predictedSeconds > 0 ? 100 * kernel.seconds / plan.predictedSeconds : 0;
    table.addRow({kernel.name, std::to_string(kernel.ops.size()), layouts(kernel),
                  formatSeconds(kernel.seconds), nameOf(timeSourceOf(kernel)),
                  fmt::format("{:.1f}%", share), formatBytes(kernel.bytesMoved),
                  formatBytes(kernel.bytesNecessary),
                  isView(kernel) ? "-" : fmt::format("{:.0f}", kernel.mue),
                  isView(kernel) ? "-" : std::string(boundName(kernel)), known(kernel.registers),
                  kernel.spillBytes < 0 ? "-" : formatBytes(kernel.spillBytes),
                  fmt::format("{}", kernel.family), runnerUp(kernel)});
  }
  return table.print();
}

std::string lossFact(const UnfusedLoss &loss) {
  const std::string why = loss.code.empty() ? "the fused kernel has no measurement"
                                            : fmt::format("[{} {}]", loss.code, loss.reason);
  const std::string repeats =
      loss.repeats > 1 ? fmt::format(" in each of {} layers", loss.repeats) : "";
  return fmt::format("{} goes through memory from {} to {}: {}, up to {}{} {}", loss.tensor,
                     loss.writer, loss.reader, formatBytes(loss.bytes), formatSeconds(loss.seconds),
                     repeats, why);
}

/// The most valuable facts, each on its line.
std::string thingsToKnow(const Plan &plan, const json &report) {
  std::vector<std::string> facts;
  if (const std::optional<UnfusedLoss> loss = largestUnfused(plan, report))
    facts.push_back(lossFact(*loss));
  if (LayoutFact layout = costliestLayout(plan, report); !layout.text.empty())
    facts.push_back(std::move(layout.text));
  facts.push_back(memoryTrade(plan, report).text);
  constexpr std::array numbers{"one thing", "two things", "three things"};
  std::string text = fmt::format("{} to know\n", numbers[facts.size() - 1]);
  for (size_t index = 0; index < facts.size(); ++index)
    text += fmt::format(" {} {}\n", index + 1, facts[index]);
  return text;
}

json factsOf(const Plan &plan, const json &report) {
  const LayoutFact layout = costliestLayout(plan, report);
  const MemoryTrade memory = memoryTrade(plan, report);
  json others = json::array();
  for (const MemoryTrade::Other &other : memory.others)
    others.push_back(
        {{"chunks", other.chunks}, {"bytes", other.bytes}, {"seconds", other.seconds}});
  json facts = {
      {"unfused", nullptr},
      {"layout",
       {{"text", layout.text},
        {"tensor", layout.tensor},
        {"layout", layout.layout},
        {"other", layout.other},
        {"seconds", layout.seconds},
        {"workspaceBytes", layout.workspaceBytes}}},
      {"memory",
       {{"text", memory.text}, {"workspaceBytes", plan.workspaceBytes}, {"others", others}}}};
  if (const std::optional<UnfusedLoss> loss = largestUnfused(plan, report))
    facts["unfused"] = {{"tensor", loss->tensor},   {"writer", loss->writer},
                        {"reader", loss->reader},   {"bytes", loss->bytes},
                        {"seconds", loss->seconds}, {"code", loss->code}};
  return facts;
}

/// Everything else that is known of the plan as a whole.
std::string details(const runtime::Artifact &artifact, const runtime::BelievedRecords &records) {
  const Plan &plan = artifact.plan;
  const json &report = artifact.report;
  return variantsLines(report) + graphLine(plan) + concurrencyLine(plan) + measurementLine(plan) +
         measuredPlans(list(report, "measuredPlans"), plan) + chunksLines(plan, report) +
         savedLines(list(report, "saved")) + memoryLine(plan) + footnotes(plan, records);
}

}  // namespace

/// What a fixed order of sums costs, of the first kernel that has the choice.
std::string determinismLines(const Plan &plan) {
  const auto isChoice = [](const PlanNote &note) { return note.kind == NoteKind::determinism; };
  const auto first = std::ranges::find_if(plan.notes, isChoice);
  if (first == plan.notes.end()) return "";
  const auto more = std::ranges::count_if(plan.notes, isChoice) - 1;
  return wrapped(fmt::format("determinism  {}{}", first->text,
                             more > 0 ? fmt::format("; {} more kernels: --all", more) : ""),
                 resultColumns(), 13) +
         "\n";
}

Explanation explainKernels(const runtime::Artifact &artifact, const KernelsView &view) {
  const runtime::BelievedRecords records;
  const Plan &plan = artifact.plan;
  const json &report = artifact.report;
  json rows = json::array();
  for (const PlanKernel &kernel : plan.kernels)
    rows.push_back(toJson(kernel, plan.predictedSeconds, records));
  std::string text =
      headLines(plan, report, records, resultColumns()) + determinismLines(plan) + "\n";
  text += view.wide ? wideTable(plan)
                    : screenTable(plan, report, view.all ? plan.kernels.size() : screenRows);
  constexpr size_t all = 1000;
  text += "\n" + thingsToKnow(plan, report) +
          warningLines(plan, report, records, resultColumns(), view.all ? all : screenWarnings);
  text += view.all ? details(artifact, records)
                   : "weft explain DIR --all (notes, chunks, memory) or --wide (layouts, "
                     "runners-up); --kernel, --fusion, --layout: one in full\n";
  json object = {{"model", plan.model},
                 {"variant", plan.variant},
                 {"device", plan.device},
                 {"kernels", rows},
                 {"seconds", plan.predictedSeconds},
                 {"plan", planFigures(plan)},
                 {"lowerBoundSeconds", plan.lowerBoundSeconds},
                 {"rooflineSeconds", report.value("rooflineSeconds", 0.0)},
                 {"facts", factsOf(plan, report)},
                 {"warnings", textsOf(warningsOf(plan, report, records))},
                 {"folded", foldedReport(plan)},
                 {"summary", headJson(plan, report, records)},
                 {"costModel", plan.costModel.text()},
                 {"graph", graphJson(plan)},
                 {"concurrent", plan.concurrent},
                 {"longestChain", longestChain(plan, launchesOf(plan))},
                 {"notes", textsOf(plan.notes)},
                 {"memory", memoryReport(plan)},
                 {"measurement", toJson(plan)["measurement"]},
                 {"measuredPlans", list(report, "measuredPlans")},
                 {"chunks", list(report, "chunks")},
                 {"saved", list(report, "saved")}};
  object.update(variantsJson(report));
  return {.text = text, .json = object};
}

Explanation explainKernel(const runtime::Artifact &artifact, const std::string &name) {
  const Plan &plan = artifact.plan;
  const PlanKernel &kernel = findKernel(plan, name);
  const runtime::BelievedRecords records;
  std::string text =
      fmt::format("{}\n  family     {}, {}\n", kernel.name, kernel.family, kernel.configuration);
  const char *label = "ops";
  for (const std::string &op : textsOf(kernel.ops))
    text += fmt::format("  {:<10} {}\n", label, op), label = "";
  text += operandLines(plan, "reads", kernel.inputs) + operandLines(plan, "writes", kernel.outputs);
  text += priceLines(kernel, plan, records);
  if (kernel.library) text += gemmLine(*kernel.library, plan);
  if (!kernel.source.empty())
    text += fmt::format("  launch     <<<({}), ({}), {}>>> {}\n", fmt::join(kernel.grid, ", "),
                        fmt::join(kernel.block, ", "), kernel.sharedBytes, kernel.source);
  const json notes =
      artifact.report.value("fusionNotes", json::object()).value(kernel.name, json::array());
  for (const json &note : notes) text += "  " + note.get<std::string>() + "\n";
  for (const PlanNote &note : plan.notes)
    if (note.kind == NoteKind::determinism && note.kernel == kernel.name)
      text += "  " + note.text + "\n";
  json object = toJson(kernel, plan.predictedSeconds, records);
  object["fusionNotes"] = notes;
  object["reads"] = operandsJson(plan, kernel.inputs);
  object["writes"] = operandsJson(plan, kernel.outputs);
  return {.text = text, .json = object};
}

}  // namespace weft::driver
