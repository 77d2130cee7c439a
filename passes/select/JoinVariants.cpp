// Which ops are shared is found by what they read, write and compute, and taken back where that
// would lose a kernel: one that keeps a tensor on chip is no kernel beside forms that read the
// tensor, so the ops of such kernels belong to the sites of those who read it.
#include "passes/select/JoinVariants.h"

#include "passes/select/Graph.h"
#include "passes/select/GraphParts.h"
#include "passes/select/OpSet.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>

namespace weft::select {
namespace {

/// A variant, asked for its tensors and ops by what they are.
struct Facts {
  Facts(const Problem &problem, const std::set<std::string> &mayCross)
      : problem(problem),
        writer(problem.tensors.size(), -1),
        readers(problem.tensors.size()),
        mayShare(mayBeShared(problem, mayCross)) {
    for (size_t tensor = 0; tensor < problem.tensors.size(); ++tensor) {
      identities.push_back(identityOf(problem.tensors[tensor]));
      if (mayShare[tensor] || problem.tensors[tensor].isResult)
        numberOf[problem.tensors[tensor].name] = static_cast<int>(tensor);
    }
    std::vector<std::string> alone(problem.ops.size());
    for (const Candidate &candidate : problem.candidates)
      if (candidate.ops.size() == 1)
        alone[static_cast<size_t>(candidate.ops.front())] += canonicalText(candidate.kernel);
    for (size_t op = 0; op < problem.ops.size(); ++op) {
      std::string &text = opTexts.emplace_back(problem.ops[op]);
      if (!problem.opEntries.empty()) text += fmt::format(" entry {}", problem.opEntries[op]);
      for (const auto *tensors : {&problem.opInputs, &problem.opOutputs}) {
        text += "\n";
        for (const int tensor : (*tensors)[op])
          text += identities[static_cast<size_t>(tensor)] + ";";
      }
      text += "\n" + alone[op];
      for (const int tensor : problem.opInputs[op])
        readers[static_cast<size_t>(tensor)].push_back(static_cast<int>(op));
      for (const int tensor : problem.opOutputs[op])
        writer[static_cast<size_t>(tensor)] = static_cast<int>(op);
    }
  }

  const Problem &problem;
  std::vector<int> writer;                ///< by tensor
  std::vector<std::vector<int>> readers;  ///< by tensor
  std::vector<bool> mayShare;             ///< by tensor
  std::vector<std::string> identities;    ///< by tensor
  std::vector<std::string> opTexts;       ///< by op
  std::map<std::string, int> numberOf;    ///< tensors that may be shared, and results
};

/// Whether all variants return the same tensors, each once.
bool returnTheSame(const std::vector<Facts> &variants) {
  std::set<std::string> first;
  for (const Facts &variant : variants) {
    std::set<std::string> own;
    for (size_t tensor = 0; tensor < variant.problem.tensors.size(); ++tensor)
      if (variant.problem.tensors[tensor].isResult &&
          !own.insert(variant.identities[tensor]).second)
        return false;
    if (&variant == &variants.front()) first = own;
    if (own != first) return false;
  }
  return true;
}

class Joiner {
public:
  explicit Joiner(std::vector<Facts> of) : variants(std::move(of)) {
    for (const Facts &variant : variants) {
      firstItem.push_back(items);
      items += variant.problem.ops.size();
      isShared.emplace_back(variant.problem.ops.size(), false);
      counterpart.emplace_back(variant.problem.ops.size(), -1);
    }
    findSharedTensors();
    findSharedOps();
  }

  std::optional<JoinedVariants> run() {
    do {
      if (!findSites()) return std::nullopt;
    } while (takesBackForKernels() || !findOrder());
    result.shared = sharedTensors;
    if (result.choices() < 2) return std::nullopt;
    numberOps();
    addTensors();
    addCandidates();
    return std::move(result);
  }

private:
  struct Node {
    size_t variant = 0;
    int op = 0, site = -1;
    size_t alternative = 0;
  };

  bool isSharedTensor(size_t variant, int tensor) const {
    return isShareable[variant][static_cast<size_t>(tensor)];
  }

