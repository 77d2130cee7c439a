// Changes of single nodes, which are found by walking down at random; see JsonMutation.h.
#include "tests/fuzz/JsonMutation.h"

#include "tests/fuzz/TextMutation.h"

#include <algorithm>

namespace weft::fuzz {

using nlohmann::json;

namespace {

json &childOf(json &node, size_t index) {
  auto child = node.begin();
  std::advance(child, ptrdiff_t(index));
  return *child;
}

/// A node that has children, at any depth; the document itself if nothing below it has any.
json &someParent(json &document, Random &random) {
  json *node = &document;
  while (true) {
    std::vector<json *> inner;
    for (json &child : *node)
      if (child.is_structured() && !child.empty()) inner.push_back(&child);
    if (inner.empty() || random.oneIn(5)) return *node;
    node = random.pick(inner);
  }
}

json &someNode(json &document, Random &random) {
  if (!document.is_structured() || document.empty()) return document;
  json &parent = someParent(document, random);
  return childOf(parent, random.below(parent.size()));
}

json ofAnyType(Random &random) {
  switch (random.below(9)) {
    case 0: return nullptr;
    case 1: return random.oneIn(2);
    case 2: return json::array();
    case 3: return json::object();
    case 4: return hostileName(random);
    case 5: return 0.5;
    case 6: return json::array({json::array()});
    case 7: return int64_t(random.next());
    default: return uint64_t(random.next());
  }
}

/// As a number of the same type where the text is one; numbers that JSON cannot hold become text.
json hostileNumberValue(Random &random) {
  const std::string text = hostileNumber(random);
  json value = json::parse(text, nullptr, false);
  return value.is_discarded() ? json(text) : value;
}

json changedScalar(const json &value, Random &random, const std::vector<std::string> &words) {
  if (value.is_boolean()) return random.oneIn(4) ? ofAnyType(random) : json(!value.get<bool>());
  if (value.is_number_integer() &&
      random.oneIn(2)) {  // a near one: an index of another element, an extent that almost fits
    const int64_t number =
        value.is_number_unsigned() ? int64_t(value.get<uint64_t>()) : value.get<int64_t>();
    const int64_t step = int64_t(1 + random.below(4));
    switch (random.below(4)) {
      case 0: return int64_t(uint64_t(number) + uint64_t(step));
      case 1: return int64_t(uint64_t(number) - uint64_t(step));
      case 2: return int64_t(uint64_t(number) * uint64_t(1 + step));
      default: return number / (1 + step);
    }
  }
  if (value.is_number()) return hostileNumberValue(random);
  if (value.is_string() && !words.empty() && random.oneIn(2)) return random.pick(words);
  if (value.is_string() && random.oneIn(2)) {
    std::string text = value.get<std::string>();
    mutateText(text, random, {}, words);
    return text;
  }
  return value.is_string() ? json(hostileName(random)) : ofAnyType(random);
}

void changeChildren(json &parent, Random &random, const std::vector<std::string> &words) {
  const size_t index = random.below(parent.size()), other = random.below(parent.size());
  if (parent.is_array()) {
    const json copy = parent[index];
    switch (random.below(4)) {
      case 0: parent.erase(index); return;
      case 1: parent.insert(parent.begin() + ptrdiff_t(other), copy); return;
      case 2: parent[other] = copy; return;
      default: std::swap(parent[index], parent[other]); return;
    }
  }
  const std::string name = std::next(parent.begin(), ptrdiff_t(index)).key();
  switch (random.below(5)) {
    case 0: parent.erase(name); return;
    case 1: parent[words.empty() ? hostileName(random) : random.pick(words)] = parent[name]; return;
    case 2: parent[hostileName(random)] = ofAnyType(random); return;
    case 3: std::swap(childOf(parent, index), childOf(parent, other)); return;
    default: {
      json value = std::move(parent[name]);
      parent.erase(name);
      parent[hostileName(random)] = std::move(value);
    }
  }
}

}  // namespace

void mutateJson(json &document, Random &random, const std::vector<std::string> &words) {
  if (!document.is_structured() || document.empty()) {
    document = ofAnyType(random);
    return;
  }
  switch (random.below(8)) {
    case 0:
    case 1: return changeChildren(someParent(document, random), random, words);
    case 2: {  // a node in place of another of its type
      const json from = someNode(document, random);
      for (int attempt = 0; attempt < 20; ++attempt)
        if (json &to = someNode(document, random); to.type() == from.type()) {
          to = from;
          return;
        }
      return;
    }
    case 3: someNode(document, random) = ofAnyType(random); return;
    default: {
      json &node = someNode(document, random);
      if (node.is_structured() && !node.empty()) return changeChildren(node, random, words);
      node = changedScalar(node, random, words);
    }
  }
}

std::string nestedDeeply(const json &document, Random &random, size_t depth) {
  json copy = document;
  const std::string mark = "@nested@";
  someNode(copy, random) = mark;
  std::string text = textOf(copy);
  const bool isArray = random.oneIn(2);
  std::string nested;
  for (size_t level = 0; level < depth; ++level) nested += isArray ? "[" : "{\"a\":";
  nested += "0";
  nested += std::string(random.oneIn(4) ? 0 : depth, isArray ? ']' : '}');
  const size_t at = text.find("\"" + mark + "\"");
  return at == std::string::npos ? nested : text.replace(at, mark.size() + 2, nested);
}

std::string textOf(const json &document) {
  // nlohmann writes no string that is no UTF-8; such strings are rare, so that the document is
  // walked only for those.
  try {
    return document.dump(1);
  } catch (const json::type_error &) {}
  if (document.is_string()) return "\"" + document.get<std::string>() + "\"";
  if (!document.is_structured()) return document.dump();
  std::string text = document.is_array() ? "[" : "{";
  for (const auto &[name, value] : document.items()) {
    if (text.size() > 1) text += ",\n";
    if (document.is_object()) text += textOf(json(name)) + ": ";
    text += textOf(value);
  }
  return text + (document.is_array() ? "]" : "}");
}

}  // namespace weft::fuzz
