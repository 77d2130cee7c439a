// Text within its columns: cutting, wrapping, and tables that fit.
#include "kernel/TextWidth.h"
#include "tools/driver/Console.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <sstream>

using namespace weft;
using driver::Table;
using enum Table::Align;

namespace {

std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

size_t widest(const std::string &text) {
  size_t width = 0;
  for (const std::string &line : linesOf(text)) width = std::max(width, textColumns(line));
  return width;
}

std::string words(const std::string &text) {
  std::string result;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) result += (result.empty() ? "" : " ") + word;
  return result;
}

}  // namespace

TEST_CASE("a shortened text keeps its beginning and says that it was cut") {
  CHECK(shortened("softmax", 7) == "softmax");
  CHECK(shortened("softmax", 6) == "sof...");
  CHECK(shortened("softmax", 0) == "...");
  CHECK(shortened("größe größe", 8) == "größe...");
  CHECK(textColumns("größe") == 5);
  CHECK(textColumns("\033[1mhead\033[0m") == 4);
}

TEST_CASE("wrapping keeps every word, in order, within the width") {
  const std::string text =
      "note: one two three four five six seven eight nine ten\n  indented eleven twelve thirteen "
      "fourteen\n\nlast\n";
  for (const size_t width : {12, 20, 40, 100}) {
    CAPTURE(width);
    const std::string result = wrapped(text, width);
    CHECK(widest(result) <= width);
    CHECK(words(result) == words(text));
    CHECK(result.ends_with("\n\nlast\n"));
  }
  CHECK(wrapped(text, 100) == text);
  CHECK(wrapped(text, unlimitedColumns) == text);
  CHECK(wrapped("  aa bb cc", 7) ==
        "  aa bb\n   cc");  // the indent of what is continued takes half of the width at most
  CHECK(wrapped("kernel:  12 us   of all", 16) == "kernel:  12 us\n  of all");
}

TEST_CASE("a word longer than the width stays whole") {
  const std::string path(60, 'p');
  CHECK(wrapped("wrote " + path + " now", 40) == "wrote\n  " + path + "\n  now");
}

TEST_CASE("a table that fits is printed as it is") {
  Table table({{"kernel", left}, {"time", right}});
  table.addRow({"softmax", "1.00 us"});
  CHECK(table.print(100) == "kernel      time\nsoftmax  1.00 us\n");
  CHECK(table.print(unlimitedColumns) == table.print(100));
}

TEST_CASE("a table gives way where nothing is a figure") {
  Table table({{"kernel", left}, {"time", right}, {"why", text}});
  table.addRow({std::string(50, 'k'), "123.4 us",
                "one two three four five six seven eight nine ten eleven twelve"});
  for (const size_t width : {48, 60, 80, 100}) {
    CAPTURE(width);
    const std::string result = table.print(width);
    CHECK(widest(result) <= width);
    CHECK(result.find("123.4 us") != std::string::npos);
    CHECK(result.find("kkk...") != std::string::npos);
    for (const char *word : {"one", "six", "twelve"}) CHECK(result.find(word) != std::string::npos);
  }
  CHECK(table.print(unlimitedColumns).find("...") == std::string::npos);
}

TEST_CASE(
    "figures that do not fit side by side stand in several tables, each with the first column") {
  std::vector<std::pair<std::string, Table::Align>> columns = {{"kernel", left}};
  std::vector<std::string> row = {"softmax"};
  for (int column = 0; column < 12; ++column)
    columns.emplace_back("figure " + std::to_string(column), right), row.push_back("12345.678");
  Table table(columns);
  table.addRow(row);
  const std::string result = table.print(60);
  CHECK(widest(result) <= 60);
  for (int column = 0; column < 12; ++column)
    CHECK(result.find("figure " + std::to_string(column)) != std::string::npos);
  size_t figures = 0, names = 0;
  for (const std::string &line : linesOf(result)) {
    names += line.starts_with("softmax");
    for (size_t at = line.find("12345.678"); at != std::string::npos;
         at = line.find("12345.678", at + 1))
      ++figures;
  }
  CHECK(figures == 12);
  CHECK(names == 3);
}

TEST_CASE("times have three significant digits down to picoseconds, and none prints as zeros") {
  CHECK(formatSeconds(39.14e-6) == "39.1 us");
  CHECK(formatSeconds(0.72e-6) == "0.72 us");
  CHECK(formatSeconds(99.96e-9) == "0.10 us");
  CHECK(formatSeconds(99.9e-9) == "99.9 ns");
  CHECK(formatSeconds(3.32e-9) == "3.32 ns");
  CHECK(formatSeconds(-3.32e-9) == "-3.32 ns");
  CHECK(formatSeconds(1e-11) == "0.01 ns");
  CHECK(formatSeconds(1e-20) == "0 us");
  for (double seconds = 1e-11; seconds < 1; seconds *= 1.3) {
    CAPTURE(seconds);
    CHECK_FALSE(formatSeconds(seconds).starts_with("0.00"));
  }
}

TEST_CASE("one thing is counted in the singular") {
  CHECK(driver::countOf(1, "kernel") == "1 kernel");
  CHECK(driver::countOf(0, "kernel") == "0 kernels");
  CHECK(driver::countOf(1234, "variant") == "1,234 variants");
}

TEST_CASE("the end of a line within a cell stays within its row") {
  Table table({{"kernel", left}, {"time", right}});
  table.addRow({"soft\nmax\x1b[31m", "1 us"});
  CHECK(linesOf(table.print(100)).size() == 2);
  CHECK(table.print(100).find("soft\\nmax\\x1b[31m") != std::string::npos);
}
