// One broken constraint of SPEC.md a graph; the graph is named after it.
// RUN: weft-opt %s -split-input-file -verify-diagnostics

weft.graph @subvector_contract_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, k>>, %v: tensor<2x6x3xf32, #weft.axes<b, k, w>>) {
  // expected-error @+1 {{subvector_contract_c1: 'bjk,bkw->bjkw' contracts 0 axes}}
  %r = weft.subvector_contract "bjk,bkw->bjkw" %x, %v {tile = 4} : tensor<2x4x6xf32, #weft.axes<b, j, k>>, tensor<2x6x3xf32, #weft.axes<b, k, w>> -> tensor<2x4x3x2xf32, #weft.axes<b, j, w, n>>
  weft.return
}

// -----

weft.graph @subvector_contract_c1__two(%x: tensor<2x4x6xf32, #weft.axes<b, j, k>>) {
  // expected-error @+1 {{subvector_contract_c1: 'bjk,bjk->b' contracts 2 axes}}
  %r = weft.subvector_contract "bjk,bjk->b" %x, %x {tile = 4} : tensor<2x4x6xf32, #weft.axes<b, j, k>> -> tensor<2x2xf32, #weft.axes<b, n>>
  weft.return
}

// -----

weft.graph @subvector_contract__einsum(%x: tensor<2x4x6xf32, #weft.axes<b, j, k>>, %v: tensor<2x6x3xf32, #weft.axes<b, k, w>>) {
  // expected-error @+1 {{contract_c6: letter 'k' of einsum}}
  %r = weft.subvector_contract "bkj,bkw->bjw" %x, %v {tile = 4} : tensor<2x4x6xf32, #weft.axes<b, j, k>>, tensor<2x6x3xf32, #weft.axes<b, k, w>> -> tensor<2x4x3x2xf32, #weft.axes<b, j, w, n>>
  weft.return
}

// -----

weft.graph @subvector_contract_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, k>>, %v: tensor<2x6x3xf32, #weft.axes<b, k, w>>) {
  // expected-error @+1 {{subvector_contract_c2: the result is}}
  %r = weft.subvector_contract "bjk,bkw->bjw" %x, %v {tile = 2} : tensor<2x4x6xf32, #weft.axes<b, j, k>>, tensor<2x6x3xf32, #weft.axes<b, k, w>> -> tensor<2x4x3x2xf32, #weft.axes<b, j, w, n>>
  weft.return
}

// -----

weft.graph @subvector_contract_c3(%x: tensor<2x4x6xf32, #weft.axes<b, j, k>>, %v: tensor<2x6x3xf32, #weft.axes<b, k, w>>) {
  // expected-error @+1 {{subvector_contract_c3: 'tile' is 0}}
  %r = weft.subvector_contract "bjk,bkw->bjw" %x, %v {tile = 0} : tensor<2x4x6xf32, #weft.axes<b, j, k>>, tensor<2x6x3xf32, #weft.axes<b, k, w>> -> tensor<2x4x3x2xf32, #weft.axes<b, j, w, n>>
  weft.return
}

// -----

weft.graph @subvector_contract_c4(%x: tensor<2x4x6xf32, #weft.axes<b, j, k>>, %v: tensor<2x6x3xf32, #weft.axes<b, k, w>>) {
  // expected-error @+1 {{subvector_contract_c4: the result is}}
  %r = weft.subvector_contract "bjk,bkw->bjw" %x, %v {tile = 4} : tensor<2x4x6xf32, #weft.axes<b, j, k>>, tensor<2x6x3xf32, #weft.axes<b, k, w>> -> tensor<2x4x3x2xf16, #weft.axes<b, j, w, n>>
  weft.return
}

// -----

weft.graph @subvector_contract_c5(%x: tensor<2x4x6xi32, #weft.axes<b, j, k>>, %v: tensor<2x6x3xf32, #weft.axes<b, k, w>>) {
  // expected-error-re @+1 {{subvector_contract_c5: {{.*}} is not a tensor of floats}}
  %r = weft.subvector_contract "bjk,bkw->bjw" %x, %v {tile = 4} : tensor<2x4x6xi32, #weft.axes<b, j, k>>, tensor<2x6x3xf32, #weft.axes<b, k, w>> -> tensor<2x4x3x2xf32, #weft.axes<b, j, w, n>>
  weft.return
}

