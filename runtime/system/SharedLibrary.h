// A library of NVIDIA's, opened at run time, and its functions by name. Never closed: they keep
// state per thread and context that must not outlive their code.
#pragma once

#include <string>

namespace weft::runtime {

class SharedLibrary {
public:
  /// `name`: a path, or a name for the dynamic loader. See isOpen().
  explicit SharedLibrary(const std::string &name);
  bool isOpen() const { return handle != nullptr; }
  /// What the loader said; empty if the library is open.
  const std::string &problem() const { return problemText; }

  /// False, and null, if the library has no function of this name.
  template <typename Function>
  bool find(const char *name, Function *&function) const {
    function = reinterpret_cast<Function *>(address(name));
    return function != nullptr;
  }

private:
  void *address(const char *name) const;
  void *handle = nullptr;
  std::string problemText;
};

}  // namespace weft::runtime
