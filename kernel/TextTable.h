// Tables of text that fit a number of columns. Everything that any command prints in rows goes
// through here.
#pragma once

#include "kernel/TextWidth.h"

#include <string>
#include <utility>
#include <vector>

namespace weft {

/// A table with aligned columns that fits its width. The first row is the head. Where the columns
/// do not fit, those that are aligned to the left give way, the widest first: cells of `left` are
/// shortened with "...", cells of `text` continue in further lines. What still does not fit becomes
/// several tables, each with the first column: no figure is ever cut.
class TextTable {
public:
  enum class Align : uint8_t { left, right, text };
  explicit TextTable(std::vector<std::pair<std::string, Align>> columns);
  void addRow(std::vector<std::string> cells);
  /// `before`, `behind`: around the head, to emphasize it.
  std::string print(size_t width, const std::string &before = "",
                    const std::string &behind = "") const;

private:
  std::vector<size_t> naturalWidths() const;
  size_t fewest(size_t column, size_t natural) const;
  std::vector<std::vector<size_t>> blocksOf(const std::vector<size_t> &natural, size_t limit) const;
  std::string printLine(const std::vector<std::string> &row, const std::vector<size_t> &shown,
                        const std::vector<size_t> &widths) const;

  std::vector<std::pair<std::string, Align>> columns;
  std::vector<std::vector<std::string>> rows;
};

}  // namespace weft
