// One broken constraint of SPEC.md a graph; the graph is named after it.
// RUN: weft-opt %s -split-input-file -verify-diagnostics

weft.graph @type_c2() {
  // expected-error-re @+1 {{type_c2: {{.*}} has no axes}}
  %r = weft.constant dense<1.0> : tensor<4xf32>
  weft.return
}

// -----

weft.graph @type_c3() {
  // expected-error-re @+1 {{type_c3: axis a of {{.*}} must have a positive static extent}}
  %r = weft.constant dense<> : tensor<0xf32, #weft.axes<a>>
  weft.return
}

// -----

weft.graph @type_c6() {
  // expected-error @+1 {{type_c6: element type of}}
  %r = weft.constant dense<1> : tensor<2xi64, #weft.axes<a>>
  weft.return
}

// -----

weft.graph @axis_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{axis_c1: unknown axis 'z' in 'axis'; the operand has axes <b, j, i>}}
  %r = weft.softmax %x over z : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @axis_c1__ambiguous(%x: tensor<4x4xf32, #weft.axes<j, j>>) {
  // expected-error @+1 {{axis_c1: ambiguous axis 'j'}}
  %r = weft.softmax %x over j : tensor<4x4xf32, #weft.axes<j, j>>
  weft.return
}

// -----

weft.graph @expect_close_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %y: tensor<2x6x4xf32, #weft.axes<b, i, j>>) {
  // expected-error @+1 {{expect_close_c1: b is}}
  weft.expect_close %x, %y : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2x6x4xf32, #weft.axes<b, i, j>>
  weft.return
}

// -----

weft.graph @expect_close_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>) {
  // expected-error @+1 {{expect_close_c2: tolerances must be finite}}
  weft.expect_close %x, %x {absolute = 0x7FF8000000000000} : tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

// expected-error @+1 {{type_c1: 2 axis names on a tensor of rank 1}}
weft.graph @type_c1(%x: tensor<4xf32, #weft.axes<a, b>>) {
  weft.return
}

// -----

// expected-error @+1 {{type_c3: axis a of}}
weft.graph @type_c3__zero(%x: tensor<0x4xf32, #weft.axes<a, b>>) {
  weft.return
}

// -----

// expected-error @+1 {{type_c3: axis b of}}
weft.graph @type_c3__dynamic(%x: tensor<4x?xf32, #weft.axes<a, b>>) {
  weft.return
}

// -----

// expected-error @+1 {{expected non-function type}}
weft.graph @negative_extent(%x: tensor<-4xf32, #weft.axes<a>>) {
  weft.return
}

// -----

// expected-error @+1 {{type_c4: ragged axis "t" is reserved}}
weft.graph @type_c4(%x: tensor<4x2xf32, #weft.axes<ragged t, i>>) {
  weft.return
}

// -----

// expected-error @+1 {{type_c5: the bytes of}}
weft.graph @type_c5(%x: tensor<4294967296x4294967296xf16, #weft.axes<a, b>>) {
  weft.return
}

// -----

// expected-error @+1 {{type_c6: element type of}}
weft.graph @type_c6__argument(%x: tensor<4xi8, #weft.axes<a>>) {
  weft.return
}
