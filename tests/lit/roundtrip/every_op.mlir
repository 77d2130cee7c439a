// RUN: weft-opt %s > %t.once && weft-opt %t.once > %t.twice && diff %t.once %t.twice && FileCheck %s < %t.once
// The generic form holds the same op (its parser keeps no names).
// RUN: weft-opt --mlir-print-op-generic %s | weft-opt | FileCheck %s --check-prefix=GENERIC
// GENERIC: weft.graph @unary(%arg0: !f32_bji) -> !f32_bji
// GENERIC: weft.scale %{{.*}} {factor = -0.3333333333333333} : !f32_bji
// GENERIC: weft.rotary %{{.*}} {base = 10000.0, dim = i, position = j, style = interleaved} : !f32_bji
// GENERIC: weft.layer_norm %{{.*}} over i {epsilon = 0.01} : !f32_bji, !f32_i, !f32_i -> !f32_bji, !f32_bj, !f32_bj

!bji = tensor<2x4x6xf32, #weft.axes<b, j, i>>
!bij = tensor<2x6x4xf32, #weft.axes<b, i, j>>
!bj = tensor<2x4xf32, #weft.axes<b, j>>
!b = tensor<2xf32, #weft.axes<b>>
!i = tensor<6xf32, #weft.axes<i>>
!jk = tensor<4x4xf32, #weft.axes<j, k>>
!jj = tensor<4x4xf32, #weft.axes<j, j>>
!bjn = tensor<2x4x2xf32, #weft.axes<b, j, n>>
!mask = tensor<2x4x6xi1, #weft.axes<b, j, i>>
!table = tensor<2x2xi1, #weft.axes<j, k>>
!lengths = tensor<2xi32, #weft.axes<b>>
!segments = tensor<2x6xi32, #weft.axes<b, i>>
!bounds = tensor<2x1x2xi32, #weft.axes<b, i_tile, bound>>
!distances = tensor<2x5xf32, #weft.axes<b, distance>>
!buckets = tensor<3x2xf32, #weft.axes<n, b>>
!long = tensor<2x6xbf16, #weft.axes<batch, "head dim">>
!scalar = tensor<f32, #weft.axes<>>

// CHECK-LABEL: @unary
weft.graph @unary(%x: !bji) -> !bji {
  // CHECK: weft.relu %x : !f32_bji
  %1 = weft.relu %x : !bji
  // CHECK: weft.gelu %
  %2 = weft.gelu %1 : !bji
  // CHECK: weft.gelu_tanh %
  %3 = weft.gelu_tanh %2 : !bji
  // CHECK: weft.silu %
  %4 = weft.silu %3 : !bji
  // CHECK: weft.tanh %
  %5 = weft.tanh %4 : !bji
  // CHECK: weft.sigmoid %
  %6 = weft.sigmoid %5 : !bji
  // CHECK: weft.exp %
  %7 = weft.exp %6 : !bji
  // CHECK: weft.rsqrt %
  %8 = weft.rsqrt %7 : !bji
  // CHECK: weft.scale %{{.*}} {factor = -0.3333333333333333} : !f32_bji
  %9 = weft.scale %8 {factor = -0.3333333333333333} : !bji
  // CHECK: weft.scale %{{.*}} {factor = 1.0e-30} : !f32_bji
  %10 = weft.scale %9 {factor = 1.0e-30} : !bji
  // CHECK: weft.dropout %{{.*}} {p = 0.0, stream = 4294967295} : !f32_bji
  %11 = weft.dropout %10 {p = 0.0, stream = 4294967295} : !bji
  // CHECK: weft.rotary %{{.*}} {base = 10000.0, dim = i, position = j, style = interleaved} : !f32_bji
  %12 = weft.rotary %11 {position = j, dim = i, style = interleaved} : !bji
  // CHECK: weft.identity %
  %13 = weft.identity %12 : !bji
  // CHECK: weft.rotary %{{.*}} {base = 10000.0, dim = i, direction = reverse, position = j, style = halved} : !f32_bji
  %14 = weft.rotary %13 {position = j, dim = i, direction = reverse} : !bji
  // CHECK: weft.rotary %{{.*}} {among = b, base = 10000.0, begin = 1, dim = i, end = 2, position = j, style = halved} : !f32_bji
  %15 = weft.rotary %14 {position = j, dim = i, among = b, begin = 1, end = 2} : !bji
  weft.return %15 : !bji
}

