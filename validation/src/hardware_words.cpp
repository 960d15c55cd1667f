#include "hardware_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <vector>

#include "collcast/base/words.hpp"
#include "values.hpp"

namespace collcast {

namespace {

bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

/// "8x400Gb/s" is 8, x, 400, gb, s, and "8xHDR" 8, x, hdr: numbers (with their point) and words, in small letters.
std::vector<std::string> tokens(std::string_view text) {
  const std::string small = lower(text);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < small.size();) {
    const std::size_t begin = i;
    if (digit(small[i])) {
      while (i < small.size() && (digit(small[i]) || (small[i] == '.' && i + 1 < small.size() && digit(small[i + 1]))))
        ++i;
    } else if (letter(small[i])) {
      const bool behind_number = begin > 0 && digit(small[begin - 1]);
      while (i < small.size() && letter(small[i])) ++i;
      if (behind_number && small[begin] == 'x' && i > begin + 1 && small.substr(begin, i - begin) != "xdr")
        i = begin + 1;
    } else {
      ++i;
      continue;
    }
    out.push_back(small.substr(begin, i - begin));
  }
  return out;
}

bool has(const std::vector<std::string>& all, std::string_view word) {
  return std::find(all.begin(), all.end(), word) != all.end();
}

/// The word, or its generation: "EFAv3" is efav, 3.
bool has_kind(const std::vector<std::string>& all, std::string_view word) {
  const std::string generation = std::string(word) + "v";
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] == word || (all[i] == generation && i + 1 < all.size() && read_whole(all[i + 1]))) return true;
  return false;
}

/// The whole number behind a word: 3 of "NVLink3", "NVLink 3" and "PCIe gen3".
int number_after(const std::vector<std::string>& all, std::string_view word) {
  for (std::size_t i = 0; i + 1 < all.size(); ++i)
    if (all[i] == word)
      if (const auto value = read_whole(all[i + 1])) return *value;
  return 0;
}

/// The same with "gen" between, of this word alone: the 4 of "NVLink gen4, PCIe gen5" is NVLink's.
int generation_of(const std::vector<std::string>& all, std::string_view word) {
  for (std::size_t i = 0; i + 2 < all.size(); ++i)
    if (all[i] == word && all[i + 1] == "gen")
      if (const auto value = read_whole(all[i + 2])) return *value;
  return 0;
}

/// "400Gb/s", "400G", "400 Gbps", "25GbE": bits; "50GB/s": bytes, told by the capital.
struct StatedRate {
  std::size_t at = 0;  ///< in the text
  int value = 0;
  double unit = 0;  ///< bytes per second
  Bandwidth rate() const { return Bandwidth(value * unit); }
};
std::vector<StatedRate> stated_rates(std::string_view text) {
  std::vector<StatedRate> out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!digit(text[i]) || (i > 0 && (digit(text[i - 1]) || text[i - 1] == '.'))) continue;
    std::size_t end = i;
    while (end < text.size() && (digit(text[end]) || text[end] == '.')) ++end;
    std::size_t unit = end;
    while (unit < text.size() && text[unit] == ' ') ++unit;
    if (unit >= text.size() || (text[unit] != 'G' && text[unit] != 'g')) continue;
    const std::string_view rest = text.substr(unit + 1);
    const auto value = read_whole(text.substr(i, end - i));
    if (!value || *value == 0) continue;
    const bool stops = rest.empty() || !letter(rest.front());
    if (rest.starts_with("B/s") || rest.starts_with("Bps"))
      out.push_back({i, *value, 1e9});
    else if (stops || rest.front() == 'b' || lower(rest).starts_with("be"))
      out.push_back({i, *value, 1e9 / 8});
  }
  return out;
}

/// Generations of adapters that are called by a name [InfiniBand Trade Association, roadmap; vendors' data sheets].
std::optional<Bandwidth> named_rate(const std::vector<std::string>& all) {
  struct Name {
    const char* word;
    int gigabits;
  };
  constexpr std::array names{Name{"fdr", 56}, Name{"edr", 100}, Name{"hdr", 200}, Name{"ndr", 400}, Name{"xdr", 800}};
  for (const Name& name : names) {
    const auto at = std::find(all.begin(), all.end(), name.word);
    if (at == all.end()) continue;
    // HDR100 and NDR200 are ports of half the lanes.
    const auto narrow = std::next(at) == all.end() ? std::nullopt : read_whole(*std::next(at));
    const bool half = narrow && *narrow * 2 == name.gigabits;
    return Bandwidth((half ? *narrow : name.gigabits) * 1e9 / 8);
  }
  if (number_after(all, "connectx") == 7 || number_after(all, "cx") == 7) return Bandwidth(400e9 / 8);
  if (number_after(all, "connectx") == 6 || number_after(all, "cx") == 6) return Bandwidth(200e9 / 8);
  if (number_after(all, "slingshot") == 11) return Bandwidth(200e9 / 8);
  return std::nullopt;
}

