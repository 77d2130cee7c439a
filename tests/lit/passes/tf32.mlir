// Precision tf32 prints as it is read, passes to gradients, stays where projections are stacked or scaled, and keeps those without it apart.
// RUN: weft-opt %s > %t.once && weft-opt %t.once > %t.twice && diff %t.once %t.twice
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(differentiate))' %s | FileCheck %s --check-prefix=DIFFERENTIATED
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(fold-scale,stack-projections{mode=three}))' %s -o %t.stacked.mlir
// RUN: FileCheck %s --input-file=%t.stacked.mlir --check-prefix=STACKED
// RUN: weft-interpret %s --against %t.stacked.mlir --absolute 1e-9 --relative 1e-9

!bji = tensor<2x3x8xf32, #weft.axes<b, j, i>>
!phi = tensor<4x2x8xf32, #weft.axes<p, h, i>>
!phbj = tensor<4x2x2x3xf32, #weft.axes<p, h, b, j>>

// DIFFERENTIATED-LABEL: weft.graph @alike
// DIFFERENTIATED: %d_wk = weft.contract {{.*}} {precision = tf32} :
// DIFFERENTIATED: %{{.*}} = weft.contract "phi,phbj->bji" %wk, %d_k {precision = tf32} :
// DIFFERENTIATED: %{{.*}} = weft.contract "phi,phbj->bji" %wq, %d_q {precision = tf32} :
// STACKED-LABEL: weft.graph @alike
// STACKED: weft.contract "phi,bji->phbj" %wq_wk, %x {precision = tf32} :
// STACKED-NOT: weft.contract
// STACKED: weft.return
weft.graph @alike(%x: !bji, %wq: !phi {weft.parameter}, %wk: !phi {weft.parameter}) -> (!phbj, !phbj) {
  %q = weft.contract "phi,bji->phbj" %wq, %x {precision = tf32} : !phi, !bji -> !phbj
  %k = weft.contract "phi,bji->phbj" %wk, %x {precision = tf32} : !phi, !bji -> !phbj
  weft.return %q, %k : !phbj, !phbj
}

// STACKED-LABEL: weft.graph @different
// STACKED-SAME: precision tf32 against f32
// STACKED: weft.contract "phi,bji->phbj" %wq, %x {precision = tf32, scale = 0.5} :
// STACKED: weft.contract "phi,bji->phbj" %wk, %x {scale = 0.5} :
weft.graph @different(%x: !bji, %wq: !phi {weft.parameter}, %wk: !phi {weft.parameter}) -> (!phbj, !phbj) {
  %product = weft.contract "phi,bji->phbj" %wq, %x {precision = tf32, scale = 0.5} : !phi, !bji -> !phbj
  %k = weft.contract "phi,bji->phbj" %wk, %x {scale = 0.5} : !phi, !bji -> !phbj
  weft.return %product, %k : !phbj, !phbj
}
