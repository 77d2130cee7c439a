// CUDA sources as host C++, where they hold PTX: every asm statement becomes a call that names its
// text and operands (PtxStatement, sm90/Ptx.cpp), and dynamic shared memory the emulator's. Lines
// keep their numbers.
#pragma once

#include <string>
#include <string_view>

namespace weft::emulate {

/// Throws Error(checkFailed) for a statement that it does not understand.
std::string translatePtx(std::string_view source);

}  // namespace weft::emulate
