// What profiles of format 2 call gemm-sm90 and its knobs.
#include "kernel/ProfileMigration.h"

namespace weft {

extern const Family sm90GemmFamily;
extern const FormerWords sm90GemmFormerWords;

namespace {

constexpr RenamedWord sm90FormerKnobs[] = {
    {"staging=", "epilogueStages="}, {"raster=", "groupM="},
    {"splits=", "splitK="},          {"sharers=", "multicastB="},
    {"streams=", "streamK="},        {"schedule=narrow", "schedule=single-consumer"}};

}  // namespace

const FormerWords sm90GemmFormerWords = {
    .family = sm90GemmFamily, .name = "hopper-contraction", .knobs = sm90FormerKnobs};

}  // namespace weft
