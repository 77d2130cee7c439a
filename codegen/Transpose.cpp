// The transpose family: one tensor from one layout to another. Where the fastest axes differ, a square tile of the two goes
// through shared memory, so that both sides move whole vectors of neighbours; where they agree, a map kernel does.
#include "codegen/Families.h"
#include "codegen/Names.h"
#include "kernel/Error.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace weft::codegen {
namespace {

/// The two layouts, by dimension of the tensor.
struct Tensors {
  const Kernel &kernel;
  std::vector<int> axes{};
  std::vector<int64_t> extents{}, from{}, to{};
  int64_t fromAlignment = 16, toAlignment = 16, size = 1;

  /// The dimension of stride 1; -1 if there is none.
  static int fastest(const std::vector<int64_t> &strides, const std::vector<int64_t> &extents) {
    for (size_t d = 0; d < strides.size(); ++d)
      if (strides[d] == 1 && extents[d] > 1) return static_cast<int>(d);
    return -1;
  }
  /// The widest access up to `wish` elements along `dimension` that all addresses allow.
  int width(int wish, int dimension, const std::vector<int64_t> &strides, int64_t alignment, int tile) const {
    int width = std::min<int>(wish, static_cast<int>(16 / size));
    const auto allows = [&] {
      bool aligned = extents[dimension] % width == 0 && tile % width == 0 && alignment % (width * size) == 0;
      for (size_t d = 0; d < strides.size(); ++d)
        aligned &= static_cast<int>(d) == dimension || extents[d] == 1 || strides[d] % width == 0;
      return aligned;
    };
    while (width > 1 && !allows()) width /= 2;
    return std::max(width, 1);
  }
  bool wide() const {
    int64_t last = 0;
    for (const auto &strides : {from, to}) {
      int64_t own = 0;
      for (size_t d = 0; d < extents.size(); ++d) own += (extents[d] - 1) * strides[d];
      last = std::max(last, own);
    }
    return last > std::numeric_limits<int32_t>::max();
  }
};

Tensors tensorsOf(const Kernel &kernel, const Configuration &configuration) {
  const bool one = kernel.body.size() == 1 && (kernel.body[0].name == "identity" || kernel.body[0].name == "transpose");
  if (!one) throw Error::unsupported("kernel '{}': the transpose family takes one identity or transpose", kernel.name);
  const Value &from = kernel.values[kernel.inputs[0]], &to = kernel.values[kernel.outputs[0]];
  Tensors tensors{.kernel = kernel, .axes = from.axes};
  for (int axis : from.axes) tensors.extents.push_back(kernel.axes[axis].extent);
  std::vector<int64_t> toExtents;
  for (int axis : to.axes) toExtents.push_back(kernel.axes[axis].extent);
  tensors.from = stridesOf(configuration.inputs[0], tensors.extents);
  const std::vector<int64_t> toStrides = stridesOf(configuration.outputs[0], toExtents);
  for (int axis : from.axes) {
    const auto position = std::find(to.axes.begin(), to.axes.end(), axis);
    if (position == to.axes.end())
      throw Error::checkFailed("kernel '{}': the result lacks the axis '{}'", kernel.name, kernel.axes[axis].name);
    tensors.to.push_back(toStrides[position - to.axes.begin()]);
  }
  tensors.fromAlignment = configuration.inputs[0].alignment;
  tensors.toAlignment = configuration.outputs[0].alignment;
  tensors.size = sizeOf(from.dtype);
  return tensors;
}

/// Builds the tiled program.
class TiledTranspose {
public:
  TiledTranspose(const Kernel &kernel, const Tensors &tensors, const TransposeKnobs &knobs, int read, int write)
      : kernel(kernel), tensors(tensors), knobs(knobs), read(read), write(write), wide(tensors.wide()) {
    readWidth = tensors.width(knobs.vectorWidth, read, tensors.from, tensors.fromAlignment, knobs.tile);
    writeWidth = tensors.width(knobs.vectorWidth, write, tensors.to, tensors.toAlignment, knobs.tile);
    if (knobs.tile < 1 || knobs.tile > 64 || knobs.threads < 1 || knobs.threads > 1024)
      throw Error::unsupported("kernel '{}': a tile of {} elements and {} threads; the limits are 64 and 1024", kernel.name,
                               knobs.tile, knobs.threads);
  }

