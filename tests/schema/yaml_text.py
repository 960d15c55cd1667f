"""YAML as the tool reads it: only true and false are truths, and only plain decimal numbers are numbers."""
import re

import yaml


class Loader(yaml.SafeLoader):
    def construct_mapping(self, node, deep=False):
        return {key.value: self.construct_object(value, deep=True) for key, value in node.value}


Loader.yaml_implicit_resolvers = {}
Loader.yaml_constructors = dict(yaml.SafeLoader.yaml_constructors)
for tag, pattern in {
    "bool": r"true|false",
    "null": r"~|null|Null|NULL|",
    "int": r"-?[0-9]+",
    "float": r"-?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][+-]?[0-9]+)?",
}.items():
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), None)
Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(node.value))
Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(node.value))
Loader.add_constructor("tag:yaml.org,2002:map", Loader.construct_mapping)


def load(text):
    return yaml.load(text, Loader)
