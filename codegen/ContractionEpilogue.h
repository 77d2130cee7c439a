// The epilogue of a fused contraction as statements: what becomes of the eight sums of a lane in a
// block of 16 x 16 of the result, or of all sums that a thread has of a narrow tile. For every
// family whose lanes hold sums as mma and wgmma leave them (codegen/device/fragment.cuh).
#pragma once

#include "codegen/Names.h"
#include "codegen/Program.h"
#include "kernel/ContractionRegion.h"

#include <optional>

namespace weft::codegen {

/// What the family has decided and named.
struct EpilogueContext {
  const Kernel &kernel;
  const Configuration &configuration;
  const ContractionRegion &region;
  Names &names;
  std::vector<std::string> axes;  ///< constants with the extents of the kernel's axes
  std::vector<std::string>
      inputs;  ///< pointers, one per Kernel::inputs; those of A, B and panelInput are not used
  std::vector<std::string> outputs;  ///< pointers, one per Kernel::outputs; the first is not used
  /// A constexpr struct with the members m, n, strideCm and batchStrideC: rows, columns and strides
  /// of the result as fragments see it, contiguous along columns.
  std::string product;
  bool rowsAlongN =
      false;  ///< the result is contiguous along m: rows of a fragment run along group n
  std::string fragmentType;  ///< "weft::hopper::Fragment": members batch, row, column
  std::optional<size_t> panelInput =
      {};  ///< the input of the result's shape whose elements the skeleton hands over
  std::optional<size_t> vectorInput =
      {};  ///< the input of one element a row or a column that it hands over
  std::optional<size_t> panelOutput = {};  ///< the output behind the first that it stores
  /// Of a narrow tile (codegen/device/narrow_fragment.cuh): how many sums a thread has of it, all
  /// of which the function takes at once, and asks for operands before they are there; 0: eight of
  /// a fragment, as above. Such a tile hands nothing over.
  int sumsOfTile = 0;
  bool isTransposed = false;  ///< of a narrow tile: rows run along the result's columns
};

/// A function `float (&sums)[8], [const float (&panel)[8],] [const float (&vector)[8],] [float
/// (&second)[8],] [float
/// (&summed)[count][8],] const Fragment &at` that replaces the sums by elements of the first
/// output, makes those of panelOutput (or by what a local softmax takes) and those that
/// ContractionRegion::sums add up, and stores the other outputs itself. Of a narrow tile a function
/// `const Fragment &at` that returns one of `float (&sums)[sumsOfTile]`.
struct ContractionEpilogue {
  std::vector<std::string> headers = {};
  std::vector<ConstantLine> constants = {};
  std::vector<Parameter> parameters = {};  ///< dropout: key, streams, outer rows
  Block prologue = {};                     ///< before the skeleton is called
  std::string arguments = {};              ///< the function's parameters
  Block body = {};
  bool accessesMemory = false;  ///< it loads operands or stores results itself

  /// Whether the sums leave as they are.
  bool isEmpty() const { return body.empty(); }
};

/// Throws Error(unsupported) naming the value for element types other than f32, f16 and bf16.
ContractionEpilogue contractionEpilogue(const EpilogueContext &context);

/// The input that is best handed over by the skeleton, which brings panels of tensors stored as the
/// result is: the first of the result's shape and the first output's element type.
std::optional<size_t> panelInputOf(const Kernel &kernel, const ContractionRegion &region);

/// The output that is best stored by the skeleton, which takes one besides the first: of the same
/// element type, as all outputs but sums lie as the first one does.
std::optional<size_t> panelOutputOf(const Kernel &kernel, const ContractionRegion &region);

/// An input of the epilogue with one element of 16 bits a row, or a column, of fragments.
struct VectorInput {
  size_t input = 0;
  bool isOfRows = false;
};
/// The first that is contiguous, and if it is of columns aligned to pairs.
std::optional<VectorInput> vectorInputOf(const Kernel &kernel, const Configuration &configuration,
                                         const ContractionRegion &region, bool rowsAlongN);

}  // namespace weft::codegen
