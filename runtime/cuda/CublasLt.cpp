// Descriptors, algorithms and GEMMs of cuBLASLt; see CublasLt.h.
#include "runtime/cuda/CublasLt.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "kernel/Schedule.h"

#include "runtime/cuda/CublasLtFunctions.h"
#include "runtime/system/Environment.h"
#include "runtime/system/LibrarySearch.h"

#include <algorithm>
#include <utility>

namespace weft::runtime {

namespace fs = std::filesystem;
using namespace cublaslt;

namespace {

/// nvidia/cu13/lib since CUDA 13, nvidia/cublas/lib before.
const SearchedLibrary searched{
    .files = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"},
    .wheels = {"cu13", "cublas"}};
/// Every address is a multiple of it: views of a plan are cut at 16 bytes.
constexpr uint32_t addressAlignment = 16;

/// One attribute of an algorithm: where it stands in our knobs, and how wide the library has it.
struct AttributeOf {
  AlgorithmAttribute attribute;
  int LibraryKnobs::*member;
  size_t bytes;
};
constexpr AttributeOf attributesOf[] = {
    {tile, &LibraryKnobs::tile, 4},
    {stages, &LibraryKnobs::stages, 4},
    {splitK, &LibraryKnobs::splitK, 4},
    {cublaslt::reductionScheme, &LibraryKnobs::reductionScheme, 4},
    {swizzle, &LibraryKnobs::swizzle, 4},
    {customOption, &LibraryKnobs::customOption, 4},
    {innerShape, &LibraryKnobs::innerShape, 2},
    {clusterShape, &LibraryKnobs::clusterShape, 2},
};

std::string textOf(const LibraryKnobs &knobs) {
  std::vector<std::string> texts;
  LibraryKnobs algorithm = knobs;
  algorithm.libraryVersion = LibraryKnobs{}.libraryVersion;
  for (const ScheduleField &field : libraryFamily.schedule)
    if (field.get(algorithm) != field.get(LibraryKnobs{}))
      texts.push_back(fmt::format("{} {}", field.name, field.get(algorithm)));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string textOf(const LibraryGemm &gemm) {
  const StridedBatchedGemm &shape = gemm.shape;
  std::string text = fmt::format("{} x {} x {}, batch {}, {}", shape.m, shape.n, shape.k,
                                 shape.batch, nameOf(gemm.types()));
  if (gemm.epilogue != LibraryEpilogue::none)
    text += fmt::format(", epilogue {}", traitsOf(gemm.epilogue).name);
  return gemm.beta == 0 ? text : text + ", residual";
}

/// What the library calls it, whose A and B may be ours swapped.
EpilogueKind kindOf(LibraryEpilogue epilogue, bool isSwapped) {
  switch (epilogue) {
    case LibraryEpilogue::none: return kindNone;
    case LibraryEpilogue::relu: return kindRelu;
    case LibraryEpilogue::bias: return kindBias;
    case LibraryEpilogue::reluBias: return kindReluBias;
    case LibraryEpilogue::gelu: return kindGelu;
    case LibraryEpilogue::geluBias: return kindGeluBias;
    case LibraryEpilogue::geluAux: return kindGeluAux;
    case LibraryEpilogue::geluAuxBias: return kindGeluAuxBias;
    case LibraryEpilogue::dgelu: return kindDgelu;
    case LibraryEpilogue::dgeluBgrad: return kindDgeluBgrad;
    case LibraryEpilogue::bgradA: return isSwapped ? kindBgradRight : kindBgradLeft;
    case LibraryEpilogue::bgradB: return isSwapped ? kindBgradLeft : kindBgradRight;
  }
  return kindNone;
}

}  // namespace

/// The loaded library and its handle for the current context.
struct CublasLt::Library {
  explicit Library(const fs::path &path) : path(path), call(path), version(int(call.version())) {}
  ~Library() {
    if (handle) call.destroy(handle);
  }
  void check(Status status, const char *what) const {
    if (status != success)
      throw Error::checkFailed("cuBLASLt {}: {} fails: {}", libraryVersionText(version), what,
                               call.statusName(status));
  }

