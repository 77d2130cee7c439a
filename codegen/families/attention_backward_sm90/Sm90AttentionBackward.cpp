// A program that calls the kernel template of fused attention backward; see
// Sm90AttentionBackward.h.
#include "codegen/families/attention_backward_sm90/Sm90AttentionBackward.h"

#include "codegen/EntryName.h"
#include "codegen/ExpressionText.h"
#include "codegen/families/attention/AttentionPlaces.h"
#include "codegen/families/attention/HeadDimensions.h"
#include "codegen/families/attention/TileOrder.h"
#include "codegen/families/attention/VisibleScores.h"
#include "codegen/families/attention_backward/AttentionGradients.h"
#include "codegen/families/attention_backward_sm90/Sm90AttentionBackwardTile.h"
#include "codegen/families/contraction/ContractionTexts.h"
#include "kernel/Error.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace weft::codegen {
namespace {

constexpr int columnsOfBox = 64;
constexpr const char *mapType = "weft::sm90::TensorMap";

AttentionBackwardRegion checkedRegion(const Kernel &kernel) {
  Expected<AttentionBackwardRegion, Reason> answer = attentionBackwardRegion(kernel);
  if (!answer)
    throw Error::unsupported("kernel '{}': no fused attention backward: {}", kernel.name,
                             answer.error().text);
  return std::move(*answer);
}

AttentionBackwardProblem checkedProblem(const Kernel &kernel, const AttentionBackwardRegion &region,
                                        const Configuration &configuration) {
  const Expected<AttentionBackwardProblem> answer =
      attentionBackwardProblem(kernel, region, configuration);
  if (!answer) throw Error::unsupported("kernel '{}': {}", kernel.name, answer.error().what());
  for (const std::string &reason :
       {sm90AttentionBackwardLayoutRejection(*answer), gradientRejection(kernel, region, *answer)})
    if (!reason.empty()) throw Error::unsupported("kernel '{}': {}", kernel.name, reason);
  return *answer;
}

class Sm90AttentionBackwardLowering {
public:
  Sm90AttentionBackwardLowering(const Kernel &kernel, const Configuration &configuration,
                                const Sm90AttentionBackwardKnobs &knobs)
      : kernel(kernel),
        configuration(configuration),
        knobs(knobs),
        region(checkedRegion(kernel)),
        problem(checkedProblem(kernel, region, configuration)),
        orderOfKeys(orderOf(TilesOf::keys)),
        orderOfQueries(orderOf(TilesOf::queries)) {}

