// Shipped names and user files on disk.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>

#include "scenario/files.hpp"
#include "scenario/parse.hpp"

namespace collcast::input {

namespace fs = std::filesystem;

std::string folder_of(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? std::string() : file.substr(0, slash);
}

std::string folder_of(const Location& named_at, const std::string& file) {
  return named_at.file == file ? folder_of(file) : std::string();
}

std::string beside(const std::string& folder, const std::string& file) {
  if (folder.empty() || file.starts_with('/')) return file;
  std::string_view rest = file;
  while (rest.starts_with("./")) rest.remove_prefix(2);
  return fmt::format("{}/{}", folder, rest);
}

std::vector<TopologyEntry> list_files(const std::vector<std::string>& folders) {
  std::map<std::string, std::string> found;
  for (const std::string& folder : folders) {
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      if (it->path().extension() == ".yaml") found.emplace(it->path().stem().string(), it->path().string());
    }
  }
  std::vector<TopologyEntry> entries;
  for (const auto& [name, file] : found) entries.push_back({name, "", file});
  return entries;
}

std::vector<std::string> kernel_folders(const SearchPath& search) {
  std::vector<std::string> folders;
  for (const std::string& folder : search.topologies) folders.push_back(folder + "/kernels");
  return folders;
}

namespace {

bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".yaml") || name.ends_with(".yml");
}

/// list_files without kernel tables, each with the title that it gives itself. What cannot be read stays: whoever loads
/// it says why.
std::vector<TopologyEntry> titled(const std::vector<std::string>& folders) {
  std::vector<TopologyEntry> entries;
  for (TopologyEntry& entry : list_files(folders)) {
    const Result<std::string> text = read_file(entry.file, {entry.file});
    const Result<Node> tree = text ? parse_yaml(*text, entry.file) : Result<Node>(Node());
    if (tree) {
      const Node* schema = tree->find("schema");
      if (schema != nullptr && schema->text == "collcast.kernels.v1") continue;
      if (const Node* title = tree->find("title")) entry.title = title->text;
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

/// The name of the document that a file of JSON is, such as collcast.plan.v1; empty: it is none.
std::string schema_of_json(const std::string& file) {
  const Result<std::string> text = read_file(file, {file});
  if (!text) return {};
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("schema") || !json["schema"].is_string()) return {};
  const std::string schema = json["schema"];
  return schema.starts_with("collcast.") ? shown(schema) : std::string();
}

/// A name that is a file's without its suffix, or a file's with another.
std::optional<Diagnostic> file_of_name(const Request& request, const std::string& what) {
  const std::string& name = request.name_or_file;
  const auto is_file = [&](const std::string& path) {
    std::error_code error;
    return fs::is_regular_file(beside(request.folder, path), error);
  };
  for (const char* suffix : {".yaml", ".yml"})
    if (is_file(name + suffix))
      return Diagnostic{request.where, fmt::format("there is no {} '{}'", what, shown(name)),
                        fmt::format("did you mean the file '{}{}'?", shown(name), suffix), true};
  if (!is_file(name)) return std::nullopt;
  const std::string schema = schema_of_json(beside(request.folder, name));
  if (schema == fmt::format("collcast.{}.v1", what))
    return Diagnostic{request.where, fmt::format("there is no {} '{}'", what, shown(name)),
                      fmt::format("did you mean the file './{}'?", shown(name)), true};
  const bool is_result = what == "scenario" && !schema.empty();
  return Diagnostic{
      request.where,
      fmt::format("'{}' is {}, and no {}", shown(name),
                  schema.empty() ? "a file without the suffix .yaml" : "a document " + schema, what),
      is_result ? fmt::format("results are read by 'collcast report {0}' and 'collcast compare'; a scenario is a file "
                              "that ends in .yaml",
                              shown(name))
                : fmt::format("expected a {}'s file, which ends in .yaml, or a shipped one's name", what),
      true};
}

}  // namespace

Result<std::string> find_file(const Request& request, const std::vector<std::string>& folders,
                              const std::string& what) {
  const std::string& name = request.name_or_file;
  if (is_path(name)) return beside(request.folder, name);
  const std::vector<TopologyEntry> entries = list_files(folders);
  std::vector<std::string> names;
  for (const TopologyEntry& entry : entries) {
    if (entry.name == name) return entry.file;
    names.push_back(entry.name);
  }
  if (auto file = file_of_name(request, what)) return *file;
  // A machine names its table alone, as it may be anywhere.
  const char* files = what == "kernel table" ? ", or a file NAME.yaml in 'kernels' beside the machine's"
                                             : ", or a file's path ending in .yaml";
  const std::string hint = names.empty() ? fmt::format("no {} files were found in: {}", what, fmt::join(folders, ", "))
                                         : expected_one_of(name, names) + files;
  return Diagnostic{request.where, fmt::format("there is no {} '{}'", what, shown(name)), hint, true};
}

}  // namespace collcast::input

namespace collcast {

std::vector<TopologyEntry> list_topologies(const SearchPath& search) { return input::titled(search.topologies); }

std::string topology_name(const std::string& file, const SearchPath& search) {
  for (const TopologyEntry& entry : input::list_files(search.topologies))
    if (entry.file == file) return entry.name;
  return file;
}

std::vector<TopologyEntry> list_scenarios(const SearchPath& search) { return input::titled(search.scenarios); }

}  // namespace collcast
