// Reading, drawing and checking lengths; see Lengths.h.
#include "runtime/execute/Lengths.h"

#include "kernel/Error.h"
#include "kernel/PlainText.h"
#include "kernel/RandomValues.h"
#include "plan/TensorLayout.h"
#include "runtime/execute/Executor.h"
#include "runtime/system/Files.h"
#include "runtime/system/Streams.h"

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

bool isMask(const PlanTensor &tensor) { return tensor.dtype == DType::i1; }
int64_t longestOf(const PlanTensor &tensor) {
  return isMask(tensor) ? tensor.extents.at(1) : tensor.range[1];
}
int64_t sequencesOf(const PlanTensor &tensor) {
  return isMask(tensor) ? tensor.extents.at(0) : elementCount(tensor);
}

/// As the argument has them: as they are, or a row of ones and zeros each.
std::vector<std::byte> elementsOf(const PlanTensor &tensor, const std::vector<int32_t> &lengths) {
  return isMask(tensor) ? prefixMask(tensor, lengths) : asElements(lengths);
}

/// Evenly between the bounds whose middle is the mean, of which one is the longest or none.
std::vector<int32_t> drawnLengths(const PlanTensor &tensor, double mean, uint64_t seed) {
  const RandomValues values(seed, tensor.logical);
  const auto longest = double(longestOf(tensor)), middle = mean * longest,
             spread = std::min(middle, longest - middle);
  std::vector<int32_t> lengths(static_cast<size_t>(sequencesOf(tensor)));
  for (size_t n = 0; n < lengths.size(); ++n)
    lengths[n] = static_cast<int32_t>(values.integer(
        static_cast<int64_t>(n), std::llround(middle - spread), std::llround(middle + spread)));
  return lengths;
}

Error lengthError(const PlanTensor &tensor, int64_t length, int64_t sequence,
                  std::string_view where) {
  return Error::badInput("{}: length {} of sequence {} of '{}' is {} (at least 0, at most {})",
                         where, length, sequence, tensor.logical,
                         length < 0 ? "negative" : "above the longest", longestOf(tensor));
}

void checkLength(const PlanTensor &tensor, int32_t length, int64_t sequence,
                 std::string_view where) {
  if (length < 0 || length > longestOf(tensor)) throw lengthError(tensor, length, sequence, where);
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

std::vector<std::vector<int32_t>> readLengthLines(const std::string &path) {
  std::istringstream text(readFile(path));
  std::vector<std::vector<int32_t>> lines;
  int64_t all = 0;
  for (std::string line; std::getline(text, line);) {
    std::vector<int32_t> lengths;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      const char *last = word.data() + word.size();
      int32_t length = 0, count = 1;
      auto read = std::from_chars(word.data(), last, length);
      if (read.ec == std::errc() && read.ptr != last && *read.ptr == ':')
        read = std::from_chars(read.ptr + 1, last, count);
      if (read.ec != std::errc() || read.ptr != last || count < 1)
        throw Error::badInput(
            "--lengths {}: '{}' is no length; a file holds one integer a sequence, or LENGTH:N for "
            "N sequences",
            path, word);
      if ((all += count) > mostLengths)
        throw Error::badInput("--lengths {}: more than {} lengths", path, mostLengths);
      lengths.insert(lengths.end(), size_t(count), length);
    }
    if (!lengths.empty()) lines.push_back(std::move(lengths));
  }
  return lines;
}

bool areBatches(const std::vector<std::vector<int32_t>> &lines, int64_t sequences) {
  return !lines.empty() && std::ranges::all_of(lines, [&](const std::vector<int32_t> &line) {
    return std::ssize(line) == sequences;
  });
}

std::vector<std::byte> askedLengths(const PlanTensor &tensor, const std::string &asked,
                                    uint64_t seed) {
  if (const std::optional<double> mean = meanOf(asked))
    return elementsOf(tensor, drawnLengths(tensor, *mean, seed));
  const std::vector<std::vector<int32_t>> lines = readLengthLines(asked);
  std::vector<int32_t> lengths;
  for (const std::vector<int32_t> &line : lines) {
    lengths.insert(lengths.end(), line.begin(), line.end());
    if (areBatches(lines, sequencesOf(tensor))) break;
  }
  if (std::ssize(lengths) != sequencesOf(tensor))
    throw Error::badInput("--lengths {}: {} lengths for {} sequences of '{}'", asked,
                          lengths.size(), sequencesOf(tensor), tensor.logical);
  for (size_t n = 0; n < lengths.size(); ++n)
    checkLength(tensor, lengths[n], int64_t(n), "--lengths " + asked);
  return elementsOf(tensor, lengths);
}

std::vector<std::byte> prefixMask(const PlanTensor &tensor, const std::vector<int32_t> &lengths) {
  const auto positions = size_t(tensor.extents.at(1));
  std::vector<std::byte> elements(lengths.size() * positions);
  for (size_t n = 0; n < elements.size(); ++n)
    elements[n] = std::byte(int64_t(n % positions) < lengths[n / positions]);
  return elements;
}

Error elementError(const PlanTensor &tensor, int64_t value, int64_t sequence,
                   std::string_view where) {
  if (isMask(tensor))
    return Error::badInput(
        "{}: row {} of '{}' is no prefix: element {} is 1 behind a 0 (tokens of a sequence come "
        "first, and padding follows)",
        where, sequence, tensor.logical, value);
  return lengthError(tensor, value, sequence, where);
}

/// The last 1 of each row stands where the kernels have it.
static void checkPrefixes(const PlanTensor &tensor, std::span<const std::byte> elements,
                          std::string_view where) {
  const auto positions = size_t(tensor.extents.at(1));
  for (size_t row = 0; row < elements.size() / positions; ++row) {
    const std::span<const std::byte> own = elements.subspan(row * positions, positions);
    const auto tokens =
        std::ranges::count_if(own, [](std::byte one) { return one != std::byte(); });
    const auto last =
        std::find_if(own.rbegin(), own.rend(), [](std::byte one) { return one != std::byte(); });
    if (own.rend() - last != tokens)
      throw elementError(tensor, own.rend() - last - 1, int64_t(row), where);
  }
}

void checkLengths(const PlanTensor &tensor, std::span<const std::byte> elements,
                  std::string_view where) {
  if (isMask(tensor)) return checkPrefixes(tensor, elements, where);
  for (size_t n = 0; n < elements.size() / sizeof(int32_t); ++n) {
    int32_t length = 0;
    std::memcpy(&length, elements.data() + n * sizeof(int32_t), sizeof(int32_t));
    checkLength(tensor, length, int64_t(n), where);
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
  size_t batches = 1;
  for (const PlanTensor &tensor : plan.tensors) {
    if (!tensor.countsTokens) continue;
    counts = true;
    askedLengths(tensor, asked, 0);
    if (meanOf(asked)) continue;
    const std::vector<std::vector<int32_t>> lines = readLengthLines(asked);
    if (areBatches(lines, sequencesOf(tensor))) batches = lines.size();
  }
  if (batches > 1)
    say(printableLine(
            fmt::format("weft: note: --lengths {}: of {} batches, one a line, the first is taken",
                        asked, batches)) +
        "\n");
  if (!counts)
    throw Error::badInput(
        "--lengths {}: no argument of {} counts tokens; compile with --ragged AXIS to pack them, "
        "--cache N to read those before from caches, or --mask padding to hide the keys behind "
        "them",
        asked, plan.model);
}

}  // namespace weft::runtime
