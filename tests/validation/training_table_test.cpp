// Tables of training steps: every way that a file can be broken, and the shipped ones.
#include "collcast/validation/training_table.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace collcast;

namespace {

const std::string training_heading = "row_id,source_id,tier,gpu,gpus,gbs,iter_s,notes\n";

Result<TrainingTables> read_training(const std::string& text) {
  std::istringstream in(text);
  return read_training_csv(in, "t.csv");
}

/// "file:line:column: message" of every error.
std::vector<std::string> errors_of(const std::string& text) {
  const Result<TrainingTables> result = read_training(text);
  REQUIRE_FALSE(result.ok());
  std::vector<std::string> out;
  for (const Diagnostic& error : result.errors()) out.push_back(to_text(error.where) + ": " + error.message);
  return out;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a row of a training table: numbers, texts and what nobody states") {
  const Result<TrainingTables> tables =
      read_training(training_heading + "r1,s,A,H100-SXM5-80GB,64,128,1.5,\"a, \"\"b\"\"\"\n");
  REQUIRE(tables.ok());
  REQUIRE(tables->rows.size() == 1);
  const TrainingRow& row = tables->rows.front();
  CHECK(row.row_id == "r1");
  CHECK(row.gpus == 64);
  CHECK(row.iter_s == 1.5);
  CHECK(row.notes == "a, \"b\"");
  CHECK_FALSE(row.tp.has_value());
  CHECK(row.where.line == 2);
  CHECK(tables->warnings.empty());
}

TEST_CASE("every bad cell of a training table is an error at its place") {
  CHECK(errors_of(training_heading + "r1,s,A,H100,x,0,-1,\nr2,,A,H100,64,1.5,nan,\n") ==
        Lines{"t.csv:2:13: gpus is 'x'", "t.csv:2:15: gbs is '0'", "t.csv:2:17: iter_s is '-1'",
              "t.csv:3:15: gbs is '1.5'", "t.csv:3:19: iter_s is 'nan'", "t.csv:3:1: source_id is empty"});
  CHECK(errors_of(training_heading + "r1,s,A,H100,64,1,0,\n") == Lines{"t.csv:2:1: iter_s is '0'"});
}

TEST_CASE("a column of counts says from what to what it goes") {
  const auto said = [](const std::string& column, const std::string& value) {
    const Result<TrainingTables> read =
        read_training("row_id,source_id,gpu,gpus,gbs," + column + "\nr,s,H100,8,8," + value + "\n");
    return read ? std::string() : read.errors().front().message + ": " + read.errors().front().hint;
  };
  CHECK(said("seq", "2147483647") == "seq is '2147483647': expected a whole number from 1 to 10000000, or nothing");
  CHECK(said("tp", "10000001") == "tp is '10000001': expected a whole number from 1 to 10000000, or nothing");
  CHECK(said("tp", "10000000").empty());
  CHECK(said("layers", "10001") == "layers is '10001': expected a whole number from 1 to 10000, or nothing");
  CHECK(said("mbs", "100001") == "mbs is '100001': expected a whole number from 1 to 100000, or nothing");
  CHECK(said("sp", "2") == "sp is '2': expected 0, 1 or nothing");
}

TEST_CASE("lines of a training table that are none") {
  CHECK(errors_of(training_heading + "r1,s,A\n") == Lines{"t.csv:2:1: 3 cells in a table of 8 columns"});
  CHECK(errors_of(training_heading + "r1,s,A,H100,64,1,1,\"open\n") ==
        Lines{"t.csv:2:20: a quoted cell that does not end before the next comma"});
  CHECK(errors_of("a,b\n1,2\n") == Lines{"t.csv:1:1: this is no table of training steps"});
  CHECK(errors_of("") == Lines{"t.csv:1:1: this is no table of training steps"});
  CHECK(errors_of("row_id,source_id,gpu,gpus,gbs,gbs\n") == Lines{"t.csv:1:31: the column 'gbs' is there twice"});
  CHECK(errors_of(training_heading + "r,s,A,H100,1,1,1,\nr,s,A,H100,1,1,1,\n") ==
        Lines{"t.csv:3:1: row_id 'r' is there twice"});
}

TEST_CASE("an unknown column of a training table is a warning with the nearest name") {
  const Result<TrainingTables> tables = read_training("row_id,source_id,gpu,gpus,gbs,iter_ms\nr,s,H100,8,8,3\n");
  REQUIRE(tables.ok());
  REQUIRE(tables->warnings.size() == 1);
  CHECK(to_text(tables->warnings.front().where) == "t.csv:1:31");
  CHECK(tables->warnings.front().message == "unknown column 'iter_ms' is passed over");
  CHECK(tables->warnings.front().hint == "did you mean 'iter_s'?");
}

TEST_CASE("a folder has rows, models that fill them in, and titles") {
  const std::string folder = std::filesystem::temp_directory_path() / "collcast_training_table_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/rows.csv") << "row_id,source_id,gpu,gpus,gbs,model_id,hidden\nr,s,H100,8,8,m,\n";
  std::ofstream(folder + "/models.csv") << "model_id,family,hidden,head_dim\nm,dense,4096,128\n";
  std::ofstream(folder + "/sources.csv") << "source_id,title\ns,\"One, two\"\n";
  std::ofstream(folder + "/other.csv") << "size,time\n1,2\n";
  const Result<TrainingTables> tables = load_training({folder}, {"command line"});
  std::filesystem::remove_all(folder);
  REQUIRE(tables.ok());
  REQUIRE(tables->rows.size() == 1);
  CHECK(tables->rows.front().hidden == 4096);
  CHECK(tables->rows.front().head_dim == 128);
  CHECK(tables->sources.at("s") == "One, two");
  REQUIRE(tables->warnings.size() == 1);
  CHECK(tables->warnings.front().message == "no table of training steps: the file is passed over");
}

