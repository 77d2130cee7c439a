// Views: which slices and regroupings move nothing, in which layouts, and why others copy.
#include "codegen/families/loop/LoopKnobs.h"
#include "codegen/families/view/ViewFamily.h"
#include "codegen/families/view/ViewKnobs.h"
#include "kernel/ConfigurationText.h"
#include "passes/configure/Families.h"
#include "tests/unit/samples/SampleKernels.h"

#include <catch2/catch.hpp>

using namespace weft;
using namespace weft::samples;

namespace {

std::vector<Configuration> viewsOf(const Kernel &kernel) {
  std::vector<Configuration> views;
  for (const Configuration &one : enumerate(kernel, findDevice("h200")).legal)
    if (one.knobs.is<ViewKnobs>()) views.push_back(one);
  return views;
}

Kernel sliceKernel(int64_t start, int64_t size) {
  KernelBuilder builder("slice", {{'q', 96}, {'s', size}, {'i', 32}});
  const int x = builder.input("x", "qi");
  const int y = builder.op("slice", OperatorClass::movement, {x}, "y", "si");
  builder.last().attributes = {{"axis", int64_t(0)}, {"start", start}, {"size", size}};
  return builder.build({y});
}

}  // namespace

TEST_CASE("a slice is a view where its axis is slowest") {
  const auto views = viewsOf(sliceKernel(32, 32));
  REQUIRE(views.size() == 1);
  CHECK(views[0].inputs[0] == rowMajor(2));
  CHECK(views[0].outputs[0].offset == 32 * 32);
}

TEST_CASE("a slice that would break the alignment is no view") {
  KernelBuilder builder("slice", {{'q', 9}, {'s', 4}});
  const int x = builder.input("x", "q");
  const int y = builder.op("slice", OperatorClass::movement, {x}, "y", "s");
  builder.last().attributes = {{"axis", int64_t(0)}, {"start", int64_t(1)}, {"size", int64_t(4)}};
  CHECK(viewsOf(builder.build({y})).empty());
}

TEST_CASE("a slice that moves elements says why it is no view") {
  const auto copied = [](const Kernel &kernel, const Layout &from, const Layout &to,
                         Knobs knobs = LoopKnobs{}) {
    const auto reason = whyCopied(kernel, {.inputs = {from}, .outputs = {to}, .knobs = knobs});
    return reason ? reason->text() : "";
  };
  const Kernel kernel = sliceKernel(32, 32);
  const Layout swapped{.order = {1, 0}};
  CHECK(copied(kernel, swapped, swapped) ==
        "V005 runs-not-whole-lines (runs along q in iq are no multiples of 128 bytes)");
  CHECK(copied(kernel, rowMajor(2), rowMajor(2)).starts_with("V003 callers-buffer"));
  CHECK(copied(kernel, rowMajor(2), swapped).empty());  // elements move because the layouts differ
  CHECK(copied(kernel, rowMajor(2), rowMajor(2), ViewKnobs{}).empty());
  KernelBuilder builder("slice", {{'q', 9}, {'s', 4}});
  const int x = builder.input("x", "q");
  const int y = builder.op("slice", OperatorClass::movement, {x}, "y", "s");
  builder.last().attributes = {{"axis", int64_t(0)}, {"start", int64_t(3)}, {"size", int64_t(4)}};
  CHECK(copied(builder.build({y}), rowMajor(1), rowMajor(1)) ==
        "V002 part-not-aligned (a part along q does not start at a multiple of 16 bytes)");
}

TEST_CASE("splitting an axis is a view in every layout that keeps the parts adjacent") {
  KernelBuilder builder("split", {{'b', 4}, {'i', 64}, {'h', 8}, {'p', 8}});
  const int x = builder.input("x", "bi");
  const int y = builder.op("split_axis", OperatorClass::movement, {x}, "y", "bhp");
  builder.last().attributes = {{"axis", int64_t(1)}, {"sizes", std::vector<int64_t>{8, 8}}};
  const auto views = viewsOf(builder.build({y}));
  REQUIRE(views.size() == 2);
  CHECK((views[0].inputs[0] == rowMajor(2) && views[0].outputs[0] == rowMajor(3)));
  CHECK((views[1].inputs[0].order == std::vector<int>{1, 0} &&
         views[1].outputs[0].order == std::vector<int>{1, 2, 0}));
}
