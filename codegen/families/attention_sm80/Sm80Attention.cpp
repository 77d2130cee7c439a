// A program that calls the kernel template of fused attention; see Sm80Attention.h.
#include "codegen/families/attention_sm80/Sm80Attention.h"

#include "codegen/EntryName.h"
#include "codegen/ExpressionText.h"
#include "codegen/families/attention/AttentionDropout.h"
#include "codegen/families/attention/AttentionPlaces.h"
#include "codegen/families/attention/AttentionScore.h"
#include "codegen/families/attention/RotatedQueries.h"
#include "codegen/families/attention_sm80/Sm80AttentionTile.h"
#include "codegen/families/contraction/ContractionTexts.h"
#include "kernel/Error.h"
#include "kernel/UnusedTokens.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>

namespace weft::codegen {
namespace {

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
                                const Configuration &configuration,
                                const Sm80AttentionKnobs &knobs) {
  const auto check = [&](const std::string &reason) {
    if (!reason.empty()) throw Error::unsupported("kernel '{}': {}", kernel.name, reason);
  };
  const Expected<AttentionProblem> answer = attentionProblem(kernel, region, configuration);
  if (!answer) check(answer.error().what());
  check(sm80AttentionLayoutRejection(*answer));
  check(attentionDropoutRejection(kernel, region, *answer));
  check(rotatedQueriesRejection(kernel, region));
  check(sm80AttentionTileRejection(*answer, knobs, sm80ScoreNeeds(kernel, region, *answer)));
  if (const int64_t blocks = sm80AttentionBlocks(*answer, knobs);
      blocks > std::numeric_limits<int32_t>::max())
    check(fmt::format("{} blocks; the limit is {}", blocks, std::numeric_limits<int32_t>::max()));
  return *answer;
}

class Sm80AttentionLowering {
public:
  Sm80AttentionLowering(const Kernel &kernel, const Configuration &configuration,
                        const Sm80AttentionKnobs &knobs)
      : kernel(kernel),
        configuration(configuration),
        knobs(knobs),
        region(checkedRegion(kernel)),
        problem(checkedProblem(kernel, region, configuration, knobs)),
        isTf32(problem.operandType == DType::tf32) {}

  Program run() {
    program.entry = names.reserve(entryName(kernel));
    nameAxes();
    nameTensors();
    const ScoreContext context{.kernel = kernel,
                               .configuration = configuration,
                               .region = region,
                               .problem = problem,
                               .names = names,
                               .axes = axes,
                               .inputs = inputs,
                               .behindEnds = BehindEnds::last};
    const AttentionScore score = attentionScore(context);
    addHeaders(score.headers);
    addHeaders(std::vector<std::string>{isTf32 ? "weft/sm80_tf32_attention.cuh"
                                               : "weft/sm80_attention.cuh"});
    if (knobs.splits > 1) addHeaders(std::vector<std::string>{"weft/sm80_attention_splits.cuh"});
    program.constants.insert(program.constants.end(), score.constants.begin(),
                             score.constants.end());
    describeProblem(score.mayScaleLast);
    describeTile();
    addChecks();
    program.body.insert(program.body.end(), score.functions.begin(), score.functions.end());
    const std::string sequences = addSequences();
    std::string places = addPlaces(sequences);
    if (region.turned) places = withRotatedQueries(context, places, sequences);
    call(score, places, sequences);
    if (problem.packed && !areUnusedUnread(kernel)) zeroUnused(sequences);
    program.launchBounds = fmt::format("{}, {}", sm80AttentionThreads(knobs), residentBlocks());
    program.launch = {.grid = {sm80AttentionBlocks(problem, knobs), 1, 1},
                      .block = {sm80AttentionThreads(knobs), 1, 1},
                      .sharedBytes = sm80AttentionSharedBytes(problem, knobs)};
    program.mapping = describe(kernel, knobs);
    pruneUnused(program);
    return std::move(program);
  }

private:
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

  std::string addTensor(ValueId value, int index, Parameter::Kind kind) {
    const std::string name = names.reserve(kernel.values[size_t(value)].name);
    program.parameters.push_back(
        {.kind = kind,
         .index = index,
         .name = name,
         .type = std::string(cudaNameOf(kernel.values[size_t(value)].dtype))});
    return name;
  }

