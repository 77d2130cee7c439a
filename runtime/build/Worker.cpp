// The worker process: reads requests from the socket that is its standard input, compiles, answers,
// until end of file. Everything that NVRTC prints goes to standard error, which the parent keeps
// for the report of a crash.
#include "kernel/Error.h"
#include "runtime/build/Build.h"
#include "runtime/build/Nvrtc.h"
#include "runtime/build/WorkerProtocol.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <string_view>

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weft::runtime {

namespace {

constexpr int channel = STDIN_FILENO;

bool isSocket(int descriptor) {
  int type = 0;
  socklen_t size = sizeof(type);
  return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
}

/// Of this process, which compiles one kernel at a time: other load on the machine does not count.
double processorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

WorkerReply compile(const WorkerRequest &request,
                    std::map<std::string, std::unique_ptr<Nvrtc>> &libraries) {
  try {
    std::unique_ptr<Nvrtc> &library = libraries[request.library];
    if (!library) library = std::make_unique<Nvrtc>(request.library);
    const double start = processorSeconds();
    Compilation result = library->compile(request.text, request.flags, request.headers);
    return {result.succeeded, std::move(result.cubin), std::move(result.ptx), std::move(result.log),
            processorSeconds() - start};
  } catch (const Error &error) {
    return {false, "", "", error.what(), 0};
  }
}

}  // namespace

std::optional<int> serveAsBuildWorker(int argumentCount, char **arguments) {
  if (argumentCount < 2 || std::string_view(arguments[1]) != buildWorkerArgument)
    return std::nullopt;
  return buildWorkerMain();
}

int buildWorkerMain() {
  if (!isSocket(channel)) {
    std::fprintf(stderr, "%s: only weft itself starts its build workers\n", buildWorkerArgument);
    return int(ErrorKind::badInput);
  }
  prctl(PR_SET_PDEATHSIG,
        SIGKILL);  // a killed compile leaves no process behind, even in the middle of a kernel
  const rlimit noCoreFile{0, 0};
  setrlimit(RLIMIT_CORE, &noCoreFile);
  dup2(STDERR_FILENO, STDOUT_FILENO);

  std::map<std::string, std::unique_ptr<Nvrtc>> libraries;
  FrameBuffer frames;
  if (!sendAll(channel, greetingFrame())) return 0;
  std::string bytes(size_t(1) << 16, '\0');
  while (true) {
    while (const std::optional<std::string> body = frames.next())
      if (!sendAll(channel, frameOf(compile(requestFrom(*body), libraries)))) return 0;
    const ssize_t count = read(channel, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return 0;
    frames.append({bytes.data(), size_t(count)});
  }
}

}  // namespace weft::runtime
