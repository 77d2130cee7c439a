// A gated feed-forward block (SwiGLU) between two RMS norms. The sum of block and input is wanted
// twice: as a result, and by the norm of the next block.
//   weft compile examples/gated_feed_forward.mlir --no-library --stop-after emit -o out
//   weft explain out
// Five launches for eight ops: gate_up_projection is one GEMM of stacked weights, silu_mul reads
// its halves where they lie, down_projection_residual ends with the residual, which it stores once.
!bi = tensor<512x1024xf16, #weft.axes<b, i>>
!bu = tensor<512x2816xf16, #weft.axes<b, u>>
!ui = tensor<2816x1024xf16, #weft.axes<u, i>>
!iu = tensor<1024x2816xf16, #weft.axes<i, u>>
!i = tensor<1024xf16, #weft.axes<i>>
module {
  weft.graph @gated_feed_forward(
      %x: !bi, %gamma: !i {weft.parameter}, %w_gate: !ui {weft.parameter},
      %w_up: !ui {weft.parameter}, %w_down: !iu {weft.parameter},
      %gamma_next: !i {weft.parameter}) -> (!bi, !bi) {
    %norm = weft.rms_norm %x, %gamma over i {epsilon = 1.0e-05} : !bi, !i
    %gate = weft.contract "bi,ui->bu" %norm, %w_gate : !bi, !ui -> !bu
    %up = weft.contract "bi,ui->bu" %norm, %w_up : !bi, !ui -> !bu
    %active = weft.silu %gate : !bu
    %gated = weft.mul %active, %up : !bu
    %down = weft.contract "bu,iu->bi" %gated, %w_down : !bu, !iu -> !bi
    %residual = weft.residual %down, %x : !bi
    %next = weft.rms_norm %residual, %gamma_next over i {epsilon = 1.0e-05} : !bi, !i
    weft.return %residual, %next : !bi, !bi
  }
}
