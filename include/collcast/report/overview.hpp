// collcast.report.v1: several results on one page, the verdict of their gates first.
#pragma once

#include <string>
#include <vector>

#include "collcast/engine/engine.hpp"
#include "collcast/report/comparison.hpp"
#include "collcast/report/table.hpp"
#include "collcast/schedule/schedule.hpp"

namespace collcast {

/// What a simulated step's streams did when, for a chart.
struct TimelineChart {
  std::vector<std::string> tracks;  ///< "stage 0 compute"
  struct Bar {
    std::size_t track = 0;
    double start_s = 0, end_s = 0;
    std::string name, category;
  };
  std::vector<Bar> bars;
};
/// Neighbours of one track and category that no screen could tell apart are one bar: `most` bars at about the most.
TimelineChart timeline_chart(const Schedule&, const Timeline&, std::size_t most = 4000);

struct OverviewItem {
  NamedResult result;
  TimelineChart timeline;  ///< empty: not simulated here
};
struct Overview {
  std::vector<OverviewItem> items;
  std::string partial = {};                ///< what was ended before it was through: "partial: ..."; empty: nothing
  std::vector<std::string> left_out = {};  ///< what was asked for and is not there, each with the reason
  std::size_t gates() const;
  std::size_t broken() const;
};

/// Names no two results the same: those of several files get the file's name beside theirs, and what is still the same
/// a number. `files`: of each item, empty where its name is not to be used.
void tell_apart(Overview&, const std::vector<std::string>& files);

std::string json(const Overview&);
/// One line per figure.
Table csv(const Overview&);
Page page(const Overview&);
/// JUnit XML: a suite per result, a case per gate.
std::string junit(const Overview&);

/// Why this build writes no HTML; empty: it does.
std::string html_lacks();
/// One page that needs nothing else: tables, charts and their script in one text. Only where nothing lacks.
std::string html(const Overview&);

}  // namespace collcast
