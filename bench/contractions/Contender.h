// What takes part: the configurations of one GEMM, built, and the candidates of a library, on
// one set of operands.
#pragma once

#include "bench/contractions/TimedGraph.h"
#include "codegen/Emit.h"
#include "codegen/families/library/LibraryGemm.h"
#include "runtime/build/Build.h"
#include "runtime/cuda/CublasLt.h"
#include "runtime/measure/Measure.h"

#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace weft::bench {

/// A GEMM of m x n x k; each operand with rows along k or along its outer axis. `pad`: elements
/// from a row to the next are a multiple of it (1: dense). `types`: of A, B and C where they are
/// not the element type of the run.
struct Shape {
  const char *group;
  int64_t m, n, k, batch;
  bool isAlongKA = true, isAlongKB = true;
  int64_t pad = 1;
  const char *types = nullptr;  ///< "f8e4m3,f8e5m2->f16", "tf32,tf32->f32"

  double flop() const { return 2.0 * double(m) * double(n) * double(k) * double(batch); }
  /// Of both operands and the result, once.
  double bytes() const;
  std::string name() const;
};

struct Problem {
  Shape shape;
  Kernel kernel;
  std::vector<Configuration> configurations;  ///< of our families, with the shape's layouts
  std::vector<codegen::EmittedKernel> emitted;
  std::vector<runtime::BuildResult> built;
};
/// Without cubins; of `dtype` where the shape says nothing else. Throws Error(checkFailed) when no
/// configuration is legal.
Problem problemOf(const Shape &shape, DType dtype);

/// Operands of one problem on the GPU, and everything that can compute it. Results are compared
/// with fp64 at sampled places.
class Contenders {
public:
  /// startsEarly: kernels of ours that may, start while the one before them ends.
  Contenders(const Problem &problem, const runtime::CublasLt &library, bool startsEarly);

  struct Contender {
    std::string name;
    bool isOurs = true;
    Enqueue enqueue;
    bool promotesSums = false;  ///< of a library with 8-bit floats
    double seconds = 0;         ///< filled in by whoever measures
  };
  std::vector<Contender> &all() { return contenders; }
  int sets() const { return int(memory.size()); }
  /// Empty, or what is wrong with the last result in set 0: places that were not written, sampled
  /// elements that are wrong.
  std::string check();
  void poison();

private:
  struct Set {
    runtime::cuda::Buffer a, b, c;
  };
  void addOurs();
  void addLibrary(const runtime::CublasLt &library);
  void addCandidates(const runtime::CublasLt &library, const LibraryGemm &asked);

  const Problem &problem;
  const bool startsEarly;
  const GemmTypes types;
  LibraryGemm gemm;
  std::vector<std::byte> hostA, hostB;
  std::vector<Set> memory;
  runtime::cuda::Buffer workspace;
  std::deque<runtime::cuda::Module> modules;
  std::deque<runtime::PreparedGemm> prepared;
  std::vector<Contender> contenders;
};

}  // namespace weft::bench
