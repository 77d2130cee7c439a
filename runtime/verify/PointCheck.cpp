#include "runtime/verify/PointCheck.h"

#include "kernel/Append.h"
#include "kernel/Error.h"
#include "kernel/reference/Rounding.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <thread>

namespace weft::runtime {
namespace {

using Place = std::vector<int64_t>;

/// Terms that all points together may sum where no two of them share a row.
constexpr int64_t termsPerOutput = 1 << 24;

/// Elements that one element of the output depends on, other than those of the row that it lies in.
int64_t termsOfPoint(const Kernel &kernel, const std::vector<AxisId> &axes) {
  int64_t terms = 1;
  for (AxisId axis : kernel.reducedAxes())
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) terms *= kernel.axes[axis].extent;
  return terms;
}

/// Collects places without repeating one.
class Sample {
public:
  Sample(const std::vector<int64_t> &extents, int64_t limit, uint64_t seed)
      : extents(extents), limit(limit), random(seed) {}

  bool isFull() const { return int64_t(places.size()) >= limit; }
  void add(const Place &place) {
    if (!isFull() && seen.insert(place).second) places.push_back(place);
  }
  int64_t below(int64_t extent) { return int64_t(random() % uint64_t(extent)); }
  Place anywhere() {
    Place place;
    for (int64_t extent : extents) place.push_back(below(extent));
    return place;
  }
  /// First and last of every dimension, in all combinations.
  void addCorners() {
    const size_t dimensions = std::min<size_t>(extents.size(), 8);
    for (size_t corner = 0; corner < size_t(1) << dimensions; ++corner) {
      Place place(extents.size());
      for (size_t d = 0; d < dimensions; ++d) place[d] = corner >> d & 1 ? extents[d] - 1 : 0;
      add(place);
    }
  }
  /// Elements along one dimension through a place: its ends, a run of 16 neighbours, and some more.
  void addLine(Place place, size_t dimension) {
    const int64_t extent = extents[dimension], start = below(extent);
    const auto addAt = [&](int64_t n) {
      place[dimension] = std::min(n, extent - 1);
      add(place);
    };
    addAt(0);
    addAt(extent - 1);
    for (int64_t n = 0; n < 16; ++n) addAt(start + n);
    for (int64_t n = 0; n < 14; ++n) addAt(below(extent));
  }

  const std::vector<int64_t> &extents;
  std::vector<Place> places;

private:
  int64_t limit;
  std::mt19937_64 random;
  std::set<Place> seen;
};

std::vector<Place> allPlaces(const std::vector<int64_t> &extents, int64_t count) {
  std::vector<Place> places;
  for (int64_t n = 0; n < count; ++n) {
    Place place(extents.size());
    int64_t rest = n;
    for (size_t d = extents.size(); d-- > 0; rest /= extents[d]) place[d] = rest % extents[d];
    places.push_back(std::move(place));
  }
  return places;
}

/// Compares some places of one output.
CheckResult comparePlaces(const Kernel &kernel, size_t output, std::span<const Place> places,
                          const std::vector<TensorImage> &inputs, const TensorImage &stored,
                          const CheckOptions &options) {
  std::vector<reference::ElementReader> readers;
  for (const TensorImage &input : inputs)
    readers.push_back([&input](std::span<const int64_t> at) { return input.at(at); });
  reference::PointEvaluator points(kernel, std::move(readers), options.dropout);
  CheckResult result;
  for (const Place &place : places) {
    reference::Point want = points.output(output, place);
    want.value = reference::saturated(stored.type(), want.value);
    const double got = stored.at(place), bound = reference::tolerance(want, stored.type());
    const double error = std::abs(got - want.value);
    ++result.points;
    if (std::isfinite(error)) {
      result.worstError = std::max(result.worstError, error);
      if (bound > 0) result.worstRatio = std::max(result.worstRatio, error / bound);
    }
    if (reference::agrees(got, want, stored.type())) continue;
    ++result.failing;
    if (!result.worst)
      result.worst = {
          .output = output, .coordinates = place, .got = got, .want = want.value, .bound = bound};
  }
  return result;
}

void merge(CheckResult &into, const CheckResult &from) {
  into.points += from.points;
  into.failing += from.failing;
  into.worstError = std::max(into.worstError, from.worstError);
  into.worstRatio = std::max(into.worstRatio, from.worstRatio);
  if (!into.worst) into.worst = from.worst;
}

}  // namespace

