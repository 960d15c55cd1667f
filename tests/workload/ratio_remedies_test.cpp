// Which changes are tried against exposed communication, and which of them are named.
#include "workload/ratio_remedies.hpp"

#include <catch2/catch.hpp>

#include "inputs.hpp"
#include "timelines.hpp"

using namespace collcast;
using namespace collcast::test;

TEST_CASE("full recomputation is offered beside a change only where that does not fit without it") {
  int with_room = 0, makes_room = 0;
  for (const double gigabytes : {4.0, 4.5, 5.0, 5.5, 6.0, 7.0, 80.0}) {
    StepInputs in = small_step(1, 1, 32, 2);
    in.options.zero = 3;
    in.gpu.memory = Bytes(static_cast<std::int64_t>(gigabytes * 1e9));
    const std::string text = workload::what_would_lower(in, four_nodes(), priced(1e-6, 20e9));
    INFO(gigabytes << ": " << text);
    const bool alone = text.find("batch.micro_batch: 4 (") != std::string::npos;
    const bool both = text.find("batch.micro_batch: 4, training.recompute: full (") != std::string::npos;
    CHECK_FALSE((alone && both));
    with_room += alone ? 1 : 0;
    makes_room += both ? 1 : 0;
  }
  CHECK(with_room > 0);
  CHECK(makes_room > 0);
}

TEST_CASE("of a long schedule changes are tried within its turns times four, and what is left out is said") {
  // 4 stages x 2 turns x m micro-batches: 131,072 of a million, and twice to eight times as many of larger batches.
  const auto said = [](int micro_batches) {
    return workload::what_would_lower(small_step(1, 4, 8, micro_batches), four_nodes(), priced(0.1));
  };
  CHECK_THAT(said(8), !Catch::Contains("not tried"));
  CHECK_THAT(said(16384), Catch::Contains("of the changes tried (not tried: "));
}
