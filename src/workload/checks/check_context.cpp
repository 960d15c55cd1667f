// Whether the tokens of a sample, and with Ulysses its heads, go over the ranks of context parallelism.
#include <numeric>
#include <string>
#include <utility>

#include "workload/checks/misfits.hpp"
#include "workload/layer/parameters.hpp"

namespace collcast::workload {

namespace {

class ContextCheck {
 public:
  explicit ContextCheck(Misfits& misfits) : misfits_(misfits), in_(misfits.in) {}

  void run() {
    const ParallelLayout& l = in_.layout;
    if (l.order != RankOrder::tp_cp_ep_dp_pp)
      wrong({"layout.cp", "layout.order"},
            cp() + " has no place in the order " + std::string(to_string(l.order)) + seen("layout.order"),
            {"use order: tp-cp-ep-dp-pp", [](StepInputs& in) { in.layout.order = RankOrder::tp_cp_ep_dp_pp; }});
    if (in_.options.attention != Attention::flash)
      wrong({"layout.cp", "training.attention"}, cp() + " needs flash attention" + seen("training.attention"),
            {"use attention: flash", [](StepInputs& in) { in.options.attention = Attention::flash; }});
    sequence();
    if (l.cp_exchange == ContextExchange::ulysses && heads_are_whole()) heads();
  }

 private:
  void wrong(const std::vector<std::string>& paths, std::string message, Hint hint) {
    misfits_.wrong(paths, std::move(message), std::move(hint));
  }
  std::string seen(const std::string& path) const { return misfits_.seen(path); }
  std::string cp() const { return "cp " + std::to_string(in_.layout.cp); }

  /// Each rank of a ring has an early and a late piece of the sequence.
  int pieces(ContextExchange exchange) const { return exchange == ContextExchange::ring && in_.model.causal ? 2 : 1; }
  bool fits_sequence(ContextExchange exchange) const {
    const int all = pieces(exchange), tokens = in_.batch.sequence;
    return tokens % all == 0 && tokens / all % in_.layout.cp == 0;
  }

  bool heads_are_whole() const { return in_.model.heads % in_.layout.tp == 0; }
  int heads_of_rank() const { return in_.model.heads / in_.layout.tp; }
  int keys_of_rank() const { return kv_heads_per_rank(in_.model, in_.layout.tp); }
  bool fits_keys(int degree) const { return keys_of_rank() % degree == 0 || degree % keys_of_rank() == 0; }

  /// The nearest that divide what is split: the sequence, and with Ulysses heads. What is wrong itself is no reason
  /// against them.
  std::vector<int> degrees() const {
    const int all = pieces(in_.layout.cp_exchange), tokens = in_.batch.sequence;
    const bool split = in_.layout.cp_exchange == ContextExchange::ulysses && heads_are_whole() &&
                       misfits_.origins.good("model.heads") && misfits_.origins.good("layout.tp");
    int common = 0;
    if (misfits_.origins.good("batch.sequence")) common = tokens % all == 0 ? tokens / all : 1;
    if (split) common = std::gcd(common, heads_of_rank());
    return near_divisors(common, in_.layout.cp, [&](int degree) { return !split || fits_keys(degree); });
  }

  void sequence() {
    const ContextExchange exchange = in_.layout.cp_exchange;
    if (fits_sequence(exchange)) return;
    wrong({"layout.cp", "batch.sequence"},
          (pieces(exchange) == 2 ? "twice " : "") + cp() + " does not divide sequence " +
              std::to_string(in_.batch.sequence) + seen("batch.sequence"),
          Hint::use("cp", &ParallelLayout::cp, degrees()));
  }

  void heads() {
    const int heads = heads_of_rank(), degree = in_.layout.cp;
    if (heads % degree == 0 && fits_keys(degree)) return;
    const bool of_queries = heads % degree != 0;
    Hint hint = Hint::use("cp", &ParallelLayout::cp, degrees());
    if (fits_sequence(ContextExchange::ring) || !misfits_.origins.good("batch.sequence"))
      hint = std::move(hint).or_use("cp_exchange: ring",
                                    [](StepInputs& in) { in.layout.cp_exchange = ContextExchange::ring; });
    wrong({"layout.cp", "model.heads", "layout.tp"},
          cp() + " does not divide the " + std::to_string(of_queries ? heads : keys_of_rank()) +
              (of_queries ? " heads" : " KV heads") + " of a TP rank, which cp_exchange ulysses" +
              seen("layout.cp_exchange") + " splits",
          std::move(hint));
  }

  Misfits& misfits_;
  const StepInputs& in_;
};

}  // namespace

void check_context(Misfits& misfits) {
  if (misfits.in.layout.cp > 1) ContextCheck(misfits).run();
}

}  // namespace collcast::workload