// CHECK-LABEL: @binary
weft.graph @binary(%x: !bji, %y: !bji, %b: !b, %c: !mask) -> (!bji) {
  // CHECK: weft.add %x, %y : !f32_bji
  %1 = weft.add %x, %y : !bji
  // CHECK: weft.sub %x, %y : !f32_bji
  %2 = weft.sub %x, %y : !bji
  // CHECK: weft.mul %x, %b along (b) : !f32_bji, !f32_b
  %3 = weft.mul %x, %b along (b) : !bji, !b
  // CHECK: weft.div %x, %y : !f32_bji
  %4 = weft.div %x, %y : !bji
  // CHECK: weft.bias %x, %b along (b) : !f32_bji, !f32_b
  %5 = weft.bias %x, %b along (b) : !bji, !b
  // CHECK: weft.residual %x, %y : !f32_bji
  %6 = weft.residual %x, %y : !bji
  // CHECK: weft.equal %x, %b along (b) : !f32_bji, !f32_b
  %8 = weft.equal %x, %b along (b) : !bji, !b
  // CHECK: weft.keep_if %x, %c : !f32_bji, !i1_bji
  %9 = weft.keep_if %x, %c : !bji, !mask
  // CHECK: weft.zero_if %x, %c : !f32_bji, !i1_bji
  %10 = weft.zero_if %x, %c : !bji, !mask
  // CHECK: weft.select %c, %x, %y : !i1_bji, !f32_bji, !f32_bji -> !f32_bji
  %7 = weft.select %c, %x, %y : !mask, !bji, !bji -> !bji
  // CHECK: weft.expect_close %x, %y {absolute = 0.001, relative = 1.0e-05} : !f32_bji
  weft.expect_close %x, %y {absolute = 0.001} : !bji
  weft.return %7 : !bji
}

// CHECK-LABEL: @masks
weft.graph @masks(%x: !jk, %s: !jj, %bji: !bji, %lengths: !lengths, %segments: !segments, %distances: !distances, %buckets: !buckets, %table: !table) {
  // CHECK: weft.mask causal %x {key = k, query = j} : !f32_jk
  %1 = weft.mask causal %x {query = j, key = k} : !jk
  // CHECK: weft.mask window %x {key = k, left = 2, query = j, right = 0} : !f32_jk
  %2 = weft.mask window %x {query = j, key = k, left = 2, right = 0} : !jk
  // CHECK: weft.mask padding %bji, %lengths along (b) {key = i} : !f32_bji, !i32_b
  %3 = weft.mask padding %bji, %lengths along (b) {key = i} : !bji, !lengths -> !bji
  // CHECK: weft.mask block %x, %table {key = k, query = j, size = 2} : !f32_jk, !i1_jk
  %4 = weft.mask block %x, %table {query = j, key = k, size = 2} : !jk, !table -> !jk
  // CHECK: weft.mask pattern %x {key = k, pattern = "longformer(block=16,window=1,global=0)", query = j} : !f32_jk
  %pattern = weft.mask pattern %x {query = j, key = k, pattern = "longformer(block=16,window=1,global=0)"} : !jk
  // CHECK: weft.mask pattern %bji along (b) {fill = 0.0, key = i, pattern = "table(block=16,heads=2,rows=1,columns=1,bits=01)", query = j} : !f32_bji
  %tables = weft.mask pattern %bji along (b) {query = j, key = i, fill = 0.0, pattern = "table(block=16,heads=2,rows=1,columns=1,bits=01)"} : !bji
  // CHECK: weft.mask document %bji, %segments along (b) {key = i, query = j} : !f32_bji, !i32_bi
  %documents = weft.mask document %bji, %segments along (b) {query = j, key = i} : !bji, !segments -> !bji
  // CHECK: weft.tile_bounds %segments : !i32_bi -> tensor<2x1x2xi32, #weft.axes<b, i_tile, bound>>
  %bounds = weft.tile_bounds %segments : !segments -> !bounds
  // CHECK: weft.mask document %bji, %segments, %bounds along (b) {key = i, query = j} : !f32_bji, !i32_bi, tensor<2x1x2xi32
  %bounded = weft.mask document %bji, %segments, %bounds along (b) {query = j, key = i} : !bji, !segments, !bounds -> !bji
  // CHECK: weft.mask tokens %bji, %lengths {fill = 0.0, key = j} : !f32_bji, !i32_b
  %tokens = weft.mask tokens %bji, %lengths {key = j, fill = 0.0} : !bji, !lengths -> !bji
  // CHECK: weft.alibi %bji {heads = [b], key = i, query = j, steepness = 4.0} : !f32_bji
  %sloped = weft.alibi %bji {heads = [b], query = j, key = i, steepness = 4.0} : !bji
  // CHECK: weft.relative_bias %bji, %distances along (b) {distance = 2, key = i, query = j} : !f32_bji
  %relative = weft.relative_bias %bji, %distances along (b) {query = j, key = i, distance = 2} : !bji, !distances -> !bji
  // CHECK: weft.expand_buckets causal %buckets {distance = 2}
  %expanded = weft.expand_buckets causal %buckets {distance = 2} : !buckets -> !distances
  // Both axes are called j: positions are printed.
  // CHECK: weft.mask causal %s {key = 1, query = 0} : !f32_jj
  %5 = weft.mask causal %s {query = 0, key = 1} : !jj
  // CHECK: weft.mask causal %x {fill = 0.0, key = k, query = j} : !f32_jk
  %6 = weft.mask causal %x {query = j, key = k, fill = 0.0} : !jk
  weft.return
}

