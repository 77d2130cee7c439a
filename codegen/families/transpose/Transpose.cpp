// The transpose family: one tensor from one layout to another. A tile of it (TransposeTile.h) goes
// through shared memory, so that both sides move whole vectors of neighbours in long runs; where
// both sides have long rows in common, a map kernel copies them, or RowCopy.h element by element.
#include "codegen/families/transpose/Transpose.h"
#include "codegen/families/transpose/TransposeKnobs.h"

#include "codegen/families/transpose/DimensionProgram.h"
#include "codegen/families/transpose/RowCopy.h"
#include "codegen/families/transpose/TransposeTile.h"
#include "kernel/Error.h"

#include <algorithm>

namespace weft::codegen {
namespace {

/// Builds the tiled program. In shared memory the tile is packed as the operand has it, with
/// padding behind every `pitch` elements so that walking it as the result has it meets all banks;
/// in units of vectors where both sides share the innermost dimension, of elements else.
class TiledTranspose : DimensionProgram {
public:
  TiledTranspose(const Kernel &kernel, const TransposeTile &tile, const TransposeKnobs &knobs)
      : DimensionProgram(kernel, tile.dimensions, "transpose"),
        tile(tile),
        knobs(knobs),
        wholeVectors(tile.read == tile.write) {}

  Program run() {
    for (const std::string &extent : extents) {
      in.push_back(names.reserve("in_" + extent));
      sides.push_back(names.reserve("tile_" + extent));
      counts.push_back(names.reserve("tiles_" + extent));
    }
    for (std::string *word : {&readName, &writeName, &threads, &shared, &vectors, &step, &element,
                              &flat, &packed, &position, &slot, &pitch, &padding})
      *word = names.reserve(*word);
    choosePitch();
    constants();
    body();
    program.launchBounds = threads;
    program.mapping = describe(kernel, knobs);
    pruneUnused(program);
    return std::move(program);
  }

private:
  int rank() const { return static_cast<int>(tile.dimensions.size()); }
  int64_t tilesAlong(int d) const {
    return (tile.dimensions[d].extent + tile.dimensions[d].tile - 1) / tile.dimensions[d].tile;
  }
  const std::string &width(bool loads) const { return loads ? readName : writeName; }
  int64_t unit() const { return wholeVectors ? tile.readWidth : 1; }

  /// Rows of the tile that lie one after another in the result must not meet the same banks.
  void choosePitch() {
    int64_t elements = tile.elements(), pad = 0;
    if (!wholeVectors) {
      elements = tile.strideInTile(tile.write);
      pad = std::max<int64_t>(1, 4 / tile.elementBytes);
    } else {
      for (int d : tile.byResult())
        if (pad == 0 && tile.strideInTile(d) > tile.dimensions[tile.read].tile)
          elements = tile.strideInTile(d), pad = tile.dimensions[tile.read].tile;
    }
    pitchUnits = elements / unit();
    paddingUnits = pad / unit();
  }

  void constants() {
    ConstantLine tileLine{.type = "int", .note = "of the tile"};
    ConstantLine countLine{.type = "int", .note = "along each axis"};
    for (int d = 0; d < rank(); ++d) {
      if (tile.dimensions[d].tile == 1) continue;
      tileLine.entries.emplace_back(sides[d], tile.dimensions[d].tile);
      const ConstantValue extent = ConstantValue::name(extents[d]),
                          side = ConstantValue::name(sides[d]);
      countLine.entries.emplace_back(
          counts[d], (tile.dimensions[d].isCut() ? extent + side - 1 : extent) / side);
    }
    program.constants = {
        extentLine(),
        tileLine,
        {"int", {{readName, tile.readWidth}, {writeName, tile.writeWidth}}, "elements an access"},
        {"int", {{threads, knobs.threads}}, "a block"},
        {"int",
         {{pitch, pitchUnits}, {padding, paddingUnits}},
         wholeVectors ? "vectors of the tile between gaps, of a gap"
                      : "elements of the tile between gaps, of a gap"},
        countLine};
    addStrides();
  }

  /// The address of the element at the tile's corner plus the coordinates inside the tile.
  std::string pointer(const std::string &tensor) const {
    std::string text = tensor;
    for (int d = 0; d < rank(); ++d) {
      const bool moves = tile.dimensions[d].tile > 1, stands = tilesAlong(d) > 1;
      const std::string coordinate = moves && stands ? fmt::format("({} + {})", at[d], in[d])
                                     : moves         ? in[d]
                                                     : at[d];
      if (!moves && !stands) continue;
      text += " + " + along(tensor, size_t(d), coordinate);
    }
    return text;
  }

