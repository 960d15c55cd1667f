"""Files with what no shipped one has."""

LINK = {"bandwidth": "10GB/s", "latency": "1us", "source": "a sample"}
RING = {"from": "gpu", "to": "gpu", "kind": "direct", "wiring": "ring", **LINK}

TOPOLOGIES = {
    "torus": {
        "schema": "collcast.topology.v1", "name": "torus", "nodes": {"default": 4, "max": 4},
        "node": {"devices": {"gpu": {"kind": "gpu"}}},
        "network": {"kind": "torus", "attach": "gpu", "dims": [2, 2], "link": {"bandwidth": "10GB/s", "latency": "0s"},
                    "source": "a sample"},
    },
    "pairs": {
        "schema": "collcast.topology.v1", "name": "pairs",
        "node": {"devices": {"gpu": {"kind": "gpu", "count": 3}},
                 "links": [RING, {**RING, "wiring": "pairs", "pairs": [[0, 1], [1, 2]]}]},
    },
    "alone": {
        "schema": "collcast.topology.v1", "name": "alone", "node": {"devices": {"host": {"kind": "host"}}},
        "network": {"kind": "none"},
    },
    "rails": {
        "schema": "collcast.topology.v1", "name": "rails", "node": {"devices": {"host": {"kind": "host"}}},
        "network": {"kind": "leaf_spine", "attach": "host", "link": {"bandwidth": "25Gb/s", "latency": "1us"},
                    "rail_optimized": False, "nodes_per_leaf": 4, "spines": 0, "oversubscription": 1.5,
                    "source": "a sample"},
    },
}

MODEL = {"name": "tiny", "layers": 4, "hidden": 512, "heads": 8, "kv_heads": 8, "head_dim": 64, "ffn": 2048,
         "vocab": 1024, "gated_mlp": True, "tied_embeddings": False, "biases": False, "causal": True,
         "learned_positions": 0, "dropout": 0.5,
         "experts": {"count": 4, "top_k": 2, "ffn": 512, "shared_ffn": 256, "shared_gate": True, "dense_layers": 1, "every": 1,
                     "groups": 2, "group_top_k": 1, "latent": 64, "biases": True, "clamp": True},
         "mla": {"q_rank": 128, "kv_rank": 64, "nope": 48, "rope": 16, "value": 64}}

