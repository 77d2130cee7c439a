// Texts and headers as one stream of code, hashed piece by piece; see SourceHash.h.
#include "codegen/SourceHash.h"

#include "codegen/Emit.h"
#include "kernel/LaunchCheck.h"
#include "kernel/Profile.h"

#include <fmt/format.h>

#include <set>
#include <vector>

namespace weft::codegen {
namespace {

/// Code, or the name of a header whose code stands here.
struct Piece {
  std::string text;
  bool isInclude = false;
};
using Pieces = std::vector<Piece>;
using Headers = std::map<std::string, Pieces>;

Pieces piecesOf(std::string_view text) {
  constexpr std::string_view include = "#include \"";
  Pieces pieces;
  const std::string code = compactCode(text);
  for (std::string_view rest = code; !rest.empty();) {
    const size_t length = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, length);
    rest.remove_prefix(std::min(length + 1, rest.size()));
    if (line == "#pragma once") continue;
    if (line.starts_with(include)) {
      const std::string_view name = line.substr(include.size());
      pieces.push_back({.text = std::string(name.substr(0, name.find('"'))), .isInclude = true});
    } else {
      pieces.push_back(
          {.text = line.starts_with('#') ? fmt::format("\n{}\n", line) : std::string(line)});
    }
  }
  return pieces;
}

Headers piecesOfAll(const std::map<std::string, std::string_view> &headers) {
  Headers pieces;
  for (const auto &[name, text] : headers) pieces[name] = piecesOf(text);
  return pieces;
}

class Hash {
public:
  explicit Hash(const Headers &headers) : headers(headers) {}

  void add(const Pieces &pieces) {
    for (const auto &[text, isInclude] : pieces) {
      const auto header = isInclude ? headers.find(text) : headers.end();
      if (header == headers.end()) state = fnv1a(text, state);
      else if (included.insert(text).second) add(header->second);
    }
  }

  uint64_t state = fnv1a("");

private:
  const Headers &headers;
  std::set<std::string> included;
};

std::string hashOf(std::string_view text, const Headers &headers) {
  if (text.empty()) return "-";
  Hash hash(headers);
  hash.add(piecesOf(withoutLaunchChecks(text)));
  return hashText(hash.state);
}

}  // namespace

std::string sourceHash(std::string_view text) {
  // Taken apart once: a search profiles thousands of kernels.
  static const Headers headers = piecesOfAll(deviceHeaders());
  return hashOf(text, headers);
}

std::string sourceHash(std::string_view text,
                       const std::map<std::string, std::string_view> &headers) {
  return hashOf(text, piecesOfAll(headers));
}

}  // namespace weft::codegen
