// One broken constraint of SPEC.md a graph; the graph is named after it.
// RUN: weft-opt %s -split-input-file -verify-diagnostics

weft.graph @offsets_c1(%n: tensor<2x3xi32, #weft.axes<b, j>>) {
  // expected-error @+1 {{offsets_c1: lengths have one axis}}
  %r = weft.offsets %n {bound = 4} : tensor<2x3xi32, #weft.axes<b, j>> -> tensor<3xi32, #weft.axes<n>>
  weft.return
}

// -----

weft.graph @offsets_c1__type(%n: tensor<2xf32, #weft.axes<b>>) {
  // expected-error @+1 {{offsets_c1: the tensor of lengths is}}
  %r = weft.offsets %n {bound = 4} : tensor<2xf32, #weft.axes<b>> -> tensor<3xi32, #weft.axes<n>>
  weft.return
}

// -----

weft.graph @offsets_c2(%n: tensor<2xi32, #weft.axes<b>>) {
  // expected-error @+1 {{offsets_c2: 'bound' is 0}}
  %r = weft.offsets %n {bound = 0} : tensor<2xi32, #weft.axes<b>> -> tensor<3xi32, #weft.axes<n>>
  weft.return
}

// -----

weft.graph @offsets_c2__tokens(%n: tensor<2xi32, #weft.axes<b>>) {
  // expected-error @+1 {{offsets_c2: 'bound' is 8388609}}
  %r = weft.offsets %n {bound = 8388609} : tensor<2xi32, #weft.axes<b>> -> tensor<3xi32, #weft.axes<n>>
  weft.return
}

// -----

weft.graph @offsets_c3(%n: tensor<2xi32, #weft.axes<b>>) {
  // expected-error @+1 {{offsets_c3: the result is}}
  %r = weft.offsets %n {bound = 4} : tensor<2xi32, #weft.axes<b>>
  weft.return
}

// -----

weft.graph @lengths_c1(%m: tensor<2x3x4xi1, #weft.axes<b, h, j>>) {
  // expected-error @+1 {{lengths_c1: a mask of tokens has two axes}}
  %r = weft.lengths %m : tensor<2x3x4xi1, #weft.axes<b, h, j>> -> tensor<2xi32, #weft.axes<b>>
  weft.return
}

// -----

weft.graph @lengths_c1__type(%m: tensor<2x4xi32, #weft.axes<b, j>>) {
  // expected-error @+1 {{lengths_c1: the mask is}}
  %r = weft.lengths %m : tensor<2x4xi32, #weft.axes<b, j>> -> tensor<2xi32, #weft.axes<b>>
  weft.return
}

// -----

weft.graph @lengths_c2(%m: tensor<1x16777217xi1, #weft.axes<b, j>>) {
  // expected-error @+1 {{lengths_c2: 'positions' is 16777217}}
  %r = weft.lengths %m : tensor<1x16777217xi1, #weft.axes<b, j>> -> tensor<1xi32, #weft.axes<b>>
  weft.return
}

// -----

weft.graph @lengths_c3(%m: tensor<2x4xi1, #weft.axes<b, j>>) {
  // expected-error @+1 {{lengths_c3: the result is}}
  %r = weft.lengths %m : tensor<2x4xi1, #weft.axes<b, j>> -> tensor<4xi32, #weft.axes<j>>
  weft.return
}

// -----

weft.graph @pack_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %o: tensor<3xi32, #weft.axes<n>>) {
  // expected-error @+1 {{pack_c1: 'axes' lists 1 axes; sequences and positions are two}}
  %r = weft.pack %x, %o over b : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<3xi32, #weft.axes<n>> -> tensor<8x6xf32, #weft.axes<t, i>>
  weft.return
}

// -----

weft.graph @pack_c1__twice(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %o: tensor<3xi32, #weft.axes<n>>) {
  // expected-error @+1 {{pack_c1: 'axes' has axis b twice}}
  %r = weft.pack %x, %o over b, b : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<3xi32, #weft.axes<n>> -> tensor<8x6xf32, #weft.axes<t, i>>
  weft.return
}

