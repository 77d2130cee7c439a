// The vectors of FIPS 180-4 and NIST's example file, and the boundaries of padding.
#include <catch2/catch.hpp>

#include "runtime/system/Sha256.h"

using weft::runtime::Sha256;
using weft::runtime::sha256;

TEST_CASE("published vectors") {
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256(std::string(1000000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("pieces of any size give the digest of the whole") {
  std::string text;
  for (int i = 0; i < 200; ++i) text.push_back(char(i));
  for (size_t length = 0; length <= text.size(); ++length) {
    const std::string_view whole = std::string_view(text).substr(0, length);
    Sha256 pieces;
    for (size_t start = 0; start < length; start += 7) pieces.update(whole.substr(start, 7));
    CHECK(pieces.finish() == sha256(whole));
  }
}

TEST_CASE("fields are told apart") {
  CHECK(Sha256().updateField("ab").updateField("c").finish() !=
        Sha256().updateField("a").updateField("bc").finish());
}
