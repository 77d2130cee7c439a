// Inputs of attention cases that depend on others: what forward stored of hard scores, and what
// lies where no kernel may read.
#pragma once

#include "kernel/Kernel.h"
#include "runtime/verify/TensorImage.h"

#include <vector>

namespace weft::gputest {

/// Of a backward pass whose tokens are not packed: the logarithms of sums become those of its
/// scores, -inf where masks leave none. Random ones would let probabilities of hard scores
/// overflow.
void fillLogSums(const Kernel &kernel, std::vector<runtime::TensorImage> &inputs);

/// NaN and infinity, by turns along positions, in what no gradient or result may depend on
/// (ir/SPEC.md, "Contractions of a softmax"): keys and values behind "lengths", and packed tokens
/// of no sequence. How many elements that are.
int64_t poisonUnread(const Kernel &kernel, std::vector<runtime::TensorImage> &inputs);

}  // namespace weft::gputest
