// Attentions of differentiated graphs compute the same, gradients among it, and save one number a row.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(differentiate))' %s -o %t.trained.mlir
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(recompute-attention))' %t.trained.mlir -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: weft-interpret %t.trained.mlir --against %t.mlir --absolute 1e-9 --relative 1e-9
// A graph without a backward pass stays as it is.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(recompute-attention))' %s | FileCheck %s --check-prefix=FORWARD
// FORWARD-NOT: online_softmax_contract

!bhjp = tensor<2x3x7x4xf32, #weft.axes<b, h, j, p>>
!bhkp = tensor<2x3x9x4xf32, #weft.axes<b, h, k, p>>
!bhkw = tensor<2x3x9x5xf32, #weft.axes<b, h, k, w>>
!bhjk = tensor<2x3x7x9xf32, #weft.axes<b, h, j, k>>
!bhjw = tensor<2x3x7x5xf32, #weft.axes<b, h, j, w>>

// A mask and a dropout: the backward pass masks and drops again, by the same bits.
// CHECK-LABEL: weft.graph @dropped
// CHECK-SAME: weft.saved = ["y", "y_log_sums"]
// CHECK-NEXT: %score = weft.contract "bhjp,bhkp->bhjk" %q, %k {scale = 0.5}
// CHECK-NEXT: %masked = weft.mask causal %score
// CHECK-NEXT: %y, %y_log_sums = weft.online_softmax_contract "bhjk,bhkw->bhjw" %masked, %v {p = 0.25, stream = 3} : !f32_bhjk, !f32_bhkw -> !f32_bhjw, !f32_bhj
// CHECK-NEXT: %d_kept = weft.contract "bhjw,bhkw->bhjk" %d_y, %v
// CHECK-NEXT: %score_again = weft.contract "bhjp,bhkp->bhjk" %q, %k {scale = 0.5}
// CHECK-NEXT: %masked_again = weft.mask causal %score_again
// CHECK-NEXT: %prob_again = weft.softmax_from_log_sums %masked_again, %y_log_sums along (b, h, j) : !f32_bhjk, !f32_bhj
// CHECK-NEXT: %kept_again = weft.dropout %prob_again {p = 0.25, stream = 3}
// CHECK-NEXT: %d_v = weft.contract "bhjk,bhjw->bhkw" %kept_again, %d_y
// CHECK-NEXT: %d_prob = weft.dropout %d_kept {p = 0.25, stream = 3}
// CHECK-NEXT: %y_terms = weft.mul %d_y, %y : !f32_bhjw
// CHECK-NEXT: %y_row_sums = weft.reduce sum %y_terms over w : !f32_bhjw -> !f32_bhj
// CHECK-NEXT: %d_prob_centered = weft.sub %d_prob, %y_row_sums along (b, h, j) : !f32_bhjk, !f32_bhj
// CHECK-NEXT: %d_masked = weft.mul %d_prob_centered, %prob_again : !f32_bhjk
// CHECK-NEXT: %d_score = weft.mask causal %d_masked {fill = 0.0
// CHECK-NOT: softmax_dx
weft.graph @dropped(%q: !bhjp, %k: !bhkp, %v: !bhkw) -> !bhjw {
  %score = weft.contract "bhjp,bhkp->bhjk" %q, %k {scale = 0.5} : !bhjp, !bhkp -> !bhjk
  %masked = weft.mask causal %score {query = j, key = k} : !bhjk
  %prob = weft.softmax %masked over k : !bhjk
  %kept = weft.dropout %prob {p = 0.25, stream = 3} : !bhjk
  %y = weft.contract "bhjk,bhkw->bhjw" %kept, %v : !bhjk, !bhkw -> !bhjw
  weft.return %y : !bhjw
}

