!bji = tensor<2x16x32xf16, #weft.axes<b, j, i>>
!hbjk = tensor<2x2x16x16xf16, #weft.axes<h, b, j, k>>
!i = tensor<32xf16, #weft.axes<i>>
!ph = tensor<16x2xf16, #weft.axes<p, h>>
!phbj = tensor<16x2x2x16xf16, #weft.axes<p, h, b, j>>
!phbk = tensor<16x2x2x16xf16, #weft.axes<p, h, b, k>>
!phi = tensor<16x2x32xf16, #weft.axes<p, h, i>>
!wh = tensor<16x2xf16, #weft.axes<w, h>>
!whbj = tensor<16x2x2x16xf16, #weft.axes<w, h, b, j>>
!whbk = tensor<16x2x2x16xf16, #weft.axes<w, h, b, k>>
!whi = tensor<16x2x32xf16, #weft.axes<w, h, i>>
module {
  weft.graph @paper_attention(%x: !bji, %wq: !phi {weft.parameter}, %bq: !ph {weft.parameter}, %wk: !phi {weft.parameter}, %bk: !ph {weft.parameter}, %wv: !whi {weft.parameter}, %bv: !wh {weft.parameter}, %wo: !whi {weft.parameter}, %bo: !i {weft.parameter}) -> !bji {
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
    weft.return %attention : !bji
  }
}

