!bji = tensor<2x16x32xf16, #weft.axes<b, j, i>>
!bju = tensor<2x16x64xf16, #weft.axes<b, j, u>>
!f32_bj = tensor<2x16xf32, #weft.axes<b, j>>
!hbjk = tensor<2x2x16x16xf16, #weft.axes<h, b, j, k>>
!i = tensor<32xf16, #weft.axes<i>>
!iu = tensor<32x64xf16, #weft.axes<i, u>>
!ph = tensor<16x2xf16, #weft.axes<p, h>>
!phbj = tensor<16x2x2x16xf16, #weft.axes<p, h, b, j>>
!phbk = tensor<16x2x2x16xf16, #weft.axes<p, h, b, k>>
!phi = tensor<16x2x32xf16, #weft.axes<p, h, i>>
!u = tensor<64xf16, #weft.axes<u>>
!ui = tensor<64x32xf16, #weft.axes<u, i>>
!wh = tensor<16x2xf16, #weft.axes<w, h>>
!whbj = tensor<16x2x2x16xf16, #weft.axes<w, h, b, j>>
!whbk = tensor<16x2x2x16xf16, #weft.axes<w, h, b, k>>
!whi = tensor<16x2x32xf16, #weft.axes<w, h, i>>
module {
  weft.graph @paper_encoder(%x: !bji, %wq: !phi {weft.parameter}, %bq: !ph {weft.parameter}, %wk: !phi {weft.parameter}, %bk: !ph {weft.parameter}, %wv: !whi {weft.parameter}, %bv: !wh {weft.parameter}, %wo: !whi {weft.parameter}, %bo: !i {weft.parameter}, %gamma1: !i {weft.parameter}, %beta1: !i {weft.parameter}, %w1: !ui {weft.parameter}, %b1: !u {weft.parameter}, %w2: !iu {weft.parameter}, %b2: !i {weft.parameter}, %gamma2: !i {weft.parameter}, %beta2: !i {weft.parameter}) -> !bji {
    %q_product = weft.contract "phi,bji->phbj" %wq, %x : !phi, !bji -> !phbj
    %q = weft.bias %q_product, %bq along (p, h) : !phbj, !ph
    %k_product = weft.contract "phi,bki->phbk" %wk, %x : !phi, !bji -> !phbk
    %k = weft.bias %k_product, %bk along (p, h) : !phbk, !ph
    %v_product = weft.contract "whi,bki->whbk" %wv, %x : !whi, !bji -> !whbk
    %v = weft.bias %v_product, %bv along (w, h) : !whbk, !wh
    %score = weft.contract "phbk,phbj->hbjk" %k, %q {scale = 0.25} : !phbk, !phbj -> !hbjk
    %probability = weft.softmax %score over k {empty_row = zero} : !hbjk
    %kept = weft.dropout %probability {p = 0.1, stream = 0} : !hbjk
    %weighted = weft.contract "whbk,hbjk->whbj" %v, %kept : !whbk, !hbjk -> !whbj
    %attention_product = weft.contract "whi,whbj->bji" %wo, %weighted : !whi, !whbj -> !bji
    %attention = weft.bias %attention_product, %bo along (i) : !bji, !i
    %attention_kept = weft.dropout %attention {p = 0.1, stream = 1} : !bji
    %residual1 = weft.residual %attention_kept, %x : !bji
    %norm1, %mean1, %rstd1 = weft.layer_norm %residual1, %gamma1, %beta1 over i {epsilon = 1.0e-05} : !bji, !i, !i -> !bji, !f32_bj, !f32_bj
    %hidden_product = weft.contract "ui,bji->bju" %w1, %norm1 : !ui, !bji -> !bju
    %hidden = weft.bias %hidden_product, %b1 along (u) : !bju, !u
    %active = weft.relu %hidden : !bju
    %active_kept = weft.dropout %active {p = 0.1, stream = 2} : !bju
    %feed_forward_product = weft.contract "iu,bju->bji" %w2, %active_kept : !iu, !bju -> !bji
    %feed_forward = weft.bias %feed_forward_product, %b2 along (i) : !bji, !i
    %feed_forward_kept = weft.dropout %feed_forward {p = 0.1, stream = 3} : !bji
    %residual2 = weft.residual %feed_forward_kept, %norm1 : !bji
    %norm2, %mean2, %rstd2 = weft.layer_norm %residual2, %gamma2, %beta2 over i {epsilon = 1.0e-05} : !bji, !i, !i -> !bji, !f32_bj, !f32_bj
    weft.return %norm2 : !bji
  }
}

