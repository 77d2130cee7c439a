// What every attempt to fuse leaves: bytes saved, pattern, and for a rejection its code and what
// blocks.
#include "passes/Describe.h"
#include "passes/Passes.h"
#include "passes/Rewrites.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleGraphs.h"

#include "mlir/AsmParser/AsmParser.h"

#include <fmt/format.h>

#include <algorithm>

using namespace weft;
using namespace weft::test;

namespace {

const FusionRecord *recordOf(const FusionResult &result, const std::vector<int> &ops) {
  for (const FusionRecord &record : result.records)
    if (record.ops == ops) return &record;
  return nullptr;
}

std::string verdictOf(const std::string &body, const std::vector<int> &ops,
                      FuseOptions options = {}) {
  const auto loaded = parse(body);
  const FusionResult result = proposeFusions(loaded->graph(), options);
  const FusionRecord *record = recordOf(result, ops);
  return record ? describe(*record) : "no record";
}

}  // namespace

TEST_CASE("bytes saved: intermediates vanish, shared inputs are read once") {
  const auto loaded = parse(types + R"(
weft.graph @g(%x: !bji) -> (!bji, !bji) {
  %a = weft.relu %x : !bji
  %b = weft.tanh %a : !bji
  %c = weft.sigmoid %x : !bji
  weft.return %b, %c : !bji, !bji
})");
  const FusionResult result = proposeFusions(loaded->graph(), FuseOptions{});
  const int64_t tensor = 2 * 3 * 8 * 4;
  REQUIRE(recordOf(result, {0, 1}));
  CHECK(recordOf(result, {0, 1})->savedBytes == 2 * tensor);
  CHECK(recordOf(result, {0, 1})->patterns == FusionPatterns{.producerConsumer = true});
  CHECK(recordOf(result, {0, 2})->savedBytes == tensor);
  CHECK(recordOf(result, {0, 2})->patterns == FusionPatterns{.sharedInput = true});
  CHECK(recordOf(result, {0, 1, 2})->savedBytes == 3 * tensor);
}

TEST_CASE("every rejection has its code and names what blocks") {
  const std::string reductions = types + R"(
weft.graph @g(%x: !bji) -> !bji {
  %a = weft.softmax %x over i : !bji
  %c = weft.softmax %a over j : !bji
  weft.return %c : !bji
})";
  CHECK(verdictOf(reductions, {0, 1}) == "F012 reduction-axis-mismatch (i against j)");

  const std::string spaces = types + R"(
weft.graph @g(%x: !bji, %s: !bj) -> !bji {
  %r = weft.relu %s : !bj
  %y = weft.mul %x, %r along (b, j) : !bji, !bj
  weft.return %y : !bji
})";
  CHECK(verdictOf(spaces, {0, 1}) == "F001 iteration-space-mismatch (b,j against b,j,i)");

  const std::string two = types + R"(
weft.graph @g(%x: !bji) -> !j {
  %r = weft.relu %x : !bji
  %s = weft.reduce sum %r over b, i : !bji -> !j
  weft.return %s : !j
})";
  CHECK(verdictOf(two, {0, 1}) == "accepted");

  const std::string gemm = types + R"(
!ui = tensor<5x8xf32, #weft.axes<u, i>>
!bju = tensor<2x3x5xf32, #weft.axes<b, j, u>>
weft.graph @g(%x: !bji, %w: !ui {weft.parameter}) -> !bju {
  %p = weft.contract "bji,ui->bju" %x, %w : !bji, !ui -> !bju
  %r = weft.relu %p : !bju
  weft.return %r : !bju
})";
  CHECK(verdictOf(gemm, {0, 1}) == "F021 contraction-epilogue-off (p)");
  FuseOptions paper;
  paper.rules = FuseRules::paper;
  CHECK(verdictOf(gemm, {0, 1}, paper) == "F020 contraction (p)");

  const std::string scores = types + R"(
