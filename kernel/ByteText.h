// Sizes in bytes as people write them.
#pragma once

#include <cstdint>
#include <string>

namespace weft {

/// Bytes of "80G", "512M", "1.5T", "4096": powers of 1000 (K, M, G, T) or 1024 (Ki, Mi, Gi, Ti).
int64_t parseBytes(const std::string &text, const std::string &flag);
/// The least size in the unit of `like` that holds so many bytes: "42M" of 41,943,040 like "20M".
std::string printBytesAs(int64_t bytes, const std::string &like);

}  // namespace weft
