// The price of loop kernels, in the separable form that selection needs: for fixed knobs, the time
// of a kernel is a sum of one term an operand, and each term depends on that operand's layout
// alone. See AnalyticCost.cpp for the essay.
#pragma once

#include "codegen/families/loop/LoopCostConstants.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "kernel/Configuration.h"
#include "kernel/Device.h"

#include <vector>

namespace weft {

/// One operand in one layout, ready to be priced under many knobs.
struct PlacedOperand {
  std::vector<int64_t>
      strides;  ///< elements, per kernel axis; 0 where the operand does not run along it
  int64_t elementBytes = 1, bytes = 0;
  int64_t alignedElements = 1;  ///< element zero lies at a multiple of so many elements
  bool isInput = true;
  /// The axis along which an op reads another element with each, half a head away; -1: none does.
  AxisId partnerAxis = -1;
};

/// What one operand costs under fixed knobs.
struct OperandPrice {
  double seconds = 0;  ///< at full bandwidth share
  double bytes = 0;    ///< moved, whole sectors counted
};

/// What knobs cost whatever the layouts are.
struct KnobPrice {
  double share = 1;         ///< of the bandwidth that the reads in flight reach
  double issueSeconds = 0;  ///< instructions
  double rereads = 1;       ///< times each input is read
};

class LoopPricer {
public:
  LoopPricer(const Kernel &kernel, const Device &device);

  /// `operand` counts inputs first, then outputs.
  PlacedOperand place(size_t operand, const Layout &layout) const;
  KnobPrice price(const LoopKnobs &knobs) const;
  OperandPrice price(const PlacedOperand &operand, const LoopKnobs &knobs) const;
  /// `operandSeconds`: the sum over operands, inputs counted `rereads` times.
  double seconds(const KnobPrice &knobs, double operandSeconds) const;

private:
  int64_t extent(AxisId axis) const { return kernel.axes[static_cast<size_t>(axis)].extent; }
  bool isReduced(AxisId axis) const;
  bool reducesOnly() const;
  double columnShare(const LoopKnobs &knobs, double share) const;
  int64_t lanesAlong(const LoopKnobs &knobs) const;
  double pointInstructions(const LoopKnobs &knobs) const;
  double rotationInstructions(const BodyOp &op, const LoopKnobs &knobs) const;
  double registersOf(const LoopKnobs &knobs, double elementsPerThread) const;
  double elementsPerThread(const LoopKnobs &knobs) const;
  double elementsInFlight(const LoopKnobs &knobs) const;
  /// Whether a thread keeps its share of the row in registers between passes (the rule of
  /// lowering).
  bool keepsRow(const LoopKnobs &knobs) const;
  bool fits(double elements, const LoopKnobs &knobs) const;

  const Kernel &kernel;
  const Device &device;
  std::vector<AxisId> reduced;
  double points = 1;       ///< of the whole iteration space
  double rowElements = 1;  ///< of the reduced axes
  int keptValues = 1;      ///< of an element, between passes (keptOf)
  double passes =
      1;  ///< over a row that is not kept: one a reduction, one more to write full outputs
  double inputBytesPerPoint = 0;  ///< of inputs that run over most of the space
  double fullElementBytes = 1;    ///< of the widest of these
  int fullOperands = 0;           ///< operands that run over most of the space
  bool sumsTokens = false;        ///< along an axis whose steps end with the last packed token
};

/// The time of a loop kernel from its parts: the longer one, and the share of the shorter one that
/// stays exposed.
double loopSeconds(double launchSeconds, double memorySeconds, double issueSeconds);

}  // namespace weft
