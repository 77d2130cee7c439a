// Knobs and layouts between plan.json and configurations; see PlanConfiguration.h.
#include "plan/PlanConfiguration.h"

#include "kernel/Error.h"
#include "kernel/GemmProblem.h"
#include "kernel/LibraryGemm.h"
#include "kernel/Nearest.h"
#include "passes/configure/Families.h"

#include <algorithm>
#include <limits>
#include <set>

namespace weft {
namespace {

using nlohmann::json;

json axisName(int axis, const Kernel &kernel) {
  return axis < 0 ? json() : json(kernel.axes.at(size_t(axis)).name);
}

/// Reads members of one knobs object and knows which were asked for, so that a misspelt one is not
/// ignored.
class KnobReader {
public:
  KnobReader(const json &object, const Kernel &kernel, const std::string &where)
      : object(object), kernel(kernel), where(where) {
    if (!object.is_object()) throw Error::badInput("{}: knobs must be a JSON object", where);
  }

  int number(const char *name, int64_t least = 0, int64_t most = 1 << 20) {
    const json &value = member(name);
    const bool isLarge =
        value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(most);  // perhaps of 2^63
    const bool fits = value.is_number_integer() && !isLarge && value.get<int64_t>() >= least;
    if (!fits)
      throw Error::badInput("{}: knob '{}' must be an integer from {} to {}, not {}", where, name,
                            least, most, value.dump());
    return value.get<int>();
  }

  /// Plans leave the member out where it has its usual value.
  int numberOr(const char *name, int usual) {
    return object.contains(name) ? number(name, 1) : usual;
  }

  int axis(const char *name) {
    const json &value = member(name);
    if (value.is_null()) return -1;
    std::vector<std::string> names;
    for (size_t index = 0; index < kernel.axes.size(); ++index) {
      names.push_back(kernel.axes[index].name);
      if (value == names.back()) return int(index);
    }
    throw Error::badInput(
        "{}: knob '{}' must name an axis, not {}{}", where, name, value.dump(),
        nearestAndKnown(value.is_string() ? value.get<std::string>() : "", names));
  }

  ReductionMapping reduction(const char *name) {
    const std::string value = text(name);
    std::vector<std::string> names;
    for (const ReductionMapping mapping : reductionMappings) {
      names.emplace_back(nameOf(mapping));
      if (names.back() == value) return mapping;
    }
    throw Error::badInput("{}: knob '{}': unknown mapping '{}'{}", where, name, value,
                          nearestAndKnown(value, names));
  }

  /// Plans without the member combine by shuffles.
  BlockCombine combine(const char *name) {
    if (!object.contains(name)) return BlockCombine::shuffle;
    const std::string value = text(name);
    std::vector<std::string> names;
    for (const BlockCombine combine : blockCombines) {
      names.emplace_back(nameOf(combine));
      if (names.back() == value) return combine;
    }
    throw Error::badInput("{}: knob '{}': unknown combination '{}'{}", where, name, value,
                          nearestAndKnown(value, names));
  }

  Sm90Schedule schedule(const char *name) {
    const std::string value = text(name);
    std::vector<std::string> names;
    for (const Sm90Schedule schedule : sm90Schedules) {
      names.emplace_back(nameOf(schedule));
      if (names.back() == value) return schedule;
    }
    throw Error::badInput("{}: knob '{}': unknown schedule '{}'{}", where, name, value,
                          nearestAndKnown(value, names));
  }

  std::string text(const char *name) {
    const json &value = member(name);
    if (!value.is_string()) throw Error::badInput("{}: knob '{}' must be a string", where, name);
    return value.get<std::string>();
  }

  void rejectOthers() const {
    const std::vector<std::string> names(read.begin(), read.end());
    for (const auto &[name, value] : object.items())
      if (!read.contains(name))
        throw Error::badInput("{}: unknown knob '{}'{}", where, name, nearestAndKnown(name, names));
  }

private:
  const json &member(const char *name) {
    read.insert(name);
    const auto found = object.find(name);
    if (found == object.end()) throw Error::badInput("{}: knob '{}' is missing", where, name);
    return *found;
  }

