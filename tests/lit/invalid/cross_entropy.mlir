// One broken constraint of SPEC.md a graph; the graph is named after it. The loss of classification, its gradient, averages.
// RUN: weft-opt %s -split-input-file -verify-diagnostics

weft.graph @cross_entropy_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, v>>, %n: tensor<2x4xi32, #weft.axes<b, j>>) {
  // expected-error @+1 {{cross_entropy_c1: 'axis' is axis 3}}
  %l, %s = weft.cross_entropy %x, %n over 3 : tensor<2x4x6xf32, #weft.axes<b, j, v>>, tensor<2x4xi32, #weft.axes<b, j>> -> tensor<2x4xf32, #weft.axes<b, j>>, tensor<2x4xf32, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @cross_entropy_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, v>>, %n: tensor<4x2xi32, #weft.axes<j, b>>) {
  // expected-error @+1 {{cross_entropy_c2: the tensor of labels}}
  %l, %s = weft.cross_entropy %x, %n over v : tensor<2x4x6xf32, #weft.axes<b, j, v>>, tensor<4x2xi32, #weft.axes<j, b>> -> tensor<2x4xf32, #weft.axes<b, j>>, tensor<2x4xf32, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @cross_entropy_c3(%x: tensor<2x4x6xf32, #weft.axes<b, j, v>>, %n: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error @+1 {{cross_entropy_c3: the tensor of labels}}
  %l, %s = weft.cross_entropy %x, %n over v : tensor<2x4x6xf32, #weft.axes<b, j, v>>, tensor<2x4xf32, #weft.axes<b, j>> -> tensor<2x4xf32, #weft.axes<b, j>>, tensor<2x4xf32, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @cross_entropy_c4(%x: tensor<2x4x6xf16, #weft.axes<b, j, v>>, %n: tensor<2x4xi32, #weft.axes<b, j>>) {
  // expected-error @+1 {{cross_entropy_c4: a tensor of rows}}
  %l, %s = weft.cross_entropy %x, %n over v : tensor<2x4x6xf16, #weft.axes<b, j, v>>, tensor<2x4xi32, #weft.axes<b, j>> -> tensor<2x4xf16, #weft.axes<b, j>>, tensor<2x4xf16, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @cross_entropy_dx_c1(%x: tensor<4x6xf32, #weft.axes<j, v>>, %n: tensor<4xi32, #weft.axes<j>>, %s: tensor<4xf32, #weft.axes<j>>) {
  // expected-error @+1 {{cross_entropy_dx_c1: 'axis' is axis -1}}
  %r = weft.cross_entropy_dx %x, %n, %s, %s {axis = -1} : tensor<4x6xf32, #weft.axes<j, v>>, tensor<4xi32, #weft.axes<j>>, tensor<4xf32, #weft.axes<j>>, tensor<4xf32, #weft.axes<j>> -> tensor<4x6xf32, #weft.axes<j, v>>
  weft.return
}

// -----

weft.graph @cross_entropy_dx_c2(%x: tensor<4x6xf32, #weft.axes<j, v>>, %n: tensor<4xi32, #weft.axes<j>>, %s: tensor<5xf32, #weft.axes<j>>) {
  // expected-error @+1 {{cross_entropy_dx_c2: a tensor of rows}}
  %r = weft.cross_entropy_dx %x, %n, %s, %s {axis = v} : tensor<4x6xf32, #weft.axes<j, v>>, tensor<4xi32, #weft.axes<j>>, tensor<5xf32, #weft.axes<j>>, tensor<5xf32, #weft.axes<j>> -> tensor<4x6xf32, #weft.axes<j, v>>
  weft.return
}

// -----

weft.graph @cross_entropy_dx_c3(%x: tensor<4x6xf32, #weft.axes<j, v>>, %s: tensor<4xf32, #weft.axes<j>>) {
  // expected-error @+1 {{cross_entropy_dx_c3: the tensor of labels}}
  %r = weft.cross_entropy_dx %x, %s, %s, %s {axis = v} : tensor<4x6xf32, #weft.axes<j, v>>, tensor<4xf32, #weft.axes<j>>, tensor<4xf32, #weft.axes<j>>, tensor<4xf32, #weft.axes<j>> -> tensor<4x6xf32, #weft.axes<j, v>>
  weft.return
}

// -----

