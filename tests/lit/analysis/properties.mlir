// Class, space, flop and elements of every op; the flop are those of "Data Movement Is All You Need", Table A.1.
// RUN: weft-opt --print-op-properties %s -o %t | FileCheck %s

!bji = tensor<8x512x1024xf16, #weft.axes<b, j, i>>
!phi = tensor<64x16x1024xf16, #weft.axes<p, h, i>>
!phbj = tensor<64x16x8x512xf16, #weft.axes<p, h, b, j>>
!hbjk = tensor<16x8x512x512xf16, #weft.axes<h, b, j, k>>
!i = tensor<1024xf16, #weft.axes<i>>
!bj = tensor<8x512xf32, #weft.axes<b, j>>

weft.graph @paper(%x: !bji, %w: !phi, %s: !hbjk, %g: !i, %bias: tensor<64x16xf16, #weft.axes<p, h>>) {
  // A third of "Q, K, V": 25.770 Gflop.
  // CHECK: weft.contract: contraction; space p=64 h=16 b=8 j=512 | i=1024 (reduced); 8589934592 flop; 5242880 read, 4194304 written
  %q = weft.contract "phi,bji->phbj" %w, %x : !phi, !bji -> !phbj
  // CHECK: weft.bias: elementwise; space p=64 h=16 b=8 j=512; 4194304 flop; 4195328 read, 4194304 written; {0} + {1}
  %b = weft.bias %q, %bias along (p, h) : !phbj, tensor<64x16xf16, #weft.axes<p, h>>
  // Scaled softmax, 0.201 Gflop = 6 an element: scale 1, softmax 4, dropout 1.
  // CHECK: weft.scale: elementwise; space h=16 b=8 j=512 k=512; 33554432 flop
  %1 = weft.scale %s {factor = 0.125} : !hbjk
  // CHECK: weft.softmax: normalization; space h=16 b=8 j=512 | k=512 (reduced); 134217728 flop; 33554432 read, 33554432 written
  %2 = weft.softmax %1 over k : !hbjk
  // CHECK: weft.dropout: elementwise; space h=16 b=8 j=512 k=512; 33554432 flop
  %3 = weft.dropout %2 {p = 0.1, stream = 0} : !hbjk
  // CHECK: weft.residual: elementwise; space b=8 j=512 i=1024; 4194304 flop; 8388608 read
  %4 = weft.residual %x, %x : !bji
  // CHECK: weft.relu: elementwise; space b=8 j=512 i=1024; 0 flop; 4194304 read, 4194304 written; weft::relu({0})
  %5 = weft.relu %x : !bji
  // LayerNorm, 0.029 Gflop = 7 an element.
  // CHECK: weft.layer_norm: normalization; space b=8 j=512 | i=1024 (reduced); 29360128 flop; 4196352 read, 4202496 written
  %y, %mean, %rstd = weft.layer_norm %x, %g, %g over i : !bji, !i, !i -> !bji, !bj, !bj
  // CHECK: weft.transpose: movement; space j=512 b=8 i=1024; 0 flop
  %6 = weft.transpose %x {permutation = [j, b, i]} : !bji -> tensor<512x8x1024xf16, #weft.axes<j, b, i>>
  weft.return
}
