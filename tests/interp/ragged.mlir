// Lengths counted in a mask, one of whose rows is no prefix; offsets of lengths that are too small
// and too large, a sequence without tokens, packing along two
// axes that are no neighbours, in either order, and unpacking with a fill.
!lengths = tensor<4xi32, #weft.axes<b>>
!offsets = tensor<5xi32, #weft.axes<n>>
!x = tensor<4x2x3xf32, #weft.axes<b, h, j>>
!t = tensor<12x2xf32, #weft.axes<t, h>>
!y = tensor<3x2x4xf32, #weft.axes<j, h, b>>
!ht = tensor<2x12xf32, #weft.axes<h, t>>
!ids = tensor<4x3xi32, #weft.axes<b, j>>
!tokens = tensor<12xi32, #weft.axes<t>>
weft.graph @ragged() {
  %lengths = weft.constant dense<[2, -7, 9, 1]> : !lengths
  %offsets = weft.offsets %lengths {bound = 3} : !lengths -> !offsets
  %sums = weft.constant dense<[0, 2, 2, 5, 6]> : !offsets
  weft.expect_close %offsets, %sums : !offsets

  %bits = weft.constant dense<[[1, 1, 0], [0, 0, 0], [1, 1, 1], [0, 1, 0]]> : tensor<4x3xi1, #weft.axes<b, j>>
  %counted = weft.lengths %bits : tensor<4x3xi1, #weft.axes<b, j>> -> !lengths
  %tokens_of_rows = weft.constant dense<[2, 0, 3, 1]> : !lengths
  weft.expect_close %counted, %tokens_of_rows : !lengths

  %x = weft.constant dense<[[[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]],
                            [[20.0, 21.0, 22.0], [30.0, 31.0, 32.0]],
                            [[40.0, 41.0, 42.0], [50.0, 51.0, 52.0]],
                            [[60.0, 61.0, 62.0], [70.0, 71.0, 72.0]]]> : !x
  %packed = weft.pack %x, %offsets over b, j : !x, !offsets -> !t
  %tokens = weft.constant dense<[[0.0, 10.0], [1.0, 11.0], [40.0, 50.0], [41.0, 51.0], [42.0, 52.0],
                                 [60.0, 70.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0],
                                 [0.0, 0.0], [0.0, 0.0]]> : !t
  weft.expect_close %packed, %tokens : !t
  %back = weft.unpack %packed, %offsets {axis = t, into = [0, 2], fill = -1.0}
      : !t, !offsets -> !x
  %restored = weft.constant dense<[[[0.0, 1.0, -1.0], [10.0, 11.0, -1.0]],
                                   [[-1.0, -1.0, -1.0], [-1.0, -1.0, -1.0]],
                                   [[40.0, 41.0, 42.0], [50.0, 51.0, 52.0]],
                                   [[60.0, -1.0, -1.0], [70.0, -1.0, -1.0]]]> : !x
  weft.expect_close %back, %restored : !x

  %y = weft.transpose %x {permutation = [j, h, b]} : !x -> !y
  %other = weft.pack %y, %offsets over b, j : !y, !offsets -> !ht
  %turned = weft.transpose %packed {permutation = [h, t]} : !t -> !ht
  weft.expect_close %other, %turned : !ht
  %yback = weft.unpack %other, %offsets {axis = t, into = [2, 0], fill = -1.0}
      : !ht, !offsets -> !y
  %yrestored = weft.transpose %restored {permutation = [j, h, b]} : !x -> !y
  weft.expect_close %yback, %yrestored : !y

  %ids = weft.constant dense<[[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]> : !ids
  %packed_ids = weft.pack %ids, %offsets over b, j : !ids, !offsets -> !tokens
  %expected_ids = weft.constant dense<[1, 2, 7, 8, 9, 10, 0, 0, 0, 0, 0, 0]> : !tokens
  weft.expect_close %packed_ids, %expected_ids : !tokens

  %ones = weft.constant dense<1.0> : !t
  %kept = weft.mask tokens %ones, %offsets {key = t, fill = -2.0} : !t, !offsets -> !t
  %of_tokens = weft.constant dense<[[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0],
                                    [1.0, 1.0], [-2.0, -2.0], [-2.0, -2.0], [-2.0, -2.0],
                                    [-2.0, -2.0], [-2.0, -2.0], [-2.0, -2.0]]> : !t
  weft.expect_close %kept, %of_tokens : !t
  weft.return
}

// Two tokens a sequence behind 0, 2 and 3 of a cache of four positions: of the last one the second
// has no place. Scores of queries that stand there, and angles that count from there.
!starts = tensor<3xi32, #weft.axes<b>>
!cache = tensor<3x4x2xf32, #weft.axes<b, k, p>>
!new = tensor<3x2x2xf32, #weft.axes<b, j, p>>
!score = tensor<3x2x4xf32, #weft.axes<b, j, k>>
weft.graph @cached(%cache: !cache) {
  %starts = weft.constant dense<[0, 2, 3]> : !starts
  %new = weft.constant dense<[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]],
                              [[9.0, 10.0], [11.0, 12.0]]]> : !new
  %appended = weft.append %cache, %new, %starts along (b) {axis = k}
      : !cache, !new, !starts -> !cache
  %from1 = weft.slice %appended {axis = b, start = 0, size = 1}
      : !cache -> tensor<1x4x2xf32, #weft.axes<b, k, p>>
  %first = weft.slice %from1 {axis = k, start = 0, size = 2}
      : tensor<1x4x2xf32, #weft.axes<b, k, p>> -> tensor<1x2x2xf32, #weft.axes<b, k, p>>
  %firstExpected = weft.constant dense<[[[1.0, 2.0], [3.0, 4.0]]]>
      : tensor<1x2x2xf32, #weft.axes<b, k, p>>
  weft.expect_close %first, %firstExpected : tensor<1x2x2xf32, #weft.axes<b, k, p>>
  %at3 = weft.slice %appended {axis = k, start = 3, size = 1}
      : !cache -> tensor<3x1x2xf32, #weft.axes<b, k, p>>
  %last = weft.slice %at3 {axis = b, start = 1, size = 2}
      : tensor<3x1x2xf32, #weft.axes<b, k, p>> -> tensor<2x1x2xf32, #weft.axes<b, k, p>>
  %lastExpected = weft.constant dense<[[[7.0, 8.0]], [[9.0, 10.0]]]>
      : tensor<2x1x2xf32, #weft.axes<b, k, p>>
  weft.expect_close %last, %lastExpected : tensor<2x1x2xf32, #weft.axes<b, k, p>>

  %scores = weft.constant dense<1.0> : !score
  %causal = weft.mask causal %scores, %starts along (b) {query = j, key = k, fill = 0.0}
      : !score, !starts -> !score
  %seen = weft.constant dense<[[[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]],
                               [[1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]],
                               [[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]]> : !score
  weft.expect_close %causal, %seen : !score
  %window = weft.mask window %scores, %starts along (b)
      {query = j, key = k, left = 1, right = 0, fill = 0.0} : !score, !starts -> !score
  %near = weft.constant dense<[[[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]],
                               [[0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0]],
                               [[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0]]]> : !score
  weft.expect_close %window, %near : !score

  // cos and sin of positions 0, 1; 2, 3; 3, 4.
  %ones = weft.constant dense<[[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]],
                               [[1.0, 0.0], [1.0, 0.0]]]> : !new
  %turned = weft.rotary %ones, %starts along (b) {position = j, dim = p} : !new, !starts -> !new
  %angles = weft.constant dense<[[[1.0, 0.0], [0.54030231, 0.84147098]],
                                 [[-0.41614684, 0.90929743], [-0.98999250, 0.14112001]],
                                 [[-0.98999250, 0.14112001], [-0.65364362, -0.75680250]]]> : !new
  weft.expect_close %turned, %angles {absolute = 1.0e-6} : !new
  weft.return
}

