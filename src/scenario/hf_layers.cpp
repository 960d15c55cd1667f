#include "scenario/hf_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "scenario/parse.hpp"

namespace collcast::input {

namespace {

/// The layers that `layer_types` says see all tokens, as a pattern where there is one.
void put_types(const std::vector<std::string>& types, SlidingWindow& window) {
  std::vector<int> full;
  for (std::size_t i = 0; i < types.size(); ++i)
    if (types[i] != "sliding_attention") full.push_back(static_cast<int>(i));
  if (full.size() == types.size()) window.tokens = 0;
  if (full.empty() || window.tokens == 0) return;
  const auto every = static_cast<std::size_t>(full.front()) + 1;
  bool pattern = full.size() == types.size() / every;
  for (std::size_t i = 0; i < full.size() && pattern; ++i)
    pattern = static_cast<std::size_t>(full[i]) + 1 == (i + 1) * every;
  if (pattern)
    window.full_every = static_cast<int>(every);
  else
    window.full_at = full;
}

}  // namespace

void read_windows(Reader& reader, Object& o, const Windows& windows, TransformerConfig& m) {
  if (!windows.any) return;
  SlidingWindow w;
  w.tokens = o.node().find("sliding_window") == nullptr ? windows.tokens : 0;
  // These are near each other, and an absent one is no slip of another.
  o.allow({"sliding_window", "use_sliding_window", "sliding_window_pattern", "_sliding_window_pattern",
           "max_window_layers", "layer_types"});
  bool asked = !windows.asked;
  int first = 28;
  std::vector<std::string> types;
  o.optional("sliding_window", w.tokens, AsCount{});
  o.optional("use_sliding_window", asked, AsTruth{});
  if (windows.asked) {
    o.optional("max_window_layers", first, AsCount{0, max_count});
    w.full_first = first;
  }
  const bool typed = o.optional("layer_types", types, AsList<AsText, std::string>{{}});
  int every = windows.full_every;
  for (const char* key : {"sliding_window_pattern", "_sliding_window_pattern"})
    if (windows.full_every > 0) o.optional(key, every, AsCount{});
  if (!asked || w.tokens == 0 || w.full_first >= std::max(m.layers, 1)) return;
  w.full_every = every;
  if (typed) {
    const Node& at = *o.node().find("layer_types");
    if (reader.ok() && static_cast<int>(types.size()) != m.layers)
      reader.error({at.at.location(),
                    fmt::format("layer_types names {} layers, num_hidden_layers {}", types.size(), m.layers),
                    "expected one word for each layer"});
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (types[i] == "sliding_attention" || types[i] == "full_attention") continue;
      reader.warn({at.items[i].at.location(), fmt::format("'{}' is not modelled", shown(types[i])),
                   "the layer is taken as one whose queries meet all keys"});
      break;
    }
    w.full_first = w.full_every = 0;
    put_types(types, w);
  }
  if (w.tokens > 0) m.window = w;
}

}  // namespace collcast::input
