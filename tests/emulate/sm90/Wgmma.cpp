// Instructions in flight, operands behind descriptors, fragments; see Wgmma.h.
#include "tests/emulate/sm90/Wgmma.h"

#include "kernel/reference/StoredElement.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

namespace weft::emulate {
namespace {

constexpr uint32_t inFlightMark = 0x7FA0DEAD;  // any arithmetic makes a quiet NaN of it

/// Element i of a thread's accumulators in the tile of a warpgroup.
size_t placeOfAccumulator(int thread, int i, int n) {
  const int warp = thread / 32, lane = thread % 32;
  const int row = 16 * warp + lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
  return size_t(row) * size_t(n) + size_t(column);
}

/// Numbers of all patterns of a type of 8 or 16 bits.
const std::vector<float> &numbersOf(DType type) {
  static std::map<DType, std::vector<float>> ofType;
  std::vector<float> &numbers = ofType[type];
  if (!numbers.empty()) return numbers;
  const size_t bytes = size_t(sizeOf(type));
  for (uint32_t pattern = 0; pattern < 1u << 8 * bytes; ++pattern) {
    std::byte stored[4];
    std::memcpy(stored, &pattern, sizeof stored);
    numbers.push_back(float(reference::loadElement(type, stored)));
  }
  return numbers;
}

float numberAt(DType type, const std::byte *at) {
  uint32_t bits = 0;
  std::memcpy(&bits, at, size_t(sizeOf(type)));
  if (sizeOf(type) == 4) return std::bit_cast<float>(bits & ~0x1FFFu);  // tf32
  return numbersOf(type)[bits];
}

/// A shared memory descriptor (PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory
/// Layout"). Spans of 128, 64, 32 bytes are swizzled; a span of 16 is not.
struct Descriptor {
  explicit Descriptor(uint64_t bits)
      : start(uint32_t(bits & 0x3FFF) << 4),
        leading(uint32_t(bits >> 16 & 0x3FFF) << 4),
        stride(uint32_t(bits >> 32 & 0x3FFF) << 4),
        baseOffset(uint32_t(bits >> 49 & 7)),
        span(bits >> 62 == 0 ? 16u : 256u >> (bits >> 62)) {}

  /// Address of element (outer, k), `outer` along m or n. The swizzle takes bits of the address.
  uint32_t address(uint32_t outer, uint32_t k, uint32_t bytes, bool isTransposed) const {
    uint32_t at = start;
    if (!isTransposed) {
      const uint32_t byte = k * bytes;
      at += outer / 8 * stride + outer % 8 * span;
      at += span == 16 ? byte / 16 * leading + byte % 16 : byte;
    } else {
      const uint32_t perSpan = span / bytes;
      at += k % 8 * span + outer % perSpan * bytes;
      at += span == 16 ? outer / perSpan * stride + k / 8 * leading
                       : outer / perSpan * leading + k / 8 * stride;
    }
    return at ^ (at >> 7 & (span / 16 - 1)) << 4;
  }