  void nameTensors() {
    for (size_t i = 0; i < kernel.inputs.size(); ++i)
      inputs.push_back(addTensor(kernel.inputs[i], int(i), Parameter::Kind::input));
    for (size_t i = 0; i < kernel.outputs.size(); ++i)
      outputs.push_back(addTensor(kernel.outputs[i], int(i), Parameter::Kind::output));
    if (knobs.splits == 1) return;
    rows = names.reserve("rows");
    program.parameters.push_back(
        {.kind = Parameter::Kind::workspace, .index = 0, .name = rows, .type = "float"});
  }

  void addHeaders(const auto &headers) {
    program.headers.insert(program.headers.end(), headers.begin(), headers.end());
    std::ranges::sort(program.headers);
    const auto last = std::ranges::unique(program.headers);
    program.headers.erase(last.begin(), last.end());
  }

  ConstantValue extentOf(AxisId axis) const {
    return axis < 0 ? ConstantValue(1) : ConstantValue::name(axes[size_t(axis)]);
  }

  void describeProblem(bool scalesLast) {
    const bool isOutputAligned = problem.output.hasAlignedRows(sizeOf(problem.outputType), 16);
    std::vector<ConstantMember> members = {
        {"heads", extentProduct(kernel, problem.headAxes, axes), true},
        {"queries", extentOf(problem.queryAxis)},
        {"keys", extentOf(problem.keyAxis)},
        {"headDim", extentOf(problem.headDimAxis)},
        {"valueDim", extentOf(problem.valueDimAxis)},
        {"rowQ", problem.q.rowStride, true},
        {"rowK", problem.k.rowStride},
        {"rowV", problem.v.rowStride},
        {"rowOutput", problem.output.rowStride},
        {"rowLogSums", problem.logSums ? problem.logSums->rowStride : 0},
        {"isOutputAligned", ConstantValue::truth(isOutputAligned), true},
        {"scale", ConstantValue::text(floatLiteral(problem.scale))},
        {"scalesLast", ConstantValue::truth(scalesLast)}};
    if (problem.packed) members.push_back({"isPacked", ConstantValue::truth(true), true});
    else addPages(members);
    if (problem.zeroesUnseen) members.push_back({"zeroesUnseen", ConstantValue::truth(true), true});
    program.constants.push_back({"weft::sm80::AttentionShape",
                                 {{shape, ConstantValue::members(std::move(members))}},
                                 "",
                                 {ConstantSubject::Kind::strides, "the result"}});
  }

  /// Members of the shape.
  void addPages(std::vector<ConstantMember> &members) const {
    if (!problem.paged) return;
    members.push_back({"pagePositions", extentOf(region.paged->kPositions), true});
    members.push_back({"pages", extentOf(region.paged->kPages)});
    members.push_back({"pageK", problem.paged->kStride});
    members.push_back({"pageV", problem.paged->vStride});
    members.push_back({"strideOfEntry", problem.paged->entryStride});
  }

  void describeTile() {
    std::string text = fmt::format("{{.queries = {}, .keys = {}, .stages = {}", knobs.tileQueries,
                                   knobs.tileKeys, knobs.stages);
    if (knobs.packed != 0)
      text +=
          fmt::format(", .packedHeads = {}{}", problem.headsOfGroup,
                      masksDifferInGroup(kernel, region, problem) ? ", .masksDiffer = true" : "");
    if (knobs.splits > 1) text += fmt::format(", .splits = {}", knobs.splits);
    program.constants.push_back({"weft::sm80::AttentionTile",
                                 {{tile, ConstantValue::text(text + "}")}},
                                 "",
                                 {ConstantSubject::Kind::unchecked}});
  }

  /// Few rows leave registers for several blocks. Of other tiles one block is named so that the
  /// compiler spends registers and does not spill for more.
  int residentBlocks() const {
    constexpr int64_t sharedBytesOfMultiprocessor = 228 * 1024;  // the most of any target
    return sm80AttentionJoins(knobs)
               ? sm80AttentionResidentBlocks(problem, knobs, sharedBytesOfMultiprocessor)
               : 1;
  }

