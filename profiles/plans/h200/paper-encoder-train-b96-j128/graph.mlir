!bji = tensor<96x128x1024xf16, #weft.axes<b, j, i>>
!bju = tensor<96x128x4096xf16, #weft.axes<b, j, u>>
!f32_bj = tensor<96x128xf32, #weft.axes<b, j>>
!hbjk = tensor<16x96x128x128xf16, #weft.axes<h, b, j, k>>
!i = tensor<1024xf16, #weft.axes<i>>
!iu = tensor<1024x4096xf16, #weft.axes<i, u>>
!ph = tensor<64x16xf16, #weft.axes<p, h>>
!phbj = tensor<64x16x96x128xf16, #weft.axes<p, h, b, j>>
!phbj1 = tensor<64x32x96x128xf16, #weft.axes<p, h, b, j>>
!phbk = tensor<64x16x96x128xf16, #weft.axes<p, h, b, k>>
!phi = tensor<64x16x1024xf16, #weft.axes<p, h, i>>
!phi1 = tensor<64x32x1024xf16, #weft.axes<p, h, i>>
!u = tensor<4096xf16, #weft.axes<u>>
!ui = tensor<4096x1024xf16, #weft.axes<u, i>>
!wh = tensor<64x16xf16, #weft.axes<w, h>>
!whbj = tensor<64x16x96x128xf16, #weft.axes<w, h, b, j>>
!whbk = tensor<64x16x96x128xf16, #weft.axes<w, h, b, k>>
!whi = tensor<64x16x1024xf16, #weft.axes<w, h, i>>
module {
  weft.graph @paper_encoder(%x: !bji, %wq: !phi {weft.parameter}, %bq: !ph {weft.parameter}, %wk: !phi {weft.parameter}, %bk: !ph {weft.parameter}, %wv: !whi {weft.parameter}, %bv: !wh {weft.parameter}, %wo: !whi {weft.parameter}, %bo: !i {weft.parameter}, %gamma1: !i {weft.parameter}, %beta1: !i {weft.parameter}, %w1: !ui {weft.parameter}, %b1: !u {weft.parameter}, %w2: !iu {weft.parameter}, %b2: !i {weft.parameter}, %gamma2: !i {weft.parameter}, %beta2: !i {weft.parameter}, %d_norm2: !bji {weft.gradient_of = "norm2"}) -> (!bji, !bji {weft.gradient_of = "x"}, !phi {weft.gradient_of = "wq"}, !ph {weft.gradient_of = "bq"}, !phi {weft.gradient_of = "wk"}, !ph {weft.gradient_of = "bk"}, !whi {weft.gradient_of = "wv"}, !wh {weft.gradient_of = "bv"}, !whi {weft.gradient_of = "wo"}, !i {weft.gradient_of = "bo"}, !i {weft.gradient_of = "gamma1"}, !i {weft.gradient_of = "beta1"}, !ui {weft.gradient_of = "w1"}, !u {weft.gradient_of = "b1"}, !iu {weft.gradient_of = "w2"}, !i {weft.gradient_of = "b2"}, !i {weft.gradient_of = "gamma2"}, !i {weft.gradient_of = "beta2"}) attributes {weft.saved = ["q", "k", "v", "probability", "kept", "weighted", "residual1", "norm1", "mean1", "rstd1", "active_kept", "residual2", "mean2", "rstd2"]} {
    %wq_0 = weft.kernel @transpose_wq (%wq_5 = %wq : !phi) -> !phi layouts ([p, h, i] -> [i, p, h]) attributes {config = {family = "view"}} {
      %wq_6 = weft.identity %wq_5 : !phi
      weft.yield %wq_6 : !phi
    }
    %q = weft.kernel @q_projection_bias (%wq_5 = %wq_0 : !phi, %x_6 = %x : !bji, %bq_7 = %bq : !ph) -> !phbj layouts ([i, p, h], [b, j, i], [p, h] -> [p, h, b, j]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 8 : i64, schedule = "ping-pong", stages = 6 : i64, staging = 2 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %q_product = weft.contract "phi,bji->phbj" %wq_5, %x_6 : !phi, !bji -> !phbj
      %q_8 = weft.bias %q_product, %bq_7 along (p, h) : !phbj, !ph
      weft.yield %q_8 : !phbj
    }
    %wk_1 = weft.kernel @transpose_wk (%wk_5 = %wk : !phi) -> !phi layouts ([p, h, i] -> [i, p, h]) attributes {config = {family = "view"}} {
      %wk_6 = weft.identity %wk_5 : !phi
      weft.yield %wk_6 : !phi
    }
    %k = weft.kernel @k_projection_bias (%wk_5 = %wk_1 : !phi, %x_6 = %x : !bji, %bk_7 = %bk : !ph) -> !phbk layouts ([i, p, h], [b, j, i], [p, h] -> [p, h, b, k]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 8 : i64, schedule = "ping-pong", stages = 6 : i64, staging = 2 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %k_product = weft.contract "phi,bki->phbk" %wk_5, %x_6 : !phi, !bji -> !phbk
      %k_8 = weft.bias %k_product, %bk_7 along (p, h) : !phbk, !ph
      weft.yield %k_8 : !phbk
    }
    %wv_2 = weft.kernel @transpose_wv (%wv_5 = %wv : !whi) -> !whi layouts ([w, h, i] -> [i, w, h]) attributes {config = {family = "view"}} {
      %wv_6 = weft.identity %wv_5 : !whi
      weft.yield %wv_6 : !whi
    }
    %v = weft.kernel @v_projection_bias (%wv_5 = %wv_2 : !whi, %x_6 = %x : !bji, %bv_7 = %bv : !wh) -> !whbk layouts ([i, w, h], [b, j, i], [w, h] -> [w, h, b, k]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 8 : i64, schedule = "ping-pong", stages = 6 : i64, staging = 2 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %v_product = weft.contract "whi,bki->whbk" %wv_5, %x_6 : !whi, !bji -> !whbk
      %v_8 = weft.bias %v_product, %bv_7 along (w, h) : !whbk, !wh
      weft.yield %v_8 : !whbk
    }
    %score = weft.kernel @score_contraction (%k_5 = %k : !phbk, %q_6 = %q : !phbj) -> !hbjk layouts ([p, h, b, k], [p, h, b, j] -> [h, b, j, k]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 8 : i64, schedule = "ping-pong", stages = 6 : i64, staging = 2 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %score_7 = weft.contract "phbk,phbj->hbjk" %k_5, %q_6 {scale = 0.125} : !phbk, !phbj -> !hbjk
      weft.yield %score_7 : !hbjk
    }
    %probability, %kept = weft.kernel @softmax_dropout (%score_5 = %score : !hbjk) -> (!hbjk, !hbjk) layouts ([h, b, j, k] -> [h, b, j, k], [h, b, j, k]) attributes {config = {family = "loop", lane_axis = "k", reduction = "warp", threads = 128 : i64, threads_per_row = 8 : i64, vector_axis = "k", vector_width = 8 : i64}} {
      %probability_6 = weft.softmax %score_5 over k {empty_row = zero} : !hbjk
      %kept_7 = weft.dropout %probability_6 {p = 0.1, stream = 0} : !hbjk
      weft.yield %probability_6, %kept_7 : !hbjk, !hbjk
    }
    %weighted = weft.kernel @weighted_contraction (%v_5 = %v : !whbk, %kept_6 = %kept : !hbjk) -> !whbj layouts ([w, h, b, k], [h, b, j, k] -> [w, h, b, j]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 1 : i64, schedule = "ping-pong", stages = 8 : i64, staging = 2 : i64, tile_m = 64 : i64, tile_n = 128 : i64}} {
      %weighted_7 = weft.contract "whbk,hbjk->whbj" %v_5, %kept_6 : !whbk, !hbjk -> !whbj
      weft.yield %weighted_7 : !whbj
    }
    %wo_3 = weft.kernel @transpose_wo (%wo_5 = %wo : !whi) -> !whi layouts ([w, h, i] -> [i, w, h]) attributes {config = {family = "view"}} {
      %wo_6 = weft.identity %wo_5 : !whi
      weft.yield %wo_6 : !whi
    }
    %residual1 = weft.kernel @attention_projection_bias_dropout_residual (%wo_5 = %wo_3 : !whi, %weighted_6 = %weighted : !whbj, %bo_7 = %bo : !i, %x_8 = %x : !bji) -> !bji layouts ([i, w, h], [w, h, b, j], [i], [b, j, i] -> [b, j, i]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 4 : i64, schedule = "ping-pong", stages = 5 : i64, staging = 4 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %attention_product = weft.contract "whi,whbj->bji" %wo_5, %weighted_6 : !whi, !whbj -> !bji
      %attention = weft.bias %attention_product, %bo_7 along (i) : !bji, !i
      %attention_kept = weft.dropout %attention {p = 0.1, stream = 1} : !bji
      %residual1_9 = weft.residual %attention_kept, %x_8 : !bji
      weft.yield %residual1_9 : !bji
    }
    %norm1, %mean1, %rstd1 = weft.kernel @layer_norm (%residual1_5 = %residual1 : !bji, %gamma1_6 = %gamma1 : !i, %beta1_7 = %beta1 : !i) -> (!bji, !f32_bj, !f32_bj) layouts ([b, j, i], [i], [i] -> [b, j, i], [b, j], [b, j]) attributes {config = {family = "loop", lane_axis = "i", reduction = "block", threads = 128 : i64, threads_per_row = 128 : i64, vector_axis = "i", vector_width = 8 : i64}} {
      %norm1_8, %mean1_9, %rstd1_10 = weft.layer_norm %residual1_5, %gamma1_6, %beta1_7 over i {epsilon = 1.0e-05} : !bji, !i, !i -> !bji, !f32_bj, !f32_bj
      weft.yield %norm1_8, %mean1_9, %rstd1_10 : !bji, !f32_bj, !f32_bj
    }
    %active_kept = weft.kernel @hidden_projection_bias_relu_dropout (%w1_5 = %w1 : !ui, %norm1_6 = %norm1 : !bji, %b1_7 = %b1 : !u) -> !bju layouts ([u, i], [b, j, i], [u] -> [b, j, u]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 8 : i64, schedule = "ping-pong", stages = 4 : i64, staging = 4 : i64, tile_m = 128 : i64, tile_n = 192 : i64}} {
      %hidden_product = weft.contract "ui,bji->bju" %w1_5, %norm1_6 : !ui, !bji -> !bju
      %hidden = weft.bias %hidden_product, %b1_7 along (u) : !bju, !u
      %active = weft.relu %hidden : !bju
      %active_kept_8 = weft.dropout %active {p = 0.1, stream = 2} : !bju
      weft.yield %active_kept_8 : !bju
    }
    %w2_4 = weft.kernel @transpose_w2 (%w2_5 = %w2 : !iu) -> !iu layouts ([i, u] -> [u, i]) attributes {config = {family = "view"}} {
      %w2_6 = weft.identity %w2_5 : !iu
      weft.yield %w2_6 : !iu
    }
    %feed_forward_product = weft.kernel @feed_forward_projection (%w2_5 = %w2_4 : !iu, %active_kept_6 = %active_kept : !bju) -> !bji layouts ([u, i], [b, j, u] -> [b, j, i]) attributes {config = {algorithm = 66 : i64, cluster_shape = 5 : i64, custom_option = 7 : i64, family = "cublaslt", inner_shape = 0 : i64, library_version = 130100 : i64, reduction_scheme = 0 : i64, split_k = 1 : i64, stages = 35 : i64, swizzle = 0 : i64, tile = 24 : i64, workspace_bytes = 4 : i64}} {
      %feed_forward_product_7 = weft.contract "iu,bju->bji" %w2_5, %active_kept_6 : !iu, !bju -> !bji
      weft.yield %feed_forward_product_7 : !bji
    }
    %residual2, %norm2, %mean2, %rstd2 = weft.kernel @bias_dropout_residual_layer_norm (%feed_forward_product_5 = %feed_forward_product : !bji, %b2_6 = %b2 : !i, %norm1_7 = %norm1 : !bji, %gamma2_8 = %gamma2 : !i, %beta2_9 = %beta2 : !i) -> (!bji, !bji, !f32_bj, !f32_bj) layouts ([b, j, i], [i], [b, j, i], [i], [i] -> [b, j, i], [b, j, i], [b, j], [b, j]) attributes {config = {family = "loop", lane_axis = "i", reduction = "block", threads = 64 : i64, threads_per_row = 64 : i64, vector_axis = "i", vector_width = 8 : i64}} {
      %feed_forward = weft.bias %feed_forward_product_5, %b2_6 along (i) : !bji, !i
      %feed_forward_kept = weft.dropout %feed_forward {p = 0.1, stream = 3} : !bji
      %residual2_10 = weft.residual %feed_forward_kept, %norm1_7 : !bji
      %norm2_11, %mean2_12, %rstd2_13 = weft.layer_norm %residual2_10, %gamma2_8, %beta2_9 over i {epsilon = 1.0e-05} : !bji, !i, !i -> !bji, !f32_bj, !f32_bj
      weft.yield %residual2_10, %norm2_11, %mean2_12, %rstd2_13 : !bji, !bji, !f32_bj, !f32_bj
    }
    %wq_wk = weft.kernel @concat (%wq_5 = %wq_0 : !phi, %wk_6 = %wk_1 : !phi) -> !phi1 layouts ([p, h, i], [p, h, i] -> [p, h, i]) attributes {config = {family = "view"}} {
      %wq_wk_7 = weft.concat %wq_5, %wk_6 {axis = h} : !phi -> !phi1
      weft.yield %wq_wk_7 : !phi1
    }
    %d_residual2 = weft.kernel @layer_norm_dx (%d_norm2_5 = %d_norm2 : !bji, %residual2_6 = %residual2 : !bji, %gamma2_7 = %gamma2 : !i, %mean2_8 = %mean2 : !f32_bj, %rstd2_9 = %rstd2 : !f32_bj) -> !bji layouts ([b, j, i], [b, j, i], [i], [b, j], [b, j] -> [b, j, i]) attributes {config = {family = "loop", lane_axis = "i", reduction = "block", threads = 128 : i64, threads_per_row = 128 : i64, vector_axis = "i", vector_width = 4 : i64}} {
      %d_residual2_10 = weft.layer_norm_dx %d_norm2_5, %residual2_6, %gamma2_7, %mean2_8, %rstd2_9 over i : !bji, !bji, !i, !f32_bj, !f32_bj
      weft.yield %d_residual2_10 : !bji
    }
    %d_gamma2, %d_beta2, %d_feed_forward, %d_b2 = weft.kernel @layer_norm_dw_dropout_reduce (%d_norm2_5 = %d_norm2 : !bji, %residual2_6 = %residual2 : !bji, %mean2_7 = %mean2 : !f32_bj, %rstd2_8 = %rstd2 : !f32_bj, %d_residual2_9 = %d_residual2 : !bji) -> (!i, !i, !bji, !i) layouts ([b, j, i], [b, j, i], [b, j], [b, j], [b, j, i] -> [i], [i], [b, j, i], [i]) attributes {config = {blocks_per_row = 16 : i64, family = "loop", lane_axis = "i", reduction = "grid-columns", threads = 512 : i64, threads_per_row = 64 : i64, vector_axis = "i", vector_width = 16 : i64}} {
      %d_gamma2_10, %d_beta2_11 = weft.layer_norm_dw %d_norm2_5, %residual2_6, %mean2_7, %rstd2_8 over b, j : !bji, !bji, !f32_bj, !f32_bj -> !i, !i
      %d_feed_forward_12 = weft.dropout %d_residual2_9 {p = 0.1, stream = 3} : !bji
      %d_b2_13 = weft.reduce sum %d_feed_forward_12 over b, j : !bji -> !i
      weft.yield %d_gamma2_10, %d_beta2_11, %d_feed_forward_12, %d_b2_13 : !i, !i, !bji, !i
    }
    %d_w2 = weft.kernel @d_w2_contraction (%d_feed_forward_5 = %d_feed_forward : !bji, %active_kept_6 = %active_kept : !bju) -> !iu layouts ([b, j, i], [b, j, u] -> [i, u]) attributes {config = {algorithm = 66 : i64, cluster_shape = 3 : i64, custom_option = 4 : i64, family = "cublaslt", inner_shape = 0 : i64, library_version = 130100 : i64, reduction_scheme = 0 : i64, split_k = 1 : i64, stages = 35 : i64, swizzle = 0 : i64, tile = 23 : i64, workspace_bytes = 0 : i64}} {
      %d_w2_7 = weft.contract "bji,bju->iu" %d_feed_forward_5, %active_kept_6 : !bji, !bju -> !iu
      weft.yield %d_w2_7 : !iu
    }
    %d_hidden = weft.kernel @d_active_kept_projection_dropout_relu_dx (%w2_5 = %w2_4 : !iu, %d_feed_forward_6 = %d_feed_forward : !bji, %active_kept_7 = %active_kept : !bju) -> !bju layouts ([i, u], [b, j, i], [b, j, u] -> [b, j, u]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 4 : i64, schedule = "ping-pong", stages = 4 : i64, staging = 4 : i64, tile_m = 128 : i64, tile_n = 192 : i64}} {
      %d_active_kept = weft.contract "iu,bji->bju" %w2_5, %d_feed_forward_6 : !iu, !bji -> !bju
      %d_active = weft.dropout %d_active_kept {p = 0.1, stream = 2} : !bju
      %d_hidden_8 = weft.relu_dx %d_active, %active_kept_7 : !bju
      weft.yield %d_hidden_8 : !bju
    }
    %d_w1, %d_b1 = weft.kernel @reduce_d_w1_contraction (%d_hidden_5 = %d_hidden : !bju, %norm1_6 = %norm1 : !bji) -> (!ui, !u) layouts ([b, j, u], [b, j, i] -> [u, i], [u]) attributes {config = {algorithm = 39 : i64, cluster_shape = 3 : i64, custom_option = 0 : i64, family = "cublaslt", inner_shape = 0 : i64, library_version = 130100 : i64, reduction_scheme = 0 : i64, split_k = 1 : i64, stages = 35 : i64, swizzle = 1 : i64, tile = 24 : i64, workspace_bytes = 0 : i64}} {
      %d_w1_7 = weft.contract "bju,bji->ui" %d_hidden_5, %norm1_6 : !bju, !bji -> !ui
      %d_b1_8 = weft.reduce sum %d_hidden_5 over b, j : !bju -> !u
      weft.yield %d_w1_7, %d_b1_8 : !ui, !u
    }
    %d_norm1 = weft.kernel @d_norm1_hidden_projection_add (%w1_5 = %w1 : !ui, %d_hidden_6 = %d_hidden : !bju, %d_residual2_7 = %d_residual2 : !bji) -> !bji layouts ([u, i], [b, j, u], [b, j, i] -> [b, j, i]) attributes {config = {algorithm = 66 : i64, cluster_shape = 5 : i64, custom_option = 7 : i64, family = "cublaslt", inner_shape = 0 : i64, library_version = 130100 : i64, reduction_scheme = 0 : i64, split_k = 1 : i64, stages = 35 : i64, swizzle = 0 : i64, tile = 24 : i64, workspace_bytes = 4 : i64}} {
      %d_norm1_hidden_product = weft.contract "ui,bju->bji" %w1_5, %d_hidden_6 : !ui, !bju -> !bji
      %d_norm1_8 = weft.add %d_residual2_7, %d_norm1_hidden_product : !bji
      weft.yield %d_norm1_8 : !bji
    }
    %d_gamma1, %d_beta1 = weft.kernel @layer_norm_dw (%d_norm1_5 = %d_norm1 : !bji, %residual1_6 = %residual1 : !bji, %mean1_7 = %mean1 : !f32_bj, %rstd1_8 = %rstd1 : !f32_bj) -> (!i, !i) layouts ([b, j, i], [b, j, i], [b, j], [b, j] -> [i], [i]) attributes {config = {blocks_per_row = 16 : i64, family = "loop", lane_axis = "i", reduction = "grid-columns", threads = 512 : i64, threads_per_row = 32 : i64, vector_axis = "i", vector_width = 4 : i64}} {
      %d_gamma1_9, %d_beta1_10 = weft.layer_norm_dw %d_norm1_5, %residual1_6, %mean1_7, %rstd1_8 over b, j : !bji, !bji, !f32_bj, !f32_bj -> !i, !i
      weft.yield %d_gamma1_9, %d_beta1_10 : !i, !i
    }
    %d_residual1, %d_attention = weft.kernel @layer_norm_dx_dropout (%d_norm1_5 = %d_norm1 : !bji, %residual1_6 = %residual1 : !bji, %gamma1_7 = %gamma1 : !i, %mean1_8 = %mean1 : !f32_bj, %rstd1_9 = %rstd1 : !f32_bj) -> (!bji, !bji) layouts ([b, j, i], [b, j, i], [i], [b, j], [b, j] -> [b, j, i], [b, j, i]) attributes {config = {family = "loop", lane_axis = "i", reduction = "block", threads = 64 : i64, threads_per_row = 64 : i64, vector_axis = "i", vector_width = 16 : i64}} {
      %d_residual1_10 = weft.layer_norm_dx %d_norm1_5, %residual1_6, %gamma1_7, %mean1_8, %rstd1_9 over i : !bji, !bji, !i, !f32_bj, !f32_bj
      %d_attention_11 = weft.dropout %d_residual1_10 {p = 0.1, stream = 1} : !bji
      weft.yield %d_residual1_10, %d_attention_11 : !bji, !bji
    }
    %d_bo = weft.kernel @reduce (%d_attention_5 = %d_attention : !bji) -> !i layouts ([b, j, i] -> [i]) attributes {config = {blocks_per_row = 64 : i64, family = "loop", lane_axis = "i", reduction = "grid-columns", threads = 256 : i64, threads_per_row = 8 : i64, vector_axis = "i", vector_width = 4 : i64}} {
      %d_bo_6 = weft.reduce sum %d_attention_5 over b, j : !bji -> !i
      weft.yield %d_bo_6 : !i
    }
    %d_wo = weft.kernel @d_wo_contraction (%d_attention_5 = %d_attention : !bji, %weighted_6 = %weighted : !whbj) -> !whi layouts ([b, j, i], [w, h, b, j] -> [w, h, i]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 8 : i64, schedule = "ping-pong", stages = 8 : i64, staging = 2 : i64, tile_m = 64 : i64, tile_n = 128 : i64}} {
      %d_wo_7 = weft.contract "bji,whbj->whi" %d_attention_5, %weighted_6 : !bji, !whbj -> !whi
      weft.yield %d_wo_7 : !whi
    }
    %d_weighted = weft.kernel @d_weighted_projection (%wo_5 = %wo_3 : !whi, %d_attention_6 = %d_attention : !bji) -> !whbj layouts ([w, h, i], [b, j, i] -> [w, h, b, j]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 8 : i64, schedule = "ping-pong", stages = 6 : i64, staging = 2 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %d_weighted_7 = weft.contract "whi,bji->whbj" %wo_5, %d_attention_6 : !whi, !bji -> !whbj
      weft.yield %d_weighted_7 : !whbj
    }
    %d_v = weft.kernel @d_v_contraction (%d_weighted_5 = %d_weighted : !whbj, %kept_6 = %kept : !hbjk) -> !whbk layouts ([w, h, b, j], [h, b, j, k] -> [w, h, b, k]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 8 : i64, schedule = "ping-pong", stages = 8 : i64, staging = 2 : i64, tile_m = 64 : i64, tile_n = 128 : i64}} {
      %d_v_7 = weft.contract "whbj,hbjk->whbk" %d_weighted_5, %kept_6 : !whbj, !hbjk -> !whbk
      weft.yield %d_v_7 : !whbk
    }
    %d_kept = weft.kernel @d_kept_contraction (%v_5 = %v : !whbk, %d_weighted_6 = %d_weighted : !whbj) -> !hbjk layouts ([w, h, b, k], [w, h, b, j] -> [h, b, j, k]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 8 : i64, schedule = "ping-pong", stages = 6 : i64, staging = 2 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %d_kept_7 = weft.contract "whbk,whbj->hbjk" %v_5, %d_weighted_6 : !whbk, !whbj -> !hbjk
      weft.yield %d_kept_7 : !hbjk
    }
    %d_score = weft.kernel @dropout_softmax_dx (%d_kept_5 = %d_kept : !hbjk, %probability_6 = %probability : !hbjk) -> !hbjk layouts ([h, b, j, k], [h, b, j, k] -> [h, b, j, k]) attributes {config = {family = "loop", lane_axis = "k", reduction = "warp", threads = 128 : i64, threads_per_row = 16 : i64, vector_axis = "k", vector_width = 8 : i64}} {
      %d_probability = weft.dropout %d_kept_5 {p = 0.1, stream = 0} : !hbjk
      %d_score_7 = weft.softmax_dx %d_probability, %probability_6 over k : !hbjk
      weft.yield %d_score_7 : !hbjk
    }
    %d_k = weft.kernel @d_k_contraction (%d_score_5 = %d_score : !hbjk, %q_6 = %q : !phbj) -> !phbk layouts ([h, b, j, k], [p, h, b, j] -> [p, h, b, k] strides [393216, 12288, 128, 1]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 4 : i64, schedule = "ping-pong", stages = 8 : i64, staging = 2 : i64, tile_m = 64 : i64, tile_n = 128 : i64}} {
      %d_k_7 = weft.contract "hbjk,phbj->phbk" %d_score_5, %q_6 {scale = 0.125} : !hbjk, !phbj -> !phbk
      weft.yield %d_k_7 : !phbk
    }
    %d_q = weft.kernel @d_q_contraction (%k_5 = %k : !phbk, %d_score_6 = %d_score : !hbjk) -> !phbj layouts ([p, h, b, k], [h, b, j, k] -> [p, h, b, j] strides [393216, 12288, 128, 1]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 1 : i64, schedule = "ping-pong", stages = 8 : i64, staging = 2 : i64, tile_m = 64 : i64, tile_n = 128 : i64}} {
      %d_q_7 = weft.contract "phbk,hbjk->phbj" %k_5, %d_score_6 {scale = 0.125} : !phbk, !hbjk -> !phbj
      weft.yield %d_q_7 : !phbj
    }
    %d_q_d_k = weft.kernel @concat_2 (%d_q_5 = %d_q : !phbj, %d_k_6 = %d_k : !phbk) -> !phbj1 layouts ([p, h, b, j] strides [393216, 12288, 128, 1], [p, h, b, k] strides [393216, 12288, 128, 1] offset 196608 -> [p, h, b, j]) attributes {config = {family = "view"}} {
      %d_q_d_k_7 = weft.concat %d_q_5, %d_k_6 {axis = h} : !phbj, !phbk -> !phbj1
      weft.yield %d_q_d_k_7 : !phbj1
    }
    %d_wq_d_wk = weft.kernel @d_wq_d_wk_contraction (%d_q_d_k_5 = %d_q_d_k : !phbj1, %x_6 = %x : !bji) -> !phi1 layouts ([p, h, b, j], [b, j, i] -> [p, h, i]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 8 : i64, schedule = "ping-pong", stages = 4 : i64, staging = 4 : i64, tile_m = 64 : i64, tile_n = 256 : i64}} {
      %d_wq_d_wk_7 = weft.contract "phbj,bji->phi" %d_q_d_k_5, %x_6 : !phbj1, !bji -> !phi1
      weft.yield %d_wq_d_wk_7 : !phi1
    }
    %d_wq = weft.kernel @slice (%d_wq_d_wk_5 = %d_wq_d_wk : !phi1) -> !phi layouts ([p, h, i] -> [p, h, i]) attributes {config = {family = "loop", lane_axis = "i", reduction = "none", threads = 128 : i64, threads_per_row = 1 : i64, vector_axis = "i", vector_width = 8 : i64}} {
      %d_wq_6 = weft.slice %d_wq_d_wk_5 {axis = h, size = 16, start = 0} : !phi1 -> !phi
      weft.yield %d_wq_6 : !phi
    }
    %d_wk = weft.kernel @slice_2 (%d_wq_d_wk_5 = %d_wq_d_wk : !phi1) -> !phi layouts ([p, h, i] -> [p, h, i]) attributes {config = {family = "loop", lane_axis = "i", reduction = "none", threads = 256 : i64, threads_per_row = 1 : i64, vector_axis = "i", vector_width = 8 : i64}} {
      %d_wk_6 = weft.slice %d_wq_d_wk_5 {axis = h, size = 16, start = 16} : !phi1 -> !phi
      weft.yield %d_wk_6 : !phi
    }
    %d_wv = weft.kernel @d_wv_contraction (%d_v_5 = %d_v : !whbk, %x_6 = %x : !bji) -> !whi layouts ([w, h, b, k], [b, j, i] -> [w, h, i]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 8 : i64, schedule = "ping-pong", stages = 8 : i64, staging = 2 : i64, tile_m = 64 : i64, tile_n = 128 : i64}} {
      %d_wv_7 = weft.contract "whbk,bki->whi" %d_v_5, %x_6 : !whbk, !bji -> !whi
      weft.yield %d_wv_7 : !whi
    }
    %d_bv, %d_bk, %d_bq = weft.kernel @reduce_x3 (%d_v_5 = %d_v : !whbk, %d_k_6 = %d_k : !phbk, %d_q_7 = %d_q : !phbj) -> (!wh, !ph, !ph) layouts ([w, h, b, k], [p, h, b, k] strides [393216, 12288, 128, 1], [p, h, b, j] strides [393216, 12288, 128, 1] -> [w, h], [p, h], [p, h]) attributes {config = {family = "loop", lane_axis = "k", reduction = "block", threads = 512 : i64, threads_per_row = 512 : i64, vector_axis = "k", vector_width = 8 : i64}} {
      %d_bv_8 = weft.reduce sum %d_v_5 over b, k : !whbk -> !wh
      %d_bk_9 = weft.reduce sum %d_k_6 over b, k : !phbk -> !ph
      %d_bq_10 = weft.reduce sum %d_q_7 over b, j : !phbj -> !ph
      weft.yield %d_bv_8, %d_bk_9, %d_bq_10 : !wh, !ph, !ph
    }
    %d_x_sum = weft.kernel @d_x_v_projection_add (%wv_5 = %wv_2 : !whi, %d_v_6 = %d_v : !whbk, %d_residual1_7 = %d_residual1 : !bji) -> !bji layouts ([w, h, i], [w, h, b, k], [b, j, i] -> [b, j, i]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 4 : i64, schedule = "ping-pong", stages = 5 : i64, staging = 4 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %d_x_v_product = weft.contract "whi,whbk->bki" %wv_5, %d_v_6 : !whi, !whbk -> !bji
      %d_x_sum_8 = weft.add %d_residual1_7, %d_x_v_product : !bji
      weft.yield %d_x_sum_8 : !bji
    }
    %d_x = weft.kernel @d_x_q_product_d_x_k_projection_add (%wq_wk_5 = %wq_wk : !phi1, %d_q_d_k_6 = %d_q_d_k : !phbj1, %d_x_sum_7 = %d_x_sum : !bji) -> !bji layouts ([p, h, i], [p, h, b, j], [b, j, i] -> [b, j, i]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 4 : i64, schedule = "ping-pong", stages = 5 : i64, staging = 4 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %d_x_q_product_d_x_k_product = weft.contract "phi,phbj->bji" %wq_wk_5, %d_q_d_k_6 : !phi1, !phbj1 -> !bji
      %d_x_8 = weft.add %d_x_sum_7, %d_x_q_product_d_x_k_product : !bji
      weft.yield %d_x_8 : !bji
    }
    weft.return %norm2, %d_x, %d_wq, %d_bq, %d_wk, %d_bk, %d_wv, %d_bv, %d_wo, %d_bo, %d_gamma1, %d_beta1, %d_w1, %d_b1, %d_w2, %d_b2, %d_gamma2, %d_beta2 : !bji, !bji, !phi, !ph, !phi, !ph, !whi, !wh, !whi, !i, !i, !i, !ui, !u, !iu, !i, !i, !i
  }
}

