"""Checks JSON against the schemas of docs/schema. Of JSON Schema (draft 2020-12) it knows what
these use; any other keyword is an error, so that no schema can state what is not checked."""
import json
import pathlib

SCHEMAS = pathlib.Path(__file__).resolve().parents[2] / 'docs/schema'
TYPES = {'object': dict, 'array': list, 'string': str, 'boolean': bool, 'null': type(None)}
NOTES = {'$schema', '$id', '$defs', 'title', 'description', 'examples'}
CHECKS = {
    'type', 'enum', 'const', 'properties', 'required', 'additionalProperties', 'items', 'minItems',
    'maxItems', 'minimum', '$ref', 'anyOf'
}


class Mismatch(Exception):
    pass


def load(name):
    return json.loads((SCHEMAS / name).read_text(encoding='utf-8'))


def is_type(value, name):
    if name == 'number':
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if name == 'integer':
        return isinstance(value, int) and not isinstance(value, bool) or isinstance(
            value, float) and value.is_integer()
    return isinstance(value, TYPES[name]) and not (name != 'boolean' and isinstance(value, bool))


def resolve(reference, file):
    """The schema that a reference means, and the file it stands in: "#/$defs/step",
    "common.json#/$defs/step"."""
    other, _, path = reference.partition('#')
    file = other or file
    schema = load(file)
    for part in path.split('/')[1:]:
        schema = schema[part]
    return schema, file


def check(value, schema, file, place='$'):
    """Raises Mismatch that names the place in the value."""
    unknown = set(schema) - NOTES - CHECKS
    if unknown:
        raise ValueError(f'{file}: keywords that nothing checks: {sorted(unknown)}')
    if '$ref' in schema:
        check(value, *resolve(schema['$ref'], file), place)
    if 'anyOf' in schema:
        problems = []
        for option in schema['anyOf']:
            try:
                check(value, option, file, place)
                break
            except Mismatch as problem:
                problems.append(str(problem))
        else:
            raise Mismatch(f'{place}: none of the alternatives: ' + '; '.join(problems))
    types = schema.get('type')
    if types is not None and not any(
            is_type(value, name) for name in ([types] if isinstance(types, str) else types)):
        raise Mismatch(f'{place}: {json.dumps(value)[:60]} is no {types}')
    if 'const' in schema and value != schema['const']:
        raise Mismatch(f'{place}: {value!r} is not {schema["const"]!r}')
    if 'enum' in schema and value not in schema['enum']:
        raise Mismatch(f'{place}: {value!r} is none of {schema["enum"]}')
    if 'minimum' in schema and is_type(value, 'number') and value < schema['minimum']:
        raise Mismatch(f'{place}: {value} is below {schema["minimum"]}')
    if isinstance(value, dict):
        check_object(value, schema, file, place)
    if isinstance(value, list):
        if not schema.get('minItems', 0) <= len(value) <= schema.get('maxItems', len(value)):
            raise Mismatch(f'{place}: {len(value)} items')
        for index, item in enumerate(value):
            check(item, schema.get('items', {}), file, f'{place}[{index}]')


def check_object(value, schema, file, place):
    for name in schema.get('required', []):
        if name not in value:
            raise Mismatch(f'{place}: member "{name}" is missing')
    properties, others = schema.get('properties', {}), schema.get('additionalProperties', True)
    for name, member in value.items():
        if name in properties:
            check(member, properties[name], file, f'{place}.{name}')
        elif others is False:
            raise Mismatch(f'{place}: member "{name}" is not in the schema')
        elif others is not True:
            check(member, others, file, f'{place}.{name}')


def validate(value, name):
    check(value, load(name), name)
