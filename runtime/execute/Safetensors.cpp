// Reading and writing safetensors; see Safetensors.h.
#include "runtime/execute/Safetensors.h"

#include "kernel/Error.h"
#include "kernel/Nearest.h"
#include "runtime/system/Files.h"
#include "runtime/system/JsonText.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <system_error>

namespace weft::runtime {

using nlohmann::json;

namespace {

constexpr int64_t lengthBytes = 8;
constexpr int64_t longestHeader = int64_t(100) << 20;  // as the format's own readers limit it

struct StoredType {
  std::string_view name;
  int64_t bytes;
  std::optional<DType> dtype;  ///< none: may lie in a file, but no tensor of ours has it
};
constexpr std::array<StoredType, 15> storedTypes{{{"F32", 4, DType::f32},
                                                  {"F16", 2, DType::f16},
                                                  {"BF16", 2, DType::bf16},
                                                  {"F64", 8, DType::f64},
                                                  {"I32", 4, DType::i32},
                                                  {"BOOL", 1, DType::i1},
                                                  {"F8_E4M3", 1, DType::f8e4m3},
                                                  {"F8_E5M2", 1, DType::f8e5m2},
                                                  {"I64", 8, {}},
                                                  {"I16", 2, {}},
                                                  {"I8", 1, {}},
                                                  {"U8", 1, {}},
                                                  {"U16", 2, {}},
                                                  {"U32", 4, {}},
                                                  {"U64", 8, {}}}};

std::string_view storedNameOf(DType dtype) {
  return std::ranges::find(storedTypes, std::optional(dtype), &StoredType::dtype)->name;
}

std::string shapeText(const std::vector<int64_t> &shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// The product of the extents and the element's bytes; -1 where an extent is negative or it does
/// not fit.
int64_t bytesOf(const std::vector<int64_t> &shape, int64_t elementBytes) {
  int64_t bytes = elementBytes;
  for (const int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes)) return -1;
  return bytes;
}

std::vector<int64_t> integers(const json &array, const std::string &place) {
  const auto isInteger = [](const json &value) {
    return value.is_number_integer() &&
           (!value.is_number_unsigned() ||
            value.get<uint64_t>() <= uint64_t(std::numeric_limits<int64_t>::max()));
  };
  if (!array.is_array() || !std::ranges::all_of(array, isInteger))
    throw Error::badInput("{} is no list of integers", place);
  return array.get<std::vector<int64_t>>();
}

const json &member(const json &object, const char *name, const std::string &place) {
  if (!object.is_object() || !object.contains(name))
    throw Error::badInput("{} has no \"{}\"", place, name);
  return object[name];
}

std::string readBytes(std::ifstream &file, int64_t bytes, const std::string &what) {
  std::string text(size_t(bytes), '\0');
  if (!file.read(text.data(), bytes)) throw Error::badInput("{} cannot be read", what);
  return text;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path &path) : path(path) {
  std::error_code code;
  const int64_t fileBytes = int64_t(std::filesystem::file_size(path, code));
  if (code) throw Error::badInput("{}: {}", path.string(), code.message());
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error::badInput("{} cannot be opened", path.string());
  if (fileBytes < lengthBytes)
    throw Error::badInput(
        "{}: {} bytes are too few for a safetensors file: truncated, or another format",
        path.string(), fileBytes);
  const std::string length = readBytes(file, lengthBytes, path.string());
  uint64_t headerBytes = 0;
  for (int byte = lengthBytes; byte-- > 0;)
    headerBytes = headerBytes << 8 | uint8_t(length[size_t(byte)]);
  if (headerBytes > uint64_t(std::min(longestHeader, fileBytes - lengthBytes)))
    throw Error::badInput(
        "{}: the header should be {} bytes long, the file has {}: truncated, or another format",
        path.string(), headerBytes, fileBytes);
  const json header =
      parseJson(readBytes(file, int64_t(headerBytes), path.string()), path.string() + ": header");
  if (!header.is_object()) throw Error::badInput("{}: the header is no JSON object", path.string());
  for (const auto &[name, described] : header.items())
    if (name != "__metadata__")
      addEntry(name, described, lengthBytes + int64_t(headerBytes), fileBytes);
  checkOverlaps();
}

void SafetensorsFile::addEntry(const std::string &name, const json &described, int64_t dataStart,
                               int64_t fileBytes) {
  const std::string place = fmt::format("{}: tensor '{}'", path.string(), name);
  const json &dtype = member(described, "dtype", place);
  const auto type = std::ranges::find(
      storedTypes, dtype.is_string() ? dtype.get<std::string>() : "", &StoredType::name);
  if (type == storedTypes.end())
    throw Error::badInput("{} has the unknown dtype {}", place, dtype.dump());
  const std::vector<int64_t> offsets =
      integers(member(described, "data_offsets", place), place + ": data_offsets");
  Entry entry{.dtype = std::string(type->name),
              .shape = integers(member(described, "shape", place), place + ": shape")};
  const int64_t bytes = bytesOf(entry.shape, type->bytes);
  if (offsets.size() != 2 || offsets[0] < 0 || offsets[1] < offsets[0] ||
      bytes != offsets[1] - offsets[0])
    throw Error::badInput("{}: {} {} does not lie at bytes [{}]", place, type->name,
                          shapeText(entry.shape), fmt::join(offsets, ", "));
  if (offsets[1] > fileBytes - dataStart)
    throw Error::badInput("{} ends at byte {} of the data, the file has {}: truncated", place,
                          offsets[1], fileBytes - dataStart);
  entry.begin = dataStart + offsets[0];
  entry.end = dataStart + offsets[1];
  all.emplace(name, std::move(entry));
}

void SafetensorsFile::checkOverlaps() const {
  std::vector<std::pair<const std::string *, const Entry *>> byPlace;
  for (const auto &[name, entry] : all)
    if (entry.end > entry.begin) byPlace.emplace_back(&name, &entry);
  std::ranges::sort(byPlace, {}, [](const auto &one) { return one.second->begin; });
  for (size_t index = 1; index < byPlace.size(); ++index)
    if (byPlace[index].second->begin < byPlace[index - 1].second->end)
      throw Error::badInput("{}: tensors '{}' and '{}' overlap", path.string(),
                            *byPlace[index - 1].first, *byPlace[index].first);
}

void SafetensorsFile::requireExactly(const std::vector<const PlanTensor *> &expected) const {
  std::vector<std::string> known;
  for (const PlanTensor *tensor : expected) known.push_back(tensor->logical);
  for (const auto &[name, entry] : all)
    if (std::ranges::find(known, name) == known.end())
      throw Error::badInput("{}: tensor '{}' is none that is read{}", path.string(), name,
                            nearestAndKnown(name, known));
  for (const PlanTensor *tensor : expected) requireTensor(*tensor);
}

void SafetensorsFile::requireTensor(const PlanTensor &expected) const {
  const std::string wanted =
      fmt::format("{} {} ({})", storedNameOf(expected.dtype), shapeText(expected.extents),
                  fmt::join(expected.axes, ", "));
  const auto found = all.find(expected.logical);
  if (found == all.end())
    throw Error::badInput("{}: tensor '{}' is missing; expected: {}", path.string(),
                          expected.logical, wanted);
  const Entry &entry = found->second;
  if (entry.dtype != storedNameOf(expected.dtype) || entry.shape != expected.extents)
    throw Error::badInput("{}: tensor '{}' is {} {}; expected: {}", path.string(), expected.logical,
                          entry.dtype, shapeText(entry.shape), wanted);
}

std::vector<std::byte> SafetensorsFile::read(const std::string &name) const {
  const Entry &entry = all.at(name);
  std::vector<std::byte> bytes(size_t(entry.end - entry.begin));
  std::ifstream file(path, std::ios::binary);
  file.seekg(entry.begin);
  if (!file.read(reinterpret_cast<char *>(bytes.data()), std::streamsize(bytes.size())))
    throw Error::badInput("{}: tensor '{}' cannot be read: did the file change?", path.string(),
                          name);
  return bytes;
}

struct SafetensorsFile::Mapping {
  explicit Mapping(const std::filesystem::path &path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status = {};
    if (file >= 0 && fstat(file, &status) == 0 && status.st_size > 0) {
      size = size_t(status.st_size);
      void *const mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
      if (mapped != MAP_FAILED) data = static_cast<const std::byte *>(mapped);
    }
    if (file >= 0) close(file);
    if (!data) throw Error::badInput("{} cannot be mapped: {}", path.string(), strerror(errno));
  }
  ~Mapping() { munmap(const_cast<std::byte *>(data), size); }
  Mapping(const Mapping &) = delete;

