// Layers evaluated by the reference interpreter against the same mathematics written down again, as
// row matrices and plain loops that share nothing with the builders: each family, biases, masks,
// grouping, rotary positions.
#include "ir/Weft.h"
#include "ir/interpreter/Interpreter.h"
#include "kernel/BlockMask.h"
#include "models/Models.h"
#include "tests/support/NonEmpty.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

using namespace weft;
using models::Model;
using models::Request;
using weft::test::nonEmpty;

namespace {

using Dims = std::map<std::string, int64_t>;
using Row = std::vector<double>;
using Rows = std::vector<Row>;  // one row a token, b slowest

GraphOp graphOf(const Model &model) {
  return *mlir::ModuleOp(*model.module).getOps<GraphOp>().begin();
}

std::vector<TensorValue> evaluateAll(const Model &model, const std::vector<TensorValue> &arguments,
                                     uint64_t seed = 1) {
  InterpreterOptions options;
  options.seed = seed;
  const auto results = interpret(graphOf(model), arguments, options);
  REQUIRE(mlir::succeeded(results));
  return *results;
}

std::vector<double> evaluate(const Model &model, const std::vector<TensorValue> &arguments,
                             uint64_t seed = 1) {
  const std::vector<TensorValue> results = evaluateAll(model, arguments, seed);
  REQUIRE(results.size() == 1);
  return results.front().elements;
}

/// The layer's mathematics by its textbook definition. Weights are looked up by the graph's
/// argument names.
class Reference {
public:
  Reference(const Model &model, const std::vector<TensorValue> &arguments)
      : dims(model.description.dims) {
    for (const auto &[index, value] : llvm::enumerate(arguments))
      weights[mlir::cast<mlir::NameLoc>(graphOf(model).getArgument(unsigned(index)).getLoc())
                  .getName()
                  .str()] = value.elements;
  }

  /// The same with the weights of one layer of several under the names of a layer alone.
  Reference ofLayer(int number) const {
    Reference one = *this;
    const std::string prefix = "layer" + std::to_string(number) + "_";
    for (const auto &[name, values] : weights)
      if (name.starts_with(prefix)) one.weights[name.substr(prefix.size())] = values;
    return one;
  }

  /// The rows of a table that indices [b, j] name, one a token.
  Rows gathered(const std::string &table, const std::string &indices, int64_t columns = 0) const {
    const Rows all = rows(weights.at(table), columns ? columns : dim("i"));
    Rows result;
    for (const double index : weights.at(indices)) result.push_back(all.at(size_t(index)));
    return result;
  }

  int64_t dim(const char *name) const { return dims.at(name); }
  bool has(const std::string &name) const { return weights.count(name) > 0; }
  Rows input(const std::string &name = "x") const { return rows(weights.at(name), dim("i")); }
  double weight(const std::string &name, int64_t place) const {
    return weights.at(name)[size_t(place)];
  }

  static Rows rows(const Row &flat, int64_t width) {
    Rows result;
    for (size_t start = 0; start < flat.size(); start += size_t(width))
      result.emplace_back(flat.begin() + long(start), flat.begin() + long(start) + width);
    return result;
  }

  /// y[o] = sum_n weight(o, n) x[n] + bias(o).
  static Rows linear(const Rows &x, int64_t outputs,
                     const std::function<double(int64_t, int64_t)> &weight,
                     const std::function<double(int64_t)> &bias) {
    Rows result;
    for (const Row &row : x) {
      Row &out = result.emplace_back(outputs);
      for (int64_t o = 0; o < outputs; ++o) {
        out[o] = bias(o);
        for (int64_t n = 0; n < int64_t(row.size()); ++n) out[o] += weight(o, n) * row[n];
      }
    }
    return result;
  }

  /// weight [outputs][inputs].
  Rows plainLinear(const Rows &x, const std::string &weight, const std::string &bias,
                   int64_t outputs) const {
    const Row &w = weights.at(weight);
    const int64_t inputs = int64_t(x[0].size());
    return linear(
        x, outputs, [&](int64_t o, int64_t n) { return w[o * inputs + n]; },
        [&](int64_t o) { return has(bias) ? weights.at(bias)[o] : 0.0; });
  }

  /// weight [head dim][heads][i], bias [head dim][heads]; columns of the result are head-major.
  Rows toHeads(const Rows &x, const std::string &weight, const std::string &bias,
               int64_t heads) const {
    const Row &w = weights.at(weight);
    const int64_t inputs = dim("i"), size = dim("p");
    const auto slot = [=](int64_t o) { return (o % size) * heads + o / size; };
    return linear(
        x, heads * size, [&](int64_t o, int64_t n) { return w[slot(o) * inputs + n]; },
        [&](int64_t o) { return has(bias) ? weights.at(bias)[slot(o)] : 0.0; });
  }

  Rows fromHeads(const Rows &x, const std::string &prefix = {}) const {
    const Row &w = weights.at(prefix + "wo");
    const int64_t heads = dim("h"), size = dim("p"), outputs = dim("i");
    return linear(
        x, outputs,
        [&](int64_t o, int64_t n) { return w[((n % size) * heads + n / size) * outputs + o]; },
        [&](int64_t o) { return has(prefix + "bo") ? weights.at(prefix + "bo")[o] : 0.0; });
  }

  /// Turns (x[d], x[d + turned/2]) of every head by position * frequency(d), of the first `turned`
  /// elements (0: all); without a function it is base^(-2 d / turned).
  void turn(Rows &x, int64_t heads, double base, int64_t turned = 0,
            const std::function<double(int64_t)> &frequency = {}) const {
    const int64_t size = dim("p"), pairs = turned > 0 ? turned : size, half = pairs / 2;
    for (size_t token = 0; token < x.size(); ++token)
      for (int64_t head = 0; head < heads; ++head)
        for (int64_t d = 0; d < half; ++d) {
          const double angle =
              double(int64_t(token) % dim("j")) *
              (frequency ? frequency(d) : std::pow(base, -2.0 * double(d) / double(pairs)));
          double &first = x[token][head * size + d], &second = x[token][head * size + d + half];
          const double a = first, b = second;
          first = a * std::cos(angle) - b * std::sin(angle);
          second = b * std::cos(angle) + a * std::sin(angle);
        }
  }

  /// Every head divided by its root mean square.
  void normalizeHeads(Rows &x, int64_t heads, const std::string &gamma, double epsilon) const {
    const int64_t size = dim("p");
    for (Row &row : x)
      for (int64_t head = 0; head < heads; ++head) {
        double square = 0;
        for (int64_t d = 0; d < size; ++d)
          square += row[head * size + d] * row[head * size + d] / double(size);
        for (int64_t d = 0; d < size; ++d)
          row[head * size + d] *= weight(gamma, d) / std::sqrt(square + epsilon);
      }
  }

