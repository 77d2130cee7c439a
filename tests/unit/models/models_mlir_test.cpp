// Presets and files to graphs: shape of the graphs, messages of bad input.
#include "ir/Weft.h"
#include "kernel/Error.h"
#include "models/Models.h"
#include "passes/Describe.h"
#include "tests/support/NonEmpty.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>

#include <unistd.h>

using namespace weft;
using models::Model;
using models::Request;
using weft::test::nonEmpty;

namespace {

Model build(mlir::MLIRContext &context, Request request) { return models::build(request, context); }

GraphOp graphOf(const Model &model) {
  return *mlir::ModuleOp(*model.module).getOps<GraphOp>().begin();
}

/// How often each op occurs in the graph, without the dialect's prefix.
std::map<std::string, int> histogram(const Model &model) {
  std::map<std::string, int> counts;
  for (mlir::Operation &op : graphOf(model).getBody().front())
    ++counts[op.getName().stripDialect().str()];
  return counts;
}

std::string textOf(mlir::Operation *op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream);
  return text;
}

/// "badInput: text" of the error that building throws, or "no error".
std::string errorOf(const Request &request) {
  mlir::MLIRContext context;
  try {
    models::build(request, context);
  } catch (const Error &error) {
    return (error.kind == ErrorKind::badInput ? "badInput: " : "unsupported: ") +
           std::string(error.what());
  }
  return "no error";
}

/// A file that lives as long as the test.
struct TemporaryFile {
  TemporaryFile(const std::string &name, const std::string &content)
      : path((std::filesystem::temp_directory_path() / ("weft-models-test-" + name)).string()) {
    std::ofstream(path) << content;
  }
  ~TemporaryFile() { std::filesystem::remove(path); }
  const std::string path;
};

using Counts = std::map<std::string, int>;

}  // namespace

TEST_CASE("every preset builds, verifies and survives printing and parsing") {
  for (const models::Preset &preset : nonEmpty(models::presets()))
    for (const models::Part part : {models::Part::layer, models::Part::attention})
      for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        INFO(preset.name << " " << nameOf(part) << " " << nameOf(dtype));
        mlir::MLIRContext context;
        const Model model =
            build(context, {.model = preset.name, .dims = {}, .dtype = dtype, .part = part});
        CHECK(mlir::succeeded(mlir::verify(*model.module)));
        const std::string text = textOf(*model.module);
        CHECK(text.find(nameOf(dtype)) != std::string::npos);
        const auto parsed = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
        REQUIRE(parsed);
        CHECK(textOf(*parsed) == text);
      }
}

TEST_CASE("a description says which part of a model was built") {
  using models::Part;
  const auto builtOf = [](const std::string &name, Part part) {
    mlir::MLIRContext context;
    return build(context, {.model = name, .dims = {{"j", 32}}, .part = part}).description.part;
  };
  CHECK(builtOf("gpt2", Part::layer) == Part::layer);
  CHECK(builtOf("gpt2", Part::attention) == Part::attention);
  CHECK(builtOf("paper-attention", Part::layer) == Part::layer);
  CHECK(builtOf("attention", Part::layer) == Part::attention);  // there is no more of it
  CHECK(builtOf("gpt2", Part::model) == Part::model);
  for (const models::Preset &preset : nonEmpty(models::presets()))
    if (preset.dims.contains("v") && !preset.dims.contains("s"))
      CHECK(builtOf(preset.name, Part::layer) == Part::model);  // and no less
}

