// What the gpu tests run: a kernel in one configuration each. Deterministic; grouped by what they
// cover.
#pragma once

#include "kernel/Configuration.h"
#include "tests/unit/samples/AdversarialScores.h"

#include <string>
#include <vector>

namespace weft::gputest {

/// What inputs hold.
///   usual   what the ops ask for (runtime/verify/KernelInputs.h)
///   whole   whole numbers from -2 to 2: sums of some hundred products of them are exact, and so
///           must the result be
///   spread  of every order of magnitude that the type has, beyond it too
///   masked  as usual, but "mask" is 0 or -inf (samples::isSeen)
///   hard    as usual, but "q" and "keys" give the adversarial scores of Case::scores; what a
///           backward pass reads of forward is that of these scores
///   unread  as usual, but of NaN and infinity where no kernel of attention may read
enum class Inputs { usual, whole, spread, masked, hard, unread };

struct Case {
  std::string name;  ///< "extents/softmax_f16/k127 hbjk -> hbjk, vector 8 ..."
  Kernel kernel;
  Configuration configuration;
  Inputs inputs = Inputs::usual;
  samples::ScoreKind scores = samples::ScoreKind::usual;
};

/// Every case, in an order that mixes the groups, so that a run that stops early has seen something
/// of each.
///   examples      every loop kernel kind at tiny odd extents, each kind of configuration, also as
///                 views of larger tensors
///   extents       the same with rows of 1, 3, 5, 7, 17, 33, 65, 127 and 1000 elements
///   large         the same at the extents of a layer, on sampled elements
///   transposes    every pair of layouts of tensors of two to four axes
///   maps          every pair of layouts of an element-wise kernel
///   contractions  plain contractions at odd extents in many layouts
///   sm90        tensor-core contractions of sm_90a, every tile in every orientation;
///                 sm90-views: with padded rows
///   split         of sm_90a with k over the blocks of a cluster
///   multicastB       of sm_90a whose blocks load k-tiles of B for each other; multicastB-fused:
///   with what
///                 follows them
///   single-consumer  of sm_90a with one short side, or few tiles; single-consumer-views: with
///                 padded rows; single-consumer-fused: with what follows them
///   fused         of sm_90a with what follows a contraction
///   warps-fused   the same from sm_80 on by mma.sync, also of f32 read as tf32;
///                 warps-fused-views: padded
///   fused-sums    with sums of that down to rows or columns of the result
///   local-softmax  contractions that end with one, of sm_90a and by mma.sync; with masks
///       of -inf
///   prologue      with operands that are transformed on load, in place and by threads that copy;
///                 prologue-views: padded; prologue-warps and prologue-warps-views: by
///                 mma.sync
///   sm80        the same from sm_80 on, sm80-views likewise
///   attention     fused attention of every family, head width and mask at odd lengths, with score
///                 ops and several queries to a key's head; attention-long: thousands of keys;
///                 attention-packed: over packed tokens; attention-packed-sums: with the
///                 logarithms of sums; attention-packed-heads: by WGMMA, rows of tiles of all
///                 heads of a group; attention-split-keys: by WGMMA, blocks that share the keys
///                 of a tile; attention-turned: queries that are turned when they are loaded;
///                 attention-tf32 and attention-backward-tf32: of f32 read as
///                 tf32
///   attention-hard      scores that are equal, huge, of the type's end, low or tiny;
///                 attention-backward-hard: their gradients, with rows that masks hide whole
///   attention-unread    NaN and infinity behind counts and in tokens of no sequence;
///                 attention-backward-unread: also in what backward reads beside
///   attention-backward  their backward pass; attention-backward-packed: over packed tokens;
///                 attention-backward-apart: without sums in a workspace;
///                 attention-backward-parts: of some heads of a group a tile of keys;
///                 attention-backward-apart-parts: these without sums in a workspace;
///                 attention-backward-unordered: with these in any order
///   attention-drawn     1,000 forward, shapes, masks, score ops, dropout and configurations drawn
///                 by a fixed seed; attention-backward-drawn: 500 backward
///   casts         to and from 8-bit floats, of all orders of magnitude
///   float8        products of 8-bit floats: every tile, pair of formats and result; odd and tiny
///                 extents, with scales; float8-views: padded
///   float8-whole  the same on small whole numbers, exactly
///   float8-deep   k of 16384 and more, also over the blocks of a cluster
///   tf32          products of f32 read as tf32, as float8; tf32-views, tf32-whole, and tf32-fused
///                 with what follows them; tf32-warps: by mma.sync, in every orientation,
///                 also as views; tf32-tiles: every tile of both
std::vector<Case> allCases();

}  // namespace weft::gputest
