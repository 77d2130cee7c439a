// The manifest as text, and what was edited since; see Manifest.h.
#include "runtime/artifact/Manifest.h"

#include "kernel/Error.h"
#include "runtime/system/JsonText.h"

#include <algorithm>
#include <map>
#include <set>

namespace weft::runtime {

using nlohmann::json;

namespace {

constexpr const char *formatVersion = "1";
constexpr size_t longestHash = 64;

/// What becomes of an edit of a member.
enum class Class : uint8_t {
  derived,  ///< of the graph, of selection: an edit contradicts them
  choice,   ///< a person may edit it
  again,    ///< `weft emit` computes it again
  claim,    ///< only people read it; of selection, a build or a GPU, so that no edit can make it
            ///< right
  price,    ///< only people read it, and `weft emit` computes it again
};

/// Members of plan.json by what holds them. What is not named is derived: a member that is new to
/// the plan is protected until it is named here.
using Classes = std::map<std::string_view, Class>;
const Classes planClasses{{"device", Class::choice},
                          {"target", Class::choice},
                          {"memoryPlan", Class::choice},
                          {"entryPoints", Class::choice},
                          {"concurrent", Class::choice},
                          {"workspaceBytes", Class::again},
                          {"predictedSeconds", Class::price},
                          {"costModel", Class::price},
                          {"prices", Class::price},
                          {"lowerBoundSeconds", Class::claim},
                          {"measurement", Class::claim},
                          {"notes", Class::claim},
                          {"model", Class::claim},
                          {"variant", Class::claim},
                          {"rewrites", Class::claim}};
const Classes tensorClasses{{"order", Class::choice},
                            {"buffer", Class::choice},
                            {"offset", Class::choice},
                            {"strides", Class::again}};
const Classes kernelClasses{{"knobs", Class::choice},
                            {"label", Class::claim},
                            {"after", Class::choice},
                            {"workspaceBuffer", Class::choice},
                            {"inputLayouts", Class::again},
                            {"outputLayouts", Class::again},
                            {"configuration", Class::again},
                            {"family", Class::again},
                            {"familyVersion", Class::again},
                            {"key", Class::again},
                            {"entry", Class::again},
                            {"source", Class::again},
                            {"grid", Class::again},
                            {"block", Class::again},
                            {"sharedBytes", Class::again},
                            {"startsEarly", Class::again},
                            {"workspaceBytes", Class::again},
                            {"parameters", Class::again},
                            {"library", Class::again},
                            {"textHash", Class::again},
                            {"seconds", Class::price},
                            {"measured", Class::price},
                            {"margin", Class::price},
                            {"edited", Class::price},
                            {"bytesMoved", Class::price},
                            {"bytesNecessary", Class::price},
                            {"flop", Class::price},
                            {"mue", Class::price},
                            {"bound", Class::price},
                            {"registers", Class::claim},
                            {"spillBytes", Class::claim},
                            {"staticSharedBytes", Class::claim},
                            {"runnerUp", Class::claim},
                            {"runnerUpLoss", Class::claim},
                            {"ops", Class::claim}};

/// What stands around a member, for its class and for messages.
struct Holder {
  const Classes *classes = &planClasses;
  std::string text{};  ///< "kernel 'softmax': "

  Class classOf(std::string_view member) const {
    const auto found = classes->find(member);
    return found == classes->end() ? Class::derived : found->second;
  }
};

/// Stands for what is not there; null is a value.
json missing() { return json(json::value_t::discarded); }

bool hasScalarsOnly(const json &value) {
  return std::ranges::none_of(value, [](const json &item) { return item.is_structured(); });
}

/// Whether a difference is told by the items inside; else the values are told as they are.
bool hasComparableItems(const json &written, const json &now) {
  if (written.is_object() && now.is_object()) return true;
  return written.is_array() && now.is_array() && written.size() == now.size() &&
         !hasScalarsOnly(now);
}

class Comparison {
public:
  std::vector<PlanEdit> run(const json &written, const json &now) {
    if (!written.is_object() || !now.is_object()) {
      if (written != now) add("the plan", written, now, Class::derived, Pointer());
      return std::move(edits);
    }
    compareMembers(Holder(), written, now, Pointer(), {"kernels", "tensors"});
    compareNamed("tensors", {.classes = &tensorClasses, .text = "tensor"}, written, now);
    compareNamed("kernels", {.classes = &kernelClasses, .text = "kernel"}, written, now);
    return std::move(edits);
  }

private:
  using Pointer = json::json_pointer;

  static std::string nameOf(const json &item) {
    return item.is_object() && item.contains("name") && item["name"].is_string()
               ? item["name"].get<std::string>()
               : "";
  }
  static json memberOf(const json &object, const std::string &name) {
    return object.contains(name) ? object[name] : missing();
  }
  static const json &listOf(const json &plan, const char *list) {
    static const json none = json::array();
    return plan.contains(list) && plan[list].is_array() ? plan[list] : none;
  }

