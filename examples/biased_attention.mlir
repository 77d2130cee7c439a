// Attention whose scores get an additive bias of each head (as T5 and ALiBi have it), over a length
// that no tile and no vector divides.
//   weft compile examples/biased_attention.mlir --no-library --stop-after emit -o out
//   weft explain out
// One launch: the attention is one kernel, which adds the bias to scores in registers.
//   weft compile examples/biased_attention.mlir --attention unfused --stop-after emit -o apart
//   weft explain apart
// Three launches: the bias costs none, since add_softmax reads it before the softmax.
//   weft compile examples/biased_attention.mlir --attention decomposed --stop-after emit -o split
//   weft explain split
// Three launches: the first GEMM ends with the bias and the local softmax, the second begins with
// the global scaling.
//   weft compile examples/biased_attention.mlir --train --attention fused --stop-after emit -o trained
//   weft explain trained
// Four launches forward and backward: attention, row sums, the backward pass in one kernel, which
// stores the gradient of scores too, and its sum over the batch, the gradient of the bias.
!bhjk = tensor<2x4x77x77xf16, #weft.axes<b, h, j, k>>
!bhjp = tensor<2x4x77x64xf16, #weft.axes<b, h, j, p>>
!bhkp = tensor<2x4x77x64xf16, #weft.axes<b, h, k, p>>
!bhjw = tensor<2x4x77x64xf16, #weft.axes<b, h, j, w>>
!bhkw = tensor<2x4x77x64xf16, #weft.axes<b, h, k, w>>
!hjk = tensor<4x77x77xf16, #weft.axes<h, j, k>>
module {
  weft.graph @biased_attention(%q: !bhjp, %k: !bhkp, %v: !bhkw, %position: !hjk) -> !bhjw {
    %score = weft.contract "bhjp,bhkp->bhjk" %q, %k {scale = 0.125} : !bhjp, !bhkp -> !bhjk
    %biased = weft.add %score, %position along (h, j, k) : !bhjk, !hjk -> !bhjk
    %probability = weft.softmax %biased over k {empty_row = zero} : !bhjk
    %context = weft.contract "bhjk,bhkw->bhjw" %probability, %v : !bhjk, !bhkw -> !bhjw
    weft.return %context : !bhjw
  }
}
