// Names and notes in files of other languages: nothing that they hold becomes code, and plain text
// stays as it is.
#include <catch2/catch.hpp>

#include "kernel/Error.h"
#include "kernel/PlainText.h"

#include <algorithm>

using namespace weft;

namespace {

/// Texts that mean something to some reader.
const std::vector<std::string> hostile{
    "a\nint x;",    "a\r\nb",           "a \\",      "a \\  ",        "a ?\?/",
    "*/ int x; /*", "\"quoted\"",       "<b>&'</b>", "tab\tzero\x01", std::string("nul\0end", 7),
    "caf\xc3\xa9",  "\xe2\x80\xa8line", "\xff",      "\\x0a",         "\x7f",
    "\x1b[31m"};

}  // namespace

TEST_CASE("plain text is left alone") {
  const std::string plain = "softmax_dropout [b,j,k] f16: 4 x 8 + 1; #2 (%24 = add %22)";
  CHECK(isPlain(plain));
  CHECK(oneLine(plain) == plain);
  CHECK(lineComment(plain) == plain);
  CHECK(dotLabel(plain) == plain);
  CHECK(markup(plain) == plain);
}

TEST_CASE("a comment is one line of plain text that does not go on in the next") {
  for (const std::string &text : hostile) {
    const std::string comment = lineComment(text);
    INFO(comment);
    CHECK(isPlain(comment));
    const std::string shown = comment.substr(0, comment.find_last_not_of(' ') + 1);
    CHECK_FALSE(shown.ends_with("\\"));
    CHECK_FALSE(shown.ends_with("?\?/"));
  }
}

TEST_CASE("rows are one line") {
  for (const std::string &text : hostile) CHECK(isPlain(oneLine(text)));
  CHECK(oneLine("a\nb\xff") == "a\\x0ab\\xff");
}

TEST_CASE("a label of Graphviz ends where its quotes end") {
  for (const std::string &text : hostile) {
    const std::string label = dotLabel(text);
    INFO(label);
    CHECK(isPlain(label));
    for (size_t at = 0; at < label.size(); ++at) {
      CHECK(label[at] != '"');
      if (label[at] == '\\') CHECK(++at < label.size());  // the character behind it belongs to it
    }
  }
}

TEST_CASE("markup holds no tags and no quotes") {
  for (const std::string &text : hostile) {
    const std::string escaped = markup(text);
    INFO(escaped);
    CHECK(escaped.find_first_of("<>\"'") == std::string::npos);
    CHECK(std::ranges::all_of(escaped, [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
  }
  CHECK(markup("<b>&'\"") == "&lt;b&gt;&amp;&#39;&quot;");
}

TEST_CASE("a message shows what can be shown") {
  for (const char *text :
       {"", "plain", "two\nlines", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80", "C:\\x1b"})
    CHECK(printable(text) == text);
}

TEST_CASE("a message spells out control characters, broken UTF-8 and turned writing") {
  CHECK(printable("a\x1b[31mb") == "a\\x1b[31mb");
  CHECK(printable(std::string_view("\0\t\r\x7f", 4)) == "\\x00\\x09\\x0d\\x7f");
  CHECK(printable("\xff\xfe") == "\\xff\\xfe");
  CHECK(printable("\xc3(") == "\\xc3(");  // a character without its end
  CHECK(printable("\xc3") == "\\xc3");
  CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");           // '/' in too many bytes
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // half of a pair
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
  CHECK(printable("\xc2\x9b") == "\\xc2\\x9b");  // the same escape in one character
  CHECK(printable("\xe2\x80\xae"
                  "exe.txt") ==
        "\\xe2\\x80\\xae"
        "exe.txt");
}

TEST_CASE("every byte of a message becomes something that is shown as it is") {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string shown = printable(std::string(1, char(byte)));
    CAPTURE(byte);
    CHECK(!shown.empty());
    CHECK(printable(shown) == shown);
  }
}

TEST_CASE("a note stays one line") {
  CHECK(printableLine("a\nb\x1b") == "a\\nb\\x1b");
  CHECK(printableLine("plain") == "plain");
}

TEST_CASE("a long message keeps its ends and says what is missing") {
  const std::string text = "begin " + std::string(100000, 'x') + " end",
                    shown = printable(text, 1000);
  CHECK(shown.size() < 1100);
  CHECK(shown.starts_with("begin xxx"));
  CHECK(shown.ends_with("xxx end"));
  CHECK(shown.find("[... 99010 bytes ...]") != std::string::npos);
  std::string wide;
  for (int i = 0; i < 1000; ++i) wide += "\xe2\x82\xac";
  CHECK(printable(wide, 1000).find("\\x") == std::string::npos);  // no character is cut
}

TEST_CASE("an error says all that it quotes, and nothing of it reaches a terminal raw") {
  for (const std::string &text : hostile) {
    const std::string message = Error::badInput("'{}' is no number", text).what();
    INFO(message);
    CHECK(message.ends_with("' is no number"));
    CHECK(printable(message) == message);
  }
}
