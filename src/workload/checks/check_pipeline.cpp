// Whether a pipeline's stages and chunks go into the layers, and one's own schedule into the layout.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "collcast/workload/own_schedule.hpp"
#include "workload/checks/misfits.hpp"
#include "workload/layer/parameters.hpp"

namespace collcast::workload {

namespace {

std::string own_name(const StepInputs& in) { return "schedule '" + in.layout.own->name + "'"; }

class PipelineCheck {
 public:
  explicit PipelineCheck(Misfits& misfits) : misfits_(misfits), in_(misfits.in) {}

  void run() {
    const ParallelLayout& l = in_.layout;
    if (is_own(l.schedule) && !own_stages()) return;
    if (goes_in_v(l.schedule))
      v_chunks();
    else if (l.uneven_stages && goes_round())
      chunks();
    else if (l.uneven_stages && in_.model.layers % l.pp != 0)
      uneven();
    else if (in_.model.layers % in_.layout.pp != 0)
      undivided();
    else
      chunks();
  }

 private:
  void wrong(const std::vector<std::string>& paths, std::string message, Hint hint) {
    misfits_.wrong(paths, std::move(message), std::move(hint));
  }
  std::string seen(const std::string& path) const { return misfits_.seen(path); }

  /// Whether one's own schedule has the stages and chunks of the layout.
  bool own_stages() {
    const ParallelLayout& l = in_.layout;
    const int stages = static_cast<int>(l.own->orders.size());
    if (stages != l.pp)
      wrong({"layout.schedule", "layout.pp"},
            own_name(in_) + " is for " + std::to_string(stages) + " pipeline stages; pp is " + std::to_string(l.pp) +
                seen("layout.pp"),
            {"use pp " + std::to_string(stages) + ", or a schedule for " + std::to_string(l.pp),
             [stages](StepInputs& in) { in.layout.pp = stages; }});
    if (!l.own->in_v && l.vpp != l.own->chunks) {
      wrong({"layout.vpp", "layout.schedule"},
            "vpp " + std::to_string(l.vpp) + " is not what " + own_name(in_) + seen("layout.schedule") + " is for, " +
                std::to_string(l.own->chunks) + (l.own->chunks == 1 ? " chunk a stage" : " chunks a stage"),
            {"leave it out", [](StepInputs& in) { in.layout.vpp = in.layout.own->chunks; }});
      return false;
    }
    return stages == l.pp;
  }

  static Hint at_most(int pp) {
    return {"use pp " + std::to_string(pp) + (pp > 1 ? " or less" : ""), [pp](StepInputs& in) { in.layout.pp = pp; }};
  }
  static Hint use_schedule(PipelineSchedule schedule) {
    return {"use " + schedule_key(schedule), set_schedule(schedule)};
  }
  static std::string schedule_key(PipelineSchedule schedule) { return "schedule: " + std::string(to_string(schedule)); }
  static Hint::Change set_schedule(PipelineSchedule schedule) {
    return [schedule](StepInputs& in) { in.layout.schedule = schedule; };
  }
  static void even_out(StepInputs& in) { in.layout.uneven_stages = true; }

  /// Chunks that go round the stages.
  bool goes_round() const {
    const ParallelLayout& l = in_.layout;
    return l.schedule == PipelineSchedule::interleaved || (is_own(l.schedule) && l.vpp > 1);
  }

  void undivided() {
    const ParallelLayout& l = in_.layout;
    const int layers = in_.model.layers;
    const std::int64_t slices = l.slices();
    // A layer for each slice, or of chunks that go round embedding and head in the place of two.
    const bool evens_out = layers >= slices || (goes_round() && layers + 2 == slices);
    Hint hint = Hint::use("pp", &ParallelLayout::pp, near_divisors(layers, l.pp));
    wrong({"layout.pp", "model.layers"},
          "pp " + std::to_string(l.pp) + " does not divide layers " + std::to_string(layers) + seen("model.layers"),
          evens_out ? std::move(hint).or_use("uneven_stages: true", even_out) : hint);
  }

  void uneven() {
    const ParallelLayout& l = in_.layout;
    // Chunks that this schedule does not have make no stage smaller.
    std::optional<StepInputs> whole;
    if (l.vpp > 1) one_chunk(whole.emplace(in_));
    const StepInputs& in = whole ? *whole : in_;
    if (stage_layers(in, 0) < 1 || stage_layers(in, l.pp - 1) < 1)
      wrong({"layout.pp", "model.layers"},
            "pp " + std::to_string(l.pp) + " leaves stages without one of the " + std::to_string(in_.model.layers) +
                " layers" + seen("model.layers"),
            at_most(in_.model.layers));
    else
      chunks();
  }

