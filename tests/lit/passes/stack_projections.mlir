// Projections of one tensor become one product; biases that follow all of them are added before slicing.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(stack-projections{mode=three}))' %s -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: weft-interpret %s --against %t.mlir --absolute 1e-9 --relative 1e-9
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(stack-projections{mode=last-two}))' %s -o %t.two.mlir
// RUN: FileCheck %s --input-file=%t.two.mlir --check-prefix=TWO
// RUN: weft-interpret %s --against %t.two.mlir --absolute 1e-9 --relative 1e-9
// RUN: not weft-opt --pass-pipeline='builtin.module(weft.graph(stack-projections{mode=four}))' %s 2>&1 | FileCheck %s --check-prefix=BAD

// BAD: mode 'four' is not one of separate, two, last-two, three

!bji  = tensor<2x3x8xf32, #weft.axes<b, j, i>>
!phi  = tensor<4x2x8xf32, #weft.axes<p, h, i>>
!pgi  = tensor<4x1x8xf32, #weft.axes<p, g, i>>
!whi  = tensor<4x2x8xf32, #weft.axes<w, h, i>>
!ph   = tensor<4x2xf32, #weft.axes<p, h>>
!phbj = tensor<4x2x2x3xf32, #weft.axes<p, h, b, j>>
!pgbk = tensor<4x1x2x3xf32, #weft.axes<p, g, b, k>>
!phbk = tensor<4x2x2x3xf32, #weft.axes<p, h, b, k>>
!ihp  = tensor<8x2x4xf32, #weft.axes<i, h, p>>
!bjhp = tensor<2x3x2x4xf32, #weft.axes<b, j, h, p>>

// CHECK-LABEL: weft.graph @with_biases
// CHECK-SAME: weft.records = [{accepted, ops = [0, 2], pass = "stack-projections"
// CHECK: %wq_wk_wv = weft.concat %wq, %wk, %wv {axis = h}
// CHECK: %a_b_c = weft.contract "phi,bji->phbj" %wq_wk_wv, %x
// CHECK: %bq_bk_bv = weft.concat %bq, %bk, %bv {axis = h}
// CHECK: %q_k_v = weft.bias %a_b_c, %bq_bk_bv along (p, h)
// CHECK: %q = weft.slice %q_k_v {axis = h, size = 2, start = 0}
// CHECK: %k = weft.slice %q_k_v {axis = h, size = 2, start = 2}
// CHECK: %v = weft.slice %q_k_v {axis = h, size = 2, start = 4}
// CHECK: weft.return %q, %k, %v
// TWO-LABEL: weft.graph @with_biases
// TWO: weft.contract "phi,bji->phbj" %wq, %x
// TWO: %wk_wv = weft.concat
// TWO: weft.contract "phi,bki->phbk" %wk_wv, %x
weft.graph @with_biases(%x: !bji, %wq: !phi {weft.parameter}, %wk: !phi {weft.parameter}, %wv: !whi {weft.parameter},
                        %bq: !ph {weft.parameter}, %bk: !ph {weft.parameter}, %bv: !ph {weft.parameter})
    -> (!phbj, !phbk, !phbk) {
  %a = weft.contract "phi,bji->phbj" %wq, %x : !phi, !bji -> !phbj
  %q = weft.bias %a, %bq along (p, h) : !phbj, !ph
  %b = weft.contract "phi,bki->phbk" %wk, %x : !phi, !bji -> !phbk
  %k = weft.bias %b, %bk along (p, h) : !phbk, !ph
  %c = weft.contract "whi,bki->whbk" %wv, %x : !whi, !bji -> !phbk
  %v = weft.bias %c, %bv along (p, h) : !phbk, !ph
  weft.return %q, %k, %v : !phbj, !phbk, !phbk
}

// Grouped-query: the weights differ in the head axis alone.
// CHECK-LABEL: weft.graph @grouped_query
// CHECK: weft.concat %wq, %wk {axis = h} :
// CHECK: %q = weft.slice {{.*}} size = 2, start = 0}
// CHECK: %k = weft.slice {{.*}} size = 1, start = 2}
weft.graph @grouped_query(%x: !bji, %wq: !phi {weft.parameter}, %wk: !pgi {weft.parameter}) -> (!phbj, !pgbk) {
  %q = weft.contract "phi,bji->phbj" %wq, %x : !phi, !bji -> !phbj
  %k = weft.contract "pgi,bki->pgbk" %wk, %x : !pgi, !bji -> !pgbk
  weft.return %q, %k : !phbj, !pgbk
}

// Not the same product; the record says why.
// CHECK-LABEL: weft.graph @differs
// CHECK-SAME: rejected = {code = "A011", detail = "phi,bji->phbj against ihp,bji->bjhp", reason = "einsum-differs"}
// CHECK-NOT: weft.concat
weft.graph @differs(%x: !bji, %wq: !phi {weft.parameter}, %wk: !ihp {weft.parameter}) -> (!phbj, !bjhp) {
  %q = weft.contract "phi,bji->phbj" %wq, %x : !phi, !bji -> !phbj
  %k = weft.contract "ihp,bji->bjhp" %wk, %x : !ihp, !bji -> !bjhp
  weft.return %q, %k : !phbj, !bjhp
}

// CHECK-LABEL: weft.graph @not_a_weight
// CHECK-SAME: rejected = {code = "A010", detail = "k", reason = "weight-is-not-a-parameter"}
// CHECK-NOT: weft.concat
weft.graph @not_a_weight(%x: !bji, %wq: !phi {weft.parameter}, %wk: !phi) -> (!phbj, !phbk) {
  %q = weft.contract "phi,bji->phbj" %wq, %x : !phi, !bji -> !phbj
  %k = weft.contract "phi,bki->phbk" %wk, %x : !phi, !bji -> !phbk
  weft.return %q, %k : !phbj, !phbk
}
