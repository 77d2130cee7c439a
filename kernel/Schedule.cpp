// The tables of schedules; see Schedule.h.
#include "kernel/Schedule.h"

#include "kernel/Error.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>

namespace weft {
namespace {

using Kind = ScheduleField::Kind;
using Shown = ScheduleField::Shown;

template <typename Member>
struct MemberOf;
template <typename Struct, typename Value>
struct MemberOf<Value Struct::*> {
  using Owner = Struct;
  using Type = Value;
};

template <typename Value, size_t count>
std::array<std::string_view, count> namesOf(const Value (&values)[count]) {
  std::array<std::string_view, count> names;
  for (size_t index = 0; index < count; ++index) names[index] = nameOf(values[index]);
  return names;
}

/// The accessors of a member, through which a table reaches it.
template <auto member>
ScheduleField of(ScheduleField field) {
  using Owner = typename MemberOf<decltype(member)>::Owner;
  using Type = typename MemberOf<decltype(member)>::Type;
  field.get = [](const Knobs &knobs) { return int(std::get<Owner>(knobs).*member); };
  field.set = [](Knobs &knobs, int value) { std::get<Owner>(knobs).*member = Type(value); };
  return field;
}

const auto reductionNames = namesOf(reductionMappings);
const auto combineNames = namesOf(blockCombines);
const auto sm90ScheduleNames = namesOf(sm90Schedules);

const ScheduleField loopFields[] = {
    of<&LoopKnobs::vectorAxis>({.name = "vectorAxis",
                                .rowName = "vector",
                                .meaning = "axis along which a thread takes vectorWidth neighbours",
                                .kind = Kind::axis,
                                .shown = Shown::text}),
    of<&LoopKnobs::vectorWidth>(
        {.name = "vectorWidth",
         .rowName = "width",
         .meaning = "elements of a thread along vectorAxis: 1, 2, 4, 8, of 16 bytes at most",
         .shown = Shown::text}),
    of<&LoopKnobs::laneAxis>({.name = "laneAxis",
                              .rowName = "lanes",
                              .meaning = "axis along which neighbouring threads lie",
                              .kind = Kind::axis,
                              .shown = Shown::text}),
    of<&LoopKnobs::reduction>({.name = "reduction",
                               .rowName = "reduction",
                               .meaning = "how the reduced axes are spread over threads and blocks",
                               .kind = Kind::choice,
                               .choices = reductionNames,
                               .noun = "mapping",
                               .shown = Shown::text}),
    of<&LoopKnobs::threads>({.name = "threads",
                             .rowName = "threads",
                             .meaning = "threads of a block",
                             .shown = Shown::text}),
    of<&LoopKnobs::threadsPerRow>({.name = "threadsPerRow",
                                   .rowName = "perRow",
                                   .meaning = "threads of a block that share a row or column",
                                   .shown = Shown::text}),
    of<&LoopKnobs::combine>({.name = "combine",
                             .rowName = "combine",
                             .meaning = "how the threads of a block combine partial results",
                             .kind = Kind::choice,
                             .choices = combineNames,
                             .noun = "combination",
                             .isOptional = true,
                             .shown = Shown::text}),
    of<&LoopKnobs::blocksPerRow>({.name = "blocksPerRow",
                                  .rowName = "blocks",
                                  .meaning = "blocks that share a column of cluster-columns or "
                                             "grid-columns",
                                  .least = 1,
                                  .isOptional = true,
                                  .shown = Shown::text})};

const ScheduleField transposeFields[] = {
    of<&TransposeKnobs::tile>({.name = "tile",
                               .rowName = "tile",
                               .meaning = "elements of each side of the tile in shared memory",
                               .shown = Shown::text}),
    of<&TransposeKnobs::vectorWidth>({.name = "vectorWidth",
                                      .rowName = "width",
                                      .meaning = "elements of an access",
                                      .shown = Shown::text}),
    of<&TransposeKnobs::threads>({.name = "threads",
                                  .rowName = "threads",
                                  .meaning = "threads of a block",
                                  .shown = Shown::text})};

const ScheduleField fmaGemmFields[] = {
    of<&FmaGemmKnobs::tileM>({.name = "tileM",
                              .rowName = "tileM",
                              .meaning = "rows of C of a block",
                              .least = 1,
                              .shown = Shown::text}),
    of<&FmaGemmKnobs::tileN>({.name = "tileN",
                              .rowName = "tileN",
                              .meaning = "columns of C of a block",
                              .least = 1,
                              .shown = Shown::text}),
    of<&FmaGemmKnobs::tileK>({.name = "tileK",
                              .rowName = "tileK",
                              .meaning = "elements of k of a k-tile",
                              .least = 1,
                              .shown = Shown::text}),
    of<&FmaGemmKnobs::threadM>({.name = "threadM",
                                .rowName = "threadM",
                                .meaning = "rows of C of a thread",
                                .least = 1,
                                .shown = Shown::text}),
    of<&FmaGemmKnobs::threadN>({.name = "threadN",
                                .rowName = "threadN",
                                .meaning = "columns of C of a thread",
                                .least = 1,
                                .shown = Shown::text})};

const ScheduleField sm90GemmFields[] = {
    of<&Sm90GemmKnobs::schedule>(
        {.name = "schedule",
         .rowName = "schedule",
         .meaning = "consumers share a tile, alternate with tiles of each, or are one",
         .kind = Kind::choice,
         .choices = sm90ScheduleNames,
         .noun = "schedule",
         .shown = Shown::text}),
    of<&Sm90GemmKnobs::tileM>({.name = "tileM",
                               .rowName = "tileM",
                               .meaning = "rows of C of a tile",
                               .shown = Shown::text}),
    of<&Sm90GemmKnobs::tileN>({.name = "tileN",
                               .rowName = "tileN",
                               .meaning = "columns of C of a tile",
                               .shown = Shown::text}),
    of<&Sm90GemmKnobs::stages>({.name = "stages",
                                .rowName = "stages",
                                .meaning = "k-tiles of A and B, 128 bytes of k each, in shared "
                                           "memory",
                                .shown = Shown::text}),
    of<&Sm90GemmKnobs::epilogueStages>(
        {.name = "epilogueStages",
         .rowName = "epilogueStages",
         .meaning = "epilogue subtiles of 64 x 64 in flight, a consumer",
         .shown = Shown::text}),
    of<&Sm90GemmKnobs::groupM>({.name = "groupM",
                                .rowName = "groupM",
                                .meaning = "tiles along m that are taken before the next along n",
                                .shown = Shown::text}),
    of<&Sm90GemmKnobs::blocks>({.name = "blocks",
                                .rowName = "blocks",
                                .meaning = "blocks of the persistent grid, at most",
                                .shown = Shown::nowhere}),
    of<&Sm90GemmKnobs::splitK>({.name = "splitK",
                                .rowName = "splitK",
                                .meaning = "blocks of a cluster that share the k of one tile",
                                .least = 1,
                                .isOptional = true,
                                .shown = Shown::text}),
    of<&Sm90GemmKnobs::multicastB>(
        {.name = "multicastB",
         .rowName = "multicastB",
         .meaning = "blocks of a cluster that load k-tiles of B for each other",
         .least = 1,
         .isOptional = true,
         .shown = Shown::text}),
    of<&Sm90GemmKnobs::streamK>(
        {.name = "streamK",
         .rowName = "streamK",
         .meaning = "1: stream-K: every block takes as many k-tiles of all tiles",
         .least = 1,
         .isOptional = true,
         .shown = Shown::text})};

const ScheduleField sm80GemmFields[] = {
    of<&Sm80GemmKnobs::tileM>({.name = "tileM",
                               .rowName = "tileM",
                               .meaning = "rows of C of a block",
                               .shown = Shown::text}),
    of<&Sm80GemmKnobs::tileN>({.name = "tileN",
                               .rowName = "tileN",
                               .meaning = "columns of C of a block",
                               .shown = Shown::text}),
    of<&Sm80GemmKnobs::tileK>({.name = "tileK",
                               .rowName = "tileK",
                               .meaning = "elements of k of a k-tile: 32 or 64",
                               .shown = Shown::text}),
    of<&Sm80GemmKnobs::stages>({.name = "stages",
                                .rowName = "stages",
                                .meaning = "k-tiles in shared memory",
                                .shown = Shown::text}),
    of<&Sm80GemmKnobs::warpsM>({.name = "warpsM",
                                .rowName = "warpsM",
                                .meaning = "warps of a block along m",
                                .shown = Shown::text}),
    of<&Sm80GemmKnobs::warpsN>({.name = "warpsN",
                                .rowName = "warpsN",
                                .meaning = "warps of a block along n",
                                .shown = Shown::text}),
    of<&Sm80GemmKnobs::groupM>({.name = "groupM",
                                .rowName = "groupM",
                                .meaning = "tiles along m that are taken before the next along n",
                                .shown = Shown::text})};

/// An attribute of cuBLASLt: any value from its default on, by one name everywhere.
template <auto member>
ScheduleField attribute(std::string_view name, std::string_view meaning) {
  return of<member>({.name = name,
                     .rowName = name,
                     .meaning = meaning,
                     .least = LibraryKnobs{}.*member,
                     .most = std::numeric_limits<int>::max(),
                     .changesText = false,
                     .shown = Shown::text});
}

const ScheduleField libraryFields[] = {
    attribute<&LibraryKnobs::libraryVersion>(
        "libraryVersion", "of the library that listed the algorithm: 130200 for 13.2.0"),
    attribute<&LibraryKnobs::algorithm>("algorithm",
                                        "its id; -1: the heuristic's first candidate at load"),
    attribute<&LibraryKnobs::tile>("tile", "id of the tile"),
    attribute<&LibraryKnobs::stages>("stages", "id of the stages of the pipeline"),
    attribute<&LibraryKnobs::splitK>("splitK", "pieces of k; 0 and 1: whole"),
    attribute<&LibraryKnobs::reductionScheme>("reductionScheme",
                                              "how partial results of split-K are added"),
    attribute<&LibraryKnobs::swizzle>("swizzle", "order of the blocks"),
    attribute<&LibraryKnobs::customOption>("customOption", "its meaning is the algorithm's"),
    attribute<&LibraryKnobs::innerShape>("innerShape", "id of the instruction's shape"),
    attribute<&LibraryKnobs::clusterShape>("clusterShape", "id of the cluster"),
    attribute<&LibraryKnobs::workspaceBytes>("workspaceBytes",
                                             "device memory that the algorithm needs")};

}  // namespace

std::optional<Family> familyNamed(std::string_view name) {
  for (size_t index = 0; index < std::variant_size_v<Knobs>; ++index)
    if (nameOf(Family(index)) == name) return Family(index);
  return std::nullopt;
}

std::vector<std::string> familyNames() {
  std::vector<std::string> names;
  for (size_t index = 0; index < std::variant_size_v<Knobs>; ++index)
    names.emplace_back(nameOf(Family(index)));
  std::ranges::sort(names);
  return names;
}

std::span<const ScheduleField> scheduleOf(Family family) {
  switch (family) {
    case Family::loop: return loopFields;
    case Family::transpose: return transposeFields;
    case Family::gemmFma: return fmaGemmFields;
    case Family::view: return {};
    case Family::library: return libraryFields;
    case Family::gemmSm90: return sm90GemmFields;
    case Family::gemmSm80: return sm80GemmFields;
  }
  throw Error::checkFailed("unknown kernel family {}", int(family));
}

const Knobs &defaultSchedule(Family family) {
  static const Knobs defaults[] = {LoopKnobs{},    TransposeKnobs{}, FmaGemmKnobs{}, ViewKnobs{},
                                   LibraryKnobs{}, Sm90GemmKnobs{},  Sm80GemmKnobs{}};
  static_assert(std::size(defaults) == std::variant_size_v<Knobs>);
  return defaults[size_t(family)];
}

std::string valueText(const ScheduleField &field, int value,
                      const std::function<std::string(int)> &axisName) {
  switch (field.kind) {
    case Kind::integer: return fmt::to_string(value);
    case Kind::axis: return value < 0 ? "-" : axisName(value);
    case Kind::choice: return std::string(field.choices[size_t(value)]);
  }
  return "";
}

std::string scheduleText(const Knobs &knobs, const CanonicalNames &names) {
  std::string text;
  const Family family = familyIdOf(knobs);
  for (const ScheduleField &field : scheduleOf(family))
    if (const int value = field.get(knobs); value != field.get(defaultSchedule(family)))
      text += fmt::format(" {}={}", field.rowName,
                          valueText(field, value, [&](int axis) { return names.axis(axis); }));
  return text;
}

std::string snakeCase(std::string_view name) {
  std::string text;
  for (const char letter : name) {
    if (std::isupper(static_cast<unsigned char>(letter))) text += '_';
    text += char(std::tolower(static_cast<unsigned char>(letter)));
  }
  return text;
}

std::optional<int> choiceNamed(const ScheduleField &field, std::string_view name) {
  const auto found = std::ranges::find(field.choices, name);
  if (found == field.choices.end()) return std::nullopt;
  return int(found - field.choices.begin());
}

std::string choicesText(const ScheduleField &field) {
  return fmt::format("{}", fmt::join(field.choices, ", "));
}

}  // namespace weft
