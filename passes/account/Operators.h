// Operators as "Data Movement Is All You Need" counts them in Table A.1, found in any graph by its
// structure alone. MLIR-free.
//
// An operator is one op, or several that the paper takes as one logical operation:
//   stacked      contractions that could be one: of one tensor, over the same of its dimensions,
//                none after another (Q, K, V and their dW); and those whose results are only summed
//                (dX). A GEMM over stacked operands adds up the parts.
//   alike        ops of one kind, one for each member of such a group, after its results or before
//                its operands (input bias)
//   softmax      with the factor, masks and dropout around it (scaled softmax), forward and
//                backward
// Ops that only move data are no operators: where a plan copies, the copy is a separate kernel in
// the ledger.
//
// Where shares of work are given, scores that masks by position hide count neither flop nor
// elements: no kernel needs them. Ops apart move them all the same, which the ledger of bytes
// counts.
//
// Elements are those of distinct tensors that enter and leave, statistics included. A dropout's
// mask counts as a tensor where the graph uses it twice, as where masks are stored: written by the
// first dropout of a stream, read by the others.
#pragma once

#include "passes/fuse/Dataflow.h"

#include <functional>
#include <string>
#include <vector>

namespace weft {

struct Operator {
  std::string kind;  ///< kinds of its ops in order, each once: "bias", "softmax + dropout"
  std::vector<std::string>
      results;  ///< names of the tensors that its ops compute, without those inside a sum
  OperatorClass operatorClass = OperatorClass::elementwise;
  std::vector<int> ops;  ///< indices into Dataflow::ops, ascending
  double flop =
      0;  ///< as SPEC.md counts; a factor inside the contraction before a softmax is one an element
  int64_t elementsRead = 0, elementsWritten = 0;
  bool operator==(const Operator &) const = default;
};

/// What counts of the flop of each op and of the elements of each tensor: less than all where masks
/// hide scores, and at the lengths that are expected of sequences. Empty: all.
struct WorkShares {
  std::vector<double> ops, tensors;
};
/// What masks by position leave (kernel/VisibleWork.h), times what `tokens` (the mean of lengths,
/// as a share of the longest) and `pairs` (of their squares) leave of axes of tokens and positions.
WorkShares workShares(const Dataflow &flow, double tokens, double pairs);

/// Every op that computes stands in one operator; in order of their first ops.
std::vector<Operator> operatorsOf(const Dataflow &flow, const WorkShares &shares = {});

/// Flop of each class, in the order of OperatorClass.
struct ClassShare {
  OperatorClass operatorClass = OperatorClass::contraction;
  double flop = 0;
  size_t operators = 0;
};
std::vector<ClassShare> classShares(const std::vector<Operator> &operators);

/// Bytes of the distinct tensors that enter and leave a kernel of these ops. Masks of dropout are
/// drawn again, not stored.
int64_t bytesOfKernel(const Dataflow &flow, const std::vector<int> &ops);
/// What of its bytes a kernel of these ops moves at the lengths that are expected of sequences.
using MovedShare = std::function<double(const Dataflow &flow, const std::vector<int> &ops)>;
/// Bytes that the ops move if each is a separate kernel: its tensors once each. Ops that only
/// move data count nothing.
int64_t separateBytes(const Dataflow &flow, const MovedShare &share);

}  // namespace weft
