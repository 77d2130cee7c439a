// Model descriptions to graphs: presets and Hugging Face config.json. Op-preserving: decides
// nothing.
#pragma once

#include "kernel/DType.h"
#include "models/Part.h"
#include "models/ScoreForm.h"
#include "models/ScoreMask.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace weft::models {

struct Request {
  std::string model;                         ///< preset name, or path of a config.json or .mlir
  std::map<std::string, int64_t> dims = {};  ///< --dim overrides: b, j, k, h, g, p, w, i, u
  std::optional<DType> dtype = {};  ///< nothing: what a config.json names, else the first that the
                                    ///< model supports (Support.h)
  std::string text = {};            ///< of a .mlir model: what to read instead of the whole file
  Part part = Part::layer;
  std::optional<int64_t> layers = {};  ///< how many, in sequence; nothing: one of
                                       ///< Part::layer, all of Part::model
  bool allLayers = false;              ///< as many as the model has
  std::set<std::string> allowedKeys =
      {};  ///< of a config.json: may stand there though nobody knows what they mean
  std::optional<double> dropout =
      {};                 ///< probability of every dropout, instead of the model's own; 0: none
  ScoreMask mask = {};    ///< of self attention, beside the model's own
  ScoreForm score = {};   ///< of those that supportedScoreForms says have it
  bool training = false;  ///< a whole model with logits ends in their loss
  /// Keys and values of so many positions a sequence lie in caches; nothing: those of the tokens.
  std::optional<int64_t> cache = {};
  /// The caches lie in pages of so many positions; nothing: in one piece. Only with `cache`.
  std::optional<int64_t> page = {};
  /// Of the residual stream: f32, or the elements' type. Nothing: that.
  std::optional<DType> residual = {};
  bool ragged = false;  ///< keys from lengths[b] on are hidden, an argument, in whole layers, too
};

struct Description {
  std::string name;                     ///< "paper-encoder"
  std::map<std::string, int64_t> dims;  ///< every dimension after overrides
  std::vector<std::string> ignoredKeys =
      {};  ///< config.json keys that do not change the mathematics
  std::vector<std::string> dropoutKeys = {};  ///< of a config.json: of dropout, built in training
  std::vector<std::string> allowedKeys =
      {};  ///< of a config.json: not known, left out because the request allows it
  std::vector<std::string> assumed =
      {};  ///< of a config.json: "KEY = VALUE" that the family takes for a missing key
  std::vector<std::string> notes = {};  ///< of a config.json: which of its layers was built
  std::optional<DType> dtype =
      {};                        ///< of the elements; nothing for a .mlir file, which has its own
  int64_t layers = 1;            ///< built in sequence, of one kind
  std::string weightNames = {};  ///< of checkpoints (WeightNames.h); empty: not known
  bool isWhole = false;          ///< with what the model has around its layers
  /// What of the model was built: of the core of attention, and of a model that has no layers
  /// apart, that whatever was asked. Nothing for a .mlir file.
  std::optional<Part> part = {};
  bool isTrained = true;         ///< the family has a derivative (Support.h); of a file nobody asks
  std::string dtypeNote = {};    ///< of a config.json: what it asks for, and what it gets
  std::string dropoutNote = {};  ///< of a config.json: what became of its dropout
};

struct Model {
  Description description;
  mlir::OwningOpRef<mlir::ModuleOp> module;  ///< one weft.graph
};

struct Preset {
  std::string name, summary;
  std::map<std::string, int64_t> dims;
};
const std::vector<Preset> &presets();

/// Throws weft::Error: badInput for unknown presets (with the nearest), malformed or contradictory
/// files and dims (with location and limit), unsupported for understood features that are not
/// supported.
Model build(const Request &request, mlir::MLIRContext &context);

}  // namespace weft::models
