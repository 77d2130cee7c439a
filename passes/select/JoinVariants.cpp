// A cut of the first variant is a prefix of its ops; of another variant it is all that the tensors
// live there are computed from. It holds if in every variant these tensors alone are live, and each
// candidate lies on one side.
#include "passes/select/JoinVariants.h"

#include "passes/select/Graph.h"
#include "passes/select/OpSet.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace weft::select {
namespace {

std::string textOf(const Tensor &tensor) {
  std::string text = fmt::format("{} {} {}{}{}", tensor.name, nameOf(tensor.dtype),
                                 tensor.isArgument, tensor.isParameter, tensor.isResult);
  for (const Axis &axis : tensor.axes) text += fmt::format(" {}{}", axis.name, axis.extent);
  if (tensor.pinned) text += fmt::format(" pinned {}", fmt::join(tensor.pinned->order, ","));
  return text;
}

/// A variant, asked for cuts.
class Cutter {
public:
  Cutter(const Problem &problem, const std::set<std::string> &mayCross)
      : problem(problem),
        writer(problem.tensors.size(), -1),
        readers(problem.tensors.size()),
        ancestors(problem.ops.size()),
        crosses(problem.tensors.size(), false) {
    for (size_t op = 0; op < problem.ops.size(); ++op) {
      for (const int tensor : problem.opInputs[op]) {
        readers[static_cast<size_t>(tensor)].push_back(static_cast<int>(op));
        if (const int before = writer[static_cast<size_t>(tensor)]; before >= 0) {
          ancestors[op] = ancestors[op] | ancestors[static_cast<size_t>(before)];
          ancestors[op].insert(before);
        }
      }
      for (const int tensor : problem.opOutputs[op])
        writer[static_cast<size_t>(tensor)] = static_cast<int>(op);
    }
    for (const Tensor &tensor : problem.tensors) ++named[tensor.name];
    for (size_t tensor = 0; tensor < crosses.size(); ++tensor) {
      const Tensor &facts = problem.tensors[tensor];
      crosses[tensor] =
          facts.isArgument || (mayCross.contains(facts.name) && named[facts.name] == 1);
      numberOf[facts.name] = static_cast<int>(tensor);
    }
    // What kernels may lie in each other's operands depends on all that touch these.
    for (const Candidate &candidate : problem.candidates) {
      if (candidate.ops.size() != 1 ||
          candidate.kernel.body.front().operatorClass != OperatorClass::movement)
        continue;
      for (const std::vector<int> *operands : {&candidate.inputs, &candidate.outputs})
        for (const int tensor : *operands)
          if (!problem.tensors[static_cast<size_t>(tensor)].isArgument)
            crosses[static_cast<size_t>(tensor)] = false;
          else if (!problem.tensors[static_cast<size_t>(tensor)].isParameter) isMovable = false;
    }
    for (const Candidate &candidate : problem.candidates) opsOf.emplace_back(candidate.ops);
  }

  /// Whether arguments may be read at several sites.
  bool mayBeCut() const { return isMovable; }
  const Problem &variant() const { return problem; }

  /// Names of the tensors that are live behind the ops; nothing if one of them may not cross, or a
  /// candidate does.
  std::optional<std::set<std::string>> liveBehind(const OpSet &before) const {
    for (const OpSet &ops : opsOf)
      if (ops.intersects(before) && !before.containsAll(ops)) return std::nullopt;
    std::set<std::string> live;
    for (size_t tensor = 0; tensor < problem.tensors.size(); ++tensor) {
      if (writer[tensor] < 0 || !before.contains(writer[tensor])) continue;
      const bool isRead = std::ranges::any_of(readers[tensor],
                                              [&](int reader) { return !before.contains(reader); });
      if (!isRead && !problem.tensors[tensor].isResult) continue;
      if (!crosses[tensor]) return std::nullopt;
      live.insert(problem.tensors[tensor].name);
    }
    return live;
  }

  /// The ops that tensors of these names are computed from; nothing where the variant lacks one.
  std::optional<OpSet> opsBefore(const std::set<std::string> &live) const {
    OpSet before;
    for (const std::string &name : live) {
      const auto found = numberOf.find(name);
      if (found == numberOf.end() || writer[static_cast<size_t>(found->second)] < 0)
        return std::nullopt;
      const int op = writer[static_cast<size_t>(found->second)];
      before = before | ancestors[static_cast<size_t>(op)];
      before.insert(op);
    }
    return before;
  }

