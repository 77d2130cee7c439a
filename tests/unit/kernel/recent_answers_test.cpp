// Answers that are kept: by what was asked, not by where it lies in memory, and the last ones
// alone.
#include "kernel/RecentAnswers.h"

#include <catch2/catch.hpp>

#include <stdexcept>
#include <string>

using namespace weft;

namespace {

Kernel kernelOf(int64_t extent) {
  Kernel kernel;
  kernel.name = "kernel";
  kernel.axes = {{"a", extent}};
  return kernel;
}

/// Answers with how many were found before.
struct Asking {
  RecentAnswers<int, std::string> recent = {};
  int found = 0;
  int operator()(const Kernel &kernel, const std::string &text = "") {
    return recent.of([&] { return found++; }, kernel, text);
  }
  int operator()(int64_t extent, const std::string &text = "") {
    return (*this)(kernelOf(extent), text);
  }
};

}  // namespace

TEST_CASE("what is asked again is found once, whatever is asked between") {
  Asking ask;
  CHECK(ask(1, "a") == 0);
  CHECK(ask(2, "a") == 1);
  CHECK(ask(1, "b") == 2);
  CHECK(ask(1, std::string("a")) == 0);
  CHECK(ask(2, "a") == 1);
  CHECK(ask.found == 3);
}

TEST_CASE("what was asked longest ago is forgotten first") {
  Asking ask;
  const int most = int(decltype(ask.recent)::mostKept);
  for (int number = 0; number < most; ++number) ask(number);
  CHECK(ask(0) == 0);        // kept, and now the last one asked for
  CHECK(ask(most) == most);  // takes the place of 1
  CHECK(ask(0) == 0);
  CHECK(ask(1) == most + 1);
}

TEST_CASE("an answer that could not be found is not kept") {
  RecentAnswers<int> recent;
  const Kernel kernel = kernelOf(1);
  CHECK_THROWS(recent.of([]() -> int { throw std::runtime_error("none"); }, kernel));
  CHECK(recent.of([] { return 7; }, kernel) == 7);
}

TEST_CASE("finding an answer may ask for others") {
  RecentAnswers<int> recent;
  const auto factorial = [&](const auto &self, int number) -> int {
    return recent.of([&] { return number < 2 ? 1 : number * self(self, number - 1); },
                     kernelOf(number));
  };
  CHECK(factorial(factorial, 6) == 720);
  CHECK(recent.of([] { return 0; }, kernelOf(5)) == 120);
}

TEST_CASE("a steady kernel is known by its number, and any other by its fields") {
  Asking ask;
  Kernel kernel = kernelOf(1);
  {
    const SteadyKernel steady(kernel);
    CHECK(ask(kernel) == 0);
    CHECK(ask(1) == 0);
    CHECK(ask(kernel, "b") == 1);
    const Kernel inner = kernelOf(2);
    {
      const SteadyKernel other(inner);
      CHECK(ask(inner) == 2);
      CHECK(ask(kernel) == 0);
    }
    CHECK(SteadyKernel::numberOf(kernel) > 0);
    CHECK(ask(kernel) == 0);
  }
  CHECK(SteadyKernel::numberOf(kernel) == 0);
  kernel.axes[0].extent = 3;  // at the same address
  CHECK(ask(kernel) == 3);
  const SteadyKernel again(kernel);
  CHECK(ask(kernel) == 3);
  CHECK(ask(1) == 0);
}
