!bji = tensor<2x16x32xf16, #weft.axes<b, j, i>>
!bju = tensor<2x16x64xf16, #weft.axes<b, j, u>>
!i = tensor<32xf16, #weft.axes<i>>
!u = tensor<64xf16, #weft.axes<u>>
!ui = tensor<64x32xf16, #weft.axes<u, i>>
module {
  weft.graph @feed_forward(%x: !bji, %w1: !ui {weft.parameter}, %b1: !u {weft.parameter}, %w2: !ui {weft.parameter}, %b2: !i {weft.parameter}, %gamma: !i {weft.parameter}, %beta: !i {weft.parameter}) -> !bji {
    %product = weft.contract "ui,bji->bju" %w1, %x : !ui, !bji -> !bju
    %hidden = weft.bias %product, %b1 along (u) : !bju, !u
    %active = weft.gelu %hidden : !bju
    %out = weft.contract "ui,bju->bji" %w2, %active : !ui, !bju -> !bji
    %biased = weft.bias %out, %b2 along (i) : !bji, !i
    %kept = weft.dropout %biased {p = 0.1, stream = 0} : !bji
    %sum = weft.residual %kept, %x : !bji
    %y = weft.layer_norm %sum, %gamma, %beta over i {epsilon = 1.0e-05} : !bji, !i, !i
    weft.return %y : !bji
  }
}

