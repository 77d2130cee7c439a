// One broken constraint of SPEC.md a graph; the graph is named after it.
// RUN: weft-opt %s -split-input-file -verify-diagnostics

weft.graph @elementwise_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{elementwise_c1: the result is}}
  %r = weft.relu %x : tensor<2x4x6xf32, #weft.axes<b, j, i>> -> tensor<2x6x4xf32, #weft.axes<b, i, j>>
  weft.return
}

// -----

weft.graph @elementwise_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %y: tensor<2x6x4xf32, #weft.axes<b, i, j>>) {
  // expected-error @+1 {{elementwise_c2: an operand is}}
  %r = weft.add %x, %y : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x6x4xf32, #weft.axes<b, i, j>>
  weft.return
}

// -----

weft.graph @elementwise_c3(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>) {
  // expected-error @+1 {{elementwise_c3: 'along' lists 2 axes}}
  %r = weft.mul %x, %g along (j, i) : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<6xf32, #weft.axes<i>>
  weft.return
}

// -----

weft.graph @elementwise_c3__range(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>) {
  // expected-error @+1 {{elementwise_c3: 'along' is axis 3}}
  %r = weft.mul %x, %g along (3) : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<6xf32, #weft.axes<i>>
  weft.return
}

// -----

weft.graph @elementwise_c4(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>) {
  // expected-error @+1 {{elementwise_c4: the second operand is}}
  %r = weft.mul %x, %g along (j) : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<6xf32, #weft.axes<i>>
  weft.return
}

// -----

weft.graph @elementwise_c5(%x: tensor<2x4x6xi32, #weft.axes<b, j, i>>) {
  // expected-error-re @+1 {{elementwise_c5: {{.*}} is not a tensor of floats}}
  %r = weft.relu %x : tensor<2x4x6xi32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @elementwise_c5__result(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{elementwise_c5: the result is}}
  %r = weft.relu %x : tensor<2x4x6xf32, #weft.axes<b, j, i>> -> tensor<2x4x6xf16, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @bias_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{bias_c1: needs 'along'}}
  %r = weft.bias %x, %x : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @residual_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>) {
  // expected-error @+1 {{residual_c1: both operands are whole tensors}}
  %r = weft.residual %x, %g along (i) : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<6xf32, #weft.axes<i>>
  weft.return
}

// -----

weft.graph @scale_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{scale_c1: 'factor' must be finite}}
  %r = weft.scale %x {factor = 0x7FF8000000000000} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @select_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{select_c1: the condition is}}
  %r = weft.select %x, %x, %x : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @select_c2(%c: tensor<2x4x6xi1, #weft.axes<b, j, i>>, %x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %y: tensor<2x6x4xf32, #weft.axes<b, i, j>>) {
  // expected-error @+1 {{select_c2: b is}}
  %r = weft.select %c, %x, %y : tensor<2x4x6xi1, #weft.axes<b, j, i>>, tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x6x4xf32, #weft.axes<b, i, j>> -> tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @select_c3(%c: tensor<2x4x6xi1, #weft.axes<b, j, i>>, %x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %y: tensor<2x4x6xf16, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{select_c3: b is}}
  %r = weft.select %c, %x, %y : tensor<2x4x6xi1, #weft.axes<b, j, i>>, tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4x6xf16, #weft.axes<b, j, i>> -> tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @dropout_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{dropout_c1: 'p' is 1}}
  %r = weft.dropout %x {p = 1.0, stream = 0} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @dropout_c1__nan(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{dropout_c1: 'p' is nan}}
  %r = weft.dropout %x {p = 0x7FF8000000000000, stream = 0} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @dropout_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{dropout_c2: 'stream' is -1}}
  %r = weft.dropout %x {p = 0.5, stream = -1} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @rotary_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{rotary_c1: 'position' and 'dim' are the same axis}}
  %r = weft.rotary %x {position = j, dim = j} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @rotary_c2(%x: tensor<4x5xf32, #weft.axes<j, p>>) {
  // expected-error @+1 {{rotary_c2: pairs of axis p}}
  %r = weft.rotary %x {position = j, dim = p} : tensor<4x5xf32, #weft.axes<j, p>>
  weft.return
}

