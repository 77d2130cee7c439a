// Factors between a softmax and its contraction move to where no product of queries and keys is, and what is left folds.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(commute-gates))' %s -o %t.commuted.mlir
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(decompose-softmax{tile=4},commute-scaling,fold-softmax))' %t.commuted.mlir -o %t.folded.mlir
// RUN: FileCheck %s --input-file=%t.commuted.mlir --check-prefix=COMMUTED
// RUN: FileCheck %s --input-file=%t.folded.mlir --check-prefix=FOLDED
// RUN: weft-interpret %s --against %t.commuted.mlir --absolute 1e-9 --relative 1e-9
// RUN: weft-interpret %s --against %t.folded.mlir --absolute 1e-9 --relative 1e-9
// A recomposed softmax has none between its scaling and the contraction either.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(recompose-softmax{tile=4}))' %s -o %t.recomposed.mlir
// RUN: FileCheck %s --input-file=%t.recomposed.mlir --check-prefix=RECOMPOSED
// RUN: weft-interpret %s --against %t.recomposed.mlir --absolute 1e-9 --relative 1e-9
// Factors stay where nothing moves them, and then nothing folds.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(decompose-softmax{tile=4},commute-scaling,fold-softmax))' %s | FileCheck %s --check-prefix=WITHOUT
// WITHOUT-NOT: online_softmax_contract
// Before differentiation all gradients are those of the graph as it is written, those of factors among them, and one number a row is saved.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(differentiate))' %s -o %t.trained.mlir
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(differentiate,recompute-attention))' %t.commuted.mlir -o %t.recomputed.mlir
// RUN: weft-interpret %t.trained.mlir --against %t.recomputed.mlir --absolute 1e-9 --relative 1e-9
// RUN: FileCheck %s --input-file=%t.recomputed.mlir --check-prefix=TRAINED

!bhjp = tensor<2x3x7x4xf32, #weft.axes<b, h, j, p>>
!bhkp = tensor<2x3x9x4xf32, #weft.axes<b, h, k, p>>
!bhkw = tensor<2x3x9x5xf32, #weft.axes<b, h, k, w>>
!bhjk = tensor<2x3x7x9xf32, #weft.axes<b, h, j, k>>
!bhjw = tensor<2x3x7x5xf32, #weft.axes<b, h, j, w>>
!half_bhjk = tensor<2x3x7x9xf16, #weft.axes<b, h, j, k>>
!jb = tensor<7x2xf32, #weft.axes<j, b>>
!kh = tensor<9x3xf32, #weft.axes<k, h>>
!h = tensor<3xf32, #weft.axes<h>>

