// Every reason for which a pass does not do something, in one table. A code is stable: once published it keeps its
// meaning, tests and `explain` name it, and a code that is no longer given is left out but never reused.
//   F...  two ops (or sets of ops) may not share a kernel
//   A...  projections may not be stacked
//   N...  a norm may not be decomposed
#pragma once

#include <array>
#include <string_view>

namespace weft {

struct ReasonCode {
  std::string_view code, reason, meaning;
};

namespace reasons {
inline constexpr ReasonCode spaceMismatch{
    "F001", "iteration-space-mismatch",
    "the iteration spaces differ by more than one reduced axis; the detail names the axes of both"};
inline constexpr ReasonCode accessTwice{
    "F002", "axis-identified-twice",
    "one intermediate tensor is read under two index maps, so two axes of the kernel would be one; the detail names it"};
inline constexpr ReasonCode extentMismatch{
    "F010", "extent-mismatch", "independent ops whose axes correspond by position have different extents there"};
inline constexpr ReasonCode reductionAxisMismatch{
    "F012", "reduction-axis-mismatch", "both sides reduce, over different axes: one kernel walks one reduced axis"};
inline constexpr ReasonCode contractionRule{
    "F020", "contraction", "rules `paper`: only scaling fuses into a contraction (its `scale` attribute)"};
inline constexpr ReasonCode contractionEpilogueOff{
    "F021", "contraction-epilogue-off",
    "no kernel family of the target takes the contraction with these ops after it; the detail names the contraction, or each "
    "family with its reason"};
inline constexpr ReasonCode contractionPrologue{
    "F022", "contraction-prologue",
    "a contraction reads its operand from memory: what computes it is no function of single elements, or the result has other readers"};
inline constexpr ReasonCode besideContraction{
    "F023", "beside-contraction", "the op does not need the contraction's result, so that its kernel would gain nothing by it"};
inline constexpr ReasonCode noEpilogue{
    "F024", "no-epilogue", "an op is no element-wise function of the contraction's result; the detail names it and says why"};
inline constexpr ReasonCode noPrologue{
    "F025", "no-prologue", "the ops before the contraction make no operand of single elements, rows and columns; the detail says why"};
inline constexpr ReasonCode contractionPrologueOff{
    "F026", "contraction-prologue-off",
    "no kernel family of the target takes the contraction with these ops before it; the detail names each family with its reason"};
inline constexpr ReasonCode wouldCreateCycle{
    "F030", "would-create-cycle", "a path between the ops leads through an op outside; the detail names that op"};
inline constexpr ReasonCode forwardAndBackward{
    "F031", "forward-and-backward",
    "one op belongs to the forward pass, which must run without the backward one; the detail names both ops"};
inline constexpr ReasonCode partnerAccess{
    "F040", "partner-access",
    "a rotary op reads the partner of each element, so its operand must come from memory, not from the same kernel"};
inline constexpr ReasonCode subVectorAccess{
    "F042", "sub-vector-access", "the op reduces sub-vectors of an axis, the other side whole axes: their rows differ"};
inline constexpr ReasonCode forbiddenByOption{"F050", "forbidden-by-option", "--no-fuse names a pair of the ops"};
inline constexpr ReasonCode rulesNone{"F051", "fusion-off", "--fuse-rules none"};
inline constexpr ReasonCode movementOp{
    "F060", "movement-op", "the op changes the index space and computes nothing: a view, or a kernel of its own"};
inline constexpr ReasonCode alreadyFused{"F061", "already-fused", "the op is a kernel region that the input fixed"};
inline constexpr ReasonCode candidateBound{
    "F070", "candidate-bound", "the search stopped at its bound on ops in a candidate or on candidates"};

inline constexpr ReasonCode stackWeightIsNotParameter{
    "A010", "weight-is-not-a-parameter", "stacking concatenates weights at load, so they must be graph parameters"};
inline constexpr ReasonCode stackEinsumDiffers{
    "A011", "einsum-differs", "the contractions are not the same product, even with letters renamed and neighbouring axes merged"};
inline constexpr ReasonCode stackExtentsDiffer{
    "A012", "extents-differ", "the weights differ in more than one axis, so no axis can be stacked"};
inline constexpr ReasonCode stackTypeDiffers{"A013", "element-types-differ", "the products store different types"};

inline constexpr ReasonCode normStatisticsAreRead{
    "N010", "statistics-are-read",
    "the mean or rstd of the norm is a result of the graph or an operand of its gradient, which reads what the whole norm gives"};
inline constexpr ReasonCode normFactorStays{
    "N020", "factor-stays-before",
    "the factor of a row cannot be applied behind what reads the norm, or nothing before the norm could leave its sums; the detail says why"};
}  // namespace reasons

/// The whole table, by code, for documentation and for the test that codes are unique.
inline constexpr std::array reasonCodes{
    reasons::spaceMismatch,          reasons::accessTwice,         reasons::extentMismatch,
    reasons::reductionAxisMismatch,  reasons::contractionRule,     reasons::contractionEpilogueOff,
    reasons::contractionPrologue,    reasons::besideContraction,   reasons::noEpilogue,
    reasons::noPrologue,             reasons::contractionPrologueOff,
    reasons::wouldCreateCycle,       reasons::forwardAndBackward,  reasons::partnerAccess,
    reasons::subVectorAccess,        reasons::forbiddenByOption,   reasons::rulesNone,
    reasons::movementOp,             reasons::alreadyFused,        reasons::candidateBound,
    reasons::stackWeightIsNotParameter, reasons::stackEinsumDiffers, reasons::stackExtentsDiffer,
    reasons::stackTypeDiffers,       reasons::normStatisticsAreRead,
    reasons::normFactorStays};

}  // namespace weft
