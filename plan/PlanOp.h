// One op of a plan's kernel. Plans, reports and the head of a kernel show it as a line of text; all
// other code reads the members.
//
// Invariant: parsePlanOp(text(op)) is op, and text() of what parsePlanOp reads is what it read.
#pragma once

#include "kernel/Kernel.h"
#include "kernel/OpKind.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

struct PlanOp {
  OpKind kind = OpKind::identity;
  std::string spec{};                  ///< of a contraction: "phi,bji->phbj"
  std::vector<std::string> results{},  ///< numbers of ops of the graph, or names: "8", "x"
      operands{};
  std::vector<std::string> over{};  ///< the axes that it reduces
  bool readsTf32 = false;           ///< a contraction that may read its f32 operands as tf32
  bool operator==(const PlanOp &) const = default;
};

/// "%8, %8 = local_softmax %7 over k", "%1 = contract "phi,bji->phbj" %0, %x in tf32".
std::string text(const PlanOp &op);
/// Nothing for a line that text() does not print.
std::optional<PlanOp> parsePlanOp(std::string_view line);
/// As its text.
void to_json(nlohmann::json &json, const PlanOp &op);

std::vector<PlanOp> planOps(const Kernel &kernel);
std::vector<std::string> textsOf(const std::vector<PlanOp> &ops);

}  // namespace weft
