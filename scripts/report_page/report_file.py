"""A report file, held to configs/schema/report.schema.json: what `read` returns needs no check of keys or types."""

import json
import re
from pathlib import Path
from typing import Any, NoReturn

import jsonschema_rs  # a report of 1,000 cases takes 0.03 s, and 7 s by the package jsonschema

from .input_error import InputError

SCHEMA = Path(__file__).resolve().parents[2] / "configs" / "schema" / "report.schema.json"
TOLD_FIRST = (["tool", "name"], ["schema_version"])  # explain all other differences
# Keyword of the schema -> what it asks for, of the fields of jsonschema_rs.ValidationErrorKind.
WANTED = {
    "type": "a value of type {types}",
    "enum": "one of {options}",
    "const": "{expected_value}",
    "pattern": "text that matches {pattern}",
    "minLength": "text of at least {limit} character",
    "minimum": "a number >= {limit}",
    "exclusiveMinimum": "a number > {limit}",
    "maximum": "a number <= {limit}",
    "minItems": "an array of at least {limit}",
    "maxItems": "an array of at most {limit}",
    "required": "it with the key {property}",
    "additionalProperties": "it without the key {unexpected}",
}
LONGEST_SHOWN = 60  # characters of a value


def read(path: Path) -> dict[str, Any]:
    try:
        report = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse_constant)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or nested beyond reason
        raise InputError(f"{path}: not JSON: {error}") from error
    try:
        errors = list(jsonschema_rs.Draft202012Validator(schema_for(report)).iter_errors(report))
    except ValueError as error:  # half a surrogate pair, or nested beyond reason
        raise InputError(f"{path}: not a report of convmish-bench: {error}") from error
    if errors:
        error = deepest(min(errors, key=lambda error: error.instance_path not in TOLD_FIRST))
        place = "".join(f"/{step}" for step in error.instance_path)
        raise InputError(f"{path}: {place and place + ': '}{shown(error.instance)}; want {wanted(error)}")
    return report


def refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def schema_for(report: Any) -> dict[str, Any]:
    """The schema; of a later minor version than its own it leaves keys open, for a minor version adds keys alone."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    properties = schema["properties"]
    major, newest_minor = properties["schema_version"]["enum"][-1].split(".")
    version = report.get("schema_version") if isinstance(report, dict) else None
    later = isinstance(version, str) and re.fullmatch(rf"{major}\.([1-9][0-9]{{0,8}})", version)
    if later and int(later[1]) > int(newest_minor):
        properties["schema_version"] = {"const": version}
        schema = with_keys_open(schema)
    return schema


def with_keys_open(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: with_keys_open(part) for key, part in schema.items() if key != "additionalProperties"}
    return [with_keys_open(part) for part in schema] if isinstance(schema, list) else schema


def deepest(error: jsonschema_rs.ValidationError) -> jsonschema_rs.ValidationError:
    """Of alternatives, what is wrong with the one that fits furthest; `error` itself where none fits at all."""
    if error.kind.name != "anyOf":
        return error
    inner = max((found for branch in error.kind.context for found in branch), key=lambda found: len(found.instance_path))
    return deepest(inner) if len(inner.instance_path) > len(error.instance_path) else error


def shown(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    text = json.dumps(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def wanted(error: jsonschema_rs.ValidationError) -> str:
    if error.kind.name == "anyOf":
        return " or ".join(dict.fromkeys(wanted(branch[0]) for branch in error.kind.context))
    fields = error.kind.as_dict().items()
    return WANTED[error.kind.name].format_map({name: listed(value) for name, value in fields})


def listed(value: Any) -> str:
    return ", ".join(map(json.dumps, value)) if isinstance(value, list) else json.dumps(value)
