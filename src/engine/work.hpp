// What a run asks of the two things that it is made of: how links are shared, and what is to be done.
//
// The flags say what else one offers. A sharing of links that `pools` lets a flow go on to its next message on the
// links that it has; one that `knows_apart` wants connections marked that share no link with another. Work that
// `repeats` has messages that are not walked; what it holds to be over may be put off if it `slows`; its flows go from
// one operation to the next if it `chains`.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "collcast/engine/engine.hpp"
#include "engine/agenda.hpp"
#include "engine/connections.hpp"
#include "engine/exchanges.hpp"

namespace collcast::engine {

template <class L>
concept GivesLinks = requires(L& links, const L& given, std::uint32_t flow, std::size_t link) {
  { L::knows_apart } -> std::convertible_to<bool>;
  { L::pools } -> std::convertible_to<bool>;
  links.stop(flow);
  links.settle();
  { given.busy(link) } -> std::same_as<Ticks>;
  { given.rate_updates() } -> std::same_as<std::int64_t>;
};
template <class L>
concept LetsGoOn = requires(L& links, const L& given, std::uint32_t flow) {
  { given.may_go_on(flow) } -> std::same_as<bool>;
  links.go_on(flow);
};
template <class L>
concept LetsGoOnIfItPools = !L::pools || LetsGoOn<L>;
template <class L>
concept SharesLinks = GivesLinks<L> && LetsGoOnIfItPools<L>;

template <class W>
concept GoesOnWhenTold = requires(W& work, const W& given, std::uint32_t index) {
  typename W::Input;
  { W::repeats } -> std::convertible_to<bool>;
  { W::slows } -> std::convertible_to<bool>;
  { W::chains } -> std::convertible_to<bool>;
  { W::unmatched } -> std::convertible_to<std::string>;
  work.begin();
  work.ready(index);
  work.left(index);
  work.finished(index);
  { given.all_finished() } -> std::same_as<bool>;
  { given.describe(index) } -> std::same_as<std::string>;
  { given.left_over() } -> std::same_as<std::string>;
  { work.output() } -> std::same_as<typename W::Output>;
};
template <class W>
concept Repeating = requires(W& work, const W& given, const Fabric& fabric, std::span<LinkUse> links,
                             std::function<Ticks(std::size_t)> busy) {
  work.repeat(fabric, busy);
  { work.begin_held() } -> std::same_as<bool>;
  { given.repeated() } -> std::same_as<std::int64_t>;
  given.add_repeated(links);
};
template <class W>
concept Slowing = requires(const W& given, std::uint32_t index, std::uint32_t version) {
  { given.is_outdated(index, version) } -> std::same_as<bool>;
};
template <class W>
concept Chaining = requires(W& work, const W& given, std::uint32_t flow, std::uint32_t next) {
  { W::none } -> std::convertible_to<std::uint32_t>;
  { given.next_on(flow) } -> std::same_as<std::uint32_t>;
  work.goes_on(flow, next);
};
template <class W>
concept RepeatsIfItSays = !W::repeats || Repeating<W>;
template <class W>
concept SlowsIfItSays = !W::slows || Slowing<W>;
template <class W>
concept ChainsIfItSays = !W::chains || Chaining<W>;
template <class W>
concept DoesWork = GoesOnWhenTold<W> && RepeatsIfItSays<W> && SlowsIfItSays<W> && ChainsIfItSays<W>;

/// What works have in common whose patterns are all that is done: no operations, and nothing from the flags.
class PatternsAlone {
 public:
  static constexpr bool repeats = false;
  static constexpr bool slows = false;
  static constexpr bool chains = false;
  static constexpr const char* unmatched = Exchanges::unmatched;

  /// Of operations, which there are none of.
  void ready(std::uint32_t /*op*/) {}
  void left(std::uint32_t /*flow*/) {}
};

}  // namespace collcast::engine
