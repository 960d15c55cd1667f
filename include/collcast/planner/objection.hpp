// What there is against a layout: why a search counts it as rejected.
#pragma once

#include <compare>
#include <string>
#include <utility>

namespace collcast {

enum class ObjectionKind {
  // To the degrees, the batch and its micro-batches: these need no numbers to be understood.
  degrees_do_not_divide,
  degrees_with_cp_do_not_divide,
  degrees_are_not_gpus,
  batch_does_not_divide,
  half_from_either_end,
  micro_batches_go_round,
  server_batch_does_not_divide,
  too_many_sequences,
  // To the memory that it takes, in training and of a server.
  state_does_not_fit,
  activations_do_not_fit,
  update_does_not_fit,
  runtime_does_not_fit,
  weights_do_not_fit,
  cache_does_not_fit,
  passes_do_not_fit,
  server_runtime_does_not_fit,
  memory_beyond_count,
  // In words of its own.
  misfit,  ///< values that do not go together (check_step)
  limit,   ///< one of a server's limits, broken
  no_cost  ///< what its forecast failed of
};

/// Of the last three in general; of the others all that there is to say.
std::string to_string(ObjectionKind);
constexpr bool has_own_words(ObjectionKind kind) { return kind >= ObjectionKind::misfit; }

class Objection {
 public:
  Objection(ObjectionKind kind) : kind_(kind) {}
  Objection(ObjectionKind kind, std::string own) : kind_(kind), own_(std::move(own)) {}

  ObjectionKind kind() const { return kind_; }
  std::string words() const { return has_own_words(kind_) ? own_ : to_string(kind_); }
  auto operator<=>(const Objection&) const = default;

 private:
  ObjectionKind kind_;
  std::string own_;  ///< of a kind that has them
};

}  // namespace collcast
