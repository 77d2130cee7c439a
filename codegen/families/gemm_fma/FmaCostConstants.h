// Constants of the analytic costs of gemm-fma; what several families share stands in
// passes/configure/AnalyticConstants.h.
//
// fmaIssueShare was fitted to runs on an H200, the others are estimates, or of the kernel before;
// what they make of 15 products stands in docs/experiments/gemms.md beside what these take.
#pragma once

#include <cstdint>

namespace weft::analytic {

/// A block waits for its first k-tile (fitted to the kernel before: 384 measurements of
/// profiles/h200 took 1.4 times the estimate without it).
constexpr double fmaStartSeconds = 0.8e-6;
/// Of the multiply-adds that schedulers issue, how many are left by conflicts of registers and
/// shared memory, and by the clock under load: between 0.85 of the 12 short products and 0.78 of
/// the large ones of docs/experiments/gemms.md, "Contractions of f32 by FMA" (H200).
constexpr double fmaIssueShare = 0.80;
/// Threads of a multiprocessor that reach a share 1 - 1/e of what it can issue.
constexpr double fmaThreadsOfShare = 128;
/// Instructions of a thread besides loads from shared memory and multiply-adds: of a copy; of four
/// of k; of a k-tile.
constexpr double fmaCopyInstructions = 3, fmaStepInstructions = 8, fmaKTileInstructions = 20;
/// Bytes that a multiprocessor moves to or from shared memory in a second.
constexpr double fmaSharedBandwidth = 128 * 1.7e9;

}  // namespace weft::analytic
