!bhjk = tensor<2x2x16x16xf16, #weft.axes<b, h, j, k>>
!bhjp = tensor<2x2x16x16xf16, #weft.axes<b, h, j, p>>
!bhjw = tensor<2x2x16x16xf16, #weft.axes<b, h, j, w>>
!bhkp = tensor<2x2x16x16xf16, #weft.axes<b, h, k, p>>
!bhkw = tensor<2x2x16x16xf16, #weft.axes<b, h, k, w>>
module {
  weft.graph @attention(%q: !bhjp, %k: !bhkp, %v: !bhkw, %d_weighted: !bhjw {weft.gradient_of = "weighted"}) -> (!bhjw, !bhjp {weft.gradient_of = "q"}, !bhkp {weft.gradient_of = "k"}, !bhkw {weft.gradient_of = "v"}) attributes {weft.saved = ["probability"]} {
    %score = weft.contract "bhkp,bhjp->bhjk" %k, %q {scale = 0.25} : !bhkp, !bhjp -> !bhjk
    %probability = weft.softmax %score over k {empty_row = zero} : !bhjk
    %weighted = weft.contract "bhkw,bhjk->bhjw" %v, %probability : !bhkw, !bhjk -> !bhjw
    %d_v = weft.contract "bhjw,bhjk->bhkw" %d_weighted, %probability : !bhjw, !bhjk -> !bhkw
    %d_probability = weft.contract "bhkw,bhjw->bhjk" %v, %d_weighted : !bhkw, !bhjw -> !bhjk
    %d_score = weft.softmax_dx %d_probability, %probability over k : !bhjk
    %d_k = weft.contract "bhjk,bhjp->bhkp" %d_score, %q {scale = 0.25} : !bhjk, !bhjp -> !bhkp
    %d_q = weft.contract "bhkp,bhjk->bhjp" %k, %d_score {scale = 0.25} : !bhkp, !bhjk -> !bhjp
    weft.return %weighted, %d_q, %d_k, %d_v : !bhjw, !bhjp, !bhkp, !bhkw
  }
}