SCENARIOS = {
    "everything": {
        "schema": "collcast.scenario.v1", "name": "everything", "title": "every key of a step", "topology": "dgx-a100",
        "nodes": 1, "model": MODEL,
        "layout": {"tp": 2, "pp": 2, "dp": 2, "cp": 1, "ep": 1, "etp": 2, "cp_exchange": "ring", "dp_shard": 2, "order": "tp-pp-dp", "sequence_parallel": True, "schedule": "gpipe",
                   "uneven_stages": True, "vpp": 1},
        "batch": {"sequence": 512, "micro_batch": 1, "global_batch": 8},
        "training": {"precision": "bf16", "recompute": "full", "attention": "flash", "zero": 1,
                     "reshard_after_forward": True, "gradient_bytes": 2,
                     "cross_entropy_loss_fusion": False, "gradient_accumulation_fusion": False, "save_original_input": False, "cpu_offloading_num_layers": 0, "overlap_tp": "ring", "overlap_dp": False, "align_grad_reduce": False, "bucket": "25MiB", "overlap_pp": False, "overlap_cp": False, "launch": "5us", "launch_backward": "2us",
                     "communication": {"tp_gather": "fp8", "tp_reduce": "fp8", "ep_dispatch": "fp8", "ep_combine": "bf16", "parameters": "bf16", "gradients": "bf16", "scale_block": 128},
                     "gradient_compression": {"method": "ratio", "ratio": 4, "moved": 8, "error_feedback": True}, "delayed_all_reduce": False,
                     "overlap_ep": True, "moe_grouped_mlp_fusion": False, "moe_token_dispatcher": "flex", "expert_imbalance": 1.5, "moe_capacity_factor": 2, "optimizer": True,
                     "precision_aware_optimizer": {"exp_avg_dtype": "bf16", "exp_avg_sq_dtype": "fp32", "main_params_dtype": "fp16", "store_param_remainders": False},
                     "optimizer_state_offload": {"fraction": 0.5, "chunk_size_mb": 256},
                     "embedding_and_logits": True},
        "search": {"tp": [1, 2], "pp": [1], "dp": [1], "micro_batch": [1], "sequence_parallel": [True, False],
                   "recompute": ["none"], "zero": [0], "cp": [1], "ep": [1], "vpp": [1, 2], "values": "all"},
        "collectives": {"algorithm": "ring", "chunks": 4, "channels": "auto", "sharing": "max_min",
                        "priorities": ["tp", "cp", "ep", "pp", "dp"], "weights": {"tp": 4, "dp": 1}},
        "faults": [{"gpu": 3, "compute": "80%"}, {"link": "node0.nic1", "jitter": "20%", "seed": 7}, {"gpu": "0-3", "compute": "90%", "jitter": "3%", "distribution": "normal", "seed": 7},
                   {"node": 0, "jitter": "0%"}, {"node": "0-0", "compute": "99%"}, {"gpu": "all", "jitter": "1%"},
                   {"link": "node0.gpu1", "bandwidth": "50GB/s", "added_latency": "2us"},
                   {"link": "node0.gpu2", "failed": False, "bandwidth": "50%"}, {"link": "node0.nic0", "failed": True, "from": "10ms", "until": "20ms"}],
        "placement": {"nodes": "random", "seed": 7},
        "gates": {"step_s": {"max": "20s"}, "mfu": {"min": "1%"}, "peak_bytes": {"max": "70GiB"},
                  "tokens_per_s_per_gpu": {"min": "10tokens/s"}, "model_flops_per_s_per_gpu": {"min": "1GFLOP/s"},
                  "hfu": {"min": "0.5%"}, "tp_exposed_s": {"max": "10s"}, "pp_exposed_s": {"max": "10s"},
                  "cp_exposed_s": {"max": "10s"}, "ep_exposed_s": {"max": "10s"}, "dp_exposed_s": {"max": "10s"},
                  "bubble_s": {"max": "10s"}},
        "sweep": {"layout.tp": [1, 2], "batch.micro_batch": "1:4:x2"},
        "what_if": {"slower": {"title": "half the rate", "set": {"topology.gpu.memory_bandwidth": "1TB/s"}}},
    },
}

SCENARIOS["served"] = {
    **{key: SCENARIOS["everything"][key] for key in ("schema", "title", "topology", "nodes", "model")},
    "collectives": {key: value for key, value in SCENARIOS["everything"]["collectives"].items()
                    if key not in ("priorities", "weights")},
    "name": "served", "layout": {"tp": 2, "pp": 2, "dp": 2, "ep": 1, "etp": 2, "order": "tp-pp-dp",
                                 "sequence_parallel": True, "uneven_stages": True},
    "inference": {"batch": 8, "prompt_tokens": 512, "output_tokens": 16, "microbatches": 2, "precision": "fp16",
                  "kv_precision": "fp8", "state_precision": "bf16", "expert_imbalance": 1.5, "batching": "static",
                  "first_token_overhead": "30ms"},
    "search": {"tp": [1, 2], "pp": [1, 2], "dp": [2], "ep": [1], "micro_batch": [1, 4], "sequence_parallel": [True],
               "batch": [8, 16]},
    "gates": {"step_s": {"max": "20s"}, "ttft_s": {"max": "1s"}, "tpot_s": {"max": "1s"},
              "tokens_per_s": {"min": "1tokens/s"}},
}

