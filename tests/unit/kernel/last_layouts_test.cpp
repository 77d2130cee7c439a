// The answer under the layouts of the last question, for every kernel by itself.
#include "kernel/LastLayouts.h"

#include <catch2/catch.hpp>

#include <stdexcept>

using namespace weft;

namespace {

Kernel kernelOf(int64_t extent) {
  Kernel kernel;
  kernel.name = "kernel";
  kernel.axes = {{"a", extent}};
  return kernel;
}

Configuration under(const Layout &input, const Layout &output) {
  Configuration configuration;
  configuration.inputs = {input};
  configuration.outputs = {output};
  return configuration;
}

}  // namespace

TEST_CASE(
    "what is asked under the same layouts again is found once, other kernels between or not") {
  LastLayouts<int, bool> last;
  int found = 0;
  const auto ask = [&](int64_t extent, const Configuration &configuration, bool isOther = false) {
    return last.of([&] { return found++; }, kernelOf(extent), configuration, isOther);
  };
  Layout shifted = rowMajor(2);
  shifted.offset = 8;
  const Configuration first = under(rowMajor(2), rowMajor(2)), second = under(rowMajor(2), shifted);
  CHECK(ask(1, first) == 0);
  CHECK(ask(2, second) == 1);
  CHECK(ask(1, first) == 0);
  CHECK(ask(1, first, true) == 2);
  CHECK(ask(1, first) == 0);
  CHECK(ask(2, first) == 3);  // results lie elsewhere
  CHECK(ask(1, second) == 4);
  CHECK(ask(1, first) == 5);  // only the last layouts are kept
}

TEST_CASE("after a question without an answer the next one is asked again") {
  LastLayouts<int> last;
  const Configuration configuration = under(rowMajor(1), rowMajor(1));
  const Kernel kernel = kernelOf(1);
  CHECK(last.of([] { return 1; }, kernel, configuration) == 1);
  const Configuration other = under(rowMajor(2), rowMajor(1));
  CHECK_THROWS(last.of([]() -> int { throw std::runtime_error("none"); }, kernel, other));
  CHECK(last.of([] { return 2; }, kernel, other) == 2);
  CHECK(last.of([] { return 3; }, kernel, configuration) == 3);
}
