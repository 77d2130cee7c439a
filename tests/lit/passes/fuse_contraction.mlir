// Contractions with what follows them: only for a device whose kernel families take them (cuBLASLt does on any), and never by the
// paper's rules.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(fuse))' %s | FileCheck %s --check-prefix=NONE
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(fuse{device=v100}))' %s | FileCheck %s --check-prefix=LIBRARY
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(fuse{device=h200}))' %s | FileCheck %s --check-prefix=LIBRARY
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(fuse{device=h200 rules=paper}))' %s | FileCheck %s --check-prefix=PAPER
// RUN: not weft-opt --pass-pipeline='builtin.module(weft.graph(fuse{device=h2000}))' %s 2>&1 | FileCheck %s --check-prefix=BAD

// BAD: h2000

!bji = tensor<2x3x8xf16, #weft.axes<b, j, i>>
!ui  = tensor<8x8xf16, #weft.axes<u, i>>
!u   = tensor<8xf16, #weft.axes<u>>
!bju = tensor<2x3x8xf16, #weft.axes<b, j, u>>

// NONE-LABEL: weft.graph @layer
// NONE-NOT: "y_projection_bias"
// NONE: ops = [0, 1], pass = "fuse", pattern = "reduction-consumer", rejected = "F021 contraction-epilogue-off

// LIBRARY-LABEL: weft.graph @layer
// LIBRARY: name = "y_projection_bias", ops = [0, 1]

// PAPER-LABEL: weft.graph @layer
// PAPER-NOT: "y_projection_bias"
// PAPER: ops = [0, 1], pass = "fuse", pattern = "reduction-consumer", rejected = "F020 contraction (y)"
weft.graph @layer(%x: !bji, %w: !ui {weft.parameter}, %beta: !u {weft.parameter}) -> !bju {
  %y = weft.contract "ui,bji->bju" %w, %x : !ui, !bji -> !bju
  %biased = weft.bias %y, %beta along (u) : !bju, !u
  %z = weft.relu %biased : !bju
  weft.return %z : !bju
}
