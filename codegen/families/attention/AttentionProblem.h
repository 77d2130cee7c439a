// A fused attention (kernel/AttentionRegion.h) under the layouts of a configuration, as kernels see
// it: for every head a matrix of queries, one of keys and one of values, and the strides at which
// they lie.
//
//    head    one point of all axes but positions and elements: batch, heads, heads of a group
//    row     a position: a query, or a key
//    column  an element of the head dimension, or of the value dimension
//
// Heads are numbered so that heads of one group, which share keys and values, are neighbours.
#pragma once

#include "kernel/AttentionRegion.h"
#include "kernel/Configuration.h"
#include "kernel/Device.h"
#include "kernel/Expected.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft {

/// A tensor of a fused attention. The kernel's pointer is the address of its element zero, so
/// `offset` is part of no address.
struct AttentionTensor {
  ValueId value = -1;
  size_t operand = 0;        ///< position among Kernel::inputs, then Kernel::outputs
  int64_t offset = 0;        ///< elements from the start of the buffer
  int64_t alignment = 16;    ///< bytes that the address of element zero is a multiple of
  int64_t rows = 1;          ///< along the axis of queries or of keys; of packed tokens: all tokens
  int64_t rowStride = 0;     ///< elements, along the same axis
  int64_t columnStride = 1;  ///< along the head dimension or the value dimension
  std::vector<int64_t> headStrides = {};  ///< one for each of headAxes; 0 where it lacks the axis
  bool operator==(const AttentionTensor &) const = default;

  /// Whether its columns are neighbours in memory, and every row starts at a multiple of `bytes`.
  bool hasAlignedRows(int64_t elementBytes, int64_t bytes) const;
};

struct AttentionProblem {
  DType operandType = DType::f16;  ///< of queries, keys and values; tf32: f32 that is read so
  DType outputType = DType::f16;
  // Axes of the kernel; -1 where there is none, of extent 1 then.
  AxisId queryAxis = -1, keyAxis = -1, headDimAxis = -1, valueDimAxis = -1;
  int64_t queries = 1, keys = 1, headDim = 1, valueDim = 1;
  /// All other axes longer than 1, slowest first: those of the region's batch, then the other axes
  /// of its queries, the heads of a group.
  std::vector<AxisId> headAxes;
  std::vector<int64_t> headExtents;  ///< of headAxes
  int64_t heads = 1;                 ///< their product
  int64_t headsOfGroup = 1;          ///< neighbouring heads that share keys and values
  double scale = 1;
  AttentionTensor q, k, v, output;
  std::optional<AttentionTensor> logSums = {};  ///< its columnStride means nothing
  /// Of packed tokens, where `queries` and `keys` are bounds: head / divisor % sequences is the
  /// sequence of a head.
  struct Packed {
    int64_t sequences = 1, divisor = 1;
    int64_t offsetStride = 1;  ///< elements
    bool operator==(const Packed &) const = default;
  };
  std::optional<Packed> packed = {};
  /// Of keys and values in pages: rows of `k` and `v` are positions of a page, and heads begin in
  /// page 0. The sequence of a head is as of packed tokens. Strides are elements.
  struct Paged {
    size_t table = 0;       ///< position in Kernel::inputs
    int64_t pages = 1;      ///< in memory
    int64_t positions = 1;  ///< of a page
    int64_t sequences = 1, divisor = 1;
    int64_t sequenceStride = 0, entryStride = 1;  ///< of the table
    int64_t kStride = 0, vStride = 0;             ///< from a page to the next
    bool operator==(const Paged &) const = default;
  };
  std::optional<Paged> paged = {};
  /// Keys end with counts that are known at run time alone: kernels read what lies behind them as
  /// zeros. Not over packed tokens, whose kernels do so in any case.
  bool zeroesUnseen = false;
  bool operator==(const AttentionProblem &) const = default;
};

/// All axes longer than 1 of rows of scores, slowest first as rows are numbered: those of heads, as
/// in AttentionProblem::headAxes, then that of queries.
std::vector<AxisId> attentionRowAxes(const Kernel &kernel, const AttentionRegion &region);

/// The error says what no kernel of an attention takes: element types that differ, or several long
/// axes in the place of one.
Expected<AttentionProblem> attentionProblem(const Kernel &kernel, const AttentionRegion &region,
                                            const Configuration &configuration);

/// The same of the kernel's own region, as whoever prices many schedules of the same layouts asks.
/// The reference holds until the thread asks about other layouts (kernel/LastLayouts.h).
const Expected<AttentionProblem> &keptAttentionProblem(const Kernel &kernel,
                                                       const AttentionRegion &region,
                                                       const Configuration &configuration);

/// An input or output of the kernel, whose rows run along `rowAxis`. Of `problem` the axes of heads
/// are read.
AttentionTensor attentionTensor(const Kernel &kernel, const Configuration &configuration,
                                const AttentionProblem &problem, ValueId value, AxisId rowAxis,
                                AxisId columnAxis);

/// Why families that multiply by tensor cores do not take the region's element types on a device;
/// empty if they do. takesTf32: the family takes f32 that may be read as tf32.
std::string attentionTypeRejection(const Kernel &kernel, const AttentionRegion &region,
                                   const Device &device, bool takesTf32 = false);

}  // namespace weft
