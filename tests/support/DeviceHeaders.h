// Device headers as kernels include them, also those of families that only tests have
// (weft_embed_test_headers).
#pragma once

#include "codegen/Emit.h"

#include <map>
#include <string>
#include <string_view>

namespace weft::embedded {
extern const std::map<std::string, std::string_view> testHeaderFiles;
}

namespace weft::test {

/// codegen::deviceHeaders() and those of tests/unit/families.
inline const std::map<std::string, std::string_view> &deviceHeaders() {
  static const std::map<std::string, std::string_view> headers = [] {
    std::map<std::string, std::string_view> all = codegen::deviceHeaders();
    for (const auto &[file, text] : embedded::testHeaderFiles) all["weft/" + file] = text;
    return all;
  }();
  return headers;
}

}  // namespace weft::test
