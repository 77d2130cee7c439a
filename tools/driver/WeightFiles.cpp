// Weights from checkpoints; see WeightFiles.h.
#include "tools/driver/WeightFiles.h"

#include "kernel/Error.h"
#include "kernel/Nearest.h"
#include "kernel/reference/StoredElement.h"
#include "models/WeightNames.h"
#include "runtime/system/Files.h"
#include "runtime/system/JsonText.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <set>
#include <utility>

namespace weft::driver {

using models::WeightSource;
using runtime::SafetensorsFile;

namespace {

constexpr int64_t stacked = 3;  ///< parts of a tensor of which a digit takes one

/// One dimension of a file's tensor.
struct FileDimension {
  std::string axes;  ///< of the parameter, slowest first
  int64_t part = -1;
  size_t partBefore = 0;  ///< the axis, by position, that parts are stacked in front of
  bool mayBeLonger = false;
  int64_t first = 0;  ///< index of a longer dimension that the parameter begins with
};

std::vector<FileDimension> dimensionsOf(const WeightSource &source) {
  std::vector<FileDimension> dimensions(1);
  for (const char letter : source.dimensions)
    if (letter == ' ') dimensions.emplace_back();
    else if (letter == '<') {
      FileDimension &longer = dimensions.back();
      longer.mayBeLonger = true;
      longer.first = std::max<int64_t>(std::exchange(longer.part, -1), 0);
    } else if (std::isdigit(static_cast<unsigned char>(letter))) {
      dimensions.back().part = letter - '0';
      dimensions.back().partBefore = dimensions.back().axes.size();
    } else {
      dimensions.back().axes += letter;
    }
  return dimensions;
}

size_t positionOf(const PlanTensor &parameter, char axis) {
  const auto found = std::ranges::find(parameter.axes, std::string(1, axis));
  if (found == parameter.axes.end())
    throw Error::checkFailed("parameter '{}' has no axis {}", parameter.logical, axis);
  return size_t(found - parameter.axes.begin());
}

int64_t extentOf(const FileDimension &dimension, const PlanTensor &parameter) {
  int64_t extent = dimension.part < 0 ? 1 : stacked;
  for (const char axis : dimension.axes) extent *= parameter.extents[positionOf(parameter, axis)];
  return extent + dimension.first;
}

/// Where the parameter's elements lie in a file's tensor: elements along each axis, and the first.
struct Place {
  std::vector<int64_t> strides;
  int64_t first = 0;
};

Place placeOf(const std::vector<FileDimension> &dimensions, const std::vector<int64_t> &shape,
              const PlanTensor &parameter) {
  Place place{.strides = std::vector<int64_t>(parameter.axes.size(), 0)};
  int64_t outer = 1;  // of a dimension
  for (size_t index = dimensions.size(); index-- > 0;) {
    const FileDimension &dimension = dimensions[index];
    int64_t stride = outer;
    for (size_t axis = dimension.axes.size(); axis-- > 0;) {
      const size_t position = positionOf(parameter, dimension.axes[axis]);
      place.strides[position] = stride;
      stride *= parameter.extents[position];
      if (dimension.part < 0 || axis != dimension.partBefore) continue;
      place.first += dimension.part * stride;
      stride *= stacked;
    }
    place.first += dimension.first * outer;
    outer *= shape[index];
  }
  return place;
}

std::optional<DType> floatNamed(const std::string &stored) {
  if (stored == "F32") return DType::f32;
  if (stored == "F16") return DType::f16;
  if (stored == "BF16") return DType::bf16;
  return std::nullopt;
}

/// A row of elements along the last axis, `stride` elements apart in the file, and so much more.
void copyRow(std::byte *to, DType toType, const std::byte *from, DType fromType, int64_t count,
             int64_t stride, double plus) {
  const auto toBytes = size_t(sizeOf(toType)), fromBytes = size_t(sizeOf(fromType));
  if (toType == fromType && stride == 1 && plus == 0) {
    std::memcpy(to, from, size_t(count) * toBytes);
    return;
  }
  for (int64_t n = 0; n < count; ++n, to += toBytes, from += size_t(stride) * fromBytes)
    if (toType == fromType && plus == 0) std::memcpy(to, from, toBytes);
    else reference::storeElement(toType, to, reference::loadElement(fromType, from) + plus);
}

/// The first problems, and how many there are beside.
std::vector<std::string> firstOf(std::vector<std::string> problems, const char *others) {
  constexpr size_t shown = 12;
  if (const size_t count = problems.size(); count > shown) {
    problems.resize(shown);
    problems.push_back(fmt::format("and {} more {}", count - shown, others));
  }
  return problems;
}

}  // namespace

WeightFiles::WeightFiles(const std::filesystem::path &path, std::string names)
    : path(path), names(std::move(names)) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) addFolder(path);
  else addFile(path);
}

