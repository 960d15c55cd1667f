// Rows -> forecasts -> errors, on all cores.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <oneapi/tbb/parallel_for.h>

#include "collcast/base/loop_order.hpp"
#include "collcast/base/units.hpp"
#include "collcast/topology/fabric.hpp"
#include "collcast/validation/machines.hpp"
#include "collcast/validation/training.hpp"
#include "collcast/workload/search.hpp"
#include "gpu_name.hpp"
#include "lines.hpp"

namespace collcast {

namespace {

/// Prices of a machine at one network rate, remembered for all its rows.
struct Machine {
  Fabric fabric;
  CollectiveTime prices;
};

/// A row's way to a forecast: what was found of it, or why nothing was.
struct Job {
  const TrainingRow* row = nullptr;
  std::optional<TrainingStep> step;
  std::string topology;
  int gpus_per_node = 1;
  std::shared_ptr<const Machine> machine;
  std::string why;
  Seconds predicted{};
  Breakdown breakdown;
  Orders made;
  bool reached = true;
};

class PricedMachines {
 public:
  explicit PricedMachines(const CollectivePolicy& policy) : policy_(policy) {}

  Result<std::shared_ptr<const Machine>> at(const ScoredPlace& place) {
    auto& machine = known_[{digest(place.machine), place.nodes}];
    if (machine == nullptr) {
      Result<Fabric> fabric = Fabric::build(place.machine, place.nodes);
      if (!fabric) return fabric.errors();
      const auto made = std::make_shared<Machine>(Machine{std::move(fabric).value(), {}});
      made->prices = memoized(step_prices(made->fabric, policy_));
      machine = made;
    }
    return machine;
  }

