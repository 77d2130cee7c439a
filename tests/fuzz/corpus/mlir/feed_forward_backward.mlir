!bji = tensor<2x16x32xf16, #weft.axes<b, j, i>>
!bju = tensor<2x16x64xf16, #weft.axes<b, j, u>>
!f32_bj = tensor<2x16xf32, #weft.axes<b, j>>
!i = tensor<32xf16, #weft.axes<i>>
!u = tensor<64xf16, #weft.axes<u>>
!ui = tensor<64x32xf16, #weft.axes<u, i>>
module {
  weft.graph @feed_forward(%x: !bji, %w1: !ui {weft.parameter}, %b1: !u {weft.parameter}, %w2: !ui {weft.parameter}, %b2: !i {weft.parameter}, %gamma: !i {weft.parameter}, %beta: !i {weft.parameter}, %d_y: !bji {weft.gradient_of = "y"}) -> (!bji, !bji {weft.gradient_of = "x"}, !ui {weft.gradient_of = "w1"}, !u {weft.gradient_of = "b1"}, !ui {weft.gradient_of = "w2"}, !i {weft.gradient_of = "b2"}, !i {weft.gradient_of = "gamma"}, !i {weft.gradient_of = "beta"}) attributes {weft.saved = ["hidden", "active", "sum", "y_mean", "y_rstd"]} {
    %product = weft.contract "ui,bji->bju" %w1, %x : !ui, !bji -> !bju
    %hidden = weft.bias %product, %b1 along (u) : !bju, !u
    %active = weft.gelu %hidden : !bju
    %out = weft.contract "ui,bju->bji" %w2, %active : !ui, !bju -> !bji
    %biased = weft.bias %out, %b2 along (i) : !bji, !i
    %kept = weft.dropout %biased {p = 0.1, stream = 0} : !bji
    %sum = weft.residual %kept, %x : !bji
    %y, %y_mean, %y_rstd = weft.layer_norm %sum, %gamma, %beta over i {epsilon = 1.0e-05} : !bji, !i, !i -> !bji, !f32_bj, !f32_bj
    %d_gamma, %d_beta = weft.layer_norm_dw %d_y, %sum, %y_mean, %y_rstd over b, j : !bji, !bji, !f32_bj, !f32_bj -> !i, !i
    %d_sum = weft.layer_norm_dx %d_y, %sum, %gamma, %y_mean, %y_rstd over i : !bji, !bji, !i, !f32_bj, !f32_bj
    %d_biased = weft.dropout %d_sum {p = 0.1, stream = 0} : !bji
    %d_b2 = weft.reduce sum %d_biased over b, j : !bji -> !i
    %d_w2 = weft.contract "bji,bju->ui" %d_biased, %active : !bji, !bju -> !ui
    %d_active = weft.contract "ui,bji->bju" %w2, %d_biased : !ui, !bji -> !bju
    %d_hidden = weft.gelu_dx %d_active, %hidden : !bju
    %d_b1 = weft.reduce sum %d_hidden over b, j : !bju -> !u
    %d_w1 = weft.contract "bju,bji->ui" %d_hidden, %x : !bju, !bji -> !ui
    %d_x_product = weft.contract "ui,bju->bji" %w1, %d_hidden : !ui, !bju -> !bji
    %d_x = weft.add %d_sum, %d_x_product : !bji
    weft.return %y, %d_x, %d_w1, %d_b1, %d_w2, %d_b2, %d_gamma, %d_beta : !bji, !bji, !ui, !u, !ui, !i, !i, !i
  }
}

