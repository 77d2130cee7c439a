// decompose-softmax, commute-scaling and fold-softmax, one after the other, keep what a graph computes; together they leave one fold.
// The last sub-vector is shorter than the tile. Links are matched by structure: axes have any names, contractions either operand order.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(decompose-softmax{tile=4}))' %s -o %t.decomposed.mlir
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(commute-scaling))' %t.decomposed.mlir -o %t.commuted.mlir
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(fold-softmax))' %t.commuted.mlir -o %t.folded.mlir
// RUN: FileCheck %s --input-file=%t.commuted.mlir --check-prefix=COMMUTED
// RUN: FileCheck %s --input-file=%t.folded.mlir --check-prefix=FOLDED
// RUN: weft-interpret %s --against %t.commuted.mlir --absolute 1e-9 --relative 1e-9
// RUN: weft-interpret %s --against %t.folded.mlir --absolute 1e-9 --relative 1e-9
// Without any one of the three there is no fold.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(commute-scaling,fold-softmax))' %s | FileCheck %s --check-prefix=WITHOUT
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(decompose-softmax{tile=4},fold-softmax))' %s | FileCheck %s --check-prefix=WITHOUT
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(decompose-softmax{tile=4},commute-scaling))' %s | FileCheck %s --check-prefix=WITHOUT
// WITHOUT-NOT: online_softmax_contract

!bhjp = tensor<2x3x7x4xf32, #weft.axes<b, h, j, p>>
!bhkp = tensor<2x3x9x4xf32, #weft.axes<b, h, k, p>>
!bhkw = tensor<2x3x9x5xf32, #weft.axes<b, h, k, w>>
!bhjk = tensor<2x3x7x9xf32, #weft.axes<b, h, j, k>>
!bhjw = tensor<2x3x7x5xf32, #weft.axes<b, h, j, w>>

// Queries attend to the past; values stand first, as presets write it.
// COMMUTED-LABEL: weft.graph @causal
// COMMUTED: %exponentials, %maxima, %sums = weft.local_softmax %masked over k {tile = 4}
// COMMUTED: %factors = weft.reduce_subvectors %maxima, %sums over n
// COMMUTED-NOT: global_scaling
// COMMUTED: %partials = weft.subvector_contract "bhjk,bhkw->bhjw" %exponentials, %v {tile = 4} : !f32_bhjk, !f32_bhkw -> !f32_bhjwn
// COMMUTED: %y = weft.contract "bhjn,bhjwn->bhjw" %factors, %partials : !f32_bhjn, !f32_bhjwn -> !f32_bhjw
// FOLDED-LABEL: weft.graph @causal
// FOLDED: %masked = weft.mask causal %score
// FOLDED-NEXT: %y = weft.online_softmax_contract "bhjk,bhkw->bhjw" %masked, %v : !f32_bhjk, !f32_bhkw -> !f32_bhjw
// FOLDED-NEXT: weft.return %y
weft.graph @causal(%q: !bhjp, %k: !bhkp, %v: !bhkw) -> !bhjw {
  %score = weft.contract "bhjp,bhkp->bhjk" %q, %k {scale = 0.5} : !bhjp, !bhkp -> !bhjk
  %masked = weft.mask causal %score {query = j, key = k} : !bhjk
  %prob = weft.softmax %masked over k : !bhjk
  %y = weft.contract "bhkw,bhjk->bhjw" %v, %prob : !bhkw, !bhjk -> !bhjw
  weft.return %y : !bhjw
}

// A count of keys per sequence; a row may be masked whole.
// FOLDED-LABEL: weft.graph @padding
// FOLDED: %masked = weft.mask padding
// FOLDED-NEXT: %y = weft.online_softmax_contract "bhjk,bhkw->bhjw" %masked, %v
weft.graph @padding(%score: !bhjk, %lengths: tensor<2xi32, #weft.axes<b>>, %v: !bhkw) -> !bhjw {
  %masked = weft.mask padding %score, %lengths along (b) {key = k} : !bhjk, tensor<2xi32, #weft.axes<b>>
  %prob = weft.softmax %masked over k : !bhjk
  %y = weft.contract "bhjk,bhkw->bhjw" %prob, %v : !bhjk, !bhkw -> !bhjw
  weft.return %y : !bhjw
}

!AQD = tensor<2x5x4xf32, #weft.axes<sequence, target, feature>>
!ASD = tensor<2x6x4xf32, #weft.axes<sequence, source, feature>>
!AQS = tensor<2x5x6xf32, #weft.axes<sequence, target, source>>
!QS = tensor<5x6xf32, #weft.axes<target, source>>
!DAQ = tensor<4x2x5xf32, #weft.axes<n, sequence, target>>

