#include "report/sent.hpp"

#include <fmt/format.h>

#include "collcast/base/units.hpp"

namespace collcast {

Table sent_table(const StepInputs& in, const StageTerms& stage) {
  Table out{"sent otherwise than as it is",
            {{"what", "", Align::left},
             {"as it is", "", Align::right},
             {"sent", "", Align::right},
             {"kernels for it", "", Align::right},
             {"of", "", Align::left}},
            {}};
  for (const SentOtherwise& one : sent_otherwise(in, stage.stage, stage.dispatched))
    out.rows.push_back(
        {one.what, format_bytes(one.as_is), format_bytes(one.sent), format_seconds(one.kernels), one.per});
  return out;
}

Json sent_json(const StepInputs& in, const StageTerms& stage) {
  Json out = Json::array();
  for (const SentOtherwise& one : sent_otherwise(in, stage.stage, stage.dispatched))
    out.push_back({{"what", one.what},
                   {"per", one.per},
                   {"as_is_bytes", one.as_is.value()},
                   {"sent_bytes", one.sent.value()},
                   {"kernels_s", one.kernels.count()}});
  return out;
}

}  // namespace collcast
