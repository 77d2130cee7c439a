// The kernels of Table A.1 of "Data Movement Is All You Need", by the ops of our graph of the same layer.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace weft::test {

using Members = std::set<std::string>;  ///< ops, by the names of their first results; a name's second bearer is NAME_2
struct PaperKernel {
  std::string name;
  Members ops;
};

/// The column "Kernel" of Table A.1. The scaling of SM and BS is an attribute of the contraction before it, as in the paper (A.5.1).
inline const std::vector<PaperKernel> tableA1 = {
    {"AIB", {"q", "k", "v"}},
    {"SM", {"probability", "kept"}},
    {"DRLN", {"attention", "attention_kept", "residual1", "norm1"}},
    {"BRD", {"hidden", "active", "active_kept"}},
    {"BDRLN", {"feed_forward", "feed_forward_kept", "residual2", "norm2"}},
    {"BSB", {"d_gamma2"}},
    {"BLNRD", {"d_residual2", "d_feed_forward"}},
    {"BDRB", {"d_active", "d_hidden", "d_b1"}},
    {"EBSB", {"d_norm1", "d_gamma1"}},
    {"BLNRD", {"d_residual1", "d_attention"}},
    {"BAOB", {"d_bo"}},
    {"BS", {"d_probability", "d_score"}},
    {"BAIB", {"d_bv", "d_bk", "d_bq"}},
    {"BEI", {"d_x_sum", "d_x_sum_2", "d_x"}},
};

/// The one op without contraction that has a row of its own and no kernel's name: "Bias dW" of the second linear layer.
inline const Members biasOfSecondLinear = {"d_b2"};

}  // namespace weft::test
