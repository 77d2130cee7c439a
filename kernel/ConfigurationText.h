// A configuration as one line of text that people read and the profile parses back: layouts as
// orders of dimensions, knobs as fields with canonical axis names, a library's algorithm as its
// attributes.
//
//   loop 0132,01>0132 vector=a3 width=8 lanes=a3 reduction=warp perRow=32
//   cublaslt 64,1:32768_1,64:32768>512,1:262144 libraryVersion=130200 algorithm=66 tile=20
//       stages=36
//   gemm-sm90 64x512/524288,1x64/32768:0_1,1024:0>1024,1:0 tileN=256
//
// A configuration is timed for its subject: a kernel in canonical form; for GEMM families the GEMM,
// since only its extents and strides reach the hardware. Equal subjects and equal lines are one
// measurement.
#pragma once

#include "kernel/Configuration.h"
#include "kernel/Family.h"
#include "kernel/MultiStrideGemm.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// What a configuration is timed for.
struct ProfileSubject {
  std::string text;  ///< hashed: the canonical kernel, or "gemm f16 16 x 512 x 512 x 64"
  std::string name;  ///< for people
};
/// ProfileSubject of the kernel with its own layouts (loop, transpose).
ProfileSubject kernelSubject(const Kernel &kernel);
/// ProfileSubject of a GEMM: element type, batch and extents.
ProfileSubject gemmSubject(const GemmTypes &types, const StridedBatchedGemm &gemm);
/// Whether configurations of this kernel are timed as a GEMM: a contraction with an epilogue is a
/// separate subject.
bool isTimedAsGemm(const Kernel &kernel, const Family &family);

/// The line of a configuration. Offsets are left out: kernels are given the address of element
/// zero. Throws Error(checkFailed) for a GEMM family under layouts that are no GEMM.
std::string configurationLine(const Kernel &kernel, const Configuration &configuration);
/// The same for a GEMM whose strides are known.
std::string gemmLine(const StridedBatchedGemm &gemm, const Knobs &knobs);
/// The same for a kernel in a GEMM family whose middle part is known.
std::string gemmLine(std::string_view place, const Knobs &knobs);
/// The middle part of a line: layouts, or the strides of what is timed as a GEMM.
std::string placeText(const Kernel &kernel, const Configuration &configuration);
/// The subject that the configuration is timed for.
ProfileSubject subjectOf(const Kernel &kernel, const Configuration &configuration);

/// "64,1:32768_1,64:32768>512,1:262144": strides of A along m and k, of B along k and n, of C along
/// m and n, each with the batch's.
std::string strideText(const StridedBatchedGemm &gemm);
/// The same with several strides along groups, fastest first, each but the last with its extent:
/// "64x512/524288" for two.
std::string strideText(const MultiStrideGemm &gemm);
/// The inverse of strideText(), but for extents of GEMMs and axes, which a line does not say: the
/// slowest factor of a group has extent 1. Nothing where the middle part of a line is layouts.
/// Throws Error(badInput) for malformed strides.
std::optional<MultiStrideGemm> parseStrides(std::string_view place);

/// The three fields of a line; throws Error(badInput) without them.
struct LineFields {
  std::string_view family, layouts, knobs;
};
LineFields splitLine(std::string_view line);

/// Throws Error(badInput) naming what is wrong for every kernel: an unknown family, layouts that
/// are no order of dimensions, malformed strides, a knob that the family lacks, or a value that the
/// knob does not take. What depends on the kernel is checked when the line is read.
void checkLine(std::string_view line);

/// One layout an operand, inputs first. Throws Error(badInput) naming what does not fit the kernel.
std::vector<Layout> parseLayouts(std::string_view text, const Kernel &kernel);
/// Throws Error(badInput) naming the field.
Knobs parseKnobs(std::string_view family, std::string_view text, const Kernel &kernel);
/// The inverse of configurationLine() for families that are not timed as GEMMs.
Configuration parseConfiguration(std::string_view line, const Kernel &kernel);

}  // namespace weft