  bool isUnique(const std::string &name) const { return named.at(name) == 1; }
  const Tensor &tensorNamed(const std::string &name) const {
    return problem.tensors[static_cast<size_t>(numberOf.at(name))];
  }

  /// What the ops compute, as text: equal for equal ops, tensors and candidates.
  std::string textOfOps(const OpSet &ops) const {
    std::string text;
    std::map<int, int> places;
    for (const int op : ops.members()) {
      places.emplace(op, static_cast<int>(places.size()));
      text += problem.ops[static_cast<size_t>(op)] + "\n";
      for (const auto *tensors : {&problem.opInputs, &problem.opOutputs})
        for (const int tensor : (*tensors)[static_cast<size_t>(op)])
          text += textOf(problem.tensors[static_cast<size_t>(tensor)]) + ";";
    }
    for (size_t c = 0; c < opsOf.size(); ++c) {
      if (!opsOf[c].intersects(ops)) continue;
      text += "\n";
      for (const int op : problem.candidates[c].ops) text += fmt::format("{} ", places.at(op));
      text +=
          problem.candidates[c].kernel.name + "\n" + canonicalText(problem.candidates[c].kernel);
    }
    return text;
  }

private:
  const Problem &problem;
  std::vector<int> writer;                     ///< tensor
  std::vector<std::vector<int>> readers;       ///< tensor
  std::vector<OpSet> ancestors;                ///< op
  std::vector<bool> crosses;                   ///< tensor: whether it may be live at a cut
  std::map<std::string, int> numberOf, named;  ///< by name: a tensor, and how many there are
  std::vector<OpSet> opsOf;                    ///< candidate
  bool isMovable = true;
};

/// By cut and variant the ops before it.
std::vector<std::vector<OpSet>> cutsOf(const std::vector<Cutter> &variants) {
  std::vector<std::vector<OpSet>> cuts;
  const size_t ops = variants.front().variant().ops.size();
  OpSet prefix;
  for (size_t op = 0; op + 1 < ops; ++op) {
    prefix.insert(static_cast<int>(op));
    const std::optional<std::set<std::string>> live = variants.front().liveBehind(prefix);
    if (!live || live->empty()) continue;
    std::vector<OpSet> cut;
    for (const Cutter &variant : variants) {
      std::optional<OpSet> before = variant.opsBefore(*live);
      const bool holds =
          before && variant.liveBehind(*before) == live &&
          (cuts.empty() || before->containsAll(cuts.back()[cut.size()])) &&
          (!cut.empty() || *before == prefix) &&
          std::ranges::all_of(*live, [&](const std::string &name) {
            return textOf(variant.tensorNamed(name)) == textOf(variants.front().tensorNamed(name));
          });
      if (!holds) break;
      cut.push_back(std::move(*before));
    }
    if (cut.size() == variants.size()) cuts.push_back(std::move(cut));
  }
  std::vector<OpSet> &whole = cuts.emplace_back();
  for (const Cutter &variant : variants)
    whole.push_back(OpSet::firstOps(static_cast<int>(variant.variant().ops.size())));
  return cuts;
}

/// Names of what the graph returns; nothing where variants return different tensors.
std::optional<std::set<std::string>> commonResults(const std::vector<Cutter> &variants) {
  std::set<std::string> names;
  for (const Cutter &variant : variants) {
    std::set<std::string> own;
    for (const Tensor &tensor : variant.variant().tensors)
      if (tensor.isResult && !own.insert(tensor.name).second) return std::nullopt;
    if (&variant == &variants.front()) names = own;
    if (own != names) return std::nullopt;
    for (const std::string &name : own)
      if (!variant.isUnique(name) ||
          textOf(variant.tensorNamed(name)) != textOf(variants.front().tensorNamed(name)))
        return std::nullopt;
  }
  return names;
}

/// Numbers of tensors and ops in the joint problem.
class Joiner {
public:
  explicit Joiner(const Problem &first) {
    joint.name = "combinations";
    joint.entryPoints = first.entryPoints;
  }