void WeightFiles::addFolder(const std::filesystem::path &folder) {
  const std::filesystem::path single = folder / "model.safetensors",
                              index = folder / "model.safetensors.index.json";
  std::error_code none;
  if (std::filesystem::is_regular_file(single, none)) return addFile(single);
  if (!std::filesystem::is_regular_file(index, none))
    throw Error::badInput("--weights {}: the folder has neither model.safetensors nor {}",
                          folder.string(), index.filename().string());
  const nlohmann::json read = runtime::parseJson(runtime::readFile(index), index.string());
  const auto map = read.find("weight_map");
  if (!read.is_object() || map == read.end() || !map->is_object())
    throw Error::badInput("{}: has no object \"weight_map\"", index.string());
  std::set<std::string> shards;
  for (const auto &[tensor, file] : map->items()) {
    // A shard lies beside its index; what names another folder is no file of this checkpoint.
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (name.empty() || std::filesystem::path(name).filename() != name)
      throw Error::badInput("{}: weight_map: '{}' names no file beside the index: {}",
                            index.string(), tensor, file.dump());
    shards.insert(name);
  }
  std::vector<std::string> missing;
  for (const std::string &shard : shards)
    if (!std::filesystem::is_regular_file(folder / shard, none)) missing.push_back(shard);
  if (!missing.empty())
    throw Error::badInput("{}: the shard{} '{}' {} missing in {}", index.string(),
                          missing.size() == 1 ? "" : "s", fmt::join(missing, "', '"),
                          missing.size() == 1 ? "is" : "are", folder.string());
  for (const std::string &shard : shards) addFile(folder / shard);
  for (const auto &[tensor, file] : map->items())
    if (const std::string bare = models::withoutModelPrefix(names, tensor);
        models::isWeightName(names, bare) && !tensors.contains(bare))
      problems.push_back(fmt::format("'{}' is not in its shard '{}', as {} says", tensor,
                                     file.get<std::string>(), index.filename().string()));
}

void WeightFiles::addFile(const std::filesystem::path &file) {
  files.push_back(std::make_unique<SafetensorsFile>(file));
  for (const auto &[name, entry] : files.back()->entries()) addTensor(*files.back(), name);
}

void WeightFiles::addTensor(const SafetensorsFile &file, const std::string &name) {
  const std::string bare = models::withoutModelPrefix(names, name);
  if (!models::isWeightName(names, bare)) {
    const std::string near = models::nearestWeightName(names, bare),
                      prefix = name.substr(0, name.size() - bare.size());
    problems.push_back(
        fmt::format("tensor '{}' is no weight of a model of {}{}", name, names,
                    near.empty() ? "" : fmt::format("; nearest is '{}{}'", prefix, near)));
  } else if (const auto [found, isNew] =
                 tensors.try_emplace(bare, Found{.file = &file, .name = name});
             !isNew) {
    problems.push_back(fmt::format("'{}' is there twice, also as '{}'", name, found->second.name));
  }
}

