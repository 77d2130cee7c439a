// Device descriptions from JSON. Every figure must name its source: a figure that nobody can check
// is rejected.
#include "kernel/Device.h"

#include "kernel/Error.h"
#include "kernel/Nearest.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>

namespace weft {
namespace embedded {
extern const std::map<std::string, std::string_view> deviceFiles;
}

namespace {

using nlohmann::json;

/// Reads the members of one description; every rejection names the file and the member.
class DeviceReader {
public:
  DeviceReader(const json &object, std::string_view where) : object(object), where(where) {
    if (!object.is_object())
      throw Error::badInput("{}: a device description is a JSON object", where);
  }

  std::string text(const char *name) const {
    const json &member = find(name);
    if (!member.is_string() || member.get<std::string>().empty())
      throw Error::badInput("{}: '{}' must be a string that is not empty", where, name);
    return member.get<std::string>();
  }

  bool flag(const char *name) const {
    if (!find(name).is_boolean())
      throw Error::badInput("{}: '{}' must be true or false", where, name);
    return find(name).get<bool>();
  }

  double figure(const char *name) const {
    requireSource(name);
    return positive(find(name), name);
  }

  std::map<DType, double> figuresByType(const char *name) const {
    requireSource(name);
    std::map<DType, double> figures;
    for (const auto &[typeName, value] : find(name).items()) {
      const std::optional<DType> type = parseDType(typeName);
      if (!type)
        throw Error::badInput("{}: '{}' names unknown element type '{}'", where, name, typeName);
      figures[*type] = positive(value, name);
    }
    return figures;
  }

  /// Each of them names its source.
  std::set<std::string> measuredFigures() const {
    const json &figures = find("measured");
    if (!figures.is_array() || !std::ranges::all_of(figures, &json::is_string))
      throw Error::badInput("{}: 'measured' must be a list of figures", where);
    const auto names = figures.get<std::set<std::string>>();
    for (const std::string &figure : names) requireSource(figure.c_str());
    return names;
  }

  std::map<std::string, std::string> sources() const {
    std::map<std::string, std::string> result;
    for (const auto &[figure, source] : find("sources").items())
      if (source.is_string()) result[figure] = source.get<std::string>();
    return result;
  }

private:
  const json &find(const char *name) const {
    const auto found = object.find(name);
    if (found == object.end()) throw Error::badInput("{}: '{}' is missing", where, name);
    return *found;
  }

  double positive(const json &value, const char *name) const {
    if (!value.is_number() || !(value.get<double>() > 0))
      throw Error::badInput("{}: '{}' must be a positive number, not {}", where, name,
                            value.dump());
    return value.get<double>();
  }

  void requireSource(const char *name) const {
    const json &sources = find("sources");
    if (!sources.is_object() || !sources.contains(name) || !sources[name].is_string())
      throw Error::badInput("{}: the figure '{}' names no source (member 'sources')", where, name);
  }

  const json &object;
  std::string where;
};

std::vector<Device> parseEmbedded() {
  std::vector<Device> result;
  for (const auto &[file, text] : embedded::deviceFiles) result.push_back(parseDevice(text, file));
  std::sort(result.begin(), result.end(),
            [](const Device &a, const Device &b) { return a.name < b.name; });
  return result;
}

}  // namespace

std::string figuresText(const Device &device) {
  std::string text = fmt::format("{} {} {} {} {} {} {} {} {} {}", device.name, device.architecture,
                                 device.multiprocessors, device.copyBandwidth, device.peakBandwidth,
                                 device.memoryBytes, device.l2Bytes, device.fmaFlops,
                                 device.launchSeconds, device.sharedMemoryPerBlock);
  for (const auto &[type, flops] : device.tensorFlops)
    text += fmt::format(" {} {}", nameOf(type), flops);
  return text;
}

Device parseDevice(std::string_view text, std::string_view where) {
  json parsed;
  try {
    parsed = json::parse(text);
  } catch (const json::exception &error) {
    throw Error::badInput("{}: not JSON: {}", where, error.what());
  }
  const DeviceReader reader(parsed, where);
  return Device{.name = reader.text("name"),
                .title = reader.text("title"),
                .architecture = reader.text("architecture"),
                .canEmit = reader.flag("canEmit"),
                .multiprocessors = static_cast<int>(reader.figure("multiprocessors")),
                .copyBandwidth = reader.figure("copyBandwidth"),
                .peakBandwidth = reader.figure("peakBandwidth"),
                .memoryBytes = reader.figure("memoryBytes"),
                .l2Bytes = reader.figure("l2Bytes"),
                .tensorFlops = reader.figuresByType("tensorFlops"),
                .fmaFlops = reader.figure("fmaFlops"),
                .launchSeconds = reader.figure("launchSeconds"),
                .sharedMemoryPerBlock = static_cast<int64_t>(reader.figure("sharedMemoryPerBlock")),
                .familiesTakenAway = {},
                .mayBeNondeterministic = false,
                .measured = reader.measuredFigures(),
                .sources = reader.sources()};
}

const std::vector<Device> &devices() {
  static const std::vector<Device> all = parseEmbedded();
  return all;
}

const Device &findDevice(std::string_view name) {
  std::vector<std::string> names;
  for (const Device &device : devices()) {
    if (device.name == name) return device;
    names.push_back(device.name);
  }
  throw Error::badInput("unknown device '{}'{}", name, nearestAndKnown(name, names));
}

}  // namespace weft
