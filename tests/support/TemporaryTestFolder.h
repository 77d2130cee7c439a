// A folder for one test, removed at its end, and an environment variable set for its duration.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>

namespace weft::test {

class TemporaryTestFolder {
public:
  TemporaryTestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "weft-test-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("cannot create " + name);
    folder = name;
  }
  ~TemporaryTestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  TemporaryTestFolder(const TemporaryTestFolder &) = delete;
  TemporaryTestFolder &operator=(const TemporaryTestFolder &) = delete;

  const std::filesystem::path &path() const { return folder; }
  std::filesystem::path operator/(const std::string &name) const { return folder / name; }

private:
  std::filesystem::path folder;
};

class ScopedVariable {
public:
  ScopedVariable(std::string name, const std::string &value) : name(std::move(name)) {
    if (const char *old = std::getenv(this->name.c_str())) before = old;
    setenv(this->name.c_str(), value.c_str(), 1);
  }
  ~ScopedVariable() {
    if (before) setenv(name.c_str(), before->c_str(), 1);
    else unsetenv(name.c_str());
  }
  ScopedVariable(const ScopedVariable &) = delete;
  ScopedVariable &operator=(const ScopedVariable &) = delete;

private:
  std::string name;
  std::optional<std::string> before;
};

}  // namespace weft::test