  const fs::path path;
  const Functions call;
  const int version;
  Handle handle = nullptr;
};

namespace {

/// The library's descriptors of one GEMM.
class Descriptors {
public:
  Descriptors(std::shared_ptr<const CublasLt::Library> library, const LibraryGemm &gemm)
      : library(std::move(library)),
        type(dataType(gemm.dtype)),
        blas(columnMajor(gemm.shape)),
        traits(traitsOf(gemm.epilogue)),
        leftType(dataType(blas.isSwapped ? gemm.types().b : gemm.types().a)),
        rightType(dataType(blas.isSwapped ? gemm.types().a : gemm.types().b)),
        areFloat8(gemm.types().areFloat8()),
        compute(gemm.types().areTf32() ? compute32FFastTF32 : compute32F) {
    const Functions &call = this->library->call;
    check(call.createOperation(&operation, compute, real32F), "a GEMM's descriptor");
    set(transposeA, int32_t(blas.left.isTransposed ? transposed : plain));
    set(transposeB, int32_t(blas.right.isTransposed ? transposed : plain));
    const int32_t batch = int32_t(gemm.shape.batch);
    create(left, leftType, blas.left, batch);
    create(right, rightType, blas.right, batch);
    create(result, type, blas.result, batch);
    create(residual, type,
           gemm.beta == 0 ? blas.result : columnMajorBeside(gemm.shape, gemm.residual), batch);
    if (areFloat8) set(fastAccumulation, int8_t(!gemm.promotesSums));
    if (gemm.epilogue != LibraryEpilogue::none) setEpilogue(gemm);
  }
  ~Descriptors() {
    const Functions &call = library->call;
    for (Layout layout : {left, right, residual, result})
      if (layout) call.destroyLayout(layout);
    if (operation) call.destroyOperation(operation);
  }
  Descriptors(const Descriptors &) = delete;
  Descriptors &operator=(const Descriptors &) = delete;

  std::vector<HeuristicResult> heuristic(int requested, int64_t mostWorkspace) const {
    const Functions &call = library->call;
    Preference preference = nullptr;
    check(call.createPreference(&preference), "a preference");
    const std::unique_ptr<PreferenceData, Status (*)(Preference)> owner(preference,
                                                                        call.destroyPreference);
    const auto prefer = [&](PreferenceAttribute attribute, auto value) {
      check(call.setPreference(preference, attribute, &value, sizeof value), "a preference");
    };
    prefer(maximumWorkspace, uint64_t(mostWorkspace));
    // Partial sums in the result's type would round to it more than once: only f32 loses nothing by
    // that.
    prefer(reductionSchemes, type == real32F ? uint32_t(inPlace | inComputeType | inOutputType)
                                             : uint32_t(inComputeType));
    for (const PreferenceAttribute alignment : {alignmentA, alignmentB, alignmentC, alignmentD})
      prefer(alignment, addressAlignment);
    std::vector<HeuristicResult> results(size_t(std::max(requested, 1)));
    int returned = 0;
    const Status status =
        call.heuristic(library->handle, operation, left, right, residual, result, preference,
                       int(results.size()), results.data(), &returned);
    results.resize(status == success ? size_t(returned) : 0);  // "not supported" is an empty list
    std::erase_if(results,
                  [](const HeuristicResult &candidate) { return candidate.state != success; });
    return results;
  }

  /// The algorithm of these attributes, checked; nothing, and the failed step in `problem`, if the
  /// library rejects.
  std::optional<HeuristicResult> make(const LibraryKnobs &knobs, std::string &problem) const {
    const Functions &call = library->call;
    const auto reject = [&](const std::string &step, Status status) {
      problem = fmt::format("{}: {}", step, call.statusName(status));
      return std::nullopt;
    };
    Algorithm algorithm{};
    Status status = call.initializeAlgorithm(library->handle, compute, real32F, leftType, rightType,
                                             type, type, knobs.algorithm, &algorithm);
    if (status != success) return reject(fmt::format("algorithm {}", knobs.algorithm), status);
    for (const AttributeOf &attribute : attributesOf) {
      const int value = knobs.*attribute.member;
      const auto narrow = uint16_t(value);
      const void *bytes = attribute.bytes == 2 ? static_cast<const void *>(&narrow) : &value;
      status = call.setAlgorithm(&algorithm, attribute.attribute, bytes, attribute.bytes);
      if (status != success)
        return reject(fmt::format("attribute {} = {}", int(attribute.attribute), value), status);
    }
    HeuristicResult checked{};
    status = call.checkAlgorithm(library->handle, operation, left, right, residual, result,
                                 &algorithm, &checked);
    if (status != success) return reject("its check", status);
    checked.algorithm = algorithm;
    return checked;
  }

