!bji = tensor<96x128x1024xf16, #weft.axes<b, j, i>>
!bju = tensor<96x128x4096xf16, #weft.axes<b, j, u>>
!f32_bj = tensor<96x128xf32, #weft.axes<b, j>>
!f32_hbj = tensor<16x96x128xf32, #weft.axes<h, b, j>>
!f32_whbj = tensor<64x16x96x128xf32, #weft.axes<w, h, b, j>>
!hbjk = tensor<16x96x128x128xf16, #weft.axes<h, b, j, k>>
!i = tensor<1024xf16, #weft.axes<i>>
!iu = tensor<1024x4096xf16, #weft.axes<i, u>>
!ph = tensor<64x16xf16, #weft.axes<p, h>>
!phbj = tensor<64x16x96x128xf16, #weft.axes<p, h, b, j>>
!phbj1 = tensor<64x48x96x128xf16, #weft.axes<p, h, b, j>>
!phbk = tensor<64x16x96x128xf16, #weft.axes<p, h, b, k>>
!phi = tensor<64x16x1024xf16, #weft.axes<p, h, i>>
!phi1 = tensor<64x48x1024xf16, #weft.axes<p, h, i>>
!u = tensor<4096xf16, #weft.axes<u>>
!ui = tensor<4096x1024xf16, #weft.axes<u, i>>
!wh = tensor<64x16xf16, #weft.axes<w, h>>
!whbj = tensor<64x16x96x128xf16, #weft.axes<w, h, b, j>>
!whbk = tensor<64x16x96x128xf16, #weft.axes<w, h, b, k>>
!whi = tensor<64x16x1024xf16, #weft.axes<w, h, i>>
module {
  weft.graph @paper_encoder(%x: !bji, %wq: !phi {weft.initial = "normal(0.02)", weft.parameter}, %bq: !ph {weft.initial = "zeros", weft.parameter}, %wk: !phi {weft.initial = "normal(0.02)", weft.parameter}, %bk: !ph {weft.initial = "zeros", weft.parameter}, %wv: !whi {weft.initial = "normal(0.02)", weft.parameter}, %bv: !wh {weft.initial = "zeros", weft.parameter}, %wo: !whi {weft.initial = "normal(0.02)", weft.parameter}, %bo: !i {weft.initial = "zeros", weft.parameter}, %gamma1: !i {weft.initial = "ones", weft.parameter}, %beta1: !i {weft.initial = "zeros", weft.parameter}, %w1: !ui {weft.initial = "normal(0.02)", weft.parameter}, %b1: !u {weft.initial = "zeros", weft.parameter}, %w2: !iu {weft.initial = "normal(0.02)", weft.parameter}, %b2: !i {weft.initial = "zeros", weft.parameter}, %gamma2: !i {weft.initial = "ones", weft.parameter}, %beta2: !i {weft.initial = "zeros", weft.parameter}, %d_norm2: !bji {weft.gradient_of = "norm2"}) -> (!bji, !bji {weft.gradient_of = "x"}, !phi {weft.gradient_of = "wq"}, !ph {weft.gradient_of = "bq"}, !phi {weft.gradient_of = "wk"}, !ph {weft.gradient_of = "bk"}, !whi {weft.gradient_of = "wv"}, !wh {weft.gradient_of = "bv"}, !whi {weft.gradient_of = "wo"}, !i {weft.gradient_of = "bo"}, !i {weft.gradient_of = "gamma1"}, !i {weft.gradient_of = "beta1"}, !ui {weft.gradient_of = "w1"}, !u {weft.gradient_of = "b1"}, !iu {weft.gradient_of = "w2"}, !i {weft.gradient_of = "b2"}, !i {weft.gradient_of = "gamma2"}, !i {weft.gradient_of = "beta2"}) attributes {weft.saved = ["q", "k", "v", "weighted", "weighted_log_sums", "residual1", "norm1", "mean1", "rstd1", "active_kept", "residual2", "mean2", "rstd2"]} {
    %x_0 = weft.kernel @transpose_x (%x_14 = %x : !bji) -> !bji layouts ([b, j, i] -> [j, b, i]) attributes {config = {family = "loop", lane_axis = "i", reduction = "none", threads = 128 : i64, threads_per_row = 1 : i64, vector_axis = "i", vector_width = 8 : i64}} {
      %x_15 = weft.identity %x_14 : !bji
      weft.yield %x_15 : !bji
    }
    %wq_1 = weft.kernel @transpose_wq (%wq_14 = %wq : !phi) -> !phi layouts ([p, h, i] -> [h, p, i]) attributes {config = {family = "view"}} {
      %wq_15 = weft.identity %wq_14 : !phi
      weft.yield %wq_15 : !phi
    }
    %bq_2 = weft.kernel @transpose_bq (%bq_14 = %bq : !ph) -> !ph layouts ([p, h] -> [h, p]) attributes {config = {family = "view"}} {
      %bq_15 = weft.identity %bq_14 : !ph
      weft.yield %bq_15 : !ph
    }
    %q = weft.kernel @q_projection_bias (%wq_14 = %wq_1 : !phi, %x_15 = %x_0 : !bji, %bq_16 = %bq_2 : !ph) -> !phbj layouts ([h, p, i], [j, b, i], [h, p] -> [j, b, h, p]) attributes {config = {blocks = 132 : i64, epilogue_stages = 2 : i64, family = "gemm-sm90", group_m = 4 : i64, schedule = "ping-pong", stages = 6 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %q_product = weft.contract "phi,bji->phbj" %wq_14, %x_15 : !phi, !bji -> !phbj
      %q_17 = weft.bias %q_product, %bq_16 along (p, h) : !phbj, !ph
      weft.yield %q_17 : !phbj
    }
    %wk_3 = weft.kernel @transpose_wk (%wk_14 = %wk : !phi) -> !phi layouts ([p, h, i] -> [h, p, i]) attributes {config = {family = "view"}} {
      %wk_15 = weft.identity %wk_14 : !phi
      weft.yield %wk_15 : !phi
    }
    %bk_4 = weft.kernel @transpose_bk (%bk_14 = %bk : !ph) -> !ph layouts ([p, h] -> [h, p]) attributes {config = {family = "view"}} {
      %bk_15 = weft.identity %bk_14 : !ph
      weft.yield %bk_15 : !ph
    }
    %k = weft.kernel @k_projection_bias (%wk_14 = %wk_3 : !phi, %x_15 = %x_0 : !bji, %bk_16 = %bk_4 : !ph) -> !phbk layouts ([h, p, i], [j, b, i], [h, p] -> [k, b, h, p]) attributes {config = {blocks = 132 : i64, epilogue_stages = 2 : i64, family = "gemm-sm90", group_m = 4 : i64, schedule = "ping-pong", stages = 6 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %k_product = weft.contract "phi,bki->phbk" %wk_14, %x_15 : !phi, !bji -> !phbk
      %k_17 = weft.bias %k_product, %bk_16 along (p, h) : !phbk, !ph
      weft.yield %k_17 : !phbk
    }
    %wv_5 = weft.kernel @transpose_wv (%wv_14 = %wv : !whi) -> !whi layouts ([w, h, i] -> [h, w, i]) attributes {config = {family = "view"}} {
      %wv_15 = weft.identity %wv_14 : !whi
      weft.yield %wv_15 : !whi
    }
    %bv_6 = weft.kernel @transpose_bv (%bv_14 = %bv : !wh) -> !wh layouts ([w, h] -> [h, w]) attributes {config = {family = "view"}} {
      %bv_15 = weft.identity %bv_14 : !wh
      weft.yield %bv_15 : !wh
    }
    %v = weft.kernel @v_projection_bias (%wv_14 = %wv_5 : !whi, %x_15 = %x_0 : !bji, %bv_16 = %bv_6 : !wh) -> !whbk layouts ([h, w, i], [j, b, i], [h, w] -> [k, b, h, w]) attributes {config = {blocks = 132 : i64, epilogue_stages = 2 : i64, family = "gemm-sm90", group_m = 4 : i64, schedule = "ping-pong", stages = 6 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %v_product = weft.contract "whi,bki->whbk" %wv_14, %x_15 : !whi, !bji -> !whbk
      %v_17 = weft.bias %v_product, %bv_16 along (w, h) : !whbk, !wh
      weft.yield %v_17 : !whbk
    }
    %weighted, %weighted_log_sums = weft.kernel @attention (%k_14 = %k : !phbk, %q_15 = %q : !phbj, %v_16 = %v : !whbk) -> (!whbj, !f32_hbj) layouts ([k, b, h, p], [j, b, h, p], [k, b, h, w] -> [b, j, h, w], [h, b, j]) attributes {config = {blocks = 264 : i64, family = "attention-sm90", ordered = 0 : i64, query_stages = 2 : i64, stages = 2 : i64, tile_keys = 128 : i64, tile_queries = 64 : i64}} {
      %score = weft.contract "phbk,phbj->hbjk" %k_14, %q_15 {scale = 0.125} : !phbk, !phbj -> !hbjk
      %weighted_17, %weighted_log_sums_18 = weft.online_softmax_contract "hbjk,whbk->whbj" %score, %v_16 {p = 0.1, stream = 0} : !hbjk, !whbk -> !whbj, !f32_hbj
      weft.yield %weighted_17, %weighted_log_sums_18 : !whbj, !f32_hbj
    }
    %wo_7 = weft.kernel @transpose_wo (%wo_14 = %wo : !whi) -> !whi layouts ([w, h, i] -> [h, w, i]) attributes {config = {family = "view"}} {
      %wo_15 = weft.identity %wo_14 : !whi
      weft.yield %wo_15 : !whi
    }
    %residual1 = weft.kernel @attention_projection_bias_dropout_residual (%wo_14 = %wo_7 : !whi, %weighted_15 = %weighted : !whbj, %bo_16 = %bo : !i, %x_17 = %x_0 : !bji) -> !bji layouts ([h, w, i], [b, j, h, w], [i], [b, j, i] -> [b, j, i]) attributes {config = {blocks = 132 : i64, epilogue_stages = 4 : i64, family = "gemm-sm90", group_m = 4 : i64, schedule = "ping-pong", stages = 5 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %attention_product = weft.contract "whi,whbj->bji" %wo_14, %weighted_15 : !whi, !whbj -> !bji
      %attention = weft.bias %attention_product, %bo_16 along (i) : !bji, !i
      %attention_kept = weft.dropout %attention {p = 0.1, stream = 1} : !bji
      %residual1_18 = weft.residual %attention_kept, %x_17 : !bji
      weft.yield %residual1_18 : !bji
    }
    %norm1, %mean1, %rstd1 = weft.kernel @layer_norm (%residual1_14 = %residual1 : !bji, %gamma1_15 = %gamma1 : !i, %beta1_16 = %beta1 : !i) -> (!bji, !f32_bj, !f32_bj) layouts ([b, j, i], [i], [i] -> [b, j, i], [b, j], [b, j]) attributes {config = {family = "loop", lane_axis = "i", reduction = "block", threads = 128 : i64, threads_per_row = 128 : i64, vector_axis = "i", vector_width = 8 : i64}} {
      %norm1_17, %mean1_18, %rstd1_19 = weft.layer_norm %residual1_14, %gamma1_15, %beta1_16 over i {epsilon = 1.0e-05} : !bji, !i, !i -> !bji, !f32_bj, !f32_bj
      weft.yield %norm1_17, %mean1_18, %rstd1_19 : !bji, !f32_bj, !f32_bj
    }
    %active_kept = weft.kernel @hidden_projection_bias_relu_dropout (%w1_14 = %w1 : !ui, %norm1_15 = %norm1 : !bji, %b1_16 = %b1 : !u) -> !bju layouts ([u, i], [b, j, i], [u] -> [u, b, j]) attributes {config = {blocks = 132 : i64, epilogue_stages = 4 : i64, family = "gemm-sm90", group_m = 8 : i64, schedule = "ping-pong", stages = 4 : i64, tile_m = 128 : i64, tile_n = 192 : i64}} {
      %hidden_product = weft.contract "ui,bji->bju" %w1_14, %norm1_15 : !ui, !bji -> !bju
      %hidden = weft.bias %hidden_product, %b1_16 along (u) : !bju, !u
      %active = weft.relu %hidden : !bju
      %active_kept_17 = weft.dropout %active {p = 0.1, stream = 2} : !bju
      weft.yield %active_kept_17 : !bju
    }
    %w2_8 = weft.kernel @transpose_w2 (%w2_14 = %w2 : !iu) -> !iu layouts ([i, u] -> [u, i]) attributes {config = {family = "view"}} {
      %w2_15 = weft.identity %w2_14 : !iu
      weft.yield %w2_15 : !iu
    }
    %residual2 = weft.kernel @feed_forward_projection_bias_dropout_residual (%w2_14 = %w2_8 : !iu, %active_kept_15 = %active_kept : !bju, %b2_16 = %b2 : !i, %norm1_17 = %norm1 : !bji) -> !bji layouts ([u, i], [u, b, j], [i], [b, j, i] -> [b, j, i]) attributes {config = {blocks = 132 : i64, epilogue_stages = 4 : i64, family = "gemm-sm90", group_m = 8 : i64, schedule = "cooperative", stages = 3 : i64, tile_m = 128 : i64, tile_n = 256 : i64}} {
      %feed_forward_product = weft.contract "iu,bju->bji" %w2_14, %active_kept_15 : !iu, !bju -> !bji
      %feed_forward = weft.bias %feed_forward_product, %b2_16 along (i) : !bji, !i
      %feed_forward_kept = weft.dropout %feed_forward {p = 0.1, stream = 3} : !bji
      %residual2_18 = weft.residual %feed_forward_kept, %norm1_17 : !bji
      weft.yield %residual2_18 : !bji
    }
    %norm2, %mean2, %rstd2 = weft.kernel @layer_norm_2 (%residual2_14 = %residual2 : !bji, %gamma2_15 = %gamma2 : !i, %beta2_16 = %beta2 : !i) -> (!bji, !f32_bj, !f32_bj) layouts ([b, j, i], [i], [i] -> [b, j, i], [b, j], [b, j]) attributes {config = {family = "loop", lane_axis = "i", reduction = "block", threads = 128 : i64, threads_per_row = 128 : i64, vector_axis = "i", vector_width = 8 : i64}} {
      %norm2_17, %mean2_18, %rstd2_19 = weft.layer_norm %residual2_14, %gamma2_15, %beta2_16 over i {epsilon = 1.0e-05} : !bji, !i, !i -> !bji, !f32_bj, !f32_bj
      weft.yield %norm2_17, %mean2_18, %rstd2_19 : !bji, !f32_bj, !f32_bj
    }
    %wq_wk_wv = weft.kernel @concat (%wq_14 = %wq_1 : !phi, %wk_15 = %wk_3 : !phi, %wv_16 = %wv_5 : !whi) -> !phi1 layouts ([p, h, i], [p, h, i], [w, h, i] -> [p, h, i]) attributes {config = {family = "view"}} {
      %wq_wk_wv_17 = weft.concat %wq_14, %wk_15, %wv_16 {axis = h} : !phi, !phi, !whi -> !phi1
      weft.yield %wq_wk_wv_17 : !phi1
    }
    %d_residual2 = weft.kernel @layer_norm_dx (%d_norm2_14 = %d_norm2 : !bji, %residual2_15 = %residual2 : !bji, %gamma2_16 = %gamma2 : !i, %mean2_17 = %mean2 : !f32_bj, %rstd2_18 = %rstd2 : !f32_bj) -> !bji layouts ([b, j, i], [b, j, i], [i], [b, j], [b, j] -> [b, j, i]) attributes {config = {family = "loop", lane_axis = "i", reduction = "block", threads = 128 : i64, threads_per_row = 128 : i64, vector_axis = "i", vector_width = 4 : i64}} {
      %d_residual2_19 = weft.layer_norm_dx %d_norm2_14, %residual2_15, %gamma2_16, %mean2_17, %rstd2_18 over i : !bji, !bji, !i, !f32_bj, !f32_bj
      weft.yield %d_residual2_19 : !bji
    }
    %d_gamma2, %d_beta2, %d_feed_forward, %d_b2 = weft.kernel @layer_norm_dw_dropout_reduce (%d_norm2_14 = %d_norm2 : !bji, %residual2_15 = %residual2 : !bji, %mean2_16 = %mean2 : !f32_bj, %rstd2_17 = %rstd2 : !f32_bj, %d_residual2_18 = %d_residual2 : !bji) -> (!i, !i, !bji, !i) layouts ([b, j, i], [b, j, i], [b, j], [b, j], [b, j, i] -> [i], [i], [b, j, i], [i]) attributes {config = {blocks_per_row = 16 : i64, family = "loop", lane_axis = "i", reduction = "grid-columns", threads = 512 : i64, threads_per_row = 64 : i64, vector_axis = "i", vector_width = 16 : i64}} {
      %d_gamma2_19, %d_beta2_20 = weft.layer_norm_dw %d_norm2_14, %residual2_15, %mean2_16, %rstd2_17 over b, j : !bji, !bji, !f32_bj, !f32_bj -> !i, !i
      %d_feed_forward_21 = weft.dropout %d_residual2_18 {p = 0.1, stream = 3} : !bji
      %d_b2_22 = weft.reduce sum %d_feed_forward_21 over b, j : !bji -> !i
      weft.yield %d_gamma2_19, %d_beta2_20, %d_feed_forward_21, %d_b2_22 : !i, !i, !bji, !i
    }
    %d_w2 = weft.kernel @d_w2_contraction (%d_feed_forward_14 = %d_feed_forward : !bji, %active_kept_15 = %active_kept : !bju) -> !iu layouts ([b, j, i], [u, b, j] -> [i, u]) attributes {config = {algorithm = 66 : i64, cluster_shape = 3 : i64, custom_option = 4 : i64, family = "cublaslt", inner_shape = 0 : i64, library_version = 130100 : i64, reduction_scheme = 0 : i64, split_k = 1 : i64, stages = 35 : i64, swizzle = 0 : i64, tile = 23 : i64, workspace_bytes = 0 : i64}} {
      %d_w2_16 = weft.contract "bji,bju->iu" %d_feed_forward_14, %active_kept_15 : !bji, !bju -> !iu
      weft.yield %d_w2_16 : !iu
    }
    %d_hidden, %d_b1 = weft.kernel @d_active_kept_projection_scale_relu_dx_reduce (%w2_14 = %w2_8 : !iu, %d_feed_forward_15 = %d_feed_forward : !bji, %active_kept_16 = %active_kept : !bju) -> (!bju, !u) layouts ([i, u], [b, j, i], [u, b, j] -> [u, b, j], [u]) attributes {config = {blocks = 132 : i64, epilogue_stages = 4 : i64, family = "gemm-sm90", group_m = 4 : i64, schedule = "ping-pong", stages = 5 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %d_active_kept = weft.contract "iu,bji->bju" %w2_14, %d_feed_forward_15 : !iu, !bji -> !bju
      %d_active = weft.scale %d_active_kept {factor = 1.1111111640930176} : !bju
      %d_hidden_17 = weft.relu_dx %d_active, %active_kept_16 : !bju
      %d_b1_18 = weft.reduce sum %d_hidden_17 over b, j : !bju -> !u
      weft.yield %d_hidden_17, %d_b1_18 : !bju, !u
    }
    %d_w1 = weft.kernel @d_w1_contraction (%d_hidden_14 = %d_hidden : !bju, %norm1_15 = %norm1 : !bji) -> !ui layouts ([u, b, j], [b, j, i] -> [u, i]) attributes {config = {algorithm = 66 : i64, cluster_shape = 3 : i64, custom_option = 4 : i64, family = "cublaslt", inner_shape = 0 : i64, library_version = 130100 : i64, reduction_scheme = 0 : i64, split_k = 1 : i64, stages = 35 : i64, swizzle = 0 : i64, tile = 23 : i64, workspace_bytes = 0 : i64}} {
      %d_w1_16 = weft.contract "bju,bji->ui" %d_hidden_14, %norm1_15 : !bju, !bji -> !ui
      weft.yield %d_w1_16 : !ui
    }
    %d_norm1 = weft.kernel @d_norm1_hidden_projection_add (%w1_14 = %w1 : !ui, %d_hidden_15 = %d_hidden : !bju, %d_residual2_16 = %d_residual2 : !bji) -> !bji layouts ([u, i], [u, b, j], [b, j, i] -> [b, j, i]) attributes {config = {algorithm = 66 : i64, cluster_shape = 5 : i64, custom_option = 7 : i64, family = "cublaslt", inner_shape = 0 : i64, library_version = 130100 : i64, reduction_scheme = 0 : i64, split_k = 1 : i64, stages = 35 : i64, swizzle = 0 : i64, tile = 24 : i64, workspace_bytes = 4 : i64}} {
      %d_norm1_hidden_product = weft.contract "ui,bju->bji" %w1_14, %d_hidden_15 : !ui, !bju -> !bji
      %d_norm1_17 = weft.add %d_residual2_16, %d_norm1_hidden_product : !bji
      weft.yield %d_norm1_17 : !bji
    }
    %d_gamma1, %d_beta1 = weft.kernel @layer_norm_dw (%d_norm1_14 = %d_norm1 : !bji, %residual1_15 = %residual1 : !bji, %mean1_16 = %mean1 : !f32_bj, %rstd1_17 = %rstd1 : !f32_bj) -> (!i, !i) layouts ([b, j, i], [b, j, i], [b, j], [b, j] -> [i], [i]) attributes {config = {blocks_per_row = 32 : i64, family = "loop", lane_axis = "i", reduction = "grid-columns", threads = 512 : i64, threads_per_row = 32 : i64, vector_axis = "i", vector_width = 8 : i64}} {
      %d_gamma1_18, %d_beta1_19 = weft.layer_norm_dw %d_norm1_14, %residual1_15, %mean1_16, %rstd1_17 over b, j : !bji, !bji, !f32_bj, !f32_bj -> !i, !i
      weft.yield %d_gamma1_18, %d_beta1_19 : !i, !i
    }
    %d_residual1, %d_attention = weft.kernel @layer_norm_dx_dropout (%d_norm1_14 = %d_norm1 : !bji, %residual1_15 = %residual1 : !bji, %gamma1_16 = %gamma1 : !i, %mean1_17 = %mean1 : !f32_bj, %rstd1_18 = %rstd1 : !f32_bj) -> (!bji, !bji) layouts ([b, j, i], [b, j, i], [i], [b, j], [b, j] -> [b, j, i], [b, j, i]) attributes {config = {family = "loop", lane_axis = "i", reduction = "block", threads = 64 : i64, threads_per_row = 64 : i64, vector_axis = "i", vector_width = 8 : i64}} {
      %d_residual1_19 = weft.layer_norm_dx %d_norm1_14, %residual1_15, %gamma1_16, %mean1_17, %rstd1_18 over i : !bji, !bji, !i, !f32_bj, !f32_bj
      %d_attention_20 = weft.dropout %d_residual1_19 {p = 0.1, stream = 1} : !bji
      weft.yield %d_residual1_19, %d_attention_20 : !bji, !bji
    }
    %d_bo = weft.kernel @reduce (%d_attention_14 = %d_attention : !bji) -> !i layouts ([b, j, i] -> [i]) attributes {config = {blocks_per_row = 64 : i64, family = "loop", lane_axis = "i", reduction = "grid-columns", threads = 256 : i64, threads_per_row = 8 : i64, vector_axis = "i", vector_width = 4 : i64}} {
      %d_bo_15 = weft.reduce sum %d_attention_14 over b, j : !bji -> !i
      weft.yield %d_bo_15 : !i
    }
    %d_wo = weft.kernel @d_wo_contraction (%d_attention_14 = %d_attention : !bji, %weighted_15 = %weighted : !whbj) -> !whi layouts ([b, j, i], [b, j, h, w] -> [i, h, w]) attributes {config = {blocks = 132 : i64, epilogue_stages = 2 : i64, family = "gemm-sm90", group_m = 8 : i64, schedule = "ping-pong", stages = 8 : i64, tile_m = 64 : i64, tile_n = 128 : i64}} {
      %d_wo_16 = weft.contract "bji,whbj->whi" %d_attention_14, %weighted_15 : !bji, !whbj -> !whi
      weft.yield %d_wo_16 : !whi
    }
    %wo_9 = weft.kernel @transpose_wo_2 (%wo_14 = %wo_7 : !whi) -> !whi layouts ([w, h, i] -> [i, w, h]) attributes {config = {family = "view"}} {
      %wo_15 = weft.identity %wo_14 : !whi
      weft.yield %wo_15 : !whi
    }
    %d_weighted = weft.kernel @d_weighted_projection (%wo_14 = %wo_9 : !whi, %d_attention_15 = %d_attention : !bji) -> !whbj layouts ([i, w, h], [b, j, i] -> [w, h, b, j]) attributes {config = {blocks = 132 : i64, epilogue_stages = 2 : i64, family = "gemm-sm90", group_m = 4 : i64, schedule = "ping-pong", stages = 6 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %d_weighted_16 = weft.contract "whi,bji->whbj" %wo_14, %d_attention_15 : !whi, !bji -> !whbj
      weft.yield %d_weighted_16 : !whbj
    }
    %d_weighted_10 = weft.kernel @transpose_d_weighted (%d_weighted_14 = %d_weighted : !whbj) -> !whbj layouts ([w, h, b, j] -> [h, b, j, w]) attributes {config = {family = "transpose", threads = 256 : i64, tile = 64 : i64, vector_width = 8 : i64}} {
      %d_weighted_15 = weft.identity %d_weighted_14 : !whbj
      weft.yield %d_weighted_15 : !whbj
    }
    %weighted_row_sums = weft.kernel @cast_mul_reduce (%d_weighted_14 = %d_weighted_10 : !whbj, %weighted_15 = %weighted : !whbj) -> !f32_hbj layouts ([h, b, j, w], [b, j, h, w] -> [h, b, j]) attributes {config = {family = "loop", lane_axis = "w", reduction = "warp", threads = 64 : i64, threads_per_row = 8 : i64, vector_axis = "w", vector_width = 8 : i64}} {
      %d_weighted_wide = weft.cast %d_weighted_14 : !whbj -> !f32_whbj
      %weighted_terms = weft.mul %d_weighted_wide, %weighted_15 : !f32_whbj, !whbj
      %weighted_row_sums_16 = weft.reduce sum %weighted_terms over w : !f32_whbj -> !f32_hbj
      weft.yield %weighted_row_sums_16 : !f32_hbj
    }
    %d_v, %d_k, %d_q = weft.kernel @attention_backward (%k_14 = %k : !phbk, %q_15 = %q : !phbj, %weighted_log_sums_16 = %weighted_log_sums : !f32_hbj, %d_weighted_17 = %d_weighted_10 : !whbj, %v_18 = %v : !whbk, %weighted_row_sums_19 = %weighted_row_sums : !f32_hbj) -> (!whbk, !phbk, !phbj) layouts ([k, b, h, p], [j, b, h, p], [h, b, j], [h, b, j, w], [k, b, h, w], [h, b, j] -> [b, k, h, w] strides [1, 64, 393216, 3072], [b, k, h, p] strides [1, 64, 393216, 3072], [h, b, j, p]) attributes {config = {blocks = 132 : i64, family = "attention-backward-sm90", head_group = 132 : i64, tile_keys = 128 : i64, tile_queries = 128 : i64}} {
      %score_again = weft.contract "phbk,phbj->hbjk" %k_14, %q_15 {scale = 0.125} : !phbk, !phbj -> !hbjk
      %d_kept = weft.contract "whbk,whbj->hbjk" %v_18, %d_weighted_17 : !whbk, !whbj -> !hbjk
      %probability_again = weft.softmax_from_log_sums %score_again, %weighted_log_sums_16 along (h, b, j) : !hbjk, !f32_hbj
      %kept_again = weft.dropout %probability_again {p = 0.1, stream = 0} : !hbjk
      %d_v_20 = weft.contract "whbj,hbjk->whbk" %d_weighted_17, %kept_again : !whbj, !hbjk -> !whbk
      %d_probability = weft.dropout %d_kept {p = 0.1, stream = 0} : !hbjk
      %d_probability_centered = weft.sub %d_probability, %weighted_row_sums_19 along (h, b, j) : !hbjk, !f32_hbj
      %d_score = weft.mul %d_probability_centered, %probability_again : !hbjk
      %d_k_21 = weft.contract "hbjk,phbj->phbk" %d_score, %q_15 {scale = 0.125} : !hbjk, !phbj -> !phbk
      %d_q_22 = weft.contract "phbk,hbjk->phbj" %k_14, %d_score {scale = 0.125} : !phbk, !hbjk -> !phbj
      weft.yield %d_v_20, %d_k_21, %d_q_22 : !whbk, !phbk, !phbj
    }
    %d_q_11 = weft.kernel @transpose_d_q (%d_q_14 = %d_q : !phbj) -> !phbj layouts ([h, b, j, p] -> [b, j, h, p] strides [1, 64, 393216, 3072]) attributes {config = {family = "transpose", threads = 256 : i64, tile = 64 : i64, vector_width = 8 : i64}} {
      %d_q_15 = weft.identity %d_q_14 : !phbj
      weft.yield %d_q_15 : !phbj
    }
    %d_q_d_k_d_v = weft.kernel @concat_2 (%d_q_14 = %d_q_11 : !phbj, %d_k_15 = %d_k : !phbk, %d_v_16 = %d_v : !whbk) -> !phbj1 layouts ([b, j, h, p] strides [1, 64, 393216, 3072], [b, k, h, p] strides [1, 64, 393216, 3072] offset 1024, [b, k, h, w] strides [1, 64, 393216, 3072] offset 2048 -> [b, j, h, p]) attributes {config = {family = "view"}} {
      %d_q_d_k_d_v_17 = weft.concat %d_q_14, %d_k_15, %d_v_16 {axis = h} : !phbj, !phbk, !whbk -> !phbj1
      weft.yield %d_q_d_k_d_v_17 : !phbj1
    }
    %wq_wk_wv_12 = weft.kernel @transpose_wq_wk_wv (%wq_wk_wv_14 = %wq_wk_wv : !phi1) -> !phi1 layouts ([p, h, i] -> [h, p, i]) attributes {config = {family = "view"}} {
      %wq_wk_wv_15 = weft.identity %wq_wk_wv_14 : !phi1
      weft.yield %wq_wk_wv_15 : !phi1
    }
    %d_x = weft.kernel @d_x_q_product_d_x_k_product_d_x_v_projection_add (%wq_wk_wv_14 = %wq_wk_wv_12 : !phi1, %d_q_d_k_d_v_15 = %d_q_d_k_d_v : !phbj1, %d_residual1_16 = %d_residual1 : !bji) -> !bji layouts ([h, p, i], [b, j, h, p], [b, j, i] -> [b, j, i]) attributes {config = {blocks = 132 : i64, epilogue_stages = 4 : i64, family = "gemm-sm90", group_m = 4 : i64, schedule = "ping-pong", stages = 5 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %d_x_q_product_d_x_k_product_d_x_v_product = weft.contract "phi,phbj->bji" %wq_wk_wv_14, %d_q_d_k_d_v_15 : !phi1, !phbj1 -> !bji
      %d_x_17 = weft.add %d_residual1_16, %d_x_q_product_d_x_k_product_d_x_v_product : !bji
      weft.yield %d_x_17 : !bji
    }
    %d_wq_d_wk_d_wv = weft.kernel @d_wq_d_wk_d_wv_contraction (%d_q_d_k_d_v_14 = %d_q_d_k_d_v : !phbj1, %x_15 = %x_0 : !bji) -> !phi1 layouts ([b, j, h, p], [b, j, i] -> [h, p, i]) attributes {config = {algorithm = 66 : i64, cluster_shape = 5 : i64, custom_option = 7 : i64, family = "cublaslt", inner_shape = 0 : i64, library_version = 130100 : i64, reduction_scheme = 0 : i64, split_k = 1 : i64, stages = 35 : i64, swizzle = 0 : i64, tile = 495 : i64, workspace_bytes = 0 : i64}} {
      %d_wq_d_wk_d_wv_16 = weft.contract "phbj,bji->phi" %d_q_d_k_d_v_14, %x_15 : !phbj1, !bji -> !phi1
      weft.yield %d_wq_d_wk_d_wv_16 : !phi1
    }
    %d_wq = weft.kernel @slice (%d_wq_d_wk_d_wv_14 = %d_wq_d_wk_d_wv : !phi1) -> !phi layouts ([h, p, i] -> [p, h, i]) attributes {config = {family = "loop", lane_axis = "i", reduction = "none", threads = 128 : i64, threads_per_row = 1 : i64, vector_axis = "i", vector_width = 8 : i64}} {
      %d_wq_15 = weft.slice %d_wq_d_wk_d_wv_14 {axis = h, size = 16, start = 0} : !phi1 -> !phi
      weft.yield %d_wq_15 : !phi
    }
    %d_wk = weft.kernel @slice_2 (%d_wq_d_wk_d_wv_14 = %d_wq_d_wk_d_wv : !phi1) -> !phi layouts ([h, p, i] -> [p, h, i]) attributes {config = {family = "loop", lane_axis = "i", reduction = "none", threads = 128 : i64, threads_per_row = 1 : i64, vector_axis = "i", vector_width = 8 : i64}} {
      %d_wk_15 = weft.slice %d_wq_d_wk_d_wv_14 {axis = h, size = 16, start = 16} : !phi1 -> !phi
      weft.yield %d_wk_15 : !phi
    }
    %d_wv = weft.kernel @slice_3 (%d_wq_d_wk_d_wv_14 = %d_wq_d_wk_d_wv : !phi1) -> !whi layouts ([h, p, i] -> [w, h, i]) attributes {config = {family = "loop", lane_axis = "i", reduction = "none", threads = 256 : i64, threads_per_row = 1 : i64, vector_axis = "i", vector_width = 8 : i64}} {
      %d_wv_15 = weft.slice %d_wq_d_wk_d_wv_14 {axis = h, size = 16, start = 32} : !phi1 -> !whi
      weft.yield %d_wv_15 : !whi
    }
    %d_bv = weft.kernel @reduce_2 (%d_v_14 = %d_v : !whbk) -> !wh layouts ([b, k, h, w] strides [1, 64, 393216, 3072] -> [w, h]) attributes {config = {blocks_per_row = 8 : i64, family = "loop", lane_axis = "w", reduction = "cluster-columns", threads = 512 : i64, threads_per_row = 32 : i64, vector_axis = "w", vector_width = 2 : i64}} {
      %d_bv_15 = weft.reduce sum %d_v_14 over b, k : !whbk -> !wh
      weft.yield %d_bv_15 : !wh
    }
    %d_bk = weft.kernel @reduce_3 (%d_k_14 = %d_k : !phbk) -> !ph layouts ([b, k, h, p] strides [1, 64, 393216, 3072] -> [p, h]) attributes {config = {blocks_per_row = 8 : i64, family = "loop", lane_axis = "p", reduction = "cluster-columns", threads = 512 : i64, threads_per_row = 32 : i64, vector_axis = "p", vector_width = 2 : i64}} {
      %d_bk_15 = weft.reduce sum %d_k_14 over b, k : !phbk -> !ph
      weft.yield %d_bk_15 : !ph
    }
    %d_bq = weft.kernel @reduce_4 (%d_q_14 = %d_q_11 : !phbj) -> !ph layouts ([h, b, j, p] -> [p, h]) attributes {config = {blocks_per_row = 8 : i64, family = "loop", lane_axis = "p", reduction = "cluster-columns", threads = 512 : i64, threads_per_row = 32 : i64, vector_axis = "p", vector_width = 2 : i64}} {
      %d_bq_15 = weft.reduce sum %d_q_14 over b, j : !phbj -> !ph
      weft.yield %d_bq_15 : !ph
    }
    %d_wo_13 = weft.kernel @transpose_d_wo (%d_wo_14 = %d_wo : !whi) -> !whi layouts ([i, h, w] -> [w, h, i]) attributes {config = {family = "transpose", threads = 256 : i64, tile = 32 : i64, vector_width = 4 : i64}} {
      %d_wo_15 = weft.identity %d_wo_14 : !whi
      weft.yield %d_wo_15 : !whi
    }
    weft.return %norm2, %d_x, %d_wq, %d_bq, %d_wk, %d_bk, %d_wv, %d_bv, %d_wo_13, %d_bo, %d_gamma1, %d_beta1, %d_w1, %d_b1, %d_w2, %d_b2, %d_gamma2, %d_beta2 : !bji, !bji, !phi, !ph, !phi, !ph, !whi, !wh, !whi, !i, !i, !i, !ui, !u, !iu, !i, !i, !i
  }
}

