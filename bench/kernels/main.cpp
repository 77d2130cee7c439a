// weft-kernel-bench: emitted loop and transpose kernels against the best copy kernel of the same
// run.
#include "bench/kernels/Table.h"
#include "kernel/Error.h"
#include "passes/configure/CostModel.h"
#include "runtime/build/Build.h"
#include "runtime/system/JsonText.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <fstream>

namespace weft::bench {
namespace {

struct Arguments {
  std::vector<std::string> names;
  size_t top = 12, transposeTop = 4, lines = 6, transposeStep = 0;
  std::vector<int64_t> transposeExtents = {16, 64, 512, 64};
  bool buildOnly = false, list = false;
  std::string json, dump;
  Protocol protocol;
};

Arguments parse(CLI::App &app) {
  Arguments arguments;
  app.add_option("kernel", arguments.names,
                 "cases whose name contains one of these; all if there is none");
  app.add_option("--top", arguments.top,
                 "configurations a case, cheapest first by the analytic model; 0: all");
  app.add_option("--transpose-top", arguments.transposeTop, "the same for transposes");
  app.add_option("--transposes", arguments.transposeStep,
                 "every N-th of the 552 ordered pairs of layouts of four axes; 0: none");
  app.add_option("--extents", arguments.transposeExtents, "of the transposed tensor")->expected(4);
  app.add_option("--lines", arguments.lines, "configurations printed a case");
  app.add_option("--rounds", arguments.protocol.rounds, "interleaved rounds; the median counts");
  app.add_option("--json", arguments.json, "also write everything to this file");
  app.add_option("--dump", arguments.dump, "also write the texts of all kernels to this file");
  app.add_flag("--build-only", arguments.buildOnly, "no GPU: registers and spills alone");
  app.add_flag("--list", arguments.list, "print the names of the cases");
  return arguments;
}

/// The cheapest configurations by the analytic model.
std::vector<Candidate> candidatesOf(const Case &subject, size_t top) {
  const Device &device = findDevice("h200");
  const std::unique_ptr<CostModel> model = analyticCostModel(device);
  std::vector<std::pair<double, Configuration>> priced;
  forEachConfiguration(
      subject.kernel, device, subject.layouts, [&](const Configuration &configuration) {
        if (configuration.knobs.family().hasText())
          priced.emplace_back(model->cost(subject.kernel, configuration).seconds, configuration);
        return true;
      });
  std::stable_sort(priced.begin(), priced.end(),
                   [](const auto &a, const auto &b) { return a.first < b.first; });
  if (top > 0 && priced.size() > top) priced.resize(top);
  std::vector<Candidate> candidates;
  for (auto &[seconds, configuration] : priced) {
    codegen::EmittedKernel emitted = codegen::emit(subject.kernel, configuration, "sm_90a");
    candidates.push_back({.subject = &subject,
                          .configuration = std::move(configuration),
                          .emitted = std::move(emitted),
                          .modelSeconds = seconds});
  }
  return candidates;
}

/// All kernels of all cases, in worker processes.
void buildAll(std::vector<std::vector<Candidate>> &cases) {
  std::vector<runtime::BuildRequest> requests;
  for (const std::vector<Candidate> &candidates : cases)
    for (const Candidate &candidate : candidates)
      requests.push_back({.name = candidate.subject->name,
                          .text = candidate.emitted.text,
                          .entry = candidate.emitted.entry,
                          .architecture = "sm_90a",
                          .extraFlags = {}});
  runtime::BuildOptions options;
  options.useCache = false;
  options.headers = codegen::deviceHeaders();
  std::vector<runtime::BuildResult> built = runtime::build(requests, options);
  size_t next = 0;
  for (std::vector<Candidate> &candidates : cases)
    for (Candidate &candidate : candidates) {
      runtime::BuildResult &result = built[next++];
      candidate.cubin = std::move(result.cubin);
      candidate.failure = result.error;
      candidate.registers = result.registers;
      candidate.spillBytes = result.spillBytes;
      candidate.sharedBytes = result.staticSharedBytes;
    }
}

std::vector<Case> casesFor(const Arguments &arguments) {
  std::vector<Case> cases = loopCases();
  if (!arguments.names.empty())
    std::erase_if(cases, [&](const Case &one) {
      return std::none_of(
          arguments.names.begin(), arguments.names.end(),
          [&](const std::string &name) { return one.name.find(name) != std::string::npos; });
    });
  if (arguments.transposeStep > 0)
    for (Case &one : transposeCases(arguments.transposeExtents, arguments.transposeStep))
      cases.push_back(std::move(one));
  return cases;
}

int run(const Arguments &arguments) {
  const std::vector<Case> subjects = casesFor(arguments);
  if (arguments.list) {
    for (const Case &subject : subjects) fmt::print("{:<14} {}\n", subject.group, subject.name);
    return 0;
  }
  std::vector<std::vector<Candidate>> cases;
  for (const Case &subject : subjects)
    cases.push_back(candidatesOf(
        subject, subject.group == "transpose" ? arguments.transposeTop : arguments.top));
  if (!arguments.dump.empty()) {
    std::ofstream file(arguments.dump);
    for (const std::vector<Candidate> &candidates : cases)
      for (const Candidate &candidate : candidates) file << candidate.emitted.readable << '\n';
  }
  buildAll(cases);
  std::optional<Bench> bench;
  if (!arguments.buildOnly) {
    bench.emplace(arguments.protocol);
    fmt::print("{}, driver {}; {} rounds\n", bench->gpu().name, bench->gpu().driverVersion,
               arguments.protocol.rounds);
  }
  nlohmann::json all = nlohmann::json::array();
  bool failed = false;
  for (std::vector<Candidate> &candidates : cases) {
    const CopyRates copy = bench ? bench->measure(candidates) : CopyRates{};
    printCase(candidates, copy, arguments.lines);
    all.push_back(toJson(candidates, copy));
    failed |= std::any_of(candidates.begin(), candidates.end(),
                          [](const Candidate &one) { return !one.failure.empty(); });
  }
  if (bench) printGroups(cases);
  if (!arguments.json.empty()) std::ofstream(arguments.json) << runtime::prettyText(all);
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace weft::bench

int main(int argumentCount, char **values) {
  if (const auto code = weft::runtime::serveAsBuildWorker(argumentCount, values)) return *code;
  CLI::App app("emitted loop and transpose kernels against the best copy kernel of the same run");
  weft::bench::Arguments arguments = weft::bench::parse(app);
  try {
    app.parse(argumentCount, values);
    return weft::bench::run(arguments);
  } catch (const CLI::ParseError &error) {
    return app.exit(error);
  } catch (const weft::Error &error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return static_cast<int>(error.kind);
  }
}
