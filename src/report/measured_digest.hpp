// What was measured is told by a digest: equal digests, equal rows of equal tables. Of the compact text of
// [[id, collective, nodes, ranks, [[size, in place, measured], ...]], ...].
#pragma once

#include <string>

#include "collcast/base/quantity.hpp"
#include "report/document.hpp"

namespace collcast {

class MeasuredDigest {
 public:
  void begin_table(const std::string& id, const std::string& collective, int nodes, int ranks) {
    end_table();
    std::string head = compact({id, collective, nodes, ranks});
    head.back() = ',';
    digest_.add((has_tables_ ? "," : "[") + head);
    has_tables_ = true;
    is_open_ = true;
    has_rows_ = false;
  }
  void add_row(Bytes size, bool in_place, Seconds measured) {
    digest_.add((has_rows_ ? "," : "[") + compact({size.value(), in_place, measured.count()}));
    has_rows_ = true;
  }
  /// Nothing can be added any more.
  std::string text() {
    end_table();
    digest_.add(has_tables_ ? "]" : "[]");
    return digest_.text();
  }

 private:
  void end_table() {
    if (is_open_) digest_.add(has_rows_ ? "]]" : "[]]");
    is_open_ = false;
  }

  Digest digest_;
  bool has_tables_ = false, is_open_ = false, has_rows_ = false;
};

}  // namespace collcast
