// weft-words-rows FOLDER MODEL.. PROFILE..: what the configurations of profile rows emit. Prints a
// line each, hash of the subject, hash of the source, line of the profile, and writes the texts to
// FOLDER/HASH.cu, HASH being that of the text alone.
//
// Rows are those of candidates of the verified workloads (tests/gpu/verify-plans), of their plans
// in chunks, with attention as by default and in kernels apart, and of the models, which are graphs
// in .mlir. A GEMM's row names strides: it gets layouts that have them.
#include "codegen/Emit.h"
#include "kernel/Error.h"
#include "kernel/Profile.h"
#include "passes/decide/ProfileSpace.h"
#include "runtime/measure/ProfileStore.h"
#include "tools/driver/Compilation.h"
#include "tools/driver/Flags.h"

#include <fmt/format.h>

// So that one file compiles in trees of before and after hashes of headers, too.
#if __has_include("codegen/SourceHash.h")
#include "codegen/SourceHash.h"
using weft::codegen::sourceHash;
#endif

#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace weft;
using namespace weft::driver;

struct Workload {
  std::string preset;  ///< or a graph in .mlir, as it stands there
  int b = 0, j = 0;
  bool train = false;

  ModelFlags flags() const {
    ModelFlags model;
    model.model = preset;
    model.train = train;
    if (b > 0) model.dims = {fmt::format("b={}", b), fmt::format("j={}", j)};
    return model;
  }
};

/// As profiled: the workloads of tests/gpu/verify-plans.
std::vector<Workload> workloads() {
  const std::vector<std::pair<int, int>> shapes = {{8, 512}, {96, 128}, {1, 128},  {1, 256},
                                                   {1, 512}, {1, 1024}, {1, 2048}, {1, 4096}};
  std::vector<Workload> result;
  for (const char *preset : {"bert-base", "bert-large", "paper-encoder"})
    for (const auto &[b, j] : shapes) result.push_back({preset, b, j});
  for (size_t i = 0; i < 2; ++i)
    result.push_back({"paper-encoder", shapes[i].first, shapes[i].second, true});
  return result;
}

using Use = std::function<void(const std::string &, const std::string &, const std::string &)>;

class Rows {
public:
  Rows(const std::vector<std::string> &files, Use use) : use(std::move(use)) {
    for (const std::string &file : files) {
      const Profile profile = runtime::readProfile(file);
      for (const auto &[hash, kernel] : profile.kernels) {
        const auto &[name, rows] = kernel;
        for (const auto &[line, row] : rows) lines[hash].insert(line);
      }
    }
    for (const auto &[hash, rows] : lines) all += rows.size();
  }

  /// Rows of all candidates.
  void of(const Workload &workload) {
    const ModelFlags model = workload.flags();
    TargetFlags target;
    target.profile = "none";
    architecture = target.architecture();
    Compilation compilation(model, ChoiceFlags(), target);
    compilation.import(Phase::import);
    const std::vector<select::Problem> problems =
        compilation.problems(compilation.propose(Phase::import));
    decision::ProfileSpaceOptions options;
    options.mostKnobs = 1;
    options.layoutFactor = 10;
    options.mostLayouts = 4096;
    const decision::ProfileSpace space =
        decision::profileSpace(problems, {}, compilation.costModel(), std::move(options));
    for (const decision::ProfileItem &item : space.items)
      emitAll(space.kernels[item.kernel].kernel, item.configuration, item.subject);
    for (const select::Problem &problem : problems)
      for (const select::Candidate &candidate : problem.candidates) emitParsed(candidate.kernel);
  }

