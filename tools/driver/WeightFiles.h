// Weights of a model from published checkpoints: one safetensors file, or a folder that holds one
// or several with an index. Files are mapped, so each weight is read where it is used and never
// copied as a whole.
#pragma once

#include "plan/Plan.h"
#include "runtime/execute/Safetensors.h"

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace weft::driver {

class WeightFiles {
public:
  /// `names`: whose names of weights the model has (models/WeightNames.h). Throws Error(badInput)
  /// for what is no such file or folder, and for an index that names missing files.
  WeightFiles(const std::filesystem::path &path, std::string names);

  /// Throws Error(badInput) that lists every parameter whose weight is missing or has another shape
  /// or an element type that is no float, expected against found; and every tensor that no model of
  /// these names has, with the nearest name, that is there twice, or that is not where the index
  /// says.
  void require(const std::vector<const PlanTensor *> &parameters) const;
  /// The parameter's elements, logical row-major, converted to its type. Call require() first.
  std::vector<std::byte> elements(const PlanTensor &parameter) const;

private:
  struct Found {
    const runtime::SafetensorsFile *file = nullptr;
    std::string name;  ///< in the file
  };
  void addFile(const std::filesystem::path &path);
  void addFolder(const std::filesystem::path &folder);
  void addTensor(const runtime::SafetensorsFile &file, const std::string &name);
  /// What is wrong with a parameter's weight; empty: nothing.
  std::string problemOf(const PlanTensor &parameter) const;

  std::filesystem::path path;
  std::string names;
  std::vector<std::unique_ptr<runtime::SafetensorsFile>> files;
  std::map<std::string, Found> tensors;    ///< by name without the model's prefix
  std::vector<std::string> problems = {};  ///< of tensors that no parameter asks for
};

}  // namespace weft::driver
