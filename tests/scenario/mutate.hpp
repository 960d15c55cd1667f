// A tree changed at one place and written out again, one key per line, with the line of every path.
#pragma once

#include <map>
#include <string>

#include "scenario/tree.hpp"

namespace collcast::mutate {

struct Written {
  std::string text;
  std::map<std::string, int> line;  ///< of a path's key; of the last one where it is repeated
};
Written write(const input::Node& tree);

/// Null if there is nothing at the path.
input::Node* at(input::Node& tree, const std::string& path);
/// The map that holds the last key of the path.
input::Node* parent(input::Node& tree, const std::string& path);
std::string last_key(const std::string& path);

input::Node with_value(input::Node tree, const std::string& path, const std::string& raw);
input::Node without(input::Node tree, const std::string& path);
input::Node renamed(input::Node tree, const std::string& path, const std::string& key);
input::Node doubled(input::Node tree, const std::string& path);

}  // namespace collcast::mutate
