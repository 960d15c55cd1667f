// Formats in which is sent what was computed or kept in a wider one, compressed gradients, and those of the step
// before.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collcast/base/units.hpp"
#include "workload/checks/misfits.hpp"
#include "workload/layer/precision.hpp"
#include "workload/plan.hpp"
#include "workload/wire.hpp"

namespace collcast::workload {

namespace {

class CommunicationCheck {
 public:
  explicit CommunicationCheck(Misfits& misfits) : misfits_(misfits), in_(misfits.in) {}

  void run() {
    formats();
    compression();
    delay();
  }

 private:
  void wrong(const std::vector<std::string>& paths, std::string message, std::string hint) {
    misfits_.wrong(paths, std::move(message), std::move(hint));
  }
  std::string seen(const std::string& path) const { return misfits_.seen(path); }

  void formats() {
    const TrainingOptions& o = in_.options;
    const CommunicationFormats& f = o.communication;
    const auto precision = training_precision(o.precision);
    const auto not_wider = [&](const char* key, std::optional<WireFormat> format, double as_is, const char* of) {
      if (format && wire_bytes(*format, 0) > as_is)
        wrong({"training.communication." + std::string(key)},
              std::string(key) + " " + std::string(to_string(*format)) + " is wider than " + of + ", of " +
                  format_count(as_is) + " bytes",
              as_is > 2 ? "leave it out, or use bf16, fp16 or fp8" : "leave it out, or use fp8");
    };
    if (precision) {
      const double w = precision->activation;
      not_wider("tp_gather", f.tp_gather, w, "an activation");
      not_wider("tp_reduce", f.tp_reduce, w, "an activation");
      not_wider("ep_dispatch", f.ep_dispatch, w, "an activation");
      not_wider("ep_combine", f.ep_combine, w, "an activation");
      not_wider("parameters", f.parameters, w, "a weight");
    }
    if (f.gradients && wire_bytes(*f.gradients, 0) > o.gradient_bytes)
      wrong({"training.communication.gradients"},
            "gradients " + std::string(to_string(*f.gradients)) + " is wider than they are kept, in " +
                std::to_string(o.gradient_bytes) + " bytes" + seen("training.gradient_bytes"),
            "leave it out, or use gradient_bytes: 4");
    if (f.gradients == WireFormat::fp8)
      wrong({"training.communication.gradients"}, "gradients are not summed in fp8",
            "expected bf16, fp16 or fp32; or gradient_compression with a ratio");
    if (f.scale_block < 1)
      wrong({"training.communication.scale_block"}, "scale_block is " + std::to_string(f.scale_block),
            "expected at least 1");
    for (const auto& [key, format] : {std::pair{"ep_dispatch", f.ep_dispatch}, {"ep_combine", f.ep_combine}})
      if (format && in_.model.experts.count == 0)
        wrong({"training.communication." + std::string(key), "model"},
              std::string(key) + " has no effect on a dense model", "leave it out");
    if (f.parameters && precision && (o.zero == 1 || o.zero == 2) && !products_read_gathered(in_) &&
        wire_bytes(*f.parameters, 0) < precision->activation)
      wrong({"training.communication.parameters", "training.precision"},
            "updated weights gathered in " + std::string(to_string(*f.parameters)) +
                " would stay so, and products in " + o.precision + seen("training.precision") + " do not read that",
            "use precision: fp8 with parameters: fp8, or zero: 3, which casts them back for each pass");
  }

  void compression() {
    const GradientCompression& c = in_.options.compression;
    const std::string at = "training.gradient_compression.";
    if (c.rank < 1) wrong({at + "rank"}, "rank is " + std::to_string(c.rank), "expected at least 1");
    if (!(c.min_rate >= 0)) wrong({at + "min_rate"}, "min_rate is " + format_count(c.min_rate), "expected at least 0");
    if (!(c.ratio >= 1))
      wrong({at + "ratio"}, "ratio is " + format_count(c.ratio), "expected at least 1: bytes kept over bytes sent");
    if (!(c.moved >= 0)) wrong({at + "moved"}, "moved is " + format_count(c.moved), "expected at least 0 bytes");
    if (c.method == CompressionMethod::none) return;
    const std::string method(to_string(c.method));
    const int most = c.method == CompressionMethod::powersgd ? 0 : 1;
    if (in_.options.zero > most)
      wrong({at + "method", "training.gradient_compression", "training.zero"},
            "compression " + method + " is of gradients that are whole on each rank" +
                (most == 0 ? " and all-reduced" : " for the step") + "; zero is " + std::to_string(in_.options.zero) +
                seen("training.zero"),
            most == 0 ? "use zero 0, as DDP's powerSGD_hook does" : "use zero 0 or 1");
  }

  void delay() {
    const TrainingOptions& o = in_.options;
    if (!o.delayed_all_reduce) return;
    const std::vector<std::string> here{"training.delayed_all_reduce", "training"};
    if (o.zero >= 2)
      wrong(here,
            "delayed_all_reduce needs gradients that are whole on each rank; zero " + std::to_string(o.zero) +
                seen("training.zero") + " splits them after every micro-batch",
            "use zero 0 or 1");
    if (!o.overlap_dp)
      wrong(here, "delayed_all_reduce hides gradients; overlap_dp false" + seen("training.overlap_dp") + " hides none",
            "leave out one of them");
  }

  Misfits& misfits_;
  const StepInputs& in_;
};

}  // namespace

void check_communication(Misfits& misfits) { CommunicationCheck(misfits).run(); }

}  // namespace collcast::workload