  /// Arguments of any variant, and what all variants have.
  void findSharedTensors() {
    for (const auto &[name, tensor] : variants.front().numberOf) {
      const std::string &identity = variants.front().identities[static_cast<size_t>(tensor)];
      if (std::ranges::all_of(variants, [&](const Facts &variant) {
            const auto found = variant.numberOf.find(name);
            return found != variant.numberOf.end() &&
                   variant.identities[static_cast<size_t>(found->second)] == identity;
          }))
        sharedTensors.insert(name);
    }
    for (const Facts &variant : variants)
      for (const Tensor &tensor : variant.problem.tensors)
        if (tensor.isArgument) sharedTensors.insert(tensor.name);
    for (const Facts &variant : variants) {
      isShareable.emplace_back(variant.problem.tensors.size(), false);
      for (const auto &[name, tensor] : variant.numberOf)
        isShareable.back()[static_cast<size_t>(tensor)] = sharedTensors.contains(name);
    }
  }

  void findSharedOps() {
    std::vector<std::map<std::string, std::vector<int>>> byText(variants.size());
    for (size_t v = 0; v < variants.size(); ++v)
      for (size_t op = 0; op < variants[v].opTexts.size(); ++op)
        byText[v][variants[v].opTexts[op]].push_back(static_cast<int>(op));
    for (const auto &[text, ops] : byText.front()) {
      const auto isOnce = [&](const auto &texts) {
        const auto found = texts.find(text);
        return found != texts.end() && found->second.size() == 1;
      };
      const Problem &first = variants.front().problem;
      const auto op = static_cast<size_t>(ops.front());
      const auto isSame = [&](int tensor) { return isSharedTensor(0, tensor); };
      if (!std::ranges::all_of(byText, isOnce) ||
          !std::ranges::all_of(first.opInputs[op], isSame) ||
          !std::ranges::all_of(first.opOutputs[op], isSame))
        continue;
      for (size_t v = 0; v < variants.size(); ++v) {
        const auto own = static_cast<size_t>(byText[v].at(text).front());
        isShared[v][own] = true;
        counterpart[v][own] = ops.front();
      }
    }
  }

  size_t itemOf(size_t variant, int op) const {
    return firstItem[variant] + static_cast<size_t>(op);
  }
  size_t rootOf(size_t item) {
    while (parent[item] != item) item = parent[item] = parent[parent[item]];
    return item;
  }
  void unite(size_t a, size_t b) { parent[rootOf(a)] = rootOf(b); }

  /// False where a site has no op in some variant: kernels are ready in the order of ops alone
  /// where every alternative has one.
  bool findSites() {
    parent.resize(items);
    std::iota(parent.begin(), parent.end(), size_t(0));
    std::map<std::string, size_t> writerOf;
    for (size_t v = 0; v < variants.size(); ++v)
      for (size_t op = 0; op < isShared[v].size(); ++op) {
        if (isShared[v][op]) continue;
        const size_t item = itemOf(v, static_cast<int>(op));
        for (const int tensor : variants[v].problem.opInputs[op])
          if (const int before = variants[v].writer[static_cast<size_t>(tensor)];
              before >= 0 && !isSharedTensor(v, tensor))
            unite(item, itemOf(v, before));
        for (const int tensor : variants[v].problem.opOutputs[op])
          if (isSharedTensor(v, tensor))
            unite(item, writerOf
                            .try_emplace(
                                variants[v].problem.tensors[static_cast<size_t>(tensor)].name, item)
                            .first->second);
      }
    for (const auto &[a, b] : linked) unite(a, b);
    siteOf.assign(items, -1);
    opsOf.clear();
    std::map<size_t, int> numbers;
    for (size_t v = 0; v < variants.size(); ++v)
      for (size_t op = 0; op < isShared[v].size(); ++op) {
        if (isShared[v][op]) continue;
        const size_t item = itemOf(v, static_cast<int>(op));
        const auto [found, isNew] =
            numbers.try_emplace(rootOf(item), static_cast<int>(opsOf.size()));
        if (isNew) opsOf.emplace_back(variants.size());
        siteOf[item] = found->second;
        opsOf[static_cast<size_t>(found->second)][v].push_back(static_cast<int>(op));
      }
    findAlternatives();
    return std::ranges::all_of(opsOf, [](const auto &site) {
      return std::ranges::none_of(site, [](const auto &ops) { return ops.empty(); });
    });
  }

