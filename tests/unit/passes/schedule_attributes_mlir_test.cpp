// Every field of every schedule through the attribute `config` of graph.mlir; the other formats:
// tests/unit/kernel/schedule_test.cpp.
#include "kernel/Error.h"
#include "kernel/Family.h"
#include "passes/ConfigurationAttributes.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleKernels.h"

#include "mlir/IR/Builders.h"

#include <catch2/catch.hpp>

using namespace weft;
using weft::test::nonEmpty;

TEST_CASE("every value of every field comes back from graph.mlir, and messages list choices") {
  mlir::MLIRContext context;
  const Kernel kernel = samples::identityKernel({{'h', 4}, {'b', 2}, {'j', 8}}, "hbj");
  int fields = 0;
  for (const Family *family : nonEmpty(families())) {
    const Knobs usual = family->defaults();
    for (const ScheduleField &field : family->schedule) {  // may be empty: a view has no fields
      std::vector<int> values = {field.get(usual)};
      using Kind = ScheduleField::Kind;
      if (field.kind == Kind::axis) values.insert(values.end(), {-1, 0, 1, 2});
      if (field.kind == Kind::integer) values.insert(values.end(), {int(field.least), 77});
      for (size_t choice = 0; choice < field.choices.size(); ++choice)
        values.push_back(int(choice));
      for (const int value : nonEmpty(values)) {
        INFO(field.name << " " << value);
        Knobs knobs = usual;
        field.set(knobs, value);
        const auto config = knobsAttribute(&context, kernel, knobs);
        CHECK(config.contains(snakeCase(field.name)) ==
              (!field.isOptional || value != field.get(usual)));
        CHECK(knobsFromAttribute(kernel, config) == knobs);
      }
      ++fields;
      if (field.kind != Kind::choice) continue;
      mlir::NamedAttrList wrong(knobsAttribute(&context, kernel, usual));
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
  CHECK(fields > 30);
}
