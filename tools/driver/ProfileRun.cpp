// Threads of a profile run: one builds, one a GPU measures, this one keeps the store. They meet in
// two queues.
#include "tools/driver/ProfileRun.h"

#include "codegen/Emit.h"
#include "codegen/SourceHash.h"
#include "kernel/Append.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/Error.h"
#include "kernel/Family.h"
#include "kernel/Format.h"
#include "passes/configure/StridedViews.h"
#include "runtime/system/Environment.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace weft::driver {
namespace {

using Clock = std::chrono::steady_clock;
using runtime::MeasureReply;
using runtime::MeasureResult;
using runtime::StoredMeasurement;

/// Configurations of one kernel that are measured against each other.
constexpr size_t groupSize = 16;
/// Configurations that are built at once; the first lot is small, so that the GPU starts soon. A
/// lot ends with its slowest kernel, so every worker gets so many that this does not matter.
constexpr size_t firstLot = 64, lotSize = 256, lotOfWorker = 16;
/// Built groups that may wait for a GPU: text and cubins are kept in memory.
constexpr size_t mostWaiting = 256;

/// Work of a GPU: items of one kernel, or one GEMM.
struct Work {
  std::vector<size_t> items;  ///< indices into the space's items, as the group's kernels
  std::vector<std::string> sources;
  size_t gemm = SIZE_MAX;
  runtime::MeasureGroup group;
};

/// What a measuring thread hands back.
struct Done {
  Work work;
  MeasureReply reply;
  std::string protocol;
  int gpu = -1;  ///< none: it failed before
};

/// Configurations that are emitted and built together.
struct Lot {
  std::vector<size_t> items;  ///< as `requests` and `emitted`
  std::vector<runtime::BuildRequest> requests;
  std::vector<codegen::EmittedKernel> emitted;
  std::vector<std::pair<size_t, std::string>>
      failures;  ///< items that could not be emitted or built, and why
};

std::string oneLine(const std::string &text) {
  std::string line = text.substr(0, text.find('\n'));
  if (line.empty()) line = "no reason was given";
  return line;
}

/// Lengths that a mask compares with, or offsets.
bool countsTokens(const Kernel &kernel, ValueId value) {
  return std::ranges::any_of(kernel.body, [&](const BodyOp &op) {
    if (op.kind == OpKind::offsets) return op.operands[0] == value;
    if (op.kind == OpKind::append) return op.operands[appendStarts] == value;
    const bool readsLengths = (op.kind == OpKind::mask && !isDocumentMask(op)) ||
                              op.kind == OpKind::pack || op.kind == OpKind::unpack;
    return readsLengths && op.operands.size() > 1 && op.operands[1] == value &&
           kernel.values[size_t(value)].dtype == DType::i32;
  });
}

/// Whether the kernel says which elements of the input are out of range: lengths that do not decide
/// how long it takes, of which those of a job would all be.
bool isReported(const codegen::EmittedKernel &emitted, int input) {
  return std::ranges::any_of(emitted.parameters, [&](const codegen::Parameter &parameter) {
    return parameter.kind == ParameterKind::status && parameter.index == input;
  });
}

/// Of a table: the pages that it may list.
std::optional<int64_t> pagesOf(const Kernel &kernel, ValueId value) {
  for (const BodyOp &op : kernel.body)
    if ((op.kind == OpKind::append && isPaged(op) && op.operands[appendTable] == value) ||
        (op.kind == OpKind::gatherPages && op.operands[1] == value))
      return kernel.axes[size_t(kernel.values[size_t(op.operands.front())].axes[appendAlong(op)])]
          .extent;
  return std::nullopt;
}

runtime::KernelJob jobOf(const Kernel &kernel, const Configuration &configuration,
                         const codegen::EmittedKernel &emitted, const std::string &cubin) {
  runtime::KernelJob job{.cubin = cubin,
                         .entry = emitted.entry,
                         .grid = emitted.launch.grid,
                         .block = emitted.launch.block,
                         .sharedBytes = emitted.launch.sharedBytes,
                         .arguments = {},
                         .inputBytes = {},
                         .outputBytes = {},
                         .workspaceBytes = emitted.launch.workspaceBytes,
                         .zeroInputs = {},
                         .lengthInputs = {},
                         .pageInputs = {}};
  for (const codegen::Parameter &parameter : emitted.parameters)
    job.arguments.push_back(
        {.kind = parameter.kind, .index = parameter.index, .map = parameter.map});
  for (size_t i = 0; i < kernel.inputs.size(); ++i) {
    job.inputBytes.push_back(spanBytes(kernel, kernel.inputs[i], configuration.inputs[i]));
    const DType type = kernel.values[size_t(kernel.inputs[i])].dtype;
    if (const std::optional<int64_t> pages = pagesOf(kernel, kernel.inputs[i]))
      job.pageInputs.emplace_back(int(i), *pages);
    else if (isReported(emitted, int(i))) job.zeroInputs.push_back(int(i));
    else if (countsTokens(kernel, kernel.inputs[i])) job.lengthInputs.push_back(int(i));
    else if (type == DType::i32 || type == DType::i1) job.zeroInputs.push_back(int(i));
    job.readsFloat8 = job.readsFloat8 || isFloat8(type);
  }
  for (size_t i = 0; i < kernel.outputs.size(); ++i)
    job.outputBytes.push_back(spanBytes(kernel, kernel.outputs[i], configuration.outputs[i]));
  return job;
}

class Run {
public:
  Run(const ProfileSpace &space, runtime::ProfileStore &store, const ProfileRunOptions &options)
      : space(space), store(store), options(options) {}