  void findAlternatives() {
    result.alternativeOf.clear();
    result.variantOf.clear();
    for (const std::vector<std::vector<int>> &site : opsOf) {
      std::map<std::string, size_t> known;
      std::vector<size_t> &alternatives = result.alternativeOf.emplace_back(),
                          &firsts = result.variantOf.emplace_back();
      for (size_t v = 0; v < variants.size(); ++v) {
        std::string text;
        for (const int op : site[v]) text += variants[v].opTexts[static_cast<size_t>(op)] + "\n\n";
        const auto [found, isNew] = known.try_emplace(std::move(text), firsts.size());
        alternatives.push_back(found->second);
        if (isNew) firsts.push_back(v);
      }
    }
  }

  /// Puts an op of all variants into the site of another.
  void takeBack(size_t variant, int op) {
    if (!isShared[variant][static_cast<size_t>(op)]) return;
    const int first = counterpart[variant][static_cast<size_t>(op)];
    for (size_t v = 0; v < variants.size(); ++v)
      for (size_t other = 0; other < isShared[v].size(); ++other)
        if (isShared[v][other] && counterpart[v][other] == first) {
          isShared[v][other] = false;
          linked.emplace_back(itemOf(v, static_cast<int>(other)), itemOf(variant, op));
        }
  }

  /// Whether a kernel of a variant keeps a tensor on chip that a form beside it reads; then its ops
  /// and that form are in one site from now on.
  bool takesBackForKernels() {
    bool isAny = false;
    for (size_t v = 0; v < variants.size(); ++v)
      for (const Candidate &candidate : variants[v].problem.candidates)
        for (const int op : candidate.ops)
          for (const int tensor : variants[v].problem.opOutputs[static_cast<size_t>(op)])
            if (std::ranges::count(candidate.outputs, tensor) == 0 && isSharedTensor(v, tensor))
              isAny |= takesBackFor(v, candidate, tensor);
    return isAny;
  }

  bool takesBackFor(size_t variant, const Candidate &candidate, int tensor) {
    const std::string &name = variants[variant].problem.tensors[static_cast<size_t>(tensor)].name;
    std::set<int> ownSites;
    for (const int op : candidate.ops) ownSites.insert(siteOf[itemOf(variant, op)]);
    for (size_t v = 0; v < variants.size(); ++v)
      for (const int reader :
           variants[v].readers[static_cast<size_t>(variants[v].numberOf.at(name))]) {
        const int site = siteOf[itemOf(v, reader)];
        if (site < 0 || ownSites.contains(site)) continue;
        const std::vector<size_t> &alternatives = result.alternativeOf[static_cast<size_t>(site)];
        if (alternatives[v] == alternatives[variant]) continue;
        for (const int op : candidate.ops) takeBack(variant, op);
        for (const int op : candidate.ops)
          linked.emplace_back(itemOf(variant, op), itemOf(v, reader));
        return true;
      }
    return false;
  }

