// Where results go: standard output, or files that are complete or not there at all.
//
// A file is written beside its place under another name and then renamed, all files of a command after all
// of them are written; on failure nothing is written over. What is no regular file (a device, a pipe) is
// written to as it is.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/session.hpp"
#include "collcast/report/documents.hpp"

namespace CLI {
class App;
}

namespace collcast::cli {

struct OutputOptions {
  std::string format;  ///< empty: by the suffix of `file`, else a table
  std::string file;    ///< as of is_stdout
};
/// No file, or '-'.
inline bool is_stdout(const std::string& file) { return file.empty() || file == "-"; }
/// A page for people on standard output says by itself what else goes to the error stream.
inline bool is_page_read(const OutputOptions& output, Format format) {
  return is_stdout(output.file) && (format == Format::table || format == Format::markdown);
}

void add_output_options(CLI::App&, OutputOptions&);
Format parse_format(const OutputOptions&, Diagnostics& errors);
/// ".json" of "A.JSON"; empty where there is none.
std::string lower_suffix(const std::string& file);

/// Warnings about the whole of a result on the error stream; documents for programs carry them too.
/// The first, for a list of files: how many more there are goes into its hint.
Diagnostic first_of(const Diagnostics&);

void say(const Session&, const std::vector<std::string>& warnings);
/// The same with places and hints; returns them as documents list them: without folders, and without what was typed.
std::vector<std::string> warn(const Session&, const Diagnostics& warnings);

/// What is written: a text, or what writes itself, so that a result of millions of rows is never whole in memory.
class Content {
 public:
  Content() = default;
  Content(const char* text) : Content(std::string(text)) {}
  Content(std::string_view text) : Content(std::string(text)) {}
  Content(std::string text);
  Content(std::function<void(std::ostream&)> write) : write_(std::move(write)) {}

  bool is_nothing() const { return !write_; }
  void write(std::ostream& out) const { write_(out); }

 private:
  std::function<void(std::ostream&)> write_;
};

struct OutputFile {
  std::string path;
  Content content;
};

/// `text` to standard output (flushed and checked), and the files; one of them may be standard output if there is no
/// text.
Exit deliver(const Session&, const Content& text, const std::vector<OutputFile>& files = {});

/// A document in the format and to the place that the options say, and further files with it.
template <class Document>
Exit deliver(const Session& session, const Document& document, Format format, const OutputOptions& options,
             std::vector<OutputFile> files = {}) {
  const bool on_stdout = is_stdout(options.file);
  const TextStyle style = on_stdout ? session.style : TextStyle{};
  const std::function<void(std::ostream&)> text = [&](std::ostream& out) {
    if constexpr (requires { write_json(out, document); })
      if (format == Format::json) return write_json(out, document);
    write(out, document, format, style);
  };
  if (on_stdout) return deliver(session, Content(text), files);
  files.push_back({options.file, Content(text)});
  return deliver(session, Content(), files);
}

}  // namespace collcast::cli
