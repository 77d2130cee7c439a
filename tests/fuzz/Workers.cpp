// fork, a shared page for each worker, and a watch on their processor time; see Workers.h.
#include "tests/fuzz/Workers.h"

#include "tests/fuzz/Slot.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>

#include <dlfcn.h>
#include <execinfo.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace weft::fuzz {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

/// What all workers take numbers from.
struct Shared {
  std::atomic<uint64_t> next = 0;
  std::atomic<uint64_t> findings = 0, newFindings = 0;
};

template <typename T>
T *sharedMemory() {
  void *memory =
      mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no shared memory");
  return new (memory) T;
}

int memoryFile(const char *name) {
  const int descriptor = memfd_create(name, MFD_CLOEXEC);
  if (descriptor < 0) throw std::runtime_error("no file in memory");
  return descriptor;
}

Slot *ownSlot = nullptr;

/// Only what is allowed in a signal's handler: the stack's addresses go into the shared page, the
/// parent prints them.
void onCrash(int signal) {
  if (ownSlot) ownSlot->frameCount = backtrace(ownSlot->frames.data(), int(ownSlot->frames.size()));
  std::signal(signal, SIG_DFL);
  raise(signal);
}

void watchCrashes(Slot &slot) {
  ownSlot = &slot;
  void *unused[1];
  backtrace(unused, 1);  // loads what it needs now
  static stack_t stack{};
  stack.ss_size = 256 << 10;
  stack.ss_sp = std::malloc(stack.ss_size);
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = onCrash;
  action.sa_flags = SA_ONSTACK | SA_RESETHAND;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    sigaction(signal, &action, nullptr);
}

/// "function (library)" or "library+offset" of every frame, without addresses, so that equal
/// crashes have equal texts.
std::string framesText(const Slot &slot) {
  std::string text;
  for (int frame = 0; frame < slot.frameCount; ++frame) {
    Dl_info info{};
    if (!dladdr(slot.frames[size_t(frame)], &info) || !info.dli_fname) continue;
    char offset[32];
    std::snprintf(offset, sizeof offset, "+0x%zx",
                  size_t(slot.frames[size_t(frame)]) - size_t(info.dli_fbase));
    text += std::string("\n  ") + fs::path(info.dli_fname).filename().string() + offset +
            (info.dli_sname ? std::string(" ") + info.dli_sname : "");
  }
  return text;
}

double cpuSecondsOf(pid_t process) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

std::string readAll(int descriptor) {
  std::string text(size_t(std::max<off_t>(0, lseek(descriptor, 0, SEEK_END))), '\0');
  const ssize_t bytes = pread(descriptor, text.data(), text.size(), 0);
  text.resize(size_t(std::max<ssize_t>(0, bytes)));
  return text;
}

class Worker {
public:
  Worker(fs::path folder, Slot *slot)
      : slot(slot), out(memoryFile("out")), err(memoryFile("err")), folder(std::move(folder)) {}
  ~Worker() {
    close(out);
    close(err);
    munmap(slot, sizeof *slot);
  }
  Worker(const Worker &) = delete;
  Worker &operator=(const Worker &) = delete;

  Slot *const slot;
  const int out, err;
  const fs::path folder;
  pid_t process = -1;
  uint64_t seenCommand = 0;
  double cpuAtStart = 0;
  Clock::time_point wallAtStart;
  std::string hang;  ///< why it was killed
};

class Crew {
public:
  Crew(const Kind &kind, const std::function<Work(uint64_t)> &work, uint64_t end,
       Clock::time_point deadline, const WorkLimits &limits, fs::path findings)
      : kind(kind),
        work(work),
        end(end),
        deadline(deadline),
        limits(limits),
        findings(std::move(findings)),
        shared(sharedMemory<Shared>()) {}

  Tally run(uint64_t first, int jobs, const fs::path &scratch) {
    shared->next = first;
    std::vector<std::unique_ptr<Worker>> workers;
    for (int index = 0; index < jobs; ++index) {
      workers.push_back(std::make_unique<Worker>(scratch / ("worker-" + std::to_string(index)),
                                                 sharedMemory<Slot>()));
      start(*workers.back());
    }
    for (bool isBusy = true; isBusy;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      isBusy = false;
      for (const auto &worker : workers) isBusy |= look(*worker);
    }
    Tally tally;
    tally.findings = shared->findings;
    tally.newFindings = shared->newFindings;
    tally.next = std::min<uint64_t>(shared->next, end);
    for (const auto &worker : workers) {
      tally.inputs += worker->slot->finished;
      for (const VerbCount &count : worker->slot->verbs) {
        if (count.commands == 0) continue;
        Commands &commands = tally.commands[count.verb.data()];
        commands.run += count.commands;
        commands.succeeded += count.succeeded;
        commands.seconds += count.seconds;
      }
    }
    return tally;
  }

private:
  bool hasWork() const { return shared->next < end && Clock::now() < deadline; }