  /// One alternative of the site at hand.
  void addAlternative(const Problem &variant, const std::vector<int> &ops,
                      const std::set<std::string> &crossing) {
    std::map<int, int> tensors, numbers;
    const auto tensorOf = [&](int tensor) {
      const auto [found, isNew] = tensors.try_emplace(tensor, -1);
      if (isNew) found->second = numberOf(variant.tensors[static_cast<size_t>(tensor)], crossing);
      return found->second;
    };
    const auto tensorsOf = [&](const std::vector<int> &all) {
      std::vector<int> result;
      std::ranges::transform(all, std::back_inserter(result), tensorOf);
      return result;
    };
    std::vector<int> &own = joint.sites.back().emplace_back();
    for (const int number : ops) {
      const auto op = static_cast<size_t>(number);
      numbers.emplace(number, static_cast<int>(joint.ops.size()));
      own.push_back(static_cast<int>(joint.ops.size()));
      if (const auto reasons = variant.unfusedReasons.find(number);
          reasons != variant.unfusedReasons.end())
        joint.unfusedReasons[own.back()] = reasons->second;
      joint.ops.push_back(variant.ops[op]);
      joint.opInputs.push_back(tensorsOf(variant.opInputs[op]));
      joint.opOutputs.push_back(tensorsOf(variant.opOutputs[op]));
      joint.opEntries.push_back(variant.opEntries.empty() ? 0 : variant.opEntries[op]);
    }
    for (const Candidate &candidate : variant.candidates) {
      if (!numbers.contains(candidate.ops.front())) continue;
      Candidate copy = candidate;
      for (int &op : copy.ops) op = numbers.at(op);
      copy.inputs = tensorsOf(copy.inputs);
      copy.outputs = tensorsOf(copy.outputs);
      joint.candidates.push_back(std::move(copy));
    }
  }

  Problem joint;

private:
  int numberOf(const Tensor &tensor, const std::set<std::string> &crossing) {
    const bool isShared = tensor.isArgument || crossing.contains(tensor.name);
    if (isShared)
      if (const auto found = shared.find(tensor.name); found != shared.end()) return found->second;
    const int number = static_cast<int>(joint.tensors.size());
    joint.tensors.push_back(tensor);
    if (isShared) shared.emplace(tensor.name, number);
    return number;
  }

  std::map<std::string, int> shared;  ///< arguments, and what crosses cuts
};

}  // namespace

size_t JoinedVariants::choices() const {
  return static_cast<size_t>(std::ranges::count_if(
      variantOf, [](const auto &alternatives) { return alternatives.size() > 1; }));
}

std::vector<int> partsOf(const Problem &problem, const std::set<std::string> &mayCross) {
  std::vector<Cutter> variants;
  variants.emplace_back(problem, mayCross);
  std::vector<int> parts(problem.ops.size(), 0);
  if (!variants.front().mayBeCut()) return parts;
  const std::vector<std::vector<OpSet>> cuts = cutsOf(variants);
  for (size_t cut = 0; cut + 1 < cuts.size(); ++cut)
    for (size_t op = 0; op < parts.size(); ++op)
      if (!cuts[cut].front().contains(static_cast<int>(op))) ++parts[op];
  return parts;
}

std::optional<JoinedVariants> joinVariants(const std::vector<const Problem *> &variants,
                                           const std::vector<std::set<std::string>> &mayCross) {
  if (variants.size() < 2) return std::nullopt;
  std::vector<Cutter> cutters;
  for (size_t v = 0; v < variants.size(); ++v) {
    if (variants[v]->entryPoints != variants.front()->entryPoints ||
        !variants[v]->tiedTensors.empty())
      return std::nullopt;
    cutters.emplace_back(*variants[v], mayCross[v]);
    if (!cutters.back().mayBeCut()) return std::nullopt;
  }
  const std::vector<std::vector<OpSet>> cuts = cutsOf(cutters);
  const std::optional<std::set<std::string>> results = commonResults(cutters);
  if (!results) return std::nullopt;
  std::set<std::string> crossing = *results;
  for (size_t cut = 0; cut + 1 < cuts.size(); ++cut) {
    const std::optional<std::set<std::string>> live = cutters.front().liveBehind(cuts[cut].front());
    crossing.insert(live->begin(), live->end());
  }
  JoinedVariants result;
  Joiner joiner(*variants.front());
  result.siteOf.assign(variants.front()->ops.size(), 0);
  for (size_t site = 0; site < cuts.size(); ++site) {
    std::map<std::string, size_t> known;  // alternatives by their text
    std::vector<size_t> &alternatives = result.alternativeOf.emplace_back(),
                        &firsts = result.variantOf.emplace_back();
    std::vector<std::vector<int>> &opsOf = result.opsOf.emplace_back();
    joiner.joint.sites.emplace_back();
    for (size_t v = 0; v < variants.size(); ++v) {
      const OpSet ops = site == 0 ? cuts[site][v] : cuts[site][v] - cuts[site - 1][v];
      opsOf.push_back(ops.members());
      const auto [found, isNew] = known.try_emplace(cutters[v].textOfOps(ops), firsts.size());
      alternatives.push_back(found->second);
      if (!isNew) continue;
      firsts.push_back(v);
      joiner.addAlternative(*variants[v], opsOf.back(), crossing);
    }
    for (const int op : opsOf.front())
      result.siteOf[static_cast<size_t>(op)] = static_cast<int>(site);
    // Kernels are ready in the order of ops alone where every alternative has one.
    if (firsts.size() > 1 &&
        std::ranges::any_of(joiner.joint.sites.back(), &std::vector<int>::empty))
      return std::nullopt;
  }
  if (result.choices() < 2) return std::nullopt;
  result.problem = std::move(joiner.joint);
  return result;
}

