// One broken constraint of SPEC.md a graph; the graph is named after it. Gradients of normalizations, and what belongs to them.
// RUN: weft-opt %s -split-input-file -verify-diagnostics

weft.graph @softmax_dx_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{softmax_dx_c1: 'axis' is axis 3}}
  %r = weft.softmax_dx %x, %x over 3 : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @softmax_dx_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %y: tensor<2x6x4xf32, #weft.axes<b, i, j>>) {
  // expected-error @+1 {{softmax_dx_c2: y is}}
  %r = weft.softmax_dx %x, %y over i : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x6x4xf32, #weft.axes<b, i, j>>
  weft.return
}

// -----

weft.graph @softmax_dx_c3(%x: tensor<2x4x6xi32, #weft.axes<b, j, i>>) {
  // expected-error-re @+1 {{softmax_dx_c3: {{.*}} is not a tensor of floats}}
  %r = weft.softmax_dx %x, %x over i : tensor<2x4x6xi32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @layer_norm_dx_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>, %m: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error @+1 {{layer_norm_dx_c1: 'axis' is axis -1}}
  %r = weft.layer_norm_dx %x, %x, %g, %m, %m over -1 : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<6xf32, #weft.axes<i>>, tensor<2x4xf32, #weft.axes<b, j>>, tensor<2x4xf32, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @layer_norm_dx_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>, %m: tensor<2x4xf32, #weft.axes<b, j>>, %y: tensor<2x6x4xf32, #weft.axes<b, i, j>>) {
  // expected-error @+1 {{layer_norm_dx_c2: x or the result is}}
  %r = weft.layer_norm_dx %x, %y, %g, %m, %m over i : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x6x4xf32, #weft.axes<b, i, j>>, tensor<6xf32, #weft.axes<i>>, tensor<2x4xf32, #weft.axes<b, j>>, tensor<2x4xf32, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @layer_norm_dx_c3(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>, %m: tensor<2x4xf32, #weft.axes<b, j>>, %h: tensor<4xf32, #weft.axes<j>>) {
  // expected-error @+1 {{layer_norm_dx_c3: a parameter or its gradient is}}
  %r = weft.layer_norm_dx %x, %x, %h, %m, %m over i : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<4xf32, #weft.axes<j>>, tensor<2x4xf32, #weft.axes<b, j>>, tensor<2x4xf32, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @layer_norm_dx_c4(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>, %m: tensor<2x4xf32, #weft.axes<b, j>>, %h: tensor<2x4xf16, #weft.axes<b, j>>) {
  // expected-error @+1 {{layer_norm_dx_c4: a statistic is}}
  %r = weft.layer_norm_dx %x, %x, %g, %h, %h over i : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<6xf32, #weft.axes<i>>, tensor<2x4xf16, #weft.axes<b, j>>, tensor<2x4xf16, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @layer_norm_dx_c5(%x: tensor<2x4x6xi32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>, %m: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error-re @+1 {{layer_norm_dx_c5: {{.*}} is not a tensor of floats}}
  %r = weft.layer_norm_dx %x, %x, %g, %m, %m over i : tensor<2x4x6xi32, #weft.axes<b, j, i>>, tensor<2x4x6xi32, #weft.axes<b, j, i>>, tensor<6xf32, #weft.axes<i>>, tensor<2x4xf32, #weft.axes<b, j>>, tensor<2x4xf32, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @layer_norm_dw_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>, %m: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error @+1 {{layer_norm_dw_c1: 'axes' must be all axes but the normalized one}}
  %r:2 = weft.layer_norm_dw %x, %x, %m, %m over b : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4xf32, #weft.axes<b, j>>, tensor<2x4xf32, #weft.axes<b, j>> -> tensor<6xf32, #weft.axes<i>>, tensor<6xf32, #weft.axes<i>>
  weft.return
}

// -----

weft.graph @layer_norm_dw_c1__twice(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>, %m: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error @+1 {{layer_norm_dw_c1: 'axes' has axis b twice}}
  %r:2 = weft.layer_norm_dw %x, %x, %m, %m over b, b : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4xf32, #weft.axes<b, j>>, tensor<2x4xf32, #weft.axes<b, j>> -> tensor<6xf32, #weft.axes<i>>, tensor<6xf32, #weft.axes<i>>
  weft.return
}

