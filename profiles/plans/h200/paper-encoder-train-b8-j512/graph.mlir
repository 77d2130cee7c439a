!bji = tensor<8x512x1024xf16, #weft.axes<b, j, i>>
!bju = tensor<8x512x4096xf16, #weft.axes<b, j, u>>
!f32_bj = tensor<8x512xf32, #weft.axes<b, j>>
!hbjk = tensor<16x8x512x512xf16, #weft.axes<h, b, j, k>>
!i = tensor<1024xf16, #weft.axes<i>>
!iu = tensor<1024x4096xf16, #weft.axes<i, u>>
!ph = tensor<64x16xf16, #weft.axes<p, h>>
!ph1 = tensor<64x48xf16, #weft.axes<p, h>>
!phbj = tensor<64x48x8x512xf16, #weft.axes<p, h, b, j>>
!phbj1 = tensor<64x16x8x512xf16, #weft.axes<p, h, b, j>>
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
  weft.graph @paper_encoder(%x: !bji, %wq: !phi {weft.initial = "normal(0.02)", weft.parameter}, %bq: !ph {weft.initial = "zeros", weft.parameter}, %wk: !phi {weft.initial = "normal(0.02)", weft.parameter}, %bk: !ph {weft.initial = "zeros", weft.parameter}, %wv: !whi {weft.initial = "normal(0.02)", weft.parameter}, %bv: !wh {weft.initial = "zeros", weft.parameter}, %wo: !whi {weft.initial = "normal(0.02)", weft.parameter}, %bo: !i {weft.initial = "zeros", weft.parameter}, %gamma1: !i {weft.initial = "ones", weft.parameter}, %beta1: !i {weft.initial = "zeros", weft.parameter}, %w1: !ui {weft.initial = "normal(0.02)", weft.parameter}, %b1: !u {weft.initial = "zeros", weft.parameter}, %w2: !iu {weft.initial = "normal(0.02)", weft.parameter}, %b2: !i {weft.initial = "zeros", weft.parameter}, %gamma2: !i {weft.initial = "ones", weft.parameter}, %beta2: !i {weft.initial = "zeros", weft.parameter}, %d_norm2: !bji {weft.gradient_of = "norm2"}) -> (!bji, !bji {weft.gradient_of = "x"}, !phi {weft.gradient_of = "wq"}, !ph {weft.gradient_of = "bq"}, !phi {weft.gradient_of = "wk"}, !ph {weft.gradient_of = "bk"}, !whi {weft.gradient_of = "wv"}, !wh {weft.gradient_of = "bv"}, !whi {weft.gradient_of = "wo"}, !i {weft.gradient_of = "bo"}, !i {weft.gradient_of = "gamma1"}, !i {weft.gradient_of = "beta1"}, !ui {weft.gradient_of = "w1"}, !u {weft.gradient_of = "b1"}, !iu {weft.gradient_of = "w2"}, !i {weft.gradient_of = "b2"}, !i {weft.gradient_of = "gamma2"}, !i {weft.gradient_of = "beta2"}) attributes {weft.saved = ["q", "k", "v", "probability", "kept", "weighted", "residual1", "norm1", "mean1", "rstd1", "active_kept", "residual2", "mean2", "rstd2"]} {
    %wq_wk_wv = weft.kernel @concat (%wq_4 = %wq : !phi, %wk_5 = %wk : !phi, %wv_6 = %wv : !whi) -> !phi1 layouts ([p, h, i], [p, h, i], [w, h, i] -> [p, h, i]) attributes {config = {family = "view"}} {
      %wq_wk_wv_7 = weft.concat %wq_4, %wk_5, %wv_6 {axis = h} : !phi, !phi, !whi -> !phi1
      weft.yield %wq_wk_wv_7 : !phi1
    }
    %bq_bk_bv = weft.kernel @concat_2 (%bq_4 = %bq : !ph, %bk_5 = %bk : !ph, %bv_6 = %bv : !wh) -> !ph1 layouts ([p, h], [p, h], [w, h] -> [p, h]) attributes {config = {family = "view"}} {
      %bq_bk_bv_7 = weft.concat %bq_4, %bk_5, %bv_6 {axis = h} : !ph, !ph, !wh -> !ph1
      weft.yield %bq_bk_bv_7 : !ph1
    }
    %wq_wk_wv_0 = weft.kernel @transpose_wq_wk_wv (%wq_wk_wv_4 = %wq_wk_wv : !phi1) -> !phi1 layouts ([p, h, i] -> [i, p, h]) attributes {config = {family = "view"}, weft.transpose} {
      %wq_wk_wv_5 = weft.identity %wq_wk_wv_4 : !phi1
      weft.yield %wq_wk_wv_5 : !phi1
    }
    %q_k_v = weft.kernel @q_product_k_product_v_projection_bias (%wq_wk_wv_4 = %wq_wk_wv_0 : !phi1, %x_5 = %x : !bji, %bq_bk_bv_6 = %bq_bk_bv : !ph1) -> !phbj layouts ([i, p, h], [b, j, i], [p, h] -> [p, h, b, j]) attributes {config = {blocks = 132 : i64, epilogue_stages = 4 : i64, family = "gemm-sm90", group_m = 8 : i64, schedule = "ping-pong", stages = 4 : i64, tile_m = 128 : i64, tile_n = 192 : i64}} {
      %q_product_k_product_v_product = weft.contract "phi,bji->phbj" %wq_wk_wv_4, %x_5 : !phi1, !bji -> !phbj
      %q_k_v_7 = weft.bias %q_product_k_product_v_product, %bq_bk_bv_6 along (p, h) : !phbj, !ph1
      weft.yield %q_k_v_7 : !phbj
    }
    %q = weft.kernel @slice (%q_k_v_4 = %q_k_v : !phbj) -> !phbj1 layouts ([p, h, b, j] -> [p, h, b, j] strides [196608, 4096, 512, 1]) attributes {config = {family = "view"}} {
      %q_5 = weft.slice %q_k_v_4 {axis = h, size = 16, start = 0} : !phbj -> !phbj1
      weft.yield %q_5 : !phbj1
    }
    %k = weft.kernel @slice_2 (%q_k_v_4 = %q_k_v : !phbj) -> !phbk layouts ([p, h, b, j] -> [p, h, b, k] strides [196608, 4096, 512, 1] offset 65536) attributes {config = {family = "view"}} {
      %k_5 = weft.slice %q_k_v_4 {axis = h, size = 16, start = 16} : !phbj -> !phbk
      weft.yield %k_5 : !phbk
    }
    %v = weft.kernel @slice_3 (%q_k_v_4 = %q_k_v : !phbj) -> !whbk layouts ([p, h, b, j] -> [w, h, b, k] strides [196608, 4096, 512, 1] offset 131072) attributes {config = {family = "view"}} {
      %v_5 = weft.slice %q_k_v_4 {axis = h, size = 16, start = 32} : !phbj -> !whbk
      weft.yield %v_5 : !whbk
    }
    %score = weft.kernel @score_contraction (%k_4 = %k : !phbk, %q_5 = %q : !phbj1) -> !hbjk layouts ([p, h, b, k] strides [196608, 4096, 512, 1], [p, h, b, j] strides [196608, 4096, 512, 1] -> [h, b, j, k]) attributes {config = {blocks = 132 : i64, epilogue_stages = 2 : i64, family = "gemm-sm90", group_m = 8 : i64, schedule = "ping-pong", stages = 6 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %score_6 = weft.contract "phbk,phbj->hbjk" %k_4, %q_5 {scale = 0.125} : !phbk, !phbj1 -> !hbjk
      weft.yield %score_6 : !hbjk
    }
    %probability, %kept = weft.kernel @softmax_dropout (%score_4 = %score : !hbjk) -> (!hbjk, !hbjk) layouts ([h, b, j, k] -> [h, b, j, k], [h, b, j, k]) attributes {config = {family = "loop", lane_axis = "k", reduction = "warp", threads = 128 : i64, threads_per_row = 32 : i64, vector_axis = "k", vector_width = 8 : i64}} {
      %probability_5 = weft.softmax %score_4 over k {empty_row = zero} : !hbjk
      %kept_6 = weft.dropout %probability_5 {p = 0.1, stream = 0} : !hbjk
      weft.yield %probability_5, %kept_6 : !hbjk, !hbjk
    }
    %weighted = weft.kernel @weighted_contraction (%v_4 = %v : !whbk, %kept_5 = %kept : !hbjk) -> !whbj layouts ([w, h, b, k] strides [196608, 4096, 512, 1], [h, b, j, k] -> [w, h, b, j]) attributes {config = {blocks = 132 : i64, epilogue_stages = 1 : i64, family = "gemm-sm90", group_m = 8 : i64, schedule = "ping-pong", stages = 12 : i64, tile_m = 64 : i64, tile_n = 64 : i64}} {
      %weighted_6 = weft.contract "whbk,hbjk->whbj" %v_4, %kept_5 : !whbk, !hbjk -> !whbj
      weft.yield %weighted_6 : !whbj
    }
    %residual1 = weft.kernel @attention_projection_bias_dropout_residual (%wo_4 = %wo : !whi, %weighted_5 = %weighted : !whbj, %bo_6 = %bo : !i, %x_7 = %x : !bji) -> !bji layouts ([w, h, i], [w, h, b, j], [i], [b, j, i] -> [b, j, i]) attributes {config = {blocks = 132 : i64, epilogue_stages = 4 : i64, family = "gemm-sm90", group_m = 8 : i64, schedule = "cooperative", stages = 3 : i64, tile_m = 128 : i64, tile_n = 256 : i64}} {
      %attention_product = weft.contract "whi,whbj->bji" %wo_4, %weighted_5 : !whi, !whbj -> !bji
      %attention = weft.bias %attention_product, %bo_6 along (i) : !bji, !i
      %attention_kept = weft.dropout %attention {p = 0.1, stream = 1} : !bji
      %residual1_8 = weft.residual %attention_kept, %x_7 : !bji
      weft.yield %residual1_8 : !bji
    }
    %norm1, %mean1, %rstd1 = weft.kernel @layer_norm (%residual1_4 = %residual1 : !bji, %gamma1_5 = %gamma1 : !i, %beta1_6 = %beta1 : !i) -> (!bji, !f32_bj, !f32_bj) layouts ([b, j, i], [i], [i] -> [b, j, i], [b, j], [b, j]) attributes {config = {family = "loop", lane_axis = "i", reduction = "warp", threads = 64 : i64, threads_per_row = 32 : i64, vector_axis = "i", vector_width = 4 : i64}} {
      %norm1_7, %mean1_8, %rstd1_9 = weft.layer_norm %residual1_4, %gamma1_5, %beta1_6 over i {epsilon = 1.0e-05} : !bji, !i, !i -> !bji, !f32_bj, !f32_bj
      weft.yield %norm1_7, %mean1_8, %rstd1_9 : !bji, !f32_bj, !f32_bj
    }
    %active_kept = weft.kernel @hidden_projection_bias_relu_dropout (%w1_4 = %w1 : !ui, %norm1_5 = %norm1 : !bji, %b1_6 = %b1 : !u) -> !bju layouts ([u, i], [b, j, i], [u] -> [b, j, u]) attributes {config = {blocks = 132 : i64, epilogue_stages = 2 : i64, family = "gemm-sm90", group_m = 8 : i64, schedule = "ping-pong", stages = 6 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %hidden_product = weft.contract "ui,bji->bju" %w1_4, %norm1_5 : !ui, !bji -> !bju
      %hidden = weft.bias %hidden_product, %b1_6 along (u) : !bju, !u
      %active = weft.relu %hidden : !bju
      %active_kept_7 = weft.dropout %active {p = 0.1, stream = 2} : !bju
      weft.yield %active_kept_7 : !bju
    }
    %w2_1 = weft.kernel @transpose_w2 (%w2_4 = %w2 : !iu) -> !iu layouts ([i, u] -> [u, i]) attributes {config = {family = "view"}, weft.transpose} {
      %w2_5 = weft.identity %w2_4 : !iu
      weft.yield %w2_5 : !iu
    }
    %residual2 = weft.kernel @feed_forward_projection_bias_dropout_residual (%w2_4 = %w2_1 : !iu, %active_kept_5 = %active_kept : !bju, %b2_6 = %b2 : !i, %norm1_7 = %norm1 : !bji) -> !bji layouts ([u, i], [b, j, u], [i], [b, j, i] -> [b, j, i]) attributes {config = {blocks = 132 : i64, epilogue_stages = 4 : i64, family = "gemm-sm90", group_m = 8 : i64, schedule = "cooperative", stages = 3 : i64, tile_m = 128 : i64, tile_n = 256 : i64}} {
      %feed_forward_product = weft.contract "iu,bju->bji" %w2_4, %active_kept_5 : !iu, !bju -> !bji
      %feed_forward = weft.bias %feed_forward_product, %b2_6 along (i) : !bji, !i
      %feed_forward_kept = weft.dropout %feed_forward {p = 0.1, stream = 3} : !bji
      %residual2_8 = weft.residual %feed_forward_kept, %norm1_7 : !bji
      weft.yield %residual2_8 : !bji
    }
    %norm2, %mean2, %rstd2 = weft.kernel @layer_norm_2 (%residual2_4 = %residual2 : !bji, %gamma2_5 = %gamma2 : !i, %beta2_6 = %beta2 : !i) -> (!bji, !f32_bj, !f32_bj) layouts ([b, j, i], [i], [i] -> [b, j, i], [b, j], [b, j]) attributes {config = {family = "loop", lane_axis = "i", reduction = "warp", threads = 64 : i64, threads_per_row = 32 : i64, vector_axis = "i", vector_width = 4 : i64}} {
      %norm2_7, %mean2_8, %rstd2_9 = weft.layer_norm %residual2_4, %gamma2_5, %beta2_6 over i {epsilon = 1.0e-05} : !bji, !i, !i -> !bji, !f32_bj, !f32_bj
      weft.yield %norm2_7, %mean2_8, %rstd2_9 : !bji, !f32_bj, !f32_bj
    }
    %wq_wk_wv_2 = weft.kernel @concat_3 (%wq_4 = %wq : !phi, %wk_5 = %wk : !phi, %wv_6 = %wv : !whi) -> !phi1 layouts ([p, h, i], [p, h, i], [w, h, i] -> [p, h, i]) attributes {config = {family = "view"}} {
      %wq_wk_wv_7 = weft.concat %wq_4, %wk_5, %wv_6 {axis = h} : !phi, !phi, !whi -> !phi1
      weft.yield %wq_wk_wv_7 : !phi1
    }
    %d_residual2, %d_feed_forward = weft.kernel @layer_norm_dx_dropout (%d_norm2_4 = %d_norm2 : !bji, %residual2_5 = %residual2 : !bji, %gamma2_6 = %gamma2 : !i, %mean2_7 = %mean2 : !f32_bj, %rstd2_8 = %rstd2 : !f32_bj) -> (!bji, !bji) layouts ([b, j, i], [b, j, i], [i], [b, j], [b, j] -> [b, j, i], [b, j, i]) attributes {config = {family = "loop", lane_axis = "i", reduction = "block", threads = 64 : i64, threads_per_row = 64 : i64, vector_axis = "i", vector_width = 16 : i64}} {
      %d_residual2_9 = weft.layer_norm_dx %d_norm2_4, %residual2_5, %gamma2_6, %mean2_7, %rstd2_8 over i : !bji, !bji, !i, !f32_bj, !f32_bj
      %d_feed_forward_10 = weft.dropout %d_residual2_9 {p = 0.1, stream = 3} : !bji
      weft.yield %d_residual2_9, %d_feed_forward_10 : !bji, !bji
    }
    %d_b2 = weft.kernel @reduce (%d_feed_forward_4 = %d_feed_forward : !bji) -> !i layouts ([b, j, i] -> [i]) attributes {config = {blocks_per_row = 8 : i64, family = "loop", lane_axis = "i", reduction = "cluster-columns", threads = 512 : i64, threads_per_row = 64 : i64, vector_axis = "i", vector_width = 8 : i64}} {
      %d_b2_5 = weft.reduce sum %d_feed_forward_4 over b, j : !bji -> !i
      weft.yield %d_b2_5 : !i
    }
    %d_w2 = weft.kernel @d_w2_contraction (%d_feed_forward_4 = %d_feed_forward : !bji, %active_kept_5 = %active_kept : !bju) -> !iu layouts ([b, j, i], [b, j, u] -> [i, u]) attributes {config = {algorithm = 66 : i64, cluster_shape = 3 : i64, custom_option = 4 : i64, family = "cublaslt", inner_shape = 0 : i64, library_version = 130100 : i64, reduction_scheme = 0 : i64, split_k = 1 : i64, stages = 35 : i64, swizzle = 0 : i64, tile = 23 : i64, workspace_bytes = 0 : i64}} {
      %d_w2_6 = weft.contract "bji,bju->iu" %d_feed_forward_4, %active_kept_5 : !bji, !bju -> !iu
      weft.yield %d_w2_6 : !iu
    }
    %d_hidden, %d_b1 = weft.kernel @d_active_kept_projection_scale_relu_dx_reduce (%w2_4 = %w2_1 : !iu, %d_feed_forward_5 = %d_feed_forward : !bji, %active_kept_6 = %active_kept : !bju) -> (!bju, !u) layouts ([i, u], [b, j, i], [b, j, u] -> [b, j, u], [u]) attributes {config = {blocks = 132 : i64, epilogue_stages = 4 : i64, family = "gemm-sm90", group_m = 4 : i64, schedule = "ping-pong", stages = 5 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %d_active_kept = weft.contract "iu,bji->bju" %w2_4, %d_feed_forward_5 : !iu, !bji -> !bju
      %d_active = weft.scale %d_active_kept {factor = 1.1111111640930176} : !bju
      %d_hidden_7 = weft.relu_dx %d_active, %active_kept_6 : !bju
      %d_b1_8 = weft.reduce sum %d_hidden_7 over b, j : !bju -> !u
      weft.yield %d_hidden_7, %d_b1_8 : !bju, !u
    }
    %d_w1 = weft.kernel @d_w1_contraction (%d_hidden_4 = %d_hidden : !bju, %norm1_5 = %norm1 : !bji) -> !ui layouts ([b, j, u], [b, j, i] -> [u, i]) attributes {config = {algorithm = 66 : i64, cluster_shape = 5 : i64, custom_option = 7 : i64, family = "cublaslt", inner_shape = 0 : i64, library_version = 130100 : i64, reduction_scheme = 0 : i64, split_k = 1 : i64, stages = 35 : i64, swizzle = 0 : i64, tile = 24 : i64, workspace_bytes = 0 : i64}} {
      %d_w1_6 = weft.contract "bju,bji->ui" %d_hidden_4, %norm1_5 : !bju, !bji -> !ui
      weft.yield %d_w1_6 : !ui
    }
    %w1_2 = weft.kernel @transpose_w1 (%w1_4 = %w1 : !ui) -> !ui layouts ([u, i] -> [i, u]) attributes {config = {family = "view"}, weft.transpose} {
      %w1_5 = weft.identity %w1_4 : !ui
      weft.yield %w1_5 : !ui
    }
    %d_norm1 = weft.kernel @d_norm1_hidden_projection_add (%w1_4 = %w1_2 : !ui, %d_hidden_5 = %d_hidden : !bju, %d_residual2_6 = %d_residual2 : !bji) -> !bji layouts ([i, u], [b, j, u], [b, j, i] -> [b, j, i]) attributes {config = {algorithm = 66 : i64, cluster_shape = 5 : i64, custom_option = 7 : i64, family = "cublaslt", inner_shape = 0 : i64, library_version = 130100 : i64, reduction_scheme = 0 : i64, split_k = 1 : i64, stages = 35 : i64, swizzle = 0 : i64, tile = 24 : i64, workspace_bytes = 0 : i64}} {
      %d_norm1_hidden_product = weft.contract "ui,bju->bji" %w1_4, %d_hidden_5 : !ui, !bju -> !bji
      %d_norm1_7 = weft.add %d_residual2_6, %d_norm1_hidden_product : !bji
      weft.yield %d_norm1_7 : !bji
    }
    %d_gamma1, %d_beta1 = weft.kernel @layer_norm_dw (%d_norm1_4 = %d_norm1 : !bji, %residual1_5 = %residual1 : !bji, %mean1_6 = %mean1 : !f32_bj, %rstd1_7 = %rstd1 : !f32_bj) -> (!i, !i) layouts ([b, j, i], [b, j, i], [b, j], [b, j] -> [i], [i]) attributes {config = {blocks_per_row = 32 : i64, family = "loop", lane_axis = "i", reduction = "grid-columns", threads = 256 : i64, threads_per_row = 16 : i64, vector_axis = "i", vector_width = 4 : i64}} {
      %d_gamma1_8, %d_beta1_9 = weft.layer_norm_dw %d_norm1_4, %residual1_5, %mean1_6, %rstd1_7 over b, j : !bji, !bji, !f32_bj, !f32_bj -> !i, !i
      weft.yield %d_gamma1_8, %d_beta1_9 : !i, !i
    }
    %d_residual1, %d_attention = weft.kernel @layer_norm_dx_dropout_2 (%d_norm1_4 = %d_norm1 : !bji, %residual1_5 = %residual1 : !bji, %gamma1_6 = %gamma1 : !i, %mean1_7 = %mean1 : !f32_bj, %rstd1_8 = %rstd1 : !f32_bj) -> (!bji, !bji) layouts ([b, j, i], [b, j, i], [i], [b, j], [b, j] -> [b, j, i], [b, j, i]) attributes {config = {family = "loop", lane_axis = "i", reduction = "block", threads = 64 : i64, threads_per_row = 64 : i64, vector_axis = "i", vector_width = 16 : i64}} {
      %d_residual1_9 = weft.layer_norm_dx %d_norm1_4, %residual1_5, %gamma1_6, %mean1_7, %rstd1_8 over i : !bji, !bji, !i, !f32_bj, !f32_bj
      %d_attention_10 = weft.dropout %d_residual1_9 {p = 0.1, stream = 1} : !bji
      weft.yield %d_residual1_9, %d_attention_10 : !bji, !bji
    }
    %wo_3 = weft.kernel @transpose_wo (%wo_4 = %wo : !whi) -> !whi layouts ([w, h, i] -> [i, w, h]) attributes {config = {family = "view"}, weft.transpose} {
      %wo_5 = weft.identity %wo_4 : !whi
      weft.yield %wo_5 : !whi
    }
    %d_weighted = weft.kernel @d_weighted_projection (%wo_4 = %wo_3 : !whi, %d_attention_5 = %d_attention : !bji) -> !whbj layouts ([i, w, h], [b, j, i] -> [w, h, b, j]) attributes {config = {algorithm = 66 : i64, cluster_shape = 3 : i64, custom_option = 1 : i64, family = "cublaslt", inner_shape = 0 : i64, library_version = 130100 : i64, reduction_scheme = 0 : i64, split_k = 1 : i64, stages = 35 : i64, swizzle = 0 : i64, tile = 20 : i64, workspace_bytes = 0 : i64}} {
      %d_weighted_6 = weft.contract "whi,bji->whbj" %wo_4, %d_attention_5 : !whi, !bji -> !whbj
      weft.yield %d_weighted_6 : !whbj
    }
    %d_gamma2, %d_beta2 = weft.kernel @layer_norm_dw_2 (%d_norm2_4 = %d_norm2 : !bji, %residual2_5 = %residual2 : !bji, %mean2_6 = %mean2 : !f32_bj, %rstd2_7 = %rstd2 : !f32_bj) -> (!i, !i) layouts ([b, j, i], [b, j, i], [b, j], [b, j] -> [i], [i]) attributes {config = {blocks_per_row = 32 : i64, family = "loop", lane_axis = "i", reduction = "grid-columns", threads = 256 : i64, threads_per_row = 16 : i64, vector_axis = "i", vector_width = 4 : i64}} {
      %d_gamma2_8, %d_beta2_9 = weft.layer_norm_dw %d_norm2_4, %residual2_5, %mean2_6, %rstd2_7 over b, j : !bji, !bji, !f32_bj, !f32_bj -> !i, !i
      weft.yield %d_gamma2_8, %d_beta2_9 : !i, !i
    }
    %d_bo = weft.kernel @reduce_2 (%d_attention_4 = %d_attention : !bji) -> !i layouts ([b, j, i] -> [i]) attributes {config = {blocks_per_row = 8 : i64, family = "loop", lane_axis = "i", reduction = "cluster-columns", threads = 512 : i64, threads_per_row = 64 : i64, vector_axis = "i", vector_width = 8 : i64}} {
      %d_bo_5 = weft.reduce sum %d_attention_4 over b, j : !bji -> !i
      weft.yield %d_bo_5 : !i
    }
    %d_wo = weft.kernel @d_wo_contraction (%d_attention_4 = %d_attention : !bji, %weighted_5 = %weighted : !whbj) -> !whi layouts ([b, j, i], [w, h, b, j] -> [w, h, i]) attributes {config = {blocks = 132 : i64, epilogue_stages = 2 : i64, family = "gemm-sm90", group_m = 8 : i64, schedule = "ping-pong", stages = 8 : i64, tile_m = 64 : i64, tile_n = 128 : i64}} {
      %d_wo_6 = weft.contract "bji,whbj->whi" %d_attention_4, %weighted_5 : !bji, !whbj -> !whi
      weft.yield %d_wo_6 : !whi
    }
    %d_v = weft.kernel @d_v_contraction (%d_weighted_4 = %d_weighted : !whbj, %kept_5 = %kept : !hbjk) -> !whbk layouts ([w, h, b, j], [h, b, j, k] -> [w, h, b, k] strides [196608, 4096, 512, 1]) attributes {config = {blocks = 132 : i64, epilogue_stages = 1 : i64, family = "gemm-sm90", group_m = 8 : i64, schedule = "ping-pong", stages = 12 : i64, tile_m = 64 : i64, tile_n = 64 : i64}} {
      %d_v_6 = weft.contract "whbj,hbjk->whbk" %d_weighted_4, %kept_5 : !whbj, !hbjk -> !whbk
      weft.yield %d_v_6 : !whbk
    }
    %d_kept = weft.kernel @d_kept_contraction (%v_4 = %v : !whbk, %d_weighted_5 = %d_weighted : !whbj) -> !hbjk layouts ([w, h, b, k] strides [196608, 4096, 512, 1], [w, h, b, j] -> [h, b, j, k]) attributes {config = {blocks = 132 : i64, epilogue_stages = 2 : i64, family = "gemm-sm90", group_m = 8 : i64, schedule = "ping-pong", stages = 6 : i64, tile_m = 128 : i64, tile_n = 128 : i64}} {
      %d_kept_6 = weft.contract "whbk,whbj->hbjk" %v_4, %d_weighted_5 : !whbk, !whbj -> !hbjk
      weft.yield %d_kept_6 : !hbjk
    }
    %d_score = weft.kernel @dropout_softmax_dx (%d_kept_4 = %d_kept : !hbjk, %probability_5 = %probability : !hbjk) -> !hbjk layouts ([h, b, j, k], [h, b, j, k] -> [h, b, j, k]) attributes {config = {family = "loop", lane_axis = "k", reduction = "warp", threads = 64 : i64, threads_per_row = 32 : i64, vector_axis = "k", vector_width = 16 : i64}} {
      %d_probability = weft.dropout %d_kept_4 {p = 0.1, stream = 0} : !hbjk
      %d_score_6 = weft.softmax_dx %d_probability, %probability_5 over k : !hbjk
      weft.yield %d_score_6 : !hbjk
    }
    %d_k = weft.kernel @d_k_contraction (%d_score_4 = %d_score : !hbjk, %q_5 = %q : !phbj1) -> !phbk layouts ([h, b, j, k], [p, h, b, j] strides [196608, 4096, 512, 1] -> [p, h, b, k] strides [196608, 4096, 512, 1]) attributes {config = {blocks = 132 : i64, epilogue_stages = 1 : i64, family = "gemm-sm90", group_m = 8 : i64, schedule = "ping-pong", stages = 12 : i64, tile_m = 64 : i64, tile_n = 64 : i64}} {
      %d_k_6 = weft.contract "hbjk,phbj->phbk" %d_score_4, %q_5 {scale = 0.125} : !hbjk, !phbj1 -> !phbk
      weft.yield %d_k_6 : !phbk
    }
    %d_q = weft.kernel @d_q_contraction (%k_4 = %k : !phbk, %d_score_5 = %d_score : !hbjk) -> !phbj1 layouts ([p, h, b, k] strides [196608, 4096, 512, 1], [h, b, j, k] -> [p, h, b, j] strides [196608, 4096, 512, 1]) attributes {config = {blocks = 132 : i64, epilogue_stages = 1 : i64, family = "gemm-sm90", group_m = 8 : i64, schedule = "ping-pong", stages = 12 : i64, tile_m = 64 : i64, tile_n = 64 : i64}} {
      %d_q_6 = weft.contract "phbk,hbjk->phbj" %k_4, %d_score_5 {scale = 0.125} : !phbk, !hbjk -> !phbj1
      weft.yield %d_q_6 : !phbj1
    }
    %d_q_d_k_d_v = weft.kernel @concat_4 (%d_q_4 = %d_q : !phbj1, %d_k_5 = %d_k : !phbk, %d_v_6 = %d_v : !whbk) -> !phbj layouts ([p, h, b, j] strides [196608, 4096, 512, 1], [p, h, b, k] strides [196608, 4096, 512, 1] offset 65536, [w, h, b, k] strides [196608, 4096, 512, 1] offset 131072 -> [p, h, b, j]) attributes {config = {family = "view"}} {
      %d_q_d_k_d_v_7 = weft.concat %d_q_4, %d_k_5, %d_v_6 {axis = h} : !phbj1, !phbk, !whbk -> !phbj
      weft.yield %d_q_d_k_d_v_7 : !phbj
    }
    %d_x = weft.kernel @d_x_q_product_d_x_k_product_d_x_v_projection_add (%wq_wk_wv_2_4 = %wq_wk_wv_2 : !phi1, %d_q_d_k_d_v_5 = %d_q_d_k_d_v : !phbj, %d_residual1_6 = %d_residual1 : !bji) -> !bji layouts ([p, h, i], [p, h, b, j], [b, j, i] -> [b, j, i]) attributes {config = {algorithm = 66 : i64, cluster_shape = 5 : i64, custom_option = 7 : i64, family = "cublaslt", inner_shape = 0 : i64, library_version = 130100 : i64, reduction_scheme = 0 : i64, split_k = 1 : i64, stages = 35 : i64, swizzle = 0 : i64, tile = 24 : i64, workspace_bytes = 0 : i64}} {
      %d_x_q_product_d_x_k_product_d_x_v_product = weft.contract "phi,phbj->bji" %wq_wk_wv_2_4, %d_q_d_k_d_v_5 : !phi1, !phbj -> !bji
      %d_x_7 = weft.add %d_residual1_6, %d_x_q_product_d_x_k_product_d_x_v_product : !bji
      weft.yield %d_x_7 : !bji
    }
    %d_wq_d_wk_d_wv = weft.kernel @d_wq_d_wk_d_wv_contraction (%d_q_d_k_d_v_4 = %d_q_d_k_d_v : !phbj, %x_5 = %x : !bji) -> !phi1 layouts ([p, h, b, j], [b, j, i] -> [p, h, i]) attributes {config = {algorithm = 66 : i64, cluster_shape = 5 : i64, custom_option = 7 : i64, family = "cublaslt", inner_shape = 0 : i64, library_version = 130100 : i64, reduction_scheme = 0 : i64, split_k = 1 : i64, stages = 35 : i64, swizzle = 0 : i64, tile = 495 : i64, workspace_bytes = 0 : i64}} {
      %d_wq_d_wk_d_wv_6 = weft.contract "phbj,bji->phi" %d_q_d_k_d_v_4, %x_5 : !phbj, !bji -> !phi1
      weft.yield %d_wq_d_wk_d_wv_6 : !phi1
    }
    %d_wq = weft.kernel @slice_4 (%d_wq_d_wk_d_wv_4 = %d_wq_d_wk_d_wv : !phi1) -> !phi layouts ([p, h, i] -> [p, h, i]) attributes {config = {family = "loop", lane_axis = "i", reduction = "none", threads = 256 : i64, threads_per_row = 1 : i64, vector_axis = "i", vector_width = 8 : i64}} {
      %d_wq_5 = weft.slice %d_wq_d_wk_d_wv_4 {axis = h, size = 16, start = 0} : !phi1 -> !phi
      weft.yield %d_wq_5 : !phi
    }
    %d_wk = weft.kernel @slice_5 (%d_wq_d_wk_d_wv_4 = %d_wq_d_wk_d_wv : !phi1) -> !phi layouts ([p, h, i] -> [p, h, i]) attributes {config = {family = "loop", lane_axis = "i", reduction = "none", threads = 128 : i64, threads_per_row = 1 : i64, vector_axis = "i", vector_width = 8 : i64}} {
      %d_wk_5 = weft.slice %d_wq_d_wk_d_wv_4 {axis = h, size = 16, start = 16} : !phi1 -> !phi
      weft.yield %d_wk_5 : !phi
    }
    %d_wv = weft.kernel @slice_6 (%d_wq_d_wk_d_wv_4 = %d_wq_d_wk_d_wv : !phi1) -> !whi layouts ([p, h, i] -> [w, h, i]) attributes {config = {family = "loop", lane_axis = "i", reduction = "none", threads = 256 : i64, threads_per_row = 1 : i64, vector_axis = "i", vector_width = 8 : i64}} {
      %d_wv_5 = weft.slice %d_wq_d_wk_d_wv_4 {axis = h, size = 16, start = 32} : !phi1 -> !whi
      weft.yield %d_wv_5 : !whi
    }
    %d_bv, %d_bk, %d_bq = weft.kernel @reduce_x3 (%d_v_4 = %d_v : !whbk, %d_k_5 = %d_k : !phbk, %d_q_6 = %d_q : !phbj1) -> (!wh, !ph, !ph) layouts ([w, h, b, k] strides [196608, 4096, 512, 1], [p, h, b, k] strides [196608, 4096, 512, 1], [p, h, b, j] strides [196608, 4096, 512, 1] -> [w, h], [p, h], [p, h]) attributes {config = {family = "loop", lane_axis = "k", reduction = "block", threads = 128 : i64, threads_per_row = 128 : i64, vector_axis = "k", vector_width = 8 : i64}} {
      %d_bv_7 = weft.reduce sum %d_v_4 over b, k : !whbk -> !wh
      %d_bk_8 = weft.reduce sum %d_k_5 over b, k : !phbk -> !ph
      %d_bq_9 = weft.reduce sum %d_q_6 over b, j : !phbj1 -> !ph
      weft.yield %d_bv_7, %d_bk_8, %d_bq_9 : !wh, !ph, !ph
    }
    weft.return %norm2, %d_x, %d_wq, %d_bq, %d_wk, %d_bk, %d_wv, %d_bv, %d_wo, %d_bo, %d_gamma1, %d_beta1, %d_w1, %d_b1, %d_w2, %d_b2, %d_gamma2, %d_beta2 : !bji, !bji, !phi, !ph, !phi, !ph, !whi, !wh, !whi, !i, !i, !i, !ui, !u, !iu, !i, !i, !i
  }
}

