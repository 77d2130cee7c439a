// The spelling of parameters' types; see ParameterType.h.
#include "plan/ParameterType.h"

#include "kernel/WordTable.h"

namespace weft {
namespace {

using Kind = ParameterType::Kind;
constexpr WordTable<Kind, 5> kindWords = {{{Kind::unknown, ""},
                                           {Kind::tensorMap, "weft::sm90::TensorMap"},
                                           {Kind::dropoutKey, "weft::DropoutKey"},
                                           {Kind::number, "unsigned"},
                                           {Kind::argumentStatus, "weft::ArgumentStatus"}}};
constexpr DType elementTypes[] = {DType::f32, DType::f16, DType::bf16,   DType::f64,
                                  DType::i32, DType::i1,  DType::f8e4m3, DType::f8e5m2};

}  // namespace

std::string_view text(const ParameterType &type) {
  return type.kind == Kind::element ? cudaNameOf(type.dtype) : wordOf(kindWords, type.kind);
}

ParameterType parseParameterType(std::string_view text) {
  for (const DType dtype : elementTypes)
    if (cudaNameOf(dtype) == text) return elementsOf(dtype);
  return {.kind = valueNamed(kindWords, text).value_or(Kind::unknown)};
}

}  // namespace weft
