// manifest.json: what weft wrote into an artifact, file by file and member by member. Two things
// follow from it: an edit shows at once, without emitting anything, and a folder is replaced only
// as far as weft wrote it.
//
//   {"files": {"kernels/NAME.cu": SHA-256, ...}, "formatVersion": "1",
//    "plan": {...}}
//
//   files  every file of the artifact but manifest.json itself, with the hash of what weft wrote.
//          Of a kernel or header that was edited by hand, and that `emit` kept, it is the hash of
//          the generated text, so that the edit goes on showing.
//   plan   plan.json as weft wrote it: what a member was before it was edited, which later
//          derivation cannot tell once a choice has changed, too.
//
// It is no signature: who changes a file and the manifest alike is not found out. It protects
// people from their own edits, and from claims that edits have outdated; what an artifact of a
// stranger does is checked elsewhere (readArtifact, `weft verify`).
#pragma once

#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weft::runtime {

inline constexpr const char *planFile = "plan.json";
inline constexpr const char *manifestFile = "manifest.json";

struct Manifest {
  std::map<std::string, std::string> files;  ///< by name below the folder: SHA-256
  nlohmann::json plan;
  bool operator==(const Manifest &) const = default;
};

/// One line for the plan: it is there to be compared, not to be read.
std::string printManifest(const Manifest &manifest);
/// Throws Error(badInput) naming `where` for anything that printManifest does not write.
Manifest parseManifest(std::string_view text, const std::string &where);

/// A member of plan.json that is not what weft wrote.
struct PlanEdit {
  std::string place;            ///< "kernel 'softmax': member \"grid\""
  nlohmann::json written, now;  ///< discarded: not there
  /// Whether weft computes the member: of what else stands in the plan, of the graph, or by
  /// measuring. A person edits what is left: knobs, orders and strides of tensors, places in
  /// memory, dependencies, entry points, concurrent, device and target.
  bool isDerived = false;
  /// Whether `weft emit` computes it again, so that an edited value may turn out to be right (the
  /// grid of an edited knob).
  bool isDerivedAgain = false;
  /// Whether only people read the member: a price, what was measured, built or verified. Readers
  /// take what weft wrote in its place.
  bool isClaim = false;
  bool isWhole = false;  ///< a whole kernel or tensor, which only one of both plans has
  nlohmann::json::json_pointer
      pointer;  ///< into the plan as it is now; of a removed member, into the written one
  bool operator==(const PlanEdit &) const = default;
};

/// Sorted by place in the plan; tensors and kernels are paired by name. `written` and `now` are
/// plans as JSON; anything else that stands there is one edit.
std::vector<PlanEdit> planEdits(const nlohmann::json &written, const nlohmann::json &now);
/// The plan with what weft wrote in place of edited claims.
nlohmann::json withoutEditedClaims(nlohmann::json now, const std::vector<PlanEdit> &edits);
/// "kernel 'softmax': member \"grid\" is [4, 1, 1], and weft wrote [8, 1, 1]". `source`: what
/// PlanEdit::written is from.
std::string describe(const PlanEdit &edit, std::string_view source = "weft wrote");

}  // namespace weft::runtime
