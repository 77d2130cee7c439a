// Queries that a rotary embedding turns: one attention more with it in front, where nothing else reads what is turned; that of keys stays apart.
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(fuse{device=a100}))' %s | FileCheck %s
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(fuse{device=h200}))' %s | FileCheck %s
// RUN: weft-opt --pass-pipeline='builtin.module(weft.graph(fuse))' %s | FileCheck %s --check-prefix=NONE

// NONE-NOT: "attention_rotary_mask"

!bhjp = tensor<2x3x7x32xf16, #weft.axes<b, h, j, p>>
!bhkp = tensor<2x3x9x32xf16, #weft.axes<b, h, k, p>>
!bhjk = tensor<2x3x7x9xf16, #weft.axes<b, h, j, k>>
!b    = tensor<2xi32, #weft.axes<b>>

// CHECK-LABEL: weft.graph @cached
// CHECK: name = "attention_mask", ops = [2, 3, 4]
// CHECK: name = "attention_rotary_mask", ops = [0, 2, 3, 4]
// CHECK-NOT: "attention_rotary
weft.graph @cached(%q: !bhjp, %k: !bhkp, %v: !bhkp, %lengths: !b) -> !bhjp {
  %q_turned = weft.rotary %q, %lengths along (b) {dim = p, position = j} : !bhjp, !b
  %k_turned = weft.rotary %k {dim = p, position = k} : !bhkp
  %score = weft.contract "bhjp,bhkp->bhjk" %q_turned, %k_turned : !bhjp, !bhkp -> !bhjk
  %masked = weft.mask causal %score, %lengths along (b) {query = j, key = k} : !bhjk, !b
  %y = weft.online_softmax_contract "bhjk,bhkp->bhjp" %masked, %v : !bhjk, !bhkp -> !bhjp
  weft.return %y : !bhjp
}

// CHECK-LABEL: weft.graph @read
// CHECK-NOT: "attention_rotary
// CHECK: ops = [0, 1, 2], pass = "fuse", {{.*}}rejected = {code = "F027", detail = "'q_turned' is a result of the graph", reason = "attention-region"}
weft.graph @read(%q: !bhjp, %k: !bhkp, %v: !bhkp) -> (!bhjp, !bhjp) {
  %q_turned = weft.rotary %q {dim = p, position = j} : !bhjp
  %score = weft.contract "bhjp,bhkp->bhjk" %q_turned, %k : !bhjp, !bhkp -> !bhjk
  %y = weft.online_softmax_contract "bhjk,bhkp->bhjp" %score, %v : !bhjk, !bhkp -> !bhjp
  weft.return %y, %q_turned : !bhjp, !bhjp
}
