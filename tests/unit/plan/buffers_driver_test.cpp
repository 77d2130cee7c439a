// Buffers of plans: who lies where operands were, how buffers are packed, and what a plan edited by
// hand may not do.
#include "codegen/families/library/LibraryKnobs.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "codegen/families/transpose/TransposeKnobs.h"
#include "kernel/Error.h"
#include "kernel/Schedule.h"
#include "plan/BufferPacking.h"
#include "plan/Buffers.h"
#include "plan/PlanBuilder.h"
#include "plan/PlanLiveness.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleKernels.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

using namespace weft;
using weft::test::nonEmpty;

namespace {

int addTensor(Plan &plan, const std::string &name, TensorRole role, int64_t elements = 256) {
  plan.tensors.push_back({.name = name,
                          .logical = name,
                          .dtype = DType::f16,
                          .axes = {"x"},
                          .extents = {elements},
                          .order = {0},
                          .strides = {1},
                          .role = role,
                          .buffer = -1,
                          .offset = 0,
                          .bytes = 2 * elements});
  return int(plan.tensors.size()) - 1;
}

void addKernel(Plan &plan, std::vector<int> inputs, std::vector<int> outputs,
               const Family &family = loopFamily) {
  PlanKernel kernel;
  kernel.name = fmt::format("k{}", plan.kernels.size());
  kernel.family = family;
  kernel.inputLayouts.assign(inputs.size(), NamedLayout{{"x"}});
  kernel.outputLayouts.assign(outputs.size(), NamedLayout{{"x"}});
  kernel.inputs = std::move(inputs);
  kernel.outputs = std::move(outputs);
  plan.entryPoints[EntryPointKind::forward].push_back(int(plan.kernels.size()));
  plan.kernels.push_back(std::move(kernel));
}

/// Every tensor a separate root, nothing in place.
void assign(Plan &plan) {
  assignBuffers(plan, std::vector<int>(plan.tensors.size(), -1),
                std::vector<std::vector<int>>(plan.kernels.size()));
  orderKernels(plan);
}

/// x -> t0 -> t1 -> ... -> y, each of `elements`.
Plan chain(const std::vector<int64_t> &elements) {
  Plan plan;
  int last = addTensor(plan, "x", TensorRole::argument);
  for (size_t n = 0; n < elements.size(); ++n) {
    const int next = addTensor(plan, fmt::format("t{}", n), TensorRole::temporary, elements[n]);
    addKernel(plan, {last}, {next});
    last = next;
  }
  addKernel(plan, {last}, {addTensor(plan, "y", TensorRole::result)});
  return plan;
}

/// A random DAG: every kernel reads some earlier tensors; some results, some library workspaces.
Plan randomPlan(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](size_t bound) { return int(random() % bound); };
  Plan plan;
  addTensor(plan, "x", TensorRole::argument, 4096);
  const int kernels = 4 + below(14);
  for (int n = 0; n < kernels; ++n) {
    std::set<int> inputs;
    for (int reads = 1 + below(3); reads > 0; --reads) inputs.insert(below(plan.tensors.size()));
    std::vector<int> outputs;
    for (int writes = 1 + below(2); writes > 0; --writes)
      outputs.push_back(addTensor(plan, fmt::format("t{}_{}", n, writes),
                                  below(5) == 0 ? TensorRole::result : TensorRole::temporary,
                                  16 << below(9)));
    const bool isLibrarys = below(4) == 0;
    addKernel(plan, {inputs.begin(), inputs.end()}, outputs,
              isLibrarys ? libraryFamily : loopFamily);
    if (!isLibrarys) continue;
    plan.kernels.back().knobs = {LibraryKnobs{.workspaceBytes = 1 << below(14)}};
  }
  return plan;
}

