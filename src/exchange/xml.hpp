// XML of a stranger, element by element, every complaint with its place. pugixml ends here and in the writer.
//
// Refused before and while parsing: what is no UTF-8 text, documents nested deeper than any of NCCL's, DOCTYPEs (and
// with them entities of one's own, so an "entity bomb" cannot be written), a second or a wrong root, an attribute given
// twice. Attributes and elements that nobody reads are counted and warned about: NCCL's files gain some with every
// version.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/base/text.hpp"

namespace collcast::exchange {

class Element;

class XmlFile {
 public:
  /// `root`: the element that such a file consists of; `what`: of which kind it is, for messages.
  static Result<std::unique_ptr<XmlFile>> parse(std::string_view text, const std::string& file, const std::string& root,
                                                const std::string& what);
  Element root();
  const std::string& name() const { return name_; }

  void error(Location where, std::string message, std::string hint);
  /// What is read on over; things of one kind are counted, the first has its place told. There are so many kinds, and
  /// one for the rest.
  void warn(const std::string& kind, const Location& where, std::string hint);
  const Diagnostics& errors() const { return errors_; }
  Diagnostics warnings() const;

 private:
  friend class Element;
  struct Counted {
    Location first;
    std::string hint;
    int count = 0;
  };

  std::string name_, text_;
  LineStarts lines_{{}};
  pugi::xml_document document_;
  Diagnostics errors_;
  std::map<std::string, Counted> counted_;
};

/// One element. What is asked of it is noted; finish() complains about the rest.
class Element {
 public:
  Element(XmlFile& file, pugi::xml_node node);

  std::string_view name() const { return node_.name(); }
  Location place() const;
  Location place_of(const char* attribute) const;  ///< of its value, or of the element
  bool has(const char* attribute) const { return !node_.attribute(attribute).empty(); }

  std::string text(const char* attribute);           ///< empty: not given
  std::string required_text(const char* attribute);  ///< empty: said to be missing
  /// Nothing if it is not given or no whole number from `least` to `most`, which has been said.
  std::optional<std::int64_t> integer(const char* attribute, std::int64_t least,
                                      std::int64_t most = std::numeric_limits<std::int32_t>::max());
  std::optional<std::int64_t> required_integer(const char* attribute, std::int64_t least,
                                               std::int64_t most = std::numeric_limits<std::int32_t>::max());
  /// "0x10de".
  std::optional<std::uint64_t> hexadecimal(const char* attribute);
  /// Finite and not below `least`.
  std::optional<double> number(const char* attribute, double least,
                               double most = std::numeric_limits<double>::infinity());
  /// Known and not looked at.
  void ignore(std::initializer_list<const char*> attributes);

  /// Those of the names; others are warned about.
  std::vector<Element> children(std::initializer_list<const char*> names);
  /// Attributes that nobody asked for.
  void finish();

  void error(const char* attribute, std::string message, std::string hint);
  XmlFile& file() { return *file_; }

 private:
  void missing(const char* attribute, const char* hint);

  XmlFile* file_;
  pugi::xml_node node_;
  std::vector<std::string> asked_;
};

}  // namespace collcast::exchange
