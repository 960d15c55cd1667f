#!/usr/bin/env python3
"""Messages per second of collcast ("ours/...") over SimGrid ("peer/..."), per case, from one run (medians)."""
import json
import sys

rates = {}
for path in sys.argv[1:]:
    for entry in json.load(open(path))["benchmarks"]:
        if entry.get("aggregate_name", "median") != "median":
            continue
        if "error_occurred" in entry:
            sys.exit(f"{entry['name']}: {entry['error_message']}")
        whose, *case = entry["run_name"].split("/")[:3]
        rates.setdefault("/".join(case), {})[whose] = entry["messages/s"]
print(f"{'case':20} {'collcast M msg/s':>18} {'SimGrid M msg/s':>17} {'ratio':>8}")
for case, rate in rates.items():
    if "ours" in rate and "peer" in rate:
        print(f"{case:20} {rate['ours'] / 1e6:18.3f} {rate['peer'] / 1e6:17.4f} {rate['ours'] / rate['peer']:8.1f}")
