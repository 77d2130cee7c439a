// A recomposed softmax computes the same, gradients among it, and saves exponentials and factors. The last sub-vector is shorter than
// the tile.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(differentiate))' %s -o %t.trained.mlir
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(recompose-softmax{tile=4}))' %t.trained.mlir -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: weft-interpret %t.trained.mlir --against %t.mlir --absolute 1e-9 --relative 1e-9
// Without a backward pass it is the decomposed one, but for a dropout, which goes before the scaling.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(recompose-softmax{tile=4}))' %s -o %t.forward.mlir
// RUN: FileCheck %s --input-file=%t.forward.mlir --check-prefix=FORWARD
// RUN: weft-interpret %s --against %t.forward.mlir --absolute 1e-9 --relative 1e-9
// RUN: not weft-opt --pass-pipeline='builtin.module(weft.graph(recompose-softmax{tile=0}))' %s 2>&1 | FileCheck %s --check-prefix=BAD
// BAD: tile of 0 elements; the least is 1

!bhjp = tensor<2x3x7x4xf32, #weft.axes<b, h, j, p>>
!bhkp = tensor<2x3x9x4xf32, #weft.axes<b, h, k, p>>
!bhkw = tensor<2x3x9x5xf32, #weft.axes<b, h, k, w>>
!bhjk = tensor<2x3x7x9xf32, #weft.axes<b, h, j, k>>
!bhjw = tensor<2x3x7x5xf32, #weft.axes<b, h, j, w>>

// The backward pass reads probabilities twice: dropped and whole.
// CHECK-LABEL: weft.graph @dropped
// CHECK-SAME: weft.saved = ["exponentials", "factors"]
// CHECK-NEXT: %score = weft.contract
// CHECK-NEXT: %masked = weft.mask causal %score
// CHECK-NEXT: %exponentials, %maxima, %sums = weft.local_softmax %masked over k {tile = 4}
// CHECK-NEXT: %factors = weft.reduce_subvectors %maxima, %sums over n
// CHECK-NEXT: %kept_exponentials = weft.dropout %exponentials {p = 0.25, stream = 3}
// CHECK-NEXT: %kept = weft.global_scaling %kept_exponentials, %factors {axis = k, tile = 4}
// CHECK-NEXT: %y = weft.contract "bhjk,bhkw->bhjw" %kept, %v
// CHECK: %prob_again = weft.global_scaling %exponentials, %factors {axis = k, tile = 4}
// CHECK: %kept_again = weft.dropout %prob_again {p = 0.25, stream = 3}
// CHECK: weft.contract {{.*}} %kept_again, %d_y
// CHECK: weft.softmax_dx {{%[a-z_]+}}, %prob_again over k
// FORWARD-LABEL: weft.graph @dropped
// FORWARD: %kept_exponentials = weft.dropout %exponentials {p = 0.25, stream = 3}
// FORWARD-NEXT: %kept = weft.global_scaling %kept_exponentials, %factors
// FORWARD-NEXT: %y = weft.contract "bhjk,bhkw->bhjw" %kept, %v
weft.graph @dropped(%q: !bhjp, %k: !bhkp, %v: !bhkw) -> !bhjw {
  %score = weft.contract "bhjp,bhkp->bhjk" %q, %k {scale = 0.5} : !bhjp, !bhkp -> !bhjk
  %masked = weft.mask causal %score {query = j, key = k} : !bhjk
  %prob = weft.softmax %masked over k : !bhjk
  %kept = weft.dropout %prob {p = 0.25, stream = 3} : !bhjk
  %y = weft.contract "bhjk,bhkw->bhjw" %kept, %v : !bhjk, !bhkw -> !bhjw
  weft.return %y : !bhjw
}

// Whole sub-vectors and whole rows may be masked: their factors are 0.
// CHECK-LABEL: weft.graph @padding
// CHECK-SAME: weft.saved = ["exponentials", "factors"]
// CHECK: %y = weft.contract "bhjk,bhkw->bhjw" %prob, %v
// CHECK: %prob_again = weft.global_scaling %exponentials, %factors
weft.graph @padding(%score: !bhjk, %lengths: tensor<2xi32, #weft.axes<b>>, %v: !bhkw) -> !bhjw {
  %masked = weft.mask padding %score, %lengths along (b) {key = k} : !bhjk, tensor<2xi32, #weft.axes<b>>
  %windowed = weft.mask window %masked {query = j, key = k, left = 1, right = 0} : !bhjk
  %prob = weft.softmax %windowed over k : !bhjk
  %y = weft.contract "bhjk,bhkw->bhjw" %prob, %v : !bhjk, !bhkw -> !bhjw
  weft.return %y : !bhjw
}

!half = tensor<2x3x7x9xf16, #weft.axes<b, h, j, k>>
!narrow = tensor<2x3x9x5xf16, #weft.axes<b, h, k, w>>

// Behind a cast a dropout stays where it is.
// CHECK-LABEL: weft.graph @cast
// CHECK: %prob = weft.global_scaling %exponentials, %factors
// CHECK-NEXT: %narrow = weft.cast %prob
// CHECK-NEXT: %kept = weft.dropout %narrow
weft.graph @cast(%score: !bhjk, %v: !narrow) -> !bhjw {
  %prob = weft.softmax %score over k : !bhjk
  %narrow = weft.cast %prob : !bhjk -> !half
  %kept = weft.dropout %narrow {p = 0.25, stream = 3} : !half
  %y = weft.contract "bhjk,bhkw->bhjw" %kept, %v : !half, !narrow -> !bhjw
  weft.return %y : !bhjw
}

// What forward returns stays whole.
// CHECK-LABEL: weft.graph @returned
// CHECK: %prob = weft.softmax
// CHECK-NOT: global_scaling
weft.graph @returned(%score: !bhjk, %v: !bhkw) -> (!bhjw, !bhjk) {
  %prob = weft.softmax %score over k : !bhjk
  %y = weft.contract "bhjk,bhkw->bhjw" %prob, %v : !bhjk, !bhkw -> !bhjw
  weft.return %y, %prob : !bhjw, !bhjk
}
