// `faults:` of a scenario and --fault of the command line: GPUs that compute slowly or unevenly, links that are slow or
// gone.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "collcast/base/units.hpp"
#include "scenario/files.hpp"
#include "scenario/parse.hpp"

namespace collcast::input {

namespace {

constexpr int most_faults = 1'000;

/// What is left of a bandwidth, as a share or as a rate.
struct AsLeft {
  static constexpr Holds holds = Holds::bandwidth;
  bool operator()(Reader& reader, const Node& node, const std::string& path, LinkFault& out) const {
    if (node.kind == Node::Kind::scalar && node.text.ends_with('%')) return AsPercent{}(reader, node, path, out.share);
    Bandwidth rate;
    if (!AsBandwidth{}(reader, node, path, rate)) return false;
    out.bandwidth = rate;
    return true;
  }
  std::string expected() const { return AsBandwidth{}.expected() + ", or a share such as 40%"; }
};

/// "12", "8-15", and of GPUs "all".
struct AsGpus {
  static constexpr Holds holds = Holds::count;
  bool of_nodes = false;
  bool operator()(Reader& reader, const Node& node, const std::string& path, Gpus& out) const {
    const bool scalar = node.kind == Node::Kind::scalar;
    if (scalar && !of_nodes && node.text == "all") {
      out = Gpus::all();
      return true;
    }
    const auto count = [&](const char* from, const char* to) {
      int value = -1;
      const auto [stop, error] = std::from_chars(from, to, value);
      return error == std::errc{} && stop == to && value >= 0 && value <= max_count && *from != '-' ? value : -1;
    };
    const char* const begin = node.text.data();
    const char* const end = begin + node.text.size();
    const char* const dash = std::find(begin, end, '-');
    // A range is text, quoted or not; a number is not.
    const bool is_range = scalar && dash != end;
    const int first = is_range || (scalar && !node.quoted) ? count(begin, dash) : -1;
    const int last = is_range ? count(dash + 1, end) : first;
    if (first < 0 || last < first) {
      mismatch(reader, node, path, expected());
      return false;
    }
    out = {first, last, of_nodes};
    return true;
  }
  std::string expected() const {
    return fmt::format("a whole number from 0 to {}, or a range such as 8-15{}", max_count, of_nodes ? "" : ", or all");
  }
};

/// As AsPercent, and nothing too.
struct AsSpread {
  static constexpr Holds holds = Holds::percent;
  bool operator()(Reader& reader, const Node& node, const std::string& path, double& out) const {
    const Parsed<double> share = parse_percent(node.kind == Node::Kind::scalar ? node.text : "");
    if (share.ok && share.value >= 0 && share.value <= 1) {
      out = share.value;
      return true;
    }
    mismatch(reader, node, path, expected() + ", from 0% to 100%");
    return false;
  }
  std::string expected() const { return AsPercent{}.expected(); }
};

template <class Fault>
void read_jitter(Object& o, Fault& fault) {
  Jitter jitter;
  o.optional("jitter", jitter.spread, AsSpread{});
  if (o.has("jitter")) {
    o.optional("distribution", jitter.shape,
               as_word<JitterShape>({JitterShape::lognormal, JitterShape::normal, JitterShape::exponential}));
    o.optional("seed", jitter.seed, AsCount{0, max_count});
    fault.jitter = jitter;
    return;
  }
  for (const char* key : {"distribution", "seed"}) o.refuse(key, "there is no 'jitter' to draw");
}

MachineFault read_slow_gpu(Object& o, const char* of) {
  GpuFault fault;
  o.optional(of, fault.gpus, AsGpus{std::string_view(of) == "node"});
  read_jitter(o, fault);
  if (fault.jitter)
    o.optional("compute", fault.compute, AsPercent{});
  else
    o.required("compute", fault.compute, AsPercent{});
  for (const char* key : {"bandwidth", "added_latency", "failed"}) o.refuse(key, "a GPU computes", of);
  return {fault, {}};
}

MachineFault read_bad_link(Reader& reader, Object& o) {
  LinkFault fault;
  o.optional("link", fault.link, AsText{});
  const bool slow = o.has("bandwidth") || o.has("added_latency") || o.has("jitter");
  o.optional("failed", fault.failed, AsTruth{});
  if (fault.failed) {
    for (const char* key : {"bandwidth", "added_latency", "jitter", "distribution", "seed"})
      o.refuse(key, "the link has failed", "failed");
  } else {
    LinkFault left;
    if (o.optional("bandwidth", left, AsLeft{})) {
      fault.share = left.share;
      fault.bandwidth = left.bandwidth;
    }
    o.optional("added_latency", fault.added_latency, AsTime{});
    read_jitter(o, fault);
  }
  o.refuse("compute", "a link does not compute", "link");
  if (!slow && !fault.failed && (!o.has("failed") || reader.good(o.path_of("failed"))))
    reader.error(o.node().at, fmt::format("{} says nothing about '{}'", o.path_of("link"), fault.link),
                 "expected 'bandwidth', 'added_latency', 'jitter' or 'failed: true'");
  return {fault, {}};
}

/// When it begins and ends.
void read_times(Reader& reader, Object& o, MachineFault& fault) {
  const bool from = o.optional("from", fault.from, AsTime{});
  Seconds until;
  const bool has_until = o.optional("until", until, AsTime{});
  const auto place = [&](const char* key) { return o.node().find(key)->at; };
  if (from) fault.from_where = place("from").location();
  if (!has_until) return;
  fault.until = until;
  fault.until_where = place("until").location();
  const bool from_is_wrong = o.has("from") && !from;
  if (!from_is_wrong && until <= fault.from)
    reader.error(place("until"),
                 fmt::format("{} is {}, and the fault begins at {}", o.path_of("until"), format_seconds(until),
                             format_seconds(fault.from)),
                 "expected a later time; a fault that never holds can be left out");
}

}  // namespace

MachineFault read_fault(Reader& reader, const Node& node, const std::string& path) {
  Object o(reader, node, path);
  MachineFault fault{GpuFault{}, node.at.location()};
  if (node.kind != Node::Kind::map) return fault;
  std::vector<const char*> of;
  for (const char* key : {"gpu", "node", "link"})
    if (o.has(key)) of.push_back(key);
  if (of.size() != 1) {
    for (std::size_t i = 1; i < of.size(); ++i)
      o.refuse(of[i], "a fault is of GPUs, of nodes or of a link", of.front());
    o.allow({"gpu", "node", "link", "compute", "jitter", "distribution", "seed", "bandwidth", "added_latency", "failed",
             "from", "until"});
    o.finish();
    if (of.empty()) reader.error(node.at, fmt::format("{} is of nothing", path), "expected 'gpu', 'node' or 'link'");
    return fault;
  }
  fault = std::string_view(of.front()) == "link" ? read_bad_link(reader, o) : read_slow_gpu(o, of.front());
  fault.where = node.find(of.front())->at.location();
  read_times(reader, o, fault);
  o.finish();
  return fault;
}

std::vector<MachineFault> read_faults(Reader& reader, const Node& list) {
  std::vector<MachineFault> faults;
  if (!expect_list(reader, list, "faults", most_faults)) return faults;
  for (std::size_t i = 0; i < list.items.size(); ++i)
    faults.push_back(read_fault(reader, list.items[i], fmt::format("faults.{}", i)));
  return faults;
}

namespace {

/// As one map, which braces stand around or not.
Result<Setting> fault_setting(const std::string& text) {
  constexpr std::string_view option = "--fault ";
  const std::string typed = std::string(option) + shown(text);
  const int column = static_cast<int>(option.size()) + 1;
  const bool is_braced = text.find_first_not_of(' ') != std::string::npos && text[text.find_first_not_of(' ')] == '{';
  const Location at{typed, 1, column};
  Result<std::vector<Setting>> one = to_settings(
      {{"fault", is_braced ? text : "{" + text + "}", at, is_braced ? at : Location{typed, 1, column - 1}}});
  if (!one) return one.errors();
  return one->front();
}

}  // namespace

std::vector<Node> fault_nodes(const std::vector<std::string>& texts, Diagnostics& errors) {
  std::vector<Node> nodes;
  for (const std::string& text : texts) {
    const Result<Setting> one = fault_setting(text);
    append(errors, one.errors());
    if (one) nodes.push_back(one->value);
  }
  return nodes;
}

}  // namespace collcast::input

namespace collcast {

Result<std::vector<MachineFault>> parse_faults(const std::vector<std::string>& texts) {
  Diagnostics errors;
  const std::vector<input::Node> nodes = input::fault_nodes(texts, errors);
  input::Reader reader;
  reader.error(errors);
  std::vector<MachineFault> faults;
  for (const input::Node& node : nodes) faults.push_back(input::read_fault(reader, node, "fault"));
  reader.finish();
  if (!reader.ok()) return reader.take();
  return faults;
}

}  // namespace collcast
