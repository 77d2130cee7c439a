// One kernel family: which kernels it takes, and its configurations of one kernel in factored form.
// Internal to configure and select; Families.cpp holds the table.
#pragma once

#include "passes/configure/Families.h"

#include <string>
#include <vector>

namespace weft {

/// Layouts of every operand: inputs first, then outputs.
using LayoutTuple = std::vector<Layout>;

constexpr int64_t maximumAccessBytes = 16;  ///< of one load or store of a thread

/// The configurations of one family for one kernel: every layout choice with every knob that
/// `isUseful`. Layouts are either a Cartesian product (one list an operand) or an explicit list of
/// tuples, whichever the family's rule is.
struct ConfigurationSpace {
  std::string family;
  std::vector<std::vector<Layout>> choices =
      {};  ///< per operand, their Cartesian product; empty if `tuples` is used
  std::vector<LayoutTuple> tuples = {};
  std::vector<Knobs> knobs = {};
  bool hasSeveralStrides = false;  ///< tuples of products with several strides along a group of
                                   ///< axes (kernel/MultiStrideGemm.h)

  bool isEmpty() const { return knobs.empty() || (choices.empty() && tuples.empty()); }
};

/// Either the space of one family, or why the family does not take the kernel.
struct SpaceOrRejection {
  std::optional<ConfigurationSpace> space = {};
  std::string reason = {};  ///< names the op, axis or tensor and the limit
};

SpaceOrRejection loopSpace(const Kernel &kernel, const Device &device);
SpaceOrRejection transposeSpace(const Kernel &kernel, const Device &device);
SpaceOrRejection fmaGemmSpace(const Kernel &kernel, const Device &device);
SpaceOrRejection sm90GemmSpace(const Kernel &kernel, const Device &device);
SpaceOrRejection sm80GemmSpace(const Kernel &kernel, const Device &device);
SpaceOrRejection librarySpace(const Kernel &kernel, const Device &device);
SpaceOrRejection viewSpace(const Kernel &kernel, const Device &device);

/// Why a kernel is not one contraction of two operands and nothing else; empty if it is.
std::string contractionRejection(const Kernel &kernel);
/// Every layout of the operands (in the kernel's order) under which a contraction, alone or with an
/// epilogue (kernel/ContractionRegion.h), is one batched strided GEMM: what all
/// contraction families share. Operands of an epilogue and all outputs lie in the order of C's
/// axes: one layout of theirs for each of C. Sorted by A, B, C, without duplicates.
std::vector<LayoutTuple> contractionTuples(const Kernel &kernel);

/// What gemm-sm90 takes besides: layouts under which one operand has several strides along
/// a group of axes, in which a transpose would have to come first otherwise. One of A and B has, or
/// both alike; C merges, and it and the operand that does have the batch slowest (ARCHITECTURE.md
/// says why no others). Nothing where the family does not take the kernel or no such layout is
/// legal.
std::optional<ConfigurationSpace> severalStridesSpace(const Kernel &kernel, const Device &device);
/// The layouts of it, legal or not, sorted as those of contractionTuples().
std::vector<LayoutTuple> severalStridesTuples(const Kernel &kernel);

/// Of every operand, in the order of operandValues(), the layout that it has to have, or none.
using FixedLayouts = std::vector<std::optional<Layout>>;
/// The layouts of severalStridesSpace() that have what is fixed, and those of a fixed result that
/// has several strides itself.
std::optional<ConfigurationSpace> severalStridesSpace(const Kernel &kernel, const Device &device,
                                                      const FixedLayouts &fixed);
/// The layouts in which the result has several strides, as it is fixed, legal or not; none where it
/// is free or has one stride, and where ops stand before or behind the contraction.
std::vector<LayoutTuple> stridedResultTuples(const Kernel &kernel, const FixedLayouts &fixed);

/// Tiles whose slices blocks share in stream-K runs (Sm90GemmKnobs::streamK), for a
/// contraction under layouts of gemm-sm90, best first by the model. No space has them:
/// they are measured (`weft profile`) and chosen by their measurements.
std::vector<Sm90GemmKnobs> streamKTiles(const Kernel &kernel, const LayoutTuple &layouts,
                                        const Device &device);

/// The spaces of all families that take the kernel, but for severalStridesSpace(), in the table's
/// order; reasons of the others in `excluded`.
std::vector<ConfigurationSpace> configurationSpaces(const Kernel &kernel, const Device &device,
                                                    std::vector<Exclusion> *excluded = nullptr);
/// The same with severalStridesSpace() behind them, where there is one.
std::vector<ConfigurationSpace> everySpace(const Kernel &kernel, const Device &device);

/// Whether these knobs differ from cheaper-to-name ones under these layouts, and fit them: a vector
/// that no operand can use is the scalar kernel in disguise; single-consumer tiles of sm_90a take
/// some orientations alone.
bool isUseful(const Kernel &kernel, const LayoutTuple &layouts, const Knobs &knobs);

/// How many configurations of a space are useful, without visiting them: all combinations
/// for scalar knobs, for vectors those where some operand is accessed so. A double, because six
/// operands of 24 layouts exceed 10^8.
double countConfigurations(const Kernel &kernel, const ConfigurationSpace &space);

/// Visits every layout tuple of a space; `visit` returns false to stop. Returns false if stopped.
bool forEachTuple(const ConfigurationSpace &space,
                  const std::function<bool(const LayoutTuple &)> &visit);

/// One layout an operand and knobs as a configuration.
Configuration toConfiguration(const Kernel &kernel, const LayoutTuple &tuple, const Knobs &knobs);

/// Accumulators or a maximum of single elements, whose operands are read once: reduce,
/// layer_norm_dw, rms_norm_dw.
bool isPlainReduction(const BodyOp &op);
/// How many of them a kernel has; an op with two results has two.
int64_t accumulatorsOf(const Kernel &kernel);

/// Operand values: inputs, then outputs.
std::vector<int> operandValues(const Kernel &kernel);
std::vector<int64_t> extentsOf(const Kernel &kernel, int value);

/// Dimensions with extent above 1 of which every order is told apart; tensors of transformer layers
/// have at most 5.
constexpr int mostPermuted = 5;
/// The dense layouts worth telling apart: permutations of the dimensions with extent above 1;
/// dimensions of extent 1 come first, where they change no stride. Values of rank 1 have one. Of
/// more than `mostPermuted` such dimensions, whose orders nobody could hold, those in which one run
/// of them stands elsewhere than in logical order. Sorted.
std::vector<Layout> distinctLayouts(const std::vector<int64_t> &extents);
/// How many orders of the dimensions with extent above 1 there are.
double countLayouts(const std::vector<int64_t> &extents);
/// The member of distinctLayouts() with the same strides, for any dense layout.
Layout normalized(const Layout &layout, const std::vector<int64_t> &extents);

/// Whether an operand is read or written `width` neighbours at once along a kernel axis, in
/// accesses of at most 16 bytes: the axis is its fastest, and every other stride and the offset
/// keep the alignment. Code generation falls back to single elements otherwise.
bool isVectorAccessed(const Kernel &kernel, int value, const Layout &layout, int axis, int width);

}  // namespace weft
