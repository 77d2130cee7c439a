// Starting, feeding, watching and burying worker processes. One thread, one poll() loop.
#include "runtime/build/WorkerPool.h"

#include "kernel/Error.h"
#include "runtime/build/Build.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace weft::runtime {

namespace {

using Clock = std::chrono::steady_clock;

Clock::duration fromSeconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

/// One live worker. Destruction kills it if it still runs and waits for it.
class WorkerProcess {
public:
  WorkerProcess(const std::filesystem::path &executable, double sendTimeoutSeconds) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      throw std::system_error(errno, std::generic_category(), "cannot start a build worker");
    socket = ends[0];
    const timeval limit{.tv_sec = time_t(sendTimeoutSeconds) + 1, .tv_usec = 0};
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    messages = memfd_create("weft-build-worker", MFD_CLOEXEC);
    const int code = spawn(executable, ends[1]);
    close(ends[1]);
    if (code == 0) return;
    close(socket);
    close(messages);
    throw std::system_error(code, std::generic_category(),
                            "cannot start build worker " + executable.string());
  }
  ~WorkerProcess() {
    close(socket);
    terminate();
    if (process > 0) waitForExit();
    close(messages);
  }
  WorkerProcess(const WorkerProcess &) = delete;
  WorkerProcess &operator=(const WorkerProcess &) = delete;

  int descriptor() const { return socket; }

  /// Asks for the job; false when the worker is gone.
  bool give(size_t index, const WorkerRequest &request, Clock::time_point limit) {
    job = index;
    deadline = limit;
    return sendAll(socket, frameOf(request));
  }

  /// Reads what has arrived; false at end of file.
  bool receive() {
    char bytes[1 << 16];
    const ssize_t count = recv(socket, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (count < 0) return errno == EINTR || errno == EAGAIN;
    frames.append({bytes, size_t(count)});
    return count > 0;
  }

  /// The reply to the current job, if it is complete. The greeting is taken on the way.
  std::optional<WorkerReply> reply() {
    while (const std::optional<std::string> body = frames.next()) {
      if (greeted) return replyFrom(*body);
      if (!isGreeting(*body)) throw Error::checkFailed("what answers is no build worker");
      greeted = true;
    }
    return std::nullopt;
  }

  void terminate() {
    if (process > 0) kill(process, SIGKILL);
  }

  /// Waits for a process that has closed its socket, and says how it ended, with the last words it
  /// printed.
  std::string describeEnd() {
    const int status = waitForExit();
    std::string text;
    if (WIFSIGNALED(status))
      text = fmt::format("worker crashed (signal {}, {})", WTERMSIG(status),
                         strsignal(WTERMSIG(status)));
    else if (greeted) text = fmt::format("worker ended with exit code {}", WEXITSTATUS(status));
    else
      text = fmt::format(
          "worker did not start (exit code {}): the executable must call serveAsBuildWorker() "
          "first",
          WEXITSTATUS(status));
    const std::string words = lastWords();
    return words.empty() ? text : text + ": " + words;
  }

  std::optional<size_t> job;
  Clock::time_point deadline;

private:
  int spawn(const std::filesystem::path &executable, int childSocket) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, childSocket, STDIN_FILENO);
    if (messages >= 0) {
      posix_spawn_file_actions_adddup2(&actions, messages, STDOUT_FILENO);
      posix_spawn_file_actions_adddup2(&actions, messages, STDERR_FILENO);
    }
    std::string program = executable.string(), argument = buildWorkerArgument;
    char *arguments[] = {program.data(), argument.data(), nullptr};
    const int code = posix_spawn(&process, program.c_str(), &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return code;
  }

  int waitForExit() {
    int status = 0;
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) {}
    process = -1;
    return status;
  }

  std::string lastWords() const {
    constexpr off_t kept = 2000;
    const off_t size = messages >= 0 ? lseek(messages, 0, SEEK_END) : 0;
    if (size <= 0) return {};
    std::string words(size_t(std::min(size, kept)), '\0');
    const ssize_t count =
        pread(messages, words.data(), words.size(), std::max<off_t>(0, size - kept));
    words.resize(size_t(std::max<ssize_t>(0, count)));
    while (!words.empty() && words.back() == '\n') words.pop_back();
    return words;
  }

  pid_t process = -1;
  int socket = -1;
  int messages = -1;  ///< a file in memory that collects what the worker prints
  bool greeted = false;
  FrameBuffer frames;
};

}  // namespace

