// What a pass waits for beside its kernels: launches of the host, and activations on their way to its memory and back;
// and what an update waits for: states of the optimizer that are there.
#include <fmt/format.h>

#include "collcast/base/units.hpp"
#include "report/explain.hpp"
#include "report/host_waits.hpp"

namespace collcast {

std::string waits_for_host(const StepInputs& in, Seconds waits) {
  if (!(waits > Seconds{})) return {};
  const bool launches = has_launches(in);
  const bool copies = in.options.cpu_offloading_num_layers > 0;
  return fmt::format(", and {} that they wait for {}", format_seconds(waits),
                     launches && copies ? "their launches and the copies"
                     : launches         ? "their launches"
                                        : "the copies");
}

std::optional<std::string> copies_text(const StepInputs& in) {
  if (in.kernels.host_copies_source.empty()) return {};
  return fmt::format("copies have {} of the line rate of the way to the host ('host_copies'): {}",
                     in.kernels.host_copies, in.kernels.host_copies_source);
}

Term copies_term(const StepInputs& in) {
  const OffloadingTerms of = offloading_terms(in);
  return {
      "copies of a micro-batch, each way",
      fmt::format("activations of the first {} layers / (rate of the way to the host x host_copies)", of.layers),
      fmt::format("{} / ({} x {})", format_bytes(of.copied), format_bandwidth(in.host_bandwidth),
                  in.kernels.host_copies),
      of.each_way().count(),
      "s",
      fmt::format("beside the layers: a pass of each takes at least 1/{} of it, and of the pass itself", of.of_layers)};
}

std::optional<Section> state_copies_section(const StepInputs& in, int stage, double pace) {
  const StateCopies of = state_copies(in, stage, pace);
  if (of.chunks == 0) return {};
  Section out;
  out.title = "optimizer states that come from the host's memory for the update, and go back";
  if (const auto text = copies_text(in)) out.text.push_back(remark(*text));
  const auto copied = [&](const char* name, const char* what, Volume bytes, int pieces, Seconds time) {
    if (!(bytes > Volume{})) return;
    const std::string over = pieces > 1 ? fmt::format(" / {}", pieces) : std::string();
    out.terms.push_back(
        {name, fmt::format("{}{} / (rate of the way to the host x host_copies)", what, pieces > 1 ? " / chunks" : ""),
         fmt::format("{}{} / ({} x {})", format_bytes(bytes), over, format_bandwidth(in.host_bandwidth),
                     in.kernels.host_copies),
         time.count(), "s", "each way, both at once"});
  };
  copied("fp32 parameters from the host", "what of them is there", of.parameters, 1, of.parameters_time());
  copied(of.chunks > 1 ? "a chunk of moments" : "moments from the host", "moments there", of.moments, of.chunks,
         of.chunk_time());
  if (of.chunks > 1)
    out.terms.push_back({"kernels of a chunk",
                         {},
                         {},
                         of.chunk.count(),
                         "s",
                         "two chunks in a row take 2 copies and one's kernels, or both's kernels if that is more"});
  out.terms.push_back({"wait for states from the host", "until all is updated - norm - kernels",
                       fmt::format("{} - {} - {}", precise(of.updated()), precise(of.norm),
                                   precise(of.resident + of.chunks * of.chunk)),
                       of.wait().count(), "s",
                       "a part of 'optimizer'; formulas: docs/steps.md#optimizer-states-in-the-hosts-memory"});
  return out;
}

}  // namespace collcast