// -----

weft.graph @pack_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %o: tensor<2xi32, #weft.axes<b>>) {
  // expected-error @+1 {{pack_c2: the tensor of offsets is}}
  %r = weft.pack %x, %o over b, j : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<2xi32, #weft.axes<b>> -> tensor<8x6xf32, #weft.axes<t, i>>
  weft.return
}

// -----

weft.graph @pack_c2__type(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %o: tensor<3xf32, #weft.axes<n>>) {
  // expected-error @+1 {{pack_c2: the tensor of offsets is}}
  %r = weft.pack %x, %o over b, j : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<3xf32, #weft.axes<n>> -> tensor<8x6xf32, #weft.axes<t, i>>
  weft.return
}

// -----

weft.graph @pack_c3(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %o: tensor<3xi32, #weft.axes<n>>) {
  // expected-error @+1 {{pack_c3: the result is}}
  %r = weft.pack %x, %o over b, j : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<3xi32, #weft.axes<n>> -> tensor<6x8xf32, #weft.axes<i, t>>
  weft.return
}

// -----

weft.graph @pack_c4(%x: tensor<2x4x6xf32, #weft.axes<b, j, i>>, %o: tensor<3xi32, #weft.axes<n>>) {
  // expected-error @+1 {{pack_c4: the result is}}
  %r = weft.pack %x, %o over b, j : tensor<2x4x6xf32, #weft.axes<b, j, i>>, tensor<3xi32, #weft.axes<n>> -> tensor<8x6xf16, #weft.axes<t, i>>
  weft.return
}

// -----

weft.graph @unpack_c1(%x: tensor<8x6xf32, #weft.axes<t, i>>, %o: tensor<3xi32, #weft.axes<n>>) {
  // expected-error @+1 {{unpack_c1: 'axis' is axis 2}}
  %r = weft.unpack %x, %o {axis = 2, into = [0, 1]} : tensor<8x6xf32, #weft.axes<t, i>>, tensor<3xi32, #weft.axes<n>> -> tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @unpack_c2(%x: tensor<8x6xf32, #weft.axes<t, i>>, %o: tensor<3xi32, #weft.axes<n>>) {
  // expected-error @+1 {{unpack_c2: 'into' lists 3 dimensions; sequences and positions are two}}
  %r = weft.unpack %x, %o {axis = t, into = [0, 1, 2]} : tensor<8x6xf32, #weft.axes<t, i>>, tensor<3xi32, #weft.axes<n>> -> tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @unpack_c2__range(%x: tensor<8x6xf32, #weft.axes<t, i>>, %o: tensor<3xi32, #weft.axes<n>>) {
  // expected-error @+1 {{unpack_c2: 'into'}}
  %r = weft.unpack %x, %o {axis = t, into = [0, 3]} : tensor<8x6xf32, #weft.axes<t, i>>, tensor<3xi32, #weft.axes<n>> -> tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @unpack_c3(%x: tensor<8x6xf32, #weft.axes<t, i>>, %o: tensor<3xi32, #weft.axes<n>>) {
  // expected-error @+1 {{unpack_c3: 2 sequences of 3 positions are packed as 6 tokens}}
  %r = weft.unpack %x, %o {axis = t, into = [0, 1]} : tensor<8x6xf32, #weft.axes<t, i>>, tensor<3xi32, #weft.axes<n>> -> tensor<2x3x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @unpack_c5__rank(%x: tensor<8xf32, #weft.axes<t>>, %o: tensor<3xi32, #weft.axes<n>>) {
  // expected-error @+1 {{unpack_c5: the result has 5 dimensions}}
  %r = weft.unpack %x, %o {axis = t, into = [3, 4]} : tensor<8xf32, #weft.axes<t>>, tensor<3xi32, #weft.axes<n>> -> tensor<1x1x1x2x4xf32, #weft.axes<a, c, d, b, j>>
  weft.return
}

// -----

