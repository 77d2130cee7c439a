// Memory of a plan by kind; see MemoryReport.h.
#include "tools/driver/MemoryReport.h"

#include "kernel/Format.h"
#include "plan/BufferPacking.h"
#include "plan/PlanLiveness.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace weft::driver {
namespace {

using nlohmann::json;

/// Bytes of the buffers that hold a tensor of the role.
int64_t bytesOf(const Plan &plan, const PlanMemory &memory, TensorRole role) {
  std::set<int> buffers;
  for (const PlanTensor &tensor : plan.tensors)
    if (tensor.role == role) buffers.insert(tensor.buffer);
  int64_t sum = 0;
  for (const int buffer : buffers) sum += memory.buffers()[size_t(buffer)].bytes;
  return sum;
}

json peakReport(const Plan &plan, const PlanMemory &memory) {
  const std::vector<int64_t> live = liveBytes(plan);
  if (live.empty()) return {{"kernel", nullptr}, {"temporaries", 0}, {"tensors", json::array()}};
  const int kernel = int(std::ranges::max_element(live) - live.begin());
  json tensors = json::array();
  for (const LiveRange &liveRange : liveRangesOf(plan, memory)) {
    if (liveRange.isGiven || liveRange.isResult || liveRange.users.empty() ||
        liveRange.users.front() > kernel || liveRange.users.back() < kernel)
      continue;
    std::string in = "workspace";
    for (const PlanTensor &tensor : plan.tensors)
      if (tensor.role == TensorRole::result && tensor.buffer == liveRange.range.memory)
        in = tensor.name;
    tensors.push_back({{"name", liveRange.name},
                       {"bytes", liveRange.range.end - liveRange.range.begin},
                       {"in", in},
                       {"offset", liveRange.range.begin}});
  }
  return {{"kernel", plan.kernels[size_t(kernel)].name},
          {"temporaries", live[size_t(kernel)]},
          {"tensors", tensors}};
}

}  // namespace

json memoryReport(const Plan &plan) {
  const PlanMemory memory(plan);
  return {{"parameters", memory.bytes(BufferKind::parameter)},
          {"arguments", bytesOf(plan, memory, TensorRole::argument)},
          {"results", bytesOf(plan, memory, TensorRole::result)},
          {"workspace", memory.bytes(BufferKind::temporary)},
          {"total", memory.bytes()},
          {"peak", peakReport(plan, memory)}};
}

std::string memoryLine(const Plan &plan) {
  const json report = memoryReport(plan);
  const auto bytes = [&](const char *kind) { return formatBytes(report[kind].get<int64_t>()); };
  std::string text =
      fmt::format("memory: workspace {}, arguments {}, results {}, parameters {}",
                  bytes("workspace"), bytes("arguments"), bytes("results"), bytes("parameters"));
  if (const json &peak = report["peak"]; peak["kernel"].is_string())
    text += fmt::format("; most temporaries, {}, at {}",
                        formatBytes(peak["temporaries"].get<int64_t>()),
                        peak["kernel"].get<std::string>());
  for (const PlanKernel &kernel : plan.kernels)
    if (report["peak"]["kernel"] == kernel.name && kernel.workspaceBytes > 0)
      text += fmt::format(", which works in {} of them", formatBytes(kernel.workspaceBytes));
  return text + "\n";
}

}  // namespace weft::driver
