// Packed tokens: the same results at valid tokens as the padded graph's, zero behind them, and the
// same gradients, whatever the lengths; which ops are packed; what is not packed, and why.
#include "passes/Describe.h"
#include "passes/Rewrites.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleGraphs.h"

#include <fmt/format.h>

#include <algorithm>

using namespace weft;
using namespace weft::test;

namespace {

std::unique_ptr<Loaded> ragged(const std::string &name, const Dims &dims,
                               std::optional<double> dropout = {}, bool byMask = false) {
  auto loaded = std::make_unique<Loaded>();
  models::Request request;
  request.model = name;
  request.dims = dims;
  request.dtype = DType::f32;
  request.dropout = dropout;
  request.ragged = true;
  request.mask.attentionMask = byMask;
  loaded->module = models::build(request, loaded->context).module;
  return loaded;
}

template <typename Op>
size_t countOf(GraphOp graph) {
  const auto ops = graph.getBody().front().getOps<Op>();
  return size_t(std::distance(ops.begin(), ops.end()));
}

/// The number of the only argument of this element type.
size_t argumentOf(GraphOp graph, DType type) {
  size_t found = 0;
  for (mlir::BlockArgument argument : graph.getBody().getArguments())
    if (toDType(argument.getType()) == type) found = argument.getArgNumber();
  return found;
}

/// Zero at the positions of [b, j, ..] behind each sequence's tokens.
void zeroPadding(TensorValue &tensor, const std::vector<double> &lengths) {
  const int64_t positions = tensor.shape[1], tokens = tensor.shape[0] * positions,
                run = std::ssize(tensor.elements) / tokens;
  for (int64_t token = 0; token < tokens; ++token)
    if (double(token % positions) >= lengths[size_t(token / positions)])
      std::fill_n(tensor.elements.begin() + token * run, run, 0.0);
}

std::vector<TensorValue> evaluated(GraphOp graph, const std::vector<TensorValue> &arguments) {
  REQUIRE(mlir::succeeded(mlir::verify(graph)));
  const auto results = interpret(graph, arguments, {});
  REQUIRE(mlir::succeeded(results));
  return *results;
}

struct Layer {
  std::string name;
  Dims dims;
};
const Dims encoderDims{{"b", 3}, {"j", 8}, {"h", 2}, {"p", 4}, {"i", 8}, {"u", 12}};
const Dims llamaDims{{"b", 3}, {"j", 8}, {"h", 4}, {"g", 2}, {"p", 4}, {"i", 16}, {"u", 12}};
const std::vector<Layer> layers = {
    {"bert-base", encoderDims}, {"gpt2", encoderDims}, {"llama-3-8b", llamaDims}};
const std::vector<std::vector<double>> lengthsOfRuns = {{8, 8, 8}, {3, 8, 1}, {0, 5, 0}, {0, 0, 0},
                                                        {0, 0, 8}, {1, 1, 1}, {7, 0, 2}};

std::vector<std::string> savedNames(GraphOp graph) {
  std::vector<std::string> names;
  if (const auto list = graph->getAttrOfType<mlir::ArrayAttr>("weft.saved"))
    for (const auto name : list.getAsRange<mlir::StringAttr>()) names.push_back(name.str());
  return names;
}

/// Empty if it was packed. A graph that was not is as it was.
std::string rejectionOf(const std::string &text, const std::string &axis = "j") {
  const auto loaded = parse(text);
  const std::string reason = packSequences(loaded->graph(), axis);
  if (!reason.empty()) CHECK(countOf<OffsetsOp>(loaded->graph()) == 0);
  return reason;
}

}  // namespace

TEST_CASE("packed layers compute what padded ones compute at valid tokens") {
  std::vector<Layer> all = layers;
  all.push_back({"deberta-base", encoderDims});  // which is not trained
  for (const Layer &layer : all) {
    const auto padded = ragged(layer.name, layer.dims, 0.0),
               packed = ragged(layer.name, layer.dims, 0.0);
    REQUIRE(packSequences(packed->graph(), "j") == "");
    for (const std::vector<double> &lengths : lengthsOfRuns) {
      INFO(layer.name << fmt::format(" {}", fmt::join(lengths, ", ")));
      std::vector<TensorValue> arguments = randomArguments(padded->graph(), 5);
      arguments[argumentOf(padded->graph(), DType::i32)].elements = lengths;
      std::vector<TensorValue> expected = evaluated(padded->graph(), arguments);
      const std::vector<TensorValue> actual = evaluated(packed->graph(), arguments);
      REQUIRE(actual.size() == 1);
      zeroPadding(expected[0], lengths);
      CHECK(distance(actual[0], expected[0], 1e-9, 1e-9) <= 1.0);
    }
  }
}

