// Where the positions of each sequence start to count: what rotary embeddings and masks of queries
// add to a position, and rotary embeddings of packed tokens take from it.
#pragma once

#include "ir/interpreter/Tensor.h"

namespace weft::reference {

/// One start for each coordinate of a dimension; without a tensor 0 for all.
struct SequenceStarts {
  const TensorValue *starts = nullptr;
  int64_t along = 0;
  bool isGiven() const { return starts != nullptr; }
  int64_t of(const Shape &at) const {
    return starts ? int64_t(starts->elements[size_t(at[size_t(along)])]) : 0;
  }
};

}  // namespace weft::reference
