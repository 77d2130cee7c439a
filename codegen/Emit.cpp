// Kernel and configuration to CUDA text: lowered twice with two tables of names, canonical for the
// hashed text and the model's own for people, and the header comment that says what the kernel is
// for.
#include "codegen/Emit.h"

#include "codegen/ConstantChecks.h"
#include "codegen/Names.h"
#include "codegen/Program.h"
#include "codegen/targets/Targets.h"
#include "kernel/Attributes.h"
#include "kernel/BlockMask.h"
#include "kernel/Error.h"
#include "kernel/Family.h"
#include "kernel/Format.h"
#include "kernel/LaunchCheck.h"
#include "kernel/PlainText.h"
#include "kernel/StridedBatchedGemm.h"

#include <algorithm>

namespace weft::embedded {
extern const std::map<std::string, std::string_view> deviceHeaderFiles;
}

namespace weft::codegen {
namespace {

/// Names the header of 8-bit floats where a tensor has them: all families convert elements by
/// functions that it overloads.
void addFloat8(const Kernel &kernel, Program &program) {
  const auto holds = [&](ValueId value) { return isFloat8(kernel.values[size_t(value)].dtype); };
  if (std::ranges::none_of(kernel.inputs, holds) && std::ranges::none_of(kernel.outputs, holds))
    return;
  program.headers.push_back("weft/float8.cuh");
  std::ranges::sort(program.headers);
}

/// The launch's workspace, which the family alone sizes. The program takes its address where there
/// is one, and only there.
void addWorkspace(const Kernel &kernel, const Configuration &configuration, Program &program) {
  program.launch.workspaceBytes = workspaceBytesOf(kernel, configuration);
  const auto taken =
      std::ranges::count(program.parameters, Parameter::Kind::workspace, &Parameter::kind);
  if (taken != (program.launch.workspaceBytes > 0))
    throw Error::checkFailed(
        "kernel '{}': its program has {} parameters of kind workspace, its family {} asks for {} "
        "bytes",
        kernel.name, taken, configuration.knobs.family(), program.launch.workspaceBytes);
}

Program lower(const Kernel &kernel, const Configuration &configuration,
              std::string_view architecture) {
  if (std::ranges::find(targets(), architecture) == targets().end())
    throw Error::unsupported("target '{}': kernels are emitted for {}", architecture,
                             fmt::join(targets(), ", "));
  if (configuration.inputs.size() != kernel.inputs.size() ||
      configuration.outputs.size() != kernel.outputs.size())
    throw Error::checkFailed(
        "kernel '{}' has {} inputs and {} outputs, its configuration {} and {}", kernel.name,
        kernel.inputs.size(), kernel.outputs.size(), configuration.inputs.size(),
        configuration.outputs.size());
  const Family &family = configuration.knobs.family();
  if (!family.hasText())
    throw Error::unsupported("kernel '{}' is of the family {}: it has no program of ours",
                             kernel.name, family);
  if (family.targetRejection)
    if (const std::string reason =
            family.targetRejection(kernel, configuration.knobs, architecture);
        !reason.empty())
      throw Error::unsupported("kernel '{}': target '{}' {}", kernel.name, architecture, reason);
  Program program = family.lower(kernel, configuration);
  addWorkspace(kernel, configuration, program);
  addFloat8(kernel, program);
  addConstantChecks(program);
  addBlockTables(kernel, program);
  return program;
}

/// Makes the program wait for the kernels before it, and let the next one start, in front of all
/// that it does: what overlaps is launching.
void startEarly(Program &program) {
  program.entry = waitingEntry(program.entry);
  program.launch.startsEarly = true;
  program.headers.push_back("weft/sm90_dependent_launch.cuh");
  std::ranges::sort(program.headers);
  const Block first = {evaluate("weft::sm90::launchDependents()"),
                       evaluate("weft::sm90::gridDependencyWait()")};
  program.body.insert(program.body.begin(), first.begin(), first.end());
}

/// "x[b,j,i] f16   bias[i] f16": dimensions in layout order, slowest first. Those of extent 1,
/// which lie anywhere, stand in front, so that the text is the same wherever the layout was read.
std::string tensorsText(const Kernel &kernel, const std::vector<ValueId> &values,
                        const std::vector<Layout> &layouts) {
  std::vector<std::string> tensors;
  for (size_t i = 0; i < values.size(); ++i) {
    const Value &value = kernel.values[values[i]];
    std::vector<std::string> single, names;
    for (const AxisId axis : value.axes)
      if (kernel.axes[axis].extent == 1) single.push_back(kernel.axes[axis].name);
    for (int dimension : layouts[i].order)
      if (const Axis &axis = kernel.axes[value.axes[dimension]]; axis.extent != 1)
        names.push_back(axis.name);
    names.insert(names.begin(), single.begin(), single.end());
    tensors.push_back(
        fmt::format("{}[{}] {}", value.name, fmt::join(names, ","), nameOf(value.dtype)));
  }
  return fmt::format("{}", fmt::join(tensors, "   "));
}

/// "%24 = add %22, %bias", from the kernel alone.
std::string opText(const Kernel &kernel, const BodyOp &op) {
  std::vector<std::string> results, operands;
  for (ValueId result : op.results) results.push_back(kernel.values[result].name);
  for (ValueId operand : op.operands) operands.push_back(kernel.values[operand].name);
  std::string text = fmt::format("{} = {}", fmt::join(results, ", "), nameOf(op.kind));
  if (const std::string *einsum = findAttribute(op, attribute::spec))
    text += fmt::format(" \"{}\"", *einsum);
  text += fmt::format(" {}", fmt::join(operands, ", "));
  return op.operatorClass == OperatorClass::contraction && isTf32(op) ? text + " in tf32" : text;
}

std::string spaceText(const Kernel &kernel) {
  const std::vector<AxisId> reduced = kernel.reducedAxes();
  std::vector<std::string> outer, inner;
  for (size_t i = 0; i < kernel.axes.size(); ++i) {
    const bool isReduced =
        std::find(reduced.begin(), reduced.end(), static_cast<int>(i)) != reduced.end();
    (isReduced ? inner : outer)
        .push_back(fmt::format("{}={}", kernel.axes[i].name, kernel.axes[i].extent));
  }
  std::string text = fmt::format("{}", fmt::join(outer, " "));
  if (!inner.empty()) text += fmt::format(" | {} (reduced)", fmt::join(inner, " "));
  return text;
}

std::string headerComment(const Kernel &kernel, const Configuration &configuration,
                          const Program &program, const EmittedKernel &emitted,
                          const Provenance &provenance) {
  std::string text;
  const auto addLine = [&](const std::string &line) {
    text += fmt::format("// {}\n", lineComment(line));
  };
  const std::string position = provenance.position.empty() ? "" : "    " + provenance.position;
  addLine(fmt::format("{}{}    (this header is not hashed)", kernel.name, position));
  text += "//\n";
  std::vector<std::string> ops = provenance.ops;
  if (ops.empty())
    for (const BodyOp &op : kernel.body) ops.push_back(opText(kernel, op));
  for (size_t i = 0; i < ops.size(); ++i)
    addLine(fmt::format("  {:<9}  {}", i == 0 ? "ops" : "", ops[i]));
  addLine(fmt::format("  space      {}", spaceText(kernel)));
  addLine(fmt::format("  reads      {}    {}",
                      tensorsText(kernel, kernel.inputs, configuration.inputs),
                      formatBytes(emitted.bytesRead)));
  addLine(fmt::format("  writes     {}    {}",
                      tensorsText(kernel, kernel.outputs, configuration.outputs),
                      formatBytes(emitted.bytesWritten)));
  if (program.launch.workspaceBytes > 0)
    addLine(fmt::format("  workspace  {}", formatBytes(program.launch.workspaceBytes)));
  if (emitted.flop > 0) addLine(fmt::format("  flop       {}", formatFlop(emitted.flop)));
  const auto extentText = [](const std::array<int64_t, 3> &size) {
    if (size[1] == 1 && size[2] == 1) return fmt::format("{}", size[0]);
    return fmt::format("({}, {}, {})", size[0], size[1], size[2]);
  };
  addLine(fmt::format("  config     {}    launch <<<{}, {}>>>", program.mapping,
                      extentText(program.launch.grid), extentText(program.launch.block)));
  for (const std::string &note : provenance.notes) addLine("  " + note);
  return text;
}

}  // namespace

void addBlockTables(const Kernel &kernel, Program &program) {
  std::map<std::string, const BlockTable *> tables;
  for (const BodyOp &op : kernel.body) {
    const BlockTable *const table = blockTableOf(kernel, op);
    if (!table) continue;
    const std::string name = blockTableName(attributeOf(op, attribute::pattern));
    const auto [found, isNew] = tables.try_emplace(name, table);
    if (!isNew && found->second != table)
      throw Error::unsupported("kernel '{}': two block masks have the name {}", kernel.name, name);
    if (!isNew) continue;
    std::vector<std::string> words;
    for (const uint32_t word : table->words) words.push_back(fmt::format("{:#x}u", word));
    program.globals.push_back(
        {.kind = Statement::Kind::declare,
         .type = Code::plain(fmt::format("weft::BlockMask<{}, {}, {}, {}>", table->size,
                                         table->heads, table->rows, table->columns)),
         .name = Code::name(name),
         .value = Code::plain(fmt::format("{{{{{}}}}}", fmt::join(words, ", "))),
         .note = fmt::format("{} of {} tiles", table->count(),
                             table->heads * table->rows * table->columns),
         .isConstant = true});
  }
}

uint32_t numberOf(const Parameter &parameter, const Kernel &kernel) {
  if (!isNumber(parameter.kind))
    throw Error::checkFailed("kernel '{}': argument '{}' is no number", kernel.name,
                             parameter.name);
  const bool isStream = parameter.kind == Parameter::Kind::dropoutStream;
  return uint32_t(attributeOf(kernel.body.at(size_t(parameter.index)),
                              isStream ? attribute::stream : attribute::outer));
}

EmittedKernel emit(const Kernel &kernel, const Configuration &configuration,
                   std::string_view architecture, const Provenance &provenance,
                   const EmitOptions &options) {
  Program canonical = lower(withCanonicalNames(kernel), configuration, architecture);
  Program readable = lower(kernel, configuration, architecture);
  std::string timed = printCuda(canonical);
  const bool isEarly =
      options.startsEarly && hasEarlyStarts(architecture) && !canonical.launch.startsEarly;
  for (Program *program : {&canonical, &readable}) {
    if (isEarly) startEarly(*program);
    program->hasRestrict = !program->launch.startsEarly;
  }
  if (readable.entry != canonical.entry)
    throw Error::checkFailed("kernel '{}': its entry point is '{}', in canonical form '{}'",
                             kernel.name, readable.entry, canonical.entry);
  EmittedKernel emitted{.entry = canonical.entry,
                        .text = canonical.hasRestrict ? timed : printCuda(canonical),
                        .timedText = std::move(timed),
                        .parameters = readable.parameters,
                        .launch = readable.launch,
                        .headers = readable.headers,
                        .flop = kernel.flop()};
  for (ValueId input : kernel.inputs) emitted.bytesRead += kernel.bytes(input);
  for (ValueId output : kernel.outputs) emitted.bytesWritten += kernel.bytes(output);
  emitted.readable =
      headerComment(kernel, configuration, readable, emitted, provenance) + printCuda(readable);
  return emitted;
}

std::string lowerToText(const Kernel &kernel, const Configuration &configuration,
                        std::string_view architecture) {
  return print(lower(kernel, configuration, architecture));
}

const std::map<std::string, std::string_view> &deviceHeaders() {
  static const std::map<std::string, std::string_view> headers = [] {
    std::map<std::string, std::string_view> named;
    for (const auto &[file, text] : embedded::deviceHeaderFiles) named["weft/" + file] = text;
    return named;
  }();
  return headers;
}

}  // namespace weft::codegen