 private:
  CollectivePolicy policy_;
  std::map<std::pair<std::string, int>, std::shared_ptr<const Machine>> known_;  ///< by what it is, and its nodes
};

LayoutChoice choice_of(const StepInputs& in) {
  return {in.layout.tp,         in.layout.pp,    in.layout.dp,  in.batch.micro_batch, in.layout.sequence_parallel,
          in.options.recompute, in.options.zero, in.layout.vpp, in.layout.cp,         in.layout.ep};
}

/// Nothing of a time that the row's GPUs may have taken: no shorter than the model's FLOPs at their peak.
std::string impossible_time(const TrainingRow& row, const StepInputs& in) {
  const std::optional<MeasuredStep> measured = measured_step(row, in);
  const Seconds least(rates(in, Seconds(1)).mfu);
  if (row.out_of_memory() || !measured || measured->time >= least) return {};
  return fmt::format("{} says {} for a step, more than the GPUs can compute: at their peak it takes {}", measured->by,
                     format_seconds(measured->time), format_seconds(least));
}

/// Where the row ran and what it did, before anything is forecast.
Job placed(const TrainingRow& row, const ScoredMachines& machines, PricedMachines& fabrics) {
  Job job;
  job.row = &row;
  const Result<ScoredPlace> place = machines.place(row);
  if (!place) {
    job.why = messages(place.errors());
    return job;
  }
  Result<TrainingStep> step = training_step(row, *place);
  if (!step) {
    job.why = messages(step.errors());
    return job;
  }
  job.topology = place->machine.name;
  job.step = std::move(step).value();
  const StepInputs& in = job.step->inputs;
  if (!measured_step(row, in) && !row.mem_gib && !row.out_of_memory()) {
    job.why = "neither a time nor a memory that can be compared is stated, nor `oom` in the column published";
    return job;
  }
  const Result<std::shared_ptr<const Machine>> machine = fabrics.at(*place);
  if (!machine) {
    job.why = messages(machine.errors());
    return job;
  }
  job.machine = *machine;
  job.gpus_per_node = job.machine->fabric.rank_count() / place->nodes;
  Diagnostics wrong = check_step(in, job.machine->fabric.rank_count(), {});
  if (wrong.empty()) wrong = check_memory(in, {});
  job.why = wrong.empty() ? impossible_time(row, in) : messages(wrong);
  return job;
}

void forecast(Job& job, const TrainingQuestion& question) {
  const StepInputs& in = job.step->inputs;
  if (question.simulate) {
    const Result<StepResult> result =
        forecast_step(in, job.machine->fabric, question.collectives, Method::simulate, nullptr, question.engine);
    if (!result) {
      job.why = messages(result.errors());
      return;
    }
    job.predicted = result->step;
    job.breakdown = result->breakdown;
    job.made = result->made;
    return;
  }
  const CollectiveTime prices = as_run(*job.step, job.machine->prices);
  LayoutFamily family(in, job.machine->fabric, prices);
  const Result<LayoutEstimate> estimate = family.estimate(choice_of(in));
  if (!estimate) {
    job.why = messages(estimate.errors());
    return;
  }
  job.predicted = estimate->step;
  job.breakdown = estimate->breakdown;
  job.made = estimate->made;
}

TrainingDeviation deviation(const Job& job) {
  const TrainingRow& row = *job.row;
  const StepInputs& in = job.step->inputs;
  TrainingDeviation out;
  out.row_id = row.row_id;
  out.source_id = row.source_id;
  out.tier = row.tier;
  out.gpu = row.gpu;
  out.precision = in.options.precision;
  out.schedule = in.layout.pp == 1 ? "none" : std::string(to_string(in.layout.schedule));
  out.topology = job.topology;
  out.job = job_of(row);
  out.configuration = configuration_of(row);
  if (const auto measured = measured_step(row, in); measured && !row.out_of_memory()) {
    out.measured = measured->time;
    out.measured_by = measured->by;
  }
  out.predicted = job.predicted;
  out.breakdown = job.breakdown;
  out.measured_memory = measured_memory(row);
  out.memory = training_memory(*job.step, job.gpus_per_node, job.made);
  out.measured_oom = row.out_of_memory();
  out.assumed = job.step->assumed;
  return out;
}

}  // namespace

TrainingReport validate_training(const TrainingTables& tables, const ScoredMachines& machines,
                                 const TrainingQuestion& question, const Telling& tell, const GoesOn& goes_on) {
  TrainingReport out;
  out.library = to_string(question.collectives.library);
  out.method = question.simulate ? "simulate" : "estimate";
  PricedMachines fabrics(question.collectives);
  std::vector<Job> jobs;
  jobs.reserve(tables.rows.size());
  for (const TrainingRow& row : tables.rows) jobs.push_back(placed(row, machines, fabrics));
  PieceCount pieces(tell, "forecasting training steps", jobs.size());
  // Each job writes its own place, so the report does not depend on the threads.
  tbb::parallel_for(std::size_t{0}, jobs.size(), LoopOrder([&](std::size_t i) {
                      Job& job = jobs[i];
                      const auto is_over = [&] { return goes_on && !goes_on(); };
                      if (job.why.empty()) {
                        job.reached = !is_over();
                        if (job.reached) forecast(job, question);
                        // What failed may have failed by that.
                        if (!job.why.empty() && is_over()) job.reached = false;
                      }
                      pieces.step();
                    }));
  std::map<std::string, ScoringMachine> used;
  MachineWarnings warnings(out.library);
  for (const Job& job : jobs) {
    if (!job.reached) {
      ++out.not_reached;
      continue;
    }
    if (!job.why.empty()) {
      out.unscored.push_back({job.row->row_id, job.row->source_id, job.row->tier, job.why});
      continue;
    }
    if (used.count(job.topology) == 0)
      used[job.topology] = {job.topology, digest(job.machine->fabric.spec()), false, Seconds(0)};
    warnings.add(job.machine->fabric);
    out.rows.push_back(deviation(job));
  }
  for (const auto& [name, machine] : used) out.machines.push_back(machine);
  out.of_machines = warnings.all();
  cross_validate(out.rows);
  return out;
}

}  // namespace collcast