TEST_CASE("the paper's encoder has the operators of its Table A.1") {
  mlir::MLIRContext context;
  const Model model = build(context, {.model = "paper-encoder"});
  const Counts expected = {{"contract", 8}, {"bias", 6},       {"softmax", 1}, {"dropout", 4},
                           {"residual", 2}, {"layer_norm", 2}, {"relu", 1},    {"return", 1}};
  CHECK(histogram(model) == expected);
  // Q, K, V; QK^T (its scale is a factor of the GEMM, no flop); Gamma; Out; two linear layers.
  std::vector<double> gigaflop;
  for (ContractOp op : graphOf(model).getOps<ContractOp>()) gigaflop.push_back(op.flop() / 1e9);
  const std::vector<double> table = {25.770 / 3, 25.770 / 3, 25.770 / 3, 4.295,
                                     4.295,      8.590,      34.360,     34.360};
  REQUIRE(gigaflop.size() == table.size());
  for (size_t op = 0; op < table.size(); ++op) CHECK(std::abs(gigaflop[op] - table[op]) <= 0.001);
  std::set<int64_t> streams;
  for (DropoutOp op : graphOf(model).getOps<DropoutOp>()) streams.insert(op.getStream());
  CHECK(streams.size() == 4);
  for (LayerNormOp op : nonEmpty(graphOf(model).getOps<LayerNormOp>()))
    CHECK(op->getNumResults() == 3);
}

TEST_CASE("weights are parameters, activations are not, and names are readable") {
  mlir::MLIRContext context;
  const Model model = build(context, {.model = "paper-encoder"});
  GraphOp graph = graphOf(model);
  std::vector<std::string> parameters, activations;
  for (unsigned index = 0; index < graph.getNumArguments(); ++index) {
    const auto name = mlir::cast<mlir::NameLoc>(graph.getArgument(index).getLoc()).getName().str();
    (graph.isParameter(index) ? parameters : activations).push_back(name);
  }
  CHECK(activations == std::vector<std::string>{"x"});
  CHECK(parameters == std::vector<std::string>{"wq", "bq", "wk", "bk", "wv", "bv", "wo", "bo",
                                               "gamma1", "beta1", "w1", "b1", "w2", "b2", "gamma2",
                                               "beta2"});
  const std::string text = textOf(graph);
  CHECK(text.find("weft.contract \"phbk,phbj->hbjk\" %k, %q {scale = 0.125}") != std::string::npos);
  CHECK(text.find("weft.graph @paper_encoder(") != std::string::npos);
}

TEST_CASE("every weight says what training starts it from, and nothing else does") {
  mlir::MLIRContext context;
  const Model model = build(context, {.model = "masked-token"});
  GraphOp graph = graphOf(model);
  std::map<std::string, std::set<std::string>> names;  // by initial value
  for (const mlir::BlockArgument argument : nonEmpty(graph.getBody().getArguments())) {
    const std::optional<InitialValue> initial = graph.initialValue(argument.getArgNumber());
    CHECK(initial.has_value() == graph.isParameter(argument.getArgNumber()));
    if (initial)
      names[text(*initial)].insert(mlir::cast<mlir::NameLoc>(argument.getLoc()).getName().str());
  }
  const std::set<std::string> layer = {"layer1_wq", "layer1_wk", "layer1_wv",
                                       "layer1_wo", "layer1_w1", "layer1_w2"};
  CHECK(std::ranges::includes(names["normal(0.02)"], layer));
  for (const char *name : {"token_table", "position_table", "output_weight"})
    CHECK(names["normal(0.02)"].contains(name));
  CHECK(names["normal(0.02)"].size() == 3 + 4 * layer.size());
  CHECK(names["ones"].size() == 1 + 4 * 2);
  for (const std::string &name : nonEmpty(names["ones"]))
    CHECK(name.find("gamma") != std::string::npos);
  CHECK(names["zeros"].size() == 1 + 1 + 4 * (6 + 2));
  CHECK(names["zeros"].contains("output_bias"));
  CHECK(names.size() == 3);
}