std::string kind_of(const std::vector<std::string>& all) {
  struct Word {
    const char *word, *kind;
  };
  // What is said of software goes before what is said of the wire: TCP over an InfiniBand adapter is TCP.
  constexpr std::array known{Word{"efa", "efa"},
                             Word{"tcpx", "tcpx"},
                             Word{"tcpxo", "tcpx"},
                             Word{"fastrak", "tcpx"},
                             Word{"slingshot", "slingshot"},
                             Word{"roce", "roce"},
                             Word{"tcp", "tcp"},
                             Word{"socket", "tcp"},
                             Word{"gvnic", "tcp"},
                             Word{"infiniband", "infiniband"},
                             Word{"ib", "infiniband"},
                             Word{"fdr", "infiniband"},
                             Word{"edr", "infiniband"},
                             Word{"hdr", "infiniband"},
                             Word{"ndr", "infiniband"},
                             Word{"xdr", "infiniband"},
                             Word{"ethernet", "ethernet"},
                             Word{"gbe", "ethernet"}};
  const auto no = std::find(all.begin(), all.end(), "no");
  const bool no_rdma = no != all.end() && std::next(no) != all.end() && *std::next(no) == "rdma";
  for (const Word& one : known)
    if (has_kind(all, one.word)) return no_rdma && std::string_view(one.kind) == "ethernet" ? "tcp" : one.kind;
  return {};
}

/// "8x" or "8 NICs", where it stands first. A number that belongs to a product's name or a slot counts none: the 7 of
/// "ConnectX-7 x8", the 4 of "PCIe gen 4 x16".
int number_of_nics(std::string_view text) {
  constexpr std::array of_products{"connectx", "cx", "bluefield", "slingshot", "mlx", "gen", "pcie"};
  const std::string small = lower(text);
  const auto word_at = [&](std::size_t begin) {
    std::size_t end = begin;
    while (end < small.size() && letter(small[end])) ++end;
    return small.substr(begin, end - begin);
  };
  for (std::size_t i = 0; i < small.size(); ++i) {
    if (!digit(small[i])) continue;
    std::size_t end = i;
    while (end < small.size() && digit(small[end])) ++end;
    const std::string_view number = std::string_view(small).substr(i, end - i);
    const bool stands_apart = i == 0 || (!letter(small[i - 1]) && small[i - 1] != '.' && small[i - 1] != '-');
    std::string before = small.substr(0, i);
    while (!before.empty() && before.back() == ' ') before.pop_back();
    before.erase(0, before.find_last_not_of("abcdefghijklmnopqrstuvwxyz") + 1);
    const bool of_product = std::find(of_products.begin(), of_products.end(), before) != of_products.end();
    std::size_t unit = end;
    while (unit < small.size() && small[unit] == ' ') ++unit;
    const std::string word = word_at(unit);
    const bool times = (word.starts_with("x") && word != "xdr") || word == "nic" || word == "nics";
    const auto count = read_whole(number);
    if (count && times && stands_apart && !of_product) return *count;
    i = end - 1;
  }
  return 0;
}

/// "dual 200GbE", "quad HDR"; not "dual-port ConnectX-7".
int number_in_words(const std::vector<std::string>& all) {
  struct Word {
    const char* word;
    int number;
  };
  constexpr std::array numbers{Word{"dual", 2}, Word{"two", 2}, Word{"quad", 4}, Word{"four", 4}, Word{"eight", 8}};
  constexpr std::array of_others{"port", "ports", "ported", "socket", "root", "rank", "plane"};
  for (std::size_t i = 0; i + 1 < all.size(); ++i)
    for (const Word& one : numbers)
      if (all[i] == one.word && std::find(of_others.begin(), of_others.end(), all[i + 1]) == of_others.end())
        return one.number;
  return 0;
}

/// "HDR100 x2": behind the name; x4, x8 and x16 may as well be lanes of its slot.
int number_behind(const std::vector<std::string>& all) {
  for (std::size_t i = 1; i + 1 < all.size() && all[i] != "pcie" && all[i] != "gen"; ++i) {
    if (all[i] != "x") continue;
    const auto count = read_whole(all[i + 1]);
    if (count && *count > 0 && *count < 16 && *count != 4 && *count != 8) return *count;
  }
  return 0;
}

