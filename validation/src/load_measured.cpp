// Files and folders of measurements.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <istream>
#include <numeric>
#include <set>
#include <streambuf>
#include <system_error>

#include "collcast/collective/collective.hpp"
#include "collcast/validation/measured_table.hpp"
#include "hardware_words.hpp"
#include "lines.hpp"

namespace collcast {

namespace fs = std::filesystem;

std::optional<MeasuredFormat> measured_format(std::string_view beginning) {
  if (beginning.starts_with("\xEF\xBB\xBF")) beginning.remove_prefix(3);
  const std::size_t first = beginning.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return std::nullopt;
  beginning.remove_prefix(first);
  if (beginning.front() == '{') return MeasuredFormat::json;
  const std::string_view line = beginning.substr(0, beginning.find('\n'));
  const auto names = [&](std::string_view column) { return line.find(column) != std::string_view::npos; };
  // Also between semicolons or tabs, of which the reader says what it expects instead.
  if (names("size_bytes") && names("time_us")) return MeasuredFormat::csv;
  if (!names(",")) return MeasuredFormat::text;
  // The list of a folder's tables is none of them.
  if (line.starts_with("id,collective,")) return std::nullopt;
  const bool heading = names("size_bytes") || names("time_us") || line.starts_with("collective,");
  return heading ? MeasuredFormat::csv : MeasuredFormat::text;
}

namespace {

std::string stem(const std::string& file) { return fs::path(file).stem().string(); }

/// The longest collective's name in a file's name.
std::string collective_in(const std::string& name) {
  std::string best;
  for (const std::string& known : collective_names())
    if (known.size() > best.size() && name.find(known) != std::string::npos) best = known;
  return best;
}

/// Ids stand in pages and documents: whatever else is in a file's name is none of theirs.
std::string as_id(std::string text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_' || c == '+';
  };
  std::replace_if(
      text.begin(), text.end(), [&](char c) { return !plain(c); }, '_');
  return text;
}

/// What a log does not say itself.
void complete(MeasuredTable& table, std::size_t index) {
  const std::string name = stem(table.file);
  if (table.facts.id.empty()) table.facts.id = index == 0 ? name : fmt::format("{}-{}", name, index + 1);
  table.facts.id = as_id(std::move(table.facts.id));
  if (table.facts.collective.empty()) table.facts.collective = collective_in(name);
}

Diagnostic cannot_read(const std::string& file, const Location& asked_by) {
  return {asked_by,
          fmt::format("file '{}' cannot be read: {}", printable(file), std::generic_category().message(errno)),
          "check that you may read it"};
}

/// Nothing where there is none: FILE.yaml, else FILE.yml.
std::string sidecar_of(const std::string& table) {
  std::error_code ignored;
  for (const char* suffix : {".yaml", ".yml"})
    if (const fs::path beside = fs::path(table).replace_extension(suffix); fs::exists(beside, ignored))
      return beside.string();
  return {};
}

/// FILE.yml, which is not read where there is FILE.yaml.
std::string second_sidecar_of(const std::string& table) {
  std::error_code ignored;
  const fs::path first = fs::path(table).replace_extension(".yaml"), second = fs::path(table).replace_extension(".yml");
  return fs::exists(first, ignored) && fs::exists(second, ignored) ? second.string() : std::string();
}

/// Or says that there is none to say.
bool says_version(std::string_view text) {
  return text.empty() || text.starts_with("unknown") || text == "none" || (text.front() >= '0' && text.front() <= '9');
}

Result<Readings> read_csv_with_sidecar(std::istream& in, const std::string& file) {
  std::optional<MeasuredFacts> sidecar;
  const std::string beside = sidecar_of(file);
  if (!beside.empty()) {
    Result<MeasuredFacts> facts = load_measured_facts(beside, {beside});
    if (!facts) return facts.errors();
    sidecar = std::move(facts).value();
  }
  Result<Readings> out = read_table_csv(in, file, sidecar);
  if (!out || !sidecar) return out;
  Readings readings = std::move(out).value();
  PassedOver unknown;
  for (const std::string& key : sidecar->unknown_keys) unknown.add(key);
  unknown.finish(readings, {beside}, "key");
  if (!sidecar->datatype.empty() && !is_type(sidecar->datatype))
    readings.warnings.push_back(
        unknown_type(sidecar->place_of("dtype"), sidecar->datatype, "it is as if it were not there"));
  if (!says_version(sidecar->nccl_version))
    readings.warnings.push_back(
        {sidecar->place_of("nccl_version"),
         fmt::format("nccl_version is '{}': it is as if it were not there", printable(sidecar->nccl_version)),
         "expected a version such as 2.27.3, or unknown"});
  if (const std::string wrong = parse_nics(sidecar->nics).contradiction; !wrong.empty())
    readings.warnings.push_back({sidecar->place_of("nics_per_node"),
                                 fmt::format("nics_per_node is '{}': {}", printable(sidecar->nics), wrong),
                                 "the number and the rate of one are taken"});
  if (const std::string second = second_sidecar_of(file); !second.empty())
    readings.warnings.push_back(
        {{second},
         fmt::format("passed over: the sidecar of '{}' is '{}'", printable(file), printable(beside)),
         "remove one of the two, or put what is right into the latter"});
  return readings;
}

/// As much as tells the format.
std::string beginning_of(std::istream& in) {
  std::string out(4096, '\0');
  in.read(out.data(), static_cast<std::streamsize>(out.size()));
  out.resize(static_cast<std::size_t>(in.gcount()));
  return out;
}

/// Whether a file is a table as CSV, which has a sidecar; of a pipe that is not to be seen without reading it.
bool is_table(const std::string& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return true;
  std::ifstream in(file, std::ios::binary);
  return measured_format(beginning_of(in)) == MeasuredFormat::csv;
}

/// A stream from its beginning, part of which has been read already.
class Replayed : public std::streambuf {
 public:
  Replayed(std::string read_already, std::streambuf& rest) : block_(std::move(read_already)), rest_(rest) {
    setg(block_.data(), block_.data(), block_.data() + block_.size());
  }

