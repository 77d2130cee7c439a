// Models of several layers, decided part by part: the plan computes the model, costs what the
// search of the whole graph finds, and its parts are cut where no kernel is lost.
#include "tools/driver/LayeredModel.h"

#include "kernel/Error.h"
#include "kernel/LayerNames.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleGraphs.h"

#include <fmt/format.h>

#include <map>
#include <set>

using namespace weft;
using namespace weft::driver;
using weft::test::nonEmpty;

namespace {

ModelFlags flagsOf(const std::string &preset, const std::string &part, const std::string &layers,
                   const std::string &dtype) {
  ModelFlags flags;
  flags.model = preset;
  flags.part = part;
  flags.layers = layers;
  flags.dtype = dtype;
  flags.dims = {"b=2", "j=32", "h=2", "i=32", "u=64"};
  if (preset == "llama-3-8b") flags.dims.insert(flags.dims.end(), {"g=1", "p=16"});
  if (part == "model") flags.dims.push_back("v=48");
  if (part == "model" && preset == "albert-base") flags.dims.push_back("d=16");
  return flags;
}

ChoiceFlags fewVariants(const std::string &attention) {
  ChoiceFlags choices;
  choices.stacking = "three";
  choices.attention = attention;
  choices.chunks = 1;
  return choices;
}

TargetFlags byModel() {
  TargetFlags target;
  target.profile = "none";
  return target;
}

DecidedModel decided(Compilation &compilation) {
  compilation.import();
  return decideModel(compilation, Phase::import);
}

}  // namespace

TEST_CASE("the plan of several layers takes what the search of their whole graph finds") {
  const std::string preset = GENERATE("bert-base", "gpt2", "llama-3-8b"),
                    layers = GENERATE("2", "3");
  INFO(preset << " " << layers);
  const ChoiceFlags choices = fewVariants("fused");
  Compilation byParts(flagsOf(preset, "layer", layers, "f16"), choices, byModel());
  const DecidedModel parts = decided(byParts);
  CHECK(parts.isByParts());
  ModelFlags file;
  file.model = "unrolled.mlir";
  Compilation unrolled(file, choices, byModel());
  unrolled.importTexts(byParts.importedTexts(), byParts.resumesAt());
  const DecidedModel whole = decideModel(unrolled, byParts.resumesAt());
  CHECK_FALSE(whole.isByParts());
  CHECK(parts.decision.planned.plan.predictedSeconds ==
        Approx(whole.decision.planned.plan.predictedSeconds).epsilon(1e-9));
  CHECK(parts.decision.lowerBound == Approx(whole.decision.lowerBound).epsilon(1e-9));
  CHECK(parts.decision.planned.plan.kernels.size() == whole.decision.planned.plan.kernels.size());
}

TEST_CASE("the plan of a whole model computes the model") {
  const std::string preset = GENERATE("albert-base", "bert-base", "gpt2", "llama-3-8b");
  const std::string attention = GENERATE("unfused", "decomposed");
  INFO(preset << " " << attention);
  Compilation compilation(flagsOf(preset, "model", "3", "f32"), fewVariants(attention), byModel());
  const DecidedModel model = decided(compilation);
  const auto before = test::parse(compilation.importedTexts().front().text),
             after = test::parse(compilation.materialized(model.proposed, model.decision));
  std::vector<TensorValue> arguments = randomArguments(before->graph(), 3);
  for (TensorValue &argument : arguments)
    if (argument.shape == std::vector<int64_t>{2, 32})  // ids and types
      for (size_t n = 0; n < argument.elements.size(); ++n) argument.elements[n] = double(n % 2);
  const auto expected = interpret(before->graph(), arguments, {}),
             actual = interpret(after->graph(), arguments, {});
  REQUIRE((mlir::succeeded(expected) && mlir::succeeded(actual)));
  REQUIRE(expected->size() == (preset.find("bert") != preset.npos ? 2 : 1));
  REQUIRE(actual->size() == expected->size());
  for (size_t result = 0; result < expected->size(); ++result)
    CHECK(distance((*actual)[result], (*expected)[result], 1e-4, 1e-4) <= 1);
}