TEST_CASE("layers packed by a mask compute what those packed by its lengths do") {
  for (const Layer &layer : layers) {
    const auto byLengths = ragged(layer.name, layer.dims, 0.0),
               byMask = ragged(layer.name, layer.dims, 0.0, true);
    for (Loaded *one : {byLengths.get(), byMask.get()})
      REQUIRE(packSequences(one->graph(), "j") == "");
    CHECK(countOf<LengthsOp>(byMask->graph()) == 1);
    CHECK(countOf<PackOp>(byMask->graph()) == countOf<PackOp>(byLengths->graph()));
    for (const std::vector<double> &lengths : lengthsOfRuns) {
      INFO(layer.name << fmt::format(" {}", fmt::join(lengths, ", ")));
      std::vector<TensorValue> arguments = randomArguments(byLengths->graph(), 5);
      const size_t place = argumentOf(byLengths->graph(), DType::i32);
      REQUIRE(place == argumentOf(byMask->graph(), DType::i1));
      arguments[place].elements = lengths;
      const std::vector<TensorValue> expected = evaluated(byLengths->graph(), arguments);
      const int64_t positions = layer.dims.at("j");
      arguments[place] = reference::zeros({std::ssize(lengths), positions});
      for (size_t n = 0; n < arguments[place].elements.size(); ++n)
        arguments[place].elements[n] =
            double(n % size_t(positions)) < lengths[n / size_t(positions)] ? 1 : 0;
      const std::vector<TensorValue> actual = evaluated(byMask->graph(), arguments);
      REQUIRE(actual.size() == expected.size());
      CHECK(distance(actual[0], expected[0], 0, 0) == 0);
    }
  }
}

TEST_CASE("masks of unused tokens change no valid token, and zero all others that may be stored") {
  for (const Layer &layer : layers) {
    const auto packed = ragged(layer.name, layer.dims, 0.0),
               masked = ragged(layer.name, layer.dims, 0.0);
    for (Loaded *one : {packed.get(), masked.get()}) {
      REQUIRE(packSequences(one->graph(), "j") == "");
      REQUIRE(mlir::succeeded(differentiate(one->graph(), {})));
    }
    const std::vector<std::string> saved = savedNames(masked->graph());
    const int count = maskUnusedTokens(masked->graph());
    CHECK(count > 8);
    CHECK(savedNames(masked->graph()) == saved);
    CHECK(maskUnusedTokens(masked->graph()) == 0);
    for (const std::vector<double> &lengths : lengthsOfRuns) {
      INFO(layer.name << fmt::format(" {}", fmt::join(lengths, ", ")));
      std::vector<TensorValue> arguments = randomArguments(packed->graph(), 9);
      arguments[argumentOf(packed->graph(), DType::i32)].elements = lengths;
      const std::vector<TensorValue> expected = evaluated(packed->graph(), arguments),
                                     actual = evaluated(masked->graph(), arguments);
      REQUIRE(actual.size() == expected.size());
      for (size_t n = 0; n < actual.size(); ++n) {
        INFO("result " << n);
        CHECK(distance(actual[n], expected[n], 1e-9, 1e-9) <= 1.0);
      }
    }
    // Readers that are no element-wise op over tokens read what is masked.
    for (mlir::Operation &op : nonEmpty(masked->graph().getBody().front().without_terminator()))
      if (mlir::isa<ContractOp, LayerNormOp, RmsNormOp, UnpackOp>(op))
        for (mlir::Value operand : nonEmpty(op.getOperands()))
          if (mlir::Operation *definition = operand.getDefiningOp();
              definition && dimensionOf(operand.getType(), "t"))
            CHECK(
                mlir::isa<MaskOp, PackOp, SliceOp, ConcatOp, SplitAxisOp, MergeAxesOp>(definition));
  }
}

