// Declaration and reading of flags; see Flags.h.
#include "tools/driver/Flags.h"

#include "codegen/targets/Targets.h"
#include "kernel/ByteText.h"
#include "kernel/Error.h"
#include "kernel/Family.h"
#include "kernel/Nearest.h"
#include "kernel/Pages.h"
#include "passes/configure/FillLevels.h"
#include "runtime/execute/Lengths.h"
#include "runtime/system/MachineMemory.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

namespace weft::driver {
namespace {

std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> chunks(1);
  for (const char letter : text)
    if (letter == separator) chunks.emplace_back();
    else chunks.back() += letter;
  return chunks;
}

std::pair<std::string, std::string> splitAtEquals(const std::string &text,
                                                  const std::string &flag) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size())
    throw Error::badInput("{} {}: expected NAME=VALUE", flag, text);
  return {text.substr(0, equals), text.substr(equals + 1)};
}

int64_t parseExtent(const std::string &name, const std::string &text) {
  int64_t extent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
  if (error == std::errc::result_out_of_range)
    throw Error::badInput("--dim {}={}: larger than {}", name, text,
                          std::numeric_limits<int64_t>::max());
  if (error != std::errc() || end != text.data() + text.size())
    throw Error::badInput("--dim {}={}: expected a positive integer", name, text);
  if (extent <= 0) throw Error::badInput("--dim {}={}: an extent is at least 1", name, text);
  return extent;
}

void requireOneOf(const std::string &flag, const std::string &value,
                  const std::vector<std::string> &known) {
  for (const std::string &name : known)
    if (value == name) return;
  throw Error::badInput("{} {}: unknown value{}", flag, value, nearestAndKnown(value, known));
}

std::vector<OpPair> parsePairs(const std::vector<std::string> &texts, const std::string &flag) {
  std::vector<OpPair> pairs;
  for (const std::string &text : texts) pairs.push_back(parsePair(text, flag));
  return pairs;
}

}  // namespace

OptionGroup::OptionGroup(CLI::App &command, const std::string &name)
    : command(command), before(command.option_defaults()->get_group()) {
  command.option_defaults()->group(name);
}

OptionGroup::~OptionGroup() { command.option_defaults()->group(before); }

