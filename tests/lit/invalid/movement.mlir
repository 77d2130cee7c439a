// One broken constraint of SPEC.md a graph; the graph is named after it.
// RUN: weft-opt %s -split-input-file -verify-diagnostics

weft.graph @transpose_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{transpose_c1: 'permutation' has axis b twice}}
  %r = weft.transpose %x {permutation = [b, b, i]} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @transpose_c1__count(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{transpose_c1: 'permutation' has 2 entries}}
  %r = weft.transpose %x {permutation = [b, i]} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @transpose_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{transpose_c2: the result is}}
  %r = weft.transpose %x {permutation = [b, i, j]} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @transpose_c3(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{transpose_c3: the result is}}
  %r = weft.transpose %x {permutation = [b, j, i]} : tensor<2x4x6xf32, #weft.axes<b, j, i>> -> tensor<2x4x6xf16, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @slice_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{slice_c1: 'axis' is axis 3}}
  %r = weft.slice %x {axis = 3, start = 0, size = 1} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @slice_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{slice_c2: 'size' is 3}}
  %r = weft.slice %x {axis = i, start = 4, size = 3} : tensor<2x4x6xf32, #weft.axes<b, j, i>> -> tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @slice_c2__start(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{slice_c2: 'start' is -1}}
  %r = weft.slice %x {axis = i, start = -1, size = 3} : tensor<2x4x6xf32, #weft.axes<b, j, i>> -> tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @slice_c3(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{slice_c3: the result is}}
  %r = weft.slice %x {axis = i, start = 0, size = 3} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @slice_c4(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{slice_c4: the result is}}
  %r = weft.slice %x {axis = i, start = 0, size = 6} : tensor<2x4x6xf32, #weft.axes<b, j, i>> -> tensor<2x4x6xf16, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @concat_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{concat_c1: 'axis' is axis 3}}
  %r = weft.concat %x, %x {axis = 3} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @concat_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %y: tensor<2x6x4xf32, #weft.axes<b, i, j>>) {
  // expected-error @+1 {{concat_c2: a part is}}
  %r = weft.concat %x, %y {axis = b} : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x6x4xf32, #weft.axes<b, i, j>>
  weft.return
}

// -----

weft.graph @concat_c3(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{concat_c3: the result is}}
  %r = weft.concat %x, %x {axis = b} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @concat_c4(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %y: tensor<2x4x6xf16, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{concat_c4: a part is}}
  %r = weft.concat %x, %y {axis = b} : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x4x6xf16, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @split_axis_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{split_axis_c1: 'axis' is axis 3}}
  %r = weft.split_axis %x {axis = 3, sizes = [2, 3]} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @split_axis_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{split_axis_c2: sizes}}
  %r = weft.split_axis %x {axis = i, sizes = [2, 2]} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @split_axis_c3(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{split_axis_c3: the result is}}
  %r = weft.split_axis %x {axis = i, sizes = [2, 3]} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @split_axis_c4(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{split_axis_c4: the result is}}
  %r = weft.split_axis %x {axis = i, sizes = [6]} : tensor<2x4x6xf32, #weft.axes<b, j, i>> -> tensor<2x4x6xf16, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @merge_axes_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{merge_axes_c1: 'axis' is axis 3}}
  %r = weft.merge_axes %x {axis = 3, count = 1} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @merge_axes_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{merge_axes_c2: 'count' is 3}}
  %r = weft.merge_axes %x {axis = j, count = 3} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @merge_axes_c3(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{merge_axes_c3: the result is}}
  %r = weft.merge_axes %x {axis = j, count = 2} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @merge_axes_c4(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{merge_axes_c4: the result is}}
  %r = weft.merge_axes %x {axis = j, count = 1} : tensor<2x4x6xf32, #weft.axes<b, j, i>> -> tensor<2x4x6xf16, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @gather_c1(%t: tensor<f32, #weft.axes<>>, %n: tensor<2xi32, #weft.axes<b>>) {
  // expected-error @+1 {{gather_c1: the table has no axis}}
  %r = weft.gather %t, %n : tensor<f32, #weft.axes<>>, tensor<2xi32, #weft.axes<b>>
  weft.return
}

// -----

weft.graph @gather_c2(%t: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %n: tensor<2xf32, #weft.axes<b>>) {
  // expected-error @+1 {{gather_c2: the indices is}}
  %r = weft.gather %t, %n : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2xf32, #weft.axes<b>>
  weft.return
}

// -----

weft.graph @gather_c3(%t: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %n: tensor<2xi32, #weft.axes<b>>) {
  // expected-error @+1 {{gather_c3: the result is}}
  %r = weft.gather %t, %n : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2xi32, #weft.axes<b>> -> tensor<2x6x4xf32, #weft.axes<b, i, j>>
  weft.return
}

// -----

weft.graph @gather_c4(%t: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %n: tensor<2xi32, #weft.axes<b>>) {
  // expected-error @+1 {{gather_c4: the result is}}
  %r = weft.gather %t, %n : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2xi32, #weft.axes<b>> -> tensor<2x4x6xf16, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @identity_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{identity_c1: the result is}}
  %r = weft.identity %x : tensor<2x4x6xf32, #weft.axes<b, j, i>> -> tensor<2x4x6xf16, #weft.axes<b, j, i>>
  weft.return
}
