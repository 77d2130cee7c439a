// Typed reading of one JSON object with errors that say where.
#include "models/ConfigReader.h"

#include "kernel/Nesting.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft::models {
namespace {

using nlohmann::json;

constexpr int64_t largestInteger = std::numeric_limits<int32_t>::max();

/// "3:14" of the byte before which parsing stopped (1-based, as the parser counts).
std::string lineAndColumn(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte > 0 ? byte - 1 : 0, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t lineStart = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("{}:{}", line, before.size() - lineStart + 1);
}

/// The parser's reason without its own prefix and position.
std::string reasonOf(const json::parse_error &error) {
  const std::string text = error.what();
  const size_t marker = text.find(": ");
  return marker == std::string::npos ? text : text.substr(marker + 2);
}

std::string joined(const Keys &keys) { return fmt::format("'{}'", fmt::join(keys, "' or '")); }

bool isOff(const json &value) {
  return value.is_null() || value == false || (value.is_structured() && value.empty());
}

}  // namespace

bool isProbability(const json &value) {
  return value.is_number() && value.get<double>() >= 0 && value.get<double>() < 1;
}

ConfigReader::ConfigReader(std::string_view text, std::string where) : where_(std::move(where)) {
  checkJsonNesting(text, where_);
  std::set<std::string> seen;
  const auto rejectRepeated = [&](int depth, json::parse_event_t event, json &parsed) {
    if (event == json::parse_event_t::key && depth == 1 &&
        !seen.insert(parsed.get<std::string>()).second)
      throw Error::badInput("{}: key '{}' occurs twice", where_, parsed.get<std::string>());
    return true;
  };
  try {
    object_ = json::parse(text, rejectRepeated);
  } catch (const json::parse_error &error) {
    throw Error::badInput("{}:{}: not valid JSON: {}", where_, lineAndColumn(text, error.byte),
                          reasonOf(error));
  } catch (const json::exception &error) {
    throw Error::badInput("{}: not valid JSON: {}", where_, error.what());
  }
  if (!object_.is_object())
    throw Error::badInput("{}: the root must be an object of settings, not {}", where_,
                          object_.type_name());
}

Error ConfigReader::error(ErrorKind kind, const std::string &key, std::string_view reason) const {
  const auto at = object_.find(key);
  const std::string value =
      at == object_.end() ? "" : " = " + at->dump(-1, ' ', false, json::error_handler_t::replace);
  return Error(kind, fmt::format("{}: key '{}'{}: {}", where_, key, value, reason));
}

const json *ConfigReader::find(const std::string &key) {
  read_.insert(key);
  const auto at = object_.find(key);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

const json *ConfigReader::find(const Keys &keys, std::string &found) {
  const json *value = nullptr;
  for (const std::string &key : keys) {
    const json *candidate = find(key);
    if (!candidate) continue;
    if (value && *value != *candidate)
      throw error(ErrorKind::badInput, key,
                  fmt::format("contradicts '{}' = {}", found, value->dump()));
    if (!value) found = key;
    value = candidate;
  }
  return value;
}

std::optional<int64_t> ConfigReader::integer(const Keys &keys, int64_t minimum) {
  std::string key;
  const json *value = find(keys, key);
  if (!value) return std::nullopt;
  if (!value->is_number_integer())
    throw error(ErrorKind::badInput, key,
                fmt::format("must be an integer, not {}", value->type_name()));
  const bool isHuge =
      value->is_number_unsigned() && value->get<uint64_t>() > uint64_t(largestInteger);
  if (isHuge || value->get<int64_t>() < minimum || value->get<int64_t>() > largestInteger)
    throw error(ErrorKind::badInput, key,
                fmt::format("is outside {}..{}", minimum, largestInteger));
  return value->get<int64_t>();
}

int64_t ConfigReader::requiredInteger(const Keys &keys) {
  if (const auto value = integer(keys)) return *value;
  throw Error::badInput("{}: key {} is missing; it must be an integer in 1..{}", where_,
                        joined(keys), largestInteger);
}

double ConfigReader::positive(const Keys &keys, double absent) {
  std::string key;
  const json *value = find(keys, key);
  if (!value) return absent;
  if (!value->is_number())
    throw error(ErrorKind::badInput, key,
                fmt::format("must be a number, not {}", value->type_name()));
  const double number = value->get<double>();
  if (!(number > 0) || !std::isfinite(number))
    throw error(ErrorKind::badInput, key, "must be finite and above 0");
  return number;
}

double ConfigReader::probability(const std::string &key, double absent) {
  if (has(key)) probabilityKeys_.push_back(key);
  const json *value = find(key);
  if (!value) {
    if (absent != 0) assumedProbabilities_.push_back(fmt::format("{} = {}", key, absent));
    return absent;
  }
  if (!isProbability(*value)) throw error(ErrorKind::badInput, key, noProbability);
  return value->get<double>();
}

std::optional<int64_t> ConfigReader::integerOr(const std::string &key, int64_t absent) {
  if (has(key)) return integer({key});
  find(key);
  assume(key, std::to_string(absent));
  return absent;
}

double ConfigReader::positiveOr(const Keys &keys, double absent) {
  const double value = positive(keys, absent);
  std::string found;
  if (!find(keys, found)) assume(keys.front(), fmt::format("{}", absent));
  return value;
}

bool ConfigReader::hasAny(const Keys &keys) const {
  return std::ranges::any_of(keys, [&](const std::string &key) { return has(key); });
}

bool ConfigReader::flag(const std::string &key, bool absent) {
  const json *value = find(key);
  if (!value) return absent;
  if (!value->is_boolean())
    throw error(ErrorKind::badInput, key,
                fmt::format("must be true or false, not {}", value->type_name()));
  return value->get<bool>();
}

std::string ConfigReader::text(const Keys &keys, const std::string &absent) {
  std::string key;
  const json *value = find(keys, key);
  if (!value) return absent;
  if (!value->is_string())
    throw error(ErrorKind::badInput, key,
                fmt::format("must be a string, not {}", value->type_name()));
  return value->get<std::string>();
}

std::string ConfigReader::requiredText(const std::string &key) {
  if (!find(key))
    throw Error::badInput("{}: key '{}' is missing; it must be a string", where_, key);
  return text({key}, "");
}

void ConfigReader::rejectFlag(const std::string &key, std::string_view reason) {
  if (flag(key, false)) throw error(ErrorKind::unsupported, key, reason);
}

void ConfigReader::rejectValue(const std::string &key, std::string_view reason) {
  const json *value = find(key);
  if (value && !isOff(*value)) throw error(ErrorKind::unsupported, key, reason);
}

std::vector<std::string> ConfigReader::unread() const {
  std::vector<std::string> unread = keys();
  std::erase_if(unread, [&](const std::string &key) { return read_.contains(key); });
  return unread;
}

std::vector<std::string> ConfigReader::keys() const {
  std::vector<std::string> keys;
  for (const auto &[key, value] : object_.items()) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

}  // namespace weft::models
