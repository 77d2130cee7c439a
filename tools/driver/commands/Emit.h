// Emitting an artifact again, shared by `weft emit` and `weft compile --start-from
// lower|emit|build`.
#pragma once

#include "tools/driver/Flags.h"

#include <string>

namespace weft::driver {

struct EmitRequest {
  std::string folder;  ///< the artifact
  std::string output;  ///< where to write; empty: in place
  TargetFlags target;  ///< device and profile that are not given come from the plan
  KeepFlags keep;
  bool discardEdits = false;  ///< take generated text instead of hand-edited files
  bool overwrite = false;  ///< replace edited files in the folder that is written, and an artifact
                           ///< without a manifest
  bool check = false;      ///< say what was edited and what does not hold, and write nothing
  Phase last = Phase::build;
  bool verbose = false;  ///< print what was built and every note, too
};

inline constexpr const char *overwriteHelp =
    "replace files that were edited since weft wrote them, and artifacts without manifest.json";

int emitAgain(EmitRequest request, bool json);

}  // namespace weft::driver
