// The price of a contraction on the tensor cores of sm_90a by the skeleton kernel, modelled.
//
//   t = launch + start + max(memory, tensor) + share x min(memory, tensor) x (one slice of k) / k
//
// Blocks of a cluster that share k of a tile multiply a part of it each and then wait for the
// others' sums. Few blocks do not reach the memory's bandwidth. Tensor: tiles in waves over the
// multiprocessors, a last wave that is not full costs a whole one, edges are padded. Cooperative
// consumers multiply nothing while they store a tile; ping-pong ones show half of that of the last
// tile only. Blocks are persistent: while a tile is stored, slices of the next arrive. Memory:
// every operand once. Narrow tiles are a block each and fill 64 rows of an instruction whatever
// their side. Constants and their sources: AnalyticConstants.h.
#pragma once

#include "kernel/HopperProduct.h"
#include "passes/configure/CostModel.h"

namespace weft {

/// Seconds of the products and of what stores do not hide.
double hopperTensorSeconds(const HopperProduct &product, const HopperContractionKnobs &knobs,
                           const Device &device);

/// Bytes and flop are left to the caller. Throws Error(unsupported) where the layouts are no such
/// product.
Cost hopperCost(const Kernel &kernel, const Configuration &configuration,
                const HopperContractionKnobs &knobs, const Device &device);

}  // namespace weft
