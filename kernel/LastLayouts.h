// What follows from a kernel and its layouts, kept for the layouts that were asked for last: all
// schedules under one combination of layouts are priced one after another (kernel/RecentAnswers.h).
#pragma once

#include "kernel/Configuration.h"
#include "kernel/RecentAnswers.h"

#include <optional>
#include <vector>

namespace weft {

/// One object is of one thread. `Asked`: as of RecentAnswers.
template <typename Answer, typename... Asked>
class LastLayouts {
public:
  /// The answer that is kept, else `find()`, which is kept unless it throws. `find` may not ask
  /// this object.
  template <typename Find>
  const Answer &of(Find &&find, const Kernel &kernel, const Configuration &configuration,
                   const Asked &...asked) {
    Last &last = recent.of([] { return Last(); }, kernel, asked...);
    if (!last.answer || last.inputs != configuration.inputs ||
        last.outputs != configuration.outputs) {
      last.answer.reset();
      last.inputs = configuration.inputs, last.outputs = configuration.outputs;
      last.answer.emplace(find());
    }
    return *last.answer;
  }

private:
  struct Last {
    std::vector<Layout> inputs = {}, outputs = {};
    std::optional<Answer> answer = {};
  };
  RecentAnswers<Last, Asked...> recent;
};

}  // namespace weft
