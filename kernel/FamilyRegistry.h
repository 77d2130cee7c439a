// How the list of kernel families comes to kernel/, which links none of them: the registry
// (codegen/families/Registry.cpp) hands it over before main.
//
// Invariant: what links weft_families has the list (its linker option takes the registry along,
// which no other file names); what asks for families without it ends with a message.
#pragma once

#include "kernel/ProfileMigration.h"

#include <span>

namespace weft {

/// Registered families stand before those that tests add, whichever come first.
struct FamilyRegistry {
  FamilyRegistry(std::span<const Family *const> families,
                 std::span<const FormerWords *const> formerWords);
};

}  // namespace weft