// -----

weft.graph @layer_norm_dw_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>, %m: tensor<2x4xf32, #weft.axes<b, j>>, %y: tensor<2x6x4xf32, #weft.axes<b, i, j>>) {
  // expected-error @+1 {{layer_norm_dw_c2: x or the result is}}
  %r:2 = weft.layer_norm_dw %x, %y, %m, %m over b, j : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x6x4xf32, #weft.axes<b, i, j>>, tensor<2x4xf32, #weft.axes<b, j>>, tensor<2x4xf32, #weft.axes<b, j>> -> tensor<6xf32, #weft.axes<i>>, tensor<6xf32, #weft.axes<i>>
  weft.return
}

// -----

weft.graph @layer_norm_dw_c3(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>, %m: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error @+1 {{layer_norm_dw_c3: a parameter or its gradient is}}
  %r:2 = weft.layer_norm_dw %x, %x, %m, %m over b, j : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4xf32, #weft.axes<b, j>>, tensor<2x4xf32, #weft.axes<b, j>> -> tensor<6xf32, #weft.axes<i>>, tensor<4xf32, #weft.axes<j>>
  weft.return
}

// -----

weft.graph @layer_norm_dw_c4(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>, %m: tensor<2x4xf32, #weft.axes<b, j>>, %h: tensor<2x4xf16, #weft.axes<b, j>>) {
  // expected-error @+1 {{layer_norm_dw_c4: a statistic is}}
  %r:2 = weft.layer_norm_dw %x, %x, %h, %h over b, j : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4xf16, #weft.axes<b, j>>, tensor<2x4xf16, #weft.axes<b, j>> -> tensor<6xf32, #weft.axes<i>>, tensor<6xf32, #weft.axes<i>>
  weft.return
}

// -----

weft.graph @layer_norm_dw_c5(%x: tensor<2x4x6xi32, #weft.axes<b, j, i>>, %m: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error-re @+1 {{layer_norm_dw_c5: {{.*}} is not a tensor of floats}}
  %r:2 = weft.layer_norm_dw %x, %x, %m, %m over b, j : tensor<2x4x6xi32, #weft.axes<b, j, i>>, tensor<2x4x6xi32, #weft.axes<b, j, i>>, tensor<2x4xf32, #weft.axes<b, j>>, tensor<2x4xf32, #weft.axes<b, j>> -> tensor<6xf32, #weft.axes<i>>, tensor<6xf32, #weft.axes<i>>
  weft.return
}

// -----

weft.graph @rms_norm_dx_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>, %m: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error @+1 {{rms_norm_dx_c1: 'axis' is axis 3}}
  %r = weft.rms_norm_dx %x, %x, %g, %m over 3 : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<6xf32, #weft.axes<i>>, tensor<2x4xf32, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @rms_norm_dx_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>, %m: tensor<2x4xf32, #weft.axes<b, j>>, %y: tensor<2x6x4xf32, #weft.axes<b, i, j>>) {
  // expected-error @+1 {{rms_norm_dx_c2: x or the result is}}
  %r = weft.rms_norm_dx %x, %y, %g, %m over i : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x6x4xf32, #weft.axes<b, i, j>>, tensor<6xf32, #weft.axes<i>>, tensor<2x4xf32, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @rms_norm_dx_c3(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>, %m: tensor<2x4xf32, #weft.axes<b, j>>, %h: tensor<4xf32, #weft.axes<j>>) {
  // expected-error @+1 {{rms_norm_dx_c3: a parameter or its gradient is}}
  %r = weft.rms_norm_dx %x, %x, %h, %m over i : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<4xf32, #weft.axes<j>>, tensor<2x4xf32, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @rms_norm_dx_c4(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>, %m: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error @+1 {{rms_norm_dx_c4: a statistic is}}
  %r = weft.rms_norm_dx %x, %x, %g, %g over i : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<6xf32, #weft.axes<i>>, tensor<6xf32, #weft.axes<i>>
  weft.return
}

