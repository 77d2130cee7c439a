// The graph passes as MLIR passes, for weft-opt and for tests. Each works on one weft.graph; none
// decides whether a rewrite pays: that is the selector's question.
#ifndef WEFT_PASSES_TD
#define WEFT_PASSES_TD

include "mlir/Pass/PassBase.td"

def DifferentiatePass : Pass<"differentiate", "::weft::GraphOp"> {
  let summary = "Forward and backward in one graph";
  let description = [{
    Reverse mode; each op states its own derivative. The gradient of a result is a new argument,
        unless the graph ends in a loss
    (a scalar, or the result marked `weft.loss`). Everything that the backward ops read of the
    forward ones is saved, and
    listed, apart from what `recompute` names.
    ```mlir
    weft.graph @layer(%x: !bji, %w: !ui) -> !bju {
      %h = weft.contract "ui,bji->bju" %w, %x : !ui, !bji -> !bju
      %y = weft.relu %h : !bju
      weft.return %y : !bju
    }
    // becomes
    weft.graph @layer(%x: !bji, %w: !ui, %d_y: !bju {weft.gradient_of = "y"})
        -> (!bju, !bji {weft.gradient_of = "x"},
            !ui {weft.gradient_of = "w"}) attributes {weft.saved = ["y"]} {
      %h = weft.contract "ui,bji->bju" %w, %x : !ui, !bji -> !bju
      %y = weft.relu %h : !bju
      %d_h = weft.relu_dx %d_y, %y : !bju
      %d_w = weft.contract "bju,bji->ui" %d_h, %x : !bju, !bji -> !ui
      %d_x = weft.contract "ui,bju->bji" %w, %d_h : !ui, !bju -> !bji
      weft.return %y, %d_x, %d_w : !bju, !bji, !ui
    }
    ```
  }];
  let options = [
    ListOption<"withRespectTo", "with-respect-to", "std::string",
        "names of arguments; default: all that hold floats">,
    ListOption<"recompute", "recompute", "std::string",
        "element-wise results and norms that the backward pass computes again">];
}

def PackSequencesPass : Pass<"pack-sequences", "::weft::GraphOp"> {
  let summary = "Compute valid tokens only, packed one after the other";
  let description = [{
    A padding mask's lengths say which tokens are valid. What is computed token by token runs over
        packed tokens; attention stays padded, between unpack and pack.
    ```mlir
    %k = weft.contract "ui,bji->bju" %w, %x : !ui, !bji -> !bju
    // becomes
    %offsets = weft.offsets %lengths {bound = 512} : !b -> !n
    %x_packed = weft.pack %x, %offsets over b, j : !bji, !n -> !ti
    %k = weft.contract "ui,bi->bu" %w, %x_packed : !ui, !ti -> !tu
    %k_padded = weft.unpack %k, %offsets {axis = t, into = [0, 1]} : !tu, !n -> !bju
    ```
    Results of the graph are zero behind the tokens of each sequence.
  }];
  let options = [Option<"axis", "axis", "std::string", "\"j\"",
                        "the name of the arguments' axis of positions">];
}

def FoldScalePass : Pass<"fold-scale", "::weft::GraphOp"> {
  let summary = "Fold a scale into the contraction that feeds it";
  let description = [{
    The one fusion into contractions that the rules of "Data Movement Is All You Need" (section 4)
        allow.
    ```mlir
    %s = weft.contract "phbk,phbj->hbjk" %k, %q : !phbk, !phbj -> !hbjk
    %t = weft.scale %s {factor = 0.125} : !hbjk
    // becomes
    %t = weft.contract "phbk,phbj->hbjk" %k, %q {scale = 0.125} : !phbk, !phbj -> !hbjk
    ```
    A contraction that others read too keeps its scale op.
  }];
}

def MaskUnusedTokensPass : Pass<"mask-unused-tokens", "::weft::GraphOp"> {
  let summary = "Say in every kernel over packed tokens how many of them there are";
  let description = [{
    ```mlir
    %h = weft.contract "ui,ti->tu" %w, %x : !ui, !ti -> !tu
    %g = weft.gelu %h : !tu
    // becomes
    %h = weft.contract "ui,ti->tu" %w, %x : !ui, !ti -> !tu
    %g_unmasked = weft.gelu %h : !tu
    %g = weft.mask tokens %g_unmasked, %offsets {key = t, fill = 0.0} : !tu, !offsets -> !tu
    ```
    Behind each chain of element-wise ops over packed tokens (weft.pack, weft.unpack), so that
        every tensor that a kernel may store is zero from the last offset on.
  }];
}