# Layers of one part each.
SCENARIOS["hybrid"] = {
    "schema": "collcast.scenario.v1", "name": "hybrid", "topology": "dgx-a100", "nodes": 1,
    "model": {"layers": 4, "hidden": 512, "heads": 8, "ffn": 2048, "vocab": 1024, "hybrid_layer_pattern": "M*M-", "mtp_num_layers": 1,
              "linear_attention": {"rule": "ssd", "key_heads": 2, "value_heads": 8, "key_dim": 64, "value_dim": 64}},
    "batch": {"sequence": 512, "micro_batch": 1, "global_batch": 8},
}

# Adapters, with weights in 4 bit, which not every training goes with.
SCENARIOS["adapted"] = {
    "schema": "collcast.scenario.v1", "name": "adapted", "topology": "dgx-a100", "nodes": 1,
    "model": {"layers": 4, "hidden": 512, "heads": 8, "ffn": 2048, "vocab": 1024},
    "batch": {"sequence": 512, "micro_batch": 1, "global_batch": 8},
    "training": {"lora": {"rank": 16, "target_modules": ["linear_qkv", "linear_proj"], "base_weights": "nf4"}},
}

SCENARIOS["loaded"] = {
    **{key: SCENARIOS["adapted"][key] for key in ("schema", "topology", "nodes", "model")},
    "name": "loaded", "layout": {"tp": 2, "dp": 2},
    "inference": {"batch": 8, "prompt_tokens": 512, "output_tokens": 16, "batching": "continuous",
                  "load": {"concurrency": 12, "requests": 100, "range_ratio": 0.8, "max_batched_tokens": 1024,
                           "recv_interval": 10, "seed": 3},
                  "speculative": {"method": "mtp", "num_speculative_tokens": 3, "acceptance_length": 2.5}},
    "gates": {figure: {"max": "1s", **{statistic: {"max": "2s"} for statistic in ("p50", "p90", "p99", "longest")}}
              for figure in ("ttft_s", "tpot_s")},
}

OVERLAYS = {
    "fitted": {
        "schema": "collcast.overlay.v1", "fitted_by": "a sample",
        "machines": [{"machine": "dgx-a100", "base_latency": "12.5us", "latency_scale": 3.1,
                      "efficiency": {"nvlink": 0.72, "pcie": 1, "network": 0.9},
                      "median_error": {"large": {"rows": 14, "before": 0.32, "after": 0.083}},
                      "tables": ["a100-cw-1x8-all_reduce"],
                      "description": "fnv1a64:0123456789abcdef", "set": ["network.link.bandwidth=200Gb/s"]}],
    },
}

SCHEDULES = {
    "everything": {
        "schema": "collcast.schedule.v1", "name": "everything", "title": "a sample", "micro_batches": 2, "chunks": 1,
        "placement": "loop", "stages": [["F0", "F1+B0", "W0", "BW1"], ["F0", "B0", "F1", "W0", "B1", "W1"]],
    },
    "v": {"schema": "collcast.schedule.v1", "name": "v", "micro_batches": 1, "placement": "v",
          "stages": [["F0", "F0.1", "B0.1", "B0"], ["F0", "F0.1", "B0.1", "B0"]]},
}
# A scenario of the two stages and micro-batches of the first.
ON_SCHEDULE = {"schema": "collcast.scenario.v1", "name": "on-schedule", "topology": "dgx-a100",
               "model": {"layers": 4, "hidden": 512, "heads": 8, "ffn": 2048, "vocab": 1024},
               "layout": {"pp": 2, "schedule": "./schedule.yaml"}, "batch": {"sequence": 512, "global_batch": 2}}

# A machine that names the kernel table `asked`, for `topology check` to read it.
GPU = {"model": "sample", "memory": "1GB", "memory_bandwidth": "1GB/s", "peak": {"bf16": "1TFLOP/s"},
       "kernels": "asked", "kernel_scale": 1.25, "power_limit": "70%", "source": "a sample"}
