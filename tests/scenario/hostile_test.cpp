// Files that nobody wrote in good faith, and files that are none: each ends in a message a stranger can act on.
#include <catch2/catch.hpp>

#include <ctime>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "folder.hpp"
#include "samples.hpp"
#include "scenario/parse.hpp"

using namespace collcast;

namespace {

/// The only error of a machine file's text.
Diagnostic error_of(const std::string& text) {
  const auto spec = parse_topology(text, "f.yaml");
  INFO(to_text(spec.errors()));
  REQUIRE(spec.errors().size() == 1);
  return spec.errors()[0];
}

void check_error(const std::string& text, int line, int column, const std::string& message) {
  const Diagnostic d = error_of(text);
  CHECK(d.where.line == line);
  CHECK(d.where.column == column);
  CHECK(d.message == message);
}

const std::string good = "schema: collcast.topology.v1\nname: m\nnode: {devices: {host: {kind: host}}}\n";

std::string repeated(const std::string& text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

}  // namespace

TEST_CASE("an empty file is called empty") {
  for (const char* text : {"", "\n\n", "# only a comment\n", "---\n", "~", "\xEF\xBB\xBF"})
    check_error(text, 1, 1, "the file is empty");
}

TEST_CASE("a file that is no map is called what it is") {
  check_error("word", 1, 1, "the file is 'word'");
  check_error("- a\n- b\n", 1, 1, "the file is a list");
  const auto scenario = parse_scenario("- a\n- b\n", "f.yaml");
  REQUIRE(scenario.errors().size() == 1);
  CHECK(scenario.errors()[0].message == "the file is a list");
}

TEST_CASE("a byte order mark and Windows line ends are fine") {
  CHECK(parse_topology("\xEF\xBB\xBF" + good, "f.yaml").ok());
  std::string windows;
  for (const char c : good) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  CHECK(parse_topology(windows, "f.yaml").ok());
}

TEST_CASE("bytes that are not UTF-8 are placed") {
  check_error("schema: x\nname: \xFFoo\n", 2, 7, "byte 0xFF at offset 16 is not UTF-8");
  check_error("name: \xC0\xAF\n", 1, 7, "byte 0xC0 at offset 6 is not UTF-8");          // overlong '/'
  check_error("name: \xED\xA0\x80\n", 1, 7, "byte 0xED at offset 6 is not UTF-8");      // surrogate
  check_error("name: \xF4\x90\x80\x80\n", 1, 7, "byte 0xF4 at offset 6 is not UTF-8");  // above U+10FFFF
  check_error("name: \xE2\x82", 1, 7, "byte 0xE2 at offset 6 is not UTF-8");            // cut off
  check_error(std::string("\xFF\xFEn\0", 4), 1, 1, "the file is UTF-16 text, as '>' of Windows PowerShell writes it");
  CHECK(parse_topology(good + "title: \"\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\"\n", "f.yaml").ok());
}

TEST_CASE("NUL and other control characters are placed") {
  check_error(std::string("name: a\0b\n", 10), 1, 8, "control character 0x00 at offset 7 in a text file");
  check_error("name: \x1B[31mred\n", 1, 7, "control character 0x1B at offset 6 in a text file");
}

TEST_CASE("tabs do not indent") {
  check_error("schema: x\nnode:\n\tdevices: 1\n", 3, 1, "a tab indents this line");
  check_error("node:\n  \tdevices: 1\n", 2, 3, "a tab indents this line");
  CHECK(parse_topology(good + "title:\t'a\ttab inside'\n\t# comment\n \t\n", "f.yaml").ok());
}

TEST_CASE("one file holds one document") {
  check_error(good + "---\nname: other\n", 4, 1, "a second document begins here");
  CHECK(parse_topology("---\n" + good + "...\n", "f.yaml").ok());
}

TEST_CASE("anchors, aliases and tags are refused, so that an alias bomb cannot be written") {
  check_error("a: &x [1]\nb: *x\n", 1, 4, "anchors (&name) and aliases (*name) are not read");
  check_error("b: *x\n", 1, 4, "this is not YAML: the referenced anchor is not defined");
  std::string bomb = "a: &a [x, x]\n";
  for (char c = 'b'; c < 'z'; ++c)
    bomb += std::string(1, c) + ": &" + c + " [*" + char(c - 1) + ", *" + char(c - 1) + "]\n";
  check_error(bomb, 1, 4, "anchors (&name) and aliases (*name) are not read");
  check_error("name: !!binary aGk=\n", 1, 7, "tag 'tag:yaml.org,2002:binary' is not read");
  check_error("name: !danger x\n", 1, 7, "tag '!danger' is not read");
}

TEST_CASE("an anchor does not hide a key given twice, nor does a merge key") {
  const auto spec = parse_topology("a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 1, e: 2}\nc: 3\n", "f.yaml");
  CHECK(to_text(spec.errors()) ==
        "f.yaml:1:4: error: anchors (&name) and aliases (*name) are not read\n"
        "    hint: write the value out, or use 'extends'\n"
        "f.yaml:3:19: error: key 'e' is given twice\n    hint: it was first given in line 3\n"
        "f.yaml:4:1: error: key 'c' is given twice\n    hint: it was first given in line 2\n");
}

TEST_CASE("deep nesting is refused, in every style, without recursion") {
  CHECK(error_of(repeated("[", 1000) + repeated("]", 1000)).message == "too deeply nested");
  CHECK(error_of("a: " + repeated("{b: ", 1000)).message == "too deeply nested");
  CHECK(error_of(repeated("- ", 1000)).message == "too deeply nested");
  CHECK(error_of(repeated("? ", 1000)).message.find("a map or list stands where a key is expected") == 0);
  std::string block;
  for (int i = 0; i < 200; ++i) block += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  CHECK(error_of(block).message == "too deeply nested");
  // The limit itself: the map of the file and 63 lists are 64 levels.
  CHECK(input::parse_yaml("a: " + repeated("[", 63) + repeated("]", 63) + "\n", "f").ok());
  CHECK_FALSE(input::parse_yaml("a: " + repeated("[", 64) + repeated("]", 64) + "\n", "f").ok());
}

TEST_CASE("a file of punctuation is refused before it fills the memory") {
  for (const char* text : {"[", "a,", "- ", "\n", "{", "?"}) {
    const std::clock_t begin = std::clock();  // of this process: what else the machine does is not measured
    CHECK(error_of(repeated(text, 8'000'000 / std::string(text).size())).message.find("lines and punctuation marks") !=
          std::string::npos);
    CHECK(std::clock() - begin < 5 * CLOCKS_PER_SEC);
  }
}

TEST_CASE("a text above the limit is refused whatever it holds") {
  const std::string text(max_file_bytes + 1, 'x');
  CHECK(error_of(text).message == "16777217 bytes are too many");
  CHECK(error_of(text).where.file == "f.yaml");
}

TEST_CASE("one enormous word is shortened in the message") {
  const Diagnostic d = error_of(good + "nodes: " + std::string(1'000'000, 'x') + "\n");
  CHECK(d.message == "nodes is '" + std::string(60, 'x') + "...'");
}

TEST_CASE("a message never carries control characters of the input") {
  const Diagnostic d = error_of(good + "\"k\\x1b[31m\": 1\n");
  CHECK(d.message == "unknown key 'k\\x1B[31m'");
  CHECK(error_of(good + "teaching: \"\xC2\x9B[31m\"\n").message == "teaching is the text \"\\xC2\\x9B[31m\"");
}

TEST_CASE("too many keys in a map are refused") {
  std::string keys;
  for (int i = 0; i < 5000; ++i) keys += "k" + std::to_string(i) + ": 1\n";
  CHECK(error_of(keys).message == "5000 keys in one map");
}

TEST_CASE("two duplicate keys are two diagnostics, each with the first place") {
  const auto spec = parse_topology("name: a\nname: b\ntitle: c\ntitle: d\n", "f.yaml");
  Diagnostics twice;
  for (const Diagnostic& d : spec.errors())
    if (d.message.ends_with("is given twice")) twice.push_back(d);
  CHECK(to_text(twice) ==
        "f.yaml:2:1: error: key 'name' is given twice\n    hint: it was first given in line 1\n"
        "f.yaml:4:1: error: key 'title' is given twice\n    hint: it was first given in line 3\n");
}

TEST_CASE("a duplicate key hides none of the file's other errors, and the first one counts") {
  const auto spec = parse_topology(good + "network: {kind: rong}\nnetwork: {kind: none}\nsystem: x\n", "f.yaml");
  const std::string text = to_text(spec.errors());
  CHECK(text.find("key 'network' is given twice") != std::string::npos);
  CHECK(text.find("network.kind is 'rong'") != std::string::npos);
  CHECK(text.find("unknown key 'system'") != std::string::npos);
}

TEST_CASE("what follows from an unreadable count is not reported beside it") {
  const auto spec = parse_topology(
      good +
          "network:\n  kind: leaf_spine\n  attach: gpu\n  source: s\n  link: {bandwidth: 1GB/s, latency: 1us}\n"
          "  nodes_per_leaf: 2\n  spines: many\n  spine_latency: 1us\n",
      "f.yaml");
  CHECK(to_text(spec.errors()).find("network.spines is 'many'") != std::string::npos);
  CHECK(to_text(spec.errors()).find("spine_latency") == std::string::npos);
}

TEST_CASE("broken YAML is placed") {
  CHECK(error_of("name: [a, b\n").where.file == "f.yaml");
  CHECK(error_of("name: a: b\n").message.find("this is not YAML: illegal map value") == 0);
  CHECK(error_of("name: 'a\nnode: 1\n").message == "this quote is never closed");
  CHECK(error_of("name: \"a\\\"\n").message == "this quote is never closed");
  CHECK(error_of("name: \"\\q\"\n").message.find("this is not YAML: unknown escape") == 0);
  CHECK(error_of("a: 1\n b: 2\n").message.find("this is not YAML") == 0);
  CHECK(error_of("name: [a, [b, c\n").hint.find("bracket") != std::string::npos);
  CHECK(error_of("{[a]: 1}\n").message == "a map or list stands where a key is expected");
  CHECK(error_of("%YAML 9.1\n---\na: 1\n").message.find("this is not YAML") == 0);
}

TEST_CASE("a file that is missing, a directory, too large or not allowed says so") {
  const Folder folder("hostile");
  const auto message_of = [](const std::string& path) { return load_topology(path, {}).errors().at(0).message; };
  CHECK(message_of(folder.path() + "/none.yaml") == "file '" + folder.path() + "/none.yaml' does not exist");
  folder.file("two-hosts.yaml", good);
  const auto hint_of = [&](const std::string& name) {
    return load_topology(folder.path() + "/" + name, {}).errors().at(0).hint;
  };
  const std::string check = "check the path; it is relative to the working directory";
  CHECK(hint_of("tow-hosts.yaml") == "did you mean 'two-hosts.yaml' there? " + check);
  CHECK(hint_of("two-hosts.yml") == "did you mean 'two-hosts.yaml' there? " + check);
  CHECK(hint_of("ring.yaml") == check);  // a suffix alone makes no names alike
  CHECK(hint_of("nowhere/two-hosts.yaml") == check);
  CHECK(message_of(folder.path() + "/") == "'" + folder.path() + "/' is a directory");

  const std::string large = folder.file("large.yaml", "");
  REQUIRE(truncate(large.c_str(), 100'000'000) == 0);
  CHECK(message_of(large) == "file '" + large + "' has 100000000 bytes, too many");

  const std::string secret = folder.file("secret.yaml", good);
  REQUIRE(chmod(secret.c_str(), 0) == 0);
  const std::string denied = "file '" + secret + "' cannot be opened: Permission denied";
  const pid_t reader = fork();
  if (reader == 0) {  // somebody whom permissions stop, also where root runs the tests
    if (geteuid() == 0 && (chmod(folder.path().c_str(), 0755) != 0 || setuid(65534) != 0)) _exit(2);
    _exit(message_of(secret) == denied ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(reader, &status, 0) == reader);
  CHECK(status == 0);
  const std::string loop = folder.path() + "/loop.yaml";
  REQUIRE(symlink(loop.c_str(), loop.c_str()) == 0);
  CHECK(message_of(loop) == "file '" + loop + "' cannot be opened: Too many levels of symbolic links");
}

TEST_CASE("an endless file is cut off") {
  CHECK(read_file("/dev/zero", {"command line"}).errors().at(0).message == "file '/dev/zero' is too large");
}

TEST_CASE("the same limits hold for scenarios and kernel tables") {
  CHECK(parse_scenario(repeated("- ", 1000), "f").errors().at(0).message == "too deeply nested");
  CHECK(parse_kernels(repeated("- ", 1000), "f").errors().at(0).message == "too deeply nested");
  CHECK(parse_scenario("", "f").errors().at(0).message == "the file is empty");
  CHECK(parse_kernels("", "f").errors().at(0).message == "the file is empty");
}