// -----

weft.graph @online_softmax_contract_c1(%x: tensor<2x4x6xf32, #weft.axes<b, j, k>>, %v: tensor<2x6x3xf32, #weft.axes<b, k, w>>) {
  // expected-error @+1 {{online_softmax_contract_c1: 'bjk,bkw->bjkw' contracts 0 axes}}
  %r = weft.online_softmax_contract "bjk,bkw->bjkw" %x, %v : tensor<2x4x6xf32, #weft.axes<b, j, k>>, tensor<2x6x3xf32, #weft.axes<b, k, w>> -> tensor<2x4x3xf32, #weft.axes<b, j, w>>
  weft.return
}

// -----

weft.graph @online_softmax_contract_c2(%x: tensor<2x4x6xf32, #weft.axes<b, j, k>>, %v: tensor<2x6x3xf32, #weft.axes<b, k, w>>) {
  // expected-error @+1 {{online_softmax_contract_c2: the result is}}
  %r = weft.online_softmax_contract "bjk,bkw->bwj" %x, %v : tensor<2x4x6xf32, #weft.axes<b, j, k>>, tensor<2x6x3xf32, #weft.axes<b, k, w>> -> tensor<2x4x3xf32, #weft.axes<b, j, w>>
  weft.return
}

// -----

weft.graph @online_softmax_contract_c3(%x: tensor<2x4x6xf32, #weft.axes<b, j, k>>, %v: tensor<2x6x3xf32, #weft.axes<b, k, w>>) {
  // expected-error @+1 {{online_softmax_contract_c3: one result, or two}}
  %r:3 = weft.online_softmax_contract "bjk,bkw->bjw" %x, %v : tensor<2x4x6xf32, #weft.axes<b, j, k>>, tensor<2x6x3xf32, #weft.axes<b, k, w>> -> tensor<2x4x3xf32, #weft.axes<b, j, w>>, tensor<2x4xf32, #weft.axes<b, j>>, tensor<2x4xf32, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @online_softmax_contract_c4(%x: tensor<2x4x6xf32, #weft.axes<b, j, k>>, %v: tensor<2x6x3xf32, #weft.axes<b, k, w>>) {
  // expected-error @+1 {{online_softmax_contract_c4: the logarithms of sums}}
  %r:2 = weft.online_softmax_contract "bjk,bkw->bjw" %x, %v : tensor<2x4x6xf32, #weft.axes<b, j, k>>, tensor<2x6x3xf32, #weft.axes<b, k, w>> -> tensor<2x4x3xf32, #weft.axes<b, j, w>>, tensor<4x2xf32, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @online_softmax_contract_c4__type(%x: tensor<2x4x6xf32, #weft.axes<b, j, k>>, %v: tensor<2x6x3xf32, #weft.axes<b, k, w>>) {
  // expected-error @+1 {{online_softmax_contract_c4: the logarithms of sums}}
  %r:2 = weft.online_softmax_contract "bjk,bkw->bjw" %x, %v : tensor<2x4x6xf32, #weft.axes<b, j, k>>, tensor<2x6x3xf32, #weft.axes<b, k, w>> -> tensor<2x4x3xf32, #weft.axes<b, j, w>>, tensor<2x4xf16, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @online_softmax_contract_c5(%x: tensor<2x4x6xf32, #weft.axes<b, j, k>>, %v: tensor<2x6x3xi32, #weft.axes<b, k, w>>) {
  // expected-error-re @+1 {{online_softmax_contract_c5: {{.*}} is not a tensor of floats}}
  %r = weft.online_softmax_contract "bjk,bkw->bjw" %x, %v : tensor<2x4x6xf32, #weft.axes<b, j, k>>, tensor<2x6x3xi32, #weft.axes<b, k, w>> -> tensor<2x4x3xf32, #weft.axes<b, j, w>>
  weft.return
}