  /// Rows of a plan's kernels, whole and in chunks.
  void ofPlan(const Workload &workload, const std::string &attention) {
    const ModelFlags model = workload.flags();
    ChoiceFlags choices;
    choices.attention.text = attention;
    choices.chunks = 0;
    TargetFlags target;
    architecture = target.architecture();
    Compilation compilation(model, choices, target);
    compilation.import(Phase::import);
    const decision::Decision selected = compilation.decide(compilation.propose(Phase::import));
    for (const int count : {1, 2, 3, 4, 6, 8, 12, 16}) {
      try {
        const PlannedKernels plan = valueOrThrow(
            decision::planOf(compilation.planContext(), selected.best(), selected.path(), count));
        for (const ChosenKernel &chosen : plan.kernels) {
          const ProfileSubject subject = subjectOf(chosen.kernel, chosen.configuration);
          emitAll(chosen.kernel, chosen.configuration, profileHash(subject.text));
          emitParsed(chosen.kernel);
        }
      } catch (const Error &) {
        continue;  // not in so many
      }
    }
  }

  size_t all = 0;
  std::set<std::pair<std::string, std::string>> done;

private:
  /// Rows that name layouts.
  void emitParsed(const Kernel &kernel) {
    const std::string hash = profileHash(kernelSubject(kernel).text);
    const auto rows = lines.find(hash);
    if (rows == lines.end() || !parsed.insert(hash).second) return;
    for (const std::string &line : rows->second) {
      try {
        emit(kernel, parseConfiguration(line, kernel), hash, line);
      } catch (const Error &) {
        continue;
      }
    }
  }

  /// Rows in the place of this configuration, whatever their knobs.
  void emitAll(const Kernel &kernel, Configuration configuration, const std::string &hash) {
    const auto rows = lines.find(hash);
    if (rows == lines.end()) return;
    const std::string place = placeText(kernel, configuration);
    if (!places.emplace(hash, place).second) return;
    for (const std::string &line : rows->second) {
      const auto fields = splitLine(line);
      if (fields.layouts != place) continue;
      try {
        configuration.knobs = parseKnobs(fields.family, fields.knobs, kernel);
        if (configurationLine(kernel, configuration) == line)
          emit(kernel, configuration, hash, line);
      } catch (const Error &) {
        continue;
      }
    }
  }

  void emit(const Kernel &kernel, const Configuration &configuration, const std::string &hash,
            const std::string &line) {
    if (done.contains({hash, line})) return;
    use(hash, line, codegen::emit(kernel, configuration, architecture).timedText);
    done.emplace(hash, line);
  }

  Use use;
  std::string architecture;
  std::map<std::string, std::set<std::string>> lines;  // by the subject's hash
  std::set<std::string> parsed;
  std::set<std::pair<std::string, std::string>> places;
};

void forEachText(const std::vector<std::string> &models, const std::vector<std::string> &files,
                 const Use &use) {
  Rows rows(files, use);
  std::vector<Workload> all = workloads();
  for (const std::string &model : models) all.push_back({.preset = model});
  for (const Workload &workload : all) {
    rows.of(workload);
    for (const char *attention : {"auto", "unfused", "decomposed"})
      rows.ofPlan(workload, attention);
    fmt::print(stderr, "{} b={} j={}: {} of {} rows\n", workload.preset, workload.b, workload.j,
               rows.done.size(), rows.all);
  }
}

int run(const std::vector<std::string> &arguments) {
  if (arguments.size() < 2) {
    fmt::print(stderr, "usage: weft-words-rows FOLDER MODEL.. PROFILE..\n");
    return 2;
  }
  std::vector<std::string> models, files;
  for (size_t at = 1; at < arguments.size(); ++at)
    (arguments[at].ends_with(".mlir") ? models : files).push_back(arguments[at]);
  forEachText(models, files,
              [&](const std::string &hash, const std::string &line, const std::string &text) {
                const std::string file = profileHash(text);
                std::ofstream(arguments[0] + "/" + file + ".cu") << text;
                fmt::print("{} {} {} {}\n", hash, sourceHash(text), file, line);
              });
  return 0;
}

}  // namespace

int main(int count, char **texts) {
  try {
    return run({texts + 1, texts + count});
  } catch (const std::exception &error) {
    fmt::print(stderr, "weft-words-rows: {}\n", error.what());
    return 1;
  }
}