def ImpliedMasksPass : Pass<"implied-masks", "::weft::GraphOp"> {
  let summary = "Draw no mask that a dropped activation holds already";
  let description = [{
    ```mlir
    %kept = weft.dropout %y {p = 0.5, stream = 7} : !bju
    %d_y = weft.dropout %d_kept {p = 0.5, stream = 7} : !bju
    %d_h = weft.relu_dx %d_y, %kept : !bju
    // becomes
    %kept = weft.dropout %y {p = 0.5, stream = 7} : !bju
    %d_y = weft.scale %d_kept {factor = 2.0} : !bju
    %d_h = weft.relu_dx %d_y, %kept : !bju
    ```
    A gradient that others read too keeps its dropout.
  }];
}

def StackProjectionsPass : Pass<"stack-projections", "::weft::GraphOp"> {
  let summary = "One contraction with stacked weights for projections of one tensor";
  let description = [{
    "Data Movement Is All You Need",
        A.5.2. Weights are concatenated along the head axis (grouped-query: the axis whose
    extents differ; query heads of two axes g,
        r are merged in the weight and split again in the result); biases that
    follow every projection likewise; results are slices.
    ```mlir
    %q = weft.contract "phi,bji->phbj" %wq, %x : ...
    %k = weft.contract "phi,bki->phbk" %wk, %x : ...
    // becomes, with mode=three
    // of parameters: packed once, at load
    %w   = weft.concat %wq, %wk {axis = h} : ...
    %q_k = weft.contract "phi,bji->phbj" %w, %x : ...
    %q   = weft.slice %q_k {axis = h, start = 0, size = 16} : ...
    %k   = weft.slice %q_k {axis = h, start = 16, size = 16} : ...
    ```
    Every attempt is recorded in `weft.records` of the graph (codes A...:
    passes/fuse/ReasonCodes.h). Known downside: the
    slices are free only in layouts whose slowest axis is the stacked one; in others each is a copy.
  }];
  let options = [
    Option<"mode", "mode", "std::string", "\"three\"",
        "separate, two (the first two of a group), last-two, three (all)">];
}

def RecomputeAttentionPass : Pass<"recompute-attention", "::weft::GraphOp"> {
  let summary = "Attention of a differentiated graph that saves one number a row";
  let description = [{
    FlashAttention, sections 3.1 and B.2. Forward folds the softmax as decompose-softmax,
    commute-scaling and fold-softmax do, and saves the logarithms of the sums; the backward pass
    computes scores and probabilities again. D, the sums over rows of the output times its
    gradient, is what softmax_dx sums over keys, dropped or not.
    ```mlir
    %score = weft.contract "phbk,phbj->hbjk" %k, %q : ...
    %p     = weft.softmax %score over k : !hbjk
    %kept  = weft.dropout %p {p = 0.1, stream = 0} : !hbjk
    %y     = weft.contract "whbk,hbjk->whbj" %v, %kept : ...
    // backward
    %d_v    = weft.contract "whbj,hbjk->whbk" %d_y, %kept : ...
    %d_kept = weft.contract "whbk,whbj->hbjk" %v, %d_y : ...
    %d_p    = weft.dropout %d_kept {p = 0.1, stream = 0} : !hbjk
    %d_s    = weft.softmax_dx %d_p, %p over k : !hbjk
    // becomes
    %score       = weft.contract "phbk,phbj->hbjk" %k, %q : ...
    %y, %y_log_sums = weft.online_softmax_contract "hbjk,whbk->whbj" %score, %v {p = 0.1,
        stream = 0} : !hbjk, !whbk -> !whbj, !f32_hbj
    // backward
    %score_again = weft.contract "phbk,phbj->hbjk" %k, %q : ...
    %p_again     = weft.softmax_from_log_sums %score_again, %y_log_sums along (h, b, j) : ...
    %kept_again  = weft.dropout %p_again {p = 0.1, stream = 0} : !hbjk
    %d_v    = weft.contract "whbj,hbjk->whbk" %d_y, %kept_again : ...
    %d_kept = weft.contract "whbk,whbj->hbjk" %v, %d_y : ...
    %d_p    = weft.dropout %d_kept {p = 0.1, stream = 0} : !hbjk
    %d_y_wide   = weft.cast %d_y : !whbj -> !f32_whbj
    %y_terms    = weft.mul %d_y_wide, %y : !f32_whbj, !whbj
    %y_row_sums = weft.reduce sum %y_terms over w : !f32_whbj -> !f32_hbj
    %d_p_centered = weft.sub %d_p, %y_row_sums along (h, b, j) : !hbjk, !f32_hbj
    %d_s        = weft.mul %d_p_centered, %p_again : !hbjk
    ```
    A softmax whose probabilities forward reads for anything else stays, as does one whose
    softmax_dx reads more than the gradient of the contraction. Known downside: where no kernel
    holds the backward pass whole, scores are computed twice.
  }];
}