!hji = tensor<2x3x8xf32, #weft.axes<h, j, i>>
!hki = tensor<2x5x8xf32, #weft.axes<h, k, i>>
!hjk = tensor<2x3x5xf32, #weft.axes<h, j, k>>
!hjn = tensor<2x3x2xf32, #weft.axes<h, j, n>>
weft.graph @g(%q: !hji, %k: !hki) -> !hjk {
  %s = weft.contract "hji,hki->hjk" %q, %k : !hji, !hki -> !hjk
  %e, %m, %d = weft.local_softmax %s over k {tile = 4} : !hjk -> !hjk, !hjn, !hjn
  %f = weft.reduce_subvectors %m, %d over n : !hjn
  %y = weft.global_scaling %e, %f {axis = k, tile = 4} : !hjk, !hjn
  weft.return %y : !hjk
})";
  FuseOptions taking;
  taking.epilogueRejection = [](const Kernel &) { return std::string(); };
  CHECK(verdictOf(scores, {0, 1}) == "F021 contraction-epilogue-off (s)");
  CHECK(verdictOf(scores, {0, 1}, taking) == "accepted");
  CHECK(verdictOf(scores, {0, 1, 2}, taking) ==
        "F024 no-epilogue ('local_softmax' gives 'm', which is not stored)");

  const std::string masked = types + R"(
!hji = tensor<2x3x8xf32, #weft.axes<h, j, i>>
!hki = tensor<2x5x8xf32, #weft.axes<h, k, i>>
!hjk = tensor<2x3x5xf32, #weft.axes<h, j, k>>
!hjn = tensor<2x3x2xf32, #weft.axes<h, j, n>>
!h = tensor<2xi32, #weft.axes<h>>
weft.graph @g(%q: !hji, %k: !hki, %lengths: !h) -> (!hjk, !hjn, !hjn) {
  %s = weft.contract "hji,hki->hjk" %q, %k : !hji, !hki -> !hjk
  %c = weft.mask causal %s {query = j, key = k} : !hjk
  %w = weft.mask padding %c, %lengths along (h) {key = k} : !hjk, !h -> !hjk
  %e, %m, %d = weft.local_softmax %w over k {tile = 4} : !hjk -> !hjk, !hjn, !hjn
  weft.return %e, %m, %d : !hjk, !hjn, !hjn
})";
  CHECK(verdictOf(masked, {0, 1}, taking) == "accepted");
  CHECK(verdictOf(masked, {0, 1, 2}, taking) == "accepted");
  CHECK(verdictOf(masked, {0, 1, 2, 3}, taking) == "accepted");

  const std::string byBlocks = types + R"(
!hji = tensor<2x3x8xf32, #weft.axes<h, j, i>>
!hki = tensor<2x5x8xf32, #weft.axes<h, k, i>>
!hjk = tensor<2x3x5xf32, #weft.axes<h, j, k>>
!table = tensor<2x3xi1, #weft.axes<m, o>>
weft.graph @g(%q: !hji, %k: !hki, %table: !table) -> !hjk {
  %s = weft.contract "hji,hki->hjk" %q, %k : !hji, !hki -> !hjk
  %b = weft.mask block %s, %table {query = j, key = k, size = 2} : !hjk, !table -> !hjk
  weft.return %b : !hjk
})";
  CHECK(verdictOf(byBlocks, {0, 1}, taking) ==
        "F024 no-epilogue ('mask' reads a table of blocks, at other coordinates than its "
        "element's)");

  const std::string turned = types + R"(
!bjp = tensor<2x3x8xf32, #weft.axes<b, j, p>>
!ip = tensor<8x8xf32, #weft.axes<i, p>>
weft.graph @g(%x: !bji, %w: !ip {weft.parameter}) -> !bjp {
  %p = weft.contract "bji,ip->bjp" %x, %w : !bji, !ip -> !bjp
  %r = weft.rotary %p {position = j, dim = p} : !bjp
  weft.return %r : !bjp
})";
  CHECK(verdictOf(turned, {0, 1}, taking) == "accepted");

  const std::string moved = types + R"(
!bjp = tensor<2x3x8xf32, #weft.axes<b, j, p>>
!ip = tensor<8x8xf32, #weft.axes<i, p>>
!p = tensor<8xf32, #weft.axes<p>>
weft.graph @g(%x: !bji, %w: !ip {weft.parameter}, %beta: !p {weft.parameter}) -> !bjp {
  %p = weft.contract "bji,ip->bjp" %x, %w : !bji, !ip -> !bjp
  %b = weft.bias %p, %beta along (p) : !bjp, !p
  %r = weft.rotary %b {position = j, dim = p} : !bjp
  weft.return %r : !bjp
})";
  CHECK(verdictOf(moved, {0, 1, 2}, taking) ==
        "F040 partner-access (b: 'rotary' follows 'bias'; partners are elements of what the "
        "contraction gives)");

  const std::string around = types + R"(
