// A graph with a backward pass keeps the factors of its probabilities, also of those that no derivative reads: commute-gates runs before.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(differentiate{with-respect-to=w},commute-gates))' %s | FileCheck %s --check-prefix=TRAINED
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(commute-gates))' %s | FileCheck %s --check-prefix=FORWARD

!hk = tensor<3x9xf32, #weft.axes<h, k>>
!hkw = tensor<3x9x5xf32, #weft.axes<h, k, w>>
!hw = tensor<3x5xf32, #weft.axes<h, w>>
// TRAINED-LABEL: weft.graph @g
// TRAINED: %gated = weft.mul %prob, %gate : !f32_hk
// TRAINED-NEXT: %y = weft.contract "hk,hkw->hw" %gated, %v
// TRAINED: weft.tanh_dx
// FORWARD: %v_gated = weft.mul %v, %gate along (h, k)
// FORWARD-NEXT: %y = weft.contract "hk,hkw->hw" %prob, %v_gated
weft.graph @g(%score: !hk, %v: !hkw, %gate: !hk, %w: !hw) -> (!hw, !hw) {
  %prob = weft.softmax %score over k : !hk
  %gated = weft.mul %prob, %gate : !hk
  %y = weft.contract "hk,hkw->hw" %gated, %v : !hk, !hkw -> !hw
  %z = weft.tanh %w : !hw
  weft.return %y, %z : !hw, !hw
}