  /// What distinguishes attentions.
  struct Attending {
    std::function<bool(int64_t query, int64_t key)> sees;
    double rotaryBase = 0;
    double scale = 0;  ///< 0: 1 / sqrt(p)
    std::function<double(int64_t head, int64_t distance)> bias = {};
    std::string prefix = {};       ///< of weights
    std::string suffix = {};       ///< of those of queries, keys and values
    const Rows *memory = nullptr;  ///< of keys and values; null: the queries'
    std::function<bool(int64_t head, int64_t query, int64_t key)> seesOfHead = {};
    int64_t turned = 0;                                  ///< of a head; 0: all
    std::function<double(int64_t pair)> frequency = {};  ///< of rotary positions
    double headEpsilon = 0;                              ///< of the norms of heads; 0: none
    /// Added before the scale, of heads' rows of a query and a key, and the numbers of their
    /// tokens.
    std::function<double(int64_t head, const Row &q, const Row &k, int64_t query, int64_t key)>
        term = {};
  };
  /// `sees(query, key)` decides the mask.
  Rows attention(const Rows &x, const std::function<bool(int64_t, int64_t)> &sees,
                 double rotaryBase = 0) const {
    return attention(x, Attending{.sees = sees, .rotaryBase = rotaryBase});
  }
  Rows attention(const Rows &x, const Attending &how) const {
    return fromHeads(heads(x, how), how.prefix);
  }
  /// Weighted values of all heads.
  Rows heads(const Rows &x, const Attending &how) const {
    const int64_t heads = dim("h"), groups = dims.count("g") ? dim("g") : heads, size = dim("p"),
                  length = dim("j"), keys = how.memory ? dim("m") : length;
    const Rows &source = how.memory ? *how.memory : x;
    const auto project = [&](const Rows &rows, const std::string &name, int64_t count) {
      return toHeads(rows, how.prefix + "w" + name + how.suffix,
                     how.prefix + "b" + name + how.suffix, count);
    };
    Rows q = project(x, "q", heads), k = project(source, "k", groups),
         v = project(source, "v", groups);
    if (how.headEpsilon > 0) {
      normalizeHeads(q, heads, "gamma_q", how.headEpsilon);
      normalizeHeads(k, groups, "gamma_k", how.headEpsilon);
    }
    if (how.rotaryBase > 0) {
      turn(q, heads, how.rotaryBase, how.turned, how.frequency);
      turn(k, groups, how.rotaryBase, how.turned, how.frequency);
    }
    const double scale = how.scale > 0 ? how.scale : 1 / std::sqrt(double(size));
    Rows mixed(x.size(), Row(heads * size, 0.0));
    for (int64_t token = 0; token < int64_t(x.size()); ++token)
      for (int64_t head = 0; head < heads; ++head) {
        const int64_t group = head / (heads / groups), first = token / length * keys;
        Row weight(keys);
        double total = 0;
        for (int64_t key = 0; key < keys; ++key) {
          double score = 0;
          for (int64_t d = 0; d < size; ++d)
            score += q[token][head * size + d] * k[first + key][group * size + d];
          if (how.term) score += how.term(head, q[token], k[first + key], token, first + key);
          const double bias = how.bias ? how.bias(head, key - token % length) : 0;
          const bool isSeen = how.seesOfHead ? how.seesOfHead(head, token % length, key)
                                             : how.sees(token % length, key);
          weight[key] = isSeen ? std::exp(score * scale + bias) : 0;
          total += weight[key];
        }
        for (int64_t key = 0; key < keys; ++key)
          for (int64_t d = 0; d < size; ++d)
            mixed[token][head * size + d] += weight[key] / total * v[first + key][group * size + d];
      }
    return mixed;
  }

  Rows layerNorm(Rows x, const std::string &suffix, double epsilon) const {
    for (Row &row : x) {
      double mean = 0, variance = 0;
      for (double value : row) mean += value / double(row.size());
      for (double value : row) variance += (value - mean) * (value - mean) / double(row.size());
      for (size_t n = 0; n < row.size(); ++n)
        row[n] = (row[n] - mean) / std::sqrt(variance + epsilon) * weights.at("gamma" + suffix)[n] +
                 (has("beta" + suffix) ? weights.at("beta" + suffix)[n] : 0);
    }
    return x;
  }

  Rows rmsNorm(Rows x, const std::string &weight, double epsilon) const {
    for (Row &row : x) {
      double square = 0;
      for (double value : row) square += value * value / double(row.size());
      for (size_t n = 0; n < row.size(); ++n)
        row[n] = row[n] / std::sqrt(square + epsilon) * weights.at(weight)[n];
    }
    return x;
  }

  static Rows zip(const Rows &a, const Rows &b,
                  const std::function<double(double, double)> &function) {
    Rows result = a;
    for (size_t r = 0; r < a.size(); ++r)
      for (size_t n = 0; n < a[r].size(); ++n) result[r][n] = function(a[r][n], b[r][n]);
    return result;
  }
  static Rows add(const Rows &a, const Rows &b) { return zip(a, b, std::plus<>()); }
  static Rows map(const Rows &a, const std::function<double(double)> &function) {
    return zip(a, a, [&](double value, double) { return function(value); });
  }

  Rows feedForward(const Rows &x, const std::function<double(double)> &activation) const {
    return plainLinear(map(plainLinear(x, "w1", "b1", dim("u")), activation), "w2", "b2", dim("i"));
  }

private:
  Dims dims;
  std::map<std::string, Row> weights;
};

double gelu(double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double geluTanh(double x) {
  return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double silu(double x) { return x / (1 + std::exp(-x)); }
bool all(int64_t, int64_t) { return true; }
bool causal(int64_t query, int64_t key) { return key <= query; }

void compare(const std::vector<double> &actual, const Rows &expected) {
  std::vector<double> flat;
  for (const Row &row : expected) flat.insert(flat.end(), row.begin(), row.end());
  REQUIRE(actual.size() == flat.size());
  double worst = 0, largest = 0;
  for (size_t n = 0; n < flat.size(); ++n) {
    REQUIRE(std::isfinite(actual[n]));
    worst = std::max(worst, std::abs(actual[n] - flat[n]));
    largest = std::max(largest, std::abs(flat[n]));
  }
  CHECK(largest > 0.1);
  CHECK(worst <= 1e-9 * largest);
}

Rows llamaLayer(const Reference &reference, const Rows &x, const Reference::Attending &how,
                double epsilon, const std::function<double(double)> &activation = silu) {
  const Rows attended =
      Reference::add(reference.attention(reference.rmsNorm(x, "gamma1", epsilon), how), x);
  const Rows normalized = reference.rmsNorm(attended, "gamma2", epsilon);
  const Rows gate = Reference::map(
      reference.plainLinear(normalized, "w_gate", "b_gate", reference.dim("u")), activation);
  const Rows up = reference.plainLinear(normalized, "w_up", "b_up", reference.dim("u"));
  const Rows gated = Reference::zip(gate, up, std::multiplies<>());
  return Reference::add(reference.plainLinear(gated, "w_down", "b_down", reference.dim("i")),
                        attended);
}

Rows llamaLayer(const Reference &reference, double base, double epsilon,
                const std::function<bool(int64_t, int64_t)> &sees) {
  return llamaLayer(reference, reference.input(), {.sees = sees, .rotaryBase = base}, epsilon);
}

Rows bertLayer(const Reference &reference, const Rows &x,
               const std::function<double(double)> &activation = gelu) {
  const Rows middle =
      reference.layerNorm(Reference::add(reference.attention(x, all), x), "1", 1e-12);
  return reference.layerNorm(Reference::add(reference.feedForward(middle, activation), middle), "2",
                             1e-12);
}

Rows gpt2Layer(const Reference &reference, const Rows &x) {
  const Rows attended =
      Reference::add(reference.attention(reference.layerNorm(x, "1", 1e-5), causal), x);
  return Reference::add(reference.feedForward(reference.layerNorm(attended, "2", 1e-5), geluTanh),
                        attended);
}

Model buildConfig(const std::string &text, const Dims &dims, mlir::MLIRContext &context,
                  Request request = {}) {
  const auto path = std::filesystem::temp_directory_path() / "weft-model-mathematics.json";
  std::ofstream(path) << text;
  request.model = path.string(), request.dims = dims, request.dtype = DType::f32;
  Model model = models::build(request, context);
  std::filesystem::remove(path);
  return model;
}

const Dims tiny = {{"b", 2}, {"j", 5}, {"h", 3}, {"i", 12}, {"u", 7}};

}  // namespace

TEST_CASE("a tiny BERT layer equals its definition") {
  mlir::MLIRContext context;
  const Model model =
      models::build({.model = "bert-base", .dims = tiny, .dtype = DType::f32}, context);
  const auto arguments = randomArguments(graphOf(model), 7);
  const Reference reference(model, arguments);
  compare(evaluate(model, arguments), bertLayer(reference, reference.input()));
}

TEST_CASE("a layer with quick GELU equals its definition") {
  mlir::MLIRContext context;
  const Model model = buildConfig(
      R"({"model_type": "bert", "hidden_size": 12, "num_attention_heads": 3,
          "intermediate_size": 7, "hidden_act": "quick_gelu"})",
      {{"b", 2}, {"j", 5}}, context);
  const auto arguments = randomArguments(graphOf(model), 7);
  const Reference reference(model, arguments);
  compare(evaluate(model, arguments), bertLayer(reference, reference.input(), [](double value) {
            return value / (1 + std::exp(-1.702 * value));
          }));
}

