// Constants of the analytic costs of the loop family, each with the run that it was fitted to; what
// several families share stands in passes/configure/AnalyticConstants.h.
#pragma once

#include <cstdint>

namespace weft::analytic {

/// Cycles in which L1 looks up a line, and flop of a multiprocessor's FMA units in a cycle.
constexpr double cyclesOfLine = 2, flopsOfCycle = 256;
/// Of the device's launchSeconds, what a loop kernel takes beside its work: the smallest ones, and
/// more where memory works for so long.
constexpr double loopLaunchShare = 0.6, loopRampShare = 0.15, loopRampSeconds = 2e-6;
/// Share of the instruction time that memory time does not hide, or the other way round (estimate):
/// rows of narrow loads must not tie with rows of wide ones where memory is the bound.
constexpr double exposedShare = 0.1;
/// Prices are rounded to it, so that what no measurement could tell apart is equal, and equality is
/// transitive.
constexpr double resolutionSeconds = 1e-9;
/// A row reduction by one thread of the block, for each thread it asks, and by a tree, for each
/// step; of one multiprocessor (H200 runs: softmax of 65536 rows of 512, blocks of 64 threads: 41.8
/// us by shuffles, 42.6 by a tree, 56.5 linearly).
constexpr double linearCombineSeconds = 0.23e-9, treeStepSeconds = 0.13e-9;
/// Columns (H200 runs, sums of 12288 and 4096 rows of 1024 f16 in 212 configurations, within 18% on
/// average): steps of a thread in flight together; bytes in flight as above; joining the threads of
/// a block, for each sum, and of a cluster; and strips of fewer bytes than DRAM moves at once,
/// whose other half comes later: 64, 32, 16 bytes -> 9.0, 12.3, 17.5 us.
constexpr double columnUnroll = 8, columnBytesInFlight = 12000, columnCombineSeconds = 0.3e-6,
                 clusterCombineSeconds = 0.3e-6;
/// Columns that blocks of the grid share: writing, the ticket, and reading by the last block (H200
/// runs: sums of 25, 50 and 75 MB take 1.5, 2.2 and 2.8 us more than their bytes and a launch).
/// Without batches of loads, columns of several tensors reach this share of what those of one do
/// (H200 runs: 74 -> 91 to 125 us and 15.5 -> 18 to 25 us).
constexpr double gridCombineSeconds = 0.9e-6, unbatchedColumnShare = 0.75;
/// One draw of dropout; the cosine and sine of an element's rotation (rotary embedding of 35 x 101
/// x 22 x 64, 15.8 us, and of 7 x 148 x 30 x 96, 10.8 us).
constexpr double drawInstructions = 40, rotationInstructions = 80, shortRotationInstructions = 40,
                 vectorRotationInstructions = 24;

}  // namespace weft::analytic