  Program run() {
    program.entry = names.reserve(entryName(kernel));
    nameAxes();
    nameTensors();
    describeProblem();
    describeTile();
    const AttentionGradients gradients = addGradients();
    if (const std::string reason = sm90AttentionBackwardTileRejection(
            problem, knobs, gradients.rowFloats, region.hasDropout);
        !reason.empty())
      throw Error::unsupported("kernel '{}': {}", kernel.name, reason);
    call(gradients);
    program.launchBounds = fmt::format("{}, {}", sm90AttentionBackwardThreads(knobs),
                                       sm90AttentionBackwardResidents(knobs));
    program.launch = {
        .grid = {sm90AttentionBackwardBlocks(problem, knobs), 1, 1},
        .block = {sm90AttentionBackwardThreads(knobs), 1, 1},
        .sharedBytes = sm90AttentionBackwardSharedBytes(problem, knobs, gradients.rowFloats)};
    program.mapping = describe(kernel, knobs);
    pruneUnused(program);
    return std::move(program);
  }

private:
  const AttentionProblem &attention() const { return problem.attention; }
  /// Whether tiles of queries sum the gradient of these.
  bool isApart() const { return knobs.gradients != BackwardGradients::together; }
  bool isSingle() const { return knobs.gradients == BackwardGradients::single; }
  int64_t groupParts() const { return sm90AttentionBackwardGroupParts(problem, knobs); }
  bool hasParts() const { return groupParts() > 1; }
  /// As the kernel template has it: apart, a group is the heads of one tile of keys.
  int64_t headsOfGroup() const {
    return isApart() && hasParts() ? knobs.headsOfTile : attention().headsOfGroup;
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

  struct Moved {
    const char *member;
    const AttentionTensor *tensor;
    int64_t rows, columns;
    int boxRows;
  };
  /// What TMA moves, under its name in the kernel template.
  std::vector<Moved> moved() const {
    const AttentionProblem &a = attention();
    const int ofQueries = isApart() ? splitBackwardBoxRows(knobs) : knobs.tileQueries,
              ofKeys = isApart() ? ofQueries : knobs.tileKeys;
    return {{"q", &a.q, a.queries, a.headDim, ofQueries},
            {"k", &a.k, a.keys, a.headDim, ofKeys},
            {"v", &a.v, a.keys, a.valueDim, ofKeys},
            {"dOutput", &problem.dOutput(), a.queries, a.valueDim, ofQueries},
            {"dQ", &problem.dQ, a.queries, a.headDim, columnsOfBox},
            {"dK", &problem.dK, a.keys, a.headDim, columnsOfBox},
            {"dV", &problem.dV, a.keys, a.valueDim, columnsOfBox}};
  }

  std::optional<TensorMap> mapOf(ValueId value) const {
    for (const Moved &one : moved()) {
      if (one.tensor->value != value) continue;
      TensorMap map{.dtype = kernel.values[size_t(value)].dtype,
                    .extents = {one.columns, one.rows},
                    .strides = {one.tensor->rowStride},
                    .box = {columnsOfBox, one.boxRows}};
      for (const HeadDimension &dimension : headDimensions(attention(), *one.tensor)) {
        map.extents.push_back(dimension.extent);
        map.strides.push_back(dimension.stride);
        map.box.push_back(1);
      }
      if (attention().packed) {
        map.extents.push_back(one.tensor->rows + 1);
        map.strides.push_back(one.tensor->rowStride);
        map.box.push_back(1);
        map.shift = one.rows * one.tensor->rowStride;
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
    }
    if (!mapNames.contains(value) || (attention().packed && pointer == Parameter::Kind::output))
      program.parameters.push_back(
          {.kind = pointer,
           .index = index,
           .name = name,
           .type = std::string(cudaNameOf(kernel.values[size_t(value)].dtype))});
    return name;
  }

  void nameTensors() {
    for (size_t i = 0; i < kernel.inputs.size(); ++i)
      inputs.push_back(
          addTensor(kernel.inputs[i], int(i), Parameter::Kind::inputMap, Parameter::Kind::input));
    for (size_t i = 0; i < kernel.outputs.size(); ++i) {
      const std::string name =
          addTensor(kernel.outputs[i], int(i), Parameter::Kind::outputMap, Parameter::Kind::output);
      if (kernel.outputs[i] == region.storedScores) dScores = name;
      outputs.push_back(name);
    }
    if (isApart() && !hasParts()) return;
    sums = names.reserve("sums");
    program.parameters.push_back(
        {.kind = Parameter::Kind::workspace, .index = 0, .name = sums, .type = "float"});
  }

  /// Where heads lie in a map: "{4, {1, 16}, {16, 8}}".
  ConstantValue headMap(const AttentionTensor &tensor) const {
    std::vector<ConstantValue> divisors, extents;
    for (const HeadDimension &dimension : headDimensions(attention(), tensor)) {
      divisors.push_back(dimension.divisor);
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
    for (const Moved &one : moved()) {
      const std::vector<HeadDimension> dimensions = headDimensions(attention(), *one.tensor);
      for (size_t d = 0; d < dimensions.size(); ++d)
        terms.push_back(fmt::format("{0}.{1}.divisors[{2}] == {3} && {0}.{1}.extents[{2}] == {4}",
                                    shape, one.member, d, dimensions[d].divisor,
                                    dimensions[d].extent));
    }
    if (terms.empty()) terms.push_back(fmt::format("{}.q.dimensions == 2", shape));
    return terms;
  }

  ConstantValue extentOf(AxisId axis) const {
    return axis < 0 ? ConstantValue(1) : ConstantValue::name(axes[size_t(axis)]);
  }

  void describeProblem() {
    std::vector<ConstantMember> members = {
        {"queries", extentOf(attention().queryAxis), true},
        {"keys", extentOf(attention().keyAxis)},
        {"headDim", extentOf(attention().headDimAxis)},
        {"valueDim", extentOf(attention().valueDimAxis)},
        {"heads", extentProduct(kernel, attention().headAxes, axes)},
        {"headsOfGroup", headsOfGroup()}};
    for (const Moved &one : moved()) members.push_back({one.member, headMap(*one.tensor), true});
    if (attention().zeroesUnseen)
      members.push_back({"zeroesUnseen", ConstantValue::truth(true), true});
    program.constants.push_back({"weft::sm90::AttentionBackwardProblem",
                                 {{shape, ConstantValue::members(std::move(members))}},
                                 "",
                                 {ConstantSubject::Kind::strides, "the result"}});
  }

  void describeTile() {
    if (!isApart()) {
      program.constants.push_back(
          {"weft::sm90::AttentionBackwardTile",
           {{tile, ConstantValue::text(fmt::format(
                       "{{.queries = {}, .keys = {}, .headGroup = {}{}{}}}", knobs.tileQueries,
                       knobs.tileKeys, knobs.headGroup,
                       hasParts() ? fmt::format(", .headsOfTile = {}", knobs.headsOfTile) : "",
                       knobs.sums == GradientSums::unordered ? ", .areSumsOrdered = false" : ""))}},
           "",
           {ConstantSubject::Kind::unchecked}});
      return;
    }
    const SplitBackwardStages stages =
        splitBackwardStages(problem, knobs, rowFloatsOf(kernel, region));
    std::string text = fmt::format(
        "{{.rows = {}, .columns = {}, .stages = {}, .ownStages = {}, .headGroup = {}",
        knobs.tileKeys, knobs.tileQueries, stages.blocks, stages.tiles, knobs.headGroup);
    if (orderOfKeys.longTiles > 0)
      text += fmt::format(", .longKeyTiles = {}", orderOfKeys.longTiles);
    if (orderOfQueries.longTiles > 0)
      text += fmt::format(", .longQueryTiles = {}", orderOfQueries.longTiles);
    program.constants.push_back({"weft::sm90::SplitBackwardTile",
                                 {{tile, ConstantValue::text(text + "}")}},
                                 "",
                                 {ConstantSubject::Kind::unchecked}});
  }

  TileOrder orderOf(TilesOf side) const {
    if (!isApart()) return {};
    return longestTilesFirst(seenByTiles(kernel, attentionOf(kernel, region), attention(),
                                         knobs.tileKeys, knobs.tileQueries, side),
                             side == TilesOf::queries);
  }
  /// An order of tiles as a table in device memory, where masks make one.
  void addOrder(std::vector<NamedArgument> &arguments, const char *member, const TileOrder &order,
                const char *note) {
    if (order.tiles.empty()) return;
    const std::string name = names.reserve(member);
    const size_t size = order.tiles.size();
    program.globals.push_back(
        {.kind = Statement::Kind::declare,
         .type = Code::plain(fmt::format("weft::sm90::TileTable<{}>", size)),
         .name = name,
         .value = Code::plain(fmt::format("{{{{{}}}}}", fmt::join(order.tiles, ", "))),
         .note = note,
         .isConstant = true});
    arguments.push_back({member, fmt::format("weft::sm90::TableOrder<{}>{{{}}}", size, name)});
  }

  /// The templates ask for gradients of scores inside of the tensor only; of packed tokens, whose
  /// sequences end anywhere, for others as well.
  BehindEnds behindEnds() const {
    return sm90AttentionBackwardLoadsUnderConditions(problem, knobs) ? BehindEnds::nothing
                                                                     : BehindEnds::uncalled;
  }

  AttentionGradients addGradients() {
    AttentionGradients gradients = attentionGradients({.kernel = kernel,
                                                       .configuration = configuration,
                                                       .region = region,
                                                       .problem = problem,
                                                       .names = names,
                                                       .axes = axes,
                                                       .inputs = inputs,
                                                       .dScores = dScores,
                                                       .behindEnds = behindEnds(),
                                                       .arePairsOfKeys = isApart()});
    program.headers = gradients.headers;
    program.constants.insert(program.constants.end(), gradients.constants.begin(),
                             gradients.constants.end());
    program.parameters.insert(program.parameters.end(), gradients.parameters.begin(),
                              gradients.parameters.end());
    program.body.insert(program.body.end(), gradients.functions.begin(), gradients.functions.end());
    return gradients;
  }

  void addHeaders() {
    const std::string element(nameOf(attention().operandType));
    for (const std::string &header :
         {std::string(isSingle()                ? "weft/sm90_single_backward.cuh"
                      : isApart() && hasParts() ? "weft/sm90_split_backward_parts.cuh"
                      : isApart()               ? "weft/sm90_split_backward.cuh"
                      : attention().packed      ? "weft/sm90_packed_attention_backward.cuh"
                                                : "weft/sm90_attention_backward.cuh"),
          fmt::format("weft/wgmma_{}_any_n.cuh", element),
          fmt::format("weft/wgmma_{}_rs.cuh", element)})
      program.headers.push_back(header);
    std::ranges::sort(program.headers);
    const auto last = std::ranges::unique(program.headers);
    program.headers.erase(last.begin(), last.end());
  }

  void call(const AttentionGradients &gradients) {
    addHeaders();
    const std::string type(cudaNameOf(attention().operandType)),
        prefix = isApart() ? "weft::sm90::SplitBackward" : "weft::sm90::AttentionBackward",
        config = fmt::format("{}Config<{}, {}, weft::ScoreRow<{}>>",
                             isSingle() ? "weft::sm90::SingleBackward" : prefix, shape, tile,
                             gradients.rowFloats);
    const std::string counter = names.reserve("tilesTaken");
    program.globals.push_back(
        {.kind = Statement::Kind::declare, .type = "unsigned", .name = counter});
    std::vector<NamedArgument> arguments;
    for (const Moved &one : moved())
      arguments.push_back({one.member, "&" + mapNames.at(one.tensor->value)});
    arguments.push_back({"counter", "&" + counter});

    const std::string rows = isApart() ? "rows" : "keys",
                      columns = isApart() ? "columns" : "queries";
    const Block checks = {
        launchCheckOf({fmt::format("{}.queries == {}", shape, attention().queries),
                       fmt::format("{}.keys == {}", shape, attention().keys),
                       fmt::format("{}.headDim == {}", shape, attention().headDim),
                       fmt::format("{}.valueDim == {}", shape, attention().valueDim),
                       fmt::format("{}.heads == {}", shape, attention().heads),
                       fmt::format("{}.headsOfGroup == {}", shape, headsOfGroup())},
                      "these extents"),
        launchCheckOf(mapTerms(), "maps of these heads"),
        launchCheckOf({fmt::format("{}.{} == {}", tile, columns, knobs.tileQueries),
                       fmt::format("{}.{} == {}", tile, rows, knobs.tileKeys)},
                      fmt::format("{} blocks and maps of these tiles",
                                  sm90AttentionBackwardBlocks(problem, knobs)))};
    program.body.insert(program.body.begin(), checks.begin(), checks.end());
    std::string assertion =
        fmt::format("static_assert({0}::sharedBytes == {1} && {0}::threads == {2}", config,
                    sm90AttentionBackwardSharedBytes(problem, knobs, gradients.rowFloats),
                    sm90AttentionBackwardThreads(knobs));
    if (isApart())
      assertion +=
          fmt::format(" && {}::tiles == {}", config, sm90AttentionBackwardTiles(problem, knobs));
    else addSemaphores(arguments, assertion, config);
    const std::string keyParts =
        isApart() && hasParts() ? addKeyParts(assertion, gradients.rowFloats) : "";
    program.body.push_back(evaluate(assertion + ")"));

    const AttentionBackwardRegion &r = region;
    for (const auto &[member, scale] :
         {std::pair("dQScale", r.dQScale), {"dKScale", r.dKScale}, {"dVScale", r.dVScale}})
      arguments.push_back({member, floatLiteral(scale).str()});
    arguments.push_back({"row", gradients.row});
    arguments.push_back({"gradients", gradients.gradients});
    arguments.push_back({"gradientsWithoutMasks", gradients.gradientsWithoutMasks});
    if (gradients.hasMasks) arguments.push_back({"coverage", gradients.coverage});
    if (region.hasDropout && isApart()) {
      arguments.push_back({"dropout", gradients.dropout});
      arguments.push_back({"dropoutTransposed", gradients.dropoutTransposed});
    } else if (region.hasDropout) {
      arguments.push_back({"dropout", gradients.dropoutTransposed});
    }
    if (hasParts() && !isApart()) arguments.push_back({"partSemaphores", partSemaphores + ".of"});
    addOrder(arguments, "keyOrder", orderOfKeys,
             "tiles of keys, those first that most queries see");
    addOrder(arguments, "queryOrder", orderOfQueries,
             "tiles of queries, those first that see most keys");
    if (region.storedScores >= 0) arguments.push_back({"storeScores", gradients.storeScores});
    const std::string first = attention().packed ? addPacked() + ", " : keyParts,
                      function = isSingle()           ? "singleBackward"
                                 : !keyParts.empty()  ? "splitBackwardOfParts"
                                 : isApart()          ? "splitBackward"
                                 : attention().packed ? "packedAttentionBackward"
                                                      : "attentionBackward",
                      parts = keyParts.empty() ? "" : fmt::format(", {}", groupParts());
    program.body.push_back(templateCall(
        fmt::format("weft::sm90::{}<{}, {}, {}{}>", function, type, shape, tile, parts),
        fmt::format("{}{}Args", first, prefix), arguments));
  }

  /// Where sequences lie among packed tokens; returns its name. Rows of gradients that are of none
  /// become zeros first, as long as all threads have registers.
  std::string addPacked() {
    std::string name = names.reserve("sequences");
    program.body.push_back(
        {.kind = Statement::Kind::declare,
         .type =
             fmt::format("weft::PackedSequences<{}, {}, {}, {}, {}>", attention().packed->sequences,
                         attention().packed->divisor, attention().packed->offsetStride,
                         extentOf(attention().queryAxis), axes[size_t(region.packed->q)]),
         .name = name,
         .value = fmt::format("{{{}}}", inputs.at(region.packed->input)),
         .isConstant = true});
    for (const auto &[tensor, columns] : {std::pair(&problem.dQ, attention().headDimAxis),
                                          {&problem.dK, attention().headDimAxis},
                                          {&problem.dV, attention().valueDimAxis}}) {
      const std::string &output = outputs.at(tensor->operand - inputs.size()),
                        row = names.reserve(output + "_row");
      program.body.push_back(
          rowFunction(row, output, placeOfHead(attention(), *tensor, "head"), tensor->rowStride));
      program.body.push_back(
          evaluate(fmt::format("weft::zeroUnused<{}, {}, true>({}, {}, threadIdx.x, {})",
                               extentOf(columns), extentProduct(kernel, attention().headAxes, axes),
                               name, row, sm90AttentionBackwardThreads(knobs))));
    }
    return name;
  }

  /// What orders the sums of the queries' gradient and counts parts of the keys', and where both
  /// are.
  void addSemaphores(std::vector<NamedArgument> &arguments, std::string &assertion,
                     const std::string &config) {
    const std::string semaphores = names.reserve("semaphores");
    program.globals.push_back({.kind = Statement::Kind::declare,
                               .type = fmt::format("weft::sm90::Semaphores<{}>",
                                                   sm90AttentionBackwardSemaphores(problem, knobs)),
                               .name = semaphores});
    assertion +=
        fmt::format(" && {0}::semaphores == {1} && {2} == {3}", config,
                    sm90AttentionBackwardSemaphores(problem, knobs),
                    hasParts() ? fmt::format("({0}::sumFloats + {0}::partsFloats) * 4", config)
                               : fmt::format("{0}::sumFloats * 4", config),
                    sm90AttentionBackwardWorkspaceBytes(problem, knobs));
    arguments.push_back({"semaphores", semaphores + ".of"});
    arguments.push_back({"sums", sums});
    if (!hasParts()) return;
    addPartSemaphores();
    assertion += fmt::format(" && {}::partSemaphores == {}", config,
                             sm90AttentionBackwardPartSemaphores(problem, knobs));
  }
  void addPartSemaphores() {
    partSemaphores = names.reserve("partSemaphores");
    program.globals.push_back(
        {.kind = Statement::Kind::declare,
         .type = fmt::format("weft::sm90::Semaphores<{}>",
                             sm90AttentionBackwardPartSemaphores(problem, knobs)),
         .name = partSemaphores});
  }
  /// Where parts of the gradients of keys are, of gradients apart: the first argument of the call.
  std::string addKeyParts(std::string &assertion, int rowFloats) {
    addPartSemaphores();
    const std::string config =
        fmt::format("weft::sm90::KeyPartsConfig<{}, {}, weft::ScoreRow<{}>, {}>", shape, tile,
                    rowFloats, groupParts());
    assertion += fmt::format(" && {0}::semaphores == {1} && {0}::floats * 4 == {2}", config,
                             sm90AttentionBackwardPartSemaphores(problem, knobs),
                             sm90AttentionBackwardWorkspaceBytes(problem, knobs));
    return fmt::format("weft::sm90::KeyParts{{{}, {}.of}}, ", sums, partSemaphores);
  }

  const Kernel &kernel;
  const Configuration &configuration;
  const Sm90AttentionBackwardKnobs &knobs;
  const AttentionBackwardRegion region;
  const AttentionBackwardProblem problem;
  const TileOrder orderOfKeys, orderOfQueries;  // of gradients apart
  Names names;
  Program program;
  std::vector<std::string> axes, inputs, outputs;
  std::map<ValueId, std::string> mapNames;  // of values that TMA moves
  std::string shape = "shape", tile = "tile", sums, partSemaphores, dScores;
};

}  // namespace

Program lowerSm90AttentionBackward(const Kernel &kernel, const Configuration &configuration,
                                   const Sm90AttentionBackwardKnobs &knobs) {
  return Sm90AttentionBackwardLowering(kernel, configuration, knobs).run();
}

}  // namespace weft::codegen
