#include "codegen/Families.h"
#include "kernel/Error.h"
namespace weft::codegen {
Program lowerContraction(const Kernel &kernel, const Configuration &, const ContractionKnobs &) { throw Error::unsupported("kernel '{}': contraction", kernel.name); }
}
