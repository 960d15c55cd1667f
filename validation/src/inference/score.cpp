// Rows of servers -> forecasts -> errors, on all cores.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <oneapi/tbb/parallel_for.h>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "collcast/base/loop_order.hpp"
#include "collcast/topology/fabric.hpp"
#include "collcast/validation/inference.hpp"
#include "collcast/validation/machines.hpp"

namespace collcast {

namespace {

ServerFacts facts_of(const InferenceRow& row) {
  return {row.row_id, row.source, row.backend, row.system, row.model, row.mode, row.precision};
}

/// A row's way to a forecast: what was found of it, or why nothing was.
struct Job {
  const InferenceRow* row = nullptr;
  std::optional<ServedRow> served;
  std::string topology;
  std::shared_ptr<const Fabric> fabric;
  std::string why;
  std::optional<Seconds> ttft;
  Seconds tpot{};
  bool reached = true;
};

class Fabrics {
 public:
  Result<std::shared_ptr<const Fabric>> at(const ScoredPlace& place) {
    auto& fabric = known_[{place.machine.name, place.nodes}];
    if (fabric == nullptr) {
      Result<Fabric> built = Fabric::build(place.machine, place.nodes);
      if (!built) return built.errors();
      fabric = std::make_shared<const Fabric>(std::move(built).value());
    }
    return fabric;
  }

