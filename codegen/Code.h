// A piece of emitted C++ that knows which names of its program it reads.
//
// What code() composes of names and of other pieces knows them by construction. Text that was put
// together as a string is raw: its names are looked for when a statement takes it.
//
// Invariant: names() holds every name of the program that stands in str().
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace weft::codegen {

class Code {
public:
  using NameSet = std::set<std::string, std::less<>>;

  Code() = default;
  /// A literal. Its words count as names, which keeps more than needed, never less: it may name
  /// what the same function declares.
  Code(const char *literal);
  /// Raw text; its names are whatever words it has.
  Code(std::string raw);

  /// A name of the program.
  static Code name(std::string name);
  /// Text without names: a number, a type.
  static Code plain(std::string_view text);

  const std::string &str() const { return text; }
  operator const std::string &() const { return text; }
  const NameSet &names() const { return own; }
  bool isRaw() const { return raw; }
  bool empty() const { return text.empty(); }

  /// Takes over what the other reads.
  void addNames(const Code &other);
  Code &operator+=(const Code &more);
  /// By text.
  bool operator==(const Code &other) const { return text == other.text; }
  auto operator<=>(const Code &other) const { return text <=> other.text; }

  /// The same text with the names that are given.
  static Code composed(std::string text, const std::vector<const Code *> &parts);

private:
  std::string text;
  NameSet own;
  bool raw = false;
};

inline Code operator+(Code left, const Code &right) { return left += right; }

/// What code() puts in for an argument: pieces as they are, numbers and views as text without
/// names.
template <typename Argument>
concept PlainArgument = std::integral<std::remove_cvref_t<Argument>> ||
    std::floating_point<std::remove_cvref_t<Argument>> ||
    std::same_as<std::remove_cvref_t<Argument>, std::string_view> ||
    std::is_convertible_v<const Argument &, const char *>;

/// fmt::format of pieces. An argument that is a string is raw.
template <typename... Arguments>
Code code(fmt::format_string<const Arguments &...> format, const Arguments &...arguments) {
  std::vector<Code> raws;
  raws.reserve(sizeof...(Arguments));
  std::vector<const Code *> parts;
  const auto add = [&](const auto &argument) {
    using Argument = std::remove_cvref_t<decltype(argument)>;
    if constexpr (std::same_as<Argument, Code>) parts.push_back(&argument);
    else if constexpr (std::same_as<Argument, std::string>)
      parts.push_back(&raws.emplace_back(argument));
    else static_assert(PlainArgument<Argument>, "a piece of code, a number or a literal");
  };
  (add(arguments), ...);
  return Code::composed(fmt::format(format, arguments...), parts);
}

/// The pieces with a separator between them.
Code joined(const std::vector<Code> &pieces, std::string_view separator);

}  // namespace weft::codegen

template <>
struct fmt::formatter<weft::codegen::Code> : fmt::formatter<std::string_view> {
  template <typename Context>
  auto format(const weft::codegen::Code &code, Context &context) const {
    return fmt::formatter<std::string_view>::format(code.str(), context);
  }
};