std::vector<Place> samplePoints(const Kernel &kernel, size_t output, const CheckOptions &options) {
  const ValueId value = kernel.outputs[output];
  const std::vector<int64_t> extents = extentsOf(kernel, value);
  const int64_t elements = kernel.elements(value);
  const int64_t limit = std::max<int64_t>(
      32,
      std::min(options.points, termsPerOutput / termsOfPoint(kernel, kernel.values[value].axes)));
  if (elements <= limit) return allPlaces(extents, elements);
  Sample sample(extents, limit, options.seed + output);
  sample.addCorners();
  // Lines lie along the reduced dimension, whose statistics their points share; the others lie
  // along any dimension in turn.
  std::vector<size_t> dimensions;
  const std::vector<AxisId> reduced = kernel.reducedAxes();
  for (size_t d = 0; d < extents.size(); ++d)
    if (std::find(reduced.begin(), reduced.end(), kernel.values[value].axes[d]) != reduced.end())
      dimensions.push_back(d);
  if (dimensions.empty())
    for (size_t d = 0; d < extents.size(); ++d) dimensions.push_back(d);
  for (int64_t line = 0; !sample.isFull() && line < limit; ++line)
    sample.addLine(sample.anywhere(), dimensions[size_t(line) % dimensions.size()]);
  return std::move(sample.places);
}

namespace {

/// Places that tokens are appended at, a quarter as many as are looked at beside them: few of a
/// long cache, they would hardly be among these.
std::vector<Place> appendedPlaces(const Kernel &kernel, const std::vector<TensorImage> &inputs,
                                  const CheckOptions &options) {
  const BodyOp *const append = appendOf(kernel);
  if (!append) return {};
  const auto starts = std::ranges::find(kernel.inputs, append->operands[appendStarts]);
  if (starts == kernel.inputs.end()) return {};
  const TensorImage &start = inputs[size_t(starts - kernel.inputs.begin())];
  const TensorImage *table = nullptr;
  if (isPaged(*append)) {
    const auto found = std::ranges::find(kernel.inputs, append->operands[appendTable]);
    if (found == kernel.inputs.end()) return {};
    table = &inputs[size_t(found - kernel.inputs.begin())];
  }
  const size_t axis = appendAxis(*append), along = appendAlong(*append);
  const std::vector<int64_t> tokens = extentsOf(kernel, append->operands[appendedTokens]),
                             cache = extentsOf(kernel, append->operands[appendedCache]);
  Sample sample(tokens, options.points / 4, options.seed);
  for (int64_t n = 0; n < options.points / 4; ++n) {
    Place place = sample.anywhere();
    const int64_t sequence[] = {place[along]};
    place[axis] += int64_t(start.at(sequence));
    if (table) {
      const int64_t entry[] = {place[along], place[axis] / cache[axis]};
      if (place[axis] < 0 || entry[1] >= table->shape()[1]) continue;
      place[along] = int64_t(table->at(entry)), place[axis] %= cache[axis];
      if (place[along] < 0 || place[along] >= cache[along]) continue;
    }
    if (place[axis] >= 0 && place[axis] < cache[axis]) sample.add(place);
  }
  return std::move(sample.places);
}

}  // namespace

CheckResult checkOutputs(const Kernel &kernel, const std::vector<TensorImage> &inputs,
                         const std::vector<TensorImage> &outputs, const CheckOptions &options) {
  CheckResult result;
  for (size_t output = 0; output < outputs.size(); ++output) {
    std::vector<Place> places = samplePoints(kernel, output, options);
    std::ranges::copy(appendedPlaces(kernel, inputs, options), std::back_inserter(places));
    const size_t threads =
        std::clamp<size_t>(places.size() / 64, 1, size_t(std::max(1, options.threads)));
    std::vector<CheckResult> parts(threads);
    std::vector<std::string> failures(threads);
    std::vector<std::thread> workers;
    for (size_t t = 0; t < threads; ++t)
      workers.emplace_back([&, t] {
        const size_t begin = places.size() * t / threads, end = places.size() * (t + 1) / threads;
        try {
          parts[t] = comparePlaces(kernel, output, std::span(places).subspan(begin, end - begin),
                                   inputs, outputs[output], options);
        } catch (const Error &error) {
          failures[t] = error.what();
        }
      });
    for (std::thread &worker : workers) worker.join();
    for (const std::string &failure : failures)
      if (!failure.empty()) throw Error(ErrorKind::unsupported, failure);
    for (const CheckResult &part : parts) merge(result, part);
    if (result.problem.empty() && !outputs[output].intactAround())
      result.problem = fmt::format("writes outside output {}", output);
  }
  return result;
}

std::string describe(const CheckResult &result) {
  std::string text = result.problem;
  if (!result.worst) return text;
  const Mismatch &worst = *result.worst;
  return fmt::format("{}{}output {} at [{}]: {} instead of {} (bound {:.3g}); {} of {} points fail",
                     text, text.empty() ? "" : "; ", worst.output,
                     fmt::join(worst.coordinates, ", "), worst.got, worst.want, worst.bound,
                     result.failing, result.points);
}

}  // namespace weft::runtime