/// Runs the plan in an order that its dependencies allow, on memory whose bytes remember who wrote
/// them last: every read must find what the tensor's writer left, and every result must be there in
/// the end.
std::string runInOrder(const Plan &plan, const std::vector<int> &order) {
  const PlanMemory memory(plan);
  std::map<std::pair<int, int64_t>, int>
      content;  // (memory, unit of 16 bytes) -> tensor; a library's workspace is -1
  const auto units = [](const MemoryRange &range, auto &&visit) {
    for (int64_t unit = range.begin / 16; unit < (range.end + 15) / 16; ++unit)
      visit(std::pair(range.memory, unit));
  };
  const auto write = [&](const MemoryRange &range, int tensor) {
    units(range, [&](auto at) { content[at] = tensor; });
  };
  std::string wrong;
  const auto read = [&](int tensor, const std::string &who) {
    units(memory.rangeOf(plan.tensors[size_t(tensor)]), [&](auto at) {
      const auto found = content.find(at);
      if (found == content.end() || found->second != tensor)
        wrong =
            fmt::format("{} finds something else than {}", who, plan.tensors[size_t(tensor)].name);
    });
  };
  for (size_t tensor = 0; tensor < plan.tensors.size(); ++tensor)
    if (plan.tensors[tensor].role == TensorRole::argument)
      write(memory.rangeOf(plan.tensors[tensor]), int(tensor));
  for (const int kernel : order) {
    const PlanKernel &one = plan.kernels[size_t(kernel)];
    if (one.workspaceBuffer >= 0) write(memory.rangeOf(one.workspaceBuffer), -1);
    for (const int input : one.inputs) read(input, one.name);
    for (const int output : one.outputs)
      write(memory.rangeOf(plan.tensors[size_t(output)]), output);
  }
  for (size_t tensor = 0; tensor < plan.tensors.size(); ++tensor)
    if (plan.tensors[tensor].role == TensorRole::result) read(int(tensor), "the caller");
  return wrong;
}

/// One of the orders that `after` leaves open.
std::vector<int> anyOrder(const Plan &plan, std::mt19937_64 &random) {
  std::vector<int> order;
  std::set<int> open;
  for (size_t kernel = 0; kernel < plan.kernels.size(); ++kernel) open.insert(int(kernel));
  while (!open.empty()) {
    std::vector<int> ready;
    for (const int kernel : open)
      if (std::ranges::none_of(plan.kernels[size_t(kernel)].after,
                               [&](int before) { return open.contains(before); }))
        ready.push_back(kernel);
    order.push_back(ready[random() % ready.size()]);
    open.erase(order.back());
  }
  return order;
}

template <typename Action>
std::string errorOf(Action &&action) {
  try {
    action();
  } catch (const Error &error) {
    CHECK(error.kind == ErrorKind::badInput);
    return error.what();
  }
  return "no error";
}

constexpr const char *where = "plan.json";

}  // namespace

TEST_CASE(
    "whatever order the dependencies leave open, every kernel finds what was written for it") {
  int packed = 0, hosted = 0;
  const bool concurrent = GENERATE(false, true);
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Plan plan = randomPlan(seed);
    plan.concurrent = concurrent;
    assign(plan);
    CAPTURE(seed);
    REQUIRE_NOTHROW(verify(plan, where));
    std::mt19937_64 random(seed);
    for (int order = 0; order < 5; ++order) REQUIRE(runInOrder(plan, anyOrder(plan, random)) == "");
    int64_t separate = 0;
    for (const BufferAllocation &one : plan.memoryPlan) {
      separate += PlanMemory(plan).buffers()[size_t(one.buffer)].bytes;
      hosted += !one.in.isWorkspace();
    }
    packed += plan.workspaceBytes < separate;
    CHECK(plan.workspaceBytes <= separate);
  }
  CHECK(packed > (concurrent ? 100 : 200));  // or the plans would show nothing
  CHECK(hosted > (concurrent ? 5 : 20));
}

TEST_CASE(
    "the memory plan of concurrent kernels orders fewer of them than one without concurrency") {
  int freer = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    Plan inOrder = randomPlan(seed), branched = inOrder;
    branched.concurrent = true;
    assign(inOrder);
    assign(branched);
    CHECK(branched.workspaceBytes >= inOrder.workspaceBytes);
    Plan separate = branched;  // every buffer in a separate place: what data alone ask for
    separate.memoryPlan.clear();
    orderKernels(separate);
    const KernelOrder order(branched), sequential(inOrder), data(separate);
    constexpr int near = 2;  // of nearly all pairs; what lies further apart may share, and others
                             // come to wait through it
    for (int later = 1; later < int(branched.kernels.size()); ++later)
      for (int earlier = std::max(0, later - near); earlier < later; ++earlier) {
        freer += sequential.waits(later, earlier) && !order.waits(later, earlier);
        if (data.waits(later, earlier)) CHECK(order.waits(later, earlier));
      }
  }
  CHECK(freer > 50);
}

