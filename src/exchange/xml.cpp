#include "exchange/xml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <set>

#include "collcast/base/numbers.hpp"
#include "collcast/base/text.hpp"

namespace collcast::exchange {

namespace {

constexpr int deepest = 64;
constexpr std::size_t most_elements = 400'000;
constexpr std::size_t most_errors = 100;
constexpr std::size_t most_attributes = 64;  // of one element; those of NCCL and MSCCL have a dozen
constexpr std::size_t most_kinds = 50;       // of warnings

/// Offset of an attribute's value in the tag that begins at `at`, or of the tag.
std::size_t value_of(std::string_view text, std::size_t at, std::string_view attribute) {
  std::size_t i = at;
  while (i < text.size() && text[i] != '>') {
    const std::size_t name = i;
    while (i < text.size() && std::strchr(" \t\r\n=>/\"'", text[i]) == nullptr) ++i;
    const bool found = text.substr(name, i - name) == attribute;
    while (i < text.size() && std::strchr(" \t\r\n=", text[i]) != nullptr) ++i;
    if (i < text.size() && (text[i] == '"' || text[i] == '\'')) {
      if (found) return i + 1;
      i = std::min(text.find(text[i], i + 1), text.size() - 1) + 1;
    } else if (i == name) {
      ++i;
    }
  }
  return at;
}

/// In the words of a person who edits the file.
std::string parse_message(pugi::xml_parse_status status) {
  switch (status) {
    case pugi::status_no_document_element:
      return "the file has no XML element";
    case pugi::status_end_element_mismatch:
      return "an element that was opened is not closed, or another one is";
    case pugi::status_bad_start_element:
      return "this element's tag is not complete";
    case pugi::status_bad_attribute:
      return "this is no attribute: name=\"value\" is one";
    case pugi::status_bad_end_element:
      return "this closing tag is not complete";
    case pugi::status_bad_comment:
      return "a comment that was opened is not closed";
    case pugi::status_bad_doctype:
      return "a DOCTYPE that is not complete";
    case pugi::status_unrecognized_tag:
      return "this is no tag";
    default:
      return "this is not XML";
  }
}

/// Of the '<' of an element; pugixml tells where its name is.
std::size_t offset_of(const pugi::xml_node& node) {
  const auto offset = static_cast<std::size_t>(node.offset_debug());
  return node.type() == pugi::node_element && offset > 0 ? offset - 1 : offset;
}

/// Walks every element once: its depth, its attributes, and what else stands in the document.
class Inspector : public pugi::xml_tree_walker {
 public:
  Inspector(const LineStarts& lines, const std::string& file) : lines_(lines), file_(file) {}
  Diagnostics take() { return std::move(errors_); }

  bool for_each(pugi::xml_node& node) override {
    if (node.type() == pugi::node_doctype) {
      errors_.push_back({where(node), "a DOCTYPE is not read: no entity is expanded",
                         "remove it; files of NCCL and MSCCL have none"});
      return true;
    }
    if (node.type() != pugi::node_element) return true;
    if (depth() >= deepest || ++elements_ > most_elements) {
      errors_.push_back({where(node), depth() >= deepest ? "too deeply nested" : "too many elements",
                         fmt::format("up to {} levels and {} elements are read", deepest, most_elements)});
      return false;
    }
    std::set<std::string_view> seen;
    for (const pugi::xml_attribute& attribute : node.attributes()) {
      if (seen.size() >= most_attributes) {
        errors_.push_back({where(node), fmt::format("<{}> has too many attributes", shown(node.name())),
                           fmt::format("up to {} are read", most_attributes)});
        break;
      }
      if (!seen.insert(attribute.name()).second)
        errors_.push_back({where(node), fmt::format("<{}> has '{}' twice", shown(node.name()), shown(attribute.name())),
                           "leave out one"});
    }
    return errors_.size() < most_errors;
  }

 private:
  Location where(const pugi::xml_node& node) const { return lines_.place_at(offset_of(node), file_); }

