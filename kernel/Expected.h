// A result, or the error that says why there is none: for functions whose failure is no error of
// the command, such as a plan that cannot run in a given number of chunks. Errors that end a
// command are thrown (kernel/Error.h). `Expected<T, Reason>` is of functions that are asked about
// many kernels and configurations and reject most of them: why is then data, and no error.
#pragma once
#ifndef WEFT_KERNEL_EXPECTED_H  // beside a precompiled header of a compiler cache
#define WEFT_KERNEL_EXPECTED_H

#include "kernel/Error.h"

#include <string>
#include <utility>

namespace weft {

/// Why something is not supported: names the op, axis, tensor or operand, and the limit.
struct Reason {
  std::string text;
  bool operator==(const Reason &) const = default;
};

}  // namespace weft

#if __has_include(<expected>) && __cplusplus > 202002L
#include <expected>
namespace weft {
template <typename T, typename E = Error>
using Expected = std::expected<T, E>;
using Unexpected = std::unexpected<Error>;
using Rejected = std::unexpected<Reason>;
}  // namespace weft
#else
#include <tl/expected.hpp>
namespace weft {
template <typename T, typename E = Error>
using Expected = tl::expected<T, E>;
using Unexpected = tl::unexpected<Error>;
using Rejected = tl::unexpected<Reason>;
}  // namespace weft
#endif

namespace weft {

/// What a function returns that has no result for this reason.
inline Rejected rejected(std::string text) { return Rejected(Reason{std::move(text)}); }

/// Why there is no result; empty if there is one.
template <typename T>
std::string reasonOf(const Expected<T, Reason> &result) {
  return result ? "" : result.error().text;
}

/// The result; throws the error if there is none.
template <typename T>
T valueOrThrow(Expected<T> result) {
  if (!result) throw std::move(result.error());
  return std::move(*result);
}

}  // namespace weft

#endif  // WEFT_KERNEL_EXPECTED_H
