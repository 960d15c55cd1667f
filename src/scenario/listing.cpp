#include "collcast/scenario/listing.hpp"

#include "scenario/files.hpp"
#include "scenario/parse.hpp"

namespace collcast {

Result<ScenarioEntry> describe_scenario(const std::string& name_or_file, const SearchPath& search) {
  const Location where{"command line"};
  const Result<std::string> file = input::find_file({name_or_file, "", where}, search.scenarios, "scenario");
  if (!file) return file.errors();
  const Result<std::string> text = read_file(*file, where);
  if (!text) return text.errors();
  const Result<input::Node> tree = input::parse_yaml(*text, *file);
  if (!tree) return tree.errors();
  input::Reader reader;
  ScenarioEntry entry;
  input::Object o(reader, *tree, "");
  if (!input::read_schema(reader, o, "collcast.scenario.v1")) return reader.take();
  o.required("name", entry.name, input::AsName{});
  o.optional("title", entry.title, input::AsText{});
  if (const input::Node* what_if = o.optional_map("what_if"))
    for (const input::Variant& variant : input::read_variants(reader, *what_if))
      entry.what_if.push_back({variant.name, variant.title});
  if (!reader.ok()) return reader.take();
  // What is looked up is found by its file's name, whatever it calls itself.
  if (*file != name_or_file) entry.name = name_or_file;
  return entry;
}

}  // namespace collcast
