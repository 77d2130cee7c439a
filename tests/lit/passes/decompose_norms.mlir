// Norms as sums of rows and their application: squares are f32 whatever x is, epsilon and names stay; a norm whose statistics are read stays.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(decompose-norms))' %s -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: weft-interpret %s --against %t.mlir --absolute 2e-2 --relative 2e-2
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(decompose-norms{deferred=true}))' %s -o %t.deferred.mlir
// RUN: FileCheck %s --input-file=%t.deferred.mlir --check-prefix=LATER
// RUN: weft-interpret %s --against %t.deferred.mlir --absolute 1e-9 --relative 1e-9

!bji  = tensor<2x3x40xf16, #weft.axes<b, j, i>>
!bij  = tensor<2x40x3xf32, #weft.axes<b, i, j>>
!i    = tensor<40xf16, #weft.axes<i>>
!f32_i = tensor<40xf32, #weft.axes<i>>
!iu   = tensor<40x8xf16, #weft.axes<i, u>>
!bju  = tensor<2x3x8xf16, #weft.axes<b, j, u>>
!bj   = tensor<2x3xf32, #weft.axes<b, j>>

// CHECK-LABEL: weft.graph @layer_norm
// CHECK-SAME: weft.records = [{accepted, ops = [0], pass = "decompose-norms"
// CHECK: %y_sum = weft.reduce sum %x over i : !bji -> !f32_bj
// CHECK: %y_wide = weft.cast %x : !bji -> !f32_bji
// CHECK: %y_square = weft.mul %y_wide, %y_wide : !f32_bji
// CHECK: %y_squares = weft.reduce sum %y_square over i : !f32_bji -> !f32_bj
// CHECK: %y_normal = weft.normalize %x, %y_sum, %y_squares along (b, j) {count = 40, epsilon = 0.001} : !bji, !f32_bj, !f32_bj
// CHECK: %y_scaled = weft.mul %y_normal, %gamma along (i) : !bji, !i
// CHECK: %y = weft.add %y_scaled, %beta along (i) : !bji, !i
weft.graph @layer_norm(%x: !bji, %gamma: !i, %beta: !i) -> !bji {
  %y = weft.layer_norm %x, %gamma, %beta over i {epsilon = 1.0e-03} : !bji, !i, !i
  weft.return %y : !bji
}

// f32 is wide enough, and the axis need not be the last.
// CHECK-LABEL: weft.graph @rms_norm
// CHECK: %y_square = weft.mul %x, %x : !f32_bij
// CHECK: %y_squares = weft.reduce sum %y_square over i : !f32_bij -> !f32_bj
// CHECK: %y_normal = weft.rms_normalize %x, %y_squares along (b, j) {count = 40, epsilon = 1.0e-05} : !f32_bij, !f32_bj
// CHECK: %y = weft.mul %y_normal, %gamma along (i) : !f32_bij, !f32_i
weft.graph @rms_norm(%x: !bij, %gamma: !f32_i) -> !bij {
  %y = weft.rms_norm %x, %gamma over i : !bij, !f32_i
  weft.return %y : !bij
}

// CHECK-LABEL: weft.graph @statistics
// CHECK-SAME: weft.records = [{ops = [0], pass = "decompose-norms", rejected = {code = "N010", detail = "rstd", reason = "statistics-are-read"}
// CHECK-SAME: {accepted, ops = [1], pass = "decompose-norms"
// CHECK: %y, %mean, %rstd = weft.layer_norm
// CHECK: %z_normal = weft.rms_normalize
weft.graph @statistics(%x: !bji, %gamma: !i, %beta: !i) -> (!bji, !bj) {
  %y, %mean, %rstd = weft.layer_norm %x, %gamma, %beta over i : !bji, !i, !i -> !bji, !bj, !bj
  %z, %unread = weft.rms_norm %y, %gamma over i : !bji, !i -> !bji, !bj
  weft.return %z, %rstd : !bji, !bj
}

// Deferred, the product reads x * gamma, and its rows are multiplied by their factors; a layer norm takes the mean away, too.
// CHECK-LABEL: weft.graph @projection
// LATER-LABEL: weft.graph @layer_norm
// LATER-SAME: rejected = {code = "N020", detail = "a layer norm takes the mean away, too", reason = "factor-stays-before"}
// LATER: weft.layer_norm
// LATER-LABEL: weft.graph @projection
// LATER-SAME: weft.records = [{accepted, ops = [1], pass = "defer-norms"
// LATER: %y_squares = weft.reduce sum %y_square over i
// LATER: %y_gained = weft.mul %x, %gamma along (i) : !bji, !i
// LATER: %p_raw = weft.contract "bji,iu->bju" %y_gained, %w
// LATER: %p = weft.rms_normalize %p_raw, %y_squares along (b, j) {count = 40, epsilon = 1.0e-05} : !bju, !f32_bj
// LATER: %r = weft.relu %p
weft.graph @projection(%a: !bji, %gamma: !i, %w: !iu) -> !bju {
  %x = weft.tanh %a : !bji
  %y = weft.rms_norm %x, %gamma over i : !bji, !i
  %p = weft.contract "bji,iu->bju" %y, %w : !bji, !iu -> !bju
  %r = weft.relu %p : !bju
  weft.return %r : !bju
}