/// "4x100" of "400 Gbps (4x100)": where it begins, and the two numbers. What a slot may have of lanes is no rate.
constexpr int most_lanes = 16;
struct NumberOfRates {
  std::size_t at = 0;
  int count = 0, each = 0;
  std::size_t each_at = 0;
};
std::vector<NumberOfRates> numbers_of_rates(std::string_view text) {
  std::vector<NumberOfRates> out;
  const auto end_of = [&](std::size_t at, auto is) {
    while (at < text.size() && is(text[at])) ++at;
    return at;
  };
  const auto blank = [](char c) { return c == ' '; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!digit(text[i]) || (i > 0 && (digit(text[i - 1]) || letter(text[i - 1]) || text[i - 1] == '.'))) continue;
    const std::size_t end = end_of(i, digit), times = end_of(end, blank);
    if (times >= text.size() || (text[times] != 'x' && text[times] != 'X')) continue;
    const std::size_t each = end_of(times + 1, blank);
    const auto count = read_whole(text.substr(i, end - i)),
               rate = read_whole(text.substr(each, end_of(each, digit) - each));
    if (count && rate && *count > 0 && *rate > most_lanes) out.push_back({i, *count, *rate, each});
  }
  return out;
}

/// Of all NICs together where that is said, by which one has its part; and whether it is not what their parts are.
void part_totals(std::string_view text, const std::vector<std::string>& all, NicWords& out) {
  const std::vector<StatedRate> rates = stated_rates(text);
  const std::vector<NumberOfRates> parts = numbers_of_rates(text);
  const bool says_total = has(all, "total") || has(all, "aggregate");
  const auto of_parts = [&](const StatedRate& one) {
    return std::any_of(parts.begin(), parts.end(), [&](const NumberOfRates& part) { return part.each_at == one.at; });
  };
  const auto whole = std::find_if(rates.begin(), rates.end(), [&](const StatedRate& one) {
    return !of_parts(one) && (says_total || (!parts.empty() && one.at < parts.front().at));
  });
  if (whole == rates.end()) return;
  if (parts.empty()) {
    if (out.count > 1) out.rate = whole->rate() * (1.0 / out.count);
    return;
  }
  const NumberOfRates& part = parts.front();
  const auto own = std::find_if(rates.begin(), rates.end(), [&](const StatedRate& r) { return r.at == part.each_at; });
  const double each = part.each * (own == rates.end() ? whole->unit : own->unit), said = whole->rate().value();
  out.count = part.count;
  out.rate = Bandwidth(each);
  const auto is = [said](double rate) { return std::abs(said / rate - 1) < 1e-3; };
  const auto gigabits = [](double rate) { return fmt::format("{:.4g} Gb/s", rate * 8 / 1e9); };
  if (!is(each) && !is(part.count * each))
    out.contradiction =
        fmt::format("{} of {} are {}, not {}", part.count, gigabits(each), gigabits(part.count * each), gigabits(said));
}

}  // namespace

NvlinkWords parse_nvlink(std::string_view text) {
  const std::vector<std::string> all = tokens(text);
  NvlinkWords out;
  const bool of_links = has(all, "nvlink") || has(all, "nvswitch");
  out.pcie_generation = of_links ? generation_of(all, "pcie") : number_after(all, "gen");
  const std::string small = lower(text);
  const bool bridge = has(all, "bridge") || has(all, "bridges") || has(all, "bridged");
  const bool without_bridge = bridge && (has(all, "no") || has(all, "not") || has(all, "without"));
  const bool none =
      has(all, "none") || without_bridge || small.find("without nvlink") != std::string::npos ||
      (small.find("no nvlink") != std::string::npos && small.find("no nvlink switch") == std::string::npos);
  if (none || (has(all, "pcie") && !has(all, "nvlink"))) {
    out.links = GpuLinks::pcie;
    return out;
  }
  out.generation = std::max(number_after(all, "nvlink"), generation_of(all, "nvlink"));
  const bool denied = small.find("no nvswitch") != std::string::npos || has(all, "mesh");
  const bool rack = has(all, "nvl") && number_after(all, "nvl") > 0;
  if (denied)
    out.links = GpuLinks::straight;
  else if (has(all, "nvswitch") || rack)
    out.links = GpuLinks::switched;
  else if (has(all, "nvlink"))
    out.links = GpuLinks::nvlink;
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i] == "links" || all[i] == "link")
      if (const auto count = read_whole(all[i - 1])) out.count = *count;
  out.per_pair = small.find("per pair") != std::string::npos;
  out.bridges = bridge;
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i] == "way")
      if (const auto together = read_whole(all[i - 1])) out.together = *together;
  if (out.together == 0 && (has(all, "pairs") || has(all, "pairwise"))) out.together = 2;
  if (const auto gb = small.find("gb/s"); gb != std::string::npos && small.find("/dir") != std::string::npos) {
    const std::size_t begin = small.find_last_not_of(" .0123456789", gb - 1);
    std::string number = small.substr(begin + 1, gb - begin - 1);
    std::erase(number, ' ');
    if (const auto value = read_whole(number)) out.per_gpu = Bandwidth(*value * 1e9);
  }
  // Of cards, too: bridges have links that are counted, and say no more of themselves.
  if (out.links == GpuLinks::unsaid && (out.count > 0 || out.per_gpu || out.bridges))
    out.links = out.per_pair ? GpuLinks::straight : GpuLinks::nvlink;
  return out;
}

