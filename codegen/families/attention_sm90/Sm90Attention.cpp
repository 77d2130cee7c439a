// A program that calls the kernel template of fused attention; see Sm90Attention.h.
#include "codegen/families/attention_sm90/Sm90Attention.h"

#include "codegen/EntryName.h"
#include "codegen/ExpressionText.h"
#include "codegen/families/attention/AttentionDropout.h"
#include "codegen/families/attention/AttentionPlaces.h"
#include "codegen/families/attention/AttentionScore.h"
#include "codegen/families/attention/PackedMasks.h"
#include "codegen/families/attention/RotatedQueries.h"
#include "codegen/families/attention_sm90/Sm90AttentionTile.h"
#include "codegen/families/contraction/ContractionTexts.h"
#include "kernel/Error.h"
#include "kernel/UnusedTokens.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace weft::codegen {
namespace {

constexpr int columnsOfBox = 64, rowsOfPart = 64;
constexpr const char *mapType = "weft::sm90::TensorMap";

AttentionRegion checkedRegion(const Kernel &kernel) {
  Expected<AttentionRegion, Reason> answer = attentionRegion(kernel);
  if (!answer)
    throw Error::unsupported("kernel '{}': no fused attention: {}", kernel.name,
                             answer.error().text);
  if (const std::string reason = scoreRejection(kernel, *answer); !reason.empty())
    throw Error::unsupported("kernel '{}': {}", kernel.name, reason);
  return std::move(*answer);
}

AttentionProblem checkedProblem(const Kernel &kernel, const AttentionRegion &region,
                                const Configuration &configuration) {
  const Expected<AttentionProblem> answer = attentionProblem(kernel, region, configuration);
  if (!answer) throw Error::unsupported("kernel '{}': {}", kernel.name, answer.error().what());
  for (const std::string &reason :
       {sm90AttentionLayoutRejection(*answer), attentionDropoutRejection(kernel, region, *answer),
        sm90RotatedQueriesRejection(kernel, region)})
    if (!reason.empty()) throw Error::unsupported("kernel '{}': {}", kernel.name, reason);
  return *answer;
}

class Sm90AttentionLowering {
public:
  Sm90AttentionLowering(const Kernel &asked, const Configuration &configuration,
                        const Sm90AttentionKnobs &knobs)
      : ended(withoutMasksOfPacked(asked)),
        kernel(ended ? ended->kernel : asked),
        configuration(configuration),
        knobs(knobs),
        region(checkedRegion(kernel)),
        problem(checkedProblem(kernel, region, configuration)),
        order(sm90AttentionTileOrder(kernel, region, problem, knobs)) {}

  Program run() {
    program.entry = names.reserve(entryName(kernel));
    check(sm90AttentionTileRejection(problem, knobs, scoreNeeds(kernel, region, problem)));
    if (knobs.packed != 0) check(sm90PackedLayoutRejection(problem));
    nameAxes();
    nameTensors();
    describeProblem();
    describeTile();
    call(addScore());
    program.launchBounds = fmt::format("{}, {}", sm90AttentionThreads(knobs),
                                       sm90AttentionResidentBlocks(problem, knobs));
    program.launch = {.grid = {sm90AttentionBlocks(problem, knobs), 1, 1},
                      .block = {sm90AttentionThreads(knobs), 1, 1},
                      .sharedBytes = sm90AttentionSharedBytes(problem, knobs)};
    program.mapping = describe(kernel, knobs);
    pruneUnused(program);
    // Launches look numbers up in the kernel that was asked for.
    for (Parameter &parameter : program.parameters)
      if (ended && isNumber(parameter.kind))
        parameter.index = int(ended->places.at(size_t(parameter.index)));
    return std::move(program);
  }

private:
  void check(const std::string &rejection) const {
    if (!rejection.empty()) throw Error::unsupported("kernel '{}': {}", kernel.name, rejection);
  }

  void nameAxes() {
    ConstantLine extents{.type = "int",
                         .entries = {},
                         .note = "extents",
                         .subject = {ConstantSubject::Kind::extents}};
    for (const Axis &axis : kernel.axes) {
      axes.push_back(names.reserve(axis.name));
      extents.entries.emplace_back(axes.back(), axis.extent);
    }
    program.constants = {extents};
    for (std::string *name : {&shape, &tile}) *name = names.reserve(*name);
  }

