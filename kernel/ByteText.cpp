// Sizes in bytes as text; see ByteText.h.
#include "kernel/ByteText.h"

#include "kernel/Error.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

namespace weft {
namespace {

const std::map<std::string, double> units = {
    {"", 1},           {"K", 1e3},           {"M", 1e6},
    {"G", 1e9},        {"T", 1e12},          {"Ki", 1024},
    {"Mi", 1048576.0}, {"Gi", 1073741824.0}, {"Ti", 1099511627776.0}};

}  // namespace

std::string printBytesAs(int64_t bytes, const std::string &like) {
  const std::string unit =
      like.substr(std::min(like.size(), like.find_first_not_of("0123456789.")));
  const auto found = units.find(unit.ends_with('B') ? unit.substr(0, unit.size() - 1) : unit);
  const double size = found == units.end() ? 1 : found->second;
  const double count = double(bytes) / size;
  // A unit that is larger than the size takes digits behind the point.
  constexpr double whole = 10, fine = 1000;
  if (count >= whole || size == 1) return fmt::format("{:.0f}{}", std::ceil(count), unit);
  return fmt::format("{:.3f}{}", std::ceil(count * fine) / fine, unit);
}

int64_t parseBytes(const std::string &text, const std::string &flag) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(end, text.data() + text.size());
  if (!unit.empty() && unit.back() == 'B') unit.pop_back();
  const auto found = units.find(unit);
  if (error != std::errc() || found == units.end() || !(number > 0) ||
      !(number * found->second < 9e18))
    throw Error::badInput("{} {}: expected a size such as 512M, 80G or 64Gi", flag, text);
  return int64_t(number * found->second);
}

}  // namespace weft