TEST_CASE("what packs tokens need not store zeros where nothing reads them") {
  for (const Layer &layer : layers) {
    INFO(layer.name);
    const auto packed = ragged(layer.name, layer.dims, 0.0),
               masked = ragged(layer.name, layer.dims, 0.0),
               trained = ragged(layer.name, layer.dims, 0.0);
    for (Loaded *one : {packed.get(), masked.get(), trained.get()})
      REQUIRE(packSequences(one->graph(), "j") == "");
    REQUIRE(mlir::succeeded(differentiate(trained->graph(), {})));
    maskUnusedTokens(masked->graph());
    maskUnusedTokens(trained->graph());
    int unread = 0, read = 0;
    masked->graph().walk([&](PackOp pack) {
      const bool holdsFloats = mlir::isa<mlir::FloatType>(pack.getX().getType().getElementType());
      CHECK(pack.getUnread() == holdsFloats);
      unread += pack.getUnread() ? 1 : 0;
    });
    CHECK(unread >= 2);  // the layer's input, and what attention gives
    // Weight gradients sum over all rows.
    trained->graph().walk([&](PackOp pack) { read += pack.getUnread() ? 0 : 1; });
    CHECK(read >= 2);
    // The interpreter has NaN there, which reaches no result.
    for (const std::vector<double> &lengths : lengthsOfRuns) {
      std::vector<TensorValue> arguments = randomArguments(packed->graph(), 9);
      arguments[argumentOf(packed->graph(), DType::i32)].elements = lengths;
      const std::vector<TensorValue> expected = evaluated(packed->graph(), arguments),
                                     actual = evaluated(masked->graph(), arguments);
      CHECK(distance(actual.at(0), expected.at(0), 1e-9, 1e-9) <= 1.0);
    }
    // Every padding mask says whose lengths it compares with.
    int masks = 0;
    masked->graph().walk([&](MaskOp mask) {
      if (mask.getKind() != "padding") return;
      CHECK(mask.getPacked());
      ++masks;
    });
    CHECK(masks == 2);
  }
}

TEST_CASE("queries that are padding are masked, unless someone reads across queries") {
  const std::string own = types +
                          "!b = tensor<2xi32, #weft.axes<b>>\n"
                          "!bjk = tensor<2x3x3xf32, #weft.axes<b, j, k>>\n"
                          "!bk = tensor<2x3xf32, #weft.axes<b, k>>\n"
                          "!bki = tensor<2x3x8xf32, #weft.axes<b, k, i>>\n";
  const auto masksOf = [&](const std::string &end, const std::string &result) {
    const auto loaded =
        parse(own + "weft.graph @g(%x: !bji, %lengths: !b, %z: !i) -> " + result +
              " {\n  %t = weft.bias %x, %z along (i) : !bji, !i\n"
              "  %s = weft.contract \"bji,bki->bjk\" %t, %t : !bji, !bji -> !bjk\n"
              "  %m = weft.mask padding %s, %lengths along (b) {key = k} : !bjk, !b -> !bjk\n"
              "  %p = weft.softmax %m over k : !bjk\n" +
              end + "}");
    REQUIRE(packSequences(loaded->graph(), "j") == "");
    return countOf<MaskOp>(loaded->graph());
  };
  CHECK(masksOf("  %y = weft.contract \"bjk,bki->bji\" %p, %t : !bjk, !bji -> !bji\n"
                "  weft.return %y : !bji\n",
                "!bji") == 2);
  CHECK(masksOf("  %y = weft.reduce sum %p over j : !bjk -> !bk\n  weft.return %y : !bk\n",
                "!bk") == 1);
}

TEST_CASE("a packed layer of one sequence, and lengths outside their range") {
  Dims dims = encoderDims;
  dims["b"] = 1;
  const auto padded = ragged("bert-base", dims, 0.0), packed = ragged("bert-base", dims, 0.0);
  REQUIRE(packSequences(packed->graph(), "j") == "");
  for (const double length : {0.0, 1.0, 5.0, 8.0, -3.0, 100.0}) {
    INFO(length);
    std::vector<TensorValue> arguments = randomArguments(padded->graph(), 6);
    arguments[argumentOf(padded->graph(), DType::i32)].elements = {length};
    std::vector<TensorValue> expected = evaluated(padded->graph(), arguments);
    zeroPadding(expected[0], {length});
    CHECK(distance(evaluated(packed->graph(), arguments)[0], expected[0], 1e-9, 1e-9) <= 1.0);
  }
}