TEST_CASE("a tiny GPT-2 layer equals its definition") {
  mlir::MLIRContext context;
  const Model model = models::build({.model = "gpt2", .dims = tiny, .dtype = DType::f32}, context);
  const auto arguments = randomArguments(graphOf(model), 8);
  const Reference reference(model, arguments);
  compare(evaluate(model, arguments), gpt2Layer(reference, reference.input()));
}

TEST_CASE("a tiny Llama layer equals its definition") {
  mlir::MLIRContext context;
  const Dims dims = {{"b", 2}, {"j", 5}, {"h", 6}, {"g", 2}, {"p", 4}, {"i", 10}, {"u", 7}};
  const Model model =
      models::build({.model = "llama-3-8b", .dims = dims, .dtype = DType::f32}, context);
  const auto arguments = randomArguments(graphOf(model), 9);
  const Reference reference(model, arguments);
  compare(evaluate(model, arguments), llamaLayer(reference, 500000, 1e-5, causal));
}

/// A pre-norm layer of a decoder.
Rows decoderLayer(const Reference &reference, const Rows &x, const Reference::Attending &how,
                  const std::function<double(double)> &activation, double epsilon = 1e-5) {
  const Rows attended =
      Reference::add(reference.attention(reference.layerNorm(x, "1", epsilon), how), x);
  return Reference::add(
      reference.feedForward(reference.layerNorm(attended, "2", epsilon), activation), attended);
}

/// x plus the rows of a table of positions, one after the other in each sequence.
Rows positioned(const Reference &reference, Rows x) {
  const auto length = size_t(reference.dim("j")), columns = x[0].size();
  for (size_t token = 0; token < x.size(); ++token)
    for (size_t n = 0; n < columns; ++n)
      x[token][n] += reference.weight("position_table", int64_t(token % length * columns + n));
  return x;
}

TEST_CASE("tiny GPT-Neo layers of both kinds equal their definition") {
  mlir::MLIRContext context;
  const std::string file = R"({"model_type": "gpt_neo", "hidden_size": 12, "num_heads": 3,
      "intermediate_size": 7, "window_size": 2, "layer_norm_epsilon": 0.01, "attention_types": )";
  for (const bool isLocal : {false, true}) {
    const Model model =
        buildConfig(file + (isLocal ? R"([[["local"], 2]]})" : R"([[["global", "local"], 2]]})"),
                    {{"b", 2}, {"j", 5}}, context);
    const auto arguments = randomArguments(graphOf(model), 31);
    const Reference reference(model, arguments);
    for (const char *bias : {"bq", "bk", "bv"}) CHECK_FALSE(reference.has(bias));
    CHECK(reference.has("bo"));
    const Reference::Attending how{
        .sees = [&](int64_t query,
                    int64_t key) { return key <= query && (!isLocal || query - key < 2); },
        .scale = 1};
    compare(evaluate(model, arguments),
            decoderLayer(reference, reference.input(), how, geluTanh, 0.01));
  }
}

TEST_CASE("a tiny BigBird layer equals its definition, each head with its own random tiles") {
  mlir::MLIRContext context;
  const Model model = buildConfig(
      R"({"model_type": "big_bird", "hidden_size": 12, "num_attention_heads": 3,
          "intermediate_size": 7, "block_size": 16, "num_random_blocks": 1})",
      {{"b", 2}, {"j", 150}}, context);
  const auto arguments = randomArguments(graphOf(model), 32);
  const Reference reference(model, arguments);
  const BlockTable &table =
      blockTable("bigbird(block=16,window=3,global=2,random=1,seed=0,heads=each)", 3, 150, 150);
  CHECK(table.share() < 0.8);
  const Reference::Attending how{.sees = all,
                                 .seesOfHead = [&](int64_t head, int64_t query, int64_t key) {
                                   return table.sees(head, query, key);
                                 }};
  const Rows x = reference.input();
  const Rows middle =
      reference.layerNorm(Reference::add(reference.attention(x, how), x), "1", 1e-12);
  compare(evaluate(model, arguments),
          reference.layerNorm(Reference::add(reference.feedForward(middle, geluTanh), middle), "2",
                              1e-12));
}

TEST_CASE("a tiny Longformer layer equals its definition, padded or not") {
  mlir::MLIRContext context;
  for (const bool isPadded : {false, true}) {
    Dims dims = tiny;
    dims["j"] = 9, dims["a"] = 2;
    const auto path = std::filesystem::temp_directory_path() / "weft-longformer-mathematics.json";
    std::ofstream(path) << R"({"model_type": "longformer", "hidden_size": 12,
        "num_attention_heads": 3, "intermediate_size": 7, "attention_window": [4, 4]})";
    const Model model = models::build(
        {.model = path.string(), .dims = dims, .dtype = DType::f32, .mask = {.padding = isPadded}},
        context);
    std::filesystem::remove(path);
    auto arguments = randomArguments(graphOf(model), 33);
    const std::vector<double> lengths = {8, 8};
    for (const auto &[index, value] : llvm::enumerate(arguments))
      if (mlir::cast<mlir::NameLoc>(graphOf(model).getArgument(unsigned(index)).getLoc())
              .getName() == "lengths")
        value.elements = lengths;
    const Reference reference(model, arguments);
    CHECK(reference.has("lengths") == isPadded);
    const auto isKey = [&](int64_t key) { return !isPadded || key < 8; };
    const Reference::Attending global{.sees = [&](int64_t, int64_t key) { return isKey(key); },
                                      .suffix = "_global"};
    const Reference::Attending local{.sees = [&](int64_t query, int64_t key) {
      return isKey(key) && (std::abs(query - key) <= 2 || key < 2);
    }};
    const Rows x = reference.input();
    Rows heads = reference.heads(x, local);
    const Rows first = reference.heads(x, global);
    for (size_t token = 0; token < heads.size(); ++token)
      if (token % 9 < 2) heads[token] = first[token];
    const Rows middle =
        reference.layerNorm(Reference::add(reference.fromHeads(heads), x), "1", 1e-12);
    compare(evaluate(model, arguments),
            reference.layerNorm(Reference::add(reference.feedForward(middle, gelu), middle), "2",
                                1e-12));
  }
}

/// Token ids, and token types where the model has some, in the place of random integers.
std::vector<TensorValue> argumentsOf(const Model &model, uint64_t seed) {
  std::vector<TensorValue> arguments = randomArguments(graphOf(model), seed);
  for (const auto &[index, argument] : llvm::enumerate(graphOf(model).getArguments())) {
    const std::string name = mlir::cast<mlir::NameLoc>(argument.getLoc()).getName().str();
    const int64_t rows = name == "tokens"  ? model.description.dims.at("v")
                         : name == "types" ? model.description.dims.at("s")
                                           : 0;
    for (size_t n = 0; rows > 0 && n < arguments[index].elements.size(); ++n)
      arguments[index].elements[n] = double((3 + 5 * n) % size_t(rows));
  }
  return arguments;
}

