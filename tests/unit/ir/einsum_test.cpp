// Einsum specs: classification, inference, and every way to write one wrong.
#include "ir/Einsum.h"
#include "kernel/Error.h"

#include <catch2/catch.hpp>

using namespace weft;

namespace {

std::string errorOf(const std::string &spec) {
  try {
    parseEinsum(spec);
  } catch (const Error &error) {
    CHECK(error.kind == ErrorKind::badInput);
    return std::string(error.what()).substr(0, 11);
  }
  return "accepted";
}

}  // namespace

TEST_CASE("letters are batch, m, n or reduced") {
  const Einsum scores = parseEinsum("phbk,phbj->hbjk");
  CHECK(scores.batch() == "hb");
  CHECK(scores.m() == "k");
  CHECK(scores.n() == "j");
  CHECK(scores.reduced() == "p");
  CHECK(scores.letters() == "hbjkp");
  CHECK(scores.text() == "phbk,phbj->hbjk");
}

TEST_CASE("upper and lower case are different letters") {
  const Einsum einsum = parseEinsum("aA,Ab->ab");
  CHECK(einsum.reduced() == "A");
  CHECK(einsum.m() == "a");
}

TEST_CASE("an outer GEMM and a full reduction are einsums") {
  CHECK(parseEinsum("a,b->ab").reduced().empty());
  CHECK(parseEinsum("ab,ab->").reduced() == "ab");
}

TEST_CASE("malformed specs name their constraint") {
  CHECK(errorOf("ab,bc") == "contract_c1");
  CHECK(errorOf("ab->ab") == "contract_c1");
  CHECK(errorOf("") == "contract_c1");
  CHECK(errorOf("ab,b c->ac") == "contract_c1");
  CHECK(errorOf("ab,bc,cd->ad") == "contract_c1");
  CHECK(errorOf("ab->,ab") == "contract_c1");
}

TEST_CASE("repeated, unknown and lonely letters are rejected") {
  CHECK(errorOf("aab,bc->ac") == "contract_c2");
  CHECK(errorOf("ab,bc->aca") == "contract_c2");
  CHECK(errorOf("ab,bc->az") == "contract_c3");
  CHECK(errorOf("abx,bc->ac") == "contract_c4");
  CHECK(errorOf("ab,bcx->ac") == "contract_c4");
}

TEST_CASE("sizes are inferred and checked") {
  const Einsum einsum = parseEinsum("phi,bji->phbj");
  CHECK(inferResult(einsum, {64, 16, 1024}, {8, 512, 1024}) ==
        std::vector<int64_t>{64, 16, 8, 512});
  CHECK_THROWS_WITH(inferResult(einsum, {64, 16}, {8, 512, 1024}),
                    Catch::StartsWith("contract_c5"));
  CHECK_THROWS_WITH(inferResult(einsum, {64, 16, 1024}, {8, 512, 1000}),
                    Catch::StartsWith("contract_c6"));
}