  /// Rows of a box, where TMA moves the tensor; else none.
  std::optional<TensorMap> mapOf(ValueId value) const {
    for (const auto &[tensor, columns, boxRows] :
         {std::tuple(&problem.q, problem.headDim, knobs.tileQueries),
          std::tuple(&problem.k, problem.headDim, knobs.tileKeys),
          std::tuple(&problem.v, problem.valueDim, knobs.tileKeys),
          std::tuple(&problem.output, problem.valueDim, rowsOfPart)}) {
      if (tensor->value != value) continue;
      const bool isPaged = problem.paged && (tensor == &problem.k || tensor == &problem.v);
      const int rows = isPaged ? std::min<int>(boxRows, int(problem.paged->positions)) : boxRows;
      TensorMap map{.dtype = kernel.values[size_t(value)].dtype,
                    .extents = {columns, tensor->rows},
                    .strides = {tensor->rowStride},
                    .box = {columnsOfBox, rows}};
      const int64_t packedHeads = sm90PackedHeads(problem, knobs);
      if (knobs.packed != 0 && (tensor == &problem.q || tensor == &problem.output)) {
        map.extents.insert(map.extents.begin() + 1, packedHeads);
        map.strides.insert(map.strides.begin(), strideOfGroup(problem, *tensor).value());
        map.box = {columnsOfBox, int(packedHeads), int(rowsOfPart / packedHeads)};
      }
      for (const HeadDimension &dimension : headDimensions(problem, *tensor, packedHeads)) {
        map.extents.push_back(dimension.extent);
        map.strides.push_back(dimension.stride);
        map.box.push_back(1);
      }
      if (isPaged) {
        map.extents.push_back(problem.paged->pages);
        map.strides.push_back(tensor == &problem.k ? problem.paged->kStride
                                                   : problem.paged->vStride);
        map.box.push_back(1);
      }
      return map;
    }
    return std::nullopt;
  }

  std::string addTensor(ValueId value, int index, Parameter::Kind map, Parameter::Kind pointer) {
    const std::string name = names.reserve(kernel.values[size_t(value)].name);
    if (std::optional<TensorMap> tensorMap = mapOf(value)) {
      const std::string mapName = names.reserve(name + "_map");
      program.parameters.push_back({.kind = map,
                                    .index = index,
                                    .name = mapName,
                                    .type = mapType,
                                    .map = std::move(tensorMap)});
      mapNames[value] = mapName;
      if (problem.packed && value == problem.output.value) addPointer(value, name, index, pointer);
    } else {
      addPointer(value, name, index, pointer);
    }
    return name;
  }
  /// Lengths that only masks of packed sequences compared with are not: a parameter that stays.
  bool isRead(ValueId value) const {
    return std::ranges::any_of(kernel.body, [&](const BodyOp &op) {
      return std::ranges::find(op.operands, value) != op.operands.end();
    });
  }
  void addPointer(ValueId value, const std::string &name, int index, Parameter::Kind pointer) {
    program.parameters.push_back(
        {.kind = pointer,
         .index = index,
         .name = name,
         .type = std::string(cudaNameOf(kernel.values[size_t(value)].dtype))});
  }

  void nameTensors() {
    for (size_t i = 0; i < kernel.inputs.size(); ++i)
      inputs.push_back(
          addTensor(kernel.inputs[i], int(i), Parameter::Kind::inputMap, Parameter::Kind::input));
    for (size_t i = 0; i < kernel.outputs.size(); ++i)
      outputs.push_back(addTensor(kernel.outputs[i], int(i), Parameter::Kind::outputMap,
                                  Parameter::Kind::output));
    if (knobs.splits == 1) return;
    sums = names.reserve("sums");
    program.parameters.push_back(
        {.kind = Parameter::Kind::workspace, .index = 0, .name = sums, .type = "float"});
  }

