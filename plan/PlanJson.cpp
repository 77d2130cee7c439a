// The plan as JSON. Each struct names its members once, in members(); writer and reader both walk
// that list, so that a new member is one line here. The reader is strict: missing, ill-typed and
// unknown members are errors.
#include "codegen/families/library/LibraryKnobs.h"
#include "plan/Plan.h"

#include "codegen/families/library/GemmFields.h"
#include "kernel/Error.h"
#include "kernel/Nearest.h"
#include "kernel/PlainText.h"
#include "passes/configure/Cost.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <iterator>
#include <limits>
#include <set>
#include <span>
#include <type_traits>
#include <utility>

namespace weft {

using nlohmann::json;

namespace {

/// After a member that plans of this format were written without; it then is what a new plan has. A
/// rare one is still written only where it is something else.
enum class Presence : uint8_t { always, mayLack, rare };
using enum Presence;

template <typename Type, typename Plain>
concept Is = std::same_as<std::remove_const_t<Type>, Plain>;

void members(auto &&visit, Is<PlanTensor> auto &tensor) {
  visit("name", tensor.name);
  visit("logical", tensor.logical);
  visit("dtype", tensor.dtype);
  visit("axes", tensor.axes);
  visit("extents", tensor.extents);
  visit("order", tensor.order);
  visit("strides", tensor.strides);
  visit("role", tensor.role);
  visit("buffer", tensor.buffer);
  visit("offset", tensor.offset);
  visit("bytes", tensor.bytes);
  visit("scale", tensor.scale);
  visit("positive", tensor.positive, rare);
  visit("range", tensor.range);
  visit("countsTokens", tensor.countsTokens, rare);
  visit("pagePositions", tensor.pagePositions, rare);
  visit("initial", tensor.initial, rare);
  visit("masterOf", tensor.masterOf, rare);
  visit("nextOf", tensor.nextOf, rare);
  visit("training", tensor.training, rare);
  visit("layer", tensor.layer, rare);
  visit("chunkOf", tensor.chunkOf, rare);
}

void members(auto &&visit, Is<TensorMap> auto &map) {
  visit("dtype", map.dtype);
  visit("extents", map.extents);
  visit("strides", map.strides);
  visit("box", map.box);
  visit("swizzleBytes", map.swizzleBytes);
  visit("shift", map.shift, rare);
}

void members(auto &&visit, Is<PlanParameter> auto &parameter) {
  visit("kind", parameter.kind);
  visit("name", parameter.name);
  visit("type", parameter.type);
  visit("tensor", parameter.tensor);
  visit("value", parameter.value);
  visit("map", parameter.map);
}

void members(auto &&visit, Is<StridedBatchedGemm> auto &shape) {
  for (const auto &[name, member] : gemmFields) visit(name, shape.*member);
}

void members(auto &&visit, Is<GroupStrides> auto &strides) {
  visit("batch", strides.batch);
  visit("m", strides.m);
  visit("n", strides.n);
}

void members(auto &&visit, Is<PlanLibraryEpilogue> auto &epilogue) {
  visit("kind", epilogue.kind);
  visit("beta", epilogue.beta);
  visit("residual", epilogue.residual);
  visit("auxiliary", epilogue.auxiliary);
  visit("bias", epilogue.bias);
  visit("gradient", epilogue.gradient);
  visit("residualStrides", epilogue.residualStrides);
  visit("auxiliaryStrides", epilogue.auxiliaryStrides);
}

void members(auto &&visit, Is<PlanLibraryGemm> auto &gemm) {
  visit("a", gemm.a);
  visit("b", gemm.b);
  visit("c", gemm.c);
  visit("dtype", gemm.types);
  visit("alpha", gemm.alpha);
  visit("shape", gemm.shape);
  visit("epilogue", gemm.epilogue);
}

void members(auto &&visit, Is<PlanChunk> auto &chunk) {
  visit("region", chunk.region);
  visit("axis", chunk.axis);
  visit("start", chunk.start);
  visit("size", chunk.size);
  visit("whole", chunk.whole, mayLack);
  visit("isSlice", chunk.isSlice, rare);
  visit("deviceShare", chunk.deviceShare, rare);
}

void members(auto &&visit, Is<PlanKernel> auto &kernel) {
  visit("name", kernel.name);
  visit("label", kernel.label, mayLack);
  visit("layer", kernel.layer, rare);
  visit("entry", kernel.entry);
  visit("family", kernel.family);
  visit("familyVersion", kernel.familyVersion);
  visit("ops", kernel.ops);
  visit("chunk", kernel.chunk);
  visit("inputs", kernel.inputs);
  visit("outputs", kernel.outputs);
  visit("inputLayouts", kernel.inputLayouts);
  visit("outputLayouts", kernel.outputLayouts);
  visit("configuration", kernel.configuration);
  visit("knobs", kernel.knobs);
  visit("key", kernel.key);
  visit("source", kernel.source);
  visit("cubin", kernel.cubin);
  visit("grid", kernel.grid);
  visit("block", kernel.block);
  visit("sharedBytes", kernel.sharedBytes);
  visit("startsEarly", kernel.startsEarly, rare);
  visit("parameters", kernel.parameters);
  visit("library", kernel.library);
  visit("workspaceBuffer", kernel.workspaceBuffer);
  visit("workspaceBytes", kernel.workspaceBytes, rare);
  visit("after", kernel.after);
  visit("seconds", kernel.seconds);
  visit("measured", kernel.measured);
  visit("margin", kernel.margin, rare);
  visit("edited", kernel.edited, rare);
  visit("bytesMoved", kernel.bytesMoved);
  visit("bytesNecessary", kernel.bytesNecessary);
  visit("flop", kernel.flop);
  visit("mue", kernel.mue);
  visit("bound", kernel.bound);
  visit("registers", kernel.registers);
  visit("spillBytes", kernel.spillBytes);
  visit("staticSharedBytes", kernel.staticSharedBytes);
  visit("runnerUp", kernel.runnerUp);
  visit("runnerUpLoss", kernel.runnerUpLoss);
  visit("textHash", kernel.textHash);
}

void members(auto &&visit, Is<PlanMeasurement> auto &measurement) {
  visit("seconds", measurement.seconds);
  visit("spread", measurement.spread);
  visit("ratio", measurement.ratio);
  visit("gpu", measurement.gpu);
  visit("protocol", measurement.protocol);
}

void members(auto &&visit, Is<BufferAllocation> auto &allocation) {
  visit("buffer", allocation.buffer);
  visit("in", allocation.in);
  visit("offset", allocation.offset);
}

void members(auto &&visit, Is<PlanNote> auto &note) {
  visit("kind", note.kind);
  visit("text", note.text);
  visit("code", note.code, rare);
  visit("kernel", note.kernel, rare);
}

void members(auto &&visit, Is<Plan> auto &plan) {
  visit("formatVersion", plan.formatVersion);
  visit("model", plan.model);
  visit("variant", plan.variant);
  visit("rewrites", plan.rewrites);
  visit("dims", plan.dims);
  visit("dtype", plan.dtype);
  visit("device", plan.device);
  visit("target", plan.target);
  visit("costModel", plan.costModel);
  visit("prices", plan.prices, rare);
  visit("predictedSeconds", plan.predictedSeconds);
  visit("lowerBoundSeconds", plan.lowerBoundSeconds);
  visit("measurement", plan.measurement);
  visit("workspaceBytes", plan.workspaceBytes);
  visit("tensors", plan.tensors);
  visit("memoryPlan", plan.memoryPlan);
  visit("kernels", plan.kernels);
  visit("entryPoints", plan.entryPoints);
  visit("concurrent", plan.concurrent, mayLack);
  visit("notes", plan.notes);
}

/// The names of an enum's values, in their order.
template <typename Enum>
constexpr std::array<std::string_view, 0> namesOf{};
template <>
constexpr auto namesOf<TensorRole> = tensorRoleNames;
template <>
constexpr auto namesOf<ParameterKind> = parameterKindNames;
template <>
constexpr std::array<std::string_view, 3> namesOf<EntryPointKind>{nameOf(EntryPointKind::forward),
                                                                  nameOf(EntryPointKind::backward),
                                                                  nameOf(EntryPointKind::update)};
template <>
constexpr std::array<std::string_view, 12> namesOf<NoteKind>{
    "packing", "copy", "chunks", "rewrite",    "prices",      "searchLimits",
    "stale",   "edit", "build",  "serialized", "determinism", "unknown"};

template <typename Type>
concept NamedEnum = std::is_enum_v<Type> && !namesOf<Type>.empty();

template <typename Type>
concept Described = requires(Type &value) {
  members([](std::string_view, auto &, Presence = always) {}, value);
};

// --- writing
// -------------------------------------------------------------------------------------------------

template <typename Type>
json write(const Type &value);
template <Described Type>
json write(const Type &value);
template <typename Item>
json write(const std::vector<Item> &items);
template <NamedEnum Enum, typename Item>
json write(const std::map<Enum, Item> &items);
template <typename Item>
json write(const std::optional<Item> &item);
json write(const DType &type);
json write(const GemmTypes &types);
json write(const LibraryEpilogue &epilogue);
json write(const InitialValue &value);
json write(const ParameterType &type);
json write(const NamedLayout &layout);
json write(const PlanKnobs &knobs);
json write(const PriceSource &source);
json write(const Rewrite &rewrite);
json write(const TrainingRole &role);
json write(const BufferHost &);
json write(const std::optional<Bound> &bound);
template <NamedEnum Enum>
json write(const Enum &value);

template <typename Type>
json write(const Type &value) {
  return value;
}
json write(const DType &type) { return nameOf(type); }
json write(const FamilyId &family) { return family.name(); }
json write(const GemmTypes &types) { return nameOf(types); }
json write(const LibraryEpilogue &epilogue) { return traitsOf(epilogue).name; }
json write(const InitialValue &value) { return text(value); }
json write(const ParameterType &type) { return text(type); }
json write(const NamedLayout &layout) { return shortText(layout); }
json write(const PlanKnobs &knobs) { return toJson(knobs); }
json write(const PriceSource &source) { return source.text(); }
json write(const Rewrite &rewrite) { return text(rewrite); }
json write(const TrainingRole &role) { return nameOf(role); }
constexpr std::string_view workspaceName = "workspace";
/// A result is named by toJson(), which knows the tensors.
json write(const BufferHost &) { return workspaceName; }
json write(const std::optional<Bound> &bound) {
  return bound ? nameOf(*bound) : std::string_view();
}
template <NamedEnum Enum>
json write(const Enum &value) {
  return namesOf<Enum>.at(size_t(value));
}
template <Described Type>
json write(const Type &value) {
  json object = json::object();
  members(
      [&]<typename Member>(const char *name, const Member &member, Presence presence = always) {
        if (presence != rare || !(member == Member())) object[name] = write(member);
      },
      value);
  return object;
}
template <typename Item>
json write(const std::vector<Item> &items) {
  json array = json::array();
  for (const Item &item : items) array.push_back(write(item));
  return array;
}

template <NamedEnum Enum, typename Item>
json write(const std::map<Enum, Item> &items) {
  json object = json::object();
  for (const auto &[name, item] : items) object[namesOf<Enum>.at(size_t(name))] = write(item);
  return object;
}

template <typename Item>
json write(const std::optional<Item> &item) {
  return item ? write(*item) : json();
}

// --- reading
// -------------------------------------------------------------------------------------------------

/// Where a value stands, for messages: "plan.json: kernels[3].grid".
struct Place {
  std::string file, path;
  std::string owner{};                         ///< the name of the tensor or kernel that it is in
  const Plan *plan = nullptr;                  ///< that is read, with the members before this one
  Place member(std::string_view name) const {  // of every member that is read: not by fmt::format
    return {file, path.empty() ? std::string(name) : (path + '.').append(name), owner, plan};
  }
  Place item(size_t index) const {
    return {file, path + '[' + std::to_string(index) + ']', owner, plan};
  }
  [[noreturn]] void fail(std::string_view expected, const json &found) const {
    throw Error::badInput("{}: member \"{}\" must be {}, not {} ({})", file, path, expected,
                          found.type_name(), found.dump().substr(0, 40));
  }
  /// "plan.json: tensors[2]: role "guest" is none of argument, parameter, result, temporary".
  [[noreturn]] void failName(std::string_view name, std::span<const std::string_view> known) const {
    const size_t dot = path.rfind('.');
    throw Error::badInput("{}: {}: {} \"{}\" is none of {}{}", file, path.substr(0, dot),
                          path.substr(dot + 1), name, fmt::join(known, ", "), ofOwner());
  }
  /// Of text that is none of a language's words.
  [[noreturn]] void failText(std::string_view expected, const json &found) const {
    throw Error::badInput("{}: member \"{}\" must be {}, not {} ({}){}", file, path, expected,
                          found.type_name(), found.dump().substr(0, 40), ofOwner());
  }
  std::string ofOwner() const {
    return owner.empty() ? "" : fmt::format(" ('{}')", oneLine(owner));
  }
};

/// Names, ops and notes stand in kernels, tables and messages, where a control character would end
/// a line or a comment.
bool hasControls(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}
bool hasControls(const json &value) {
  if (value.is_string()) return hasControls(std::string_view(value.get_ref<const std::string &>()));
  if (!value.is_structured()) return false;
  for (const auto &[name, item] : value.items())
    if (hasControls(std::string_view(name)) || hasControls(item)) return true;
  return false;
}

void read(const json &from, std::string &to, const Place &place) {
  if (!from.is_string()) place.fail("a string", from);
  if (hasControls(from)) place.fail("text without control characters", from);
  to = from.get<std::string>();
}
void read(const json &from, bool &to, const Place &place) {
  if (!from.is_boolean()) place.fail("true or false", from);
  to = from.get<bool>();
}
void read(const json &from, double &to, const Place &place) {
  if (!from.is_number()) place.fail("a number", from);
  to = from.get<double>();
}
template <std::signed_integral Integer>
void read(const json &from, Integer &to, const Place &place) {
  const bool fits = from.is_number_unsigned()
                        ? std::in_range<Integer>(from.get<uint64_t>())
                        : from.is_number_integer() && std::in_range<Integer>(from.get<int64_t>());
  if (!fits) place.fail(sizeof(Integer) == 8 ? "a 64-bit integer" : "a 32-bit integer", from);
  to = from.get<Integer>();
}
void read(const json &from, DType &to, const Place &place) {
  const auto type = from.is_string() ? parseDType(from.get<std::string>()) : std::nullopt;
  if (!type) place.failText("an element type", from);
  to = *type;
}
void read(const json &from, GemmTypes &to, const Place &place) {
  const auto types = from.is_string() ? parseGemmTypes(from.get<std::string>()) : std::nullopt;
  if (!types) place.failText("an element type, or three as \"f8e4m3,f8e5m2->f16\"", from);
  to = *types;
}
void read(const json &from, PlanOp &to, const Place &place) {
  std::string line;
  read(from, line, place);
  const std::optional<PlanOp> op = parsePlanOp(line);
  if (!op) place.failText("an op as \"%2 = relu %1\"", from);
  to = *op;
}
void read(const json &from, InitialValue &to, const Place &place) {
  const auto value = from.is_string() ? parseInitialValue(from.get<std::string>()) : std::nullopt;
  if (!value) place.failText(initialValueForms, from);
  to = *value;
}
void read(const json &from, ParameterType &to, const Place &place) {
  std::string spelling;
  read(from, spelling, place);
  to = parseParameterType(spelling);
}
/// Of axes with longer names as nameAxes() has it.
void read(const json &from, NamedLayout &to, const Place &place) {
  std::string text;
  read(from, text, place);
  if (text == shortText({})) return void(to = {});
  const std::optional<NamedLayout> layout = parseNamedLayout(text);
  if (!layout) place.failText("a layout as \"bju\" or \"bju:4096\"", from);
  to = *layout;
}
void read(const json &from, Rewrite &to, const Place &place) {
  std::string words;
  read(from, words, place);
  to = parseRewrite(words);
}
void read(const json &from, PlanKnobs &to, const Place &place) {
  if (hasControls(from)) place.fail("free of control characters", from);
  to = planKnobsFromJson(from, fmt::format("{}: kernel '{}'", place.file, place.owner));
}
void read(const json &from, BufferHost &to, const Place &place) {
  std::string name;
  read(from, name, place);
  if (name == workspaceName) return;
  const auto found = std::ranges::find(place.plan->tensors, name, &PlanTensor::name);
  if (found == place.plan->tensors.end())
    throw Error::badInput(
        "{}: {}: \"{}\" is neither \"workspace\" nor a result that is alone in its buffer",
        place.file, place.path.substr(0, place.path.rfind('.')), oneLine(name));
  to.result = int(found - place.plan->tensors.begin());
}
void read(const json &from, std::optional<Bound> &to, const Place &place) {
  constexpr std::array known = {Bound::memory, Bound::tensor, Bound::fma, Bound::launch};
  std::string name;
  read(from, name, place);
  if (name.empty()) return to.reset();
  std::vector<std::string_view> names;
  for (const Bound bound : known)
    if (names.push_back(nameOf(bound)); names.back() == name) return void(to = bound);
  place.failName(name, names);
}
void read(const json &from, PriceSource &to, const Place &place) {
  std::string text;
  read(from, text, place);
  to = PriceSource::of(text);
}
void read(const json &from, TrainingRole &to, const Place &place) {
  std::string name;
  read(from, name, place);
  const auto role = trainingRoleNamed(name);
  if (role) return void(to = *role);
  std::vector<std::string_view> known;
  for (const auto &[value, word] : trainingRoleWords)
    if (!word.empty()) known.push_back(word);
  place.failName(name, known);
}
void read(const json &from, LibraryEpilogue &to, const Place &place) {
  std::string name;
  read(from, name, place);
  const auto epilogue = parseLibraryEpilogue(name);
  if (epilogue) return void(to = *epilogue);
  std::vector<std::string_view> known;
  for (const LibraryEpilogueTraits &traits : libraryEpilogues()) known.push_back(traits.name);
  place.failName(name, known);
}

void read(const json &from, FamilyId &to, const Place &place) {
  std::string name;
  read(from, name, place);
  const Family *family = familyNamed(name);
  const std::vector<std::string> names = familyNames();
  if (!family) place.failName(name, std::vector<std::string_view>(names.begin(), names.end()));
  to = *family;
}

template <NamedEnum Enum>
void read(const json &from, Enum &to, const Place &place) {
  std::string name;
  read(from, name, place);
  const auto known = std::ranges::find(namesOf<Enum>, name);
  if (known == namesOf<Enum>.end()) place.failName(name, namesOf<Enum>);
  to = Enum(known - namesOf<Enum>.begin());
}

template <Described Type>
void read(const json &from, Type &to, const Place &place);
void read(const json &from, PlanNote &to, const Place &place);
template <typename Item>
void read(const json &from, std::vector<Item> &to, const Place &place);
template <typename Item, size_t count>
void read(const json &from, std::array<Item, count> &to, const Place &place);
template <typename Item>
void read(const json &from, std::map<std::string, Item> &to, const Place &place);
template <NamedEnum Enum, typename Item>
void read(const json &from, std::map<Enum, Item> &to, const Place &place);
template <typename Item>
void read(const json &from, std::optional<Item> &to, const Place &place);

/// Members that plans once had, and why they have none now.
constexpr std::pair<std::string_view, std::string_view> retired[] = {
    {"verifiedOn",
     "; no plan claims what was verified: 'weft verify' records it beside the kernel cache. Remove "
     "the member, or compile again"}};

template <Described Type>
void read(const json &from, Type &to, const Place &where) {
  if (!from.is_object()) where.fail("an object", from);
  Place place = where;
  if (place.owner.empty() && from.contains("name") && from["name"].is_string())
    place.owner = from["name"].get<std::string>();
  std::set<std::string> unknown;
  for (const auto &[name, ignored] : from.items()) unknown.insert(name);
  members(
      [&](const char *name, auto &member, Presence presence = always) {
        if (unknown.erase(name) == 0) {
          if (presence != always) return;
          throw Error::badInput("{}: member \"{}\" is missing", place.file,
                                place.member(name).path);
        }
        read(from[name], member, place.member(name));
      },
      to);
  if (unknown.empty()) return;
  const auto *known = std::ranges::find(retired, *unknown.begin(),
                                        &std::pair<std::string_view, std::string_view>::first);
  throw Error::badInput("{}: member \"{}\" is not known to plan format {}{}", place.file,
                        oneLine(place.member(*unknown.begin()).path), Plan().formatVersion,
                        known == std::end(retired) ? "" : known->second);
}
template <typename Item>
void read(const json &from, std::vector<Item> &to, const Place &place) {
  if (!from.is_array()) place.fail("an array", from);
  to.assign(from.size(), Item());
  for (size_t i = 0; i < from.size(); ++i) read(from[i], to[i], place.item(i));
}
template <typename Item, size_t count>
void read(const json &from, std::array<Item, count> &to, const Place &place) {
  if (!from.is_array() || from.size() != count)
    place.fail(fmt::format("an array of {}", count), from);
  for (size_t i = 0; i < count; ++i) read(from[i], to[i], place.item(i));
}
template <typename Item>
void read(const json &from, std::map<std::string, Item> &to, const Place &place) {
  if (!from.is_object()) place.fail("an object", from);
  for (const auto &[name, value] : from.items()) {
    if (hasControls(std::string_view(name)))
      place.fail("an object of names without control characters", from);
    read(value, to[name], place.member(name));
  }
}
template <NamedEnum Enum, typename Item>
void read(const json &from, std::map<Enum, Item> &to, const Place &place) {
  if (!from.is_object()) place.fail("an object", from);
  for (const auto &[name, value] : from.items()) {
    const auto known = std::ranges::find(namesOf<Enum>, name);
    if (known == namesOf<Enum>.end())
      throw Error::badInput("{}: {} \"{}\" is none of {}", place.file, place.path, oneLine(name),
                            fmt::join(namesOf<Enum>, ", "));
    read(value, to[Enum(known - namesOf<Enum>.begin())], place.member(name));
  }
}
template <typename Item>
void read(const json &from, std::optional<Item> &to, const Place &place) {
  if (from.is_null()) return to.reset();
  read(from, to.emplace(), place);
}

/// How plans of this format said before notes had kinds what a note is about.
struct OldWording {
  std::string_view words;
  NoteKind kind;
};
constexpr OldWording oldWordings[] = {{" is packed at load as ", NoteKind::packing},
                                      {" is a copy: ", NoteKind::copy},
                                      {", one at a time; in chunks run ", NoteKind::chunks},
                                      {" stays whole: ", NoteKind::rewrite},
                                      {" draws no mask: ", NoteKind::rewrite},
                                      {": stale, its time is of an older ", NoteKind::stale},
                                      {" was edited by hand", NoteKind::edit},
                                      {" includes what was edited by hand", NoteKind::edit},
                                      {"cubins: ", NoteKind::build}};

PlanNote noteOfOldPlan(const std::string &text) {
  for (const auto &[words, kind] : oldWordings) {
    const size_t at = text.find(words);
    if (at == std::string::npos || (kind == NoteKind::build && at > 0)) continue;
    constexpr size_t codeLength = 4;  // "V001"
    return {.kind = kind,
            .text = text,
            .code = kind == NoteKind::copy ? text.substr(at + words.size(), codeLength) : ""};
  }
  return {.kind = NoteKind::unknown, .text = text};
}

/// Plans of this format once said what a chunk is of by its name alone: that of the whole, and what
/// chunkSuffix() adds.
void nameWholesOfOldPlan(Plan &plan) {
  const auto wholeOf = [](const std::string &name, const std::string &suffix) {
    return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : name;
  };
  for (PlanKernel &kernel : plan.kernels) {
    if (!kernel.chunk || !kernel.chunk->whole.empty()) continue;
    const std::string suffix = chunkSuffix(kernel.chunk->axis, kernel.chunk->start);
    kernel.chunk->whole = wholeOf(kernel.name, suffix);
    for (const std::vector<int> *operands : {&kernel.inputs, &kernel.outputs})
      for (const int index : *operands) {
        if (index < 0 || size_t(index) >= plan.tensors.size()) continue;  // verify() says so
        PlanTensor &tensor = plan.tensors[size_t(index)];
        if (const std::string whole = wholeOf(tensor.name, suffix); whole != tensor.name)
          tensor.chunkOf = whole;
      }
  }
}

void read(const json &from, PlanNote &to, const Place &place) {
  if (!from.is_string()) return read<PlanNote>(from, to, place);
  std::string text;
  read(from, text, place);
  to = noteOfOldPlan(text);
}

}  // namespace

std::string_view nameOf(NoteKind kind) { return namesOf<NoteKind>.at(size_t(kind)); }

std::vector<std::string> textsOf(const std::vector<PlanNote> &notes) {
  std::vector<std::string> texts;
  for (const PlanNote &note : notes) texts.push_back(note.text);
  return texts;
}

bool isView(const PlanKernel &kernel) { return kernel.source.empty() && !kernel.library; }

bool areAlikeInLayers(const PlanKernel &a, const PlanKernel &b) {
  return a.layer > 0 && b.layer > 0 && a.layer != b.layer && a.key == b.key &&
         a.family == b.family && a.knobs == b.knobs && a.configuration == b.configuration &&
         a.inputLayouts == b.inputLayouts && a.outputLayouts == b.outputLayouts &&
         a.bytesNecessary == b.bytesNecessary && a.flop == b.flop;
}

TimeSource timeSourceOf(const PlanKernel &kernel) {
  if (isView(kernel)) return TimeSource::none;
  if (kernel.isUntold) return TimeSource::unknown;
  if (kernel.edited) return TimeSource::edited;
  return kernel.measured ? TimeSource::measured : TimeSource::estimated;
}

const char *nameOf(TimeSource source) {
  switch (source) {
    case TimeSource::none: return "view";
    case TimeSource::estimated: return "estimated";
    case TimeSource::measured: return "measured";
    case TimeSource::edited: return "edited";
    case TimeSource::unknown: return "unknown";
  }
  throw Error::checkFailed("unknown source of a time {}", int(source));
}

std::string_view boundName(const PlanKernel &kernel) {
  return kernel.bound ? nameOf(*kernel.bound) : std::string_view();
}

const std::string &wholeName(const PlanKernel &kernel) {
  return kernel.chunk ? kernel.chunk->whole : kernel.name;
}

std::string chunkSuffix(const std::string &axis, int64_t start) {
  return fmt::format("__{}{}", axis, start);
}

LibraryKnobs libraryKnobs(const PlanKernel &kernel) {
  if (const auto *knobs = kernel.knobs.knobs.getIf<LibraryKnobs>()) return *knobs;
  throw Error::badInput("kernel '{}': its knobs are of no library GEMM, but {}", kernel.name,
                        toJson(kernel.knobs).dump());
}

LibraryGemm libraryGemm(const PlanLibraryGemm &gemm) {
  LibraryGemm result{.shape = gemm.shape, .alpha = gemm.alpha};
  result.setTypes(gemm.types);
  if (!gemm.epilogue) return result;
  result.epilogue = gemm.epilogue->kind;
  result.beta = gemm.epilogue->beta;
  result.residual = gemm.epilogue->residualStrides;
  result.auxiliary = gemm.epilogue->auxiliaryStrides;
  return result;
}

json toJson(const Plan &plan) {
  json text = write(plan);
  for (size_t index = 0; index < plan.memoryPlan.size(); ++index)
    if (const BufferHost &host = plan.memoryPlan[index].in; !host.isWorkspace())
      text["memoryPlan"][index]["in"] = plan.tensors.at(size_t(host.result)).name;
  return text;
}

/// A layout of one axis stands there without a comma: by its tensor, whether that is one axis with
/// a long name or several letters.
static void nameAxes(Plan &plan) {
  const auto name = [&](const std::vector<int> &tensors, std::vector<NamedLayout> &layouts) {
    for (size_t n = 0; n < std::min(tensors.size(), layouts.size()); ++n) {
      if (tensors[n] < 0 || size_t(tensors[n]) >= plan.tensors.size()) continue;
      const std::vector<std::string> &axes = plan.tensors[size_t(tensors[n])].axes;
      std::vector<std::string> &order = layouts[n].order;
      if (axes.size() == 1 && joinAxes(order) == axes.front()) order = axes;
    }
  };
  for (PlanKernel &kernel : plan.kernels)
    name(kernel.inputs, kernel.inputLayouts), name(kernel.outputs, kernel.outputLayouts);
}

Plan planFromJson(const json &from, const std::string &where) {
  // Asked first: a plan of another version would otherwise fail at the first member that differs.
  Plan plan;
  const Place place{where, "", "", &plan};
  if (from.is_object() && from.contains("formatVersion") &&
      from["formatVersion"] != Plan().formatVersion)
    throw Error::badInput("{}: member \"formatVersion\" is {}; this weft reads \"{}\"", where,
                          from["formatVersion"].dump(), Plan().formatVersion);
  if (!from.is_object())
    throw Error::badInput("{}: a plan must be an object, not {}", where, from.type_name());
  read(from, plan, place);
  nameWholesOfOldPlan(plan);
  nameAxes(plan);
  return plan;
}

}  // namespace weft