// Other names, upper-case letters, an axis called n, a softcap, a bias of target and source, and a factor behind the contraction.
// COMMUTED-LABEL: weft.graph @renamed
// COMMUTED: weft.subvector_contract "AQS,ASn->nAQ" %exponentials, %values {tile = 4}
// COMMUTED: weft.contract "AQm,nAQm->nAQ" %factors, %partials {scale = 0.25}
// FOLDED-LABEL: weft.graph @renamed
// FOLDED: %biased = weft.add
// FOLDED-NEXT: %unscaled = weft.online_softmax_contract "AQS,ASn->nAQ" %biased, %values
// FOLDED-NEXT: %result = weft.scale %unscaled {factor = 0.25}
weft.graph @renamed(%queries: !AQD, %keys: !ASD, %values: !ASD, %bias: !QS) -> !DAQ {
  %score = weft.contract "ASD,AQD->AQS" %keys, %queries {scale = 0.5} : !ASD, !AQD -> !AQS
  %small = weft.scale %score {factor = 0.02} : !AQS
  %bounded = weft.tanh %small : !AQS
  %capped = weft.scale %bounded {factor = 50.0} : !AQS
  %biased = weft.add %capped, %bias along (target, source) : !AQS, !QS
  %weights = weft.softmax %biased over source : !AQS
  %result = weft.contract "AQS,ASn->nAQ" %weights, %values {scale = 0.25} : !AQS, !ASD -> !DAQ
  weft.return %result : !DAQ
}

!grbjk = tensor<2x3x2x4x7xf32, #weft.axes<g, r, b, j, k>>
!wgbk = tensor<5x2x2x7xf32, #weft.axes<w, g, b, k>>
!wgrbj = tensor<5x2x3x2x4xf32, #weft.axes<w, g, r, b, j>>

// Queries of a group share the values; a softmax of f32 whose probabilities are cast.
// COMMUTED-LABEL: weft.graph @grouped
// COMMUTED-NOT: weft.cast
// COMMUTED: weft.contract "grbjn,wgrbjn->wgrbj" %factors, %partials
// FOLDED-LABEL: weft.graph @grouped
// FOLDED-NEXT: %y = weft.online_softmax_contract "grbjk,wgbk->wgrbj" %score, %v : !f32_grbjk, !f32_wgbk -> !f32_wgrbj
weft.graph @grouped(%score: !grbjk, %v: !wgbk) -> !wgrbj {
  %prob = weft.softmax %score over k : !grbjk
  %cast = weft.cast %prob : !grbjk -> tensor<2x3x2x4x7xf16, #weft.axes<g, r, b, j, k>>
  %y = weft.contract "wgbk,grbjk->wgrbj" %v, %cast : !wgbk, tensor<2x3x2x4x7xf16, #weft.axes<g, r, b, j, k>> -> !wgrbj
  weft.return %y : !wgrbj
}

// A dropout between, with casts around it: exponentials are dropped, then probabilities, each by the same bits. Tiles
// of 16 x 16 elements are left in the middle.
!bhjp17 = tensor<2x3x17x4xf32, #weft.axes<b, h, j, p>>
!bhkp19 = tensor<2x3x19x4xf32, #weft.axes<b, h, k, p>>
!bhkw19 = tensor<2x3x19x5xf32, #weft.axes<b, h, k, w>>
!bhjk1719 = tensor<2x3x17x19xf32, #weft.axes<b, h, j, k>>
!h16_bhjk = tensor<2x3x17x19xf16, #weft.axes<b, h, j, k>>
!bhjw17 = tensor<2x3x17x5xf32, #weft.axes<b, h, j, w>>
// COMMUTED-LABEL: weft.graph @dropped
// COMMUTED: %exponentials, %maxima, %sums = weft.local_softmax %masked over k {tile = 4}
// COMMUTED-NEXT: %factors = weft.reduce_subvectors %maxima, %sums over n
// COMMUTED-NEXT: %partials = weft.subvector_contract "bhjk,bhkw->bhjw" %exponentials, %v {p = 0.25, stream = 5, tile = 4}
// COMMUTED-NEXT: %y = weft.contract "bhjn,bhjwn->bhjw" %factors, %partials {scale = 0.5}
// FOLDED-LABEL: weft.graph @dropped
// FOLDED: %masked = weft.mask causal %score
// FOLDED-NEXT: %unscaled = weft.online_softmax_contract "bhjk,bhkw->bhjw" %masked, %v {p = 0.25, stream = 5}
// FOLDED-NEXT: %y = weft.scale %unscaled {factor = 0.5}
weft.graph @dropped(%q: !bhjp17, %k: !bhkp19, %v: !bhkw19) -> !bhjw17 {
  %score = weft.contract "bhjp,bhkp->bhjk" %q, %k {scale = 0.5} : !bhjp17, !bhkp19 -> !bhjk1719
  %masked = weft.mask causal %score {query = j, key = k} : !bhjk1719
  %prob = weft.softmax %masked over k : !bhjk1719
  %half = weft.cast %prob : !bhjk1719 -> !h16_bhjk
  %kept = weft.dropout %half {p = 0.25, stream = 5} : !h16_bhjk
  %cast = weft.cast %kept : !h16_bhjk -> !bhjk1719
  %y = weft.contract "bhkw,bhjk->bhjw" %v, %cast {scale = 0.5} : !bhkw19, !bhjk1719 -> !bhjw17
  weft.return %y : !bhjw17
}

