// Measured against predicted as a picture that a page can show.
//
// Both axes have the same decades, of all rows: on the diagonal a forecast is right, above it too slow, and between the
// dotted lines it is within 20 % of what was measured. All marks of a collective are one path of points without length
// and with round ends, on a grid of half pixels, each place once: some eight bytes a row. Set-ups that their source
// calls broken lie in grey beneath the others and are counted apart.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "report/validate_parts.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

// Half pixels.
constexpr int side = 820, left_margin = 150, right_margin = 40, top = 150, legend_line = 40;
constexpr int panel_width = left_margin + side + right_margin;

constexpr double near_enough = 0.2;

/// Colours that people with colour-blindness tell apart (Okabe and Ito, https://jfly.uni-koeln.de/color/), the darker
/// ones lightened on dark ground.
struct Paint {
  std::string_view collective, light, dark;
};
constexpr std::array paints{Paint{"broadcast", "#E69F00", "#E69F00"},      Paint{"reduce", "#56B4E9", "#8CD0F5"},
                            Paint{"all_reduce", "#0072B2", "#3D9BD9"},     Paint{"all_gather", "#D55E00", "#E9762B"},
                            Paint{"reduce_scatter", "#009E73", "#1DB98D"}, Paint{"alltoall", "#CC79A7", "#D98BB6"},
                            Paint{"gather", "#9C6644", "#B98660"},         Paint{"scatter", "#B8A500", "#D9C300"},
                            Paint{"sendrecv", "#7B5EA7", "#9F86C6"}};

/// Powers of ten of a second.
struct Axes {
  int least = 0, most = 0;
  /// From the axis' beginning.
  int at(double seconds) const {
    return static_cast<int>(std::lround((std::log10(seconds) - least) / (most - least) * side));
  }
};

bool is_drawn(const Deviation& row) { return row.measured.count() > 0 && row.predicted.count() > 0; }

Axes axes_of(const ValidateReport& report) {
  double least = 1e300, most = 0;
  for (const ScoredTable& table : report.tables)
    for (const Deviation& row : table.rows)
      if (is_drawn(row)) {
        least = std::min({least, row.measured.count(), row.predicted.count()});
        most = std::max({most, row.measured.count(), row.predicted.count()});
      }
  if (most == 0) return {-6, 0};
  const int from = static_cast<int>(std::floor(std::log10(least)));
  return {from, std::max(from + 1, static_cast<int>(std::ceil(std::log10(most))))};
}

std::string decade_text(int exponent) {
  static constexpr std::array units{"s", "ms", "us", "ns", "ps"};
  const int unit = std::clamp(exponent >= 0 ? 0 : (2 - exponent) / 3, 0, static_cast<int>(units.size()) - 1);
  const int zeros = exponent + 3 * unit;
  return zeros < 0 ? fmt::format("1e{} s", exponent)
                   : fmt::format("1{} {}", std::string(static_cast<std::size_t>(zeros), '0'),
                                 units[static_cast<std::size_t>(unit)]);
}

struct Count {
  std::size_t tables = 0, rows = 0, near = 0;
};

/// What stands in a panel.
struct Panel {
  NodeCount nodes = NodeCount::one;
  Count all;
  std::map<std::string, Count> by_collective;
  std::map<std::string, std::vector<std::pair<int, int>>> marks;  ///< by collective; empty: broken set-ups
};

Panel panel_of(const ValidateReport& report, NodeCount nodes, const Axes& axes) {
  Panel out{nodes, {}, {}, {}};
  for (const ScoredTable& table : report.tables) {
    if ((table.nodes > 1) != (nodes == NodeCount::several)) continue;
    auto& marks = out.marks[is_healthy(table) ? table.collective : std::string()];
    Count count;
    for (const Deviation& row : table.rows) {
      if (!is_drawn(row)) continue;
      ++count.rows;
      if (row.ape() <= near_enough) ++count.near;
      marks.emplace_back(axes.at(row.measured.count()), side - axes.at(row.predicted.count()));
    }
    if (count.rows == 0) continue;
    const auto add = [&count](Count& to) {
      ++to.tables;
      to.rows += count.rows;
      to.near += count.near;
    };
    add(out.by_collective[is_healthy(table) ? table.collective : std::string()]);
    if (is_healthy(table)) add(out.all);
  }
  for (auto& [collective, marks] : out.marks) {
    std::sort(marks.begin(), marks.end());
    marks.erase(std::unique(marks.begin(), marks.end()), marks.end());
  }
  return out;
}

