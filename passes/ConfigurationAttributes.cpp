// One row per knob: its name in text and the field behind it, used both to write and to read.
#include "passes/ConfigurationAttributes.h"

#include "ir/Weft.h"
#include "kernel/Error.h"
#include "passes/Passes.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>

namespace weft {
namespace {

/// Visits the fields of a family's knobs by name: `visit` has integer(name, int&), axis(name,
/// int&), mapping(name, ...), combine(name, ...) and schedule(name, ...).
template <typename Visitor>
void visitKnobs(LoopKnobs &knobs, Visitor &visit) {
  visit.axis("vector_axis", knobs.vectorAxis);
  visit.integer("vector_width", knobs.vectorWidth);
  visit.axis("lane_axis", knobs.laneAxis);
  visit.mapping("reduction", knobs.reduction);
  visit.integer("threads", knobs.threads);
  visit.integer("threads_per_row", knobs.threadsPerRow);
  visit.combine("combine", knobs.combine);
  visit.optional("blocks_per_row", knobs.blocksPerRow, LoopKnobs{}.blocksPerRow);
}
template <typename Visitor>
void visitKnobs(TransposeKnobs &knobs, Visitor &visit) {
  visit.integer("tile", knobs.tile);
  visit.integer("vector_width", knobs.vectorWidth);
  visit.integer("threads", knobs.threads);
}
template <typename Visitor>
void visitKnobs(FmaGemmKnobs &knobs, Visitor &visit) {
  visit.integer("tile_m", knobs.tileM);
  visit.integer("tile_n", knobs.tileN);
  visit.integer("tile_k", knobs.tileK);
  visit.integer("thread_m", knobs.threadM);
  visit.integer("thread_n", knobs.threadN);
}
template <typename Visitor>
void visitKnobs(Sm90GemmKnobs &knobs, Visitor &visit) {
  visit.schedule("schedule", knobs.schedule);
  visit.integer("tile_m", knobs.tileM);
  visit.integer("tile_n", knobs.tileN);
  visit.integer("stages", knobs.stages);
  visit.integer("epilogue_stages", knobs.epilogueStages);
  visit.integer("group_m", knobs.groupM);
  visit.integer("blocks", knobs.blocks);
  visit.optional("split_k", knobs.splitK, 1);
  visit.optional("multicast_b", knobs.multicastB, 1);
  visit.optional("stream_k", knobs.streamK, 0);
}
template <typename Visitor>
void visitKnobs(Sm80GemmKnobs &knobs, Visitor &visit) {
  visit.integer("tile_m", knobs.tileM);
  visit.integer("tile_n", knobs.tileN);
  visit.integer("tile_k", knobs.tileK);
  visit.integer("stages", knobs.stages);
  visit.integer("warps_m", knobs.warpsM);
  visit.integer("warps_n", knobs.warpsN);
  visit.integer("group_m", knobs.groupM);
}
template <typename Visitor>
void visitKnobs(ViewKnobs &, Visitor &) {}
template <typename Visitor>
void visitKnobs(LibraryKnobs &knobs, Visitor &visit) {
  for (const LibraryAttribute &attribute : libraryAttributes())
    visit.integer(llvm::convertToSnakeFromCamelCase(attribute.name), knobs.*attribute.member);
}

class Writer {
public:
  Writer(mlir::MLIRContext *context, const Kernel &kernel) : builder(context), kernel(kernel) {}

  void integer(llvm::StringRef name, int value) { add(name, builder.getI64IntegerAttr(value)); }
  /// Left out where it has its usual value.
  void optional(llvm::StringRef name, int value, int usual) {
    if (value != usual) integer(name, value);
  }
  void axis(llvm::StringRef name, int value) {
    add(name, builder.getStringAttr(value < 0 ? "" : kernel.axes[value].name));
  }
  void mapping(llvm::StringRef name, ReductionMapping value) {
    add(name, builder.getStringAttr(nameOf(value)));
  }
  void combine(llvm::StringRef name, BlockCombine value) {
    if (value != BlockCombine::shuffle) add(name, builder.getStringAttr(nameOf(value)));
  }
  void schedule(llvm::StringRef name, Sm90Schedule value) {
    add(name, builder.getStringAttr(nameOf(value)));
  }
  void add(llvm::StringRef name, mlir::Attribute value) {
    attributes.push_back(builder.getNamedAttr(name, value));
  }
  mlir::DictionaryAttr dictionary() { return builder.getDictionaryAttr(attributes); }

private:
  mlir::Builder builder;
  const Kernel &kernel;
  std::vector<mlir::NamedAttribute> attributes;
};

/// "cooperative, ping-pong, narrow": whatever the list holds.
template <typename Values>
std::string namesOf(const Values &values) {
  std::string names;
  for (const auto value : values)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", nameOf(value));
  return names;
}

class Reader {
public:
  Reader(mlir::DictionaryAttr config, const Kernel &kernel) : config(config), kernel(kernel) {}

