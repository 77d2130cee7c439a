// Operands for timing kernels alone; see TimePlan.h.
#include "runtime/measure/TimePlan.h"

#include "kernel/Error.h"
#include "runtime/execute/Lengths.h"
#include "runtime/execute/Pages.h"
#include "runtime/execute/RandomInputs.h"

#include <algorithm>
#include <set>

namespace weft::runtime {

TimedPlan::TimedPlan(Artifact artifact, const std::string &folder, const cuda::Context &context,
                     const std::string &entryName, const std::string &only, uint64_t seed,
                     const std::string &lengths)
    : name(folder),
      context(context),
      artifact(std::move(artifact)),
      seed(seed),
      lengths(lengths),
      own(load()),
      executor(*own),
      entry(executor.entryPoint(entryName)) {
  if (!only.empty()) onlyKernel = executor.kernelIndex(only);
  for (const int kernel : entry.kernels)
    if (executor.launchable(kernel) && (onlyKernel < 0 || kernel == onlyKernel))
      timed.push_back(kernel);
  if (timed.empty() && onlyKernel >= 0)
    throw Error::badInput("{}: kernel {} {}", folder, only,
                          executor.launchable(onlyKernel)
                              ? fmt::format("is not of entry point {}", entry.name)
                              : "is a view: nothing runs");
}

/// An executor with separate memory and random parameters and inputs.
std::unique_ptr<Executor> TimedPlan::load() const {
  auto loaded =
      std::make_unique<Executor>(artifact, context, ExecutorOptions{.seed = seed, .folder = name});
  for (const EntryPoint &point : loaded->entryPoints()) {
    setRandomInputs(*loaded, point, seed);
    if (!lengths.empty()) setLengths(*loaded, point, lengths, seed);
    handOutPages(*loaded, point.inputs, seed);
  }
  return loaded;
}

void TimedPlan::launch(Executor &one, cuda::StreamHandle *on) const {
  one.launch(one.entryPoint(entry.name), on);
}

/// The values that the entry point finds where it continues another.
void TimedPlan::launchBefore(Executor &one) const {
  for (const EntryPoint *before : one.entryPointsBefore(one.entryPoint(entry.name)))
    one.launch(*before, stream.handle());
}

void TimedPlan::copyWhole(int sets) {
  copies.clear();
  for (int set = 1; set < sets; ++set) {
    copies.push_back(load());
    launchBefore(*copies.back());
    launch(*copies.back(), stream.handle());
  }
}

std::vector<int> TimedPlan::buffersOf(int kernel) const {
  const PlanKernel &one = plan().kernels[size_t(kernel)];
  std::set<int> buffers;
  for (const std::vector<int> *tensors : {&one.inputs, &one.outputs})
    for (const int tensor : *tensors) buffers.insert(plan().tensors[size_t(tensor)].buffer);
  if (one.workspaceBytes > 0) buffers.insert(one.workspaceBuffer);
  return {buffers.begin(), buffers.end()};
}

int64_t TimedPlan::alignedOperandBytes(int kernel) const {
  int64_t bytes = 0;
  for (const int buffer : buffersOf(kernel))
    bytes += alignedBytes(executor.memory().buffers()[size_t(buffer)].bytes);
  return bytes;
}

int64_t TimedPlan::operandBytes(int kernel) const {
  int64_t bytes = 0;
  for (const int buffer : buffersOf(kernel))
    bytes += executor.memory().buffers()[size_t(buffer)].bytes;
  return bytes;
}

/// One allocation holds all sets: thousands of small ones take seconds.
TimedPlan::Operands TimedPlan::copyOperands(int kernel, int sets) {
  const Bindings own = executor.ownBindings();
  Operands copy{.memory = cuda::Buffer(sets * alignedOperandBytes(kernel)),
                .sets = {},
                .bytesPerSet = operandBytes(kernel)};
  cuda::DevicePointer next = copy.memory.address();
  for (int set = 0; set < sets; ++set) {
    std::vector<cuda::DevicePointer> addresses(own.buffers.begin(), own.buffers.end());
    for (const int buffer : buffersOf(kernel)) {
      const int64_t bytes = executor.memory().buffers()[size_t(buffer)].bytes;
      cuda::copyAsync(next, own.buffers[size_t(buffer)], bytes, stream.handle());
      addresses[size_t(buffer)] = next;
      next += cuda::DevicePointer(alignedBytes(bytes));
    }
    copy.sets.push_back(std::move(addresses));
  }
  return copy;
}

void TimedPlan::prepare(L2State l2, int64_t mostBytes) {
  operands.clear();
  launchBefore(executor);
  for (const int kernel : entry.kernels) {
    if (!executor.launchable(kernel)) continue;
    if (std::ranges::find(timed, kernel) != timed.end()) {
      const int64_t bytes = operandBytes(kernel);
      int64_t sets = l2 == L2State::cold ? setsForColdL2(bytes, context.gpu().l2Bytes) : 1;
      if (sets > 1 && bytes > mostBytes / sets) sets = 1;
      operands.emplace(kernel, copyOperands(kernel, int(sets)));
      mostBytes -= sets * bytes;
    }
    executor.launchKernel(kernel, stream.handle());
  }
  if (hasWhole()) prepareWhole(l2, mostBytes);
  stream.synchronize();
}

void TimedPlan::prepareWhole(L2State l2, int64_t mostBytes) {
  launchBefore(executor);
  launch(executor, stream.handle());
  const int sets =
      l2 == L2State::cold ? setsForColdL2(executor.memory().bytes(), context.gpu().l2Bytes) : 1;
  copyWhole(executor.memory().bytes() <= mostBytes / sets ? sets : 1);
  stream.synchronize();
}

Subject TimedPlan::whole() {
  return {
      .name = "whole graph",
      .enqueue = [this](cuda::StreamHandle *on,
                        int set) { launch(set == 0 ? executor : *copies[size_t(set) - 1], on); },
      .sets = 1 + int(copies.size()),
      .bytesPerSet = executor.memory().bytes()};
}

std::vector<Subject> TimedPlan::subjects() {
  std::vector<Subject> all;
  if (hasWhole()) all.push_back(whole());
  for (const int kernel : timed) {
    const Operands &one = operands.at(kernel);
    all.push_back({.name = plan().kernels[size_t(kernel)].name,
                   .enqueue =
                       [this, kernel, &one](cuda::StreamHandle *on, int set) {
                         Bindings bindings = executor.ownBindings();
                         bindings.buffers = one.sets[size_t(set)];
                         executor.launchable(kernel)->enqueue(bindings, on);
                       },
                   .sets = int(one.sets.size()),
                   .bytesPerSet = one.bytesPerSet});
  }
  return all;
}

}  // namespace weft::runtime