// CHECK-LABEL: @normalization
weft.graph @normalization(%x: !bji, %g: !i) {
  // CHECK: %softmax = weft.softmax %x over j {empty_row = zero} : !f32_bji
  %softmax = weft.softmax %x over j : !bji
  // CHECK: %y = weft.layer_norm %x, %g, %g over i {epsilon = 1.0e-05} : !f32_bji, !f32_i, !f32_i
  %y = weft.layer_norm %x, %g, %g over i : !bji, !i, !i
  // CHECK: weft.layer_norm %x, %g over i {epsilon = 1.0e-05} : !f32_bji, !f32_i{{ *$}}
  %unshifted = weft.layer_norm %x, %g over i : !bji, !i
  // CHECK: %z, %mean, %rstd = weft.layer_norm %x, %g, %g over i {epsilon = 0.01} : !f32_bji, !f32_i, !f32_i -> !f32_bji, !f32_bj, !f32_bj
  %z, %mean, %rstd = weft.layer_norm %x, %g, %g over i {epsilon = 0.01} : !bji, !i, !i -> !bji, !bj, !bj
  // CHECK: weft.rms_norm %x, %g over i {epsilon = 1.0e-05} : !f32_bji, !f32_i
  %r = weft.rms_norm %x, %g over i : !bji, !i
  // CHECK: weft.rms_norm %x, %g over i {epsilon = 1.0e-05} : !f32_bji, !f32_i -> !f32_bji, !f32_bj
  %s:2 = weft.rms_norm %x, %g over i : !bji, !i -> !bji, !bj
  // CHECK: weft.reduce sum %x over j, i : !f32_bji -> !f32_b
  %t = weft.reduce sum %x over j, i : !bji -> !b
  // CHECK: weft.reduce max %x over b, j, i : !f32_bji -> tensor<f32, #weft.axes<>>
  %u = weft.reduce max %x over b, j, i : !bji -> !scalar
  weft.return
}