TEST_CASE("families differ where their mathematics does") {
  mlir::MLIRContext context;
  CHECK(histogram(build(context, {.model = "bert-large"})) == Counts{{"contract", 8},
                                                                     {"bias", 6},
                                                                     {"softmax", 1},
                                                                     {"residual", 2},
                                                                     {"layer_norm", 2},
                                                                     {"gelu", 1},
                                                                     {"return", 1}});
  CHECK(histogram(build(context, {.model = "gpt2"})) == Counts{{"contract", 8},
                                                               {"bias", 6},
                                                               {"softmax", 1},
                                                               {"residual", 2},
                                                               {"layer_norm", 2},
                                                               {"gelu_tanh", 1},
                                                               {"mask", 1},
                                                               {"return", 1}});
  CHECK(histogram(build(context, {.model = "llama-3-8b"})) == Counts{{"contract", 9},
                                                                     {"softmax", 1},
                                                                     {"residual", 2},
                                                                     {"rms_norm", 2},
                                                                     {"silu", 1},
                                                                     {"mul", 1},
                                                                     {"rotary", 2},
                                                                     {"mask", 1},
                                                                     {"return", 1}});
  CHECK(histogram(build(context, {.model = "attention"})) ==
        Counts{{"contract", 2}, {"softmax", 1}, {"return", 1}});
  CHECK(
      histogram(build(context, {.model = "attention", .dims = {{"g", 4}}})) ==
      Counts{{"contract", 2}, {"softmax", 1}, {"split_axis", 1}, {"merge_axes", 1}, {"return", 1}});
  CHECK(histogram(build(context, {.model = "paper-attention"})) ==
        Counts{{"contract", 6}, {"bias", 4}, {"softmax", 1}, {"dropout", 1}, {"return", 1}});
  CHECK(histogram(build(context, {.model = "paper-encoder", .part = models::Part::attention})) ==
        histogram(build(context, {.model = "paper-attention"})));
}

TEST_CASE("dropout of a config.json is built in training, --dropout sets every probability") {
  const TemporaryFile file("dropout.json",
                           R"({"model_type": "bert", "hidden_size": 64, "num_attention_heads": 4,
      "intermediate_size": 128, "num_hidden_layers": 2, "vocab_size": 30, "hidden_act": "gelu",
      "hidden_dropout_prob": 0.25, "attention_probs_dropout_prob": 0.5})");
  mlir::MLIRContext context;
  const auto built = [&](Request request) {
    request.model = file.path;
    std::map<std::string, double> probabilities;
    const Model model = build(context, std::move(request));
    for (DropoutOp op : graphOf(model).getOps<DropoutOp>())
      probabilities[writtenName(op.getResult())] = op.getP().convertToDouble();
    return std::pair(probabilities, model.description.dropoutNote);
  };
  using Probabilities = std::map<std::string, double>;
  const std::string keys = "attention_probs_dropout_prob, hidden_dropout_prob";
  CHECK(built({}) ==
        std::pair(Probabilities(), "dropout of training, built with --train: " + keys));
  const Probabilities layer = {
      {"kept", 0.5}, {"attention_kept", 0.25}, {"feed_forward_kept", 0.25}};
  CHECK(built({.training = true}) == std::pair(layer, "dropout of training: " + keys));
  CHECK(built({.part = models::Part::attention, .training = true}).first ==
        Probabilities{{"kept", 0.5}});
  CHECK(built({.part = models::Part::model, .training = true}).first ==
        Probabilities{{"embedding_kept", 0.25},
                      {"layer1_kept", 0.5},
                      {"layer1_attention_kept", 0.25},
                      {"layer1_feed_forward_kept", 0.25},
                      {"layer2_kept", 0.5},
                      {"layer2_attention_kept", 0.25},
                      {"layer2_feed_forward_kept", 0.25}});
  const Probabilities everywhere = {{"kept", 0.125},
                                    {"attention_kept", 0.125},
                                    {"active_kept", 0.125},
                                    {"feed_forward_kept", 0.125}};
  for (const bool training : {false, true})
    CHECK(built({.dropout = 0.125, .training = training}) ==
          std::pair(everywhere, "dropout of training, which --dropout 0.125 overrides: " + keys));
  CHECK(built({.dropout = 0, .training = true}).first == Probabilities());
}

