"""Quantities written in many ways: good and bad numbers, each with each unit, and blanks where they may not be."""
import json
import random
import re
import tempfile

import samples as made

SCALE = {"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}

UNITS = {
    "size": {**{p + "B": SCALE[p] for p in ("", "k", "K", "M", "G", "T", "P")}, **{p + "B": BINARY[p] for p in BINARY},
             "PiB": 2.0**50, "EiB": 2.0**60},
    "rate": {**{p + "B/s": SCALE[p] for p in ("", "k", "M", "G", "T")}, **{p + "B/s": BINARY[p] for p in BINARY},
             **{p + u: SCALE[p] / 8 for p in ("", "k", "M", "G", "T") for u in ("b/s", "bit/s")}, "Gbps": 1e9 / 8},
    "time": {"s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "ps": 1e-12},
    "percentage": {"%": 0.01},
    "token_rate": {"tokens/s": 1},
    "compute_rate": {"FLOP/s": 1, **{p + u: SCALE[p] for p in ("G", "T", "P") for u in ("FLOP/s", "FLOPS")}},
}
NUMBERS = ["1", "8", "300", "007", "1.5", "1.", ".5", "2e3", "2E+3", "5e-1", "2.5e2", "0", "0.0", "00.", ".0", "0e5",
           "-0", "-1", "-0.0", "-.0", "+1", "1,5", "1_000", "0x10", "1e", "e5", ".", "", "-", "inf", "nan", "1e400",
           "1e-400", "1e30", "9e18", "1e6", "1e7", "1 0", "½"]
WRONG_UNITS = ["", "Q", "gb", "GB /s", "KIB", "kiB", "EB", "GiBps", "Mbps", "TFLOPs", "tflop/s", "FLOPS", "sec",
               "m", "S", "min", "fs", "μs", "G", "B/S", "b", "bit", "GB/s/s", "FLOP"]


def samples():
    """By kind: every number with every unit of the kind, and a seeded choice with blanks and units of other kinds."""
    choose = random.Random(1)
    out = {}
    others = sorted({unit for units in UNITS.values() for unit in units} | set(WRONG_UNITS))
    for kind, units in UNITS.items():
        texts = [number + unit for number in NUMBERS for unit in units]
        own = list(units)
        pick = choose.choice
        texts += [pick(NUMBERS) + pick(["", " ", "   ", "\t"]) + pick(others) for _ in range(300)]
        texts += [pick([" ", ""]) + pick(NUMBERS) + " " + pick(own) + pick(["", " ", "."]) for _ in range(100)]
        out[kind] = sorted(set(texts))
    return out


def in_range(kind, text):
    """Of a text whose form is right: by the same arithmetic in doubles, as docs/formats.md gives the ranges."""
    number, unit = re.fullmatch(r"([-0-9.]+(?:[eE][-+]?[0-9]+)?) *([^ ]+)", text).groups()
    value = float(number) * UNITS[kind][unit]
    if kind == "size":
        return 0 < value <= 2**62 and value == int(value)
    if kind == "rate":
        return 1 <= value <= 1e18
    if kind == "time":
        return 0 <= value <= 1e6 and not underflows(number)
    if kind == "percentage":
        return 0 < value <= 1
    if kind == "token_rate":
        return 0 < value <= 1e12
    return 1 <= value <= 1e21


def underflows(number):
    return float(number) == 0 and any(c in "123456789" for c in number.lower().split("e")[0])


def taken_by_tool(kind, texts, collcast, run):
    """Variants of one scenario each set the value to one text; the error's line says which was refused."""
    taken = {}
    for start in range(0, len(texts), MOST_VARIANTS):
        batch = texts[start:start + MOST_VARIANTS]
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(scenario(PATHS[kind], batch))
            file.flush()
            done = run([collcast, "step", file.name, "--method", "estimate"])
        broken_gate = 1
        refused = {int(line) for line in re.findall(re.escape(file.name) + r":(\d+):\d+: error: ", done.stderr)}
        if done.returncode == broken_gate:
            refused = set()
        assert (done.returncode == 2) == bool(refused), done.stderr
        taken.update({text: FIRST_LINE + i not in refused for i, text in enumerate(batch)})
    return taken


MOST_VARIANTS, FIRST_LINE = 64, 2
PATHS = {"size": "training.bucket", "rate": "topology.gpu.memory_bandwidth", "time": "topology.network.link.latency",
         "compute_rate": "topology.gpu.peak.bf16", "percentage": "gates.mfu.min",
         "token_rate": "gates.tokens_per_s_per_gpu.min"}


def scenario(path, texts):
    """From FIRST_LINE on, one text per line."""
    tree = {**made.SCENARIOS["everything"]}
    del tree["what_if"]
    variants = [f'"v{i}": ' + json.dumps({"set": {path: text}}, ensure_ascii=False) for i, text in enumerate(texts)]
    return json.dumps(tree)[:-1] + ', "what_if": {\n' + ",\n".join(variants) + "}}\n"