def DecomposeSoftmaxPass : Pass<"decompose-softmax", "::weft::GraphOp"> {
  let summary = "Softmax as local softmax, reduction of sub-vectors and global scaling";
  let description = [{
    "Recomposing Softmax Layers", section 3.2. Ops after the softmax (dropout) stay after it.
    ```mlir
    %p = weft.softmax %x over k : !hbjk
    // becomes, with tile=64
    %exponentials, %maxima, %sums = weft.local_softmax %x over k {tile = 64} : !hbjk -> !hbjk,
        !f32_hbjn, !f32_hbjn
    %factors = weft.reduce_subvectors %maxima, %sums over n : !f32_hbjn
    %p = weft.global_scaling %exponentials, %factors over k {tile = 64} : !hbjk, !f32_hbjn -> !hbjk
    ```
  }];
  let options = [Option<"tile", "tile", "int", "64", "elements of a sub-vector">];
}

def RecomposeSoftmaxPass : Pass<"recompose-softmax", "::weft::GraphOp"> {
  let summary = "A decomposed softmax whose steps can join the contractions around it";
  let description = [{
    "Recomposing Softmax Layers", sections 3.3 and 6: decompose-softmax with one reader of the last
    step, so that local softmax can end the contraction before it and the scaling begin the next
    one. A dropout goes before the scaling, with the same bits. A backward pass scales and drops
    again.
    ```mlir
    %p    = weft.softmax %x over k : !hbjk
    %kept = weft.dropout %p {p = 0.1, stream = 0} : !hbjk
    %y    = weft.contract "whbk,hbjk->whbj" %v, %kept : ...
    // backward
    %d_v  = weft.contract "whbj,hbjk->whbk" %d_y, %kept : ...
    // becomes
    %exponentials, %maxima, %sums = weft.local_softmax %x over k {tile = 64} : ...
    %factors = weft.reduce_subvectors %maxima, %sums over n : !f32_hbjn
    %kept_exponentials = weft.dropout %exponentials {p = 0.1, stream = 0} : !hbjk
    %kept = weft.global_scaling %kept_exponentials, %factors over k {tile = 64} : ...
    %y    = weft.contract "whbk,hbjk->whbj" %v, %kept : ...
    // backward
    %p_again    = weft.global_scaling %exponentials, %factors over k {tile = 64} : ...
    %kept_again = weft.dropout %p_again {p = 0.1, stream = 0} : !hbjk
    %d_v  = weft.contract "whbj,hbjk->whbk" %d_y, %kept_again : ...
    ```
    A softmax whose probabilities forward reads for anything else stays whole. Known downside:
    exponentials are scaled twice, and cross memory once more where the backward pass has several
    readers.
  }];
  let options = [Option<"tile", "tile", "int", "64", "elements of a sub-vector">];
}