TEST_CASE("a tiny whole BERT equals its definition, pooler and token types included") {
  mlir::MLIRContext context;
  Dims dims = tiny;
  dims["v"] = 11;
  const Model model = models::build({.model = "bert-base",
                                     .dims = dims,
                                     .dtype = DType::f32,
                                     .part = models::Part::model,
                                     .layers = 3},
                                    context);
  const auto arguments = argumentsOf(model, 31);
  const Reference reference(model, arguments);
  Rows x = Reference::add(reference.gathered("token_table", "tokens"),
                          reference.gathered("type_table", "types"));
  for (size_t token = 0; token < x.size(); ++token)
    for (size_t n = 0; n < x[token].size(); ++n)
      x[token][n] += reference.weight("position_table", int64_t(token % 5 * 12 + n));
  x = reference.layerNorm(x, "0", 1e-12);
  for (const int layer : {1, 2, 3}) x = bertLayer(reference.ofLayer(layer), x);
  const std::vector<TensorValue> results = evaluateAll(model, arguments);
  REQUIRE(results.size() == 2);
  compare(results[0].elements, x);
  const Rows first = {x[0], x[5]};
  CHECK(results[1].shape == std::vector<int64_t>{2, 12});
  compare(results[1].elements, Reference::map(reference.plainLinear(first, "w_pool", "b_pool", 12),
                                              [](double value) { return std::tanh(value); }));
}

TEST_CASE("a tiny whole ALBERT equals its definition: narrow tables, one set of weights") {
  mlir::MLIRContext context;
  Dims dims = tiny;
  dims["v"] = 11, dims["d"] = 4;
  const Model model = models::build({.model = "albert-base",
                                     .dims = dims,
                                     .dtype = DType::f32,
                                     .part = models::Part::model,
                                     .layers = 3},
                                    context);
  const auto arguments = argumentsOf(model, 31);
  CHECK(arguments.size() == 2 + 7 + 16 + 2);  // ids; embeddings, one layer and pooler
  const Reference reference(model, arguments);
  Rows x = Reference::add(reference.gathered("token_table", "tokens", 4),
                          reference.gathered("type_table", "types", 4));
  for (size_t token = 0; token < x.size(); ++token)
    for (size_t n = 0; n < x[token].size(); ++n)
      x[token][n] += reference.weight("position_table", int64_t(token % 5 * 4 + n));
  x = reference.plainLinear(reference.layerNorm(x, "0", 1e-12), "w_embedding", "b_embedding", 12);
  for (int layer = 0; layer < 3; ++layer) x = bertLayer(reference, x, geluTanh);
  const std::vector<TensorValue> results = evaluateAll(model, arguments);
  REQUIRE(results.size() == 2);
  compare(results[0].elements, x);
  compare(results[1].elements,
          Reference::map(reference.plainLinear({x[0], x[5]}, "w_pool", "b_pool", 12),
                         [](double value) { return std::tanh(value); }));
}

TEST_CASE("a tiny whole DistilBERT equals its definition, without types and pooler") {
  mlir::MLIRContext context;
  Dims dims = tiny;
  dims["v"] = 11;
  const Model model = models::build({.model = "distilbert",
                                     .dims = dims,
                                     .dtype = DType::f32,
                                     .part = models::Part::model,
                                     .layers = 2},
                                    context);
  const auto arguments = argumentsOf(model, 31);
  const Reference reference(model, arguments);
  CHECK_FALSE(reference.has("types"));
  Rows x = reference.gathered("token_table", "tokens");
  for (size_t token = 0; token < x.size(); ++token)
    for (size_t n = 0; n < x[token].size(); ++n)
      x[token][n] += reference.weight("position_table", int64_t(token % 5 * 12 + n));
  x = reference.layerNorm(x, "0", 1e-12);
  for (const int layer : {1, 2}) x = bertLayer(reference.ofLayer(layer), x);
  compare(evaluate(model, arguments), x);
}

TEST_CASE("a tiny whole GPT-2 equals its definition, with logits by the table of tokens") {
  mlir::MLIRContext context;
  Dims dims = tiny;
  dims["v"] = 11;
  const Model model = models::build({.model = "gpt2",
                                     .dims = dims,
                                     .dtype = DType::f32,
                                     .part = models::Part::model,
                                     .layers = 2},
                                    context);
  const auto arguments = argumentsOf(model, 32);
  const Reference reference(model, arguments);
  CHECK_FALSE(reference.has("output_weight"));
  Rows x = reference.gathered("token_table", "tokens");
  for (size_t token = 0; token < x.size(); ++token)
    for (size_t n = 0; n < x[token].size(); ++n)
      x[token][n] += reference.weight("position_table", int64_t(token % 5 * 12 + n));
  for (const int layer : {1, 2}) x = gpt2Layer(reference.ofLayer(layer), x);
  compare(evaluate(model, arguments),
          reference.plainLinear(reference.layerNorm(x, "_last", 1e-5), "token_table", "", 11));
}

TEST_CASE("a tiny whole Llama equals its definition, with a projection to the vocabulary") {
  mlir::MLIRContext context;
  const Dims dims = {{"b", 2}, {"j", 5},  {"h", 6}, {"g", 2},
                     {"p", 4}, {"i", 10}, {"u", 7}, {"v", 11}};
  const Model model = models::build({.model = "llama-3-8b",
                                     .dims = dims,
                                     .dtype = DType::f32,
                                     .part = models::Part::model,
                                     .layers = 2},
                                    context);
  const auto arguments = argumentsOf(model, 33);
  const Reference reference(model, arguments);
  Rows x = reference.gathered("token_table", "tokens");
  for (const int layer : {1, 2})
    x = llamaLayer(reference.ofLayer(layer), x, {.sees = causal, .rotaryBase = 500000}, 1e-5);
  compare(evaluate(model, arguments),
          reference.plainLinear(reference.rmsNorm(x, "gamma_last", 1e-5), "output_weight", "", 11));
}

TEST_CASE("several layers are in sequence") {
  mlir::MLIRContext context;
  const Model model =
      models::build({.model = "gpt2", .dims = tiny, .dtype = DType::f32, .layers = 3}, context);
  CHECK(model.description.layers == 3);
  const auto arguments = randomArguments(graphOf(model), 34);
  const Reference reference(model, arguments);
  Rows x = reference.input();
  for (const int layer : {1, 2, 3}) x = gpt2Layer(reference.ofLayer(layer), x);
  compare(evaluate(model, arguments), x);
}

TEST_CASE("tiny BLOOM and MPT layers equal their definition, whatever the number of heads") {
  mlir::MLIRContext context;
  // Press et al.: of three heads two are those of two, the third stands before them.
  const auto slope = [](int64_t head) {
    return std::exp2(std::array{-4.0, -8.0, -2.0}[size_t(head)]);
  };
  const Reference::Attending how{.sees = causal, .bias = [&](int64_t head, int64_t distance) {
                                   return slope(head) * double(distance);
                                 }};
  for (const bool isBloom : {true, false}) {
    const Model model = models::build(
        {.model = isBloom ? "bloom-560m" : "mpt-7b", .dims = tiny, .dtype = DType::f32}, context);
    const auto arguments = randomArguments(graphOf(model), 21);
    const Reference reference(model, arguments);
    for (const char *bias : {"bq", "bo", "b1", "b2", "beta1", "beta2"})
      CHECK(reference.has(bias) == isBloom);
    compare(evaluate(model, arguments),
            decoderLayer(reference, reference.input(), how, isBloom ? geluTanh : gelu));
  }
}

