// RUN: weft-opt %s | weft-opt | FileCheck %s

!bji  = tensor<8x512x1024xf16, #weft.axes<b, j, i>>
!phi  = tensor<64x16x1024xf16, #weft.axes<p, h, i>>
!phbj = tensor<64x16x8x512xf16, #weft.axes<p, h, b, j>>
!hbjk = tensor<16x8x512x512xf16, #weft.axes<h, b, j, k>>

weft.graph @encoder(%x: !bji, %wq: !phi {weft.parameter}, %bq : tensor<64x16xf16, #weft.axes<p, h>>) -> (!hbjk) {
  %q     = weft.contract "phi,bji->phbj" %wq, %x : !phi, !bji -> !phbj
  %qb = weft.bias %q, %bq along (p, h) : !phbj, tensor<64x16xf16, #weft.axes<p, h>>
  %score = weft.contract "phbk,phbj->hbjk" %q, %qb {scale = 0.125} : !phbj -> !hbjk
  %masked = weft.mask causal %score {query = j, key = k} : !hbjk
  %prob  = weft.softmax %masked over k {empty_row = zero} : !hbjk
  %kept  = weft.dropout %prob {p = 0.1, stream = 3} : !hbjk
  %f = weft.kernel @double (%a = %kept : !hbjk) -> !hbjk attributes {layouts = #weft.layouts<[0, 1, 2, 3] -> [3, 2, 1, 0] strides [1, 2,3, 4]>, config = {family = "loop"}} {
    %0 = weft.add %a, %a : !hbjk
    weft.yield %0 : !hbjk
  }
  weft.return %f : !hbjk
}