!ii = tensor<8x8xf32, #weft.axes<u, i>>
weft.graph @g(%x: !bji, %w: !ii {weft.parameter}) -> !bji {
  %r = weft.relu %x : !bji
  %p = weft.contract "bji,ui->bju" %r, %w : !bji, !ii -> !bji
  %y = weft.residual %p, %r : !bji
  weft.return %y : !bji
})";
  CHECK(verdictOf(around, {0, 2}) == "F030 would-create-cycle (p)");

  const std::string rotary = types + R"(
weft.graph @g(%x: !bji, %beta: !i) -> !bji {
  %b = weft.bias %x, %beta along (i) : !bji, !i
  %r = weft.rotary %b {position = j, dim = i} : !bji
  %y = weft.relu %r : !bji
  weft.return %y : !bji
})";
  CHECK(verdictOf(rotary, {0, 1}) == "F040 partner-access (b)");
  CHECK(verdictOf(rotary, {1, 2}) == "accepted");

  const std::string chain = types + R"(
weft.graph @g(%x: !bji) -> !bji {
  %a = weft.relu %x : !bji
  %b = weft.tanh %a : !bji
  %c = weft.exp %b : !bji
  weft.return %c : !bji
})";
  FuseOptions apart;
  apart.forbidden = {{0, 1}};
  CHECK(verdictOf(chain, {0, 1}, apart) == "F050 forbidden-by-option (0,1)");
  CHECK(verdictOf(chain, {1, 2}, apart) == "accepted");
  FuseOptions none;
  none.rules = FuseRules::none;
  CHECK(verdictOf(chain, {0, 1}, none) == "F051 fusion-off");
  FuseOptions small;
  small.maxOps = 2;
  CHECK(verdictOf(chain, {0, 1, 2}, small) == "F070 candidate-bound (2 ops)");

  const std::string movement = types + R"(
weft.graph @g(%x: !bji) -> tensor<2x3x4xf32, #weft.axes<b, j, i>> {
  %a = weft.relu %x : !bji
  %s = weft.slice %a {axis = i, start = 0, size = 4}
      : !bji -> tensor<2x3x4xf32, #weft.axes<b, j, i>>
  weft.return %s : tensor<2x3x4xf32, #weft.axes<b, j, i>>
})";
  CHECK(verdictOf(movement, {0, 1}) == "F060 movement-op (s)");

  const std::string twice = types + R"(
!bjk = tensor<2x3x3xf32, #weft.axes<b, j, k>>
weft.graph @g(%x: !bjk) -> !bjk {
  %r = weft.relu %x : !bjk
  %y = weft.add %r, %r along (b, k, j) : !bjk, !bjk
  weft.return %y : !bjk
})";
  CHECK(verdictOf(twice, {0, 1}) ==
        "F002 axis-identified-twice (tensor 'r' is read under two index maps inside one kernel)");

  const std::string subVectors = types + R"(
!bjn = tensor<2x3x2xf32, #weft.axes<b, j, n>>
weft.graph @g(%x: !bji) -> (!bji, !bjn, !bjn) {
  %e = weft.exp %x : !bji
  %y, %m, %d = weft.local_softmax %e over i {tile = 4} : !bji -> !bji, !bjn, !bjn
  %z = weft.softmax %y over i : !bji
  weft.return %z, %m, %d : !bji, !bjn, !bjn
})";
  CHECK(verdictOf(subVectors, {0, 1}) == "accepted");
  CHECK(verdictOf(subVectors, {1, 2}).starts_with("F042 sub-vector-access"));

  const std::string region = types + R"(
weft.graph @g(%x: !bji) -> !bji {
  %r = weft.kernel @fixed (%a = %x : !bji) -> (!bji) {
    %s = weft.relu %a : !bji
    weft.yield %s : !bji
  }
  %y = weft.tanh %r : !bji
  weft.return %y : !bji
})";
  CHECK(verdictOf(region, {0, 1}).starts_with("F061 already-fused"));

  const std::string independent = types + R"(
weft.graph @g(%x: !bji, %y: tensor<2x3x9xf32, #weft.axes<b, j, u>>) 
    -> (!bji, tensor<2x3x9xf32, #weft.axes<b, j, u>>) {
  %a = weft.relu %x : !bji
  %c = weft.relu %y : tensor<2x3x9xf32, #weft.axes<b, j, u>>
  weft.return %a, %c : !bji, tensor<2x3x9xf32, #weft.axes<b, j, u>>
})";
  CHECK(verdictOf(independent, {0, 1}) == "F010 extent-mismatch (i=8 against u=9)");
}

