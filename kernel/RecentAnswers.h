// What follows from a kernel, kept for the last few that a thread asked about.
//
// Configurations of a kernel are priced one after another, at a fill each as several kernels of
// fewer tokens, and every price asks anew what the kernel is: its region, its GEMM, what its masks
// leave. Kernels have no identity but their fields, so answers are found again by comparing these:
// that takes a microsecond or two, where the answers take tens. Who prices many configurations of
// one kernel says so by a SteadyKernel, and the comparison is one of two numbers.
//
// Invariant: an answer is a function of what was asked, so that keeping it changes nothing but
// time. One object is of one thread (thread_local).
#pragma once

#include "kernel/Kernel.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <tuple>

namespace weft {

/// Promises that nothing changes the kernel while this lives: its thread may find what it knows of
/// it by a number.
class SteadyKernel {
public:
  explicit SteadyKernel(const Kernel &kernel, uint64_t number = newNumber()) : before(innermost) {
    innermost = {.kernel = &kernel, .number = number};
  }
  ~SteadyKernel() { innermost = before; }
  SteadyKernel(const SteadyKernel &) = delete;

  /// One that no other kernel has: for a kernel that is kept, and never changed, longer than one
  /// such promise.
  static uint64_t newNumber() {
    static std::atomic<uint64_t> last = 0;
    return ++last;
  }
  /// 0: the innermost promise of this thread is of another kernel.
  static uint64_t numberOf(const Kernel &kernel) {
    return innermost.kernel == &kernel ? innermost.number : 0;
  }

private:
  struct Promise {
    const Kernel *kernel;
    uint64_t number;
  };
  static inline thread_local Promise innermost = {nullptr, 0};
  Promise before;
};

/// `Asked`: all that the answer follows from beside a kernel.
template <typename Answer, typename... Asked>
class RecentAnswers {
public:
  /// A configuration at a fill has about ten kernels: itself, one for each level, one of a single
  /// sequence.
  static constexpr size_t mostKept = 16;

  /// The answer that is kept, else `find()`, which is kept unless it throws. The reference holds
  /// until as many others have been asked for.
  template <typename Find>
  Answer &of(Find &&find, const Kernel &kernel, const Asked &...asked) {
    const auto question = std::tie(asked...);
    const uint64_t number = SteadyKernel::numberOf(kernel);
    const auto answered = [&](auto entry) -> Answer & {
      if (number > 0) entry->number = number;
      kept.splice(kept.begin(), kept, entry);
      return entry->answer;
    };
    for (auto entry = kept.begin(); number > 0 && entry != kept.end(); ++entry)
      if (entry->number == number && entry->asked == question) return answered(entry);
    for (auto entry = kept.begin(); entry != kept.end(); ++entry)
      if (entry->asked == question && entry->kernel == kernel) return answered(entry);
    Answer answer = find();  // which may ask for others
    kept.push_front(
        {.number = number, .kernel = kernel, .asked = {asked...}, .answer = std::move(answer)});
    if (kept.size() > mostKept) kept.pop_back();
    return kept.front().answer;
  }

private:
  struct Entry {
    uint64_t number = 0;  ///< of the last promise about the kernel
    Kernel kernel;
    std::tuple<Asked...> asked;
    Answer answer;
  };
  std::list<Entry> kept;  ///< the last one asked for first
};

}  // namespace weft
