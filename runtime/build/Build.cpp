// BuildSession: looks every kernel up in the cache, gives the rest to worker processes, and keeps
// what they made.
#include "runtime/build/Build.h"

#include "kernel/Error.h"
#include "runtime/build/BuildKey.h"
#include "runtime/build/Cache.h"
#include "runtime/build/CompilerLog.h"
#include "runtime/build/Includes.h"
#include "runtime/build/WorkerPool.h"
#include "runtime/system/Environment.h"

#include <fmt/ranges.h>

#include <system_error>

namespace weft::runtime {

namespace {

NvrtcLocation requireNvrtc() {
  NvrtcLocation nvrtc = findNvrtc();
  if (nvrtc.library.empty())
    throw Error::unsupported("no NVRTC; looked in: {}", fmt::join(nvrtc.searched, ", "));
  return nvrtc;
}

void describe(BuildResult &result, const std::string &entry) {
  const CompilerReport report = reportFrom(result.log, entry);
  result.registers = report.registers;
  result.spillBytes = report.spillBytes;
  result.staticSharedBytes = report.staticSharedBytes;
  result.warning = serialization(result.log);
}

PoolOptions poolOptions(const BuildOptions &options) {
  return {
      .executable = options.workerExecutable.empty() ? "/proc/self/exe" : options.workerExecutable,
      .workers = options.workers > 0 ? options.workers : workerCount(),
      .timeoutSeconds = options.timeoutSeconds,
      .cancelled = options.cancelled};
}

}  // namespace

struct BuildSession::State {
  explicit State(BuildOptions given)
      : options(std::move(given)), nvrtc(requireNvrtc()), pool(poolOptions(options)) {
    if (!options.useCache) return;
    const auto note = [this](const std::string &text) {
      if (options.note) options.note(text);
    };
    if (const auto folder = knownCacheFolder()) cache.emplace(*folder, note);
    else note(fmt::format("no built kernel is kept: {}", noCacheFolder));
  }
  const BuildOptions options;
  const NvrtcLocation nvrtc;
  std::optional<Cache> cache;
  WorkerPool pool;
};

namespace {

/// One lot: requests with equal keys share one job.
class Lot {
public:
  Lot(const std::vector<BuildRequest> &requests, const BuildOptions &options,
      const NvrtcLocation &nvrtc, std::optional<Cache> &cache)
      : requests(requests),
        options(options),
        nvrtc(nvrtc),
        cache(cache),
        results(requests.size()) {}

  std::vector<BuildResult> run(WorkerPool &pool) {
    for (size_t i = 0; i < requests.size(); ++i) lookUp(i);
    try {
      pool.run(jobs, [this](size_t job, JobOutcome outcome) { finish(job, std::move(outcome)); });
    } catch (const std::system_error &error) {
      throw Error::checkFailed("{}", error.what());
    }
    for (BuildResult &result : results)
      if (result.cubin.empty() && result.error.empty()) result.error = cancelledError;
    return std::move(results);
  }

private:
  void lookUp(size_t index) {
    const BuildRequest &request = requests[index];
    WorkerRequest job = workerRequest(request, options, nvrtc);
    std::map<std::string, std::string> fields = keyFields(job, request, nvrtc);
    BuildResult &result = results[index];
    result.key = keyOf(fields);
    if (const auto same = jobOfKey.find(result.key); same != jobOfKey.end())
      return requestsOfJob[same->second].push_back(index);
    if (std::optional<CacheEntry> entry =
            options.keepPtx || !cache ? std::nullopt : cache->find(result.key)) {
      result.cubin = std::move(entry->cubin);
      result.log = std::move(entry->log);
      result.fromCache = true;
      describe(result, request.entry);
      return reportProgress(index);
    }
    if (const std::string rejection = includeRejection(job.text, job.headers); !rejection.empty()) {
      result.error = result.log = rejection + "\n";
      return reportProgress(index);
    }
    job.headers.merge(rejectedHeaders(job.text, job.headers));
    jobOfKey.emplace(result.key, jobs.size());
    jobs.push_back(std::move(job));
    keyFieldsOfJob.push_back(std::move(fields));
    requestsOfJob.push_back({index});
  }

  void finish(size_t job, JobOutcome outcome) {
    const size_t first = requestsOfJob[job].front();
    BuildResult result = resultOf(std::move(outcome), requests[first]);
    result.key = results[first].key;
    if (cache && result.error.empty())
      cache->store(result.key, {.text = jobs[job].text,
                                .cubin = result.cubin,
                                .entry = requests[first].entry,
                                .log = result.log,
                                .fields = keyFieldsOfJob[job]});
    for (const size_t index : requestsOfJob[job]) {
      results[index] = result;
      reportProgress(index);
    }
  }

  BuildResult resultOf(JobOutcome outcome, const BuildRequest &request) const {
    BuildResult result;
    if (!outcome.reply) {
      result.error = std::move(outcome.failure);
      result.log = fmt::format("{}: {}\n", request.name, result.error);
      return result;
    }
    result.log = reproducible(outcome.reply->log);
    result.seconds = outcome.reply->seconds;
    if (!outcome.reply->succeeded) {
      result.error = result.log;
      // What the compiler came to, and where; the message of the header that stopped it says
      // neither.
      for (const std::string &name : rejectedIn(result.log))
        for (const Include &include : includesOf(request.text))
          if (include.name == name)
            result.error = fmt::format(
                               "kernel.cu({}): error: \"{}\" is neither a header of weft nor a "
                               "file of the artifact, and is not included\n",
                               include.line, name) +
                           result.error;
    } else if (const std::string warning = fatalWarning(result.log); !warning.empty()) {
      result.error = "ptxas gave up what the kernel relies on: " + warning;
    } else {
      result.cubin = std::move(outcome.reply->cubin);
      if (options.keepPtx) result.ptx = std::move(outcome.reply->ptx);
      describe(result, request.entry);
    }
    return result;
  }

  void reportProgress(size_t index) {
    ++done;
    if (options.progress) options.progress(done, requests.size(), requests[index].name);
  }

  const std::vector<BuildRequest> &requests;
  const BuildOptions &options;
  const NvrtcLocation &nvrtc;
  std::optional<Cache> &cache;
  std::vector<BuildResult> results;
  std::vector<WorkerRequest> jobs;
  std::vector<std::map<std::string, std::string>> keyFieldsOfJob;
  std::vector<std::vector<size_t>> requestsOfJob;
  std::map<std::string, size_t> jobOfKey;
  size_t done = 0;
};

}  // namespace

BuildSession::BuildSession(BuildOptions options)
    : state(std::make_unique<State>(std::move(options))) {}
BuildSession::~BuildSession() = default;

std::vector<BuildResult> BuildSession::build(const std::vector<BuildRequest> &requests) {
  return Lot(requests, state->options, state->nvrtc, state->cache).run(state->pool);
}

size_t BuildSession::workersStarted() const { return state->pool.started(); }

std::vector<BuildResult> build(const std::vector<BuildRequest> &requests,
                               const BuildOptions &options) {
  return BuildSession(options).build(requests);
}

std::map<std::string, std::string> cacheKeyFields(const BuildRequest &request,
                                                  const BuildOptions &options) {
  const NvrtcLocation nvrtc = findNvrtc();
  return keyFields(workerRequest(request, options, nvrtc), request, nvrtc);
}

}  // namespace weft::runtime
