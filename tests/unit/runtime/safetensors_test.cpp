// safetensors: what is written is read back; what is malformed, truncated, missing or too much is
// named.
#include <catch2/catch.hpp>

#include "kernel/Error.h"
#include "runtime/execute/Safetensors.h"
#include "runtime/system/Files.h"
#include "tests/support/NonEmpty.h"
#include "tests/support/TemporaryTestFolder.h"

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::runtime;
using weft::test::TemporaryTestFolder;

namespace {

std::vector<std::byte> counting(size_t count) {
  std::vector<std::byte> bytes;
  for (size_t n = 0; n < count; ++n) bytes.push_back(std::byte(n * 37));
  return bytes;
}

const TensorToWrite weights{
    .name = "wq", .dtype = DType::f16, .shape = {2, 3}, .elements = counting(12)};
const TensorToWrite bias{.name = "bq", .dtype = DType::f32, .shape = {3}, .elements = counting(12)};

PlanTensor expectedTensor(const std::string &name, DType dtype, std::vector<int64_t> extents) {
  PlanTensor tensor;
  tensor.name = name + "__packed";
  tensor.logical = name;
  tensor.dtype = dtype;
  tensor.extents = std::move(extents);
  tensor.axes.assign(tensor.extents.size(), "i");
  return tensor;
}

/// A file with the given header and as many zero bytes of data.
std::string withHeader(const std::string &header, size_t dataBytes) {
  std::string bytes;
  for (int byte = 0; byte < 8; ++byte) bytes.push_back(char(header.size() >> (8 * byte) & 0xFF));
  return bytes + header + std::string(dataBytes, '\0');
}

std::string errorOf(const std::function<void()> &action) {
  try {
    action();
  } catch (const Error &error) {
    CHECK(error.kind == ErrorKind::badInput);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("what is written is read back, aligned, for every element type") {
  const TemporaryTestFolder folder;
  std::vector<TensorToWrite> tensors{
      weights,
      bias,
      {.name = "empty", .dtype = DType::f64, .shape = {0, 4}, .elements = {}},
      {.name = "scalar", .dtype = DType::bf16, .shape = {}, .elements = counting(2)},
      {.name = "narrow", .dtype = DType::f8e4m3, .shape = {3}, .elements = counting(3)},
      {.name = "coarse", .dtype = DType::f8e5m2, .shape = {2, 2}, .elements = counting(4)},
      {.name = "ids", .dtype = DType::i32, .shape = {2}, .elements = counting(8)},
      {.name = "mask", .dtype = DType::i1, .shape = {5}, .elements = counting(5)}};
  writeSafetensors(folder / "t.safetensors", tensors);
  const SafetensorsFile file(folder / "t.safetensors");
  REQUIRE(file.entries().size() == tensors.size());
  for (const TensorToWrite &tensor : nonEmpty(tensors)) {
    INFO(tensor.name);
    CHECK(file.entries().at(tensor.name).shape == tensor.shape);
    CHECK(file.read(tensor.name) == tensor.elements);
  }
  CHECK(file.entries().at("wq").dtype == "F16");
  CHECK(file.entries().at("narrow").dtype == "F8_E4M3");
  CHECK(file.entries().at("coarse").dtype == "F8_E5M2");
  CHECK(file.entries().at("wq").begin % 8 == 0);
}

TEST_CASE("a file that is no whole safetensors file is rejected, and why is said") {
  const TemporaryTestFolder folder;
  const std::filesystem::path path = folder / "bad.safetensors";
  const auto opening = [&](const std::string &bytes) {
    writeFile(path, bytes);
    const std::string error = errorOf([&] { SafetensorsFile file(path); });
    CHECK_THAT(error, Catch::Contains("bad.safetensors"));
    return error;
  };
  const std::string good = R"({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})";
  writeFile(path, withHeader(good, 8));
  CHECK(SafetensorsFile(path).entries().at("x").shape == std::vector<int64_t>{2});
  CHECK_THAT(opening("abc"), Catch::Contains("3 bytes are too few"));
  CHECK_THAT(opening(std::string(16, '\xff')),
             Catch::Contains("header should be 18446744073709551615 bytes"));
  CHECK_THAT(opening(withHeader("{\"x\": ", 0)), Catch::Contains("header"));
  CHECK_THAT(opening(withHeader("[]", 0)), Catch::Contains("no JSON object"));
  CHECK_THAT(opening(withHeader(good, 7)), Catch::Contains("'x'") && Catch::Contains("truncated"));
  CHECK_THAT(
      opening(withHeader(R"({"x": {"dtype": "F33", "shape": [2], "data_offsets": [0, 8]}})", 8)),
      Catch::Contains("F33"));
  CHECK_THAT(
      opening(withHeader(R"({"x": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}})", 8)),
      Catch::Contains("F32 [3]"));
  CHECK_THAT(
      opening(withHeader(R"({"x": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}})", 8)),
      Catch::Contains("[-2]"));
  CHECK_THAT(
      opening(withHeader(
          R"({"x": {"dtype": "F32", "shape": [4611686018427387904, 4], "data_offsets": [0, 0]}})",
          0)),
      Catch::Contains("does not lie"));
  CHECK_THAT(
      opening(withHeader(R"({"x": {"dtype": "F32", "shape": [2.5], "data_offsets": [0, 8]}})", 8)),
      Catch::Contains("integers"));
  CHECK_THAT(opening(withHeader(R"({"x": {"dtype": "F32", "shape": [2]}})", 8)),
             Catch::Contains("data_offsets"));
  CHECK_THAT(
      opening(withHeader(R"({"x": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}})", 8)),
      Catch::Contains("[8, 0]"));
  CHECK_THAT(opening(withHeader(R"({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                                    "y": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})",
                                8)),
             Catch::Contains("overlap"));
}

TEST_CASE("metadata is no tensor, and a missing file is bad input") {
  const TemporaryTestFolder folder;
  writeFile(folder / "m.safetensors", withHeader(R"({"__metadata__": {"format": "pt"}})", 0));
  CHECK(SafetensorsFile(folder / "m.safetensors").entries().empty());
  CHECK_THAT(errorOf([&] { SafetensorsFile file(folder / "none.safetensors"); }),
             Catch::Contains("none.safetensors"));
}

TEST_CASE("the tensors of a file are exactly those expected") {
  const TemporaryTestFolder folder;
  writeSafetensors(folder / "t.safetensors", std::vector{weights, bias});
  const SafetensorsFile file(folder / "t.safetensors");
  const auto against = [&](const std::vector<PlanTensor> &tensors) {
    std::vector<const PlanTensor *> pointers;
    for (const PlanTensor &tensor : tensors) pointers.push_back(&tensor);
    return errorOf([&] { file.requireExactly(pointers); });
  };
  const PlanTensor wq = expectedTensor("wq", DType::f16, {2, 3}),
                   bq = expectedTensor("bq", DType::f32, {3});
  CHECK(against({wq, bq}) == "no error");
  CHECK_THAT(against({wq, bq, expectedTensor("bk", DType::f16, {3})}),
             Catch::Contains("'bk' is missing") && Catch::Contains("F16 [3]"));
  CHECK_THAT(against({wq, expectedTensor("bqs", DType::f32, {3})}),
             Catch::Contains("'bq' is none") && Catch::Contains("nearest is 'bqs'"));
  CHECK_THAT(against({expectedTensor("wq", DType::f16, {3, 2}), bq}),
             Catch::Contains("F16 [2, 3]; expected: F16 [3, 2]"));
  CHECK_THAT(against({expectedTensor("wq", DType::bf16, {2, 3}), bq}),
             Catch::Contains("F16 [2, 3]; expected: BF16 [2, 3]"));
}
