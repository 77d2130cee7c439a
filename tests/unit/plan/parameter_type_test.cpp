// Types of parameters: their spelling, and back.
#include "plan/ParameterType.h"

#include <catch2/catch.hpp>

using namespace weft;
using Kind = ParameterType::Kind;

TEST_CASE("every type of a parameter is read back from its spelling") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32, DType::i1,
                            DType::f8e4m3, DType::f8e5m2})
    CHECK(parseParameterType(text(elementsOf(dtype))) == elementsOf(dtype));
  for (const Kind kind :
       {Kind::tensorMap, Kind::dropoutKey, Kind::number, Kind::argumentStatus, Kind::unknown})
    CHECK(parseParameterType(text({.kind = kind})) == ParameterType{.kind = kind});
  CHECK(text(elementsOf(DType::f16)) == "weft::half");
  CHECK(text({.kind = Kind::tensorMap}) == "weft::sm90::TensorMap");
}

TEST_CASE("a spelling that no kernel has is unknown") {
  for (const char *spelling : {"half *", "Float", "weft::half ", "long"})
    CHECK(parseParameterType(spelling).kind == Kind::unknown);
}