// The same tokens in five pages of two positions: sequence 0 has pages 3 and 1, sequence 1 page 0
// alone, sequence 2 pages 2 and 4. Tokens of sequence 1 from position 2 on are dropped, and so is
// the last one of sequence 2; what is gathered for an entry that is no page is zero.
!pages = tensor<5x2x2xf32, #weft.axes<f, c, p>>
!table = tensor<3x2xi32, #weft.axes<b, e>>
weft.graph @paged(%pages: !pages) {
  %starts = weft.constant dense<[0, 2, 3]> : !starts
  %table = weft.constant dense<[[3, 1], [0, -1], [2, 4]]> : !table
  %new = weft.constant dense<[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]],
                              [[9.0, 10.0], [11.0, 12.0]]]> : !new
  %appended = weft.append %pages, %new, %starts, %table along (f) {axis = c}
      : !pages, !new, !starts, !table -> !pages
  %at3 = weft.slice %appended {axis = f, start = 3, size = 1}
      : !pages -> tensor<1x2x2xf32, #weft.axes<f, c, p>>
  %first = weft.constant dense<[[[1.0, 2.0], [3.0, 4.0]]]>
      : tensor<1x2x2xf32, #weft.axes<f, c, p>>
  weft.expect_close %at3, %first : tensor<1x2x2xf32, #weft.axes<f, c, p>>

  %gathered = weft.gather_pages %appended, %table along (f) {axis = c} : !pages, !table -> !cache
  %of0 = weft.slice %gathered {axis = b, start = 0, size = 1}
      : !cache -> tensor<1x4x2xf32, #weft.axes<b, k, p>>
  %from0 = weft.slice %of0 {axis = k, start = 0, size = 2}
      : tensor<1x4x2xf32, #weft.axes<b, k, p>> -> tensor<1x2x2xf32, #weft.axes<b, k, p>>
  %expected0 = weft.constant dense<[[[1.0, 2.0], [3.0, 4.0]]]>
      : tensor<1x2x2xf32, #weft.axes<b, k, p>>
  weft.expect_close %from0, %expected0 : tensor<1x2x2xf32, #weft.axes<b, k, p>>
  %of1 = weft.slice %gathered {axis = b, start = 1, size = 1}
      : !cache -> tensor<1x4x2xf32, #weft.axes<b, k, p>>
  %from1 = weft.slice %of1 {axis = k, start = 2, size = 2}
      : tensor<1x4x2xf32, #weft.axes<b, k, p>> -> tensor<1x2x2xf32, #weft.axes<b, k, p>>
  %expected1 = weft.constant dense<0.0> : tensor<1x2x2xf32, #weft.axes<b, k, p>>
  weft.expect_close %from1, %expected1 : tensor<1x2x2xf32, #weft.axes<b, k, p>>
  %of2 = weft.slice %gathered {axis = b, start = 2, size = 1}
      : !cache -> tensor<1x4x2xf32, #weft.axes<b, k, p>>
  %from2 = weft.slice %of2 {axis = k, start = 3, size = 1}
      : tensor<1x4x2xf32, #weft.axes<b, k, p>> -> tensor<1x1x2xf32, #weft.axes<b, k, p>>
  %expected2 = weft.constant dense<[[[9.0, 10.0]]]> : tensor<1x1x2xf32, #weft.axes<b, k, p>>
  weft.expect_close %from2, %expected2 : tensor<1x1x2xf32, #weft.axes<b, k, p>>
  weft.return
}
