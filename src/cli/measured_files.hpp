// Where a measurement goes while it runs, so that what is finished is kept whatever happens next.
//
// A table file and its sidecar are rewritten, each complete or not at all, after every size. What is written to
// in order (standard output, a device) gets each row as it comes. Other formats are one document at the end.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cli/measure_options.hpp"
#include "cli/output.hpp"

namespace collcast::cli {

class MeasuredFiles {
 public:
  /// Several kinds need a folder, or standard output.
  MeasuredFiles(const Session&, const MeasureQuestion&, const OutputOptions&, Diagnostics& errors);

  /// After a row: false where it cannot be written, which has been said.
  bool keep(const MeasureReport&);
  /// At the end, whole or not.
  Exit close(const MeasureReport&);
  /// On standard output what a file did not take, for it took long to measure; false where that cannot be written
  /// either.
  bool show(const MeasureReport&);
  /// "in t.csv", for a message; empty where nothing was kept in a file.
  const std::string& kept() const { return kept_; }
  /// Whether a page on standard output will say what was left out.
  bool shows_notes() const;
  /// Where rows go, for a message.
  std::string place() const;

 private:
  enum class Way {
    document,  ///< at the end
    stream,    ///< CSV, row by row
    tables     ///< CSV and sidecar
  };
  bool write_table(const MeasureReport&, CollectiveKind);
  bool append_rows(const MeasureReport&);

  const Session& session_;
  const MeasureQuestion& question_;
  OutputOptions output_;
  Format format_;
  Way way_ = Way::document;
  bool folder_ = false;
  std::size_t streamed_ = 0;       ///< characters
  std::set<std::string> checked_;  ///< tables whose sidecar's place is free
  std::string kept_;
};

}  // namespace collcast::cli
