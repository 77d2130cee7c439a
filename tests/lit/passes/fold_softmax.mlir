// Chains by hand. The first folds: its factors stand second, its result is transposed, and the sum over sub-vectors has other letters.
// The others stay: their sub-vectors differ, their factors are of something else, or their sums of exponentials are read.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(fold-softmax))' %s -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: weft-interpret %s --against %t.mlir --absolute 1e-9 --relative 1e-9

!ajkx = tensor<2x7x9x3xf32, #weft.axes<a, j, k, x>>
!akwx = tensor<2x9x5x3xf32, #weft.axes<a, k, w, x>>
!wajx = tensor<5x2x7x3xf32, #weft.axes<w, a, j, x>>
!ajnx = tensor<2x7x3x3xf32, #weft.axes<a, j, n, x>>
!jawxn = tensor<7x2x5x3x3xf32, #weft.axes<j, a, w, x, n>>

// CHECK-LABEL: weft.graph @chains
// CHECK: %y = weft.online_softmax_contract "ajkx,akwx->wajx" %score, %v
// CHECK: weft.local_softmax
// CHECK-NOT: online_softmax_contract
weft.graph @chains(%score: !ajkx, %v: !akwx) -> (!wajx, !wajx, !wajx, !wajx, !ajnx) {
  %e, %m, %d = weft.local_softmax %score over k {tile = 4} : !ajkx -> !ajkx, !ajnx, !ajnx
  %f = weft.reduce_subvectors %m, %d over n : !ajnx
  %s = weft.subvector_contract "ajkx,akwx->jawx" %e, %v {tile = 4} : !ajkx, !akwx -> !jawxn
  %y = weft.contract "qacdn,aqnd->caqd" %s, %f : !jawxn, !ajnx -> !wajx
  %e1, %m1, %d1 = weft.local_softmax %score over k {tile = 4} : !ajkx -> !ajkx, !ajnx, !ajnx
  %f1 = weft.reduce_subvectors %m1, %d1 over n : !ajnx
  %s1 = weft.subvector_contract "ajkx,akwx->jawx" %e1, %v {tile = 3} : !ajkx, !akwx -> !jawxn
  %y1 = weft.contract "qacdn,aqnd->caqd" %s1, %f1 : !jawxn, !ajnx -> !wajx
  %e2, %m2, %d2 = weft.local_softmax %score over k {tile = 4} : !ajkx -> !ajkx, !ajnx, !ajnx
  %f2 = weft.reduce_subvectors %m2, %m2 over n : !ajnx
  %s2 = weft.subvector_contract "ajkx,akwx->jawx" %e2, %v {tile = 4} : !ajkx, !akwx -> !jawxn
  %y2 = weft.contract "qacdn,aqnd->caqd" %s2, %f2 : !jawxn, !ajnx -> !wajx
  %e4, %m4, %d4 = weft.local_softmax %score over k {tile = 4} : !ajkx -> !ajkx, !ajnx, !ajnx
  %f4 = weft.reduce_subvectors %m4, %d4 over n : !ajnx
  %s4 = weft.subvector_contract "ajkx,akwx->jawx" %e4, %v {tile = 4} : !ajkx, !akwx -> !jawxn
  %y4 = weft.contract "qacdn,aqnd->caqd" %s4, %f4 : !jawxn, !ajnx -> !wajx
  weft.return %y, %y1, %y2, %y4, %d4 : !wajx, !wajx, !wajx, !wajx, !ajnx
}