TEST_CASE("where not every set may be a candidate, whole kernels are") {
  std::string body = "weft.graph @g(%s: !bj";
  for (int i = 0; i < 6; ++i) body += fmt::format(", %x{}: !bji", i);
  body += ") -> (!bji, !bji, !bji, !bji, !bji, !bji) {\n";
  for (int i = 0; i < 6; ++i)
    body += fmt::format(
        "  %a{0} = weft.mul %x{0}, %s along (b, j) : !bji, !bj\n  %b{0} = weft.tanh %a{0} : !bji\n"
        "  %c{0} = weft.mul %b{0}, %s along (b, j) : !bji, !bj\n",
        i);
  body += "  weft.return %c0, %c1, %c2, %c3, %c4, %c5 : !bji, !bji, !bji, !bji, !bji, !bji\n}";
  const auto loaded = parse(types + body);
  FuseOptions few;
  few.maxCandidates =
      14;  // six whole kernels, and each by way of a pair; all twelve pairs would come first
  const FusionResult result = proposeFusions(loaded->graph(), few);
  CHECK(result.candidates.size() == 18 + 14);
  const auto proposes = [&](const std::vector<int> &ops) {
    return std::ranges::any_of(
        result.candidates, [&](const FusionCandidate &candidate) { return candidate.ops == ops; });
  };
  for (int i = 0; i < 6; ++i) CHECK(proposes({3 * i, 3 * i + 1, 3 * i + 2}));
  const auto isCut = [](const FusionRecord &record) {
    return record.code == reasons::candidateBound.code && record.detail == "14 candidates";
  };
  CHECK(std::ranges::any_of(result.records, isCut));
  CHECK(std::ranges::count_if(result.records, [&](const FusionRecord &record) {
          return isCut(record) && record.ops.size() > 2;
        }) <= 1);
}

TEST_CASE("attached records and candidates are read back as they were proposed") {
  const auto loaded = parse(types + R"(
!ui = tensor<5x8xf32, #weft.axes<u, i>>
!bju = tensor<2x3x5xf32, #weft.axes<b, j, u>>
weft.graph @g(%x: !bji, %w: !ui {weft.parameter}) -> !bju {
  %a = weft.relu %x : !bji
  %b = weft.tanh %a : !bji
  %y = weft.contract "bji,ui->bju" %b, %w : !bji, !ui -> !bju
  %z = weft.relu %y : !bju
  weft.return %z : !bju
})");
  GraphOp graph = loaded->graph();
  const FusionResult proposed = proposeFusions(graph, FuseOptions{});
  const FusionRecord *behind = recordOf(proposed, {2, 3});
  REQUIRE(behind);
  CHECK(behind->detail == "y");
  CHECK(behind->rejectedOp == 2);
  CHECK(recordOf(proposed, {0, 1})->rejectedOp == -1);
  graph->setAttr("weft.candidates", candidatesAttribute(graph, proposed));
  graph->setAttr("weft.records", recordsAttribute(graph.getContext(), proposed.records));
  const FusionResult attached = attachedFusions(graph);
  REQUIRE(attached.candidates.size() == proposed.candidates.size());
  for (size_t index = 0; index < attached.candidates.size(); ++index)
    CHECK(attached.candidates[index].patterns == proposed.candidates[index].patterns);
  REQUIRE(attached.records.size() == proposed.records.size());
  for (size_t index = 0; index < attached.records.size(); ++index) {
    CHECK(attached.records[index].patterns == proposed.records[index].patterns);
    CHECK(attached.records[index].rejectedOp == proposed.records[index].rejectedOp);
    CHECK(describe(attached.records[index]) == describe(proposed.records[index]));
  }
}

TEST_CASE("a rejection is read by its attributes, whatever characters they have") {
  const auto loaded = parse(types + R"(
weft.graph @g(%x: !bji) -> !bji {
  %a = weft.relu %x : !bji
  %b = weft.tanh %a : !bji
  weft.return %b : !bji
})");
  GraphOp graph = loaded->graph();
  const FusionResult proposed = proposeFusions(graph, FuseOptions{});
  graph->setAttr("weft.candidates", candidatesAttribute(graph, proposed));
  const auto attach = [&](const std::string &records) {
    graph->setAttr("weft.records", mlir::parseAttribute(records, graph.getContext()));
    return attachedFusions(graph).records;
  };
  const std::vector<FusionRecord> records = attach(
      R"([{ops = [0, 1], pass = "fuse", rejected = {code = "F001", detail = "a (of two) words",)"
      R"( op = 1 : i64, reason = "two words"}}])");
  REQUIRE(records.size() == 1);
  CHECK((records[0].code == "F001" && records[0].reason == "two words"));
  CHECK((records[0].detail == "a (of two) words" && records[0].rejectedOp == 1));
  CHECK(describe(records[0]) == "F001 two words (a (of two) words)");
  CHECK_THROWS_WITH(attach(R"([{ops = [0, 1], pass = "fuse", rejected = "F001 two words"}])"),
                    Catch::Contains("a dictionary of code"));
  CHECK_THROWS_WITH(
      attach(R"([{ops = [0, 1], pass = "fuse", rejected = {code = "F001", op = 2 : i64}}])"),
      Catch::Contains("op 2 is none of the graph's 2"));
}

