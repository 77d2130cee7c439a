// The typed plan: what was chosen for a graph, as plain data. plan.json is its text.
//
// Invariants: verify() and verifyDerived() check them. After a plan is read from a file, both are
// called before anything runs.
#pragma once

#include "codegen/families/library/LibraryGemm.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "codegen/tma/TensorMap.h"
#include "kernel/DType.h"
#include "kernel/EntryPointKind.h"
#include "kernel/Family.h"
#include "kernel/InitialValue.h"
#include "kernel/ParameterKind.h"
#include "kernel/TrainingRole.h"
#include "passes/configure/PriceSource.h"
#include "passes/select/Rewrite.h"
#include "plan/NamedLayout.h"
#include "plan/ParameterType.h"
#include "plan/PlanKnobs.h"
#include "plan/PlanOp.h"

#include <nlohmann/json.hpp>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weft {

enum class Bound : uint8_t;  // passes/configure/Cost.h

/// Whose memory a tensor lies in, and who writes it.
enum class TensorRole : uint8_t {
  argument,   ///< the caller's, at every launch
  parameter,  ///< the loader's, once
  result,     ///< the caller's; a kernel writes it
  temporary,  ///< in the workspace; a kernel writes it
};
/// In the order of the enumeration, as plan.json has them.
constexpr std::array<std::string_view, 4> tensorRoleNames = {"argument", "parameter", "result",
                                                             "temporary"};
constexpr std::string_view nameOf(TensorRole role) { return tensorRoleNames.at(size_t(role)); }
/// Whether its elements are there before the first kernel.
constexpr bool isGiven(TensorRole role) {
  return role == TensorRole::argument || role == TensorRole::parameter;
}

struct PlanTensor {
  std::string name;     ///< unique in the plan
  std::string logical;  ///< name in the graph: the same for every layout that the plan holds it in
  DType dtype = DType::f16;
  std::vector<std::string> axes;  ///< logical order
  std::vector<int64_t> extents;   ///< logical order
  std::vector<int> order;         ///< layout: dimensions slowest first
  std::vector<int64_t> strides;   ///< elements, logical order
  TensorRole role = TensorRole::temporary;
  int buffer = -1;     ///< index of the allocation; views share one
  int64_t offset = 0;  ///< elements
  int64_t bytes = 0;
  double scale = 1;       ///< of a float argument: the deviation that random values should have
  bool positive = false;  ///< of a float argument: random values must be positive, because a root
                          ///< is taken of them or something is divided by them
  /// Of an integer argument, and of indices that a kernel packs: the least and greatest value that
  /// the kernels can take.
  std::array<int64_t, 2> range{0, 1};
  /// Of an integer argument: lengths of sequences, which a run takes within `range` alone; of i1: a
  /// mask over (sequences, positions), each row of which is ones, then zeros.
  bool countsTokens = false;
  /// Of an integer argument: a table that lists the pages, each within `range`, of every sequence,
  /// so many positions a page; 0: it is none.
  int64_t pagePositions = 0;
  /// Of an argument that training may start from: what it holds before the first step.
  std::optional<InitialValue> initial = {};
  /// Of an argument of f32: the argument of f16 or bf16 that is its rounding in every step, by
  /// `logical`; empty: it is the master of none.
  std::string masterOf = {};
  /// Of a result: the argument whose value in the next step it is, by `logical`; empty: of none. No
  /// two results are of one.
  std::string nextOf = {};
  /// Of an argument or a result that a training step takes or gives beside the model's tensors. No
  /// two tensors of the graph have one.
  TrainingRole training = TrainingRole::none;
  /// Of several layers the one that computes it, or whose weight it is, from 1; 0: none.
  int64_t layer = 0;
  /// Of what kernels in chunks read or write in place of a whole tensor: what the whole is called.
  std::string chunkOf = {};
  bool operator==(const PlanTensor &) const = default;
};

