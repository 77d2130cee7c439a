// Choices by estimate beside measurements; see EstimateRegret.h.
#include "passes/configure/EstimateRegret.h"

#include "kernel/ConfigurationText.h"
#include "kernel/Profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace weft {
namespace {

/// Of samples, the fastest by a member.
EstimateSample fastest(const std::vector<EstimateSample> &samples,
                       double EstimateSample::*seconds) {
  return *std::ranges::min_element(samples, {}, seconds);
}

double geometricMean(const std::vector<double> &logarithms) {
  double sum = 0;
  for (const double one : logarithms) sum += one;
  return std::exp(sum / double(logarithms.size()));
}

double deviationOf(const std::vector<double> &values) {
  double sum = 0, squares = 0;
  for (const double one : values) sum += one, squares += one * one;
  const double count = double(values.size());
  return std::sqrt(std::max(0.0, squares / count - sum / count * sum / count));
}

}  // namespace

std::vector<EstimateSample> estimateSamples(const Kernel &kernel, const CostModel &prices) {
  const std::unique_ptr<CostModel> analytic = analyticCostModel(prices.device());
  std::vector<EstimateSample> samples;
  std::set<std::pair<std::string, std::string>> seen;
  for (const PricedConfiguration &one : prices.measured(kernel)) {
    const ProfileSubject subject = subjectOf(kernel, one.configuration);
    EstimateSample sample{.subject = profileHash(subject.text),
                          .name = subject.name,
                          .line = configurationLine(kernel, one.configuration),
                          .family = std::string(one.configuration.knobs.family().name),
                          .measured = one.cost.seconds};
    if (!seen.emplace(sample.subject, sample.line).second) continue;
    const Cost estimate = analytic->cost(kernel, one.configuration);
    sample.margin = estimate.margin;
    sample.estimate = estimate.seconds / (1 + estimate.margin);
    samples.push_back(std::move(sample));
  }
  return samples;
}

std::vector<FamilyRegret> regrets(const std::vector<EstimateSample> &samples) {
  std::map<std::string, std::vector<EstimateSample>> bySubject;
  for (const EstimateSample &sample : samples) bySubject[sample.subject].push_back(sample);
  std::map<std::string, FamilyRegret> byFamilies;
  for (const auto &[subject, all] : bySubject) {
    if (all.size() < 2) continue;
    std::set<std::string> families;
    for (const EstimateSample &sample : all) families.insert(sample.family);
    FamilyRegret &regret = byFamilies[fmt::format("{}", fmt::join(families, ", "))];
    regret.subjects.push_back({.chosen = fastest(all, &EstimateSample::estimate),
                               .best = fastest(all, &EstimateSample::measured)});
  }
  std::vector<FamilyRegret> result;
  for (auto &[families, regret] : byFamilies) {
    regret.families = families;
    std::ranges::stable_sort(regret.subjects, std::greater(), &ChosenByEstimate::regret);
    std::vector<double> logarithms;
    for (const ChosenByEstimate &one : regret.subjects)
      logarithms.push_back(std::log(one.regret()));
    regret.mean = geometricMean(logarithms);
    result.push_back(std::move(regret));
  }
  return result;
}

std::vector<EstimateBias> biases(const std::vector<EstimateSample> &samples) {
  using Class = std::pair<std::string, int>;  // family, margin in thousandths
  std::map<std::pair<Class, std::string>, EstimateSample> chosen;
  for (const EstimateSample &sample : samples) {
    const Class own{sample.family, int(std::lround(1000 * sample.margin))};
    const auto [found, isNew] = chosen.try_emplace({own, sample.subject}, sample);
    if (!isNew && sample.estimate < found->second.estimate) found->second = sample;
  }
  std::map<Class, std::vector<double>> logarithms;
  for (const auto &[key, sample] : chosen)
    logarithms[key.first].push_back(std::log(sample.estimate / sample.measured));
  std::vector<EstimateBias> result;
  for (const auto &[own, list] : logarithms)
    result.push_back({.family = own.first,
                      .margin = own.second / 1000.0,
                      .subjects = list.size(),
                      .bias = geometricMean(list),
                      .deviation = deviationOf(list)});
  return result;
}

std::string print(const std::vector<FamilyRegret> &regrets, const std::vector<EstimateBias> &biases,
                  size_t worst) {
  std::string text = "families                         subjects  regret   worst\n";
  for (const FamilyRegret &regret : regrets) {
    text += fmt::format("{:<32} {:>8}  {:>6.3f}  {:>6.3f}\n", regret.families,
                        regret.subjects.size(), regret.mean, regret.subjects.front().regret());
    for (size_t i = 0; i < std::min(worst, regret.subjects.size()); ++i) {
      const auto &[chosen, best] = regret.subjects[i];
      text += fmt::format("    {:.3f} {}\n", regret.subjects[i].regret(), chosen.name);
      for (const EstimateSample &one : {chosen, best})
        text += fmt::format("      {:>8.2f} us, estimated {:>8.2f}: {}\n", one.measured * 1e6,
                            one.estimate * 1e6, one.line);
    }
  }
  text += "\nfamily             margin  subjects  estimate / measurement  deviation\n";
  for (const EstimateBias &bias : biases)
    text += fmt::format("{:<18} {:>6.3f}  {:>8}  {:>22.3f}  {:>9.3f}\n", bias.family, bias.margin,
                        bias.subjects, bias.bias, bias.deviation);
  return text;
}

}  // namespace weft
