// One table of element types; every question about them is a look-up here.
#include "kernel/DType.h"

#include <array>

namespace weft {
namespace {

struct DTypeFacts {
  DType type;
  int64_t size;
  std::string_view name, cudaName;
};

constexpr std::array<DTypeFacts, 9> facts = {{
    {DType::f32, 4, "f32", "float"},
    {DType::f16, 2, "f16", "weft::half"},
    {DType::bf16, 2, "bf16", "weft::bfloat16"},
    {DType::f64, 8, "f64", "double"},
    {DType::i32, 4, "i32", "int"},
    {DType::i1, 1, "i1", "unsigned char"},
    {DType::f8e4m3, 1, "f8e4m3", "weft::float8e4m3"},
    {DType::f8e5m2, 1, "f8e5m2", "weft::float8e5m2"},
    {DType::tf32, 4, "tf32", "weft::tfloat32"},
}};

const DTypeFacts &factsOf(DType type) { return facts[static_cast<size_t>(type)]; }

}  // namespace

int64_t sizeOf(DType type) { return factsOf(type).size; }
std::string_view nameOf(DType type) { return factsOf(type).name; }
std::string_view cudaNameOf(DType type) { return factsOf(type).cudaName; }

std::optional<DType> parseDType(std::string_view name) {
  for (const DTypeFacts &fact : facts)
    if (fact.name == name) return fact.type;
  return std::nullopt;
}

}  // namespace weft
