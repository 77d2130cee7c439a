// Tensors in files: the safetensors format, read and written. A file is the length of its header
// (64 bits, little-endian), the header (JSON: name -> dtype, shape, data_offsets), and the bytes of
// every tensor, logical row-major.
//
// Invariant: an open file was checked as a whole: every tensor lies inside it, has as many bytes as
// its shape asks for, and overlaps no other.
#pragma once

#include "kernel/DType.h"
#include "runtime/artifact/Artifact.h"

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weft::runtime {

class SafetensorsFile {
public:
  struct Entry {
    std::string dtype;  ///< as the file has it: "F16"
    std::vector<int64_t> shape;
    int64_t begin = 0, end = 0;  ///< bytes from the start of the file
  };

  /// Throws Error(badInput) naming the file and, where it is about one, the tensor.
  explicit SafetensorsFile(const std::filesystem::path &path);

  const std::map<std::string, Entry> &entries() const { return all; }
  /// Throws Error(badInput) unless the file has exactly the `expected` tensors (by logical name),
  /// each with its dtype and extents: what is missing, what is too much with the nearest name, what
  /// is there and what was expected.
  void requireExactly(const std::vector<const PlanTensor *> &expected) const;
  /// Throws Error(badInput) unless the file has this tensor, with its dtype and extents.
  void requireTensor(const PlanTensor &expected) const;
  std::vector<std::byte> read(const std::string &name) const;
  /// The tensor's bytes in the mapped file, as long as this lives. Throws Error(badInput).
  std::span<const std::byte> view(const std::string &name) const;

private:
  void addEntry(const std::string &name, const nlohmann::json &described, int64_t dataStart,
                int64_t fileBytes);
  void checkOverlaps() const;
  struct Mapping;
  std::filesystem::path path;
  std::map<std::string, Entry> all;
  mutable std::shared_ptr<const Mapping> mapping;  ///< once something is viewed
};

struct TensorToWrite {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<std::byte> elements;  ///< logical row-major
};
/// Creates or replaces the file, in the tensors' order. Throws Error(badInput) when it cannot be
/// written.
void writeSafetensors(const std::filesystem::path &path, std::span<const TensorToWrite> tensors);

}  // namespace weft::runtime
