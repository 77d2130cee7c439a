// A gradient's dropout becomes a scale where its only reader is zero wherever it drops; any other keeps its mask.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(implied-masks))' %s -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: weft-interpret %s --against %t.mlir --absolute 0 --relative 0

!ji = tensor<9x21xf32, #weft.axes<j, i>>

// CHECK-LABEL: weft.graph @implied
// CHECK: %kept = weft.dropout %active {p = 0.5, stream = 3}
// CHECK: %d_active = weft.scale %dy {factor = 2.0}
// CHECK: weft.relu_dx %d_active, %kept
weft.graph @implied(%x: !ji, %dy: !ji) -> (!ji, !ji) {
  %active = weft.relu %x : !ji
  %kept = weft.dropout %active {p = 0.5, stream = 3} : !ji
  %d_active = weft.dropout %dy {p = 0.5, stream = 3} : !ji
  %dx = weft.relu_dx %d_active, %kept : !ji
  weft.return %kept, %dx : !ji, !ji
}

// The activation itself says nothing of what was dropped.
// CHECK-LABEL: weft.graph @reads_the_activation
// CHECK: %d_active = weft.dropout %dy
weft.graph @reads_the_activation(%x: !ji, %dy: !ji) -> !ji {
  %active = weft.relu %x : !ji
  %d_active = weft.dropout %dy {p = 0.5, stream = 3} : !ji
  %dx = weft.relu_dx %d_active, %active : !ji
  weft.return %dx : !ji
}

// CHECK-LABEL: weft.graph @other_stream
// CHECK: %d_active = weft.dropout %dy
weft.graph @other_stream(%x: !ji, %dy: !ji) -> !ji {
  %kept = weft.dropout %x {p = 0.5, stream = 4} : !ji
  %d_active = weft.dropout %dy {p = 0.5, stream = 3} : !ji
  %dx = weft.relu_dx %d_active, %kept : !ji
  weft.return %dx : !ji
}

// CHECK-LABEL: weft.graph @other_probability
// CHECK: %d_active = weft.dropout %dy
weft.graph @other_probability(%x: !ji, %dy: !ji) -> !ji {
  %kept = weft.dropout %x {p = 0.25, stream = 3} : !ji
  %d_active = weft.dropout %dy {p = 0.5, stream = 3} : !ji
  %dx = weft.relu_dx %d_active, %kept : !ji
  weft.return %dx : !ji
}

// CHECK-LABEL: weft.graph @read_twice
// CHECK: %d_active = weft.dropout %dy
weft.graph @read_twice(%x: !ji, %dy: !ji) -> (!ji, !ji) {
  %kept = weft.dropout %x {p = 0.5, stream = 3} : !ji
  %d_active = weft.dropout %dy {p = 0.5, stream = 3} : !ji
  %dx = weft.relu_dx %d_active, %kept : !ji
  weft.return %d_active, %dx : !ji, !ji
}