  void body() {
    const std::string elementType =
        wholeVectors ? fmt::format("weft::Packed<{}, {}>", type, readName) : type;
    std::vector<ConstantValue> factors;
    for (int d : tile.byOperand()) factors.push_back(ConstantValue::name(sides[d]));
    ConstantValue units = ConstantValue::product(factors);
    if (wholeVectors) units = units / ConstantValue::name(readName);
    program.constants.push_back(
        {"int", {{vectors, units}}, wholeVectors ? "vectors of a tile" : "elements of a tile"});
    program.body.push_back(
        {.kind = Statement::Kind::shared,
         .type = elementType,
         .name = fmt::format("{}[{} + {} / {} * {}]", shared, vectors, vectors, pitch, padding)});
    corner();
    program.body.push_back(space());
    half(true);
    program.body.push_back({.kind = Statement::Kind::barrier});
    half(false);
  }

  /// Where the tile of this block begins. Neighbouring blocks stand side by side in the operand,
  /// then in the result, whose pages cost more to leave.
  void corner() {
    std::vector<int> order;
    for (int d = 0; d < rank(); ++d)
      if (tilesAlong(d) > 1) order.push_back(d);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      if ((a == tile.read) != (b == tile.read)) return a == tile.read;
      return tile.dimensions[a].to < tile.dimensions[b].to;
    });
    std::string divisor;
    int64_t blocks = 1;
    for (int d : order) {
      const int64_t count = tilesAlong(d);
      const bool tiled = tile.dimensions[d].tile > 1;
      std::string text =
          divisor.empty() ? "blockIdx.x" : fmt::format("blockIdx.x / {}", asOperand(divisor));
      const std::string &countName = tiled ? counts[d] : extents[d];
      if (d != order.back()) text += " % " + countName;
      if (tiled) text += " * " + sides[d];
      program.body.push_back(declareConstant(wide ? "weft::Offset" : "int", at[d], text));
      divisor = divisor.empty() ? countName : fmt::format("{} * {}", divisor, countName);
      blocks *= count;
    }
    if (blocks > mostIndex)
      throw Error::unsupported("kernel '{}': {} tiles; the limit is {}", kernel.name, blocks,
                               mostIndex);
    program.launch = {.grid = {blocks, 1, 1}, .block = {knobs.threads, 1, 1}};
    checkLaunch(blocks);
  }

  void checkLaunch(int64_t blocks) {
    std::vector<Code> shape, tiles;
    int64_t others = 1;  // blocks along dimensions that are not tiled
    for (int d = 0; d < rank(); ++d) {
      shape.push_back(fmt::format("{} == {}", extents[d], tile.dimensions[d].extent));
      if (tile.dimensions[d].tile == 1) others *= tilesAlong(d);
      else
        tiles.push_back(
            fmt::format("(({0} + {1} - 1) / {1})", tile.dimensions[d].extent, sides[d]));
    }
    tiles.push_back(std::to_string(others));
    const Block checks = {launchCheckOf(shape, "these extents"),
                          launchCheckOf({fmt::format("{} == {}", fmt::join(tiles, " * "), blocks)},
                                        fmt::format("{} blocks", blocks)),
                          launchCheckOf({fmt::format("{} == {}", threads, knobs.threads)},
                                        fmt::format("{} threads a block", knobs.threads))};
    program.body.insert(program.body.begin(), checks.begin(), checks.end());
  }

  /// Global to tile in the operand's order, or tile to global in the result's.
  void half(bool loads) {
    const std::vector<int> order = loads ? tile.byOperand() : tile.byResult();
    const int64_t own = loads ? tile.readWidth : tile.writeWidth, count = tile.elements() / own;
    Block inside = {
        declareConstant("int", flat, fmt::format("{} * {} + threadIdx.x", step, threads))};
    std::string divisor;
    for (size_t i = 0; i < order.size(); ++i) {
      const bool isVector = i == 0 && own > 1;
      const std::string side =
          isVector ? fmt::format("({} / {})", sides[order[i]], width(loads)) : sides[order[i]];
      std::string text = divisor.empty() ? flat : fmt::format("{} / {}", flat, asOperand(divisor));
      if (i + 1 < order.size()) text += " % " + side;
      if (isVector) text += " * " + width(loads);
      inside.push_back(declareConstant("int", in[order[i]], text));
      divisor = divisor.empty() ? side : fmt::format("{} * {}", divisor, side);
    }
    Block moves = loads ? loadMoves() : storeMoves();
    std::vector<std::string> conditions;
    if (count % knobs.threads != 0)
      conditions.push_back(fmt::format("{} < {}{}", flat, vectors,
                                       own > 1 && !wholeVectors ? " / " + width(loads) : ""));
    for (int d : tile.byOperand())
      if (tile.dimensions[d].isCut())
        conditions.push_back(fmt::format("{} + {} < {}", at[d], in[d], extents[d]));
    if (conditions.empty()) inside.insert(inside.end(), moves.begin(), moves.end());
    else
      inside.push_back(guard(fmt::format("{}", fmt::join(conditions, " && ")), std::move(moves)));
    const std::string perThread =
        wholeVectors || own == 1 ? vectors : fmt::format("{} / {}", vectors, width(loads));
    program.body.push_back(
        loop(step, fmt::format("({0} + {1} - 1) / {1}", perThread, threads), 0, std::move(inside)));
  }

