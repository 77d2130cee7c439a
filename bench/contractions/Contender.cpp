// Problems, operands and what runs on them; see Contender.h.
#include "bench/contractions/Contender.h"
#include "codegen/families/gemm_sm90/Sm90Tile.h"

#include "codegen/families/contraction/GemmProblem.h"
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "kernel/Attributes.h"
#include "kernel/Error.h"
#include "kernel/reference/PointEvaluator.h"
#include "kernel/reference/Rounding.h"
#include "kernel/reference/StoredElement.h"
#include "passes/configure/Families.h"
#include "runtime/cuda/TensorMaps.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

namespace weft::bench {

using namespace runtime;

namespace {

int64_t roundedUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

/// Rows of `inner` elements of every batch element; `order` of the dimensions [batch, x, y].
Layout layoutOf(int64_t rows, int64_t inner, bool isLastInner, int64_t pad) {
  const int64_t pitch = roundedUp(inner, pad);
  Layout layout{.order = isLastInner ? std::vector<int>{0, 1, 2} : std::vector<int>{0, 2, 1}};
  if (pitch == inner) return layout;
  layout.strides = isLastInner ? std::vector<int64_t>{rows * pitch, pitch, 1}
                               : std::vector<int64_t>{rows * pitch, 1, pitch};
  return layout;
}

int64_t spanOf(const Layout &layout, const std::vector<int64_t> &extents) {
  const std::vector<int64_t> strides = stridesOf(layout, extents);
  int64_t last = 0;
  for (size_t i = 0; i < extents.size(); ++i) last += (extents[i] - 1) * strides[i];
  return last + 1;
}

uint32_t hashOf(uint64_t position, uint32_t seed) {
  uint32_t state = uint32_t(position) * 2654435761u + seed * 40503u + 1;
  state ^= state >> 15, state *= 2246822519u, state ^= state >> 13;
  return state;
}

/// Uniform in [-1/2, 1/2), of 8-bit floats in [-4, 4), where they have more values; what lies
/// between rows is NaN.
std::vector<std::byte> operand(DType dtype, const std::vector<int64_t> &extents,
                               const Layout &layout, uint32_t seed) {
  const double scale = isFloat8(dtype) ? 8 : 1;
  std::vector<std::byte> bytes(size_t(spanOf(layout, extents) * sizeOf(dtype)), std::byte(0xff));
  const std::vector<int64_t> strides = stridesOf(layout, extents);
  for (int64_t x = 0; x < extents[0]; ++x)
    for (int64_t y = 0; y < extents[1]; ++y)
      for (int64_t z = 0; z < extents[2]; ++z) {
        const int64_t at = x * strides[0] + y * strides[1] + z * strides[2];
        const double value = scale * (double(hashOf(uint64_t(at), seed) & 0xffff) / 65536 - 0.5);
        reference::storeElement(dtype, &bytes[size_t(at * sizeOf(dtype))],
                                reference::roundTo(dtype, value));
      }
  return bytes;
}

double valueAt(DType dtype, const std::vector<std::byte> &bytes, int64_t at) {
  return reference::loadElement(dtype, &bytes[size_t(at * sizeOf(dtype))]);
}

GemmTypes typesOf(const Shape &shape, DType dtype) {
  if (!shape.types) return {dtype, dtype, dtype};
  const auto types = parseGemmTypes(shape.types);
  if (!types) throw Error::checkFailed("'{}' names no element types", shape.types);
  return *types;
}

}  // namespace

double Shape::bytes() const {
  const auto own = types ? parseGemmTypes(types) : std::nullopt;
  const double ofA = own ? double(sizeOf(own->a)) : 2, ofC = own ? double(sizeOf(own->c)) : 2;
  return (ofA * double(m * k + n * k) + ofC * double(m * n)) * double(batch);
}

std::string Shape::name() const {
  const std::string text =
      fmt::format("{}x{}x{} ({}) {}{}{}", m, n, k, batch, isAlongKA ? 'k' : 'm',
                  isAlongKB ? 'k' : 'n', pad > 1 ? " padded" : "");
  return types ? fmt::format("{} {}", text, types) : text;
}

Problem problemOf(const Shape &shape, DType dtype) {
  Problem problem{.shape = shape, .kernel = {}, .configurations = {}, .emitted = {}, .built = {}};
  Kernel &kernel = problem.kernel;
  kernel.name = "gemm";
  kernel.axes = {{"b", shape.batch}, {"m", shape.m}, {"n", shape.n}, {"k", shape.k}};
  const GemmTypes types = typesOf(shape, dtype);
  kernel.values = {{.name = "x", .dtype = storedAs(types.a), .axes = {0, 1, 3}},
                   {.name = "y", .dtype = storedAs(types.b), .axes = {0, 2, 3}},
                   {.name = "z", .dtype = types.c, .axes = {0, 1, 2}}};
  kernel.inputs = {0, 1};
  kernel.outputs = {2};
  BodyOp contract{.kind = OpKind::contract,
                  .operatorClass = OperatorClass::contraction,
                  .operands = {0, 1},
                  .results = {2},
                  .reducedAxes = {3}};
  contract.flop = shape.flop();
  if (types.areTf32())
    setAttribute(contract, attribute::precision, std::string(nameOf(DType::tf32)));
  kernel.body = {contract};
  const Layout x = layoutOf(shape.isAlongKA ? shape.m : shape.k,
                            shape.isAlongKA ? shape.k : shape.m, shape.isAlongKA, shape.pad);
  const Layout y = layoutOf(shape.isAlongKB ? shape.n : shape.k,
                            shape.isAlongKB ? shape.k : shape.n, shape.isAlongKB, shape.pad);
  const Layout z = layoutOf(shape.m, shape.n, true, shape.pad);
  // Those of the dense layouts: padding is no layout that a plan chooses.
  std::set<Knobs> knobs, ofWarps, withoutTensorCores;
  forEachConfiguration(kernel, findDevice("h200"), {}, [&](const Configuration &one) {
    if (one.knobs.is<Sm90GemmKnobs>()) knobs.insert(one.knobs);
    if (one.knobs.is<Sm80GemmKnobs>()) ofWarps.insert(one.knobs);
    if (one.knobs.is<FmaGemmKnobs>()) withoutTensorCores.insert(one.knobs);
    return true;
  });
  for (const Knobs &one : knobs) {
    const Configuration configuration{
        .inputs = {x, y}, .outputs = {z}, .knobs = one};  // some tiles take other layouts alone
    if (!sm90Rejection(kernel, configuration, one.get<Sm90GemmKnobs>(),
                       findDevice("h200").sharedMemoryPerBlock)
             .empty())
      continue;
    problem.configurations.push_back(configuration);
    problem.emitted.push_back(codegen::emit(kernel, problem.configurations.back(), "sm_90a"));
  }
  if (problem.emitted.empty()) {  // where the family of sm_90a takes no such operands
    const bool isOfWarps =
        !ofWarps.empty() &&
        mmaSyncProblem(kernel, {.inputs = {x, y}, .outputs = {z}, .knobs = Sm80GemmKnobs{}});
    for (const Knobs &one : isOfWarps ? ofWarps : withoutTensorCores) {
      problem.configurations.push_back({.inputs = {x, y}, .outputs = {z}, .knobs = one});
      problem.emitted.push_back(codegen::emit(kernel, problem.configurations.back(), "sm_90a"));
    }
  }
  if (problem.emitted.empty())
    throw Error::checkFailed("{}: no configuration of ours", shape.name());
  return problem;
}

Contenders::Contenders(const Problem &problem, const CublasLt &library, bool startsEarly)
    : problem(problem),
      startsEarly(startsEarly),
      types(gemmTypes(problem.kernel)),
      gemm(libraryGemm(problem.kernel, problem.configurations[0])) {
  const Shape &shape = problem.shape;
  const Configuration &layouts = problem.configurations[0];
  hostA = operand(storedAs(types.a), {shape.batch, shape.m, shape.k}, layouts.inputs[0], 1);
  hostB = operand(storedAs(types.b), {shape.batch, shape.n, shape.k}, layouts.inputs[1], 2);
  const int64_t bytesC =
      sizeOf(types.c) * spanOf(layouts.outputs[0], {shape.batch, shape.m, shape.n});
  constexpr int count = 3;
  for (int set = 0; set < count; ++set) {
    memory.push_back({cuda::Buffer(int64_t(hostA.size())), cuda::Buffer(int64_t(hostB.size())),
                      cuda::Buffer(bytesC)});
    cuda::upload(memory.back().a.address(), hostA);
    cuda::upload(memory.back().b.address(), hostB);
  }
  addOurs();
  addLibrary(library);
}

void Contenders::addOurs() {
  for (size_t i = 0; i < problem.emitted.size(); ++i) {
    const codegen::EmittedKernel &emitted = problem.emitted[i];
    const std::string name = describe(problem.kernel, problem.configurations[i].knobs);
    if (!problem.built[i].error.empty())
      throw Error::checkFailed("{}, {}: {}", problem.shape.name(), name, problem.built[i].error);
    cuda::FunctionHandle *function =
        modules.emplace_back(problem.built[i].cubin).function(emitted.entry);
    if (emitted.launch.sharedBytes > 48 << 10)
      cuda::allowSharedMemory(function, emitted.launch.sharedBytes);
    const auto ownWorkspace = std::make_shared<cuda::Buffer>(emitted.launch.workspaceBytes);
    contenders.push_back(
        {.name = name,
         .isOurs = true,
         .enqueue = [this, &emitted, function, ownWorkspace](cuda::StreamHandle *stream, int set) {
           const Set &buffers = memory[size_t(set)];
           cuda::ArgumentList arguments;
           for (const codegen::Parameter &parameter : emitted.parameters) {
             if (parameter.kind == codegen::Parameter::Kind::workspace) {
               arguments.passPointer(ownWorkspace->address());
               continue;
             }
             const bool isInput = parameter.kind == codegen::Parameter::Kind::input ||
                                  parameter.kind == codegen::Parameter::Kind::inputMap;
             const cuda::DevicePointer address = !isInput               ? buffers.c.address()
                                                 : parameter.index == 0 ? buffers.a.address()
                                                                        : buffers.b.address();
             if (parameter.map) arguments.passMap(*parameter.map, address);
             else arguments.passPointer(address);
           }
           cuda::launch(function,
                        {.grid = emitted.launch.grid,
                         .block = emitted.launch.block,
                         .sharedBytes = emitted.launch.sharedBytes,
                         .startsEarly = emitted.launch.startsEarly && startsEarly},
                        arguments.span(), stream);
         }});
  }
}

/// Of 8-bit floats both with sums that stay in the tensor cores, as ours do, and with sums that are
/// moved to fp32 on the way.
void Contenders::addLibrary(const CublasLt &library) {
  workspace = cuda::Buffer(CublasLt::standardWorkspace);
  addCandidates(library, gemm);
  if (!types.areFloat8()) return;
  LibraryGemm promoted = gemm;
  promoted.promotesSums = true;
  addCandidates(library, promoted);
}

void Contenders::addCandidates(const CublasLt &library, const LibraryGemm &asked) {
  for (const LibraryKnobs &knobs : library.candidates(asked)) {
    prepared.push_back(library.prepare(asked, knobs, "candidate"));
    if (!prepared.back().warning().empty()) continue;
    contenders.push_back(
        {.name = "cuBLASLt",
         .isOurs = false,
         .enqueue =
             [this, chosen = &prepared.back()](cuda::StreamHandle *stream, int set) {
               const Set &buffers = memory[size_t(set)];
               chosen->enqueue({.a = buffers.a.address(),
                                .b = buffers.b.address(),
                                .result = buffers.c.address()},
                               workspace.address(), stream);
             },
         .promotesSums = asked.promotesSums});
  }
}

void Contenders::poison() { cuda::fill(memory[0].c.address(), 0xff, memory[0].c.bytes()); }

std::string Contenders::check() {
  const Shape &shape = problem.shape;
  const StridedBatchedGemm &strides = gemm.shape;
  std::vector<std::byte> c(size_t(memory[0].c.bytes()));
  cuda::download(c, memory[0].c.address());
  int64_t untouched = 0;  // all ones is NaN: what was not written
  const auto bytes = ptrdiff_t(sizeOf(types.c));
  const auto isPoison = [](std::byte one) { return one == std::byte(0xff); };
  for (auto at = c.begin(); at != c.end(); at += bytes)
    untouched += std::all_of(at, at + bytes, isPoison);
  const int64_t between = int64_t(c.size()) / bytes - shape.batch * shape.m * shape.n;
  if (untouched != between)
    return fmt::format("{} elements as poisoned, {} between rows", untouched, between);
  constexpr int samples = 256;
  for (uint32_t sample = 0; sample < samples; ++sample) {
    const int64_t z = hashOf(sample, 3) % uint64_t(shape.batch);
    const int64_t m = sample % 8 == 0 ? shape.m - 1 : hashOf(sample, 4) % uint64_t(shape.m),
                  n = sample % 8 == 1 ? shape.n - 1 : hashOf(sample, 5) % uint64_t(shape.n);
    double sum = 0, magnitude = 0, squares = 0;
    for (int64_t k = 0; k < shape.k; ++k) {
      const double term =
          valueAt(types.a, hostA,
                  z * strides.batchStrideA + m * strides.strideAm + k * strides.strideAk) *
          valueAt(types.b, hostB,
                  z * strides.batchStrideB + k * strides.strideBk + n * strides.strideBn);
      sum += term, magnitude += std::abs(term), squares += term * term;
    }
    const double got =
        valueAt(types.c, c, z * strides.batchStrideC + m * strides.strideCm + n * strides.strideCn);
    const double lost = types.areFloat8()
                            ? reference::float8SumError(shape.k, sum, magnitude, squares)
                        : types.areTf32() ? reference::tf32SumError(sum, magnitude, squares)
                                          : 0;
    const double inSum = magnitude * 0x1p-22 + 1e-7 + lost;
    const double bound = inSum + reference::roundingError(types.c, std::abs(sum) + inSum);
    if (!(std::abs(got - sum) <= bound))
      return fmt::format("[{}, {}, {}] is {} instead of {}", z, m, n, got, sum);
  }
  return "";
}

}  // namespace weft::bench
