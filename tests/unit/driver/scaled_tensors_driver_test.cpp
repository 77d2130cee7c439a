// Tensors of a plan on other extents: orders, buffers and views stay what they are.
#include "plan/PlanMemory.h"
#include "plan/TensorLayout.h"
#include "tests/support/NonEmpty.h"
#include "tools/driver/ScaledTensors.h"

#include <catch2/catch.hpp>

#include <set>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::driver;
using namespace weft::runtime;

namespace {

PlanTensor tensorOf(const std::string &name, std::vector<std::string> axes,
                    std::vector<int64_t> extents, std::vector<int> order,
                    std::vector<int64_t> strides, int buffer, int64_t offset = 0) {
  PlanTensor tensor{.name = name,
                    .logical = name,
                    .dtype = DType::f16,
                    .axes = std::move(axes),
                    .extents = std::move(extents),
                    .order = std::move(order),
                    .strides = std::move(strides),
                    .role = TensorRole::temporary,
                    .buffer = buffer,
                    .offset = offset};
  tensor.bytes = logicalBytes(tensor);
  return tensor;
}

/// Elements of the buffer, by their numbers.
std::set<int64_t> placesOf(const PlanTensor &tensor) {
  std::set<int64_t> places = {tensor.offset};
  for (size_t d = 0; d < tensor.extents.size(); ++d) {
    std::set<int64_t> further;
    for (const int64_t place : places)
      for (int64_t n = 0; n < tensor.extents[d]; ++n) further.insert(place + n * tensor.strides[d]);
    places = further;
  }
  return places;
}

}  // namespace

TEST_CASE("padded rows stay padded where they start anywhere, and are dense where they do not") {
  Plan plan;
  plan.tensors.push_back(tensorOf("a", {"j", "u"}, {12, 1001}, {0, 1}, {1024, 1}, 0));
  plan.tensors.push_back(tensorOf("b", {"j", "u"}, {12, 1001}, {0, 1}, {1001, 1}, 1));
  plan.tensors.push_back(tensorOf("c", {"u", "j"}, {1001, 12}, {1, 0}, {1, 1024}, 2));
  CHECK(spanBytes(plan.tensors[0]) == 2 * (11 * 1024 + 1001));
  scaleTensors(plan, {{7, 2003}, {7, 2003}, {2003, 7}});
  CHECK(plan.tensors[0].strides == std::vector<int64_t>{2048, 1});
  CHECK(plan.tensors[1].strides == std::vector<int64_t>{2003, 1});
  CHECK(plan.tensors[2].strides == std::vector<int64_t>{1, 2048});
  scaleTensors(plan, {{7, 2000}, {7, 2000}, {2000, 7}});
  for (const PlanTensor &tensor : nonEmpty(plan.tensors))
    CHECK(*std::ranges::max_element(tensor.strides) == 2000);
}