void ModelFlags::declare(CLI::App &command) {
  const OptionGroup group(command, "Model");
  command.add_option("model", model, "preset name, config.json or .mlir")
      ->required()
      ->type_name("MODEL");
  command.add_option("--dim", dims, "extent of an axis, e.g. --dim b=8 --dim j=512")
      ->type_name("NAME=N");
  command
      .add_option("--part", part,
                  "attention, layer, or model: layers with embeddings, last norm and pooler or "
                  "logits")
      ->capture_default_str()
      ->type_name("PART");
  command
      .add_option("--layers", layers,
                  "N layers in sequence, or all of the model; default: 1, of --part model all")
      ->type_name("N");
  command
      .add_option("--dtype", dtype,
                  "element type: f16, bf16, f32; default: what the config.json names, else the "
                  "first that weft models lists")
      ->type_name("TYPE");
  command
      .add_option("--residual", residual,
                  "element type of the residual stream, what layers read and add to: f32, of "
                  "which GEMMs read f16 or bf16; default: the elements' type. 12 layers and more "
                  "differ less from f32 by it (docs/tutorial.md has the price)")
      ->type_name("TYPE");
  command
      .add_option("--allow-key", allowedKeys,
                  "a key of the config.json that weft does not know, to build the layer without it")
      ->type_name("KEY");
  command.add_flag("--tf32", tf32,
                   "contractions of f32 operands may round them to tf32 (10 fraction bits), which "
                   "tensor cores multiply; takes --dtype f32");
  command
      .add_option("--dropout", dropout,
                  "probability of every dropout, instead of the model's own; 0: none")
      ->type_name("P");
  command
      .add_option(
          "--mask", masks,
          "which keys a query of self attention sees, beside what the model has itself: causal: "
          "none behind its position; window=N: at most N before its position and N behind it (with "
          "causal N before it), and that of its position; padding: of batch element b the first "
          "lengths[b], an argument; attention-mask: those whose attention_mask[b, k], an argument, "
          "is 1, as transformers has it, ones before zeros; document: those with its segment in "
          "segments[b, k], an "
          "argument; a block mask: those in tiles that exist, by a pattern (docs/tutorial.md "
          "lists them), e.g. bigbird(block=64,window=3,global=2,random=3,seed=0), or by a "
          "boolean array, FILE.npy; several, with a comma: those that all let it see. With "
          "fewer queries than keys, queries stand at the last positions")
      ->type_name("KIND,..");
  command
      .add_option("--score", scores,
                  "what scores of the preset attention become before masks: softcap=C: C "
                  "tanh(score / C); alibi: plus a slope of the head times the distance of key and "
                  "query; relative=N: plus relative_table[head, distance], an argument, with "
                  "distances clipped to N on either side; several, with a comma, in this order")
      ->delimiter(',')
      ->type_name("FORM,..");
  command
      .add_option(
          "--ragged", ragged,
          "pack the valid tokens of every sequence, one sequence after the other, along "
          "the axis of positions (j): lengths[b], an argument, says how many there are, or "
          "attention_mask[b, k] with --mask attention-mask; "
          "results are 0 behind them, and most kernels leave out the rows behind the last token. "
          "Encoder, decoder and Llama presets get a padding mask by it")
      ->type_name("AXIS");
  command
      .add_option(
          "--cache", cache,
          "a layer of a decoder that computes new tokens (1, or --dim j) of sequences whose "
          "earlier "
          "ones lie in caches of N positions: key_cache and value_cache, arguments that the new "
          "keys and values are written into, at the positions from lengths[b] on, an argument that "
          "says how many each sequence has there; a query sees these, and the new ones up to its "
          "own")
      ->type_name("N");
  command
      .add_option(
          "--page", page,
          "the caches of --cache lie in pages of P positions (16, 32, .. 256): of f pages in "
          "memory (--dim f; default: as many as all sequences at full length have), "
          "page_table[b, k / P], an argument, names the one with position k of a sequence")
      ->type_name("P");
  command.add_flag("--train", train,
                   "forward and backward in one graph; a whole model with logits ends in "
                   "their loss");
  command
      .add_option("--optimizer", optimizer,
                  "a step of it in the same graph, in place of the parameters' gradients: adamw; "
                  "f16 and bf16 parameters get f32 masters (NAME_master)")
      ->type_name("NAME");
  command
      .add_option("--gradients-of", gradientsOf,
                  "of which arguments; default: all that hold floats")
      ->delimiter(',')
      ->type_name("T,..");
  command
      .add_option("--recompute", recompute,
                  "element-wise results and norms that the backward pass computes again instead "
                  "of saving: auto (element-wise ones where it is faster), none, or names; "
                  "of several layers a name without its layer is that of all")
      ->delimiter(',')
      ->type_name("T,..");
}

namespace {

bool isWord(const std::vector<std::string> &values, const std::string &word) {
  return values.size() == 1 && values.front() == word;
}

}  // namespace

std::vector<std::string> ModelFlags::recomputedNames() const {
  return isWord(recompute, "auto") || isWord(recompute, "none") ? std::vector<std::string>()
                                                                : recompute;
}

bool ModelFlags::choosesRecomputed() const {
  return recompute.empty() || isWord(recompute, "auto");
}

void ModelFlags::check(const std::optional<DType> &built) const {
  const std::optional<DType> type = built ? built : elementType();
  if (tf32 && !isGraphFile() && type && type != DType::f32)
    throw Error::badInput(
        "--tf32: is a precision of f32 GEMMs, and the elements of '{}' are {}; add --dtype f32",
        model, nameOf(*type));
  const char *flag = !recomputedNames().empty() ? "--recompute"
                     : !gradientsOf.empty()     ? "--gradients-of"
                                                : nullptr;
  if (flag && !train) throw Error::badInput("{}: chooses among gradients; add --train", flag);
  if (optimizer.empty()) return;
  requireOneOf("--optimizer", optimizer, {"adamw"});
  if (!train)
    throw Error::badInput("--optimizer {}: a step takes gradients; add --train", optimizer);
}

