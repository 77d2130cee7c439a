// weft-estimate-bench: what choosing by estimates costs on the kernels of the profiled workloads
// (passes/configure/EstimateRegret.h), and on whole layers: the plan that estimates choose, priced
// by the profile, beside the plan that the profile chooses. Needs no GPU.
#include "kernel/CanonicalNames.h"
#include "kernel/Error.h"
#include "passes/configure/EstimateRegret.h"
#include "tools/driver/Compilation.h"
#include "tools/driver/ProfileModel.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <set>

namespace weft::bench {
namespace {

using namespace driver;

struct Workload {
  std::string preset, batch, length;
  bool train = false;
  std::string heads, width, mask;  ///< of the preset attention
  std::string name() const {
    return fmt::format("{}{} {} {}", preset, train ? " --train" : "", batch, length);
  }
};

/// PRESET:B:L. Throws Error(badInput).
Workload workloadNamed(const std::string &text) {
  const size_t last = text.rfind(':'), first = text.rfind(':', last - 1);
  if (last == std::string::npos || last == 0 || first == std::string::npos)
    throw Error::badInput("--workload {}: expected PRESET:B:L", text);
  return {.preset = text.substr(0, first),
          .batch = "b=" + text.substr(first + 1, last - first - 1),
          .length = "j=" + text.substr(last + 1)};
}

/// Those of profiles/optimality.txt.
std::vector<Workload> profiledWorkloads() {
  std::vector<Workload> all;
  for (const std::string preset : {"bert-base", "bert-large", "paper-encoder"}) {
    for (const auto &[batch, length] : {std::pair("b=8", "j=512"), std::pair("b=96", "j=128")})
      all.push_back({.preset = preset, .batch = batch, .length = length});
    for (const std::string length : {"j=128", "j=256", "j=512", "j=1024", "j=2048", "j=4096"})
      all.push_back({.preset = preset, .batch = "b=1", .length = length});
  }
  for (const auto &[batch, length] : {std::pair("b=8", "j=512"), std::pair("b=96", "j=128")})
    all.push_back({.preset = "paper-encoder", .batch = batch, .length = length, .train = true});
  return all;
}

/// Those whose attention alone is in the profile.
std::vector<Workload> attentionWorkloads() {
  std::vector<Workload> all = {
      {.preset = "bert-large", .batch = "b=8", .length = "j=4096"},
      {.preset = "gpt2", .batch = "b=8", .length = "j=512", .train = true},
      {.preset = "gpt2", .batch = "b=1", .length = "j=1024"},
      {.preset = "gpt-neo-1.3b", .batch = "b=1", .length = "j=4096"},
      {.preset = "llama-3-8b", .batch = "b=1", .length = "j=2048"},
      {.preset = "bert-base", .batch = "b=1", .length = "j=512", .train = true},
      {.preset = "bert-base", .batch = "b=2", .length = "j=384", .train = true},
      {.preset = "bert-base", .batch = "b=4", .length = "j=256", .train = true},
  };
  struct Alone {
    std::string_view batch, heads, length, width;
    bool isCausal = false;
  };
  for (const Alone &one : std::initializer_list<Alone>{
           {"b=1", "h=4", "j=4096", "p=64"},         {"b=1", "h=8", "j=2048", "p=64"},
           {"b=1", "h=12", "j=1024", "p=64"},        {"b=4", "h=12", "j=512", "p=64"},
           {"b=4", "h=12", "j=1024", "p=64"},        {"b=32", "h=32", "j=512", "p=64"},
           {"b=4", "h=32", "j=4096", "p=64"},        {"b=2", "h=16", "j=600", "p=96"},
           {"b=1", "h=16", "j=512", "p=128"},        {"b=1", "h=8", "j=1024", "p=128"},
           {"b=2", "h=16", "j=1024", "p=128"},       {"b=1", "h=16", "j=2048", "p=128"},
           {"b=1", "h=8", "j=4096", "p=128"},        {"b=32", "h=16", "j=512", "p=128"},
           {"b=4", "h=16", "j=4096", "p=128"},       {"b=1", "h=16", "j=16384", "p=128"},
           {"b=1", "h=12", "j=1024", "p=64", true},  {"b=2", "h=16", "j=1024", "p=64", true},
           {"b=4", "h=32", "j=4096", "p=64", true},  {"b=1", "h=8", "j=1024", "p=128", true},
           {"b=1", "h=16", "j=2048", "p=128", true}, {"b=4", "h=16", "j=4096", "p=128", true},
           {"b=1", "h=16", "j=16384", "p=128", true}})
    all.push_back({.preset = "attention",
                   .batch = std::string(one.batch),
                   .length = std::string(one.length),
                   .train = true,
                   .heads = std::string(one.heads),
                   .width = std::string(one.width),
                   .mask = one.isCausal ? "causal" : ""});
  return all;
}

std::unique_ptr<Compilation> imported(const Workload &workload, const std::string &profile) {
  ModelFlags model;
  model.model = workload.preset;
  model.train = workload.train;
  model.dims = {workload.batch, workload.length};
  for (const std::string &extent : {workload.heads, workload.width})
    if (!extent.empty()) model.dims.push_back(extent);
  if (!workload.mask.empty()) model.masks = {workload.mask};
  TargetFlags target;
  target.profile = profile;
  auto compilation = std::make_unique<Compilation>(model, ChoiceFlags(), target);
  compilation->import();
  return compilation;
}

/// Of every kernel that selection may choose in the workloads.
std::vector<EstimateSample> samplesOf(const std::vector<Workload> &workloads,
                                      const CostModel &prices) {
  std::vector<EstimateSample> samples;
  std::set<std::string> kernels;
  std::set<std::pair<std::string, std::string>> lines;
  for (const Workload &workload : workloads) {
    const auto compilation = imported(workload, "none");
    for (const select::Problem &problem :
         compilation->problems(compilation->propose(Phase::import)))
      for (const select::Candidate &candidate : problem.candidates) {
        if (!kernels.insert(canonicalText(candidate.kernel)).second) continue;
        for (EstimateSample &sample : estimateSamples(candidate.kernel, prices))
          if (lines.emplace(sample.subject, sample.line).second)
            samples.push_back(std::move(sample));
      }
  }
  return samples;
}

/// Seconds of a plan as the profile prices it; of a configuration without a measurement the fastest
/// in its layouts, or else the estimate.
double pricedByProfile(const select::SelectionResult &path, const select::Problem &problem,
                       const CostModel &prices) {
  double sum = 0;
  for (const select::Step &step : path.steps) {
    if (step.candidate < 0 || step.cost.seconds <= 0) {
      sum += step.cost.seconds;
      continue;
    }
    const Kernel &kernel = problem.candidates[size_t(step.candidate)].kernel;
    const Cost own = prices.cost(kernel, step.configuration);
    double seconds = own.seconds;
    for (const PricedConfiguration &one : prices.measured(kernel))
      if (!own.measured && one.configuration.inputs == step.configuration.inputs &&
          one.configuration.outputs == step.configuration.outputs)
        seconds = seconds == own.seconds ? one.cost.seconds : std::min(seconds, one.cost.seconds);
    sum += seconds;
  }
  return sum;
}

/// Every measurement of a family beside its estimate, for fits.
void printSamples(const std::vector<EstimateSample> &samples, const std::string &family) {
  for (const EstimateSample &sample : samples)
    if (sample.family == family)
      fmt::print("{} {} {:.2f} {:.2f} {}\n", sample.subject, sample.name, sample.measured * 1e6,
                 sample.estimate * 1e6, sample.line);
}

void printLayers(const std::vector<Workload> &workloads, const CostModel &prices) {
  std::printf("\nlayer                                by estimates us  by the profile us  ratio\n");
  for (const Workload &workload : workloads) {
    if (workload.train) continue;  // their searches take longer than all others together
    double seconds[2];
    for (const bool isMeasured : {false, true}) {
      const auto compilation = imported(workload, isMeasured ? "" : "none");
      const decision::Decision decision = compilation->decide(compilation->propose(Phase::import));
      seconds[isMeasured] =
          pricedByProfile(decision.path(), decision.best().selection.problem(), prices);
    }
    fmt::print("{:<36} {:>15.2f}  {:>17.2f}  {:>5.3f}\n", workload.name(), seconds[0] * 1e6,
               seconds[1] * 1e6, seconds[0] / seconds[1]);
  }
}

int run(int argc, char **argv) {
  CLI::App app("estimates beside the measurements that ship");
  size_t worst = 10;
  bool hasLayers = false;
  std::string family;
  TargetFlags target;
  std::vector<std::string> named;
  app.add_option("--profile", target.profile,
                 "measured times: a text or a store, in place of those that ship");
  app.add_option("--workload", named,
                 "PRESET:B:L, a layer of it, in place of the profiled ones; repeated")
      ->allow_extra_args(false);
  app.add_option("--worst", worst, "regrets of single kernels that are shown, a line of families")
      ->capture_default_str();
  app.add_flag("--layers", hasLayers, "whole layers, too");
  app.add_option("--samples", family,
                 "instead, every measurement of a family: subject, kernel, measured and estimated "
                 "us, configuration");
  try {
    app.parse(argc, argv);
    const std::shared_ptr<CostModel> prices = costModelOf(target);
    std::vector<Workload> workloads, all;
    for (const std::string &name : named) workloads.push_back(workloadNamed(name));
    if (named.empty()) workloads = profiledWorkloads(), all = attentionWorkloads();
    all.insert(all.begin(), workloads.begin(), workloads.end());
    const std::vector<EstimateSample> samples = samplesOf(all, *prices);
    if (!family.empty()) {
      printSamples(samples, family);
      return 0;
    }
    std::printf("%s", print(regrets(samples), biases(samples), worst).c_str());
    if (hasLayers) printLayers(workloads, *prices);
  } catch (const CLI::ParseError &error) {
    return app.exit(error);
  } catch (const Error &error) {
    std::fprintf(stderr, "weft-estimate-bench: error: %s\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char **argv) { return weft::bench::run(argc, argv); }
