// Columns that give way; see TextTable.h.
#include "kernel/TextTable.h"

#include "kernel/PlainText.h"

#include <algorithm>

namespace weft {

TextTable::TextTable(std::vector<std::pair<std::string, Align>> columns)
    : columns(std::move(columns)) {}

void TextTable::addRow(std::vector<std::string> cells) {
  cells.resize(columns.size());
  for (size_t column = 0; column < cells.size(); ++column)  // a name may hold the end of a line
    if (columns[column].second != Align::text)
      cells[column] = printableLine(cells[column], unlimitedColumns);
  rows.push_back(std::move(cells));
}

std::vector<size_t> TextTable::naturalWidths() const {
  std::vector<size_t> widths;
  for (const auto &[name, align] : columns) widths.push_back(textColumns(name));
  for (const auto &row : rows)
    for (size_t column = 0; column < row.size(); ++column)
      widths[column] = std::max(widths[column], textColumns(row[column]));
  return widths;
}

namespace {

constexpr size_t gap = 2;             // between columns
constexpr size_t fewestInCell = 12;   // what a shortened cell keeps: less names nothing
constexpr size_t fewestInFirst = 28;  // of the first column, which says what the row is about

size_t total(const std::vector<size_t> &shown, const std::vector<size_t> &widths) {
  size_t sum = 0;
  for (const size_t column : shown) sum += widths[column] + (sum ? gap : 0);
  return sum;
}

std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines(1);
  for (const char letter : text)
    if (letter == '\n') lines.emplace_back();
    else lines.back() += letter;
  return lines;
}

}  // namespace

size_t TextTable::fewest(size_t column, size_t natural) const {
  if (columns[column].second == Align::right) return natural;
  return std::min(natural, std::max(column == 0 ? fewestInFirst : fewestInCell,
                                    textColumns(columns[column].first)));
}

/// Which columns stand side by side if each takes the fewest it can: all in one block if they fit.
std::vector<std::vector<size_t>> TextTable::blocksOf(const std::vector<size_t> &natural,
                                                     size_t limit) const {
  std::vector<size_t> widths = natural;
  for (size_t column = 0; column < columns.size(); ++column)
    widths[column] = fewest(column, natural[column]);
  std::vector<std::vector<size_t>> blocks(1);
  for (size_t column = 0; column < columns.size(); ++column) {
    blocks.back().push_back(column);
    if (blocks.back().size() < 3 || total(blocks.back(), widths) <= limit) continue;
    blocks.back().pop_back();
    blocks.push_back({0, column});
  }
  return blocks;
}

std::string TextTable::printLine(const std::vector<std::string> &row,
                                 const std::vector<size_t> &shown,
                                 const std::vector<size_t> &widths) const {
  std::vector<std::vector<std::string>> cells;
  size_t height = 1;
  for (const size_t column : shown) {
    const bool wraps = columns[column].second == Align::text;
    cells.push_back(wraps ? linesOf(wrapped(row[column], widths[column], 0))
                          : std::vector<std::string>{row[column]});
    for (std::string &cell : cells.back()) cell = shortened(cell, widths[column]);
    height = std::max(height, cells.back().size());
  }
  std::string text;
  for (size_t at = 0; at < height; ++at) {
    for (size_t index = 0; index < shown.size(); ++index) {
      const std::string cell = at < cells[index].size() ? cells[index][at] : "";
      const std::string space(widths[shown[index]] - textColumns(cell), ' ');
      text += (columns[shown[index]].second == Align::right ? space + cell : cell + space) +
              std::string(gap, ' ');
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  return text;
}

std::string TextTable::print(size_t width, const std::string &before,
                             const std::string &behind) const {
  std::vector<std::string> head;
  for (const auto &[name, align] : columns) head.push_back(name);
  const std::vector<size_t> natural = naturalWidths();
  std::string text;
  for (const std::vector<size_t> &block : blocksOf(natural, width)) {
    std::vector<size_t> widths = natural;
    while (total(block, widths) > width) {
      const auto room = [&](size_t column) {
        return widths[column] > fewest(column, natural[column]) ? widths[column] : 0;
      };
      const size_t widest = *std::ranges::max_element(block, {}, room);
      if (room(widest) == 0) break;
      --widths[widest];
    }
    text += (text.empty() ? "" : "\n") + before + printLine(head, block, widths) + behind;
    for (const std::vector<std::string> &row : rows) text += printLine(row, block, widths);
  }
  return text;
}

}  // namespace weft
