#include "engine/describe.hpp"

#include <utility>
#include <variant>

namespace collcast::engine {

namespace {

std::string text(Rank rank) { return "rank " + std::to_string(rank.value()); }

std::string text(const Schedule& schedule, const Work& work) {
  if (const auto* compute = std::get_if<Compute>(&work)) return "compute of " + text(compute->rank);
  if (const auto* transfer = std::get_if<Transfer>(&work))
    return "transfer from " + text(transfer->from) + " to " + text(transfer->to);
  if (const auto* part = std::get_if<Part>(&work))
    return describe(schedule.exchanges()[part->exchange.value()].pattern, part->participant);
  return "delay";
}

}  // namespace

std::string describe(const Pattern& pattern, int participant) {
  return text(pattern.group[participant]) + "'s part of " + pattern.algorithm;
}

std::string describe(const Schedule& schedule, OpId op) {
  std::string name = "operation " + std::to_string(op.value());
  if (!schedule.name(op).empty()) name += " '" + std::string(schedule.name(op)) + "'";
  return name + " (" + text(schedule, schedule.work(op)) + ")";
}

Diagnostic simulation_error(std::string message, std::string hint) {
  return {{"simulation", 0, 0}, std::move(message), std::move(hint)};
}

}  // namespace collcast::engine
