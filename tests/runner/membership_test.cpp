// Which world the environment describes.
#include <catch2/catch.hpp>

#include "collcast/runner/runner.hpp"

using namespace collcast;

namespace {

Membership member(const Environment& environment, const std::string& rendezvous = {}) {
  const auto out = membership(environment, rendezvous);
  REQUIRE(out.ok());
  REQUIRE(out->has_value());
  return **out;
}

}  // namespace

TEST_CASE("no variables, no world") {
  // A Slurm allocation says how many tasks there may be before srun starts any.
  for (const Environment& none : {Environment{{"PATH", "/bin"}}, Environment{{"SLURM_NTASKS", "4"}}}) {
    const auto out = membership(none, {});
    REQUIRE(out.ok());
    CHECK_FALSE(out->has_value());
  }
}

TEST_CASE("a world without a rank, or a rank without a world, is a launch that went wrong") {
  const auto error = [](const Environment& environment) {
    const auto out = membership(environment, {});
    return out ? std::string() : out.errors().front().message;
  };
  CHECK(error({{"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}}) == "WORLD_SIZE is 4, and RANK is missing");
  CHECK(error({{"RANK", "0"}}) == "RANK is 0, and WORLD_SIZE is missing");
  CHECK(error({{"OMPI_COMM_WORLD_SIZE", "3"}}) == "OMPI_COMM_WORLD_SIZE is 3, and OMPI_COMM_WORLD_RANK is missing");
  CHECK(error({{"PMI_RANK", "1"}}) == "PMI_RANK is 1, and PMI_SIZE is missing");
}

TEST_CASE("torchrun's, srun's and mpirun's variables are understood") {
  const Environment torch{
      {"RANK", "5"}, {"WORLD_SIZE", "16"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};
  Membership m = member(torch);
  CHECK(std::tuple(m.rank, m.ranks, m.local_rank, m.host, m.port) == std::tuple(5, 16, 1, "node1", 29500));
  // torchrun's agent serves its own store at MASTER_PORT when it says so.
  Environment shared = torch;
  shared["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  CHECK(member(shared).port == 29501);
  m = member({{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "3"}}, "node7:4000");
  CHECK(std::tuple(m.rank, m.ranks, m.local_rank, m.host, m.port) == std::tuple(3, 8, 3, "node7", 4000));
  // A step may have fewer tasks than the job.
  CHECK(member({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "2"}}, "n:1").ranks == 2);
  m = member({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}},
             "[::1]:4000");
  CHECK(std::tuple(m.started_by, m.rank, m.ranks, m.local_rank, m.host) == std::tuple("mpirun", 1, 2, 0, "::1"));
  // A world of one has nobody to meet.
  CHECK(member({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}).ranks == 1);
}

TEST_CASE("mpirun inside a Slurm job starts its daemons with srun, whose variables its ranks see too") {
  const Environment both{
      {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "8"}};
  const Membership m = member(both, "n:1");
  CHECK(std::tuple(m.started_by, m.rank, m.ranks) == std::tuple("mpirun", 5, 8));
}

TEST_CASE("MPI's ranks need no address, and torchrun starts none") {
  const auto world = [](const Environment& environment) {
    const auto out = mpi_membership(environment);
    return out && *out ? std::tuple((*out)->started_by, (*out)->rank, (*out)->ranks)
                       : std::tuple(std::string("none"), 0, 0);
  };
  CHECK(world({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}}) == std::tuple("mpirun", 3, 4));
  CHECK(world({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}}) == std::tuple("srun", 0, 2));
  // A container may have torchrun's variables from elsewhere.
  CHECK(world({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}) ==
        std::tuple("mpirun", 1, 2));
  CHECK(world({}) == std::tuple("none", 0, 0));
  CHECK(mpi_membership({}).ok());
  CHECK_FALSE(mpi_membership({{"RANK", "0"}, {"WORLD_SIZE", "2"}}).ok());
  CHECK_FALSE(mpi_membership({{"PMI_RANK", "0"}}).ok());
  CHECK_FALSE(mpi_membership({{"PMI_RANK", "2"}, {"PMI_SIZE", "2"}}).ok());
}

TEST_CASE("variables that make no sense are all named") {
  const auto out = membership({{"RANK", "x"}, {"WORLD_SIZE", "0"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "70000"}}, {});
  REQUIRE_FALSE(out.ok());
  // A world that cannot be counted is taken for one rank, which needs no address.
  REQUIRE(out.errors().size() == 2);
  CHECK(out.errors()[0].message == "WORLD_SIZE: '0' is no whole number from 1 to 1048576");
  CHECK(out.errors()[1].message == "RANK: 'x' is no whole number from 0 to 1048576");
  const auto outside = membership({{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}}, {});
  REQUIRE_FALSE(outside.ok());
  CHECK(outside.errors().front().message == "RANK is 2, but WORLD_SIZE is 2");
  const auto lost = membership({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}}, {});
  REQUIRE_FALSE(lost.ok());
  CHECK(lost.errors().front().message == "srun names no address where the ranks can meet");
  CHECK_FALSE(membership({}, "node1:29500").ok());
}