// Every kind of factor, with a dropout and casts among them: constants meet in the contraction, the one by head and that by row and
// sequence stand behind it in their order, that by key stands in front of the values. Axes of a factor stand in any order.
// COMMUTED-LABEL: weft.graph @every
// COMMUTED: %prob = weft.softmax %score over k
// COMMUTED-NEXT: %cast = weft.cast %prob
// COMMUTED-NEXT: %kept = weft.dropout %cast {p = 0.25, stream = 5}
// COMMUTED-NEXT: %wide = weft.cast %kept
// COMMUTED-NEXT: %v_gated = weft.mul %v, %by_key along (k, h) : !f32_bhkw, !f32_kh
// COMMUTED-NEXT: %y_ungated = weft.contract "bhkw,bhjk->bhjw" %v_gated, %wide {scale = 0.75}
// COMMUTED-NEXT: %[[BY_HEAD:[a-z0-9_]+]] = weft.div %y_ungated, %by_head along (h) : !f32_bhjw, !f32_h
// COMMUTED-NEXT: %y = weft.mul %[[BY_HEAD]], %by_row along (j, b) : !f32_bhjw, !f32_jb
// COMMUTED-NEXT: weft.return %y
// FOLDED-LABEL: weft.graph @every
// FOLDED: %unscaled = weft.online_softmax_contract "bhjk,bhkw->bhjw" %score, %v_gated {p = 0.25, stream = 5}
// RECOMPOSED-LABEL: weft.graph @every
// RECOMPOSED: %prob = weft.global_scaling
// RECOMPOSED-NEXT: %cast = weft.cast %prob
// RECOMPOSED-NEXT: %kept = weft.dropout %cast
// RECOMPOSED-NEXT: %wide = weft.cast %kept
// RECOMPOSED-NEXT: %v_gated = weft.mul
// RECOMPOSED-NEXT: %y_ungated = weft.contract "bhkw,bhjk->bhjw" %v_gated, %wide {scale = 0.75}
// TRAINED-LABEL: weft.graph @every
// TRAINED: weft.online_softmax_contract
// TRAINED-NOT: softmax_dx
// TRAINED: weft.return
weft.graph @every(%q: !bhjp, %k: !bhkp, %v: !bhkw, %by_head: !h, %by_row: !jb, %by_key: !kh) -> !bhjw {
  %score = weft.contract "bhjp,bhkp->bhjk" %q, %k {scale = 0.5} : !bhjp, !bhkp -> !bhjk
  %prob = weft.softmax %score over k : !bhjk
  %double = weft.scale %prob {factor = 3.0} : !bhjk
  %of_head = weft.div %double, %by_head along (h) : !bhjk, !h
  %cast = weft.cast %of_head : !bhjk -> !half_bhjk
  %kept = weft.dropout %cast {p = 0.25, stream = 5} : !half_bhjk
  %wide = weft.cast %kept : !half_bhjk -> !bhjk
  %of_row = weft.mul %wide, %by_row along (j, b) : !bhjk, !jb
  %half = weft.scale %of_row {factor = 0.5} : !bhjk
  %of_key = weft.mul %half, %by_key along (k, h) : !bhjk, !kh
  %y = weft.contract "bhkw,bhjk->bhjw" %v, %of_key {scale = 0.5} : !bhkw, !bhjk -> !bhjw
  weft.return %y : !bhjw
}

!grbjk = tensor<2x3x2x4x7xf32, #weft.axes<g, r, b, j, k>>
!wgbk = tensor<5x2x2x7xf32, #weft.axes<w, g, b, k>>
!wgrbj = tensor<5x2x3x2x4xf32, #weft.axes<w, g, r, b, j>>
!kg = tensor<7x2xf32, #weft.axes<k, g>>
!rg = tensor<3x2xf32, #weft.axes<r, g>>
!rk = tensor<3x7xf32, #weft.axes<r, k>>

// Queries of a group share values: a factor of each head and key is none of the values', and with it the other stays.
// COMMUTED-LABEL: weft.graph @grouped
// COMMUTED: %v_gated = weft.mul %v, %by_key along (k, g) : !f32_wgbk, !f32_kg
// COMMUTED-NEXT: %y_ungated = weft.contract "wgbk,grbjk->wgrbj" %v_gated, %prob
// COMMUTED-NEXT: %y = weft.mul %y_ungated, %by_head along (r, g) : !f32_wgrbj, !f32_rg
// COMMUTED: weft.mul %{{.*}}, %by_head along (r, g) : !f32_grbjk, !f32_rg
// COMMUTED-NEXT: weft.mul %{{.*}}, %by_head_and_key along (r, k) : !f32_grbjk, !f32_rk
// FOLDED-LABEL: weft.graph @grouped
// FOLDED-COUNT-1: weft.online_softmax_contract
// FOLDED-NOT: weft.online_softmax_contract
// FOLDED: weft.return
weft.graph @grouped(%score: !grbjk, %v: !wgbk, %by_key: !kg, %by_head: !rg, %by_head_and_key: !rk) -> (!wgrbj, !wgrbj) {
  %prob = weft.softmax %score over k : !grbjk
  %of_key = weft.mul %prob, %by_key along (k, g) : !grbjk, !kg
  %of_head = weft.mul %of_key, %by_head along (r, g) : !grbjk, !rg
  %y = weft.contract "wgbk,grbjk->wgrbj" %v, %of_head : !wgbk, !grbjk -> !wgrbj
  %again = weft.softmax %score over k : !grbjk
  %of_head_again = weft.mul %again, %by_head along (r, g) : !grbjk, !rg
  %of_both = weft.mul %of_head_again, %by_head_and_key along (r, k) : !grbjk, !rk
  %z = weft.contract "wgbk,grbjk->wgrbj" %v, %of_both : !wgbk, !grbjk -> !wgrbj
  weft.return %y, %z : !wgrbj, !wgrbj
}

