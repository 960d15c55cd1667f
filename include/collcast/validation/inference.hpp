// Measured servers, forecast: each row as requests in flight on its machine, and how far off that is.
//
// A row becomes the inputs of inference by its words alone. What no inference can be yet (an architecture that nobody
// described, a precision without a rate) and what a row does not state is the reason why it is not scored. What is
// taken where rows are silent is in validation/src/inference/inputs.cpp.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "collcast/evaluate/evaluate.hpp"
#include "collcast/report/inference_document.hpp"
#include "collcast/validation/inference_table.hpp"
#include "collcast/validation/scored_machines.hpp"
#include "collcast/validation/telling.hpp"
#include "collcast/workload/step.hpp"

namespace collcast {

/// Descriptions of models, by the names that rows have for them.
class ServedModels {
 public:
  /// Every description that `named` asks for, from models/NAME/config.json of the search path.
  static Result<ServedModels> load(const std::map<std::string, ServedModel>& named, const SearchPath&);
  struct Known {
    TransformerConfig config;
    std::string precision;  ///< of the checkpoint; empty: not known
  };
  const Known* find(const std::string& model) const;

 private:
  std::map<std::string, Known> known_;
};

/// A row on a machine of its GPUs: what gives both figures, or of a disaggregated one the workers that give tokens.
struct ServedRow {
  StepInputs inputs;                 ///< but for its machine
  std::vector<std::string> assumed;  ///< what the row does not state, and was taken
  bool first_token = true;           ///< inputs say TTFT too
};
/// Or every reason why it is none yet.
Result<ServedRow> served_row(const InferenceRow&, const ServedModels&, const std::vector<ServerSettings>& = {});

/// Puts into each row what is fitted to others alone, and into the report the remainders of backends
/// (validation/src/inference/calibrate.cpp).
void cross_validate(InferenceReport&);

/// Every row scored, or listed with the reason why not. The same bytes whatever the number of threads, unless
/// `goes_on`, which they all ask, ends it: rows that there was no time for are counted.
InferenceReport validate_inference(const InferenceTables&, const ServedModels&, const ScoredMachines&,
                                   const CollectivePolicy&, const Telling& tell = {}, const GoesOn& goes_on = {});

}  // namespace collcast