TEST_CASE("gradients of a packed layer are those of valid tokens") {
  for (const Layer &layer : layers) {
    const auto padded = ragged(layer.name, layer.dims, 0.0),
               packed = ragged(layer.name, layer.dims, 0.0);
    REQUIRE(packSequences(packed->graph(), "j") == "");
    for (Loaded *one : {padded.get(), packed.get()})
      REQUIRE(mlir::succeeded(differentiate(one->graph(), {})));
    for (const std::vector<double> &lengths : lengthsOfRuns) {
      INFO(layer.name << fmt::format(" {}", fmt::join(lengths, ", ")));
      std::vector<TensorValue> arguments = randomArguments(padded->graph(), 7);
      arguments[argumentOf(padded->graph(), DType::i32)].elements = lengths;
      zeroPadding(arguments.back(), lengths);  // the gradient of the result
      std::vector<TensorValue> expected = evaluated(padded->graph(), arguments);
      const std::vector<TensorValue> actual = evaluated(packed->graph(), arguments);
      REQUIRE(actual.size() == expected.size());
      zeroPadding(expected[0], lengths);
      for (size_t n = 0; n < actual.size(); ++n) {
        INFO("result " << n);
        CHECK(distance(actual[n], expected[n], 1e-8, 1e-8) <= 1.0);
      }
    }
  }
}

TEST_CASE("a loss reads the logits of valid tokens, and gives the padded model's gradients") {
  const Dims dims{{"b", 3}, {"j", 8}, {"h", 2}, {"p", 4}, {"i", 8}, {"u", 12}, {"v", 10}};
  const auto model = [&] {
    auto loaded = std::make_unique<Loaded>();
    models::Request request;
    request.model = "gpt2";
    request.part = models::Part::model;
    request.layers = 1;
    request.training = true;
    request.dims = dims;
    request.dtype = DType::f32;
    request.dropout = 0.0;
    request.ragged = true;
    loaded->module = models::build(request, loaded->context).module;
    return loaded;
  };
  const auto padded = model(), packed = model();
  REQUIRE(packSequences(packed->graph(), "j") == "");
  for (Loaded *one : {padded.get(), packed.get()})
    REQUIRE(mlir::succeeded(differentiate(one->graph(), {})));
  // Logits are never unpacked, nor are their gradients.
  size_t losses = 0;
  for (mlir::Operation &op : nonEmpty(packed->graph().getBody().front().without_terminator())) {
    if (!mlir::isa<CrossEntropyOp, CrossEntropyDxOp>(op)) continue;
    ++losses;
    for (mlir::Value operand : nonEmpty(op.getOperands()))
      CHECK(dimensionOf(operand.getType(), "t"));
  }
  CHECK(losses == 2);
  for (const std::vector<double> &lengths : lengthsOfRuns) {
    INFO(fmt::format("{}", fmt::join(lengths, ", ")));
    std::vector<TensorValue> arguments = randomArguments(padded->graph(), 11);
    size_t counted = 0;
    for (mlir::BlockArgument argument : padded->graph().getBody().getArguments()) {
      TensorValue &own = arguments[argument.getArgNumber()];
      const std::vector<std::string> axes = axisNames(argument.getType());
      if (toDType(argument.getType()) != DType::i32) {
        if (axes == std::vector<std::string>{"b", "j"}) zeroPadding(own, lengths), ++counted;
        continue;
      }
      if (axes.size() == 1) own.elements = lengths, ++counted;
      else
        for (size_t n = 0; n < own.elements.size(); ++n)
          own.elements[n] = double((7 * n + argument.getArgNumber()) % 10);
    }
    REQUIRE(counted == 2);  // weights of the loss, and lengths
    std::vector<TensorValue> expected = evaluated(padded->graph(), arguments);
    const std::vector<TensorValue> actual = evaluated(packed->graph(), arguments);
    REQUIRE(actual.size() == expected.size());
    for (size_t n = 0; n < actual.size(); ++n) {
      INFO("result " << n);
      if (expected[n].shape == std::vector<int64_t>{3, 8})  // the gradient of weights of the loss
        zeroPadding(expected[n], lengths);
      CHECK(distance(actual[n], expected[n], 1e-8, 1e-8) <= 1.0);
    }
  }
}