std::optional<Bandwidth> nvlink_rate(int generation) {
  if (generation < 1 || generation > 5) return std::nullopt;
  return Bandwidth(generation == 1 ? 20e9 : generation == 5 ? 50e9 : 25e9);
}

std::optional<BridgedCard> bridged_card(const GpuName& gpu) {
  // TU102 and TU104: one or two x8 links, 50 GB/s both ways each
  // [techpowerup.com/review/nvidia-geforce-turing-geforce-rtx-architecture/14.html].
  constexpr double nvlink = 25e9;
  // GA102: four x4 links, 56.25 GB/s per direction together [NVIDIA Ampere GA102 GPU Architecture, "Third-Generation
  // NVLink"], the 112.5 both ways of RTX A6000 and A40
  // [servethehome.com/nvidia-rtx-a6000-48gb-gpu-drops-quadro-designation].
  constexpr double narrow = 14.0625e9;
  // A100 and H100: 600 both ways between two, by three bridges [NVIDIA A100 and H100 data sheets, PCIe and NVL
  // columns]. A800 and H800: 400, as their modules (hgx-a800, hgx-h800). A30: 200, H200 NVL: 900 [NVIDIA A30 and H200
  // data sheets].
  constexpr std::array cards{BridgedCard{"rtx2080ti", 2, nvlink, false},    BridgedCard{"rtx2080", 1, nvlink, false},
                             BridgedCard{"rtx2080super", 1, nvlink, false}, BridgedCard{"rtx3090", 4, narrow, false},
                             BridgedCard{"rtx3090ti", 4, narrow, false},    BridgedCard{"rtxa6000", 4, narrow, false},
                             BridgedCard{"a6000", 4, narrow, false},        BridgedCard{"rtxa5500", 4, narrow, false},
                             BridgedCard{"rtxa5000", 4, narrow, false},     BridgedCard{"rtxa4500", 4, narrow, false},
                             BridgedCard{"a40", 4, narrow, false},          BridgedCard{"a30", 4, nvlink, false},
                             BridgedCard{"a100", 12, nvlink, true},         BridgedCard{"a800", 8, nvlink, true},
                             BridgedCard{"h100", 12, nvlink, true},         BridgedCard{"h800", 8, nvlink, true},
                             BridgedCard{"h200", 18, nvlink, true}};
  const auto found = std::find_if(cards.begin(), cards.end(), [&](const BridgedCard& c) { return gpu.chip == c.chip; });
  if (found == cards.end() || (found->has_modules && gpu.form == "sxm")) return std::nullopt;
  return *found;
}

std::optional<Bandwidth> pcie_rate(int generation) {
  constexpr std::array rates{15.75e9, 31.5e9, 63e9, 121e9};
  if (generation < 3 || generation > 6) return std::nullopt;
  return Bandwidth(rates[static_cast<std::size_t>(generation - 3)]);
}

NicWords parse_nics(std::string_view text) {
  const std::vector<std::string> all = tokens(text);
  NicWords out;
  if (all.empty() || all.front() == "none" || (all.front() == "n" && all.size() > 1 && all[1] == "a")) return out;
  out.count = number_of_nics(text);
  if (out.count == 0) out.count = number_in_words(all);
  if (out.count == 0) out.count = number_behind(all);
  out.kind = kind_of(all);
  const std::vector<StatedRate> rates = stated_rates(text);
  out.rate = rates.empty() ? named_rate(all) : rates.front().rate();
  part_totals(text, all, out);
  return out;
}

}  // namespace collcast