// -----

weft.graph @subvector_contract_c6(%x: tensor<2x4x6xf32, #weft.axes<b, j, k>>, %v: tensor<2x6x3xf32, #weft.axes<b, k, w>>) {
  // expected-error @+1 {{subvector_contract_c6: 'p' without 'stream'}}
  %r = weft.subvector_contract "bjk,bkw->bjw" %x, %v {tile = 4, p = 0.5} : tensor<2x4x6xf32, #weft.axes<b, j, k>>, tensor<2x6x3xf32, #weft.axes<b, k, w>> -> tensor<2x4x3x2xf32, #weft.axes<b, j, w, n>>
  weft.return
}

// -----

weft.graph @subvector_contract_c6__stream(%x: tensor<2x4x6xf32, #weft.axes<b, j, k>>, %v: tensor<2x6x3xf32, #weft.axes<b, k, w>>) {
  // expected-error @+1 {{subvector_contract_c6: 'stream' without 'p'}}
  %r = weft.subvector_contract "bjk,bkw->bjw" %x, %v {tile = 4, stream = 1} : tensor<2x4x6xf32, #weft.axes<b, j, k>>, tensor<2x6x3xf32, #weft.axes<b, k, w>> -> tensor<2x4x3x2xf32, #weft.axes<b, j, w, n>>
  weft.return
}

// -----

weft.graph @subvector_contract_c6__p(%x: tensor<2x4x6xf32, #weft.axes<b, j, k>>, %v: tensor<2x6x3xf32, #weft.axes<b, k, w>>) {
  // expected-error @+1 {{dropout_c1: 'p' is 1}}
  %r = weft.subvector_contract "bjk,bkw->bjw" %x, %v {tile = 4, p = 1.0, stream = 1} : tensor<2x4x6xf32, #weft.axes<b, j, k>>, tensor<2x6x3xf32, #weft.axes<b, k, w>> -> tensor<2x4x3x2xf32, #weft.axes<b, j, w, n>>
  weft.return
}

// -----

weft.graph @subvector_contract_c6__number(%x: tensor<2x4x6xf32, #weft.axes<b, j, k>>, %v: tensor<2x6x3xf32, #weft.axes<b, k, w>>) {
  // expected-error @+1 {{dropout_c2: 'stream' is -1}}
  %r = weft.subvector_contract "bjk,bkw->bjw" %x, %v {tile = 4, p = 0.5, stream = -1} : tensor<2x4x6xf32, #weft.axes<b, j, k>>, tensor<2x6x3xf32, #weft.axes<b, k, w>> -> tensor<2x4x3x2xf32, #weft.axes<b, j, w, n>>
  weft.return
}

// -----

weft.graph @online_softmax_contract_c6(%x: tensor<2x4x6xf32, #weft.axes<b, j, k>>, %v: tensor<2x6x3xf32, #weft.axes<b, k, w>>) {
  // expected-error @+1 {{online_softmax_contract_c6: 'p' without 'stream'}}
  %r = weft.online_softmax_contract "bjk,bkw->bjw" %x, %v {p = 0.5} : tensor<2x4x6xf32, #weft.axes<b, j, k>>, tensor<2x6x3xf32, #weft.axes<b, k, w>> -> tensor<2x4x3xf32, #weft.axes<b, j, w>>
  weft.return
}

// -----

weft.graph @online_softmax_contract_c6__stream(%x: tensor<2x4x6xf32, #weft.axes<b, j, k>>, %v: tensor<2x6x3xf32, #weft.axes<b, k, w>>) {
  // expected-error @+1 {{online_softmax_contract_c6: 'stream' without 'p'}}
  %r = weft.online_softmax_contract "bjk,bkw->bjw" %x, %v {stream = 1} : tensor<2x4x6xf32, #weft.axes<b, j, k>>, tensor<2x6x3xf32, #weft.axes<b, k, w>> -> tensor<2x4x3xf32, #weft.axes<b, j, w>>
  weft.return
}

