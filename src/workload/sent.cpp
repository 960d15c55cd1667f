// What is sent otherwise than as it is computed or kept, beside what it would be, for people to see.
#include <utility>

#include "collcast/workload/terms.hpp"
#include "workload/gradient_exchange.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/layer/segments.hpp"
#include "workload/layer/share.hpp"
#include "workload/plan.hpp"
#include "workload/wire.hpp"

namespace collcast {

namespace {

using namespace workload;

/// Of a layer and a micro-batch.
struct LayerSums {
  double gathers = 0, reductions = 0, dispatches = 0, combines = 0;  ///< bytes
  Seconds kernels{};
};

LayerSums sums(const StepInputs& in) {
  LayerSums out;
  const Segments layer = layer_segments(in, shown_kind(in));
  const auto add = [&](CollectiveKind kind, double bytes) {
    (kind == CollectiveKind::all_gather ? out.gathers : out.reductions) += bytes > 0 ? bytes : tp_bytes(in);
  };
  for (const std::vector<Segment>* pass : {&layer.forward, &layer.backward, &layer.weights})
    for (const Segment& s : *pass) {
      for (const Operation& op : s.operations) out.kernels += op.time;
      if (s.then) add(*s.then, s.then_bytes);
      if (s.under) add(s.under->kind, s.under->bytes);
      if (s.exchange && !s.exchange->within_expert)
        (s.exchange->combines ? out.combines : out.dispatches) += s.exchange->bytes;
    }
  return out;
}

using Format = std::optional<WireFormat> CommunicationFormats::*;

StepInputs as_is(StepInputs in) {
  in.options.communication = {};
  in.options.compression = {};
  return in;
}

/// With one of the formats alone.
StepInputs with_only(const StepInputs& in, Format format) {
  StepInputs one = as_is(in);
  one.options.communication.*format = in.options.communication.*format;
  one.options.communication.scale_block = in.options.communication.scale_block;
  return one;
}

void add_layer(const StepInputs& in, double dispatched, std::vector<SentOtherwise>& out) {
  struct Row {
    const char* what;
    Format format;
    double LayerSums::*bytes;
    double share = 1;  ///< of the bytes, that go over the wire
  };
  const CommunicationFormats& f = in.options.communication;
  if (!f.tp_gather && !f.tp_reduce && !f.ep_dispatch && !f.ep_combine) return;
  const LayerSums usual = sums(as_is(in));
  for (const Row& row : {Row{"TP gathers", &CommunicationFormats::tp_gather, &LayerSums::gathers},
                         {"TP reductions", &CommunicationFormats::tp_reduce, &LayerSums::reductions},
                         {"dispatch", &CommunicationFormats::ep_dispatch, &LayerSums::dispatches, dispatched},
                         {"combine", &CommunicationFormats::ep_combine, &LayerSums::combines, dispatched}}) {
    const std::optional<WireFormat> format = in.options.communication.*row.format;
    if (!format || !(usual.*row.bytes > 0)) continue;
    const LayerSums sent = sums(with_only(in, row.format));
    if (sent.*row.bytes >= usual.*row.bytes) continue;
    out.push_back({std::string(row.what) + " in " + std::string(to_string(*format)), "a layer and micro-batch",
                   Volume(row.share * usual.*row.bytes), Volume(row.share * sent.*row.bytes),
                   sent.kernels - usual.kernels});
  }
}

Seconds time_of(const std::vector<Operation>& ops) {
  Seconds sum{};
  for (const Operation& op : ops) sum += op.time;
  return sum;
}

void add_weights(const StepInputs& in, int stage, std::vector<SentOtherwise>& out) {
  const std::optional<WireFormat> format = in.options.communication.parameters;
  if (!format || sharding_stage(in) == 0) return;
  const StepInputs usual = as_is(in), one = with_only(in, &CommunicationFormats::parameters);
  const double before = gathered_bytes(usual, stage) + gathered_expert_bytes(usual, stage);
  const double sent = gathered_bytes(one, stage) + gathered_expert_bytes(one, stage);
  if (sent >= before) return;
  const bool often = in.options.zero == 3 && !gathers_once(in);
  const Seconds kernels = often
                              ? sums(one).kernels - sums(usual).kernels
                              : time_of(optimizer_operations(one, stage)) - time_of(optimizer_operations(usual, stage));
  out.push_back({"gathered weights in " + std::string(to_string(*format)),
                 often ? "a gather of all; kernels: a layer and micro-batch" : "a step", Volume(before), Volume(sent),
                 kernels});
}

void add_gradients(const StepInputs& in, int stage, std::vector<SentOtherwise>& out) {
  const GradientCompression& c = in.options.compression;
  const double kept = in.options.gradient_bytes;
  if (!exchanges_gradients(in) || (sent_gradient_bytes(in) >= kept && c.method == CompressionMethod::none)) return;
  double before = 0, sent = 0;
  const auto add = [&](bool experts) {
    const GradientExchange one(in, stage, experts);
    before += kept * one.gradients;
    for (const double bytes : one.sent(kept * one.gradients)) sent += bytes;
  };
  if (in.layout.replicas() > 1) add(false);
  if (in.layout.experts_apart() && in.layout.expert_replicas() > 1) add(true);
  std::string what = "gradients";
  if (in.options.communication.gradients) what += " in " + std::string(to_string(*in.options.communication.gradients));
  if (c.method == CompressionMethod::powersgd) what += ", PowerSGD of rank " + std::to_string(c.rank);
  if (c.method == CompressionMethod::ratio) what += ", compressed";
  const bool often = reduces_each_pass(in);
  const Seconds kernels = often
                              ? sums(with_only(in, &CommunicationFormats::gradients)).kernels - sums(as_is(in)).kernels
                              : time_of(compression_operations(in, stage));
  out.push_back({std::move(what), often ? "a micro-batch; kernels: of a layer" : "a step", Volume(before), Volume(sent),
                 kernels});
}

}  // namespace

std::vector<SentOtherwise> sent_otherwise(const StepInputs& in, int stage, double dispatched) {
  std::vector<SentOtherwise> out;
  if (in.serving) return out;
  add_layer(in, dispatched, out);
  add_weights(in, stage, out);
  add_gradients(in, stage, out);
  return out;
}

}  // namespace collcast
