// The command line's flags as structs, each with the function that declares it, so that commands
// share spelling, help and checks. Values are checked when they are read from here, not by CLI11:
// our errors name the nearest alternative.
#pragma once

#include "kernel/BlockCombine.h"
#include "kernel/Configuration.h"
#include "kernel/Device.h"
#include "kernel/SearchMemory.h"
#include "models/ScoreForm.h"
#include "models/ScoreMask.h"
#include "passes/Choices.h"
#include "passes/configure/FilledCost.h"
#include "passes/decide/Decide.h"
#include "plan/EarlyStarts.h"
#include "tools/driver/Phase.h"
#include "tools/driver/WordFlag.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;  // its header takes seconds to compile
}

namespace weft {

/// How softmax kernels combine the threads of a block; nothing: whatever is fastest.
using SoftmaxCombine = std::optional<BlockCombine>;
template <>
inline constexpr std::array<Spelling<SoftmaxCombine>, 4> spellings<SoftmaxCombine>{
    {{"auto", std::nullopt},
     {"shuffle", BlockCombine::shuffle},
     {"tree", BlockCombine::tree},
     {"linear", BlockCombine::linear}}};
/// Whether every launch of a kernel leaves the same bits, or sums may be in any order.
enum class Determinism : uint8_t { sameBits, anyOrder };
template <>
inline constexpr std::array<Spelling<Determinism>, 2> spellings<Determinism>{
    {{"on", Determinism::sameBits}, {"off", Determinism::anyOrder}}};
/// auto leaves it to measuring, and is off without.
template <>
inline constexpr std::array<Spelling<decision::Concurrency>, 3> spellings<decision::Concurrency>{
    {{"auto", decision::Concurrency::measured},
     {"on", decision::Concurrency::on},
     {"off", decision::Concurrency::off}}};
template <>
inline constexpr std::array<Spelling<EarlyStarts>, 3> spellings<EarlyStarts>{
    {{"auto", EarlyStarts::shortPlans}, {"on", EarlyStarts::all}, {"off", EarlyStarts::none}}};

}  // namespace weft

namespace weft::driver {

/// Options that are declared while it lives stand under its heading in --help.
class OptionGroup {
public:
  OptionGroup(CLI::App &command, const std::string &name);
  ~OptionGroup();
  OptionGroup(const OptionGroup &) = delete;

private:
  CLI::App &command;
  std::string before;
};

/// MODEL, --dim, --part, --layers, --dtype, --residual, --allow-key, --tf32, --dropout, --mask,
/// --ragged, --cache, --page, --train, --gradients-of, --recompute, --optimizer.
struct ModelFlags {
  std::string model;
  bool train = false;
  std::string optimizer;  ///< empty: gradients are results
  std::string dropout;    ///< empty: the model's own
  std::vector<std::string> gradientsOf, recompute, masks, scores;
  std::vector<std::string> dims;
  std::string part = "layer";
  std::string layers;    ///< a number or "all"; empty: one, of a part "model" all
  std::string dtype;     ///< empty: the model's own
  std::string residual;  ///< element type of the residual stream; empty: that of the elements
  std::vector<std::string> allowedKeys;
  std::string ragged;  ///< the axis of positions whose valid tokens alone are computed; empty: all
  std::string cache;   ///< positions of caches of keys and values; empty: no caches
  std::string page;    ///< positions of a page that these lie in; empty: in one piece
  bool tf32 = false;   ///< contractions of f32 operands may read them as tf32

  /// Whether the model is a file of graphs, which names its tensors and types itself.
  bool isGraphFile() const { return model.ends_with(".mlir"); }
  void declare(CLI::App &command);
  /// "j=512" and so on. Throws Error(badInput) for anything but NAME=POSITIVE INTEGER, and for a
  /// name given twice.
  std::map<std::string, int64_t> dimensions() const;
  /// Of --dtype.
  std::optional<DType> elementType() const;
  /// Of --residual. Throws Error(badInput).
  std::optional<DType> residualType() const;
  /// Of --layers; nothing where it is not given, or "all". Throws Error(badInput).
  std::optional<int64_t> layerCount() const;
  bool takesAllLayers() const { return layers == "all"; }
  std::optional<double> dropoutProbability() const;
  /// Of --cache. Throws Error(badInput) for anything but a positive number.
  std::optional<int64_t> cachedPositions() const;
  /// Of --page. Throws Error(badInput) for anything but 16, 32, .., 256, and without --cache.
  std::optional<int64_t> pagePositions() const;
  models::ScoreMask scoreMask() const;
  models::ScoreForm scoreForm() const;
  /// Of --recompute: the tensors that it names, and whether it leaves the choice to selection
  /// (auto, the default).
  std::vector<std::string> recomputedNames() const;
  bool choosesRecomputed() const;
  /// Throws Error(badInput) for choices of the backward pass without --train, and for --tf32 of a
  /// model whose elements are no f32: those of --dtype, or those that the model was built with.
  void check(const std::optional<DType> &built = {}) const;
};

using decision::Pin;

/// The axes of "hbjk" or "h,b,j,k", and the pitch of "bju:4096". Throws Error(badInput) for a pitch
/// that is no positive number.
NamedLayout parseLayout(const std::string &layout);

/// Two ops by name, or by number as printed ("7" or "%7").
using OpPair = std::pair<std::string, std::string>;

/// Elements of a sub-vector that --sub-vector takes.
constexpr std::array<int, 4> subVectorLengths = {16, 32, 64, 128};

/// --sub-vector: one of these lengths, or auto.
struct SubVectorFlag {
  std::string text = "64";

