// Contractions with what makes an operand: only for a device whose kernel families make operands on load, and never by the paper's rules.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(fuse))' %s | FileCheck %s --check-prefix=NONE
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(fuse{device=v100}))' %s | FileCheck %s --check-prefix=OLD
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(fuse{device=h200}))' %s | FileCheck %s --check-prefix=NEW
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(fuse{device=a100}))' %s | FileCheck %s --check-prefix=NEW
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(fuse{device=h200 rules=paper}))' %s | FileCheck %s --check-prefix=PAPER

!bji = tensor<2x64x128xf16, #weft.axes<b, j, i>>
!bj  = tensor<2x64xf32, #weft.axes<b, j>>
!iu  = tensor<128x64xf16, #weft.axes<i, u>>
!i   = tensor<128xf16, #weft.axes<i>>
!u   = tensor<64xf16, #weft.axes<u>>
!bju = tensor<2x64x64xf16, #weft.axes<b, j, u>>

// A norm whose statistics are tensors, a projection, its bias.
// NONE-LABEL: weft.graph @normalized
// NONE: ops = [3, 4], pass = "fuse", pattern = "reduction-consumer", rejected = {code = "F021", detail = "y", op = 4 : i64, reason = "contraction-epilogue-off"}
// OLD-LABEL: weft.graph @normalized
// OLD: ops = [0, 1, 2, 3, 4], pass = "fuse", {{.*}} rejected = {code = "F026", detail = "gemm-sm90: sm_70 has no WGMMA; sm_90a has; gemm-sm80: sm_70{{[^}]*}}reason = "contraction-prologue-off"
// NEW-LABEL: weft.graph @normalized
// NEW-DAG: name = "add_y_projection", ops = [3, 4]
// NEW-DAG: name = "sub_mul_x2_add_y_projection", ops = [0, 1, 2, 3, 4]
// NEW-DAG: name = "sub_mul_x2_add_y_projection_bias", ops = [0, 1, 2, 3, 4, 5]
// NEW-DAG: name = "sub_mul_x2_add", ops = [0, 1, 2, 3]
// PAPER-LABEL: weft.graph @normalized
// PAPER: ops = [3, 4], pass = "fuse", pattern = "reduction-consumer", rejected = {code = "F020", detail = "y", op = 4 : i64, reason = "contraction"}
weft.graph @normalized(%x: !bji, %mean: !bj, %rstd: !bj, %gamma: !i {weft.parameter}, %beta: !i {weft.parameter}, %w: !iu {weft.parameter},
                       %bias: !u {weft.parameter}) -> !bju {
  %centered = weft.sub %x, %mean along (b, j) : !bji, !bj
  %normal = weft.mul %centered, %rstd along (b, j) : !bji, !bj
  %gained = weft.mul %normal, %gamma along (i) : !bji, !i
  %shifted = weft.add %gained, %beta along (i) : !bji, !i
  %y = weft.contract "bji,iu->bju" %shifted, %w : !bji, !iu -> !bju
  %biased = weft.bias %y, %bias along (u) : !bju, !u
  weft.return %biased : !bju
}

!hbjk = tensor<2x3x40x72xf16, #weft.axes<h, b, j, k>>
!hbjn = tensor<2x3x40x5xf32, #weft.axes<h, b, j, n>>
!whbk = tensor<16x2x3x72xf16, #weft.axes<w, h, b, k>>
!whbj = tensor<16x2x3x40xf16, #weft.axes<w, h, b, j>>

// The end of a decomposed softmax, behind which dropout would end it: a mask is no function of what is read.
// NEW-LABEL: weft.graph @context
// NEW-DAG: ops = [0, 1], pass = "fuse", pattern = "reduction-consumer", saved_bytes
// NEW-DAG: ops = [3, 4], pass = "fuse", pattern = "reduction-consumer", rejected = {code = "F022", detail = "other", op = 4 : i64, reason = "contraction-prologue"}
weft.graph @context(%e: !hbjk, %factors: !hbjn, %v: !whbk, %e2: !hbjk) -> (!whbj, !whbj) {
  %prob = weft.global_scaling %e, %factors {axis = k, tile = 16} : !hbjk, !hbjn
  %weighted = weft.contract "hbjk,whbk->whbj" %prob, %v : !hbjk, !whbk -> !whbj
  %prob2 = weft.global_scaling %e2, %factors {axis = k, tile = 16} : !hbjk, !hbjn
  %kept = weft.dropout %prob2 {p = 0.1, stream = 0} : !hbjk
  %other = weft.contract "hbjk,whbk->whbj" %kept, %v : !hbjk, !whbk -> !whbj
  weft.return %weighted, %other : !whbj, !whbj
}
