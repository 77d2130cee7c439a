!bji = tensor<8x512x1024xf16, #weft.axes<b, j, i>>
!bju = tensor<8x512x4096xf16, #weft.axes<b, j, u>>
!f32_bj = tensor<8x512xf32, #weft.axes<b, j>>
!hbjk = tensor<16x8x512x512xf16, #weft.axes<h, b, j, k>>
!i = tensor<1024xf16, #weft.axes<i>>
!iu = tensor<1024x4096xf16, #weft.axes<i, u>>
!ph = tensor<64x16xf16, #weft.axes<p, h>>
!phbj = tensor<64x16x8x512xf16, #weft.axes<p, h, b, j>>
!phbj1 = tensor<64x48x8x512xf16, #weft.axes<p, h, b, j>>
!phbk = tensor<64x16x8x512xf16, #weft.axes<p, h, b, k>>
!phi = tensor<64x16x1024xf16, #weft.axes<p, h, i>>
!phi1 = tensor<64x48x1024xf16, #weft.axes<p, h, i>>
!u = tensor<4096xf16, #weft.axes<u>>
!ui = tensor<4096x1024xf16, #weft.axes<u, i>>
!wh = tensor<64x16xf16, #weft.axes<w, h>>
!whbj = tensor<64x16x8x512xf16, #weft.axes<w, h, b, j>>
!whbk = tensor<64x16x8x512xf16, #weft.axes<w, h, b, k>>
!whi = tensor<64x16x1024xf16, #weft.axes<w, h, i>>
module {
  weft.graph @paper_encoder(%x: !bji, %wq: !phi {weft.parameter}, %bq: !ph {weft.parameter}, %wk: !phi {weft.parameter}, %bk: !ph {weft.parameter}, %wv: !whi {weft.parameter}, %bv: !wh {weft.parameter}, %wo: !whi {weft.parameter}, %bo: !i {weft.parameter}, %gamma1: !i {weft.parameter}, %beta1: !i {weft.parameter}, %w1: !ui {weft.parameter}, %b1: !u {weft.parameter}, %w2: !iu {weft.parameter}, %b2: !i {weft.parameter}, %gamma2: !i {weft.parameter}, %beta2: !i {weft.parameter}, %d_norm2: !bji {weft.gradient_of = "norm2"}) -> (!bji, !bji {weft.gradient_of = "x"}, !phi {weft.gradient_of = "wq"}, !ph {weft.gradient_of = "bq"}, !phi {weft.gradient_of = "wk"}, !ph {weft.gradient_of = "bk"}, !whi {weft.gradient_of = "wv"}, !wh {weft.gradient_of = "bv"}, !whi {weft.gradient_of = "wo"}, !i {weft.gradient_of = "bo"}, !i {weft.gradient_of = "gamma1"}, !i {weft.gradient_of = "beta1"}, !ui {weft.gradient_of = "w1"}, !u {weft.gradient_of = "b1"}, !iu {weft.gradient_of = "w2"}, !i {weft.gradient_of = "b2"}, !i {weft.gradient_of = "gamma2"}, !i {weft.gradient_of = "beta2"}) attributes {weft.saved = ["q", "k", "v", "probability", "kept", "weighted", "residual1", "norm1", "mean1", "rstd1", "active_kept", "residual2", "mean2", "rstd2"]} {
    %wq_0 = weft.kernel @transpose_wq (%wq_6 = %wq : !phi) -> !phi layouts ([p, h, i] -> [i, p, h]) attributes {config = {family = "view"}} {
      %wq_7 = weft.identity %wq_6 : !phi
      weft.yield %wq_7 : !phi
    }
    %q = weft.kernel @q_projection_bias (%wq_6 = %wq_0 : !phi, %x_7 = %x : !bji, %bq_8 = %bq : !ph) -> !phbj layouts ([i, p, h], [b, j, i], [p, h] -> [p, h, b, j]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 8 : i64, schedule = "ping-pong", stages = 6 : i64, staging = 2 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %q_product = weft.contract "phi,bji->phbj" %wq_6, %x_7 : !phi, !bji -> !phbj
      %q_9 = weft.bias %q_product, %bq_8 along (p, h) : !phbj, !ph
      weft.yield %q_9 : !phbj
    }
    %wk_1 = weft.kernel @transpose_wk (%wk_6 = %wk : !phi) -> !phi layouts ([p, h, i] -> [i, p, h]) attributes {config = {family = "view"}} {
      %wk_7 = weft.identity %wk_6 : !phi
      weft.yield %wk_7 : !phi
    }
    %k = weft.kernel @k_projection_bias (%wk_6 = %wk_1 : !phi, %x_7 = %x : !bji, %bk_8 = %bk : !ph) -> !phbk layouts ([i, p, h], [b, j, i], [p, h] -> [p, h, b, k]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 8 : i64, schedule = "ping-pong", stages = 6 : i64, staging = 2 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %k_product = weft.contract "phi,bki->phbk" %wk_6, %x_7 : !phi, !bji -> !phbk
      %k_9 = weft.bias %k_product, %bk_8 along (p, h) : !phbk, !ph
      weft.yield %k_9 : !phbk
    }
    %wv_2 = weft.kernel @transpose_wv (%wv_6 = %wv : !whi) -> !whi layouts ([w, h, i] -> [i, w, h]) attributes {config = {family = "view"}} {
      %wv_7 = weft.identity %wv_6 : !whi
      weft.yield %wv_7 : !whi
    }
    %v = weft.kernel @v_projection_bias (%wv_6 = %wv_2 : !whi, %x_7 = %x : !bji, %bv_8 = %bv : !wh) -> !whbk layouts ([i, w, h], [b, j, i], [w, h] -> [w, h, b, k]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 8 : i64, schedule = "ping-pong", stages = 6 : i64, staging = 2 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %v_product = weft.contract "whi,bki->whbk" %wv_6, %x_7 : !whi, !bji -> !whbk
      %v_9 = weft.bias %v_product, %bv_8 along (w, h) : !whbk, !wh
      weft.yield %v_9 : !whbk
    }
    %score = weft.kernel @score_contraction (%k_6 = %k : !phbk, %q_7 = %q : !phbj) -> !hbjk layouts ([p, h, b, k], [p, h, b, j] -> [h, b, j, k]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 8 : i64, schedule = "ping-pong", stages = 6 : i64, staging = 2 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %score_8 = weft.contract "phbk,phbj->hbjk" %k_6, %q_7 {scale = 0.125} : !phbk, !phbj -> !hbjk
      weft.yield %score_8 : !hbjk
    }
    %probability, %kept = weft.kernel @softmax_dropout (%score_6 = %score : !hbjk) -> (!hbjk, !hbjk) layouts ([h, b, j, k] -> [h, b, j, k], [h, b, j, k]) attributes {config = {family = "loop", lane_axis = "k", reduction = "warp", threads = 128 : i64, threads_per_row = 32 : i64, vector_axis = "k", vector_width = 8 : i64}} {
      %probability_7 = weft.softmax %score_6 over k {empty_row = zero} : !hbjk
      %kept_8 = weft.dropout %probability_7 {p = 0.1, stream = 0} : !hbjk
      weft.yield %probability_7, %kept_8 : !hbjk, !hbjk
    }
    %weighted = weft.kernel @weighted_contraction (%v_6 = %v : !whbk, %kept_7 = %kept : !hbjk) -> !whbj layouts ([w, h, b, k], [h, b, j, k] -> [w, h, b, j]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 8 : i64, schedule = "ping-pong", stages = 8 : i64, staging = 2 : i64, tile_m = 64 : i64, tile_n = 128 : i64}} {
      %weighted_8 = weft.contract "whbk,hbjk->whbj" %v_6, %kept_7 : !whbk, !hbjk -> !whbj
      weft.yield %weighted_8 : !whbj
    }
    %attention = weft.kernel @attention_projection_bias (%wo_6 = %wo : !whi, %weighted_7 = %weighted : !whbj, %bo_8 = %bo : !i) -> !bji layouts ([w, h, i], [w, h, b, j], [i] -> [b, j, i]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 8 : i64, schedule = "ping-pong", stages = 6 : i64, staging = 2 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %attention_product = weft.contract "whi,whbj->bji" %wo_6, %weighted_7 : !whi, !whbj -> !bji
      %attention_9 = weft.bias %attention_product, %bo_8 along (i) : !bji, !i
      weft.yield %attention_9 : !bji
    }
    %residual1, %norm1, %mean1, %rstd1 = weft.kernel @dropout_residual_layer_norm (%attention_6 = %attention : !bji, %x_7 = %x : !bji, %gamma1_8 = %gamma1 : !i, %beta1_9 = %beta1 : !i) -> (!bji, !bji, !f32_bj, !f32_bj) layouts ([b, j, i], [b, j, i], [i], [i] -> [b, j, i], [b, j, i], [b, j], [b, j]) attributes {config = {family = "loop", lane_axis = "i", reduction = "warp", threads = 64 : i64, threads_per_row = 32 : i64, vector_axis = "i", vector_width = 2 : i64}} {
      %attention_kept = weft.dropout %attention_6 {p = 0.1, stream = 1} : !bji
      %residual1_10 = weft.residual %attention_kept, %x_7 : !bji
      %norm1_11, %mean1_12, %rstd1_13 = weft.layer_norm %residual1_10, %gamma1_8, %beta1_9 over i {epsilon = 1.0e-05} : !bji, !i, !i -> !bji, !f32_bj, !f32_bj
      weft.yield %residual1_10, %norm1_11, %mean1_12, %rstd1_13 : !bji, !bji, !f32_bj, !f32_bj
    }
    %w1_3 = weft.kernel @transpose_w1 (%w1_6 = %w1 : !ui) -> !ui layouts ([u, i] -> [i, u]) attributes {config = {family = "view"}} {
      %w1_7 = weft.identity %w1_6 : !ui
      weft.yield %w1_7 : !ui
    }
    %active_kept = weft.kernel @hidden_projection_bias_relu_dropout (%w1_6 = %w1_3 : !ui, %norm1_7 = %norm1 : !bji, %b1_8 = %b1 : !u) -> !bju layouts ([i, u], [b, j, i], [u] -> [b, j, u]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 4 : i64, schedule = "ping-pong", stages = 6 : i64, staging = 2 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %hidden_product = weft.contract "ui,bji->bju" %w1_6, %norm1_7 : !ui, !bji -> !bju
      %hidden = weft.bias %hidden_product, %b1_8 along (u) : !bju, !u
      %active = weft.relu %hidden : !bju
      %active_kept_9 = weft.dropout %active {p = 0.1, stream = 2} : !bju
      weft.yield %active_kept_9 : !bju
    }
    %residual2 = weft.kernel @feed_forward_projection_bias_dropout_residual (%w2_6 = %w2 : !iu, %active_kept_7 = %active_kept : !bju, %b2_8 = %b2 : !i, %norm1_9 = %norm1 : !bji) -> !bji layouts ([i, u], [b, j, u], [i], [b, j, i] -> [b, j, i]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 8 : i64, schedule = "cooperative", stages = 3 : i64, staging = 4 : i64, tile_m = 128 : i64, tile_n = 256 : i64}} {
      %feed_forward_product = weft.contract "iu,bju->bji" %w2_6, %active_kept_7 : !iu, !bju -> !bji
      %feed_forward = weft.bias %feed_forward_product, %b2_8 along (i) : !bji, !i
      %feed_forward_kept = weft.dropout %feed_forward {p = 0.1, stream = 3} : !bji
      %residual2_10 = weft.residual %feed_forward_kept, %norm1_9 : !bji
      weft.yield %residual2_10 : !bji
    }
    %norm2, %mean2, %rstd2 = weft.kernel @layer_norm (%residual2_6 = %residual2 : !bji, %gamma2_7 = %gamma2 : !i, %beta2_8 = %beta2 : !i) -> (!bji, !f32_bj, !f32_bj) layouts ([b, j, i], [i], [i] -> [b, j, i], [b, j], [b, j]) attributes {config = {family = "loop", lane_axis = "i", reduction = "warp", threads = 128 : i64, threads_per_row = 32 : i64, vector_axis = "i", vector_width = 4 : i64}} {
      %norm2_9, %mean2_10, %rstd2_11 = weft.layer_norm %residual2_6, %gamma2_7, %beta2_8 over i {epsilon = 1.0e-05} : !bji, !i, !i -> !bji, !f32_bj, !f32_bj
      weft.yield %norm2_9, %mean2_10, %rstd2_11 : !bji, !f32_bj, !f32_bj
    }
    %wq_wk_wv = weft.kernel @concat (%wq_6 = %wq_0 : !phi, %wk_7 = %wk_1 : !phi, %wv_8 = %wv_2 : !whi) -> !phi1 layouts ([p, h, i], [p, h, i], [w, h, i] -> [p, h, i]) attributes {config = {family = "view"}} {
      %wq_wk_wv_9 = weft.concat %wq_6, %wk_7, %wv_8 {axis = h} : !phi, !phi, !whi -> !phi1
      weft.yield %wq_wk_wv_9 : !phi1
    }
    %d_residual2, %d_feed_forward = weft.kernel @layer_norm_dx_dropout (%d_norm2_6 = %d_norm2 : !bji, %residual2_7 = %residual2 : !bji, %gamma2_8 = %gamma2 : !i, %mean2_9 = %mean2 : !f32_bj, %rstd2_10 = %rstd2 : !f32_bj) -> (!bji, !bji) layouts ([b, j, i], [b, j, i], [i], [b, j], [b, j] -> [b, j, i], [b, j, i]) attributes {config = {family = "loop", lane_axis = "i", reduction = "block", threads = 64 : i64, threads_per_row = 64 : i64, vector_axis = "i", vector_width = 16 : i64}} {
      %d_residual2_11 = weft.layer_norm_dx %d_norm2_6, %residual2_7, %gamma2_8, %mean2_9, %rstd2_10 over i : !bji, !bji, !i, !f32_bj, !f32_bj
      %d_feed_forward_12 = weft.dropout %d_residual2_11 {p = 0.1, stream = 3} : !bji
      weft.yield %d_residual2_11, %d_feed_forward_12 : !bji, !bji
    }
    %d_b2 = weft.kernel @reduce (%d_feed_forward_6 = %d_feed_forward : !bji) -> !i layouts ([b, j, i] -> [i]) attributes {config = {blocks_per_row = 8 : i64, family = "loop", lane_axis = "i", reduction = "cluster-columns", threads = 512 : i64, threads_per_row = 64 : i64, vector_axis = "i", vector_width = 8 : i64}} {
      %d_b2_7 = weft.reduce sum %d_feed_forward_6 over b, j : !bji -> !i
      weft.yield %d_b2_7 : !i
    }
    %d_w2 = weft.kernel @d_w2_contraction (%d_feed_forward_6 = %d_feed_forward : !bji, %active_kept_7 = %active_kept : !bju) -> !iu layouts ([b, j, i], [b, j, u] -> [i, u]) attributes {config = {algorithm = 66 : i64, cluster_shape = 3 : i64, custom_option = 4 : i64, family = "cublaslt", inner_shape = 0 : i64, library_version = 130100 : i64, reduction_scheme = 0 : i64, split_k = 1 : i64, stages = 35 : i64, swizzle = 0 : i64, tile = 23 : i64, workspace_bytes = 0 : i64}} {
      %d_w2_8 = weft.contract "bji,bju->iu" %d_feed_forward_6, %active_kept_7 : !bji, !bju -> !iu
      weft.yield %d_w2_8 : !iu
    }
    %w2_4 = weft.kernel @transpose_w2 (%w2_6 = %w2 : !iu) -> !iu layouts ([i, u] -> [u, i]) attributes {config = {family = "view"}} {
      %w2_7 = weft.identity %w2_6 : !iu
      weft.yield %w2_7 : !iu
    }
    %d_hidden = weft.kernel @d_active_kept_projection_dropout_relu_dx (%w2_6 = %w2_4 : !iu, %d_feed_forward_7 = %d_feed_forward : !bji, %active_kept_8 = %active_kept : !bju) -> !bju layouts ([u, i], [b, j, i], [b, j, u] -> [b, j, u]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 8 : i64, schedule = "ping-pong", stages = 5 : i64, staging = 4 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %d_active_kept = weft.contract "iu,bji->bju" %w2_6, %d_feed_forward_7 : !iu, !bji -> !bju
      %d_active = weft.dropout %d_active_kept {p = 0.1, stream = 2} : !bju
      %d_hidden_9 = weft.relu_dx %d_active, %active_kept_8 : !bju
      weft.yield %d_hidden_9 : !bju
    }
    %d_w1, %d_b1 = weft.kernel @reduce_d_w1_contraction (%d_hidden_6 = %d_hidden : !bju, %norm1_7 = %norm1 : !bji) -> (!ui, !u) layouts ([b, j, u], [b, j, i] -> [u, i], [u]) attributes {config = {algorithm = 39 : i64, cluster_shape = 3 : i64, custom_option = 0 : i64, family = "cublaslt", inner_shape = 0 : i64, library_version = 130100 : i64, reduction_scheme = 0 : i64, split_k = 1 : i64, stages = 35 : i64, swizzle = 0 : i64, tile = 24 : i64, workspace_bytes = 0 : i64}} {
      %d_w1_8 = weft.contract "bju,bji->ui" %d_hidden_6, %norm1_7 : !bju, !bji -> !ui
      %d_b1_9 = weft.reduce sum %d_hidden_6 over b, j : !bju -> !u
      weft.yield %d_w1_8, %d_b1_9 : !ui, !u
    }
    %d_norm1 = weft.kernel @d_norm1_hidden_projection_add (%w1_6 = %w1_3 : !ui, %d_hidden_7 = %d_hidden : !bju, %d_residual2_8 = %d_residual2 : !bji) -> !bji layouts ([i, u], [b, j, u], [b, j, i] -> [b, j, i]) attributes {config = {algorithm = 66 : i64, cluster_shape = 5 : i64, custom_option = 7 : i64, family = "cublaslt", inner_shape = 0 : i64, library_version = 130100 : i64, reduction_scheme = 0 : i64, split_k = 1 : i64, stages = 35 : i64, swizzle = 0 : i64, tile = 24 : i64, workspace_bytes = 0 : i64}} {
      %d_norm1_hidden_product = weft.contract "ui,bju->bji" %w1_6, %d_hidden_7 : !ui, !bju -> !bji
      %d_norm1_9 = weft.add %d_residual2_8, %d_norm1_hidden_product : !bji
      weft.yield %d_norm1_9 : !bji
    }
    %d_gamma1, %d_beta1 = weft.kernel @layer_norm_dw (%d_norm1_6 = %d_norm1 : !bji, %residual1_7 = %residual1 : !bji, %mean1_8 = %mean1 : !f32_bj, %rstd1_9 = %rstd1 : !f32_bj) -> (!i, !i) layouts ([b, j, i], [b, j, i], [b, j], [b, j] -> [i], [i]) attributes {config = {blocks_per_row = 32 : i64, family = "loop", lane_axis = "i", reduction = "grid-columns", threads = 256 : i64, threads_per_row = 16 : i64, vector_axis = "i", vector_width = 4 : i64}} {
      %d_gamma1_10, %d_beta1_11 = weft.layer_norm_dw %d_norm1_6, %residual1_7, %mean1_8, %rstd1_9 over b, j : !bji, !bji, !f32_bj, !f32_bj -> !i, !i
      weft.yield %d_gamma1_10, %d_beta1_11 : !i, !i
    }
    %d_residual1, %d_attention = weft.kernel @layer_norm_dx_dropout_2 (%d_norm1_6 = %d_norm1 : !bji, %residual1_7 = %residual1 : !bji, %gamma1_8 = %gamma1 : !i, %mean1_9 = %mean1 : !f32_bj, %rstd1_10 = %rstd1 : !f32_bj) -> (!bji, !bji) layouts ([b, j, i], [b, j, i], [i], [b, j], [b, j] -> [b, j, i], [b, j, i]) attributes {config = {family = "loop", lane_axis = "i", reduction = "block", threads = 64 : i64, threads_per_row = 64 : i64, vector_axis = "i", vector_width = 16 : i64}} {
      %d_residual1_11 = weft.layer_norm_dx %d_norm1_6, %residual1_7, %gamma1_8, %mean1_9, %rstd1_10 over i : !bji, !bji, !i, !f32_bj, !f32_bj
      %d_attention_12 = weft.dropout %d_residual1_11 {p = 0.1, stream = 1} : !bji
      weft.yield %d_residual1_11, %d_attention_12 : !bji, !bji
    }
    %wo_5 = weft.kernel @transpose_wo (%wo_6 = %wo : !whi) -> !whi layouts ([w, h, i] -> [i, w, h]) attributes {config = {family = "view"}} {
      %wo_7 = weft.identity %wo_6 : !whi
      weft.yield %wo_7 : !whi
    }
    %d_weighted = weft.kernel @d_weighted_projection (%wo_6 = %wo_5 : !whi, %d_attention_7 = %d_attention : !bji) -> !whbj layouts ([i, w, h], [b, j, i] -> [w, h, b, j]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 8 : i64, schedule = "ping-pong", stages = 6 : i64, staging = 2 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %d_weighted_8 = weft.contract "whi,bji->whbj" %wo_6, %d_attention_7 : !whi, !bji -> !whbj
      weft.yield %d_weighted_8 : !whbj
    }
    %d_gamma2, %d_beta2 = weft.kernel @layer_norm_dw_2 (%d_norm2_6 = %d_norm2 : !bji, %residual2_7 = %residual2 : !bji, %mean2_8 = %mean2 : !f32_bj, %rstd2_9 = %rstd2 : !f32_bj) -> (!i, !i) layouts ([b, j, i], [b, j, i], [b, j], [b, j] -> [i], [i]) attributes {config = {blocks_per_row = 32 : i64, family = "loop", lane_axis = "i", reduction = "grid-columns", threads = 256 : i64, threads_per_row = 16 : i64, vector_axis = "i", vector_width = 4 : i64}} {
      %d_gamma2_10, %d_beta2_11 = weft.layer_norm_dw %d_norm2_6, %residual2_7, %mean2_8, %rstd2_9 over b, j : !bji, !bji, !f32_bj, !f32_bj -> !i, !i
      weft.yield %d_gamma2_10, %d_beta2_11 : !i, !i
    }
    %d_bo = weft.kernel @reduce_2 (%d_attention_6 = %d_attention : !bji) -> !i layouts ([b, j, i] -> [i]) attributes {config = {blocks_per_row = 8 : i64, family = "loop", lane_axis = "i", reduction = "cluster-columns", threads = 512 : i64, threads_per_row = 64 : i64, vector_axis = "i", vector_width = 8 : i64}} {
      %d_bo_7 = weft.reduce sum %d_attention_6 over b, j : !bji -> !i
      weft.yield %d_bo_7 : !i
    }
    %d_wo = weft.kernel @d_wo_contraction (%d_attention_6 = %d_attention : !bji, %weighted_7 = %weighted : !whbj) -> !whi layouts ([b, j, i], [w, h, b, j] -> [w, h, i]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 8 : i64, schedule = "ping-pong", stages = 8 : i64, staging = 2 : i64, tile_m = 64 : i64, tile_n = 128 : i64}} {
      %d_wo_8 = weft.contract "bji,whbj->whi" %d_attention_6, %weighted_7 : !bji, !whbj -> !whi
      weft.yield %d_wo_8 : !whi
    }
    %d_v = weft.kernel @d_v_contraction (%d_weighted_6 = %d_weighted : !whbj, %kept_7 = %kept : !hbjk) -> !whbk layouts ([w, h, b, j], [h, b, j, k] -> [w, h, b, k] strides [196608, 4096, 512, 1]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 8 : i64, schedule = "ping-pong", stages = 8 : i64, staging = 2 : i64, tile_m = 64 : i64, tile_n = 128 : i64}} {
      %d_v_8 = weft.contract "whbj,hbjk->whbk" %d_weighted_6, %kept_7 : !whbj, !hbjk -> !whbk
      weft.yield %d_v_8 : !whbk
    }
    %d_kept = weft.kernel @d_kept_contraction (%v_6 = %v : !whbk, %d_weighted_7 = %d_weighted : !whbj) -> !hbjk layouts ([w, h, b, k], [w, h, b, j] -> [h, b, j, k]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 8 : i64, schedule = "ping-pong", stages = 6 : i64, staging = 2 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %d_kept_8 = weft.contract "whbk,whbj->hbjk" %v_6, %d_weighted_7 : !whbk, !whbj -> !hbjk
      weft.yield %d_kept_8 : !hbjk
    }
    %d_score = weft.kernel @dropout_softmax_dx (%d_kept_6 = %d_kept : !hbjk, %probability_7 = %probability : !hbjk) -> !hbjk layouts ([h, b, j, k], [h, b, j, k] -> [h, b, j, k]) attributes {config = {family = "loop", lane_axis = "k", reduction = "warp", threads = 128 : i64, threads_per_row = 32 : i64, vector_axis = "k", vector_width = 8 : i64}} {
      %d_probability = weft.dropout %d_kept_6 {p = 0.1, stream = 0} : !hbjk
      %d_score_8 = weft.softmax_dx %d_probability, %probability_7 over k : !hbjk
      weft.yield %d_score_8 : !hbjk
    }
    %d_k = weft.kernel @d_k_contraction (%d_score_6 = %d_score : !hbjk, %q_7 = %q : !phbj) -> !phbk layouts ([h, b, j, k], [p, h, b, j] -> [p, h, b, k] strides [196608, 4096, 512, 1]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 8 : i64, schedule = "ping-pong", stages = 8 : i64, staging = 2 : i64, tile_m = 64 : i64, tile_n = 128 : i64}} {
      %d_k_8 = weft.contract "hbjk,phbj->phbk" %d_score_6, %q_7 {scale = 0.125} : !hbjk, !phbj -> !phbk
      weft.yield %d_k_8 : !phbk
    }
    %d_q = weft.kernel @d_q_contraction (%k_6 = %k : !phbk, %d_score_7 = %d_score : !hbjk) -> !phbj layouts ([p, h, b, k], [h, b, j, k] -> [p, h, b, j] strides [196608, 4096, 512, 1]) attributes {config = {blocks = 132 : i64, family = "hopper-contraction", raster_m = 8 : i64, schedule = "ping-pong", stages = 8 : i64, staging = 2 : i64, tile_m = 64 : i64, tile_n = 128 : i64}} {
      %d_q_8 = weft.contract "phbk,hbjk->phbj" %k_6, %d_score_7 {scale = 0.125} : !phbk, !hbjk -> !phbj
      weft.yield %d_q_8 : !phbj
    }
    %d_q_d_k_d_v = weft.kernel @concat_2 (%d_q_6 = %d_q : !phbj, %d_k_7 = %d_k : !phbk, %d_v_8 = %d_v : !whbk) -> !phbj1 layouts ([p, h, b, j] strides [196608, 4096, 512, 1], [p, h, b, k] strides [196608, 4096, 512, 1] offset 65536, [w, h, b, k] strides [196608, 4096, 512, 1] offset 131072 -> [p, h, b, j]) attributes {config = {family = "view"}} {
      %d_q_d_k_d_v_9 = weft.concat %d_q_6, %d_k_7, %d_v_8 {axis = h} : !phbj, !phbk, !whbk -> !phbj1
      weft.yield %d_q_d_k_d_v_9 : !phbj1
    }
    %d_x = weft.kernel @d_x_q_product_d_x_k_product_d_x_v_projection_add (%wq_wk_wv_6 = %wq_wk_wv : !phi1, %d_q_d_k_d_v_7 = %d_q_d_k_d_v : !phbj1, %d_residual1_8 = %d_residual1 : !bji) -> !bji layouts ([p, h, i], [p, h, b, j], [b, j, i] -> [b, j, i]) attributes {config = {algorithm = 66 : i64, cluster_shape = 3 : i64, custom_option = 4 : i64, family = "cublaslt", inner_shape = 0 : i64, library_version = 130100 : i64, reduction_scheme = 0 : i64, split_k = 1 : i64, stages = 35 : i64, swizzle = 0 : i64, tile = 23 : i64, workspace_bytes = 0 : i64}} {
      %d_x_q_product_d_x_k_product_d_x_v_product = weft.contract "phi,phbj->bji" %wq_wk_wv_6, %d_q_d_k_d_v_7 : !phi1, !phbj1 -> !bji
      %d_x_9 = weft.add %d_residual1_8, %d_x_q_product_d_x_k_product_d_x_v_product : !bji
      weft.yield %d_x_9 : !bji
    }
    %d_wq_d_wk_d_wv = weft.kernel @d_wq_d_wk_d_wv_contraction (%d_q_d_k_d_v_6 = %d_q_d_k_d_v : !phbj1, %x_7 = %x : !bji) -> !phi1 layouts ([p, h, b, j], [b, j, i] -> [p, h, i]) attributes {config = {algorithm = 66 : i64, cluster_shape = 5 : i64, custom_option = 7 : i64, family = "cublaslt", inner_shape = 0 : i64, library_version = 130100 : i64, reduction_scheme = 0 : i64, split_k = 1 : i64, stages = 35 : i64, swizzle = 0 : i64, tile = 495 : i64, workspace_bytes = 0 : i64}} {
      %d_wq_d_wk_d_wv_8 = weft.contract "phbj,bji->phi" %d_q_d_k_d_v_6, %x_7 : !phbj1, !bji -> !phi1
      weft.yield %d_wq_d_wk_d_wv_8 : !phi1
    }
    %d_wq = weft.kernel @slice (%d_wq_d_wk_d_wv_6 = %d_wq_d_wk_d_wv : !phi1) -> !phi layouts ([p, h, i] -> [p, h, i]) attributes {config = {family = "loop", lane_axis = "i", reduction = "none", threads = 256 : i64, threads_per_row = 1 : i64, vector_axis = "i", vector_width = 8 : i64}} {
      %d_wq_7 = weft.slice %d_wq_d_wk_d_wv_6 {axis = h, size = 16, start = 0} : !phi1 -> !phi
      weft.yield %d_wq_7 : !phi
    }
    %d_wk = weft.kernel @slice_2 (%d_wq_d_wk_d_wv_6 = %d_wq_d_wk_d_wv : !phi1) -> !phi layouts ([p, h, i] -> [p, h, i]) attributes {config = {family = "loop", lane_axis = "i", reduction = "none", threads = 128 : i64, threads_per_row = 1 : i64, vector_axis = "i", vector_width = 8 : i64}} {
      %d_wk_7 = weft.slice %d_wq_d_wk_d_wv_6 {axis = h, size = 16, start = 16} : !phi1 -> !phi
      weft.yield %d_wk_7 : !phi
    }
    %d_wv = weft.kernel @slice_3 (%d_wq_d_wk_d_wv_6 = %d_wq_d_wk_d_wv : !phi1) -> !whi layouts ([p, h, i] -> [w, h, i]) attributes {config = {family = "loop", lane_axis = "i", reduction = "none", threads = 256 : i64, threads_per_row = 1 : i64, vector_axis = "i", vector_width = 8 : i64}} {
      %d_wv_7 = weft.slice %d_wq_d_wk_d_wv_6 {axis = h, size = 16, start = 32} : !phi1 -> !whi
      weft.yield %d_wv_7 : !whi
    }
    %d_bv, %d_bk, %d_bq = weft.kernel @reduce_x3 (%d_v_6 = %d_v : !whbk, %d_k_7 = %d_k : !phbk, %d_q_8 = %d_q : !phbj) -> (!wh, !ph, !ph) layouts ([w, h, b, k] strides [196608, 4096, 512, 1], [p, h, b, k] strides [196608, 4096, 512, 1], [p, h, b, j] strides [196608, 4096, 512, 1] -> [w, h], [p, h], [p, h]) attributes {config = {family = "loop", lane_axis = "k", reduction = "block", threads = 256 : i64, threads_per_row = 256 : i64, vector_axis = "k", vector_width = 8 : i64}} {
      %d_bv_9 = weft.reduce sum %d_v_6 over b, k : !whbk -> !wh
      %d_bk_10 = weft.reduce sum %d_k_7 over b, k : !phbk -> !ph
      %d_bq_11 = weft.reduce sum %d_q_8 over b, j : !phbj -> !ph
      weft.yield %d_bv_9, %d_bk_10, %d_bq_11 : !wh, !ph, !ph
    }
    weft.return %norm2, %d_x, %d_wq, %d_bq, %d_wk, %d_bk, %d_wv, %d_bv, %d_wo, %d_bo, %d_gamma1, %d_beta1, %d_w1, %d_b1, %d_w2, %d_b2, %d_gamma2, %d_beta2 : !bji, !bji, !phi, !ph, !phi, !ph, !whi, !wh, !whi, !i, !i, !i, !ui, !u, !iu, !i, !i, !i
  }
}