// CHECK-LABEL: @gradients
weft.graph @gradients(%dy: !bji, %x: !bji, %g: !i, %m: !bj, %n: !b) {
  // CHECK: weft.relu_dx %dy, %x : !f32_bji
  %1 = weft.relu_dx %dy, %x : !bji
  // CHECK: weft.gelu_dx %dy, %x : !f32_bji
  %2 = weft.gelu_dx %dy, %x : !bji
  // CHECK: weft.gelu_tanh_dx %dy, %x : !f32_bji
  %3 = weft.gelu_tanh_dx %dy, %x : !bji
  // CHECK: weft.silu_dx %dy, %x : !f32_bji
  %4 = weft.silu_dx %dy, %x : !bji
  // CHECK: weft.tanh_dx %dy, %x : !f32_bji
  %5 = weft.tanh_dx %dy, %x : !bji
  // CHECK: weft.sigmoid_dx %dy, %x : !f32_bji
  %6 = weft.sigmoid_dx %dy, %x : !bji
  // CHECK: weft.rsqrt_dx %dy, %x : !f32_bji
  %7 = weft.rsqrt_dx %dy, %x : !bji
  // CHECK: weft.softmax_dx %dy, %x over j : !f32_bji
  %8 = weft.softmax_dx %dy, %x over j : !bji
  // CHECK: weft.layer_norm_dx %dy, %x, %g, %m, %m over i : !f32_bji, !f32_bji, !f32_i, !f32_bj, !f32_bj
  %9 = weft.layer_norm_dx %dy, %x, %g, %m, %m over i : !bji, !bji, !i, !bj, !bj
  // CHECK: %dgamma, %dbeta = weft.layer_norm_dw %dy, %x, %m, %m over b, j : !f32_bji, !f32_bji, !f32_bj, !f32_bj -> !f32_i, !f32_i
  %dgamma, %dbeta = weft.layer_norm_dw %dy, %x, %m, %m over b, j : !bji, !bji, !bj, !bj -> !i, !i
  // CHECK: weft.rms_norm_dx %dy, %x, %g, %m over i : !f32_bji, !f32_bji, !f32_i, !f32_bj
  %10 = weft.rms_norm_dx %dy, %x, %g, %m over i : !bji, !bji, !i, !bj
  // CHECK: weft.rms_norm_dw %dy, %x, %m over b, j : !f32_bji, !f32_bji, !f32_bj -> !f32_i
  %11 = weft.rms_norm_dw %dy, %x, %m over b, j : !bji, !bji, !bj -> !i
  // CHECK: weft.pad %x {axis = i, size = 9, start = 2} : !f32_bji -> !f32_bji
  %12 = weft.pad %x {axis = i, start = 2, size = 9} : !bji -> tensor<2x4x9xf32, #weft.axes<b, j, i>>
  // CHECK: weft.broadcast %n {into = [1]} : !f32_b -> !f32_jb
  %13 = weft.broadcast %n {into = [1]} : !b -> tensor<4x2xf32, #weft.axes<j, b>>
  weft.return
}

// CHECK-LABEL: @loss
weft.graph @loss(%x: !bji, %labels: tensor<2x4xi32, #weft.axes<b, j>>, %s: !scalar) {
  // CHECK: %losses, %logs = weft.cross_entropy %x, %labels over i : !f32_bji, !i32_bj -> !f32_bj, !f32_bj
  %losses, %logs = weft.cross_entropy %x, %labels over i : !bji, tensor<2x4xi32, #weft.axes<b, j>> -> !bj, !bj
  // CHECK: weft.cross_entropy_dx %x, %labels, %logs, %losses {axis = i} : !f32_bji, !i32_bj, !f32_bj, !f32_bj{{ *$}}
  %1 = weft.cross_entropy_dx %x, %labels, %logs, %losses {axis = i} : !bji, tensor<2x4xi32, #weft.axes<b, j>>, !bj, !bj -> !bji
  // CHECK: weft.average %x, %x {weight = 0.001} : !f32_bji
  %2 = weft.average %x, %x {weight = 0.001} : !bji
  // CHECK: weft.average_square %x, %x {weight = 0.001} : !f32_bji
  %5 = weft.average_square %x, %x {weight = 0.001} : !bji
  // CHECK: weft.unscale %x, %s : !f32_bji, tensor<f32, #weft.axes<>>{{ *$}}
  %7 = weft.unscale %x, %s : !bji, !scalar -> !bji
  // CHECK: weft.adamw_step %x, %x, %x, %s, %s, %s : !f32_bji, !f32_bji, !f32_bji, tensor<f32, #weft.axes<>>, tensor<f32, #weft.axes<>>, tensor<f32, #weft.axes<>>{{ *$}}
  %6 = weft.adamw_step %x, %x, %x, %s, %s, %s : !bji, !bji, !bji, !scalar, !scalar, !scalar -> !bji
  // CHECK: weft.sqrt %x : !f32_bji
  %3 = weft.sqrt %x : !bji
  // CHECK: weft.mul %x, %s along () : !f32_bji, tensor<f32, #weft.axes<>>{{ *$}}
  %4 = weft.mul %x, %s along () : !bji, !scalar -> !bji
  weft.return
}

