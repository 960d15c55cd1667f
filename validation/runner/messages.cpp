#include "runner/messages.hpp"

#include <fmt/format.h>

#include <cstring>

#include "runner/frames.hpp"

namespace collcast::runner {

namespace {

/// Appends fields; both ends are the same program, so numbers are bytes as they are.
class Writer {
 public:
  explicit Writer(std::size_t what) { number(what); }
  template <class T>
  Writer& number(T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    pack(out_, {bytes, sizeof bytes});
    return *this;
  }
  Writer& text(std::string_view value) {
    pack(out_, value);
    return *this;
  }
  Writer& list(const std::vector<std::string>& values) {
    number(values.size());
    for (const std::string& value : values) text(value);
    return *this;
  }
  std::string result() { return std::move(out_); }

 private:
  std::string out_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  template <class T>
  T number() {
    const std::string bytes = unpack(rest_);
    T value{};
    good_ = good_ && bytes.size() == sizeof value;
    if (good_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string text() { return unpack(rest_); }
  std::vector<std::string> list() {
    std::vector<std::string> out;
    for (auto left = number<std::size_t>(); good_ && left > 0 && !rest_.empty(); --left) out.push_back(text());
    return out;
  }
  Seconds seconds() { return Seconds(number<double>()); }
  bool good() const { return good_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

std::string put(Writer out, const MeasuredSystem& s) {
  return out.text(s.backend)
      .text(s.library_version)
      .text(s.device)
      .text(s.driver)
      .text(s.nccl_version)
      .number(s.gpu)
      .number(s.nodes)
      .number(s.ranks_per_node)
      .list(s.notes)
      .result();
}
std::string put(Writer out, const Began& b) { return out.number(b.kind).number(b.size.value()).result(); }
std::string put(Writer out, const MeasuredRow& r) {
  return out.number(r.kind)
      .text(r.algorithm)
      .number(r.size.value())
      .number(r.in_place)
      .number(r.repetitions)
      .number(r.mean.count())
      .number(r.least.count())
      .number(r.median.count())
      .number(r.p95.count())
      .number(r.most.count())
      .number(r.device.has_value())
      .number(r.device.value_or(Seconds()).count())
      .result();
}
std::string put(Writer out, const Noted& n) { return out.text(n.text).result(); }
std::string put(Writer out, const MeasureOutcome& o) {
  return out.number(o.ending).list(o.problems).number(o.signal).result();
}

MeasuredSystem get_system(Reader& in) {
  MeasuredSystem s;
  s.backend = in.text();
  s.library_version = in.text();
  s.device = in.text();
  s.driver = in.text();
  s.nccl_version = in.text();
  s.gpu = in.number<bool>();
  s.nodes = in.number<int>();
  s.ranks_per_node = in.number<int>();
  s.notes = in.list();
  return s;
}
Began get_began(Reader& in) {
  const auto kind = in.number<CollectiveKind>();
  return {kind, Bytes(in.number<std::int64_t>())};
}
MeasuredRow get_row(Reader& in) {
  MeasuredRow r;
  r.kind = in.number<CollectiveKind>();
  r.algorithm = in.text();
  r.size = Bytes(in.number<std::int64_t>());
  r.in_place = in.number<bool>();
  r.repetitions = in.number<int>();
  r.mean = in.seconds();
  r.least = in.seconds();
  r.median = in.seconds();
  r.p95 = in.seconds();
  r.most = in.seconds();
  const bool timed = in.number<bool>();
  const Seconds device = in.seconds();
  if (timed) r.device = device;
  return r;
}
MeasureOutcome get_outcome(Reader& in) {
  MeasureOutcome o;
  o.ending = in.number<Ending>();
  o.problems = in.list();
  o.signal = in.number<int>();
  return o;
}

}  // namespace

std::string encode(const Message& message) {
  return std::visit([&](const auto& m) { return put(Writer(message.index()), m); }, message);
}

std::optional<Message> decode(std::string_view bytes) {
  Reader in(bytes);
  Message out;
  switch (in.number<std::size_t>()) {
    case 0:
      out = get_system(in);
      break;
    case 1:
      out = get_began(in);
      break;
    case 2:
      out = get_row(in);
      break;
    case 3:
      out = Noted{in.text()};
      break;
    case 4:
      out = get_outcome(in);
      break;
    default:
      return std::nullopt;
  }
  return in.good() ? std::optional(out) : std::nullopt;
}

}  // namespace collcast::runner
