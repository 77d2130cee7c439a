// The words of the flag; see ConcurrentFlag.h.
#include "runtime/commands/ConcurrentFlag.h"

#include "kernel/Error.h"

namespace weft::runtime {

void setConcurrent(Plan &plan, const std::string &choice) {
  if (choice.empty()) return;
  if (choice != "on" && choice != "off")
    throw Error::badInput("--concurrent '{}': neither on nor off", choice);
  plan.concurrent = choice == "on";
}

}  // namespace weft::runtime
