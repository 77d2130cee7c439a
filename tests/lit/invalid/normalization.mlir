// One broken constraint of SPEC.md a graph; the graph is named after it.
// RUN: weft-opt %s -split-input-file -verify-diagnostics

weft.graph @softmax_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{softmax_c1: 'axis' is axis 3}}
  %r = weft.softmax %x over 3 : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @softmax_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{softmax_c2: the result is}}
  %r = weft.softmax %x over i : tensor<2x4x6xf32, #weft.axes<b, j, i>> -> tensor<2x6x4xf32, #weft.axes<b, i, j>>
  weft.return
}

// -----

weft.graph @softmax_c3(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error-re @+1 {{softmax_c3: {{.*}} supported: zero}}
  %r = weft.softmax %x over i {empty_row = nan} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @softmax_c4(%x: tensor<2x4x6xi32, #weft.axes<b, j, i>>) {
  // expected-error-re @+1 {{softmax_c4: {{.*}} is not a tensor of floats}}
  %r = weft.softmax %x over i : tensor<2x4x6xi32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @layer_norm_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>) {
  // expected-error @+1 {{layer_norm_c1: 'axis' is axis -1}}
  %r = weft.layer_norm %x, %g, %g over -1 : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<6xf32, #weft.axes<i>>, tensor<6xf32, #weft.axes<i>>
  weft.return
}

// -----

weft.graph @layer_norm_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>) {
  // expected-error @+1 {{layer_norm_c2: gamma or beta is}}
  %r = weft.layer_norm %x, %g, %g over j : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<6xf32, #weft.axes<i>>, tensor<6xf32, #weft.axes<i>>
  weft.return
}

// -----

weft.graph @layer_norm_c3(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>) {
  // expected-error @+1 {{layer_norm_c3: y is}}
  %r = weft.layer_norm %x, %g, %g over i : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<6xf32, #weft.axes<i>>, tensor<6xf32, #weft.axes<i>> -> tensor<2x6x4xf32, #weft.axes<b, i, j>>
  weft.return
}

// -----

weft.graph @layer_norm_c4(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>) {
  // expected-error @+1 {{layer_norm_c4: 1 statistics; expected 0 or 2}}
  %r:2 = weft.layer_norm %x, %g, %g over i : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<6xf32, #weft.axes<i>>, tensor<6xf32, #weft.axes<i>> -> tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4xf32, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @layer_norm_c5(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>) {
  // expected-error @+1 {{layer_norm_c5: a statistic is}}
  %r:3 = weft.layer_norm %x, %g, %g over i : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<6xf32, #weft.axes<i>>, tensor<6xf32, #weft.axes<i>> -> tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4xf32, #weft.axes<b, j>>, tensor<2x4xf16, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @layer_norm_c6(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>) {
  // expected-error @+1 {{layer_norm_c6: 'epsilon' is -1}}
  %r = weft.layer_norm %x, %g, %g over i {epsilon = -1.0} : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<6xf32, #weft.axes<i>>, tensor<6xf32, #weft.axes<i>>
  weft.return
}

// -----

weft.graph @layer_norm_c7(%x: tensor<2x4x6xi32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>) {
  // expected-error-re @+1 {{layer_norm_c7: {{.*}} is not a tensor of floats}}
  %r = weft.layer_norm %x, %g, %g over i : tensor<2x4x6xi32, #weft.axes<b, j, i>>, tensor<6xf32, #weft.axes<i>>, tensor<6xf32, #weft.axes<i>>
  weft.return
}

// -----

weft.graph @rms_norm_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>) {
  // expected-error @+1 {{rms_norm_c1: 'axis' is axis 7}}
  %r = weft.rms_norm %x, %g over 7 : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<6xf32, #weft.axes<i>>
  weft.return
}

// -----

weft.graph @rms_norm_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>) {
  // expected-error @+1 {{rms_norm_c2: gamma or beta is}}
  %r = weft.rms_norm %x, %g over j : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<6xf32, #weft.axes<i>>
  weft.return
}

// -----

weft.graph @rms_norm_c3(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>) {
  // expected-error @+1 {{rms_norm_c3: y is}}
  %r = weft.rms_norm %x, %g over i : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<6xf32, #weft.axes<i>> -> tensor<2x6x4xf32, #weft.axes<b, i, j>>
  weft.return
}

// -----

weft.graph @rms_norm_c4(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>) {
  // expected-error @+1 {{rms_norm_c4: 2 statistics; expected 0 or 1}}
  %r:3 = weft.rms_norm %x, %g over i : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<6xf32, #weft.axes<i>> -> tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4xf32, #weft.axes<b, j>>, tensor<2x4xf32, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @rms_norm_c5(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>) {
  // expected-error @+1 {{rms_norm_c5: a statistic is}}
  %r:2 = weft.rms_norm %x, %g over i : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<6xf32, #weft.axes<i>> -> tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4xf16, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @rms_norm_c6(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>) {
  // expected-error @+1 {{rms_norm_c6: 'epsilon' is inf}}
  %r = weft.rms_norm %x, %g over i {epsilon = 0x7FF0000000000000} : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<6xf32, #weft.axes<i>>
  weft.return
}

// -----

weft.graph @rms_norm_c7(%x: tensor<2x4x6xi32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>) {
  // expected-error-re @+1 {{rms_norm_c7: {{.*}} is not a tensor of floats}}
  %r = weft.rms_norm %x, %g over i : tensor<2x4x6xi32, #weft.axes<b, j, i>>, tensor<6xf32, #weft.axes<i>>
  weft.return
}

// -----

weft.graph @reduce_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{reduce_c1: 'axes' has axis j twice}}
  %r = weft.reduce sum %x over j, j : tensor<2x4x6xf32, #weft.axes<b, j, i>> -> tensor<2x4xf32, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @reduce_c1__range(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{reduce_c1: 'axes' is axis 5}}
  %r = weft.reduce sum %x over 5 : tensor<2x4x6xf32, #weft.axes<b, j, i>> -> tensor<2x4xf32, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @reduce_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error-re @+1 {{reduce_c2: {{.*}} supported: sum, max}}
  %r = weft.reduce mean %x over i : tensor<2x4x6xf32, #weft.axes<b, j, i>> -> tensor<2x4xf32, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @reduce_c3(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{reduce_c3: the result is}}
  %r = weft.reduce sum %x over j : tensor<2x4x6xf32, #weft.axes<b, j, i>> -> tensor<2x4xf32, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @reduce_c4(%x: tensor<2x4x6xi32, #weft.axes<b, j, i>>) {
  // expected-error-re @+1 {{reduce_c4: {{.*}} is not a tensor of floats}}
  %r = weft.reduce sum %x over i : tensor<2x4x6xi32, #weft.axes<b, j, i>> -> tensor<2x4xf32, #weft.axes<b, j>>
  weft.return
}
