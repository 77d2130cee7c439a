// Grouped query heads are two axes where keys and values have one; the pair is merged in the weight, which is a parameter,
// and split in the result, so that all three stack.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(stack-projections{mode=three}))' %s -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: weft-interpret %s --against %t.mlir --absolute 1e-9 --relative 1e-9
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(stack-projections{mode=two}))' %s -o %t.two.mlir
// RUN: FileCheck %s --input-file=%t.two.mlir --check-prefix=TWO
// RUN: weft-interpret %s --against %t.two.mlir --absolute 1e-9 --relative 1e-9
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(stack-projections{mode=last-two}))' %s -o %t.last.mlir
// RUN: FileCheck %s --input-file=%t.last.mlir --check-prefix=LAST
// RUN: weft-interpret %s --against %t.last.mlir --absolute 1e-9 --relative 1e-9

!bji   = tensor<2x5x8xf32, #weft.axes<b, j, i>>
!pgri  = tensor<4x2x3x8xf32, #weft.axes<p, g, r, i>>
!pgi   = tensor<4x2x8xf32, #weft.axes<p, g, i>>
!pgr   = tensor<4x2x3xf32, #weft.axes<p, g, r>>
!pg    = tensor<4x2xf32, #weft.axes<p, g>>
!pgrbj = tensor<4x2x3x2x5xf32, #weft.axes<p, g, r, b, j>>
!pgbk  = tensor<4x2x2x5xf32, #weft.axes<p, g, b, k>>
!wgbk  = tensor<4x2x2x5xf32, #weft.axes<w, g, b, k>>

// CHECK-LABEL: weft.graph @with_biases
// CHECK: %wq_merged = weft.merge_axes %wq {axis = g, count = 2} : {{.*}} -> !f32_pgi{{[0-9]*}}
// CHECK: %wq_wk_wv = weft.concat %wq_merged, %wk, %wv {axis = g}
// CHECK: %a_b_c = weft.contract "pgi,bki->pgbk" %wq_wk_wv, %x
// CHECK: %bq_merged = weft.merge_axes %bq {axis = g, count = 2}
// CHECK: %bq_bk_bv = weft.concat %bq_merged, %bk, %bv {axis = g}
// CHECK: %q_k_v = weft.bias %a_b_c, %bq_bk_bv along (p, g)
// CHECK: %q_merged = weft.slice %q_k_v {axis = g, size = 6, start = 0}
// CHECK: %q = weft.split_axis %q_merged {axis = g, sizes = [2, 3]}
// CHECK: %k = weft.slice %q_k_v {axis = g, size = 2, start = 6}
// CHECK: %v = weft.slice %q_k_v {axis = g, size = 2, start = 8}
// CHECK: weft.return %q, %k, %v
// TWO-LABEL: weft.graph @with_biases
// TWO: %wq_wk = weft.concat %wq_merged, %wk {axis = g}
// TWO: weft.contract "wgi,bki->wgbk" %wv, %x
// LAST-LABEL: weft.graph @with_biases
// LAST-NOT: weft.merge_axes
// LAST: %wk_wv = weft.concat %wk, %wv {axis = g}
weft.graph @with_biases(%x: !bji, %wq: !pgri {weft.parameter}, %wk: !pgi {weft.parameter}, %wv: !pgi {weft.parameter},
                        %bq: !pgr {weft.parameter}, %bk: !pg {weft.parameter}, %bv: !pg {weft.parameter})
    -> (!pgrbj, !pgbk, !wgbk) {
  %a = weft.contract "pgri,bji->pgrbj" %wq, %x : !pgri, !bji -> !pgrbj
  %q = weft.bias %a, %bq along (p, g, r) : !pgrbj, !pgr
  %b = weft.contract "pgi,bki->pgbk" %wk, %x : !pgi, !bji -> !pgbk
  %k = weft.bias %b, %bk along (p, g) : !pgbk, !pg
  %c = weft.contract "wgi,bki->wgbk" %wv, %x : !pgi, !bji -> !wgbk
  %v = weft.bias %c, %bv along (w, g) : !wgbk, !pg
  weft.return %q, %k, %v : !pgrbj, !pgbk, !wgbk
}