std::vector<size_t> variantsIn(const JoinedVariants &joined, const Selection &of) {
  std::vector<size_t> siteOf(joined.problem.ops.size()), alternativeOf(joined.problem.ops.size());
  for (size_t site = 0; site < joined.problem.sites.size(); ++site)
    for (size_t one = 0; one < joined.problem.sites[site].size(); ++one)
      for (const int op : joined.problem.sites[site][one])
        siteOf[static_cast<size_t>(op)] = site, alternativeOf[static_cast<size_t>(op)] = one;
  std::vector<size_t> result(joined.problem.sites.size(), 0);
  for (const Step &step : of.best().steps)
    if (step.candidate >= 0)
      for (const int op : of.problem().candidates[static_cast<size_t>(step.candidate)].ops)
        result[siteOf[static_cast<size_t>(op)]] =
            joined
                .variantOf[siteOf[static_cast<size_t>(op)]][alternativeOf[static_cast<size_t>(op)]];
  return result;
}

std::vector<size_t> plainest(const JoinedVariants &joined, const Selection &of) {
  std::vector<size_t> chosen = variantsIn(joined, of);
  const Selection::Graph &graph = *of.graph;
  const Sites &sites = graph.lattice->sites();
  const auto secondsOf = [&](const std::vector<size_t> &variantOfSite) {
    std::vector<bool> isOther;
    for (const Candidate &candidate : graph.problem.candidates)
      isOther.push_back(std::ranges::any_of(candidate.ops, [&](int op) {
        const auto site = static_cast<size_t>(sites.siteOf(op));
        return sites.alternativeOf(op) != joined.alternativeOf[site][variantOfSite[site]];
      }));
    return shortestOver(graph, [&](const Edge &edge) {
      return edge.candidate < 0 || !isOther[static_cast<size_t>(edge.candidate)];
    });
  };
  constexpr double sameTime = 1 + 1e-9;
  const double most = of.best().seconds * sameTime;
  const auto alikeAt = [&](size_t site, size_t variant) {
    return joined.alternativeOf[site][variant] == joined.alternativeOf[site][chosen[site]];
  };
  size_t nearest = 0;
  std::ptrdiff_t mostAlike = -1;
  for (size_t v = 0; v < joined.alternativeOf.front().size(); ++v) {
    std::ptrdiff_t alike = 0;
    for (size_t site = 0; site < chosen.size(); ++site) alike += alikeAt(site, v);
    if (alike > mostAlike) nearest = v, mostAlike = alike;
    if (secondsOf(std::vector<size_t>(chosen.size(), v)) <= most)
      return std::vector<size_t>(chosen.size(), v);
  }
  for (size_t site = 0; site < chosen.size(); ++site) {
    if (alikeAt(site, nearest)) {
      chosen[site] = nearest;
      continue;
    }
    std::vector<size_t> plainer = chosen;
    plainer[site] = nearest;
    if (secondsOf(plainer) <= most) chosen = std::move(plainer);
  }
  return chosen;
}

std::optional<size_t> variantWith(const JoinedVariants &joined,
                                  const std::vector<size_t> &variantOfSite) {
  for (size_t v = 0; v < joined.alternativeOf.front().size(); ++v) {
    bool hasAll = true;
    for (size_t site = 0; site < variantOfSite.size() && hasAll; ++site)
      hasAll = joined.alternativeOf[site][v] == joined.alternativeOf[site][variantOfSite[site]];
    if (hasAll) return v;
  }
  return std::nullopt;
}

}  // namespace weft::select