!pgrj = tensor<4x2x3x5xf16, #weft.axes<p, g, r, j>>
!pgk = tensor<4x2x6xf16, #weft.axes<p, g, k>>
!wgks = tensor<3x2x6x2xf16, #weft.axes<w, g, k, s>>
!kgrj = tensor<6x2x3x5xf16, #weft.axes<k, g, r, j>>
!wide = tensor<6x2x3x5xf32, #weft.axes<k, g, r, j>>
!kj = tensor<6x5xf16, #weft.axes<k, j>>
!sjwrg = tensor<2x5x3x3x2xf32, #weft.axes<s, j, w, r, g>>

// Grouped queries, a cap and a bias with a gradient, the softmax along the first axis, a cast, a factor behind the contraction, and an
// output whose axes stand in another order and are two that values alone have. The derivative of the cap reads the capped scores again.
// CHECK-LABEL: weft.graph @grouped
// CHECK-SAME: weft.saved = ["y_log_sums", "y"]
// CHECK: %unscaled, %y_log_sums = weft.online_softmax_contract
// CHECK-SAME: -> !f32_sjwrg, !f32_grj
// CHECK-NEXT: %y = weft.scale %unscaled {factor = 0.5}
// CHECK-NEXT: %score_again = weft.contract
// CHECK-NEXT: %capped_again = weft.tanh %score_again
// CHECK-NEXT: %biased_again = weft.add %capped_again, %bias along (k, j)
// CHECK-NEXT: %prob_again = weft.softmax_from_log_sums %biased_again, %y_log_sums along (g, r, j)
// CHECK-NEXT: %wide_again = weft.cast %prob_again
// CHECK: %y_terms = weft.mul %d_y, %y : !f32_sjwrg
// CHECK-NEXT: %y_row_sums = weft.reduce sum %y_terms over s, w : !f32_sjwrg -> !f32_jrg
// CHECK-NEXT: %d_prob_centered = weft.sub %d_prob, %y_row_sums along (j, r, g) : !kgrj, !f32_jrg
// CHECK-NEXT: %d_biased = weft.mul %d_prob_centered, %prob_again
// CHECK: weft.tanh_dx {{%[a-z_]+}}, %capped_again
weft.graph @grouped(%q: !pgrj, %k: !pgk, %bias: !kj, %v: !wgks) -> !sjwrg {
  %score = weft.contract "pgk,pgrj->kgrj" %k, %q : !pgk, !pgrj -> !kgrj
  %capped = weft.tanh %score : !kgrj
  %biased = weft.add %capped, %bias along (k, j) : !kgrj, !kj
  %prob = weft.softmax %biased over k : !kgrj
  %wide = weft.cast %prob : !kgrj -> !wide
  %y = weft.contract "wgks,kgrj->sjwrg" %v, %wide {scale = 0.5} : !wgks, !wide -> !sjwrg
  weft.return %y : !sjwrg
}

// What forward reads or returns elsewhere stays, and so does what is computed from no contraction.
// CHECK-LABEL: weft.graph @returned
// CHECK-NOT: online_softmax_contract
// CHECK: weft.softmax_dx
weft.graph @returned(%q: !bhjp, %k: !bhkp, %v: !bhkw) -> (!bhjw, !bhjk) {
  %score = weft.contract "bhjp,bhkp->bhjk" %q, %k : !bhjp, !bhkp -> !bhjk
  %prob = weft.softmax %score over k : !bhjk
  %y = weft.contract "bhjk,bhkw->bhjw" %prob, %v : !bhjk, !bhkw -> !bhjw
  weft.return %y, %prob : !bhjw, !bhjk
}

// CHECK-LABEL: weft.graph @given
// CHECK-NOT: online_softmax_contract
// CHECK: weft.softmax_dx
weft.graph @given(%score: !bhjk, %v: !bhkw) -> !bhjw {
  %prob = weft.softmax %score over k : !bhjk
  %y = weft.contract "bhjk,bhkw->bhjw" %prob, %v : !bhjk, !bhkw -> !bhjw
  weft.return %y : !bhjw
}
