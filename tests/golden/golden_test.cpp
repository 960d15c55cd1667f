// Whole-command transcripts: what is typed, what comes back on either stream, and the exit code.
//
// A transcript file holds blocks of
//     $ command
//     its standard output
//     [stderr]
//     its standard error, if any
//     [exit N]             if N is not 0
// Text before the first command says what the file is about. Commands run in tests/golden/inputs with the
// data of the source tree. `tools/refresh-golden` rewrites the files; the difference is for a person to read.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cli/process.hpp"

using namespace collcast::test;
namespace fs = std::filesystem;

namespace {

const fs::path folder = fs::path(COLLCAST_SOURCE_DIR) / "tests" / "golden";

struct Transcript {
  std::string preamble;
  std::vector<std::string> commands;
  std::vector<std::string> blocks;  ///< with the command's own line
};

Transcript read_transcript(const fs::path& file) {
  Transcript out;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("$ ")) {
      out.commands.push_back(line.substr(2));
      out.blocks.emplace_back();
    }
    (out.blocks.empty() ? out.preamble : out.blocks.back()) += line + "\n";
  }
  return out;
}

std::string with_line_end(const std::string& text) {
  return text.empty() || text.back() == '\n' ? text : text + "\n[no line end]\n";
}

std::string run_block(const std::string& command) {
  const Outcome outcome = run_shell("export COLLCAST_DATA=../../..; " + command, folder / "inputs");
  std::string out = "$ " + command + "\n" + with_line_end(outcome.out);
  if (!outcome.err.empty()) out += "[stderr]\n" + with_line_end(outcome.err);
  if (outcome.exit != 0) out += "[exit " + std::to_string(outcome.exit) + "]\n";
  return out;
}

std::vector<fs::path> transcript_files() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(folder / "transcripts")) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

TEST_CASE("every command still says what its transcript says") {
  const bool refresh = std::getenv("COLLCAST_REFRESH_GOLDEN") != nullptr;
  const auto files = transcript_files();
  REQUIRE_FALSE(files.empty());
  for (const fs::path& file : files) {
    const Transcript transcript = read_transcript(file);
    CHECK_FALSE(transcript.commands.empty());
    std::string fresh = transcript.preamble;
    for (std::size_t i = 0; i < transcript.commands.size(); ++i) {
      const std::string block = run_block(transcript.commands[i]);
      fresh += block;
      INFO(file.filename().string());
      if (!refresh) CHECK(block == transcript.blocks[i]);
    }
    if (refresh) std::ofstream(file) << fresh;
  }
}
