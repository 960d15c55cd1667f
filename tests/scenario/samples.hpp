// Complete examples of every format: between them they use every key. Mutated key by key in keys_test.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "scenario/files.hpp"

namespace collcast::samples {

/// What reading a text gives: errors, and the keys that the format was asked for.
struct Reading {
  Diagnostics errors;
  std::vector<input::KnownKey> known;
};

struct Sample {
  std::string name;
  std::string text;
  std::function<Reading(const std::string& text)> read;
};
std::vector<Sample> all();

/// What a scenario begins with.
inline const std::string head = "schema: collcast.scenario.v1\nname: s\ntopology: dgx-a100\n";

/// The shipped machines and scenarios of this checkout.
SearchPath shipped();

}  // namespace collcast::samples