// -----

weft.graph @rotary_c3(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{rotary_c3: 'base' is 0}}
  %r = weft.rotary %x {position = j, dim = i, base = 0.0} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @rotary_c6(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{rotary_c6: 'turned' is 8}}
  %r = weft.rotary %x {position = j, dim = i, turned = 8} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @rotary_c7(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{rotary_c7: 'original', 'low' and 'high' go together}}
  %r = weft.rotary %x {position = j, dim = i, factor = 8.0, low = 1.0} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @rotary_c7_order(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{rotary_c7: 'original' is at least 1, 'low' above 0 and 'high' above 'low'}}
  %r = weft.rotary %x {position = j, dim = i, factor = 8.0, original = 4, low = 4.0, high = 1.0} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @rotary_c9(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{rotary_c9: 'among', 'begin' and 'end' go together}}
  %r = weft.rotary %x {position = j, dim = i, among = b, end = 1} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @rotary_c9_range(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{rotary_c9: elements 1 up to 3 of axis b; it has 2}}
  %r = weft.rotary %x {position = j, dim = i, among = b, begin = 1, end = 3} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @rotary_c9_axis(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{rotary_c9: 'among' has axis i twice}}
  %r = weft.rotary %x {position = j, dim = i, among = i, begin = 1, end = 3} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @rotary_c8(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %s: tensor<2xi32, #weft.axes<b>>) {
  // expected-error @+1 {{rotary_c8: starts and 'along', the one axis that they run along, go together}}
  %r = weft.rotary %x, %s {position = j, dim = i} : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2xi32, #weft.axes<b>> -> tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @rotary_c8__axis(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %s: tensor<6xi32, #weft.axes<i>>) {
  // expected-error @+1 {{rotary_c8: 'along' has axis i twice}}
  %r = weft.rotary %x, %s along (i) {position = j, dim = i} : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<6xi32, #weft.axes<i>> -> tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @rotary_c4(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{rotary_c4: unknown style}}
  %r = weft.rotary %x {position = j, dim = i, style = twisted} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @elementwise_c4__third(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %s: tensor<2x4xf32, #weft.axes<b, j>>, %t: tensor<4x2xf32, #weft.axes<j, b>>) {
  // expected-error @+1 {{elementwise_c4: the third operand is}}
  %r = weft.normalize %x, %s, %t along (b, j) {count = 6} : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4xf32, #weft.axes<b, j>>, tensor<4x2xf32, #weft.axes<j, b>> -> tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @normalize_c1(%x: tensor<4x6xf16, #weft.axes<j, i>>, %s: tensor<4xf16, #weft.axes<j>>) {
  // expected-error @+1 {{normalize_c1: a tensor of sums}}
  %r = weft.normalize %x, %s, %s along (j) {count = 6} : tensor<4x6xf16, #weft.axes<j, i>>, tensor<4xf16, #weft.axes<j>>, tensor<4xf16, #weft.axes<j>> -> tensor<4x6xf16, #weft.axes<j, i>>
  weft.return
}

// -----

weft.graph @normalize_c2(%x: tensor<4x6xf32, #weft.axes<j, i>>, %s: tensor<4x6xf32, #weft.axes<j, i>>) {
  // expected-error @+1 {{normalize_c2: sums run along all axes}}
  %r = weft.normalize %x, %s, %s along (j, i) {count = 6} : tensor<4x6xf32, #weft.axes<j, i>>
  weft.return
}

// -----

weft.graph @normalize_c3(%x: tensor<4x6xf32, #weft.axes<j, i>>, %s: tensor<4xf32, #weft.axes<j>>) {
  // expected-error @+1 {{normalize_c3: 'count' is 0}}
  %r = weft.normalize %x, %s, %s along (j) {count = 0} : tensor<4x6xf32, #weft.axes<j, i>>, tensor<4xf32, #weft.axes<j>>, tensor<4xf32, #weft.axes<j>> -> tensor<4x6xf32, #weft.axes<j, i>>
  weft.return
}

// -----

weft.graph @normalize_c4(%x: tensor<4x6xf32, #weft.axes<j, i>>, %s: tensor<4xf32, #weft.axes<j>>) {
  // expected-error @+1 {{normalize_c4: 'epsilon' is -1}}
  %r = weft.normalize %x, %s, %s along (j) {count = 6, epsilon = -1.0} : tensor<4x6xf32, #weft.axes<j, i>>, tensor<4xf32, #weft.axes<j>>, tensor<4xf32, #weft.axes<j>> -> tensor<4x6xf32, #weft.axes<j, i>>
  weft.return
}

// -----

weft.graph @rms_normalize_c1(%x: tensor<4x6xf32, #weft.axes<j, i>>, %s: tensor<4xbf16, #weft.axes<j>>) {
  // expected-error @+1 {{rms_normalize_c1: a tensor of sums}}
  %r = weft.rms_normalize %x, %s along (j) {count = 6} : tensor<4x6xf32, #weft.axes<j, i>>, tensor<4xbf16, #weft.axes<j>> -> tensor<4x6xf32, #weft.axes<j, i>>
  weft.return
}

// -----

weft.graph @rms_normalize_c2(%x: tensor<4xf32, #weft.axes<j>>) {
  // expected-error @+1 {{rms_normalize_c2: sums run along all axes}}
  %r = weft.rms_normalize %x, %x along (j) {count = 6} : tensor<4xf32, #weft.axes<j>>
  weft.return
}

// -----

weft.graph @rms_normalize_c3(%x: tensor<4x6xf32, #weft.axes<j, i>>, %s: tensor<4xf32, #weft.axes<j>>) {
  // expected-error @+1 {{rms_normalize_c3: 'count' is -6}}
  %r = weft.rms_normalize %x, %s along (j) {count = -6} : tensor<4x6xf32, #weft.axes<j, i>>, tensor<4xf32, #weft.axes<j>> -> tensor<4x6xf32, #weft.axes<j, i>>
  weft.return
}

// -----

weft.graph @rms_normalize_c4(%x: tensor<4x6xf32, #weft.axes<j, i>>, %s: tensor<4xf32, #weft.axes<j>>) {
  // expected-error @+1 {{rms_normalize_c4: 'epsilon' is -1}}
  %r = weft.rms_normalize %x, %s along (j) {count = 6, epsilon = -1.0} : tensor<4x6xf32, #weft.axes<j, i>>, tensor<4xf32, #weft.axes<j>> -> tensor<4x6xf32, #weft.axes<j, i>>
  weft.return
}

// -----

weft.graph @softmax_from_log_sums_c1(%x: tensor<4x6xf32, #weft.axes<j, k>>, %l: tensor<4x6xf32, #weft.axes<j, k>>) {
  // expected-error @+1 {{softmax_from_log_sums_c1: log sums run along 2 axes}}
  %r = weft.softmax_from_log_sums %x, %l along (j, k) : tensor<4x6xf32, #weft.axes<j, k>>, tensor<4x6xf32, #weft.axes<j, k>>
  weft.return
}

// -----

weft.graph @softmax_from_log_sums_c2(%x: tensor<4x6xf16, #weft.axes<j, k>>, %l: tensor<4xf16, #weft.axes<j>>) {
  // expected-error @+1 {{softmax_from_log_sums_c2: the tensor of log sums}}
  %r = weft.softmax_from_log_sums %x, %l along (j) : tensor<4x6xf16, #weft.axes<j, k>>, tensor<4xf16, #weft.axes<j>>
  weft.return
}