  ProfileOutcome run() {
    findPending();
    outcome.progress.total = pendingItems.size() + pendingGemms.size();
    if (outcome.progress.total == 0) return std::move(outcome);
    try {
      std::vector<std::jthread> threads;
      const StopOnExit stopOnExit{*this};
      measuring = options.gpus;
      outcome.measurementsOfGpu.resize(size_t(options.gpus));
      for (int gpu = 0; gpu < options.gpus; ++gpu)
        threads.emplace_back([this, gpu] { measureThread(gpu); });
      threads.emplace_back([this] { buildThread(); });
      collect();
    } catch (...) {
      commitAll();
      throw;
    }
    commitAll();
    outcome.progress.seconds = elapsed();
    if (outcome.progress.measured + outcome.progress.slow + outcome.progress.failed == 0 &&
        !outcome.lostGpus.empty())
      throw *lostError;
    if (outcome.lostGpus.size() == size_t(options.gpus) && outcome.end == ProfileEnd::finished)
      throw Error(lostError->kind,
                  fmt::format("{}; {} measurements that were measured before are kept",
                              lostError->what(), outcome.progress.measured));
    return std::move(outcome);
  }

private:
  /// Ends the threads however collect() was left.
  struct StopOnExit {
    Run &run;
    ~StopOnExit() { run.stop(); }
  };

  double elapsed() const { return std::chrono::duration<double>(Clock::now() - begin).count(); }

  void findPending() {
    const Profile have = store.read();
    const auto isCurrent = [](const ProfileMeasurement &measurement, std::string_view line) {
      const Family *family = familyNamed(splitLine(line).family);
      return family && measurement.familyVersion == family->version;
    };
    for (size_t i = 0; i < space.items.size(); ++i) {
      const ProfileItem &item = space.items[i];
      const auto kernel = have.kernels.find(item.subject);
      if (kernel != have.kernels.end())
        if (const auto measurement = kernel->second.measurements.find(item.line);
            measurement != kernel->second.measurements.end() &&
            isCurrent(measurement->second, item.line) &&
            !((item.again || (options.again && isNearBest(measurement->second, kernel->second))) &&
              isOfOlderText(item, measurement->second)))
          continue;
      pendingItems.push_back(i);
    }
    for (size_t i = 0; i < space.gemms.size(); ++i) {
      const auto kernel = have.kernels.find(space.gemms[i].subject);
      if (kernel != have.kernels.end()) {
        const auto measured =
            measurementsAt(kernel->second, familyWith(&Family::isLibrary), space.gemms[i].place);
        if (!measured.empty() && isCurrent(*measured.front().second, measured.front().first))
          continue;
      }
      pendingGemms.push_back(i);
    }
    outcome.skipped =
        space.items.size() + space.gemms.size() - pendingItems.size() - pendingGemms.size();
  }