// -----

weft.graph @online_softmax_contract_c6__p(%x: tensor<2x4x6xf32, #weft.axes<b, j, k>>, %v: tensor<2x6x3xf32, #weft.axes<b, k, w>>) {
  // expected-error @+1 {{dropout_c1: 'p' is 1}}
  %r = weft.online_softmax_contract "bjk,bkw->bjw" %x, %v {p = 1.0, stream = 1} : tensor<2x4x6xf32, #weft.axes<b, j, k>>, tensor<2x6x3xf32, #weft.axes<b, k, w>> -> tensor<2x4x3xf32, #weft.axes<b, j, w>>
  weft.return
}

// -----

weft.graph @online_softmax_contract_c6__number(%x: tensor<2x4x6xf32, #weft.axes<b, j, k>>, %v: tensor<2x6x3xf32, #weft.axes<b, k, w>>) {
  // expected-error @+1 {{dropout_c2: 'stream' is -1}}
  %r = weft.online_softmax_contract "bjk,bkw->bjw" %x, %v {p = 0.5, stream = -1} : tensor<2x4x6xf32, #weft.axes<b, j, k>>, tensor<2x6x3xf32, #weft.axes<b, k, w>> -> tensor<2x4x3xf32, #weft.axes<b, j, w>>
  weft.return
}

// -----

weft.graph @subvector_contract_c7(%x: tensor<2x4x6xf32, #weft.axes<b, j, k>>, %v: tensor<2x6x3xf32, #weft.axes<b, k, w>>) {
  // expected-error @+1 {{subvector_contract_c7: precision 'f16' is unknown; it is tf32, or absent for full fp32}}
  %p = weft.subvector_contract "bjk,bkw->bjw" %x, %v {precision = f16, tile = 2} : tensor<2x4x6xf32, #weft.axes<b, j, k>>, tensor<2x6x3xf32, #weft.axes<b, k, w>> -> tensor<2x4x3x3xf32, #weft.axes<b, j, w, n>>
  weft.return
}

// -----

weft.graph @subvector_contract_c7__values(%x: tensor<2x4x6xf32, #weft.axes<b, j, k>>, %v: tensor<2x6x3xf16, #weft.axes<b, k, w>>) {
  // expected-error @+1 {{subvector_contract_c7: precision tf32 is of f32 values, not of}}
  %p = weft.subvector_contract "bjk,bkw->bjw" %x, %v {precision = tf32, tile = 2} : tensor<2x4x6xf32, #weft.axes<b, j, k>>, tensor<2x6x3xf16, #weft.axes<b, k, w>> -> tensor<2x4x3x3xf32, #weft.axes<b, j, w, n>>
  weft.return
}

// -----

weft.graph @online_softmax_contract_c7(%x: tensor<2x4x6xf32, #weft.axes<b, j, k>>, %v: tensor<2x6x3xf32, #weft.axes<b, k, w>>) {
  // expected-error @+1 {{online_softmax_contract_c7: precision 'f16' is unknown; it is tf32, or absent for full fp32}}
  %p = weft.online_softmax_contract "bjk,bkw->bjw" %x, %v {precision = f16} : tensor<2x4x6xf32, #weft.axes<b, j, k>>, tensor<2x6x3xf32, #weft.axes<b, k, w>> -> tensor<2x4x3xf32, #weft.axes<b, j, w>>
  weft.return
}

// -----

weft.graph @online_softmax_contract_c7__values(%x: tensor<2x4x6xf32, #weft.axes<b, j, k>>, %v: tensor<2x6x3xf16, #weft.axes<b, k, w>>) {
  // expected-error @+1 {{online_softmax_contract_c7: precision tf32 is of f32 values, not of}}
  %p = weft.online_softmax_contract "bjk,bkw->bjw" %x, %v {precision = tf32} : tensor<2x4x6xf32, #weft.axes<b, j, k>>, tensor<2x6x3xf16, #weft.axes<b, k, w>> -> tensor<2x4x3xf32, #weft.axes<b, j, w>>
  weft.return
}
