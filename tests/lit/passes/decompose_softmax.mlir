// Softmax in three steps; the mask before it and the dropout after it stay. The last sub-vector is shorter than the tile.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(decompose-softmax{tile=4}))' %s -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: weft-interpret %s --against %t.mlir --absolute 1e-9 --relative 1e-9
// RUN: not weft-opt --pass-pipeline='builtin.module(weft.graph(decompose-softmax{tile=0}))' %s 2>&1 | FileCheck %s --check-prefix=BAD

// BAD: tile of 0 elements; the least is 1

!hbjk = tensor<2x2x6x6xf32, #weft.axes<h, b, j, k>>

// CHECK-LABEL: weft.graph @attention
// CHECK: %masked = weft.mask causal
// CHECK: %exponentials, %maxima, %sums = weft.local_softmax %masked over k {tile = 4}
// CHECK: %factors = weft.reduce_subvectors %maxima, %sums over n
// CHECK: %prob = weft.global_scaling %exponentials, %factors {axis = k, tile = 4}
// CHECK: %kept = weft.dropout %prob
weft.graph @attention(%score: !hbjk) -> !hbjk {
  %masked = weft.mask causal %score {query = j, key = k} : !hbjk
  %prob = weft.softmax %masked over k : !hbjk
  %kept = weft.dropout %prob {p = 0.1, stream = 0} : !hbjk
  weft.return %kept : !hbjk
}
