// Every field of every schedule through the attribute `config` of graph.mlir; the other formats:
// tests/unit/kernel/schedule_test.cpp.
#include "kernel/Error.h"
#include "kernel/Family.h"
#include "passes/ConfigurationAttributes.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleKernels.h"
#include "tests/unit/samples/SampleSchedules.h"

#include "mlir/IR/Builders.h"

#include <catch2/catch.hpp>

using namespace weft;
using weft::test::nonEmpty;

TEST_CASE("every value of every field comes back from graph.mlir") {
  mlir::MLIRContext context;
  const Kernel kernel = samples::identityKernel({{'h', 4}, {'b', 2}, {'j', 8}}, "hbj");
  int schedules = 0;
  samples::forEachSchedule(
      [&](const Family &family, const ScheduleField &field, const Knobs &knobs) {
        INFO(family.name << " " << field.name << " " << field.get(knobs));
        const auto config = knobsAttribute(&context, kernel, knobs);
        CHECK(config.contains(snakeCase(field.name)) ==
              (!field.isOptional || field.get(knobs) != field.get(family.defaults())));
        CHECK(knobsFromAttribute(kernel, config) == knobs);
        ++schedules;
      });
  CHECK(schedules > 100);
}

TEST_CASE("a message about an unknown choice in graph.mlir lists every choice") {
  mlir::MLIRContext context;
  const Kernel kernel = samples::identityKernel({{'h', 4}, {'b', 2}, {'j', 8}}, "hbj");
  for (const Family *family : nonEmpty(families()))
    for (const ScheduleField &field : family->schedule) {  // may be empty: a view has no fields
      if (field.kind != ScheduleField::Kind::choice) continue;
      mlir::NamedAttrList wrong(knobsAttribute(&context, kernel, family->defaults()));
      wrong.set(snakeCase(field.name), mlir::StringAttr::get(&context, "nonsense"));
      std::string message;
      try {
        knobsFromAttribute(kernel, wrong.getDictionary(&context));
      } catch (const Error &error) {
        message = error.what();
      }
      for (const std::string_view choice : nonEmpty(field.choices))
        CHECK_THAT(message, Catch::Contains(std::string(choice)));
    }
}
