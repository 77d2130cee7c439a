// What tests of profiling share, with a GPU and without: a problem to profile, and a store to keep
// its rows.
#pragma once

#include "runtime/measure/ProfileStore.h"
#include "tests/support/TemporaryTestFolder.h"
#include "tests/unit/samples/SampleProblems.h"

namespace weft::samples {

/// Three ops, one after another, alone or as one kernel.
inline select::Problem profiledChain(int64_t j, int64_t i) {
  ProblemBuilder builder({{'j', j}, {'i', i}});
  const int x = builder.argument("x"), z = builder.argument("z");
  const int a = builder.op("a", {x}), b = builder.op("b", {a, z});
  builder.result(builder.op("c", {b}));
  builder.everyOpAlone();
  builder.candidate({0, 1, 2});
  return builder.problem;
}

/// Gone with its folder.
struct TestStore {
  test::TemporaryTestFolder folder;
  runtime::ProfileStore store{folder.path() / "a.db", runtime::ProfileStore::Mode::create, "h200"};
};

}  // namespace weft::samples