// The query stands last: the group takes the form of its simplest member.
// CHECK-LABEL: weft.graph @query_last
// CHECK: %k_q = weft.contract "bji,pgi->bgjp" %x,
// CHECK: %k = weft.slice %k_q {axis = g, size = 2, start = 0}
// CHECK: %q_merged = weft.slice %k_q {axis = g, size = 6, start = 2}
// CHECK: %q = weft.split_axis %q_merged {axis = g, sizes = [2, 3]}
!bgjp  = tensor<2x2x5x4xf32, #weft.axes<b, g, j, p>>
!bgrjp = tensor<2x2x3x5x4xf32, #weft.axes<b, g, r, j, p>>
weft.graph @query_last(%x: !bji, %wk: !pgi {weft.parameter}, %wq: !pgri {weft.parameter}) -> (!bgjp, !bgrjp) {
  %k = weft.contract "bji,pgi->bgjp" %x, %wk : !bji, !pgi -> !bgjp
  %q = weft.contract "bji,pgri->bgrjp" %x, %wq : !bji, !pgri -> !bgrjp
  weft.return %k, %q : !bgjp, !bgrjp
}

// In the result the two axes are not neighbours: no view of the stacked product is the query.
// CHECK-LABEL: weft.graph @apart
// CHECK-SAME: rejected = {code = "A011", detail = "pgri,bji->pgbjr against pgi,bji->pgbj", reason = "einsum-differs"}
// CHECK-NOT: weft.concat
!pgbj  = tensor<4x2x2x5xf32, #weft.axes<p, g, b, j>>
!pgbjr = tensor<4x2x2x5x3xf32, #weft.axes<p, g, b, j, r>>
weft.graph @apart(%x: !bji, %wq: !pgri {weft.parameter}, %wk: !pgi {weft.parameter}) -> (!pgbjr, !pgbj) {
  %q = weft.contract "pgri,bji->pgbjr" %wq, %x : !pgri, !bji -> !pgbjr
  %k = weft.contract "pgi,bji->pgbj" %wk, %x : !pgi, !bji -> !pgbj
  weft.return %q, %k : !pgbjr, !pgbj
}

// Merged, the weights still differ in two axes.
// CHECK-LABEL: weft.graph @two_axes_differ
// CHECK-SAME: rejected = {code = "A012", detail = "[4,2,3,8] against [5,2,8]", reason = "extents-differ"}
// CHECK-NOT: weft.concat
!qgi  = tensor<5x2x8xf32, #weft.axes<p, g, i>>
!qgbj = tensor<5x2x2x5xf32, #weft.axes<p, g, b, j>>
weft.graph @two_axes_differ(%x: !bji, %wq: !pgri {weft.parameter}, %wk: !qgi {weft.parameter}) -> (!pgrbj, !qgbj) {
  %q = weft.contract "pgri,bji->pgrbj" %wq, %x : !pgri, !bji -> !pgrbj
  %k = weft.contract "pgi,bji->pgbj" %wk, %x : !qgi, !bji -> !qgbj
  weft.return %q, %k : !pgrbj, !qgbj
}

// CHECK-LABEL: weft.graph @types_differ
// CHECK-SAME: rejected = {code = "A013", detail = "f32 and f32 against f16 and f32", reason = "element-types-differ"}
// CHECK-NOT: weft.concat
!f16_pgi = tensor<4x2x8xf16, #weft.axes<p, g, i>>
weft.graph @types_differ(%x: !bji, %wk: !pgi {weft.parameter}, %wv: !f16_pgi {weft.parameter}) -> (!pgbk, !pgbk) {
  %k = weft.contract "pgi,bki->pgbk" %wk, %x : !pgi, !bji -> !pgbk
  %v = weft.contract "pgi,bki->pgbk" %wv, %x : !f16_pgi, !bji -> !pgbk
  weft.return %k, %v : !pgbk, !pgbk
}
