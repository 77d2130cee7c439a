// Small graphs for tests of passes: presets of small extents, graphs from text, and the oracle that
// two graphs compute the same.
#pragma once

#include "ir/Weft.h"
#include "ir/interpreter/Interpreter.h"
#include "models/Models.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <catch2/catch.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace weft::test {

using Dims = std::map<std::string, int64_t>;

inline const Dims smallEncoder{{"b", 2}, {"j", 8}, {"h", 2}, {"p", 4}, {"i", 8}, {"u", 12}};

inline const Dims smallLlama{{"b", 1}, {"j", 6},  {"h", 4}, {"g", 2},
                             {"p", 4}, {"i", 16}, {"u", 12}};

struct Loaded {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  GraphOp graph() { return *mlir::ModuleOp(*module).getOps<GraphOp>().begin(); }
};

inline std::unique_ptr<Loaded> preset(const std::string &name, const Dims &dims) {
  auto loaded = std::make_unique<Loaded>();
  models::Request request;
  request.model = name;
  request.dims = dims;
  request.dtype = DType::f32;
  loaded->module = models::build(request, loaded->context).module;
  return loaded;
}

inline std::unique_ptr<Loaded> parse(const std::string &text) {
  auto loaded = std::make_unique<Loaded>();
  loaded->context.loadDialect<WeftDialect>();
  loaded->module = mlir::parseSourceString<mlir::ModuleOp>(text, &loaded->context);
  REQUIRE(loaded->module);
  return loaded;
}

inline GraphOp graphOf(mlir::ModuleOp module) { return *module.getOps<GraphOp>().begin(); }

/// Both graphs on the same random arguments, in f64. NaN never passes.
inline void requireSame(GraphOp a, GraphOp b, uint64_t seed = 7) {
  REQUIRE(mlir::succeeded(mlir::verify(b)));
  const std::vector<TensorValue> arguments = randomArguments(a, seed);
  const auto left = interpret(a, arguments, {}), right = interpret(b, arguments, {});
  REQUIRE(mlir::succeeded(left));
  REQUIRE(mlir::succeeded(right));
  REQUIRE(left->size() == right->size());
  REQUIRE(!left->empty());
  for (size_t index = 0; index < left->size(); ++index) {
    REQUIRE_FALSE((*left)[index].elements.empty());
    CHECK(distance((*right)[index], (*left)[index], 1e-9, 1e-9) <= 1.0);
  }
}

/// Types that graphs from text open with.
inline const std::string types = R"(
!bji = tensor<2x3x8xf32, #weft.axes<b, j, i>>
!i = tensor<8xf32, #weft.axes<i>>
!j = tensor<3xf32, #weft.axes<j>>
!bj = tensor<2x3xf32, #weft.axes<b, j>>
)";

}  // namespace weft::test