TEST_CASE(
    "parts of a stack cover the smaller stack as they covered the larger, in every order of its "
    "axes") {
  std::vector<int> order = {0, 1, 2};
  int orders = 0;
  do {
    const std::vector<int64_t> extents = {8, 48, 32}, part = {8, 16, 32};
    const std::vector<int64_t> strides = stridesOf(Layout{.order = order}, extents);
    Plan plan;
    plan.tensors.push_back(tensorOf("all", {"p", "h", "i"}, extents, order, strides, 0));
    for (int n = 0; n < 3; ++n)
      plan.tensors.push_back(
          tensorOf("q", {"p", "h", "i"}, part, order, strides, 0, 16 * n * strides[1]));
    const std::vector<int64_t> small = {3, 9, 5}, smallChunk = {3, 3, 5};
    scaleTensors(plan, {small, smallChunk, smallChunk, smallChunk});
    CHECK(plan.tensors[0].strides == stridesOf(Layout{.order = order}, small));
    std::set<int64_t> covered;
    size_t sum = 0;
    for (size_t n = 1; n < 4; ++n) {
      CHECK(plan.tensors[n].strides == plan.tensors[0].strides);
      CHECK(plan.tensors[n].order == order);
      const std::set<int64_t> places = placesOf(plan.tensors[n]);
      covered.insert(places.begin(), places.end());
      sum += places.size();
    }
    CHECK(sum == covered.size());
    CHECK(covered == placesOf(plan.tensors[0]));
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  CHECK(orders == 6);
}

TEST_CASE("a piece of an axis that keeps its extent keeps its stride in elements of the axis") {
  Plan plan;
  plan.tensors = {tensorOf("all", {"h", "i"}, {48, 32}, {0, 1}, {32, 1}, 0),
                  tensorOf("q", {"g", "r", "i"}, {8, 4, 32}, {0, 1, 2}, {4 * 32, 32, 1}, 0)};
  scaleTensors(plan, {{12, 5}, {2, 4, 5}});
  CHECK(plan.tensors[1].strides == std::vector<int64_t>{20, 5, 1});
}

TEST_CASE("a part of a tensor with padded rows is that part of the smaller one") {
  Plan plan;
  plan.tensors = {tensorOf("all", {"p", "h"}, {64, 36}, {0, 1}, {40, 1}, 0),
                  tensorOf("q", {"p", "h"}, {64, 12}, {0, 1}, {40, 1}, 0),
                  tensorOf("v", {"p", "h"}, {64, 12}, {0, 1}, {40, 1}, 0, 24)};
  scaleTensors(plan, {{24, 39}, {24, 13}, {24, 13}});
  for (const PlanTensor &tensor : nonEmpty(plan.tensors))
    CHECK(tensor.strides == std::vector<int64_t>{40, 1});
  CHECK(plan.tensors[2].offset == 26);
}

TEST_CASE("an axis in two pieces stays in two pieces, and a chunk stays a chunk") {
  Plan plan;
  plan.tensors = {tensorOf("all", {"h", "j"}, {48, 32}, {0, 1}, {32, 1}, 0),
                  tensorOf("cut", {"s", "h", "j"}, {3, 16, 32}, {1, 0, 2}, {16 * 32, 32, 1}, 0),
                  tensorOf("chunk", {"h", "j"}, {12, 32}, {0, 1}, {32, 1}, 0, 24 * 32)};
  scaleTensors(plan, {{12, 5}, {3, 4, 5}, {3, 5}});
  CHECK(plan.tensors[1].strides == std::vector<int64_t>{20, 5, 1});
  CHECK(plan.tensors[2].offset == 6 * 5);
  CHECK(plan.tensors[2].bytes == 30);
}

TEST_CASE("a view that is no whole part any more is named") {
  Plan plan;
  plan.tensors = {tensorOf("all", {"h", "j"}, {4, 32}, {0, 1}, {32, 1}, 0),
                  tensorOf("chunk", {"h", "j"}, {1, 32}, {0, 1}, {32, 1}, 0, 3 * 32)};
  CHECK_THROWS_WITH(scaleTensors(plan, {{2, 5}, {1, 5}}),
                    Catch::Contains("'chunk'") && Catch::Contains("axis h of 'all'"));
}

TEST_CASE("what shared memory keeps its place, unless a result is too small for it now") {
  Plan plan;
  plan.tensors = {tensorOf("a", {"j"}, {1024}, {0}, {1}, 0),
                  tensorOf("b", {"j"}, {1024}, {0}, {1}, 1),
                  tensorOf("y", {"i"}, {4096}, {0}, {1}, 2)};
  plan.tensors[2].role = TensorRole::result;
  plan.memoryPlan = {{.buffer = 0, .in = {}, .offset = 4096},
                     {.buffer = 1, .in = {.result = 2}, .offset = 2048}};
  scaleTensors(plan, {{200}, {200}, {4096}});
  CHECK(plan.memoryPlan.size() == 2);
  scaleTensors(plan, {{200}, {200}, {512}});
  REQUIRE(plan.memoryPlan.size() == 1);
  CHECK(plan.memoryPlan[0].buffer == 0);
  CHECK(PlanMemory(plan).rangeOf(0).begin == 4096);
  CHECK(PlanMemory(plan).rangeOf(1).memory == MemoryRange::workspace);
}
