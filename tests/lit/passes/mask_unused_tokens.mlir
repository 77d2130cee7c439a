// Masks stand where chains of element-wise ops over tokens end: not between two of them, not behind
// ops that only move, and not along axes that hold no tokens. A contraction in front of a chain has
// one by itself where it is unread. Valid tokens stay as they are. What
// nobody reads behind the last token is unread; what is summed over tokens, or given back, is zero,
// and a contraction along tokens knows where they end, unless an operand is not zero behind them.
// So does any other sum over them, by the mask of its chain or by one more in front of it.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(mask-unused-tokens))' %s -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: weft-interpret %s --against %t.mlir --absolute 0 --relative 0
!x = tensor<2x4x8xf32, #weft.axes<b, j, i>>
!n = tensor<2xi32, #weft.axes<b>>
!o = tensor<3xi32, #weft.axes<b_offset>>
!ti = tensor<8x8xf32, #weft.axes<t, i>>
!half = tensor<8x4xf32, #weft.axes<t, i>>
!y = tensor<2x4x4xf32, #weft.axes<b, j, i>>
!w = tensor<8x8xf32, #weft.axes<o, i>>
!ww = tensor<8x8xf32, #weft.axes<o, p>>
!i = tensor<8xf32, #weft.axes<i>>
// CHECK-LABEL: @chains
weft.graph @chains(%x: !x, %lengths: !n, %w: !w, %b: !i) -> (!x, !y, !ww) {
  %offsets = weft.offsets %lengths {bound = 4} : !n -> !o
  // CHECK: %p = weft.pack
  // CHECK-NEXT: %h_unmasked = weft.contract
  // CHECK-NEXT: %h = weft.mask unread %h_unmasked, %offsets {key = t}
  // CHECK-NEXT: %biased = weft.bias %h
  // CHECK-NEXT: %g_unmasked = weft.gelu %biased
  // CHECK-NEXT: %g = weft.mask unread %g_unmasked, %offsets {key = t}
  // CHECK-NEXT: %sum_unmasked = weft.add %g, %p
  // CHECK-NEXT: %sum = weft.mask unread %sum_unmasked, %offsets
  // CHECK-NEXT: %half = weft.slice %sum
  // CHECK-NEXT: %back = weft.unpack %g
  // CHECK-NEXT: %rest = weft.unpack %half
  // CHECK-NEXT: %gram = weft.contract "oi,pi->op"
  // CHECK-NEXT: weft.return
  %p = weft.pack %x, %offsets over b, j : !x, !o -> !ti
  %h = weft.contract "oi,ti->to" %w, %p : !w, !ti -> !ti
  %biased = weft.bias %h, %b along (i) : !ti, !i
  %g = weft.gelu %biased : !ti
  %sum = weft.add %g, %p : !ti
  %half = weft.slice %sum {axis = i, start = 0, size = 4} : !ti -> !half
  %back = weft.unpack %g, %offsets {axis = t, into = [0, 1]} : !ti, !o -> !x
  %rest = weft.unpack %half, %offsets {axis = t, into = [0, 1]} : !half, !o -> !y
  %gram = weft.contract "oi,pi->op" %w, %w : !w, !w -> !ww
  weft.return %back, %rest, %gram : !x, !y, !ww
}

!oi = tensor<8x8xf32, #weft.axes<o, i>>
// CHECK-LABEL: @read
weft.graph @read(%x: !x, %lengths: !n, %w: !w) -> (!oi, !ti) {
  %offsets = weft.offsets %lengths {bound = 4} : !n -> !o
  // CHECK: %h = weft.mask tokens %h_unmasked, %offsets {fill = 0.0, key = t}
  // CHECK: %dw = weft.contract "to,ti->oi" %h, %p, %offsets :
  // CHECK: %g = weft.mask tokens %g_unmasked, %offsets {fill = 0.0, key = t}
  %p = weft.pack %x, %offsets over b, j : !x, !o -> !ti
  %h = weft.contract "oi,ti->to" %w, %p : !w, !ti -> !ti
  %dw = weft.contract "to,ti->oi" %h, %p : !ti, !ti -> !oi
  %g = weft.gelu %p : !ti
  weft.return %dw, %g : !oi, !ti
}