// CHECK-LABEL: @decomposed
weft.graph @decomposed(%x: !bji) -> !bji {
  // CHECK: %e, %m, %d = weft.local_softmax %x over i {tile = 4} : !f32_bji -> !f32_bji, !f32_bjn, !f32_bjn
  %e, %m, %d = weft.local_softmax %x over i {tile = 4} : !bji -> !bji, !bjn, !bjn
  // CHECK: weft.reduce_subvectors %m, %d over n : !f32_bjn
  %r = weft.reduce_subvectors %m, %d over n : !bjn
  // CHECK: weft.global_scaling %e, %{{.*}} {axis = i, tile = 4} : !f32_bji, !f32_bjn
  %y = weft.global_scaling %e, %r {axis = i, tile = 4} : !bji, !bjn
  weft.return %y : !bji
}

// CHECK-LABEL: @softmax_contractions
weft.graph @softmax_contractions(%x: !bji, %v: !bji) {
  // CHECK: %partials = weft.subvector_contract "bji,bki->bjk" %x, %v {tile = 4} : !f32_bji -> !f32_bjkn
  %partials = weft.subvector_contract "bji,bki->bjk" %x, %v {tile = 4} : !bji -> tensor<2x4x4x2xf32, #weft.axes<b, j, k, n>>
  // CHECK: %y = weft.online_softmax_contract "bji,bki->bkj" %x, %v : !f32_bji -> !f32_bkj
  %y = weft.online_softmax_contract "bji,bki->bkj" %x, %v : !bji -> tensor<2x4x4xf32, #weft.axes<b, k, j>>
  // CHECK: %z, %logs = weft.online_softmax_contract "bji,bki->bkj" %x, %v : !f32_bji -> !f32_bkj, !f32_bj
  %z, %logs = weft.online_softmax_contract "bji,bki->bkj" %x, %v : !bji -> tensor<2x4x4xf32, #weft.axes<b, k, j>>, !bj
  // CHECK: weft.subvector_contract "bji,bki->bjk" %x, %v {p = 0.1, stream = 3, tile = 4} : !f32_bji -> !f32_bjkn
  %kept = weft.subvector_contract "bji,bki->bjk" %x, %v {tile = 4, p = 0.1, stream = 3} : !bji -> tensor<2x4x4x2xf32, #weft.axes<b, j, k, n>>
  // CHECK: weft.online_softmax_contract "bji,bki->bkj" %x, %v {p = 0.1, stream = 4} : !f32_bji -> !f32_bkj
  %dropped = weft.online_softmax_contract "bji,bki->bkj" %x, %v {p = 0.1, stream = 4} : !bji -> tensor<2x4x4xf32, #weft.axes<b, k, j>>
  weft.return
}

// CHECK-LABEL: @decomposed_norms
weft.graph @decomposed_norms(%x: !bji, %s: !bj) {
  // CHECK: weft.normalize %x, %s, %s along (b, j) {count = 6, epsilon = 1.0e-05} : !f32_bji, !f32_bj, !f32_bj{{ *$}}
  %0 = weft.normalize %x, %s, %s along (b, j) {count = 6} : !bji, !bj, !bj -> !bji
  // CHECK: weft.rms_normalize %x, %s along (b, j) {count = 6, epsilon = 0.001} : !f32_bji, !f32_bj
  %1 = weft.rms_normalize %x, %s along (b, j) {count = 6, epsilon = 1.0e-03} : !bji, !bj -> !bji
  weft.return
}

