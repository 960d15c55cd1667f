#include "scenario/tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "collcast/base/words.hpp"
#include "scenario/parse.hpp"

namespace collcast::input {

Place place_of(const Location& where) {
  return {std::make_shared<const std::string>(where.file), where.line, where.column};
}

const Node* Node::find(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.key == key; });
  return found == entries.end() ? nullptr : &found->value;
}

Node* Node::find(std::string_view key) { return const_cast<Node*>(std::as_const(*this).find(key)); }

void Node::erase(std::string_view key) {
  std::erase_if(entries, [&](const Entry& e) { return e.key == key; });
}

Diagnostics repeated_keys(const Node& node) {
  Diagnostics out;
  for (const Node& item : node.items) append(out, repeated_keys(item));
  for (const Entry& entry : node.entries) append(out, repeated_keys(entry.value));
  append(out, node.repeated);
  return out;
}

Node merged(Node base, Node over) {
  if (base.kind != Node::Kind::map || over.kind != Node::Kind::map) return over;
  for (Entry& entry : over.entries) {
    Node* below = base.find(entry.key);
    if (below == nullptr) {
      base.entries.push_back(std::move(entry));
    } else {
      *below = merged(std::move(*below), std::move(entry.value));
    }
  }
  append(base.repeated, over.repeated);
  base.at = over.at;
  return base;
}

namespace {

void stamp(Node& node, const std::shared_ptr<const std::string>& path) {
  node.set_by = path;
  for (Node& item : node.items) stamp(item, path);
  for (Entry& entry : node.entries) stamp(entry.value, path);
}

/// Where a component of the setting's path stands.
Location place(const Setting& setting, std::string_view component) {
  Location where = setting.where;
  if (where.column > 0) where.column += static_cast<int>(component.data() - setting.path.data());
  return where;
}

/// The element of a list that a path component means: its index, or the `name` it carries.
Node* element(Node& list, std::string_view component) {
  std::size_t index = 0;
  const char* end = component.data() + component.size();
  if (const auto [stop, error] = std::from_chars(component.data(), end, index); error == std::errc{} && stop == end)
    return index < list.items.size() ? &list.items[index] : nullptr;
  for (Node& item : list.items) {
    const Node* name = item.find("name");
    if (name != nullptr && name->text == component) return &item;
  }
  return nullptr;
}

/// One component further down, or null after saying why not. `component` is a part of the setting's path.
Node* descend(Node& from, std::string_view component, const Setting& setting,
              const std::shared_ptr<const std::string>& path, Diagnostics& errors) {
  if (from.kind == Node::Kind::list) {
    Node* found = element(from, component);
    if (found == nullptr)
      errors.push_back(
          {place(setting, component),
           fmt::format("path '{}': the list has no element '{}'", shown(setting.path), shown(component)),
           fmt::format("it has {} elements; use an index from 0 or an element's name", from.items.size())});
    return found;
  }
  if (from.kind == Node::Kind::scalar) {
    errors.push_back({place(setting, component),
                      fmt::format("path '{}': nothing can be set below a single value", shown(setting.path)),
                      fmt::format("leave out '.{}' to replace the value", shown(component))});
    return nullptr;
  }
  if (from.kind == Node::Kind::null) {
    from.kind = Node::Kind::map;
  }
  Node* found = from.find(component);
  if (found == nullptr) {
    Node fresh;
    fresh.at = place_of(place(setting, component));
    fresh.set_by = path;
    from.entries.push_back({std::string(component), fresh.at, std::move(fresh)});
    found = &from.entries.back().value;
  }
  return found;
}

}  // namespace

void apply(Node& root, const Setting& setting, Diagnostics& errors) {
  const std::vector<std::string_view> components = split(setting.path, '.');
  const auto empty = std::find_if(components.begin(), components.end(), [](std::string_view c) { return c.empty(); });
  if (empty != components.end()) {
    errors.push_back({place(setting, *empty), fmt::format("path '{}' has an empty part", shown(setting.path)),
                      "write keys separated by single dots, such as network.link.bandwidth"});
    return;
  }
  if (components.size() > static_cast<std::size_t>(max_depth)) {
    errors.push_back({setting.where, fmt::format("path '{}' is too long", shown(setting.path)), ""});
    return;
  }
  Node value = setting.value;
  const auto path = std::make_shared<const std::string>(setting.path);
  stamp(value, path);
  Node* target = &root;
  for (const std::string_view component : components) {
    target = descend(*target, component, setting, path, errors);
    if (target == nullptr) return;
  }
  *target = std::move(value);
}

namespace {

/// As YAML writes any text on one line.
std::string double_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02X}", byte);
    else
      out += c;
  }
  return out + "\"";
}

}  // namespace

std::string flow_text(const Node& node) {
  std::vector<std::string> parts;
  switch (node.kind) {
    case Node::Kind::null:
      return "null";
    case Node::Kind::scalar:
      return node.quoted ? double_quoted(node.text) : node.text;
    case Node::Kind::list:
      for (const Node& item : node.items) parts.push_back(flow_text(item));
      return fmt::format("[{}]", fmt::join(parts, ", "));
    case Node::Kind::map:
      for (const Entry& entry : node.entries) parts.push_back(entry.key + ": " + flow_text(entry.value));
      return fmt::format("{{{}}}", fmt::join(parts, ", "));
  }
  return "";
}

}  // namespace collcast::input
