// Parameters and FLOPs against the closed forms of the literature.
#include "workload/layer/parameters.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

#include "inputs.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

TEST_CASE(
    "uneven stages have all layers among them, and embedding and head stand for one each where pp divides them so") {
  StepInputs in = inputs(small_model(), layout(1, 1, 1), 512, 1);
  in.layout.uneven_stages = true;
  for (int layers = 1; layers <= 24; ++layers)
    for (int pp = 1; pp <= layers; ++pp) {
      in.model.layers = layers;
      in.layout.pp = pp;
      int sum = 0;
      for (int stage = 0; stage < pp; ++stage) sum += workload::stage_layers(in, stage);
      CHECK(sum == layers);
    }
  in.model.layers = 22;  // Qi et al. 2023: 8 stages of 3 layers, the ends one fewer
  in.layout.pp = 8;
  CHECK(workload::stage_layers(in, 0) == 2);
  CHECK(workload::stage_layers(in, 3) == 3);
  CHECK(workload::stage_layers(in, 7) == 2);
  in.model.layers = 78;  // BLOOM: 12 stages of 6 or 7
  in.layout.pp = 12;
  CHECK(workload::stage_layers(in, 0) == 7);
  CHECK(workload::stage_layers(in, 11) == 6);
}

TEST_CASE("chunks of uneven stages: embedding and head stand for a layer each of the first and the last") {
  // Llama 3 405B: 126 layers and two ends in 8 x 8 chunks of 2.
  StepInputs in = inputs(small_model(), layout(1, 8, 1), 512, 8);
  in.layout.uneven_stages = true;
  in.layout.schedule = PipelineSchedule::interleaved;
  in.layout.vpp = 8;
  in.model.layers = 126;
  std::vector<int> seen(126);
  for (int stage = 0; stage < 8; ++stage) {
    std::vector<int> of_chunk(8);
    for (const StageLayer& layer : layers_of_stage(in, stage)) {
      ++seen[static_cast<std::size_t>(layer.number)];
      ++of_chunk[static_cast<std::size_t>(layer.chunk)];
      CHECK((layer.number + 1) / 2 == layer.chunk * 8 + stage);
    }
    for (int chunk = 0; chunk < 8; ++chunk) {
      const bool end = (stage == 0 && chunk == 0) || (stage == 7 && chunk == 7);
      CHECK(of_chunk[static_cast<std::size_t>(chunk)] == (end ? 1 : 2));
    }
  }
  CHECK(std::count(seen.begin(), seen.end(), 1) == 126);
  CHECK(check_step(in, 8, {}).empty());
}

TEST_CASE("GPT-3 175B has 12 L h^2 [1 + 13/(12h) + (V + s)/(12 L h)] parameters") {
  // 12 * 96 * 12288^2 = 173.946e9; norms and biases 13 h per layer; (51200 + 2048) h embeddings: 174.616e9. The
  // formula leaves out the final norm, 2h.
  const double h = 12288, layers = 96, vocab = 51200, s = 2048;
  const double formula = 12 * layers * h * h * (1 + 13 / (12 * h) + (vocab + s) / (12 * layers * h));
  CHECK(formula == Approx(174.616e9).epsilon(1e-5));
  TransformerConfig m = gpt_175b();
  m.tied_embeddings = true;
  CHECK(parameter_count(m) == Approx(formula + 2 * h).epsilon(1e-12));
}

TEST_CASE("GPT-3 175B: FLOPs of a step of 64 sequences") {
  // Narayanan et al. 2021: 72 B s L h^2 [1 + s/(6h) + V/(12 L h)] = 1.4109e17; with full recomputation, logits
  // not repeated, 96 B s L h^2 [1 + s/(6h) + V/(16 L h)] = 1.8796e17.
  StepInputs in = inputs(gpt_175b(), layout(8, 8, 1), 2048, 32);
  const double B = 64, s = 2048, L = 96, h = 12288, V = 51200;
  CHECK(model_flops(in).value() ==
        Approx(72 * B * s * L * h * h * (1 + s / (6 * h) + V / (12 * L * h))).epsilon(1e-12));
  CHECK(model_flops(in).value() == Approx(1.4109e17).epsilon(1e-4));
  CHECK(hardware_flops(in).value() == model_flops(in).value());
  in.options.recompute = Recompute::full;
  CHECK(hardware_flops(in).value() ==
        Approx(96 * B * s * L * h * h * (1 + s / (6 * h) + V / (16 * L * h))).epsilon(1e-12));
  CHECK(hardware_flops(in).value() == Approx(1.8796e17).epsilon(1e-4));
  // Selective: the s/(6h) term times 4/3.
  in.options.recompute = Recompute::selective;
  CHECK(hardware_flops(in).value() ==
        Approx(72 * B * s * L * h * h * (1 + 4. / 3 * s / (6 * h) + V / (12 * L * h))).epsilon(1e-12));
}

