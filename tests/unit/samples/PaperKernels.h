// The kernels of Table A.1 of "Data Movement Is All You Need", by the ops of our graph of the same
// layer.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace weft::test {

using Members = std::set<std::string>;  ///< ops, by the names of their first results; a name's
                                        ///< second bearer is NAME_2
struct PaperKernel {
  std::string name;
  Members ops;          ///< of one iteration space: a kernel of ours can hold them all
  Members others = {};  ///< of another iteration space: separate kernels here
};

// BDRB: the table's bracket holds the row of d_b2, and only with it the printed speedup is right:
// (24 + 129 + 166 + 61) us of PyTorch / 362 us = 1.05. d_b2 sums d_feed_forward over b and j for
// every i, the others walk b, j and u. A kernel of ours has one iteration space, so it cannot hold
// d_b2: rules `paper` try the bracket and reject it by F012, unless i and u are equal.

/// The column "Kernel" of Table A.1. The scaling of SM and BS is an attribute of the contraction
/// before it, as in the paper (A.5.1).
inline const std::vector<PaperKernel> tableA1 = {
    {"AIB", {"q", "k", "v"}},
    {"SM", {"probability", "kept"}},
    {"DRLN", {"attention", "attention_kept", "residual1", "norm1"}},
    {"BRD", {"hidden", "active", "active_kept"}},
    {"BDRLN", {"feed_forward", "feed_forward_kept", "residual2", "norm2"}},
    {"BSB", {"d_gamma2"}},
    {"BLNRD", {"d_residual2", "d_feed_forward"}},
    {"BDRB", {"d_active", "d_hidden", "d_b1"}, {"d_b2"}},
    {"EBSB", {"d_norm1", "d_gamma1"}},
    {"BLNRD", {"d_residual1", "d_attention"}},
    {"BAOB", {"d_bo"}},
    {"BS", {"d_probability", "d_score"}},
    {"BAIB", {"d_bv", "d_bk", "d_bq"}},
    {"BEI", {"d_x_sum", "d_x_sum_2", "d_x"}},
};

}  // namespace weft::test
