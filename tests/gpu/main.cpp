// weft-gpu-tests: emitted kernels of every family on a GPU, each against fp64. Exit code 0: all
// that ran agree; 1: some do not; 77: skipped, with the reason.
#include "codegen/targets/Targets.h"
#include "kernel/Device.h"
#include "kernel/Error.h"
#include "kernel/Family.h"
#include "kernel/reference/Rounding.h"
#include "runtime/build/Build.h"
#include "runtime/cuda/Driver.h"
#include "runtime/verify/KernelInputs.h"
#include "runtime/verify/PointCheck.h"
#include "tests/gpu/AttentionInputs.h"
#include "tests/gpu/Cases.h"
#include "tests/gpu/DeviceRun.h"
#include "tests/support/DeviceHeaders.h"
#include "tests/unit/samples/SampleSoftmaxes.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <future>
#include <limits>
#include <map>
#include <regex>
#include <thread>

namespace weft::gputest {
namespace {

using runtime::TensorImage;

constexpr int skipped = 77;
constexpr size_t batchSize = 192;

struct Options {
  std::string filter, source;
  double limitSeconds = 1e9;
  int64_t points = 4096;
  size_t most = ~size_t(0);
  size_t share = 0, shares = 1;
  bool list = false, leaveUninitialized = false, notNumbers = false, verbose = false;
};

struct Built {
  const Case *one = nullptr;
  codegen::EmittedKernel emitted;
  runtime::BuildResult result;
  std::string problem;
};

std::vector<Built> buildBatch(std::span<const Case> cases, const std::string &architecture) {
  std::vector<Built> batch;
  std::vector<runtime::BuildRequest> requests;
  for (const Case &one : cases) {
    Built built{.one = &one, .emitted = {}, .result = {}, .problem = {}};
    try {
      built.emitted = codegen::emit(one.kernel, one.configuration, architecture);
    } catch (const Error &error) {
      built.problem = fmt::format("not emitted: {}", error.what());
    }
    requests.push_back({.name = one.name,
                        .text = built.emitted.text,
                        .entry = built.emitted.entry,
                        .architecture = architecture,
                        .extraFlags = {}});
    batch.push_back(std::move(built));
  }
  runtime::BuildOptions options;
  options.headers = test::deviceHeaders();
  std::vector<runtime::BuildResult> results = runtime::build(requests, options);
  for (size_t n = 0; n < batch.size(); ++n) {
    batch[n].result = std::move(results[n]);
    if (batch[n].problem.empty() && !batch[n].result.error.empty())
      batch[n].problem = fmt::format("not built: {}", batch[n].result.error);
  }
  return batch;
}

/// Makes one element of every float input NaN, somewhere in its middle.
void plantNotNumbers(std::vector<TensorImage> &inputs) {
  for (TensorImage &image : inputs) {
    if (image.type() == DType::i32 || image.type() == DType::i1) continue;
    std::vector<int64_t> middle;
    for (int64_t extent : image.shape()) middle.push_back(extent / 2);
    image.set(middle, std::numeric_limits<double>::quiet_NaN());
  }
}

/// The first sampled element that `admits` (what fp64 has, what is there, the type stored) rejects;
/// empty if there is none.
template <typename Admits>
std::string firstRejected(const Kernel &kernel, const std::vector<TensorImage> &inputs,
                          const std::vector<TensorImage> &outputs,
                          const runtime::CheckOptions &options, int64_t &count,
                          const Admits &admits) {
  std::vector<reference::ElementReader> readers;
  for (const TensorImage &input : inputs)
    readers.push_back([&input](std::span<const int64_t> at) { return input.at(at); });
  reference::PointEvaluator points(kernel, std::move(readers), options.dropout);
  for (size_t output = 0; output < outputs.size(); ++output)
    for (const std::vector<int64_t> &place : runtime::samplePoints(kernel, output, options)) {
      const reference::Point want = points.output(output, place);
      const double got = outputs[output].at(place);
      ++count;
      if (!admits(want, got, outputs[output].type()))
        return fmt::format("output {} at [{}]: {} instead of {}", output, fmt::join(place, ", "),
                           got, want.value);
    }
  return {};
}

/// NaN passes through: a NaN where fp64 has one, agreement everywhere else.
bool hasSameNotNumbers(const reference::Point &want, double got, DType type) {
  return std::isnan(want.value) ? std::isnan(got) : reference::agrees(got, want, type);
}

/// Of whole numbers: each result is the exact one, rounded once.
bool isExact(const reference::Point &want, double got, DType type) {
  return got == reference::roundTo(type, want.value);
}

std::string writtenAround(const std::vector<TensorImage> &outputs) {
  for (size_t output = 0; output < outputs.size(); ++output)
    if (!outputs[output].intactAround()) return fmt::format("writes outside output {}", output);
  return {};
}

/// Inputs of a case.
void fillInputs(const Kernel &kernel, Inputs kind, samples::ScoreKind scores,
                std::vector<TensorImage> &inputs) {
  constexpr uint64_t seed = 7;
  const std::vector<runtime::InputRule> rules = runtime::inputRules(kernel);
  for (size_t n = 0; n < inputs.size(); ++n) {
    const bool isWhole = kind == Inputs::whole && rules[n].kind == runtime::InputRule::Kind::real;
    runtime::fillInput(
        inputs[n],
        isWhole ? runtime::InputRule{runtime::InputRule::Kind::integer, -2, 2} : rules[n], seed, n);
    if (kind == Inputs::masked && kernel.values[size_t(kernel.inputs[n])].name == "mask") {
      const int64_t keys = inputs[n].shape().back();
      inputs[n].fill([&](int64_t at) {
        return samples::isSeen(at % keys) ? 0.0 : -std::numeric_limits<double>::infinity();
      });
    }
    const std::vector<int64_t> &shape = inputs[n].shape();
    const auto placeOf = [&](int64_t at) {
      std::vector<int64_t> place(shape.size());
      for (size_t d = shape.size(); d-- > 0; at /= shape[d]) place[d] = at % shape[d];
      return place;
    };
    const std::string &name = kernel.values[size_t(kernel.inputs[n])].name;
    if (kind == Inputs::hard && (name == "q" || name == "keys"))
      inputs[n].fill([&](int64_t at) {
        return samples::adversarialElement(scores, name == "keys", placeOf(at), shape.back());
      });
    if (kind != Inputs::spread) continue;
    const TensorImage bells = inputs[n];
    constexpr int64_t least = -18, orders = 37;  // 2^-18 to 2^18
    inputs[n].fill([&](int64_t at) {
      return std::ldexp(bells.at(placeOf(at)), int(least + at * 7 % orders));
    });
  }
}

/// Empty, or what is wrong.
std::string runCase(const Built &built, const Options &options, const runtime::cuda::Stream &stream,
                    runtime::CheckResult &result) {
  const Kernel &kernel = built.one->kernel;
  const Configuration &configuration = built.one->configuration;
  std::vector<TensorImage> inputs, outputs;
  for (size_t n = 0; n < kernel.inputs.size(); ++n)
    inputs.emplace_back(kernel, kernel.inputs[n], configuration.inputs[n]);
  fillInputs(kernel, built.one->inputs, built.one->scores, inputs);
  if (built.one->inputs == Inputs::hard) fillLogSums(kernel, inputs);
  for (size_t n = 0; n < kernel.outputs.size(); ++n)
    outputs.emplace_back(kernel, kernel.outputs[n], configuration.outputs[n]);
  if (options.notNumbers) plantNotNumbers(inputs);
  const RunOptions run{.dropout = {.seed = 0x123456789abcdefull, .step = 3},
                       .leaveUninitialized = options.leaveUninitialized,
                       .hasFixedBits = isDeterministic(configuration.knobs)};
  std::vector<TensorImage> given = inputs;
  if (built.one->inputs == Inputs::unread && poisonUnread(kernel, given) == 0)
    return "no element is behind a count or of no sequence";
  std::vector<TensorImage> after = given;
  runOnDevice(kernel, built.emitted, built.result.cubin, after, outputs, run, stream);
  const runtime::CheckOptions check{
      .points = options.points,
      .seed = 5,
      .dropout = {.seed = run.dropout.seed, .step = run.dropout.step, .stream = 0},
      .threads = int(std::thread::hardware_concurrency())};
  for (size_t n = 0; n < inputs.size(); ++n)
    if (!std::equal(given[n].bytes().begin(), given[n].bytes().end(), after[n].bytes().begin()))
      return fmt::format("input {} or the bytes around it changed", n);
  if (options.notNumbers || built.one->inputs == Inputs::whole) {
    const auto admits = options.notNumbers ? hasSameNotNumbers : isExact;
    const std::string rejected =
        firstRejected(kernel, inputs, outputs, check, result.points, admits);
    return rejected.empty() ? writtenAround(outputs) : rejected;
  }
  result = runtime::checkOutputs(kernel, inputs, outputs, check);
  return runtime::describe(result);
}

struct Tally {
  size_t ran = 0, failed = 0;
  int64_t points = 0;
  double worstRatio = 0;
};

void printTally(const std::map<std::string, Tally> &groups, size_t selected, double seconds) {
  Tally all;
  for (const auto &[group, tally] : groups) {
    fmt::print("{:14} {:6} kernels {:10} points, worst error {:.3f} of its bound, {} failed\n",
               group, tally.ran, tally.points, tally.worstRatio, tally.failed);
    all.ran += tally.ran;
    all.failed += tally.failed;
    all.points += tally.points;
  }
  fmt::print("{} of {} kernels agree with fp64 on {} points, {} failed, {} not run; {:.1f} s\n",
             all.ran - all.failed, selected, all.points, all.failed, selected - all.ran, seconds);
}

std::vector<Case> selectCases(const Options &options, const std::string &architecture) {
  std::vector<Case> selected;
  const std::regex pattern(options.filter);
  size_t found = 0;
  for (Case &one : allCases(options.source)) {
    // The gaps between the elements of a view cannot be told from what a kernel should have
    // written.
    if (options.leaveUninitialized && one.name.find("views/") != std::string::npos) continue;
    const Family &family = one.configuration.knobs.family();
    if (family.targetRejection &&
        !family.targetRejection(one.kernel, one.configuration.knobs, architecture).empty())
      continue;
    if (!std::regex_search(one.name, pattern) || found++ % options.shares != options.share)
      continue;
    if (selected.size() < options.most) selected.push_back(std::move(one));
  }
  return selected;
}

int runAll(const Options &options, const std::string &architecture) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const std::vector<Case> cases = selectCases(options, architecture);
  if (cases.empty())
    throw Error::badInput("no test matches '{}' and '{}'", options.source, options.filter);
  const runtime::cuda::Context context;
  const runtime::cuda::Stream stream;
  fmt::print("{} kernels for {} ({}), chosen after {:.1f} s\n", cases.size(), context.gpu().name,
             architecture, elapsed());
  std::fflush(stdout);
  const auto batchAt = [&](size_t begin) {
    return std::async(std::launch::async, [&, begin] {
      return buildBatch(std::span(cases).subspan(begin, std::min(batchSize, cases.size() - begin)),
                        architecture);
    });
  };
  std::map<std::string, Tally> groups;
  std::future<std::vector<Built>> next = batchAt(0);
  for (size_t begin = 0; begin < cases.size() && elapsed() < options.limitSeconds;
       begin += batchSize) {
    const std::vector<Built> batch = next.get();
    if (begin + batchSize < cases.size()) next = batchAt(begin + batchSize);
    for (const Built &built : batch) {
      if (elapsed() >= options.limitSeconds) break;
      Tally &tally = groups[built.one->name.substr(0, built.one->name.find('/'))];
      runtime::CheckResult result;
      if (options.verbose) fmt::print("{}\n", built.one->name), std::fflush(stdout);
      std::string problem = built.problem;
      try {
        if (problem.empty()) problem = runCase(built, options, stream, result);
      } catch (const Error &error) {  // a kernel that crashed takes the context with it: nothing
                                      // runs behind it
        fmt::print("FAILED {}\n  {}\n", built.one->name, error.what());
        throw;
      }
      ++tally.ran;
      tally.points += result.points;
      tally.worstRatio = std::max(tally.worstRatio, result.worstRatio);
      if (problem.empty()) continue;
      ++tally.failed;
      fmt::print("FAILED {}\n  {}\n", built.one->name, problem);
      std::fflush(stdout);
    }
  }
  printTally(groups, cases.size(), elapsed());
  size_t failed = 0;
  for (const auto &[group, tally] : groups) failed += tally.failed;
  return failed == 0 ? 0 : 1;
}

int runTests(const Options &options) {
  if (options.list) {
    for (const Case &one : selectCases(options, "sm_90a")) fmt::print("{}\n", one.name);
    return 0;
  }
  const runtime::DriverReport driver = runtime::inspectDriver();
  if (driver.gpus.empty()) {
    fmt::print("skipped: no GPU ({})\n", driver.problem);
    return skipped;
  }
  if (runtime::findNvrtc().library.empty()) {
    fmt::print("skipped: no NVRTC\n");
    return skipped;
  }
  return runAll(options, codegen::targetOf(driver.gpus[0].architecture));
}

}  // namespace
}  // namespace weft::gputest

