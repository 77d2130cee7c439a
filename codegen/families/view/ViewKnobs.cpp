// The view family.
#include "codegen/families/view/ViewKnobs.h"

#include "codegen/families/view/ViewFamily.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Family.h"

namespace weft {

namespace {

std::string describeKnobs(const Kernel &, const Knobs &) { return "view, no kernel"; }
Cost price(const Kernel &, const Configuration &, const Device &) { return {}; }

}  // namespace

const Family viewFamily = {
    .name = "view",
    .isView = true,
    .defaults = defaultKnobs<ViewKnobs>,
    .compare = compareKnobs<ViewKnobs>,
    .describe = describeKnobs,
    .space = viewSpace,
    .price = price,
    .whyCopied = whyCopied,
};

}  // namespace weft
