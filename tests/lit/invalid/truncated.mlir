// A file that ends in the middle is rejected at its last line.
// RUN: not weft-opt %s 2>&1 | FileCheck %s
// CHECK: error: {{.*}}
weft.graph @cut(%x: tensor<2xf32, #weft.axes<b>>) {
  %y = weft.relu %x : tensor<2xf32,
