// A factor joins the contraction that feeds it; a contraction that others read too keeps its scale op.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(fold-scale))' %s -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: weft-interpret %s --against %t.mlir --absolute 1e-9 --relative 1e-9

!bji = tensor<2x3x4xf32, #weft.axes<b, j, i>>
!ui  = tensor<5x4xf32, #weft.axes<u, i>>
!bju = tensor<2x3x5xf32, #weft.axes<b, j, u>>

// CHECK-LABEL: weft.graph @folds
// CHECK: %scaled = weft.contract "bji,ui->bju" %x, %w {scale = 0.25}
// CHECK-NOT: weft.scale
// CHECK: weft.return %scaled
weft.graph @folds(%x: !bji, %w: !ui {weft.parameter}) -> !bju {
  %product = weft.contract "bji,ui->bju" %x, %w {scale = 0.5} : !bji, !ui -> !bju
  %scaled = weft.scale %product {factor = 0.5} : !bju
  weft.return %scaled : !bju
}

// CHECK-LABEL: weft.graph @keeps
// CHECK: weft.contract "bji,ui->bju" %x, %w :
// CHECK: weft.scale
weft.graph @keeps(%x: !bji, %w: !ui {weft.parameter}) -> (!bju, !bju) {
  %product = weft.contract "bji,ui->bju" %x, %w : !bji, !ui -> !bju
  %scaled = weft.scale %product {factor = 0.5} : !bju
  weft.return %product, %scaled : !bju, !bju
}
