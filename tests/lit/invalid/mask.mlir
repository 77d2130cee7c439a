// One broken constraint of SPEC.md a graph; the graph is named after it.
// RUN: weft-opt %s -split-input-file -verify-diagnostics

weft.graph @mask_c1(%x: tensor<4x4xf32, #weft.axes<j, k>>) {
  // expected-error @+1 {{mask_c1: unknown kind}}
  %r = weft.mask diagonal %x {query = j, key = k} : tensor<4x4xf32, #weft.axes<j, k>>
  weft.return
}

// -----

weft.graph @mask_c2(%x: tensor<4x4xf32, #weft.axes<j, k>>) {
  // expected-error @+1 {{mask_c2: a causal mask needs 'query'}}
  %r = weft.mask causal %x {key = k} : tensor<4x4xf32, #weft.axes<j, k>>
  weft.return
}

// -----

weft.graph @mask_c2__extra(%x: tensor<4x4xf32, #weft.axes<j, k>>) {
  // expected-error @+1 {{mask_c2: a causal mask has no 'size'}}
  %r = weft.mask causal %x {query = j, key = k, size = 2} : tensor<4x4xf32, #weft.axes<j, k>>
  weft.return
}

// -----

weft.graph @mask_c3(%x: tensor<4x4xf32, #weft.axes<j, k>>) {
  // expected-error @+1 {{mask_c3: 'query' has axis k twice}}
  %r = weft.mask causal %x {query = k, key = k} : tensor<4x4xf32, #weft.axes<j, k>>
  weft.return
}

// -----

weft.graph @mask_c4(%x: tensor<4x4xf32, #weft.axes<j, k>>) {
  // expected-error @+1 {{mask_c4: 'left' is -1}}
  %r = weft.mask window %x {query = j, key = k, left = -1, right = 0} : tensor<4x4xf32, #weft.axes<j, k>>
  weft.return
}

// -----

weft.graph @mask_c5(%x: tensor<4x4xf32, #weft.axes<j, k>>, %n: tensor<2xi32, #weft.axes<b>>) {
  // expected-error @+1 {{mask_c5: the tensor of lengths is}}
  %r = weft.mask padding %x, %n along (j) {key = k} : tensor<4x4xf32, #weft.axes<j, k>>, tensor<2xi32, #weft.axes<b>>
  weft.return
}

// -----

weft.graph @mask_c5__table(%x: tensor<4x4xf32, #weft.axes<j, k>>, %t: tensor<2x1xi1, #weft.axes<j, k>>) {
  // expected-error @+1 {{mask_c5: the table is}}
  %r = weft.mask block %x, %t {query = j, key = k, size = 3} : tensor<4x4xf32, #weft.axes<j, k>>, tensor<2x1xi1, #weft.axes<j, k>>
  weft.return
}

// -----

weft.graph @mask_c6(%x: tensor<2x4x6xi32, #weft.axes<b, j, i>>) {
  // expected-error-re @+1 {{mask_c6: {{.*}} is not a tensor of floats}}
  %r = weft.mask causal %x {query = j, key = i} : tensor<2x4x6xi32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @mask_c5__segments(%x: tensor<4x4xf32, #weft.axes<j, k>>, %n: tensor<4x3xi32, #weft.axes<b, k>>) {
  // expected-error @+1 {{mask_c5: 'along' must be one axis other than the query axis}}
  %r = weft.mask document %x, %n along (j) {query = j, key = k} : tensor<4x4xf32, #weft.axes<j, k>>, tensor<4x3xi32, #weft.axes<b, k>>
  weft.return
}

// -----

weft.graph @mask_c8(%x: tensor<2x5x4xf32, #weft.axes<b, j, k>>, %n: tensor<2x4xi32, #weft.axes<b, k>>) {
  // expected-error @+1 {{mask_c8: a document mask of 5 queries and 4 keys: the first queries have no segment}}
  %r = weft.mask document %x, %n along (b) {query = j, key = k} : tensor<2x5x4xf32, #weft.axes<b, j, k>>, tensor<2x4xi32, #weft.axes<b, k>>
  weft.return
}
