// Folders of findings; see Findings.h.
#include "tests/fuzz/Findings.h"

#include <cstdio>
#include <fstream>
#include <functional>

namespace weft::fuzz {

namespace fs = std::filesystem;

bool keepFinding(const fs::path &folder, const Finding &finding, const Kind &kind,
                 const Files &files) {
  char hash[20];
  std::snprintf(hash, sizeof hash, "%08zx",
                std::hash<std::string>()(signatureOf(finding.problem)) & 0xFFFFFFFFu);
  const fs::path own = folder / (finding.kind + "-" + hash);
  const bool isNew = fs::create_directories(own);
  std::ofstream text(own / "finding.txt", std::ios::app);
  if (!isNew) {
    text << "also seed " << finding.seed << "\n";
    return false;
  }
  text << finding.problem.promise << "\n"
       << finding.problem.detail << "\n\nkind " << finding.kind << ", seed " << finding.seed
       << "\n";
  for (const std::string &command : finding.commands) text << "  " << command << "\n";
  std::ofstream(own / "input", std::ios::binary) << kind.kept(files);
  for (const auto &[name, bytes] : files) {
    fs::create_directories((own / "files" / name).parent_path());
    std::ofstream(own / "files" / name, std::ios::binary) << bytes;
  }
  return true;
}

}  // namespace weft::fuzz