std::map<std::string, int64_t> ModelFlags::dimensions() const {
  std::map<std::string, int64_t> result;
  for (const std::string &text : dims) {
    const auto [name, value] = splitAtEquals(text, "--dim");
    if (!result.emplace(name, parseExtent(name, value)).second)
      throw Error::badInput("--dim {}: '{}' is given twice", text, name);
  }
  return result;
}

std::optional<DType> ModelFlags::elementType() const {
  if (dtype.empty()) return {};
  const std::vector<std::string> supported = {"f16", "bf16", "f32"};
  const std::optional<DType> type = parseDType(dtype);
  for (const std::string &name : supported)
    if (name == dtype) return type;
  throw Error::unsupported("--dtype {}: not an element type of models{}", dtype,
                           nearestAndKnown(dtype, supported));
}

std::optional<DType> ModelFlags::residualType() const {
  if (residual.empty()) return {};
  requireOneOf("--residual", residual, {"f32", "f16", "bf16"});
  return parseDType(residual);
}

std::optional<int64_t> ModelFlags::layerCount() const {
  if (layers.empty() || takesAllLayers()) return {};
  int64_t count = 0;
  const auto [end, error] = std::from_chars(layers.data(), layers.data() + layers.size(), count);
  if (error != std::errc() || end != layers.data() + layers.size())
    throw Error::badInput("--layers {}: expected a number of layers or 'all'", layers);
  if (count < 1) throw Error::badInput("--layers {}: a model has at least 1 layer", layers);
  return count;
}

std::optional<double> ModelFlags::dropoutProbability() const {
  if (dropout.empty()) return {};
  double value = 0;
  const auto [end, error] = std::from_chars(dropout.data(), dropout.data() + dropout.size(), value);
  if (error != std::errc() || end != dropout.data() + dropout.size())
    throw Error::badInput("--dropout {}: expected a probability", dropout);
  return value;
}

std::optional<int64_t> ModelFlags::cachedPositions() const {
  if (cache.empty()) return {};
  int64_t positions = 0;
  const auto [end, error] = std::from_chars(cache.data(), cache.data() + cache.size(), positions);
  if (error != std::errc() || end != cache.data() + cache.size() || positions < 1)
    throw Error::badInput("--cache {}: expected a number of positions, at least 1", cache);
  return positions;
}

std::optional<int64_t> ModelFlags::pagePositions() const {
  if (page.empty()) return {};
  int64_t positions = 0;
  const auto [end, error] = std::from_chars(page.data(), page.data() + page.size(), positions);
  if (error != std::errc() || end != page.data() + page.size() || positions < fewestPagePositions ||
      positions > mostPagePositions || positions % pagePositionsStep != 0)
    throw Error::badInput(
        "--page {}: a page has a multiple of {} positions, at least {} and at most {}; nearest "
        "is {}",
        page, pagePositionsStep, fewestPagePositions, mostPagePositions,
        std::clamp((positions + pagePositionsStep / 2) / pagePositionsStep * pagePositionsStep,
                   fewestPagePositions, mostPagePositions));
  return positions;
}

models::ScoreMask ModelFlags::scoreMask() const { return models::parseScoreMask(masks); }
models::ScoreForm ModelFlags::scoreForm() const { return models::parseScoreForm(scores); }

void ChoiceFlags::declare(CLI::App &command) {
  const OptionGroup group(command, "Choices");
  command
      .add_option(
          "--attention", attention.text,
          "auto; unfused; decomposed: softmax in local softmax, reduction of sub-vectors and "
          "global scaling; recomposed: the first of them in the epilogue of the scores' "
          "GEMM and the last in the prologue of the next one; or fused. SITE=KIND is of the "
          "softmax of that name alone")
      ->capture_default_str()
      ->type_name("[SITE=]KIND,..");
  command
      .add_option("--sub-vector", subVector.text,
                  "elements of a sub-vector of a decomposed or recomposed softmax: 16, 32, 64 or "
                  "128, of which GEMMs that end with a local softmax take up to 64; auto: by "
                  "predicted time")
      ->capture_default_str()
      ->type_name("N|auto");
  declareProposals(command);
  declareDecisions(command);
}

