// weft-run: reads an artifact without MLIR, checks it and prints what would run. The runtime's own small binary.
#include "kernel/Error.h"
#include "runtime/Artifact.h"
#include "runtime/Build.h"
#include "runtime/Driver.h"
#include "runtime/JsonText.h"

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include <cstdio>

using namespace weft;

namespace {

std::string launchOf(const runtime::PlanKernel &kernel) {
  if (kernel.library) return "library";
  return runtime::isView(kernel) ? "view" : fmt::format("{} x {}", fmt::join(kernel.grid, "."), fmt::join(kernel.block, "."));
}

void printTable(const runtime::Plan &plan) {
  fmt::print("{} ({}), {} kernels for {}\n", plan.model, plan.dtype, plan.kernels.size(), plan.target);
  fmt::print("{:>3}  {:<36} {:<18} {:>24} {:>9} {:>5} {:>6}  {}\n", "#", "kernel", "family", "grid x block", "time us", "regs",
             "spills", "after");
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    const runtime::PlanKernel &kernel = plan.kernels[i];
    fmt::print("{:>3}  {:<36} {:<18} {:>24} {:>9.2f} {:>5} {:>6}  {}\n", i, kernel.name, kernel.family, launchOf(kernel),
               1e6 * kernel.seconds, kernel.registers, kernel.spillBytes, fmt::join(kernel.after, ","));
  }
  for (const auto &[name, kernels] : plan.entryPoints)
    fmt::print("entry point {}: {} kernels\n", name, kernels.size());
}

nlohmann::json summaryOf(const runtime::Plan &plan, const runtime::DriverReport &driver) {
  nlohmann::json kernels = nlohmann::json::array();
  for (const runtime::PlanKernel &kernel : plan.kernels)
    kernels.push_back({{"name", kernel.name},
                       {"family", kernel.family},
                       {"grid", kernel.grid},
                       {"block", kernel.block},
                       {"seconds", kernel.seconds},
                       {"after", kernel.after},
                       {"built", !kernel.cubin.empty() || kernel.source.empty()}});
  return {{"model", plan.model},   {"target", plan.target},           {"kernels", kernels},
          {"checked", true},       {"driver", driver.version},        {"driverProblem", driver.problem},
          {"entryPoints", plan.entryPoints}};
}

int run(const std::string &folder, bool checkOnly, bool asJson) {
  const runtime::Artifact artifact = runtime::readArtifact(folder);
  runtime::verifyProducts(artifact.plan, folder + "/plan.json");
  const runtime::DriverReport driver = runtime::inspectDriver();
  if (asJson)
    fmt::print("{}", runtime::prettyText(summaryOf(artifact.plan, driver)));
  else
    printTable(artifact.plan);
  if (checkOnly) {
    if (!asJson) fmt::print("checked: files, hashes, parameters and order agree with the plan\n");
    return 0;
  }
  if (!driver.problem.empty()) throw Error::unsupported("{}; --check stops after the checks", driver.problem);
  throw Error::unsupported("this weft-run checks artifacts and does not launch kernels yet; use --check");
}

}  // namespace

int main(int argumentCount, char **arguments) {
  if (const auto code = runtime::serveAsBuildWorker(argumentCount, arguments)) return *code;
  CLI::App app("Checks an artifact and prints what it runs, without MLIR.", "weft-run");
  std::string folder;
  bool checkOnly = false, asJson = false;
  app.add_option("DIR", folder, "the artifact's folder")->required();
  app.add_flag("--check", checkOnly, "stop after the checks: needs no GPU");
  app.add_flag("--json", asJson, "print JSON");
  try {
    app.parse(argumentCount, arguments);
    return run(folder, checkOnly, asJson);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : int(ErrorKind::badInput);
  } catch (const Error &error) {
    std::fflush(stdout);
    fmt::print(stderr, "weft-run: {}\n", error.what());
    return int(error.kind);
  }
}