  /// Where heads lie in a map: "{4, {1, 16}, {16, 8}}".
  ConstantValue headMap(const AttentionTensor &tensor) const {
    std::vector<ConstantValue> divisors, extents;
    for (const HeadDimension &dimension :
         headDimensions(problem, tensor, sm90PackedHeads(problem, knobs))) {
      divisors.push_back(dimension.divisor * knobs.splits);
      extents.push_back(dimension.extent);
    }
    if (divisors.empty()) return ConstantValue::members({{"dimensions", 2}});
    return ConstantValue::members({{"dimensions", divisors.size() + 2},
                                   {"divisors", ConstantValue::items(divisors)},
                                   {"extents", ConstantValue::items(extents)}});
  }

  /// That heads lie in the maps as plan.json has these.
  std::vector<Code> mapTerms() const {
    std::vector<Code> terms;
    for (const auto &[member, tensor] : {std::pair("q", &problem.q),
                                         {"k", &problem.k},
                                         {"v", &problem.v},
                                         {"output", &problem.output}}) {
      const std::vector<HeadDimension> dimensions =
          headDimensions(problem, *tensor, sm90PackedHeads(problem, knobs));
      for (size_t d = 0; d < dimensions.size(); ++d)
        terms.push_back(fmt::format("{0}.{1}.divisors[{2}] == {3} && {0}.{1}.extents[{2}] == {4}",
                                    shape, member, d, dimensions[d].divisor * knobs.splits,
                                    dimensions[d].extent));
    }
    if (terms.empty()) terms.push_back(fmt::format("{}.q.dimensions == 2", shape));
    return terms;
  }

  ConstantValue extentOf(AxisId axis) const {
    return axis < 0 ? ConstantValue(1) : ConstantValue::name(axes[size_t(axis)]);
  }

  void describeProblem() {
    const ConstantValue heads = extentProduct(kernel, problem.headAxes, axes);
    std::vector<ConstantMember> members = {
        {"queries", extentOf(problem.queryAxis), true},
        {"keys", extentOf(problem.keyAxis)},
        {"headDim", extentOf(problem.headDimAxis)},
        {"valueDim", extentOf(problem.valueDimAxis)},
        {"heads", knobs.splits == 1 ? heads : heads * knobs.splits},
        {"q", headMap(problem.q), true},
        {"k", headMap(problem.k), true},
        {"v", headMap(problem.v), true},
        {"output", headMap(problem.output), true}};
    if (problem.packed) members.push_back({"isPacked", ConstantValue::truth(true), true});
    if (problem.packed && ended && ended->endsAtTokens)
      members.push_back({"endsAtTokens", ConstantValue::truth(true)});
    if (!problem.packed && problem.paged)
      members.push_back({"pageRows", extentOf(region.paged->kPositions), true});
    if (problem.zeroesUnseen) members.push_back({"zeroesUnseen", ConstantValue::truth(true), true});
    program.constants.push_back({"weft::sm90::AttentionProblem",
                                 {{shape, ConstantValue::members(std::move(members))}},
                                 "",
                                 {ConstantSubject::Kind::strides, "the result"}});
  }

  void describeTile() {
    std::string text = fmt::format(
        "{{.queries = {}, .keys = {}, .stages = {}, .queryStages = {}, .isOrdered = {}, .staysInQ "
        "= "
        "{}, .headGroup = {}",
        knobs.tileQueries, knobs.tileKeys, knobs.stages, knobs.queryStages, knobs.ordered == 1,
        sm90AttentionStaysInQ(problem, knobs), knobs.headGroup);
    if (order.longTiles > 0) text += fmt::format(", .longTiles = {}", order.longTiles);
    if (knobs.residents > 0) text += fmt::format(", .residents = {}", knobs.residents);
    if (knobs.keyConsumers > 0) text += fmt::format(", .keyConsumers = {}", knobs.keyConsumers);
    if (knobs.packed != 0)
      text +=
          fmt::format(", .packedHeads = {}{}", problem.headsOfGroup,
                      masksDifferInGroup(kernel, region, problem) ? ", .masksDiffer = true" : "");
    program.constants.push_back({"weft::sm90::AttentionTile",
                                 {{tile, ConstantValue::text(text + "}")}},
                                 "",
                                 {ConstantSubject::Kind::unchecked}});
  }

