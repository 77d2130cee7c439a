!bji = tensor<1x64x64xf16, #weft.axes<b, j, i>>
!bju = tensor<1x64x96xf16, #weft.axes<b, j, u>>
!grbjk = tensor<2x2x1x64x64xf16, #weft.axes<g, r, b, j, k>>
!i = tensor<64xf16, #weft.axes<i>>
!iu = tensor<64x96xf16, #weft.axes<i, u>>
!pgbk = tensor<16x2x1x64xf16, #weft.axes<p, g, b, k>>
!pgi = tensor<16x2x64xf16, #weft.axes<p, g, i>>
!pgrbj = tensor<16x2x2x1x64xf16, #weft.axes<p, g, r, b, j>>
!pgri = tensor<16x2x2x64xf16, #weft.axes<p, g, r, i>>
!ui = tensor<96x64xf16, #weft.axes<u, i>>
!wgbk = tensor<16x2x1x64xf16, #weft.axes<w, g, b, k>>
!wgi = tensor<16x2x64xf16, #weft.axes<w, g, i>>
!wgrbj = tensor<16x2x2x1x64xf16, #weft.axes<w, g, r, b, j>>
!wgri = tensor<16x2x2x64xf16, #weft.axes<w, g, r, i>>
module {
  weft.graph @mistral(%x: !bji, %gamma1: !i {weft.parameter}, %wq: !pgri {weft.parameter}, %wk: !pgi {weft.parameter}, %wv: !wgi {weft.parameter}, %wo: !wgri {weft.parameter}, %gamma2: !i {weft.parameter}, %w_gate: !ui {weft.parameter}, %w_up: !ui {weft.parameter}, %w_down: !iu {weft.parameter}) -> !bji {
    %norm1 = weft.rms_norm %x, %gamma1 over i {epsilon = 1.0e-05} : !bji, !i
    %q = weft.contract "pgri,bji->pgrbj" %wq, %norm1 : !pgri, !bji -> !pgrbj
    %k = weft.contract "pgi,bki->pgbk" %wk, %norm1 : !pgi, !bji -> !pgbk
    %v = weft.contract "wgi,bki->wgbk" %wv, %norm1 : !wgi, !bji -> !wgbk
    %q_turned = weft.rotary %q {base = 10000.0, dim = p, position = j, style = halved} : !pgrbj
    %k_turned = weft.rotary %k {base = 10000.0, dim = p, position = k, style = halved} : !pgbk
    %score = weft.contract "pgbk,pgrbj->grbjk" %k_turned, %q_turned {scale = 0.25} : !pgbk, !pgrbj -> !grbjk
    %masked = weft.mask window %score {key = k, left = 31, query = j, right = 0} : !grbjk
    %probability = weft.softmax %masked over k {empty_row = zero} : !grbjk
    %weighted = weft.contract "wgbk,grbjk->wgrbj" %v, %probability : !wgbk, !grbjk -> !wgrbj
    %attention = weft.contract "wgri,wgrbj->bji" %wo, %weighted : !wgri, !wgrbj -> !bji
    %residual1 = weft.residual %attention, %x : !bji
    %norm2 = weft.rms_norm %residual1, %gamma2 over i {epsilon = 1.0e-05} : !bji, !i
    %gate = weft.contract "ui,bji->bju" %w_gate, %norm2 : !ui, !bji -> !bju
    %up = weft.contract "ui,bji->bju" %w_up, %norm2 : !ui, !bji -> !bju
    %gate_active = weft.silu %gate : !bju
    %gated = weft.mul %gate_active, %up : !bju
    %feed_forward = weft.contract "iu,bju->bji" %w_down, %gated : !iu, !bju -> !bji
    %residual2 = weft.residual %feed_forward, %residual1 : !bji
    weft.return %residual2 : !bji
  }
}

