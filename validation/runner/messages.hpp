// What a rank tells the process that launched it, as bytes on a pipe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "collcast/runner/runner.hpp"

namespace collcast::runner {

struct Began {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes size{};
};
struct Noted {
  std::string text;
};
using Message = std::variant<MeasuredSystem, Began, MeasuredRow, Noted, MeasureOutcome>;

std::string encode(const Message&);
/// Nothing where the bytes are no message.
std::optional<Message> decode(std::string_view);

}  // namespace collcast::runner
