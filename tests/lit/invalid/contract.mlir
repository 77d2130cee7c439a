// One broken constraint of SPEC.md a graph; the graph is named after it.
// RUN: weft-opt %s -split-input-file -verify-diagnostics

weft.graph @contract_c1(%a: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error @+1 {{contract_c1: einsum "bj" is not of the form}}
  %r = weft.contract "bj" %a, %a : tensor<2x4xf32, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @contract_c1__letter(%a: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error @+1 {{contract_c1: einsum "b1,b1->b" has '1'}}
  %r = weft.contract "b1,b1->b" %a, %a : tensor<2x4xf32, #weft.axes<b, j>> -> tensor<2xf32, #weft.axes<b>>
  weft.return
}

// -----

weft.graph @contract_c2(%a: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error @+1 {{contract_c2: einsum "bb,bj->j" repeats the letter 'b'}}
  %r = weft.contract "bb,bj->j" %a, %a : tensor<2x4xf32, #weft.axes<b, j>> -> tensor<2xf32, #weft.axes<b>>
  weft.return
}

// -----

weft.graph @contract_c3(%a: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error @+1 {{contract_c3: einsum "bj,bj->bz" has the unknown letter 'z'}}
  %r = weft.contract "bj,bj->bz" %a, %a : tensor<2x4xf32, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @contract_c4(%a: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error @+1 {{contract_c4: einsum "bj,bk->b" has the letter 'j' in one operand only}}
  %r = weft.contract "bj,bk->b" %a, %a : tensor<2x4xf32, #weft.axes<b, j>> -> tensor<2xf32, #weft.axes<b>>
  weft.return
}

// -----

weft.graph @contract_c5(%a: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error @+1 {{contract_c5: einsum "bji,bj->bi" names 3 axes of a, whose rank is 2}}
  %r = weft.contract "bji,bj->bi" %a, %a : tensor<2x4xf32, #weft.axes<b, j>>
  weft.return
}

// -----

weft.graph @contract_c6(%a: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error @+1 {{contract_c6: letter 'j' of einsum}}
  %r = weft.contract "bj,jb->b" %a, %a : tensor<2x4xf32, #weft.axes<b, j>> -> tensor<2xf32, #weft.axes<b>>
  weft.return
}

// -----

weft.graph @contract_c7(%a: tensor<2x4xf32, #weft.axes<b, j>>) {
  // expected-error @+1 {{contract_c7: the result is}}
  %r = weft.contract "bj,bj->j" %a, %a : tensor<2x4xf32, #weft.axes<b, j>> -> tensor<2xf32, #weft.axes<b>>
  weft.return
}

// -----

weft.graph @contract_c8(%a: tensor<2xi32, #weft.axes<b>>) {
  // expected-error-re @+1 {{contract_c8: {{.*}} is not a tensor of floats}}
  %r = weft.contract "b,b->b" %a, %a : tensor<2xi32, #weft.axes<b>>
  weft.return
}

// -----

weft.graph @contract_c9(%a: tensor<2xf32, #weft.axes<b>>) {
  // expected-error @+1 {{contract_c9: 'scale' must be finite}}
  %r = weft.contract "b,b->b" %a, %a {scale = 0x7FF8000000000000} : tensor<2xf32, #weft.axes<b>>
  weft.return
}

// -----

weft.graph @contract_c10(%a: tensor<2xf32, #weft.axes<b>>) {
  // expected-error @+1 {{contract_c10: precision 'bf16' is unknown; it is tf32, or absent for full fp32}}
  %r = weft.contract "b,b->b" %a, %a {precision = bf16} : tensor<2xf32, #weft.axes<b>>
  weft.return
}

// -----

weft.graph @contract_c11(%a: tensor<2xf32, #weft.axes<b>>, %h: tensor<2xf16, #weft.axes<b>>) {
  // expected-error @+1 {{contract_c11: precision tf32 is of f32 operands, not of}}
  %r = weft.contract "b,b->b" %a, %h {precision = tf32} : tensor<2xf32, #weft.axes<b>>, tensor<2xf16, #weft.axes<b>> -> tensor<2xf32, #weft.axes<b>>
  weft.return
}

// -----

weft.graph @contract_c12(%a: tensor<4xf32, #weft.axes<t>>, %o: tensor<1xi32, #weft.axes<n>>) {
  // expected-error @+1 {{contract_c12: offsets of tokens are at least two i32 along one axis, not}}
  %r = weft.contract "t,t->" %a, %a, %o : tensor<4xf32, #weft.axes<t>>, tensor<4xf32, #weft.axes<t>>, tensor<1xi32, #weft.axes<n>> -> tensor<f32, #weft.axes<>>
  weft.return
}

// -----

weft.graph @contract_c13(%a: tensor<4x2xf32, #weft.axes<t, i>>, %o: tensor<3xi32, #weft.axes<n>>) {
  // expected-error @+1 {{contract_c13: offsets are of the one axis that is contracted, but "ti,ti->" contracts 2}}
  %r = weft.contract "ti,ti->" %a, %a, %o : tensor<4x2xf32, #weft.axes<t, i>>, tensor<4x2xf32, #weft.axes<t, i>>, tensor<3xi32, #weft.axes<n>> -> tensor<f32, #weft.axes<>>
  weft.return
}
