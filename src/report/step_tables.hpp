// Tables that the pages of training steps and of servers share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collcast/report/documents.hpp"

namespace collcast {

inline constexpr const char* nccl_in_steps =
    "library nccl: collectives take the time of NCCL's closed form, in the simulated timeline too; groups at once "
    "share a node's NICs evenly, and are not in each other's way inside a node (docs/nccl.md).";

/// "12.3%"; "-" of nothing.
std::string percent_of(double part, double whole);
/// A part of a whole as a bar of characters.
std::string bar(double part, double whole);
bool nccl_collectives(const StepReport& report);
/// "linear attention", "Mamba-2"; "experts", "an MLP" alone.
const char* linear_text(const TransformerConfig&);
/// ", with 1 layer of multi-token prediction", or nothing.
std::string further_tokens_text(const TransformerConfig&);
const char* feed_forward_text(const TransformerConfig&);
/// Of the layer that is shown for all: where some attend to all tokens and others do not, one of those.
std::string layer_title(const StepInputs& in);
/// ", of the stage with the most work (stage 3)" where there is more than one.
std::string of_stage(const StepReport& report);
Table memory_table(const MemoryUse& m);
Table collectives_table(const StepReport& report, const std::vector<CollectiveCost>& collectives, const char* per);
/// What is not known of a model's layers: a note of the page. Nothing: all kinds of its kernels were measured.
std::optional<std::string> unmeasured_text(const StepInputs&);
Table operations_table(const StepInputs& in, const LayerOperations& operations);
void append_operations(Table& out, const char* pass, const std::vector<Operation>& operations);

/// Where collectives' prices are from, and how far they may be off.
void add_price_notes(Page& out, const StepReport& report);
/// "a run of 640 requests by 64 clients at once, ...", of a server with a load.
std::string load_text(const Serving& s);
/// ", of 80% of these lengths and more, at most 8192 tokens in a pass"
std::string load_terms_text(const RequestLoad&);
/// "3 tokens drafted by mtp for a pass, which brings 2.95", of a server with speculative decoding.
std::string speculation_text(const Serving& s);
/// What a server's page says behind its title: step_server_page.cpp.
void add_serving(Page& out, const StepReport& report);

}  // namespace collcast