struct PlanParameter {
  ParameterKind kind = ParameterKind::input;
  std::string name{};
  ParameterType type{};  ///< in the kernel's text: no launch depends on it
  int tensor = -1;       ///< index into Plan::tensors for inputs and outputs, and for maps of them
  int64_t value = 0;     ///< number for dropoutStream and dropoutOuter
  std::optional<TensorMap>
      map{};  ///< of inputMap and outputMap: the driver encodes it with the tensor's address
  bool operator==(const PlanParameter &) const = default;
};

/// What the library does to a GEMM before it stores it
/// (codegen/families/library/LibraryEpilogue.h), with tensors of the plan; -1: none.
struct PlanLibraryEpilogue {
  /// None where a residual is added and no more.
  LibraryEpilogue kind = LibraryEpilogue::none;
  double beta = 0;  ///< of the residual
  int residual = -1;
  int auxiliary = -1;  ///< what GELU was applied to: an input or an output of the kernel
  int bias = -1, gradient = -1;
  GroupStrides residualStrides = {}, auxiliaryStrides = {};
  bool operator==(const PlanLibraryEpilogue &) const = default;
};

/// What a kernel of family "cublaslt" computes, in place of source and cubin: C = alpha A B for
/// every batch element, by NVIDIA's library with the algorithm that the kernel's knobs name
/// (libraryKnobs). A tensor's element zero is at its `offset`; strides are in elements.
struct PlanLibraryGemm {
  int a = -1, b = -1,
      c = -1;  ///< tensors of the plan; a and b are the kernel's inputs in one order or the other
  GemmTypes types{};  ///< tf32 is read of f32 tensors; GEMMs accumulate in fp32
  double alpha = 1;
  StridedBatchedGemm shape;                          ///< A is m x k, B k x n, C m x n
  std::optional<PlanLibraryEpilogue> epilogue = {};  ///< nothing (null): the GEMM alone
  bool operator==(const PlanLibraryGemm &) const = default;
};

/// A kernel that runs on one chunk of an axis: each chunk is a kernel of the plan, all are of one
/// kernel of the graph.
struct PlanChunk {
  int region = -1;   ///< which of graph.mlir's kernels; those that no chunk names belong to the
                     ///< other kernels, in order
  std::string axis;  ///< of the kernel
  int64_t start = 0, size = 0;
  std::string whole = {};  ///< what the kernel that this is a chunk of would be called
  /// A slice of a pipelined plan: no slice waits for another, and none shares memory that it writes
  /// with another. Else chunks run one after another and may share their temporaries.
  bool isSlice = false;
  /// Of a slice: the share of the device that its launch keeps busy while it runs alone, predicted
  /// (plan/GraphPrediction.h); 0 where it is none.
  double deviceShare = 0;
  bool operator==(const PlanChunk &) const = default;
};

struct PlanKernel {
  std::string name;   ///< unique in the plan: the label, the axes of the first output, a chunk
  std::string label;  ///< what it computes, for people: "softmax"; empty in plans from before
  /// Of several layers the one whose kernel it is, from 1; 0: of none. Equal kernels of several
  /// layers share their text, and messages and reports list them once.
  int64_t layer = 0;
  std::string entry;  ///< extern "C" symbol in the cubin
  FamilyId family;
  int familyVersion = 0;
  std::vector<PlanOp> ops;           ///< in order
  std::optional<PlanChunk> chunk;    ///< nothing (null): the whole
  std::vector<int> inputs, outputs;  ///< tensors
  /// Those of the tensors when it was emitted: of a tensor whose order was edited, the former one.
  std::vector<NamedLayout> inputLayouts, outputLayouts;
  std::string configuration;  ///< describe()
  PlanKnobs knobs;
  std::string key;     ///< hash of the canonical text
  std::string source;  ///< "kernels/NAME.cu"; empty for views and library GEMMs
  std::string cubin;   ///< "cubin/HASH.cubin"; empty when skipped
  std::array<int64_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  int64_t sharedBytes = 0;
  /// Its text lets the next kernel start before it ends itself, and waits for the one before:
  /// behind a kernel of this kind it is started early. Emission makes texts so where this is set
  /// before.
  bool startsEarly = false;
  std::vector<PlanParameter> parameters;
  std::optional<PlanLibraryGemm> library;  ///< of family "cublaslt", else nothing (null)
  int workspaceBuffer = -1;  ///< what the kernel works in beside its operands; -1: nothing
  /// Bytes that a launch of an emitted kernel works in there (Family::workspaceBytes). The knobs
  /// say so of a library GEMM, and this is 0.
  int64_t workspaceBytes = 0;
  std::vector<int> after;  ///< kernels that must finish before
  double seconds = 0;
  bool measured = false;
  double margin = 0;  ///< of an estimate: the share that `seconds` has above the mean (Margins.h)
  /// Its text was edited by hand: `seconds` is the price of the generated text, nothing was
  /// measured or verified of this one.
  bool edited = false;
  /// Whether its text was edited cannot be told: the artifact that was read has no manifest. It is
  /// then neither measured nor verified. No member of plan.json.
  bool isUntold = false;
  int64_t bytesMoved = 0, bytesNecessary = 0;
  double flop = 0, mue = 0;
  std::optional<Bound> bound = {};  ///< what limits its speed; nothing (null): not priced
  int registers = -1, spillBytes = -1, staticSharedBytes = -1;  ///< -1: not built
  std::string runnerUp;
  double runnerUpLoss = 0;
  /// Of the exact text with its headers, flags and architecture; of a GEMM: of problem,
  /// algorithm and library version. Whether it was verified, records say that no artifact holds
  /// (runtime/artifact/VerificationRecords.h).
  std::string textHash;
  bool operator==(const PlanKernel &) const = default;
};

