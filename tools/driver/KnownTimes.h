// The time of the best plan of every variant without pins, cached across runs: a selection with
// pins then searches only the variants that may still win.
//
// Invariant: cached times were found by this program for the same graphs, choices and prices, so
// they lead to the decision that a new search would make. The file is hashed as a whole, so a
// damaged one is a miss (runtime/build/Cache.h).
#pragma once

#include "runtime/system/Sha256.h"

#include <map>
#include <optional>
#include <string>

namespace weft::driver {

class KnownTimes {
public:
  /// `prices`: equal for equal prices.
  explicit KnownTimes(const std::string &prices) { key.updateField(prices); }
  /// More of what the times depend on; before find() and store().
  void add(const std::string &text) { key.updateField(text); }

  /// Seconds by variant. Nothing where they are not known, or where the file is damaged.
  std::optional<std::map<std::string, double>> find();
  /// A folder that cannot be written is no error: the times are found again.
  void store(const std::map<std::string, double> &times);

private:
  /// Of what is remembered.
  const std::string &name();

  runtime::Sha256 key;
  std::string finished;  ///< key, after its first use
};

}  // namespace weft::driver
