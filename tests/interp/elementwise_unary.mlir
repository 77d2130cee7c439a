// Functions at seven points. Expected values by formulas other than the ops' own: erfc for gelu, the sigmoid form of its tanh
// approximation, exponentials for tanh, the power series for exp.
!x = tensor<7xf32, #weft.axes<i>>
weft.graph @functions() {
  %x = weft.constant dense<[-2.5, -1.0, -0.25, 0.0, 0.5, 1.0, 3.0]> : !x
  %relu = weft.relu %x : !x
  %reluExpected = weft.constant dense<[0.0, 0.0, 0.0, 0.0, 0.5, 1.0, 3.0]> : !x
  weft.expect_close %relu, %reluExpected : !x
  %gelu = weft.gelu %x : !x
  %geluExpected = weft.constant dense<[-0.0155241633, -0.158655254, -0.100323419, 0.0, 0.345731231, 0.841344746, 2.99595031]> : !x
  weft.expect_close %gelu, %geluExpected {absolute = 1.0e-7} : !x
  %geluTanh = weft.gelu_tanh %x : !x
  %geluTanhExpected = weft.constant dense<[-0.0150842661, -0.158808009, -0.100324649, 0.0, 0.34571401, 0.841191991, 2.99636261]> : !x
  weft.expect_close %geluTanh, %geluTanhExpected {absolute = 1.0e-7} : !x
  %silu = weft.silu %x : !x
  %siluExpected = weft.constant dense<[-0.18964545, -0.268941421, -0.109455875, 0.0, 0.311229666, 0.731058579, 2.85772238]> : !x
  weft.expect_close %silu, %siluExpected : !x
  %tanh = weft.tanh %x : !x
  %tanhExpected = weft.constant dense<[-0.986614298, -0.761594156, -0.244918662, 0.0, 0.462117157, 0.761594156, 0.995054754]> : !x
  weft.expect_close %tanh, %tanhExpected : !x
  %sigmoid = weft.sigmoid %x : !x
  %sigmoidExpected = weft.constant dense<[0.07585818, 0.268941421, 0.437823499, 0.5, 0.622459331, 0.731058579, 0.952574127]> : !x
  weft.expect_close %sigmoid, %sigmoidExpected : !x
  %exp = weft.exp %x : !x
  %expExpected = weft.constant dense<[0.0820849986, 0.367879441, 0.778800783, 1.0, 1.64872127, 2.71828183, 20.0855369]> : !x
  weft.expect_close %exp, %expExpected : !x
  %scaled = weft.scale %x {factor = -2.0} : !x
  %scaledExpected = weft.constant dense<[5.0, 2.0, 0.5, 0.0, -1.0, -2.0, -6.0]> : !x
  weft.expect_close %scaled, %scaledExpected : !x
  weft.return
}

weft.graph @reciprocal_root() {
  %x = weft.constant dense<[0.25, 1.0, 4.0, 6.25, 100.0, 10000.0, 0.0]> : !x
  %y = weft.rsqrt %x : !x
  %expected = weft.constant dense<[2.0, 1.0, 0.5, 0.4, 0.1, 0.01, 0x7F800000]> : !x
  weft.expect_close %y, %expected : !x
  weft.return
}
