// Printed text parses to the same text, and reads like a person wrote it.
// RUN: weft-opt %s > %t.once && weft-opt %t.once > %t.twice && diff %t.once %t.twice
// RUN: FileCheck %s --strict-whitespace < %t.once

!bji  = tensor<8x512x1024xf16, #weft.axes<b, j, i>>
!phi  = tensor<64x16x1024xf16, #weft.axes<p, h, i>>
!phbj = tensor<64x16x8x512xf16, #weft.axes<p, h, b, j>>
!hbjk = tensor<16x8x512x512xf16, #weft.axes<h, b, j, k>>

// CHECK: !bji = tensor<8x512x1024xf16, #weft.axes<b, j, i>>
// CHECK: !f32_ph = tensor<64x16xf32, #weft.axes<p, h>>
// CHECK: weft.graph @encoder(%x: !bji, %wq: !phi {weft.parameter}, %bq: !f32_ph {weft.parameter}) -> !hbjk {
// CHECK-NEXT: %q = weft.contract "phi,bji->phbj" %wq, %x : !phi, !bji -> !phbj
// CHECK-NEXT: %cast = weft.cast %bq : !f32_ph -> !ph
// CHECK-NEXT: %key = weft.bias %q, %{{.*}} along (p, h) : !phbj, !ph
// CHECK-NEXT: %score = weft.contract "phbk,phbj->hbjk" %key, %q {scale = 0.125} : !phbj -> !hbjk
// CHECK-NEXT: %prob = weft.softmax %score over k {empty_row = zero} : !hbjk
// CHECK-NEXT: %kept = weft.dropout %prob {p = 0.1, stream = 3} : !hbjk
// CHECK-NEXT: %twice = weft.kernel @double (%a = %kept : !hbjk) -> !hbjk layouts ([h, b, j, k] pitch_unit 64 -> [k, j, b, h] offset 128) attributes {config = {family = "loop"}} {
// CHECK-NEXT:   %sum = weft.add %a, %a : !hbjk
weft.graph @encoder(%x: !bji, %wq: !phi {weft.parameter},
                    %bq: tensor<64x16xf32, #weft.axes<p, h>> {weft.parameter}) -> !hbjk {
  %q = weft.contract "phi,bji->phbj" %wq, %x : !phi, !bji -> !phbj
  %0 = weft.cast %bq : tensor<64x16xf32, #weft.axes<p, h>> -> tensor<64x16xf16, #weft.axes<p, h>>
  %key = weft.bias %q, %0 along (p, h) : !phbj, tensor<64x16xf16, #weft.axes<p, h>>
  %score = weft.contract "phbk,phbj->hbjk" %key, %q {scale = 0.125} : !phbj, !phbj -> !hbjk
  %prob = weft.softmax %score over k : !hbjk
  %kept = weft.dropout %prob {p = 0.1, stream = 3} : !hbjk
  %twice = weft.kernel @double (%a = %kept : !hbjk) -> !hbjk
      layouts ([h, b, j, k] pitch_unit 64 -> [k, j, b, h] offset 128) attributes {config = {family = "loop"}} {
    %sum = weft.add %a, %a : !hbjk
    weft.yield %sum : !hbjk
  }
  weft.return %twice : !hbjk
}
