// One broken constraint of SPEC.md a graph; the graph is named after it.
// RUN: weft-opt %s -split-input-file -verify-diagnostics

weft.graph @local_softmax_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{local_softmax_c1: 'axis' is axis 3}}
  %r:3 = weft.local_softmax %x over 3 {tile = 4} : tensor<2x4x6xf32, #weft.axes<b, j, i>> -> tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4x2xf32, #weft.axes<b, j, n>>, tensor<2x4x2xf32, #weft.axes<b, j, n>>
  weft.return
}

// -----

weft.graph @local_softmax_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{local_softmax_c2: 'tile' is 0}}
  %r:3 = weft.local_softmax %x over i {tile = 0} : tensor<2x4x6xf32, #weft.axes<b, j, i>> -> tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4x2xf32, #weft.axes<b, j, n>>, tensor<2x4x2xf32, #weft.axes<b, j, n>>
  weft.return
}

// -----

weft.graph @local_softmax_c3(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{local_softmax_c3: the result is}}
  %r:3 = weft.local_softmax %x over i {tile = 4} : tensor<2x4x6xf32, #weft.axes<b, j, i>> -> tensor<2x6x4xf32, #weft.axes<b, i, j>>, tensor<2x4x2xf32, #weft.axes<b, j, n>>, tensor<2x4x2xf32, #weft.axes<b, j, n>>
  weft.return
}

// -----

weft.graph @local_softmax_c4(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{local_softmax_c4: a statistic is}}
  %r:3 = weft.local_softmax %x over i {tile = 4} : tensor<2x4x6xf32, #weft.axes<b, j, i>> -> tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4x2xf32, #weft.axes<b, j, n>>, tensor<2x4x2xf16, #weft.axes<b, j, n>>
  weft.return
}

// -----

weft.graph @local_softmax_c5(%x: tensor<2x4x6xi32, #weft.axes<b, j, i>>) {
  // expected-error-re @+1 {{local_softmax_c5: {{.*}} is not a tensor of floats}}
  %r:3 = weft.local_softmax %x over i {tile = 4} : tensor<2x4x6xi32, #weft.axes<b, j, i>> -> tensor<2x4x6xi32, #weft.axes<b, j, i>>, tensor<2x4x2xf32, #weft.axes<b, j, n>>, tensor<2x4x2xf32, #weft.axes<b, j, n>>
  weft.return
}

// -----

weft.graph @reduce_subvectors_c1(%m: tensor<2x4x2xf32, #weft.axes<b, j, n>>) {
  // expected-error @+1 {{reduce_subvectors_c1: 'axis' is axis 3}}
  %r = weft.reduce_subvectors %m, %m over 3 : tensor<2x4x2xf32, #weft.axes<b, j, n>>
  weft.return
}

// -----

weft.graph @reduce_subvectors_c2(%m: tensor<2x4x2xf32, #weft.axes<b, j, n>>, %d: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{reduce_subvectors_c2: an operand or result is}}
  %r = weft.reduce_subvectors %m, %d over n : tensor<2x4x2xf32, #weft.axes<b, j, n>>, tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @reduce_subvectors_c3(%m: tensor<2x4x2xf16, #weft.axes<b, j, n>>) {
  // expected-error @+1 {{reduce_subvectors_c3: an operand or result is}}
  %r = weft.reduce_subvectors %m, %m over n : tensor<2x4x2xf16, #weft.axes<b, j, n>>
  weft.return
}

// -----

weft.graph @global_scaling_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %r: tensor<2x4x2xf32, #weft.axes<b, j, n>>) {
  // expected-error @+1 {{global_scaling_c1: 'axis' is axis 3}}
  %r0 = weft.global_scaling %x, %r {axis = 3, tile = 4} : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4x2xf32, #weft.axes<b, j, n>>
  weft.return
}

// -----

weft.graph @global_scaling_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %r: tensor<2x4x2xf32, #weft.axes<b, j, n>>) {
  // expected-error @+1 {{global_scaling_c2: 'tile' is -4}}
  %r0 = weft.global_scaling %x, %r {axis = i, tile = -4} : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4x2xf32, #weft.axes<b, j, n>>
  weft.return
}

// -----

weft.graph @global_scaling_c3(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %r: tensor<2x4x2xf32, #weft.axes<b, j, n>>) {
  // expected-error @+1 {{global_scaling_c3: the tensor of factors is}}
  %r0 = weft.global_scaling %x, %r {axis = i, tile = 2} : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4x2xf32, #weft.axes<b, j, n>>
  weft.return
}

// -----

weft.graph @global_scaling_c4(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %r: tensor<2x4x2xf32, #weft.axes<b, j, n>>) {
  // expected-error @+1 {{global_scaling_c4: the result is}}
  %r0 = weft.global_scaling %x, %r {axis = i, tile = 4} : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4x2xf32, #weft.axes<b, j, n>> -> tensor<2x6x4xf32, #weft.axes<b, i, j>>
  weft.return
}

// -----

weft.graph @global_scaling_c5(%x: tensor<2x4x6xi32, #weft.axes<b, j, i>>, %r: tensor<2x4x2xf32, #weft.axes<b, j, n>>) {
  // expected-error-re @+1 {{global_scaling_c5: {{.*}} is not a tensor of floats}}
  %r0 = weft.global_scaling %x, %r {axis = i, tile = 4} : tensor<2x4x6xi32, #weft.axes<b, j, i>>, tensor<2x4x2xf32, #weft.axes<b, j, n>>
  weft.return
}
