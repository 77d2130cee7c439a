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

weft.graph @mask_c4_global(%x: tensor<4x4xf32, #weft.axes<j, k>>) {
  // expected-error @+1 {{mask_c4: 'global' is 0}}
  %r = weft.mask window %x {query = j, key = k, left = 1, right = 0, global = 0} : tensor<4x4xf32, #weft.axes<j, k>>
  weft.return
}

// -----

weft.graph @mask_c2_global(%x: tensor<4x4xf32, #weft.axes<j, k>>) {
  // expected-error @+1 {{mask_c2: a causal mask has no 'global'}}
  %r = weft.mask causal %x {query = j, key = k, global = 1} : tensor<4x4xf32, #weft.axes<j, k>>
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

weft.graph @mask_c5__offsets(%x: tensor<4x4xf32, #weft.axes<t, i>>, %n: tensor<1xi32, #weft.axes<n>>) {
  // expected-error @+1 {{mask_c5: offsets have one axis, one longer than there are sequences}}
  %0 = weft.mask tokens %x, %n {key = t} : tensor<4x4xf32, #weft.axes<t, i>>, tensor<1xi32, #weft.axes<n>>
  weft.return
}

// -----

weft.graph @mask_c5__segments(%x: tensor<4x4xf32, #weft.axes<j, k>>, %n: tensor<4x3xi32, #weft.axes<b, k>>) {
  // expected-error @+1 {{mask_c5: 'along' must be one axis other than the query axis}}
  %r = weft.mask document %x, %n along (j) {query = j, key = k} : tensor<4x4xf32, #weft.axes<j, k>>, tensor<4x3xi32, #weft.axes<b, k>>
  weft.return
}

// -----

weft.graph @mask_c2__starts(%x: tensor<2x4x4xf32, #weft.axes<b, j, k>>, %s: tensor<2xi32, #weft.axes<b>>) {
  // expected-error @+1 {{mask_c2: a causal mask needs 'along'}}
  %r = weft.mask causal %x, %s {query = j, key = k} : tensor<2x4x4xf32, #weft.axes<b, j, k>>, tensor<2xi32, #weft.axes<b>> -> tensor<2x4x4xf32, #weft.axes<b, j, k>>
  weft.return
}

// -----

weft.graph @mask_c5__starts(%x: tensor<2x4x4xf32, #weft.axes<b, j, k>>, %s: tensor<3xi32, #weft.axes<b>>) {
  // expected-error @+1 {{mask_c5: the tensor of starts is}}
  %r = weft.mask window %x, %s along (b) {query = j, key = k, left = 1, right = 0} : tensor<2x4x4xf32, #weft.axes<b, j, k>>, tensor<3xi32, #weft.axes<b>> -> tensor<2x4x4xf32, #weft.axes<b, j, k>>
  weft.return
}

// -----

weft.graph @mask_c8(%x: tensor<2x5x4xf32, #weft.axes<b, j, k>>, %n: tensor<2x4xi32, #weft.axes<b, k>>) {
  // expected-error @+1 {{mask_c8: a document mask of 5 queries and 4 keys: the first queries have no segment}}
  %r = weft.mask document %x, %n along (b) {query = j, key = k} : tensor<2x5x4xf32, #weft.axes<b, j, k>>, tensor<2x4xi32, #weft.axes<b, k>>
  weft.return
}

// -----

weft.graph @mask_c10(%x: tensor<2x4x40xf32, #weft.axes<b, j, k>>, %n: tensor<2x40xi32, #weft.axes<b, k>>, %t: tensor<2x1x2xi32, #weft.axes<b, t, d>>) {
  // expected-error @+1 {{mask_c10: the tensor of bounds is}}
  %r = weft.mask document %x, %n, %t along (b) {query = j, key = k} : tensor<2x4x40xf32, #weft.axes<b, j, k>>, tensor<2x40xi32, #weft.axes<b, k>>, tensor<2x1x2xi32, #weft.axes<b, t, d>> -> tensor<2x4x40xf32, #weft.axes<b, j, k>>
  weft.return
}

// -----

weft.graph @mask_c2__bounds(%x: tensor<2x4x40xf32, #weft.axes<b, j, k>>, %s: tensor<2xi32, #weft.axes<b>>, %t: tensor<2x2x2xi32, #weft.axes<b, t, d>>) {
  // expected-error @+1 {{mask_c2: a causal mask has no 'third operand'}}
  %r = weft.mask causal %x, %s, %t along (b) {query = j, key = k} : tensor<2x4x40xf32, #weft.axes<b, j, k>>, tensor<2xi32, #weft.axes<b>>, tensor<2x2x2xi32, #weft.axes<b, t, d>> -> tensor<2x4x40xf32, #weft.axes<b, j, k>>
  weft.return
}

// -----

weft.graph @tile_bounds_c1(%s: tensor<2x40xf32, #weft.axes<b, k>>) {
  // expected-error @+1 {{tile_bounds_c1: the operand}}
  %r = weft.tile_bounds %s : tensor<2x40xf32, #weft.axes<b, k>> -> tensor<2x2x2xi32, #weft.axes<b, t, d>>
  weft.return
}

// -----

weft.graph @tile_bounds_c2(%s: tensor<2x40xi32, #weft.axes<b, k>>) {
  // expected-error @+1 {{tile_bounds_c2: the result is}}
  %r = weft.tile_bounds %s : tensor<2x40xi32, #weft.axes<b, k>> -> tensor<2x1x2xi32, #weft.axes<b, t, d>>
  weft.return
}

// -----

weft.graph @mask_c2__pattern(%x: tensor<2x40x40xf32, #weft.axes<h, j, k>>) {
  // expected-error @+1 {{mask_c2: a causal mask has no 'pattern'}}
  %r = weft.mask causal %x {query = j, key = k, pattern = "butterfly"} : tensor<2x40x40xf32, #weft.axes<h, j, k>>
  weft.return
}

// -----

weft.graph @mask_c2__no_pattern(%x: tensor<2x40x40xf32, #weft.axes<h, j, k>>) {
  // expected-error @+1 {{mask_c2: a pattern mask needs 'pattern'}}
  %r = weft.mask pattern %x {query = j, key = k} : tensor<2x40x40xf32, #weft.axes<h, j, k>>
  weft.return
}

// -----

weft.graph @mask_c5__heads(%x: tensor<2x40x40xf32, #weft.axes<h, j, k>>) {
  // expected-error @+1 {{mask_c5: 'along' must be axes other than those of query and key}}
  %r = weft.mask pattern %x along (j) {query = j, key = k, pattern = "random(block=16,density=0.5,seed=0,heads=each)"} : tensor<2x40x40xf32, #weft.axes<h, j, k>>
  weft.return
}

// -----

weft.graph @mask_c9(%x: tensor<2x40x40xf32, #weft.axes<h, j, k>>) {
  // expected-error @+1 {{mask_c9: pattern: block=20: tiles have 16, 32, 64, 128 queries and as many keys}}
  %r = weft.mask pattern %x {query = j, key = k, pattern = "butterfly(block=20)"} : tensor<2x40x40xf32, #weft.axes<h, j, k>>
  weft.return
}

// -----

weft.graph @mask_c9__seed(%x: tensor<2x40x40xf32, #weft.axes<h, j, k>>) {
  // expected-error @+1 {{mask_c9: pattern: random draws tiles at random; it needs a seed, as seed=0}}
  %r = weft.mask pattern %x {query = j, key = k, pattern = "random(block=16,density=0.5)"} : tensor<2x40x40xf32, #weft.axes<h, j, k>>
  weft.return
}

// -----

weft.graph @mask_c9__table(%x: tensor<2x40x40xf32, #weft.axes<h, j, k>>) {
  // expected-error @+1 {{mask_c9: pattern: a table of 2 x 3 tiles; 40 queries and 40 keys have 3 x 3 tiles of 16}}
  %r = weft.mask pattern %x {query = j, key = k, pattern = "table(block=16,heads=1,rows=2,columns=3,bits=70)"} : tensor<2x40x40xf32, #weft.axes<h, j, k>>
  weft.return
}

// -----

weft.graph @mask_c9__by_head(%x: tensor<2x40x40xf32, #weft.axes<h, j, k>>) {
  // expected-error @+1 {{mask_c9: a table of each head needs 'along', the axes of heads}}
  %r = weft.mask pattern %x {query = j, key = k, pattern = "random(block=16,density=0.5,seed=0,heads=each)"} : tensor<2x40x40xf32, #weft.axes<h, j, k>>
  weft.return
}

// -----

weft.graph @mask_c9__of_all(%x: tensor<2x40x40xf32, #weft.axes<h, j, k>>) {
  // expected-error @+1 {{mask_c9: 'along' is of patterns with a table for each head}}
  %r = weft.mask pattern %x along (h) {query = j, key = k, pattern = "butterfly(block=16)"} : tensor<2x40x40xf32, #weft.axes<h, j, k>>
  weft.return
}

// -----

weft.graph @mask_c9__empty(%x: tensor<2x40x40xf32, #weft.axes<h, j, k>>) {
  // expected-error @+1 {{mask_c9: pattern: the mask is empty: none of its 9 tiles exists}}
  %r = weft.mask pattern %x {query = j, key = k, pattern = "table(block=16,heads=1,rows=3,columns=3,bits=000)"} : tensor<2x40x40xf32, #weft.axes<h, j, k>>
  weft.return
}

// -----

weft.graph @mask_c11(%x: tensor<2x4x4xf32, #weft.axes<b, j, k>>) {
  // expected-error @+1 {{mask_c11: a causal mask is not 'packed'; a padding mask by the lengths of packed sequences may be}}
  %r = weft.mask causal %x {query = j, key = k, packed} : tensor<2x4x4xf32, #weft.axes<b, j, k>>
  weft.return
}

// -----

weft.graph @mask_c11__other_lengths(%x: tensor<2x4x4xf32, #weft.axes<b, j, k>>, %lengths: tensor<2xi32, #weft.axes<b>>, %others: tensor<2xi32, #weft.axes<b>>) {
  %o = weft.offsets %others {bound = 4} : tensor<2xi32, #weft.axes<b>> -> tensor<3xi32, #weft.axes<n>>
  // expected-error @+1 {{mask_c11: 'packed' says that all weft.offsets sum these lengths; one sums others: leave 'packed' out}}
  %r = weft.mask padding %x, %lengths along (b) {key = k, packed} : tensor<2x4x4xf32, #weft.axes<b, j, k>>, tensor<2xi32, #weft.axes<b>> -> tensor<2x4x4xf32, #weft.axes<b, j, k>>
  weft.return
}

// -----

weft.graph @mask_c11__bound(%x: tensor<2x4x4xf32, #weft.axes<b, j, k>>, %lengths: tensor<2xi32, #weft.axes<b>>) {
  %o = weft.offsets %lengths {bound = 3} : tensor<2xi32, #weft.axes<b>> -> tensor<3xi32, #weft.axes<n>>
  // expected-error @+1 {{mask_c11: 'packed' says that sequences have up to 4 tokens, but weft.offsets has 'bound' 3}}
  %r = weft.mask padding %x, %lengths along (b) {key = k, packed} : tensor<2x4x4xf32, #weft.axes<b, j, k>>, tensor<2xi32, #weft.axes<b>> -> tensor<2x4x4xf32, #weft.axes<b, j, k>>
  weft.return
}

// -----

weft.graph @mask_c11__value(%x: tensor<2x4x4xf32, #weft.axes<b, j, k>>, %lengths: tensor<2xi32, #weft.axes<b>>) {
  // expected-error @+1 {{'packed' takes no value: it is there or not}}
  %r = weft.mask padding %x, %lengths along (b) {key = k, packed = 1} : tensor<2x4x4xf32, #weft.axes<b, j, k>>, tensor<2xi32, #weft.axes<b>> -> tensor<2x4x4xf32, #weft.axes<b, j, k>>
  weft.return
}
