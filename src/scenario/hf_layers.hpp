// What sets some layers of a Hugging Face config.json apart from others.
#pragma once

#include "collcast/workload/config.hpp"
#include "scenario/reader.hpp"

namespace collcast::input {

/// Which layers of an architecture see the last `sliding_window` tokens only, as transformers' configurations say where
/// the file has no `layer_types`.
struct Windows {
  int tokens = 0;      ///< where the file leaves them out; a null says that there are none
  int full_every = 0;  ///< of so many layers the last sees all tokens; 0: none does
  bool asked = false;  ///< only with `use_sliding_window`, and from layer `max_window_layers` on (Qwen)
  bool any = false;    ///< the architecture may have windows
};
/// Linear attention of Qwen3-Next and Qwen3.5, and the gate of their attention.
void read_linear_attention(Reader&, Object&, TransformerConfig&);
/// Layers of Nemotron-H and Nemotron 3, each of Mamba-2, attention, an MLP or experts alone, and the sizes of these.
void read_hybrid_layers(Reader&, Object&, TransformerConfig&);
/// Llama 4's attention within chunks, taken as a sliding window as long as one, which is for others to warn
/// of; the other layers attend to all tokens.
void read_chunks(Reader&, Object&, TransformerConfig&);
/// Sliding windows, where the architecture has them.
void read_windows(Reader&, Object&, const Windows&, TransformerConfig&);

}  // namespace collcast::input