void ChoiceFlags::declareProposals(CLI::App &command) {
  const OptionGroup group(command, "Choices");
  command
      .add_option("--norms", norms.text,
                  "fused; decomposed: sums of rows, and their application; deferred: of RMS norms, "
                  "behind the GEMMs that read them; or auto, which prices all. SITE=KIND is of the "
                  "norm of that name alone")
      ->capture_default_str()
      ->type_name("[SITE=]KIND,..");
  command
      .add_option("--stacking", stacking.text,
                  "of the Q, K, V projections: auto, separate, two or three. SITE=KIND is of those "
                  "with the projection of that name alone")
      ->capture_default_str()
      ->type_name("[SITE=]KIND,..");
  command
      .add_option("--variant", variant,
                  "only this variant, of those in a file of several, else of those proposed")
      ->type_name("NAME");
  command.add_option("--fuse-rules", fuseRules.text, "paper, default or none")
      ->capture_default_str()
      ->type_name("RULES");
  command.add_option("--fuse", fuse, "two ops that must share a kernel")->type_name("A,B");
  command.add_option("--no-fuse", noFuse, "two ops that must not share a kernel")->type_name("A,B");
  command
      .add_option(
          "--lengths", lengths,
          "of a plan by --ragged, --cache or --mask padding: which lengths are expected when it "
          "runs, for which "
          "kernels are then priced and chosen: mean=R, evenly around R times the longest, or a "
          "file of lengths, samples of what sequences have, each drawn by itself, LENGTH:N for N "
          "of "
          "one; a file whose lines have as many lengths each as there are sequences holds "
          "batches, which come as they are. The time is the "
          "expected one, over five fills of batches (explain DIR --fills). Any lengths may come "
          "all the same; default: full")
      ->type_name("mean=R|FILE");
  command
      .add_option("--search-memory", searchMemory,
                  "most bytes that the search itself may take, e.g. 2G; where that is too little "
                  "it ends with the best plan found, and says so, as it does after a fixed number "
                  "of steps; default: half of this machine's memory")
      ->type_name("SIZE");
}

void ChoiceFlags::declareDecisions(CLI::App &command) {
  const OptionGroup group(command, "Choices");
  command
      .add_option("--softmax", softmax.text,
                  "how softmax kernels reduce a row: auto, or by a block: shuffle, tree or linear")
      ->capture_default_str()
      ->type_name("KIND");
  command
      .add_option("--pin", pins,
                  "layout of a tensor, slowest axis first, e.g. --pin q=phbj, or --pin "
                  "active=bju:4096 with rows padded to 4096 elements")
      ->type_name("TENSOR=LAYOUT");
  command.add_flag("--free", free, "arguments and results may take any layout");
  command
      .add_option(
          "--max-memory", maxMemory,
          "most bytes of workspace, e.g. 512M; what does not fit as a whole may run in chunks")
      ->type_name("SIZE");
  command
      .add_option("--memory-trade", memoryTrade.text,
                  "how much slower than the fastest a plan may be for its memory: the fastest of "
                  "those whose workspace is no more than ops one by one with a fused attention "
                  "take, or than the L2 holds, else the smallest; 0: the fastest")
      ->capture_default_str()
      ->type_name("PERCENT");
  chunks = 0;
  command.add_option(
      "--concurrent", concurrent.text,
      "kernels that do not wait for each other run at once, on parallel paths of the CUDA "
      "graph: on, off, or auto: where "
      "--measure finds the plan faster with them");
  command
      .add_option("--pipeline", pipeline.text,
                  "run the kernels around the largest temporary for N slices of its batch or its "
                  "heads at once, each with separate memory, on parallel paths of one CUDA graph; "
                  "auto: where predicted faster; 1: no slices")
      ->capture_default_str()
      ->type_name("N|auto");
  command.add_option(
      "--early-start", earlyStart.text,
      "kernels are launched while the one before them ends and wait by themselves for what it "
      "writes (programmatic dependent launch, sm_90a): on, off, or auto: all of "
      "plans whose mean launch is predicted below 5 us, none of others and with --concurrent on");
  const CLI::Range counts(0, 4096);
  command
      .add_option("--chunks", chunks,
                  "run the kernels around the largest temporary in N chunks, one after another; 0: "
                  "by predicted time, and by memory as --memory-trade says")
      ->capture_default_str()
      ->check(counts)
      ->type_name("N");
  command.add_option("--alternatives", alternatives, "how many plans to keep for comparison")
      ->capture_default_str()
      ->check(CLI::Range(1, 64))
      ->type_name("K");
}