  std::string slotText(const std::string &where) const {
    return fmt::format("{} + {} / {} * {}", where, where, pitch, padding);
  }

  Block loadMoves() const {
    const std::string call = fmt::format("weft::loadPacked<{}>({})", readName, pointer(from));
    if (wholeVectors) return {assign(fmt::format("{}[{}]", shared, slotText(flat)), call)};
    return {declareConstant("int", position, fmt::format("{} * {}", flat, readName)),
            declareConstant("int", slot, slotText(position)), declareConstant("auto", packed, call),
            loop(element, readName, 0,
                 {assign(fmt::format("{}[{} + {}]", shared, slot, element),
                         fmt::format("{}.at[{}]", packed, element))})};
  }

  Block storeMoves() const {
    std::vector<std::string> terms;
    std::string stride;
    for (int d : tile.byOperand()) {
      const bool isVector = wholeVectors && d == tile.read;
      terms.push_back(isVector         ? fmt::format("{} / {}", in[d], readName)
                      : stride.empty() ? in[d]
                                       : fmt::format("{} * {}", in[d], asOperand(stride)));
      const std::string side = isVector ? fmt::format("{} / {}", sides[d], readName) : sides[d];
      stride = stride.empty() ? side : fmt::format("{} * {}", stride, side);
    }
    Block block = {declareConstant("int", position, fmt::format("{}", fmt::join(terms, " + ")))};
    if (wholeVectors) {
      block.push_back(evaluate(fmt::format("weft::storePacked<{}>({}, {}[{}])", writeName,
                                           pointer(to), shared, slotText(position))));
      return block;
    }
    block.push_back(declareConstant("int", slot, slotText(position)));
    block.push_back(declare(fmt::format("weft::Packed<{}, {}>", type, writeName), packed));
    block.push_back(loop(
        element, writeName, 0,
        {assign(fmt::format("{}.at[{}]", packed, element),
                fmt::format("{}[{} + {} * ({} + {})]", shared, slot, element, pitch, padding))}));
    block.push_back(
        evaluate(fmt::format("weft::storePacked<{}>({}, {})", writeName, pointer(to), packed)));
    return block;
  }

  const TransposeTile &tile;
  const TransposeKnobs &knobs;
  const bool wholeVectors;
  int64_t pitchUnits = 1, paddingUnits = 0;
  std::vector<std::string> in, sides, counts;
  std::string readName = "readWidth", writeName = "writeWidth", threads = "threads",
              shared = "tile", vectors = "share", step = "s", element = "e", flat = "flat",
              packed = "packed", position = "position", slot = "slot", pitch = "pitch",
              padding = "gap";
};

}  // namespace

Program lowerTranspose(const Kernel &kernel, const Configuration &configuration,
                       const TransposeKnobs &knobs) {
  const TransposeTile tile = transposeTile(kernel, configuration, knobs);
  if (!tile.isCopy()) return TiledTranspose(kernel, tile, knobs).run();
  if (knobs.vectorWidth == 1 && !tile.dimensions.empty()) return lowerRowCopy(kernel, tile, knobs);
  const AxisId axis = tile.write >= 0 ? tile.dimensions[tile.write].axes.back() : AxisId();
  const auto copying =
      std::ranges::find_if(families(), [](const Family *family) { return family->lowerCopy; });
  if (copying == families().end())
    throw Error::checkFailed("kernel '{}': no family copies", kernel.name);
  return (*copying)->lowerCopy(kernel, configuration, axis, knobs.vectorWidth, knobs.threads);
}

}  // namespace weft::codegen
