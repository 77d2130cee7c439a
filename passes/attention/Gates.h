// Gates of probabilities: factors that commute past the contraction with values
// (CommuteGates.cpp). What attentionRejection() asks of them.
#pragma once

#include "ir/Weft.h"

#include <cstdint>
#include <string>

namespace weft {

/// Whether an op, which reads a tensor, multiplies it by a factor or divides it by one, element by
/// element.
bool isGateOf(mlir::Operation *op, mlir::Value probabilities);

/// Why a gate of probabilities along `axis` commutes neither to the values nor behind the
/// contraction; empty if it does. `probabilities`: the operand of the contraction.
std::string gateRejection(mlir::Operation *gate, int64_t axis, ContractOp contraction,
                          mlir::Value probabilities);

}  // namespace weft