!hk = tensor<3x9xf32, #weft.axes<h, k>>
!hkw = tensor<3x9x5xf32, #weft.axes<h, k, w>>
!hw = tensor<3x5xf32, #weft.axes<h, w>>
// One query: a factor of each probability is one of each value, whichever operand it is.
// COMMUTED-LABEL: weft.graph @one_query
// COMMUTED: %v_gated = weft.mul %v, %gate along (h, k) : !f32_hkw, !f32_hk
// COMMUTED-NEXT: %y = weft.contract "hk,hkw->hw" %prob, %v_gated
// COMMUTED-NEXT: weft.return
// FOLDED-LABEL: weft.graph @one_query
// FOLDED: weft.online_softmax_contract
weft.graph @one_query(%score: !hk, %v: !hkw, %gate: !hk) -> !hw {
  %prob = weft.softmax %score over k : !hk
  %gated = weft.mul %gate, %prob : !hk
  %y = weft.contract "hk,hkw->hw" %gated, %v : !hk, !hkw -> !hw
  weft.return %y : !hw
}

// Values without a name: their product with a factor has the factor's.
// COMMUTED-LABEL: weft.graph @unnamed
// COMMUTED: %gated = weft.mul %{{.*}}, %gate along (h, k) : !f32_hkw, !f32_hk
// COMMUTED-NEXT: %y = weft.contract "hk,hkw->hw" %prob, %gated
// FOLDED-LABEL: weft.graph @unnamed
// FOLDED: weft.online_softmax_contract
weft.graph @unnamed(%score: !hk, %v: !hkw, %gate: !hk) -> !hw {
  %0 = weft.exp %v : !hkw
  %prob = weft.softmax %score over k : !hk
  %gated = weft.mul %gate, %prob : !hk
  %y = weft.contract "hk,hkw->hw" %gated, %0 : !hk, !hkw -> !hw
  weft.return %y : !hw
}

// What stays: a factor of each query and key, a factor of probabilities, a square, a sum, and a product that is returned.
// COMMUTED-LABEL: weft.graph @stay
// COMMUTED-NOT: _gated
// COMMUTED-NOT: _ungated
// COMMUTED: weft.return
// FOLDED-LABEL: weft.graph @stay
// FOLDED-NOT: online_softmax_contract
weft.graph @stay(%score: !bhjk, %v: !bhkw, %gate: !bhjk, %rows: !jb) -> (!bhjw, !bhjw, !bhjw, !bhjw, !bhjw, !bhjk) {
  %prob = weft.softmax %score over k : !bhjk
  %gated = weft.mul %prob, %gate : !bhjk
  %a = weft.contract "bhjk,bhkw->bhjw" %gated, %v : !bhjk, !bhkw -> !bhjw
  %divisor = weft.softmax %score over k : !bhjk
  %inverse = weft.div %gate, %divisor : !bhjk
  %b = weft.contract "bhjk,bhkw->bhjw" %inverse, %v : !bhjk, !bhkw -> !bhjw
  %twice = weft.softmax %score over k : !bhjk
  %square = weft.mul %twice, %twice : !bhjk
  %c = weft.contract "bhjk,bhkw->bhjw" %square, %v : !bhjk, !bhkw -> !bhjw
  %added = weft.softmax %score over k : !bhjk
  %sum = weft.add %added, %rows along (j, b) : !bhjk, !jb
  %d = weft.contract "bhjk,bhkw->bhjw" %sum, %v : !bhjk, !bhkw -> !bhjw
  %returned = weft.softmax %score over k : !bhjk
  %product = weft.mul %returned, %rows along (j, b) : !bhjk, !jb
  %e = weft.contract "bhjk,bhkw->bhjw" %product, %v : !bhjk, !bhkw -> !bhjw
  weft.return %a, %b, %c, %d, %e, %product : !bhjw, !bhjw, !bhjw, !bhjw, !bhjw, !bhjk
}