class WorkerPool::Crew {
public:
  explicit Crew(PoolOptions options)
      : options(std::move(options)), workers(size_t(std::max(1, this->options.workers))) {}
  ~Crew() { endAll(); }
  Crew(const Crew &) = delete;
  Crew &operator=(const Crew &) = delete;

  /// `jobs` and `finished` live until this returns.
  void run(const std::vector<WorkerRequest> &newJobs,
           const std::function<void(size_t, JobOutcome)> &newFinished) {
    jobs = &newJobs;
    finished = &newFinished;
    nextJob = 0;
    try {
      serveAll();
    } catch (...) {
      endAll();
      throw;
    }
    if (isCancelled()) endAll();
  }

  size_t started = 0;

private:
  void serveAll() {
    while (!isCancelled()) {
      for (std::unique_ptr<WorkerProcess> &worker : workers)
        while (nextJob < jobs->size() && (!worker || !worker->job)) start(worker);
      if (std::ranges::none_of(workers, [](const auto &worker) { return worker && worker->job; }))
        return;
      waitForEvents();
    }
  }

  /// A worker in the middle of a job cannot take another run's. All are told before the first is
  /// waited for: memory of this size takes a process a while to give back.
  void endAll() {
    for (const std::unique_ptr<WorkerProcess> &worker : workers)
      if (worker) worker->terminate();
    for (std::unique_ptr<WorkerProcess> &worker : workers) worker.reset();
  }

  bool isCancelled() const { return options.cancelled && options.cancelled->load(); }

  void start(std::unique_ptr<WorkerProcess> &worker) {
    if (!worker) {
      worker = std::make_unique<WorkerProcess>(options.executable, options.timeoutSeconds);
      ++started;
    }
    const size_t job = nextJob++;
    if (worker->give(job, (*jobs)[job], Clock::now() + fromSeconds(options.timeoutSeconds))) return;
    worker->terminate();  // gone already, or alive and deaf
    bury(worker);
  }

  void waitForEvents() {
    std::vector<pollfd> polled;
    Clock::time_point first = Clock::time_point::max();
    for (const auto &worker : workers) {
      const bool busy = worker && worker->job;
      polled.push_back({busy ? worker->descriptor() : -1, POLLIN, 0});
      if (busy) first = std::min(first, worker->deadline);
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(first - Clock::now()).count();
    const int64_t longest = options.cancelled ? 100 : 1000;
    poll(polled.data(), polled.size(), int(std::clamp<int64_t>(left, 0, longest)));
    for (size_t i = 0; i < workers.size(); ++i)
      if (workers[i] && workers[i]->job) serve(workers[i], polled[i].revents != 0);
  }

  void serve(std::unique_ptr<WorkerProcess> &worker, bool readable) {
    if (readable && !worker->receive()) return bury(worker);
    if (std::optional<WorkerReply> reply = worker->reply()) {
      const size_t job = *worker->job;
      worker->job.reset();
      return (*finished)(job, {std::move(reply), ""});
    }
    if (Clock::now() < worker->deadline) return;
    const size_t job = *worker->job;
    worker.reset();
    (*finished)(job, {std::nullopt, fmt::format("timed out after {:g} s", options.timeoutSeconds)});
  }

  void bury(std::unique_ptr<WorkerProcess> &worker) {
    const size_t job = *worker->job;
    std::string failure = worker->describeEnd();
    worker.reset();
    (*finished)(job, {std::nullopt, std::move(failure)});
  }

  const PoolOptions options;
  std::vector<std::unique_ptr<WorkerProcess>>
      workers;  ///< a place each; empty until there is a job for it
  const std::vector<WorkerRequest> *jobs = nullptr;
  const std::function<void(size_t, JobOutcome)> *finished = nullptr;
  size_t nextJob = 0;
};

WorkerPool::WorkerPool(PoolOptions options) : crew(std::make_unique<Crew>(std::move(options))) {}
WorkerPool::~WorkerPool() = default;

void WorkerPool::run(const std::vector<WorkerRequest> &jobs,
                     const std::function<void(size_t, JobOutcome)> &finished) {
  crew->run(jobs, finished);
}

size_t WorkerPool::started() const { return crew->started; }

}  // namespace weft::runtime
