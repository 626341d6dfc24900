"""The schemas accept every shipped config and tuning table, and refuse every bad one that a schema can see through.

Those of beyond_schema/ are for the loaders alone. Usage: config_schema_test.py CHECK_JSONSCHEMA
"""

import json
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
CONFIGS = HERE.parents[1] / "configs"
SCHEMAS = CONFIGS / "schema"
TABLE = CONFIGS / "tune.json"


def check(*arguments):
    """check-jsonschema's verdict on all files at once: its start takes longer than its work."""
    command = [CHECK_JSONSCHEMA, "--output-format", "json", *map(str, arguments)]
    completed = subprocess.run(command, capture_output=True, text=True)
    return json.loads(completed.stdout)


class Schema:
    """Of files of one kind: `schema`, the `shipped` files and the folder of `bad` ones."""

    def test_is_a_schema(self):
        self.assertEqual(check("--check-metaschema", self.schema)["status"], "ok")

    def test_accepts_every_shipped_file(self):
        verdict = check("--schemafile", self.schema, *self.shipped)
        self.assertEqual(verdict["status"], "ok", verdict)

    def test_refuses_every_bad_file(self):
        files = {str(file) for file in self.bad.glob("*.json")}
        verdict = check("--schemafile", self.schema, *files)
        self.assertEqual(verdict["parse_errors"], [])
        self.assertEqual({error["filename"] for error in verdict["errors"]}, files)


class ConfigSchema(Schema, unittest.TestCase):
    schema = SCHEMAS / "config.schema.json"
    shipped = [file for file in CONFIGS.glob("*.json") if file != TABLE]
    bad = HERE / "bad_configs"


class TuneSchema(Schema, unittest.TestCase):
    schema = SCHEMAS / "tune.schema.json"
    shipped = [TABLE]
    bad = HERE / "bad_tables"


if __name__ == "__main__":
    CHECK_JSONSCHEMA = sys.argv.pop(1)
    unittest.main()