// Keys in front of queries: the rows of draws are keys.
// FOLDED-LABEL: weft.graph @dropped_columns
// FOLDED-NEXT: %y = weft.online_softmax_contract "bkj,bkw->wbj" %x, %v {p = 0.5, stream = 6}
weft.graph @dropped_columns(%x: tensor<2x19x17xf32, #weft.axes<b, k, j>>, %v: tensor<2x19x5xf32, #weft.axes<b, k, w>>) -> tensor<5x2x17xf32, #weft.axes<w, b, j>> {
  %prob = weft.softmax %x over k : tensor<2x19x17xf32, #weft.axes<b, k, j>>
  %kept = weft.dropout %prob {p = 0.5, stream = 6} : tensor<2x19x17xf32, #weft.axes<b, k, j>>
  %y = weft.contract "bkj,bkw->wbj" %kept, %v : tensor<2x19x17xf32, #weft.axes<b, k, j>>, tensor<2x19x5xf32, #weft.axes<b, k, w>> -> tensor<5x2x17xf32, #weft.axes<w, b, j>>
  weft.return %y : tensor<5x2x17xf32, #weft.axes<w, b, j>>
}

// What else reads the probabilities keeps them: a result, one that is dropped, a second contraction, a sum over queries.
// COMMUTED-LABEL: weft.graph @returned
// COMMUTED-COUNT-4: weft.global_scaling
// COMMUTED-NOT: subvector_contract
// FOLDED-LABEL: weft.graph @returned
// FOLDED-NOT: online_softmax_contract
weft.graph @returned(%score: !bhjk, %v: !bhkw) -> (!bhjw, !bhjk, !bhjw, !bhjk, !bhjw, !bhjw, tensor<2x3x9x5xf32, #weft.axes<b, h, k, w>>) {
  %prob = weft.softmax %score over k : !bhjk
  %y = weft.contract "bhjk,bhkw->bhjw" %prob, %v : !bhjk, !bhkw -> !bhjw
  %dropped = weft.softmax %score over k : !bhjk
  %kept = weft.dropout %dropped {p = 0.5, stream = 1} : !bhjk
  %z = weft.contract "bhjk,bhkw->bhjw" %kept, %v : !bhjk, !bhkw -> !bhjw
  %shared = weft.softmax %score over k : !bhjk
  %a = weft.contract "bhjk,bhkw->bhjw" %shared, %v : !bhjk, !bhkw -> !bhjw
  %b = weft.contract "bhjk,bhkw->bhjw" %shared, %v {scale = 2.0} : !bhjk, !bhkw -> !bhjw
  %turned = weft.softmax %score over k : !bhjk
  %c = weft.contract "bhjk,bhjw->bhkw" %turned, %y : !bhjk, !bhjw -> tensor<2x3x9x5xf32, #weft.axes<b, h, k, w>>
  weft.return %y, %prob, %z, %kept, %a, %b, %c : !bhjw, !bhjk, !bhjw, !bhjk, !bhjw, !bhjw, tensor<2x3x9x5xf32, #weft.axes<b, h, k, w>>
}

// Precision tf32 goes with the products: to sums of sub-vectors, and to the fold.
// COMMUTED-LABEL: weft.graph @read_as_tf32
// COMMUTED: weft.subvector_contract "bhjk,bhkw->bhjw" %{{.*}}, %v {precision = tf32, tile = 4} :
// COMMUTED: weft.contract "bhjn,bhjwn->bhjw" %factors, %partials : !f32_bhjn, !f32_bhjwn -> !f32_bhjw
// FOLDED-LABEL: weft.graph @read_as_tf32
// FOLDED: weft.online_softmax_contract "bhjk,bhkw->bhjw" %score, %v {precision = tf32} :
weft.graph @read_as_tf32(%q: !bhjp, %k: !bhkp, %v: !bhkw) -> !bhjw {
  %score = weft.contract "bhjp,bhkp->bhjk" %q, %k {precision = tf32} : !bhjp, !bhkp -> !bhjk
  %prob = weft.softmax %score over k : !bhjk
  %y = weft.contract "bhkw,bhjk->bhjw" %v, %prob {precision = tf32} : !bhkw, !bhjk -> !bhjw
  weft.return %y : !bhjw
}
