// Figures by their names in JSON documents: the unit that a name ends in, how people read a value, which way is better.
#pragma once

#include <string>
#include <string_view>

namespace collcast {

enum class Unit { seconds, bytes, bytes_per_s, flops_per_s, tokens_per_s, share, count };
Unit unit_of(std::string_view figure);

/// Four significant digits, all of the whole number where it has more: "8.992", "50050".
std::string figure_text(double value);
/// "15.77 s", "46.33 GiB", "50.5%".
std::string value_text(double value, Unit);
/// The same with a sign: "+1.2 s", "-0.5 points" of a share.
std::string change_text(double change, Unit);
/// "+2.4%"; empty where `base` is 0.
std::string relative_text(double base, double now);

/// "TP exposed" of "tp_exposed_s", a part of a figure.
std::string term_text(std::string name);

enum class Better { lower, higher, neither };
/// Forecasts are held by what a user pays for: times, memory, errors down, rates and utilisations up. The rest is told.
Better better(std::string_view figure);
std::string_view to_string(Better);

/// Whether a figure is of the simulated time where there is one, else of the closed form.
bool follows_method(std::string_view figure);

}  // namespace collcast
