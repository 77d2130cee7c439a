// One broken constraint of SPEC.md a graph; the graph is named after it.
// RUN: weft-opt %s -split-input-file -verify-diagnostics

weft.graph @alibi_c1(%x: tensor<2x4x4xf32, #weft.axes<h, j, k>>) {
  // expected-error @+1 {{alibi_c1: 'heads, query and key' has axis k twice}}
  %r = weft.alibi %x {heads = [k], query = j, key = k} : tensor<2x4x4xf32, #weft.axes<h, j, k>>
  weft.return
}

// -----

weft.graph @alibi_c2(%x: tensor<2x4x4xf32, #weft.axes<h, j, k>>) {
  // expected-error @+1 {{alibi_c2: 'steepness'}}
  %r = weft.alibi %x {heads = [h], query = j, key = k, steepness = 0.0} : tensor<2x4x4xf32, #weft.axes<h, j, k>>
  weft.return
}

// -----

weft.graph @relative_bias_c1(%x: tensor<2x4x4xf32, #weft.axes<h, j, k>>, %t: tensor<2x5xf32, #weft.axes<h, d>>) {
  // expected-error @+1 {{relative_bias_c1: 'query and key' has axis j twice}}
  %r = weft.relative_bias %x, %t along (h) {query = j, key = j, distance = 2} : tensor<2x4x4xf32, #weft.axes<h, j, k>>, tensor<2x5xf32, #weft.axes<h, d>> -> tensor<2x4x4xf32, #weft.axes<h, j, k>>
  weft.return
}

// -----

weft.graph @relative_bias_c2(%x: tensor<2x4x4xf32, #weft.axes<h, j, k>>, %t: tensor<2x2x5xf32, #weft.axes<h, g, d>>) {
  // expected-error @+1 {{relative_bias_c2: 'along' has axis h twice}}
  %r = weft.relative_bias %x, %t along (h, h) {query = j, key = k, distance = 2} : tensor<2x4x4xf32, #weft.axes<h, j, k>>, tensor<2x2x5xf32, #weft.axes<h, g, d>> -> tensor<2x4x4xf32, #weft.axes<h, j, k>>
  weft.return
}

// -----

weft.graph @relative_bias_c3(%x: tensor<2x4x4xf32, #weft.axes<h, j, k>>, %t: tensor<2x1xf32, #weft.axes<h, d>>) {
  // expected-error @+1 {{relative_bias_c3: 'distance' is 0}}
  %r = weft.relative_bias %x, %t along (h) {query = j, key = k, distance = 0} : tensor<2x4x4xf32, #weft.axes<h, j, k>>, tensor<2x1xf32, #weft.axes<h, d>> -> tensor<2x4x4xf32, #weft.axes<h, j, k>>
  weft.return
}

// -----

weft.graph @relative_bias_c4(%x: tensor<2x4x4xf32, #weft.axes<h, j, k>>, %t: tensor<2x3xf32, #weft.axes<h, d>>) {
  // expected-error @+1 {{relative_bias_c4: the table is}}
  %r = weft.relative_bias %x, %t along (h) {query = j, key = k, distance = 2} : tensor<2x4x4xf32, #weft.axes<h, j, k>>, tensor<2x3xf32, #weft.axes<h, d>> -> tensor<2x4x4xf32, #weft.axes<h, j, k>>
  weft.return
}

// -----

weft.graph @relative_bias_c5(%x: tensor<2x4x4xf32, #weft.axes<h, j, k>>, %t: tensor<2x5xi32, #weft.axes<h, d>>) {
  // expected-error @+1 {{relative_bias_c5: }}
  %r = weft.relative_bias %x, %t along (h) {query = j, key = k, distance = 2} : tensor<2x4x4xf32, #weft.axes<h, j, k>>, tensor<2x5xi32, #weft.axes<h, d>> -> tensor<2x4x4xf32, #weft.axes<h, j, k>>
  weft.return
}

// -----

weft.graph @relative_bias_c6(%x: tensor<2x4x4xf32, #weft.axes<h, j, k>>, %t: tensor<2x5xf32, #weft.axes<h, d>>) {
  // expected-error @+1 {{relative_bias_c6: unknown direction "forward"; supported: reverse, or none}}
  %r = weft.relative_bias %x, %t along (h) {query = j, key = k, distance = 2, direction = forward} : tensor<2x4x4xf32, #weft.axes<h, j, k>>, tensor<2x5xf32, #weft.axes<h, d>> -> tensor<2x4x4xf32, #weft.axes<h, j, k>>
  weft.return
}

// -----

weft.graph @expand_buckets_c1(%t: tensor<8x2xf32, #weft.axes<n, h>>) {
  // expected-error @+1 {{expand_buckets_c1: unknown kind}}
  %r = weft.expand_buckets forward %t {distance = 8} : tensor<8x2xf32, #weft.axes<n, h>> -> tensor<2x17xf32, #weft.axes<h, d>>
  weft.return
}

// -----

weft.graph @expand_buckets_c2(%t: tensor<7x2xf32, #weft.axes<n, h>>) {
  // expected-error @+1 {{expand_buckets_c2: 7 buckets}}
  %r = weft.expand_buckets bidirectional %t {distance = 8} : tensor<7x2xf32, #weft.axes<n, h>> -> tensor<2x17xf32, #weft.axes<h, d>>
  weft.return
}

// -----

weft.graph @expand_buckets_c3(%t: tensor<8x2xf32, #weft.axes<n, h>>) {
  // expected-error @+1 {{expand_buckets_c3: 'distance' is 4}}
  %r = weft.expand_buckets causal %t {distance = 4} : tensor<8x2xf32, #weft.axes<n, h>> -> tensor<2x9xf32, #weft.axes<h, d>>
  weft.return
}

// -----

weft.graph @expand_buckets_c4(%t: tensor<8x2xf32, #weft.axes<n, h>>) {
  // expected-error @+1 {{expand_buckets_c4: the result is}}
  %r = weft.expand_buckets causal %t {distance = 8} : tensor<8x2xf32, #weft.axes<n, h>> -> tensor<2x16xf32, #weft.axes<h, d>>
  weft.return
}

// -----

weft.graph @expand_buckets_c5(%t: tensor<8x2xf32, #weft.axes<n, h>>) {
  // expected-error @+1 {{expand_buckets_c5: the result}}
  %r = weft.expand_buckets causal %t {distance = 8} : tensor<8x2xf32, #weft.axes<n, h>> -> tensor<2x17xf16, #weft.axes<h, d>>
  weft.return
}