  /// What was much slower than another configuration will not be the best by a change of text.
  static bool isNearBest(const ProfileMeasurement &measurement, const ProfileKernel &kernel) {
    constexpr double near = 1.2;
    if (measurement.status != MeasurementStatus::measured) return false;
    return std::ranges::none_of(kernel.measurements, [&](const auto &other) {
      return other.second.status == MeasurementStatus::measured &&
             measurement.seconds > near * other.second.seconds;
    });
  }

  bool isOfOlderText(const ProfileItem &item, const ProfileMeasurement &measurement) const {
    try {
      return measurement.source !=
             codegen::sourceHash(codegen::emit(space.kernels[item.kernel].kernel,
                                               item.configuration, options.architecture)
                                     .timedText);
    } catch (const Error &) {
      return true;  // it is said again why it cannot be emitted
    }
  }

  void stop() {
    const std::lock_guard lock(mutex);
    stopping = true;
    cancelled = true;
    changed.notify_all();
  }

  // --- building
  // -----------------------------------------------------------------------------------------------
  /// While compilers work on one lot, the next one is emitted.
  void buildThread() {
    const size_t nextLots = std::max(lotSize, lotOfWorker * size_t(runtime::workerCount()));
    size_t begin = 0;
    const auto emitNext = [&](size_t most) {
      const size_t end = std::min(pendingItems.size(), begin + most);
      std::vector<size_t> items(pendingItems.begin() + ptrdiff_t(begin),
                                pendingItems.begin() + ptrdiff_t(end));
      begin = end;
      return std::async(std::launch::async,
                        [this, items = std::move(items)] { return emitLot(items); });
    };
    std::future<Lot> next = emitNext(firstLot);
    try {
      while (true) {
        Lot lot = next.get();
        if (lot.items.empty() && lot.failures.empty()) break;
        next = emitNext(nextLots);
        {
          std::unique_lock lock(mutex);
          changed.wait(lock, [&] { return stopping || waiting.size() < mostWaiting; });
          if (stopping) break;
        }
        buildLot(std::move(lot));
      }
    } catch (const Error &error) {
      const std::lock_guard lock(mutex);
      buildError.emplace(error);
    }
    const std::lock_guard lock(mutex);
    building = false;
    changed.notify_all();
  }

  Lot emitLot(const std::vector<size_t> &items) const {
    Lot lot;
    for (const size_t i : items) {
      if (cancelled) break;
      const ProfileItem &item = space.items[i];
      try {
        lot.emitted.push_back(codegen::emit(space.kernels[item.kernel].kernel, item.configuration,
                                            options.architecture));
      } catch (const Error &error) {
        lot.failures.emplace_back(i, std::string("emit: ") + error.what());
        continue;
      }
      lot.requests.push_back({.name = space.kernels[item.kernel].name,
                              .text = lot.emitted.back().timedText,
                              .entry = lot.emitted.back().entry,
                              .architecture = options.architecture,
                              .extraFlags = {}});
      lot.items.push_back(i);
    }
    return lot;
  }

  void buildLot(Lot lot) {
    const std::vector<runtime::BuildResult> results = options.build(lot.requests, cancelled);
    if (cancelled || isInterrupted()) return;  // what has no cubin now is no fault of the kernels
    std::map<size_t, Work> open;               // by kernel
    for (size_t r = 0; r < results.size(); ++r) {
      const size_t kernel = space.items[lot.items[r]].kernel;
      if (!results[r].failure().empty()) {
        lot.failures.emplace_back(lot.items[r], "build: " + results[r].failure());
        continue;
      }
      Work &work = open[kernel];
      work.items.push_back(lot.items[r]);
      work.sources.push_back(codegen::sourceHash(lot.requests[r].text));
      work.group.kernels.push_back(jobOf(space.kernels[kernel].kernel,
                                         space.items[lot.items[r]].configuration, lot.emitted[r],
                                         results[r].cubin));
      if (work.items.size() == groupSize) {
        offer(std::move(work));
        open.erase(kernel);
      }
    }
    for (auto &[kernel, work] : open) offer(std::move(work));
    offerFailures(lot.failures);
  }

  void offer(Work work) {
    const std::lock_guard lock(mutex);
    waiting.push_back(std::move(work));
    changed.notify_all();
  }

  void offerFailures(const std::vector<std::pair<size_t, std::string>> &failures) {
    const std::lock_guard lock(mutex);
    for (const auto &[item, reason] : failures) {
      Done result{.work = {.items = {item}, .sources = {"-"}, .group = {}},
                  .reply = {},
                  .protocol = "built, not run"};
      result.reply.results.push_back(
          {.job = 0, .knobs = {}, .status = MeasurementStatus::failed, .reason = oneLine(reason)});
      finished.push_back(std::move(result));
    }
    changed.notify_all();
  }

