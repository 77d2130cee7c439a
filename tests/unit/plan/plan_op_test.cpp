// Ops of plans and the lines that show them.
#include "plan/PlanFigures.h"
#include "plan/PlanOp.h"
#include "tests/support/NonEmpty.h"

#include <catch2/catch.hpp>

using namespace weft;
using weft::test::nonEmpty;

namespace {

using Names = std::vector<std::string>;

PlanOp opOf(const char *line) { return parsePlanOp(line).value(); }

}  // namespace

TEST_CASE("a line gives the members of an op, and they give the line") {
  const PlanOp softmax = opOf("%8, %8, %8 = local_softmax %7 over k");
  CHECK(softmax.kind == OpKind::localSoftmax);
  CHECK(softmax.results == Names{"8", "8", "8"});
  CHECK(softmax.operands == Names{"7"});
  CHECK(softmax.over == Names{"k"});
  const PlanOp gemm = opOf("%1 = contract \"phi,bji->phbj\" %0, %x in tf32");
  CHECK(gemm.kind == OpKind::contract);
  CHECK(gemm.spec == "phi,bji->phbj");
  CHECK(gemm.operands == Names{"0", "x"});
  CHECK(gemm.readsTf32);
  CHECK(opOf("%0 = constant ").operands.empty());
  for (const char *line : {"%8, %8, %8 = local_softmax %7 over k", "%0 = constant ",
                           "%1 = contract \"phi,bji->phbj\" %0, %x in tf32",
                           "%d_b = reduce %d_y over b, j", "%2 = add %1, %bias"})
    CHECK(text(opOf(line)) == line);
}

TEST_CASE("a line that no plan prints is no op") {
  for (const char *line : nonEmpty(std::vector{
           "", "relu", "%1 = relu", "%1 = rely %0", "%1 = relu 0", "1 = relu %0", "%1 = relu %0,",
           "%1 = relu %0 ", "%1 = contract \"phi %0", "%1  = relu %0", "%1 = relu %0 over "})) {
    INFO(line);
    CHECK_FALSE(parsePlanOp(line));
  }
}

TEST_CASE("the precision of contractions is that of the ops") {
  Plan plan;
  plan.kernels.resize(1);
  PlanOp contraction = opOf("%1 = contract \"phi,bji->phbj\" %0, %x");
  plan.kernels[0].ops = {contraction, opOf("%2 = relu %1")};
  CHECK(contractionPrecision(plan).empty());
  contraction.readsTf32 = true;
  plan.kernels[0].ops.push_back(contraction);
  CHECK(contractionPrecision(plan) == "partly tf32");
  plan.kernels[0].ops[0].readsTf32 = true;
  CHECK(contractionPrecision(plan) == "tf32");
}