def CommuteGatesPass : Pass<"commute-gates", "::weft::GraphOp"> {
  let summary = "Move factors of probabilities past the contraction that reads them";
  let description = [{
    A factor that scale, mul or div multiply probabilities by goes to where no axis is added to a
    tensor: a constant into the contraction, one without the softmax's axis behind it, one with
    that axis and no axis that the values lack to the values.
    ```mlir
    %p       = weft.softmax %scores over k : !bhjk
    %half    = weft.scale %p {factor = 0.5} : !bhjk
    %by_row  = weft.mul %half, %rows along (b, j) : !bhjk, !bj
    %by_key  = weft.div %by_row, %keys along (b, k) : !bhjk, !bk
    %y       = weft.contract "bhjk,bhkw->bhjw" %by_key, %v : !bhjk, !bhkw -> !bhjw
    // becomes
    %p         = weft.softmax %scores over k : !bhjk
    %v_gated   = weft.div %v, %keys along (b, k) : !bhkw, !bk
    %y_ungated = weft.contract "bhjk,bhkw->bhjw" %p, %v_gated {scale = 0.5} : !bhjk, !bhkw
        -> !bhjw
    %y         = weft.mul %y_ungated, %rows along (b, j) : !bhjw, !bj
    ```
    Casts and a dropout stay. A softmax with any other op between it and its contraction, with
    another reader, or with a factor that varies along queries and keys, keeps all of its factors,
    and so does one of a graph with a backward pass. Known downside: values times factors are
    rounded to the values' type.
  }];
}

def CommuteScalingPass : Pass<"commute-scaling", "::weft::GraphOp"> {
  let summary = "Apply the factors of a decomposed softmax behind the contraction that reads it";
  let description = [{
    Every factor belongs to one sub-vector of the contracted axis, so that sub-vectors are
        contracted each by itself, and the factors multiply the partial results.
    ```mlir
    %p = weft.global_scaling %x, %r {axis = k, tile = 64} : !bhjk, !f32_bhjn
    %y = weft.contract "bhjk,bhkw->bhjw" %p, %v : !bhjk, !bhkw -> !bhjw
    // becomes
    %partials = weft.subvector_contract "bhjk,bhkw->bhjw" %x, %v {tile = 64} : !bhjk, !bhkw
        -> !f32_bhjwn
    %y        = weft.contract "bhjn,bhjwn->bhjw" %r, %partials : !f32_bhjn, !f32_bhjwn -> !bhjw
    ```
    A dropout before the contraction becomes one of the exponentials ({tile, p, stream}): its bits
    follow from coordinates, which are the same. Scaled probabilities, dropped or not, that anything
    else reads stay. Known downside: the partial results are K / tile as large as y; it is a step on
    the way to fold-softmax.
  }];
}

def FoldSoftmaxPass : Pass<"fold-softmax", "::weft::GraphOp"> {
  let summary = "One fold over tiles of the keys for a softmax and the contraction behind it";
  let description = [{
    After decompose-softmax and commute-scaling: (maximum, sum, output) of tiles combine
        associatively, so that no tile needs another one's scores.
    ```mlir
    %x, %m, %d = weft.local_softmax %scores over k {tile = 64} : !bhjk -> !bhjk, !f32_bhjn,
        !f32_bhjn
    %r         = weft.reduce_subvectors %m, %d over n : !f32_bhjn
    %partials  = weft.subvector_contract "bhjk,bhkw->bhjw" %x, %v {tile = 64} : !bhjk, !bhkw
        -> !f32_bhjwn
    %y         = weft.contract "bhjn,bhjwn->bhjw" %r, %partials : !f32_bhjn, !f32_bhjwn -> !bhjw
    // becomes
    %y = weft.online_softmax_contract "bhjk,bhkw->bhjw" %scores, %v : !bhjk, !bhkw -> !bhjw
    ```
    The fold drops what subvector_contract drops. A `scale` of the contraction becomes a scale op.
    Where anything else reads one of the results in between, all stay.
  }];
}

def BoundDocumentMasksPass : Pass<"bound-document-masks", "::weft::GraphOp"> {
  let summary = "Bounds of its segments for the document mask of a folded softmax";
  let description = [{
    A kernel that holds the mask and the fold skips tiles of scores whose queries and keys have no
    segment in common.
    ```mlir
    %seen = weft.mask document %score, %segments along (b) {query = j, key = k} : !hbjk, !bk
    %y    = weft.online_softmax_contract "hbjk,whbk->whbj" %seen, %v : ...
    // becomes
    %segments_bounds = weft.tile_bounds %segments : !bk -> !bounds
    %seen = weft.mask document %score, %segments, %segments_bounds along (b) {query = j, key = k}
        : !hbjk, !bk, !bounds -> !hbjk
    %y    = weft.online_softmax_contract "hbjk,whbk->whbj" %seen, %v : ...
    ```
  }];
}

