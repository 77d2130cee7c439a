// One stored element of any type. Bit patterns are made here from the formats' definitions, and not
// with the conversion functions of the device headers, which are under test.
#pragma once

#include "kernel/DType.h"

#include <cstddef>

namespace weft::reference {

/// `value` must be one that the type can hold.
void storeElement(DType type, std::byte *at, double value);
double loadElement(DType type, const std::byte *at);

}  // namespace weft::reference
