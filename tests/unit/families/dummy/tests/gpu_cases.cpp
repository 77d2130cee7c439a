// The dummy's case for the GPU: group dummy.
#include "tests/gpu/Collector.h"
#include "tests/unit/families/dummy/DummyFamily.h"
#include "tests/unit/samples/SampleKernels.h"

namespace weft::gputest {
namespace {

void addCopies(Collector &collect) {
  const Kernel kernel = samples::identityKernel({{'b', 8}, {'j', 125}}, "bj");
  for (const Configuration &one : collect.drawFamily(kernel, test::DummyKnobs{}, 2))
    collect.add("dummy", kernel, DType::f16, one);
}

const CaseRegistration registered("dummy", addCopies);

}  // namespace
}  // namespace weft::gputest
