// A result, or the error that says why there is none: for functions whose failure is no error of
// the command, such as a plan that cannot run in a given number of chunks. Errors that end a
// command are thrown (kernel/Error.h).
#pragma once

#include "kernel/Error.h"

#if __has_include(<expected>) && __cplusplus > 202002L
#include <expected>
namespace weft {
template <typename T>
using Expected = std::expected<T, Error>;
using Unexpected = std::unexpected<Error>;
}  // namespace weft
#else
#include <tl/expected.hpp>
namespace weft {
template <typename T>
using Expected = tl::expected<T, Error>;
using Unexpected = tl::unexpected<Error>;
}  // namespace weft
#endif

namespace weft {

/// The result; throws the error if there is none.
template <typename T>
T valueOrThrow(Expected<T> result) {
  if (!result) throw std::move(result.error());
  return std::move(*result);
}

}  // namespace weft