TEST_CASE(
    "attention that is computed again packs what a row has, and each pass unpacks for itself") {
  for (const Layer &layer : layers) {
    INFO(layer.name);
    const auto stored = ragged(layer.name, layer.dims, 0.1),
               again = ragged(layer.name, layer.dims, 0.1);
    for (Loaded *one : {stored.get(), again.get()}) {
      REQUIRE(packSequences(one->graph(), "j") == "");
      REQUIRE(mlir::succeeded(differentiate(one->graph(), {})));
    }
    REQUIRE(recomputeAttentions(again->graph()) == 1);
    for (const std::vector<double> &lengths : lengthsOfRuns) {
      INFO(fmt::format("{}", fmt::join(lengths, ", ")));
      std::vector<TensorValue> arguments = randomArguments(stored->graph(), 7);
      arguments[argumentOf(stored->graph(), DType::i32)].elements = lengths;
      const std::vector<TensorValue> expected = evaluated(stored->graph(), arguments),
                                     actual = evaluated(again->graph(), arguments);
      REQUIRE(actual.size() == expected.size());
      for (size_t n = 0; n < actual.size(); ++n) {
        INFO("result " << n);
        CHECK(distance(actual[n], expected[n], 1e-6, 1e-6) <= 1.0);
      }
    }
    GraphOp graph = again->graph();
    const auto folds = graph.getBody().front().getOps<OnlineSoftmaxContractOp>();
    OnlineSoftmaxContractOp fold = *folds.begin();
    // Output and logarithms of sums are packed, and read by nothing else.
    for (mlir::Value result : nonEmpty(fold->getResults())) {
      REQUIRE(result.hasOneUse());
      CHECK(mlir::isa<PackOp>(*result.getUsers().begin()));
    }
    // What forward unpacks for its attention, backward unpacks once more.
    for (UnpackOp unpack : nonEmpty(graph.getBody().front().getOps<UnpackOp>())) {
      bool isRead[2] = {false, false};
      for (mlir::Operation *user : unpack.getResult().getUsers())
        isRead[fold->isBeforeInBlock(user) ? 1 : 0] = true;
      CHECK_FALSE((isRead[0] && isRead[1]));
    }
    // Sums over rows of the output and its gradient are of tokens.
    SoftmaxFromLogSumsOp probability =
        *graph.getBody().front().getOps<SoftmaxFromLogSumsOp>().begin();
    auto logSums = probability.getLogSums().getDefiningOp<UnpackOp>();
    REQUIRE(logSums);
    CHECK(dimensionOf(logSums.getX().getType(), "t").has_value());
    for (ReduceOp reduce : nonEmpty(graph.getBody().front().getOps<ReduceOp>()))
      CHECK(dimensionOf(reduce.getX().getType(), "t").has_value());
    const std::vector<std::string> saved = savedNames(graph);
    CHECK(std::ranges::none_of(saved,
                               [](const std::string &name) { return name.ends_with("_padded"); }));
  }
}

TEST_CASE("all but attention is packed, and the result keeps its name") {
  const auto loaded = ragged("bert-base", encoderDims, 0.1);
  GraphOp graph = loaded->graph();
  const std::string name = writtenName(graph.getBody().front().getTerminator()->getOperand(0));
  REQUIRE(packSequences(graph, "j") == "");
  REQUIRE(mlir::succeeded(mlir::verify(graph)));
  CHECK(countOf<OffsetsOp>(graph) == 1);
  CHECK(countOf<PackOp>(graph) == 2);    // x, and what attention gives
  CHECK(countOf<UnpackOp>(graph) == 4);  // q, k, v, and the result
  for (ContractOp op : nonEmpty(graph.getBody().front().getOps<ContractOp>())) {
    INFO(op.getSpec().str());
    const bool isAttention = op.getSpec().contains('k');
    CHECK(dimensionOf(op.getResult().getType(), "t").has_value() == !isAttention);
  }
  for (LayerNormOp op : nonEmpty(graph.getBody().front().getOps<LayerNormOp>()))
    CHECK(extents(op.getX().getType()) == std::vector<int64_t>{24, 8});
  CHECK(writtenName(graph.getBody().front().getTerminator()->getOperand(0)) == name);
}

