// Phase names; see Phase.h.
#include "tools/driver/Phase.h"

#include "kernel/Error.h"
#include "kernel/Nearest.h"

namespace weft::driver {

std::vector<std::string> phaseNames() {
  return {"import",    "differentiate", "algebra", "attention", "fuse",
          "configure", "select",        "lower",   "emit",      "build"};
}

std::string nameOf(Phase phase) { return phaseNames()[size_t(phase)]; }

Phase parsePhase(const std::string &name) {
  const std::vector<std::string> names = phaseNames();
  for (size_t index = 0; index < names.size(); ++index)
    if (names[index] == name) return Phase(index);
  throw Error::badInput("unknown phase '{}'{}", name, nearestAndKnown(name, names));
}

}  // namespace weft::driver
