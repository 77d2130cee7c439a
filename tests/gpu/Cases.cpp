// All cases that families register, in the order in which they run.
#include "tests/gpu/Collector.h"

#include <algorithm>
#include <future>
#include <iterator>
#include <map>
#include <random>
#include <regex>
#include <stdexcept>
#include <utility>
#include <vector>

namespace weft::gputest {
namespace {

std::map<std::string, AddCases> &registrations() {
  static std::map<std::string, AddCases> registrations;
  return registrations;
}

}  // namespace

CaseRegistration::CaseRegistration(const std::string &name, AddCases add) {
  if (!registrations().emplace(name, add).second)
    throw std::logic_error("cases are registered twice as '" + name + "'");
}

std::vector<Case> allCases(const std::string &source) {
  const std::regex pattern(source);
  std::vector<std::future<std::vector<Case>>> drawn;
  for (const auto &[name, add] : registrations()) {
    if (!std::regex_search(name, pattern)) continue;
    drawn.push_back(std::async(std::launch::async, [add = add] {
      std::vector<Case> cases;
      Collector collect(cases);
      add(collect);
      return cases;
    }));
  }
  std::vector<Case> cases;
  for (std::future<std::vector<Case>> &part : drawn)
    std::ranges::move(part.get(), std::back_inserter(cases));
  std::mt19937_64 dice(23);
  for (size_t n = cases.size(); n > 1; --n) std::swap(cases[n - 1], cases[dice() % n]);
  return cases;
}

}  // namespace weft::gputest