/// A whole plan on a GPU, timed as the graph that callers launch, against other plans of the model
/// (`weft compile --measure`).
struct PlanMeasurement {
  double seconds = 0;  ///< median of one run
  double spread = 0;   ///< width of the middle 80% over the median
  double ratio = 0;    ///< seconds over Plan::predictedSeconds
  std::string gpu, protocol;
  bool operator==(const PlanMeasurement &) const = default;
};

/// What a buffer of temporaries lies in: the workspace, or a result until that is written.
struct BufferHost {
  int result = -1;  ///< index into Plan::tensors; -1: the workspace. plan.json names it
  bool isWorkspace() const { return result < 0; }
  bool operator==(const BufferHost &) const = default;
};

/// Where a buffer of temporaries lies. Buffers may overlap if `after` keeps apart the lives of all
/// that lies in them.
struct BufferAllocation {
  int buffer = -1;
  BufferHost in = {};
  int64_t offset = 0;  ///< bytes, a multiple of 256
  bool operator==(const BufferAllocation &) const = default;
};

/// What a note of a plan is about: whoever writes a plan again keeps notes or makes them anew by
/// it.
enum class NoteKind : uint8_t {
  packing,       ///< a parameter's layout, which whoever loads it makes
  copy,          ///< why a part of a tensor is no view; `code` is the reason's, V001 to V005
  chunks,        ///< which kernels run in chunks
  rewrite,       ///< what was or was not rewritten in every variant
  prices,        ///< kernels and transposes that were not measured as they run
  searchLimits,  ///< what a limit of the search left out
  stale,         ///< a measured time is of an older text
  edit,          ///< a kernel's text or a header was edited by hand
  build,         ///< why there are no cubins
  serialized,    ///< ptxas serialized WGMMAs of a kernel: it is right, and slower than its price
  determinism,   ///< whether sums have a fixed order, and what the other way is predicted to take
  unknown,       ///< of a plan that was written before notes had kinds, where its words tell none
};
std::string_view nameOf(NoteKind kind);

struct PlanNote {
  NoteKind kind = NoteKind::unknown;
  std::string text;
  std::string code = {};    ///< of NoteKind::copy
  std::string kernel = {};  ///< of NoteKind::determinism: the kernel's name
  bool operator==(const PlanNote &) const = default;
};