  const json &object;
  const Kernel &kernel;
  const std::string &where;
  std::set<std::string> read;
};

Knobs read(KnobReader &reader, const std::string &where) {
  const std::string family = reader.text("family");
  if (family == familyOf(LoopKnobs{}))
    return LoopKnobs{.vectorAxis = reader.axis("vectorAxis"),
                     .vectorWidth = reader.number("vectorWidth"),
                     .laneAxis = reader.axis("laneAxis"),
                     .reduction = reader.reduction("reduction"),
                     .threads = reader.number("threads"),
                     .threadsPerRow = reader.number("threadsPerRow"),
                     .combine = reader.combine("combine"),
                     .blocksPerRow = reader.numberOr("blocksPerRow", 1)};
  if (family == familyOf(TransposeKnobs{}))
    return TransposeKnobs{.tile = reader.number("tile"),
                          .vectorWidth = reader.number("vectorWidth"),
                          .threads = reader.number("threads")};
  if (family == familyOf(FmaGemmKnobs{}))
    return FmaGemmKnobs{.tileM = reader.number("tileM", 1),
                        .tileN = reader.number("tileN", 1),
                        .tileK = reader.number("tileK", 1),
                        .threadM = reader.number("threadM", 1),
                        .threadN = reader.number("threadN", 1)};
  if (family == familyOf(Sm90GemmKnobs{}))
    return Sm90GemmKnobs{.schedule = reader.schedule("schedule"),
                         .tileM = reader.number("tileM"),
                         .tileN = reader.number("tileN"),
                         .stages = reader.number("stages"),
                         .epilogueStages = reader.number("epilogueStages"),
                         .groupM = reader.number("groupM"),
                         .blocks = reader.number("blocks"),
                         .splitK = reader.numberOr("splitK", 1),
                         .multicastB = reader.numberOr("multicastB", 1),
                         .streamK = reader.numberOr("streamK", 0)};
  if (family == familyOf(Sm80GemmKnobs{}))
    return Sm80GemmKnobs{.tileM = reader.number("tileM"),
                         .tileN = reader.number("tileN"),
                         .tileK = reader.number("tileK"),
                         .stages = reader.number("stages"),
                         .warpsM = reader.number("warpsM"),
                         .warpsN = reader.number("warpsN"),
                         .groupM = reader.number("groupM")};
  if (family == familyOf(ViewKnobs{})) return ViewKnobs{};
  if (family == familyOf(LibraryKnobs{})) {
    LibraryKnobs knobs;
    for (const LibraryAttribute &attribute : libraryAttributes())
      knobs.*attribute.member = reader.number(attribute.name, LibraryKnobs{}.*attribute.member,
                                              std::numeric_limits<int>::max());
    return knobs;
  }
  throw Error::badInput("{}: unknown family '{}'{}", where, family,
                        nearestAndKnown(family, {"gemm-sm80", "cublaslt", "gemm-sm90", "loop",
                                                 "gemm-fma", "transpose", "view"}));
}

/// Whether the strides are those of some dense order of the axes.
bool isDense(const PlanTensor &tensor) {
  std::vector<std::pair<int64_t, int64_t>>
      dimensions;  // stride, extent; an extent of 1 may have any stride
  for (size_t index = 0; index < tensor.extents.size(); ++index)
    if (tensor.extents[index] != 1)
      dimensions.emplace_back(tensor.strides.at(index), tensor.extents[index]);
  std::sort(dimensions.begin(), dimensions.end());
  int64_t expected = 1;
  for (const auto &[stride, extent] : dimensions) {
    if (stride != expected) return false;
    expected *= extent;
  }
  return true;
}

bool isLibraryGemm(const Kernel &kernel, const Configuration &configuration) {
  try {
    return libraryRejection(libraryGemm(kernel, configuration)).empty();
  } catch (const Error &) {
    return false;
  }
}

/// Its skeleton takes any strides that make a GEMM and any tile within the limits: more than
/// enumeration offers, parts of tensors too.
bool isTensorCoreGemm(const Kernel &kernel, const Configuration &configuration,
                      const Device &device) {
  const auto *knobs = std::get_if<Sm90GemmKnobs>(&configuration.knobs);
  if (!knobs || !sm90Rejection(kernel, configuration, *knobs, device.sharedMemoryPerBlock).empty())
    return false;
  bool isTaken = false;
  const LayoutConstraints any{.inputs = std::vector<std::optional<Layout>>(kernel.inputs.size()),
                              .outputs = std::vector<std::optional<Layout>>(kernel.outputs.size())};
  forEachConfiguration(kernel, device, any, [&](const Configuration &candidate) {
    isTaken = std::holds_alternative<Sm90GemmKnobs>(candidate.knobs);
    return !isTaken;
  });
  return isTaken;
}

}  // namespace

json toJson(const Knobs &knobs, const Kernel &kernel) {
  json object = std::visit(
      [&](const auto &family) -> json {
        using Family = std::decay_t<decltype(family)>;
        if constexpr (std::is_same_v<Family, LoopKnobs>) {
          json loop = {{"vectorAxis", axisName(family.vectorAxis, kernel)},
                       {"vectorWidth", family.vectorWidth},
                       {"laneAxis", axisName(family.laneAxis, kernel)},
                       {"reduction", nameOf(family.reduction)},
                       {"threads", family.threads},
                       {"threadsPerRow", family.threadsPerRow}};
          if (family.combine != BlockCombine::shuffle) loop["combine"] = nameOf(family.combine);
          if (family.blocksPerRow != 1) loop["blocksPerRow"] = family.blocksPerRow;
          return loop;
        } else if constexpr (std::is_same_v<Family, TransposeKnobs>)
          return {{"tile", family.tile},
                  {"vectorWidth", family.vectorWidth},
                  {"threads", family.threads}};
        else if constexpr (std::is_same_v<Family, FmaGemmKnobs>)
          return {{"tileM", family.tileM},
                  {"tileN", family.tileN},
                  {"tileK", family.tileK},
                  {"threadM", family.threadM},
                  {"threadN", family.threadN}};
        else if constexpr (std::is_same_v<Family, Sm90GemmKnobs>) {
          json sm90 = {{"schedule", nameOf(family.schedule)},
                       {"tileM", family.tileM},
                       {"tileN", family.tileN},
                       {"stages", family.stages},
                       {"epilogueStages", family.epilogueStages},
                       {"groupM", family.groupM},
                       {"blocks", family.blocks}};
          if (family.splitK != 1) sm90["splitK"] = family.splitK;
          if (family.multicastB != 1) sm90["multicastB"] = family.multicastB;
          if (family.streamK != 0) sm90["streamK"] = family.streamK;
          return sm90;
        } else if constexpr (std::is_same_v<Family, Sm80GemmKnobs>)
          return {{"tileM", family.tileM},   {"tileN", family.tileN},   {"tileK", family.tileK},
                  {"stages", family.stages}, {"warpsM", family.warpsM}, {"warpsN", family.warpsN},
                  {"groupM", family.groupM}};
        else if constexpr (std::is_same_v<Family, LibraryKnobs>) {
          json library = json::object();
          for (const LibraryAttribute &attribute : libraryAttributes())
            library[attribute.name] = family.*attribute.member;
          return library;
        } else return json::object();
      },
      knobs);
  object["family"] = familyOf(knobs);
  return object;
}

Knobs knobsFromJson(const json &object, const Kernel &kernel, const std::string &where) {
  KnobReader reader(object, kernel, where);
  const Knobs knobs = read(reader, where);
  reader.rejectOthers();
  return knobs;
}

Legality legality(const Kernel &kernel, const Configuration &configuration, const Device &device) {
  constexpr size_t shown = 3;
  Legality result;
  // Which algorithms a library has, it says itself, at load; parts of tensors, which enumeration
  // does not offer, are no hindrance to it.
  if (std::holds_alternative<LibraryKnobs>(configuration.knobs) &&
      isLibraryGemm(kernel, configuration))
    result.isLegal = true;
  if (isTensorCoreGemm(kernel, configuration, device)) result.isLegal = true;
  LayoutConstraints constraints;
  constraints.inputs.assign(configuration.inputs.begin(), configuration.inputs.end());
  constraints.outputs.assign(configuration.outputs.begin(), configuration.outputs.end());
  if (!result.isLegal)
    forEachConfiguration(kernel, device, constraints, [&](const Configuration &candidate) {
      // Which tiles a plain GEMM takes, its emitter says.
      const bool isPlain = std::holds_alternative<FmaGemmKnobs>(configuration.knobs);
      result.isLegal = isPlain ? std::holds_alternative<FmaGemmKnobs>(candidate.knobs)
                               : candidate.knobs == configuration.knobs;
      if (result.others.size() < shown) result.others.push_back(describe(kernel, candidate.knobs));
      return !result.isLegal;
    });
  return result;
}

Layout layoutOf(const PlanTensor &tensor) {
  Layout layout{.order = tensor.order, .strides = {}, .offset = tensor.offset};
  // Dense strides follow the order, so that editing the order alone is enough; a view's strides are
  // its own.
  if (!isDense(tensor)) layout.strides = tensor.strides;
  return layout;
}

namespace {

/// Plans count offsets from the start of the buffer, configurations of views from the tensor that
/// holds the others.
void countFromWhole(Configuration &configuration) {
  const Layout &whole = configuration.inputs.size() == 1 ? configuration.inputs.front()
                                                         : configuration.outputs.front();
  const int64_t start = whole.offset;
  for (std::vector<Layout> *layouts : {&configuration.inputs, &configuration.outputs})
    for (Layout &layout : *layouts) layout.offset -= start;
}

}  // namespace

Configuration configurationOf(const Plan &plan, const PlanKernel &planKernel,
                              const Kernel &kernel) {
  Configuration configuration{
      .inputs = {},
      .outputs = {},
      .knobs = knobsFromJson(planKernel.knobs, kernel, "kernel '" + planKernel.name + "'")};
  // Only views are about offsets; every other kernel is given the address of element zero.
  const bool isView = std::holds_alternative<ViewKnobs>(configuration.knobs);
  const auto layout = [&](int tensor) {
    Layout result = layoutOf(plan.tensors.at(size_t(tensor)));
    if (!isView) result.offset = 0;
    return result;
  };
  for (const int tensor : planKernel.inputs) configuration.inputs.push_back(layout(tensor));
  for (const int tensor : planKernel.outputs) configuration.outputs.push_back(layout(tensor));
  if (isView) countFromWhole(configuration);
  return configuration;
}

}  // namespace weft
