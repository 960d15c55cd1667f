#!/usr/bin/env python3
"""Messages per second of collcast ("ours/...") over SimGrid ("peer/..."), per case, from one run (medians).

    ratios.py JSON ...                     prints the table
    ratios.py JSON ... --record CSV DATE   also keeps it in CSV, in place of what that day had
    ratios.py --plot CSV SVG               draws how the ratios went, with what is to be reached
"""
import csv
import json
import sys

REACH = {"ring/1024": 40, "unequal_ring/1024": 40, "unequal_ring/4096": 150, "bottleneck/256": 250, "fat_tree/1024": 25}
COLUMNS = ["date", "case", "collcast_messages_s", "simgrid_messages_s", "ratio", "ns_per_message_over_ns_per_hold", "spread"]


def read(paths):
    """{case: {whose: medians}}, each with "spread": the standard deviation of its repetitions over their mean."""
    entries = {}
    for path in paths:
        for entry in json.load(open(path))["benchmarks"]:
            if "error_occurred" in entry:
                sys.exit(f"{entry['name']}: {entry['error_message']}")
            whose, *case = [part for part in entry["run_name"].split("/") if not part.endswith("_time")]
            seen = entries.setdefault("/".join(case), {}).setdefault(whose, {})
            if entry.get("aggregate_name", "median") == "median":
                seen.update(entry)
            elif entry["aggregate_name"] == "cv" and "messages/s" in entry:
                seen["spread"] = entry["messages/s"]
    return entries


def rows(entries):
    for case, of in entries.items():
        if "ours" not in of or "peer" not in of:
            continue
        ours, peer = of["ours"]["messages/s"], of["peer"]["messages/s"]
        holds = entries.get(case.split("/")[-1], {}).get("hold")
        per_hold = holds["holds/s"] / ours if holds and "ring" in case else None
        yield case, ours, peer, ours / peer, per_hold, of


def table(entries):
    print(f"{'case':20} {'collcast M msg/s':>17} {'SimGrid M msg/s':>16} {'ratio':>7} {'to reach':>9} "
          f"{'message/hold':>13} {'bytes/rank':>11} {'SimGrid':>8} {'allocations/message':>20} "
          f"{'events/message':>15} {'rates/message':>14} {'spread':>7}")
    for case, ours, peer, ratio, per_hold, of in rows(entries):
        def cell(value, form): return "" if value is None else format(value, form)
        print(f"{case:20} {ours / 1e6:17.3f} {peer / 1e6:16.4f} {ratio:7.1f} {REACH.get(case, ''):>9} "
              f"{cell(per_hold, '.2f'):>13} {cell(of['ours'].get('bytes/rank'), '.0f'):>11} "
              f"{cell(of['peer'].get('bytes/rank'), '.0f'):>8} {cell(of['ours'].get('allocations/message'), '.4f'):>20} "
              f"{cell(of['ours'].get('events/message'), '.2f'):>15} {cell(of['ours'].get('rates/message'), '.2f'):>14} "
              f"{cell(spread(of), '.0%'):>7}")


def spread(of):
    """The larger of both; None of a run without repetitions."""
    return max((of[whose]["spread"] for whose in ("ours", "peer") if "spread" in of[whose]), default=None)


def record(entries, path, date):
    now = {case: [date, case, f"{ours:.0f}", f"{peer:.0f}", f"{ratio:.1f}", f"{per_hold:.2f}" if per_hold else "",
                  "" if spread(of) is None else f"{spread(of):.2f}"]
           for case, ours, peer, ratio, per_hold, of in rows(entries)}
    with open(path, newline="") as file:
        kept = [row for row in csv.reader(file) if row[:1] != ["date"] and not (row[0] == date and row[1] in now)]
    with open(path, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *kept, *now.values()])


def plot(source, target):
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "collcast"
    import matplotlib.pyplot as plt
    seen = {}
    for row in csv.DictReader(open(source)):
        seen.setdefault(row["case"], []).append((row["date"], float(row["ratio"])))
    dates = sorted({date for points in seen.values() for date, _ in points})
    figure, axes = plt.subplots(figsize=(8, 4.5))
    for case, points in seen.items():
        line, = axes.plot([dates.index(date) for date, _ in points], [ratio for _, ratio in points], marker="o", label=case)
        if case in REACH:
            axes.axhline(REACH[case], color=line.get_color(), linewidth=0.8, linestyle=":")
    axes.set_yscale("log")
    axes.set_xticks(range(len(dates)), dates)
    axes.set_ylabel("messages/s, collcast over SimGrid (dotted: to reach)")
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(target, bbox_inches="tight", metadata={"Date": None})


def main(arguments):
    if arguments[:1] == ["--plot"] and len(arguments) == 3:
        return plot(*arguments[1:])
    paths, kept = arguments, None
    if "--record" in arguments:
        at = arguments.index("--record")
        paths, kept = arguments[:at], arguments[at + 1:]
        if len(kept) != 2:
            sys.exit(__doc__)
    if not paths:
        sys.exit(__doc__)
    entries = read(paths)
    table(entries)
    if kept:
        record(entries, *kept)


main(sys.argv[1:])