  const std::byte *data = nullptr;
  size_t size = 0;
};

std::span<const std::byte> SafetensorsFile::view(const std::string &name) const {
  const Entry &entry = all.at(name);
  if (!mapping) mapping = std::make_shared<const Mapping>(path);
  if (size_t(entry.end) > mapping->size)
    throw Error::badInput("{}: tensor '{}' cannot be read: did the file change?", path.string(),
                          name);
  return {mapping->data + entry.begin, size_t(entry.end - entry.begin)};
}

void writeSafetensors(const std::filesystem::path &path, std::span<const TensorToWrite> tensors) {
  json header = json::object();
  int64_t offset = 0;
  for (const TensorToWrite &tensor : tensors) {
    const int64_t end = offset + int64_t(tensor.elements.size());
    if (bytesOf(tensor.shape, sizeOf(tensor.dtype)) != end - offset)
      throw Error::checkFailed("tensor '{}' has {} bytes, which is not {}", tensor.name,
                               tensor.elements.size(), shapeText(tensor.shape));
    header[tensor.name] = {{"dtype", storedNameOf(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + lengthBytes - 1) / lengthBytes * lengthBytes,
              ' ');  // the data starts aligned
  std::string bytes;
  bytes.reserve(size_t(lengthBytes + offset) + text.size());
  for (int byte = 0; byte < lengthBytes; ++byte)
    bytes.push_back(char(uint64_t(text.size()) >> (8 * byte) & 0xFF));
  bytes += text;
  for (const TensorToWrite &tensor : tensors)
    bytes.append(reinterpret_cast<const char *>(tensor.elements.data()), tensor.elements.size());
  try {
    replaceFile(path, bytes);
  } catch (const std::system_error &error) {
    throw Error::badInput("cannot write {}: {}", path.string(), error.what());
  }
}

}  // namespace weft::runtime