// CHECK-LABEL: @parts
weft.graph @parts(%x: !x, %lengths: !n, %all: !ti) -> (!oi, !oi) {
  %offsets = weft.offsets %lengths {bound = 4} : !n -> !o
  %p = weft.pack %x, %offsets over b, j : !x, !o -> !ti
  %low = weft.slice %p {axis = i, start = 0, size = 4} : !ti -> !half
  %high = weft.slice %p {axis = i, start = 4, size = 4} : !ti -> !half
  %turned = weft.concat %high, %low {axis = i} : !half -> !ti
  // CHECK: weft.contract "to,ti->oi" %turned, %p, %offsets :
  %moved = weft.contract "to,ti->oi" %turned, %p : !ti, !ti -> !oi
  // CHECK: weft.contract "to,ti->oi" %all, %p :
  %given = weft.contract "to,ti->oi" %all, %p : !ti, !ti -> !oi
  weft.return %moved, %given : !oi, !oi
}

!t = tensor<8xf32, #weft.axes<t>>
// CHECK-LABEL: @sums
weft.graph @sums(%x: !x, %lengths: !n, %gamma: !i, %all: !ti) -> (!i, !i, !i, !i, !i, !i, !i, !t) {
  %offsets = weft.offsets %lengths {bound = 4} : !n -> !o
  // CHECK: %p = weft.pack
  // CHECK-NOT: unread
  // CHECK: %p_terms = weft.mask tokens %p, %offsets {fill = 0.0, key = t}
  // CHECK-NEXT: %sum = weft.reduce sum %p_terms over t
  // CHECK-NEXT: %same = weft.reduce sum %p_terms over t
  // CHECK-NEXT: %most = weft.reduce max %p over t
  // CHECK-NEXT: %rows_unmasked = weft.reduce sum %p over i
  %p = weft.pack %x, %offsets over b, j : !x, !o -> !ti
  %sum = weft.reduce sum %p over t : !ti -> !i
  %same = weft.reduce sum %p over t : !ti -> !i
  %most = weft.reduce max %p over t : !ti -> !i
  %rows = weft.reduce sum %p over i : !ti -> !t
  // CHECK: %g = weft.mask tokens %g_unmasked, %offsets {fill = 0.0, key = t}
  // CHECK-NEXT: %chain = weft.reduce sum %g over t
  %g = weft.gelu %p : !ti
  %chain = weft.reduce sum %g over t : !ti -> !i
  // CHECK: %z_mean = weft.mask tokens
  // CHECK: %dgamma, %dbeta = weft.layer_norm_dw %p_terms, %z, %z_mean, %z_rstd over t
  %z, %z_mean, %z_rstd = weft.layer_norm %p, %gamma, %gamma over i : !ti, !i, !i -> !ti, !t, !t
  %dgamma, %dbeta = weft.layer_norm_dw %p, %z, %z_mean, %z_rstd over t
      : !ti, !ti, !t, !t -> !i, !i
  // CHECK: %given = weft.reduce sum %all over t
  %both = weft.add %all, %p : !ti
  %given = weft.reduce sum %all over t : !ti -> !i
  weft.return %sum, %same, %most, %chain, %dgamma, %dbeta, %given, %rows
      : !i, !i, !i, !i, !i, !i, !i, !t
}

// What is summed alone need not be zero behind the last token any more.
// CHECK-LABEL: @summed_alone
weft.graph @summed_alone(%x: !x, %lengths: !n) -> !i {
  %offsets = weft.offsets %lengths {bound = 4} : !n -> !o
  // CHECK: %p = weft.pack {{.*}}unread
  // CHECK-NEXT: %p_terms = weft.mask tokens %p, %offsets {fill = 0.0, key = t}
  // CHECK-NEXT: %sum = weft.reduce sum %p_terms over t
  %p = weft.pack %x, %offsets over b, j : !x, !o -> !ti
  %sum = weft.reduce sum %p over t : !ti -> !i
  weft.return %sum : !i
}