  LibraryKnobs knobsOf(const HeuristicResult &candidate) const {
    LibraryKnobs knobs{.libraryVersion = library->version,
                       .workspaceBytes = int(candidate.workspaceBytes)};
    size_t written = 0;
    int32_t id = -1;
    check(library->call.getAlgorithm(&candidate.algorithm, identity, &id, sizeof id, &written),
          "an algorithm's id");
    knobs.algorithm = id;
    for (const AttributeOf &attribute : attributesOf) {
      int value = 0;
      uint16_t narrow = 0;
      void *bytes = attribute.bytes == 2 ? static_cast<void *>(&narrow) : &value;
      check(library->call.getAlgorithm(&candidate.algorithm, attribute.attribute, bytes,
                                       attribute.bytes, &written),
            "an algorithm's attribute");
      knobs.*attribute.member = attribute.bytes == 2 ? narrow : value;
    }
    return knobs;
  }

  const std::shared_ptr<const CublasLt::Library> library;
  const DataType type;
  /// Tells the library where the epilogue's tensors are. The descriptor keeps addresses by value, a
  /// captured launch has its own.
  void point(const GemmTensors &tensors) const {
    if (traits.readsBias || traits.writesGradient) set(biasPointer, tensors.vector);
    if (traits.readsAuxiliary || traits.writesAuxiliary) set(auxiliaryPointer, tensors.auxiliary);
    if (!areFloat8) return;
    set(leftScalePointer, blas.isSwapped ? tensors.scaleB : tensors.scaleA);
    set(rightScalePointer, blas.isSwapped ? tensors.scaleA : tensors.scaleB);
  }

  const ColumnMajorGemm blas;
  const LibraryEpilogueTraits &traits;
  const DataType leftType, rightType;
  const bool areFloat8;
  const ComputeType compute;
  Operation operation = nullptr;
  Layout left = nullptr, right = nullptr, residual = nullptr, result = nullptr;

private:
  void check(Status status, const char *what) const { library->check(status, what); }
  template <typename Value>
  void set(OperationAttribute attribute, Value value) const {
    check(library->call.setOperation(operation, attribute, &value, sizeof value),
          "an attribute of a GEMM");
  }
  /// From addresses the heuristic takes nothing but their alignment.
  void setEpilogue(const LibraryGemm &gemm) {
    set(epilogueKind, uint32_t(kindOf(gemm.epilogue, blas.isSwapped)));
    point({.auxiliary = addressAlignment, .vector = addressAlignment});
    if (!traits.readsAuxiliary && !traits.writesAuxiliary) return;
    const ColumnMajorMatrix auxiliary = columnMajorBeside(gemm.shape, gemm.auxiliary);
    set(auxiliaryLeadingDimension, auxiliary.leadingDimension);
    if (gemm.shape.batch > 1) set(auxiliaryBatchStride, auxiliary.batchStride);
  }
  void create(Layout &layout, DataType elementType, const ColumnMajorMatrix &matrix,
              int32_t batch) {
    const Functions &call = library->call;
    check(call.createLayout(&layout, elementType, uint64_t(matrix.rows), uint64_t(matrix.columns),
                            matrix.leadingDimension),
          "a layout");
    if (batch == 1) return;
    check(call.setLayout(layout, batchCount, &batch, sizeof batch), "a batch");
    check(call.setLayout(layout, batchOffset, &matrix.batchStride, sizeof matrix.batchStride),
          "a batch stride");
  }
};

}  // namespace

struct PreparedGemm::State {
  State(std::shared_ptr<const CublasLt::Library> library, const LibraryGemm &gemm)
      : descriptors(std::move(library), gemm), alpha(float(gemm.alpha)), beta(float(gemm.beta)) {}

