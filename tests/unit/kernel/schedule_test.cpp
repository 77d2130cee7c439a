// Every field of every schedule through lines of profiles, key text, plan.json and descriptions;
// which fields there are comes from the tables alone, and which families from their registry and
// folders, so a new one is covered as it is added.
#include "codegen/families/attention_sm80/Sm80AttentionKnobs.h"
#include "codegen/families/attention_sm90/Sm90AttentionKnobs.h"
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "codegen/families/transpose/TransposeKnobs.h"
#include "codegen/families/view/ViewKnobs.h"
#include "kernel/ConfigurationText.h"
#include "kernel/Error.h"
#include "kernel/Family.h"
#include "plan/PlanKnobs.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/kernel/knobs_of_families.h"
#include "tests/unit/samples/SampleKernels.h"
#include "tests/unit/samples/SampleSchedules.h"

#include <catch2/catch.hpp>

#include <map>
#include <set>

using namespace weft;
using weft::test::nonEmpty;

namespace {

using Kind = ScheduleField::Kind;
using samples::forEachSchedule;

/// x[h,b,j] w[b,j] -> their product over j, so that a contraction has several axes to name.
Kernel kernel() { return samples::identityKernel({{'h', 4}, {'b', 2}, {'j', 8}}, "hbj"); }

/// Stands for a member of any type where a struct is initialized.
struct AnyMember {
  template <typename Member>
  operator Member() const;
};

/// How many members a struct without constructors has: as many as it takes initializers.
template <typename Struct, typename... Members>
constexpr size_t memberCount() {
  if constexpr (requires { Struct{Members{}..., AnyMember{}}; })
    return memberCount<Struct, Members..., AnyMember>();
  else return sizeof...(Members);
}

template <typename... Structs>
std::map<std::string_view, size_t> memberCounts() {
  return {{Structs::family().name, memberCount<Structs>()}...};
}

std::string keyOf(const Kernel &kernel, const Knobs &knobs) {
  return canonicalText(kernel, {.inputs = {rowMajor(3)}, .outputs = {rowMajor(3)}, .knobs = knobs},
                       "sm_90a");
}

}  // namespace

TEST_CASE("a family has one name, and each of its fields one name in every format") {
  std::set<std::string_view> names;
  for (const Family *each : nonEmpty(families())) {
    const Family &family = *each;
    CHECK(names.insert(family.name).second);
    CHECK(familyNamed(family.name) == each);
    CHECK(family.defaults().family() == family);
    std::set<std::string_view> fields, rowNames;
    std::set<std::string> snakeNames;
    for (const ScheduleField &field : family.schedule) {  // may be empty: a view has no fields
      CHECK(fields.insert(field.name).second);
      CHECK(rowNames.insert(field.rowName).second);
      CHECK(snakeNames.insert(snakeCase(field.name)).second);
      CHECK_FALSE(field.meaning.empty());
      CHECK((field.kind == Kind::choice) == !field.choices.empty());
      CHECK((field.kind == Kind::choice) == !field.noun.empty());
    }
  }
  CHECK_FALSE(familyNamed("no-family"));
  CHECK(familyNames().size() == names.size());
}

TEST_CASE("a table has every member of its struct") {
  const std::map<std::string_view, size_t> members = memberCounts<WEFT_KNOBS_OF_FAMILIES>();
  for (const Family *family : nonEmpty(families())) {
    INFO(family->name);
    REQUIRE(members.contains(family->name));
    CHECK(family->schedule.size() == members.at(family->name));
  }
}

TEST_CASE("code that names no family finds each by what it says of itself") {
  CHECK(familyWith(&Family::isView) == viewFamily);
  CHECK(familyWith(&Family::isTranspose) == transposeFamily);
  CHECK(familyWith(&Family::isLibrary) == libraryFamily);
  CHECK(familyWith(&Family::isPlaceholder) == fmaGemmFamily);
  CHECK(Knobs(ViewKnobs{}).isView());
  CHECK_FALSE(Knobs(LoopKnobs{}).isView());
  CHECK(Knobs(LibraryKnobs{}).isLibrary());
  CHECK_FALSE(Knobs().isView());
  CHECK_FALSE(Knobs().isLibrary());
  for (const Family *each : nonEmpty(families())) {
    INFO(each->name);
    CHECK(each->isView + each->isTranspose + each->isLibrary + each->isPlaceholder <= 1);
    CHECK((each->isLibrary == (each->workspaceOfKnobs != nullptr)));
    CHECK((each->isView == (each->whyCopied != nullptr)));
    if (each->isGemm || each->takesAttention) CHECK((each->blockTile || each->isLibrary));
  }
  CHECK(libraryFamily.workspaceOfKnobs(LibraryKnobs{.workspaceBytes = 4096}) == 4096);
}

TEST_CASE("tiles of GEMMs and attentions are asked of their families") {
  const BlockTile wide =
      sm90GemmFamily.blockTile(Sm90GemmKnobs{.tileM = 128, .tileN = 256, .multicastB = 2});
  CHECK(wide.rows == 128);
  CHECK(wide.columns == 256);
  CHECK(wide.multicast == 2);
  CHECK(sm80GemmFamily.blockTile(Sm80GemmKnobs{.tileM = 64, .tileN = 32}).columns == 32);
  CHECK(fmaGemmFamily.blockTile(FmaGemmKnobs{.tileM = 64, .tileN = 32}).rows == 64);
  const BlockTile scores =
      sm90AttentionFamily.blockTile(Sm90AttentionKnobs{.tileQueries = 192, .tileKeys = 80});
  CHECK(scores.rows == 192);
  CHECK(scores.columns == 80);
  CHECK(sm80AttentionFamily.blockTile(Sm80AttentionKnobs{.tileQueries = 64, .tileKeys = 48})
            .columns == 48);
}

