// JSON documents, private to this layer: how they begin, numbers that may be missing, and their CSV view.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>

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
/// FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv) of the compact text: tells inputs apart, proves nothing.
std::string digest(const Json&);

/// A column per name, empty in rows that lack the key; lists of scalars are joined by blanks. Which columns there are
/// never depends on values, so that the tables of two runs have the same.
Table csv_rows(const Json& rows, std::span<const std::string_view> columns);
/// A column per key of the first row: of rows that all have the same keys, none of them structured.
Table csv_rows(const Json& rows);
/// A name of a stranger as a cell: a spreadsheet takes it for text, not for a formula.
std::string csv_name(std::string_view);
/// One row per scalar of the document: its dotted path and its value.
Table csv_values(const Json& document);

}  // namespace collcast
