// Chosen kernels to CUDA text and cubins; see Emission.h.
#include "tools/driver/Emission.h"

#include "codegen/SourceHash.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "kernel/Error.h"
#include "kernel/LaunchCheck.h"
#include "kernel/LayerNames.h"
#include "plan/PlanChunks.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/artifact/CubinEntry.h"
#include "runtime/artifact/VerificationRecords.h"
#include "runtime/build/Disassembler.h"
#include "runtime/build/Includes.h"
#include "runtime/system/Sha256.h"
#include "tools/driver/Console.h"

namespace weft::driver {
namespace {

using codegen::Parameter;

constexpr const char *skippedNote = "cubins: skipped, no NVRTC";

PlanParameter planParameter(const Parameter &parameter, const PlanKernel &entry,
                            const Kernel &kernel) {
  PlanParameter result{
      .kind = parameter.kind, .name = parameter.name, .type = parseParameterType(parameter.type)};
  const size_t index = size_t(parameter.index);
  if (isOfInput(parameter.kind) || parameter.kind == ParameterKind::status)
    result.tensor = entry.inputs.at(index);
  if (isOfOutput(parameter.kind)) result.tensor = entry.outputs.at(index);
  result.map = parameter.map;
  if (isNumber(parameter.kind)) result.value = numberOf(parameter, kernel);
  return result;
}

PlanLibraryGemm libraryEntry(const PlanKernel &entry, const ChosenKernel &chosen) {
  const Kernel &kernel = chosen.kernel;
  const LibraryGemm gemm = libraryGemm(kernel, chosen.configuration);
  const LibraryForm form = libraryForm(kernel).value();
  const auto tensorOf = [&](int value) {
    const auto input = std::ranges::find(kernel.inputs, value),
               output = std::ranges::find(kernel.outputs, value);
    if (input != kernel.inputs.end()) return entry.inputs.at(size_t(input - kernel.inputs.begin()));
    return output == kernel.outputs.end()
               ? -1
               : entry.outputs.at(size_t(output - kernel.outputs.begin()));
  };
  const GemmInputs inputs = gemmInputs(kernel);
  PlanLibraryGemm result{.a = entry.inputs.at(inputs.a),
                         .b = entry.inputs.at(inputs.b),
                         .c = tensorOf(form.result),
                         .types = gemm.types(),
                         .alpha = gemm.alpha,
                         .shape = gemm.shape};
  if (!gemm.isPlain())
    result.epilogue = {.kind = gemm.epilogue,
                       .beta = gemm.beta,
                       .residual = tensorOf(form.residual),
                       .auxiliary = tensorOf(form.auxiliary),
                       .bias = tensorOf(form.bias),
                       .gradient = tensorOf(form.gradient),
                       .residualStrides = gemm.residual,
                       .auxiliaryStrides = gemm.auxiliary};
  return result;
}

/// A kernel whose knobs were edited to a family without text may have had some.
void removeText(PlanKernel &entry) {
  const PlanKernel none;
  entry.entry = none.entry;
  entry.source = none.source;
  entry.cubin = none.cubin;
  entry.grid = none.grid;
  entry.block = none.block;
  entry.sharedBytes = none.sharedBytes;
  entry.startsEarly = none.startsEarly;
  entry.workspaceBytes = none.workspaceBytes;
  entry.parameters = none.parameters;
  entry.registers = none.registers;
  entry.spillBytes = none.spillBytes;
  entry.staticSharedBytes = none.staticSharedBytes;
}

void describeLaunch(PlanKernel &entry, const codegen::EmittedKernel &emitted,
                    const Kernel &kernel) {
  entry.entry = emitted.entry;
  entry.grid = emitted.launch.grid;
  entry.block = emitted.launch.block;
  entry.sharedBytes = emitted.launch.sharedBytes;
  entry.startsEarly = emitted.launch.startsEarly;
  entry.workspaceBytes = emitted.launch.workspaceBytes;
  entry.parameters.clear();
  for (const Parameter &parameter : emitted.parameters)
    entry.parameters.push_back(planParameter(parameter, entry, kernel));
}

/// The text of a kernel. Rejections are of its canonical form, which has no name; here they get
/// that of the plan.
codegen::EmittedKernel emitNamed(const Kernel &kernel, const Configuration &configuration,
                                 const std::string &architecture,
                                 const codegen::Provenance &provenance,
                                 const codegen::EmitOptions &options) {
  try {
    return codegen::emit(kernel, configuration, architecture, provenance, options);
  } catch (const Error &error) {
    const std::string canonical = "kernel 'kernel'";
    std::string text = error.what();
    if (const size_t at = text.find(canonical); at != std::string::npos)
      text.replace(at, canonical.size(), fmt::format("kernel '{}'", kernel.name));
    throw Error(error.kind, text);
  }
}

/// Key, library GEMM and launch of a kernel; of one that has text, the text. Nothing of other
/// kernels counts.
std::optional<codegen::EmittedKernel> describeText(PlanKernel &entry, const ChosenKernel &chosen,
                                                   const std::string &architecture,
                                                   const Kernel &named,
                                                   const codegen::Provenance &provenance,
                                                   const codegen::EmitOptions &options) {
  entry.key = runtime::sha256(canonicalText(chosen.kernel, chosen.configuration, architecture));
  entry.library.reset();
  if (chosen.configuration.knobs.isLibrary()) entry.library = libraryEntry(entry, chosen);
  if (!chosen.configuration.knobs.family().hasText()) {
    removeText(entry);
    return std::nullopt;
  }
  codegen::EmittedKernel kernel =
      emitNamed(named, chosen.configuration, architecture, provenance, options);
  describeLaunch(entry, kernel, chosen.kernel);
  return kernel;
}

/// Whether a kernel may have the text of these, where it is equal: all are chunks of one, or of
/// other layers. Of equal kernels of one layer each has its own, with what it computes at its head.
bool mayShareText(const Plan &plan, const std::vector<size_t> &kernels, const PlanKernel &entry) {
  return std::ranges::all_of(kernels, [&](size_t index) {
    const PlanKernel &other = plan.kernels[index];
    if (entry.chunk || other.chunk)
      return entry.chunk && other.chunk && wholeName(entry) == wholeName(other);
    return entry.layer > 0 && other.layer > 0 && entry.layer != other.layer;
  });
}

void emitOne(PlannedKernels &planned, size_t index, const std::string &architecture,
             const NotesOf &notesOf, EmittedPlan &emitted) {
  PlanKernel &entry = planned.plan.kernels[index];
  const ChosenKernel &chosen = planned.kernels[index];
  const std::string name = entry.chunk       ? wholeName(entry)
                           : entry.layer > 0 ? withoutLayers(entry.name)
                                             : entry.name;
  Kernel named = chosen.kernel;
  named.name = name;
  const codegen::Provenance provenance{
      .position = fmt::format("kernel {} of {}, {}", index + 1, planned.plan.model,
                              nameOf(chosen.entryPoint)),
      .ops = textsOf(entry.ops),
      .notes = notesOf(chosen)};
  const std::optional<codegen::EmittedKernel> text = describeText(
      entry, chosen, architecture, named, provenance, {.startsEarly = entry.startsEarly});
  if (!text) return;
  const codegen::EmittedKernel &kernel = *text;
  for (size_t request = 0; request < emitted.requests.size(); ++request)
    if (emitted.requests[request].text == kernel.text &&
        mayShareText(planned.plan, emitted.kernelsOfRequest[request], entry)) {
      entry.source = "kernels/" + emitted.requests[request].name + ".cu";
      emitted.kernelsOfRequest[request].push_back(index);
      return;
    }
  const Cost &cost = chosen.cost;
  if (cost.measured &&
      (cost.stale || (cost.source != "-" && cost.source != codegen::sourceHash(kernel.timedText))))
    planned.plan.notes.push_back(
        {.kind = NoteKind::stale,
         .text = fmt::format("kernel {}: stale, its time is of an older {}", entry.name,
                             cost.stale ? "version of its family" : "source")});
  const bool isTaken = emitted.sources.contains("kernels/" + name + ".cu");
  entry.source = "kernels/" + (isTaken ? entry.name : name) + ".cu";
  emitted.sources[entry.source] = kernel.readable;
  emitted.requests.push_back({.name = isTaken ? entry.name : name,
                              .text = kernel.text,
                              .entry = kernel.entry,
                              .architecture = architecture,
                              .extraFlags = {}});
  emitted.kernelsOfRequest.push_back({index});
}

/// The first lines of a log that a person needs; the rest is in the text NVRTC names.
std::string firstLines(const std::string &log, int count) {
  size_t end = 0;
  for (int line = 0; line < count && end < log.size(); ++line)
    end = std::min(log.find('\n', end), log.size() - 1) + 1;
  return log.substr(0, end);
}

/// "kernel.cu(44)" -> "out/kernels/NAME.cu:44", "weft/vector.cuh(12)" ->
/// "out/kernels/weft/vector.cuh:12".
std::string inArtifact(const std::string &log, const std::string &file, const EmittedPlan &emitted,
                       const std::string &folder) {
  const auto replaced = [](const std::string &text, const std::string &name,
                           const std::string &path) {
    std::string result;
    size_t from = 0;
    for (size_t at = text.find(name + "("); at != text.npos; at = text.find(name + "(", from)) {
      const size_t open = at + name.size(), close = text.find_first_not_of("0123456789", open + 1);
      const bool isPlace =
          (at == 0 || text[at - 1] == '\n' || text[at - 1] == ' ' || text[at - 1] == '"') &&
          close != text.npos && close > open + 1 && text[close] == ')';
      result += text.substr(from, (isPlace ? at : open) - from);
      if (isPlace) result += fmt::format("{}:{}", path, text.substr(open + 1, close - open - 1));
      from = isPlace ? close + 1 : open;
    }
    return result + text.substr(from);
  };
  const std::filesystem::path root(folder);
  std::string text = replaced(log, "kernel.cu", (root / file).string());
  if (const size_t end = text.find("\"kernel.cu\""); end != text.npos)
    text.replace(end + 1, std::string_view("kernel.cu").size(), (root / file).string());
  for (const auto &[name, header] : emitted.available)
    text = replaced(text, name, (root / "kernels" / name).string());
  return text;
}

std::vector<runtime::BuildResult> buildShowingProgress(
    const std::vector<runtime::BuildRequest> &requests, const EmittedPlan &emitted, bool keepPtx) {
  Progress progress;
  runtime::BuildOptions options;
  options.headers = emitted.available;
  options.keepPtx = keepPtx;
  options.progress = [&](size_t done, size_t total, const std::string &name) {
    progress.show(fmt::format("building {}/{} {}", done, total, name));
  };
  options.note = [&](const std::string &text) {
    progress.clear();
    printNote(text);
  };
  std::vector<runtime::BuildResult> results = runtime::build(requests, options);
  progress.clear();
  return results;
}

/// What a person reads of a kernel that does not build. The canonical text was compiled, whose
/// lines are not those of the readable one; that one says where the same error is in the artifact.
[[noreturn]] void failBuild(const Plan &plan, const EmittedPlan &emitted, size_t index,
                            std::string error, const std::string &folder) {
  const runtime::BuildRequest &request = emitted.requests[index];
  const std::string &file = plan.kernels[emitted.kernelsOfRequest[index].front()].source;
  const std::string &readable = emitted.sources.at(file);
  if (request.text != readable) {
    runtime::BuildRequest again = request;
    again.text = readable;
    if (const std::string said = buildShowingProgress({again}, emitted, false).front().error;
        !said.empty())
      error = said;
  }
  const bool isLaunch = hasFailedLaunchCheck(error);
  throw Error::checkFailed("kernel '{}' does not build for {}: {}{}", request.name,
                           request.architecture,
                           firstLines(inArtifact(error, file, emitted, folder), 20),
                           isLaunch ? "its constants are not what plan.json launches: take them "
                                      "back, or edit the kernel's knobs in plan.json and "
                                      "let 'weft emit' derive text and launch anew"
                                    : "");
}

/// Machine code of every kernel; a note where there is nothing that prints it.
void addSass(const Plan &plan, BuiltFiles &files) {
  const runtime::DisassemblerLocation disassembler = runtime::findDisassembler();
  if (disassembler.program.empty())
    return printNote(
        fmt::format("--keep sass: neither nvdisasm nor cuobjdump was found; looked for {}",
                    fmt::join(disassembler.searched, ", ")));
  for (const PlanKernel &kernel : plan.kernels)
    if (!kernel.cubin.empty())
      files.listings["sass/" + std::filesystem::path(kernel.source).stem().string() + ".sass"] =
          runtime::disassemble(disassembler.program, files.cubins.at(kernel.cubin));
}

}  // namespace

PlanKernel derivedEntry(const PlanKernel &entry, const ChosenKernel &chosen,
                        const std::string &architecture) {
  PlanKernel derived = entry;
  describeText(derived, chosen, architecture, chosen.kernel, {},
               {.startsEarly = entry.startsEarly});
  derived.ops = planOps(chosen.kernel);
  derived.family = chosen.configuration.knobs.family();
  derived.configuration = describe(chosen.kernel, chosen.configuration.knobs);
  return derived;
}

bool isOfOlderText(const ChosenKernel &chosen, const std::string &architecture) {
  if (!chosen.cost.measured || chosen.cost.source == Cost().source) return false;
  return chosen.cost.stale ||
         chosen.cost.source !=
             codegen::sourceHash(
                 codegen::emit(chosen.kernel, chosen.configuration, architecture).timedText);
}

EmittedPlan emitKernels(PlannedKernels &planned, const std::string &architecture,
                        const NotesOf &notesOf) {
  EmittedPlan emitted;
  emitted.available = codegen::deviceHeaders();
  planned.plan.target = architecture;
  for (PlanKernel &kernel :
       planned.plan.kernels) {  // what was built of an earlier text is none of this one
    kernel.cubin.clear();
    kernel.registers = kernel.spillBytes = kernel.staticSharedBytes = -1;
  }
  for (size_t index = 0; index < planned.kernels.size(); ++index)
    emitOne(planned, index, architecture, notesOf, emitted);
  return emitted;
}

void setTextHashes(Plan &plan, const EmittedPlan &emitted) {
  runtime::BuildOptions options;
  options.headers = emitted.available;
  std::map<size_t, std::string> hashes;
  for (size_t index = 0; index < emitted.requests.size(); ++index)
    for (const size_t kernel : emitted.kernelsOfRequest[index])
      hashes[kernel] = runtime::textHashOf(emitted.requests[index], options);
  for (size_t index = 0; index < plan.kernels.size(); ++index) {
    PlanKernel &kernel = plan.kernels[index];
    kernel.textHash = kernel.library           ? runtime::textHashOf(kernel)
                      : hashes.contains(index) ? hashes[index]
                                               : "";
  }
}

std::map<std::string, std::string> headerFiles(const EmittedPlan &emitted) {
  std::map<std::string, std::string> files;
  for (const auto &[source, text] : emitted.sources)
    for (auto &[name, header] : runtime::includedHeaders(text, emitted.available))
      files.emplace("kernels/" + name, std::move(header));
  return files;
}

BuiltFiles buildCubins(Plan &plan, const EmittedPlan &emitted, bool strict, const KeepFlags &keep,
                       BuildSummary &summary, const std::string &folder) {
  const runtime::NvrtcLocation nvrtc = runtime::findNvrtc();
  if (nvrtc.library.empty()) {
    if (strict)
      throw Error::strictMiss("no NVRTC, and --strict forbids skipping cubins; searched: {}",
                              fmt::join(nvrtc.searched, ", "));
    plan.notes.push_back({.kind = NoteKind::build, .text = skippedNote});
    summary.skipped = true;
    return {};
  }
  const std::vector<runtime::BuildResult> results =
      buildShowingProgress(emitted.requests, emitted, keep.keeps("ptx"));
  BuiltFiles files;
  for (size_t index = 0; index < results.size(); ++index) {
    const runtime::BuildResult &result = results[index];
    if (!result.error.empty()) failBuild(plan, emitted, index, result.error, folder);
    if (!result.warning.empty()) {
      if (strict) failBuild(plan, emitted, index, result.warning, folder);
      plan.notes.push_back(
          {.kind = NoteKind::serialized,
           .text = fmt::format("kernel '{}' is right, but slower than its price: {}",
                               emitted.requests[index].name, result.warning)});
    }
    for (const size_t kernel : emitted.kernelsOfRequest[index]) {
      PlanKernel &entry = plan.kernels[kernel];
      if (const std::string rejection = runtime::launchRejection(entry, result.cubin);
          !rejection.empty())
        throw Error::checkFailed("kernel '{}' ({}) cannot be launched: {}", entry.name,
                                 entry.source, rejection);
      entry.cubin = runtime::cubinName(result.cubin);
      entry.registers = result.registers;
      entry.spillBytes = result.spillBytes;
      entry.staticSharedBytes = result.staticSharedBytes;
    }
    files.cubins[runtime::cubinName(result.cubin)] = result.cubin;
    if (keep.keeps("ptx"))
      files.listings["ptx/" + emitted.requests[index].name + ".ptx"] = result.ptx;
    ++(result.fromCache ? summary.fromCache : summary.built);
    summary.slowestSeconds = std::max(summary.slowestSeconds, result.seconds);
  }
  if (keep.keeps("sass")) addSass(plan, files);
  return files;
}

}  // namespace weft::driver
