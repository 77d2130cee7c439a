// The fields of the cuBLASLt family, what it says of a kernel, and the family itself.
#include "codegen/families/library/LibraryKnobs.h"

#include "codegen/families/library/LibraryCost.h"
#include "codegen/families/library/LibraryEpilogue.h"
#include "codegen/families/library/LibraryGemm.h"
#include "kernel/Error.h"
#include "passes/configure/Family.h"

#include <limits>

namespace weft {

std::string libraryVersionText(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

namespace {

using Kind = ScheduleField::Kind;
using Shown = ScheduleField::Shown;

/// An attribute of cuBLASLt: any value from its default on, by one name everywhere.
template <auto member>
ScheduleField attribute(std::string_view name, std::string_view meaning) {
  return scheduleField<member>({.name = name,
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

/// Attributes that differ from their defaults, but for the version, as "tile 20, stages 36".
std::string libraryAttributesText(const LibraryKnobs &knobs) {
  std::vector<std::string> texts;
  const Knobs own = knobs, &usual = libraryFamily.defaults();
  for (const ScheduleField &field : libraryFamily.schedule)
    if (field.get(own) != field.get(usual))
      texts.push_back(fmt::format("{} {}", field.name, field.get(own)));
  return texts.empty() ? "-" : fmt::format("{}", fmt::join(texts, ", "));
}

std::string epilogueText(const Kernel &kernel) {
  if (kernel.body.size() < 2) return "";
  const Expected<LibraryForm, Reason> answer = libraryForm(kernel);
  return answer ? ", epilogue " + describe(*answer) : "";
}

std::string describeKnobs(const Kernel &kernel, const Knobs &any) {
  const auto &knobs = any.get<LibraryKnobs>();
  const std::string with = epilogueText(kernel);
  if (knobs.algorithm < 0) return fmt::format("cuBLASLt{}, first candidate of its heuristic", with);
  LibraryKnobs attributes = knobs;
  attributes.libraryVersion = 0;
  return fmt::format("cuBLASLt {}{}, {}", libraryVersionText(knobs.libraryVersion), with,
                     libraryAttributesText(attributes));
}

/// The library says at load which algorithms it has. It also accepts views, which enumeration does
/// not offer.
bool takesUnlisted(const Kernel &kernel, const Configuration &configuration, const Device &) {
  try {
    return libraryRejection(libraryGemm(kernel, configuration)).empty();
  } catch (const Error &) {
    return false;
  }
}

int64_t workspaceOfKnobs(const Knobs &knobs) { return knobs.get<LibraryKnobs>().workspaceBytes; }

Cost price(const Kernel &kernel, const Configuration &configuration, const Device &device) {
  return libraryCost(kernel, configuration, configuration.knobs.get<LibraryKnobs>(), device);
}

}  // namespace

const Family libraryFamily = {
    .name = "cublaslt",
    .isGemm = true,
    .isLibrary = true,
    .takesEpilogues = true,
    .schedule = libraryFields,
    .defaults = defaultKnobs<LibraryKnobs>,
    .compare = compareKnobs<LibraryKnobs>,
    .describe = describeKnobs,
    .space = librarySpace,
    .takesUnlisted = takesUnlisted,
    .price = price,
    .workspaceOfKnobs = workspaceOfKnobs,
};

}  // namespace weft