TEST_CASE("dropout that no layer of a config.json's family has is rejected in training alone") {
  const std::string text = R"({"model_type": "opt", "hidden_size": 64, "num_attention_heads": 4,
      "ffn_dim": 128, "layerdrop": 0.125})";
  const TemporaryFile file("layerdrop.json", text);
  CHECK(errorOf({.model = file.path}) == "no error");
  CHECK(errorOf({.model = file.path, .dropout = 0.5, .training = true}) == "no error");
  CHECK(errorOf({.model = file.path, .training = true})
            .starts_with("unsupported: " + file.path + ": key 'layerdrop': drops in training"));
}

TEST_CASE("a sliding window narrows the mask only where it is shorter than the sequence") {
  const TemporaryFile file("window.json",
                           R"({"model_type": "mistral", "hidden_size": 64, "num_attention_heads": 4,
      "num_key_value_heads": 2, "intermediate_size": 128, "sliding_window": 16})");
  mlir::MLIRContext context;
  for (const auto &[j, kind] : std::map<int64_t, std::string>{{16, "causal"}, {17, "window"}}) {
    const Model model = build(context, {.model = file.path, .dims = {{"j", j}}});
    MaskOp mask = *graphOf(model).getOps<MaskOp>().begin();
    CHECK(mask.getKind() == kind);
    if (kind == "window") CHECK((mask.getLeft() == 15 && mask.getRight() == 0));
  }
}

TEST_CASE("the attention preset has the masks that it is asked for") {
  const auto masksOf = [](const models::ScoreMask &mask, const std::string &model = "attention") {
    mlir::MLIRContext context;
    const Model built = build(context, {.model = model, .dims = {{"j", 8}}, .mask = mask});
    std::vector<std::string> kinds;
    for (MaskOp op : graphOf(built).getOps<MaskOp>()) kinds.push_back(op.getKind().str());
    return kinds;
  };
  using Kinds = std::vector<std::string>;
  CHECK(masksOf({}) == Kinds{});
  CHECK(masksOf({.causal = true}) == Kinds{"causal"});
  CHECK(masksOf({.padding = true}) == Kinds{"padding"});
  CHECK(masksOf({.causal = true, .window = 6, .padding = true}) == Kinds{"window", "padding"});
  // What a window does not exclude needs no mask.
  CHECK(masksOf({.window = 6}) == Kinds{"window"});
  CHECK(masksOf({.window = 7}) == Kinds{});
  CHECK(masksOf({.causal = true, .window = 7}) == Kinds{"causal"});
  CHECK(masksOf({}, "gpt2") == Kinds{"causal"});
  CHECK(masksOf({.causal = true, .padding = true, .blocks = "butterfly(block=16)"}) ==
        Kinds{"causal", "pattern", "padding"});

  mlir::MLIRContext context;
  const Model model = build(
      context, {.model = "attention", .dims = {{"j", 8}}, .mask = {.window = 2, .padding = true}});
  for (MaskOp op : nonEmpty(graphOf(model).getOps<MaskOp>()))
    if (op.getKind() == "window") CHECK((op.getLeft() == 2 && op.getRight() == 2));
  const auto lengths = graphOf(model).getArgument(3);
  CHECK(mlir::cast<mlir::NameLoc>(lengths.getLoc()).getName() == "lengths");
  CHECK(textOf(graphOf(model)).find("padding %masked, %lengths along (b) {key = k}") !=
        std::string::npos);
}

