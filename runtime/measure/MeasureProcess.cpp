// The parent's side: starting, asking, and burying measuring processes.
#include "runtime/measure/MeasureProcess.h"

#include "kernel/Error.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <system_error>

#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace weft::runtime {
namespace {

using Clock = std::chrono::steady_clock;

/// One live process. Destruction kills it and waits for it.
class Process {
public:
  explicit Process(const MeasureProcessOptions &options)
      : cancelled(options.cancelled), graceSeconds(options.graceSeconds) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      throw std::system_error(errno, std::generic_category(), "cannot start a measuring process");
    socket = ends[0];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    std::string program =
        options.executable.empty() ? "/proc/self/exe" : options.executable.string();
    std::string argument = measureWorkerArgument, gpu = std::to_string(options.gpu);
    char *arguments[] = {program.data(), argument.data(), gpu.data(), nullptr};
    const int code = posix_spawn(&process, program.c_str(), &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (code == 0) return;
    close(socket);
    throw std::system_error(code, std::generic_category(),
                            "cannot start measuring process " + program);
  }
  ~Process() {
    close(socket);
    if (process <= 0) return;
    kill(process, SIGKILL);
    waitForExit();
  }
  Process(const Process &) = delete;
  Process &operator=(const Process &) = delete;

  bool send(const std::string &body) { return sendAll(socket, frameOfBody(body)); }

  enum class End { answered, died, late, cancelled };
  /// Waits for the next message.
  End receive(double timeoutSeconds, std::string &body) {
    const auto deadline = after(timeoutSeconds);
    std::optional<Clock::time_point> graceEnds;
    while (true) {
      if (std::optional<std::string> next = frames.next()) {
        body = std::move(*next);
        return End::answered;
      }
      if (isCancelled() && !graceEnds) graceEnds = after(graceSeconds);
      if (graceEnds && Clock::now() > *graceEnds) return End::cancelled;
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
      if (left <= 0) return End::late;
      pollfd polled{socket, POLLIN, 0};
      poll(&polled, 1, int(std::min<int64_t>(left, 100)));
      if (polled.revents == 0) continue;
      char bytes[1 << 16];
      const ssize_t count = recv(socket, bytes, sizeof(bytes), MSG_DONTWAIT);
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count <= 0) return End::died;
      frames.append({bytes, size_t(count)});
    }
  }

  std::string describeEnd() {
    const int status = waitForExit();
    if (WIFSIGNALED(status))
      return fmt::format("the measuring process crashed (signal {}, {})", WTERMSIG(status),
                         strsignal(WTERMSIG(status)));
    return fmt::format("the measuring process ended with exit code {}", WEXITSTATUS(status));
  }

  bool isCancelled() const { return cancelled && cancelled->load(); }

private:
  static Clock::time_point after(double seconds) {
    return Clock::now() +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  int waitForExit() {
    int status = 0;
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) {}
    process = -1;
    return status;
  }

  const std::atomic<bool> *cancelled;
  double graceSeconds;
  pid_t process = -1;
  int socket = -1;
  FrameBuffer frames;
};

class ProcessMeasurer : public Measurer {
public:
  explicit ProcessMeasurer(const MeasureProcessOptions &options) : options(options) { start(); }

  const MeasureGreeting &greeting() const override { return hello; }

  MeasureReply measure(const MeasureGroup &group) override {
    std::string failure;
    bool died = false;
    if (std::optional<MeasureReply> reply = ask(group, failure, died)) return std::move(*reply);
    return group.kernels.size() > 1 ? oneByOne(group) : alone(group, failure, died);
  }

private:
  void start() {
    process = std::make_unique<Process>(options);
    std::string body;
    constexpr double startSeconds = 60;
    switch (process->receive(startSeconds, body)) {
      case Process::End::answered: break;
      case Process::End::died:
        throw Error::checkFailed("GPU {}: {} before it could measure", options.gpu,
                                 process->describeEnd());
      case Process::End::cancelled: throw MeasureCancelled();
      case Process::End::late:
        throw Error::checkFailed("GPU {} did not answer within {:g} s: it hangs or is taken",
                                 options.gpu, startSeconds);
    }
    hello = measureGreetingFrom(body);
    if (!hello.error.empty()) throw Error(static_cast<ErrorKind>(hello.errorKind), hello.error);
  }

  /// Nothing if the process died or was late: `failure` says how, and a fresh process has taken its
  /// place.
  std::optional<MeasureReply> ask(const MeasureGroup &group, std::string &failure, bool &died) {
    std::string body;
    Process::End end = Process::End::died;
    if (process->send(toBody(group))) end = process->receive(options.timeoutSeconds, body);
    if (end == Process::End::cancelled || (end == Process::End::died && process->isCancelled()))
      throw MeasureCancelled();
    MeasureReply reply;
    if (end == Process::End::answered) reply = measureReplyFrom(body);
    if (end == Process::End::answered && reply.fatal.empty()) return reply;
    failure = !reply.fatal.empty() ? reply.fatal
              : end == Process::End::died
                  ? process->describeEnd()
                  : fmt::format("did not finish within {:g} s", options.timeoutSeconds);
    died = end == Process::End::died;
    process.reset();
    start();
    return std::nullopt;
  }

  /// One kernel or GEMM that got no answer. A process that ended without a word may have been
  /// killed from outside: the work is given once more before it is said to fail.
  MeasureReply alone(const MeasureGroup &group, std::string failure, bool died) {
    if (died)
      if (std::optional<MeasureReply> reply = ask(group, failure, died)) return std::move(*reply);
    return failed(group, failure);
  }

  MeasureReply oneByOne(const MeasureGroup &group) {
    MeasureReply all{.bestFirstRun = group.bestFirstRun};
    for (size_t job = 0; job < group.kernels.size(); ++job) {
      std::string failure;
      bool died = false;
      const MeasureGroup single{
          .bestFirstRun = all.bestFirstRun, .kernels = {group.kernels[job]}, .gemm = {}};
      std::optional<MeasureReply> reply;
      try {
        reply = ask(single, failure, died);
        if (!reply) reply = alone(single, failure, died);
      } catch (
          const Error &) {  // cancelled, or the GPU is gone: what was measured of the group is kept
        if (all.results.empty()) throw;
        return all;
      }
      for (MeasureResult &result : reply->results) {
        result.job = job;
        all.results.push_back(std::move(result));
      }
      all.bestFirstRun = reply->bestFirstRun;
    }
    return all;
  }

  static MeasureReply failed(const MeasureGroup &group, const std::string &reason) {
    MeasureReply reply{.bestFirstRun = group.bestFirstRun};
    for (size_t job = 0; job < std::max<size_t>(1, group.kernels.size()); ++job)
      reply.results.push_back(
          {.job = job, .knobs = {}, .status = MeasurementStatus::failed, .reason = reason});
    return reply;
  }

  MeasureProcessOptions options;
  std::unique_ptr<Process> process;
  MeasureGreeting hello;
};

}  // namespace

std::unique_ptr<Measurer> startMeasureProcess(const MeasureProcessOptions &options) {
  return std::make_unique<ProcessMeasurer>(options);
}

}  // namespace weft::runtime