  /// The order of tiles as a table in device memory, where masks make one.
  void addOrder(std::vector<NamedArgument> &arguments) {
    if (order.tiles.empty()) return;
    const std::string name = names.reserve("tileOrder");
    const size_t size = order.tiles.size();
    program.globals.push_back(
        {.kind = Statement::Kind::declare,
         .type = Code::plain(fmt::format("weft::sm90::TileTable<{}>", size)),
         .name = name,
         .value = Code::plain(fmt::format("{{{{{}}}}}", fmt::join(order.tiles, ", "))),
         .note = "tiles of queries, those first that see most keys",
         .isConstant = true});
    arguments.push_back({"order", fmt::format("weft::sm90::TableOrder<{}>{{{}}}", size, name)});
  }

  bool leavesWholeTiles() const {
    return scoreNeeds(kernel, region, problem).leavesWholeTiles(problem, knobs);
  }

  ScoreContext scoreContext() {
    return {.kernel = kernel,
            .configuration = configuration,
            .region = region,
            .problem = problem,
            .names = names,
            .axes = axes,
            .inputs = inputs,
            .behindEnds = BehindEnds::last};
  }

  AttentionScore addScore() {
    AttentionScore score = attentionScore(scoreContext());
    program.headers = score.headers;
    program.constants.insert(program.constants.end(), score.constants.begin(),
                             score.constants.end());
    // What would decide scores one by one, where masks decide none.
    const bool isScoreUsed = !leavesWholeTiles();
    for (Statement &function : score.functions)
      if (isScoreUsed || function.name.str() != score.score)
        program.body.push_back(std::move(function));
    return score;
  }

  void call(const AttentionScore &score) {
    const std::string type(cudaNameOf(problem.operandType)), element(nameOf(problem.operandType)),
        config = fmt::format("weft::sm90::AttentionConfig<{}, {}>", shape, tile);
    const bool hasPackedSums = problem.packed && problem.logSums;
    for (const std::string &header : {std::string(hasPackedSums ? "weft/sm90_packed_log_sums.cuh"
                                                  : knobs.splits > 1 ? "weft/sm90_split_keys.cuh"
                                                                     : "weft/sm90_attention.cuh"),
                                      fmt::format("weft/wgmma_{}_any_n.cuh", element),
                                      fmt::format("weft/wgmma_{}_rs.cuh", element)})
      program.headers.push_back(header);
    std::ranges::sort(program.headers);
    const auto last = std::ranges::unique(program.headers);
    program.headers.erase(last.begin(), last.end());

    const std::string counter = names.reserve("tilesTaken");
    program.globals.push_back(
        {.kind = Statement::Kind::declare, .type = "unsigned", .name = counter});
    std::vector<Code> tileTerms = {
        fmt::format("{}.queries == {}", tile, knobs.tileQueries),
        fmt::format("{}.keys == {}", tile, knobs.tileKeys),
        fmt::format("{}::threads == {}", config, sm90AttentionThreads(knobs))};
    if (knobs.residents > 0)
      tileTerms.push_back(fmt::format("{}.residents == {}", tile, knobs.residents));
    if (knobs.keyConsumers > 0)
      tileTerms.push_back(fmt::format("{}.keyConsumers == {}", tile, knobs.keyConsumers));
    if (knobs.packed != 0)
      tileTerms.push_back(fmt::format("{}.packedHeads == {}", tile, problem.headsOfGroup));
    if (knobs.splits > 1)
      tileTerms.push_back(
          fmt::format("{}::tiles == {}", config, sm90AttentionTiles(problem, knobs)));
    const std::string partialBytes =
        knobs.splits == 1
            ? ""
            : fmt::format(" && weft::sm90::SplitConfig<{}, {}, {}>::bytes == {}", shape, tile,
                          knobs.splits, sm90AttentionPartialBytes(problem, knobs));
    Block checks = {
        evaluate(fmt::format("static_assert({}::sharedBytes == {}{})", config,
                             sm90AttentionSharedBytes(problem, knobs), partialBytes)),
        launchCheckOf({fmt::format("{}.queries == {}", shape, problem.queries),
                       fmt::format("{}.keys == {}", shape, problem.keys),
                       fmt::format("{}.headDim == {}", shape, problem.headDim),
                       fmt::format("{}.valueDim == {}", shape, problem.valueDim),
                       fmt::format("{}.heads == {}", shape, problem.heads * knobs.splits)},
                      "these extents"),
        launchCheckOf(mapTerms(), "maps of these heads"),
        launchCheckOf(tileTerms, fmt::format("{} blocks and maps of these tiles",
                                             sm90AttentionBlocks(problem, knobs)))};
    program.body.insert(program.body.begin(), checks.begin(), checks.end());

    std::vector<NamedArgument> arguments = {{"q", "&" + mapNames.at(problem.q.value)},
                                            {"k", "&" + mapNames.at(problem.k.value)},
                                            {"v", "&" + mapNames.at(problem.v.value)},
                                            {"output", "&" + mapNames.at(problem.output.value)},
                                            {"counter", "&" + counter},
                                            {"scale", floatLiteral(problem.scale).str()}};
    if (problem.logSums && !hasPackedSums)
      arguments.push_back({"logSums", outputs.at(problem.logSums->operand - inputs.size())});
    if (score.hasMasks && !leavesWholeTiles()) arguments.push_back({"score", score.score});
    else if (score.hasValueOps) arguments.push_back({"score", score.scoreWithoutMasks});
    if (score.hasValueOps) arguments.push_back({"scoreWithoutMasks", score.scoreWithoutMasks});
    if (knobs.splits > 1)
      arguments.push_back(
          {"coverage",
           ofSplits("splitCoverage", score.hasMasks ? score.coverage : "weft::FullCoverage{}")});
    else if (score.hasMasks) arguments.push_back({"coverage", score.coverage});
    if (region.hasDropout)
      addAttentionDropout(attentionDropout(kernel, region, problem, names, axes), program,
                          arguments);
    addOrder(arguments);
    addPacked(arguments);
    addPages(arguments);
    const std::string function = hasPackedSums      ? "attentionWithLogSums"
                                 : knobs.splits > 1 ? "attentionInSplits"
                                                    : "attention",
                      first = hasPackedSums      ? addRowOfSums() + ", "
                              : knobs.splits > 1 ? addPartials() + ", "
                                                 : "",
                      splits = knobs.splits > 1 ? fmt::format(", {}", knobs.splits) : "";
    const std::string turn = region.turned ? addRotation(arguments) : "";
    program.body.push_back(templateCall(
        fmt::format("weft::sm90::{}<{}, {}, {}{}>", function, type, shape, tile, splits),
        fmt::format("{}{}weft::sm90::AttentionArgs", first,
                    turn.empty() ? "" : fmt::format("weft::sm90::rotated<{}>({}, ", type, turn)),
        arguments));
    if (!turn.empty()) program.body.back().value += Code::plain(")");
  }

