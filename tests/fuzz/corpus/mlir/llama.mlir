!bji = tensor<1x16x64xf16, #weft.axes<b, j, i>>
!bju = tensor<1x16x96xf16, #weft.axes<b, j, u>>
!grbjk = tensor<1x4x1x16x16xf16, #weft.axes<g, r, b, j, k>>
!i = tensor<64xf16, #weft.axes<i>>
!iu = tensor<64x96xf16, #weft.axes<i, u>>
!pg = tensor<16x1xf16, #weft.axes<p, g>>
!pgbk = tensor<16x1x1x16xf16, #weft.axes<p, g, b, k>>
!pgi = tensor<16x1x64xf16, #weft.axes<p, g, i>>
!pgr = tensor<16x1x4xf16, #weft.axes<p, g, r>>
!pgrbj = tensor<16x1x4x1x16xf16, #weft.axes<p, g, r, b, j>>
!pgri = tensor<16x1x4x64xf16, #weft.axes<p, g, r, i>>
!u = tensor<96xf16, #weft.axes<u>>
!ui = tensor<96x64xf16, #weft.axes<u, i>>
!wg = tensor<16x1xf16, #weft.axes<w, g>>
!wgbk = tensor<16x1x1x16xf16, #weft.axes<w, g, b, k>>
!wgi = tensor<16x1x64xf16, #weft.axes<w, g, i>>
!wgrbj = tensor<16x1x4x1x16xf16, #weft.axes<w, g, r, b, j>>
!wgri = tensor<16x1x4x64xf16, #weft.axes<w, g, r, i>>
module {
  weft.graph @llama_tiny(%x: !bji, %gamma1: !i {weft.parameter}, %wq: !pgri {weft.parameter}, %bq: !pgr {weft.parameter}, %wk: !pgi {weft.parameter}, %bk: !pg {weft.parameter}, %wv: !wgi {weft.parameter}, %bv: !wg {weft.parameter}, %wo: !wgri {weft.parameter}, %bo: !i {weft.parameter}, %gamma2: !i {weft.parameter}, %w_gate: !ui {weft.parameter}, %b_gate: !u {weft.parameter}, %w_up: !ui {weft.parameter}, %b_up: !u {weft.parameter}, %w_down: !iu {weft.parameter}, %b_down: !i {weft.parameter}) -> !bji {
    %norm1 = weft.rms_norm %x, %gamma1 over i {epsilon = 1.0e-05} : !bji, !i
    %q_product = weft.contract "pgri,bji->pgrbj" %wq, %norm1 : !pgri, !bji -> !pgrbj
    %q = weft.bias %q_product, %bq along (p, g, r) : !pgrbj, !pgr
    %k_product = weft.contract "pgi,bki->pgbk" %wk, %norm1 : !pgi, !bji -> !pgbk
    %k = weft.bias %k_product, %bk along (p, g) : !pgbk, !pg
    %v_product = weft.contract "wgi,bki->wgbk" %wv, %norm1 : !wgi, !bji -> !wgbk
    %v = weft.bias %v_product, %bv along (w, g) : !wgbk, !wg
    %q_turned = weft.rotary %q {base = 500000.0, dim = p, position = j, style = halved} : !pgrbj
    %k_turned = weft.rotary %k {base = 500000.0, dim = p, position = k, style = halved} : !pgbk
    %score = weft.contract "pgbk,pgrbj->grbjk" %k_turned, %q_turned {scale = 0.25} : !pgbk, !pgrbj -> !grbjk
    %masked = weft.mask causal %score {key = k, query = j} : !grbjk
    %probability = weft.softmax %masked over k {empty_row = zero} : !grbjk
    %weighted = weft.contract "wgbk,grbjk->wgrbj" %v, %probability : !wgbk, !grbjk -> !wgrbj
    %attention_product = weft.contract "wgri,wgrbj->bji" %wo, %weighted : !wgri, !wgrbj -> !bji
    %attention = weft.bias %attention_product, %bo along (i) : !bji, !i
    %residual1 = weft.residual %attention, %x : !bji
    %norm2 = weft.rms_norm %residual1, %gamma2 over i {epsilon = 1.0e-05} : !bji, !i
    %gate_product = weft.contract "ui,bji->bju" %w_gate, %norm2 : !ui, !bji -> !bju
    %gate = weft.bias %gate_product, %b_gate along (u) : !bju, !u
    %up_product = weft.contract "ui,bji->bju" %w_up, %norm2 : !ui, !bji -> !bju
    %up = weft.bias %up_product, %b_up along (u) : !bju, !u
    %gate_active = weft.silu %gate : !bju
    %gated = weft.mul %gate_active, %up : !bju
    %feed_forward_product = weft.contract "iu,bju->bji" %w_down, %gated : !iu, !bju -> !bji
    %feed_forward = weft.bias %feed_forward_product, %b_down along (i) : !bji, !i
    %residual2 = weft.residual %feed_forward, %residual1 : !bji
    weft.return %residual2 : !bji
  }
}