TEST_CASE("masks of a request stand beside the model's own") {
  const auto masksOf = [](const std::string &model, const models::ScoreMask &mask,
                          DType dtype = DType::f16) {
    mlir::MLIRContext context;
    const Model built =
        build(context, {.model = model, .dims = {{"j", 64}}, .dtype = dtype, .mask = mask});
    std::string text;
    for (MaskOp op : graphOf(built).getOps<MaskOp>())
      text +=
          fmt::format("{}{} ", op.getKind().str(),
                      op.getLeft() ? fmt::format("({},{})", *op.getLeft(), *op.getRight()) : "");
    return text;
  };
  const models::ScoreMask window{.window = 5}, blocks{.blocks = "butterfly(block=16)"};
  CHECK(masksOf("bert-base", {.causal = true}) == "causal ");
  CHECK(masksOf("bert-base", window) == "window(5,5) ");
  CHECK(masksOf("gpt2", {.causal = true}) == "causal ");
  CHECK(masksOf("gpt2", window) == "window(5,0) ");
  CHECK(masksOf("llama-3-8b", blocks) == "causal pattern ");
  CHECK(masksOf("paper-encoder", {.padding = true, .document = true}) == "document padding ");
  // Of two windows the narrower one.
  CHECK(masksOf("gpt-neo-1.3b-local", window) == "window(5,0) ");
  CHECK(masksOf("gpt-neo-1.3b-local", {.window = 300}) == "causal ");
  // A memory is seen whole, and a mask does not make buckets of distances other ones.
  CHECK(masksOf("transformer-decoder", window) == "window(5,0) ");
  CHECK(masksOf("t5-base-encoder", {.causal = true}) == "causal ");
  mlir::MLIRContext context;
  CHECK(textOf(graphOf(build(context, {.model = "t5-base-encoder", .mask = {.causal = true}})))
            .find("bidirectional") != std::string::npos);
  // All layers of a model read one argument.
  CHECK(masksOf("masked-token", {.padding = true, .blocks = "butterfly(block=16)"}, DType::f32) ==
        "pattern padding pattern padding pattern padding pattern padding ");
  const Model layers =
      build(context, {.model = "masked-token", .dtype = DType::f32, .mask = {.padding = true}});
  CHECK(textOf(graphOf(layers)).find("%lengths: tensor<32xi32, #weft.axes<b>>") !=
        std::string::npos);
  CHECK(textOf(graphOf(layers)).find("lengths_0") == std::string::npos);
}

TEST_CASE("masks that contradict a model's are rejected") {
  CHECK(errorOf({.model = "bigbird-large", .mask = {.blocks = "butterfly(block=64)"}}) ==
        "badInput: bigbird-large: --mask butterfly(block=64): bigbird-large has the block mask "
        "bigbird(block=64,window=3,global=2,random=3,seed=0,heads=each) already, and one is taken; "
        "nearest is one of causal, window=N, padding, attention-mask and document");
  CHECK(errorOf({.model = "longformer-large", .mask = {.causal = true, .padding = true}}) ==
        "badInput: longformer-large: --mask causal,padding: the first a positions of "
        "longformer-large see all keys and are seen by all; nearest is padding or attention-mask, "
        "or the preset 'attention', which takes every mask");
  CHECK(errorOf({.model = "longformer-large", .mask = {.padding = true}}) == "no error");
  CHECK(errorOf({.model = "graph.mlir", .mask = {.causal = true}}) ==
        "badInput: graph.mlir: --mask causal cannot be set, a .mlir file holds its own mask ops; "
        "presets and config.json files take it");
}

TEST_CASE("keys of another length come from a context argument") {
  mlir::MLIRContext context;
  const Model model = build(context, {.model = "paper-attention", .dims = {{"j", 6}, {"k", 10}}});
  CHECK(textOf(graphOf(model)).find("%context: tensor<8x10x1024xf16, #weft.axes<b, k, i>>") !=
        std::string::npos);
}

TEST_CASE("tensors of more than 2^31 elements are built") {
  mlir::MLIRContext context;
  const Model model = build(context, {.model = "attention", .dims = {{"b", 64}, {"j", 65536}}});
  SoftmaxOp softmax = *graphOf(model).getOps<SoftmaxOp>().begin();
  CHECK(elementsOf(softmax.getType()) == int64_t(64) * 16 * 65536 * 65536);
}

