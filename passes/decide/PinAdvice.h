// Which other pins are possible if a pin leaves no plan.
#pragma once

#include "passes/select/Selection.h"

#include <string>
#include <vector>

namespace weft::decision {

/// The dense layouts of a tensor that whoever writes it and everybody who reads it can take: only
/// those can be pinned. Kernels that keep the tensor inside do not count. Lexicographic.
std::vector<Layout> legalLayouts(const select::Problem &problem, int tensor, const Device &device);

/// "--pin score=kjbh: no kernel that writes or reads 'score' takes this order; nearest legal are
/// hbjk, bhjk, hbkj", a line for each pinned tensor (`pinned` indexes Problem::tensors) whose pin
/// is not legal by itself; empty if all are.
std::string pinAdvice(const select::Problem &problem, const std::vector<int> &pinned,
                      const Device &device);

}  // namespace weft::decision
