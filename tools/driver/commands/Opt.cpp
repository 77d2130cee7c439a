// weft opt: what the proposing passes make of a graph, before anything is chosen.
#include "tools/driver/Compilation.h"
#include "tools/driver/Console.h"
#include "tools/driver/commands/Commands.h"
#include "tools/driver/commands/Listings.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace weft::driver {
namespace {

struct OptFlags {
  ModelFlags model;
  ChoiceFlags choices;
  bool records = false, candidates = false;
  std::string output = "-";
};

nlohmann::json toJson(const std::vector<ProposedVariant> &variants) {
  nlohmann::json list = nlohmann::json::array();
  for (const ProposedVariant &variant : variants)
    list.push_back({{"name", variant.name()},
                    {"rewrites", textsOf(variant.rewrites)},
                    {"graph", Compilation::print(variant.module.get())}});
  return {{"variants", list}};
}

int run(const OptFlags &flags, bool json) {
  TargetFlags unpriced;  // proposals depend on the device, not on times
  unpriced.profile = noProfile;
  Compilation compilation(flags.model, flags.choices, unpriced);
  compilation.import();
  const bool needFusions = flags.records || flags.candidates;
  std::vector<ProposedVariant> variants =
      needFusions ? compilation.propose(Phase::algebra)
                  : compilation.rewrite(Phase::algebra, Phase::attention);
  const Device &device = compilation.costModel().device();
  if (flags.candidates) writeFile(flags.output, printCandidates(variants, device, json));
  else if (flags.records) writeFile(flags.output, printFusions(variants, device, json));
  else writeFile(flags.output, json ? jsonText(toJson(variants)) : printVariants(variants));
  return 0;
}

}  // namespace

Action addOpt(CLI::App &command) {
  auto flags = std::make_shared<OptFlags>();
  flags->model.declare(command);
  flags->choices.declare(command);
  const OptionGroup group(command, "Output");
  command.add_flag("--records", flags->records,
                   "print every fusion attempt and its reason instead of graphs");
  command.add_flag("--candidates", flags->candidates,
                   "print candidate kernels and how many configurations each has");
  command.add_option("-o,--output", flags->output, "file to write; default: standard output")
      ->type_name("FILE");
  return [flags](bool json) { return run(*flags, json); };
}

}  // namespace weft::driver