TEST_CASE("tiny whole BLOOM and MPT equal their definition, the one with normalized embeddings") {
  mlir::MLIRContext context;
  const Reference::Attending how{.sees = causal, .bias = [&](int64_t head, int64_t distance) {
                                   return std::exp2(head == 0 ? -4.0 : -8.0) * double(distance);
                                 }};
  for (const bool isBloom : {true, false}) {
    const Dims dims = {{"b", 2}, {"j", 5}, {"h", 2}, {"i", 8}, {"u", 7}, {"v", 11}};
    const Model model = models::build({.model = isBloom ? "bloom-560m" : "mpt-7b",
                                       .dims = dims,
                                       .dtype = DType::f32,
                                       .part = models::Part::model,
                                       .layers = 2},
                                      context);
    const auto arguments = argumentsOf(model, 35);
    const Reference reference(model, arguments);
    CHECK_FALSE(reference.has("position_table"));
    Rows x = reference.gathered("token_table", "tokens");
    if (isBloom) x = reference.layerNorm(x, "0", 1e-5);
    for (const int layer : {1, 2})
      x = decoderLayer(reference.ofLayer(layer), x, how, isBloom ? geluTanh : gelu);
    compare(evaluate(model, arguments),
            reference.plainLinear(reference.layerNorm(x, "_last", 1e-5), "token_table", "", 11));
  }
}

TEST_CASE("a tiny whole GPT-Neo equals its definition, layers of both kinds by turns") {
  mlir::MLIRContext context;
  const auto path = std::filesystem::temp_directory_path() / "weft-gpt-neo-mathematics.json";
  std::ofstream(path) << R"({"model_type": "gpt_neo", "hidden_size": 12, "num_heads": 3,
      "intermediate_size": 7, "window_size": 2, "vocab_size": 11, "num_layers": 4,
      "attention_layers": ["global", "local", "local", "global"]})";
  const Model model = models::build({.model = path.string(),
                                     .dims = {{"b", 2}, {"j", 5}},
                                     .dtype = DType::f32,
                                     .part = models::Part::model},
                                    context);
  std::filesystem::remove(path);
  const auto arguments = argumentsOf(model, 36);
  const Reference reference(model, arguments);
  Rows x = positioned(reference, reference.gathered("token_table", "tokens"));
  for (const int layer : {1, 2, 3, 4}) {
    const bool isLocal = layer == 2 || layer == 3;
    const Reference::Attending how{
        .sees = [&](int64_t query,
                    int64_t key) { return key <= query && (!isLocal || query - key < 2); },
        .scale = 1};
    x = decoderLayer(reference.ofLayer(layer), x, how, geluTanh);
  }
  compare(evaluate(model, arguments),
          reference.plainLinear(reference.layerNorm(x, "_last", 1e-5), "token_table", "", 11));
}

TEST_CASE("tiny whole BigBird, Longformer and RoBERTa equal their definition") {
  mlir::MLIRContext context;
  const std::string sizes = R"(, "hidden_size": 12, "num_attention_heads": 3, "vocab_size": 11,
      "intermediate_size": 7, "num_hidden_layers": 2)";
  const std::map<std::string, std::string> files = {
      {"big_bird", R"(, "rescale_embeddings": true, "block_size": 16, "num_random_blocks": 1)"},
      {"longformer", R"(, "attention_window": 4)"},
      {"roberta", R"(, "max_position_embeddings": 11)"}};
  for (const auto &[type, own] : files) {
    INFO(type);
    const int64_t length = type == "big_bird" ? 100 : 9;
    Dims dims = {{"b", 2}, {"j", length}};
    if (type == "longformer") dims["a"] = 2;
    const auto path = std::filesystem::temp_directory_path() / "weft-encoder-mathematics.json";
    std::ofstream(path) << R"({"model_type": ")" + type + "\"" + sizes + own + "}";
    const Model model = models::build(
        {.model = path.string(), .dims = dims, .dtype = DType::f32, .part = models::Part::model},
        context);
    std::filesystem::remove(path);
    const auto arguments = argumentsOf(model, 37);
    const Reference reference(model, arguments);
    const double scale = type == "big_bird" ? std::sqrt(12.0) : 1;
    Rows x = Reference::add(Reference::map(reference.gathered("token_table", "tokens"),
                                           [&](double value) { return value * scale; }),
                            reference.gathered("type_table", "types"));
    x = reference.layerNorm(positioned(reference, x), "0", 1e-12);
    const BlockTable &table =
        blockTable("bigbird(block=16,window=3,global=2,random=1,seed=0,heads=each)", 3, 100, 100);
    const Reference::Attending how{
        .sees =
            [&](int64_t query, int64_t key) {
              return type != "longformer" || std::abs(query - key) <= 2 || key < 2;
            },
        .seesOfHead = type == "big_bird" ? [&](int64_t head, int64_t query,
                                               int64_t key) { return table.sees(head, query, key); }
                                         : std::function<bool(int64_t, int64_t, int64_t)>()};
    const auto activation = type == "big_bird" ? geluTanh : gelu;
    for (const int number : {1, 2}) {
      const Reference layer = reference.ofLayer(number);
      Rows heads = layer.heads(x, how);
      if (type == "longformer") {
        const Rows global = layer.heads(x, {.sees = all, .suffix = "_global"});
        for (size_t token = 0; token < heads.size(); ++token)
          if (token % 9 < 2) heads[token] = global[token];
      }
      const Rows middle = layer.layerNorm(Reference::add(layer.fromHeads(heads), x), "1", 1e-12);
      x = layer.layerNorm(Reference::add(layer.feedForward(middle, activation), middle), "2",
                          1e-12);
    }
    const std::vector<TensorValue> results = evaluateAll(model, arguments);
    REQUIRE(results.size() == 2);
    compare(results[0].elements, x);
    compare(results[1].elements,
            Reference::map(reference.plainLinear({x[0], x[size_t(length)]}, "w_pool", "b_pool", 12),
                           [](double value) { return std::tanh(value); }));
  }
}

TEST_CASE("tiny layers of T5 equal their definition") {
  const std::string sizes = R"({"model_type": "t5", "d_model": 10, "d_kv": 4, "d_ff": 7,
                                "num_heads": 3, "relative_attention_num_buckets": 8,
                                "relative_attention_max_distance": 6)";
  // Buckets of 8 up to 6: the nearest 2 (encoder) or 4 (decoder) have one each, then by log.
  const auto bucket = [](bool isDecoder, int64_t distance) -> int64_t {
    const int64_t away = isDecoder ? std::max<int64_t>(-distance, 0) : std::abs(distance);
    if (isDecoder) return std::array{0, 1, 2, 3, 4, 6, 7, 7, 7}[size_t(away)];
    return std::array{0, 1, 2, 2, 3, 3, 3, 3, 3}[size_t(away)] + (distance > 0 ? 4 : 0);
  };
  mlir::MLIRContext context;
  for (const bool isDecoder : {false, true})
    for (const bool isGated : {false, true}) {
      INFO(isDecoder << " " << isGated);
      const Model model = buildConfig(
          sizes + (isDecoder ? R"(, "is_decoder": true)" : "") +
              (isGated ? R"(, "feed_forward_proj": "gated-gelu"})" : "}"),
          isDecoder ? Dims{{"b", 2}, {"j", 8}, {"m", 5}} : Dims{{"b", 2}, {"j", 8}}, context);
      const auto arguments = randomArguments(graphOf(model), 22);
      const Reference reference(model, arguments);
      const Rows x = reference.input();
      const Reference::Attending own{
          .sees = isDecoder ? causal : all,
          .scale = 1,
          .bias = [&](int64_t head, int64_t distance) {
            return reference.weight("relative_table", bucket(isDecoder, distance) * 3 + head);
          }};
      Rows stream =
          Reference::add(reference.attention(reference.rmsNorm(x, "gamma1", 1e-6), own), x);
      if (isDecoder) {
        const Rows memory = reference.input("memory");
        stream =
            Reference::add(reference.attention(
                               reference.rmsNorm(stream, "gamma_cross", 1e-6),
                               Reference::Attending{
                                   .sees = all, .scale = 1, .prefix = "cross_", .memory = &memory}),
                           stream);
      }
      const Rows middle = reference.rmsNorm(stream, "gamma2", 1e-6);
      Rows fed;
      if (isGated) {
        const Rows gate = Reference::map(reference.plainLinear(middle, "w_gate", "", 7), geluTanh);
        fed = reference.plainLinear(
            Reference::zip(gate, reference.plainLinear(middle, "w_up", "", 7), std::multiplies<>()),
            "w_down", "", 10);
      } else {
        fed = reference.feedForward(middle, [](double value) { return std::max(value, 0.0); });
      }
      compare(evaluate(model, arguments), Reference::add(fed, stream));
    }
}

