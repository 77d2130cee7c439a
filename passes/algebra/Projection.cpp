// Projections as einsum terms, and whether several are one GEMM; see Projection.h.
#include "passes/algebra/Projection.h"

#include "kernel/AxisRole.h"

#include <algorithm>
#include <cctype>
#include <map>

namespace weft {
namespace {

std::string normalLetters(const std::string &spec) {
  std::map<char, char> renamed;
  std::string normal;
  for (char c : spec) {
    const bool isLetter = std::isalpha(static_cast<unsigned char>(c)) != 0;
    normal +=
        isLetter ? renamed.emplace(c, static_cast<char>('a' + renamed.size())).first->second : c;
  }
  return normal;
}

/// Equal exactly for equal products. The weight stands first, so which operand it is counts by
/// itself.
bool areSameGemm(const Projection &a, const Projection &b) {
  return a.weightOperand == b.weightOperand && normalLetters(a.spec()) == normalLetters(b.spec());
}

/// Both axes at `position` and after it as one; nothing if they are not neighbours in the result as
/// well.
std::optional<Projection> mergedAt(const Projection &projection, size_t position) {
  const size_t result = projection.resultTerm.find(projection.weightTerm.substr(position, 2));
  if (result == std::string::npos) return std::nullopt;
  Projection merged = projection;
  merged.merged = MergedPair{.weight = position, .result = result};
  merged.weightTerm.erase(position + 1, 1);
  merged.resultTerm.erase(result + 1, 1);
  const auto second = static_cast<ptrdiff_t>(position) + 1;
  merged.weightExtents[position] *= merged.weightExtents[position + 1];
  merged.weightExtents.erase(merged.weightExtents.begin() + second);
  merged.weightAxes.erase(merged.weightAxes.begin() + second);
  return merged;
}

/// How many axes of both weights have one name.
ptrdiff_t namesInCommon(const Projection &a, const Projection &b) {
  ptrdiff_t count = 0;
  for (size_t d = 0; d < a.weightAxes.size() && d < b.weightAxes.size(); ++d)
    count += a.weightAxes[d] == b.weightAxes[d];
  return count;
}

/// The projection as the GEMM that `wanted` is; of several pairs one that can be stacked with it,
/// of these the first that leaves most axes in the places of their namesakes: of 4 groups of 4
/// heads, the groups and the heads, not the elements of a head and the groups.
std::optional<Projection> asGemmOf(const Projection &projection, const Projection &wanted) {
  if (areSameGemm(projection, wanted)) return projection;
  std::optional<Projection> same, stacked;
  for (size_t position = 0; position + 1 < projection.weightTerm.size(); ++position) {
    const std::optional<Projection> merged = mergedAt(projection, position);
    if (!merged || !areSameGemm(*merged, wanted)) continue;
    if (!same) same = merged;
    if (stackedDimension({wanted, *merged}) &&
        (!stacked || namesInCommon(*merged, wanted) > namesInCommon(*stacked, wanted)))
      stacked = merged;
  }
  return stacked ? stacked : same;
}

bool isHeads(std::string_view axis) {
  const std::optional<AxisRole> role = axisRoleNamed(axis);
  return role == AxisRole::heads || role == AxisRole::keyHeads;
}

}  // namespace

std::string Projection::spec() const {
  const std::string operands =
      weightOperand ? dataTerm + "," + weightTerm : weightTerm + "," + dataTerm;
  return operands + "->" + resultTerm;
}

bool isParameter(mlir::Value value) {
  auto argument = mlir::dyn_cast<mlir::BlockArgument>(value);
  auto graph = argument ? mlir::dyn_cast<GraphOp>(argument.getOwner()->getParentOp()) : GraphOp();
  return graph && graph.isParameter(argument.getArgNumber());
}

std::optional<unsigned> weightOperandOf(ContractOp op) {
  const bool first = isParameter(op.getA()), second = isParameter(op.getB());
  if (first == second) return std::nullopt;
  return first ? 0u : 1u;
}

Projection projectionOf(ContractOp op, unsigned weightOperand) {
  const auto [operands, result] = op.getSpec().split("->");
  const auto [a, b] = operands.split(',');
  const mlir::Type weight = op->getOperand(weightOperand).getType();
  return Projection{.op = op,
                    .weightOperand = weightOperand,
                    .weightTerm = (weightOperand ? b : a).str(),
                    .dataTerm = (weightOperand ? a : b).str(),
                    .resultTerm = result.str(),
                    .weightExtents = extents(weight),
                    .weightAxes = axisNames(weight)};
}

std::optional<std::vector<Projection>> asOneGemm(const std::vector<Projection> &members) {
  const Projection &simplest = *std::min_element(
      members.begin(), members.end(),
      [](const auto &a, const auto &b) { return a.weightTerm.size() < b.weightTerm.size(); });
  std::vector<Projection> result;
  for (const Projection &member : members)
    if (const std::optional<Projection> same = asGemmOf(member, simplest)) result.push_back(*same);
    else return std::nullopt;
  return result;
}

std::optional<size_t> stackedDimension(const std::vector<Projection> &members) {
  const Projection &first = members.front();
  std::optional<size_t> differing, heads, slowest;
  for (size_t d = 0; d < first.weightTerm.size(); ++d) {
    const bool stays = first.resultTerm.find(first.weightTerm[d]) != std::string::npos;
    const bool differs = std::any_of(members.begin(), members.end(), [&](const Projection &member) {
      return member.weightExtents[d] != first.weightExtents[d];
    });
    if (differs && (differing || !stays)) return std::nullopt;
    if (differs) differing = d;
    if (stays && !slowest) slowest = d;
    if (stays && !heads && isHeads(first.weightAxes[d])) heads = d;
  }
  return differing ? differing : heads ? heads : slowest;
}

}  // namespace weft
