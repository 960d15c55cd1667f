// collcast.groups.v1: the process groups of each rank, and what their traffic crosses.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "collcast/base/units.hpp"
#include "collcast/evaluate/nodes.hpp"
#include "collcast/report/documents.hpp"
#include "report/document.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

struct DimensionOf {
  const char* name;
  Group RankGroups::*group;
  int ParallelLayout::*degree;
};
constexpr std::array<DimensionOf, 5> dimensions{{{"tp", &RankGroups::tp, &ParallelLayout::tp},
                                                 {"pp", &RankGroups::pp, &ParallelLayout::pp},
                                                 {"dp", &RankGroups::dp, &ParallelLayout::dp},
                                                 {"cp", &RankGroups::cp, &ParallelLayout::cp},
                                                 {"ep", &RankGroups::ep, &ParallelLayout::ep}}};

/// Links and path figures gathered over the neighbours of many groups.
class CrossingSum {
 public:
  CrossingSum(const Fabric& fabric, const char* dimension) : fabric_(fabric) { sum_.dimension = dimension; }

  void add(const Group& group) {
    ++sum_.groups;
    sum_.size = group.size();
    sum_.nodes = std::max(sum_.nodes, node_count(fabric_, group));
    for (int i = 0; i + 1 < group.size(); ++i) add_route(group[i], group[i + 1]);
    if (group.size() > 2) add_route(group[group.size() - 1], group[0]);
  }
  Crossing result() {
    for (const LinkKind kind : kinds_) sum_.kinds.emplace_back(to_string(kind));
    return std::move(sum_);
  }

 private:
  void add_route(Rank from, Rank to) {
    route_.clear();
    fabric_.route(from, to, 0, route_);
    for (const LinkId link : route_) kinds_.insert(fabric_.links()[link.value()].kind);
    const Path path = fabric_.path(from, to);
    sum_.latency = std::max(sum_.latency, path.latency);
    if (sum_.bandwidth == Bandwidth() || path.bandwidth < sum_.bandwidth) sum_.bandwidth = path.bandwidth;
  }

  const Fabric& fabric_;
  Crossing sum_;
  std::set<LinkKind> kinds_;
  std::vector<LinkId> route_;
};

Json layout_json(const ParallelLayout& layout) {
  Json out;
  for (const DimensionOf& d : dimensions) out[d.name] = layout.*d.degree;
  if (layout.etp > 0) out["etp"] = layout.etp;
  out["order"] = to_string(layout.order);
  out["ranks"] = layout.world();
  return out;
}

Json rows_json(const GroupsReport& report) {
  Json rows = Json::array();
  for (const RankGroups& groups : report.rows) {
    Json row;
    row["rank"] = groups.rank.value();
    for (const DimensionOf& d : dimensions) row[d.name] = ranks(groups.*d.group);
    rows.push_back(std::move(row));
  }
  return rows;
}

Json document_json(const GroupsReport& report) {
  Json out = document("collcast.groups.v1");
  out["layout"] = layout_json(report.layout);
  out["rows"] = rows_json(report);
  out["warnings"] = report.said;
  if (!report.machine) return out;
  out["machine"] = machine(*report.machine);
  out["crossings"] = Json::array();
  for (const Crossing& c : report.crossings) {
    out["crossings"].push_back({{"dimension", c.dimension},
                                {"ranks", c.size},
                                {"groups", c.groups},
                                {"nodes", c.nodes},
                                {"link_kinds", c.kinds},
                                {"bandwidth_bytes_per_s", c.kinds.empty() ? Json() : Json(c.bandwidth.value())},
                                {"latency_s", c.latency.count()}});
  }
  return out;
}

std::vector<DimensionOf> shown_dimensions(const ParallelLayout& layout) {
  std::vector<DimensionOf> out;
  for (const DimensionOf& d : dimensions) {
    // TP, PP and DP always; the others where they are used.
    if (out.size() < 3 || layout.*d.degree > 1) out.push_back(d);
  }
  return out;
}

std::string upper(std::string_view name) {
  std::string out(name);
  for (char& c : out) c = static_cast<char>(c - 'a' + 'A');
  return out;
}

Table rows_table(const GroupsReport& report) {
  Table out{{}, {{"rank", "", Align::right}}, {}};
  const auto shown = shown_dimensions(report.layout);
  for (const DimensionOf& d : shown) out.columns.push_back({upper(d.name) + " group", "", Align::left});
  for (const RankGroups& groups : report.rows) {
    std::vector<std::string> row{fmt::format("{}", groups.rank.value())};
    for (const DimensionOf& d : shown) row.push_back(ranks_text(groups.*d.group));
    out.rows.push_back(std::move(row));
  }
  return out;
}

std::string where(const Crossing& c) {
  if (c.kinds.empty()) return "nothing: groups of one";
  return c.nodes == 1 ? "inside a node" : fmt::format("across {} nodes", c.nodes);
}

Table crossings_table(const GroupsReport& report) {
  Table out{fmt::format("what the traffic between neighbours crosses on {} ({})", report.machine->topology,
                        counted(report.machine->nodes, "node")),
            {{"groups", "", Align::left},
             {"ranks each", "", Align::right},
             {"crosses", "", Align::left},
             {"link kinds", "", Align::left},
             {"slowest path", "", Align::right},
             {"latency", "", Align::right}},
            {}};
  for (const Crossing& c : report.crossings) {
    const bool none = c.kinds.empty();
    out.rows.push_back({fmt::format("{} {}", c.groups, upper(c.dimension)), fmt::format("{}", c.size), where(c),
                        fmt::format("{}", fmt::join(c.kinds, ", ")), none ? "-" : format_bandwidth(c.bandwidth),
                        none ? "-" : format_seconds(c.latency)});
  }
  return out;
}

}  // namespace

std::vector<Crossing> crossings(const Fabric& fabric, const ParallelLayout& layout) {
  std::vector<Crossing> out;
  const auto world = static_cast<std::uint32_t>(layout.world());
  for (const DimensionOf& d : shown_dimensions(layout)) {
    CrossingSum sum(fabric, d.name);
    for (std::uint32_t r = 0; r < world; ++r) {
      const RankGroups groups = groups_of(layout, Rank(r));
      // Each group once: by its first member.
      if ((groups.*d.group)[0] == Rank(r)) sum.add(groups.*d.group);
    }
    out.push_back(sum.result());
  }
  return out;
}

std::string json(const GroupsReport& report) { return text(document_json(report)); }

Table csv(const GroupsReport& report) { return csv_rows(rows_json(report)); }

Page page(const GroupsReport& report) {
  const ParallelLayout& l = report.layout;
  Page out;
  std::string degrees = fmt::format("TP {} x PP {} x DP {}", l.tp, l.pp, l.dp);
  if (l.cp > 1) degrees += fmt::format(" x CP {}", l.cp);
  if (l.ep > 1) degrees += fmt::format(", EP {}", l.ep);
  if (l.etp > 0) degrees += fmt::format(", expert TP {}", l.etp);
  out.title =
      fmt::format("process groups of {} = {}, order {}", degrees, counted(l.world(), "rank"), to_string(l.order));
  out.blocks.push_back(rows_table(report));
  if (report.machine) out.blocks.push_back(crossings_table(report));
  return out;
}

}  // namespace collcast