def DecomposeNormsPass : Pass<"decompose-norms", "::weft::GraphOp"> {
  let summary = "Norms as sums of rows and their application";
  let description = [{
    The sums may stand in the epilogue of the contraction that computes x,
        the application in front of the one that reads y. Accumulators are fp32.
    ```mlir
    %y = weft.layer_norm %x, %gamma, %beta over i : !bji, !i, !i
    // becomes
    %y_sum     = weft.reduce sum %x over i : !bji -> !f32_bj
    %y_wide    = weft.cast %x : !bji -> !f32_bji
    %y_square  = weft.mul %y_wide, %y_wide : !f32_bji
    %y_squares = weft.reduce sum %y_square over i : !f32_bji -> !f32_bj
    %y_normal  = weft.normalize %x, %y_sum, %y_squares along (b, j) {count = 1024,
        epsilon = 1.0e-05} : !bji, !f32_bj, !f32_bj -> !bji
    %y_scaled  = weft.mul %y_normal, %gamma along (i) : !bji, !i
    %y         = weft.add %y_scaled, %beta along (i) : !bji, !i
    ```
    An rms_norm has neither a sum nor a beta,
        and `rms_normalize`. With `deferred` it is that or nothing, where contractions alone read y:
    ```mlir
    %y_gained  = weft.mul %x, %gamma along (i) : !bji, !i
    %z_raw     = weft.contract "bji,ui->bju" %y_gained, %w : !bji, !ui -> !bju
    %z         = weft.rms_normalize %z_raw, %y_squares along (b, j) {count = 1024} : !bju, !f32_bj
    ```
    Known downside: where z is no part of the product's kernel,
        z_raw is stored as large as x makes it.
    Every norm leaves a record (codes N...: passes/fuse/ReasonCodes.h): one whose mean or rstd is
    read stays whole. Known downsides:
    a layer norm's variance is a difference, mean(x^2) - mean(x)^2 (ir/SPEC.md,
        "Element-wise class"); as separate kernels the
    sums read x once more than a whole norm, which keeps the row.
  }];
  let options = [Option<"deferred", "deferred", "bool", "false",
      "apply the factor of a row behind the contractions that read the norm">];
}

def FusePass : Pass<"fuse", "::weft::GraphOp"> {
  let summary = "Propose which ops may share a kernel";
  let description = [{
    Changes no op: attaches `weft.candidates` (sets of op numbers with the kernel's name and
    pattern) and `weft.records` (one
    per attempt) to the graph. The patterns are the four of Fig. 3 of "Data Movement Is All You "
        "Need"; the text names what
    they have in common (equal iteration spaces, or spaces that differ by one reduction),
        the names are ours:
      producer-consumer   two maps in sequence over one space: the intermediate stays in registers
                          (BRD)
      reduction-consumer  one of the two reduces: the map runs inside the loop of the reduction (SM,
                          BDRLN)
      shared-input        two readers of one tensor over one space: it is read once (BSB, BLNRD)
      launch-merging      independent ops over one space: one launch instead of several (AIB)
    ```mlir
    %b = weft.bias %x, %beta along (i) : !bji, !i        // op 0
    %r = weft.relu %b : !bji                             // op 1
    // graph attributes after --fuse
    weft.candidates = [ {name = "bias", ops = [0]}, ..., {name = "bias_relu", ops = [0, 1],
        pattern = "producer-consumer"} ]
    weft.records = [ {accepted, ops = [0, 1], pass = "fuse", pattern = "producer-consumer",
        saved_bytes = ...}, {ops = [1, 2], pass = "fuse", pattern = "reduction-consumer",
        rejected = {code = "F020", detail = "y", op = 1 : i64, reason = "contraction"},
        saved_bytes = ...} ]
    ```
  }];
  let options = [
    Option<"rules", "rules", "std::string", "\"default\"", "paper, default or none">,
    Option<"device", "device", "std::string", "\"\"",
        "whose kernel families may fuse into contractions; default: none">,
    ListOption<"together", "together", "int64_t", "pairs of op numbers that must share a kernel">,
    ListOption<"apart", "apart", "int64_t", "pairs of op numbers that must not">];
}

#endif  // WEFT_PASSES_TD
