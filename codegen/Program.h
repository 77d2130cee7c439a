// A kernel program: everything a CUDA kernel does, as plain data. Lowering (one .cpp a family)
// decides all of it; printing (PrintCuda.cpp, and print() below for people) decides nothing.
// Expressions are C expressions over names declared before, and say which (codegen/Code.h).
#pragma once

#include "codegen/Code.h"
#include "codegen/ConstantValue.h"
#include "codegen/Emit.h"

#include <string>
#include <utility>
#include <vector>

namespace weft::codegen {

struct Statement;
using Block = std::vector<Statement>;

/// How a thread touches the elements of one vector in memory.
enum class Access : uint8_t {
  packed,   ///< neighbouring elements in whole accesses of up to 16 bytes
  part,     ///< the same where `count` is at least the width, else element by element
  strided,  ///< element by element, `stride` apart, at most `count` of them
  single,   ///< one element
};

/// How the partial results of the threads of one row are joined.
enum class Across : uint8_t { warp, block, blockTree, blockLinear };
/// "warp", "block", "tree", "linear": as the device functions of reduce.cuh begin.
std::string_view nameOf(Across across);
enum class Reduction : uint8_t { sum, maximum };

struct Statement {
  enum class Kind : uint8_t {
    comment,   ///< note
    space,     ///< an empty line between phases
    declare,   ///< type name = value;  (no value: left uninitialized)
    assign,    ///< name = value;
    evaluate,  ///< value;  (a call for its effect)
    loop,      ///< for name in [0, value): body
    guard,     ///< if (value) body
    leave,     ///< if (value) return
    shared,    ///< shared memory: type name
    alias,     ///< name for the type `value`
    function,  ///< name, a function of the parameters `type` that sees the statements before it
    barrier,
    load,   ///< name = the vector or element at pointer, in compute type; raw keeps the stored type
    store,  ///< the vector or element `value` to pointer
    launchCheck,  ///< what plan.json launches holds for the constants: all of terms;
                  ///< note (kernel/LaunchCheck.h)
    reduce,       ///< name = value joined across the threads of a row
  };
  Kind kind = Kind::comment;
  Code type{}, name{}, value{};
  std::string note{};         ///< trailing comment, without slashes
  bool isConstant = false;    ///< declare: const; pruneUnused drops it where nothing reads it
  std::vector<Code> terms{};  ///< launchCheck
  Block body{};
  int unroll = 0;  ///< loop: copies of the body; 0: all
  Code pointer{};  ///< load, store
  Access access = Access::single;
  Code width{};            ///< load, store: elements of the vector
  Code stride{}, count{};  ///< strided; an empty count means all
  Code condition{};        ///< load of one element: zero where it does not hold
  bool raw = false;        ///< load: keep the stored type (unpacked where it is used)
  bool inOrder = false;    ///< raw load: stays in program order with others of its kind
  bool declares = true;    ///< load, reduce: declare the name, or assign to it
  Reduction reduction = Reduction::sum;
  Across across = Across::warp;
  Code threads{};  ///< reduce: threads a row
  Code scratch{};  ///< reduce across a block: shared memory
  bool operator==(const Statement &) const = default;
};

Statement comment(std::string note);
Statement space();
Statement declare(Code type, Code name, Code value = {}, std::string note = "");
Statement declareConstant(Code type, Code name, Code value, std::string note = "");
/// The type of a declaration as C++ has it: "const int".
std::string typeText(const Statement &declaration);
Statement assign(Code name, Code value, std::string note = "");
Statement evaluate(Code value);
Statement loop(Code variable, Code bound, int unroll, Block body);
Statement guard(Code condition, Block body);
Statement leave(Code condition);
/// Keeps no constant alive: pruneUnused drops the terms whose constants are gone.
Statement launchCheckOf(std::vector<Code> terms, std::string what);
/// The terms of a launch check as one condition.
std::string checkText(const Statement &launchCheck);

/// An expression without the parentheses that it needs only as an operand.
Code asArgument(const Code &text);
/// An expression in parentheses if it is more than one name or call and has none yet.
Code asOperand(const Code &text);

/// What the constants of a line are: launch checks say it in their messages
/// (codegen/ConstantChecks.h).
struct ConstantSubject {
  enum class Kind : uint8_t {
    knobs,
    extents,
    strides,
    map,     ///< the dimensions of a tensor map
    places,  ///< of factors
    subVectors,
    rotaryPairs,
    unchecked,  ///< members on which no launch depends
  };
  Kind kind = Kind::knobs;
  std::string of{};  ///< strides, map, places: the tensor
  bool operator==(const ConstantSubject &) const = default;
};
/// "these knobs", "strides of x"; empty where it is unchecked.
std::string textOf(const ConstantSubject &subject);

/// One line of named constants of one type: "constexpr int b = 8, j = 512;  // extents".
struct ConstantLine {
  std::string type;
  std::vector<std::pair<std::string, ConstantValue>> entries;
  std::string note;
  ConstantSubject subject{};
  bool operator==(const ConstantLine &) const = default;
};

struct Program {
  std::string entry{};
  std::vector<std::string> headers{};  ///< device headers, sorted
  std::vector<ConstantLine> constants{};
  std::vector<Statement> globals{};  ///< device memory that a module keeps from launch to launch,
                                     ///< zero at load: type, name, note; with a value, a constant
  std::vector<Parameter> parameters{};
  Code launchBounds{};   ///< threads a block
  Code clusterBlocks{};  ///< blocks a cluster; empty: no clusters
  Block body{};
  Launch launch{};
  /// Whether pointers are __restrict__. Not of a text that starts early: what no pointer of the
  /// kernel writes is then constant to the compiler, which reads it (LDG.CONSTANT) before the text
  /// waits for the kernel that writes it.
  bool hasRestrict = true;
  bool skipsMaskedTiles = false;  ///< of a result that no element of a block mask has
  std::string mapping{};          ///< for people: how work is spread
};

/// Adds the tables of the kernel's block masks, which expressions name (kernel/BlockMask.h), as
/// constants in device memory.
void addBlockTables(const Kernel &kernel, Program &program);
/// Drops constants and declarations that nothing uses.
void pruneUnused(Program &program);
/// The program as separate text, for --stop-after lower.
std::string print(const Program &program);
/// The program as CUDA C++.
std::string printCuda(const Program &program);

}  // namespace weft::codegen
