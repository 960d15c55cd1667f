#include "workload/wire.hpp"

#include <algorithm>
#include <utility>

#include "workload/layer/adapters.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/layer/share.hpp"
#include "workload/plan.hpp"

namespace collcast::workload {

namespace {

/// Elements that are cast before something is sent, and behind it.
struct Casts {
  double before = 0, behind = 0;
};

class Wire {
 public:
  Wire(const StepInputs& in, const KernelTimer& timer)
      : formats_(in.options.communication),
        timer_(timer),
        share_(in),
        tp_(in.layout.tp),
        w_(timer.precision().activation) {}

  std::vector<Segment> cast(std::vector<Segment> segments) const {
    std::vector<Segment> out;
    std::vector<Operation> behind;
    for (Segment& s : segments) {
      s.operations.insert(s.operations.begin(), std::make_move_iterator(behind.begin()),
                          std::make_move_iterator(behind.end()));
      behind.clear();
      if (s.under) {
        if (out.empty()) out.push_back({s.name, s.category, {}, std::nullopt});
        s.under->bytes = send_tp(s.under->kind, s.under->bytes, out.back().operations, behind);
      }
      if (s.then) s.then_bytes = send_tp(*s.then, s.then_bytes, s.operations, behind);
      if (s.exchange && !s.exchange->within_expert) send_rows(*s.exchange, s.operations, behind);
      out.push_back(std::move(s));
    }
    if (!behind.empty()) out.push_back({out.back().name, out.back().category, std::move(behind), std::nullopt});
    return out;
  }

 private:
  bool products_read(WireFormat format) const { return format == WireFormat::fp8 && timer_.precision().operand == 1; }

  Operation cast(const char* name, WireFormat format, double elements) const {
    const double bytes = (w_ + wire_bytes(format, formats_.scale_block)) * elements;
    return timer_.memory(name + std::string(" ") + std::string(to_string(format)), Volume(bytes));
  }

  void add(const char* what, WireFormat format, Casts casts, bool is_read, std::vector<Operation>& before,
           std::vector<Operation>& behind) const {
    const std::string name(what);
    before.push_back(cast((name + " cast to").c_str(), format, casts.before));
    if (!is_read || !products_read(format)) behind.push_back(cast((name + " cast from").c_str(), format, casts.behind));
  }

  /// Bytes of the collective, which has `bytes`, or those of all tokens' hidden states.
  double send_tp(CollectiveKind kind, double bytes, std::vector<Operation>& before,
                 std::vector<Operation>& behind) const {
    const bool gathers = kind == CollectiveKind::all_gather;
    const std::optional<WireFormat> format = gathers ? formats_.tp_gather : formats_.tp_reduce;
    if (!format || is_as_computed(*format)) return bytes;
    const double elements = bytes > 0 ? bytes / w_ : share_.tokens * share_.hidden, share = elements / tp_;
    const bool scatters = kind == CollectiveKind::reduce_scatter;
    add(gathers ? "tp gather" : "tp reduction", *format, {gathers ? share : elements, scatters ? share : elements},
        gathers, before, behind);
    return wire_bytes(*format, formats_.scale_block) * elements;
  }

  void send_rows(ExpertExchange& exchange, std::vector<Operation>& before, std::vector<Operation>& behind) const {
    const std::optional<WireFormat> format = exchange.combines ? formats_.ep_combine : formats_.ep_dispatch;
    if (!format || is_as_computed(*format)) return;
    const double elements = exchange.bytes / w_;
    if (exchange.combines)
      add("combine", *format, {elements, elements}, false, before, behind);
    else
      add("dispatch", *format, {share_.rows * share_.expert_row, elements}, true, before, behind);
    exchange.bytes = wire_bytes(*format, formats_.scale_block) * elements;
  }

  bool is_as_computed(WireFormat format) const { return wire_bytes(format, formats_.scale_block) >= w_; }