  /// Ops by shared number or by place in an alternative, in an order in which each stands behind
  /// what it may read. False where alternatives of two sites wait for each other: they are one site
  /// from now on.
  bool findOrder() {
    nodes.clear();
    nodeOf.assign(items, -1);
    for (size_t op = 0; op < isShared.front().size(); ++op)
      if (isShared.front()[op]) addNode({.variant = 0, .op = static_cast<int>(op)});
    for (size_t site = 0; site < opsOf.size(); ++site)
      for (size_t one = 0; one < result.variantOf[site].size(); ++one)
        for (const int op : opsOf[site][result.variantOf[site][one]])
          addNode({.variant = result.variantOf[site][one],
                   .op = op,
                   .site = static_cast<int>(site),
                   .alternative = one});
    for (size_t v = 0; v < variants.size(); ++v)
      for (size_t op = 0; op < isShared[v].size(); ++op)
        if (isShared[v][op])
          nodeOf[itemOf(v, static_cast<int>(op))] = nodeOf[itemOf(0, counterpart[v][op])];
    for (size_t site = 0; site < opsOf.size(); ++site)
      for (size_t v = 0; v < variants.size(); ++v) {
        const std::vector<int> &first =
            opsOf[site][result.variantOf[site][result.alternativeOf[site][v]]];
        for (size_t n = 0; n < first.size(); ++n)
          nodeOf[itemOf(v, opsOf[site][v][n])] =
              nodeOf[itemOf(result.variantOf[site][result.alternativeOf[site][v]], first[n])];
      }
    findEdges();
    return sortNodes();
  }

  void addNode(const Node &node) {
    nodeOf[itemOf(node.variant, node.op)] = static_cast<int>(nodes.size());
    nodes.push_back(node);
  }

  void findEdges() {
    after.assign(nodes.size(), {});
    before.assign(nodes.size(), {});
    std::map<std::string, std::vector<int>> writers;
    for (size_t node = 0; node < nodes.size(); ++node)
      for (const int tensor : outputsOf(nodes[node]))
        writers[keyOf(nodes[node].variant, tensor)].push_back(static_cast<int>(node));
    for (size_t node = 0; node < nodes.size(); ++node)
      for (const int tensor : inputsOf(nodes[node]))
        for (const int writer : writers[keyOf(nodes[node].variant, tensor)]) {
          const Node &of = nodes[static_cast<size_t>(writer)];
          if (of.site >= 0 && of.site == nodes[node].site &&
              of.alternative != nodes[node].alternative)
            continue;
          after[static_cast<size_t>(writer)].push_back(static_cast<int>(node));
          before[node].push_back(writer);
        }
  }

  const std::vector<int> &inputsOf(const Node &node) const {
    return variants[node.variant].problem.opInputs[static_cast<size_t>(node.op)];
  }
  const std::vector<int> &outputsOf(const Node &node) const {
    return variants[node.variant].problem.opOutputs[static_cast<size_t>(node.op)];
  }

  /// One for all variants of a shared tensor, one a variant of another.
  std::string keyOf(size_t variant, int tensor) const {
    return isSharedTensor(variant, tensor)
               ? variants[variant].problem.tensors[static_cast<size_t>(tensor)].name
               : fmt::format("{} {}", variant, tensor);
  }

  /// As the first variant has them; ops of alternatives behind the shared op that is before them.
  bool sortNodes() {
    std::vector<std::tuple<int, int, size_t, int>> ranks;
    for (const Node &node : nodes) {
      int shared = node.site < 0 ? node.op : -1;
      for (int op = node.op; node.site >= 0 && op-- > 0;)
        if (isShared[node.variant][static_cast<size_t>(op)]) {
          shared = counterpart[node.variant][static_cast<size_t>(op)];
          break;
        }
      ranks.emplace_back(shared, node.site, node.alternative, node.op);
    }
    std::vector<int> waitsFor;
    std::priority_queue<std::pair<std::tuple<int, int, size_t, int>, int>,
                        std::vector<std::pair<std::tuple<int, int, size_t, int>, int>>,
                        std::greater<>>
        ready;
    for (size_t node = 0; node < nodes.size(); ++node) {
      waitsFor.push_back(static_cast<int>(before[node].size()));
      if (waitsFor.back() == 0) ready.emplace(ranks[node], static_cast<int>(node));
    }
    order.clear();
    while (!ready.empty()) {
      const int node = ready.top().second;
      ready.pop();
      order.push_back(node);
      for (const int next : after[static_cast<size_t>(node)])
        if (--waitsFor[static_cast<size_t>(next)] == 0)
          ready.emplace(ranks[static_cast<size_t>(next)], next);
    }
    if (order.size() == nodes.size()) return true;
    linkCircles(waitsFor);
    return false;
  }

