// Document masks of folded softmaxes get bounds of their segments, and nothing changes: forward alone, and with a backward pass.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(decompose-softmax{tile=4},commute-scaling,fold-softmax))' %s -o %t.folded.mlir
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(bound-document-masks))' %t.folded.mlir -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: weft-interpret %s --against %t.mlir --absolute 1e-9 --relative 1e-9
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(differentiate,recompute-attention,bound-document-masks))' %s -o %t.trained.mlir
// RUN: FileCheck %s --input-file=%t.trained.mlir --check-prefix=TRAINED
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(differentiate))' %s -o %t.differentiated.mlir
// RUN: weft-interpret %t.differentiated.mlir --against %t.trained.mlir --absolute 1e-9 --relative 1e-9
// Without a fold there is nothing to bound.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(bound-document-masks))' %s | FileCheck %s --check-prefix=UNFUSED
// UNFUSED-NOT: weft.tile_bounds

!bhjp = tensor<2x3x37x4xf32, #weft.axes<b, h, j, p>>
!bhkp = tensor<2x3x70x4xf32, #weft.axes<b, h, k, p>>
!bhkw = tensor<2x3x70x5xf32, #weft.axes<b, h, k, w>>
!bhjk = tensor<2x3x37x70xf32, #weft.axes<b, h, j, k>>
!bhjw = tensor<2x3x37x5xf32, #weft.axes<b, h, j, w>>
!bk = tensor<2x70xi32, #weft.axes<b, k>>

// CHECK-LABEL: weft.graph @document
// CHECK-NEXT: %segments_bounds = weft.tile_bounds %segments : !i32_bk -> tensor<2x3x2xi32, #weft.axes<b, k_tile, bound>>
// CHECK: weft.mask document %score, %segments, %segments_bounds along (b) {key = k, query = j} : !f32_bhjk, !i32_bk
// CHECK: weft.online_softmax_contract
// What the backward pass masks again has the same bounds, which forward saves for it.
// TRAINED-LABEL: weft.graph @document
// TRAINED-SAME: weft.saved = [{{.*}}"segments_bounds"
// TRAINED-COUNT-1: weft.tile_bounds
// TRAINED: %seen = weft.mask document %score, %segments, %segments_bounds
// TRAINED: weft.mask document %score_again, %segments, %segments_bounds
// TRAINED: weft.mask document {{.*}}, %segments, %segments_bounds {{.*}}fill = 0.0
weft.graph @document(%q: !bhjp, %k: !bhkp, %v: !bhkw, %segments: !bk) -> !bhjw {
  %score = weft.contract "bhjp,bhkp->bhjk" %q, %k {scale = 0.5} : !bhjp, !bhkp -> !bhjk
  %seen = weft.mask document %score, %segments along (b) {query = j, key = k} : !bhjk, !bk -> !bhjk
  %masked = weft.mask causal %seen {query = j, key = k} : !bhjk
  %prob = weft.softmax %masked over k : !bhjk
  %y = weft.contract "bhjk,bhkw->bhjw" %prob, %v : !bhjk, !bhkw -> !bhjw
  weft.return %y : !bhjw
}