  std::string schedule_name() const {
    if (is_own(in_.layout.schedule)) return own_name(in_);
    return "schedule " + std::string(to_string(in_.layout.schedule));
  }

  /// Whether the chunks that are asked for go round so many stages, which layers and micro-batches go into.
  bool rounds_of(int pp) const {
    const ParallelLayout& l = in_.layout;
    const std::int64_t slices = l.slices_on(pp), layers = in_.model.layers;
    const std::int64_t samples = std::int64_t{in_.batch.micro_batch} * l.dp;
    const bool batch = !in_.serving && misfits_.origins.good("batch.global_batch") &&
                       misfits_.origins.good("batch.micro_batch") && in_.batch.global_batch % samples == 0;
    return (l.uneven_stages ? layers >= slices : layers % slices == 0) &&
           (!batch || in_.batch.global_batch % (samples * pp) == 0);
  }
  /// The fewest stages, but more than one, that do.
  std::optional<int> least_stages() const {
    if (is_own(in_.layout.schedule)) return {};
    for (int pp = 2; pp <= in_.model.layers; ++pp)
      if (rounds_of(pp)) return pp;
    return {};
  }

  void chunks() {
    const ParallelLayout& l = in_.layout;
    const std::string vpp = "vpp " + std::to_string(l.vpp);
    if (!goes_round()) {
      if (l.vpp > 1)
        wrong({"layout.vpp", "layout.schedule"},
              vpp + " needs schedule interleaved; the schedule is " + std::string(to_string(l.schedule)) +
                  seen("layout.schedule"),
              l.pp > 1 && rounds_of(l.pp) ? use_schedule(PipelineSchedule::interleaved).or_use("vpp 1", one_chunk)
                                          : Hint("use vpp 1", one_chunk));
      return;
    }
    const int layers = in_.model.layers, of_stage = layers / l.pp;
    if (l.pp == 1) {
      const std::optional<int> pp = least_stages();
      return wrong({"layout.schedule", "layout.pp"},
                   schedule_name() + " needs at least 2 pipeline stages; pp is 1" + seen("layout.pp"),
                   pp ? Hint::use("pp", &ParallelLayout::pp, {*pp}).or_use(plain_key(), plain)
                      : Hint("use " + plain_key(), plain));
    }
    if (l.uneven_stages) {
      // Each slice of the model has a layer at least, or embedding and head stand for one.
      if (of_stage < l.vpp && !ends_stand_for_layers(in_))
        wrong({"layout.vpp", "layout.pp", "model.layers"},
              vpp + " x pp " + std::to_string(l.pp) + seen("layout.pp") + " are more slices than the layers " +
                  std::to_string(layers) + seen("model.layers"),
              of_stage >= 1 ? Hint("use vpp " + std::to_string(of_stage) + (of_stage > 1 ? " or less" : ""),
                                   [of_stage](StepInputs& in) { in.layout.vpp = of_stage; })
              : layers >= 2 ? at_most(layers)
                            : Hint("use " + plain_key(), plain));
      return;
    }
    if (of_stage % l.vpp != 0)
      wrong({"layout.vpp", "layout.pp", "model.layers"},
            vpp + " does not divide the " + std::to_string(of_stage) + " layers of a stage, layers " +
                std::to_string(layers) + seen("model.layers") + " / pp " + std::to_string(l.pp) + seen("layout.pp"),
            of_stage >= l.vpp ? use_vpp(of_stage).or_use("uneven_stages: true", even_out) : use_vpp(of_stage));
  }

  Hint use_vpp(int of_stage) const {
    return Hint::use("vpp", &ParallelLayout::vpp, near_divisors(of_stage, in_.layout.vpp));
  }
  static void one_chunk(StepInputs& in) { in.layout.vpp = 1; }
  /// Without chunks, which it has not.
  static void plain(StepInputs& in) {
    in.layout.schedule = PipelineSchedule::one_f_one_b;
    in.layout.own = nullptr;
    one_chunk(in);
  }
  std::string plain_key() const {
    return schedule_key(PipelineSchedule::one_f_one_b) + (in_.layout.vpp > 1 ? " with vpp: 1" : "");
  }