weft.graph @unpack_c4(%x: tensor<8x6xf32, #weft.axes<t, i>>, %o: tensor<2xi32, #weft.axes<b>>) {
  // expected-error @+1 {{unpack_c4: the tensor of offsets is}}
  %r = weft.unpack %x, %o {axis = t, into = [0, 1]} : tensor<8x6xf32, #weft.axes<t, i>>, tensor<2xi32, #weft.axes<b>> -> tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @unpack_c5(%x: tensor<8x6xf32, #weft.axes<t, i>>, %o: tensor<3xi32, #weft.axes<n>>) {
  // expected-error @+1 {{unpack_c5: the result is}}
  %r = weft.unpack %x, %o {axis = t, into = [0, 1]} : tensor<8x6xf32, #weft.axes<t, i>>, tensor<3xi32, #weft.axes<n>> -> tensor<2x4x5xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @unpack_c6(%x: tensor<8xi32, #weft.axes<t>>, %o: tensor<3xi32, #weft.axes<n>>) {
  // expected-error @+1 {{unpack_c6: 'fill' of a tensor of integers is 0}}
  %r = weft.unpack %x, %o {axis = t, into = [0, 1], fill = 1.0} : tensor<8xi32, #weft.axes<t>>, tensor<3xi32, #weft.axes<n>> -> tensor<2x4xi32, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @unpack_c6__finite(%x: tensor<8x6xf32, #weft.axes<t, i>>, %o: tensor<3xi32, #weft.axes<n>>) {
  // expected-error @+1 {{unpack_c6: 'fill' must be finite}}
  %r = weft.unpack %x, %o {axis = t, into = [0, 1], fill = 1.0e400} : tensor<8x6xf32, #weft.axes<t, i>>, tensor<3xi32, #weft.axes<n>> -> tensor<2x4x6xf32, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @unpack_c7(%x: tensor<8x6xf32, #weft.axes<t, i>>, %o: tensor<3xi32, #weft.axes<n>>) {
  // expected-error @+1 {{unpack_c7: the result is}}
  %r = weft.unpack %x, %o {axis = t, into = [0, 1]} : tensor<8x6xf32, #weft.axes<t, i>>, tensor<3xi32, #weft.axes<n>> -> tensor<2x4x6xf16, #weft.axes<b, j, i>>
  weft.return
}

// -----

weft.graph @append_c1(%c: tensor<2x4x8xf32, #weft.axes<b, k, p>>, %n: tensor<2x1x8xf32, #weft.axes<b, j, p>>, %s: tensor<2xi32, #weft.axes<b>>) {
  // expected-error @+1 {{append_c1: 'along' is the one axis of sequences}}
  %r = weft.append %c, %n, %s along (b, p) {axis = k} : tensor<2x4x8xf32, #weft.axes<b, k, p>>, tensor<2x1x8xf32, #weft.axes<b, j, p>>, tensor<2xi32, #weft.axes<b>> -> tensor<2x4x8xf32, #weft.axes<b, k, p>>
  weft.return
}

// -----

weft.graph @append_c2(%c: tensor<2x4x8xf32, #weft.axes<b, k, p>>, %n: tensor<3x1x8xf32, #weft.axes<b, j, p>>, %s: tensor<2xi32, #weft.axes<b>>) {
  // expected-error @+1 {{append_c2: the tensor of tokens is}}
  %r = weft.append %c, %n, %s along (b) {axis = k} : tensor<2x4x8xf32, #weft.axes<b, k, p>>, tensor<3x1x8xf32, #weft.axes<b, j, p>>, tensor<2xi32, #weft.axes<b>> -> tensor<2x4x8xf32, #weft.axes<b, k, p>>
  weft.return
}

// -----

weft.graph @append_c3(%c: tensor<2x4x8xf32, #weft.axes<b, k, p>>, %n: tensor<2x5x8xf32, #weft.axes<b, j, p>>, %s: tensor<2xi32, #weft.axes<b>>) {
  // expected-error @+1 {{append_c3: 5 tokens for a cache of 4}}
  %r = weft.append %c, %n, %s along (b) {axis = k} : tensor<2x4x8xf32, #weft.axes<b, k, p>>, tensor<2x5x8xf32, #weft.axes<b, j, p>>, tensor<2xi32, #weft.axes<b>> -> tensor<2x4x8xf32, #weft.axes<b, k, p>>
  weft.return
}