  void addChecks() {
    const std::string config = fmt::format(
        "weft::sm80::{}<{}, {}>", isTf32 ? "Tf32AttentionConfig" : "AttentionConfig", shape, tile);
    const int64_t blocks = sm80AttentionBlocks(problem, knobs);
    const std::string partialBytes =
        knobs.splits == 1 ? ""
                          : fmt::format(" && weft::sm80::SplitConfig<{}, {}>::bytes == {}", shape,
                                        tile, sm80AttentionPartialBytes(problem, knobs));
    program.body.push_back(
        evaluate(fmt::format("static_assert({}::sharedBytes == {}{})", config,
                             sm80AttentionSharedBytes(problem, knobs), partialBytes)));
    program.body.push_back(
        launchCheckOf({fmt::format("{}.heads == {}", shape, problem.heads),
                       fmt::format("{}.queries == {}", shape, problem.queries),
                       fmt::format("{}.keys == {}", shape, problem.keys),
                       fmt::format("{}.headDim == {}", shape, problem.headDim),
                       fmt::format("{}.valueDim == {}", shape, problem.valueDim)},
                      "these extents"));
    const std::string what =
        fmt::format("{} blocks of {} threads", blocks, sm80AttentionThreads(knobs));
    if (sm80AttentionJoins(knobs)) {
      program.body.push_back(
          launchCheckOf({fmt::format("{}::blocks == {}", config, blocks),
                         fmt::format("{}::threads == {}", config, sm80AttentionThreads(knobs)),
                         fmt::format("{}.queries == {}", tile, knobs.tileQueries),
                         fmt::format("{}.splits == {}", tile, knobs.splits)},
                        what));
      if (knobs.packed != 0)
        program.body.push_back(launchCheckOf(
            {fmt::format("{}.packedHeads == {}", tile, problem.headsOfGroup)}, "packed heads"));
      return;
    }
    program.body.push_back(
        launchCheckOf({fmt::format("{} * (({} + {}.queries - 1) / {}.queries) == {}", problem.heads,
                                   problem.queries, tile, tile, blocks),
                       fmt::format("2 * {}.queries == {}", tile, sm80AttentionThreads(knobs))},
                      what));
  }

  /// Where sequences lie among packed tokens; returns its name, of none an empty one.
  std::string addSequences() {
    if (!problem.packed) return "";
    const std::string name = names.reserve("sequences");
    program.body.push_back(
        {.kind = Statement::Kind::declare,
         .type = fmt::format("weft::PackedSequences<{}, {}, {}, {}, {}>", problem.packed->sequences,
                             problem.packed->divisor, problem.packed->offsetStride,
                             extentOf(problem.queryAxis), axes[size_t(region.packed->output)]),
         .name = name,
         .value = fmt::format("{{{}}}", inputs.at(region.packed->input)),
         .isConstant = true});
    return name;
  }

  /// Rows of the output that are of no sequence become zeros, and the logarithms of their sums.
  void zeroUnused(const std::string &sequences) {
    const auto zero = [&](const AttentionTensor &tensor, std::string row, const std::string &width,
                          const std::string &isAligned) {
      row = names.reserve(row);
      program.body.push_back(rowFunction(row, outputs.at(tensor.operand - inputs.size()),
                                         placeOfHead(problem, tensor, "head"), tensor.rowStride));
      program.body.push_back(
          evaluate(fmt::format("weft::zeroUnused<{}, {}, {}>({}, {}, threadIdx.x, {})", width,
                               extentProduct(kernel, problem.headAxes, axes), isAligned, sequences,
                               row, sm80AttentionThreads(knobs))));
    };
    zero(problem.output, "outputRow", extentOf(problem.valueDimAxis).str(),
         shape + ".isOutputAligned");
    if (problem.logSums) zero(*problem.logSums, "logSumRow", "1", "false");
  }

  /// A function of a head that says where its elements begin; returns its name.
  std::string addPlaces(const std::string &sequences) {
    const std::string name = names.reserve("placesOfHead"), head = names.reserve("number");
    std::string members;
    for (const auto &[member, tensor] :
         std::initializer_list<std::pair<const char *, const AttentionTensor *>>{
             {"q", &problem.q},
             {"k", &problem.k},
             {"v", &problem.v},
             {"output", &problem.output},
             {"logSums", problem.logSums ? &*problem.logSums : nullptr}})
      if (tensor)
        members += fmt::format("{}.{} = {}", members.empty() ? "" : ", ", member,
                               placeOfHead(problem, *tensor, head)) +
                   (sequences.empty() ? "" : fmt::format(" + first * {}", tensor->rowStride));
    Block body;
    if (!sequences.empty())
      body.push_back({.kind = Statement::Kind::declare,
                      .type = "weft::Offset",
                      .name = "first",
                      .value = fmt::format("{}.of({}).first", sequences, head),
                      .isConstant = true});
    if (problem.paged) members += fmt::format(", .table = {}", placeOfSequence(problem, head));
    body.push_back(evaluate(fmt::format("return weft::sm80::HeadPlaces{{{}}}", members)));
    program.body.push_back({.kind = Statement::Kind::function,
                            .type = fmt::format("int {}", head),
                            .name = name,
                            .body = std::move(body)});
    return name;
  }