  const CommunicationFormats& formats_;
  const KernelTimer& timer_;
  Share share_;
  double tp_, w_;
};

}  // namespace

double wire_bytes(WireFormat format, int scale_block) {
  switch (format) {
    case WireFormat::fp8:
      return scale_block > 0 ? 1 + 4.0 / scale_block : 1;
    case WireFormat::bf16:
    case WireFormat::fp16:
      return 2;
    case WireFormat::fp32:
      return 4;
  }
  check(false, "a known format");
  return 0;
}

double wire_bytes(std::optional<WireFormat> format, double kept) {
  return format ? std::min(kept, wire_bytes(*format, 0)) : kept;
}

void put_on_wire(const StepInputs& in, const KernelTimer& timer, Segments& layer) {
  const CommunicationFormats& f = in.options.communication;
  if (!f.tp_gather && !f.tp_reduce && !f.ep_dispatch && !f.ep_combine) return;
  const Wire wire(in, timer);
  for (std::vector<Segment>* pass : {&layer.forward, &layer.backward, &layer.weights})
    *pass = wire.cast(std::move(*pass));
}

double gathered_weight_bytes(const StepInputs& in, bool of_layer) {
  const double kept = KernelTimer(in).precision().activation;
  return of_layer ? wire_bytes(in.options.communication.parameters, kept) : kept;
}

SplitParameters split_parameters(const ParallelLayout& layout, const RankParameters& all, double but) {
  const double apart = layout.experts_apart() ? all.experts : 0, own = all.total() - apart - but;
  const int shards = layout.shards(), of_experts = apart > 0 ? expert_shards(layout) : 1;
  return {own / shards + apart / of_experts, (shards > 1 ? own : 0) + (of_experts > 1 ? apart : 0)};
}

void cast_gathered_weights(const StepInputs& in, const KernelTimer& timer, LayerShape shape, Segments& layer) {
  const std::optional<WireFormat> format = in.options.communication.parameters;
  const double kept = timer.precision().activation, sent = gathered_weight_bytes(in, true);
  if (!format || sent >= kept || in.options.zero < 3 || gathers_once(in)) return;
  RankParameters all = layer_parameters(in.model, in.layout, shape);
  const AdapterParameters adapters = layer_adapters(in, shape);
  all.sharded += adapters.sharded;
  all.replicated += adapters.replicated;
  all.experts += adapters.experts;
  const auto [shares, gathered] = split_parameters(in.layout, all);
  if (!(gathered > 0)) return;
  const std::string name(to_string(*format));
  std::vector<Operation> casts{timer.memory("weights cast to " + name, Volume((kept + sent) * shares))};
  if (!products_read_gathered(in))
    casts.push_back(timer.memory("weights cast from " + name, Volume((kept + sent) * gathered)));
  layer.forward.front().operations.insert(layer.forward.front().operations.begin(), casts.begin(), casts.end());
  if (!in.options.reshard_after_forward) return;
  layer.backward.front().operations.insert(layer.backward.front().operations.begin(), casts.begin(), casts.end());
}

std::vector<Operation> casts_of_weights(const StepInputs& in, const KernelTimer& timer, int stage) {
  const double kept = timer.precision().activation, sent = gathered_weight_bytes(in, true);
  if (sent >= kept || sharding_stage(in) == 0 || (in.options.zero == 3 && !gathers_once(in))) return {};
  // ZeRO-1 and 2 send what the optimizer has changed, ZeRO-3 what a pass reads.
  const ParameterTerms terms = parameter_terms(in, stage);
  const bool read = in.options.zero == 3;
  const auto [shares, gathered] =
      split_parameters(in.layout, read ? stage_parameters(in, stage) : trained_parameters(in, stage),
                       read ? terms.ends() : terms.trained_ends());
  const std::string name(to_string(*in.options.communication.parameters));
  std::vector<Operation> casts{timer.memory("weights cast to " + name, Volume((kept + sent) * shares))};
  if (in.options.zero < 3 || products_read_gathered(in)) return casts;
  casts.push_back(timer.memory("weights cast from " + name, Volume((kept + sent) * gathered)));
  return casts;
}

bool products_read_gathered(const StepInputs& in) {
  const Precision precision = KernelTimer(in).precision();
  return in.options.communication.parameters == WireFormat::fp8 && precision.weight == 1;
}

bool casts_depend_on_zero(const TrainingOptions& options) {
  return options.communication.parameters.has_value() || options.communication.gradients.has_value();
}

}  // namespace collcast::workload
