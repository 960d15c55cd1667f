#!/usr/bin/env python3
"""docs/schema/ says what the tool reads and writes: no less, no more.

  schema_test.py COLLCAST [CLASS...]     with Debian's python3-jsonschema and python3-yaml

Outputs: every document of the commands below is valid, every key of it is described, and every key that is described
occurs. Files: every shipped one is valid; files made wrong in form, one change at each place of each format, are
refused by the schema if the tool refuses their form, and never if the tool takes them (one in SCHEMA_TEST_SHARE of
them: every one is tried with the long sweeps). Quantities: written in every way, by a seeded choice; schema and tool
differ only where a value is out of range.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import jsonschema

sys.dont_write_bytecode = True  # this folder is no place for caches

import mutate
import quantities
import samples
import walk
import yaml_text

SHARE = int(os.environ.get("SCHEMA_TEST_SHARE", "1"))
ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMAS = {p.name.split(".")[0]: json.loads(p.read_text()) for p in sorted((ROOT / "docs" / "schema").glob("*.json"))}
VALIDATORS = {name: jsonschema.Draft7Validator(schema) for name, schema in SCHEMAS.items()}
FILES = ["topology", "kernels", "overlay", "scenario", "schedule"]
ONE_LAYOUT = ("collcast plan llama3-70b-64xh100 --tp 8 --micro-batch 1 --recompute none "
              "--sequence-parallel true --zero 1 --simulate 1")
PARTS = ("--set training.recompute=selective --set training.recompute_modules=[layernorm,mla_up_proj] "
         "--set training.recompute_layers=50% --set training.num_layers_at_start_in_bf16=1 "
         "--set training.num_layers_at_end_in_bf16=1")
WIRE = ("--set training.precision=fp8 --set training.communication.tp_gather=fp8 --set training.communication.tp_reduce=fp8 "
        "--set training.communication.ep_dispatch=fp8 --set training.communication.ep_combine=fp8 "
        "--set training.communication.parameters=fp8 --set training.communication.gradients=bf16 "
        "--set training.gradient_compression.method=ratio --set training.gradient_compression.ratio=4")
PAIRS = "--topology ethernet-hosts --nodes 96 --groups-of 2:48 --concurrent --size 1MiB"

JSON_STEP = "collcast step llama3-8b-8xh100 --format json --method estimate 2>/dev/null"
JSON_PLAN = "collcast plan llama3-8b-8xh100 --format json --simulate 0 --zero 1"
JSON_ALLTOALL = "collcast collective alltoall --topology dgx-h100 --nodes 4 --library ideal --algorithm naive --size 1MiB --format json"
JSON_SWEEP = "collcast collective all_reduce --topology ring --ranks 4 --format json"
TABLES = "validation/data/nccl-tests/a100-cw-1x2-all_reduce.csv validation/data/nccl-tests/2080ti-1x2-nop2p-reduce.csv"

TOO_LARGE = "validation/data/nccl-tests/aic-a100-sxm-n8-nccl2.27.3-all_gather.csv"

# An overlay that was fitted on another description of dgx-a100 than the shipped one.
OTHER = "--overlay tests/golden/inputs/other-overlay.yaml"

# (schema, command): every command in every shape that its document can take.
WINDOW = ("--set model.window.tokens=1024 --set model.window.full_every=2 --set model.window.full_first=1 "
          "--set 'model.window.full_at=[4]' --set model.parallel_mlp.norms=1 --set model.parallel_mlp.one_reduce=true")
LINEAR = ("--set model.linear_attention.key_heads=8 --set model.linear_attention.value_heads=16 --set model.linear_attention.key_dim=64 "
          "--set model.linear_attention.value_dim=64 --set model.linear_attention.full_every=4 "
          "--set 'model.linear_attention.full_at=[4]' --set model.attention_gate=true")
SPARSE = "--set model.sparse_attention.heads=4 --set model.sparse_attention.dim=64 --set model.sparse_attention.top_k=256"
COMMANDS = [
    ("step", f"collcast step llama3-8b-8xh100 --method estimate {LINEAR} --set training.recompute=full"),
    ("plan", f"{ONE_LAYOUT} --pp 8 {LINEAR}"),
    ("step", "collcast step nemotron3-nano-30b-8xb200 --method estimate --what-if experts-again"),
    ("step", "collcast step gpt-oss-120b-64xgb200 --method estimate"),
    ("plan", "collcast plan gpt-oss-120b-64xgb200 --simulate 0 --top 1 --tp 1 --pp 1 --ep 64 --micro-batch 4 --recompute none"),
    ("step", "collcast step nemotron3-nano-30b-inference-8xh200 --method estimate"),
    ("plan", "collcast plan nemotron3-nano-30b-8xb200 --simulate 0 --top 1 --pp 1 --recompute none"),
    ("step", "collcast step qwen3.5-397b-inference-8xb200 --method estimate"),
    ("plan", "collcast plan qwen3.5-397b-inference-8xb200 --simulate 0 --tp 8 --set inference.first_token_overhead=30ms"),
    ("step", f"collcast step deepseek-v3-2048xh800 --method estimate {SPARSE}"),
    ("step", "collcast step deepseek-v3.2-inference-8xh200 --method estimate"),
    ("plan", "collcast plan deepseek-v3.2-inference-8xh200 --simulate 0 --top 1"),
    ("step", "collcast step deepseek-v3.2-inference-8xh200 --what-if mtp --method estimate"),
    ("plan", "collcast plan deepseek-v3.2-inference-8xh200 --what-if mtp --simulate 0 --top 1"),
    ("step", "collcast step llama3-70b-inference-8xh100 --set inference.speculative.method=ngram --set inference.speculative.num_speculative_tokens=3 --set inference.speculative.acceptance_length=2"),
    ("step", f"collcast step llama3-8b-8xh100 --method estimate {WINDOW}"),
    ("step", "collcast step llama3-70b-inference-8xh100 --set model.window.tokens=512 --set inference.kv_window=false"),
    ("step", "collcast step llama3-70b-inference-8xh100 --what-if benchmark-run --method estimate"),
    ("plan", "collcast plan llama3-70b-inference-8xh100 --what-if benchmark-run --simulate 0 --tp 8 --why 1"),
    ("plan", "collcast plan llama3-70b-inference-8xh100 --what-if benchmark-run --simulate 0 --tp 8 --set inference.load.concurrency=64"),
    ("plan", f"{ONE_LAYOUT} --pp 8 {WINDOW}"),
    ("step", "collcast step llama3-8b-8xh100 --fault 'gpu: all, jitter: 3%' --fault 'node: 0, compute: 90%' --fault 'gpu: 2, jitter: 5%, compute: 90%' --seeds 2"),
    ("collective", "collcast collective all_reduce --topology ring --ranks 4 --size 8:4KiB:x8"),
    ("collective", "collcast collective broadcast --topology ring --size 1MiB --algorithm ring --chunks-curve"),
    ("collective", "collcast collective broadcast --topology mesh --ranks 9 --size 1KiB --algorithm all --links"),
    ("collective", "collcast collective all_gather --topology dgx-h100 --nodes 2 --size 64KiB --method estimate"),
    ("collective", "collcast collective all_gather --topology dgx-a100 --size 64KiB --method simulate"),
    ("collective", f"collcast collective all_reduce {PAIRS}"),
    ("collective", "collcast collective alltoall --topology star --group 0-2 --group 3-5 --size 1MiB --links"),
    ("collective", "collcast collective sendrecv --topology star --group 1,2 --size 0B"),
    ("collective", "collcast collective all_reduce --topology star --ranks 32 --algorithm bidirectional_ring --size 1MiB"),
    ("collective", "collcast collective broadcast --topology ring --ranks 4096 --algorithm ring --chunks 65536"),
    ("step", "collcast step llama3-8b-8xh100 --library ideal --chunks 1 --unfolded --set 'collectives.priorities=[tp, dp]' --set collectives.weights.tp=2"),
    ("step", "collcast step llama3-70b-64xh100 --method estimate --set training.precision=fp8 --set training.save_original_input=true"),
    ("step", "collcast step llama3-70b-64xh100 --method estimate --measured 18.1s --set topology.gpu.kernel_scale=1.1 --set topology.gpu.power_limit=70%"),
    ("plan", "collcast plan llama3-8b-8xh100 --simulate 0 --set topology.gpu.kernel_scale=1.1 --set topology.gpu.power_limit=70%"),
    ("step", "collcast step korthikanti-22b-layer --what-if full-recompute"),
    ("step", "collcast step korthikanti-22b-layer --method simulate --chunks 4 --channels 2"),
    ("step", "collcast step overlap-175b-layer"),
    ("step", "collcast step llama3-70b-inference-8xh100"),
    ("step", "collcast step llama3-70b-inference-8xh100 --method estimate --overlay nccl-tests"),
    ("step", "collcast step llama3-70b-inference-8xh100 --set model.experts.count=8 --set model.experts.top_k=2 --set model.experts.ffn=7168 --set layout.sequence_parallel=true --set inference.first_token_overhead=30ms --method estimate"),
    ("step", "collcast step llama3-8b-8xh100 --library ideal --fault 'gpu: 3, compute: 80%, from: 1s, until: 2s' --fault 'link: node0.gpu1 -> node0.nvswitch0, bandwidth: 50%' --fault 'link: node0.gpu2, bandwidth: 40GB/s, added_latency: 1us'"),
    ("step", "collcast step llama3-70b-straggler-64xh100 --what-if dead-nic --method estimate"),
    ("step", "collcast step llama3-70b-placement-512xh100 --what-if random --method estimate"),
    ("collective", "collcast collective all_reduce --topology ring --ranks 4 --size 1MiB --fault 'link: gpu1 <-> gpu2, failed: true' --fault 'link: gpu0, bandwidth: 50%' --fault 'link: gpu3, bandwidth: 4GB/s, added_latency: 1us'"),
    ("collective", f"collcast collective all_reduce --topology dgx-a100 --size 1MiB {OTHER}"),
    ("explain", f"collcast explain collective all_reduce --topology dgx-a100 --size 1MiB {OTHER}"),
    ("plan", "collcast plan llama3-8b-8xh100 --library nccl --env NCCL_PROTO=Simple --simulate 0 --set training.launch_backward=1us --set training.precision=fp8 --set training.gradient_accumulation_fusion=false --set training.save_original_input=true --set training.cross_entropy_loss_fusion=false"),
    ("step", "collcast step llama3-8b-8xh100 --method estimate --set training.cpu_offloading_num_layers=12"),
    ("plan", "collcast plan llama3-8b-8xh100 --pp 1 --recompute none --simulate 0 --set training.cpu_offloading_num_layers=12"),
    ("plan", "collcast plan llama3-8b-8xh100 --simulate 0 --overlay nccl-tests"),
    ("plan", "collcast plan llama3-8b-8xh100 --library ideal --simulate 0 --set 'collectives.priorities=[tp, dp]' --set collectives.weights.tp=2"),
    ("plan", f"collcast plan gpt3-plan-64xa100 --tp 8 --pp 8 --micro-batch 1 --recompute full --simulate 0 {OTHER}"),
    ("step", "collcast step overlap-175b-layer --what-if serial --method estimate"),
    ("step", "collcast step gpt3-512gpu --method estimate --set training.recompute=selective --set training.launch_backward=1us --set training.cross_entropy_loss_fusion=false"),
    ("plan", "collcast plan llama3-70b-64xh100 --topology gb200-nvl72 --tp 8 --simulate 0"),
    ("plan", ONE_LAYOUT),
    ("plan", "collcast plan llama3-70b-straggler-64xh100 --tp 8 --pp 2 --recompute none --micro-batch 1 --simulate 1 "
             "--fault 'gpu: 12, compute: 80%, from: 1s, until: 2s' --fault 'gpu: all, jitter: 3%, distribution: normal, seed: 7' "
             "--fault 'link: node1.nic4, bandwidth: 50GB/s, added_latency: 1us' --fault 'link: node1.nic5, bandwidth: 50%' --fault 'link: node2.nic1, failed: true'"),
    ("plan", "collcast plan llama3-70b-placement-512xh100 --tp 8 --pp 4 --recompute none --micro-batch 1 --simulate 1 --what-if random"),
    ("plan", f"{ONE_LAYOUT} --pp 4,8 --why tp=8,pp=8 --what-if all"),
    ("plan", f"{ONE_LAYOUT} --pp 4 --dp 2 --top 1 --why tp=3,pp=5 --what-if double-ib"),
    ("step", "collcast step gpt3-interleaved-64xa100"),
    ("step", "collcast step gpt3-interleaved-64xa100 --what-if own --method estimate"),
    ("step", "collcast step llama3-8b-fsdp-64xh100 --what-if hsdp"),
    ("step", "collcast step llama3-70b-lora-8xh100 --what-if qlora --method estimate"),
    ("step", "collcast step deepseek-v3-2048xh800 --what-if bf16-moments --method estimate"),
    ("plan", "collcast plan llama3-8b-8xh100 --set training.precision_aware_optimizer.exp_avg_dtype=bf16 --tp 2 --pp 1 --recompute none --micro-batch 1 --zero 1 --simulate 0"),
    ("step", "collcast step llama3-8b-8xh100 --what-if host-states --method estimate"),
    ("plan", "collcast plan llama3-8b-8xh100 --set training.optimizer_state_offload.chunk_size_mb=64 --tp 2 --pp 1 --recompute none --micro-batch 1 --zero 1 --simulate 0"),
    ("plan", "collcast plan llama3-70b-lora-8xh100 --what-if qlora --tp 2 --pp 4 --recompute none --micro-batch 1 --vpp 1 --zero 1 --simulate 0"),
    ("step", "collcast step llama3-405b-16384xh100 --what-if 8k-fsdp --method estimate"),
    ("step", "collcast step llama3-8b-128k-32xh100 --what-if ulysses"),
    ("plan", "collcast plan llama3-8b-128k-32xh100 --tp 1 --cp 8 --recompute full --zero 3 --simulate 0 "
             "--set layout.dp_shard=2 --set training.no_sync=true --why 1"),
    ("plan", "collcast plan llama3-70b-64xh100 --tp 1 --pp 1 --recompute none --zero 3 --simulate 0 --set layout.dp_shard=2"),
    ("step", "collcast step mixtral-8x7b-64xh100 --what-if skewed"),
    ("step", "collcast step deepseek-v3-2048xh800 --what-if as-reported --method estimate"),
    ("step", f"collcast step deepseek-v3-2048xh800 --method estimate {PARTS}"),
    ("step", "collcast step gpt-1b-gradients-16xa100 --what-if powersgd-bf16 --set training.delayed_all_reduce=true --method estimate"),
    ("step", f"collcast step mixtral-8x7b-64xh100 --what-if split-experts --method estimate --set model.experts.latent=1024 {WIRE}"),
    ("plan", f"collcast plan mixtral-8x7b-64xh100 --tp 2 --pp 4 --ep 8 --recompute none --micro-batch 1 --vpp 1 --zero 1 --sequence-parallel true --simulate 0 --set layout.etp=1 --set model.experts.latent=1024 {WIRE}"),
    ("plan", f"{ONE_LAYOUT.replace('zero 1', 'zero 0')} --pp 4 --set training.gradient_compression.method=powersgd --set training.delayed_all_reduce=true"),
    ("plan", "collcast plan mixtral-8x7b-64xh100 --tp 1 --pp 4 --ep 8 --recompute none --micro-batch 1 --vpp 1 --simulate 0"),
    ("plan", "collcast plan deepseek-v3-2048xh800 --set model.mtp_num_layers=1 --tp 1 --pp 16 --ep 64 --recompute none --micro-batch 1 --zero 1 "
             "--simulate 0"),
    ("plan", f"collcast plan deepseek-v3-2048xh800 --tp 1 --pp 16 --ep 64 --recompute selective --micro-batch 1 --zero 1 "
             f"--simulate 0 {PARTS}"),
    ("plan", f"{ONE_LAYOUT} --pp 4 --vpp 1,2,5"),
    ("plan", "collcast plan llama3-70b-inference-8xh100 --batch 8,32 --max-ttft 3s --simulate 1 --why tp=4,batch=32 --what-if all"),
    ("plan", "collcast plan llama3-70b-inference-8xh100 --simulate 0 --overlay nccl-tests --why 1 --max-tpot 1s"),
    ("plan", "collcast plan llama3-70b-inference-8xh100 --simulate 0 --max-tpot 1us --batch 2048,16"),
    ("plan", "collcast plan llama3-70b-inference-8xh100 --simulate 0 --set model.window.tokens=512 --set inference.kv_window=false --set model.experts.count=8 --set model.experts.top_k=2 --set model.experts.ffn=4096 --set layout.order=tp-cp-ep-dp-pp --why 2"),
    ("explain", "collcast explain step llama3-70b-inference-8xh100"),
    ("plan", "collcast plan gpt3-plan-64xa100 --nodes 1 --tp 8 --micro-batch 1"),
    ("plan", "collcast plan llama3-70b-inference-8xh100 --simulate 0 --gpus 1 --set model.experts.count=8 --set model.experts.top_k=2 --set model.experts.ffn=4096"),
    ("groups", "collcast groups --tp 2 --pp 2 --dp 2 --cp 2 --ep 2 --order tp-cp-ep-dp-pp"),
    ("groups", "collcast groups --tp 2 --dp 4 --ep 4 --etp 1 --order tp-cp-ep-dp-pp"),
    ("groups", "collcast groups --tp 8 --pp 1 --dp 2 --rank 3 --topology dgx-h100"),
    ("topologies", "collcast topology list"),
    ("scenarios", "collcast step --list"),
    ("sweep", "collcast step llama3-70b-inference-8xh100 --what-if benchmark-run --sweep inference.load.requests=160,320 --method estimate"),
    ("sweep", "collcast step llama3-8b-8xh100 --sweep training.cpu_offloading_num_layers=0,12 --method estimate"),
    ("sweep", "collcast step llama3-70b-batches-8xh100 --method estimate"),
    ("sweep", "collcast step gpt3-512gpu --what-if all --method estimate"),
    ("sweep", "collcast step overlap-175b-layer --what-if all"),
    ("sweep", "collcast step gpt-1b-gradients-16xa100 --what-if all --method estimate"),
    ("sweep", "collcast step llama3-70b-64xh100 --sweep layout.tp=4,8 --library nccl --env NCCL_SHM_DISABLE=1 --method estimate"),
    ("sweep", "collcast step llama3-70b-64xh100 --sweep layout.tp=3,8 --sweep batch.micro_batch=1:4:x2 --method estimate"),
    ("check", "collcast topology check dgx-h100"),
    ("check", "collcast topology check tests/golden/inputs/wrong.yaml"),
    ("check", "collcast topology check tests/golden/inputs/boards.yaml"),
    ("groups", "collcast groups --tp 2 --dp 2 --topology tests/golden/inputs/boards.yaml"),
    ("machine", "collcast topology show dgx-h100 --set node.devices.nvswitch.count=4"),
    ("explain", "collcast explain collective all_reduce --topology ring --ranks 8 --size 1MiB --algorithm ring"),
    ("explain", f"collcast explain collective all_reduce {PAIRS}"),
    ("explain", "collcast explain step korthikanti-22b-layer"),
    ("collective", "collcast collective all_reduce --topology dgx-h100 --nodes 2 --library nccl --env NCCL_DEBUG=INFO"),
    ("explain", "collcast explain collective all_reduce --topology dgx-h100 --library nccl --size 1MiB"),
    ("validate", f"collcast validate --measured {TABLES} --library nccl"),
    ("validate", "collcast validate --measured validation/data/nccl-tests/aic-b300-sxm-n2-nccl2.29.2-all_reduce.csv validation/data/nccl-tests/aic-b300-sxm-n2-nccl2.29.2-all_gather.csv --library nccl --leave-one-out"),
    ("validate", "collcast validate --measured validation/data/nccl-tests/h100*.csv"),  # of some no source says if sound
    ("validate", "collcast validate --training --budget A=99%,memory.bloom-prequel.A=1%"),
    ("validate", "collcast validate --inference --budget tpot.all=999%,ttft.vllm=1%"),
    ("validate", "collcast validate --kernels topologies/kernels/gemm-h200.csv topologies/kernels/gemm-h100.csv validation/data/training --budget all=99%,h200_sxm.fp8=1%"),
    ("validate", "collcast validate --measured tests/golden/inputs/all_reduce.log --topology dgx-h100"),  # no sidecar
    ("validate", "collcast validate --measured tests/golden/inputs/all_reduce.log tests/golden/inputs/nobody-2x8-all_reduce.csv"),  # no system that is described
    ("calibrate", f"collcast calibrate --measured {TABLES} --library nccl"),
    ("collective", "collcast collective all_reduce --topology dgx-h100 --library nccl --overlay nccl-tests"),
    ("step", "collcast step llama3-70b-64xh100 --library nccl --env NCCL_PROTO=Simple --method estimate"),
    ("machine", "collcast topology show dgx-h100 --nodes 2 --nccl --set gpu.kernel_scale=1.1 --set gpu.power_limit=70%"),
    ("machine", "collcast topology show dgx-h100 --nodes 2 --nccl --set network.plugin.collnet=true --env NCCL_COLLNET_ENABLE=1"),
    ("machine", "collcast topology show dgx-h100 --nodes 9 --nccl --rank 71 --env NCCL_NVLS_ENABLE=0"),
    ("measure", "collcast measure all_reduce,broadcast --backend gloo --ranks 2 --size 8:64:x8 --repetitions 3"),
    ("backends", "collcast backends"),
    ("step", "collcast step llama3-8b-8xh100"),
    ("step", "collcast step llama3-8b-8xh100 --set gates.step_s.max=1ms"),
    ("report", "collcast report llama3-8b-8xh100 korthikanti-22b-layer"),
    ("report", "collcast report llama3-70b-straggler-64xh100 --what-if all --method estimate"),
    ("compare", f"collcast compare <({JSON_STEP}) <({JSON_STEP} --set layout.tp=4 --set layout.dp=2)"),
    ("compare", f"collcast compare <({JSON_ALLTOALL} --method estimate) <({JSON_ALLTOALL} --method both)"),
    ("compare", f"collcast compare <({JSON_PLAN} --tp 8) <({JSON_PLAN} --tp 4)"),
    ("compare", f"collcast compare <({JSON_SWEEP} --size 1KiB:4KiB:x2) <({JSON_SWEEP} --size 2KiB:8KiB:x2 --chunks 2)"),
    ("validate", f"collcast validate --measured {TABLES} --budget large=8% --budget all_reduce.small=99%"),
    ("validate", f"collcast validate --measured {TABLES} {TOO_LARGE} --topology snellius-h100"),
    ("calibrate", f"collcast calibrate --measured {TABLES}"),
    ("calibrate", f"collcast calibrate --measured {TABLES} --part 1/2 --topology azure-ndv4"),
] + [("machine", f"collcast topology show {p.stem}") for p in sorted((ROOT / "topologies").glob("*.yaml"))]

# What depends on how the machine behaves while the test runs, or needs more tables than a test should fit to.
UNPROVOKED = {"kerneltimes": {".problems[]"}, "measure": {".notes[]", ".problems[]"}, "calibrate": {".machines[].at_bounds[]", ".not_reached[]"}}
UNITS = {"_s": "s", "_bytes": "bytes", "_bytes_per_s": "bytes/s", "_flops_per_s": "FLOP/s", "tokens_per_s": "tokens/s"}


def run(words, **more):
    path = f"{pathlib.Path(COLLCAST).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "COLLCAST_DATA": str(ROOT), "PATH": path}
    return subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env=environment, **more)


def objections(name, value):
    return [f"{'.'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in VALIDATORS[name].iter_errors(value)]


def commands_on_a_gpu():
    """Of a GPU that only tests have, where the build has headers to make it of."""
    fakes = pathlib.Path(COLLCAST).parents[1] / "tests" / "runner" / "fakes"
    if not fakes.exists():
        return []
    return [("kerneltimes", f"LD_LIBRARY_PATH='{fakes}' FAKE_CLOCK=1 FAKE_MEMORY=536870912 "
             "collcast measure kernels --repetitions 2")]


class Outputs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.documents = []
        for name, command in COMMANDS + commands_on_a_gpu():
            done = run(["bash", "-c", f"{command} --format json"])
            if not done.stdout:
                raise AssertionError(f"`{command}` exits with {done.returncode}: {done.stderr}")
            cls.documents.append((name, command, json.loads(done.stdout)))

    def test_every_document_is_valid(self):
        for name, command, document in self.documents:
            with self.subTest(command):
                self.assertEqual(objections(name, document), [])

    def test_every_key_is_described_and_occurs(self):
        for name in sorted(set(SCHEMAS) - set(FILES)):
            if name == "kerneltimes" and not commands_on_a_gpu():
                continue
            with self.subTest(name):
                schema = SCHEMAS[name]
                words = {path for path, _ in walk.described(schema, schema)}
                seen = {path for n, _, d in self.documents if n == name for path in walk.used(d, schema, schema)}
                self.assertEqual(sorted(p for p in seen if p.startswith("?")), [], "not described")
                self.assertEqual(sorted(words - seen - UNPROVOKED.get(name, set())), [], "occurs in no document")


class Schemas(unittest.TestCase):
    def test_each_is_a_schema_of_what_the_tool_calls_it(self):
        for name, schema in SCHEMAS.items():
            with self.subTest(name):
                jsonschema.Draft7Validator.check_schema(schema)
                self.assertEqual(schema["properties"]["schema"]["const"], schema["title"])

    def test_each_key_has_words_and_each_number_its_unit(self):
        for name, schema in SCHEMAS.items():
            for path, below in walk.described(schema, schema):
                with self.subTest(f"{name}{path}"):
                    self.check_words(path, below, walk.resolve(below, schema)[0])

    def check_words(self, path, below, resolved):
        words = below.get("description") or resolved.get("description", "")
        self.assertTrue(words)
        unit = re.match(r"\[([^]]+)\] ", words)
        types = set(as_list(resolved.get("type")))
        is_number = types & {"number", "integer"} and "string" not in types
        if is_number and "$ref" not in below:
            self.assertTrue(unit, "a number without unit")
        named = [u for suffix, u in UNITS.items() if re.search(rf"[a-z0-9.]{suffix}$", path)]
        if named and is_number:
            self.assertEqual(unit.group(1), named[-1])

    def test_every_document_of_the_source_has_one(self):
        sources = [*ROOT.glob("src/**/*.cpp"), *ROOT.glob("validation/**/*.cpp")]
        named = {name for file in sources for name in re.findall(r'"(collcast\.[a-z]+\.v[0-9]+)"', file.read_text())}
        self.assertEqual(sorted(named ^ {schema["title"] for schema in SCHEMAS.values()}), [])

    def test_a_definition_of_one_name_is_one(self):
        first = {}
        for name, schema in SCHEMAS.items():
            for word, definition in schema.get("definitions", {}).items():
                with self.subTest(f"{word} of {name}"):
                    self.assertEqual(first.setdefault(word, definition), definition)


def as_list(value):
    return value if isinstance(value, list) else [value]


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        (pathlib.Path(self.folder.name) / "kernels").mkdir()

    def test_every_shipped_file_is_valid(self):
        for name, file, tree in shipped():
            with self.subTest(file):
                self.assertEqual(objections(name, tree), [])

    def test_wrong_forms_are_refused_by_both(self):
        """What was done at a place of the format is tried once, on the first file that has the place."""
        seen, tried, counts = set(), 0, {"refused by both": 0, "taken by both": 0, "only the tool refuses: not its form": 0}
        for name, file, tree in [*shipped(), *made()]:
            for path, what, make in mutate.mutations(tree):
                place = (name, "extends" in tree, "config" in tree.get("model", {}), general(path), what)
                if place in seen:
                    continue
                seen.add(place)
                if len(seen) % SHARE:
                    continue
                tried += 1
                with self.subTest(f"{file}: {'.'.join(map(str, path))} {what}"):
                    counts[self.compare(name, make(), of_sweep=path[:1] == ("sweep",))] += 1
        print(f"{tried} of {len(seen)} changes: {counts}")
        for case, count in counts.items():
            self.assertGreater(count, 50 // SHARE, case)

    def compare(self, name, tree, of_sweep=False):
        errors, schema_takes = self.tool_says(name, tree), VALIDATORS[name].is_valid(tree)
        if not errors:
            self.assertTrue(schema_takes, f"the tool takes this: {objections(name, tree)}")
            return "taken by both"
        of_form = [e for e in errors if FORM.search(e) and "what_if '" not in e and "sweep at " not in e]
        # What a swept path may be is its key's matter, not the form of a sweep.
        if of_form and not of_sweep:
            self.assertFalse(schema_takes, of_form)
        return "only the tool refuses: not its form" if schema_takes else "refused by both"

    def tool_says(self, name, tree):
        folder, text = pathlib.Path(self.folder.name), json.dumps(tree, ensure_ascii=False)
        if name == "scenario":
            (folder / "scenario.yaml").write_text(text)
            done = run([COLLCAST, "step", str(folder / "scenario.yaml"), "--method", "estimate", "--format", "json"])
            broken_gate = 1
            return errors_of(done) if done.returncode != broken_gate else []
        if name == "schedule":
            (folder / "schedule.yaml").write_text(text)
            (folder / "scenario.yaml").write_text(json.dumps(samples.ON_SCHEDULE))
            return errors_of(run([COLLCAST, "step", str(folder / "scenario.yaml"), "--method", "estimate"]))
        if name == "overlay":
            (folder / "overlay.yaml").write_text(text)
            done = run([COLLCAST, *ONE_COLLECTIVE.split(), "--overlay", str(folder / "overlay.yaml")])
            return errors_of(done)
        if name == "kernels":
            (folder / "kernels" / "asked.yaml").write_text(text)
            text = json.dumps({**samples.TOPOLOGIES["alone"], "gpu": samples.GPU})
        (folder / "machine.yaml").write_text(text)
        done = run([COLLCAST, "topology", "check", str(folder / "machine.yaml"), "--format", "json"])
        self.assertIn(done.returncode, (0, 2), done.stderr)
        return [e["message"] for e in json.loads(done.stdout)["errors"]] if done.stdout else [done.stderr]


def errors_of(done):
    errors = [line for line in done.stderr.splitlines() if "error: " in line]
    assert (done.returncode == 0) == (not errors), done.stderr
    return errors


ONE_COLLECTIVE = "collective all_reduce --topology dgx-a100 --size 1KiB --algorithm ring --method estimate"

# How the tool says that the form of a file is wrong; everything else needs more than one place to be seen, as do the
# settings of a variant.
FORM = re.compile(r"required key |unknown key |has no meaning here| is empty$"
                  r"| is (?:nothing|a list|a map|the text \".*\"|'.*')$")


# docs/guide/my-cluster.yaml, docs/guide/my-job.yaml
GUIDE = {"topology": "cluster", "scenario": "job"}


def shipped():
    patterns = {"topology": "topologies/*.yaml", "kernels": "topologies/kernels/*.yaml", "scenario": "scenarios/*.yaml",
                "schedule": "scenarios/schedules/*.yaml"}
    for name, pattern in patterns.items():
        files = sorted([*ROOT.glob(pattern), *ROOT.glob(f"docs/guide/my-{GUIDE.get(name)}.yaml")])
        assert files, pattern
        for file in files:
            yield name, str(file.relative_to(ROOT)), yaml_text.load(file.read_text())


def made():
    for name, trees in (("topology", samples.TOPOLOGIES), ("scenario", samples.SCENARIOS), ("overlay", samples.OVERLAYS),
                        ("schedule", samples.SCHEDULES)):
        for word, tree in trees.items():
            yield name, word, tree


PRECISIONS = {"fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8"}


def general(path):
    """The place in the format: any element of a list is one, and any name of a precision, device or variant."""
    words = ["[]" if isinstance(key, int) else "precision" if key in PRECISIONS else key for key in path]
    for i in range(1, len(words)):
        if words[i - 1] in ("devices", "what_if", "set"):
            words[i] = "*"
    return tuple(words)


class Quantities(unittest.TestCase):
    def test_the_patterns_are_what_the_tool_takes_but_for_the_range(self):
        definitions = {**SCHEMAS["topology"]["definitions"], **SCHEMAS["scenario"]["definitions"]}
        for kind, texts in quantities.samples().items():
            pattern, taken = definitions[kind]["pattern"], quantities.taken_by_tool(kind, texts, COLLCAST, run)
            by_schema = {text: re.search(pattern, text) is not None for text in texts}
            with self.subTest(kind):
                self.assertEqual([t for t in texts if taken[t] and not by_schema[t]], [], "the tool takes these")
                only_schema = [t for t in texts if by_schema[t] and not taken[t]]
                self.assertEqual([t for t in only_schema if quantities.in_range(kind, t)], [], "the tool refuses these")
                self.assertGreater(sum(taken.values()), 5)
                self.assertGreater(len(texts) - sum(by_schema.values()), 5)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} COLLCAST")
    COLLCAST = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
