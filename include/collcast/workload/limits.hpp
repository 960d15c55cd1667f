// What a model and a batch have at the most, wherever they are said: in files, by options, by a program's own values.
#pragma once

namespace collcast {

/// Of a model, and so of what is said of its layers one by one: chunks of a stage, layers in bf16.
inline constexpr int most_layers = 10'000;
/// That one pass takes: a micro-batch's, a server's batch.
inline constexpr int most_sequences = 100'000;

}  // namespace collcast
