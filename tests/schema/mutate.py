"""Every way to get the form of a file wrong, once for each place of its format, and ways to write it that are right."""
import copy
import functools
import json
import re

QUANTITY = re.compile(r"^([0-9.]+)([A-Za-z/%]+)$")
# Units that other kinds of quantity have, for each unit that a shipped file uses.
OTHER_UNIT = {"B": "s", "B/s": "B", "b/s": "FLOP/s", "s": "B", "FLOP/s": "B/s"}


def places(tree, path=()):
    """Each map key and list element with the path to it."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield path + (key,), value
        yield from places(value, path + (key,))


def changed(tree, path, value=None, remove=False, rename=None):
    out = copy.deepcopy(tree)
    at = out
    for key in path[:-1]:
        at = at[key]
    if remove:
        del at[path[-1]]
    elif rename is not None:
        at[rename] = at.pop(path[-1])
    else:
        at[path[-1]] = value
    return out


def other_values(value):
    """(what was done, another value): wrong kinds, wrong units, and the same said otherwise."""
    yield "in a list", [value]
    yield "in a map", {"value": value}
    yield "nothing", None
    if isinstance(value, (dict, list)):
        yield "a word", "word"
        yield "empty", type(value)()
        return
    if isinstance(value, bool):
        yield "quoted", json.dumps(value)
        yield "yes", "yes"
        yield "one", 1
        return
    if isinstance(value, (int, float)):
        yield "quoted", str(value)
        yield "negative", -value - 1
        yield "zero", 0
        yield "a half more", value + 0.5
        yield "too large", 10**12
        yield "with a unit", f"{value}GB"
        return
    yield "empty", ""
    yield "another word", value + "zz"
    yield "a number", 7
    yield "a truth", True
    quantity = QUANTITY.match(value)
    if quantity:
        yield from other_quantities(*quantity.groups())


def other_quantities(number, unit):
    yield "no unit", number
    yield "a bare number", json.loads(number)
    yield "a misspelt unit", number + unit + "q"
    yield "an unknown prefix", number + "y" + unit
    yield "negative", "-" + number + unit
    yield "no number", unit
    yield "a comma", number.replace(".", "") + ",5" + unit
    yield "two numbers", f"{number} {number}{unit}"
    plain = unit[1:] if unit[0] in "kKMGTPmunp" and len(unit) > 1 else unit
    yield "another kind", number + OTHER_UNIT.get(plain, "m")
    yield "with a blank", f"{number} {unit}"
    yield "with an exponent", f"{number}e0{unit}"


def mutations(tree):
    """(place, what was done, a function that makes the file with it): most are not asked for."""
    for path, value in places(tree):
        if isinstance(path[-1], str):
            yield path, "removed", functools.partial(changed, tree, path, remove=True)
            yield path, "misspelt", functools.partial(changed, tree, path, rename=path[-1] + "x")
            yield path, "with a blank", functools.partial(changed, tree, path, rename=path[-1] + " ")
        for what, other in other_values(value):
            yield path, what, functools.partial(changed, tree, path, other)
    yield (), "a key too many", lambda: {**tree, "colour": "red"}
    yield (), "a list", lambda: [tree]