TEST_CASE(
    "two GEMMs that may run at once have separate workspaces, and neither overwrites what the "
    "other reads") {
  const bool concurrent = GENERATE(false, true);
  Plan plan;
  plan.concurrent = concurrent;
  const int x = addTensor(plan, "x", TensorRole::argument),
            t = addTensor(plan, "t", TensorRole::temporary, 1024);
  const int a = addTensor(plan, "a", TensorRole::result),
            b = addTensor(plan, "b", TensorRole::temporary, 1024),
            y = addTensor(plan, "y", TensorRole::result);
  addKernel(plan, {x}, {t});
  addKernel(plan, {t}, {a}, libraryFamily);
  addKernel(plan, {t}, {b}, libraryFamily);
  addKernel(plan, {b}, {y});
  for (const size_t kernel : {1, 2}) {
    plan.kernels[kernel].knobs = {LibraryKnobs{.workspaceBytes = 4096}};
  }
  assignBuffers(plan, std::vector<int>(plan.tensors.size(), -1), {{}, {}, {t}, {}});
  orderKernels(plan);
  REQUIRE_NOTHROW(verify(plan, where));
  CHECK(plan.kernels[2].after == (concurrent ? std::vector{0} : std::vector{1}));
  CHECK((plan.tensors[size_t(b)].buffer == plan.tensors[size_t(t)].buffer) == !concurrent);
  CHECK(plan.workspaceBytes == (concurrent ? 2 * 4096 + 2 * 2048 : 4096 + 2048));
}

TEST_CASE(
    "kernels that write separate parts of a tensor wait for each other no more than data ask") {
  Plan plan;
  const int x = addTensor(plan, "x", TensorRole::argument),
            whole = addTensor(plan, "whole", TensorRole::temporary, 512);
  std::vector<int> viewOf(2, -1), parts;
  for (const char *name : {"first", "second"}) {
    parts.push_back(addTensor(plan, name, TensorRole::temporary));
    viewOf.push_back(whole);
    addKernel(plan, {x}, {parts.back()});
  }
  plan.tensors[size_t(parts[1])].offset = 256;
  addKernel(plan, {whole}, {addTensor(plan, "y", TensorRole::result)});
  viewOf.push_back(-1);
  assignBuffers(plan, viewOf, std::vector<std::vector<int>>(plan.kernels.size()));
  orderKernels(plan);
  REQUIRE_NOTHROW(verify(plan, where));
  CHECK(plan.kernels[1].after.empty());
  CHECK(plan.kernels[2].after == std::vector{0, 1});
  plan.tensors[size_t(parts[1])].offset = 255;
  CHECK_THAT(errorOf([&] { verify(plan, where); }),
             Catch::Contains("kernels[1] (k1): it shares buffer") &&
                 Catch::Contains("does not wait for it"));
}

TEST_CASE("a kernel waits directly for what no other predecessor implies, in plans of any length") {
  const size_t length = GENERATE(3, 64, 65, 200);
  Plan plan = chain(std::vector<int64_t>(length - 1, 256));
  const int all = addTensor(plan, "all", TensorRole::result);
  std::vector<int> reads;  // what every kernel but the last one of the chain writes
  for (size_t kernel = 0; kernel + 1 < length; ++kernel)
    reads.push_back(plan.kernels[kernel].outputs.front());
  addKernel(plan, reads, {all});
  assign(plan);
  const KernelOrder order(plan);
  for (size_t kernel = 1; kernel < length; ++kernel) {
    CHECK(plan.kernels[kernel].after == std::vector{int(kernel) - 1});
    CHECK(order.waits(int(kernel), 0));
  }
  CHECK(plan.kernels[length].after == std::vector{int(length) - 2});
}