 protected:
  int_type underflow() override {
    block_.resize(std::size_t{1} << 16);
    const std::streamsize got = rest_.sgetn(block_.data(), static_cast<std::streamsize>(block_.size()));
    setg(block_.data(), block_.data(), block_.data() + got);
    return got > 0 ? traits_type::to_int_type(block_.front()) : traits_type::eof();
  }

 private:
  std::string block_;
  std::streambuf& rest_;
};

/// What a log was turned into on its way here, and how to turn it back; nothing where it is plain text.
std::optional<Diagnostic> not_plain_text(std::string_view beginning, const std::string& file) {
  const auto begins = [&](std::string_view magic) { return beginning.starts_with(magic); };
  const auto error = [&](std::string what, std::string hint) {
    return Diagnostic{{file, 1, 1}, std::move(what), std::move(hint)};
  };
  std::error_code none;
  const std::string name = fs::exists(file, none) ? printable(file) : "FILE";
  // With a byte order mark, or without one where the first characters are ASCII.
  const bool little = begins("\xFF\xFE") || (beginning.size() > 3 && beginning[0] != 0 && beginning[1] == 0 &&
                                             beginning[2] != 0 && beginning[3] == 0);
  const bool big = begins("\xFE\xFF") || (beginning.size() > 3 && beginning[0] == 0 && beginning[1] != 0 &&
                                          beginning[2] == 0 && beginning[3] != 0);
  if (little || big)
    return error("the file is UTF-16 text, as '>' of Windows PowerShell writes it",
                 fmt::format("expected UTF-8: iconv -f UTF-16{} -t UTF-8 {} > utf8.log, or 'Out-File -Encoding utf8' "
                             "instead of '>'",
                             begins("\xFF\xFE") || begins("\xFE\xFF") ? ""
                             : little                                 ? "LE"
                                                                      : "BE",
                             name));
  struct Packed {
    std::string_view magic;
    const char *kind, *unpack;
  };
  using namespace std::string_view_literals;
  constexpr std::array packed{Packed{"\x1F\x8B"sv, "gzip", "gzip -dc"},
                              Packed{"\x28\xB5\x2F\xFD"sv, "zstd", "zstd -dc"},
                              Packed{"\xFD\x37\x7A\x58\x5A\x00"sv, "xz", "xz -dc"},
                              Packed{"BZh"sv, "bzip2", "bzip2 -dc"}, Packed{"PK\x03\x04"sv, "zip", "unzip -p"}};
  for (const Packed& one : packed)
    if (begins(one.magic))
      return error(fmt::format("the file is compressed ({})", one.kind),
                   fmt::format("expected text: {} {} | collcast validate --measured -", one.unpack, name));
  return std::nullopt;
}

/// No table where it is no measurement. A sidecar is looked for beside `file`.
Result<Readings> read_any(std::istream& in, const std::string& file) {
  std::string beginning = beginning_of(in);
  if (beginning.find_first_not_of(" \t\r\n") == std::string::npos)
    return Diagnostic{{file, 1, 1}, "the file is empty", "expected a table or a log of nccl-tests"};
  if (auto wrong = not_plain_text(beginning, file)) return *wrong;
  const auto format = measured_format(beginning);
  if (!format) return Readings{};
  Replayed buffer(std::move(beginning), *in.rdbuf());
  std::istream whole(&buffer);
  Result<Readings> out = *format == MeasuredFormat::csv    ? read_csv_with_sidecar(whole, file)
                         : *format == MeasuredFormat::json ? read_nccl_tests_json(whole, file)
                                                           : read_nccl_tests_text(whole, file);
  if (!out) return out;
  Readings readings = std::move(out).value();
  for (std::size_t i = 0; i < readings.tables.size(); ++i) complete(readings.tables[i], i);
  return readings;
}

Result<Readings> load_file(const std::string& file, const Location& asked_by) {
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  if (!in) return cannot_read(file, asked_by);
  Result<Readings> out = read_any(in, file);
  if (in.bad()) return cannot_read(file, asked_by);
  return out;
}

Diagnostic no_row(const std::string& file) {
  return {{file, 1, 1},
          "there is no row of nccl-tests in this file",
          "expected what all_reduce_perf and its kin print, their JSON (-J FILE), or a CSV table"};
}

struct Contents {
  std::vector<std::string> files, folders, others;  ///< others: links that lead nowhere, pipes
};
/// What is no hidden file, and may be a table.
Contents contents_of(const std::string& folder, std::error_code& error) {
  Contents out;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const fs::path& path = it->path();
    const std::string suffix = path.extension().string();
    std::error_code ignored;
    const fs::file_status status = fs::status(path, ignored);
    if (path.filename().string().front() == '.') continue;
    if (fs::is_directory(status))
      out.folders.push_back(path.filename().string());
    else if (suffix == ".yaml" || suffix == ".yml" || suffix == ".md")
      continue;
    else
      (fs::is_regular_file(status) ? out.files : out.others).push_back(path.string());
  }
  for (auto* names : {&out.files, &out.folders, &out.others}) std::ranges::sort(*names);
  return out;
}

