// One broken constraint of SPEC.md a graph; the graph is named after it.
// RUN: weft-opt %s -split-input-file -verify-diagnostics

!b = tensor<2xf32, #weft.axes<b>>
weft.graph @graph_c1(%x: !b) -> !b {
  // expected-error @+1 {{graph_c1: returns ()}}
  weft.return
}

// -----

!b = tensor<2xf32, #weft.axes<b>>
// expected-error @+1 {{graph_c3: weft.initial of argument 0 is "normal(-1)", not "zeros"}}
weft.graph @graph_c3(%x: !b {weft.initial = "normal(-1)"}) {
  weft.return
}

// -----

!b = tensor<2xf32, #weft.axes<b>>
// expected-error @+1 {{graph_c6: weft.training of argument 0 is "token", which no argument has}}
weft.graph @graph_c6(%x: !b {weft.training = "token"}) {
  weft.return
}

// -----

!b = tensor<2xf32, #weft.axes<b>>
// expected-error @+1 {{graph_c6: weft.training of argument 0 is "loss", which no argument has}}
weft.graph @graph_c6(%x: !b {weft.training = "loss"}) {
  weft.return
}

// -----

!b = tensor<2xf32, #weft.axes<b>>
// expected-error @+1 {{graph_c6: weft.training of argument 0 is "epsilon", which is one number}}
weft.graph @graph_c6(%x: !b {weft.training = "epsilon"}) {
  weft.return
}

// -----

!b = tensor<2xf32, #weft.axes<b>>
// expected-error @+1 {{graph_c6: weft.training of argument 1 is "weights", which another one has}}
weft.graph @graph_c6(%x: !b {weft.training = "weights"}, %y: !b {weft.training = "weights"}) {
  weft.return
}

// -----

!b = tensor<2xf32, #weft.axes<b>>
// expected-error @+1 {{graph_c7: weft.layer of argument 0 is 0 : i64, not a layer's number from 1}}
weft.graph @graph_c7(%x: !b {weft.layer = 0}) {
  weft.return
}

// -----

!b = tensor<2xf32, #weft.axes<b>>
weft.graph @graph_c7(%x: !b) -> !b {
  // expected-error @+1 {{graph_c7: weft.layer is "first", not a layer's number from 1}}
  %y = weft.relu %x {weft.layer = "first"} : !b
  weft.return %y : !b
}

// -----

!b = tensor<2xf32, #weft.axes<b>>
weft.graph @graph_c2(%x: !b) {
  // expected-error @+1 {{graph_c2: 'builtin.unrealized_conversion_cast' cannot stand in weft.graph}}
  %y = builtin.unrealized_conversion_cast %x : !b to !b
  weft.return
}

// -----

!b = tensor<2xf32, #weft.axes<b>>
weft.graph @kernel_c1(%x: !b) {
  %y = weft.kernel @k (%a = %x : !b) -> !b {
    // expected-error @+1 {{kernel_c1: returns ()}}
    weft.yield
  }
  weft.return
}

// -----