 private:
  std::map<std::pair<std::string, int>, std::shared_ptr<const Fabric>> known_;
};

/// What keeps the row from being put on its machine; empty: nothing.
std::string put_on_machine(Job& job, const ScoredMachines& machines, Fabrics& fabrics) {
  StepInputs& in = job.served->inputs;
  TrainingRow wanted;
  wanted.gpu = job.row->system;
  wanted.gpus = in.layout.world();
  const Result<ScoredPlace> place = machines.place(wanted);
  if (!place) return messages(place.errors());
  in.gpu = place->machine.gpu;
  in.kernels = place->kernels;
  std::string& precision = in.options.precision;
  if (precision == "fp4" && in.gpu.peak.count(precision) == 0) {
    precision = "int4";
    job.served->assumed.emplace_back("weights of four bits, computed in bf16: the GPU has no rate of fp4");
  }
  job.topology = place->machine.name;
  const Result<std::shared_ptr<const Fabric>> fabric = fabrics.at(*place);
  if (!fabric) return messages(fabric.errors());
  job.fabric = *fabric;
  return messages(check_step(in, job.fabric->rank_count(), {}));
}

Job prepared(const InferenceRow& row, const ServedModels& models, const std::vector<ServerSettings>& servers,
             const ScoredMachines& machines, Fabrics& fabrics) {
  Job job;
  job.row = &row;
  Result<ServedRow> served = served_row(row, models, servers);
  if (!served) {
    job.why = messages(served.errors());
    return job;
  }
  job.served = std::move(served).value();
  if (!row.tpot_ms && !(row.ttft_ms && job.served->first_token)) {
    job.why = "no time that can be compared is stated";
    return job;
  }
  job.why = put_on_machine(job, machines, fabrics);
  return job;
}

std::string gib(double bytes) { return fmt::format("{:.3g}", bytes / (1 << 30)); }

/// Why the server cannot have run: weights, or weights and what one request keeps in the end, are more than its GPU
/// has. What else a forecast counts (activations, buffers, what is outside the allocator) has no part in it: a server
/// may do with less, and one that is published did run.
std::string no_room(const MemoryUse& m, const Serving& s) {
  const double weights = static_cast<double>(m.parameters.value()), has = static_cast<double>(m.capacity.value());
  if (weights > has) return fmt::format("the weights need {} GiB of {} that the GPU has", gib(weights), gib(has));
  const double mean_length = s.load ? (1 + s.load->range_ratio) / 2 : 1;
  const double request = static_cast<double>(m.kv_cache.value()) / s.batch * mean_length;
  if (weights + request <= has) return {};
  return fmt::format("not one request has room: weights need {} GiB, its keys and values {}, of {} that the GPU has",
                     gib(weights), gib(request), gib(has));
}

/// How many requests a replica has room for, of those that were asked for; 0: not one. Servers take a request in when
/// its prompt has room, and put one off where answers grow out of it: what counts is what requests keep on the mean.
int places_for(const StepResult& result, const StepInputs& in) {
  const MemoryUse& m = result.memory;
  const Serving& s = *in.serving;
  const double mean_length = (1 + s.load->range_ratio) / 2;
  const double of_the_longest = mean_length * (s.prompt_tokens + s.output_tokens / 2.0) / s.kept_tokens();
  const auto kept = static_cast<double>(m.kv_cache.value());
  const double room = static_cast<double>(m.capacity.value()) - (static_cast<double>(m.peak().value()) - kept);
  int places = std::clamp(static_cast<int>(room / (kept / s.batch * of_the_longest)), 0, s.batch);
  if (in.layout.sequence_parallel) places -= places % in.layout.tp;
  return places;
}

void forecast(Job& job, const CollectivePolicy& collectives) {
  StepInputs& in = job.served->inputs;
  Result<StepResult> result = forecast_step(in, *job.fabric, collectives, Method::estimate);
  if (result) job.why = no_room(result->memory, *in.serving);
  if (!job.why.empty()) return;
  if (result && in.serving->load && !result->memory.fits())
    if (const int places = places_for(*result, in); places > 0 && places < in.serving->batch) {
      job.served->assumed.push_back(
          fmt::format("{} of {} requests find room in memory at once, the others wait", places, in.serving->batch));
      in.serving->load->concurrency = in.serving->clients();
      in.serving->batch = places;
      in.batch.global_batch = places * in.layout.dp;
      result = forecast_step(in, *job.fabric, collectives, Method::estimate);
    }
  if (!result) {
    job.why = messages(result.errors());
    return;
  }
  if (job.served->first_token) job.ttft = result->inference->prefill.estimate;
  job.tpot = result->inference->decode.estimate;
  if (!result->memory.fits())
    job.served->assumed.emplace_back(
        "requests in the middle of their answers need about as much memory as there is, or more");
}

std::string layout_text(const ParallelLayout& l, const TransformerConfig& model) {
  std::string out = fmt::format("tp {}", l.tp);
  if (l.dp > 1) out += fmt::format(", dp {}", l.dp);
  if (model.experts.count > 0) out += fmt::format(", expert tp {}, ep {}", l.expert_tp(), l.ep);
  return out;
}

/// What no two runs have alike to the digit: two rows with all of it are one measurement, listed twice, as a table does
/// that has a model's checkpoints under each of their names, or a day's results again on the next.
using Measurement = std::tuple<std::string, std::string, std::string, std::string, std::string, std::string,
                               std::optional<int>, std::optional<int>, std::optional<int>, double, double>;
std::optional<Measurement> measurement_of(const Job& job) {
  const InferenceRow& row = *job.row;
  const StepInputs& in = job.served->inputs;
  if (!row.ttft_ms || !row.tpot_ms) return std::nullopt;
  return Measurement{
      row.backend, row.system, row.mode,        in.model.name, in.options.precision, layout_text(in.layout, in.model),
      row.isl,     row.osl,    row.concurrency, *row.ttft_ms,  *row.tpot_ms};
}

InferenceDeviation deviation(const Job& job) {
  const auto seconds = [](const std::optional<double>& ms) {
    return ms ? std::optional(Seconds(*ms * 1e-3)) : std::nullopt;
  };
  InferenceDeviation out;
  out.of = facts_of(*job.row);
  if (out.of.precision.empty()) out.of.precision = job.served->inputs.options.precision;
  out.topology = job.topology;
  out.layout = layout_text(job.served->inputs.layout, job.served->inputs.model);
  out.measured_ttft = seconds(job.row->ttft_ms);
  out.measured_tpot = seconds(job.row->tpot_ms);
  out.predicted_ttft = job.ttft;
  out.predicted_tpot = job.tpot;
  out.assumed = job.served->assumed;
  out.architecture = job.served->inputs.model.name;
  return out;
}

}  // namespace

InferenceReport validate_inference(const InferenceTables& tables, const ServedModels& models,
                                   const ScoredMachines& machines, const CollectivePolicy& collectives,
                                   const Telling& tell, const GoesOn& goes_on) {
  InferenceReport out;
  out.library = to_string(collectives.library);
  Fabrics fabrics;
  std::vector<Job> jobs;
  jobs.reserve(tables.rows.size());
  for (const InferenceRow& row : tables.rows) jobs.push_back(prepared(row, models, tables.servers, machines, fabrics));
  PieceCount pieces(tell, "forecasting servers", jobs.size());
  // Each job writes its own place, so the report does not depend on the threads.
  tbb::parallel_for(std::size_t{0}, jobs.size(), LoopOrder([&](std::size_t i) {
                      jobs[i].reached = !goes_on || goes_on();
                      if (jobs[i].reached && jobs[i].why.empty()) forecast(jobs[i], collectives);
                      pieces.step();
                    }));
  std::map<std::string, ScoringMachine> used;
  std::set<Measurement> scored;
  MachineWarnings warnings(out.library);
  for (const Job& job : jobs) {
    if (!job.reached) {
      ++out.not_reached;
      continue;
    }
    if (!job.why.empty()) {
      out.unscored.push_back({facts_of(*job.row), job.why});
      continue;
    }
    if (const auto one = measurement_of(job); one && !scored.insert(*one).second) {
      out.unscored.push_back(
          {facts_of(*job.row), "a measurement that another row has: the same load, both times alike"});
      continue;
    }
    if (used.count(job.topology) == 0)
      used[job.topology] = {job.topology, digest(job.fabric->spec()), false, Seconds(0)};
    warnings.add(*job.fabric);
    out.rows.push_back(deviation(job));
  }
  cross_validate(out);
  for (const auto& [name, machine] : used) out.machines.push_back(machine);
  out.of_machines = warnings.all();
  for (const ServerSettings& line : tables.servers) out.settings.push_back(line.said);
  return out;
}

}  // namespace collcast