TEST_CASE("products of tokens that are unpacked anyway are made of them, where they are larger") {
  const auto layer = ragged("deberta-base", encoderDims);
  GraphOp graph = layer->graph();
  REQUIRE(packSequences(graph, "j") == "");
  // Queries, keys, values and the result: no products with vectors of distances.
  CHECK(countOf<UnpackOp>(graph) == 4);
  size_t products = 0;
  for (RelativeBiasOp term : nonEmpty(graph.getBody().front().getOps<RelativeBiasOp>())) {
    auto product = term.getTable().getDefiningOp<ContractOp>();
    REQUIRE(product);
    CHECK(product.getOperand(1).getDefiningOp<UnpackOp>());
    ++products;
  }
  CHECK(products == 2);
}

TEST_CASE("what cannot be packed says why") {
  const std::string own = types +
                          "!b = tensor<2xi32, #weft.axes<b>>\n"
                          "!bjk = tensor<2x3x3xf32, #weft.axes<b, j, k>>\n"
                          "!bki = tensor<2x3x8xf32, #weft.axes<b, k, i>>\n";
  const auto graph = [&](const std::string &before, const std::string &after = "") {
    return own + "weft.graph @g(%x: !bji, %lengths: !b, %others: !b, %z: !i) -> !bji {\n" + before +
           "  %s = weft.contract \"bji,bki->bjk\" %t, %t : !bji, !bji -> !bjk\n"
           "  %m = weft.mask padding %s, %lengths along (b) {key = k} : !bjk, !b -> !bjk\n" +
           after +
           "  %p = weft.softmax %m over k : !bjk\n"
           "  %y = weft.contract \"bjk,bki->bji\" %p, %t : !bjk, !bji -> !bji\n"
           "  weft.return %y : !bji\n}";
  };
  CHECK(rejectionOf(graph("  %t = weft.bias %x, %z along (i) : !bji, !i\n")) == "");
  CHECK(rejectionOf(graph("  %t = weft.bias %x, %z along (i) : !bji, !i\n"), "q") ==
        "no argument holds tokens along 'q'; tokens lie along j");
  CHECK(rejectionOf(graph("  %t = weft.div %x, %x : !bji\n")) ==
        "div of tokens: rows behind the last token are zero, and it would not stay finite");
  CHECK(rejectionOf(graph("  %t = weft.rms_norm %x, %z over i {epsilon = 0.0} : !bji, !i -> "
                          "!bji\n")) ==
        "rms_norm of tokens: rows behind the last token are zero, and its epsilon is 0");
  CHECK(rejectionOf(graph("  %t = weft.bias %x, %z along (i) : !bji, !i\n",
                          "  %n = weft.mask padding %m, %others along (b) {key = k} : !bjk, !b -> "
                          "!bjk\n")) == "padding masks of different lengths");
  CHECK(rejectionOf("!x = tensor<2x16777216xf32, #weft.axes<b, k>>\n"
                    "!b = tensor<2xi32, #weft.axes<b>>\n"
                    "weft.graph @g(%x: !x, %lengths: !b) -> !x {\n"
                    "  %y = weft.mask padding %x, %lengths along (b) {key = k} : !x, !b -> !x\n"
                    "  weft.return %y : !x\n}",
                    "k") == "33554432 tokens; offsets of up to 16777216 are exact (offsets_c2)");
  CHECK(rejectionOf(own + "weft.graph @g(%x: !bji) -> !bji {\n"
                          "  %y = weft.kernel @relu (%a = %x : !bji) -> (!bji) {\n"
                          "    %r = weft.relu %a : !bji\n    weft.yield %r : !bji\n  }\n"
                          "  weft.return %y : !bji\n}") == "the graph has kernels already");
  CHECK(rejectionOf(types + "weft.graph @g(%x: !bji) -> !bji {\n  %y = weft.relu %x : !bji\n  "
                            "weft.return %y : !bji\n}") ==
        "no padding mask says how many tokens a sequence has; --mask padding adds one where the "
        "graph is imported");
}