  // --- measuring
  // -----------------------------------------------------------------------------------------------
  void measureThread(int gpu) {
    try {
      const std::unique_ptr<runtime::Measurer> measurer = options.startMeasurer(gpu, cancelled);
      const runtime::MeasureGreeting &hello = measurer->greeting();
      const std::string protocol = fmt::format("{}, {}, {}, at the start {}", hello.protocol,
                                               hello.gpu, hello.driver, hello.clocks);
      {
        const std::lock_guard lock(mutex);
        if (outcome.protocol.empty()) outcome.protocol = protocol;
      }
      while (std::optional<Work> work = next()) {
        const std::string subject = subjectOf(*work);
        {
          const std::lock_guard lock(mutex);
          work->group.bestFirstRun = bestFirstRun[subject];
        }
        MeasureReply reply = measurer->measure(work->group);
        const std::lock_guard lock(mutex);
        double &best = bestFirstRun[subject];
        if (reply.bestFirstRun > 0 && (!(best > 0) || reply.bestFirstRun < best))
          best = reply.bestFirstRun;
        finished.push_back({.work = std::move(*work),
                            .reply = std::move(reply),
                            .protocol = protocol,
                            .gpu = gpu});
        --inFlight;
        changed.notify_all();
      }
    } catch (const std::exception &error) {
      const std::lock_guard lock(mutex);
      if (!stopping) noteLost(gpu, error);  // else whatever it was, the run is over
      if (held.contains(std::this_thread::get_id())) --inFlight;
    }
    const std::lock_guard lock(mutex);
    --measuring;
    changed.notify_all();
  }

  void noteLost(int gpu, const std::exception &error) {
    const auto *known = dynamic_cast<const Error *>(&error);
    if (!lostError) lostError.emplace(known ? known->kind : ErrorKind::checkFailed, error.what());
    outcome.lostGpus.push_back(fmt::format("GPU {}: {}", gpu, error.what()));
  }

  std::string subjectOf(const Work &work) const {
    return work.gemm == SIZE_MAX ? space.items[work.items[0]].subject
                                 : space.gemms[work.gemm].subject;
  }

  /// Alternates kernels and GEMMs while there are both; GEMMs alone while the first kernels are
  /// built.
  std::optional<Work> next() {
    std::unique_lock lock(mutex);
    held.erase(std::this_thread::get_id());
    changed.wait(lock, [&] {
      return stopping || !waiting.empty() || nextGemm < pendingGemms.size() || !building;
    });
    if (stopping) return std::nullopt;
    const bool hasGemm = nextGemm < pendingGemms.size();
    if (waiting.empty() && !hasGemm) return std::nullopt;
    held.insert(std::this_thread::get_id());
    ++inFlight;
    const bool takeGemm = hasGemm && (waiting.empty() || !lastWasGemm);
    lastWasGemm = takeGemm;
    Work work;
    if (takeGemm) {
      work.gemm = pendingGemms[nextGemm++];
      work.group.gemm = runtime::GemmJob{.gemm = space.gemms[work.gemm].gemm};
    } else {
      work = std::move(waiting.front());
      waiting.pop_front();
    }
    changed.notify_all();
    return work;
  }

  // --- keeping
  // -----------------------------------------------------------------------------------------------
  bool isInterrupted() const { return options.interrupted && options.interrupted->load(); }

  void collect() {
    auto lastCommit = Clock::now();
    while (true) {
      std::deque<Done> batch;
      bool isOver = false;
      {
        std::unique_lock lock(mutex);
        changed.wait_for(lock, std::chrono::milliseconds(200), [&] { return !finished.empty(); });
        batch.swap(finished);
        isOver =
            batch.empty() && (measuring == 0 || (!building && waiting.empty() &&
                                                 nextGemm == pendingGemms.size() && inFlight == 0));
      }
      for (Done &done : batch) take(done);
      if (Clock::now() - lastCommit > std::chrono::seconds(1)) {
        commit();
        lastCommit = Clock::now();
      }
      outcome.progress.seconds = elapsed();
      if (options.progress) options.progress(outcome.progress);
      const bool isLate = options.budgetSeconds > 0 && elapsed() > options.budgetSeconds;
      if (isInterrupted() || isLate) {
        outcome.end = isInterrupted() ? ProfileEnd::interrupted : ProfileEnd::budget;
        return;
      }
      if (isOver) break;
    }
    const std::lock_guard lock(mutex);
    if (buildError) throw *buildError;
  }

