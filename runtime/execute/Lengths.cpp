// Reading, drawing and checking lengths; see Lengths.h.
#include "runtime/execute/Lengths.h"

#include "kernel/Error.h"
#include "kernel/RandomValues.h"
#include "plan/TensorLayout.h"
#include "runtime/execute/Executor.h"
#include "runtime/system/Files.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <sstream>

namespace weft::runtime {
namespace {

constexpr std::string_view meanWord = "mean=";
constexpr int64_t mostLengths = int64_t(1) << 24;  // of a file

std::vector<std::byte> asElements(const std::vector<int32_t> &lengths) {
  std::vector<std::byte> elements(lengths.size() * sizeof(int32_t));
  std::memcpy(elements.data(), lengths.data(), elements.size());
  return elements;
}

/// Evenly between the bounds whose middle is the mean, of which one is the longest or none.
std::vector<int32_t> drawnLengths(const PlanTensor &tensor, double mean, uint64_t seed) {
  const RandomValues values(seed, tensor.logical);
  const auto longest = double(tensor.range[1]), middle = mean * longest,
             spread = std::min(middle, longest - middle);
  std::vector<int32_t> lengths(static_cast<size_t>(elementCount(tensor)));
  for (size_t n = 0; n < lengths.size(); ++n)
    lengths[n] = static_cast<int32_t>(values.integer(
        static_cast<int64_t>(n), std::llround(middle - spread), std::llround(middle + spread)));
  return lengths;
}

}  // namespace

std::optional<double> meanOf(const std::string &asked) {
  if (!asked.starts_with(meanWord)) return std::nullopt;
  const char *begin = asked.data() + meanWord.size(), *last = asked.data() + asked.size();
  double mean = 0;
  const auto [end, error] = std::from_chars(begin, last, mean);
  if (error != std::errc() || end != last || !(mean > 0 && mean <= 1))
    throw Error::badInput("--lengths {}: the mean is a share of the longest, above 0 and at most 1",
                          asked);
  return mean;
}

std::vector<int32_t> readLengths(const std::string &path) {
  std::istringstream text(readFile(path));
  std::vector<int32_t> lengths;
  for (std::string word; text >> word;) {
    const char *last = word.data() + word.size();
    int32_t length = 0, count = 1;
    auto read = std::from_chars(word.data(), last, length);
    if (read.ec == std::errc() && read.ptr != last && *read.ptr == ':')
      read = std::from_chars(read.ptr + 1, last, count);
    if (read.ec != std::errc() || read.ptr != last || count < 1)
      throw Error::badInput(
          "--lengths {}: '{}' is no length; a file holds one integer a sequence, or LENGTH:N for N "
          "sequences",
          path, word);
    if (std::ssize(lengths) + count > mostLengths)
      throw Error::badInput("--lengths {}: more than {} lengths", path, mostLengths);
    lengths.insert(lengths.end(), size_t(count), length);
  }
  return lengths;
}

std::vector<std::byte> askedLengths(const PlanTensor &tensor, const std::string &asked,
                                    uint64_t seed) {
  if (const std::optional<double> mean = meanOf(asked))
    return asElements(drawnLengths(tensor, *mean, seed));
  const std::vector<int32_t> lengths = readLengths(asked);
  if (std::ssize(lengths) != elementCount(tensor))
    throw Error::badInput("--lengths {}: {} lengths for {} sequences of '{}'", asked,
                          lengths.size(), elementCount(tensor), tensor.logical);
  const std::vector<std::byte> elements = asElements(lengths);
  checkLengths(tensor, elements, "--lengths " + asked);
  return elements;
}

void checkLengths(const PlanTensor &tensor, std::span<const std::byte> elements,
                  std::string_view where) {
  for (size_t n = 0; n < elements.size() / sizeof(int32_t); ++n) {
    int32_t length = 0;
    std::memcpy(&length, elements.data() + n * sizeof(int32_t), sizeof(int32_t));
    if (length < tensor.range[0] || length > tensor.range[1])
      throw Error::badInput("{}: length {} of sequence {} of '{}' is {} (at least {}, at most {})",
                            where, length, n, tensor.logical,
                            length < tensor.range[0] ? "negative" : "above the longest",
                            tensor.range[0], tensor.range[1]);
  }
}

void checkOffsets(const PlanTensor &tensor, std::span<const std::byte> elements,
                  std::string_view where) {
  int32_t before = 0;
  for (size_t n = 0; n < elements.size() / sizeof(int32_t); ++n) {
    int32_t offset = 0;
    std::memcpy(&offset, elements.data() + n * sizeof(int32_t), sizeof(int32_t));
    if (n == 0 && offset != 0)
      throw Error::badInput("{}: '{}' [0] is {}: offsets of sequences begin at 0", where,
                            tensor.logical, offset);
    if (offset < before)
      throw Error::badInput(
          "{}: '{}' [{}] is {}, less than {} before it: offsets of sequences "
          "ascend",
          where, tensor.logical, n, offset, before);
    if (offset > tensor.range[1])
      throw Error::badInput("{}: '{}' [{}] is {}, and there are {} tokens at most", where,
                            tensor.logical, n, offset, tensor.range[1]);
    before = offset;
  }
}

void setLengths(Executor &executor, const EntryPoint &entry, const std::string &asked,
                uint64_t seed) {
  for (const int input : entry.inputs)
    if (const PlanTensor &tensor = executor.plan().tensors[size_t(input)]; tensor.countsTokens)
      executor.write(input, askedLengths(tensor, asked, seed));
}

void checkAskedLengths(const Plan &plan, const std::string &asked) {
  if (asked.empty()) return;
  bool counts = false;
  for (const PlanTensor &tensor : plan.tensors) {
    if (!tensor.countsTokens) continue;
    counts = true;
    askedLengths(tensor, asked, 0);
  }
  if (!counts)
    throw Error::badInput(
        "--lengths {}: no argument of {} counts tokens; compile with --ragged to pack them, or "
        "with "
        "--cache to read those before from caches",
        asked, plan.model);
}

}  // namespace weft::runtime
