// Reading and writing of profile files. A line that is not understood is refused with its number: a timing that silently
// vanished would change plans without a word.
#include "passes/configure/Profile.h"

#include "kernel/Error.h"

#include <cmath>
#include <sstream>

namespace weft {
namespace {

constexpr std::string_view magic = "# weft profile 1";
constexpr std::string_view columns = "# kernel configuration family version source seconds n spread";

bool isHash(const std::string &text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

class ProfileParser {
public:
  ProfileParser(std::string_view text, const std::string &where) : stream(std::string(text)), where(where) {}

  Profile run() {
    Profile profile;
    if (!next() || line != magic) throw broken("the first line must be '{}'", magic);
    profile.device = header("# device ");
    profile.protocol = header("# protocol ");
    while (next()) {
      if (line.empty() || line[0] == '#') continue;
      const ProfileRow row = parseRow();
      if (!profile.rows.emplace(row.configuration, row).second) throw broken("configuration {} occurs twice", row.configuration);
    }
    return profile;
  }

private:
  template <typename... Arguments>
  Error broken(fmt::format_string<Arguments...> text, Arguments &&...arguments) const {
    return Error::badInput("{}:{}: {}", where, number, fmt::format(text, std::forward<Arguments>(arguments)...));
  }

  bool next() {
    ++number;
    if (!std::getline(stream, line)) return false;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return true;
  }

  std::string header(const std::string &prefix) {
    if (!next() || line.rfind(prefix, 0) != 0 || line.size() == prefix.size()) throw broken("expected '{}...'", prefix);
    return line.substr(prefix.size());
  }

  ProfileRow parseRow() const {
    std::istringstream fields(line);
    ProfileRow row;
    std::string rest;
    if (!(fields >> row.kernel >> row.configuration >> row.family >> row.familyVersion >> row.source >> row.seconds >> row.n >> row.spread))
      throw broken("expected the columns '{}'", columns.substr(2));
    if (fields >> rest) throw broken("'{}' follows the last column", rest);
    if (!isHash(row.kernel)) throw broken("'{}' is no hash of a kernel", row.kernel);
    if (!isHash(row.configuration)) throw broken("'{}' is no hash of a configuration", row.configuration);
    if (row.source != "-" && !isHash(row.source)) throw broken("'{}' is no hash of a source", row.source);
    if (!(row.seconds > 0) || !std::isfinite(row.seconds)) throw broken("{} seconds; a time is positive", row.seconds);
    if (row.n < 1) throw broken("{} repetitions; at least one is needed", row.n);
    if (!(row.spread >= 0)) throw broken("a spread of {}; it is at least 0", row.spread);
    return row;
  }

  std::istringstream stream;
  std::string where, line;
  int number = 0;
};

}  // namespace

std::string profileHash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return fmt::format("{:016x}", hash);
}

std::string profileKey(const Kernel &kernel, const Configuration &configuration, std::string_view architecture) {
  std::string text = canonicalText(kernel, configuration, architecture);
  const std::string_view family = familyOf(configuration.knobs);
  const std::string line = fmt::format("\nfamily {} {}\n", family, familyVersion(family));
  if (const size_t at = text.find(line); at != std::string::npos) text.replace(at, line.size(), fmt::format("\nfamily {}\n", family));
  return profileHash(text);
}

double quantized(double seconds) { return std::stod(fmt::format("{:.2e}", seconds)); }

ProfileRow profileRow(const Kernel &kernel, const Configuration &configuration, std::string_view architecture,
                      std::string_view sourceText, double seconds, int64_t n, double spread) {
  const std::string family(familyOf(configuration.knobs));
  return {.kernel = profileHash(canonicalText(kernel)),
          .configuration = profileKey(kernel, configuration, architecture),
          .family = family,
          .familyVersion = familyVersion(family),
          .source = sourceText.empty() ? "-" : profileHash(sourceText),
          .seconds = quantized(seconds),
          .n = n,
          .spread = spread};
}

Profile parseProfile(std::string_view text, const std::string &where) { return ProfileParser(text, where).run(); }

std::string printProfile(const Profile &profile) {
  std::string text = fmt::format("{}\n# device {}\n# protocol {}\n{}\n", magic, profile.device, profile.protocol, columns);
  for (const auto &[key, row] : profile.rows)
    text += fmt::format("{} {} {} {} {} {:.2e} {} {:.3f}\n", row.kernel, row.configuration, row.family, row.familyVersion, row.source,
                        row.seconds, row.n, row.spread);
  return text;
}

}  // namespace weft