TEST_CASE("dimensions whose GEMM overflows are rejected") {
  CHECK(errorOf({.model = "attention", .dims = {{"b", 2147483647}, {"h", 2147483647}}}) ==
        "badInput: attention: argument q over b=2147483647 * h=2147483647 * j=512 * p=64 has more "
        "than 2^62 points; make "
        "one of these dimensions smaller");
  CHECK(errorOf({.model = "attention", .dims = {{"b", 8192}, {"j", 1048576}}}) ==
        "badInput: attention: contraction score over b=8192 * h=16 * k=1048576 * p=64 * j=1048576 "
        "has more than 2^62 points; make one of these dimensions smaller");
}

TEST_CASE("requests that name nothing") {
  CHECK(errorOf({.model = "bert-larg"})
            .rfind("badInput: unknown preset 'bert-larg'; nearest is 'bert-large'", 0) == 0);
  for (const auto &[part, word] : models::partWords)
    CHECK(models::partNamed(std::string(word)) == part);
  CHECK_THROWS_WITH(
      models::partNamed("atention"),
      "unknown part 'atention'; nearest is 'attention' (known: attention, layer, model)");
  CHECK(errorOf({.model = "gpt-neo-1.3b-local", .part = models::Part::model})
            .rfind("unsupported: ", 0) == 0);
  CHECK(
      errorOf({.model = "bert-base", .dtype = DType::i32}) ==
      "unsupported: dtype i32 is not supported for models; nearest is f32 (known: f32, f16, bf16)");
  CHECK(errorOf({.model = "/no/such/config.json"}) ==
        "badInput: /no/such/config.json: there is no such file");
  CHECK(errorOf({.model = "/no/such/graph.mlir"}) ==
        "badInput: /no/such/graph.mlir: is not a readable file");
  CHECK(errorOf({.model = "/etc/hostname"}) ==
        "badInput: /etc/hostname: neither a preset nor a config.json or .mlir file");
  CHECK(errorOf({.model = "net.onnx"}).rfind("unsupported: net.onnx: ONNX", 0) == 0);
}

TEST_CASE("a config.json gives the graph of the preset, and a folder that holds one too") {
  mlir::MLIRContext context;
  const std::string configs = WEFT_SOURCE_DIR "/models/configs/";
  for (const std::string name :
       {"albert-base", "bert-base", "bert-large", "distilbert", "gpt2", "llama-3-8b"}) {
    const Model model = build(context, {.model = configs + name + ".json", .dtype = DType::f16});
    CHECK(textOf(*model.module) == textOf(*build(context, {.model = name}).module));
    CHECK_FALSE(model.description.ignoredKeys.empty());
  }
  const auto folder = std::filesystem::temp_directory_path() / "weft-models-test-folder";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(configs + "gpt2.json", folder / "config.json",
                             std::filesystem::copy_options::overwrite_existing);
  CHECK(build(context, {.model = folder.string()}).description.name == "gpt2");
  std::filesystem::remove_all(folder);
}

