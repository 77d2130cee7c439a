// Pieces of emitted C++: which names they have, and which of them are raw.
#include "codegen/Code.h"

#include <catch2/catch.hpp>

using namespace weft::codegen;
using NameSet = Code::NameSet;

TEST_CASE("a composed piece has the names of its parts and no others") {
  const Code row = Code::name("row"), width = Code::name("width");
  const Code sum = code("weft::Offset({}) * {} + {}", row, width, 3);
  CHECK(sum.str() == "weft::Offset(row) * width + 3");
  CHECK(sum.names() == NameSet{"row", "width"});
  CHECK_FALSE(sum.isRaw());
  Code longer = sum;
  longer += code(" % {}", Code::name("i"));
  CHECK(longer.names() == NameSet{"i", "row", "width"});
  CHECK(joined({row, width, sum}, ", ").str() == "row, width, weft::Offset(row) * width + 3");
  CHECK(joined({row, width}, " * ").names() == NameSet{"row", "width"});
}

TEST_CASE("a literal names its words but for members, and is not raw") {
  CHECK(Code("threadIdx.x % width").names() == NameSet{"threadIdx", "width"});
  CHECK(Code("Args{.a = x, .b = b, .c = y.at}").names() == NameSet{"Args", "b", "x", "y"});
  CHECK_FALSE(Code("threadIdx.x % width").isRaw());
}

TEST_CASE("numbers and plain text have no names") {
  CHECK(Code::plain("const float").names().empty());
  CHECK(code("{} {} {}", "-", 0.5, std::string_view("half")).names().empty());
  CHECK(Code().empty());
}

TEST_CASE("a string is raw: all of its words may be names, and what it is put into is raw, too") {
  const Code raw = std::string("x2 + weft::half(row_1) * 10u");
  CHECK(raw.names() == NameSet{"half", "row_1", "weft", "x2"});
  CHECK(raw.isRaw());
  const Code outer = code("{} < {}", Code::name("e"), std::string("valid"));
  CHECK(outer.names() == NameSet{"e", "valid"});
  CHECK(outer.isRaw());
  CHECK_FALSE(Code(std::string("10 * (2 + 3)")).isRaw());
}
