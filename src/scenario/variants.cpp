// `what_if`: named sets of settings on top of a scenario.
#include <fmt/format.h>

#include "scenario/files.hpp"
#include "scenario/parse.hpp"

namespace collcast::input {

namespace {

Variant read_variant(Reader& reader, const Entry& entry) {
  Variant variant;
  const std::string path = "what_if." + entry.key;
  Node name;
  name.kind = Node::Kind::scalar;
  name.text = entry.key;
  name.at = entry.at;
  if (!AsName{}(reader, name, "what_if", variant.name)) variant.name = entry.key;  // what is said of it names it
  Object o(reader, entry.value, path);
  o.optional("title", variant.title, AsText{});
  const Node* set = o.required_map("set");
  o.finish();
  if (set == nullptr) return variant;
  if (set->kind != Node::Kind::map || set->entries.empty()) {
    mismatch(reader, *set, path + ".set", "at least one path: value, such as layout.tp: 4");
    return variant;
  }
  for (const Entry& setting : set->entries)
    variant.settings.push_back({setting.key, setting.value, setting.at.location()});
  return variant;
}

}  // namespace

std::vector<Variant> read_variants(Reader& reader, const Node& what_if) {
  constexpr std::size_t most_variants = 64;  // each is read in full
  std::vector<Variant> variants;
  if (what_if.kind != Node::Kind::map || what_if.entries.size() > most_variants) {
    if (what_if.kind == Node::Kind::map) {
      reader.error(what_if.at, fmt::format("{} variants", what_if.entries.size()),
                   fmt::format("expected up to {}", most_variants));
    } else {
      mismatch(reader, what_if, "what_if", "a map of variants");
    }
    return variants;
  }
  for (const Entry& entry : what_if.entries) variants.push_back(read_variant(reader, entry));
  return variants;
}

}  // namespace collcast::input
