// Texts of others in our messages: whatever they hold, what is shown is UTF-8 without control characters, and short.
#include <catch2/catch.hpp>

#include "kernel/Printable.h"

using weft::printable;

TEST_CASE("what can be shown is shown as it is") {
  for (const char *text : {"", "plain", "two\nlines", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80", "C:\\x1b"}) CHECK(printable(text) == text);
}

TEST_CASE("control characters, broken UTF-8 and turned writing are spelled out") {
  CHECK(printable("a\x1b[31mb") == "a\\x1b[31mb");
  CHECK(printable(std::string_view("\0\t\r\x7f", 4)) == "\\x00\\x09\\x0d\\x7f");
  CHECK(printable("\xff\xfe") == "\\xff\\xfe");
  CHECK(printable("\xc3(") == "\\xc3(");          // a character without its end
  CHECK(printable("\xc3") == "\\xc3");
  CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");   // '/' in too many bytes
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // half of a pair
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
  CHECK(printable("\xc2\x9b") == "\\xc2\\x9b");   // the same escape in one character
  CHECK(printable("\xe2\x80\xae" "exe.txt") == "\\xe2\\x80\\xae" "exe.txt");
}

TEST_CASE("every byte becomes something that is shown as it is") {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string shown = printable(std::string(1, char(byte)));
    CAPTURE(byte);
    CHECK(!shown.empty());
    CHECK(printable(shown) == shown);
  }
}

TEST_CASE("a line stays one line") {
  CHECK(weft::printableLine("a\nb\x1b") == "a\\nb\\x1b");
  CHECK(weft::printableLine("plain") == "plain");
}

TEST_CASE("a long text keeps its ends and says what is missing") {
  const std::string text = "begin " + std::string(100000, 'x') + " end", shown = printable(text, 1000);
  CHECK(shown.size() < 1100);
  CHECK(shown.starts_with("begin xxx"));
  CHECK(shown.ends_with("xxx end"));
  CHECK(shown.find("[... 99010 bytes ...]") != std::string::npos);
  std::string wide;
  for (int i = 0; i < 1000; ++i) wide += "\xe2\x82\xac";
  CHECK(printable(wide, 1000).find("\\x") == std::string::npos);  // no character is cut
}
