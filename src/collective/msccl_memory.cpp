#include "collective/msccl_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace collcast::msccl {

std::string_view to_string(Buffer buffer) {
  constexpr std::array<std::string_view, 3> words{"input", "output", "scratch"};
  return words[static_cast<std::size_t>(buffer)];
}

Layout::Layout(const Algorithm& algorithm, int root)
    : kind_(algorithm.kind),
      ranks_(static_cast<int>(algorithm.gpus.size())),
      root_(root),
      chunks_(algorithm.chunks),
      in_place_(algorithm.in_place) {}

int Layout::parts() const {
  using enum CollectiveKind;
  return kind_ == broadcast || kind_ == reduce || kind_ == all_reduce ? 1 : ranks_;
}

std::string Layout::wrong() const {
  if (chunks_ % parts() == 0) return {};
  return fmt::format("{} chunks are no multiple of the {} parts that {} has", chunks_, parts(),
                     collcast::to_string(kind_));
}

int Layout::inputs(int rank) const {
  using enum CollectiveKind;
  if (kind_ == all_gather || kind_ == gather) return each();
  return (kind_ == broadcast || kind_ == scatter) && rank != root_ ? 0 : chunks_;
}

int Layout::outputs(int rank) const {
  using enum CollectiveKind;
  if (kind_ == reduce_scatter || kind_ == scatter) return each();
  return (kind_ == reduce || kind_ == gather) && rank != root_ ? 0 : chunks_;
}

std::optional<int> Layout::input_in_output(int rank) const {
  using enum CollectiveKind;
  if (!in_place_) return std::nullopt;
  if ((kind_ == gather || kind_ == scatter) && rank != root_) return std::nullopt;
  if (kind_ == all_gather || kind_ == gather) return rank * each();
  if (kind_ == reduce_scatter || kind_ == scatter) return -rank * each();
  return 0;
}

Contributions Layout::due(int rank, int chunk) const {
  using enum CollectiveKind;
  const auto one = [&](int from, int at) { return Contributions::of(contribution(from, at)); };
  const auto sum = [&](int at) {
    Contributions out;
    for (int from = 0; from < ranks_; ++from) out.merge(one(from, at));
    return out;
  };
  switch (kind_) {
    case broadcast:
      return one(root_, chunk);
    case all_gather:
    case gather:
      return one(chunk / each(), chunk % each());
    case scatter:
      return one(root_, rank * each() + chunk);
    case reduce_scatter:
      return sum(rank * each() + chunk);
    case alltoall:
      return one(chunk / each(), rank * each() + chunk % each());
    default:
      return sum(chunk);
  }
}

Memory::Memory(const Gpu& gpu, const Layout& layout, int rank)
    : lengths_{std::max(gpu.input, layout.inputs(rank)), std::max(gpu.output, layout.outputs(rank)), gpu.scratch} {
  const std::optional<int> overlap = layout.input_in_output(rank);
  const int input_begin = overlap ? std::max(0, *overlap) : 0;
  const int output_begin = overlap ? std::max(0, -*overlap) : lengths_[0];
  const int end = std::max(input_begin + lengths_[0], output_begin + lengths_[1]);
  begins_ = {input_begin, output_begin, end};
  cells_.resize(static_cast<std::size_t>(end) + static_cast<std::size_t>(lengths_[2]));
  for (int i = 0; i < layout.inputs(rank); ++i)
    at({Buffer::input, i}).value = Contributions::of(layout.contribution(rank, i));
}

}  // namespace collcast::msccl