  void start(Worker &worker) {
    std::fflush(nullptr);
    worker.slot->isIdle = true;
    worker.slot->frameCount = 0;
    worker.seenCommand = 0;
    worker.hang.clear();
    worker.process = fork();
    if (worker.process < 0) throw std::runtime_error("cannot fork");
    if (worker.process == 0) serve(worker);
  }

  [[noreturn]] void serve(Worker &worker) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody counts what goes on without the parent
    dup2(worker.out, STDOUT_FILENO);
    const int terminal = dup(STDERR_FILENO);
    dup2(worker.err, STDERR_FILENO);
    try {
      if (limits.memoryBytes > 0) {
        const rlimit most{rlim_t(limits.memoryBytes), rlim_t(limits.memoryBytes)};
        setrlimit(RLIMIT_DATA, &most);
      }
      const rlimit noCore{0, 0};
      setrlimit(RLIMIT_CORE, &noCore);
      watchCrashes(*worker.slot);
      setenv("WEFT_CACHE_DIR", (worker.folder.string() + "-cache").c_str(), 1);
      Session session(worker.folder, STDOUT_FILENO, STDERR_FILENO, *worker.slot);
      for (uint64_t count = 0; count < limits.inputsPerWorker && Clock::now() < deadline; ++count)
        if (!tryNext(worker, session)) break;
    } catch (const std::exception &error) {
      dprintf(terminal, "weft-fuzz: worker: %s\n", error.what());
      _exit(99);
    }
    _exit(0);
  }

  bool tryNext(Worker &worker, Session &session) {
    const uint64_t number = shared->next++;
    if (number >= end) return false;
    Slot &slot = *worker.slot;
    Work input = work(number);
    session.begin(input.files);
    slot.seed = number;
    ++slot.started;
    slot.isIdle = false;
    kind.run(session, input.files, input.random, input.everything);
    slot.isIdle = true;
    ++slot.finished;
    if (session.problem())
      keep({.kind = kind.name(),
            .seed = number,
            .problem = session.problem(),
            .commands = session.commandLines()},
           work(number).files);
    return true;
  }

  void keep(const Finding &finding, const Files &files) {
    ++shared->findings;
    if (keepFinding(findings, finding, kind, files)) ++shared->newFindings;
  }

  /// Whether the worker still works; a dead one is replaced while there is work.
  bool look(Worker &worker) {
    if (worker.process < 0) return false;
    int status = 0;
    if (waitpid(worker.process, &status, WNOHANG) == 0) {
      watch(worker);
      return true;
    }
    worker.process = -1;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      if (worker.slot->isIdle)
        throw std::runtime_error("a worker died between two inputs, near number " +
                                 std::to_string(worker.slot->seed));
      bury(worker, status);
    }
    if (!hasWork()) return false;
    start(worker);
    return true;
  }

  void watch(Worker &worker) {
    if (worker.slot->isIdle) return;
    const double cpu = cpuSecondsOf(worker.process);
    const auto now = Clock::now();
    if (worker.seenCommand != worker.slot->commands) {
      worker.seenCommand = worker.slot->commands;
      worker.cpuAtStart = cpu;
      worker.wallAtStart = now;
      return;
    }
    if (cpu - worker.cpuAtStart > limits.cpuSeconds) worker.hang = "of processor time";
    else if (std::chrono::duration<double>(now - worker.wallAtStart).count() > limits.wallSeconds)
      worker.hang = "of time";
    if (!worker.hang.empty()) kill(worker.process, SIGKILL);
  }

  void bury(Worker &worker, int status) {
    const uint64_t number = worker.slot->seed;
    Problem problem{"a crash", ""};
    if (!worker.hang.empty()) problem.promise = "more than 20 s " + worker.hang;
    else if (WIFSIGNALED(status))
      problem.promise = std::string("a crash: ") + strsignal(WTERMSIG(status));
    else problem.promise = "the process ended: exit code " + std::to_string(WEXITSTATUS(status));
    std::string err = readAll(worker.err);
    if (err.size() > 400) err = err.substr(err.size() - 400);
    problem.detail = framesText(*worker.slot) + "\n" + err;
    if (ftruncate(worker.err, 0) != 0 || ftruncate(worker.out, 0) != 0)
      throw std::runtime_error("a stream cannot be emptied");
    lseek(worker.err, 0, SEEK_SET);
    lseek(worker.out, 0, SEEK_SET);
    ++worker.slot->finished;
    keep({.kind = kind.name(),
          .seed = number,
          .problem = problem,
          .commands = {worker.slot->command.data()}},
         work(number).files);
  }

  const Kind &kind;
  const std::function<Work(uint64_t)> &work;
  const uint64_t end;
  const Clock::time_point deadline;
  const WorkLimits &limits;
  const fs::path findings;
  Shared *const shared;
};

}  // namespace

Tally tryInputs(const Kind &kind, const std::function<Work(uint64_t)> &work, uint64_t first,
                uint64_t end, int jobs, Clock::time_point deadline, const WorkLimits &limits,
                const fs::path &scratch, const fs::path &findings) {
  return Crew(kind, work, end, deadline, limits, findings).run(first, jobs, scratch);
}

}  // namespace weft::fuzz