int main(int argumentCount, char **arguments) {
  if (const auto code = weft::runtime::serveAsBuildWorker(argumentCount, arguments)) return *code;
  weft::gputest::Options options;
  CLI::App app("Emitted kernels on a GPU against fp64");
  app.add_option("--source", options.source,
                 "only tests that a registration lists whose name (attention-sm90) this regular "
                 "expression finds: choosing them takes less time");
  app.add_option("--filter", options.filter, "only tests whose name this regular expression finds");
  app.add_option("--limit", options.limitSeconds, "seconds after which nothing more is started");
  app.add_option("--points", options.points, "elements looked at of each output");
  app.add_option("--most", options.most, "kernels to run at most");
  app.add_option("--share", options.share, "which of --shares parts of the tests to run, from 0");
  app.add_option("--shares", options.shares,
                 "deal the tests out to so many runs, on several GPUs of a host or at once on one");
  app.add_flag("--list", options.list, "print the names and run nothing");
  app.add_flag("--verbose", options.verbose, "print each name before it runs");
  app.add_flag("--uninitialized", options.leaveUninitialized,
               "upload nothing but inputs, for initcheck");
  app.add_flag("--nan", options.notNumbers, "one NaN in every float input: it must pass through");
  CLI11_PARSE(app, argumentCount, arguments);
  try {
    if (options.share >= options.shares)
      throw weft::Error::badInput("--share {}: of {} shares, counted from 0", options.share,
                                  options.shares);
    return weft::gputest::runTests(options);
  } catch (const weft::Error &error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return int(error.kind);
  }
}
