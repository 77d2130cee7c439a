// How far estimates lie from measurements: the analytic model's price of a kernel beside its
// measured time.
//
// Made from the measurements that ship (profiles/h200/*.txt), over the plans that selection chooses
// by estimates alone (--profile none) for the profiled workloads in inference
// (profiles/optimality.txt): every kernel of such a plan whose layouts were measured, its estimate
// beside the fastest measurement in these layouts. tests/unit/select/shipped_profile_mlir_test.cpp
// computes the figures anew and holds them to these.
#pragma once

#include "kernel/DType.h"

namespace weft::driver {

struct EstimateError {
  /// Of the kernels whose measurements it comes from: nothing is known of others.
  const char *device = "";
  DType dtype = DType::f16;
  double kernel = 0;  ///< median over kernels of |estimate / measurement - 1|
  double plan = 0;    ///< median over plans, of the sums over their measured kernels
};

inline constexpr EstimateError typicalEstimateError{
    .device = "h200", .dtype = DType::f16, .kernel = 0.04, .plan = 0.03};

}  // namespace weft::driver