TEST_CASE("a missing dependency lets a kernel find something else, and is rejected") {
  int found = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Plan plan = randomPlan(seed);
    assign(plan);
    for (size_t kernel = 0; kernel < plan.kernels.size(); ++kernel)
      for (size_t n = 0; n < plan.kernels[kernel].after.size(); ++n, ++found) {
        Plan racing = plan;
        racing.kernels[kernel].after.erase(racing.kernels[kernel].after.begin() + long(n));
        CHECK_THAT(errorOf([&] { verify(racing, where); }),
                   Catch::Contains("does not wait for it"));
      }
  }
  CHECK(found > 300);
}

TEST_CASE("the place of a large tensor is shared by several small ones") {
  Plan plan;
  const int x = addTensor(plan, "x", TensorRole::argument),
            large = addTensor(plan, "large", TensorRole::temporary, 4096);
  const int sum = addTensor(plan, "sum", TensorRole::temporary),
            a = addTensor(plan, "a", TensorRole::temporary, 2048),
            b = addTensor(plan, "b", TensorRole::temporary, 2048);
  addKernel(plan, {x}, {large});
  addKernel(plan, {large}, {sum});
  addKernel(plan, {sum}, {a});
  addKernel(plan, {sum}, {b});
  addKernel(plan, {a, b}, {addTensor(plan, "y", TensorRole::result, 8)});
  assign(plan);
  const PlanMemory memory(plan);
  CHECK(plan.workspaceBytes == 8192 + 512);
  CHECK(memory.rangeOf(plan.tensors[size_t(a)])
            .overlaps(memory.rangeOf(plan.tensors[size_t(large)])));
  CHECK(memory.rangeOf(plan.tensors[size_t(b)])
            .overlaps(memory.rangeOf(plan.tensors[size_t(large)])));
  CHECK(std::ranges::max(liveBytes(plan)) == plan.workspaceBytes);
}

TEST_CASE("a result holds temporaries until it is written, if that makes the workspace smaller") {
  Plan plan = chain({256, 256, 256});
  assign(plan);
  const PlanMemory memory(plan);
  CHECK(plan.workspaceBytes == 512);  // two live at a time, one of them in y
  CHECK(std::ranges::count(plan.memoryPlan, BufferHost{.result = 4}, &BufferAllocation::in) >= 1);
  nlohmann::json text = toJson(plan);
  const auto isHosted = [](const nlohmann::json &place) { return place["in"] == "y"; };
  CHECK(std::ranges::count_if(text["memoryPlan"], isHosted) >= 1);
  CHECK(planFromJson(text, where).memoryPlan == plan.memoryPlan);
  text["memoryPlan"][0]["in"] = "z";
  CHECK_THROWS_WITH(planFromJson(text, where),
                    Catch::Contains("memoryPlan[0]: \"z\" is neither \"workspace\" nor a result"));
  // The last one is read while y is written.
  CHECK_FALSE(memory.rangeOf(plan.tensors[3]).overlaps(memory.rangeOf(plan.tensors[4])));
  Plan larger = chain({512, 512});  // do not fit into y
  assign(larger);
  CHECK(larger.workspaceBytes == 2048);
}

TEST_CASE("a library's workspace lives as long as its kernel") {
  Plan plan = chain({256, 256, 256, 256});
  for (const size_t kernel : {1, 3}) {
    plan.kernels[kernel].family = libraryFamily;
    plan.kernels[kernel].knobs = {LibraryKnobs{.workspaceBytes = 4096}};
  }
  assign(plan);
  CHECK(plan.workspaceBytes == 4096 + 512);  // the two share; of the temporaries one lies in y
  const auto isOfLibrary = [&](const BufferAllocation &one) {
    return one.buffer == plan.kernels[1].workspaceBuffer ||
           one.buffer == plan.kernels[3].workspaceBuffer;
  };
  for (const BufferAllocation &one : nonEmpty(plan.memoryPlan, isOfLibrary))
    CHECK(one.in.isWorkspace());
}

