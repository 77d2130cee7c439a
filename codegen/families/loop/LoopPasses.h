// The schedule of a loop kernel: its graph cut into passes over the row, one for each level of
// reductions.
//
//   pass 0    loads, computes, stores what is ready, accumulates the reductions of level 1
//   pass p    the same with those results; values of earlier passes are kept in registers if the
//             row fits there, else loaded and computed again
#pragma once

#include "codegen/families/loop/LoopMemory.h"

namespace weft::codegen {

class LoopPasses {
public:
  LoopPasses(LoopGraph &graph, LoopSpace &space, LoopMemory &memory, Names &names,
             std::vector<Operand> inputs, std::vector<Operand> outputs);
  Block run();
  bool keepsRow() const { return inRegisters; }
  /// Whether two blocks do not fit the registers of a multiprocessor, and ptxas, which aims at two,
  /// would spill: sums over packed tokens keep addresses of the loads that are left out, too.
  bool fillsRegisters() const;
  std::vector<Statement> globals() const { return gridPartials; }

private:
  /// Where code stands: the row-level code before a pass, or the pass itself.
  struct Section {
    int depth;
    bool step;
    bool operator==(const Section &) const = default;
  };

  // What to compute where.
  void placeNodes();
  void chooseKept();
  void chooseDraws(double floats);
  void chooseBatch();
  void nameNodes();
  bool crosses(int node) const;
  /// Nodes that say where an output element goes.
  static std::vector<int> placeNodesOf(const OutputStore &store);
  bool storeIsStep(const OutputStore &store) const;
  std::vector<int> reductionsOf(int depth) const;
  std::set<int> neededIn(int depth) const;

  // In which order.
  void hoistLoads(Block &block);
  void rowSection(int depth, Block &block);
  void pass(int depth, Block &block);
  Block wrapInLoop(Block body);
  Block validOfStep() const;
  Block wrapInSteps(Block body, const Code &inside, const Code &bound);
  Statement hoistedLoad(int index, const Code &slot, const Code &slots, Block &declarations);
  Block batchLoads();
  Block wrapInBatches(const Block &loads, Block body);

  // Tokens behind the last one.
  Statement loadOfTokens();
  Block unusedRows();
  Block unusedSteps();
  /// Whether steps end with the last one that has a token of any thread; else each step asks.
  bool endsSteps() const;
  int unrolledSteps() const;
  /// What holds in steps inside the row, and in those of them that are computed; empty: in all.
  Code insideStep() const;
  Code computedStep() const;

  // Statements, in LoopStatements.cpp.
  void emit(const std::set<int> &nodes, const std::vector<int> &reductions, Block &block);
  void emitOutsideElements(int index, Block &block);
  void emitInElements(int index, Block &outside, Block &inside);
  void emitStores(int depth, bool step, Block &block);
  void declareAccumulators(const std::vector<int> &reductions, Block &block);
  void finishReductions(const std::vector<int> &reductions, Block &block);
  void finishColumns(const std::vector<int> &reductions, Block &block);
  void finishGrid(const std::vector<int> &reductions, Block &block);
  void declareScratch(Block &block) const;
  Statement accumulation(int index) const;
  Statement loadOf(int index);
  Statement storeOf(const OutputStore &store);
  Statement zeroStoreOf(const OutputStore &store);

  // Spelling.
  Code baseReference(int node) const;
  Code reference(int node) const;
  Code expression(const Node &node) const;
  Code typeOf(int node) const;

  LoopGraph &graph;
  LoopSpace &space;
  LoopMemory &memory;
  Names &names;
  std::vector<Operand> inputs, outputs;
  std::vector<std::vector<Section>> users;
  std::vector<bool> reachable;
  std::vector<Code> nodeNames;
  std::map<int, Code> rowNames;  ///< of hoisted loads
  std::map<int, Code>
      packedRows;             ///< hoisted loads that keep the stored type: the element of this step
  std::vector<bool> inVec;    ///< the name is a vector, indexed by element
  std::vector<bool> kept;     ///< in registers from one pass to the next
  std::vector<bool> hoisted;  ///< loaded or drawn before the first pass
  std::set<int> done;         ///< computed and still in scope
  bool scoped = false;        ///< each pass has a separate scope
  Code keyPointer, seedName;
  Code tokenSteps;          ///< where endsSteps(): how many there are
  bool drawsAhead = false;  ///< some draws are hoisted, and so is the key
  double rowFloats = 0;     ///< that a thread keeps between passes, in registers
  bool inRegisters = true, stepDeclared = false;
  int lastDepth = 0, scratchRows = 0;
  int64_t batch = 1;  ///< gridColumns: steps whose loads are in flight together
  std::vector<Statement> gridPartials;
  Code scratchName;
  std::vector<std::pair<Code, size_t>> columnScratch;  ///< names, with the number of accumulators
};

}  // namespace weft::codegen