  void integer(llvm::StringRef name, int &value) {
    auto attribute = config.getAs<mlir::IntegerAttr>(name);
    if (!attribute) throw missing(name, "an integer");
    value = static_cast<int>(attribute.getInt());
  }
  void optional(llvm::StringRef name, int &value, int usual) {
    value = usual;
    if (config.contains(name)) integer(name, value);
  }
  void axis(llvm::StringRef name, int &value) {
    const std::string wanted = text(name);
    value = -1;
    for (size_t axis = 0; axis < kernel.axes.size(); ++axis)
      if (kernel.axes[axis].name == wanted) value = static_cast<int>(axis);
    if (value < 0 && !wanted.empty())
      throw Error::badInput("kernel '{}': config '{}' names axis '{}', which the kernel has not",
                            kernel.name, name.str(), wanted);
  }
  void mapping(llvm::StringRef name, ReductionMapping &value) {
    const std::string wanted = text(name);
    for (ReductionMapping mapping : reductionMappings)
      if (nameOf(mapping) == wanted) {
        value = mapping;
        return;
      }
    throw Error::badInput("kernel '{}': config '{}' is '{}', not one of {}", kernel.name,
                          name.str(), wanted, namesOf(reductionMappings));
  }
  void combine(llvm::StringRef name, BlockCombine &value) {
    value = BlockCombine::shuffle;
    if (!config.contains(name)) return;
    const std::string wanted = text(name);
    for (BlockCombine combine : blockCombines)
      if (nameOf(combine) == wanted) {
        value = combine;
        return;
      }
    throw Error::badInput("kernel '{}': config '{}' is '{}', not one of {}", kernel.name,
                          name.str(), wanted, namesOf(blockCombines));
  }
  void schedule(llvm::StringRef name, Sm90Schedule &value) {
    const std::string wanted = text(name);
    const auto found = std::find_if(std::begin(sm90Schedules), std::end(sm90Schedules),
                                    [&](Sm90Schedule one) { return nameOf(one) == wanted; });
    if (found == std::end(sm90Schedules))
      throw Error::badInput("kernel '{}': config '{}' is '{}', not one of {}", kernel.name,
                            name.str(), wanted, namesOf(sm90Schedules));
    value = *found;
  }
  std::string text(llvm::StringRef name) {
    auto attribute = config.getAs<mlir::StringAttr>(name);
    if (!attribute) throw missing(name, "a string");
    return attribute.str();
  }

private:
  Error missing(llvm::StringRef name, std::string_view kind) const {
    return Error::badInput("kernel '{}': config lacks '{}', {}", kernel.name, name.str(), kind);
  }

  mlir::DictionaryAttr config;
  const Kernel &kernel;
};

template <typename Family>
Knobs readKnobs(Reader &reader) {
  Family knobs;
  visitKnobs(knobs, reader);
  return knobs;
}

Knobs knobsOf(const Kernel &kernel, mlir::DictionaryAttr config) {
  Reader reader(config, kernel);
  const std::string family = reader.text("family");
  if (family == familyOf(LoopKnobs{})) return readKnobs<LoopKnobs>(reader);
  if (family == familyOf(TransposeKnobs{})) return readKnobs<TransposeKnobs>(reader);
  if (family == familyOf(FmaGemmKnobs{})) return readKnobs<FmaGemmKnobs>(reader);
  if (family == familyOf(ViewKnobs{})) return readKnobs<ViewKnobs>(reader);
  if (family == familyOf(LibraryKnobs{})) return readKnobs<LibraryKnobs>(reader);
  if (family == familyOf(Sm90GemmKnobs{})) return readKnobs<Sm90GemmKnobs>(reader);
  if (family == familyOf(Sm80GemmKnobs{})) return readKnobs<Sm80GemmKnobs>(reader);
  throw Error::badInput("kernel '{}': unknown family '{}'; known: {}, {}, {}, {}, {}, {}, {}",
                        kernel.name, family, familyOf(LoopKnobs{}), familyOf(TransposeKnobs{}),
                        familyOf(FmaGemmKnobs{}), familyOf(ViewKnobs{}), familyOf(LibraryKnobs{}),
                        familyOf(Sm90GemmKnobs{}), familyOf(Sm80GemmKnobs{}));
}

}  // namespace

mlir::DictionaryAttr knobsAttribute(mlir::MLIRContext *context, const Kernel &kernel,
                                    const Knobs &knobs) {
  Writer writer(context, kernel);
  writer.add("family", mlir::StringAttr::get(context, familyOf(knobs)));
  std::visit([&](auto family) { visitKnobs(family, writer); }, knobs);
  return writer.dictionary();
}

void setConfiguration(mlir::Operation *kernelOp, const Kernel &kernel,
                      const Configuration &configuration) {
  mlir::MLIRContext *context = kernelOp->getContext();
  const auto attributes = [&](const std::vector<Layout> &layouts) {
    std::vector<LayoutAttr> list;
    for (const Layout &layout : layouts) list.push_back(LayoutAttr::get(context, layout));
    return list;
  };
  auto op = mlir::cast<KernelOp>(kernelOp);
  op.setLayoutsAttr(LayoutsAttr::get(context, attributes(configuration.inputs),
                                     attributes(configuration.outputs)));
  op.setConfigAttr(knobsAttribute(context, kernel, configuration.knobs));
}

Configuration configurationOf(mlir::Operation *kernelOp) {
  auto op = mlir::cast<KernelOp>(kernelOp);
  const Kernel kernel = toKernel({kernelOp}, op.getName().str());
  if (!op.getLayoutsAttr() || !op.getConfigAttr())
    throw Error::badInput("kernel '{}' has no {}: it was fused but not configured", kernel.name,
                          op.getLayoutsAttr() ? "config" : "layouts");
  Configuration configuration;
  for (LayoutAttr layout : op.getLayoutsAttr().getInputs())
    configuration.inputs.push_back(layout.toLayout());
  for (LayoutAttr layout : op.getLayoutsAttr().getOutputs())
    configuration.outputs.push_back(layout.toLayout());
  if (configuration.inputs.size() != kernel.inputs.size() ||
      configuration.outputs.size() != kernel.outputs.size())
    throw Error::badInput("kernel '{}' has {} inputs and {} outputs, its layouts are for {} and {}",
                          kernel.name, kernel.inputs.size(), kernel.outputs.size(),
                          configuration.inputs.size(), configuration.outputs.size());
  configuration.knobs = knobsOf(kernel, op.getConfigAttr());
  return configuration;
}

}  // namespace weft