std::vector<OpPair> ChoiceFlags::fused() const { return parsePairs(fuse, "--fuse"); }
std::vector<OpPair> ChoiceFlags::notFused() const { return parsePairs(noFuse, "--no-fuse"); }

NamedLayout parseLayout(const std::string &layout) {
  if (const std::optional<NamedLayout> named = parseNamedLayout(layout)) return *named;
  throw Error::badInput("layout '{}': '{}' is no number of elements from a row to the next", layout,
                        layout.substr(layout.find(':') + 1));
}

std::vector<Pin> ChoiceFlags::pinned() const {
  std::vector<Pin> result;
  for (const std::string &text : pins) {
    const auto [tensor, layout] = splitAtEquals(text, "--pin");
    const Pin pin{.tensor = tensor, .layout = parseLayout(layout)};
    for (const Pin &other : result)
      if (other.tensor == tensor)
        throw Error::badInput("--pin {}: '{}' is pinned twice", text, tensor);
    result.push_back(pin);
  }
  return result;
}

void ChoiceFlags::check() const {
  memoryTrade.share();
  if (attention.text == "short" || attention.text == "grouped")
    throw Error::unsupported(
        "--attention {}: {} is no choice; nearest is --attention {}", attention.text,
        attention.text == "short"
            ? "a kernel that holds a whole row of scores"
            : "a GEMM of all sequences' tiles with reductions of the softmax behind it",
        attention.text == "short" ? "fused, one kernel for all lengths"
                                  : "recomposed, which computes padded scores");
  attention.check("--attention");
  subVector.lengths();
  if (const ChoiceFlags usual;
      subVector != usual.subVector && attention.sites().empty() &&
      (attention == AttentionChoice::unfused || attention == AttentionChoice::fused))
    throw Error::badInput(
        "--sub-vector {} with --attention {}: no softmax is decomposed there; leave one of them "
        "out, or take --attention decomposed or recomposed",
        subVector.text, attention.text);
  norms.check("--norms");
  stacking.check("--stacking");
  concurrent.check("--concurrent");
  earlyStart.check("--early-start");
  if (earlyStart == EarlyStarts::all && concurrent == decision::Concurrency::on)
    throw Error::badInput(
        "--early-start on with --concurrent on: a kernel starts early behind one other, not behind "
        "several; leave one of them out");
  softmax.check("--softmax");
  fuseRules.check("--fuse-rules");
  if (const ChoiceFlags usual;
      attention.isAnywhere(AttentionChoice::fused) && fuseRules != usual.fuseRules)
    throw Error::badInput(
        "--attention fused with --fuse-rules {}: these rules take no attention into one kernel; "
        "leave one of them out",
        fuseRules.text);
  checkPipeline();
}

bool ChoiceFlags::namesSites() const {
  return !attention.sites().empty() || !norms.sites().empty() || !stacking.sites().empty();
}

std::vector<int> SubVectorFlag::lengths() const {
  const SubVectorFlag usual;
  std::vector<int> lengths;
  for (const int length : subVectorLengths)
    if (text == std::to_string(length)) return {length};
    else if (usual.text == std::to_string(length)) lengths.insert(lengths.begin(), length);
    else lengths.push_back(length);
  if (text == "auto") return lengths;
  throw Error::badInput("--sub-vector {}: {} or auto", text, fmt::join(subVectorLengths, ", "));
}

