#!/usr/bin/env python3
"""scripts/document_tables.py on a document and a report of its own."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "document_tables.py"


def case(name, median, ci95, registers=None, math="fp32"):
    return {"variant": name, "math_class": math, "verdict": "passed", "time_ms": {"median": median, "ci95": ci95},
            "shape": {"n": 1, "c": 2, "h": 3, "w": 4, "k": 5}, "launch": registers and {"registers": registers}, "checks": [{"error": {"max_abs": 2.5e-6}}],
            "error": {"worst_ratio": 0.5}, "tolerances": []}


class DocumentTables(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.report = {"cases": [case("plain", 10.0, [9.0, 12.0], 32), case("padded", 12.0, [11.0, 13.0]),
                                 case("pass", 1.0, [1.0, 1.0]), case("pass", 2.0, [2.0, 2.0], math="tf32")]}
        (self.folder / "report.json").write_text(json.dumps(self.report))
        self.document = self.folder / "document.md"

    def run_on(self, action, marker, rows="old\n"):
        self.document.write_text(f"before\n<!-- table: {marker} -->\n{rows}<!-- end of table -->\nafter\n")
        return subprocess.run([sys.executable, str(SCRIPT), action, str(self.document)], capture_output=True, text=True)

    def test_tells_ratios_between_what_both_intervals_allow(self):
        self.assertEqual(self.run_on("--update", "ratios report.json plain padded").returncode, 0)
        self.assertEqual(self.document.read_text().splitlines(), [
            "before", "<!-- table: ratios report.json plain padded -->",
            "| variant | ms | of `plain`'s time | largest error | of the allowed | registers |",
            "|---|---|---|---|---|---|",
            "| `plain` | 10.000 | 1 | 2.50e-06 | 0.50 | 32 |",
            "| `padded` | 12.000 | 1.200 (0.917 ... 1.444) | 2.50e-06 | 0.50 |  |",
            "<!-- end of table -->", "after"])

    def test_sets_variants_side_by_side_for_each_shape(self):
        larger = [dict(one, shape={"n": 8, "c": 2, "h": 3, "w": 4, "k": 5}) for one in self.report["cases"]]
        larger[1] |= {"time_ms": None, "verdict": "skipped"}
        (self.folder / "report.json").write_text(json.dumps({"cases": self.report["cases"] + larger}))
        self.run_on("--update", "shapes report.json plain padded pass:tf32")
        self.assertEqual(self.document.read_text().splitlines()[2:6], [
            "| shape | `plain`, ms | `padded`, ms | `pass:tf32`, ms |",
            "|---|---|---|---|",
            "| n1c2h3w4k5 | 10 | 12 (1.20x) | 2 (0.20x) |",
            "| n8c2h3w4k5 | 10 | skipped | 2 (0.20x) |"])

    def test_leaves_out_what_was_not_measured(self):
        self.report["cases"][1].update(time_ms={"median": 12.0, "ci95": None}, checks=[])
        (self.folder / "report.json").write_text(json.dumps(self.report))
        self.run_on("--update", "ratios report.json plain padded")
        self.assertIn("| `padded` | 12.000 | 1.200 (too few samples for an interval) |  |  |  |", self.document.read_text())

    def test_sets_input_channels_side_by_side(self):
        for case, c, error in zip(self.report["cases"][2:] + self.report["cases"][:1], (64, 3, 3), (3e-4, 2e-7, 1.25e-7)):
            case.update(shape={"c": c}, checks=[{"fill": "normal", "error": {"relative_frobenius": error}}])
        self.report["cases"] = self.report["cases"][2:] + self.report["cases"][:1]
        (self.folder / "report.json").write_text(json.dumps(self.report))
        for marker, rows in (("normal", ["| `pass` | fp32 |  | 0.0003 |", "| `plain` | fp32 | 1.2e-07 |  |", "| `pass` | tf32 | 2e-07 |  |"]),
                             ("special", ["| `pass` | fp32 |  | passed |", "| `plain` | fp32 | passed |  |", "| `pass` | tf32 | passed |  |"])):
            with self.subTest(marker):
                self.run_on("--update", f"channels report.json relative_frobenius {marker}")
                self.assertEqual(self.document.read_text().splitlines()[2:-2],
                                 ["| variant | class | c 3 | c 64 |", "|---|---|---|---|", *rows])
        self.run_on("--update", "channels report.json ms")
        self.assertIn("| `plain` | fp32 | 10.000 |  |\n", self.document.read_text())

    def test_finds_what_is_not_of_the_report(self):
        refused = self.run_on("--check", "ratios report.json plain padded")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("its tables are not those of its reports", refused.stderr)
        self.assertIn("old", self.document.read_text())

    def test_refuses_what_it_cannot_make(self):
        for marker, why in (("ratios report.json plain absent", "0 cases of absent; want one"),
                            ("ratios report.json pass", "2 cases of pass; want one"),
                            ("ratios absent.json plain", "No such file"),
                            ("sums report.json plain", "no table is called sums; there are headline, origin")):
            with self.subTest(marker):
                refused = self.run_on("--update", marker)
                self.assertEqual(refused.returncode, 1)
                self.assertIn(why, refused.stderr)
        self.assertEqual(self.run_on("--check", "ratios report.json pass:tf32").stderr.count("not those"), 1)

    def test_refuses_a_document_that_is_not_there(self):
        refused = subprocess.run([sys.executable, str(SCRIPT), "--check", str(self.document)], capture_output=True, text=True)
        self.assertEqual(refused.returncode, 1)
        self.assertRegex(refused.stderr, r"document\.md: cannot be read: .*No such file.*\n$")
        self.assertEqual(refused.stderr.count("\n"), 1)

    def test_refuses_a_document_without_tables(self):
        self.document.write_text("no table\n")
        for action in ("--check", "--update"):
            refused = subprocess.run([sys.executable, str(SCRIPT), action, str(self.document)],
                                     capture_output=True, text=True)
            self.assertEqual((refused.returncode, refused.stderr),
                             (1, f"{self.document}: holds no table; want one that begins as --help says\n"))

    def test_refuses_a_table_without_an_end(self):
        self.document.write_text("no table\n<!-- table: ratios report.json plain -->\n")
        refused = subprocess.run([sys.executable, str(SCRIPT), "--check", str(self.document)],
                                 capture_output=True, text=True)
        self.assertEqual((refused.returncode, refused.stderr.count("1 tables begin")), (1, 1))


if __name__ == "__main__":
    unittest.main()
