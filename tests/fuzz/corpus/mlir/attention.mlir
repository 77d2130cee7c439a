!bhjk = tensor<2x2x16x16xf16, #weft.axes<b, h, j, k>>
!bhjp = tensor<2x2x16x16xf16, #weft.axes<b, h, j, p>>
!bhjw = tensor<2x2x16x16xf16, #weft.axes<b, h, j, w>>
!bhkp = tensor<2x2x16x16xf16, #weft.axes<b, h, k, p>>
!bhkw = tensor<2x2x16x16xf16, #weft.axes<b, h, k, w>>
module {
  weft.graph @attention(%q: !bhjp, %k: !bhkp, %v: !bhkw) -> !bhjw {
    %score = weft.contract "bhkp,bhjp->bhjk" %k, %q {scale = 0.25} : !bhkp, !bhjp -> !bhjk
    %probability = weft.softmax %score over k {empty_row = zero} : !bhjk
    %weighted = weft.contract "bhkw,bhjk->bhjw" %v, %probability : !bhkw, !bhjk -> !bhjw
    weft.return %weighted : !bhjw
  }
}

