// Strides of heads as one expression; see AttentionPlaces.h.
#include "codegen/families/attention/AttentionPlaces.h"

#include <fmt/ranges.h>

#include <vector>

namespace weft::codegen {

std::string placeOfHead(const AttentionProblem &problem, const AttentionTensor &tensor,
                        const std::string &head) {
  std::vector<std::string> terms;
  int64_t divisor = 1;
  for (size_t axis = problem.headAxes.size(); axis-- > 0;) {
    int64_t extent = problem.headExtents[axis], merged = axis;
    const int64_t stride = tensor.headStrides[axis];
    while (merged > 0 && tensor.headStrides[size_t(merged) - 1] == stride * extent) {
      --merged;
      extent *= problem.headExtents[size_t(merged)];
    }
    std::string index = divisor == 1 ? head : fmt::format("{} / {}", head, divisor);
    if (divisor * extent < problem.heads) index += fmt::format(" % {}", extent);
    if (stride != 0)
      terms.insert(terms.begin(), stride == 1
                                      ? fmt::format("weft::Offset({})", index)
                                      : fmt::format("weft::Offset({}) * {}", index, stride));
    divisor *= extent;
    axis = size_t(merged);
  }
  return terms.empty() ? "0" : fmt::format("{}", fmt::join(terms, " + "));
}

std::string placeOfSequence(const AttentionProblem &problem, const std::string &head) {
  const AttentionProblem::Paged &paged = problem.paged.value();
  if (paged.sequences == 1) return "0";
  std::string index = paged.divisor == 1 ? head : fmt::format("{} / {}", head, paged.divisor);
  if (paged.divisor * paged.sequences < problem.heads)
    index += fmt::format(" % {}", paged.sequences);
  return fmt::format("weft::Offset({}) * {}", index, paged.sequenceStride);
}

Statement rowFunction(const std::string &name, const std::string &tensor, const std::string &place,
                      int64_t rowStride) {
  return {.kind = Statement::Kind::function,
          .type = "int head, int token",
          .name = name,
          .body = {{.kind = Statement::Kind::evaluate,
                    .value = fmt::format("return {} + {} + weft::Offset(token) * {}", tensor, place,
                                         rowStride)}}};
}

}  // namespace weft::codegen