  const LineStarts& lines_;
  const std::string& file_;
  Diagnostics errors_;
  std::size_t elements_ = 0;
};

/// "&foo;" outside of comments, CDATA and instructions: pugixml leaves it as it stands. A bare '&' of a name is let be.
/// None where a DOCTYPE stands, which is refused, whatever it defines. What looks like one of these within a tag is an
/// attribute's value.
Diagnostics undefined_entities(std::string_view text, const LineStarts& lines, const std::string& file) {
  struct Span {
    std::string_view begin, end;
  };
  constexpr std::array passed{Span{"<!--", "-->"}, Span{"<![CDATA[", "]]>"}, Span{"<?", "?>"}};
  constexpr std::array<std::string_view, 5> defined{"amp", "lt", "gt", "quot", "apos"};
  constexpr std::string_view of_names = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-:";
  Diagnostics out;
  bool in_tag = false;
  char quote = 0;  // that a value of the tag is in; 0: none
  for (std::size_t i = 0; i < text.size() && out.size() < most_errors; ++i) {
    const char c = text[i];
    if (c == '&') {
      const std::size_t end = text.find_first_not_of(of_names, i + 1);
      const std::string_view name =
          end == std::string_view::npos ? std::string_view() : text.substr(i + 1, end - i - 1);
      if (!name.empty() && text[end] == ';' && std::find(defined.begin(), defined.end(), name) == defined.end())
        out.push_back({lines.place_at(i, file),
                       fmt::format("the entity '&{};' is not defined", shown(std::string(name))),
                       "expected &amp;, &lt;, &gt;, &quot;, &apos; or a number: &#38;"});
    } else if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (in_tag) {
      if (c == '"' || c == '\'') quote = c;
      in_tag = c != '>';
    } else if (c == '<') {
      const std::string_view rest = text.substr(i);
      const auto span =
          std::find_if(passed.begin(), passed.end(), [&](const Span& one) { return rest.starts_with(one.begin); });
      if (rest.starts_with("<!DOCTYPE")) return {};
      in_tag = span == passed.end();
      if (!in_tag) i = std::min(text.find(span->end, i + span->begin.size()), text.size() - 1);
    }
  }
  return out;
}

bool is_text(const pugi::xml_node& node) { return node.type() == pugi::node_pcdata || node.type() == pugi::node_cdata; }

Diagnostics check_roots(const pugi::xml_document& document, const LineStarts& lines, const std::string& file,
                        const std::string& root, const std::string& what) {
  Diagnostics out;
  int roots = 0;
  for (const pugi::xml_node& node : document.children()) {
    const Location where = lines.place_at(offset_of(node), file);
    if (is_text(node)) {
      const std::string_view text = node.value();
      const std::size_t blanks = std::min(text.find_first_not_of(" \t\r\n"), text.size());
      out.push_back({lines.place_at(offset_of(node) + blanks, file), fmt::format("text outside of <{}>", root),
                     "expected nothing before and behind it"});
    }
    if (node.type() != pugi::node_element) continue;
    if (++roots > 1)
      out.push_back({where, fmt::format("a second root element <{}>", shown(node.name())), "a file has one"});
    else if (root != node.name())
      out.push_back({where, fmt::format("the root element is <{}>", shown(node.name())),
                     fmt::format("expected <{}>: {}", root, what)});
    if (out.size() > 1) break;
  }
  return out;
}

}  // namespace

Result<std::unique_ptr<XmlFile>> XmlFile::parse(std::string_view text, const std::string& file, const std::string& root,
                                                const std::string& what) {
  if (text.size() > max_file_bytes)
    return Diagnostic{{file},
                      fmt::format("{} bytes are too many", text.size()),
                      fmt::format("files are read up to {} MiB", max_file_bytes >> 20)};
  if (Diagnostics wrong = check_encoding(text, file); !wrong.empty()) return wrong;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return Diagnostic{{file, 1, 1}, "the file is empty", fmt::format("expected {}", what)};
  auto out = std::make_unique<XmlFile>();
  out->name_ = file;
  out->text_ = text;
  out->lines_ = LineStarts(out->text_);
  if (Diagnostics wrong = undefined_entities(out->text_, out->lines_, file); !wrong.empty()) return wrong;
  // As a fragment, or text around the root would be dropped without a word.
  constexpr unsigned how = pugi::parse_default | pugi::parse_doctype | pugi::parse_fragment;
  const pugi::xml_parse_result result =
      out->document_.load_buffer(out->text_.data(), out->text_.size(), how, pugi::encoding_utf8);
  if (!result || !out->document_.document_element()) {
    const bool is_xml = text[text.find_first_not_of(" \t\r\n")] == '<';
    return Diagnostic{
        place_at(text, is_xml ? static_cast<std::size_t>(result.offset) : 0, file),
        is_xml ? parse_message(result ? pugi::status_no_document_element : result.status) : "this is not XML",
        fmt::format("expected {}; is the file cut off?", what)};
  }
  Inspector inspector(out->lines_, file);
  out->document_.traverse(inspector);
  Diagnostics errors = inspector.take();
  append(errors, check_roots(out->document_, out->lines_, file, root, what));
  if (!errors.empty()) return errors;
  return out;
}

Element XmlFile::root() { return {*this, document_.document_element()}; }

void XmlFile::error(Location where, std::string message, std::string hint) {
  if (errors_.size() < most_errors) errors_.push_back({std::move(where), std::move(message), std::move(hint)});
}

void XmlFile::warn(const std::string& kind, const Location& where, std::string hint) {
  const bool is_new = counted_.count(kind) == 0;
  // Kinds that a file makes up as it goes on are no news after so many.
  Counted& counted = counted_[is_new && counted_.size() >= most_kinds ? "more that is not read" : kind];
  if (counted.count++ == 0) {
    counted.first = where;
    counted.hint = std::move(hint);
  }
}

Diagnostics XmlFile::warnings() const {
  Diagnostics out;
  for (const auto& [kind, counted] : counted_)
    out.push_back({counted.first,
                   counted.count > 1 ? fmt::format("{} ({} times, this is the first)", kind, counted.count) : kind,
                   counted.hint});
  return out;
}

Element::Element(XmlFile& file, pugi::xml_node node) : file_(&file), node_(node) {}

Location Element::place() const { return file_->lines_.place_at(offset_of(node_), file_->name_); }

Location Element::place_of(const char* attribute) const {
  return file_->lines_.place_at(value_of(file_->text_, offset_of(node_), attribute), file_->name_);
}

void Element::error(const char* attribute, std::string message, std::string hint) {
  file_->error(place_of(attribute), std::move(message), std::move(hint));
}

void Element::missing(const char* attribute, const char* hint) {
  file_->error(place(), fmt::format("<{}> has no '{}'", name(), attribute), hint);
}

std::string Element::text(const char* attribute) {
  asked_.emplace_back(attribute);
  return node_.attribute(attribute).value();
}

std::string Element::required_text(const char* attribute) {
  std::string out = text(attribute);
  if (out.empty()) missing(attribute, "expected a text");
  return out;
}

std::optional<std::int64_t> Element::integer(const char* attribute, std::int64_t least, std::int64_t most) {
  if (!has(attribute)) {
    asked_.emplace_back(attribute);
    return std::nullopt;
  }
  const std::string given = text(attribute);
  if (const auto value = to_number<std::int64_t>(given); value && *value >= least && *value <= most) return value;
  error(attribute, fmt::format("{} of <{}> is '{}'", attribute, name(), shown(given)),
        most == std::numeric_limits<std::int32_t>::max()
            ? fmt::format("expected a whole number from {}", least)
            : fmt::format("expected a whole number from {} to {}", least, most));
  return std::nullopt;
}

std::optional<std::int64_t> Element::required_integer(const char* attribute, std::int64_t least, std::int64_t most) {
  if (!has(attribute)) missing(attribute, "expected a whole number");
  return integer(attribute, least, most);
}

std::optional<std::uint64_t> Element::hexadecimal(const char* attribute) {
  const std::string given = text(attribute);
  if (given.empty()) return std::nullopt;
  const std::size_t digits = given.starts_with("0x") || given.starts_with("0X") ? 2 : 0;
  std::uint64_t value = 0;
  const auto [end, failed] = std::from_chars(given.data() + digits, given.data() + given.size(), value, 16);
  if (failed == std::errc{} && end == given.data() + given.size()) return value;
  error(attribute, fmt::format("{} of <{}> is '{}'", attribute, name(), shown(given)),
        "expected a hexadecimal number such as 0x10de");
  return std::nullopt;
}

std::optional<double> Element::number(const char* attribute, double least, double most) {
  const std::string given = text(attribute);
  if (!has(attribute)) return std::nullopt;
  if (const auto value = to_number<double>(given); value && std::isfinite(*value) && *value >= least && *value <= most)
    return value;
  error(attribute, fmt::format("{} of <{}> is '{}'", attribute, name(), shown(given)),
        std::isfinite(most) ? fmt::format("expected a number from {} to {}", least, most)
                            : fmt::format("expected a number from {}", least));
  return std::nullopt;
}

void Element::ignore(std::initializer_list<const char*> attributes) {
  asked_.insert(asked_.end(), attributes.begin(), attributes.end());
}

std::vector<Element> Element::children(std::initializer_list<const char*> names) {
  std::vector<Element> out;
  for (const pugi::xml_node& child : node_.children()) {
    if (is_text(child)) {
      file_->warn(fmt::format("text inside <{}> is not read", name()), place(), "everything stands in attributes");
      continue;
    }
    if (child.type() != pugi::node_element) continue;
    Element element(*file_, child);
    const bool known = std::any_of(names.begin(), names.end(), [&](const char* one) { return element.name() == one; });
    if (known)
      out.push_back(element);
    else
      file_->warn(fmt::format("<{}> inside <{}> is not read", shown(element.name()), name()), element.place(),
                  fmt::format("read there: {}", fmt::join(names, ", ")));
  }
  return out;
}

void Element::finish() {
  for (const pugi::xml_attribute& attribute : node_.attributes()) {
    if (std::find(asked_.begin(), asked_.end(), attribute.name()) != asked_.end()) continue;
    file_->warn(fmt::format("attribute '{}' of <{}> is not read", shown(attribute.name()), name()),
                place_of(attribute.name()), "");
  }
}

}  // namespace collcast::exchange
