#include "mutate.hpp"

#include <algorithm>

namespace collcast::mutate {

using input::Entry;
using input::Node;

namespace {

class Writer {
 public:
  Written out;

  void value(const Node& node, const std::string& path, int indent) {
    switch (node.kind) {
      case Node::Kind::null:
        break;
      case Node::Kind::scalar:
        out.text += node.quoted ? '"' + node.text + '"' : node.text;
        break;
      case Node::Kind::list:
        if (node.items.empty()) out.text += "[]";
        for (std::size_t i = 0; i < node.items.size(); ++i) {
          break_line(indent);
          out.text += "- ";
          value(node.items[i], path + std::to_string(i) + ".", indent + 2);
        }
        break;
      case Node::Kind::map:
        if (node.entries.empty()) out.text += "{}";
        for (const Entry& entry : node.entries) {
          break_line(indent);
          out.line[path + entry.key] = line_;
          out.text += entry.key + ": ";
          value(entry.value, path + entry.key + ".", indent + 2);
        }
        break;
    }
  }

 private:
  void break_line(int indent) {
    if (!out.text.empty()) {
      out.text += '\n';
      ++line_;
    }
    out.text.append(static_cast<std::size_t>(indent), ' ');
  }
  int line_ = 1;
};

}  // namespace

Written write(const Node& tree) {
  Writer writer;
  writer.value(tree, "", 0);
  writer.out.text += '\n';
  return std::move(writer.out);
}

Node* at(Node& tree, const std::string& path) {
  const std::size_t dot = path.find('.');
  const std::string head = path.substr(0, dot);
  Node* below = nullptr;
  if (tree.kind == Node::Kind::list) {
    const auto index = static_cast<std::size_t>(std::stoul(head));
    if (index < tree.items.size()) below = &tree.items[index];
  } else {
    below = tree.find(head);
  }
  if (below == nullptr || dot == std::string::npos) return below;
  return at(*below, path.substr(dot + 1));
}

Node* parent(Node& tree, const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? &tree : at(tree, path.substr(0, dot));
}

std::string last_key(const std::string& path) { return path.substr(path.rfind('.') + 1); }

Node with_value(Node tree, const std::string& path, const std::string& raw) {
  Node value;
  value.kind = Node::Kind::scalar;
  value.text = raw;
  *at(tree, path) = value;
  return tree;
}

Node without(Node tree, const std::string& path) {
  parent(tree, path)->erase(last_key(path));
  return tree;
}

Node renamed(Node tree, const std::string& path, const std::string& key) {
  for (Entry& entry : parent(tree, path)->entries) {
    if (entry.key == last_key(path)) entry.key = key;
  }
  return tree;
}

Node doubled(Node tree, const std::string& path) {
  Node* map = parent(tree, path);
  const auto found =
      std::find_if(map->entries.begin(), map->entries.end(), [&](const Entry& e) { return e.key == last_key(path); });
  const Entry copy = *found;
  map->entries.push_back(copy);
  return tree;
}

}  // namespace collcast::mutate
