// Emitting an artifact again, shared by `weft emit` and `weft compile --start-from lower|emit|build`.
#pragma once

#include "tools/driver/Flags.h"

#include <string>

namespace weft::driver {

struct EmitRequest {
  std::string folder;          ///< the artifact
  std::string output;          ///< where to write; empty: in place
  TargetFlags target;          ///< device and profile that are not given come from the plan
  KeepFlags keep;
  bool discardEdits = false;   ///< take generated text instead of hand-edited files
  Phase last = Phase::build;
};

int emitAgain(EmitRequest request, bool json);

}  // namespace weft::driver