void ChoiceFlags::checkPipeline() const {
  if (pipeline.slices() == 1) return;
  if (chunks > 1)
    throw Error::badInput(
        "--pipeline {} with --chunks {}: slices run at once, each with separate memory, chunks one "
        "after another; leave one of them out",
        pipeline.text, chunks);
  if (concurrent == decision::Concurrency::off)
    throw Error::badInput(
        "--pipeline {} with --concurrent off: slices run at once; leave one of them out",
        pipeline.text);
  if (earlyStart == EarlyStarts::all)
    throw Error::badInput(
        "--pipeline {} with --early-start on: a kernel starts early behind one other, and slices "
        "run at once; leave one of them out",
        pipeline.text);
}

std::optional<int64_t> ChoiceFlags::maxMemoryBytes() const {
  if (maxMemory.empty()) return std::nullopt;
  return parseBytes(maxMemory, "--max-memory");
}

int PipelineFlag::slices() const {
  constexpr int most = 4096;
  if (text == "auto") return 0;
  int count = 0;
  const char *begin = text.data(), *last = begin + text.size();
  const auto [end, error] = std::from_chars(begin, last, count);
  if (error != std::errc() || end != last || count < 1 || count > most)
    throw Error::badInput("--pipeline {}: expected a number of slices from 1 (none) to {}, or auto",
                          text, most);
  return count;
}

double MemoryTradeFlag::share() const {
  constexpr double most = 1000;
  double percent = 0;
  const char *begin = text.data(), *last = begin + text.size();
  const auto [end, error] = std::from_chars(begin, last, percent);
  const std::string_view unit(end, size_t(last - end));
  if (error != std::errc() || !(unit.empty() || unit == "%") || !(percent >= 0 && percent <= most))
    throw Error::badInput(
        "--memory-trade {}: expected a percentage from 0 (the fastest plan) to {:.0f}", text, most);
  return percent / 100;
}

EarlyStarts ChoiceFlags::earlyStarts(std::string_view architecture) const {
  return codegen::hasEarlyStarts(architecture) ? earlyStart.value() : EarlyStarts::none;
}

SearchMemory ChoiceFlags::memoryOfSearch() const {
  return SearchMemory(searchMemory.empty() ? runtime::machineMemoryBytes() / 2
                                           : parseBytes(searchMemory, "--search-memory"));
}

void TargetFlags::declare(CLI::App &command, bool builds) {
  const OptionGroup group(command, "Target");
  command.add_option("--device", deviceName, "GPU to choose for; see weft devices")
      ->capture_default_str()
      ->type_name("GPU");
  command.add_option("--target", target, "architecture to emit for; default: the device's")
      ->type_name("SM");
  command
      .add_option("--profile", profile,
                  "measured times: a text, a store, or none; default: those that ship with weft")
      ->type_name("FILE");
  command.add_flag("--no-library", noLibrary,
                   "contractions by weft's own kernels only, never by cuBLASLt");
  command
      .add_option("--deterministic", deterministic.text,
                  "on: every launch leaves the same bits; off: kernels may also add in the "
                  "order in which their blocks come (the gradient of queries of a fused "
                  "attention), where that is faster; weft explain says what it costs")
      ->capture_default_str()
      ->type_name("on|off");
  command.add_flag("--strict", strict,
                   builds ? "exit 4 where NVRTC is missing, and where a kernel's time is not "
                            "measured (--profile none: asked for)"
                          : "exit 4 where the time of a kernel that is priced is not measured "
                            "(--profile none: asked for)");
}

Device TargetFlags::device() const {
  deterministic.check("--deterministic");
  Device device = findDevice(deviceName);
  device.mayBeNondeterministic = !isDeterministic();
  for (const Family *family : families())
    if (noLibrary && family->isLibrary) device.familiesTakenAway.insert(family);
  return device;
}

namespace {

void checkKnown(const std::string &target) {
  const std::vector<std::string> known(codegen::targets().begin(), codegen::targets().end());
  if (std::ranges::count(known, target) == 0)
    throw Error::unsupported("target '{}' is not supported{}", target,
                             nearestAndKnown(target, known));
}

}  // namespace

