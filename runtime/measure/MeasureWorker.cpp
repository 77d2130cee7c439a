// The measuring process: loads kernels, times them, answers, until end of file.
//
// Inputs and outputs lie in two pools, each as many sets as cold measuring by rotation needs.
// Inputs are normal random numbers that no kernel writes, so that times do not depend on what ran
// before; outputs start as NaN.
#include "codegen/families/library/LibraryKnobs.h"
#include "kernel/Format.h"
#include "kernel/Pages.h"
#include "runtime/cuda/CublasLt.h"
#include "runtime/cuda/TensorMaps.h"
#include "runtime/measure/Measure.h"
#include "runtime/measure/MeasureProcess.h"
#include "runtime/measure/ReferenceCopy.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weft::runtime {
namespace {

constexpr int channel = STDIN_FILENO;
constexpr int64_t alignment = 256;
/// Rounds are shorter than those of `weft time`: thousands of configurations are ranked, few of
/// them matter.
constexpr Protocol profileProtocol{
    .l2 = L2State::cold, .rounds = 9, .warmUpRounds = 1, .secondsPerRound = 4e-4, .mostCalls = 200};

int64_t aligned(int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

int64_t total(const std::vector<int64_t> &bytes) {
  int64_t sum = 0;
  for (const int64_t part : bytes) sum += aligned(part);
  return sum;
}

/// IEEE half of a value of moderate size, cut towards zero.
uint16_t halfBits(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  const int exponent = int(bits >> 23 & 0xff) - 127 + 15;
  if (exponent <= 0) return uint16_t(bits >> 16 & 0x8000);
  return uint16_t((bits >> 16 & 0x8000) | uint32_t(exponent) << 10 | (bits >> 13 & 0x3ff));
}

/// Normal random halves. Read as f32 or bf16 they are finite numbers of moderate size, too.
std::vector<std::byte> randomBlock() {
  constexpr size_t count = size_t(1) << 22;
  std::mt19937 generator(1);
  std::normal_distribution<float> normal(0, 1);
  std::vector<std::byte> block(count * sizeof(uint16_t));
  for (size_t i = 0; i < count; ++i) {
    const uint16_t bits = halfBits(normal(generator));
    std::memcpy(block.data() + i * sizeof(bits), &bits, sizeof(bits));
  }
  return block;
}

/// Random 8-bit floats of both signs: in E4M3 of 0.25 to 3.75, in E5M2 of 0.03 to 7. Read as wider
/// floats they are finite numbers, too. Of a half's lower bytes one in a hundred would be NaN, and
/// products of NaN toggle fewer bits.
std::vector<std::byte> randomFloat8Block() {
  constexpr size_t count = size_t(1) << 23;
  std::mt19937 generator(2);
  std::vector<std::byte> block(count);
  for (size_t i = 0; i < count; i += 4) {
    uint32_t bits = generator();
    for (size_t byte = i; byte < i + 4; ++byte, bits >>= 8)
      block[byte] = std::byte((bits & 0x80) | (0x28 + (bits & 0x1F)));
  }
  return block;
}

class Pools {
public:
  /// Room for `sets` of so many bytes; inputs are normal halves or 8-bit floats.
  void reserve(int64_t inputBytes, int64_t outputBytes, int64_t zeroBytes, int sets,
               bool ofFloat8) {
    const int64_t bytes = std::max(alignment, inputBytes * sets);
    if (bytes > inputs.bytes()) {
      inputs = {};
      inputs = cuda::Buffer(bytes);
      fillInputs(ofFloat8);
    } else if (ofFloat8 != isOfFloat8) {
      fillInputs(ofFloat8);
    }
    if (const int64_t bytes = std::max(alignment, outputBytes * sets); bytes > outputs.bytes()) {
      outputs = {};
      outputs = cuda::Buffer(bytes);
      cuda::fill(outputs.address(), 0xff, bytes);
    }
    if (zeroBytes > zeros.bytes()) {
      zeros = {};
      zeros = cuda::Buffer(zeroBytes);
      cuda::fill(zeros.address(), 0, zeroBytes);
      full = {};
      full = cuda::Buffer(zeroBytes);
      cuda::fill(full.address(), 1, zeroBytes);
    }
  }

  cuda::Buffer inputs, outputs, zeros;
  cuda::Buffer full;  ///< lengths of 2^24 + 2^16 + 2^8 + 1

private:
  void fillInputs(bool ofFloat8) {
    isOfFloat8 = ofFloat8;
    if (ofFloat8 && float8Block.empty()) float8Block = randomFloat8Block();
    const std::vector<std::byte> &block = ofFloat8 ? float8Block : halfBlock;
    for (int64_t done = 0; done < inputs.bytes(); done += int64_t(block.size()))
      cuda::upload(inputs.address() + uint64_t(done),
                   std::span(block).first(
                       size_t(std::min<int64_t>(int64_t(block.size()), inputs.bytes() - done))));
  }
  const std::vector<std::byte> halfBlock = randomBlock();
  std::vector<std::byte> float8Block;
  bool isOfFloat8 = false;
};

/// Of one set: outputs, then what the kernel works in.
int64_t writtenBytes(const KernelJob &job) {
  return total(job.outputBytes) + aligned(job.workspaceBytes);
}

/// A loaded kernel with the addresses of every set of its buffers.
class LoadedKernel {
public:
  LoadedKernel(const KernelJob &job, const Pools &pools, cuda::DevicePointer dropoutKey)
      : job(job),
        pools(pools),
        dropoutKey(dropoutKey),
        module(job.cubin),
        function(module.function(job.entry)),
        inputStride(uint64_t(total(job.inputBytes))),
        outputStride(uint64_t(writtenBytes(job))) {
    if (job.sharedBytes > 0) cuda::allowSharedMemory(function, job.sharedBytes);
    for (const auto &[input, pages] : job.pageInputs) {
      std::vector<int32_t> entries(size_t(job.inputBytes.at(size_t(input))) / sizeof(int32_t));
      const ShuffledPages shuffled(1, pages, 0);
      for (size_t n = 0; n < entries.size(); ++n)
        entries[n] = int32_t(shuffled.page(int64_t(n) % pages));
      cuda::Buffer &table =
          tables.emplace(input, cuda::Buffer(job.inputBytes[size_t(input)])).first->second;
      cuda::upload(table.address(), std::as_bytes(std::span(entries)));
    }
  }

  void enqueue(cuda::StreamHandle *stream, int set) const {
    cuda::ArgumentList arguments;
    for (const KernelArgument &argument : job.arguments) pass(argument, uint64_t(set), arguments);
    // None starts early: the kernel before it in a plan seldom lets it, while it would let itself.
    cuda::launch(function, {.grid = job.grid, .block = job.block, .sharedBytes = job.sharedBytes},
                 arguments.span(), stream);
  }

private:
  void pass(const KernelArgument &argument, uint64_t set, cuda::ArgumentList &arguments) const {
    if (argument.kind == ParameterKind::dropoutKey) return arguments.passPointer(dropoutKey);
    if (argument.kind == ParameterKind::status)  // of lengths in range: nothing is written
      return arguments.passPointer(pools.zeros.address());
    if (isNumber(argument.kind)) return arguments.passNumber(1);
    if (argument.kind == ParameterKind::workspace)
      return arguments.passPointer(pools.outputs.address() + set * outputStride +
                                   uint64_t(total(job.outputBytes)));
    if (argument.map) arguments.passMap(*argument.map, addressOf(argument, set));
    else arguments.passPointer(addressOf(argument, set));
  }

  /// Of an input or output, or of the tensor that a map is of.
  cuda::DevicePointer addressOf(const KernelArgument &argument, uint64_t set) const {
    const auto index = size_t(argument.index);
    const bool isInput = isOfInput(argument.kind);
    if (isInput && std::ranges::find(job.zeroInputs, argument.index) != job.zeroInputs.end())
      return pools.zeros.address();
    if (const auto table = tables.find(argument.index); isInput && table != tables.end())
      return table->second.address();
    if (isInput && std::ranges::find(job.lengthInputs, argument.index) != job.lengthInputs.end())
      return pools.full.address();
    const std::vector<int64_t> &bytes = isInput ? job.inputBytes : job.outputBytes;
    const cuda::DevicePointer base = isInput ? pools.inputs.address() + set * inputStride
                                             : pools.outputs.address() + set * outputStride;
    return base + uint64_t(total({bytes.begin(), bytes.begin() + ptrdiff_t(index)}));
  }

  const KernelJob &job;
  const Pools &pools;
  std::map<int, cuda::Buffer> tables;  ///< by input
  cuda::DevicePointer dropoutKey;
  cuda::Module module;
  cuda::FunctionHandle *function;
  uint64_t inputStride, outputStride;
};

/// Something to be measured, and where its result goes.
struct Entrant {
  Subject subject;
  MeasureResult *result;
};

class Worker {
public:
  explicit Worker(int gpu)
      : context(gpu),
        reference(context),
        dropoutKey(2 * sizeof(uint64_t)),
        monitor(context.gpu().uuid) {
    cuda::fill(dropoutKey.address(), 1, dropoutKey.bytes());
  }

  MeasureGreeting greeting() {
    return {.gpu = context.gpu().name,
            .architecture = context.gpu().architecture,
            .driver = fmt::format(
                "{}, CUDA {}",
                monitor.driverVersion().empty() ? "driver" : "driver " + monitor.driverVersion(),
                context.gpu().driverVersion),
            .protocol = fmt::format("{}, reference copy {}", describe(profileProtocol),
                                    formatSeconds(referenceSeconds())),
            .clocks = describe(summarizeStates({monitor.read()}))};
  }

  MeasureReply measure(const MeasureGroup &group) {
    bestFirstRun = group.bestFirstRun;
    MeasureReply reply = group.gemm ? measureGemm(*group.gemm) : measureKernels(group.kernels);
    reply.bestFirstRun = bestFirstRun;
    return reply;
  }

private:
  double referenceSeconds() {
    return runtime::measure(context, {reference.subject()}, profileProtocol)
        .measurements[0]
        .seconds.median;
  }

  MeasureReply measureKernels(const std::vector<KernelJob> &jobs) {
    MeasureReply reply;
    reply.results.resize(jobs.size());
    std::vector<std::unique_ptr<LoadedKernel>> loaded(jobs.size());
    std::vector<Entrant> entrants;
    for (size_t i = 0; i < jobs.size(); ++i) {
      MeasureResult &result = reply.results[i];
      result.job = i;
      const KernelJob &job = jobs[i];
      attempt(
          result,
          [&] {
            const int64_t bytes = total(job.inputBytes) + writtenBytes(job);
            const int sets = setsForColdL2(bytes, context.gpu().l2Bytes);
            const int64_t zeroBytes = job.zeroInputs.empty() && job.lengthInputs.empty()
                                          ? 0
                                          : *std::ranges::max_element(job.inputBytes);
            pools.reserve(total(job.inputBytes), writtenBytes(job), zeroBytes, sets,
                          job.readsFloat8);
            loaded[i] = std::make_unique<LoadedKernel>(job, pools, dropoutKey.address());
            entrants.push_back(
                {.subject = {.name = job.entry,
                             .enqueue = [kernel = loaded[i].get()](
                                            cuda::StreamHandle *stream,
                                            int set) { kernel->enqueue(stream, set); },
                             .sets = sets,
                             .bytesPerSet = bytes},
                 .result = &result});
            return firstRun(entrants.back());
          },
          entrants);
    }
    measureEntrants(entrants);
    return reply;
  }

  MeasureReply measureGemm(const GemmJob &job);

  /// Runs what prepares and tries one entrant; a failure that leaves the context alive is the
  /// entrant's result.
  template <typename Try>
  void attempt(MeasureResult &result, Try &&body, std::vector<Entrant> &entrants) {
    const size_t before = entrants.size();
    try {
      if (body()) return;
    } catch (const cuda::DriverError &error) {
      if (error.isSticky()) throw;
      fail(result, error.what());
    } catch (const Error &error) {
      fail(result, error.what());
    }
    entrants.resize(before);
  }

  static void fail(MeasureResult &result, const std::string &reason) {
    result.status = MeasurementStatus::failed;
    result.reason = reason.substr(0, reason.find('\n'));
  }

  /// Whether the entrant is worth measuring; if not, its result says slow.
  bool firstRun(Entrant &entrant) {
    entrant.subject.enqueue(stream.handle(), 0);  // loads lazily loaded code
    stream.synchronize();
    const double seconds =
        timeOnce(stream, [&](cuda::StreamHandle *handle) { entrant.subject.enqueue(handle, 0); });
    if (!(bestFirstRun > 0) || seconds < bestFirstRun) bestFirstRun = seconds;
    if (seconds <= slowFactor * bestFirstRun) return true;
    *entrant.result = {.job = entrant.result->job,
                       .knobs = entrant.result->knobs,
                       .status = MeasurementStatus::slow,
                       .seconds = seconds,
                       .n = 1};
    return false;
  }

  void measureEntrants(const std::vector<Entrant> &entrants) {
    if (entrants.empty()) return;
    std::vector<Subject> subjects;
    for (const Entrant &entrant : entrants) subjects.push_back(entrant.subject);
    const MeasurementRun run = runtime::measure(context, subjects, profileProtocol);
    for (size_t i = 0; i < entrants.size(); ++i) {
      const Statistics &seconds = run.measurements[i].seconds;
      MeasureResult &result = *entrants[i].result;
      result.seconds = seconds.median;
      result.n = seconds.n;
      result.spread = seconds.spread();
      if (!(seconds.median > 0))
        fail(result, "no time above that of the cache's eviction was measured");
    }
  }

  cuda::Context context;
  ReferenceCopy reference;
  cuda::Stream stream;
  cuda::Buffer dropoutKey;
  GpuMonitor monitor;
  Pools pools;
  std::unique_ptr<CublasLt> library;
  cuda::Buffer workspace;
  double bestFirstRun = 0;
};

/// Bytes from element zero to the last one of an operand with these extents and strides.
int64_t spanBytes(std::initializer_list<std::pair<int64_t, int64_t>> extentsAndStrides,
                  DType dtype) {
  int64_t last = 0;
  for (const auto &[extent, stride] : extentsAndStrides) last += (extent - 1) * stride;
  return (last + 1) * sizeOf(dtype);
}

/// Where the tensors of a GEMM lie in one set of inputs and outputs.
struct GemmAddresses {
  explicit GemmAddresses(const LibraryGemm &gemm) {
    const StridedBatchedGemm &shape = gemm.shape;
    const LibraryEpilogueTraits &traits = traitsOf(gemm.epilogue);
    const auto bytesOf = [&](const GroupStrides &strides) {
      return spanBytes({{shape.batch, strides.batch}, {shape.m, strides.m}, {shape.n, strides.n}},
                       gemm.dtype);
    };
    const int64_t vectorBytes = spanBytes({{vectorExtent(gemm), 1}}, gemm.dtype);
    a = add(inputBytes, spanBytes({{shape.batch, shape.batchStrideA},
                                   {shape.m, shape.strideAm},
                                   {shape.k, shape.strideAk}},
                                  gemm.types().a));
    b = add(inputBytes, spanBytes({{shape.batch, shape.batchStrideB},
                                   {shape.k, shape.strideBk},
                                   {shape.n, shape.strideBn}},
                                  gemm.types().b));
    result = add(outputBytes,
                 bytesOf({.batch = shape.batchStrideC, .m = shape.strideCm, .n = shape.strideCn}));
    if (gemm.beta != 0) residual = add(inputBytes, bytesOf(gemm.residual));
    isAuxiliaryWritten = traits.writesAuxiliary;
    if (traits.readsAuxiliary || traits.writesAuxiliary)
      auxiliary = add(isAuxiliaryWritten ? outputBytes : inputBytes, bytesOf(gemm.auxiliary));
    isVectorWritten = traits.writesGradient;
    if (traits.readsBias || traits.writesGradient)
      vector = add(isVectorWritten ? outputBytes : inputBytes, vectorBytes);
  }

  GemmTensors at(cuda::DevicePointer inputs, cuda::DevicePointer outputs) const {
    return {.a = inputs + uint64_t(a),
            .b = inputs + uint64_t(b),
            .result = outputs + uint64_t(result),
            .residual = inputs + uint64_t(residual),
            .auxiliary = (isAuxiliaryWritten ? outputs : inputs) + uint64_t(auxiliary),
            .vector = (isVectorWritten ? outputs : inputs) + uint64_t(vector)};
  }

  int64_t inputBytes = 0, outputBytes = 0;

private:
  static int64_t add(int64_t &total, int64_t bytes) {
    const int64_t start = total;
    total += aligned(bytes);
    return start;
  }

  int64_t a = 0, b = 0, result = 0, residual = 0, auxiliary = 0, vector = 0;
  bool isAuxiliaryWritten = false, isVectorWritten = false;
};

/// Every candidate is tried once; those that are not hopeless are measured against each other, best
/// guesses first.
MeasureReply Worker::measureGemm(const GemmJob &job) {
  constexpr size_t together = 16;
  MeasureReply reply;
  const GemmAddresses places(job.gemm);
  const int64_t inputStride = places.inputBytes, outputStride = places.outputBytes;
  const int sets = setsForColdL2(inputStride + outputStride, context.gpu().l2Bytes);
  std::vector<LibraryKnobs> candidates;
  reply.results.resize(1);
  std::vector<Entrant> none;
  attempt(
      reply.results[0],
      [&] {
        if (!library) library = std::make_unique<CublasLt>();
        if (!workspace.bytes()) workspace = cuda::Buffer(CublasLt::standardWorkspace);
        pools.reserve(inputStride, outputStride, 0, sets, job.gemm.types().areFloat8());
        candidates = library->candidates(job.gemm, job.candidates);
        if (candidates.empty()) fail(reply.results[0], "cuBLASLt lists no candidate");
        return true;
      },
      none);
  if (candidates.empty()) return reply;

  reply.results.assign(candidates.size(), {});
  std::vector<std::unique_ptr<PreparedGemm>> prepared(candidates.size());
  std::vector<Entrant> entrants;
  const auto flush = [&] {
    measureEntrants(entrants);
    entrants.clear();
  };
  for (size_t i = 0; i < candidates.size(); ++i) {
    MeasureResult &result = reply.results[i];
    result.job = i;
    result.knobs = candidates[i];
    attempt(
        result,
        [&] {
          prepared[i] =
              std::make_unique<PreparedGemm>(library->prepare(job.gemm, candidates[i], "gemm"));
          if (!prepared[i]->warning().empty())
            throw Error::unsupported("{}", prepared[i]->warning());
          const auto enqueue = [this, &places, gemm = prepared[i].get(), inputStride, outputStride](
                                   cuda::StreamHandle *handle, int set) {
            gemm->enqueue(places.at(pools.inputs.address() + uint64_t(set * inputStride),
                                    pools.outputs.address() + uint64_t(set * outputStride)),
                          workspace.address(), handle);
          };
          entrants.push_back({.subject = {.name = "gemm",
                                          .enqueue = enqueue,
                                          .sets = sets,
                                          .bytesPerSet = inputStride + outputStride},
                              .result = &result});
          return firstRun(entrants.back());
        },
        entrants);
    if (entrants.size() == together) flush();
  }
  flush();
  return reply;
}

/// What the process says when its context is lost: a lost context must not be torn down.
[[noreturn]] void leave(const Error &error, const std::string &body) {
  sendAll(channel, frameOfBody(body));
  std::fflush(nullptr);
  _exit(int(error.kind));
}

int serve(Worker &worker) {
  FrameBuffer frames;
  std::string bytes(size_t(1) << 16, '\0');
  while (true) {
    while (const std::optional<std::string> body = frames.next()) {
      MeasureReply reply;
      try {
        reply = worker.measure(measureGroupFrom(*body));
      } catch (const Error &error) {
        leave(error, toBody(MeasureReply{.fatal = std::string(error.what())}));
      }
      if (!sendAll(channel, frameOfBody(toBody(reply)))) return 0;
    }
    const ssize_t count = read(channel, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return 0;
    frames.append({bytes.data(), size_t(count)});
  }
}

}  // namespace

std::optional<int> serveAsMeasureWorker(int argumentCount, char **arguments) {
  if (argumentCount < 3 || std::string_view(arguments[1]) != measureWorkerArgument)
    return std::nullopt;
  int type = 0;
  socklen_t size = sizeof(type);
  if (getsockopt(channel, SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
    std::fprintf(stderr, "%s: only weft itself starts its measuring processes\n",
                 measureWorkerArgument);
    return int(ErrorKind::badInput);
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(
      SIGINT,
      SIG_IGN);  // the terminal's interrupt is for the parent, which keeps what was measured
  const rlimit noCoreFile{0, 0};
  setrlimit(RLIMIT_CORE, &noCoreFile);
  std::unique_ptr<Worker> worker;
  try {
    worker = std::make_unique<Worker>(std::atoi(arguments[2]));
  } catch (const Error &error) {
    leave(error, toBody(MeasureGreeting{.error = error.what(), .errorKind = int(error.kind)}));
  }
  if (!sendAll(channel, frameOfBody(toBody(worker->greeting())))) return 0;
  return serve(*worker);
}

}  // namespace weft::runtime