  /// What consumers rotate queries by, as an expression.
  std::string addRotation(const std::vector<NamedArgument> &arguments) {
    std::string sequences;
    if (const auto found = std::ranges::find(arguments, "sequences", &NamedArgument::name);
        found != arguments.end())
      sequences = found->value;
    RotatedQueryTexts texts = rotatedQueries(scoreContext(), sequences);
    texts.headers.insert("weft/sm90_rotated_queries.cuh");
    program.headers.insert(program.headers.end(), texts.headers.begin(), texts.headers.end());
    std::ranges::sort(program.headers);
    const auto last = std::ranges::unique(program.headers);
    program.headers.erase(last.begin(), last.end());
    program.constants.insert(program.constants.end(), texts.constants.begin(),
                             texts.constants.end());
    program.body.insert(program.body.end(), texts.functions.begin(), texts.functions.end());
    if (knobs.splits > 1) {
      const std::string ofHead = texts.position;
      texts.position = names.reserve("positionInSplits");
      program.body.push_back(
          {.kind = Statement::Kind::function,
           .type = "int head, int query",
           .name = texts.position,
           .body = {evaluate(fmt::format(
               "return {}(weft::sm90::splitPlace<{}.packedHeads, {}>(head).head, query)", ofHead,
               tile, knobs.splits))}});
    }
    return fmt::format("weft::sm90::queryRotation<{}>({}, {})", texts.columns, texts.position,
                       texts.frequency);
  }

  /// A function of heads as one of heads and splits (sm90_split_keys.cuh).
  std::string ofSplits(std::string_view function, const std::string &argument) const {
    return fmt::format("weft::sm90::{}<{}, {}>({})", function, tile, knobs.splits, argument);
  }