TEST_CASE("loops that differ in threads alone have one structure, and blocks combine in one way") {
  const LoopKnobs one{.vectorAxis = 1,
                      .vectorWidth = 4,
                      .laneAxis = 1,
                      .reduction = ReductionMapping::sequential,
                      .threads = 128};
  LoopKnobs other = one;
  other.threads = 256;
  CHECK(loopFamily.structure(one).fields == loopFamily.structure(other).fields);
  CHECK(loopFamily.structure(one).vectorWidth == 4);
  CHECK(loopFamily.structure(one).reducesRows);
  CHECK_FALSE(loopFamily.blockCombine(one));
  other.reduction = ReductionMapping::block;
  other.combine = BlockCombine::tree;
  CHECK(loopFamily.structure(one).fields != loopFamily.structure(other).fields);
  CHECK(loopFamily.blockCombine(other) == BlockCombine::tree);
  CHECK_FALSE(loopFamily.structure(LoopKnobs{}).reducesRows);
}

TEST_CASE("only single-consumer tiles wait by themselves") {
  std::map<std::string, std::string> waiting;
  for (const Family *each : nonEmpty(families()))
    for (const ScheduleField &field : each->schedule)
      if (field.waitsItself >= 0)
        waiting.emplace(each->name, field.choices[size_t(field.waitsItself)]);
  CHECK(waiting == std::map<std::string, std::string>{{"gemm-sm90", "single-consumer"}});
}

TEST_CASE("every value of every field comes back from plan.json") {
  const Kernel sample = kernel();
  forEachSchedule([&](const Family &family, const ScheduleField &field, const Knobs &knobs) {
    INFO(family.name << " " << field.name << " " << field.get(knobs));
    const nlohmann::json object = toJson(planKnobs(knobs, sample));
    CHECK(object.contains(field.name) ==
          (!field.isOptional || field.get(knobs) != field.get(family.defaults())));
    CHECK(knobsOf(planKnobsFromJson(object, "a test"), sample, "a test") == knobs);
  });
}

TEST_CASE("a number outside of a field's range is rejected with the range, its default is inside") {
  const Kernel sample = kernel();
  for (const Family *each : nonEmpty(families()))
    for (const ScheduleField &field : each->schedule) {  // may be empty: a view has no fields
      if (field.kind != Kind::integer) continue;
      INFO(each->name << " " << field.name);
      CHECK(field.least < field.most);
      CHECK(field.get(each->defaults()) >= field.least);
      CHECK(field.get(each->defaults()) <= field.most);
      for (const int64_t value : {field.least - 1, field.most + 1}) {
        nlohmann::json object = toJson(planKnobs(each->defaults(), sample));
        object[field.name] = value;
        for (const nlohmann::json &written : {object, nlohmann::json::parse(object.dump())})
          CHECK_THROWS_WITH(
              planKnobsFromJson(written, "a test"),
              Catch::Contains(fmt::format("knob '{}' must be an integer from {} to {}, not {}",
                                          field.name, field.least, field.most, value)));
      }
    }
}

TEST_CASE("every value of every field comes back from a profile's line") {
  const Kernel sample = kernel();
  forEachSchedule([&](const Family &family, const ScheduleField &field, const Knobs &knobs) {
    INFO(family.name << " " << field.name << " " << field.get(knobs));
    const std::string text = scheduleText(knobs, CanonicalNames(sample));
    CHECK(text.empty() == (field.get(knobs) == field.get(family.defaults())));
    CHECK(parseKnobs(family.name, text, sample) == knobs);
  });
}

TEST_CASE("the key tells apart what a schedule tells apart") {
  const Kernel sample = kernel();
  std::map<std::string, Knobs> seen;
  forEachSchedule([&](const Family &, const ScheduleField &, const Knobs &knobs) {
    const auto [at, isNew] = seen.emplace(keyOf(sample, knobs), knobs);
    CHECK((isNew || at->second == knobs));
  });
  CHECK(seen.size() > 50);
}

TEST_CASE("a description says every field but those that say nothing of the kernel") {
  const Kernel sample = kernel();
  forEachSchedule([&](const Family &family, const ScheduleField &field, const Knobs &knobs) {
    if (field.shown != ScheduleField::Shown::suffix) return;
    INFO(family.name << " " << field.name);
    CHECK((describe(sample, knobs).find(field.name) != std::string::npos) ==
          (field.get(knobs) != field.get(family.defaults())));
  });
}

TEST_CASE("a message about an unknown choice lists every choice, in every format") {
  const Kernel sample = kernel();
  int messages = 0;
  for (const Family *each : nonEmpty(families()))
    for (const ScheduleField &field : each->schedule) {  // may be empty: a view has no fields
      if (field.kind != Kind::choice) continue;
      nlohmann::json object = toJson(planKnobs(each->defaults(), sample));
      object[field.name] = "nonsense";
      std::string json, row;
      try {
        planKnobsFromJson(object, "a test");
      } catch (const Error &error) {
        json = error.what();
      }
      try {
        parseKnobs(each->name, fmt::format("{}=nonsense", field.rowName), sample);
      } catch (const Error &error) {
        row = error.what();
      }
      for (const std::string_view choice : nonEmpty(field.choices)) {
        CHECK_THAT(json, Catch::Contains(std::string(choice)));
        CHECK_THAT(row, Catch::Contains(std::string(choice)));
        messages += 2;
      }
    }
  CHECK(messages >= 20);
}