weft.graph @cross_entropy_dx_c4(%x: tensor<4x6xi32, #weft.axes<j, v>>, %n: tensor<4xi32, #weft.axes<j>>, %s: tensor<4xf32, #weft.axes<j>>) {
  // expected-error-re @+1 {{cross_entropy_dx_c4: {{.*}} is not a tensor of floats}}
  %r = weft.cross_entropy_dx %x, %n, %s, %s {axis = v} : tensor<4x6xi32, #weft.axes<j, v>>, tensor<4xi32, #weft.axes<j>>, tensor<4xf32, #weft.axes<j>>, tensor<4xf32, #weft.axes<j>> -> tensor<4x6xi32, #weft.axes<j, v>>
  weft.return
}

// -----

weft.graph @average_c1(%x: tensor<4xf32, #weft.axes<j>>) {
  // expected-error @+1 {{average_c1: 'weight' is}}
  %r = weft.average %x, %x {weight = 1.5} : tensor<4xf32, #weft.axes<j>>
  weft.return
}

// -----

weft.graph @average_square_c1(%x: tensor<4xf32, #weft.axes<j>>) {
  // expected-error @+1 {{average_square_c1: 'weight' is}}
  %r = weft.average_square %x, %x {weight = -0.5} : tensor<4xf32, #weft.axes<j>>
  weft.return
}

// -----

weft.graph @unscale_c1(%x: tensor<4xf16, #weft.axes<j>>, %m: tensor<4xf32, #weft.axes<j>>) {
  // expected-error-re @+1 {{unscale_c1: the factor{{.*}}}}
  %r = weft.unscale %x, %m : tensor<4xf16, #weft.axes<j>>, tensor<4xf32, #weft.axes<j>> -> tensor<4xf32, #weft.axes<j>>
  weft.return
}

// -----

weft.graph @unscale_c2(%x: tensor<4xf16, #weft.axes<j>>, %s: tensor<f32, #weft.axes<>>) {
  // expected-error-re @+1 {{unscale_c2: the result{{.*}}}}
  %r = weft.unscale %x, %s : tensor<4xf16, #weft.axes<j>>, tensor<f32, #weft.axes<>> -> tensor<4xf16, #weft.axes<j>>
  weft.return
}

// -----

weft.graph @unscale_c3(%x: tensor<4xi32, #weft.axes<j>>, %s: tensor<f32, #weft.axes<>>) {
  // expected-error-re @+1 {{unscale_c3: {{.*}} is not a tensor of floats}}
  %r = weft.unscale %x, %s : tensor<4xi32, #weft.axes<j>>, tensor<f32, #weft.axes<>> -> tensor<4xf32, #weft.axes<j>>
  weft.return
}

// -----

weft.graph @adamw_step_c1(%x: tensor<4xf32, #weft.axes<j>>, %m: tensor<3xf32, #weft.axes<j>>, %s: tensor<f32, #weft.axes<>>) {
  // expected-error-re @+1 {{adamw_step_c1: the mean{{.*}}}}
  %r = weft.adamw_step %x, %m, %x, %s, %s, %s : tensor<4xf32, #weft.axes<j>>, tensor<3xf32, #weft.axes<j>>, tensor<4xf32, #weft.axes<j>>, tensor<f32, #weft.axes<>>, tensor<f32, #weft.axes<>>, tensor<f32, #weft.axes<>> -> tensor<4xf32, #weft.axes<j>>
  weft.return
}

// -----

weft.graph @adamw_step_c2(%x: tensor<4xf32, #weft.axes<j>>, %s: tensor<f32, #weft.axes<>>) {
  // expected-error-re @+1 {{adamw_step_c2: a scalar{{.*}}}}
  %r = weft.adamw_step %x, %x, %x, %x, %s, %s : tensor<4xf32, #weft.axes<j>>, tensor<4xf32, #weft.axes<j>>, tensor<4xf32, #weft.axes<j>>, tensor<4xf32, #weft.axes<j>>, tensor<f32, #weft.axes<>>, tensor<f32, #weft.axes<>> -> tensor<4xf32, #weft.axes<j>>
  weft.return
}

// -----

weft.graph @adamw_step_c3(%x: tensor<4xf16, #weft.axes<j>>, %s: tensor<f32, #weft.axes<>>) {
  // expected-error-re @+1 {{adamw_step_c3: an operand{{.*}}}}
  %r = weft.adamw_step %x, %x, %x, %s, %s, %s : tensor<4xf16, #weft.axes<j>>, tensor<4xf16, #weft.axes<j>>, tensor<4xf16, #weft.axes<j>>, tensor<f32, #weft.axes<>>, tensor<f32, #weft.axes<>>, tensor<f32, #weft.axes<>> -> tensor<4xf16, #weft.axes<j>>
  weft.return
}