std::string class_of(const std::string& collective) { return collective.empty() ? "broken" : collective; }

/// Grey beneath, then the collectives with most marks, so that the rare ones are seen.
std::vector<std::string> drawing_order(const Panel& panel) {
  std::vector<std::string> out;
  for (const auto& [collective, marks] : panel.marks) out.push_back(collective);
  std::stable_sort(out.begin(), out.end(), [&](const std::string& a, const std::string& b) {
    if (a.empty() != b.empty()) return a.empty();
    return panel.marks.at(a).size() > panel.marks.at(b).size();
  });
  return out;
}

/// Steps from mark to mark: short numbers.
std::string path_of(const std::vector<std::pair<int, int>>& marks) {
  std::string out;
  auto back = std::back_inserter(out);
  int x = 0, y = 0;
  for (const auto& [to_x, to_y] : marks) {
    fmt::format_to(back, "{}{}{}{}h0", out.empty() ? "M" : "m", to_x - x, to_y < y ? "" : " ", to_y - y);
    x = to_x;
    y = to_y;
  }
  return out;
}

/// Where a forecast is `factor` times what was measured.
std::string diagonal(const Axes& axes, double factor, std::string_view kind) {
  const int shift = static_cast<int>(std::lround(std::log10(factor) / (axes.most - axes.least) * side));
  const int from = std::max(0, -shift), to = std::min(side, side - shift);
  return fmt::format("<path class=\"{}\" d=\"M{} {}L{} {}\"/>\n", kind, from, side - from - shift, to,
                     side - to - shift);
}

std::string panel_text(const Panel& panel, const Axes& axes, int number) {
  std::string out = fmt::format("<g transform=\"translate({} {})\">\n", left_margin + number * panel_width, top);
  auto back = std::back_inserter(out);
  const Count& all = panel.all;
  fmt::format_to(back, "<text class=\"head\" x=\"0\" y=\"-52\">{}</text>\n",
                 panel.nodes == NodeCount::one ? "one node" : "several nodes");
  fmt::format_to(back, "<text x=\"0\" y=\"-18\">{} of {}, {} within {:.0f} %</text>\n",
                 counted(static_cast<std::int64_t>(all.rows), "row"),
                 counted(static_cast<std::int64_t>(all.tables), "table"),
                 all.rows == 0 ? "none" : percent(static_cast<double>(all.near) / static_cast<double>(all.rows)),
                 near_enough * 100);
  fmt::format_to(back, "<rect class=\"frame\" width=\"{0}\" height=\"{0}\"/>\n", side);
  for (int exponent = axes.least; exponent <= axes.most; ++exponent) {
    const int at = (exponent - axes.least) * side / (axes.most - axes.least);
    fmt::format_to(back, "<path class=\"grid\" d=\"M{0} 0V{1}M0 {2}H{1}\"/>\n", at, side, side - at);
    fmt::format_to(back, "<text class=\"mid\" x=\"{}\" y=\"{}\">{}</text>\n", at, side + 32, decade_text(exponent));
    fmt::format_to(back, "<text class=\"end\" x=\"-12\" y=\"{}\">{}</text>\n", side - at + 8, decade_text(exponent));
  }
  out += diagonal(axes, 1, "exact") + diagonal(axes, 1 + near_enough, "near") + diagonal(axes, 1 - near_enough, "near");
  for (const std::string& collective : drawing_order(panel))
    fmt::format_to(back, "<path class=\"mark {}\" d=\"{}\"/>\n", class_of(collective),
                   path_of(panel.marks.at(collective)));
  fmt::format_to(back, "<text class=\"mid\" x=\"{}\" y=\"{}\">measured</text>\n", side / 2, side + 70);
  fmt::format_to(back, "<text class=\"mid\" transform=\"translate(-122 {}) rotate(-90)\">predicted</text>\n</g>\n",
                 side / 2);
  return out;
}

