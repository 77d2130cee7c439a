#include "codegen/Families.h"
#include "kernel/Error.h"
namespace weft::codegen {
Program lowerTranspose(const Kernel &kernel, const Configuration &, const TransposeKnobs &) { throw Error::unsupported("kernel '{}': transpose", kernel.name); }
}