/// "'a', 'b' and 3 more".
std::string few_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 4;
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i)
    out += fmt::format("{}'{}'", i == 0 ? "" : ", ", printable(names[i]));
  return names.size() > most ? out + fmt::format(" and {} more", names.size() - most) : out;
}

void append(Readings& to, Readings from) {
  std::move(from.tables.begin(), from.tables.end(), std::back_inserter(to.tables));
  append(to.warnings, from.warnings);
  append(to.unread, from.unread);
  append(to.untimed, from.untimed);
  append(to.wrong, from.wrong);
  to.more_untimed.merge(from.more_untimed);
}

Result<Readings> load_folder(const std::string& folder, const Location& asked_by) {
  std::error_code error;
  const Contents contents = contents_of(folder, error);
  if (error)
    return Diagnostic{asked_by, fmt::format("folder '{}' cannot be read: {}", printable(folder), error.message()), ""};
  Readings out;
  Complaints complaints;
  for (const std::string& file : contents.files) {
    Result<Readings> one = load_file(file, asked_by);
    if (!one) {
      complaints.add(one.errors());
      out.unread.push_back(one.errors().front());
      continue;
    }
    if (one->tables.empty() && fs::path(file).filename() != "INDEX.csv")
      out.warnings.push_back({{file}, "no table and no log of nccl-tests: passed over", ""});
    append(out, std::move(one).value());
  }
  const std::string below = contents.folders.empty() ? "" : "folders in it are not read: " + few_of(contents.folders);
  if (!below.empty()) out.warnings.push_back({{folder}, below, "name them, too, if they have measurements"});
  for (const std::string& other : contents.others)
    out.warnings.push_back({{other}, "this is no file that can be read: passed over", ""});
  // One bad file takes nothing from the others; if there are no others it is all there is to say.
  if (out.tables.empty() && !complaints.empty()) return complaints.take();
  if (out.tables.empty())
    return Diagnostic{
        asked_by, fmt::format("folder '{}' has no measured table", printable(folder)),
        "expected CSV tables with their sidecars, or logs of nccl-tests" + (below.empty() ? below : "; " + below)};
  return out;
}

}  // namespace

