// weft explain --movement: what every operator computes and moves and the kernel it ends in (the
// left half of Table A.1 of "Data Movement Is All You Need"), the classes' shares (Table 1 there),
// and the ledger of bytes from phase to phase.
#include "kernel/Error.h"
#include "tools/driver/Console.h"
#include "tools/driver/commands/Explain.h"

#include <algorithm>
#include <map>

namespace weft::driver {
namespace {

using nlohmann::json;

const PlanKernel *kernelNamed(const Plan *plan, const json &kernels) {
  if (!plan || kernels.size() != 1) return nullptr;
  const auto found = std::find_if(plan->kernels.begin(), plan->kernels.end(),
                                  [&](const auto &kernel) { return kernel.name == kernels[0]; });
  return found == plan->kernels.end() ? nullptr : &*found;
}

std::string joined(const json &names, const char *separator) {
  return fmt::format("{}", fmt::join(names.get<std::vector<std::string>>(), separator));
}

/// "12.58"; volumes that would round to nothing are told from nothing.
std::string millions(int64_t elements) {
  constexpr int64_t roundsToNothing = 5000;
  if (elements > 0 && elements < roundsToNothing) return "<0.01";
  return fmt::format("{:.2f}", double(elements) / 1e6);
}

/// Kernels that compute more than what masks leave of their operators: of stored scores all.
std::string hiddenScoresText(const json &movement, const Plan *plan) {
  if (!plan) return "";
  std::map<std::string, double> needed;
  for (const json &one : movement["operators"])
    if (const PlanKernel *kernel = kernelNamed(plan, one["kernels"]))
      needed[kernel->name] += one["flop"].get<double>();
  std::string text;
  for (const PlanKernel &kernel : plan->kernels) {
    constexpr double counting = 1.02;  // statistics and factors are counted in one or the other
    const auto found = needed.find(kernel.name);
    if (found != needed.end() && kernel.flop > counting * found->second)
      text += fmt::format("{}: {:.3f} Gflop, of scores that masks hide, too\n", kernel.name,
                          kernel.flop / 1e9);
  }
  if (text.empty()) return "";
  return "Gflop: what masks leave; % peak: of what these kernels compute:\n" + text;
}

std::string operatorsText(const json &movement, const Plan *plan) {
  std::vector<std::pair<std::string, Table::Align>> columns{
      {"operator", left}, {"computes", left}, {"class", left}, {"Gflop", right},
      {"in 1e6", right},  {"out 1e6", right}, {"kernel", left}};
  if (plan)
    columns.insert(columns.end(),
                   {{"time", right}, {"% peak", right}, {"MUE", right}, {"bound", left}});
  Table table(columns);
  std::string last;
  for (const json &one : movement["operators"]) {
    const PlanKernel *kernel = kernelNamed(plan, one["kernels"]);
    const std::string name = joined(one["kernels"], ", ");
    std::vector<std::string> cells{one["kind"],
                                   joined(one["results"], " "),
                                   one["class"],
                                   fmt::format("{:.3f}", one["flop"].get<double>() / 1e9),
                                   millions(one["elementsRead"]),
                                   millions(one["elementsWritten"]),
                                   name.empty() ? "-" : name};
    const bool again = kernel && name == last;  // a kernel's own figures stand in its first row
    if (kernel && !again && !isView(*kernel))
      cells.insert(
          cells.end(),
          {formatSeconds(kernel->seconds) + (kernel->edited || kernel->isUntold
                                                 ? fmt::format(" {}", nameOf(timeSourceOf(*kernel)))
                                                 : ""),
           fmt::format("{:.1f}", movement["percentOfPeak"].value(kernel->name, 0.0)),
           kernel->measured ? fmt::format("{:.0f}", kernel->mue) : "-",
           std::string(boundName(*kernel))});
    else if (plan) cells.insert(cells.end(), 4, again ? "\"" : "-");
    table.addRow(cells);
    last = name;
  }
  return table.print() + hiddenScoresText(movement, plan);
}

/// Times are those of whole kernels: what is fused counts under its heaviest class.
std::string sharesText(const json &movement, const Plan *plan) {
  const json classes = movement.value("classes", json::object());
  double seconds = 0;
  int64_t kernels = 0, measured = 0;
  for (const auto &[name, entry] : classes.items()) {
    seconds += entry["seconds"].get<double>();
    kernels += entry["kernels"].get<int64_t>();
    measured += entry["measured"].get<int64_t>();
  }
  int64_t edited = 0;  // since the classes were counted
  if (plan) edited = std::ranges::count_if(plan->kernels, &PlanKernel::edited);
  if (plan && edited > 0) measured = std::ranges::count_if(plan->kernels, &PlanKernel::measured);
  Table table({{"class", left},
               {"operators", right},
               {"Gflop", right},
               {"% flop", right},
               {"% time", right}});
  const auto timeShare = [&](const std::string &name) {
    if (!classes.contains(name) || !(seconds > 0)) return std::string("-");
    return fmt::format("{:.1f}", 100 * classes[name]["seconds"].get<double>() / seconds);
  };
  std::vector<std::string> listed;
  for (const json &share : movement["shares"]) {
    listed.push_back(share["class"]);
    table.addRow({share["class"], std::to_string(share["operators"].get<int64_t>()),
                  fmt::format("{:.3f}", share["flop"].get<double>() / 1e9),
                  fmt::format("{:.2f}", share["percentOfFlop"].get<double>()),
                  timeShare(share["class"])});
  }
  for (const auto &[name, entry] : classes.items())
    if (std::find(listed.begin(), listed.end(), name) == listed.end() &&
        entry["kernels"].get<int64_t>() > 0)
      table.addRow({name, "-", "-", "-", timeShare(name)});
  if (kernels == 0) return table.print();
  return table.print() +
         fmt::format(
             "time: of kernels, each under the class of its heaviest op; {} of {} kernels "
             "measured{}\n",
             measured, kernels,
             edited > 0
                 ? fmt::format(", {} edited by hand: the times are of the generated text", edited)
                 : "");
}

std::string reduction(int64_t before, int64_t after) {
  return before > 0 ? fmt::format("{:.1f}%", 100 * (1 - double(after) / double(before)))
                    : std::string("-");
}

/// Bytes of the whole graph with every op a separate kernel, before anything was rewritten.
int64_t separate(const json &phases) {
  int64_t bytes = 0;
  for (const json &phase : phases)
    if (phase["phase"] == "import" || phase["phase"] == "differentiate") bytes = phase["bytes"];
  return bytes;
}

std::string phasesText(const json &phases) {
  Table table({{"after", left}, {"kernels", right}, {"bytes", right}, {"saved", right}});
  for (const json &phase : phases) {
    const bool grew = phase["phase"] == "import";
    table.addRow({phase["phase"], std::to_string(phase["kernels"].get<int64_t>()),
                  formatBytes(phase["bytes"]),
                  grew || phase["phase"] == "differentiate"
                      ? ""
                      : reduction(separate(phases), phase["bytes"])});
  }
  return table.print() +
         "up to attention every operator is a separate kernel, and saved is against that; fuse: "
         "each kernel reads and writes\n"
         "its tensors once; select: what the chosen configurations move, transposes included\n";
}

std::string classesText(const json &ledger) {
  Table table(
      {{"class", left}, {"unfused", right}, {"fused", right}, {"saved", right}, {"moved", right}});
  int64_t unfused = 0, fused = 0, moved = 0;
  for (const auto &[name, entry] : ledger.items()) {
    const int64_t before = entry["unfused"], after = entry["fused"], actual = entry["moved"];
    table.addRow({name, formatBytes(before), formatBytes(after), reduction(before, after),
                  formatBytes(actual)});
    unfused += before, fused += after, moved += actual;
  }
  table.addRow({"total", formatBytes(unfused), formatBytes(fused), reduction(unfused, fused),
                formatBytes(moved)});
  return table.print() +
         "unfused: each op reads and writes its tensors once; fused: each kernel does; moved: what "
         "the chosen\n"
         "configurations move. A fused kernel counts under the class of its heaviest op.\n";
}

}  // namespace

Explanation explainMovement(const json &movement, const Plan *plan) {
  if (!movement.contains("operators"))
    throw Error::badInput(
        "report.json was written by an older weft and has no account of operators; compile again");
  json object = movement;
  std::string text = operatorsText(movement, plan) + "\n" + sharesText(movement, plan) + "\n" +
                     phasesText(movement["phases"]);
  const json &phases = movement["phases"];
  object["separateBytes"] = separate(phases);
  object["reduction"] = separate(phases) > 0
                            ? 1 - phases.back()["bytes"].get<double>() / double(separate(phases))
                            : 0;
  if (plan) {
    text += "\n" + classesText(movement["classes"]);
    for (const char *member : {"unfused", "fused", "moved"}) {
      int64_t sum = 0;
      for (const auto &[name, entry] : movement["classes"].items())
        sum += entry[member].get<int64_t>();
      object[member] = sum;
    }
    json kernels = json::object();
    for (const PlanKernel &kernel : plan->kernels)
      kernels[kernel.name] = {{"seconds", kernel.seconds},
                              {"flop", kernel.flop},
                              {"measured", kernel.measured},
                              {"timeSource", nameOf(timeSourceOf(kernel))},
                              {"mue", kernel.mue},
                              {"bound", boundName(kernel)},
                              {"percentOfPeak", movement["percentOfPeak"].value(kernel.name, 0.0)}};
    object["kernels"] = kernels;
  }
  return {.text = text, .json = object};
}

}  // namespace weft::driver