/// Collectives that have rows, broken set-ups last.
std::vector<std::string> named(const ValidateReport& report, const std::vector<Panel>& panels) {
  std::vector<std::string> names = collectives(report), out;
  names.emplace_back();
  for (const std::string& name : names)
    if (std::any_of(panels.begin(), panels.end(), [&](const Panel& p) { return p.by_collective.count(name) > 0; }))
      out.push_back(name);
  return out;
}

std::string legend_text(const std::vector<std::string>& names, const std::vector<Panel>& panels, int y) {
  std::string out;
  for (const std::string& name : names) {
    Count sum;
    for (const Panel& panel : panels)
      if (const auto found = panel.by_collective.find(name); found != panel.by_collective.end()) {
        sum.tables += found->second.tables;
        sum.rows += found->second.rows;
      }
    out += fmt::format("<path class=\"mark key {}\" d=\"M{} {}h0\"/><text x=\"{}\" y=\"{}\">{}: {} of {}</text>\n",
                       class_of(name), left_margin + 8, y - 8, left_margin + 30, y,
                       name.empty() ? "called broken by their source, not counted above" : name,
                       counted(static_cast<std::int64_t>(sum.rows), "row"),
                       counted(static_cast<std::int64_t>(sum.tables), "table"));
    y += legend_line;
  }
  return out;
}

std::string style_text() {
  std::string light, dark;
  for (const Paint& paint : paints) {
    light += fmt::format(".{}{{stroke:{}}}", paint.collective, paint.light);
    if (paint.dark != paint.light) dark += fmt::format(".{}{{stroke:{}}}", paint.collective, paint.dark);
  }
  return "<style>\n"
         "text{font:24px system-ui,sans-serif;fill:#1f2328}.head{font-size:30px;font-weight:600}"
         ".mid{text-anchor:middle}.end{text-anchor:end}\n"
         ".ground{fill:#fff}.frame{fill:none;stroke:#8a94a3;stroke-width:2}.grid{stroke:#e3e6ea;stroke-width:2}\n"
         ".exact{stroke:#59636e;stroke-width:2}.near{stroke:#59636e;stroke-width:2;stroke-dasharray:2 8}\n"
         ".mark{fill:none;stroke-width:7;stroke-linecap:round;stroke-opacity:.7}"
         ".mark.key{stroke-width:16;stroke-opacity:1}.broken{stroke:#a9b1bb}\n" +
         light +
         "\n@media(prefers-color-scheme:dark){text{fill:#e6e9ee}.ground{fill:#161b22}.grid{stroke:#2b323b}"
         ".exact,.near{stroke:#a9b1bb}.broken{stroke:#5f6975}" +
         dark + "}\n</style>\n";
}

}  // namespace

std::string plot(const ValidateReport& report) {
  const Axes axes = axes_of(report);
  std::vector<Panel> panels;
  for (const NodeCount nodes : {NodeCount::one, NodeCount::several})
    if (Panel panel = panel_of(report, nodes, axes); !panel.by_collective.empty()) panels.push_back(std::move(panel));
  const std::vector<std::string> names = named(report, panels);
  const int width = panel_width * static_cast<int>(std::max<std::size_t>(1, panels.size()));
  const int legend = top + side + 130;
  const int height = legend + legend_line * static_cast<int>(names.size());
  const std::string title =
      fmt::format("Measured against predicted: library {}, method {}{}", report.library, report.method,
                  report.left_out ? ", each table left out of its calibration" : "");
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 {0} {1}\" width=\"{2}\" height=\"{3}\">\n"
      "<title>{4}</title>\n<desc>A mark per row; above the line a forecast is too slow, below too fast; dotted: 20 % "
      "off.</desc>\n",
      width, height, width / 2, height / 2, title);
  out += style_text();
  out += fmt::format("<rect class=\"ground\" width=\"{}\" height=\"{}\" rx=\"12\"/>\n", width, height);
  out += fmt::format("<text class=\"head\" x=\"{}\" y=\"52\">{}</text>\n", left_margin, title);
  for (std::size_t i = 0; i < panels.size(); ++i) out += panel_text(panels[i], axes, static_cast<int>(i));
  return out + legend_text(names, panels, legend) + "</svg>\n";
}

}  // namespace collcast