  Program run() {
    program.entry = names.claim(kernel.name);
    program.headers = {"weft/types.cuh", "weft/vector.cuh"};
    for (const Axis &axis : kernel.axes) axisNames.push_back(names.claim(axis.name));
    for (size_t d = 0; d < tensors.axes.size(); ++d) at.push_back(names.claim("at_" + axisNames[tensors.axes[d]]));
    type = std::string(cudaNameOf(kernel.values[kernel.inputs[0]].dtype));
    from = names.claim(kernel.values[kernel.inputs[0]].name);
    to = names.claim(kernel.values[kernel.outputs[0]].name);
    program.parameters = {{Parameter::Kind::input, 0, from, type}, {Parameter::Kind::output, 0, to, type}};
    for (std::string *word : {&side, &readName, &writeName, &threads, &tile, &block, &step, &element, &flat, &packed})
      *word = names.claim(*word);
    constants();
    body();
    program.launchBounds = threads;
    program.mapping = describe(kernel, knobs);
    pruneUnused(program);
    return std::move(program);
  }

private:
  std::string extentName(int dimension) const { return axisNames[tensors.axes[dimension]]; }
  int64_t tilesAlong(int dimension) const { return (tensors.extents[dimension] + knobs.tile - 1) / knobs.tile; }
  std::string tilesText(int dimension) const { return dimension == read ? tilesAlongRead : tilesAlongWrite; }

  void constants() {
    ConstantLine extents{.type = "int", .note = "extents"};
    for (size_t d = 0; d < tensors.axes.size(); ++d)
      extents.entries.emplace_back(extentName(static_cast<int>(d)), std::to_string(tensors.extents[d]));
    program.constants = {extents,
                         {"int", {{side, std::to_string(knobs.tile)}, {threads, std::to_string(knobs.threads)}}, "of the tile; of a block"},
                         {"int", {{readName, std::to_string(readWidth)}, {writeName, std::to_string(writeWidth)}}, "elements an access"}};
    ConstantLine tiles{.type = "int", .note = "along each axis"};
    for (int dimension : {read, write}) {
      (dimension == read ? tilesAlongRead : tilesAlongWrite) = names.claim("tiles_" + extentName(dimension));
      tiles.entries.emplace_back(tilesText(dimension), fmt::format("({0} + {1} - 1) / {1}", extentName(dimension), side));
    }
    program.constants.push_back(tiles);
    for (const auto &[name, strides] : {std::pair{from, &tensors.from}, std::pair{to, &tensors.to}}) {
      ConstantLine line{.type = wide ? "weft::Offset" : "int", .note = fmt::format("strides of {}", name)};
      for (size_t d = 0; d < strides->size(); ++d)
        if (tensors.extents[d] > 1 && (*strides)[d] != 1) {
          strideNames[{name, d}] = names.claim(fmt::format("{}_{}", name, extentName(static_cast<int>(d))));
          line.entries.emplace_back(strideNames[{name, d}], std::to_string((*strides)[d]));
        }
      program.constants.push_back(line);
    }
  }

  std::string term(const std::string &tensor, int dimension, const std::string &coordinate) const {
    const auto name = strideNames.find({tensor, static_cast<size_t>(dimension)});
    return name == strideNames.end() ? coordinate : fmt::format("{} * {}", coordinate, name->second);
  }

  /// tensor + the batch axes + the two coordinates.
  std::string pointer(const std::string &tensor, const std::string &readAt, const std::string &writeAt) const {
    std::string text = tensor;
    for (int d : rest) text += " + " + term(tensor, d, at[d]);
    text += " + " + term(tensor, read, fmt::format("({} + {})", at[read], readAt));
    return text + " + " + term(tensor, write, fmt::format("({} + {})", at[write], writeAt));
  }

  void body() {
    for (size_t d = 0; d < tensors.axes.size(); ++d)
      if (static_cast<int>(d) != read && static_cast<int>(d) != write && tensors.extents[d] > 1) rest.push_back(static_cast<int>(d));
    std::stable_sort(rest.begin(), rest.end(), [&](int a, int b) { return tensors.to[a] > tensors.to[b]; });
    int64_t blocks = tilesAlong(read) * tilesAlong(write);
    for (int d : rest) blocks *= tensors.extents[d];
    if (blocks > std::numeric_limits<int32_t>::max())
      throw Error::unsupported("kernel '{}': {} tiles; the limit is {}", kernel.name, blocks, std::numeric_limits<int32_t>::max());
    program.launch = {.grid = {blocks, 1, 1}, .block = {knobs.threads, 1, 1}};
    // An odd number of words a row spreads the columns over the banks.
    const int64_t padding = std::max<int64_t>(1, 4 / tensors.size);
    program.body.push_back({.kind = Statement::Kind::shared, .type = type, .name = fmt::format("{}[{}][{} + {}]", tile, side, side, padding)});
    program.body.push_back(declare("const int", at[read], fmt::format("blockIdx.x % {} * {}", tilesText(read), side)));
    program.body.push_back(declare("const int", at[write], fmt::format("blockIdx.x / {} % {} * {}", tilesText(read), tilesText(write), side)));
    if (!rest.empty()) program.body.push_back(declare("const int", block, fmt::format("blockIdx.x / ({} * {})", tilesText(read), tilesText(write))));
    for (size_t i = 0; i < rest.size(); ++i) {
      std::vector<std::string> faster;
      for (size_t f = i + 1; f < rest.size(); ++f) faster.push_back(extentName(rest[f]));
      std::string text = block;
      if (faster.size() == 1) text += " / " + faster[0];
      if (faster.size() > 1) text += fmt::format(" / ({})", fmt::join(faster, " * "));
      if (i > 0) text += fmt::format(" % {}", extentName(rest[i]));
      program.body.push_back(declare(wide ? "const weft::Offset" : "const int", at[rest[i]], text));
    }
    program.body.push_back(space());
    halves(true);
    program.body.push_back({.kind = Statement::Kind::barrier});
    halves(false);
  }

