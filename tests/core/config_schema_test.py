"""The config schema accepts every shipped config, and refuses every bad one that a schema can see through.

Those of bad_configs/beyond_schema/ are for the loader alone. Usage: config_schema_test.py CHECK_JSONSCHEMA
"""

import json
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
CONFIGS = HERE.parents[1] / "configs"
SCHEMA = CONFIGS / "schema" / "config.schema.json"


def check(*arguments):
    """check-jsonschema's verdict on all files at once: its start takes longer than its work."""
    command = [CHECK_JSONSCHEMA, "--output-format", "json", *map(str, arguments)]
    completed = subprocess.run(command, capture_output=True, text=True)
    return json.loads(completed.stdout)


class ConfigSchema(unittest.TestCase):
    def test_is_a_schema(self):
        self.assertEqual(check("--check-metaschema", SCHEMA)["status"], "ok")

    def test_accepts_every_shipped_config(self):
        verdict = check("--schemafile", SCHEMA, *CONFIGS.glob("*.json"))
        self.assertEqual(verdict["status"], "ok", verdict)

    def test_refuses_every_bad_config(self):
        files = {str(file) for file in (HERE / "bad_configs").glob("*.json")}
        verdict = check("--schemafile", SCHEMA, *files)
        self.assertEqual(verdict["parse_errors"], [])
        self.assertEqual({error["filename"] for error in verdict["errors"]}, files)


if __name__ == "__main__":
    CHECK_JSONSCHEMA = sys.argv.pop(1)
    unittest.main()