  /// `waitsFor`, by node: zero for those that stand in no circle and behind none.
  void linkCircles(const std::vector<int> &waitsFor) {
    std::vector<int> leads(nodes.size(), 0), done;
    const auto isIn = [&](int node) { return waitsFor[static_cast<size_t>(node)] > 0; };
    for (size_t node = 0; node < nodes.size(); ++node) {
      if (!isIn(static_cast<int>(node))) continue;
      leads[node] = static_cast<int>(std::ranges::count_if(after[node], isIn));
      if (leads[node] == 0) done.push_back(static_cast<int>(node));
    }
    for (size_t n = 0; n < done.size(); ++n)
      for (const int writer : before[static_cast<size_t>(done[n])])
        if (isIn(writer) && --leads[static_cast<size_t>(writer)] == 0) done.push_back(writer);
    std::optional<size_t> first;
    for (size_t node = 0; node < nodes.size(); ++node) {
      if (leads[node] == 0) continue;
      const Node &one = nodes[node];
      takeBack(one.variant, one.op);
      const size_t item = itemOf(one.variant, one.op);
      if (first) linked.emplace_back(item, *first);
      else first = item;
    }
  }

  void numberOps() {
    std::vector<int> numberOfNode(nodes.size());
    Problem &joint = result.problem;
    joint.name = "combinations";
    joint.entryPoints = variants.front().problem.entryPoints;
    for (const std::vector<size_t> &alternatives : result.variantOf)
      joint.sites.emplace_back(alternatives.size());
    for (size_t n = 0; n < order.size(); ++n) {
      const Node &node = nodes[static_cast<size_t>(order[n])];
      const Problem &from = variants[node.variant].problem;
      const auto op = static_cast<size_t>(node.op);
      numberOfNode[static_cast<size_t>(order[n])] = static_cast<int>(n);
      if (node.site >= 0)
        joint.sites[static_cast<size_t>(node.site)][node.alternative].push_back(
            static_cast<int>(n));
      if (const auto reasons = from.unfusedReasons.find(node.op);
          reasons != from.unfusedReasons.end())
        joint.unfusedReasons[static_cast<int>(n)] = reasons->second;
      joint.ops.push_back(from.ops[op]);
      joint.opEntries.push_back(from.opEntries.empty() ? 0 : from.opEntries[op]);
      result.origins.emplace_back(node.variant, node.op);
    }
    for (size_t v = 0; v < variants.size(); ++v) {
      std::vector<int> &own = result.numbers.emplace_back();
      for (size_t op = 0; op < isShared[v].size(); ++op)
        own.push_back(numberOfNode[static_cast<size_t>(nodeOf[itemOf(v, static_cast<int>(op))])]);
    }
  }

  /// In the order of ops, so that each stands with what it is read and written by.
  void addTensors() {
    Problem &joint = result.problem;
    std::map<std::string, int> known;
    const auto add = [&](size_t variant, int tensor) {
      const auto [found, isNew] =
          known.try_emplace(keyOf(variant, tensor), static_cast<int>(joint.tensors.size()));
      if (isNew)
        joint.tensors.push_back(variants[variant].problem.tensors[static_cast<size_t>(tensor)]);
      return found->second;
    };
    for (const auto &[variant, op] : result.origins) {
      const Node node{.variant = variant, .op = op};
      for (auto *tensors : {&joint.opInputs, &joint.opOutputs}) {
        std::vector<int> &own = tensors->emplace_back();
        for (const int tensor : tensors == &joint.opInputs ? inputsOf(node) : outputsOf(node))
          own.push_back(add(variant, tensor));
      }
    }
    for (size_t v = 0; v < variants.size(); ++v) {
      std::vector<int> &own = tensorOf.emplace_back();
      const Problem &variant = variants[v].problem;
      for (size_t tensor = 0; tensor < variant.tensors.size(); ++tensor) {
        const int writer = variants[v].writer[tensor];
        if (writer < 0) {
          own.push_back(add(v, static_cast<int>(tensor)));
          continue;
        }
        const std::vector<int> &outputs = variant.opOutputs[static_cast<size_t>(writer)];
        const auto place = std::ranges::find(outputs, static_cast<int>(tensor)) - outputs.begin();
        own.push_back(joint.opOutputs[static_cast<size_t>(
            result.numbers[v][static_cast<size_t>(writer)])][static_cast<size_t>(place)]);
      }
    }
  }