std::string TargetFlags::architecture() const {
  std::set<std::string> emitted;
  for (const Device &candidate : devices())
    if (candidate.canEmit) emitted.insert(candidate.name);
  const Device chosen = device();
  if (!chosen.canEmit)
    throw Error::unsupported(
        "{} ({}) is model-only: weft select prices it, but nothing is emitted for its plans, "
        "whatever the "
        "target. Emitted for are {}",
        chosen.name, chosen.architecture, fmt::join(emitted, ", "));
  const std::string wanted = target.empty() ? chosen.architecture : target;
  checkKnown(wanted);
  return wanted;
}

void TargetFlags::checkTarget() const {
  if (target.empty()) return;
  checkKnown(target);
  const auto runs = [&](const Device &candidate) {
    std::string_view gpu = candidate.architecture;
    if (gpu.ends_with('a')) gpu.remove_suffix(1);
    return codegen::runsOn(target, gpu);
  };
  const Device chosen = device();
  if (runs(chosen)) return;
  std::vector<std::string> others;
  for (const Device &candidate : devices())
    if (candidate.canEmit && runs(candidate)) others.push_back(candidate.name);
  throw Error::unsupported(
      "--target {}: {} ({}) does not run its kernels, so nothing that is chosen for the one holds "
      "for the other; --device {} does",
      target, chosen.name, chosen.architecture, fmt::join(others, " or "));
}

void KeepFlags::declare(CLI::App &command) {
  const OptionGroup group(command, "Output");
  command.add_option("--keep", kinds, "write listings of every kernel: ptx, sass")
      ->delimiter(',')
      ->type_name("KIND");
}

void KeepFlags::check() const {
  for (const std::string &kind : kinds) requireOneOf("--keep", kind, {"ptx", "sass"});
}

bool KeepFlags::keeps(const std::string &kind) const {
  return std::ranges::find(kinds, kind) != kinds.end();
}

void PhaseFlags::declare(CLI::App &command) {
  const OptionGroup group(command, "Phases");
  command
      .add_option("--start-from", startFrom,
                  fmt::format("{}; lower, emit or build on an artifact", startFromHelp))
      ->capture_default_str()
      ->type_name("PHASE");
  command
      .add_option("--stop-after", stopAfter,
                  fmt::format("last phase: {}", fmt::join(phaseNames(), ", ")))
      ->capture_default_str()
      ->type_name("PHASE");
}

Phase PhaseFlags::first() const { return parsePhase(startFrom); }

Phase PhaseFlags::last() const {
  const Phase phase = parsePhase(stopAfter);
  if (phase < first())
    throw Error::badInput("--stop-after {}: lies before --start-from {}", stopAfter, startFrom);
  return phase;
}

OpPair parsePair(const std::string &text, const std::string &flag) {
  const std::vector<std::string> names = split(text, ',');
  if (names.size() != 2 || names[0].empty() || names[1].empty() || names[0] == names[1])
    throw Error::badInput("{} {}: expected two different ops, A,B", flag, text);
  return {names[0], names[1]};
}

ExpectedFill ChoiceFlags::expectedFill(int64_t longest, int64_t sequences) const {
  if (fill) return *fill;
  if (lengths.empty()) return {};
  if (const std::optional<double> mean = runtime::meanOf(lengths))
    return fillOfMean(*mean, sequences);
  const std::vector<std::vector<int32_t>> lines = runtime::readLengthLines(lengths);
  if (lines.empty()) throw Error::badInput("--lengths {}: the file holds no lengths", lengths);
  int64_t sequence = 0;
  std::vector<std::vector<double>> shares;
  for (const std::vector<int32_t> &line : lines) {
    std::vector<double> &own = shares.emplace_back();
    for (const int32_t length : line) {
      if (length < 0 || length > longest)
        throw Error::badInput(
            "--lengths {}: length {} of sequence {} is {} (at least 0, at most {})", lengths,
            length, sequence, length < 0 ? "negative" : "above the longest", longest);
      own.push_back(double(length) / double(longest));
      ++sequence;
    }
  }
  if (runtime::areBatches(lines, sequences)) return fillOfBatches(shares);
  std::vector<double> drawn;
  for (const std::vector<double> &own : shares) drawn.insert(drawn.end(), own.begin(), own.end());
  return fillOf(std::move(drawn), sequences);
}

}  // namespace weft::driver