TEST_CASE("rotary embeddings of packed tokens turn by the distance from their sequence's start") {
  // Sequences behind positions; pairs before both, or behind them; a part of them in either style.
  const auto text = [](const std::string &x, const std::string &spec, const std::string &back,
                       const std::string &more) {
    return fmt::format(R"(
!x = tensor<{}>
!s = tensor<3x5x5xf32, #weft.axes<b, j, k>>
!n = tensor<3xi32, #weft.axes<b>>
weft.graph @g(%x: !x, %lengths: !n) -> !x {{
  %q = weft.rotary %x {{position = j, dim = i{}}} : !x
  %s = weft.contract "{}" %q, %q : !x, !x -> !s
  %m = weft.mask padding %s, %lengths along (b) {{key = k}} : !s, !n -> !s
  %w = weft.softmax %m over k : !s
  %y = weft.contract "{}" %w, %q : !s, !x -> !x
  %z = weft.rotary %y {{position = j, dim = i, direction = reverse}} : !x
  weft.return %z : !x
}})",
                       x, more, spec, back);
  };
  const std::string behind = "5x3x4xf32, #weft.axes<j, b, i>",
                    before = "4x3x5xf32, #weft.axes<i, b, j>";
  for (const std::string &graph :
       {text(behind, "jbi,kbi->bjk", "bjk,kbi->jbi", ""),
        text(behind, "jbi,kbi->bjk", "bjk,kbi->jbi", ", style = interleaved, factor = 2.0"),
        text(before, "ibj,ibk->bjk", "bjk,ibk->ibj", ", turned = 2")}) {
    const auto padded = parse(graph), packed = parse(graph);
    REQUIRE(packSequences(packed->graph(), "j") == "");
    CHECK(countOf<RotaryOp>(packed->graph()) == 2);
    for (RotaryOp rotary : nonEmpty(packed->graph().getBody().front().getOps<RotaryOp>()))
      CHECK(rotary.getStarts() != nullptr);
    std::vector<TensorValue> arguments = randomArguments(padded->graph(), 5);
    for (const std::vector<double> &lengths : lengthsOfRuns) {
      arguments[1].elements = lengths;
      for (double &length : arguments[1].elements) length = std::min(length, 5.0);
      TensorValue expected = evaluated(padded->graph(), arguments).front();
      const TensorValue actual = evaluated(packed->graph(), arguments).front();
      const bool isBehind = expected.shape[0] == 5;
      for (size_t n = 0; n < expected.elements.size(); ++n) {
        const auto at = int64_t(n);
        const int64_t sequence = isBehind ? at / 4 % 3 : at / 5 % 3,
                      position = isBehind ? at / 12 : at % 5;
        if (double(position) >= arguments[1].elements[size_t(sequence)]) expected.elements[n] = 0;
      }
      CHECK(distance(actual, expected, 1e-9, 1e-9) <= 1.0);
    }
  }
}

TEST_CASE("a table of positions that all sequences share is packed where tokens read it") {
  // Sequences behind positions, and the table's axes in another order than the tokens'.
  const std::string text = R"(
!x = tensor<5x3x4xf32, #weft.axes<j, b, i>>
!t = tensor<4x5xf32, #weft.axes<i, j>>
!s = tensor<3x5x5xf32, #weft.axes<b, j, k>>
!n = tensor<3xi32, #weft.axes<b>>
weft.graph @g(%x: !x, %table: !t {weft.parameter}, %lengths: !n) -> !x {
  %p = weft.bias %x, %table along (i, j) : !x, !t
  %q = weft.mul %p, %table along (i, j) : !x, !t
  %s = weft.contract "jbi,kbi->bjk" %q, %q : !x, !x -> !s
  %m = weft.mask padding %s, %lengths along (b) {key = k} : !s, !n -> !s
  %w = weft.softmax %m over k : !s
  %y = weft.contract "bjk,kbi->jbi" %w, %q : !s, !x -> !x
  %z = weft.relu %y : !x
  weft.return %z : !x
})";
  const auto padded = parse(text), packed = parse(text);
  REQUIRE(packSequences(packed->graph(), "j") == "");
  CHECK(countOf<BroadcastOp>(packed->graph()) == 1);
  CHECK(countOf<UnpackOp>(packed->graph()) == 2);  // what attention reads, and the result
  std::vector<TensorValue> arguments = randomArguments(padded->graph(), 5);
  for (const std::vector<double> &lengths : lengthsOfRuns) {
    arguments[2].elements = lengths;
    for (double &length : arguments[2].elements) length = std::min(length, 5.0);
    TensorValue expected = evaluated(padded->graph(), arguments).front();
    const TensorValue actual = evaluated(packed->graph(), arguments).front();
    for (size_t n = 0; n < expected.elements.size(); ++n)
      if (double(n / 12) >= arguments[2].elements[n / 4 % 3]) expected.elements[n] = 0;
    CHECK(distance(actual, expected, 1e-9, 1e-9) <= 1.0);
  }
}