Result<Readings> load_measured(const std::string& path, const Location& asked_by) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    return Diagnostic{asked_by, fmt::format("'{}' does not exist", printable(path)),
                      "expected a table, a log of nccl-tests or a folder of them"};
  if (fs::is_directory(status)) return load_folder(path, asked_by);
  Result<Readings> out = load_file(path, asked_by);
  if (out && out->tables.empty()) return no_row(path);
  return out;
}

std::vector<std::string> files_of_measured(const std::string& path) {
  std::error_code error;
  std::vector<std::string> out;
  for (const std::string& file : fs::is_directory(path, error) ? contents_of(path, error).files : std::vector{path}) {
    out.push_back(file);
    if (!is_table(file)) continue;
    for (const std::string& beside : {sidecar_of(file), second_sidecar_of(file)})
      if (!beside.empty()) out.push_back(beside);
  }
  return out;
}

Location place_of(const Diagnostic& diagnostic, const MeasuredTable& table) {
  return diagnostic.where.file.empty() ? Location{table.file, 1, 1} : diagnostic.where;
}

std::vector<std::uint32_t> by_size(const MeasuredTable& table) {
  std::vector<std::uint32_t> out(table.points.size());
  std::iota(out.begin(), out.end(), std::uint32_t{0});
  std::ranges::stable_sort(out, {}, [&](std::uint32_t i) { return table.points[i].size; });
  return out;
}

Diagnostics name_apart(std::vector<MeasuredTable>& tables) {
  Diagnostics out;
  std::set<std::string> all, taken;
  for (const MeasuredTable& table : tables) all.insert(table.facts.id);
  for (MeasuredTable& table : tables) {
    const std::string id = table.facts.id;
    // What another table is called from the start stays its own.
    for (int i = 2; taken.count(table.facts.id) > 0 || (i > 2 && all.count(table.facts.id) > 0); ++i)
      table.facts.id = fmt::format("{}-{}", id, i);
    taken.insert(table.facts.id);
    if (table.facts.id != id)
      out.push_back({{table.file},
                     fmt::format("the id '{}' is another table's: this one is called '{}'", id, table.facts.id),
                     "ids are those of sidecars, else names of files"});
  }
  return out;
}

Result<Readings> load_measured_stream(std::istream& in, const std::string& name) {
  Result<Readings> out = read_any(in, name);
  if (out && out->tables.empty()) return no_row(name);
  return out;
}

}  // namespace collcast
