// Attention in plain loops; see SequentialAttention.h.
#include "bench/sequential/SequentialAttention.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace weft::bench {
namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void score(const SequentialShape &shape, const float *q, const float *k, float *scores) {
  const float scale = 1 / std::sqrt(float(shape.head));
  for (int64_t row = 0; row < shape.length; ++row)
    for (int64_t column = 0; column < shape.length; ++column) {
      float sum = 0;
      for (int64_t p = 0; p < shape.head; ++p)
        sum += q[row * shape.head + p] * k[column * shape.head + p];
      scores[row * shape.length + column] = sum * scale;
    }
}

void softmax(const SequentialShape &shape, float *scores) {
  for (int64_t row = 0; row < shape.length; ++row) {
    float *const one = scores + row * shape.length;
    float most = one[0];
    for (int64_t column = 1; column < shape.length; ++column) most = std::max(most, one[column]);
    float sum = 0;
    for (int64_t column = 0; column < shape.length; ++column) {
      one[column] = std::exp(one[column] - most);
      sum += one[column];
    }
    for (int64_t column = 0; column < shape.length; ++column) one[column] /= sum;
  }
}

void weightedSum(const SequentialShape &shape, const float *scores, const float *v, float *out) {
  for (int64_t row = 0; row < shape.length; ++row)
    for (int64_t p = 0; p < shape.head; ++p) {
      float sum = 0;
      for (int64_t column = 0; column < shape.length; ++column)
        sum += scores[row * shape.length + column] * v[column * shape.head + p];
      out[row * shape.head + p] = sum;
    }
}

/// One row of the result in fp64.
std::vector<double> exactRow(const SequentialShape &shape, const float *q, const float *k,
                             const float *v, int64_t row) {
  std::vector<double> scores(size_t(shape.length), 0.0), result(size_t(shape.head), 0.0);
  for (int64_t column = 0; column < shape.length; ++column) {
    for (int64_t p = 0; p < shape.head; ++p)
      scores[size_t(column)] +=
          double(q[row * shape.head + p]) * double(k[column * shape.head + p]);
    scores[size_t(column)] /= std::sqrt(double(shape.head));
  }
  const double most = *std::ranges::max_element(scores);
  double sum = 0;
  for (double &one : scores) sum += one = std::exp(one - most);
  for (int64_t column = 0; column < shape.length; ++column)
    for (int64_t p = 0; p < shape.head; ++p)
      result[size_t(p)] += scores[size_t(column)] / sum * double(v[column * shape.head + p]);
  return result;
}

}  // namespace

SequentialTimes attend(const SequentialShape &shape, std::span<const float> q,
                       std::span<const float> k, std::span<const float> v, std::span<float> scores,
                       std::span<float> out) {
  SequentialTimes times;
  const int64_t operand = shape.length * shape.head, square = shape.length * shape.length;
  for (int64_t element = 0; element < shape.batch; ++element) {
    float *const own = scores.data() + element * square;
    const auto start = Clock::now();
    score(shape, q.data() + element * operand, k.data() + element * operand, own);
    times.score += secondsSince(start);
    const auto scored = Clock::now();
    softmax(shape, own);
    times.softmax += secondsSince(scored);
    const auto normalized = Clock::now();
    weightedSum(shape, own, v.data() + element * operand, out.data() + element * operand);
    times.weighted += secondsSince(normalized);
  }
  return times;
}

double greatestError(const SequentialShape &shape, std::span<const float> q,
                     std::span<const float> k, std::span<const float> v,
                     std::span<const float> out) {
  constexpr int64_t rows = 16;
  double greatest = 0;
  const int64_t operand = shape.length * shape.head;
  for (int64_t element = 0; element < shape.batch; ++element)
    for (int64_t row = 0; row < shape.length; row += std::max<int64_t>(1, shape.length / rows)) {
      const float *const begin = out.data() + element * operand + row * shape.head;
      const std::vector<double> exact =
          exactRow(shape, q.data() + element * operand, k.data() + element * operand,
                   v.data() + element * operand, row);
      for (int64_t p = 0; p < shape.head; ++p)
        greatest = std::max(greatest, std::abs(exact[size_t(p)] - double(begin[p])));
    }
  return greatest;
}

}  // namespace weft::bench
