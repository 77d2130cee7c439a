// Sources of prices and their texts.
#include <catch2/catch.hpp>

#include "passes/configure/PriceSource.h"

using namespace weft;

TEST_CASE("a source of prices is read from its text") {
  for (const PriceSource &source :
       {PriceSource{.name = "analytic model of h200"},
        PriceSource{.name = "shipped profile", .details = "h200, 68621 measurements"},
        PriceSource{.name = "profile old (2).txt", .details = "h200, 9 measurements"},
        PriceSource{.name = "profile a (h200, 1 measurements)", .details = "h200, 9 measurements"},
        PriceSource{.name = "shipped profile",
        .details = "h200, 9 measurements",
        .remark = " at 0.5 of the tokens and 0.3 of their pairs (0.5 and 0.3)"},
        PriceSource{.name = "measured (by me)"}, PriceSource{.name = ""}}) {
    INFO(source.text());
    CHECK(PriceSource::of(source.text()) == source);
  }
}

TEST_CASE("texts that no source has are kept as they are") {
  for (const char *text : {" measurements)", " ( measurements)", "9 measurements) of", "a ("}) {
    INFO(text);
    CHECK(PriceSource::of(text).text() == text);
  }
}

TEST_CASE("the text of a source names its details and its remark") {
  CHECK(PriceSource{.name = "profile p", .details = "h200, 3 measurements", .remark = " at 0.5"}
            .text() == "profile p (h200, 3 measurements) at 0.5");
}
