// What families have in common; see Family.h.
#include "kernel/Family.h"

#include "kernel/Append.h"
#include "kernel/Error.h"
#include "kernel/FamilyRegistry.h"

#include <algorithm>
#include <vector>

namespace weft {
namespace {

/// Other files fill them before main, in any order.
std::vector<const Family *> &registered() {
  static std::vector<const Family *> list;
  return list;
}
std::vector<const FormerWords *> &registeredWords() {
  static std::vector<const FormerWords *> list;
  return list;
}

}  // namespace

FamilyRegistry::FamilyRegistry(std::span<const Family *const> families,
                               std::span<const FormerWords *const> formerWords) {
  registered().insert(registered().begin(), families.begin(), families.end());
  registeredWords().assign(formerWords.begin(), formerWords.end());
}

FamilyRegistration::FamilyRegistration(const Family &family) { registered().push_back(&family); }

std::span<const Family *const> families() {
  if (registered().empty())
    throw Error::checkFailed("no kernel families: this program does not link weft_families");
  return registered();
}

std::span<const FormerWords *const> formerWords() { return registeredWords(); }

const Family &Knobs::family() const {
  if (!owner) throw Error::checkFailed("a configuration without knobs");
  return *owner;
}

bool Knobs::isView() const { return owner && owner->isView; }
bool Knobs::isLibrary() const { return owner && owner->isLibrary; }

void Knobs::throwOtherFamily(const Family &asked) const {
  throw Error::checkFailed("knobs of {} where those of {} are needed",
                           owner ? owner->name : "no family", asked.name);
}

std::strong_ordering operator<=>(const Knobs &a, const Knobs &b) {
  if (a.owner == b.owner) return a.owner ? a.owner->compare(a, b) : std::strong_ordering::equal;
  if (!a.owner || !b.owner) return a.owner <=> b.owner;
  return a.owner->name <=> b.owner->name;
}

int64_t workspaceBytesOf(const Kernel &kernel, const Configuration &configuration) {
  const Family &family = configuration.knobs.family();
  const int64_t bytes = family.workspaceBytes ? family.workspaceBytes(kernel, configuration) : 0;
  if (bytes < 0)
    throw Error::checkFailed("kernel '{}': the family {} asks for a workspace of {} bytes",
                             kernel.name, family, bytes);
  return bytes;
}

std::vector<size_t> overwritableInputs(const Kernel &kernel, const Configuration &configuration) {
  if (const BodyOp *const append = appendOf(kernel)) {
    const ValueId cache = append->operands[appendedCache];
    return {size_t(std::ranges::find(kernel.inputs, cache) - kernel.inputs.begin())};
  }
  const auto rule = configuration.knobs.family().overwritableInputs;
  return rule ? rule(kernel, configuration) : std::vector<size_t>();
}

const Family &familyWith(bool Family::*property) {
  const auto found = std::ranges::find(families(), true, property);
  if (found == families().end()) throw Error::checkFailed("no family has what is asked for");
  return **found;
}

const Family *claimantOf(bool Family::*property, const Kernel &kernel, const LayoutTuple &layouts,
                         const Device &device) {
  const auto found = std::ranges::find_if(families(), [&](const Family *family) {
    return family->*property && family->claims && family->claims(kernel, layouts, device);
  });
  return found == families().end() ? nullptr : *found;
}

const Family *familyNamed(std::string_view name) {
  const auto found = std::ranges::find(families(), name, &Family::name);
  return found == families().end() ? nullptr : *found;
}

std::vector<std::string> familyNames() {
  std::vector<std::string> names;
  for (const Family *family : families()) names.emplace_back(family->name);
  std::ranges::sort(names);
  return names;
}

}  // namespace weft