// -----

weft.graph @rms_norm_dx_c5(%x: tensor<2x4x6xi32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>, %m: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error-re @+1 {{rms_norm_dx_c5: {{.*}} is not a tensor of floats}}
  %r = weft.rms_norm_dx %x, %x, %g, %m over i : tensor<2x4x6xi32, #weft.axes<b, j, i>>, tensor<2x4x6xi32, #weft.axes<b, j, i>>, tensor<6xf32, #weft.axes<i>>, tensor<2x4xf32, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @rms_norm_dw_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>, %m: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error @+1 {{rms_norm_dw_c1: 'axes' must be all axes but the normalized one}}
  %r = weft.rms_norm_dw %x, %x, %m over b, j, i : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4xf32, #weft.axes<b, j>> -> tensor<6xf32, #weft.axes<i>>
  weft.return
}

// -----

weft.graph @rms_norm_dw_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>, %m: tensor<2x4xf32, #weft.axes<b, j>>, %y: tensor<2x6x4xf32, #weft.axes<b, i, j>>) {
  // expected-error @+1 {{rms_norm_dw_c2: x or the result is}}
  %r = weft.rms_norm_dw %x, %y, %m over b, j : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x6x4xf32, #weft.axes<b, i, j>>, tensor<2x4xf32, #weft.axes<b, j>> -> tensor<6xf32, #weft.axes<i>>
  weft.return
}

// -----

weft.graph @rms_norm_dw_c3(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>, %m: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error @+1 {{rms_norm_dw_c3: a parameter or its gradient is}}
  %r = weft.rms_norm_dw %x, %x, %m over b, j : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4xf32, #weft.axes<b, j>> -> tensor<4xf32, #weft.axes<j>>
  weft.return
}

// -----

weft.graph @rms_norm_dw_c4(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %g: tensor<6xf32, #weft.axes<i>>, %m: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error @+1 {{rms_norm_dw_c4: a statistic is}}
  %r = weft.rms_norm_dw %x, %x, %g over b, j : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<6xf32, #weft.axes<i>> -> tensor<6xf32, #weft.axes<i>>
  weft.return
}

// -----

weft.graph @rms_norm_dw_c5(%x: tensor<2x4x6xi32, #weft.axes<b, j, i>>, %m: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error-re @+1 {{rms_norm_dw_c5: {{.*}} is not a tensor of floats}}
  %r = weft.rms_norm_dw %x, %x, %m over b, j : tensor<2x4x6xi32, #weft.axes<b, j, i>>, tensor<2x4x6xi32, #weft.axes<b, j, i>>, tensor<2x4xf32, #weft.axes<b, j>> -> tensor<6xf32, #weft.axes<i>>
  weft.return
}

// -----

weft.graph @scatter_add_c1(%x: tensor<5xf32, #weft.axes<t>>, %n: tensor<5xi32, #weft.axes<t>>) {
  // expected-error @+1 {{scatter_add_c1: the result has no axis}}
  %r = weft.scatter_add %x, %n : tensor<5xf32, #weft.axes<t>>, tensor<5xi32, #weft.axes<t>> -> tensor<f32, #weft.axes<>>
  weft.return
}

// -----