  /// Of auto all lengths, the default first. Throws Error(badInput) for others.
  std::vector<int> lengths() const;
  bool operator==(const SubVectorFlag &) const = default;
};

/// --memory-trade: a percentage, with or without its sign.
struct MemoryTradeFlag {
  std::string text = "0";

  /// 0.25 of "25". Throws Error(badInput) for what is no percentage.
  double share() const;
  bool operator==(const MemoryTradeFlag &) const = default;
};

/// --pipeline: a number of slices that run at once, or auto.
struct PipelineFlag {
  std::string text = "1";

  /// 0 for auto. Throws Error(badInput) for what is neither that nor a number.
  int slices() const;
  bool operator==(const PipelineFlag &) const = default;
};

/// What the passes propose and what selection may choose.
struct ChoiceFlags {
  SitesFlag<AttentionChoice, AttentionChoice::automatic> attention;
  SubVectorFlag subVector;
  SitesFlag<NormChoice, NormChoice::fused> norms;
  SitesFlag<StackingChoice, StackingChoice::automatic> stacking;
  WordFlag<FuseRules> fuseRules = FuseRules::standard;
  WordFlag<SoftmaxCombine> softmax = SoftmaxCombine();
  std::string variant;  ///< empty: all
  std::vector<std::string> fuse, noFuse, pins;
  bool free = false;
  std::string maxMemory;
  MemoryTradeFlag memoryTrade;
  std::string searchMemory;  ///< empty: half of the machine's
  int chunks = 1;            ///< 0: chosen (ChunkChoice.h)
  WordFlag<decision::Concurrency> concurrent = decision::Concurrency::measured;
  PipelineFlag pipeline;
  WordFlag<EarlyStarts> earlyStart = EarlyStarts::shortPlans;
  int alternatives = 8;
  std::string lengths;                 ///< expected at run time: mean=R or a file; empty: full
  std::optional<ExpectedFill> fill{};  ///< what was made of them for a plan that is asked again

  void declare(CLI::App &command);
  /// What the proposing passes read, without --attention: --norms, --stacking, --variant,
  /// --fuse-rules, --fuse, --no-fuse, --search-memory; and --lengths, at which bytes are counted.
  void declareProposals(CLI::App &command);
  /// Throws Error(badInput) for an unknown kind.
  void check() const;
  /// Whether --attention, --norms or --stacking ask something of single sites.
  bool namesSites() const;
  std::vector<OpPair> fused() const;
  std::vector<OpPair> notFused() const;
  std::vector<Pin> pinned() const;
  std::optional<int64_t> maxMemoryBytes() const;
  SearchMemory memoryOfSearch() const;
  /// Of --lengths, of batches of sequences of at most `longest`. Throws Error(badInput) for a mean
  /// that is no share, and for files without lengths or with some out of range.
  ExpectedFill expectedFill(int64_t longest, int64_t sequences) const;
  /// Throws Error(badInput) for a flag that --pipeline excludes.
  void checkPipeline() const;
  /// What --early-start asks of plans for an architecture.
  EarlyStarts earlyStarts(std::string_view architecture) const;

private:
  void declareDecisions(CLI::App &command);
};

/// What --profile takes for estimates alone.
inline constexpr const char *noProfile = "none";

/// --device, --target, --profile, --no-library, --deterministic, --strict.
struct TargetFlags {
  std::string deviceName = "h200";
  std::string target;
  std::string profile;
  bool strict = false;
  bool noLibrary = false;
  WordFlag<Determinism> deterministic = Determinism::sameBits;

  bool hasNoProfile() const { return profile == noProfile; }
  bool isDeterministic() const { return deterministic != Determinism::anyOrder; }
  /// `builds`: whether the command makes cubins; --strict promises what the command can break.
  void declare(CLI::App &command, bool builds);
  /// Throws Error(badInput) for a device that is not known, and for --deterministic other than on
  /// and off.
  Device device() const;
  /// The architecture to emit for. Throws Error(unsupported) for a device that is only modelled,
  /// whatever --target says, and for an architecture that no kernel family declares.
  std::string architecture() const;
  /// Throws Error(unsupported) for a --target that no kernel family declares, or whose kernels the
  /// device that is chosen for does not run.
  void checkTarget() const;
};

/// --keep: listings of every built kernel beside the artifact's files.
struct KeepFlags {
  std::vector<std::string> kinds;

  void declare(CLI::App &command);
  /// Throws Error(badInput) for a kind other than ptx and sass.
  void check() const;
  bool keeps(const std::string &kind) const;
};

/// What --start-from takes, before an artifact exists. Configurations are a function of the
/// candidates and the device, so configure and select start from the same file.
constexpr const char *startFromHelp =
    "first phase: import; differentiate, algebra, attention or fuse on a graph; configure or "
    "select on a "
    "graph with candidates (--stop-after fuse)";

/// --start-from, --stop-after.
struct PhaseFlags {
  std::string startFrom = "import";
  std::string stopAfter = "build";

  void declare(CLI::App &command);
  Phase first() const;
  Phase last() const;
};

/// "a,b" into its two names. Throws Error(badInput) naming the flag.
OpPair parsePair(const std::string &text, const std::string &flag);

}  // namespace weft::driver
