// Fusion proposals as attributes: the decision tested alone, nothing rewritten.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(fuse{rules=paper}))' %s | FileCheck %s --check-prefix=PAPER
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(fuse))' %s | FileCheck %s --check-prefix=ALL
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(fuse{rules=none}))' %s | FileCheck %s --check-prefix=NONE
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(fuse{apart=2,3}))' %s | FileCheck %s --check-prefix=APART
// RUN: not weft-opt --pass-pipeline='builtin.module(weft.graph(fuse{rules=some}))' %s 2>&1 | FileCheck %s --check-prefix=BAD

// BAD: fuse rules 'some' are not one of paper, default, none

!bji = tensor<2x3x8xf32, #weft.axes<b, j, i>>
!ii  = tensor<8x8xf32, #weft.axes<u, i>>
!i   = tensor<8xf32, #weft.axes<i>>

// Rules paper: maximal sets only.
// PAPER-LABEL: weft.graph @block
// PAPER-SAME: weft.candidates = [{name = "y_projection", ops = [0]}, {name = "bias", ops = [1]}, {name = "dropout", ops = [2]}, {name = "residual", ops = [3]}, {name = "layer_norm", ops = [4]}, {name = "bias_dropout_residual_layer_norm", ops = [1, 2, 3, 4], pattern = "producer-consumer + reduction-consumer"}]
// PAPER-SAME: {ops = [0, 1], pass = "fuse", pattern = "reduction-consumer", rejected = {code = "F020", detail = "y", op = 0 : i64, reason = "contraction"}

// Default rules: every connected subset as well; a chain of four has six.
// ALL-LABEL: weft.graph @block
// ALL-SAME: weft.candidates
// ALL-SAME: {name = "bias_dropout", ops = [1, 2], pattern = "producer-consumer"}
// ALL-SAME: {name = "residual_layer_norm", ops = [3, 4], pattern = "reduction-consumer"}
// ALL-SAME: {name = "dropout_residual_layer_norm", ops = [2, 3, 4]
// ALL-SAME: {name = "bias_dropout_residual_layer_norm"
// ALL-SAME: rejected = {code = "F021", detail = "y", op = 0 : i64, reason = "contraction-epilogue-off"}

// NONE-LABEL: weft.graph @block
// NONE-SAME: {name = "layer_norm", ops = [4]}],
// NONE-SAME: rejected = {code = "F051", reason = "fusion-off"}

// APART-LABEL: weft.graph @block
// APART-SAME: {name = "bias_dropout", ops = [1, 2]
// APART-NOT: name = "dropout_residual"
// APART: rejected = {code = "F050", detail = "2,3", reason = "forbidden-by-option"}
weft.graph @block(%x: !bji, %w: !ii {weft.parameter}, %beta: !i {weft.parameter}, %gamma: !i {weft.parameter},
                  %shift: !i {weft.parameter}) -> !bji {
  %y = weft.contract "ui,bji->bju" %w, %x : !ii, !bji -> !bji
  %biased = weft.bias %y, %beta along (i) : !bji, !i
  %kept = weft.dropout %biased {p = 0.1, stream = 0} : !bji
  %sum = weft.residual %kept, %x : !bji
  %z = weft.layer_norm %sum, %gamma, %shift over i : !bji, !i, !i -> !bji
  weft.return %z : !bji
}