  Descriptors descriptors;
  float alpha, beta;
  HeuristicResult chosen{};
  LibraryKnobs knobs;
  std::string warning, kernel;
};

PreparedGemm::PreparedGemm(std::unique_ptr<State> state) : state(std::move(state)) {}
PreparedGemm::~PreparedGemm() = default;
PreparedGemm::PreparedGemm(PreparedGemm &&) noexcept = default;
PreparedGemm &PreparedGemm::operator=(PreparedGemm &&) noexcept = default;

const LibraryKnobs &PreparedGemm::algorithm() const { return state->knobs; }
int64_t PreparedGemm::workspaceBytes() const { return int64_t(state->chosen.workspaceBytes); }
const std::string &PreparedGemm::warning() const { return state->warning; }

void PreparedGemm::enqueue(const GemmTensors &tensors, cuda::DevicePointer workspace,
                           cuda::StreamHandle *stream) const {
  const Descriptors &gemm = state->descriptors;
  const auto pointer = [](cuda::DevicePointer address) {
    return reinterpret_cast<void *>(address);
  };
  const bool isSwapped = gemm.blas.isSwapped;
  const cuda::DevicePointer residual =
      state->beta == 0 ? tensors.result : tensors.residual;  // with beta 0 it is not read
  gemm.point(tensors);
  const Status status = gemm.library->call.multiply(
      gemm.library->handle, gemm.operation, &state->alpha,
      pointer(isSwapped ? tensors.b : tensors.a), gemm.left,
      pointer(isSwapped ? tensors.a : tensors.b), gemm.right, &state->beta, pointer(residual),
      gemm.residual, pointer(tensors.result), gemm.result, &state->chosen.algorithm,
      pointer(workspace), state->chosen.workspaceBytes, stream);
  if (status != success)
    throw Error::checkFailed("kernel '{}': cuBLASLt {} does not run: {}", state->kernel,
                             textOf(state->knobs), gemm.library->call.statusName(status));
}

CublasLtLocation findCublasLt() {
  CublasLtLocation location;
  const auto use = [&](const fs::path &library) {
    location.version = int(Functions(library).version());
    location.library = library;
    return true;
  };
  if (const auto named = environmentValue("WEFT_CUBLASLT")) {
    const fs::path library = namedLibrary("WEFT_CUBLASLT", *named, searched, location.searched);
    if (!library.empty()) use(library);
  } else {
    searchLibrary(searched, location.searched, use);
  }
  return location;
}

CublasLt::CublasLt() {
  const CublasLtLocation location = findCublasLt();
  if (location.library.empty())
    throw Error::unsupported(
        "the plan has GEMMs of cuBLASLt, and there is none; searched: {}; compile with "
        "--no-library does "
        "without",
        fmt::join(location.searched, ", "));
  auto loaded = std::make_shared<Library>(location.library);
  if (const Status status = loaded->call.create(&loaded->handle); status != success)
    throw Error::unsupported("cuBLASLt {} ({}) does not start on this GPU: {}",
                             libraryVersionText(loaded->version), loaded->path.string(),
                             loaded->call.statusName(status));
  library = std::move(loaded);
}
CublasLt::~CublasLt() = default;

int CublasLt::version() const { return library->version; }
const fs::path &CublasLt::path() const { return library->path; }

std::vector<LibraryKnobs> CublasLt::candidates(const LibraryGemm &gemm, int requested,
                                               int64_t mostWorkspace) const {
  const Descriptors descriptors(library, gemm);
  std::vector<LibraryKnobs> list;
  for (const HeuristicResult &candidate : descriptors.heuristic(requested, mostWorkspace)) {
    const LibraryKnobs knobs = descriptors.knobsOf(candidate);
    if (std::ranges::find(list, knobs) == list.end()) list.push_back(knobs);
  }
  return list;
}

PreparedGemm CublasLt::prepare(const LibraryGemm &gemm, const LibraryKnobs &knobs,
                               const std::string &kernel, int64_t mostWorkspace) const {
  if (const std::string reason = libraryRejection(gemm); !reason.empty())
    throw Error::badInput("kernel '{}': no library GEMM: {}", kernel, reason);
  auto state = std::make_unique<PreparedGemm::State>(library, gemm);
  state->kernel = kernel;
  std::string problem;
  if (knobs.algorithm >= 0)
    if (const auto made = state->descriptors.make(knobs, problem)) {
      state->chosen = *made;
      state->knobs = knobs;
      state->knobs.libraryVersion = library->version;
      state->knobs.workspaceBytes = int(made->workspaceBytes);
      return PreparedGemm(std::move(state));
    }
  constexpr int tried = 8;
  const std::vector<HeuristicResult> list = state->descriptors.heuristic(tried, mostWorkspace);
  if (list.empty())
    throw Error::unsupported(
        "kernel '{}': cuBLASLt {} has no algorithm for {} with {} bytes of workspace; compile with "
        "--no-library does without",
        kernel, libraryVersionText(library->version), textOf(gemm), mostWorkspace);
  state->chosen = list.front();
  state->knobs = state->descriptors.knobsOf(list.front());
  if (knobs.algorithm >= 0)
    state->warning =
        fmt::format("kernel '{}': cuBLASLt {} rejects {} (of {}; {}); it runs {} instead", kernel,
                    libraryVersionText(library->version), textOf(knobs),
                    libraryVersionText(knobs.libraryVersion), problem, textOf(state->knobs));
  return PreparedGemm(std::move(state));
}

}  // namespace weft::runtime