TEST_CASE("a last row that has no end asks whether the file is cut off, and no other does") {
  const auto hint = [](const std::string& rows) {
    const Result<TrainingTables> read = read_training(training_heading + rows);
    REQUIRE_FALSE(read.ok());
    return read.errors().back().hint;
  };
  const std::string cut = "expected a value for each column of the heading; is the file cut off?";
  CHECK(hint("r1,s,A,H100,64,1,1,\nr2,s,A,H1") == cut);
  CHECK(hint("r1,s,A,H100,64,1,1,\nr2,s,A,H1\n") == "a cell with a comma in it is quoted: \"a,b\"");
  CHECK(hint("r1,s,A,H100,64,1,1,,,") == "a cell with a comma in it is quoted: \"a,b\"");
  const std::string quoted = "expected \"...\", with quotes in it doubled, on one line";
  CHECK(hint("r1,s,A,H100,64,1,1,\"op") == quoted + "; is the file cut off?");
  CHECK(hint("r1,s,A,H100,64,1,1,\"op\n") == quoted);
}

TEST_CASE("the shipped training tables are read without a word") {
  const Result<TrainingTables> tables =
      load_training({std::string(COLLCAST_SOURCE_DIR) + "/validation/data/training"}, {"command line"});
  REQUIRE(tables.ok());
  CHECK(tables->warnings.empty());
  CHECK(tables->rows.size() == 1837);
  for (const TrainingRow& row : tables->rows) CHECK(tables->sources.count(row.source_id) == 1);
}

TEST_CASE("words and switches of a table of steps that mean nothing are errors where a time depends on them") {
  const std::string heading = "row_id,source_id,tier,verified,gpu,gpus,gbs,sp,gated_mlp,tflops_kind\n";
  CHECK(errors_of(heading + "a,s,A,yes,H100,8,8,2,0,zzz\n") ==
        Lines{"t.csv:2:20: sp is '2'", "t.csv:2:24: tflops_kind is 'zzz'"});
  const Result<TrainingTables> read = read_training(
      heading + "a,s,Z,perhaps,H100,8,8,1,0,hardware(full-recompute formula)\nb,s,A,yes,H100,8,8,0,1,model\n");
  REQUIRE(read.ok());
  REQUIRE(read->warnings.size() == 2);
  CHECK(read->warnings[0].message == "tier is 'Z'");
  CHECK(read->warnings[1].message == "verified is 'perhaps'");
}

TEST_CASE("figures of one row that contradict each other are told at their place, with both and which is taken") {
  // 16 sequences of 8192 tokens on 8 GPUs in 1.92 s are 8533 tokens/s a GPU, and 8.333 samples/s.
  const std::string heading = "row_id,source_id,gpu,gpus,gbs,seq,iter_s,tok_s_gpu,samples_s\n";
  const auto warnings = [&](const std::string& row) {
    const Result<TrainingTables> read = read_training(heading + row);
    REQUIRE(read.ok());
    std::string out;
    for (const Diagnostic& d : read->warnings) out += to_text(d.where) + ": " + d.message + " | " + d.hint + "\n";
    return out;
  };
  CHECK(warnings("a,s,H100,8,16,8192,1.92,8533,8.333\n").empty());
  // Rounded as published: 1.9 % off.
  CHECK(warnings("a,s,H100,8,16,8192,1.92,8700,\n").empty());
  // 16 x 8192 / 8 / 1 s, and 16 / 4 s.
  CHECK(warnings("a,s,H100,8,16,8192,1.92,1,4\n") ==
        "t.csv:2:27: samples_s is '4', a step of 4 s, beside iter_s '1.92' | iter_s is taken; correct one of them, or "
        "leave the wrong one empty\n"
        "t.csv:2:25: tok_s_gpu is '1', a step of 16384 s, beside iter_s '1.92' | iter_s is taken; correct one of them, "
        "or leave the wrong one empty\n");
}

TEST_CASE("a row that is not as its model is told, unless it has fewer layers") {
  const std::string folder = std::filesystem::temp_directory_path() / "collcast_training_models_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/rows.csv")
      << "row_id,source_id,gpu,gpus,gbs,model_id,layers,hidden\nr,s,H100,8,8,m,33,4097\n"
         "cut,s,H100,8,8,m,12,4096\nopen,s,H100,8,8,m,,\nother,s,H100,8,8,n,3,5\n";
  std::ofstream(folder + "/models.csv") << "model_id,layers,hidden\nm,32,4096\n";
  const Result<TrainingTables> tables = load_training({folder}, {"command line"});
  std::filesystem::remove_all(folder);
  REQUIRE(tables.ok());
  REQUIRE(tables->warnings.size() == 2);
  CHECK(to_text(tables->warnings[0].where) == folder + "/rows.csv:2:16");
  CHECK(tables->warnings[0].message == "layers is '33', and 32 of model 'm'");
  CHECK(tables->warnings[0].hint == "33 is taken; correct one of them, or name another model");
  CHECK(tables->warnings[1].message == "hidden is '4097', and 4096 of model 'm'");
  CHECK(tables->rows.front().layers == 33);
}
