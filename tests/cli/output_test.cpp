// Results reach their place whole, or not at all.
#include "cli/output.hpp"

#include <catch2/catch.hpp>

#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/data_path.hpp"
#include "cli/process.hpp"

using namespace collcast;
using namespace collcast::cli;
using collcast::test::Folder;

namespace {

struct Streams {
  std::ostringstream out, err;
  Session session{out, err, {}, false, {}};
};

OutputFile in(const Folder& folder, const std::string& name, const std::string& content) {
  return {(folder.path() / name).string(), content};
}

}  // namespace

TEST_CASE("a file is written and nothing else is left beside it") {
  const Folder folder;
  Streams streams;
  CHECK(deliver(streams.session, "text", {in(folder, "a", "new")}) == Exit::ok);
  CHECK(streams.out.str() == "text");
  CHECK(folder.read("a") == "new");
  CHECK(folder.listing() == "a");
}

TEST_CASE("if one of several files cannot be written, none is") {
  const Folder folder;
  folder.write("a", "old");
  Streams streams;
  CHECK(deliver(streams.session, "text", {in(folder, "a", "new"), in(folder, "missing/b", "new")}) == Exit::bad_input);
  CHECK(folder.read("a") == "old");
  CHECK(folder.listing() == "a");
  CHECK(streams.out.str().empty());
  CHECK(streams.err.str().find("missing/b': No such file or directory") != std::string::npos);
}

TEST_CASE("if standard output cannot be written, files stay as they were") {
  const Folder folder;
  folder.write("a", "old");
  Streams streams;
  streams.out.setstate(std::ios::badbit);
  CHECK(deliver(streams.session, "text", {in(folder, "a", "new")}) == Exit::bad_input);
  CHECK(folder.read("a") == "old");
  CHECK(folder.listing() == "a");
}

TEST_CASE("a directory is refused by name") {
  const Folder folder;
  Streams streams;
  CHECK(deliver(streams.session, "", {{folder.path().string(), "x"}}) == Exit::bad_input);
  CHECK(streams.err.str().find("Is a directory") != std::string::npos);
}

TEST_CASE("what writes itself learns within a block that a device is full") {
  Streams streams;
  constexpr int block = 1 << 16, row = 100;
  int rows = 0;
  const Content endless([&](std::ostream& out) {
    for (; out.good() && rows < 100 * block; ++rows) out << std::string(row, 'x');
  });
  CHECK(deliver(streams.session, "", {{"/dev/full", endless}}) == Exit::bad_input);
  CHECK(rows <= block / row + 1);
}

TEST_CASE("a full device is an error and stays a device") {
  Streams streams;
  CHECK(deliver(streams.session, "", {{"/dev/full", "x"}}) == Exit::bad_input);
  CHECK(streams.err.str().find("No space left on device") != std::string::npos);
  CHECK(deliver(streams.session, "", {{"/dev/null", "x"}}) == Exit::ok);
  struct stat null {};
  REQUIRE(::stat("/dev/null", &null) == 0);
  CHECK(S_ISCHR(null.st_mode));
}

TEST_CASE("a file keeps its permissions, and a link stays a link") {
  const Folder folder;
  folder.write("a", "old");
  REQUIRE(::chmod((folder.path() / "a").c_str(), 0640) == 0);
  REQUIRE(::symlink("a", (folder.path() / "link").c_str()) == 0);
  Streams streams;
  CHECK(deliver(streams.session, "", {in(folder, "link", "new")}) == Exit::ok);
  CHECK(std::filesystem::is_symlink(folder.path() / "link"));
  CHECK(folder.read("a") == "new");
  struct stat now {};
  REQUIRE(::stat((folder.path() / "a").c_str(), &now) == 0);
  CHECK((now.st_mode & 0777) == 0640);
}

TEST_CASE("a link to what is not there yet stays a link, too") {
  const Folder folder;
  REQUIRE(::symlink("later", (folder.path() / "first").c_str()) == 0);
  REQUIRE(::symlink("first", (folder.path() / "link").c_str()) == 0);
  Streams streams;
  CHECK(deliver(streams.session, "", {in(folder, "link", "new")}) == Exit::ok);
  CHECK(std::filesystem::is_symlink(folder.path() / "link"));
  CHECK(std::filesystem::is_symlink(folder.path() / "first"));
  CHECK(folder.read("later") == "new");
}

TEST_CASE("who asks for a page is told which command writes it") {
  for (const OutputOptions& asked : {OutputOptions{"html", ""}, OutputOptions{"", "a.html"}}) {
    Diagnostics errors;
    parse_format(asked, errors);
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].hint.ends_with("pages are written by 'collcast report'"));
  }
}

TEST_CASE("the format follows the suffix of the file unless it is given") {
  Diagnostics errors;
  CHECK(parse_format({"", ""}, errors) == Format::table);
  CHECK(parse_format({"", "./b.json"}, errors) == Format::json);
  CHECK(parse_format({"", "b.csv"}, errors) == Format::csv);
  CHECK(parse_format({"", "b.md"}, errors) == Format::markdown);
  CHECK(parse_format({"", "b.txt"}, errors) == Format::table);
  CHECK(parse_format({"markdown", "b.json"}, errors) == Format::markdown);
  CHECK(errors.empty());
  parse_format({"jsn", ""}, errors);
  CHECK(errors.size() == 1);
}

TEST_CASE("a file in a folder that is not there is refused before the work; a folder is made") {
  Diagnostics errors;
  parse_format({"json", "no-such-folder/b.json"}, errors);
  REQUIRE(errors.size() == 1);
  CHECK(errors.front().message == "cannot write 'no-such-folder/b.json': No such file or directory");
  errors.clear();
  parse_format({"json", "no-such-folder/"}, errors);
  CHECK(errors.empty());
}

TEST_CASE("data is beside the executable's folder unless COLLCAST_DATA says otherwise") {
  CHECK(data_search_path(std::nullopt, "/opt/x/bin/collcast").topologies.at(0) == "/opt/x/share/collcast/topologies");
  CHECK(data_search_path("/d", "/opt/x/bin/collcast").scenarios.at(0) == "/d/scenarios");
  CHECK(data_search_path("/d", "/opt/x/bin/collcast").training.at(0) == "/d/validation/data/training");
  CHECK(data_search_path("/d", "/opt/x/bin/collcast").inference.at(0) == "/d/validation/data/inference");
  CHECK(data_search_path("", "/opt/x/bin/collcast").scenarios.at(0) == "/opt/x/share/collcast/scenarios");
}
