// JSON text; nlohmann's own pretty printer gives every array element a line, which buries a plan in
// strides.
#include "runtime/system/JsonText.h"

#include "kernel/Error.h"
#include "kernel/Nesting.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

namespace weft::runtime {

using nlohmann::json;

namespace {

constexpr size_t lineWidth = 120;

void checkFinite(const json &value) {
  if (value.is_number_float() && !std::isfinite(value.get<double>()))
    throw std::logic_error("a number that is infinite or not a number cannot be written as JSON");
}

std::string dumped(const json &value) {
  try {
    return value.dump();
  } catch (const json::type_error &) {  // a name of a file, as a rule
    throw Error::badInput("{} is no UTF-8 text, and JSON holds no other",
                          value.dump(-1, ' ', false, json::error_handler_t::replace));
  }
}

bool fitsOneLine(const json &array, size_t column) {
  const bool scalars =
      std::ranges::none_of(array, [](const json &item) { return item.is_structured(); });
  return scalars && column + dumped(array).size() + array.size() <= lineWidth;
}

std::string oneLine(const json &array) {
  std::string text = "[";
  for (const json &item : array) {
    checkFinite(item);
    text += (text.size() > 1 ? ", " : "") + dumped(item);
  }
  return text + "]";
}

/// `column` is where the value starts, after its member name.
void print(const json &value, size_t indent, size_t column, std::string &out) {
  checkFinite(value);
  if (!value.is_structured() || value.empty()) {
    out += dumped(value);
    return;
  }
  if (value.is_array() && fitsOneLine(value, column)) {
    out += oneLine(value);
    return;
  }
  out += value.is_array() ? "[" : "{";
  const std::string margin(indent + 2, ' ');
  bool first = true;
  for (const auto &[name, item] : value.items()) {
    const std::string label = value.is_array() ? "" : dumped(name) + ": ";
    out += (first ? "\n" : ",\n") + margin + label;
    print(item, indent + 2, margin.size() + label.size(), out);
    first = false;
  }
  out += "\n" + std::string(indent, ' ') + (value.is_array() ? "]" : "}");
}

/// Rejects what nlohmann would silently resolve: of two members with one name it keeps the last.
class DuplicateCheck {
public:
  explicit DuplicateCheck(const std::string &where) : where(where) {}

  bool operator()(int, json::parse_event_t event, json &parsed) {
    if (event == json::parse_event_t::object_start) open.emplace_back();
    if (event == json::parse_event_t::object_end) open.pop_back();
    if (event == json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second)
      throw Error::badInput("{}: member \"{}\" stands twice in one object", where,
                            parsed.get<std::string>());
    return true;
  }

private:
  const std::string &where;
  std::vector<std::set<std::string>> open;
};

}  // namespace

std::string prettyText(const json &value) {
  std::string out;
  print(value, 0, 0, out);
  return out + "\n";
}

std::string resultText(nlohmann::json object) {
  object["version"] = jsonVersion;
  return prettyText(object);
}

json parseJson(std::string_view text, const std::string &where) {
  checkJsonNesting(text, where);
  try {
    return json::parse(text, DuplicateCheck(where));
  } catch (const json::parse_error &error) {
    const size_t position = std::min(error.byte, text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + ptrdiff_t(position), '\n');
    const std::string_view what = error.what();
    const size_t reason = what.rfind(": ");
    throw Error::badInput("{}:{}: not valid JSON: {}", where, line,
                          reason == what.npos ? what : what.substr(reason + 2));
  } catch (const json::exception &error) {  // a number beyond all: its text is part of the reason
    const std::string_view what = error.what();
    throw Error::badInput("{}: {}", where, what.substr(std::min(what.size(), what.find("] ") + 2)));
  }
}

}  // namespace weft::runtime