TEST_CASE("a result lies over an operand that nothing else reads") {
  const auto buffersOf = [](Plan plan, const std::vector<int> &viewOf = {}) {
    assignBuffers(plan, viewOf.empty() ? std::vector<int>(plan.tensors.size(), -1) : viewOf,
                  {{}, {1}, {}});
    return std::pair(plan.tensors[1].buffer, plan.tensors[2].buffer);
  };
  Plan plan = chain({256, 256});  // x -> t0 -> t1 -> y; k1 may write t1 over t0
  const auto [t0, t1] = buffersOf(plan);
  CHECK(t0 == t1);
  SECTION("read later") { plan.kernels[2].inputs.push_back(1); }
  SECTION("read twice by the kernel itself") { plan.kernels[1].inputs.push_back(1); }
  SECTION("an argument") { plan.tensors[1].role = TensorRole::argument; }
  SECTION("a result of the caller") { plan.tensors[1].role = TensorRole::result; }
  const auto [a, b] = buffersOf(plan);
  CHECK(a != b);
}

TEST_CASE("a view is not overwritten, nor what a view still shows") {
  Plan plan = chain({256, 256});
  std::vector<int> viewOf(plan.tensors.size(), -1);
  const int view = addTensor(plan, "view of t0", TensorRole::temporary);
  viewOf.push_back(1);
  plan.kernels[2].inputs.push_back(view);
  assignBuffers(plan, viewOf, {{}, {1}, {}});
  CHECK(plan.tensors[1].buffer != plan.tensors[2].buffer);
  CHECK(plan.tensors[size_t(view)].buffer == plan.tensors[1].buffer);
}

TEST_CASE("lives that share bytes by hand") {
  Plan plan = chain({256, 256, 256});
  assign(plan);
  REQUIRE_NOTHROW(verify(plan, where));
  const auto rejection = [&] { return errorOf([&] { verify(plan, where); }); };
  const auto place = [&](int tensor) -> BufferAllocation & {
    return *std::ranges::find(plan.memoryPlan, plan.tensors[size_t(tensor)].buffer,
                              &BufferAllocation::buffer);
  };
  SECTION("over an operand that is read later") {
    plan.kernels[3].inputs.push_back(1);  // t0 again
    plan.kernels[3].inputLayouts.push_back({{"x"}});
    plan.memoryPlan.erase(plan.memoryPlan.begin() + (&place(2) - plan.memoryPlan.data()));
    plan.tensors[2].buffer = plan.tensors[1].buffer;
    CHECK_THAT(rejection(),
               Catch::Contains("kernels[3] (k3): it uses 't0', over which k1 has written 't1'"));
  }
  SECTION("over an argument") {
    plan.memoryPlan.erase(plan.memoryPlan.begin() + (&place(3) - plan.memoryPlan.data()));
    plan.tensors[3].buffer = plan.tensors[0].buffer;
    CHECK_THAT(rejection(), Catch::Contains("kernels[2] (k2)") &&
                                Catch::Contains("'t2' over 'x', which is given"));
  }
  SECTION("over a finished result") {
    plan.kernels.push_back(plan.kernels[0]);
    plan.kernels[4].name = "k4";
    plan.kernels[4].after = {3};
    addTensor(plan, "late", TensorRole::temporary);
    plan.tensors.back().buffer = plan.tensors[4].buffer;
    plan.kernels[4].outputs = {5};
    CHECK_THAT(rejection(),
               Catch::Contains("kernels[4] (k4): it writes 'late' over the result 'y'"));
  }
  SECTION("in an argument") {
    place(1).in = {.result = 0};
    CHECK_THAT(rejection(), Catch::Contains("\"x\" is neither \"workspace\" nor a result"));
  }
  SECTION("beyond a result") {
    place(1).in = {.result = 4};
    place(1).offset = 256;
    CHECK_THAT(rejection(), Catch::Contains("reaches beyond the 512 bytes of 'y'"));
  }
  SECTION("unaligned") {
    place(1).offset = 2;
    CHECK_THAT(rejection(), Catch::Contains("offset 2 is no multiple of 256 bytes"));
  }
  SECTION("twice") {
    plan.memoryPlan.push_back(place(1));
    CHECK_THAT(rejection(), Catch::Contains("has a place already"));
  }
  SECTION("nowhere") {
    place(1).buffer = 17;
    CHECK_THAT(rejection(), Catch::Contains("nothing lies in buffer 17"));
  }
  SECTION("what is not placed lies behind all that is") {
    plan.memoryPlan.clear();
    CHECK_NOTHROW(verify(plan, where));
    CHECK(PlanMemory(plan).bytes(BufferKind::temporary) == 3 * 512);
  }
}

