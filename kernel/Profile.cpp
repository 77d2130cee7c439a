// Reading, writing, merging of profiles. A line that is not understood is rejected with its number:
// a timing that silently vanished would change plans without a word.
#include "kernel/Profile.h"

#include "kernel/ConfigurationText.h"
#include "kernel/Error.h"
#include "kernel/PlainText.h"
#include "kernel/ProfileMigration.h"
#include "kernel/TestedProfile.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

namespace weft {
namespace {

constexpr std::string_view magic = "# weft profile 4", magicOfFormat3 = "# weft profile 3",
                           magicOfFormat2 = "# weft profile 2";

bool isHash(std::string_view text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

class ProfileParser {
public:
  ProfileParser(std::string_view text, const std::string &where, bool isTested)
      : rest(text), where(where), isTested(isTested) {}

  Profile run() {
    if (!nextLine() || (line != magic && line != magicOfFormat3 && line != magicOfFormat2))
      throw broken("the first line must be '{}', or '{}' or '{}', which are migrated", magic,
                   magicOfFormat3, magicOfFormat2);
    isOfFormat2 = line == magicOfFormat2;
    if (!rest.empty() && rest.back() != '\n') {
      number = int(std::count(rest.begin(), rest.end(), '\n')) + 2;
      throw broken("the last line has no end: the file is cut off");
    }
    if (!nextLine() || !take("# device ") || line.empty()) throw broken("expected '# device NAME'");
    profile.device = line;
    while (nextLine()) {
      if (line.empty()) continue;
      if (take("# protocol ")) parseProtocol();
      else if (line.front() == '#') continue;
      else if (take("kernel ")) parseKernel();
      else if (take("  ")) parseMeasurement();
      else throw broken("'{}' is neither a kernel nor a measurement of one", line);
    }
    return std::move(profile);
  }

private:
  template <typename... Arguments>
  Error broken(fmt::format_string<Arguments...> text, Arguments &&...arguments) const {
    return Error::badInput("{}:{}: {}", where, number,
                           fmt::format(text, std::forward<Arguments>(arguments)...));
  }

  bool nextLine() {
    ++number;
    if (rest.empty()) return false;
    const size_t end = std::min(rest.find('\n'), rest.size());
    line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    return true;
  }

  bool take(std::string_view prefix) {
    if (!line.starts_with(prefix)) return false;
    line.remove_prefix(prefix.size());
    return true;
  }

  std::string_view word(std::string_view what) {
    const size_t end = std::min(line.find(' '), line.size());
    const std::string_view result = line.substr(0, end);
    if (result.empty()) throw broken("the measurement ends before its {}", what);
    line.remove_prefix(std::min(end + 1, line.size()));
    return result;
  }

  template <typename Number>
  Number numberWord(std::string_view what) {
    const std::string_view text = word(what);
    Number value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      throw broken("'{}' is no {}", text, what);
    return value;
  }

  void parseProtocol() {
    const int id = numberWord<int>("protocol's number");
    checked([&] { checkProtocol(id, line); });
    if (!profile.protocols.emplace(id, line).second) throw broken("protocol {} occurs twice", id);
  }

  void parseKernel() {
    const std::string_view hash = word("kernel's hash");
    checked([&] { checkKernelHash(hash); });
    const MigratedSubject subject =
        isOfFormat2 ? migratedSubject(hash, line)
                    : MigratedSubject{.hash = std::string(hash), .name = std::string(line)};
    const auto [found, isNew] = profile.kernels.try_emplace(subject.hash);
    if (!isNew) throw broken("kernel {} occurs twice", hash);
    kernel = &found->second;
    kernel->name = subject.name;
  }

  /// Problems that others find, with the place.
  template <typename Check>
  void checked(Check &&check) const {
    try {
      check();
    } catch (const Error &error) {
      throw broken("{}", error.what());
    }
  }

  void parseMeasurement() {
    if (!kernel) throw broken("a measurement stands before the first kernel");
    ProfileMeasurement measurement;
    if (take("failed ")) {
      measurement.status = MeasurementStatus::failed;
      parseOrigin(measurement);
      const size_t reason = line.find(" ; ");
      if (reason == std::string_view::npos) throw broken("a failure without its reason");
      measurement.reason = line.substr(reason + 3);
      line = line.substr(0, reason);
    } else {
      measurement.seconds = numberWord<double>("time");
      if (take("slow ")) {
        measurement.status = MeasurementStatus::slow;
        measurement.n = 1;
      } else {
        measurement.n = numberWord<int64_t>("number of repetitions");
        measurement.spread = numberWord<double>("spread");
      }
      parseOrigin(measurement);
    }
    std::string configuration = isOfFormat2 ? migratedLine(line) : std::string(line);
    if (!isTested)
      checked([&] { checkMeasurement(configuration, measurement, profile.protocols); });
    // Profiles are printed in order, so that the place is mostly the end.
    const size_t before = kernel->measurements.size();
    kernel->measurements.emplace_hint(kernel->measurements.end(), std::move(configuration),
                                      std::move(measurement));
    if (kernel->measurements.size() == before)
      throw broken("configuration '{}' occurs twice", line);
  }

  void parseOrigin(ProfileMeasurement &measurement) {
    measurement.protocol = numberWord<int>("protocol");
    measurement.source = word("source");
    measurement.familyVersion = numberWord<int>("family version");
  }

  std::string_view rest, line;
  std::string where;
  Profile profile;
  ProfileKernel *kernel = nullptr;
  int number = 0;
  bool isOfFormat2 = false, isTested = false;
};

std::string printMeasurement(const std::string &configuration,
                             const ProfileMeasurement &measurement) {
  const std::string origin = fmt::format("{} {} {} {}", measurement.protocol, measurement.source,
                                         measurement.familyVersion, configuration);
  switch (measurement.status) {
    case MeasurementStatus::measured:
      return fmt::format("  {:.2e} {} {:.3f} {}\n", measurement.seconds, measurement.n,
                         measurement.spread, origin);
    case MeasurementStatus::slow:
      return fmt::format("  {:.2e} slow {}\n", measurement.seconds, origin);
    case MeasurementStatus::failed:
      return fmt::format("  failed {} ; {}\n", origin, oneLine(measurement.reason));
  }
  return "";
}

bool isPreferred(const ProfileMeasurement &offered, const ProfileMeasurement &held) {
  const auto rank = [](const ProfileMeasurement &measurement) {
    return std::tuple(measurement.familyVersion, -static_cast<int>(measurement.status),
                      measurement.n);
  };
  return rank(offered) >= rank(held);
}

/// Family and layouts of a line.
std::string_view placeOf(std::string_view line) {
  const LineFields fields = splitLine(line);
  return line.substr(
      0, static_cast<size_t>(fields.layouts.data() + fields.layouts.size() - line.data()));
}

}  // namespace

std::string_view nameOf(MeasurementStatus status) {
  switch (status) {
    case MeasurementStatus::measured: return "measured";
    case MeasurementStatus::slow: return "slow";
    case MeasurementStatus::failed: return "failed";
  }
  return "";
}

size_t Profile::measurementCount() const {
  size_t count = 0;
  for (const auto &[hash, kernel] : kernels) count += kernel.measurements.size();
  return count;
}

int Profile::protocolNumber(const std::string &protocol) {
  for (const auto &[number, text] : protocols)
    if (text == protocol) return number;
  const int number = protocols.empty() ? 1 : protocols.rbegin()->first + 1;
  protocols[number] = protocol;
  return number;
}

uint64_t fnv1a(std::string_view text, uint64_t state) {
  for (const char c : text) state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return state;
}

std::string hashText(uint64_t hash) { return fmt::format("{:016x}", hash); }

std::string profileHash(std::string_view text) { return hashText(fnv1a(text)); }

double quantized(double seconds) { return std::stod(fmt::format("{:.2e}", seconds)); }

void checkKernelHash(std::string_view hash) {
  if (!isHash(hash)) throw Error::badInput("'{}' is no hash of a kernel", hash);
}

void checkProtocol(int64_t number, std::string_view text) {
  if (number < 1 || number > std::numeric_limits<int>::max())
    throw Error::badInput("protocol {}; they are numbered from 1", number);
  if (text.empty() || text.find('\n') != std::string_view::npos)
    throw Error::badInput("protocol {} is no line of text", number);
}

void checkMeasurement(std::string_view configuration, const ProfileMeasurement &measurement,
                      const std::map<int, std::string> &protocols) {
  const bool failed = measurement.status == MeasurementStatus::failed;
  if (failed ? measurement.seconds != 0
             : !(measurement.seconds > 0 && std::isfinite(measurement.seconds)))
    throw Error::badInput("{} seconds; a time is positive{}", measurement.seconds,
                          failed ? ", and a failure has none" : "");
  if (measurement.status == MeasurementStatus::measured ? measurement.n < 1 : measurement.n < 0)
    throw Error::badInput("{} repetitions; at least one is needed", measurement.n);
  if (!(measurement.spread >= 0 && std::isfinite(measurement.spread)))
    throw Error::badInput("a spread of {}; it is at least 0", measurement.spread);
  if (!protocols.contains(measurement.protocol))
    throw Error::badInput("protocol {} is not among those of the profile", measurement.protocol);
  if (measurement.source != "-" && !isHash(measurement.source))
    throw Error::badInput("'{}' is no hash of a source", measurement.source);
  if (measurement.familyVersion < 0)
    throw Error::badInput("family version {} is negative", measurement.familyVersion);
  if (failed == measurement.reason.empty() || measurement.reason.find('\n') != std::string::npos)
    throw Error::badInput("{}", failed ? "a failure without its reason in one line"
                                       : "a reason of a failure that is none");
  checkLine(configuration);
}

void addMeasurement(Profile &profile, const Kernel &kernel, const Configuration &configuration,
                    const ProfileMeasurement &measurement) {
  const ProfileSubject subject = subjectOf(kernel, configuration);
  ProfileKernel &measurements = profile.kernels[profileHash(subject.text)];
  measurements.name = subject.name;
  const std::string line = configurationLine(kernel, configuration);
  if (!measurements.measurements.emplace(line, measurement).second)
    throw Error::checkFailed("the profile has '{}' of '{}' already", line, subject.name);
}

Profile parseProfile(std::string_view text, const std::string &where) {
  return ProfileParser(text, where, false).run();
}

Profile parseTestedProfile(std::string_view text, const std::string &where) {
  return ProfileParser(text, where, true).run();
}

std::vector<std::pair<std::string_view, const ProfileMeasurement *>> measurementsAt(
    const ProfileKernel &kernel, const Family &family, std::string_view place) {
  std::vector<std::pair<std::string_view, const ProfileMeasurement *>> found;
  const std::string begin = fmt::format("{} {}", family, place);
  for (auto one = kernel.measurements.lower_bound(begin);
       one != kernel.measurements.end() && one->first.starts_with(begin); ++one)
    if (splitLine(one->first).layouts == place) found.emplace_back(one->first, &one->second);
  return found;
}

std::string printProfile(const Profile &profile) {
  std::string text = fmt::format("{}\n# device {}\n", magic, profile.device);
  for (const auto &[number, protocol] : profile.protocols)
    text += fmt::format("# protocol {} {}\n", number, oneLine(protocol));
  for (const auto &[hash, kernel] : profile.kernels) {
    text += fmt::format("kernel {} {}\n", hash, oneLine(kernel.name));
    for (const auto &[configuration, measurement] : kernel.measurements)
      text += printMeasurement(configuration, measurement);
  }
  return text;
}

void mergeProfile(Profile &profile, const Profile &other) { moveIntoProfile(profile, other); }

void moveIntoProfile(Profile &profile, Profile other) {
  if (profile.device != other.device)
    throw Error::badInput(
        "profiles of '{}' and of '{}' cannot be merged: times belong to one device", profile.device,
        other.device);
  std::map<int, int> numberOf;
  for (const auto &[number, protocol] : other.protocols)
    numberOf[number] = profile.protocolNumber(protocol);
  for (auto &[hash, kernel] : other.kernels) {
    for (auto &[configuration, measurement] : kernel.measurements)
      measurement.protocol = numberOf.at(measurement.protocol);
    const auto [held, isNewKernel] = profile.kernels.try_emplace(hash, std::move(kernel));
    if (isNewKernel) continue;
    ProfileKernel &target = held->second;
    if (target.name.empty()) target.name = kernel.name;
    for (auto &[configuration, measurement] : kernel.measurements) {
      const auto [found, isNew] =
          target.measurements.try_emplace(configuration, std::move(measurement));
      if (!isNew && isPreferred(measurement, found->second)) found->second = std::move(measurement);
    }
  }
}

Profile thinned(const Profile &profile, int perLayouts) {
  Profile result{.device = profile.device, .protocols = {}, .kernels = {}};
  std::set<int> used;
  for (const auto &[hash, kernel] : profile.kernels) {
    std::map<std::string_view,
             std::vector<const std::pair<const std::string, ProfileMeasurement> *>>
        byPlace;
    for (const auto &entry : kernel.measurements)
      if (entry.second.status != MeasurementStatus::failed)
        byPlace[placeOf(entry.first)].push_back(&entry);
    for (auto &[place, measurements] : byPlace) {
      std::stable_sort(measurements.begin(), measurements.end(), [](const auto *a, const auto *b) {
        return std::tuple(a->second.status, a->second.seconds) <
               std::tuple(b->second.status, b->second.seconds);
      });
      const bool onlySlow = measurements.front()->second.status == MeasurementStatus::slow;
      for (size_t i = 0; i < measurements.size() && i < static_cast<size_t>(perLayouts); ++i) {
        if (measurements[i]->second.status == MeasurementStatus::slow && !onlySlow) break;
        ProfileKernel &target = result.kernels[hash];
        target.name = kernel.name;
        target.measurements.insert(*measurements[i]);
        used.insert(measurements[i]->second.protocol);
      }
    }
  }
  for (const int number : used) result.protocols[number] = profile.protocols.at(number);
  return result;
}

}  // namespace weft
