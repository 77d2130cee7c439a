// What profiles of format 2 call gemm-fma; its knobs have the same words.
#include "kernel/ProfileMigration.h"

namespace weft {

extern const Family fmaGemmFamily;
extern const FormerWords fmaGemmFormerWords;

const FormerWords fmaGemmFormerWords = {.family = fmaGemmFamily, .name = "plain-contraction"};

}  // namespace weft