TEST_CASE("a tiny whole DeBERTa equals its definition, beyond its distances and padded") {
  const auto [terms, file, hasQueries, hasKeys] =
      GENERATE(std::tuple(3, R"("pos_att_type": "c2p|p2c")", true, true),
               std::tuple(2, R"("pos_att_type": ["c2p"])", true, false),
               std::tuple(2, R"("pos_att_type": "p2c")", false, true),
               std::tuple(1, R"("pos_att_type": null)", false, false));
  INFO(file);
  mlir::MLIRContext context;
  // Distances of 3 and more to one side are one, of 4 and more to the other; 7 occur.
  const Model model = buildConfig(
      std::string(R"({"model_type": "deberta", "hidden_size": 12, "num_attention_heads": 3,
                      "intermediate_size": 7, "num_hidden_layers": 2, "vocab_size": 11,
                      "relative_attention": true, "position_biased_input": false,
                      "type_vocab_size": 0, "max_relative_positions": 3, )") +
          file + "}",
      {{"b", 2}, {"j", 7}}, context, {.part = models::Part::model, .mask = {.padding = true}});
  auto arguments = argumentsOf(model, 24);
  const std::array lengths = {7, 4};
  for (const auto &[index, argument] : llvm::enumerate(graphOf(model).getArguments()))
    if (mlir::cast<mlir::NameLoc>(argument.getLoc()).getName() == "lengths")
      arguments[index].elements = {double(lengths[0]), double(lengths[1])};
  const Reference whole(model, arguments);
  CHECK(whole.has("relative_table") == (hasQueries || hasKeys));
  CHECK_FALSE(whole.has("layer1_bk"));
  Rows x = whole.layerNorm(whole.gathered("token_table", "tokens"), "0", 1e-7);
  for (const int number : {1, 2}) {
    const Reference layer = whole.ofLayer(number);
    CHECK(layer.has("w_position_keys") == hasQueries);
    CHECK(layer.has("b_position_queries") == hasKeys);
    Rows keys, queries;  // of distances
    if (hasQueries) keys = layer.toHeads(layer.input("relative_table"), "w_position_keys", "", 3);
    if (hasKeys)
      queries = layer.toHeads(layer.input("relative_table"), "w_position_queries",
                              "b_position_queries", 3);
    const Reference::Attending how{
        .sees = all,
        .scale = 1 / std::sqrt(4.0 * terms),
        .term = [&](int64_t head, const Row &q, const Row &k, int64_t query, int64_t key) {
          if (key % 7 >= lengths[size_t(key / 7)]) return -std::numeric_limits<double>::infinity();
          const auto row = size_t(std::clamp<int64_t>(query - key + 3, 0, 5));
          double sum = 0;
          for (int64_t d = 4 * head; d < 4 * head + 4; ++d) {
            if (hasQueries) sum += q[size_t(d)] * keys[row][size_t(d)];
            if (hasKeys) sum += k[size_t(d)] * queries[row][size_t(d)];
          }
          return sum;
        }};
    const Rows middle = layer.layerNorm(Reference::add(layer.attention(x, how), x), "1", 1e-7);
    x = layer.layerNorm(Reference::add(layer.feedForward(middle, gelu), middle), "2", 1e-7);
  }
  compare(evaluate(model, arguments), x);
}

TEST_CASE("a tiny DeBERTa layer reads the middle of a table of more distances than occur") {
  mlir::MLIRContext context;
  const Model model =
      models::build({.model = "deberta-base", .dims = tiny, .dtype = DType::f32}, context);
  CHECK(model.description.dims.at("n") == 1024);
  CHECK(model.description.dims.at("l") == 16);  // 10 occur; rows of whole 16 bytes
  const auto arguments = randomArguments(graphOf(model), 25);
  const Reference layer(model, arguments);
  const Rows x = layer.input(), table = layer.input("relative_table"),
             keys = layer.toHeads(table, "w_position_keys", "", 3),
             queries = layer.toHeads(table, "w_position_queries", "b_position_queries", 3);
  const Reference::Attending how{
      .sees = all,
      .scale = 1 / std::sqrt(12.0),
      .term = [&](int64_t head, const Row &q, const Row &k, int64_t query, int64_t key) {
        double sum = 0;
        for (int64_t d = 4 * head; d < 4 * head + 4; ++d)
          sum += q[size_t(d)] * keys[size_t(query - key + 512)][size_t(d)] +
                 k[size_t(d)] * queries[size_t(query - key + 512)][size_t(d)];
        return sum;
      }};
  const Rows middle = layer.layerNorm(Reference::add(layer.attention(x, how), x), "1", 1e-7);
  compare(evaluate(model, arguments),
          layer.layerNorm(Reference::add(layer.feedForward(middle, gelu), middle), "2", 1e-7));
}

TEST_CASE("a tiny decoder layer over a memory of another length equals its definition") {
  mlir::MLIRContext context;
  Dims dims = tiny;
  dims["m"] = 8;
  const Model model =
      models::build({.model = "transformer-decoder", .dims = dims, .dtype = DType::f32}, context);
  const auto arguments = randomArguments(graphOf(model), 23);
  const Reference reference(model, arguments);
  const Rows x = reference.input(), memory = reference.input("memory");
  const Rows first =
      reference.layerNorm(Reference::add(reference.attention(x, causal), x), "1", 1e-5);
  const Reference::Attending cross{.sees = all, .prefix = "cross_", .memory = &memory};
  const Rows second =
      reference.layerNorm(Reference::add(reference.attention(first, cross), first), "2", 1e-5);
  const Rows fed = reference.feedForward(second, [](double value) { return std::max(value, 0.0); });
  compare(evaluate(model, arguments), reference.layerNorm(Reference::add(fed, second), "3", 1e-5));
}

