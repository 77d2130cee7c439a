// Which fields of a schedule change the emitted text, held to what its table says of each: legal
// configurations that differ in one field alone are emitted, and their texts compared.
#include "codegen/Emit.h"
#include "codegen/SourceHash.h"
#include "kernel/Device.h"
#include "kernel/Error.h"
#include "kernel/Family.h"
#include "passes/configure/Families.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleAttentionBackwards.h"
#include "tests/unit/samples/SampleAttentions.h"
#include "tests/unit/samples/SampleContractions.h"
#include "tests/unit/samples/SampleKernels.h"

#include <catch2/catch.hpp>

#include <map>
#include <optional>
#include <set>
#include <string>

using namespace weft;
using namespace weft::samples;
using weft::test::nonEmpty;

namespace {

/// So many configurations of a kernel are tried for a field, and so many of them emitted with so
/// many other values.
constexpr size_t mostTried = 64, mostEmitted = 3, mostValues = 3;

/// A reduction of columns whose result other kernels read, which blocks of a grid may share.
Kernel columnReduction() {
  KernelBuilder builder("gradients", {{'b', 8}, {'j', 64}, {'i', 32}});
  const int x = builder.input("x", "bji"),
            r = builder.op("relu", OperatorClass::elementwise, {x}, "r", "bji");
  builder.last().expression = Expression::parse("weft::relu({0})");
  const int s = builder.op("reduce", OperatorClass::normalization, {r}, "s", "i", "bj");
  builder.last().attributes["kind"] = std::string("sum");
  return builder.build({r, s});
}

/// Of every family that has texts.
std::vector<Kernel> kernels() {
  const AttentionExtents attention{.b = 2, .h = 8, .j = 512, .k = 512, .p = 64, .w = 64},
      grouped{.b = 2, .h = 2, .g = 4, .j = 16, .k = 4096, .p = 64, .w = 64};
  return {identityKernel({{'b', 64}, {'j', 96}, {'i', 64}}, "bji"),
          softmaxKernel({{'b', 2}, {'j', 64}, {'k', 2048}}, "bjk"),
          gemmBias({.b = 2, .j = 512, .i = 1024, .u = 1024}, DType::f16),
          contractKernel({{'m', 1024}, {'n', 3072}, {'k', 4096}}, "mk", "nk", "mn"),
          columnReduction(),
          plainAttention(attention, DType::f16),
          plainAttention(grouped, DType::f16),
          plainBackward(attention, DType::f16),
          plainBackward(grouped, DType::f16)};
}

std::map<const Family *, std::vector<Configuration>> configurationsOf(const Kernel &kernel,
                                                                      const Device &device) {
  std::map<const Family *, std::vector<Configuration>> result;
  for (const Configuration &one : enumerate(kernel, device).legal)
    if (one.knobs.family().hasText()) result[&one.knobs.family()].push_back(one);
  return result;
}

/// What decides the machine code; nothing where the family rejects the configuration.
std::optional<std::string> source(const Kernel &kernel, const Configuration &configuration,
                                  const Device &device) {
  const Family &family = configuration.knobs.family();
  if (family.rejection && !family.rejection(kernel, configuration, device).empty())
    return std::nullopt;
  try {
    return codegen::sourceHash(codegen::emit(kernel, configuration, device.architecture).text,
                               codegen::deviceHeaders());
  } catch (const Error &) {
    return std::nullopt;
  }
}

/// Values to try in place of one: those of other configurations, its double and its half.
std::vector<int> othersOf(const ScheduleField &field, int value, const std::set<int> &seen) {
  std::vector<int> others(seen.begin(), seen.end());
  if (field.kind == ScheduleField::Kind::integer)
    others.insert(others.begin(), {2 * value, value / 2, value + 1});
  std::erase(others, value);
  return others;
}

struct Counts {
  size_t pairs = 0;
  bool differ = false;
};

/// Compares the texts of a configuration and of those that differ from it in one field alone.
void compareTexts(const Kernel &kernel, const Configuration &configuration,
                  const ScheduleField &field, const std::set<int> &seen, const Device &device,
                  Counts &counts) {
  std::optional<std::string> own;  // emitted where another value is legal
  size_t compared = 0;
  for (const int value : othersOf(field, field.get(configuration.knobs), seen)) {
    if (counts.differ || compared >= mostValues) return;
    Configuration other = configuration;
    field.set(other.knobs, value);
    const std::optional<std::string> text = source(kernel, other, device);
    if (!text) continue;
    ++compared, ++counts.pairs;
    if (!own) own = source(kernel, configuration, device);
    counts.differ = *text != own;
  }
}

/// Configurations with other values of the field than the default first.
void compareTexts(const Kernel &kernel, const std::vector<Configuration> &configurations,
                  const ScheduleField &field, const Device &device, Counts &counts) {
  std::set<int> seen;
  std::vector<const Configuration *> others, usual;
  const int byDefault = field.get(configurations.front().knobs.family().defaults());
  for (const Configuration &one : configurations) {
    const int value = field.get(one.knobs);
    (value == byDefault ? usual : others).push_back(&one);
    seen.insert(value);
  }
  for (const auto &group : {others, usual}) {
    const size_t step = 1 + group.size() / mostTried;
    size_t emitted = 0;
    for (size_t index = 0; index < group.size() && emitted < mostEmitted && !counts.differ;
         index += step) {
      const size_t before = counts.pairs;
      compareTexts(kernel, *group[index], field, seen, device, counts);
      emitted += counts.pairs > before;
    }
  }
}

}  // namespace

TEST_CASE("a field changes the text of a kernel exactly where its table says so") {
  std::map<const ScheduleField *, Counts> counts;
  for (Device device : {findDevice("h200"), findDevice("a100")}) {
    device.mayBeNondeterministic = true;
    for (const Kernel &kernel : kernels())
      for (const auto &[family, configurations] : nonEmpty(configurationsOf(kernel, device)))
        for (const ScheduleField &field : nonEmpty(family->schedule))
          if (!counts[&field].differ)
            compareTexts(kernel, configurations, field, device, counts[&field]);
  }
  for (const Family *family : nonEmpty(families()))
    for (const ScheduleField &field : family->schedule) {  // may be empty: a view has no fields
      INFO(family->name << " " << field.name << ": of " << counts[&field].pairs
                        << " pairs some differ: " << counts[&field].differ);
      CHECK((counts[&field].pairs > 0) == family->hasText());
      CHECK(counts[&field].differ == field.changesText);
    }
}
