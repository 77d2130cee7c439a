// The estimates of a loop space as sums (passes/configure/OperandSums.h).
#pragma once

#include "codegen/families/loop/LoopCost.h"
#include "passes/configure/Family.h"
#include "passes/configure/OperandSums.h"

#include <memory>
#include <vector>

namespace weft {

/// For one loop space: the seconds of every knob and operand layout, so that combinations are sums.
class LoopTable final : public OperandSums {
  struct Term {
    double seconds;
    bool isVector;
  };
  struct Row {
    int knobs;
    int width;
    double share, issueSeconds, launchSeconds, margin;
    std::vector<std::vector<Term>> terms = {};  ///< operand, layout
    std::vector<double> cheapest = {};          ///< operand
    double total(double operandSeconds) const {
      return loopSeconds(launchSeconds, operandSeconds / share, issueSeconds) * (1 + margin);
    }
  };

public:
  /// `margin`: of the estimates (CostModel::separableMargin).
  LoopTable(const Kernel &kernel, const Device &device, double margin,
            const ConfigurationSpace &space, const std::vector<std::vector<Layout>> &layouts);

  size_t knobsCount() const override { return rows.size(); }
  int knobsOf(size_t row) const override { return rows[row].knobs; }
  double seconds(size_t row, const std::vector<int> &choice) const override;
  double seconds(size_t row, const std::vector<int> &choice, size_t known,
                 std::span<Partial> partial) const override;
  double best(size_t row, int fixed, int choice) const override;

private:
  std::vector<Row> rows;
};

/// Family::operandSums.
std::unique_ptr<OperandSums> loopSums(const Kernel &kernel, const Device &device, double margin,
                                      const ConfigurationSpace &space,
                                      const std::vector<std::vector<Layout>> &layouts);

}  // namespace weft
