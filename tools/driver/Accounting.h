// What a graph computes and moves, for report.json and `weft explain --movement`: operators as
// Table A.1 of "Data Movement Is All You Need" lists them, shares of their classes (Table 1), and
// the ledger of bytes from phase to phase. No MLIR.
#pragma once

#include "passes/configure/FilledCost.h"
#include "passes/fuse/Dataflow.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace weft::driver {

/// What there is to move after a phase: up to attention, if every op is a separate kernel.
struct PhaseBytes {
  std::string phase;
  size_t ops = 0;  ///< that compute; after fuse and select, kernels
  int64_t bytes = 0;
};

/// A variant as plain data: its graph, and what each phase that led to it left to move.
struct Account {
  Dataflow flow;
  std::vector<PhaseBytes> phases;
  ExpectedFill fill = {};  ///< at which work is counted
};

/// A kernel and its ops, as indices of the graph.
struct AccountedKernel {
  std::string name;
  std::vector<int> ops;
  double share = 1;  ///< of its bytes, at the lengths that are expected of sequences
};

nlohmann::json toJson(const PhaseBytes &phase);
/// Members: operators, shares (flop of each class), phases up to fuse.
nlohmann::json accountReport(const Account &account, const std::vector<AccountedKernel> &kernels);

}  // namespace weft::driver