TEST_CASE("Llama-3 70B has 70.55e9 parameters, cut to 12 layers 12.369e9") {
  CHECK(parameter_count(llama_70b(80)) == Approx(70.55e9).epsilon(1e-3));
  CHECK(parameter_count(llama_70b(12)) == Approx(12.369e9).epsilon(1e-4));
}

TEST_CASE("the parameters of all ranks, replicas counted once, are the model's") {
  for (const TransformerConfig& m : {gpt_22b(), llama_70b(16)})
    for (const int tp : {1, 2, 8})
      for (const int pp : {1, 2, 8}) {
        const StepInputs in = inputs(m, layout(tp, pp, 4), 1024, 8);
        double sum = 0;
        for (int stage = 0; stage < pp; ++stage) {
          const RankParameters p = stage_parameters(in, stage);
          sum += tp * p.sharded + p.replicated;
        }
        CHECK(sum == Approx(parameter_count(m)).epsilon(1e-12));
      }
}

TEST_CASE("tied embeddings are one matrix on one stage and a copy on both ends of several") {
  TransformerConfig m = small_model();
  m.tied_embeddings = true;
  const double matrix = 32000.0 * 1024;
  CHECK(stage_parameters(inputs(m, layout(1, 1, 1), 512, 1), 0).total() == parameter_count(m));
  const StepInputs two = inputs(m, layout(1, 2, 1), 512, 1);
  CHECK(stage_parameters(two, 0).total() + stage_parameters(two, 1).total() == parameter_count(m) + matrix);
  TransformerConfig untied = m;
  untied.tied_embeddings = false;
  CHECK(parameter_count(untied) == parameter_count(m) + matrix);
}

TEST_CASE("a vocabulary that TP does not divide is padded") {
  TransformerConfig m = small_model();
  m.vocab = 50257;
  // ceil(50257 / 8) = 6283 rows of 1024.
  CHECK(embedding_parameters(m, 8).sharded == 6283.0 * 1024);
}

TEST_CASE("with more TP ranks than KV heads each rank has a copy of one; the model stays as large") {
  // Llama-3 70B has 8 KV heads of 128. On 16 ranks a rank has 4 query heads and 1 KV head: (4 + 2) x 128 x 8192 for
  // QKV, 4 x 128 x 8192 for the projection, 3 x 8192 x 28672/16 for the MLP; two norms.
  const TransformerConfig m = llama_70b(16);
  const RankParameters rank = layer_parameters(m, {.tp = 16});
  CHECK(rank.sharded == 6. * 128 * 8192 + 4. * 128 * 8192 + 3. * 8192 * 28672 / 16);
  CHECK(rank.replicated == 2. * 8192);
  // Beyond the split of the whole: half of a K and a V head of 128 x 8192.
  CHECK(rank.sharded - layer_parameters(m, {.tp = 1}).sharded / 16 == 2 * 0.5 * 128 * 8192);
  // An MQA model has its one head on every rank.
  TransformerConfig mqa = m;
  mqa.kv_heads = 1;
  CHECK(kv_heads_per_rank(mqa, 8) == 1);
  CHECK(layer_parameters(mqa, {.tp = 8}).sharded - layer_parameters(mqa, {.tp = 1}).sharded / 8 ==
        2 * 7. / 8 * 128 * 8192);
}

TEST_CASE("copies of KV heads are FLOPs of the hardware, not of the model") {
  StepInputs in = inputs(llama_70b(16), layout(8, 1, 1), 1024, 1);
  const double model = model_flops(in).value();
  CHECK(hardware_flops(in).value() == model);
  in.layout.tp = 16;
  CHECK(model_flops(in).value() == model);
  // 8 more K and 8 more V heads: 2 x 8192 x 128 per token each, forward once and backward twice, 16 layers, 2 x 1024
  // tokens.
  const double copies = 3. * 16 * 2048 * 16 * 2 * 8192 * 128;
  CHECK(hardware_flops(in).value() == Approx(model + copies).epsilon(1e-12));
  in.options.recompute = Recompute::full;
  const double with = hardware_flops(in).value();
  in.layout.tp = 8;
  CHECK(with - hardware_flops(in).value() == Approx(copies * 4 / 3).epsilon(1e-12));
}