std::string WeightFiles::problemOf(const PlanTensor &parameter) const {
  const std::optional<WeightSource> source =
      models::weightSource(names, parameter.logical, parameter.layer);
  if (!source)
    return fmt::format("'{}' has no name in checkpoints of {}", parameter.logical, names);
  const std::vector<FileDimension> dimensions = dimensionsOf(*source);
  std::vector<std::string> expected;
  for (const FileDimension &dimension : dimensions)
    expected.push_back(fmt::format("{}{}", dimension.mayBeLonger ? "at least " : "",
                                   extentOf(dimension, parameter)));
  const std::string wanted = fmt::format("[{}] of F32, F16 or BF16 (for {})",
                                         fmt::join(expected, ", "), parameter.logical);
  const auto found = tensors.find(source->name);
  if (found == tensors.end()) {
    std::vector<std::string> known;
    for (const auto &[name, place] : tensors) known.push_back(name);
    const std::string near = nearest(source->name, known);
    return fmt::format("'{}' is missing; expected {}{}", source->name, wanted,
                       near.empty() ? "" : fmt::format("; nearest is '{}'", near));
  }
  const SafetensorsFile::Entry &entry = found->second.file->entries().at(found->second.name);
  bool fits = entry.shape.size() == dimensions.size() && floatNamed(entry.dtype);
  for (size_t index = 0; fits && index < dimensions.size(); ++index) {
    const int64_t extent = extentOf(dimensions[index], parameter);
    fits =
        dimensions[index].mayBeLonger ? entry.shape[index] >= extent : entry.shape[index] == extent;
  }
  if (fits) return "";
  return fmt::format("'{}' is {} [{}]; expected {}", found->second.name, entry.dtype,
                     fmt::join(entry.shape, ", "), wanted);
}

void WeightFiles::require(const std::vector<const PlanTensor *> &parameters) const {
  std::vector<std::string> unfit;
  for (const PlanTensor *parameter : parameters)
    if (std::string problem = problemOf(*parameter);
        !problem.empty() && std::ranges::find(unfit, problem) == unfit.end())
      unfit.push_back(std::move(problem));
  std::vector<std::string> said = firstOf(std::move(unfit), "that do not fit");
  for (std::string &problem : firstOf(problems, "that no parameter is read from"))
    said.push_back(std::move(problem));
  if (!said.empty())
    throw Error::badInput("--weights {}: {}", path.string(), fmt::join(said, "\n  "));
}

std::vector<std::byte> WeightFiles::elements(const PlanTensor &parameter) const {
  const WeightSource source =
      models::weightSource(names, parameter.logical, parameter.layer).value();
  const Found &found = tensors.at(source.name);
  const SafetensorsFile::Entry &entry = found.file->entries().at(found.name);
  const DType fromType = floatNamed(entry.dtype).value();
  const std::vector<FileDimension> dimensions = dimensionsOf(source);
  const Place place = placeOf(dimensions, entry.shape, parameter);
  const std::byte *const from = found.file->view(found.name).data();
  const auto fromBytes = sizeOf(fromType), toBytes = sizeOf(parameter.dtype);
  const int64_t columns = parameter.extents.empty() ? 1 : parameter.extents.back(),
                stride = parameter.extents.empty() ? 1 : place.strides.back();
  int64_t rows = 1;
  for (const int64_t extent : parameter.extents) rows *= extent;
  rows /= std::max<int64_t>(columns, 1);
  std::vector<std::byte> result(size_t(rows * columns * toBytes));
  for (int64_t row = 0; row < rows; ++row) {
    int64_t at = place.first, rest = row;
    for (size_t axis = parameter.extents.size(); axis-- > 1;) {
      at += rest % parameter.extents[axis - 1] * place.strides[axis - 1];
      rest /= parameter.extents[axis - 1];
    }
    copyRow(result.data() + row * columns * toBytes, parameter.dtype, from + at * fromBytes,
            fromType, columns, stride, source.plus);
  }
  return result;
}

}  // namespace weft::driver