  void take(Done &done) {
    outcome.progress.done += done.work.gemm == SIZE_MAX ? done.reply.results.size()
                                                        : 1;  // a cancelled group has fewer results
    if (done.gpu >= 0) outcome.measurementsOfGpu[size_t(done.gpu)] += done.reply.results.size();
    for (MeasureResult &result : done.reply.results) takeResult(done, result);
  }

  void takeResult(const Done &done, const MeasureResult &result) {
    ProfileProgress &progress = outcome.progress;
    StoredMeasurement stored;
    ProfileMeasurement &measurement = stored.measurement;
    measurement = {.status = result.status,
                   .seconds = result.status == MeasurementStatus::failed ? 0 : result.seconds,
                   .n = result.n,
                   .spread = result.spread,
                   .source = "-",
                   .reason = result.reason.empty() ? "" : oneLine(result.reason)};
    if (done.work.gemm != SIZE_MAX) {
      const ProfileGemm &gemm = space.gemms[done.work.gemm];
      stored.kernel = gemm.subject;
      stored.kernelName = gemm.name;
      stored.configuration = gemmLine(gemm.place, result.knobs);
      measurement.familyVersion = familyWith(&Family::isLibrary).version;
    } else {
      const ProfileItem &item = space.items[done.work.items.at(result.job)];
      stored.kernel = item.subject;
      const Kernel &kernel = space.kernels[item.kernel].kernel;
      stored.kernelName = isTimedAsGemm(kernel, item.configuration.knobs.family())
                              ? weft::subjectOf(kernel, item.configuration).name
                              : space.kernels[item.kernel].name;
      stored.configuration = item.line;
      measurement.familyVersion = item.configuration.knobs.family().version;
      measurement.source = done.work.sources.at(result.job);
    }
    if (measurement.status == MeasurementStatus::failed && measurement.reason.empty())
      measurement.reason = "no reason was given";
    ++(measurement.status == MeasurementStatus::measured ? progress.measured
       : measurement.status == MeasurementStatus::slow   ? progress.slow
                                                         : progress.failed);
    if (measurement.status == MeasurementStatus::measured) {
      double &best = bestSeconds[stored.kernel];
      if (!(best > 0) || measurement.seconds < best) best = measurement.seconds;
      progress.last = fmt::format("{} {}", stored.kernelName, formatSeconds(best));
    }
    pendingMeasurements[done.protocol].push_back(std::move(stored));
  }

  /// Also what threads handed back while they ended.
  void commitAll() {
    for (Done &done : finished) take(done);
    finished.clear();
    commit();
  }

  void commit() {
    for (const auto &[protocol, measurements] : pendingMeasurements)
      store.write(measurements, protocol);
    pendingMeasurements.clear();
  }

  const ProfileSpace &space;
  runtime::ProfileStore &store;
  const ProfileRunOptions &options;
  const Clock::time_point begin = Clock::now();
  std::vector<size_t> pendingItems, pendingGemms;
  ProfileOutcome outcome;
  std::map<std::string, std::vector<StoredMeasurement>> pendingMeasurements;  ///< by protocol
  std::map<std::string, double> bestSeconds;                                  ///< by subject

  std::mutex mutex;  ///< guards what follows, and outcome.protocol and lostGpus while threads run
  std::condition_variable changed;
  std::deque<Work> waiting;
  std::deque<Done> finished;
  std::map<std::string, double> bestFirstRun;
  std::set<std::thread::id> held;  ///< threads with work in hand
  std::optional<Error> buildError, lostError;
  size_t nextGemm = 0;
  int measuring = 0, inFlight = 0;
  bool building = true, stopping = false, lastWasGemm = true;
  std::atomic<bool> cancelled = false;
};

}  // namespace

ProfileOutcome runProfile(const ProfileSpace &space, runtime::ProfileStore &store,
                          const ProfileRunOptions &options) {
  return Run(space, store, options).run();
}

}  // namespace weft::driver