TEST_CASE("a plan edited by hand may overwrite an operand only as its kernel allows") {
  const std::map<char, int64_t> extents = {{'h', 2}, {'j', 8}, {'k', 16}};
  const Kernel relu = samples::reluKernel(extents, "hjk");
  PlannedKernels planned;
  for (const char *name : {"x", "t", "u", "y"}) {
    addTensor(planned.plan, name,
              *name == 'x'   ? TensorRole::argument
              : *name == 'y' ? TensorRole::result
                             : TensorRole::temporary);
    PlanTensor &tensor = planned.plan.tensors.back();
    tensor.axes = {"h", "j", "k"};
    tensor.extents = {2, 8, 16};
    tensor.order = {0, 1, 2};
    tensor.strides = {128, 16, 1};
  }
  for (int n = 0; n < 3; ++n) {
    addKernel(planned.plan, {n}, {n + 1});
    planned.kernels.push_back(
        {.kernel = relu,
         .configuration = {.inputs = {rowMajor(3)}, .outputs = {rowMajor(3)}, .knobs = LoopKnobs{}},
         .cost = {},
         .proposal = {},
         .graphOps = {}});
  }
  assign(planned.plan);
  planned.plan.memoryPlan.clear();
  const auto rejection = [&] {
    const Expected<void> result = checkOverwriting(planned, where);
    return result ? std::string("no error") : result.error().what();
  };
  CHECK(rejection() == "no error");
  planned.plan.tensors[2].buffer = planned.plan.tensors[1].buffer;  // u over t
  CHECK(rejection() == "no error");
  SECTION("in another layout") {
    planned.kernels[1].configuration.outputs[0].order = {1, 0, 2};
    CHECK_THAT(rejection(), Catch::Contains("kernel 'k1' writes 'u' over its input 't'") &&
                                Catch::Contains("needs separate memory"));
  }
  SECTION("by a family that reads elsewhere") {
    planned.kernels[1].configuration.knobs = TransposeKnobs{};
    CHECK_THAT(rejection(),
               Catch::Contains("plan.json: kernel 'k1' writes 'u' over its input 't'"));
  }
  SECTION("shifted by some elements") {
    planned.plan.tensors[2].offset = 8;
    CHECK_THAT(rejection(), Catch::Contains("kernel 'k1' writes 'u' over its input 't'"));
  }
  SECTION("places that overlap") {
    planned.plan.tensors[2].buffer = 3;
    planned.plan.memoryPlan = {{.buffer = planned.plan.tensors[1].buffer, .offset = 0},
                               {.buffer = 3, .offset = 256}};
    CHECK_THAT(rejection(), Catch::Contains("kernel 'k1' writes 'u' over its input 't'"));
  }
}

TEST_CASE("what does not fit says what cuBLASLt needs, and the batch that fits") {
  Plan plan = chain({1 << 20, 1 << 20});
  plan.model = "model";
  plan.dims = {{"b", 16}};
  plan.kernels[1].family = libraryFamily;
  plan.kernels[1].knobs = {LibraryKnobs{.workspaceBytes = 1 << 20}};
  assign(plan);
  const PlanMemory memory(plan);
  const int64_t needed = memory.bytes();
  REQUIRE(plan.workspaceBytes == (5 << 20));
  const std::string planned = memoryRejection(plan, memory, 0, needed / 2, needed);
  CHECK_THAT(planned,
             Catch::Contains("model needs 5.24 MB (5.24 MB workspace") &&
                 Catch::Contains("the workspace lends cuBLASLt up to 1.05 MB") &&
                 Catch::Contains(
                     "2.62 MB of 5.24 MB are free; --dim b=4 would fit"));  // (2.5 - 1) / 5 of 16
  const std::string more = memoryRejection(plan, memory, 32 << 20, 33 << 20, 40 << 20);
  CHECK_THAT(more, Catch::Contains("model needs 38.8 MB") &&
                       Catch::Contains("33.6 MB for cuBLASLt") &&
                       Catch::Contains("not even --dim b=1 fits"));
  CHECK_THAT(memoryRejection(plan, memory, 32 << 20, 32 << 20, 40 << 20),
             Catch::Contains("parameters alone do not fit"));
}
