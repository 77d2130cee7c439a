// How much memory this process may take: of the machine, of its control group, of its limit.
#pragma once

#include <cstdint>
#include <filesystem>

namespace weft::runtime {

/// The least of what the machine has, what the control group allows and the limit of the address
/// space; of what is known. `root`: for tests.
int64_t machineMemoryBytes(const std::filesystem::path &root = "/");

}  // namespace weft::runtime
