// Addresses of a loop kernel: coordinates and layouts to pointer expressions, and how wide an
// access may be.
#pragma once

#include "codegen/families/loop/LoopGraph.h"

#include <functional>

namespace weft::codegen {

/// A tensor parameter with its layout.
struct Operand {
  Code name{};  ///< of the parameter
  DType dtype = DType::f32;
  std::vector<AxisId> axes{};
  std::vector<int64_t> extents{}, strides{};
  std::vector<Code> strideTexts{};
  int64_t alignment = 16;
  bool wide = false;  ///< offsets need 64 bits
};

struct Address {
  Code pointer;
  Access access = Access::single;
  Code stride{}, count{};
};

class LoopMemory {
public:
  /// `valid` names the number of elements of a vector inside its tensor; empty if it is always the
  /// width.
  LoopMemory(LoopSpace &space, Names &names, Code valid)
      : space(space), names(names), valid(std::move(valid)) {}

  /// Describes a tensor; `constants` receives named strides where a layout is not dense.
  Operand operand(const Code &name, const Value &value, const Layout &layout,
                  std::vector<ConstantLine> &constants) const;
  /// `nodeText` spells gathered coordinates. `perElement`: the address of element e alone.
  Address address(const Operand &operand, const std::vector<Index> &at, bool perElement,
                  const std::function<Code(int)> &nodeText);
  /// Offsets of rows, to be declared before the step loop.
  const Block &rowOffsets() const { return offsets; }
  /// Whether some address was of Access::part.
  bool hasParts() const { return someParts; }

private:
  std::vector<size_t> mergedStep(const Operand &operand, const std::vector<Index> &at) const;
  Code outerTerms(const Operand &operand, const std::vector<std::pair<size_t, size_t>> &dimensions);
  Code term(const Operand &operand, const Code &index, const Code &stride) const;

  LoopSpace &space;
  Names &names;
  Code valid;
  bool someParts = false;
  Block offsets;
  std::map<Code, Code> offsetNames;  ///< "type expression" -> variable
};

}  // namespace weft::codegen
