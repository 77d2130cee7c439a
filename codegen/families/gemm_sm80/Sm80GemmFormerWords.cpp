// What profiles of format 2 call gemm-sm80 and its knobs.
#include "kernel/ProfileMigration.h"

namespace weft {

extern const Family sm80GemmFamily;
extern const FormerWords sm80GemmFormerWords;

namespace {

constexpr RenamedWord sm80FormerKnobs[] = {{"raster=", "groupM="}};

}  // namespace

const FormerWords sm80GemmFormerWords = {
    .family = sm80GemmFamily, .name = "ampere-contraction", .knobs = sm80FormerKnobs};

}  // namespace weft
