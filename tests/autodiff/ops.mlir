// One op a graph, behind something that is not linear, for comparison with JAX.
!bji = tensor<2x3x6xf32, #weft.axes<b, j, i>>
!hjk = tensor<2x35x40xf32, #weft.axes<h, j, k>>
!bjk = tensor<2x3x5xf32, #weft.axes<b, j, k>>
!ib = tensor<6x2xf32, #weft.axes<i, b>>
!bj = tensor<2x3xf32, #weft.axes<b, j>>
!i = tensor<6xf32, #weft.axes<i>>
!flag = tensor<2x3x6xi1, #weft.axes<b, j, i>>
!lengths = tensor<2xi32, #weft.axes<b>>
!table = tensor<7x3xf32, #weft.axes<v, i>>
!tokens = tensor<2x5xi32, #weft.axes<b, j>>
!rows = tensor<2x5x3xf32, #weft.axes<b, j, i>>
weft.graph @activations(%x: !bji) -> (!bji, !bji, !bji, !bji, !bji, !bji, !bji, !bji) {
  %relu = weft.relu %x : !bji
  %gelu = weft.gelu %x : !bji
  %gelu_tanh = weft.gelu_tanh %x : !bji
  %silu = weft.silu %x : !bji
  %tanh = weft.tanh %x : !bji
  %sigmoid = weft.sigmoid %x : !bji
  %exp = weft.exp %x : !bji
  %rsqrt = weft.rsqrt %exp : !bji
  weft.return %relu, %gelu, %gelu_tanh, %silu, %tanh, %sigmoid, %exp, %rsqrt : !bji, !bji, !bji, !bji, !bji, !bji, !bji, !bji
}
weft.graph @arithmetic(%x: !bji, %z: !ib, %w: !i, %c: !flag) -> (!bji, !bji, !bji, !bji, !bji, !bji) {
  %e = weft.exp %z : !ib
  %sum = weft.add %x, %e along (i, b) : !bji, !ib
  %difference = weft.sub %sum, %w along (i) : !bji, !i
  %product = weft.mul %difference, %e along (i, b) : !bji, !ib
  %quotient = weft.div %product, %e along (i, b) : !bji, !ib
  %biased = weft.bias %quotient, %w along (i) : !bji, !i
  %scaled = weft.scale %biased {factor = -0.7} : !bji
  %chosen = weft.select %c, %scaled, %product : !flag, !bji, !bji -> !bji
  %kept = weft.dropout %chosen {p = 0.3, stream = 11} : !bji
  weft.return %sum, %difference, %product, %quotient, %chosen, %kept : !bji, !bji, !bji, !bji, !bji, !bji
}
weft.graph @coordinates(%x: !bji, %s: !bjk, %lengths: !lengths, %blocks: tensor<2x3xi1, #weft.axes<j, k>>) -> (!bji, !bji, !bjk, !bjk, !bjk, !bjk) {
  %halved = weft.rotary %x {position = j, dim = i, base = 100.0} : !bji
  %interleaved = weft.rotary %x {position = j, dim = i, base = 100.0, style = interleaved} : !bji
  %m1 = weft.mask causal %s {query = j, key = k} : !bjk
  %causal = weft.softmax %m1 over k : !bjk
  %m2 = weft.mask window %s {query = j, key = k, left = 1, right = 1} : !bjk
  %window = weft.softmax %m2 over k : !bjk
  %m3 = weft.mask padding %s, %lengths along (b) {key = k} : !bjk, !lengths -> !bjk
  %padding = weft.softmax %m3 over k : !bjk
  %m4 = weft.mask block %s, %blocks {query = j, key = k, size = 2} : !bjk, tensor<2x3xi1, #weft.axes<j, k>> -> !bjk
  %block = weft.softmax %m4 over k : !bjk
  weft.return %halved, %interleaved, %causal, %window, %padding, %block : !bji, !bji, !bjk, !bjk, !bjk, !bjk
}
// A table of each head, and one of all heads; the second row of tiles sees nothing there.
weft.graph @block_masks(%s: !hjk) -> (!hjk, !hjk) {
  %m1 = weft.mask pattern %s along (h) {query = j, key = k, pattern = "table(block=16,heads=2,rows=3,columns=3,bits=563016)"} : !hjk
  %heads = weft.softmax %m1 over k : !hjk
  %m2 = weft.mask pattern %s {query = j, key = k, pattern = "table(block=16,heads=1,rows=3,columns=3,bits=205)"} : !hjk
  %all = weft.softmax %m2 over k : !hjk
  weft.return %heads, %all : !hjk, !hjk
}
weft.graph @normalizations(%x: !bji, %gamma: !i, %beta: !i) -> (!bji, !bji, !bji, !bj, !i) {
  %softmax = weft.softmax %x over j : !bji
  %layer = weft.layer_norm %x, %gamma, %beta over i : !bji, !i, !i
  %rms = weft.rms_norm %layer, %gamma over i : !bji, !i
  %largest = weft.reduce max %rms over i : !bji -> !bj
  %total = weft.reduce sum %layer over b, j : !bji -> !i
  weft.return %softmax, %layer, %rms, %largest, %total : !bji, !bji, !bji, !bj, !i
}
weft.graph @loss(%x: !bji, %p: tensor<2x3xi32, #weft.axes<b, j>>) -> !bj {
  %positive = weft.exp %x : !bji
  %root = weft.sqrt %positive : !bji
  %losses, %logs = weft.cross_entropy %root, %p over i : !bji, tensor<2x3xi32, #weft.axes<b, j>> -> !bj, !bj
  weft.return %losses : !bj
}
weft.graph @movement(%x: !bji, %z: !bji, %t: !table, %n: !tokens) -> (tensor<6x3x2xf32, #weft.axes<i, j, b>>, tensor<2x3x4xf32, #weft.axes<b, j, i>>, tensor<2x3x12xf32, #weft.axes<b, j, i>>, tensor<2x3x2x3xf32, #weft.axes<b, j, m, n>>, tensor<6x6xf32, #weft.axes<t, i>>, tensor<2x3x9xf32, #weft.axes<b, j, i>>, tensor<4x6xf32, #weft.axes<n, i>>, !rows) {
  %turned = weft.transpose %x {permutation = [i, j, b]} : !bji -> tensor<6x3x2xf32, #weft.axes<i, j, b>>
  %part = weft.slice %x {axis = i, start = 1, size = 4} : !bji -> tensor<2x3x4xf32, #weft.axes<b, j, i>>
  %both = weft.concat %x, %z {axis = i} : !bji -> tensor<2x3x12xf32, #weft.axes<b, j, i>>
  %split = weft.split_axis %z {axis = i, sizes = [2, 3]} : !bji -> tensor<2x3x2x3xf32, #weft.axes<b, j, m, n>>
  %merged = weft.merge_axes %z {axis = b, count = 2} : !bji -> tensor<6x6xf32, #weft.axes<t, i>>
  %padded = weft.pad %z {axis = i, start = 2, size = 9} : !bji -> tensor<2x3x9xf32, #weft.axes<b, j, i>>
  %row = weft.reduce sum %x over b, j : !bji -> !i
  %spread = weft.broadcast %row {into = [1]} : !i -> tensor<4x6xf32, #weft.axes<n, i>>
  %rows = weft.gather %t, %n : !table, !tokens -> !rows
  weft.return %turned, %part, %both, %split, %merged, %padded, %spread, %rows : tensor<6x3x2xf32, #weft.axes<i, j, b>>, tensor<2x3x4xf32, #weft.axes<b, j, i>>, tensor<2x3x12xf32, #weft.axes<b, j, i>>, tensor<2x3x2x3xf32, #weft.axes<b, j, m, n>>, tensor<6x6xf32, #weft.axes<t, i>>, tensor<2x3x9xf32, #weft.axes<b, j, i>>, tensor<4x6xf32, #weft.axes<n, i>>, !rows
}
