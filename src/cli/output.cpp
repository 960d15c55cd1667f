#include "cli/output.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <ostream>
#include <set>
#include <streambuf>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>
#include <utility>

#include "cli/unfinished.hpp"
#include "cli/values.hpp"
#include "collcast/base/words.hpp"
#include "collcast/engine/footprint.hpp"

namespace collcast::cli {

namespace fs = std::filesystem;

namespace {

const std::vector<std::string> format_words{"table", "json", "csv", "markdown"};
constexpr const char* pages_by_report = "; pages are written by 'collcast report'";

Diagnostic cannot_write(const std::string& path, int error) {
  return {command_line, fmt::format("cannot write '{}': {}", path, std::strerror(error)), "nothing was written over"};
}

/// An open file that is closed on every way out.
class File {
 public:
  File(const std::string& path, int flags, mode_t mode) : descriptor_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  /// False with errno set if not every byte was taken.
  bool write(std::string_view content) {
    while (!content.empty()) {
      const ssize_t written = ::write(descriptor_, content.data(), content.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      content.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
  }
  /// The same.
  bool write_and_close(const Content& content);
  void set_mode(mode_t mode) { ::fchmod(descriptor_, mode); }

 private:
  int descriptor_;
};

/// Takes what is written to it into a file, block by block.
class Blocks : public std::streambuf {
 public:
  explicit Blocks(File& file) : file_(file), block_(block_size) { setp(block_.data(), block_.data() + block_size); }
  /// Of the first block that the file did not take; 0: it took all.
  int error() const { return error_; }

 protected:
  int_type overflow(int_type c) override {
    if (sync() != 0) return traits_type::eof();
    return traits_type::eq_int_type(c, traits_type::eof()) ? traits_type::not_eof(c)
                                                           : sputc(traits_type::to_char_type(c));
  }
  int sync() override {
    if (error_ == 0 && !file_.write({pbase(), static_cast<std::size_t>(pptr() - pbase())})) error_ = errno;
    setp(block_.data(), block_.data() + block_size);
    return error_ == 0 ? 0 : -1;
  }

 private:
  static constexpr std::ptrdiff_t block_size = 1 << 16;
  File& file_;
  std::vector<char> block_;
  int error_ = 0;
};

bool File::write_and_close(const Content& content) {
  Blocks blocks(*this);
  std::ostream out(&blocks);
  if (!content.is_nothing()) content.write(out);
  out.flush();
  if (blocks.error() != 0) {
    errno = blocks.error();
    return false;
  }
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  return closed == 0;
}

/// A file under its temporary name; gone again unless it is put in its place.
class StagedFile {
 public:
  StagedFile(std::string place, std::string temporary) : place_(std::move(place)), temporary_(std::move(temporary)) {}
  StagedFile(StagedFile&& other) noexcept
      : place_(std::move(other.place_)), temporary_(std::exchange(other.temporary_, {})) {}
  StagedFile& operator=(StagedFile&&) = delete;
  ~StagedFile() {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }
  bool put_in_place() {
    if (std::rename(temporary_.c_str(), place_.c_str()) != 0) return false;
    temporary_.clear();
    return true;
  }
  const std::string& place() const { return place_; }

 private:
  std::string place_, temporary_;
};

/// Where a file lies or will lie: a link stays a link, also one to what is not there yet.
fs::path place_of(const fs::path& file) {
  constexpr int most_links = 40;  // as Linux follows them
  std::error_code error;
  fs::path at = file;
  const bool there = fs::exists(file, error);  // also a pipe at the end of /dev/stdout, which has no path
  for (int link = 0; !there && link < most_links && fs::is_symlink(at, error); ++link) {
    const fs::path to = fs::read_symlink(at, error);
    if (error) break;
    at = to.is_absolute() ? to : at.parent_path() / to;
  }
  const fs::path resolved = fs::weakly_canonical(at, error);
  return resolved.empty() ? at : resolved;
}

/// Nothing for what is no regular file: that has been written already.
Result<std::optional<StagedFile>> stage(const OutputFile& file, Unfinished& unfinished) {
  const std::string place = place_of(file.path).string();
  struct stat there {};
  const bool exists = ::stat(place.c_str(), &there) == 0;
  if (exists && S_ISDIR(there.st_mode)) return cannot_write(file.path, EISDIR);
  if (exists && !S_ISREG(there.st_mode)) {
    File device(place, O_WRONLY, 0);
    if (!device.is_open() || !device.write_and_close(file.content)) return cannot_write(file.path, errno);
    return std::optional<StagedFile>();
  }
  const std::string temporary = fmt::format("{}.{}.tmp", place, ::getpid());
  unfinished.add(temporary);
  File out(temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
  if (!out.is_open()) {
    const int reason = errno;
    unfinished.drop_last();  // another's, if there is one of that name
    return cannot_write(file.path, reason);
  }
  StagedFile staged(place, temporary);
  if (exists) out.set_mode(there.st_mode & 07777);
  if (!out.write_and_close(file.content)) return cannot_write(file.path, errno);
  return std::optional<StagedFile>(std::move(staged));
}

Diagnostics stage_all(const std::vector<OutputFile>& files, Unfinished& unfinished, std::vector<StagedFile>& staged) {
  Diagnostics errors;
  std::set<fs::path> places;
  for (const OutputFile& file : files) {
    std::error_code ignored;
    const fs::path resolved = place_of(fs::absolute(file.path, ignored));
    const bool device = fs::exists(resolved, ignored) && !fs::is_regular_file(resolved, ignored);
    if (!device && !places.insert(resolved).second) {
      errors.push_back({command_line, fmt::format("two results would be written to '{}'", file.path),
                        "expected another file for one of them"});
      continue;
    }
    Result<std::optional<StagedFile>> result = stage(file, unfinished);
    if (!result) {
      append(errors, result.errors());
      continue;
    }
    if (std::optional<StagedFile> one = std::move(result).value()) staged.push_back(std::move(*one));
  }
  return errors;
}

/// What a file's suffix says about its format.
std::optional<Format> format_by_suffix(const fs::path& file) {
  const std::string suffix = lower_suffix(file.string());
  if (suffix.empty() || suffix == ".txt") return Format::table;
  if (suffix == ".json") return Format::json;
  if (suffix == ".csv") return Format::csv;
  if (suffix == ".md" || suffix == ".markdown") return Format::markdown;
  return std::nullopt;
}

}  // namespace

std::string lower_suffix(const std::string& file) { return lower(fs::path(file).extension().string()); }

void add_output_options(CLI::App& app, OutputOptions& options) {
  app.add_option("--format", options.format, "table, json, csv or markdown (default: by FILE's suffix, else table)")
      ->type_name("WORD")
      ->group("Output");
  app.add_option("--output", options.file, "write the result to FILE, complete or not at all ('-': standard output)")
      ->type_name("FILE")
      ->group("Output");
}

Format parse_format(const OutputOptions& options, Diagnostics& errors) {
  std::error_code ignored;
  const bool is_folder = options.file.ends_with('/');  // which is made
  if (const fs::path folder = fs::path(options.file).parent_path();
      !folder.empty() && !is_folder && !fs::is_directory(folder, ignored))
    errors.push_back(cannot_write(options.file, fs::exists(folder, ignored) ? ENOTDIR : ENOENT));  // before the work
  if (options.format.empty()) {
    const auto format = format_by_suffix(options.file);
    if (!format)
      errors.push_back({typed("--output", options.file),
                        fmt::format("no format has the suffix '{}'", fs::path(options.file).extension().string()),
                        std::string("expected .json, .csv, .md, .markdown or .txt, or give --format") +
                            (lower_suffix(options.file) == ".html" ? pages_by_report : "")});
    return format.value_or(Format::table);
  }
  const auto index = parse_word("--format", options.format, format_words, errors);
  if (options.format == "html") errors.back().hint += pages_by_report;
  return index ? static_cast<Format>(*index) : Format::table;
}

namespace {

/// Each message once per place: a slip that many computations meet is one slip.
Diagnostics distinct(Diagnostics errors) {
  std::set<std::tuple<std::string, int, int, std::string>> seen;
  std::erase_if(errors, [&](const Diagnostic& d) {
    return !seen.emplace(d.where.file, d.where.line, d.where.column, d.message).second;
  });
  return errors;
}

}  // namespace

Exit refuse(const Session& session, Diagnostics errors) {
  const auto of_memory = [](const Diagnostic& error) { return error.where.file == memory_place; };
  const bool lacks = !errors.empty() && std::all_of(errors.begin(), errors.end(), of_memory);
  for (Diagnostic& error : errors) {
    // A layer below knows nothing of where a request came from.
    if (error.where.file.empty() || of_memory(error)) error.where = command_line;
  }
  session.err << to_text(distinct(std::move(errors))) << std::flush;
  return lacks ? Exit::lacking : Exit::bad_input;
}

Exit lack(const Session& session, const Diagnostics& errors) {
  refuse(session, errors);
  return Exit::lacking;
}

Diagnostic first_of(const Diagnostics& errors) {
  Diagnostic first = errors.front();
  if (errors.size() > 1)
    first.hint += fmt::format("{}{} more in this file", first.hint.empty() ? "" : "; ", errors.size() - 1);
  return first;
}

void say(const Session& session, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings)
    session.err << fmt::format("{}: warning: {}\n", to_text(command_line), warning);
}

namespace {

std::string without_folder(const Diagnostic& d) {
  const bool in_file = d.where.line > 0 && !d.where.file.starts_with("--");
  const Location where{fs::path(d.where.file).filename().string(), d.where.line, d.where.column};
  return (in_file ? to_text(where) + ": " : std::string()) + d.message + (d.hint.empty() ? "" : ": " + d.hint);
}

}  // namespace

std::vector<std::string> warn(const Session& session, const Diagnostics& warnings) {
  std::vector<std::string> out;
  for (const Diagnostic& d : warnings) {
    session.err << fmt::format("{}: warning: {}\n", to_text(d.where), d.message)
                << (d.hint.empty() ? std::string() : fmt::format("    hint: {}\n", d.hint));
    out.push_back(without_folder(d));
  }
  return out;
}

Content::Content(std::string text) {
  if (!text.empty()) write_ = [text = std::move(text)](std::ostream& out) { out << text; };
}

Exit deliver(const Session& session, const Content& result, const std::vector<OutputFile>& results) {
  Content text = result;
  std::vector<OutputFile> files;
  for (const OutputFile& one : results) {
    if (!is_stdout(one.path)) {
      files.push_back(one);
      continue;
    }
    if (!text.is_nothing())
      return refuse(session, {{command_line, "two results would be written to standard output",
                               "expected a file for one of them"}});
    text = one.content;
  }
  Unfinished unfinished;
  std::vector<StagedFile> staged;
  if (const Diagnostics errors = stage_all(files, unfinished, staged); !errors.empty()) return refuse(session, errors);
  errno = 0;
  if (!text.is_nothing()) text.write(session.out);
  session.out << std::flush;
  if (!session.out.good()) {
    if (errno == EPIPE) return Exit::unread;  // as with `| head`: the reader has seen enough
    return refuse(
        session, {{{"standard output"}, fmt::format("the result could not be written: {}", std::strerror(errno)), ""}});
  }
  // Everything has been written somewhere: only now do old files go.
  Diagnostics errors;
  for (StagedFile& file : staged) {
    if (!file.put_in_place()) errors.push_back(cannot_write(file.place(), errno));
  }
  return errors.empty() ? Exit::ok : refuse(session, errors);
}

}  // namespace collcast::cli