struct Plan {
  std::string formatVersion = "1";
  std::string model;
  std::string variant;
  std::vector<Rewrite> rewrites;  ///< in order
  std::map<std::string, int64_t> dims;
  DType dtype = DType::f16;  ///< of the first argument of floats
  std::string device, target;
  PriceSource costModel;  ///< CostModel::source(), for people
  /// CostModel::identity() of the model that all prices and the lower bound are by; empty in plans
  /// from before.
  std::string prices;
  double predictedSeconds = 0;
  double lowerBoundSeconds =
      0;  ///< no plan of any variant of the model takes less, by the same prices; 0: not known
  std::optional<PlanMeasurement> measurement;  ///< nothing (null): predicted only
  int64_t workspaceBytes = 0;
  std::vector<PlanTensor> tensors;
  /// Ascending by buffer. Buffers of temporaries that are not named lie behind all that are, one
  /// after another.
  std::vector<BufferAllocation> memoryPlan;
  std::vector<PlanKernel> kernels;                         ///< a topological order
  std::map<EntryPointKind, std::vector<int>> entryPoints;  ///< kernels of each
  /// Whether kernels that do not wait for each other (PlanKernel::after) may run at once; else one
  /// after the other, as they stand.
  bool concurrent = false;
  std::vector<PlanNote> notes;
  bool operator==(const Plan &) const = default;
};

/// Whether nothing is launched for it: its outputs are views of its inputs' buffers, or the other
/// way round.
bool isView(const PlanKernel &kernel);

/// Whether two kernels of different layers are one kernel but for their tensors: whatever is said
/// of one holds for the other. Kernels that were emitted are told apart by their canonical text.
bool areAlikeInLayers(const PlanKernel &a, const PlanKernel &b);

/// Where PlanKernel::seconds comes from.
enum class TimeSource : uint8_t {
  none,       ///< a view: nothing runs
  estimated,  ///< by a model of the GPU
  measured,   ///< on a GPU, of the text that weft generates
  edited,  ///< estimated or measured of the generated text, which was edited by hand since: neither
           ///< holds for what runs
  unknown,  ///< the artifact has no manifest: forged prices and edited texts cannot be told
};
TimeSource timeSourceOf(const PlanKernel &kernel);
/// The word for tables and JSON: "view", "estimated", "measured", "edited", "unknown".
const char *nameOf(TimeSource source);
/// The algorithm of a library GEMM. Throws Error(badInput) naming the kernel and the knob.
LibraryKnobs libraryKnobs(const PlanKernel &kernel);
/// What limits a kernel's speed, for tables and JSON: "memory"; empty where it is not priced.
std::string_view boundName(const PlanKernel &kernel);
/// The name of a kernel, or of the one that it is a chunk of.
const std::string &wholeName(const PlanKernel &kernel);
/// What the name of a chunk, of a kernel or of a tensor, has behind that of the whole: "__h4".
std::string chunkSuffix(const std::string &axis, int64_t start);
/// What a kernel works in at its workspaceBuffer; 0: nothing. Throws as libraryKnobs does.
int64_t workspaceBytesOf(const PlanKernel &kernel);
/// The GEMM without its tensors.
LibraryGemm libraryGemm(const PlanLibraryGemm &gemm);

/// The texts of notes, in order.
std::vector<std::string> textsOf(const std::vector<PlanNote> &notes);

nlohmann::json toJson(const Plan &plan);
/// Throws Error(badInput) naming the member that is missing or ill-typed, and `where`.
Plan planFromJson(const nlohmann::json &json, const std::string &where);
/// Checks what types cannot: places are sizes that do not overflow (plan/PlanBounds.h), indices
/// resolve, layouts are permutations, kernels are in a topological order and all of them in entry
/// points, every tensor is written once and read later, and what shares memory lives apart
/// (plan/PlanLiveness.h). Throws Error(badInput) naming `where` and the place. readArtifact
/// calls it, and writeArtifact, where a failure is a bug of the writer.
void verify(const Plan &plan, const std::string &where);
/// Checks what `weft emit` derives of a plan: bytes, strides and the workspace are what extents,
/// orders and memoryPlan make, and every library GEMM reads and writes exactly the elements of
/// its tensors. Whoever runs a plan calls it after verify; a plan whose layouts were edited by hand
/// fails until it is emitted again. Throws Error(badInput).
void verifyDerived(const Plan &plan, const std::string &where);

}  // namespace weft
