#include "hardware_words.hpp"

#include <algorithm>
#include <array>
#include <cctype>
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
std::optional<Bandwidth> stated_rate(std::string_view text) {
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
    if (rest.starts_with("B/s") || rest.starts_with("Bps")) return Bandwidth(*value * 1e9);
    if (stops || rest.front() == 'b' || lower(rest).starts_with("be")) return Bandwidth(*value * 1e9 / 8);
  }
  return std::nullopt;
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
  out.kind = kind_of(all);
  out.rate = stated_rate(text);
  if (!out.rate) out.rate = named_rate(all);
  return out;
}

}  // namespace collcast
