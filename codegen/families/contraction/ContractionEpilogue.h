// The epilogue of a fused contraction as statements: what becomes of the eight sums of a lane in a
// block of 16 x 16 of the result, or of all sums that a thread has of a single-consumer tile. For
// every family whose lanes hold sums as mma and wgmma leave them (codegen/device/fragment.cuh).
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
      inputs;  ///< pointers, one per Kernel::inputs; those of A, B and subtileInput are not used
  std::vector<std::string> outputs;  ///< pointers, one per Kernel::outputs; the first is not used
  /// A constexpr struct with the members m, n, strideCm and batchStrideC: rows, columns and strides
  /// of the result as fragments see it, contiguous along columns.
  std::string gemm;
  bool rowsAlongN =
      false;  ///< the result is contiguous along m: rows of a fragment run along group n
  std::string fragmentType;  ///< "weft::sm90::Fragment": members batch, row, column
  std::optional<size_t> subtileInput =
      {};  ///< the input of the result's shape whose elements the skeleton hands over
  std::optional<size_t> vectorInput =
      {};  ///< the input of one element a row or a column that it hands over
  std::optional<size_t> subtileOutput = {};  ///< the output behind the first that it stores
  /// Of a single-consumer tile (codegen/device/single_consumer_fragment.cuh): how many accumulators
  /// a thread has of it, all of which the function takes at once, and asks for operands before they
  /// are there; 0: eight of a fragment, as above. Such a tile hands nothing over.
  int accumulatorsOfThread = 0;
  bool isTransposed = false;  ///< of a single-consumer tile: rows run along the result's columns
};

/// A function `float (&sums)[8], [const float (&subtile)[8],] [const float (&vector)[8],] [float
/// (&second)[8],] [float
/// (&summed)[count][8],] const Fragment &at` that replaces the sums by elements of the first
/// output, makes those of subtileOutput (or by what a local softmax takes) and those that
/// ContractionRegion::reductions add up, and stores the other outputs itself. Of a single-consumer
/// tile a function `const Fragment &at` that returns one of `float (&sums)[accumulatorsOfThread]`.
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
std::optional<size_t> subtileInputOf(const Kernel &kernel, const ContractionRegion &region);

/// The output that is best stored by the skeleton, which takes one besides the first: of the same
/// element type, as all outputs but sums lie as the first one does.
std::optional<size_t> subtileOutputOf(const Kernel &kernel, const ContractionRegion &region);

/// An input of the epilogue with one element of 16 bits a row, or a column, of fragments.
struct VectorInput {
  size_t input = 0;
  bool isOfRows = false;
};
/// The first that is contiguous, and if it is of columns aligned to pairs.
std::optional<VectorInput> vectorInputOf(const Kernel &kernel, const Configuration &configuration,
                                         const ContractionRegion &region, bool rowsAlongN);

}  // namespace weft::codegen
