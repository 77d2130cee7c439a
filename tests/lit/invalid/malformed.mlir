// RUN: weft-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{expected valid keyword or string}}
weft.graph @names(%x: tensor<2xf32, #weft.axes<1>>) {
}

// -----

weft.graph @number(%x: tensor<2xf32, #weft.axes<b>>) {
  // expected-error @+1 {{attribute 'p' is given twice}}
  %y = weft.dropout %x {p = 0.5, p = 0.25, stream = 1} : tensor<2xf32, #weft.axes<b>>
}

// -----

weft.graph @missing(%x: tensor<2xf32, #weft.axes<b>>) {
  // expected-error @+1 {{requires attribute 'stream'}}
  %y = weft.dropout %x {p = 0.5} : tensor<2xf32, #weft.axes<b>>
}

// -----

weft.graph @unknown_op(%x: tensor<2xf32, #weft.axes<b>>) {
  // expected-error @+1 {{custom op 'weft.swish' is unknown}}
  %y = weft.swish %x : tensor<2xf32, #weft.axes<b>>
}