  /// Kernels and tensors are paired by name, so that one that is inserted or moved does not shift
  /// all edits behind it.
  void compareNamed(const char *list, const Holder &holder, const json &written, const json &now) {
    const json &before = listOf(written, list), &after = listOf(now, list);
    std::map<std::string, size_t> left;
    for (size_t index = 0; index < before.size(); ++index)
      left.emplace(nameOf(before[index]), index);
    for (size_t index = 0; index < after.size(); ++index) {
      const std::string name = nameOf(after[index]);
      const Holder named{.classes = holder.classes, .text = holder.text + " '" + name + "': "};
      const Pointer place = Pointer() / list / index;
      const auto old = left.find(name);
      if (old == left.end())
        addWhole(holder.text + " '" + name + "'", missing(), after[index], place);
      else compareMembers(named, before[old->second], after[index], place, {});
      if (old != left.end()) left.erase(old);
    }
    for (const auto &[name, index] : left)
      addWhole(holder.text + " '" + name + "'", before[index], missing(), Pointer() / list / index);
  }

  void compareMembers(const Holder &holder, const json &written, const json &now, const Pointer &at,
                      const std::set<std::string> &apart) {
    std::set<std::string> members;
    for (const json *object : {&written, &now})
      for (const auto &[name, value] : object->items()) members.insert(name);
    for (const std::string &name : members) {
      if (apart.contains(name)) continue;
      compareValues(holder.text, name, memberOf(written, name), memberOf(now, name),
                    holder.classOf(name), at / name);
    }
  }

  void compareValues(const std::string &holder, const std::string &path, const json &written,
                     const json &now, Class type, const Pointer &at) {
    if (written == now) return;
    if (!hasComparableItems(written, now))
      return add(holder + "member \"" + path + "\"", written, now, type, at);
    if (now.is_array()) {
      for (size_t index = 0; index < now.size(); ++index)
        compareValues(holder, fmt::format("{}[{}]", path, index), written[index], now[index], type,
                      at / index);
      return;
    }
    std::set<std::string> members;
    for (const json *object : {&written, &now})
      for (const auto &[name, value] : object->items()) members.insert(name);
    for (const std::string &name : members)
      compareValues(holder, path + "." + name, memberOf(written, name), memberOf(now, name), type,
                    at / name);
  }

  void add(const std::string &place, const json &written, const json &now, Class type,
           const Pointer &at) {
    edits.push_back({.place = place,
                     .written = written,
                     .now = now,
                     .isDerived = type != Class::choice,
                     .isDerivedAgain = type == Class::again || type == Class::price,
                     .isClaim = type == Class::claim || type == Class::price,
                     .pointer = at});
  }
  void addWhole(const std::string &place, const json &written, const json &now, const Pointer &at) {
    add(place, written, now, Class::derived, at);
    edits.back().isWhole = true;
  }

  std::vector<PlanEdit> edits;
};

/// At most some 60 characters of a value, with "nothing" for what is not there.
std::string shortText(const json &value) {
  constexpr size_t longest = 60;
  if (value.is_discarded() || value.is_null()) return "nothing";
  const std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  return text.size() <= longest ? text : text.substr(0, longest - 3) + "...";
}

bool isHash(const json &value) {
  if (!value.is_string()) return false;
  const std::string &text = value.get_ref<const std::string &>();
  return text.size() == longestHash &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

std::string printManifest(const Manifest &manifest) {
  std::string text = prettyText({{"files", manifest.files}, {"formatVersion", formatVersion}});
  text.resize(text.rfind("\n}"));
  return text + ",\n  \"plan\": " + manifest.plan.dump() + "\n}\n";
}

Manifest parseManifest(std::string_view text, const std::string &where) {
  const json object = parseJson(text, where);
  if (!object.is_object() || object.size() != 3 || !object.contains("formatVersion") ||
      !object.contains("files") || !object.contains("plan"))
    throw Error::badInput(
        "{}: a manifest has the members \"files\", \"formatVersion\" and \"plan\"", where);
  if (object["formatVersion"] != formatVersion)
    throw Error::badInput("{}: member \"formatVersion\" is {}; this weft reads \"{}\"", where,
                          shortText(object["formatVersion"]), formatVersion);
  Manifest manifest{.files = {}, .plan = object["plan"]};
  if (!manifest.plan.is_object())
    throw Error::badInput("{}: member \"plan\" must be an object", where);
  if (!object["files"].is_object())
    throw Error::badInput("{}: member \"files\" must be an object", where);
  for (const auto &[name, hash] : object["files"].items()) {
    if (!isHash(hash))
      throw Error::badInput("{}: member \"files\": {} has no hash of 64 hexadecimal digits", where,
                            shortText(name));
    manifest.files.emplace(name, hash.get<std::string>());
  }
  return manifest;
}

std::vector<PlanEdit> planEdits(const json &written, const json &now) {
  return Comparison().run(written, now);
}

json withoutEditedClaims(json now, const std::vector<PlanEdit> &edits) {
  for (const PlanEdit &edit : edits) {
    if (!edit.isClaim) continue;
    if (!edit.written.is_discarded()) {
      now[edit.pointer] = edit.written;
      continue;
    }
    json &holder = now[edit.pointer.parent_pointer()];  // of a member that weft did not write
    if (holder.is_object()) holder.erase(edit.pointer.back());
  }
  return now;
}

std::string describe(const PlanEdit &edit, std::string_view source) {
  if (edit.isWhole) return edit.place + (edit.now.is_discarded() ? " is gone" : " is not of weft");
  return fmt::format("{} is {}, and {} {}", edit.place, shortText(edit.now), source,
                     shortText(edit.written));
}

}  // namespace weft::runtime