weft.graph @scatter_add_c2(%x: tensor<5x4x6xf32, #weft.axes<t, j, i>>, %n: tensor<5xf32, #weft.axes<t>>) {
  // expected-error @+1 {{scatter_add_c2: the indices}}
  %r = weft.scatter_add %x, %n : tensor<5x4x6xf32, #weft.axes<t, j, i>>, tensor<5xf32, #weft.axes<t>> -> tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @scatter_add_c3(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %n: tensor<5xi32, #weft.axes<t>>) {
  // expected-error @+1 {{scatter_add_c3: the operand is}}
  %r = weft.scatter_add %x, %n : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<5xi32, #weft.axes<t>> -> tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @scatter_add_c4(%x: tensor<5x4x6xf32, #weft.axes<t, j, i>>, %n: tensor<5xi32, #weft.axes<t>>) {
  // expected-error-re @+1 {{scatter_add_c4: {{.*}} is not a tensor of floats}}
  %r = weft.scatter_add %x, %n : tensor<5x4x6xf32, #weft.axes<t, j, i>>, tensor<5xi32, #weft.axes<t>> -> tensor<2x4x6xi32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @pad_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{pad_c1: 'axis' is axis 3}}
  %r = weft.pad %x {axis = 3, start = 0, size = 9} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @pad_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{pad_c2: 'start' is 4}}
  %r = weft.pad %x {axis = i, start = 4, size = 9} : tensor<2x4x6xf32, #weft.axes<b, j, i>> -> tensor<2x4x9xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @pad_c2__negative(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{pad_c2: 'start' is -1}}
  %r = weft.pad %x {axis = i, start = -1, size = 9} : tensor<2x4x6xf32, #weft.axes<b, j, i>> -> tensor<2x4x9xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @pad_c3(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{pad_c3: the result is}}
  %r = weft.pad %x {axis = i, start = 0, size = 9} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @pad_c4(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{pad_c4: the result is}}
  %r = weft.pad %x {axis = i, start = 0, size = 6} : tensor<2x4x6xf32, #weft.axes<b, j, i>> -> tensor<2x4x6xi32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @broadcast_c1(%x: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error @+1 {{broadcast_c1: 'into' has 1 entries}}
  %r = weft.broadcast %x {into = [0]} : tensor<2x4xf32, #weft.axes<b, j>> -> tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @broadcast_c1__range(%x: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error @+1 {{broadcast_c1: 'into'}}
  %r = weft.broadcast %x {into = [0, 3]} : tensor<2x4xf32, #weft.axes<b, j>> -> tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @broadcast_c2(%x: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error @+1 {{broadcast_c2: the operand is}}
  %r = weft.broadcast %x {into = [0, 2]} : tensor<2x4xf32, #weft.axes<b, j>> -> tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @broadcast_c3(%x: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error @+1 {{broadcast_c3: the result is}}
  %r = weft.broadcast %x {into = [0, 1]} : tensor<2x4xf32, #weft.axes<b, j>> -> tensor<2x4x6xi32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @keep_if_c1(%x: tensor<2x4x6xi32, #weft.axes<b, j, i>>, %c: tensor<2x4x6xi1, #weft.axes<b, j, i>>) {
  // expected-error-re @+1 {{keep_if_c1: {{.*}} is not a tensor of floats}}
  %r = weft.keep_if %x, %c : tensor<2x4x6xi32, #weft.axes<b, j, i>>, tensor<2x4x6xi1, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @keep_if_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{keep_if_c2: the condition is}}
  %r = weft.keep_if %x, %x : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @keep_if_c3(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %c: tensor<2x4x6xi1, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{keep_if_c3: the result is}}
  %r = weft.keep_if %x, %c : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4x6xi1, #weft.axes<b, j, i>> -> tensor<2x4x6xf16, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @zero_if_c1(%x: tensor<2x4x6xi32, #weft.axes<b, j, i>>, %c: tensor<2x4x6xi1, #weft.axes<b, j, i>>) {
  // expected-error-re @+1 {{zero_if_c1: {{.*}} is not a tensor of floats}}
  %r = weft.zero_if %x, %c : tensor<2x4x6xi32, #weft.axes<b, j, i>>, tensor<2x4x6xi1, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @zero_if_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{zero_if_c2: the condition is}}
  %r = weft.zero_if %x, %x : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @zero_if_c3(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %c: tensor<2x4x6xi1, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{zero_if_c3: the result is}}
  %r = weft.zero_if %x, %c : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4x6xi1, #weft.axes<b, j, i>> -> tensor<2x4x6xf16, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @rotary_c5(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{rotary_c5: unknown direction}}
  %r = weft.rotary %x {position = j, dim = i, direction = sideways} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @mask_c7(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{mask_c7: 'fill' must be finite}}
  %r = weft.mask causal %x {query = j, key = i, fill = 0x7FF0000000000000} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}
