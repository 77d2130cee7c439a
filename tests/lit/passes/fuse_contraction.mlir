// Contractions with what follows them: only for a device whose kernel families take them (cuBLASLt does on any), and never by the
// paper's rules.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(fuse))' %s | FileCheck %s --check-prefix=NONE
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(fuse{device=v100}))' %s | FileCheck %s --check-prefix=LIBRARY
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(fuse{device=h200}))' %s | FileCheck %s --check-prefixes=LIBRARY,OURS
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(fuse{device=h200 rules=paper}))' %s | FileCheck %s --check-prefix=PAPER
// RUN: not weft-opt --pass-pipeline='builtin.module(weft.graph(fuse{device=h2000}))' %s 2>&1 | FileCheck %s --check-prefix=BAD

// BAD: h2000

!bji = tensor<2x3x8xf16, #weft.axes<b, j, i>>
!ui  = tensor<8x8xf16, #weft.axes<u, i>>
!u   = tensor<8xf16, #weft.axes<u>>
!bju = tensor<2x3x8xf16, #weft.axes<b, j, u>>

// NONE-LABEL: weft.graph @layer
// NONE-NOT: "y_projection_bias"
// NONE: ops = [0, 1], pass = "fuse", pattern = "reduction-consumer", rejected = {code = "F021", {{[^}]*}}reason = "contraction-epilogue-off"

// LIBRARY-LABEL: weft.graph @layer
// LIBRARY: name = "y_projection_bias", ops = [0, 1]

// PAPER-LABEL: weft.graph @layer
// PAPER-NOT: "y_projection_bias"
// PAPER: ops = [0, 1], pass = "fuse", pattern = "reduction-consumer", rejected = {code = "F020", detail = "y", op = 0 : i64, reason = "contraction"}
weft.graph @layer(%x: !bji, %w: !ui {weft.parameter}, %beta: !u {weft.parameter}) -> !bju {
  %y = weft.contract "ui,bji->bju" %w, %x : !ui, !bji -> !bju
  %biased = weft.bias %y, %beta along (u) : !bju, !u
  %z = weft.relu %biased : !bju
  weft.return %z : !bju
}

// Scales of 8-bit floats and a cast behind the product, on the tensor cores.
!f8_ji = tensor<64x128xf8E4M3FN, #weft.axes<j, i>>
!f8_ui = tensor<48x128xf8E5M2, #weft.axes<u, i>>
!f32_ju = tensor<64x48xf32, #weft.axes<j, u>>
!ju = tensor<64x48xf16, #weft.axes<j, u>>
!s = tensor<f32, #weft.axes<>>

// OURS-LABEL: weft.graph @float8
// OURS: ops = [0, 1, 2, 3]
weft.graph @float8(%x: !f8_ji, %w: !f8_ui {weft.parameter}, %xs: !s, %ws: !s) -> !ju {
  %y = weft.contract "ji,ui->ju" %x, %w : !f8_ji, !f8_ui -> !f32_ju
  %half = weft.mul %y, %xs along () : !f32_ju, !s
  %whole = weft.mul %half, %ws along () : !f32_ju, !s
  %z = weft.cast %whole : !f32_ju -> !ju
  weft.return %z : !ju
}
