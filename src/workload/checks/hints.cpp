// What is offered in the place of a value that does not fit, in words.
#include <limits>
#include <utility>

#include "workload/checks/misfits.hpp"

namespace collcast::workload {

std::string either(const std::vector<int>& values) {
  std::string out;
  for (const int value : values) out += (out.empty() ? "" : " or ") + std::to_string(value);
  return out;
}

Hint::Hint(std::string words, Change change) {
  const std::string beside = words.starts_with("use ") ? words.substr(4) : words;
  offers.push_back({std::move(words), beside, std::move(change)});
}

Hint Hint::use(const std::string& name, int ParallelLayout::*degree, const std::vector<int>& values) {
  return use(name, {values.begin(), values.end()}, [degree](StepInputs& in, int value) { in.layout.*degree = value; });
}

Hint Hint::use(const std::string& name, const std::vector<std::int64_t>& values,
               const std::function<void(StepInputs&, int)>& put) {
  Hint out("");
  for (const std::int64_t value : values) {
    const std::string number = std::to_string(value), beside = name.empty() ? number : name + " " + number;
    Change change;
    if (value <= std::numeric_limits<int>::max())
      change = [put, value](StepInputs& in) { put(in, static_cast<int>(value)); };
    out.offers.push_back({"use " + beside, beside, std::move(change), name, number});
  }
  return out;
}

Hint Hint::or_use(const std::string& words, Change change) && {
  offers.push_back({words.starts_with("use ") ? words : "use " + words, words, std::move(change)});
  return std::move(*this);
}

Hint Hint::or_any_of(Hint others) && {
  for (Offer& offer : others.offers) offers.push_back(std::move(offer));
  return std::move(*this);
}

std::string Hint::text() const {
  std::string out;
  const Offer* before = nullptr;
  for (const Offer& offer : offers) {
    if (before == nullptr)
      out = offer.first;
    else if (!offer.value.empty() && !before->value.empty() && offer.degree == before->degree)
      out += " or " + offer.value;
    else
      out += ", or " + offer.beside;
    before = &offer;
  }
  return offers.empty() ? words_ : out;
}

void Misfits::wrong(const std::vector<std::string>& paths, std::string message, Hint hint) {
  if (!std::all_of(paths.begin(), paths.end(), [&](const std::string& path) { return origins.good(path); })) return;
  found.push_back({origins.of(paths.front()), std::move(message), hint.text()});
  blamed.push_back(paths.front());
  hints.push_back(std::move(hint));
}

std::string Misfits::seen(const std::string& path) const {
  return origins.knows(path) ? " (" + to_text(origins.of(path)) + ")" : std::string();
}

}  // namespace collcast::workload
