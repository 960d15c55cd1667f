// Where the values of an input were written, for what turns out to be wrong with them only later.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "collcast/base/diagnostic.hpp"

namespace collcast {

/// The place of each value by its path ("layout.tp"), whatever it was written in: a file, a file that it extends
/// or names, a variant, an option of the command line.
class Origins {
 public:
  Origins() = default;
  /// Everything is at one place.
  Origins(Location whole) : whole_(std::move(whole)) {}

  void set(std::string path, Location where) { places_.insert_or_assign(std::move(path), std::move(where)); }
  /// Those of `more` too; they count where both know a path.
  void add(const Origins& more);
  /// The value at `path` could not be read, which has been said: nothing that depends on it is worth saying.
  void spoil(std::string path) { spoiled_.insert(std::move(path)); }
  /// False if the value, something in it or something around it could not be read.
  bool good(std::string_view path) const;
  bool all_good() const { return spoiled_.empty(); }

  /// Of the value, else of the nearest thing around it, else of the whole.
  const Location& of(std::string_view path) const;
  /// Those whose path begins with `prefix`, without it.
  Origins below(std::string_view prefix) const;
  /// Whether the value itself was written anywhere.
  bool knows(std::string_view path) const { return places_.find(path) != places_.end(); }

 private:
  Location whole_;
  std::map<std::string, Location, std::less<>> places_;
  std::set<std::string, std::less<>> spoiled_;
};

}  // namespace collcast
