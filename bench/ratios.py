#!/usr/bin/env python3
"""Messages per second of collcast over SimGrid, per number of ranks, from one run (medians)."""
import json
import sys

rates = {}
for entry in json.load(open(sys.argv[1]))["benchmarks"]:
    if entry.get("aggregate_name", "median") == "median":
        name, ranks = entry["run_name"].split("/")[:2]
        rates.setdefault(int(ranks), {})[name] = entry["messages/s"]
print("ranks   collcast M msg/s   SimGrid M msg/s   ratio")
for ranks, rate in sorted(rates.items()):
    ours, peer = rate["collcast_ring"], rate["simgrid_peer"]
    print(f"{ranks:5}   {ours / 1e6:16.2f}   {peer / 1e6:15.3f}   {ours / peer:5.1f}")