  /// Where the sums of every split are, and counters of those that have arrived; returns both as
  /// the first argument of the call.
  std::string addPartials() {
    const std::string arrivals = names.reserve("arrivals");
    program.globals.push_back(
        {.kind = Statement::Kind::declare,
         .type = fmt::format("weft::sm90::SplitArrivals<{}, {}, {}>", shape, tile, knobs.splits),
         .name = arrivals});
    return fmt::format("{{{}, {}}}", sums, arrivals);
  }

  /// A function of a head and a token that says where the logarithm of its sum is stored.
  std::string addRowOfSums() {
    const AttentionTensor &sums = *problem.logSums;
    std::string name = names.reserve("logSumOf");
    program.body.push_back(rowFunction(name, outputs.at(sums.operand - inputs.size()),
                                       placeOfHead(problem, sums, "head"), sums.rowStride));
    return name;
  }

  /// Where sequences lie among packed tokens, and rows of the output that share a box with those of
  /// another sequence.
  void addPacked(std::vector<NamedArgument> &arguments) {
    if (!problem.packed) return;
    const AttentionTensor &output = problem.output;
    const std::string &pointer = outputs.at(output.operand - inputs.size()),
                      row = names.reserve("outputRow");
    program.body.push_back(
        rowFunction(row, pointer, placeOfHead(problem, output, "head"), output.rowStride));
    arguments.push_back(
        {"sequences",
         fmt::format("weft::PackedSequences<{}, {}, {}, {}, {}>{{{}}}", problem.packed->sequences,
                     problem.packed->divisor, problem.packed->offsetStride,
                     axes[size_t(problem.queryAxis)], axes[size_t(region.packed->output)],
                     inputs.at(region.packed->input))});
    arguments.push_back({"outputRow", row});
    addPrefetches();
    if (!areUnusedUnread(kernel)) arguments.push_back({"zeroesUnused", "true"});
  }

  /// Offsets say where queries are, and integers of masks which keys are seen, one after the other:
  /// of few words all are asked for at once.
  void addPrefetches() {
    constexpr int64_t mostWords = 4096;
    Block prefetches;
    for (size_t i = 0; i < kernel.inputs.size(); ++i) {
      const Value &value = kernel.values[size_t(kernel.inputs[i])];
      const int64_t words = kernel.elements(kernel.inputs[i]);
      if (value.dtype == DType::i32 && words <= mostWords && isRead(kernel.inputs[i]))
        prefetches.push_back(
            evaluate(fmt::format("weft::sm90::prefetchWords({}, {})", inputs[i], words)));
    }
    program.body.insert(program.body.end(), prefetches.begin(), prefetches.end());
  }

  /// The page of a key, by the table; none behind the last key.
  void addPages(std::vector<NamedArgument> &arguments) {
    if (!problem.paged) return;
    const AttentionProblem::Paged &paged = *problem.paged;
    const std::string name = names.reserve("pageOf");
    const std::string entry = fmt::format(
        "{} + key / {}{}", placeOfSequence(problem, "head"), axes[size_t(region.paged->kPositions)],
        paged.entryStride == 1 ? "" : fmt::format(" * {}", paged.entryStride));
    program.body.push_back(
        {.kind = Statement::Kind::function,
         .type = "int head, int key",
         .name = name,
         .body = {{.kind = Statement::Kind::evaluate,
                   .value = fmt::format("return key < {} ? {}[{}] : -1", extentOf(problem.keyAxis),
                                        inputs.at(paged.table), entry)}}});
    arguments.push_back({"pageOf", knobs.splits > 1 ? ofSplits("splitPages", name) : name});
  }

  const std::shared_ptr<const KernelOfTokens> ended;
  const Kernel &kernel;
  const Configuration &configuration;
  const Sm90AttentionKnobs &knobs;
  const AttentionRegion region;
  const AttentionProblem problem;
  const TileOrder order;
  Names names;
  Program program;
  std::vector<std::string> axes, inputs, outputs;
  std::map<ValueId, std::string> mapNames;  // of values that TMA moves
  std::string shape = "shape", tile = "tile", sums;
};

}  // namespace

Program lowerSm90Attention(const Kernel &kernel, const Configuration &configuration,
                           const Sm90AttentionKnobs &knobs) {
  return Sm90AttentionLowering(kernel, configuration, knobs).run();
}

}  // namespace weft::codegen
