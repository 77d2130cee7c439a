!bji = tensor<1x16x32xf16, #weft.axes<b, j, i>>
!bju = tensor<1x16x64xf16, #weft.axes<b, j, u>>
!hbjk = tensor<2x1x16x16xf16, #weft.axes<h, b, j, k>>
!i = tensor<32xf16, #weft.axes<i>>
!iu = tensor<32x64xf16, #weft.axes<i, u>>
!ph = tensor<16x2xf16, #weft.axes<p, h>>
!phbj = tensor<16x2x1x16xf16, #weft.axes<p, h, b, j>>
!phbk = tensor<16x2x1x16xf16, #weft.axes<p, h, b, k>>
!phi = tensor<16x2x32xf16, #weft.axes<p, h, i>>
!u = tensor<64xf16, #weft.axes<u>>
!ui = tensor<64x32xf16, #weft.axes<u, i>>
!wh = tensor<16x2xf16, #weft.axes<w, h>>
!whbj = tensor<16x2x1x16xf16, #weft.axes<w, h, b, j>>
!whbk = tensor<16x2x1x16xf16, #weft.axes<w, h, b, k>>
!whi = tensor<16x2x32xf16, #weft.axes<w, h, i>>
module {
  weft.graph @gpt2(%x: !bji, %gamma1: !i {weft.parameter}, %beta1: !i {weft.parameter}, %wq: !phi {weft.parameter}, %bq: !ph {weft.parameter}, %wk: !phi {weft.parameter}, %bk: !ph {weft.parameter}, %wv: !whi {weft.parameter}, %bv: !wh {weft.parameter}, %wo: !whi {weft.parameter}, %bo: !i {weft.parameter}, %gamma2: !i {weft.parameter}, %beta2: !i {weft.parameter}, %w1: !ui {weft.parameter}, %b1: !u {weft.parameter}, %w2: !iu {weft.parameter}, %b2: !i {weft.parameter}) -> !bji {
    %norm1 = weft.layer_norm %x, %gamma1, %beta1 over i {epsilon = 1.0e-05} : !bji, !i, !i
    %q_product = weft.contract "phi,bji->phbj" %wq, %norm1 : !phi, !bji -> !phbj
    %q = weft.bias %q_product, %bq along (p, h) : !phbj, !ph
    %k_product = weft.contract "phi,bki->phbk" %wk, %norm1 : !phi, !bji -> !phbk
    %k = weft.bias %k_product, %bk along (p, h) : !phbk, !ph
    %v_product = weft.contract "whi,bki->whbk" %wv, %norm1 : !whi, !bji -> !whbk
    %v = weft.bias %v_product, %bv along (w, h) : !whbk, !wh
    %score = weft.contract "phbk,phbj->hbjk" %k, %q {scale = 0.25} : !phbk, !phbj -> !hbjk
    %masked = weft.mask causal %score {key = k, query = j} : !hbjk
    %probability = weft.softmax %masked over k {empty_row = zero} : !hbjk
    %weighted = weft.contract "whbk,hbjk->whbj" %v, %probability : !whbk, !hbjk -> !whbj
    %attention_product = weft.contract "whi,whbj->bji" %wo, %weighted : !whi, !whbj -> !bji
    %attention = weft.bias %attention_product, %bo along (i) : !bji, !i
    %residual1 = weft.residual %attention, %x : !bji
    %norm2 = weft.layer_norm %residual1, %gamma2, %beta2 over i {epsilon = 1.0e-05} : !bji, !i, !i
    %hidden_product = weft.contract "ui,bji->bju" %w1, %norm2 : !ui, !bji -> !bju
    %hidden = weft.bias %hidden_product, %b1 along (u) : !bju, !u
    %active = weft.gelu_tanh %hidden : !bju
    %feed_forward_product = weft.contract "iu,bju->bji" %w2, %active : !iu, !bju -> !bji
    %feed_forward = weft.bias %feed_forward_product, %b2 along (i) : !bji, !i
    %residual2 = weft.residual %feed_forward, %residual1 : !bji
    weft.return %residual2 : !bji
  }
}

