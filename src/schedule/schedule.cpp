#include "collcast/schedule/schedule.hpp"

#include <array>
#include <limits>
#include <utility>

#include "collcast/base/check.hpp"

namespace collcast {

std::uint32_t Schedule::intern(const std::string& text) {
  if (text.empty()) return 0;
  const auto [entry, fresh] = string_ids_.try_emplace(text, static_cast<std::uint32_t>(strings_.size()));
  if (fresh) strings_.push_back(text);
  return entry->second;
}

void Schedule::reserve(std::size_t operations, std::size_t edges_each) {
  works_.reserve(operations);
  after_begin_.reserve(operations + 1);
  after_.reserve(operations * edges_each);
  op_stream_.reserve(operations);
  labels_.reserve(operations);
}

OpId Schedule::add(const Work& work, std::span<const After> after, const Label& label) {
  check(works_.size() < std::numeric_limits<std::uint32_t>::max(), "operations are numbered in 32 bits");
  const OpId id(static_cast<std::uint32_t>(works_.size()));
  for (const After& edge : after) check(edge.op < id, "an operation waits only for operations that exist");
  after_.insert(after_.end(), after.begin(), after.end());
  check(after_.size() <= std::numeric_limits<std::uint32_t>::max(), "order edges are numbered in 32 bits");
  after_begin_.push_back(static_cast<std::uint32_t>(after_.size()));
  op_stream_.push_back(-1);
  labels_.push_back({intern(label.name), intern(label.category)});
  works_.push_back(work);
  return id;
}

OpId Schedule::add(StreamId stream, const Work& work, std::span<const After> after, const Label& label) {
  check(stream.value() < streams_.size(), "a stream is added before it is used");
  const OpId id = add(work, after, label);
  std::int64_t& last = stream_last_[stream.value()];
  if (last >= 0) {
    after_.push_back({OpId(static_cast<std::uint32_t>(last))});
    after_begin_.back() = static_cast<std::uint32_t>(after_.size());
  }
  last = id.value();
  op_stream_.back() = static_cast<std::int32_t>(stream.value());
  return id;
}

StreamId Schedule::add_stream(Stream stream) {
  streams_.push_back(std::move(stream));
  stream_last_.push_back(-1);
  return StreamId(static_cast<std::uint32_t>(streams_.size() - 1));
}

OpId Schedule::add_exchange(Pattern pattern, std::span<const OpId> ready, TrafficClass traffic, const Label& label) {
  const int size = pattern.size();
  check(ready.empty() || static_cast<int>(ready.size()) == size,
        "an exchange names one ready operation per participant");
  const ExchangeId exchange(static_cast<std::uint32_t>(exchanges_.size()));
  const OpId first(static_cast<std::uint32_t>(works_.size()));
  for (int i = 0; i < size; ++i) {
    std::array<After, 1> after{};
    if (!ready.empty()) after[0].op = ready[static_cast<std::size_t>(i)];
    add(Part{exchange, i}, std::span<const After>(after).first(ready.empty() ? 0 : 1), label);
  }
  exchanges_.push_back({std::move(pattern), traffic, first});
  return first;
}

std::span<const After> Schedule::after(OpId op) const {
  const std::uint32_t begin = after_begin_[op.value()];
  return std::span<const After>(after_).subspan(begin, after_begin_[op.value() + 1] - begin);
}

std::optional<StreamId> Schedule::stream(OpId op) const {
  const std::int32_t stream = op_stream_[op.value()];
  if (stream < 0) return std::nullopt;
  return StreamId(static_cast<std::uint32_t>(stream));
}

}  // namespace collcast