  uint32_t start, leading, stride, baseOffset, span;
};

/// An operand out of shared memory: [outer][k].
std::vector<float> loadOperand(Fibers &fibers, SharedMemory &shared, uint64_t bits, DType type,
                               int outer, int k, bool isTransposed) {
  const Descriptor descriptor(bits);
  const uint32_t bytes = uint32_t(sizeOf(type));
  if (descriptor.baseOffset != 0) fibers.fail("WGMMA: base offsets are not emulated");
  if (isTransposed && bytes != 2) fibers.fail("WGMMA: only 16-bit operands may be transposed");
  std::vector<float> result(size_t(outer) * size_t(k));
  for (int o = 0; o < outer; ++o)
    for (int i = 0; i < k; ++i)
      result[size_t(o * k + i)] = numberAt(
          type, shared.accessByPart(
                    descriptor.address(uint32_t(o), uint32_t(i), bytes, isTransposed), bytes));
  return result;
}

/// Of 16-bit elements: pairs of a row in a word, rows l / 4 and + 8, columns 2 (l % 4) and + 8.
std::vector<float> operandOfRegisters(DType type,
                                      const std::array<std::array<uint32_t, 4>, 128> &words) {
  std::vector<float> result(64 * 16);
  for (int thread = 0; thread < 128; ++thread)
    for (int w = 0; w < 4; ++w)
      for (int half = 0; half < 2; ++half) {
        const int lane = thread % 32, row = thread / 32 * 16 + lane / 4 + w % 2 * 8,
                  column = lane % 4 * 2 + w / 2 * 8 + half;
        result[size_t(row * 16 + column)] =
            numbersOf(type)[words[size_t(thread)][size_t(w)] >> 16 * half & 0xFFFF];
      }
  return result;
}

}  // namespace

void WgmmaQueue::reset(DoneAtOnce how) {
  atOnce = how.products;
  threads.assign(size_t(fibers.threadCount()), {});
  warpgroups.assign(threads.size() / warpgroup, {});
}

void WgmmaQueue::issue(const WgmmaInstruction &product, float *accumulators,
                       const uint32_t *registersA) {
  Thread &thread = own();
  const size_t number = size_t(fibers.runningThread()) / warpgroup;
  if (number >= warpgroups.size()) fibers.fail("WGMMA by threads that are no warpgroup");
  Warpgroup &of = warpgroups[number];
  const size_t index = size_t(thread.issued - of.first);
  if (index == of.instructions.size()) of.instructions.push_back({.product = product});
  Instruction &instruction = of.instructions[index];
  if (instruction.product != product)
    fibers.fail(
        fmt::format("WGMMA {} of thread {} differs from that of other threads of its "
                    "warpgroup",
                    thread.issued, fibers.runningThread()));
  hold(thread, product, instruction, accumulators);
  if (registersA)
    std::copy_n(registersA, 4,
                instruction.registersA[size_t(fibers.runningThread() % warpgroup)].begin());
  ++thread.issued;
  fibers.progressed();
  if (++instruction.issued == warpgroup && atOnce)
    while (runNext(of)) {}
}

/// The accumulators that are in flight from now on: those of an earlier instruction, or the
/// thread's own.
void WgmmaQueue::hold(Thread &thread, const WgmmaInstruction &product, Instruction &instruction,
                      float *accumulators) {
  const int count = product.n / 2, inWarpgroup = fibers.runningThread() % warpgroup;
  const auto overlapping = std::ranges::find_if(thread.inFlight, [&](const InFlight &held) {
    return held.start < accumulators + count && accumulators < held.start + held.count;
  });
  if (overlapping != thread.inFlight.end()) {
    if (overlapping->start != accumulators || overlapping->count != count)
      fibers.fail("WGMMA: accumulators overlap those of an instruction in flight");
    if (!instruction.accumulators) instruction.accumulators = overlapping->tile;
    overlapping->last = thread.issued;
    if (instruction.accumulators != overlapping->tile)
      fibers.fail("WGMMA: threads of a warpgroup accumulate in different registers");
    return;
  }
  if (!thread.isFenced)
    fibers.fail(fmt::format("thread {}: WGMMA without a fence behind the last wait",
                            fibers.runningThread()));
  if (!instruction.accumulators)
    instruction.accumulators = std::make_shared<Tile>(size_t(rows * product.n));
  for (int i = 0; i < count; ++i) {
    if (product.accumulates)
      (*instruction.accumulators)[placeOfAccumulator(inWarpgroup, i, product.n)] = accumulators[i];
    std::memcpy(accumulators + i, &inFlightMark, sizeof inFlightMark);
  }
  thread.inFlight.push_back({.start = accumulators,
                             .count = count,
                             .last = thread.issued,
                             .tile = instruction.accumulators});
}

void WgmmaQueue::commit() { own().groups.push_back(own().issued); }

void WgmmaQueue::wait(int64_t pending, const SourceLine &at) {
  Thread &thread = own();
  thread.isFenced = false;
  uint64_t end = 0;
  for (; int64_t(thread.groups.size()) > pending; thread.groups.pop_front())
    end = thread.groups.front();
  if (end == 0) return;
  const uint32_t number = uint32_t(fibers.runningThread() / warpgroup);
  Warpgroup &of = warpgroups[number];
  of.required = std::max(of.required, end);
  while (of.done < end) fibers.wait("WGMMA", number, at);
  deliver(thread, end);
}

void WgmmaQueue::deliver(Thread &thread, uint64_t end) {
  const int inWarpgroup = fibers.runningThread() % warpgroup;
  for (const InFlight &held : thread.inFlight) {
    for (int i = 0; i < held.count; ++i)
      if (std::memcmp(held.start + i, &inFlightMark, sizeof inFlightMark) != 0)
        fibers.fail(fmt::format("thread {} changed accumulator {} of {} while WGMMA was in flight",
                                fibers.runningThread(), i, held.count));
    if (held.last >= end) continue;
    for (int i = 0; i < held.count; ++i)
      held.start[i] = (*held.tile)[placeOfAccumulator(inWarpgroup, i, 2 * held.count)];
  }
  std::erase_if(thread.inFlight, [&](const InFlight &held) { return held.last < end; });
  Warpgroup &of = warpgroups[size_t(fibers.runningThread()) / warpgroup];
  for (; !of.instructions.empty() && of.first < of.done; ++of.first) of.instructions.pop_front();
}

bool WgmmaQueue::runNext(Warpgroup &of) {
  const size_t index = size_t(of.done - of.first);
  if (index >= of.instructions.size() || of.instructions[index].issued < warpgroup) return false;
  run(of.instructions[index]);
  ++of.done;
  fibers.progressed();
  return true;
}

bool WgmmaQueue::completeOne() {
  for (Warpgroup &of : warpgroups)
    if (of.done < of.required && runNext(of)) return true;
  return false;
}

void WgmmaQueue::run(Instruction &instruction) {
  const WgmmaInstruction &product = instruction.product;
  const int n = product.n, k = product.k;
  const std::vector<float> a =
      product.hasRegistersA
          ? operandOfRegisters(product.typeA, instruction.registersA)
          : loadOperand(fibers, shared, product.a, product.typeA, rows, k, product.isTransposedA);
  const std::vector<float> b =
      loadOperand(fibers, shared, product.b, product.typeB, n, k, product.isTransposedB);
  std::vector<float> byK(b.size());
  for (int column = 0; column < n; ++column)
    for (int i = 0; i < k; ++i) byK[size_t(i * n + column)] = b[size_t(column * k + i)];
  float *accumulators = instruction.accumulators->data();
  if (!product.accumulates) std::fill_n(accumulators, rows * n, 0.0f);
  for (int row = 0; row < rows; ++row)
    for (int i = 0; i < k; ++i) {
      const float factor = a[size_t(row * k + i)];
      const float *others = byK.data() + i * n;
      float *sums = accumulators + row * n;
      for (int column = 0; column < n; ++column) sums[column] += factor * others[column];
    }
}

void WgmmaQueue::endThread(int thread) {
  if (!threads[size_t(thread)].inFlight.empty())
    fibers.fail(fmt::format("thread {} ends while WGMMA has its accumulators", thread));
}

std::string WgmmaQueue::describe(uint32_t number) const {
  const Warpgroup &of = warpgroups.at(number);
  const size_t index = size_t(of.done - of.first);
  return fmt::format("WGMMA {} of warpgroup {}, which {} of {} threads have issued", of.done,
                     number, index < of.instructions.size() ? of.instructions[index].issued : 0,
                     warpgroup);
}

}  // namespace weft::emulate