TEST_CASE("windows and biases of Llama's relatives equal their definition") {
  mlir::MLIRContext context;
  const std::string sizes =
      R"(, "hidden_size": 10, "num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 4,
                                "intermediate_size": 7, "rope_theta": 100, "rms_norm_eps": 0.01)";
  const Model mistral = buildConfig(
      R"({"model_type": "mistral", "sliding_window": 3)" + sizes + "}", {{"j", 6}}, context);
  const auto forMistral = randomArguments(graphOf(mistral), 10);
  compare(evaluate(mistral, forMistral),
          llamaLayer(Reference(mistral, forMistral), 100, 0.01,
                     [](int64_t query, int64_t key) { return key <= query && query - key < 3; }));

  const Model qwen = buildConfig(R"({"model_type": "qwen2")" + sizes + "}", {{"j", 4}}, context);
  const auto forQwen = randomArguments(graphOf(qwen), 11);
  CHECK(Reference(qwen, forQwen).has("bk"));
  CHECK_FALSE(Reference(qwen, forQwen).has("bo"));
  compare(evaluate(qwen, forQwen), llamaLayer(Reference(qwen, forQwen), 100, 0.01, causal));

  const Model biased = buildConfig(
      R"({"model_type": "llama", "attention_bias": true, "mlp_bias": true)" + sizes + "}",
      {{"j", 4}}, context);
  const auto forBiased = randomArguments(graphOf(biased), 12);
  CHECK(Reference(biased, forBiased).has("b_down"));
  compare(evaluate(biased, forBiased), llamaLayer(Reference(biased, forBiased), 100, 0.01, causal));
}

TEST_CASE("rotary positions of longer contexts and of parts of heads equal their definition") {
  mlir::MLIRContext context;
  const std::string sizes =
      R"(, "hidden_size": 10, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8,
          "intermediate_size": 7, "rope_theta": 100, "rms_norm_eps": 0.01)";
  struct Case {
    std::string type, keys;
    int64_t turned;
    std::function<double(double frequency)> scaled;
  };
  const auto llama3 = [](double frequency) {
    const double wavelength = 2 * M_PI / frequency;
    if (wavelength < 16 / 4.0) return frequency;
    if (wavelength > 16 / 0.5) return frequency / 8;
    const double smooth = (16 / wavelength - 0.5) / (4 - 0.5);
    return (1 - smooth) * frequency / 8 + smooth * frequency;
  };
  const std::string three = R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 0.5,
      "high_freq_factor": 4.0, "original_max_position_embeddings": 16)";
  for (const Case &one :
       {Case{"llama", R"("rope_scaling": )" + three + "}", 8, llama3},
        Case{"llama", R"("rope_parameters": )" + three + R"(, "rope_theta": 100})", 8, llama3},
        Case{"llama", R"("rope_scaling": {"type": "linear", "factor": 4.0})", 8,
             [](double frequency) { return frequency / 4; }},
        Case{"phi3", R"("partial_rotary_factor": 0.75)", 6,
             [](double frequency) { return frequency; }}}) {
    INFO(one.keys);
    const Model model =
        buildConfig(R"({"model_type": ")" + one.type + "\"" + sizes + ", " + one.keys + "}",
                    {{"j", 9}}, context);
    const auto arguments = randomArguments(graphOf(model), 14);
    const Reference reference(model, arguments);
    const Reference::Attending how{
        .sees = causal, .rotaryBase = 100, .turned = one.turned, .frequency = [&](int64_t pair) {
          return one.scaled(std::pow(100.0, -2.0 * double(pair) / double(one.turned)));
        }};
    compare(evaluate(model, arguments), llamaLayer(reference, reference.input(), how, 0.01));
  }
}

TEST_CASE("tiny whole Qwen3, Gemma and OPT equal their definition") {
  mlir::MLIRContext context;
  const std::string llama = R"(, "hidden_size": 10, "num_attention_heads": 2, "vocab_size": 11,
      "num_key_value_heads": 1, "head_dim": 8, "intermediate_size": 7, "num_hidden_layers": 2)";
  const std::map<std::string, std::string> files = {
      {"qwen3", llama + R"(, "use_sliding_window": true, "sliding_window": 3,
                             "max_window_layers": 1)"},
      {"gemma", llama + R"(, "hidden_act": "gelu")"},
      {"opt", R"(, "hidden_size": 12, "num_attention_heads": 3, "vocab_size": 11, "ffn_dim": 7,
                 "num_hidden_layers": 2, "word_embed_proj_dim": 12)"}};
  for (const auto &[type, own] : files) {
    INFO(type);
    const auto path = std::filesystem::temp_directory_path() / "weft-decoder-mathematics.json";
    std::ofstream(path) << R"({"model_type": ")" + type + "\"" + own + "}";
    const Model model = models::build({.model = path.string(),
                                       .dims = {{"j", 5}, {"b", 2}},
                                       .dtype = DType::f32,
                                       .part = models::Part::model},
                                      context);
    std::filesystem::remove(path);
    const auto arguments = argumentsOf(model, 38);
    const Reference reference(model, arguments);
    Rows x = reference.gathered("token_table", "tokens");
    if (type == "opt") {
      x = positioned(reference, x);
      for (const int layer : {1, 2})
        x = decoderLayer(reference.ofLayer(layer), x, {.sees = causal},
                         [](double value) { return std::max(value, 0.0); });
      x = reference.layerNorm(x, "_last", 1e-5);
    } else {
      const bool isQwen = type == "qwen3";
      if (!isQwen) x = Reference::map(x, [](double value) { return value * std::sqrt(10.0); });
      for (const int layer : {1, 2}) {
        const Reference::Attending how{.sees =
                                           [&](int64_t query, int64_t key) {
                                             return key <= query &&
                                                    (!isQwen || layer == 1 || query - key < 3);
                                           },
                                       .rotaryBase = 10000,
                                       .headEpsilon = isQwen ? 1e-6 : 0};
        x = llamaLayer(reference.ofLayer(layer), x, how, 1e-6, isQwen ? silu : geluTanh);
      }
      x = reference.rmsNorm(x, "gamma_last", 1e-6);
    }
    CHECK(reference.has("output_weight") == (type == "qwen3"));
    compare(evaluate(model, arguments),
            reference.plainLinear(x, type == "qwen3" ? "output_weight" : "token_table", "", 11));
  }
}

TEST_CASE("attention of equal values gives those values: its rows sum to one") {
  mlir::MLIRContext context;
  for (const Dims &dims :
       {Dims{{"b", 2}, {"h", 4}, {"j", 3}, {"k", 5}, {"p", 6}},
        Dims{{"b", 2}, {"h", 4}, {"g", 2}, {"j", 3}, {"k", 5}, {"p", 6}, {"w", 1}}}) {
    const Model model =
        models::build({.model = "attention", .dims = dims, .dtype = DType::f32}, context);
    auto arguments = randomArguments(graphOf(model), 13);
    for (double &value : arguments[2].elements) value = 2.5;
    const std::vector<double> result = evaluate(model, arguments);
    CHECK(int64_t(result.size()) == 2 * 4 * 3 * model.description.dims.at("w"));
    for (double value : nonEmpty(result)) CHECK(value == Approx(2.5).epsilon(1e-12));
  }
}

TEST_CASE("grouped attention equals attention whose keys and values are repeated") {
  mlir::MLIRContext context;
  const Dims shared = {{"b", 2}, {"h", 4}, {"j", 3}, {"k", 5}, {"p", 6}};
  Dims grouped = shared;
  grouped["g"] = 2;
  const Model few =
      models::build({.model = "attention", .dims = grouped, .dtype = DType::f32}, context);
  const Model many =
      models::build({.model = "attention", .dims = shared, .dtype = DType::f32}, context);
  const auto fewArguments = randomArguments(graphOf(few), 14);
  auto manyArguments = randomArguments(graphOf(many), 14);
  manyArguments[0] = fewArguments[0];
  const size_t head = 5 * 6;
  for (size_t argument : {1, 2})
    for (size_t b = 0; b < 2; ++b)
      for (size_t h = 0; h < 4; ++h)
        for (size_t n = 0; n < head; ++n)
          manyArguments[argument].elements[(b * 4 + h) * head + n] =
              fewArguments[argument].elements[(b * 2 + h / 2) * head + n];
  const auto a = evaluate(few, fewArguments), b = evaluate(many, manyArguments);
  REQUIRE(a.size() == b.size());
  for (size_t n = 0; n < a.size(); ++n) CHECK(a[n] == Approx(b[n]).epsilon(1e-12));
}

