#include "passes/select/Sites.h"

namespace weft::select {

Sites::Sites(const Problem &problem)
    : siteOfOp(problem.ops.size(), -1), alternativeOfOp(problem.ops.size(), 0) {
  for (const std::vector<std::vector<int>> &alternatives : problem.sites) {
    const int site = static_cast<int>(all.size());
    OpSet together;
    std::vector<OpSet> &sets = all.emplace_back();
    for (const std::vector<int> &ops : alternatives) {
      for (const int op : ops) {
        siteOfOp[static_cast<size_t>(op)] = site;
        alternativeOfOp[static_cast<size_t>(op)] = sets.size();
      }
      sets.emplace_back(ops);
      together = together | sets.back();
    }
    whole.push_back(std::move(together));
  }
}

OpSet Sites::unnecessaryBeside(const std::vector<int> &ops) const {
  OpSet unnecessary;
  for (const int op : ops)
    if (const int site = siteOf(op); site >= 0 && alternativesOf(site) > 1)
      unnecessary = unnecessary | (opsOfSite(site) - this->ops(site, alternativeOf(op)));
  return unnecessary;
}

}  // namespace weft::select