TEST_CASE("few independent ops merge in all ways, many in runs alone") {
  const auto candidatesOf = [](int count, const FuseOptions &options = {}) {
    std::string arguments, body, results, resultTypes;
    for (int i = 0; i < count; ++i) {
      const std::string comma = i ? ", " : "";
      arguments += fmt::format("{}%x{}: !bji", comma, i);
      body += fmt::format("  %y{} = weft.relu %x{} : !bji\n", i, i);
      results += fmt::format("{}%y{}", comma, i);
      resultTypes += comma + "!bji";
    }
    const auto loaded =
        parse(types + fmt::format("weft.graph @g({}) -> ({}) {{\n{}  weft.return {} : {}\n}}",
                                  arguments, resultTypes, body, results, resultTypes));
    return proposeFusions(loaded->graph(), options);
  };
  CHECK(candidatesOf(6).candidates.size() == (1 << 6) - 1);
  const FusionResult many = candidatesOf(16);
  for (const FusionCandidate &candidate : nonEmpty(many.candidates))
    CHECK(candidate.ops.back() - candidate.ops.front() + 1 == std::ssize(candidate.ops));
  CHECK(candidatesOf(24).candidates.size() - candidatesOf(20).candidates.size() ==
        candidatesOf(20).candidates.size() - many.candidates.size());
  REQUIRE(recordOf(many, {0, 2}));
  CHECK(describe(*recordOf(many, {0, 2})) ==
        "F070 candidate-bound (one of them may merge with more than 5, so only runs are tried)");
  CHECK(describe(*recordOf(many, {0, 1})) == "accepted");
  FuseOptions apart;
  apart.forced = {{0, 9}};
  CHECK(describe(*recordOf(candidatesOf(16, apart), {0, 9})) == "accepted");
}

TEST_CASE("no kernel belongs to both passes; what the backward pass computes again belongs to it") {
  const std::string body = types + R"(
weft.graph @g(%x: !bji, %d_y: !bji {weft.gradient_of = "y"})
    -> (!bji, !bji {weft.gradient_of = "x"}) {
  %y = weft.tanh %x : !bji
  %again = weft.tanh %x : !bji
  %d = weft.tanh_dx %d_y, %again : !bji
  %d_x = weft.mul %d, %y : !bji
  weft.return %y, %d_x : !bji, !bji
})";
  CHECK(verdictOf(body, {0, 3}) == "F031 forward-and-backward (y, d_x)");
  CHECK(verdictOf(body, {0, 1}) == "F031 forward-and-backward (y, again)");
  CHECK(verdictOf(body, {1, 2, 3}) == "accepted");
}

TEST_CASE("a loss is a result of the forward pass, a dead op of none") {
  const auto loaded = parse(types + R"(
!one = tensor<f32, #weft.axes<>>
weft.graph @g(%x: !bji) -> (!one {weft.loss}, !bji {weft.gradient_of = "x"}) {
  %y = weft.mul %x, %x : !bji
  %loss = weft.reduce sum %y over b, j, i : !bji -> !one
  %dead = weft.relu %y : !bji
  %one = weft.constant dense<1.0> : !one
  %d_y = weft.broadcast %one {into = []} : !one -> !bji
  %d_x = weft.mul %d_y, %x : !bji
  weft.return %loss, %d_x : !one, !bji
})");
  const Dataflow flow = describeGraph(loaded->graph()).flow;
  std::vector<std::string> backward;
  for (const FlowOp &op : flow.ops)
    if (op.entry > 0) backward.push_back(op.label);
  CHECK(backward == std::vector<std::string>{"constant", "d_y", "d_x"});
}

TEST_CASE("codes are unique") {
  std::set<std::string_view> codes;
  for (const ReasonCode &code : reasonCodes) {
    CHECK(codes.insert(code.code).second);
    CHECK_FALSE(code.meaning.empty());
  }
}