// -----

weft.graph @append_c4(%c: tensor<2x4x8xf32, #weft.axes<b, k, p>>, %n: tensor<2x1x8xf32, #weft.axes<b, j, p>>, %s: tensor<3xi32, #weft.axes<b>>) {
  // expected-error @+1 {{append_c4: the tensor of starts is}}
  %r = weft.append %c, %n, %s along (b) {axis = k} : tensor<2x4x8xf32, #weft.axes<b, k, p>>, tensor<2x1x8xf32, #weft.axes<b, j, p>>, tensor<3xi32, #weft.axes<b>> -> tensor<2x4x8xf32, #weft.axes<b, k, p>>
  weft.return
}

// -----

weft.graph @append_c5(%c: tensor<2x4x8xf32, #weft.axes<b, k, p>>, %n: tensor<2x1x8xf16, #weft.axes<b, j, p>>, %s: tensor<2xi32, #weft.axes<b>>) {
  // expected-error @+1 {{append_c5: the tensor of tokens is}}
  %r = weft.append %c, %n, %s along (b) {axis = k} : tensor<2x4x8xf32, #weft.axes<b, k, p>>, tensor<2x1x8xf16, #weft.axes<b, j, p>>, tensor<2xi32, #weft.axes<b>> -> tensor<2x4x8xf32, #weft.axes<b, k, p>>
  weft.return
}

// -----

weft.graph @append_c6(%c: tensor<2x4x8xf32, #weft.axes<b, k, p>>, %n: tensor<2x1x8xf32, #weft.axes<b, j, p>>, %s: tensor<2xi32, #weft.axes<b>>) {
  %d = weft.relu %c : tensor<2x4x8xf32, #weft.axes<b, k, p>>
  // expected-error @+1 {{append_c6: the cache is an argument that nothing else reads}}
  %r = weft.append %d, %n, %s along (b) {axis = k} : tensor<2x4x8xf32, #weft.axes<b, k, p>>, tensor<2x1x8xf32, #weft.axes<b, j, p>>, tensor<2xi32, #weft.axes<b>> -> tensor<2x4x8xf32, #weft.axes<b, k, p>>
  weft.return
}

// -----

weft.graph @append_c7(%c: tensor<2x4x8xf32, #weft.axes<b, k, p>>, %n: tensor<2x1x8xf32, #weft.axes<b, j, p>>, %s: tensor<2xi32, #weft.axes<b>>) -> tensor<2x4x8xf32, #weft.axes<b, k, p>> {
  // expected-error @+1 {{append_c7: the result is what the argument holds from then on}}
  %r = weft.append %c, %n, %s along (b) {axis = k} : tensor<2x4x8xf32, #weft.axes<b, k, p>>, tensor<2x1x8xf32, #weft.axes<b, j, p>>, tensor<2xi32, #weft.axes<b>> -> tensor<2x4x8xf32, #weft.axes<b, k, p>>
  weft.return %r : tensor<2x4x8xf32, #weft.axes<b, k, p>>
}

// -----

weft.graph @append_c8(%c: tensor<6x4x8xf32, #weft.axes<f, c, p>>, %n: tensor<2x1x8xf32, #weft.axes<b, j, p>>, %s: tensor<2xi32, #weft.axes<b>>, %t: tensor<2xi32, #weft.axes<b>>) {
  // expected-error @+1 {{append_c8: a table has the axes of sequences and of their pages}}
  %r = weft.append %c, %n, %s, %t along (f) {axis = c} : tensor<6x4x8xf32, #weft.axes<f, c, p>>, tensor<2x1x8xf32, #weft.axes<b, j, p>>, tensor<2xi32, #weft.axes<b>>, tensor<2xi32, #weft.axes<b>> -> tensor<6x4x8xf32, #weft.axes<f, c, p>>
  weft.return
}

