// ARGS: --round
// Casts to 8-bit floats: ties to even, subnormals, saturation, infinities and NaN (SPEC.md, "8-bit floats"); and a product of both
// formats, whose sums are those of fp32.
!x = tensor<8xf32, #weft.axes<i>>
!a = tensor<8xf8E4M3FN, #weft.axes<i>>
!b = tensor<8xf8E5M2, #weft.axes<i>>
weft.graph @cast() {
  // 17 and 19 lie halfway in steps of 2; 2^-10 is half of the smallest E4M3; 460 and infinity are beyond its largest.
  %x = weft.constant dense<[17.0, 19.0, 0.0009765625, 0.0029296875, 460.0, -1.0e9, 0x7F800000, 0.3]> : !x
  %narrow = weft.cast %x : !x -> !a
  %wide = weft.cast %narrow : !a -> !x
  %expected = weft.constant dense<[16.0, 20.0, 0.0, 0.00390625, 448.0, -448.0, 448.0, 0.3125]> : !x
  weft.expect_close %wide, %expected {absolute = 0.0, relative = 0.0} : !x
  %coarse = weft.cast %x : !x -> !b
  %again = weft.cast %coarse : !b -> !x
  %five = weft.constant dense<[16.0, 20.0, 0.0009765625, 0.0029296875, 448.0, -57344.0, 0x7F800000, 0.3125]> : !x
  weft.expect_close %again, %five {absolute = 0.0, relative = 0.0} : !x
  weft.return
}

!ik = tensor<2x3xf8E4M3FN, #weft.axes<i, k>>
!nk = tensor<2x3xf8E5M2, #weft.axes<n, k>>
!in = tensor<2x2xf32, #weft.axes<i, n>>
!s = tensor<f32, #weft.axes<>>
weft.graph @product() {
  %x = weft.constant dense<[[1.0, -2.0, 0.5], [448.0, 0.0, 3.5]]> : !ik
  %y = weft.constant dense<[[2.0, 0.25, 8.0], [1024.0, 1.0, -4.0]]> : !nk
  %scale = weft.constant dense<0.125> : !s
  %z = weft.contract "ik,nk->in" %x, %y : !ik, !nk -> !in
  %r = weft.mul %z, %scale along () : !in, !s
  %expected = weft.constant dense<[[0.6875, 127.5], [115.5, 57342.25]]> : !in
  weft.expect_close %r, %expected {absolute = 0.0, relative = 0.0} : !in
  weft.return
}