  /// Global to tile (vectors along `read`), or tile to global (vectors along `write`).
  void halves(bool loads) {
    const std::string along = loads ? "r" : "w", across = loads ? "w" : "r";
    const std::string &width = loads ? readName : writeName;
    const std::string readAt = "in_" + axisNames[tensors.axes[read]], writeAt = "in_" + axisNames[tensors.axes[write]];
    const int own = loads ? readWidth : writeWidth;
    Block inside;
    inside.push_back(declare("const int", flat, fmt::format("{} * {} + threadIdx.x", step, threads)));
    inside.push_back(declare("const int", loads ? readAt : writeAt, fmt::format("{} % ({} / {}) * {}", flat, side, width, width)));
    inside.push_back(declare("const int", loads ? writeAt : readAt, fmt::format("{} / ({} / {})", flat, side, width)));
    Block move;
    const std::string packedType = fmt::format("weft::Packed<{}, {}>", type, width);
    if (loads) {
      move.push_back(declare("const auto", packed, fmt::format("weft::loadPacked<{}>({})", width, pointer(from, readAt, writeAt))));
      move.push_back(loop(element, width, 0, {assign(fmt::format("{}[{}][{} + {}]", tile, writeAt, readAt, element), fmt::format("{}.at[{}]", packed, element))}));
    } else {
      move.push_back(declare(packedType, packed));
      move.push_back(loop(element, width, 0, {assign(fmt::format("{}.at[{}]", packed, element), fmt::format("{}[{} + {}][{}]", tile, writeAt, element, readAt))}));
      move.push_back(evaluate(fmt::format("weft::storePacked<{}>({}, {})", width, pointer(to, readAt, writeAt), packed)));
    }
    std::string condition = fmt::format("{} + {} < {} && {} + {} < {}", at[read], readAt, extentName(read), at[write], writeAt, extentName(write));
    const int64_t vectors = static_cast<int64_t>(knobs.tile) * knobs.tile / own;
    if (vectors % knobs.threads != 0) condition = fmt::format("{} < {} * {} / {} && {}", flat, side, side, width, condition);
    const bool whole = tensors.extents[read] % knobs.tile == 0 && tensors.extents[write] % knobs.tile == 0 && vectors % knobs.threads == 0;
    if (whole) inside.insert(inside.end(), move.begin(), move.end());
    else inside.push_back(guard(condition, move));
    program.body.push_back(loop(step, fmt::format("({0} * {0} / {1} + {2} - 1) / {2}", side, width, threads), 0, inside));
  }

  const Kernel &kernel;
  const Tensors &tensors;
  const TransposeKnobs &knobs;
  int read, write;  ///< dimensions that are fastest in the operand and in the result
  bool wide;
  int readWidth = 1, writeWidth = 1;
  Names names;
  Program program;
  std::vector<std::string> axisNames, at;
  std::map<std::pair<std::string, size_t>, std::string> strideNames;
  std::vector<int> rest;
  std::string type, from, to, tilesAlongRead, tilesAlongWrite;
  std::string side = "side", readName = "readWidth", writeName = "writeWidth", threads = "threads", tile = "tile", block = "batch",
              step = "s", element = "e", flat = "flat", packed = "packed";
};

}  // namespace

Program lowerTranspose(const Kernel &kernel, const Configuration &configuration, const TransposeKnobs &knobs) {
  const Tensors tensors = tensorsOf(kernel, configuration);
  const int read = Tensors::fastest(tensors.from, tensors.extents), write = Tensors::fastest(tensors.to, tensors.extents);
  if (read >= 0 && write >= 0 && read != write) return TiledTranspose(kernel, tensors, knobs, read, write).run();
  const int axis = write >= 0 ? tensors.axes[write] : -1;
  return lowerLoop(kernel, configuration, {.vectorAxis = axis, .vectorWidth = knobs.vectorWidth, .laneAxis = axis, .threads = knobs.threads});
}

}  // namespace weft::codegen
