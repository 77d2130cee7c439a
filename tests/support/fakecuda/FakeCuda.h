// A stand-in for NVIDIA's driver library, for tests of the runtime without a GPU: device memory is
// host memory, launches run at once, those of a graph in the last order that its edges allow, and
// what a kernel does is said by the text that stands for its cubin.
//
// A cubin is lines "ENTRY BEHAVIOUR": `copy N` copies N bytes from the first pointer to the second;
// `key` copies the 16 bytes of the dropout key (third argument) to the second; `hang` never
// finishes; `fault` fails. Real cubins and PTX load, too: their kernels take the time that the
// settings say and do nothing. Of a cubin whose first line is `host` the test's own functions are
// the kernels (FakeCudaKernels). Settings come from the file `fakecuda.txt` beside the library
// (lines "name value"), so that a test can make a driver without GPUs, an old one, a small one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

struct FakeCudaSettings {
  int initResult = 0, version = 13000, gpus = 1, capability = 90;
  int64_t memoryBytes = int64_t(1) << 30;
  int sharedBytes = 232448;                      ///< of a block, at most
  int64_t hangAtLaunch = 0, vanishAtLaunch = 0;  ///< number of a process' launch after which
                                                 ///< nothing ends, or the GPU is gone for all
  int64_t launchNanoseconds = 0,
          blockNanoseconds =
              0;  ///< time of a launch and of each of its blocks; 0: events are 1 ms apart
};

struct FakeCudaCounters {
  int64_t allocations = 0, allocatedBytes = 0, kernelLaunches = 0, graphLaunches = 0, captures = 0,
          synchronizations = 0;
  int64_t earlyLaunches = 0;  ///< asked for, of kernels that may start while the one before them
                              ///< ends; here they start as all do
  int64_t mostReady = 0;      ///< nodes of a graph that could run at once
};

/// Makes of a launch, when it is enqueued, what is done when it runs: given the whole text that
/// stands for the cubin, the kernel's name and what cuLaunchKernel was given for each parameter.
using FakeCudaKernels = std::function<std::function<void()>(
    const std::string &cubin, const std::string &entry, void **arguments)>;

extern "C" FakeCudaKernels *fakeCudaKernels();
extern "C" FakeCudaSettings *fakeCudaSettings();
extern "C" FakeCudaCounters *fakeCudaCounters();
