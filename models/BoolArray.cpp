// The format of NumPy's files, version 1 to 3: "\\x93NUMPY", a version, the length of a header, the
// header as a literal of Python, and the elements.
#include "models/BoolArray.h"

#include "kernel/Error.h"

#include <charconv>
#include <fstream>
#include <iterator>
#include <string_view>

namespace weft::models {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr int64_t mostElements = int64_t(1) << 28;

/// The value of a key of the header, up to the next comma outside parentheses.
std::string_view valueOf(std::string_view header, std::string_view key) {
  const size_t at = header.find(key);
  if (at == std::string_view::npos) throw Error::badInput("its header has no {}", key);
  std::string_view rest = header.substr(at + key.size());
  const size_t colon = rest.find(':');
  if (colon == std::string_view::npos) throw Error::badInput("its header has no {}", key);
  rest.remove_prefix(colon + 1);
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  const size_t end = rest.starts_with('(') ? rest.find(')') : rest.find_first_of(",}");
  if (end == std::string_view::npos) throw Error::badInput("its header ends early");
  return rest.substr(0, rest.starts_with('(') ? end + 1 : end);
}

std::vector<int64_t> shapeOf(std::string_view header) {
  std::string_view text = valueOf(header, "'shape'");
  std::vector<int64_t> shape;
  int64_t elements = 1;
  while (true) {
    const size_t digit = text.find_first_of("0123456789");
    if (digit == std::string_view::npos) return shape;
    text.remove_prefix(digit);
    int64_t extent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc() || (extent > 0 && elements > mostElements / extent))
      throw Error::badInput("it has more than {} elements", mostElements);
    elements *= extent;
    shape.push_back(extent);
    text.remove_prefix(size_t(end - text.data()));
  }
}

BoolArray parsed(std::string_view bytes) {
  const auto byte = [&](size_t at) { return size_t(uint8_t(bytes[at])); };
  if (!bytes.starts_with(magic) || bytes.size() < 12)
    throw Error::badInput("it is no array of NumPy");
  const bool isLong = byte(6) >= 2;
  const size_t begin = isLong ? 12 : 10;
  const size_t length =
      byte(8) | byte(9) << 8 | (isLong ? byte(10) << 16 | byte(11) << 24 : size_t(0));
  if (length > bytes.size() - begin) throw Error::badInput("its header ends early");
  const std::string_view header = bytes.substr(begin, length), data = bytes.substr(begin + length);
  const std::string_view type = valueOf(header, "'descr'");
  if (type.find("b1") == std::string_view::npos)
    throw Error::badInput("its elements are {}; a table of tiles is boolean ('|b1')", type);
  if (valueOf(header, "'fortran_order'").starts_with("True"))
    throw Error::badInput(
        "its first dimension is the fastest (fortran_order); save it with "
        "numpy.ascontiguousarray");
  BoolArray array{.shape = shapeOf(header), .elements = {}};
  size_t count = 1;
  for (const int64_t extent : array.shape) count *= size_t(extent);
  if (data.size() != count)
    throw Error::badInput("it has {} bytes of elements; its shape has {}", data.size(), count);
  for (size_t i = 0; i < count; ++i) {
    if (uint8_t(data[i]) > 1)
      throw Error::badInput(
          "element {} is the byte {}; elements of '|b1' are 0 or 1, as numpy.save writes them", i,
          uint8_t(data[i]));
    array.elements.push_back(data[i] != 0);
  }
  return array;
}

}  // namespace

BoolArray readBoolArray(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error::badInput("{} cannot be read", path);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  try {
    return parsed(bytes);
  } catch (const Error &error) {
    throw Error::badInput("{}: {}", path, error.what());
  }
}

}  // namespace weft::models
