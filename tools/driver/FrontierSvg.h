// Time over workspace of plans: those that no other beats in both joined by a line of steps, the
// others as dots. Text in, text out: equal points give equal bytes; the figure needs no other file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::driver {

/// A plan of the figure.
struct FrontierMark {
  double seconds = 0;
  int64_t workspaceBytes = 0;
  std::string label = {};  ///< of undominated ones: what stands beside them
  bool isUndominated = false;
};

/// An SVG document; `title` and the lines of `notes` stand on top. Without marks, a figure that
/// says so.
std::string drawFrontier(const std::vector<FrontierMark> &marks, const std::string &title,
                         const std::vector<std::string> &notes);

}  // namespace weft::driver
