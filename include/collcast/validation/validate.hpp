// Measured against predicted. What predicts is passed in: a function of a placed table and a request, so that another
// library, or a calibrated machine, is scored by the same code.
#pragma once

#include <functional>
#include <string_view>

#include "collcast/evaluate/evaluate.hpp"
#include "collcast/report/validate_document.hpp"
#include "collcast/validation/machines.hpp"
#include "collcast/validation/telling.hpp"
#include "collcast/workload/step.hpp"

namespace collcast {

struct Predicted {
  Seconds time{};
  std::string algorithm;
};
/// Asked from several threads at once.
using Prediction = std::function<Result<Predicted>(const PlacedTable&, const CollectiveRequest&)>;

/// The textbook on the fabric, by closed form or simulation, with the algorithm that is fastest by closed form.
/// A prediction is one time: of `both` the simulation's. `engine` is how simulations are watched; a closed form that
/// `goes_on` ends fails.
Prediction ideal_prediction(Method, const EngineOptions& engine = {}, const GoesOn& goes_on = {});
/// NCCL as it runs, by closed form, with the variables that a table was measured with; those that are `given` go before
/// them. What is given must be readable.
Prediction nccl_prediction(std::vector<nccl::Setting> given = {}, nccl::Files = {});
/// Remembers answers by machine, variables and request. Fabrics must stay alive.
Prediction memoized(Prediction);

/// Which of a row's times is held against the prediction; rows without spread have the mean alone.
enum class Statistic { mean, median, least };
std::string_view to_string(Statistic);
/// Of a row of the table.
Seconds time_of(const MeasuredTable&, const MeasuredPoint&, Statistic);
/// That rows of the table have the mean alone where another was asked for; empty if none has.
std::string statistic_remark(const MeasuredTable&, Statistic);

/// Of tables that were scored against library nccl: where to look first in those that are far slower than their
/// forecast.
void find_faults(ValidateReport&, const std::vector<MeasuredTable>&, Machines&);

/// Every table, each with an id of its own (`name_apart`), scored, or listed with the reason why not; those that
/// `goes_on` leaves no time for are counted. It is asked by several threads, and once it has said no it stays with
/// that.
ValidateReport validate(const std::vector<MeasuredTable>&, Machines&, const Prediction&, Statistic,
                        const Telling& tell = {}, const GoesOn& goes_on = {});

}  // namespace collcast
