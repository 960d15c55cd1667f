#include "gpu_name.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>

#include "collcast/base/words.hpp"
#include "lines.hpp"
#include "values.hpp"

namespace collcast {

namespace {

bool fits(const std::string& x, const std::string& y) { return x.empty() || y.empty() || x == y; }

/// "RTX" alone is no chip: "RTX A6000", "RTX PRO 6000 Blackwell", "RTX 2080 Ti" and "RTX 6000 Ada" are.
bool goes_on(const std::string& chip, const std::string& token) {
  if (!chip.starts_with("rtx")) return false;
  const bool has_number = std::any_of(chip.begin(), chip.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return !has_number || token == "ti" || token == "super" || token == "ada" || token == "d";
}

/// Of "80gb".
std::optional<int> gigabytes(const std::string& memory) { return read_whole(memory.substr(0, memory.find("gb"))); }

}  // namespace

GpuName parse_gpu(std::string_view name) {
  GpuName out;
  std::string text = lower(name);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, ' ');
  for (const Word& word : words(text)) {
    const std::string token(word.text);
    if (token == "nvidia" || token == "tesla" || token == "geforce" || token == "quadro") continue;
    if (out.chip.empty() || goes_on(out.chip, token))
      out.chip += token;
    else if (token.ends_with("gb") && out.memory.empty())
      out.memory = token;
    else if (token.starts_with("sxm") || token.starts_with("pcie")) {
      out.form = token.substr(0, 3);
      if (out.form == "sxm" && token.size() > 3) out.module = token;
    } else if (token == "nvl")
      out.form = "pci";  // cards, some with bridges
    else if (const auto watts = token.ends_with('w') ? read_whole(token.substr(0, token.size() - 1)) : std::nullopt)
      out.watts = *watts;
    else if (token.starts_with("hbm3"))
      out.form = "sxm";  // the PCIe cards of that chip have HBM2e
  }
  return out;
}

bool same_chip(const GpuName& a, const GpuName& b) {
  return !a.chip.empty() && a.chip == b.chip && fits(a.form, b.form) && fits(a.module, b.module);
}

bool same_gpu(const GpuName& a, const GpuName& b) { return same_chip(a, b) && fits(a.memory, b.memory); }

bool like_gpu(const GpuName& a, const GpuName& b) {
  if (same_gpu(a, b)) return true;
  const std::optional<int> x = gigabytes(a.memory), y = gigabytes(b.memory);
  return same_chip(a, b) && x && y && std::abs(*x - *y) * 10 <= *y;
}

bool other_gpu(std::string_view a, std::string_view b) {
  const auto squeezed = [](std::string_view name) {
    std::string out = lower(name);
    std::erase_if(out, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
    return out;
  };
  const std::string x = squeezed(a), y = squeezed(b);
  if (x.empty() || y.empty() || x == "none" || x == "unknown") return false;
  return !same_gpu(parse_gpu(a), parse_gpu(b)) && !x.starts_with(y) && !y.starts_with(x);
}

}  // namespace collcast