/// softmax(q k / sqrt(p)) v over the keys that `sees(b, position, key)` shows to a query; a query
/// stands at key position j + K - J, and one that sees nothing gives zeros.
Rows attentionByDefinition(const Model &model, const std::vector<TensorValue> &arguments,
                           const std::function<bool(int64_t, int64_t, int64_t)> &sees,
                           const std::function<double(double, int64_t, int64_t)> &becomes = {}) {
  const auto dim = [&](const char *name) { return model.description.dims.at(name); };
  const int64_t queries = dim("j"), keys = dim("k"), p = dim("p"), w = dim("w");
  const Rows q = Reference::rows(arguments[0].elements, p),
             k = Reference::rows(arguments[1].elements, p),
             v = Reference::rows(arguments[2].elements, w);
  Rows result;
  for (int64_t b = 0; b < dim("b"); ++b)
    for (int64_t h = 0; h < dim("h"); ++h) {
      const int64_t firstKey = (b * dim("g") + h / (dim("h") / dim("g"))) * keys;
      for (int64_t j = 0; j < queries; ++j) {
        Row &out = result.emplace_back(w, 0.0);
        double total = 0;
        for (int64_t key = 0; key < keys; ++key) {
          if (!sees(b, j + keys - queries, key)) continue;
          double score = 0;
          for (int64_t d = 0; d < p; ++d)
            score += q[size_t((b * dim("h") + h) * queries + j)][d] * k[size_t(firstKey + key)][d];
          score /= std::sqrt(double(p));
          if (becomes) score = becomes(score, h, key - (j + keys - queries));
          const double weight = std::exp(score);
          total += weight;
          for (int64_t d = 0; d < w; ++d) out[d] += weight * v[size_t(firstKey + key)][d];
        }
        for (double &value : out) value = total > 0 ? value / total : 0;
      }
    }
  return result;
}

TEST_CASE("masks of the attention preset equal their definition") {
  using models::ScoreMask;
  const Dims square = {{"b", 3}, {"h", 4}, {"j", 7}, {"p", 6}, {"w", 5}};
  Dims fewQueries = square, fewKeys = square, grouped = square;
  fewQueries["k"] = 11;
  fewKeys["k"] = 4;
  grouped["g"] = 2;
  for (const ScoreMask &mask :
       {ScoreMask{}, ScoreMask{.causal = true}, ScoreMask{.window = 1}, ScoreMask{.window = 3},
        ScoreMask{.window = 100}, ScoreMask{.causal = true, .window = 2},
        ScoreMask{.causal = true, .window = 100}, ScoreMask{.padding = true},
        ScoreMask{.causal = true, .window = 2, .padding = true}})
    for (const Dims &dims : {square, fewQueries, fewKeys, grouped}) {
      INFO(textOf(mask) << " k=" << (dims.count("k") ? dims.at("k") : 7));
      mlir::MLIRContext context;
      const Model model = models::build(
          {.model = "attention", .dims = dims, .dtype = DType::f32, .mask = mask}, context);
      auto arguments = randomArguments(graphOf(model), 16);
      REQUIRE(arguments.size() == (mask.padding ? 4 : 3));
      if (mask.padding) arguments[3].elements = {0, 3, double(model.description.dims.at("k"))};
      compare(
          evaluate(model, arguments),
          attentionByDefinition(model, arguments, [&](int64_t b, int64_t position, int64_t key) {
            const int64_t distance = position - key;
            if (mask.causal && distance < 0) return false;
            if (mask.window && std::abs(distance) > *mask.window) return false;
            return !mask.padding || double(key) < arguments[3].elements[size_t(b)];
          }));
    }
}

TEST_CASE("block masks of the attention preset equal their definition") {
  const std::string pattern = "random(block=16,density=0.4,seed=3,heads=all)";
  const Dims square = {{"b", 1}, {"h", 4}, {"j", 40}, {"p", 3}, {"w", 2}};
  Dims fewQueries = square, grouped = square;
  fewQueries["k"] = 70;
  grouped["g"] = 2;
  for (const bool isCausal : {false, true})
    for (const Dims &dims : {square, fewQueries, grouped}) {
      mlir::MLIRContext context;
      const Model model = models::build({.model = "attention",
                                         .dims = dims,
                                         .dtype = DType::f32,
                                         .mask = {.causal = isCausal, .blocks = pattern}},
                                        context);
      const int64_t keys = model.description.dims.at("k");
      const BlockTable &table = blockTable(pattern, 4, 40, keys);
      const auto arguments = randomArguments(graphOf(model), 16);
      compare(evaluate(model, arguments),
              attentionByDefinition(model, arguments, [&](int64_t, int64_t position, int64_t key) {
                return table.sees(0, position - (keys - 40), key) && !(isCausal && key > position);
              }));
    }
}

TEST_CASE("score forms and documents of the attention preset equal their definition") {
  const Dims square = {{"b", 2}, {"h", 6}, {"j", 5}, {"k", 7}, {"p", 6}, {"w", 5}};
  Dims grouped = square;
  grouped["g"] = 2;
  constexpr std::array slopes = {-2.0, -4.0, -6.0, -8.0, -1.0, -3.0};
  for (const Dims &dims : {square, grouped}) {
    mlir::MLIRContext context;
    const Model model = models::build({.model = "attention",
                                       .dims = dims,
                                       .dtype = DType::f32,
                                       .mask = {.causal = true, .document = true},
                                       .score = {.softcap = 0.5, .alibi = 8, .relative = 2}},
                                      context);
    auto arguments = randomArguments(graphOf(model), 24);
    REQUIRE(arguments.size() == 5);  // q, k, v, relative_table, segments
    arguments[4].elements = {0, 0, 1, 1, 1, 2, 2, 5, 3, 5, 3, 5, 5, 3};
    const std::vector<double> &segments = arguments[4].elements, &table = arguments[3].elements;
    compare(evaluate(model, arguments),
            attentionByDefinition(
                model, arguments,
                [&](int64_t b, int64_t position, int64_t key) {
                  return key <= position &&
                         segments[size_t(b * 7 + key)] == segments[size_t(b * 7 + position)];
                },
                [&](double score, int64_t head, int64_t distance) {
                  return 0.5 * std::tanh(score / 0.5) +
                         std::exp2(slopes[size_t(head)]) * double(distance) +
                         table[size_t(head * 5 + std::clamp<int64_t>(distance, -2, 2) + 2)];
                }));
  }
}

TEST_CASE("the paper's encoder ends normalized, and its dropout follows the seed") {
  mlir::MLIRContext context;
  const Model model =
      models::build({.model = "paper-encoder", .dims = tiny, .dtype = DType::f32}, context);
  auto arguments = randomArguments(graphOf(model), 15);
  const size_t last = arguments.size() - 1;  // gamma2, beta2
  std::fill(arguments[last - 1].elements.begin(), arguments[last - 1].elements.end(), 1.0);
  std::fill(arguments[last].elements.begin(), arguments[last].elements.end(), 0.0);
  const auto result = evaluate(model, arguments, 1);
  for (const Row &row : nonEmpty(Reference::rows(result, 12))) {
    double mean = 0, square = 0;
    for (double value : row) mean += value / 12, square += value * value / 12;
    CHECK(std::abs(mean) < 1e-12);
    CHECK(square == Approx(1.0).epsilon(1e-3));
  }
  CHECK(evaluate(model, arguments, 1) == result);
  CHECK(evaluate(model, arguments, 2) != result);
}