  /// The same function, which says what turns the queries of a head, too.
  std::string withRotatedQueries(const ScoreContext &context, const std::string &places,
                                 const std::string &sequences) {
    RotatedQueryTexts texts = rotatedQueries(context, sequences);
    texts.headers.insert("weft/sm80_rotated_queries.cuh");
    addHeaders(texts.headers);
    program.constants.insert(program.constants.end(), texts.constants.begin(),
                             texts.constants.end());
    program.body.insert(program.body.end(), texts.functions.begin(), texts.functions.end());
    return fmt::format("weft::sm80::rotatedPlaces<{}>({}, {}, {})", texts.columns, places,
                       texts.position, texts.frequency);
  }

  /// Where the rows of every split are, and counters of those that have arrived; returns its name.
  std::string addPartials() {
    const std::string name = names.reserve("partials"), arrivals = names.reserve("arrivals");
    program.globals.push_back(
        {.kind = Statement::Kind::declare,
         .type = fmt::format("weft::sm80::SplitArrivals<{}, {}>", shape, tile),
         .name = arrivals});
    program.body.push_back({.kind = Statement::Kind::declare,
                            .type = fmt::format("weft::sm80::SplitPartials<{}, {}>", shape, tile),
                            .name = name,
                            .value = fmt::format("{{{}, {}}}", rows, arrivals)});
    return name;
  }

  /// The order of tiles as a table in device memory, where block masks make one.
  void addOrder(std::vector<NamedArgument> &arguments) {
    const TileOrder order = sm80AttentionTileOrder(kernel, region, problem, knobs);
    if (order.tiles.empty()) return;
    const std::string name = names.reserve("tileOrder");
    const size_t size = order.tiles.size();
    program.globals.push_back(
        {.kind = Statement::Kind::declare,
         .type = Code::plain(fmt::format("weft::sm80::TileTable<{}>", size)),
         .name = name,
         .value = Code::plain(fmt::format("{{{{{}}}}}", fmt::join(order.tiles, ", "))),
         .note = "tiles of queries, those first that see most keys",
         .isConstant = true});
    arguments.push_back({"order", fmt::format("weft::sm80::TableOrder<{}, {}>{{{}}}", size,
                                              order.longTiles, name)});
  }

  void call(const AttentionScore &score, const std::string &places, const std::string &sequences) {
    std::vector<NamedArgument> arguments = {
        {"q", inputs[problem.q.operand]},
        {"k", inputs[problem.k.operand]},
        {"v", inputs[problem.v.operand]},
        {"output", outputs.at(problem.output.operand - inputs.size())},
        {"placesOfHead", places}};
    if (problem.logSums)
      arguments.push_back({"logSums", outputs.at(problem.logSums->operand - inputs.size())});
    if (score.hasMasks || score.hasValueOps) arguments.push_back({"score", score.score});
    if (score.hasValueOps) arguments.push_back({"scoreWithoutMasks", score.scoreWithoutMasks});
    if (score.hasMasks) arguments.push_back({"coverage", score.coverage});
    if (knobs.splits > 1) arguments.push_back({"partials", "&" + addPartials()});
    if (problem.paged) arguments.push_back({"table", inputs[problem.paged->table]});
    if (region.hasDropout)
      addAttentionDropout(attentionDropout(kernel, region, problem, names, axes), program,
                          arguments);
    if (problem.packed) arguments.push_back({"sequences", sequences});
    addOrder(arguments);
    program.body.push_back(
        templateCall(isTf32 ? fmt::format("weft::sm80::tf32Attention<{}, {}>", shape, tile)
                            : fmt::format("weft::sm80::attention<{}, {}, {}>",
                                          cudaNameOf(problem.operandType), shape, tile),
                     "weft::sm80::AttentionArgs", arguments));
  }

  const Kernel &kernel;
  const Configuration &configuration;
  const Sm80AttentionKnobs &knobs;
  const AttentionRegion region;
  const AttentionProblem problem;
  const bool isTf32;
  Names names;
  Program program;
  std::vector<std::string> axes, inputs, outputs;
  std::string shape = "shape", tile = "tile", rows;
};

}  // namespace

Program lowerSm80Attention(const Kernel &kernel, const Configuration &configuration,
                           const Sm80AttentionKnobs &knobs) {
  return Sm80AttentionLowering(kernel, configuration, knobs).run();
}

}  // namespace weft::codegen