  /// Two equal chunks on each stage.
  void v_chunks() {
    const ParallelLayout& l = in_.layout;
    const int layers = in_.model.layers;
    const bool both_ends = from_both_ends(l.schedule);
    if (l.vpp > 1)
      wrong(
          {"layout.vpp", "layout.schedule"},
          "vpp " + std::to_string(l.vpp) + " has no effect on " + schedule_name() + seen("layout.schedule") +
              ", which has two chunks on each stage",
          Hint("leave it out", [](StepInputs& in) {
            in.layout.vpp = 1;
          }).or_use("use " + schedule_key(PipelineSchedule::interleaved), set_schedule(PipelineSchedule::interleaved)));
    if (both_ends && l.pp % 2 != 0)
      return wrong(
          {"layout.pp", "layout.schedule"},
          schedule_name() + seen("layout.schedule") + " has pairs of pipeline stages; pp is " + std::to_string(l.pp),
          use_pairs());
    // As many stages with a slice of one layer.
    const int most = both_ends ? layers : layers / 2;
    if (((both_ends || layers % 2 == 0) && most % l.pp == 0) || ends_stand_for_layers(in_)) return;
    const std::string slices = (both_ends ? "pp " : "2 x pp ") + std::to_string(l.pp),
                      of = " layers " + std::to_string(layers) + seen("model.layers"),
                      what = schedule_name() + seen("layout.schedule") +
                             (both_ends ? " has a slice of the model for each stage; "
                                        : " has two chunks on each stage; ") +
                             slices;
    if (l.uneven_stages && most < l.pp)
      wrong({"layout.pp", "model.layers", "layout.schedule"}, what + " are more than the" + of,
            both_ends    ? use_pairs()
            : layers < 2 ? use_schedule(PipelineSchedule::one_f_one_b)
                         : at_most(most));
    if (l.uneven_stages) return;
    const bool evens_out = most >= l.pp || (layers + 2) % l.slices() == 0;
    const Hint uneven("use uneven_stages: true", even_out);
    wrong({"layout.pp", "model.layers", "layout.schedule"}, what + " does not divide" + of,
          both_ends                      ? pairs_or(uneven, evens_out)
          : layers % 2 == 0 && evens_out ? use_halves().or_use("uneven_stages: true", even_out)
          : layers % 2 == 0              ? use_halves()
          : evens_out                    ? uneven
                                         : use_schedule(PipelineSchedule::zb_h1));
  }

  Hint use_halves() const {
    return Hint::use("pp", &ParallelLayout::pp, near_divisors(in_.model.layers / 2, in_.layout.pp));
  }
  Hint pairs_or(Hint uneven, bool evens_out) const {
    if (!evens_out) return use_pairs();
    if (in_.model.layers % 2 != 0) return uneven;
    return std::move(uneven).or_any_of(use_pairs());
  }

  /// The nearest even numbers of stages that the layers go into.
  Hint use_pairs() const {
    const ParallelLayout& l = in_.layout;
    const int layers = in_.model.layers;
    const auto fits = [&](int pp) { return l.uneven_stages ? pp <= layers : layers % pp == 0; };
    int below = std::min((l.pp - 1) / 2 * 2, layers / 2 * 2), above = (l.pp + 2) / 2 * 2;
    while (below >= 2 && !fits(below)) below -= 2;
    while (above <= layers && !fits(above)) above += 2;
    if (below < 2 && above > layers)
      return use_schedule(layers < 2 ? PipelineSchedule::one_f_one_b : PipelineSchedule::zb_h1);
    std::vector<int> pairs;
    if (below >= 2) pairs.push_back(below);
    if (above <= layers) pairs.push_back(above);
    return Hint::use("pp", &ParallelLayout::pp, pairs);
  }

  Misfits& misfits_;
  const StepInputs& in_;
};

}  // namespace

void check_pipeline(Misfits& misfits) { PipelineCheck(misfits).run(); }

void check_own_micro_batches(Misfits& misfits, std::int64_t count, std::int64_t samples) {
  const StepInputs& in = misfits.in;
  const int own = in.layout.own->micro_batches;
  if (count == own) return;
  misfits.wrong({"layout.schedule", "batch.global_batch", "batch.micro_batch", "layout.dp"},
                own_name(in) + " is for " + std::to_string(own) + " micro-batches; global_batch " +
                    std::to_string(in.batch.global_batch) + misfits.seen("batch.global_batch") + " makes " +
                    std::to_string(count),
                {"use global_batch " + std::to_string(own * samples) + ", or a schedule for " + std::to_string(count),
                 [=](StepInputs& changed) { changed.batch.global_batch = static_cast<int>(own * samples); }});
}

}  // namespace collcast::workload
