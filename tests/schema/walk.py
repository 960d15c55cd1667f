"""A document along its schema: which keys the schema describes, and which of them the document has."""


def resolve(schema, root, path=""):
    """The schema behind a $ref, or the one for a value where the other is null; a definition's places are its own."""
    while True:
        if "$ref" in schema:
            path = schema["$ref"].rsplit("/", 1)[1]
            schema = root["definitions"][path]
        elif "anyOf" in schema and {"type": "null"} in schema["anyOf"]:
            schema = next(other for other in schema["anyOf"] if other != {"type": "null"})
        else:
            return schema, path


def described(schema, root, path=""):
    """Every place that the schema has words for: keys by name, list elements as []."""
    schema, path = resolve(schema, root, path)
    for key, below in schema.get("properties", {}).items():
        yield f"{path}.{key}", below
        yield from described(below, root, f"{path}.{key}")
    for word, mark in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(schema.get(word), dict):
            yield path + mark, schema[word]
            yield from described(schema[word], root, path + mark)


def used(value, schema, root, path=""):
    """Every place of the document, as `described` names it; what the schema has no word for begins with '?'."""
    schema, path = resolve(schema, root, path)
    if schema.get("additionalProperties") is True:
        return  # another document, which has its own schema
    if isinstance(value, list):
        for item in value:
            yield path + "[]" if "items" in schema else "?" + path + "[]"
            yield from used(item, schema.get("items", {}), root, path + "[]")
    elif isinstance(value, dict):
        for key, item in value.items():
            below, name = schema.get("properties", {}).get(key), f"{path}.{key}"
            if below is None and isinstance(schema.get("additionalProperties"), dict):
                below, name = schema["additionalProperties"], path + ".*"
            yield name if below is not None else "?" + name
            if below is not None:
                yield from used(item, below, root, name)