!b = tensor<2xf32, #weft.axes<b>>
weft.graph @kernel_c2(%x: !b) {
  // expected-error @+1 {{kernel_c2: block arguments and operands differ in type}}
  "weft.kernel"(%x) <{name = "k"}> ({
  ^bb0(%a: tensor<3xf32, #weft.axes<b>>):
    weft.yield
  }) : (!b) -> ()
  weft.return
}

// -----

!b = tensor<2xf32, #weft.axes<b>>
weft.graph @kernel_c3(%x: !b) {
  // expected-error @+1 {{kernel_c3: 2 layouts for 1 tensors}}
  %y = weft.kernel @k (%a = %x : !b) -> !b attributes {layouts = #weft.layouts<[0], [0] -> [0]>} {
    weft.yield %a : !b
  }
  weft.return
}

// -----

!b = tensor<2x3xf32, #weft.axes<b, j>>
weft.graph @kernel_c4_pitch(%x: !b) {
  // expected-error @+2 {{kernel_c4: pitch_unit is 8; it is at least 1, and stands beside no strides}}
  %y = weft.kernel @k (%a = %x : !b) -> !b
      layouts ([b, j] strides [8, 1] pitch_unit 8 -> [b, j]) {
    weft.yield %a : !b
  }
  weft.return
}

// -----

!b = tensor<2xf32, #weft.axes<b>>
weft.graph @kernel_c4(%x: !b) {
  // expected-error @+1 {{kernel_c4: }}
  %y = weft.kernel @k (%a = %x : !b) -> !b attributes {layouts = #weft.layouts<[0, 1] -> [0]>} {
    weft.yield %a : !b
  }
  weft.return
}

// -----

!b = tensor<2xf32, #weft.axes<b>>
weft.graph @kernel_c5(%x: !b) {
  %y = weft.kernel @outer (%a = %x : !b) -> !b {
    // expected-error @+1 {{kernel_c5: 'weft.kernel' cannot stand in weft.kernel}}
    %z = weft.kernel @inner (%c = %a : !b) -> !b {
      weft.yield %c : !b
    }
    weft.yield %z : !b
  }
  weft.return
}

// -----

!h = tensor<2xf16, #weft.axes<b>>
!b = tensor<2xf32, #weft.axes<b>>
// expected-error @+1 {{graph_c4: weft.master_of of argument 1 ('weight_master') is "weihgt", which is no argument; nearest is 'weight'}}
weft.graph @graph_c4(%weight: !h, %weight_master: !b {weft.master_of = "weihgt"}) {
  weft.return
}

// -----

!b = tensor<2xf32, #weft.axes<b>>
// expected-error @+1 {{graph_c4: weft.master_of of argument 1 ('weight_master') is "weight", but an argument of f32 is the master of one of f16 or bf16 and of the same extents}}
weft.graph @graph_c4_of_f32(%weight: !b, %weight_master: !b {weft.master_of = "weight"}) {
  weft.return
}

// -----

!h = tensor<2xf16, #weft.axes<b>>
!b = tensor<3xf32, #weft.axes<b>>
// expected-error @+1 {{graph_c4: weft.master_of of argument 1 ('weight_master') is "weight", but}}
weft.graph @graph_c4_of_other_extents(%weight: !h, %weight_master: !b {weft.master_of = "weight"}) {
  weft.return
}

// -----

!b = tensor<2xf32, #weft.axes<b>>
// expected-error @+1 {{graph_c5: weft.update_of of result 0 ('weight_next') is "weihgt", which is neither an argument nor the result itself; nearest is 'weight'}}
weft.graph @graph_c5(%weight: !b) -> (!b {weft.update_of = "weihgt"}) {
  %weight_next = weft.relu %weight : !b
  weft.return %weight_next : !b
}

// -----

!b = tensor<2xf32, #weft.axes<b>>
// expected-error @+1 {{graph_c5: weft.update_of of result 1 ('other') is "weight", and so is that of result 0: an argument has one next value}}
weft.graph @graph_c5_twice(%weight: !b) -> (!b {weft.update_of = "weight"}, !b {weft.update_of = "weight"}) {
  %weight_next = weft.relu %weight : !b
  %other = weft.relu %weight : !b
  weft.return %weight_next, %other : !b, !b
}

// -----

!b = tensor<2xf32, #weft.axes<b>>
!h = tensor<2xf16, #weft.axes<b>>
// expected-error @+1 {{graph_c5: weft.update_of of result 0 ('weight_next') is "weight", but the next value of an argument has its type}}
weft.graph @graph_c5_of_another_type(%weight: !h, %x: !b) -> (!b {weft.update_of = "weight"}) {
  %weight_next = weft.relu %x : !b
  weft.return %weight_next : !b
}

// -----

// A result may be an update of itself, which is the next value of no argument.
!b = tensor<2xf32, #weft.axes<b>>
weft.graph @graph_c5_of_itself(%x: !b) -> (!b {weft.update_of = "check"}) {
  %check = weft.relu %x : !b
  weft.return %check : !b
}
