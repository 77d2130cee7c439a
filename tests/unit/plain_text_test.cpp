// Names and notes in files of other languages: nothing that they hold becomes code, and plain text stays as it is.
#include <catch2/catch.hpp>

#include "kernel/PlainText.h"

#include <algorithm>

using namespace weft;

namespace {

/// Texts that mean something to some reader.
const std::vector<std::string> hostile{"a\nint x;", "a\r\nb", "a \\", "a \\  ", "a ?\?/", "*/ int x; /*", "\"quoted\"", "<b>&'</b>", "tab\tzero\x01",
                                       std::string("nul\0end", 7), "caf\xc3\xa9", "\xe2\x80\xa8line", "\xff", "\\x0a", "\x7f", "\x1b[31m"};

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
