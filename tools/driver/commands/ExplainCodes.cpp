// weft explain CODE: what a reason code means, an example, and what to do; weft explain codes: all
// of them.
#include "kernel/Error.h"
#include "kernel/ReasonCodes.h"
#include "tools/driver/Console.h"
#include "tools/driver/commands/Explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <iterator>

namespace weft::driver {
namespace {

using nlohmann::json;
constexpr const char *allCodes = "codes";

std::string upperCase(const std::string &text) {
  std::string upper;
  std::ranges::transform(text, std::back_inserter(upper),
                         [](unsigned char letter) { return char(std::toupper(letter)); });
  return upper;
}

bool hasFormOfCode(const std::string &name) {
  const auto isDigit = [](unsigned char letter) { return std::isdigit(letter) != 0; };
  return name.size() == 4 && std::isalpha(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin() + 1, name.end(), isDigit);
}

json toJson(const ReasonCode &code) {
  return {{"code", code.code},
          {"reason", code.reason},
          {"meaning", code.meaning},
          {"example", code.example},
          {"remedy", code.remedy}};
}

/// Of the same letter the nearest number; of a letter that no code has, of all codes.
std::string nearestCode(const std::string &name) {
  const auto distance = [&](const ReasonCode &code) {
    const int letters = code.code[0] == name[0] ? 0 : 1;
    return std::pair(
        letters, std::abs(std::stoi(std::string(code.code.substr(1))) - std::stoi(name.substr(1))));
  };
  return std::string(std::ranges::min_element(reasonCodes, {}, distance)->code);
}

std::string entry(const ReasonCode &code) {
  return fmt::format("{} {}: {}\n  example   {}\n  remedy    {}\n", code.code, code.reason,
                     code.meaning, code.example, code.remedy);
}

}  // namespace

bool meansCodes(const std::string &name) {
  return (name == allCodes || hasFormOfCode(name)) && !std::filesystem::exists(name);
}

Explanation explainCodes(const std::string &name) {
  Explanation all{.text = "", .json = {{"codes", json::array()}}};
  for (const ReasonCode &code : reasonCodes) {
    if (upperCase(name) == code.code) return {.text = entry(code), .json = toJson(code)};
    all.text += fmt::format("{} {}: {}\n", code.code, code.reason, code.meaning);
    all.json["codes"].push_back(toJson(code));
  }
  if (name == allCodes)
    return {.text = all.text + "weft explain CODE adds an example and the remedy\n",
            .json = std::move(all.json)};
  throw Error::badInput("no reason code '{}'; nearest is {} (weft explain codes lists all)", name,
                        nearestCode(upperCase(name)));
}

}  // namespace weft::driver
