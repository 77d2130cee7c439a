// Masked-token batches; see TextBatches.h.
#include "runtime/train/TextBatches.h"

#include "kernel/Error.h"
#include "kernel/RandomValues.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

namespace weft::embedded {
extern const std::map<std::string, std::string_view> trainingTexts;
}

namespace weft::runtime {

namespace {

constexpr int64_t percentPredicted = 15;
constexpr int32_t maskToken = 0, noLabel = -1;

}  // namespace

TextBatches::TextBatches(std::string from, const std::string &where, int64_t sequences,
                         int64_t length, int64_t vocabulary, uint64_t seed)
    : text(std::move(from)),
      sequences(sequences),
      length(length),
      vocabulary(vocabulary),
      seed(seed),
      predicted(std::max<int64_t>(1, (percentPredicted * length + 50) / 100)) {
  if (int64_t(text.size()) < length)
    throw Error::badInput("{}: {} bytes are less than one sequence of {}", where, text.size(),
                          length);
  for (size_t at = 0; at < text.size(); ++at)
    if (const int byte = uint8_t(text[at]); byte == maskToken || byte >= vocabulary)
      throw Error::badInput("{}: byte {} is {}; tokens are 1 to {}, and 0 is the mask", where, at,
                            byte, vocabulary - 1);
}

TokenBatch TextBatches::at(int64_t step) const {
  const size_t count = size_t(sequences * length);
  TokenBatch batch{.tokens = std::vector<int32_t>(count),
                   .labels = std::vector<int32_t>(count, noLabel),
                   .weights = std::vector<float>(count)};
  for (int64_t sequence = 0; sequence < sequences; ++sequence) {
    const int64_t number = step * sequences + sequence;
    const int64_t start =
        RandomValues(seed, "batch start").integer(number, 0, int64_t(text.size()) - length);
    for (int64_t position = 0; position < length; ++position)
      batch.tokens[size_t(sequence * length + position)] = uint8_t(text[size_t(start + position)]);
    fillSequence(number, batch);
  }
  return batch;
}

void TextBatches::fillSequence(int64_t number, TokenBatch &batch) const {
  const RandomValues action(seed, "batch action"), byte(seed, "batch byte");
  for (const int64_t position : predictedPositions(number)) {
    const int64_t n = number * length + position;
    const size_t at = size_t(number % sequences * length + position);
    batch.labels[at] = batch.tokens[at];
    batch.weights[at] = float(1.0 / double(sequences * predicted));
    const int64_t choice = action.integer(n, 0, 9);
    if (choice < 8) batch.tokens[at] = maskToken;
    if (choice == 8) batch.tokens[at] = int32_t(byte.integer(n, 1, vocabulary - 1));
  }
}

std::vector<int64_t> TextBatches::predictedPositions(int64_t number) const {
  const RandomValues order(seed, "batch order");
  std::vector<int64_t> positions;
  for (int64_t position = 0; position < length; ++position) positions.push_back(position);
  std::ranges::stable_sort(
      positions, {}, [&](int64_t position) { return order.bits(number * length + position); });
  positions.resize(size_t(predicted));
  return positions;
}

std::string shippedText() { return std::string(embedded::trainingTexts.at("documentation.txt")); }

}  // namespace weft::runtime