TEST_CASE("the element type of a config.json is obeyed, or what overrides it is said") {
  mlir::MLIRContext context;
  const auto path =
      (std::filesystem::temp_directory_path() / fmt::format("weft-models-test-{}.json", getpid()))
          .string();
  const auto built = [&](const std::string &key, std::optional<DType> dtype) {
    std::ofstream(path) << R"({"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_positions": 8)"
                        << key << "}";
    Model model = build(context, {.model = path, .dtype = dtype});
    CHECK(textOf(*model.module) ==
          textOf(*build(context, {.model = path, .dtype = model.description.dtype}).module));
    return std::pair(*model.description.dtype, model.description.dtypeNote);
  };
  CHECK(
      built(R"(, "torch_dtype": "bfloat16")", {}) ==
      std::pair(DType::bf16,
                std::string(
                    "config.json asks for bfloat16 elements (torch_dtype), which are bf16 here")));
  CHECK(
      built(R"(, "dtype": "float32")", {}) ==
      std::pair(DType::f32,
                std::string("config.json asks for float32 elements (dtype), which are f32 here")));
  CHECK(built(R"(, "torch_dtype": "bfloat16")", DType::f16) ==
        std::pair(
            DType::f16,
            std::string(
                "config.json asks for bfloat16 elements (torch_dtype); --dtype f16 overrides it")));
  CHECK(built(R"(, "dtype": "float64")", DType::f16) ==
        std::pair(DType::f16,
                  std::string(
                      "config.json asks for float64 elements (dtype); --dtype f16 overrides it")));
  CHECK(built("", {}) ==
        std::pair(DType::f16, std::string("config.json names no dtype; elements are f16")));
  std::ofstream(path) << R"({"model_type": "gpt2", "n_embd": 64, "n_head": 4, "dtype": "float64"})";
  CHECK(errorOf({.model = path}) ==
        "unsupported: " + path +
            ": key 'dtype' = \"float64\": layers are built of float16, bfloat16 and "
            "float32; --dtype f16, bf16 or f32 chooses one of them");
  std::filesystem::remove(path);
  CHECK(build(context, {.model = "gpt2"}).description.dtypeNote.empty());
}

TEST_CASE("a .mlir file is read back") {
  mlir::MLIRContext context;
  const std::string text = textOf(*build(context, {.model = "paper-attention"}).module);
  const TemporaryFile file("paper.mlir", text);
  const Model model = build(context, {.model = file.path});
  CHECK(textOf(*model.module) == text);
  CHECK(model.description.name == "weft-models-test-paper");
  CHECK(model.description.dims ==
        std::map<std::string, int64_t>{
            {"b", 8}, {"h", 16}, {"i", 1024}, {"j", 512}, {"p", 64}, {"w", 64}});
}

TEST_CASE("a .mlir file that does not parse, verify or hold one graph") {
  const std::string graph =
      "weft.graph @a(%x: tensor<4xf32, #weft.axes<i>>) -> (tensor<4xf32, #weft.axes<i>>) {\n"
      "  weft.return %x : tensor<4xf32, #weft.axes<i>>\n}\n";
  const TemporaryFile truncated("truncated.mlir", graph.substr(0, graph.size() - 4));
  CHECK(errorOf({.model = truncated.path}).rfind("badInput: " + truncated.path + ":2:", 0) == 0);
  const TemporaryFile empty("empty.mlir", "");
  CHECK(errorOf({.model = empty.path}) ==
        "badInput: " + empty.path + ": holds no weft.graph; exactly one is needed");
  std::string second = graph;
  second.replace(second.find("@a"), 2, "@b");
  const TemporaryFile two("two.mlir", graph + second);
  CHECK(errorOf({.model = two.path}) ==
        "badInput: " + two.path + ":4:1: a second weft.graph @b; exactly one is supported");
  const TemporaryFile beside("beside.mlir", graph + "module @m {}\n");
  CHECK(errorOf({.model = beside.path}) ==
        "badInput: " + beside.path +
            ":4:1: 'builtin.module' beside the weft.graph; a model is one weft.graph "
            "and nothing else");
  std::string wrong = graph;
  wrong.replace(wrong.find("weft.return"), 11, "weft.revert");
  const TemporaryFile unknown("unknown.mlir", wrong);
  CHECK(errorOf({.model = unknown.path}).rfind("badInput: " + unknown.path + ":2:3: ", 0) == 0);
  const TemporaryFile whole("whole.mlir", graph);
  CHECK(errorOf({.model = whole.path}) == "no error");
  CHECK(errorOf({.model = whole.path, .dims = {{"b", 3}}}) ==
        "badInput: " + whole.path +
            ": dimension b=3 cannot be set, a .mlir file fixes its own extents");
  CHECK(errorOf({.model = whole.path, .part = models::Part::attention}) ==
        "badInput: " + whole.path + ": part 'attention' cannot be taken out of a .mlir file");
}