namespace {

/// Zero at the positions of [b, j, ..] behind each sequence's tokens.
void zeroPadding(TensorValue &tensor, const std::vector<double> &lengths) {
  const int64_t positions = tensor.shape[1], run = std::ssize(tensor.elements) / 2 / positions;
  for (size_t sequence = 0; sequence < lengths.size(); ++sequence)
    for (int64_t position = int64_t(lengths[sequence]); position < positions; ++position)
      std::fill_n(tensor.elements.begin() + (int64_t(sequence) * positions + position) * run, run,
                  0.0);
}

size_t countOf(const std::string &text, const std::string &word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("packed layers compute what padded ones compute at valid tokens, for all lengths") {
  const std::string preset =
                        GENERATE("albert-base", "bert-base", "distilbert", "gpt2", "llama-3-8b"),
                    part = GENERATE("model", "layer");
  INFO(preset << " " << part);
  ModelFlags flags = flagsOf(preset, part, "3", "f32");
  flags.masks = {"padding"};
  Compilation padded(flags, fewVariants("unfused"), byModel());
  padded.import();
  flags.ragged = "j";
  Compilation packed(flags, fewVariants("unfused"), byModel());
  const DecidedModel model = decided(packed);
  const auto before = test::parse(padded.importedTexts().front().text),
             after = test::parse(packed.materialized(model.proposed, model.decision));
  for (const std::vector<double> &lengths :
       std::vector<std::vector<double>>{{32, 32}, {5, 30}, {0, 1}}) {
    std::vector<TensorValue> arguments = randomArguments(before->graph(), 3);
    CHECK(arguments.size() == randomArguments(after->graph(), 3).size());
    for (TensorValue &argument : arguments)
      if (argument.shape == std::vector<int64_t>{2}) argument.elements = lengths;
    auto expected = interpret(before->graph(), arguments, {}),
         actual = interpret(after->graph(), arguments, {});
    REQUIRE((mlir::succeeded(expected) && mlir::succeeded(actual)));
    REQUIRE(actual->size() == expected->size());
    zeroPadding(expected->front(), lengths);
    CHECK(distance(actual->front(), expected->front(), 1e-4, 1e-4) <= 1);
    if (actual->size() > 1 && lengths.front() > 0)  // of a sequence without tokens nothing is asked
      CHECK(distance(actual->back(), expected->back(), 1e-4, 1e-4) <= 1);
  }
}

TEST_CASE("what lies between packed layers is packed") {
  ModelFlags flags = flagsOf("bert-base", "model", "4", "f16");
  flags.ragged = "j";
  Compilation compilation(flags, fewVariants("fused"), byModel());
  const DecidedModel model = decided(compilation);
  const std::string text = compilation.importedTexts().front().text;
  // Ids, types and the table of positions once, and what attention reads and gives.
  CHECK(countOf(text, "weft.pack ") == 3 + 4);
  CHECK(countOf(text, "weft.unpack ") == 1 + 4 * 3);
  CHECK(countOf(text, "weft.offsets ") == 1);
  // The last layer's result has another name, since it is unpacked.
  REQUIRE(model.parts.size() == 4);
  CHECK(model.parts[1].places.size() == 3);
  for (const DecidedPart::Place &place : model.parts[1].places)
    CHECK(std::ranges::count(place.arguments, "offsets") == 1);
}

TEST_CASE("weights that layers share are there once, stacked ones too") {
  for (const char *stacking : {"separate", "three"}) {
    ChoiceFlags choices = fewVariants("fused");
    choices.stacking = stacking;
    Compilation compilation(flagsOf("albert-base", "model", "4", "f16"), choices, byModel());
    const DecidedModel model = decided(compilation);
    std::map<std::string, int> parameters;
    for (const PlanTensor &tensor : model.decision.planned.plan.tensors)
      if (tensor.role == TensorRole::parameter) ++parameters[tensor.logical];
    CHECK(parameters.size() == 7 + 16 + 2);
    for (const auto &[name, count] : parameters) CHECK(count == 1);
    CHECK(model.parts.size() == 3);
  }
}

TEST_CASE("layers that are alike are decided once, and have the same kernels") {
  Compilation compilation(flagsOf("gpt2", "model", "6", "f16"), fewVariants("fused"), byModel());
  const DecidedModel model = decided(compilation);
  // Embedding with the first norm, a layer up to the next one's first norm, the last with logits.
  REQUIRE(model.parts.size() == 3);
  CHECK(model.parts[0].places.size() == 1);
  CHECK(model.parts[1].places.size() == 5);
  CHECK(model.parts[2].places.size() == 1);
  std::map<int64_t, std::multiset<std::string>> byLayer;
  for (const PlanKernel &kernel : model.decision.planned.plan.kernels)
    byLayer[layerOf(kernel.name)].insert(kernel.configuration);
  CHECK(byLayer.at(2) == byLayer.at(5));
  const auto &notes = model.proposed.front().notes;
  CHECK(notes.back() ==
        "6 layers in 7 parts, cut behind 'norm1', of which 3 are decided: no fused candidate "
        "crosses a cut");
  Compilation one(flagsOf("gpt2", "model", "1", "f16"), fewVariants("fused"), byModel());
  CHECK(decided(one).parts.size() == 1);
  Compilation bert(flagsOf("bert-base", "layer", "12", "f16"), fewVariants("fused"), byModel());
  CHECK(decided(bert).parts.size() == 1);
}

TEST_CASE("what several layers do not have is told with what is nearest") {
  const auto errorOf = [](ModelFlags flags, ChoiceFlags choices) -> std::string {
    try {
      Compilation compilation(std::move(flags), std::move(choices), byModel());
      decided(compilation);
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  ChoiceFlags pinned = fewVariants("fused"), limited = pinned;
  pinned.pins = {"layer1_q=phbj"};
  CHECK_THAT(errorOf(flagsOf("gpt2", "layer", "2", "f16"), pinned),
             Catch::Contains("--pin is not supported of several layers yet"));
  limited.maxMemory = "1K";
  CHECK_THAT(errorOf(flagsOf("gpt2", "layer", "2", "f16"), limited),
             Catch::Contains("--max-memory 1K: "));
}