// -----

weft.graph @append_c8__type(%c: tensor<6x4x8xf32, #weft.axes<f, c, p>>, %n: tensor<2x1x8xf32, #weft.axes<b, j, p>>, %s: tensor<2xi32, #weft.axes<b>>, %t: tensor<2x3xf32, #weft.axes<b, e>>) {
  // expected-error @+1 {{append_c8: the table is}}
  %r = weft.append %c, %n, %s, %t along (f) {axis = c} : tensor<6x4x8xf32, #weft.axes<f, c, p>>, tensor<2x1x8xf32, #weft.axes<b, j, p>>, tensor<2xi32, #weft.axes<b>>, tensor<2x3xf32, #weft.axes<b, e>> -> tensor<6x4x8xf32, #weft.axes<f, c, p>>
  weft.return
}

// -----

weft.graph @append_c3__pages(%c: tensor<6x4x8xf32, #weft.axes<f, c, p>>, %n: tensor<2x9x8xf32, #weft.axes<b, j, p>>, %s: tensor<2xi32, #weft.axes<b>>, %t: tensor<2x2xi32, #weft.axes<b, e>>) {
  // expected-error @+1 {{append_c3: 9 tokens for a cache of 8}}
  %r = weft.append %c, %n, %s, %t along (f) {axis = c} : tensor<6x4x8xf32, #weft.axes<f, c, p>>, tensor<2x9x8xf32, #weft.axes<b, j, p>>, tensor<2xi32, #weft.axes<b>>, tensor<2x2xi32, #weft.axes<b, e>> -> tensor<6x4x8xf32, #weft.axes<f, c, p>>
  weft.return
}

// -----

weft.graph @gather_pages_c1(%c: tensor<6x4x8xf32, #weft.axes<f, c, p>>, %t: tensor<2x3xi32, #weft.axes<b, e>>) {
  // expected-error @+1 {{gather_pages_c1: 'along' is the one axis of pages}}
  %r = weft.gather_pages %c, %t along (f, p) {axis = c} : tensor<6x4x8xf32, #weft.axes<f, c, p>>, tensor<2x3xi32, #weft.axes<b, e>> -> tensor<2x12x8xf32, #weft.axes<b, k, p>>
  weft.return
}

// -----

weft.graph @gather_pages_c2(%c: tensor<6x4x8xf32, #weft.axes<f, c, p>>, %t: tensor<2x3xf32, #weft.axes<b, e>>) {
  // expected-error @+1 {{gather_pages_c2: the table is}}
  %r = weft.gather_pages %c, %t along (f) {axis = c} : tensor<6x4x8xf32, #weft.axes<f, c, p>>, tensor<2x3xf32, #weft.axes<b, e>> -> tensor<2x12x8xf32, #weft.axes<b, k, p>>
  weft.return
}

// -----

weft.graph @gather_pages_c3(%c: tensor<6x4x8xf32, #weft.axes<f, c, p>>, %t: tensor<2x3xi32, #weft.axes<b, e>>) {
  // expected-error @+1 {{gather_pages_c3: the result is}}
  %r = weft.gather_pages %c, %t along (f) {axis = c} : tensor<6x4x8xf32, #weft.axes<f, c, p>>, tensor<2x3xi32, #weft.axes<b, e>> -> tensor<2x24x8xf32, #weft.axes<b, k, p>>
  weft.return
}

// -----

weft.graph @gather_pages_c4(%c: tensor<6x4x8xf32, #weft.axes<f, c, p>>, %t: tensor<2x3xi32, #weft.axes<b, e>>) {
  // expected-error @+1 {{gather_pages_c4: the result is}}
  %r = weft.gather_pages %c, %t along (f) {axis = c} : tensor<6x4x8xf32, #weft.axes<f, c, p>>, tensor<2x3xi32, #weft.axes<b, e>> -> tensor<2x12x8xf16, #weft.axes<b, k, p>>
  weft.return
}