// CHECK-LABEL: @movement
weft.graph @movement(%x: !bji, %table: !bji, %indices: !lengths, %long: !long, %bits: tensor<2x4xi1, #weft.axes<b, j>>) {
  // CHECK: weft.transpose %x {permutation = [b, i, j]} : !f32_bji -> !f32_bij
  %1 = weft.transpose %x {permutation = [b, i, j]} : !bji -> !bij
  // CHECK: weft.slice %x {axis = i, size = 2, start = 1} : !f32_bji -> !f32_bji
  %2 = weft.slice %x {axis = i, start = 1, size = 2} : !bji -> tensor<2x4x2xf32, #weft.axes<b, j, i>>
  // CHECK: weft.concat %x, %x {axis = b} : !f32_bji -> !f32_bji
  %3 = weft.concat %x, %x {axis = b} : !bji -> tensor<4x4x6xf32, #weft.axes<b, j, i>>
  // CHECK: weft.split_axis %x {axis = i, sizes = [2, 3]} : !f32_bji -> !f32_bjhp
  %4 = weft.split_axis %x {axis = i, sizes = [2, 3]} : !bji -> tensor<2x4x2x3xf32, #weft.axes<b, j, h, p>>
  // CHECK: weft.merge_axes %x {axis = b, count = 2} : !f32_bji -> !f32_ti
  %5 = weft.merge_axes %x {axis = b, count = 2} : !bji -> tensor<8x6xf32, #weft.axes<t, i>>
  // CHECK: weft.gather %table, %indices : !f32_bji, !i32_b
  %6 = weft.gather %table, %indices : !bji, !lengths -> tensor<2x4x6xf32, #weft.axes<t, j, i>>
  // CHECK: weft.scatter_add %{{.*}}, %indices : !f32_tji, !i32_b -> !f32_bji
  %9 = weft.scatter_add %6, %indices : tensor<2x4x6xf32, #weft.axes<t, j, i>>, !lengths -> !bji
  // CHECK: weft.offsets %indices {bound = 4} : !i32_b -> !i32_n
  %10 = weft.offsets %indices {bound = 4} : !lengths -> tensor<3xi32, #weft.axes<n>>
  // CHECK: weft.lengths %bits : !i1_bj -> !i32_b
  %14 = weft.lengths %bits : tensor<2x4xi1, #weft.axes<b, j>> -> !lengths
  // CHECK: weft.pack %x, %{{.*}} over b, j : !f32_bji, !i32_n -> !f32_ti
  %11 = weft.pack %x, %10 over b, j : !bji, tensor<3xi32, #weft.axes<n>> -> tensor<8x6xf32, #weft.axes<t, i>>
  // CHECK: weft.unpack %{{.*}}, %{{.*}} {axis = t, fill = 0.0, into = [0, 1]} : !f32_ti, !i32_n -> !f32_bji
  %12 = weft.unpack %11, %10 {axis = t, into = [0, 1]} : tensor<8x6xf32, #weft.axes<t, i>>, tensor<3xi32, #weft.axes<n>> -> !bji
  // CHECK: weft.unpack %{{.*}}, %{{.*}} {axis = t, fill = -1.5, into = [2, 0]} : !f32_ti, !i32_n -> !f32_jib
  %13 = weft.unpack %11, %10 {axis = t, into = [2, 0], fill = -1.5} : tensor<8x6xf32, #weft.axes<t, i>>, tensor<3xi32, #weft.axes<n>> -> tensor<4x6x2xf32, #weft.axes<j, i, b>>
  // CHECK: weft.softmax %long over "head dim" {empty_row = zero} : tensor<2x6xbf16, #weft.axes<batch, "head dim">>
  %7 = weft.softmax %long over "head dim" : !long
  // CHECK: weft.constant dense<{{\[}}1.000000e+00, 2.000000e+00]> : !f32_b
  %8 = weft.constant dense<[1.0, 2.0]> : !b
  weft.return
}

// More than 2^31 elements are counted in 64 bits.
// CHECK-LABEL: @large
weft.graph @large(%x: tensor<65536x65536xf16, #weft.axes<j, k>>) {
  %1 = weft.relu %x : tensor<65536x65536xf16, #weft.axes<j, k>>
  weft.return
}