  /// Those of every variant, equal ones once.
  void addCandidates() {
    std::set<std::tuple<std::vector<int>, std::vector<int>, std::vector<int>, std::string>> known;
    for (size_t v = 0; v < variants.size(); ++v)
      for (const Candidate &candidate : variants[v].problem.candidates) {
        Candidate copy = candidate;
        for (int &op : copy.ops) op = result.numbers[v][static_cast<size_t>(op)];
        for (std::vector<int> *tensors : {&copy.inputs, &copy.outputs})
          for (int &tensor : *tensors) tensor = tensorOf[v][static_cast<size_t>(tensor)];
        std::ranges::sort(copy.ops);
        if (known.emplace(copy.ops, copy.inputs, copy.outputs, canonicalText(copy.kernel)).second)
          result.problem.candidates.push_back(std::move(copy));
      }
  }

  std::vector<Facts> variants;
  std::vector<size_t> firstItem;  ///< by variant: items are the ops of all variants
  size_t items = 0;
  std::set<std::string> sharedTensors;
  std::vector<std::vector<bool>> isShareable;        ///< by variant and tensor
  std::vector<std::vector<bool>> isShared;           ///< by variant and op
  std::vector<std::vector<int>> counterpart;         ///< of a shared op: in the first variant
  std::vector<std::pair<size_t, size_t>> linked;     ///< items that must be in one site
  std::vector<size_t> parent;                        ///< by item
  std::vector<int> siteOf;                           ///< by item
  std::vector<std::vector<std::vector<int>>> opsOf;  ///< by site and variant, ascending
  std::vector<Node> nodes;
  std::vector<int> nodeOf;                      ///< by item
  std::vector<std::vector<int>> after, before;  ///< by node
  std::vector<int> order;                       ///< of nodes
  std::vector<std::vector<int>> tensorOf;       ///< by variant and tensor there
  JoinedVariants result;
};

}  // namespace

std::vector<int> JoinedVariants::siteOfOps() const {
  const Sites sites(problem);
  std::vector<int> result;
  for (size_t op = 0; op < problem.ops.size(); ++op)
    result.push_back(sites.siteOf(static_cast<int>(op)));
  return result;
}

size_t JoinedVariants::choices() const {
  return static_cast<size_t>(std::ranges::count_if(
      variantOf, [](const auto &alternatives) { return alternatives.size() > 1; }));
}

std::optional<JoinedVariants> joinVariants(const std::vector<const Problem *> &variants,
                                           const std::vector<std::set<std::string>> &mayCross) {
  if (variants.size() < 2) return std::nullopt;
  std::vector<Facts> facts;
  for (size_t v = 0; v < variants.size(); ++v) {
    if (variants[v]->entryPoints != variants.front()->entryPoints ||
        !variants[v]->tiedTensors.empty() || movesArguments(*variants[v]))
      return std::nullopt;
    facts.emplace_back(*variants[v], mayCross[v]);
  }
  if (!returnTheSame(facts)) return std::nullopt;
  return Joiner(std::move(facts)).run();
}

std::vector<size_t> variantsIn(const JoinedVariants &joined, const Selection &of) {
  const Sites sites(joined.problem);
  std::vector<size_t> result(sites.count(), 0);
  for (const Step &step : of.best().steps)
    if (step.candidate >= 0)
      for (const int op : of.problem().candidates[static_cast<size_t>(step.candidate)].ops)
        if (const int site = sites.siteOf(op); site >= 0)
          result[static_cast<size_t>(site)] =
              joined.variantOf[static_cast<size_t>(site)][sites.alternativeOf(op)];
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
        if (sites.siteOf(op) < 0) return false;
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
