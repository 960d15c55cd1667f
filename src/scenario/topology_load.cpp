// Machine files on disk: names, `extends:`, settings.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "collcast/topology/switches.hpp"
#include "scenario/files.hpp"
#include "scenario/parse.hpp"

namespace collcast::input {

namespace {

constexpr std::size_t longest_chain = 16;

/// One file for one file: ./a.yaml and b/../a.yaml are the same.
std::string identity(const std::string& file) {
  std::error_code error;
  const auto canonical = std::filesystem::weakly_canonical(file, error);
  return error ? file : canonical.string();
}

/// A file with everything it extends below it.
struct Tree {
  Node node;
  Diagnostics errors;  ///< of what it extends: then that is missing below it
  std::vector<SourceFile> files;
};

/// What keeps a file from being extended, whatever is in it.
Diagnostics wrong_with_base(const Node& base) {
  Reader reader;
  Object o(reader, base, "");
  if (base.kind == Node::Kind::map) read_schema(reader, o, "collcast.topology.v1");
  return reader.take();
}

std::string way_round(const std::vector<SourceFile>& chain) {
  std::string out;
  for (const SourceFile& link : chain) out += (out.empty() ? "" : " -> ") + link.file;
  return out;
}

Result<Tree> tree_of(const std::string& text, const std::string& file, const SearchPath& search,
                     std::vector<SourceFile> chain);

/// `chain` holds the files that led here.
Result<Tree> load_tree(const std::string& file, const Location& asked_by, const SearchPath& search,
                       std::vector<SourceFile> chain) {
  const bool circle =
      std::any_of(chain.begin(), chain.end(), [&](const SourceFile& f) { return identity(f.file) == identity(file); });
  chain.push_back({file, chain.empty() ? Location{} : asked_by});
  if (circle)
    return Diagnostic{asked_by, fmt::format("'extends' goes in a circle: {}", way_round(chain)),
                      "one of these files must not extend another"};
  if (chain.size() > longest_chain)
    return Diagnostic{asked_by, fmt::format("'extends' goes through more than {} files", longest_chain), ""};

  const Result<std::string> text = read_file(file, asked_by);
  if (!text) return text.errors();
  return tree_of(*text, file, search, std::move(chain));
}

/// `chain` ends with the file itself.
Result<Tree> tree_of(const std::string& text, const std::string& file, const SearchPath& search,
                     std::vector<SourceFile> chain) {
  Result<Node> parsed = parse_yaml(text, file);
  if (!parsed) return with_extending_files(parsed.errors(), chain);
  Tree tree{std::move(parsed).value(), {}, chain};
  if (chain.size() > 1)
    if (Diagnostics wrong = wrong_with_base(tree.node); !wrong.empty())
      return with_extending_files(std::move(wrong), chain);
  const Node* extends = tree.node.find("extends");
  // Anything but text is left for the reader to complain about.
  if (extends == nullptr || extends->kind != Node::Kind::scalar || extends->text.empty()) return tree;

  const Location where = extends->at.location();
  const Result<std::string> base_file =
      find_file({extends->text, folder_of(file), where}, search.topologies, "machine");
  Result<Tree> base = base_file ? load_tree(*base_file, where, search, std::move(chain)) : base_file.errors();
  if (!base) {
    tree.errors = base.errors();
    return tree;
  }
  Tree below = std::move(base).value();
  for (const char* own : {"name", "title", "systems", "nccl_versions", "extends"}) below.node.erase(own);
  return Tree{merged(std::move(below.node), std::move(tree.node)), std::move(below.errors), std::move(below.files)};
}

Result<Machine> read(Tree&& loaded, const std::string& file, const std::vector<Setting>& settings,
                     const std::string& prefix, Machine* as_far = nullptr) {
  auto& [tree, below, files] = loaded;
  Reader reader(prefix);
  reader.reads(files);
  reader.error(below);
  if (!below.empty()) reader.expect_parts_only();
  reader.error(repeated_keys(tree));
  Diagnostics misplaced;
  for (const Setting& setting : settings) apply(tree, setting, misplaced);
  reader.error(misplaced);
  TopologySpec spec = read_topology(reader, tree, file);
  spec.files = std::move(files);
  spec.origins = reader.origins().below(prefix);
  if (const Node* extends = tree.find("extends"); extends != nullptr && extends->set_by)
    reader.error(extends->at, "'extends' cannot be set", "choose the machine by its name instead");
  if (!reader.ok()) {
    if (below.empty()) reader.error(check_known_parts(spec));
    if (as_far != nullptr) *as_far = {std::move(spec), reader.origins()};
    return reader.take();
  }
  return Machine{with_switches_joined(std::move(spec)), reader.origins()};
}

Result<TopologySpec> only_spec(Result<Machine> machine) {
  if (!machine) return machine.errors();
  return std::move(machine).value().spec;
}

}  // namespace

Result<Machine> load_topology(const Request& request, const SearchPath& search, const std::vector<Setting>& settings,
                              const std::string& prefix, Machine* as_far) {
  if (request.text) {
    const std::string& name = request.name_or_file;
    Result<Tree> given = tree_of(*request.text, name, search, {{name}});
    return given ? read(std::move(given).value(), name, settings, prefix, as_far) : given.errors();
  }
  const Result<std::string> file = find_file(request, search.topologies, "machine");
  if (!file) return file.errors();
  Result<Tree> loaded = load_tree(*file, request.where, search, {});
  if (!loaded) return loaded.errors();
  return read(std::move(loaded).value(), *file, settings, prefix, as_far);
}

}  // namespace collcast::input

namespace collcast {

Result<TopologySpec> parse_topology(std::string_view text, std::string_view file_name,
                                    const std::vector<Override>& overrides) {
  const std::string file(file_name);
  Result<input::Node> tree = input::parse_yaml(text, file);
  if (!tree) return tree.errors();
  if (const input::Node* extends = tree->find("extends"))
    return Diagnostic{extends->at.location(), "'extends' is only followed in a file on disk",
                      "load the file by its path"};
  const auto settings = input::to_settings(overrides);
  if (!settings) return settings.errors();
  return input::only_spec(input::read({std::move(tree).value(), {}, {{file}}}, file, *settings, ""));
}

Result<TopologySpec> parse_topology(std::string_view text, std::string_view file_name, const SearchPath& search,
                                    const std::vector<Override>& overrides) {
  const auto settings = input::to_settings(overrides);
  if (!settings) return settings.errors();
  const input::Request given{std::string(file_name), "", {"command line"}, std::string(text)};
  return input::only_spec(input::load_topology(given, search, *settings, ""));
}

Result<TopologySpec> load_topology(const std::string& name_or_file, const SearchPath& search,
                                   const std::vector<Override>& overrides) {
  const auto settings = input::to_settings(overrides);
  if (!settings) return settings.errors();
  return input::only_spec(input::load_topology({name_or_file, "", {"command line"}}, search, *settings, ""));
}

}  // namespace collcast
