// A parsed file before anything is known about its meaning: maps, lists and scalars, each with its place.
//
// YAML and JSON both end here, so that one typed reader (reader.hpp) serves every format. Settings from
// the command line and from what_if are put into the tree before it is read and are validated with it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/diagnostic.hpp"

namespace collcast::input {

/// Where something was written. The file's name is shared: a file of many values carries it once.
struct Place {
  std::shared_ptr<const std::string> file;
  int line = 0;
  int column = 0;

  Location location() const { return {file ? *file : std::string(), line, column}; }
};
Place place_of(const Location&);

struct Entry;

struct Node {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  std::string text;            ///< scalar, without its quotes
  bool quoted = false;         ///< a scalar that can only be text
  std::vector<Node> items;     ///< list
  std::vector<Entry> entries;  ///< map, in the order of the file, keys distinct
  Diagnostics repeated;        ///< map: keys that were given again, which are not among the entries
  Place at;
  std::shared_ptr<const std::string> set_by;  ///< path of the setting that put this here; null: the file itself

  const Node* find(std::string_view key) const;
  Node* find(std::string_view key);
  void erase(std::string_view key);
};

struct Entry {
  std::string key;
  Place at;
  Node value;
};

/// As one line of YAML.
std::string flow_text(const Node&);

/// Keys given again, anywhere in a tree. An error, but one behind which the file can be read on.
Diagnostics repeated_keys(const Node&);

/// `over` on top of `base`: maps merge key by key, anything else replaces.
Node merged(Node base, Node over);

/// One `path=value`. A path names keys separated by dots; in a list a component is an index or the `name`
/// of an element.
struct Setting {
  std::string path;
  Node value;      ///< with its own places
  Location where;  ///< of the path
};

/// Puts a value at its path, making the maps on the way; a path through a scalar or past the end of a list is
/// an error. Whether the keys exist is the reader's question.
void apply(Node& root, const Setting&, Diagnostics&);

}  // namespace collcast::input
