// JSON documents, private to this layer: how they begin, numbers that may be missing, and their CSV view.
#pragma once

#include <nlohmann/json.hpp>

#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/fnv1a.hpp"
#include "collcast/base/quantity.hpp"
#include "collcast/report/documents.hpp"
#include "collcast/schedule/group.hpp"

namespace collcast {

/// Keys in the order they were put in.
using Json = nlohmann::ordered_json;

/// {"schema": ..., "tool": {"name": "collcast", "version": ...}}
Json document(std::string_view schema);
std::string text(const Json&);

Json number(std::optional<Seconds>);
Json range_json(const TimeRange&);
/// What the requests of a run waited for, and how fast it was.
Json load_times_json(const LoadTimes&);
Json ranks(const Group&);
Json machine(const MachineSummary&);
/// All that a step's forecast depends on beside its machine.
Json inputs_json(const StepInputs&, const CollectivePolicy&, Sharing);
Json breakdown_json(const Breakdown&);
Json memory_json(const MemoryUse&);
/// A list or an object as text() writes it, one member after another, so that it is never whole in memory.
class JsonMembers {
 public:
  /// '{' or '['; `indent` is of the line it stands on.
  JsonMembers(std::ostream& out, char opening, std::string indent = {});
  void add(std::string_view key, const Json& value);
  /// To a list: what is structured.
  void add(const Json& value);
  /// All of an object's.
  void add_all(const Json& members);
  /// A member that is written from here on; no key in a list.
  JsonMembers begin(std::string_view key, char opening);
  void end();
  /// What it writes to takes no more: nothing that would be added is worth making.
  bool is_lost() const { return !out_.good(); }

 private:
  void separate(std::string_view key);
  std::ostream& out_;
  std::string indent_;
  bool is_object_, any_ = false;
};

/// The digest of a text that comes in pieces.
class Digest {
 public:
  void add(std::string_view piece) { hash_.add(piece); }
  std::string text() const;

 private:
  Fnv1a hash_;
};
/// The compact text of a value.
std::string compact(const Json&);
/// FNV-1a of the compact text: tells inputs apart, proves nothing.
std::string digest(const Json&);

/// A column per name, empty in rows that lack the key; lists of scalars are joined by blanks. Which columns there are
/// never depends on values, so that the tables of two runs have the same.
Table csv_rows(const Json& rows, std::span<const std::string_view> columns);
/// The same keys, each null: of a row that is not there.
Json without_values(Json row);
/// A column per key of the first row: of rows that all have the same keys, none of them structured.
Table csv_rows(const Json& rows);
/// The same, row after row as they come, none of which is kept.
class CsvRows {
 public:
  explicit CsvRows(std::ostream& out) : out_(out) {}
  void add(const Json& row);

 private:
  std::ostream& out_;
  std::vector<std::string> columns_;
};
/// A name of a stranger as a cell: a spreadsheet takes it for text, not for a formula.
std::string csv_name(std::string_view);
/// One row per scalar of the document: its dotted path and its value.
Table csv_values(const Json& document);

}  // namespace collcast
