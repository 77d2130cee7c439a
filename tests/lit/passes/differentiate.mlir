// A small layer with everything that differs between ops: sums for a bias, statistics that a norm keeps, a mask drawn again, an
// activation read behind its dropout, two readers whose gradients add up.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(differentiate))' %s | FileCheck %s
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(differentiate{with-respect-to=w,bias recompute=active,kept}))' %s | FileCheck %s --check-prefix=SOME

!bji = tensor<2x3x4xf32, #weft.axes<b, j, i>>
!bju = tensor<2x3x5xf32, #weft.axes<b, j, u>>
!ui  = tensor<5x4xf32, #weft.axes<u, i>>
!iu  = tensor<4x5xf32, #weft.axes<i, u>>
!u   = tensor<5xf32, #weft.axes<u>>
!i   = tensor<4xf32, #weft.axes<i>>

// CHECK-LABEL: weft.graph @layer
// CHECK-SAME: %d_y: !f32_bji {weft.gradient_of = "y"}) ->
// CHECK-SAME: (!f32_bji, !f32_bji {weft.gradient_of = "x"}, !f32_ui {weft.gradient_of = "w"}, !f32_u {weft.gradient_of = "bias"}, !f32_iu {weft.gradient_of = "w2"}, !f32_i {weft.gradient_of = "gamma"}, !f32_i {weft.gradient_of = "beta"})
// CHECK-SAME: weft.saved = ["kept", "sum", "y_mean", "y_rstd"]
// CHECK: %y, %y_mean, %y_rstd = weft.layer_norm %sum
// CHECK-NEXT: %d_gamma, %d_beta = weft.layer_norm_dw %d_y, %sum, %y_mean, %y_rstd over b, j : !f32_bji, !f32_bji, !f32_bj, !f32_bj -> !f32_i, !f32_i
// CHECK-NEXT: %d_sum = weft.layer_norm_dx %d_y, %sum, %gamma, %y_mean, %y_rstd over i : !f32_bji, !f32_bji, !f32_i, !f32_bj, !f32_bj
// CHECK-NEXT: %d_w2 = weft.contract "bji,bju->iu" %d_sum, %kept : !f32_bji, !f32_bju -> !f32_iu
// CHECK-NEXT: %d_kept = weft.contract "iu,bji->bju" %w2, %d_sum : !f32_iu, !f32_bji -> !f32_bju
// CHECK-NEXT: %d_active = weft.dropout %d_kept {p = 0.1, stream = 7} : !f32_bju
// CHECK-NEXT: %d_hidden = weft.relu_dx %d_active, %kept : !f32_bju
// CHECK-NEXT: %d_bias = weft.reduce sum %d_hidden over b, j : !f32_bju -> !f32_u
// CHECK-NEXT: %d_w = weft.contract "bju,bji->ui" %d_hidden, %x : !f32_bju, !f32_bji -> !f32_ui
// CHECK-NEXT: %d_x_product = weft.contract "ui,bju->bji" %w, %d_hidden : !f32_ui, !f32_bju -> !f32_bji
// CHECK-NEXT: %d_x = weft.add %d_sum, %d_x_product : !f32_bji
// CHECK-NEXT: weft.return %y, %d_x, %d_w, %d_bias, %d_w2, %d_gamma, %d_beta

// SOME: -> (!f32_bji, !f32_ui {weft.gradient_of = "w"}, !f32_u {weft.gradient_of = "bias"}) attributes {weft.saved = ["hidden", "sum", "y_mean", "y_rstd"]}
// SOME: weft.layer_norm_dx
// SOME-NOT: layer_norm_dw
// SOME: %active_again = weft.relu %hidden
// SOME-NEXT: %kept_again = weft.dropout %active_again {p = 0.1, stream = 7}
// SOME-NEXT: weft.relu_dx %d_active, %kept_again
// SOME: weft.return %y, %d_w, %d_bias
weft.graph @layer(%x: !bji, %w: !ui {weft.parameter}, %bias: !u {weft.parameter}, %w2: !iu {weft.parameter},
                  %gamma: !i {weft.parameter}, %beta: !i {weft.parameter}) -> !bji {
  %product = weft.contract "ui,bji->bju" %w, %x : !ui, !bji -> !bju
  %hidden = weft.bias %product, %bias along (u) : !bju, !u
  %active = weft.relu %hidden : !bju
  %kept = weft.dropout %active {p = 0.1, stream = 7} : !bju
  %out = weft.contract "iu,bju->bji" %w2, %kept : !iu, !bju -> !bji
  %sum = weft.residual %out, %x : !bji
  %y = weft.layer_norm %sum, %gamma, %beta over i : !bji, !i, !i
  weft.return %y : !bji
}
