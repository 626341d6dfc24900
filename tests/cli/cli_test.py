"""Runs the binary as a user does: exit code, stdout, one line on stderr. Usage: cli_test.py BINARY"""

import ast
import csv
import itertools
import json
import math
import os
import pathlib
import random
import resource
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs"
SCRIPTS = ROOT / "scripts"
SMALL = ["--device", "cpu", "--variant", "naive", "--shape", "n1c2h5w6k3", "--min-time", "0.001", "--max-time", "0.01"]

OK, WRONG, SLOWER, USAGE, ENVIRONMENT = 0, 1, 2, 3, 4


def run(*arguments, **options):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=300, **options)


def forbid_files():
    """For preexec_fn: no file may grow beyond a byte, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))


class Cli(unittest.TestCase):
    def assert_refused(self, code, line, *arguments):
        """Exit code and exactly one line on stderr, nothing on stdout."""
        completed = run(*arguments)
        self.assertEqual(completed.stderr, f"convmish-bench: {line}\n")
        self.assertEqual(completed.stdout, "")
        self.assertEqual(completed.returncode, code)


class BadCommandLine(Cli):
    def test_unknown_option(self):
        self.assert_refused(USAGE, 'unknown option "--shpe"; closest: --shape', "--shpe", "n1c1h3w3k1")

    def test_stray_word(self):
        self.assert_refused(USAGE, '"lst" is neither an option nor a command; closest: list', "lst")

    def test_unknown_shape_letter(self):
        self.assert_refused(
            USAGE,
            '--shape: shape "n1c1x3w3k1": unknown letter "x"; closest: h; the letters are n c h w k',
            "--shape", "n1c1x3w3k1")  # fmt: skip

    def test_unknown_variant(self):
        self.assert_refused(
            USAGE, 'no variant matches "tilde"; closest: tiled. convmish-bench --list shows all',
            "--device", "cpu", "--variant", "tilde")  # fmt: skip

    def test_message_stays_one_line(self):
        completed = run("--shape", "n1\nc1")
        self.assertEqual(completed.stderr.count("\n"), 1)
        self.assertEqual(completed.returncode, USAGE)


class Tuning(Cli):
    SHAPE = "n1c2h6w10k3"
    RUN = ["--device", "cpu", "--variant", "register_blocked", "--samples", "3", "--fill", "normal"]

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.table = pathlib.Path(folder.name) / "tune.json"
        self.report = pathlib.Path(folder.name) / "report.json"

    def run_case(self, *arguments):
        completed = run(*self.RUN, "--shape", self.SHAPE, "--json", self.report, *arguments)
        self.assertEqual((completed.returncode, completed.stderr), (OK, ""))
        report = json.loads(self.report.read_text())
        self.device = report["environment"]["device"]["name"]
        return report["cases"][0]

    def test_rule_request_and_tuning(self):
        by_rule = self.run_case()["configuration"]
        self.assertEqual((by_rule["chosen_by"], by_rule["timed"]), ("rule", []))
        case = self.run_case("--configuration", "4x32x128")
        self.assertEqual(case["configuration"], {"name": "4x32x128", "chosen_by": "request", "timed": []})
        self.assertEqual(case["note"], "4x32 outputs of 128 channels a block; asked for")
        self.assertIn(" --configuration 4x32x128", case["repeat"])
        tuned = self.run_case("--tune")["configuration"]
        fastest = min(tuned["timed"], key=lambda timed: timed["median_ms"])
        self.assertEqual((tuned["name"], tuned["chosen_by"], len(tuned["timed"])), (fastest["name"], "tuning", 6))

    def test_table_is_written_added_to_and_used(self):
        kept = {"why": "mine", "devices": {"a GPU": {"tiled:fp32": {"n1c1h3w3k1": "8x8"}}}}
        self.table.write_text(json.dumps(kept))
        tuned = self.run_case("--tune", "--tune-out", self.table)["configuration"]["name"]
        table = json.loads(self.table.read_text())
        kept["devices"][self.device] = {"register_blocked:fp32": {self.SHAPE: tuned}}
        self.assertEqual(table, kept)
        case = self.run_case("--tune-table", self.table)
        self.assertEqual(case["configuration"], {"name": tuned, "chosen_by": "table", "timed": []})
        self.assertTrue(case["note"].endswith("; from the tuning table"), case["note"])
        explained = run("explain", "register_blocked", "--shape", self.SHAPE, "--device", "cpu", "--tune-table", self.table)
        self.assertIn("from the tuning table", explained.stdout)

    def test_runs_at_the_same_time_keep_what_each_found(self):
        shapes = [[f"n1c2h{h}w{w}k3" for w in (6, 7)] for h in range(5, 9)]
        runs = [
            subprocess.Popen(
                [BINARY, *self.RUN, "--shape", mine[0], "--shape", mine[1], "--tune", "--tune-out", self.table],
                stdout=subprocess.DEVNULL)
            for mine in shapes]  # fmt: skip
        self.assertEqual([process.wait(timeout=300) for process in runs], [OK] * len(runs))
        (of_device,) = json.loads(self.table.read_text())["devices"].values()
        self.assertEqual(sorted(of_device["register_blocked:fp32"]), sorted(itertools.chain(*shapes)))
        self.assertEqual(list(self.table.parent.iterdir()), [self.table])

    def test_bad_table_is_told_before_the_run(self):
        self.run_case()
        self.table.write_text(json.dumps({"devices": {self.device: {"register_blocked:fp32": {self.SHAPE: "1x1"}}}}))
        pointer = "/devices/" + self.device.replace("~", "~0").replace("/", "~1")
        options = (["--tune-table"], ["--tune", "--tune-out"])
        for option in options:
            self.assert_refused(
                USAGE,
                f'{self.table}: {pointer}/register_blocked:fp32/{self.SHAPE}: unknown configuration "1x1"; '
                "want one of 4x32x128, 8x16x128, 8x8x128, 8x32x64, 16x16x64, 16x8x64",
                *self.RUN, *option, self.table)  # fmt: skip
        self.table.write_text('{"devices": []}')
        for option in options:
            self.assert_refused(
                USAGE, f"{self.table}: /devices: is an empty array; want an object of devices by name",
                *self.RUN, *option, self.table)  # fmt: skip

    def test_configuration_of_none(self):
        self.assert_refused(
            USAGE, '--configuration: no variant asked for has "4x32x12"; closest: 4x32x128',
            *self.RUN, "--configuration", "4x32x12")  # fmt: skip
        self.assert_refused(
            USAGE, '--configuration: no variant asked for has "4x32x128"; none has any',
            *SMALL, "--configuration", "4x32x128")  # fmt: skip

    def test_nothing_to_tune(self):
        self.assert_refused(
            USAGE, "--tune: no variant asked for has configurations to time",
            *SMALL, "--tune", "--tune-out", self.table)  # fmt: skip
        self.assertFalse(self.table.exists())

    def test_options_that_say_nothing_together(self):
        self.assert_refused(USAGE, "--tune-out says nothing without --tune", "--tune-out", self.table)
        self.assert_refused(
            USAGE, "--tune-out keeps configurations that are right, but check is off; want the check on",
            "--tune", "--tune-out", self.table, "--no-check")  # fmt: skip

        self.assert_refused(
            USAGE, "--tune-table says nothing beside --tune, which times all configurations",
            "--tune", "--tune-table", self.table)  # fmt: skip

    def test_table_that_cannot_be_written_ends_no_run(self):
        completed = run(
            *self.RUN, "--shape", self.SHAPE, "--shape", "n1c3h8w8k1", "--tune", "--tune-out", self.table,
            preexec_fn=forbid_files)  # fmt: skip
        self.assertEqual(completed.returncode, USAGE)
        self.assertIn("2 passed, 0 skipped, 0 failed", completed.stdout)
        self.assertEqual(completed.stderr, f"convmish-bench: cannot write {self.table}: File too large\n")

    def test_table_that_is_no_regular_file(self):
        fifo = self.table.with_name("fifo")
        os.mkfifo(fifo)
        for path, what in (("/dev/stdout", "standard output"), ("/dev/null", "a pipe or a device"),
                           (fifo, "a pipe or a device")):  # fmt: skip
            for options in ([], ["--json", path], ["--json", self.report]):
                self.assert_refused(
                    USAGE,
                    f"--tune-out: {path} is {what}; a tuning table must be a regular file of its own, or not be there yet",
                    *self.RUN, "--tune", "--tune-out", path, *options)  # fmt: skip
        self.assertFalse(self.report.exists())

    def test_table_that_is_a_report_too(self):
        for option in ("--json", "--csv", "--junit"):
            self.assert_refused(
                USAGE, f"a report would replace {self.table}, which is read here; want another file",
                *self.RUN, "--tune", "--tune-out", self.table, option, self.table)  # fmt: skip


class BadFiles(Cli):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_config_that_is_not_json(self):
        file = self.folder / "bad.json"
        file.write_text('{"seed": 1,\n}')
        completed = run("--config", file)
        self.assertEqual(completed.returncode, USAGE)
        self.assertRegex(completed.stderr, r"^convmish-bench: .*bad\.json: not JSON: .* line 2, column 1: .*\n$")

    def test_config_with_unknown_key(self):
        file = self.folder / "bad.json"
        file.write_text('{"shape": []}')
        self.assert_refused(USAGE, f"{file}: /shape: unknown key; closest: shapes", "--config", file)

    def test_config_that_is_not_there(self):
        file = self.folder / "none.json"
        self.assert_refused(USAGE, f"{file}: cannot be read: No such file or directory", "--config", file)

    def test_report_in_a_folder_that_is_not_there(self):
        file = self.folder / "none" / "report.json"
        completed = run(*SMALL, "--json", file)
        self.assertEqual(completed.returncode, USAGE)
        self.assertEqual(completed.stdout, "", "refused after the run had begun")
        self.assertRegex(completed.stderr, rf"^convmish-bench: .*{file}.*\n$")

    def test_report_that_is_a_folder(self):
        completed = run(*SMALL, "--json", self.folder)
        self.assertEqual(completed.returncode, USAGE)
        self.assertEqual(completed.stdout, "", "refused after the run had begun")
        self.assertRegex(completed.stderr, rf"^convmish-bench: .*{self.folder}.*\n$")
        self.assertEqual(list(self.folder.iterdir()), [])


class Devices(Cli):
    def test_gpu_that_is_absent(self):
        completed = run("--device", "cuda:4095", "--variant", "all")
        self.assertEqual(completed.returncode, ENVIRONMENT)
        self.assertRegex(completed.stderr, r"^convmish-bench: .+\n$")
        self.assertEqual(completed.stdout, "")

    def test_variant_of_another_device(self):
        listed = run("--list").stdout
        if "cudnn_unfused" not in listed:
            self.skipTest("this build has no cuDNN variants")
        self.assert_refused(
            USAGE, '"cudnn_unfused" runs on cuda only; this run is on cpu',
            "--device", "cpu", "--variant", "cudnn_unfused")  # fmt: skip


class Explain(Cli):
    SHAPE = ["--device", "cpu", "--shape", "n2c64h66w66k3"]

    def explained(self, variant):
        completed = run("explain", variant, *self.SHAPE)
        self.assertEqual((completed.returncode, completed.stderr), (OK, ""))
        return completed.stdout

    def test_naive(self):
        text = self.explained("naive")
        self.assertIn("  grid           96x1x1: 96 blocks\n", text)
        self.assertIn("  block          256x1x1: 256 threads, 8 warps\n", text)
        self.assertIn("\nShared memory: not used\n", text)

    def test_tiled(self):
        text = self.explained("tiled:fp32")
        self.assertIn("shape  n2c64h66w66k3 (asked for)\n", text)
        self.assertIn("  grid           16x3x2: 96 blocks\n", text)
        self.assertIn("  shared memory  10656 bytes a block\n", text)
        self.assertRegex(text, "  registers      not known: .+\n")
        self.assertRegex(text, r"\ndram +2\.336 MB +- +-\n")
        self.assertIn("all 8 warps of block (8, 1, 0) of 16x3x1, one image\n", text)
        self.assertRegex(text, r"\nload x +4 +4608 +9216 +4608 +2-way +50.0%\n")
        self.assertRegex(text, r"\nload taps +16 +1152 +2304 +2304 +none +0.00%\n")
        self.assertIn("\n4608 of 12248 wavefronts, 37.6%, are bank conflicts\n", text)

    def test_coarsened(self):
        text = self.explained("coarsened_1x2")
        self.assertIn("  block          8x16x1: 128 threads, 4 warps\n", text)
        self.assertRegex(text, r"\nload x +8 +1536 +6144 +3072 +2-way +50.0%\n")
        self.assertIn("\n3072 of 8024 wavefronts, 38.3%, are bank conflicts\n", text)

    def test_default_shape_is_the_headline(self):
        completed = run("explain", "naive", "--device", "cpu")
        self.assertEqual((completed.returncode, completed.stderr), (OK, ""))
        self.assertIn("shape  n64c64h256w256k128 (default: the headline shape)\n", completed.stdout)
        self.assertIn("  arithmetic     608.8 GFLOP, as a direct convolution\n", completed.stdout)

    def test_unknown_variant(self):
        self.assert_refused(
            USAGE, 'no variant matches "tilde"; closest: tiled. convmish-bench --list shows all', "explain", "tilde")

    def test_name_of_several(self):
        completed = run("explain", "*e*", "--device", "cpu")
        self.assertEqual((completed.returncode, completed.stdout), (USAGE, ""))
        self.assertRegex(
            completed.stderr, r'^convmish-bench: "\*e\*" names \d+ variants; want one of .*coarsened_1x2:fp32.*\n$')


class Texts(Cli):
    def test_help(self):
        for arguments in (["--help"], ["-h"], ["help"]):
            completed = run(*arguments)
            self.assertEqual((completed.returncode, completed.stderr), (OK, ""))
            for heading in ("Usage:", "Verbs", "Examples", "Exit codes"):
                self.assertIn(heading, completed.stdout)

    def test_version(self):
        completed = run("--version")
        self.assertEqual((completed.returncode, completed.stderr), (OK, ""))
        self.assertRegex(completed.stdout, r"^convmish-bench \d+\.\d+\.\d+")

    def test_list_shows_what_the_cpu_can_run(self):
        completed = run("--list")
        self.assertEqual((completed.returncode, completed.stderr), (OK, ""))
        rows = [line.split()[:6] for line in completed.stdout.splitlines()]
        self.assertEqual(rows[0], ["variant", "class", "layout", "device", "group", "here"])
        for name in ("naive", "tiled", "coarsened_1x2"):
            self.assertIn([name, "fp32", "nchw", "cpu", "standard", "yes"], rows)
        self.assertIn(["coarsened_1x4", "fp32", "nchw", "cpu", "ablation", "yes"], rows)

    def test_calibrate_tells_what_the_clock_is_worth(self):
        completed = run("--calibrate", "--device", "cpu")
        self.assertEqual((completed.returncode, completed.stderr), (OK, ""))
        lines = completed.stdout.splitlines()
        self.assertEqual([line[:14].strip() for line in lines], ["device", "clock", "empty launch", "copy"])
        self.assertRegex(lines[1], r"resolves \d\S* us|gave the same time")
        self.assertRegex(lines[3], r"B in \d\S* ms \(median; 95% CI \S+ to \S+\); \d\S* [GM]B/s read and written$")

    def test_closed_pipe_ends_quietly(self):
        completed = subprocess.run(
            ["bash", "-c", f'for i in $(seq 50); do "{BINARY}" --help; done | head -1'],
            capture_output=True, text=True, timeout=300)  # fmt: skip
        self.assertEqual(completed.stderr, "")

    def test_full_disk_is_told(self):
        with open("/dev/full", "w") as full:
            completed = subprocess.run([BINARY, "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(completed.returncode, USAGE)
        self.assertIn("No space left on device", completed.stderr)

    def test_closed_output_is_told(self):
        for arguments in (["--version"], [*SMALL, "--json", "/dev/stdout"], [*SMALL, "--csv", "/dev/fd/1"]):
            completed = subprocess.run(
                ["bash", "-c", 'exec "$@" >&-', "bash", BINARY, *arguments], capture_output=True, text=True, timeout=300)
            self.assertEqual(
                completed.stderr,
                "convmish-bench: standard output is closed; want it open, or > /dev/null to discard what is printed\n")
            self.assertEqual(completed.returncode, USAGE)


class Runs(Cli):
    def test_small_run_passes_and_reports(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "report.json"
            completed = run(*SMALL, "--json", file)
            self.assertEqual((completed.returncode, completed.stderr), (OK, ""))
            self.assertIn("naive", completed.stdout)
            report = json.loads(file.read_text())
            self.assertEqual([path.name for path in pathlib.Path(folder).iterdir()], ["report.json"])
        (case,) = report["cases"]
        self.assertEqual(case["variant"], "naive")
        self.assertEqual(case["verdict"], "passed")
        self.assertEqual(case["shape"], {"n": 1, "c": 2, "h": 5, "w": 6, "k": 3})

    def test_every_format_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            files = [pathlib.Path(folder) / name for name in ("report.json", "report.csv", "report.xml")]
            completed = run(*SMALL, "--json", files[0], "--csv", files[1], "--junit", files[2])
            self.assertEqual((completed.returncode, completed.stderr), (OK, ""))
            self.assertEqual(sorted(pathlib.Path(folder).iterdir()), sorted(files))
            (row,) = csv.DictReader(files[1].read_text().splitlines())
            self.assertEqual((row["variant"], row["verdict"], row["n"]), ("naive", "passed", "1"))
            (suite,) = xml.etree.ElementTree.parse(files[2]).getroot()
            self.assertEqual((suite.get("tests"), suite.get("failures")), ("1", "0"))

    def test_unchecked_is_no_pass(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "report.xml"
            self.assertEqual(run(*SMALL, "--no-check", "--junit", file).returncode, OK)
            (suite,) = xml.etree.ElementTree.parse(file).getroot()
            self.assertEqual(suite.get("skipped"), "1")

    def test_two_reports_in_one_file(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "report"
            self.assert_refused(
                USAGE, f"two reports are to go to {folder}/./report; want a file each",
                *SMALL, "--json", file, "--csv", f"{folder}/./report")  # fmt: skip
        self.assert_refused(
            USAGE, "two reports are to go to /dev/fd/1; want a file each",
            *SMALL, "--json", "/dev/stdout", "--csv", "/dev/fd/1")  # fmt: skip

    def test_report_on_standard_output_is_all_that_is_there(self):
        completed = run(*SMALL, "--json", "/dev/stdout")
        self.assertEqual(completed.returncode, OK)
        self.assertEqual(len(json.loads(completed.stdout)["cases"]), 1)
        self.assertIn("naive", completed.stderr)

    def test_report_on_redirected_standard_output(self):
        with tempfile.TemporaryFile("w+") as file:
            file.write("before\n")
            file.flush()
            subprocess.run([BINARY, *SMALL, "--json", "/dev/stdout"], stdout=file, stderr=subprocess.PIPE, check=True)
            file.seek(0)
            self.assertEqual(file.readline(), "before\n", "what stood there was overwritten")
            self.assertEqual(len(json.load(file)["cases"]), 1)

    def test_report_in_a_pipe_is_written_once(self):
        with tempfile.TemporaryDirectory() as folder:
            fifo = pathlib.Path(folder) / "fifo"
            os.mkfifo(fifo)
            with subprocess.Popen([BINARY, *SMALL, "--json", fifo], stdout=subprocess.PIPE) as process:
                report = json.loads(fifo.read_text())  # to the end: until the writer closes it
                self.assertIn(b"naive", process.stdout.read())
            self.assertEqual((len(report["cases"]), process.returncode), (1, OK))

    def test_report_that_may_not_grow_leaves_nothing_behind(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "report.json"
            completed = run(*SMALL, "--json", file, preexec_fn=forbid_files)
            self.assertEqual(completed.stderr, f"convmish-bench: cannot write {file}: File too large\n")
            self.assertEqual(completed.returncode, USAGE)
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])

    def test_two_reports_to_one_new_file(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "report"
            completed = run(*SMALL, "--json", "report", "--csv", file, cwd=folder)
            self.assertEqual(completed.returncode, USAGE)
            self.assertIn("two reports are to go to", completed.stderr)
            self.assertFalse(file.exists())

    def test_report_may_not_replace_what_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            config = pathlib.Path(folder) / "config.json"
            config.write_text('{"shapes": ["n1c2h5w6k3"]}')
            completed = run(*SMALL, "--config", config, "--json", "config.json", cwd=folder)
            self.assertEqual(completed.returncode, USAGE)
            self.assertIn("would replace config.json, which is read here", completed.stderr)
            self.assertEqual(config.read_text(), '{"shapes": ["n1c2h5w6k3"]}')

    def test_report_in_a_removed_current_folder(self):
        for options in (["--json", "z.json"], ["--json", "z.json", "--csv", "z.csv"]):
            with tempfile.TemporaryDirectory() as folder:
                here = pathlib.Path(folder) / "here"
                completed = subprocess.run(
                    ["bash", "-c", 'mkdir "$1" && cd "$1" && rmdir "$1" && shift && exec "$@"', "bash", here, BINARY,
                     *SMALL, *options], capture_output=True, text=True, timeout=300)  # fmt: skip
            self.assertEqual(completed.stderr, "convmish-bench: cannot write z.json: folder . has been removed\n")
            self.assertEqual((completed.returncode, completed.stdout), (USAGE, ""))

    def test_report_beside_an_input_in_a_pipe(self):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report.json"
            completed = run(*SMALL, "--config", "/dev/stdin", "--json", report, input='{"shapes": ["n1c2h5w6k3"]}')
            self.assertEqual((completed.returncode, completed.stderr), (OK, ""))
            self.assertEqual(len(json.loads(report.read_text())["cases"]), 1)

    def test_report_that_cannot_be_written_costs_no_other(self):
        with tempfile.TemporaryDirectory() as folder:
            csv = pathlib.Path(folder) / "table.csv"
            completed = run(*SMALL, "--json", "/dev/full", "--csv", csv)
            self.assertEqual(completed.returncode, USAGE)
            self.assertIn("1 passed", completed.stdout)
            self.assertEqual(completed.stderr, "convmish-bench: cannot write /dev/full: No space left on device\n")
            self.assertEqual(len(csv.read_text().splitlines()), 2)

    def test_killed_run_leaves_what_was_done(self):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder, "report.json")
            tool = subprocess.Popen([BINARY, "--device", "cpu", "--variant", "naive", "--shape", "n1c3h8w9k2",
                                     "--fill", "kernelbench,normal", "--min-time", "1000", "--max-time", "1000",
                                     "--json", report], stdout=subprocess.DEVNULL)
            try:
                end = time.monotonic() + 60
                while time.monotonic() < end and not (report.exists() and json.loads(report.read_text())["cases"]):
                    time.sleep(0.1)
            finally:
                tool.kill()
                tool.wait()
            case, = json.loads(report.read_text())["cases"]
        self.assertEqual((case["verdict"], case["reason"]), ("skipped", "interrupted"))
        self.assertIn("kernelbench", [check["fill"] for check in case["checks"]])
        self.assertIsNone(case["time_ms"])

    def test_smoke_config_passes_on_the_cpu(self):
        completed = run("--config", CONFIGS / "smoke.json", "--device", "cpu")
        self.assertEqual(completed.returncode, OK, completed.stdout + completed.stderr)


class Compare(Cli):
    """On reports made from a small run: one case, its times replaced by known ones."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.old = self.folder / "old.json"
        self.assertEqual(run(*SMALL, "--json", self.old).returncode, OK)
        self.times = [2 + i / 1000 for i in range(30)]
        self.write("old", lambda report: None)

    def write(self, name, change, factor=1.0):
        """old.json with `change` made to it, `factor` times as slow."""
        report = json.loads(self.old.read_text())
        (case,) = report["cases"]
        case["emulated"] = False
        case["time_ms"] = {
            "median": 2.0145 * factor, "ci95": None, "min": 2 * factor, "p5": 2 * factor, "p95": 2.03 * factor,
            "mean": 2.0145 * factor, "stddev": 0.01, "converged": True,
            "samples": [factor * time for time in self.times]}  # fmt: skip
        change(report)
        file = self.folder / f"{name}.json"
        file.write_text(json.dumps(report))
        return file

    def compare(self, new, *options):
        return run("compare", self.old, new, *options)

    def test_nothing_changed(self):
        completed = self.compare(self.old)
        self.assertEqual((completed.returncode, completed.stderr), (OK, ""))
        self.assertIn("0 faster, 0 slower, 1 tied, 0 not judged", completed.stdout)

    def test_slower_than_is_allowed(self):
        new = self.write("new", lambda report: None, factor=1.1)
        completed = self.compare(new)
        self.assertEqual((completed.returncode, completed.stderr), (SLOWER, ""))
        self.assertIn("+10.00%", completed.stdout)
        self.assertEqual(self.compare(new, "--max-slowdown", "11%").returncode, OK)
        self.assertEqual(run("compare", new, self.old).returncode, OK, "faster")

    def test_no_longer_right(self):
        def fail(report):
            report["cases"][0].update(verdict="failed", reason="outside_tolerance", detail="wrong")

        completed = self.compare(self.write("new", fail))
        self.assertEqual(completed.returncode, SLOWER)
        self.assertIn("passed -> failed", completed.stdout)

    def test_other_devices(self):
        def rename(report):
            report["environment"]["device"]["name"] = "another"

        new = self.write("new", rename)
        name = json.loads(self.old.read_text())["environment"]["device"]["name"]
        self.assert_refused(
            USAGE,
            f'{self.old} is of "{name}", {new} of "another": their times say nothing of each other; --force compares '
            "them all the same",
            "compare", self.old, new)  # fmt: skip
        self.assertEqual(self.compare(new, "--force").returncode, OK)

    def test_nothing_in_common(self):
        def reshape(report):
            report["cases"][0]["shape"]["n"] = 7

        new = self.write("new", reshape)
        self.assert_refused(
            USAGE,
            f"{self.old} and {new} have no case in common, by variant, class, layout, device and shape; --force "
            "compares them all the same",
            "compare", self.old, new)  # fmt: skip
        completed = self.compare(new, "--force")
        self.assertEqual(completed.returncode, OK)
        self.assertIn("only in the new report", completed.stdout)

    def test_another_major_version_even_by_force(self):
        def raise_major(report):
            report["schema_version"] = "2.0"

        new = self.write("new", raise_major)
        for options in ([], ["--force"]):
            self.assert_refused(
                USAGE, f'{new}: /schema_version: is "2.0"; want "1.x"', "compare", self.old, new, *options)

    def test_times_and_shapes_that_cannot_be(self):
        def spoil(report):
            report["cases"][0]["time_ms"]["samples"][0] = "nan"

        new = self.write("nan", spoil)
        self.assert_refused(
            USAGE, f'{new}: /cases/0/time_ms/samples/0: is "nan"; want a number of at least 0', "compare", self.old, new)

        def empty(report):
            report["cases"][0]["shape"]["n"] = -1

        new = self.write("empty", empty)
        self.assert_refused(
            USAGE, f"{new}: /cases/0/shape/n: is -1; want an integer of at least 1", "compare", self.old, new)

    def test_option_of_a_run(self):
        self.assert_refused(
            USAGE, "--no-time is an option of run, not of compare", "compare", self.old, self.old, "--no-time")

    def test_files_that_are_no_reports(self):
        missing = self.folder / "none.json"
        self.assert_refused(
            USAGE, f"{missing}: cannot be read: No such file or directory", "compare", missing, self.old)
        self.assert_refused(USAGE, f"{self.folder}: is a directory; want a file", "compare", self.old, self.folder)

    def test_run_against_a_baseline(self):
        """The emulated kernels of a CPU run are never judged by time: what is held against it is its verdict."""
        completed = run(*SMALL, "--baseline", self.old)
        self.assertEqual((completed.returncode, completed.stderr), (OK, ""))
        self.assertIn("time not judged: emulated: naive:fp32 on n1c2h5w6k3", completed.stdout)

    def test_run_that_is_slower_than_its_baseline(self):
        if "onednn_fused" not in run("--list").stdout:
            self.skipTest("this build has no variant whose times on the CPU are its own")

        def rename(report):
            report["cases"][0]["variant"] = "onednn_fused"

        baseline = self.write("baseline", rename, factor=1e-6)  # nanoseconds: slower than that is certain
        small = ["onednn_fused" if argument == "naive" else argument for argument in SMALL]
        completed = run(*small, "--min-time", "0.01", "--max-time", "1", "--baseline", baseline)
        self.assertEqual((completed.returncode, completed.stderr), (SLOWER, ""))
        self.assertIn("1 slower (1 by more than 3%)", completed.stdout)

    def test_run_is_refused_before_it_begins(self):
        def reshape(report):
            report["cases"][0]["shape"]["n"] = 7

        def rename(report):
            report["environment"]["device"]["name"] = "another"

        for change in (reshape, rename):
            completed = run(*SMALL, "--baseline", self.write("baseline", change))
            self.assertEqual((completed.returncode, completed.stdout), (USAGE, ""))
            self.assertRegex(completed.stderr, r"^convmish-bench: .*baseline\.json .*this run.*\n$")


def npy(extents, values, dtype="<f4"):
    """What numpy.save writes."""
    shape = "(" + ", ".join(map(str, extents)) + ("," if len(extents) == 1 else "") + ")"
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    data = struct.pack(f"<{len(values)}f", *values)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def fp32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def tf32(value):
    """Rounded to nearest: 13 bits of the significand go."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return struct.unpack("<f", struct.pack("<I", (bits + 0x1000) & 0xFFFFE000))[0]


def mish(value):
    return value * math.tanh(math.log1p(math.exp(value)))


class Verify(Cli):
    """Tensors of n2 c3 h8 w9 k4, computed here."""

    N, C, H, W, K = 2, 3, 8, 9, 4
    P, Q = H - 2, W - 2

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        random.seed(3)
        draw = lambda count: [fp32(random.gauss(0, 1)) for _ in range(count)]
        self.x, self.filter, self.bias = draw(self.N * self.C * self.H * self.W), draw(self.K * self.C * 9), draw(self.K)
        self.save("x", (self.N, self.C, self.H, self.W), self.x)
        self.save("filter", (self.K, self.C, 3, 3), self.filter)
        self.save("bias", (self.K,), self.bias)
        self.save_y(self.compute())

    def save(self, name, extents, values, **options):
        (self.folder / f"{name}.npy").write_bytes(npy(extents, values, **options))

    def save_y(self, y):
        self.save("y", (self.N, self.K, self.P, self.Q), y)

    def compute(self, rounded=lambda value: value, bias=1.0):
        y = []
        for n, k, p, q in itertools.product(range(self.N), range(self.K), range(self.P), range(self.Q)):
            z = bias * self.bias[k]
            for c, r, s in itertools.product(range(self.C), range(3), range(3)):
                x = self.x[((n * self.C + c) * self.H + p + r) * self.W + q + s]
                z += rounded(x) * rounded(self.filter[((k * self.C + c) * 3 + r) * 3 + s])
            y.append(mish(mish(z)))
        return y

    def verify(self, *options):
        return run("verify", "--tensors", self.folder, "--device", "cpu", *options)

    def assert_verdict(self, verdict, *options):
        """And the report's only case."""
        report = self.folder / "report.json"
        completed = self.verify("--json", report, *options)
        self.assertEqual((completed.returncode, completed.stderr), (OK if verdict == "passed" else WRONG, ""))
        (case,) = json.loads(report.read_text())["cases"]
        self.assertEqual(case["verdict"], verdict)
        return case, completed.stdout

    def test_right_tensors(self):
        case, text = self.assert_verdict("passed")
        self.assertEqual(case["shape"], {"n": 2, "c": 3, "h": 8, "w": 9, "k": 4})
        self.assertEqual((case["variant"], case["fills"], case["fill"]), (self.folder.name, [], None))
        self.assertLess(case["error"]["worst_ratio"], 0.5)
        self.assertIn("1 passed, 0 skipped, 0 failed", text)
        self.assertNotIn("seed", text, "nothing was drawn")

    def test_filter_by_its_other_name(self):
        (self.folder / "filter.npy").rename(self.folder / "weight.npy")
        self.assert_verdict("passed")

    def test_folders_of_one_name_are_told_apart(self):
        """By no more of their paths than that takes, in a report that has each case once."""
        folders = [self.folder / path for path in ("a/out", "b/out", "b/c", "out")]
        for folder in folders:
            shutil.copytree(self.folder, folder, ignore=lambda path, names: {"a", "b", "out"} & set(names))
        report = self.folder / "report.json"
        named = [word for folder in folders for word in ("--tensors", folder)]
        completed = run("verify", *named, "--device", "cpu", "--json", report)
        self.assertEqual((completed.returncode, completed.stderr), (OK, ""))
        names = [case["variant"] for case in json.loads(report.read_text())["cases"]]
        self.assertEqual(names, ["a/out", "b/out", "c", f"{self.folder.name}/out"])
        self.assertEqual(run("compare", report, report).returncode, OK)

    def test_one_folder_twice(self):
        (self.folder / "link").symlink_to(self.folder)
        for again in (self.folder, f"{self.folder}/.", self.folder / "link"):
            self.assert_refused(
                USAGE, f"--tensors: {self.folder} and {again} are the same folder; want each once",
                "verify", "--tensors", self.folder, "--tensors", again, "--device", "cpu")  # fmt: skip

    def test_output_of_another_layout(self):
        y = self.compute()
        order = itertools.product(range(self.N), range(self.P), range(self.Q), range(self.K))
        nhwc = [y[((n * self.K + k) * self.P + p) * self.Q + q] for n, p, q, k in order]
        self.save("y", (self.N, self.P, self.Q, self.K), nhwc)
        case, _ = self.assert_verdict("passed", "--layout", "nhwc")
        self.assertEqual(case["layout"], "nhwc")

    def test_wrong_output_is_told_with_its_place(self):
        y = self.compute()
        y[-1] += 0.01
        self.save_y(y)
        case, text = self.assert_verdict("failed")
        self.assertEqual(case["error"]["wrong"], 1)
        self.assertIn("first at n1 k3 p5 q6", text)
        self.assertIn(f"repeat: convmish-bench verify --tensors {self.folder} --device cpu", text)

    def test_not_a_number_is_wrong(self):
        self.save_y([math.nan] + self.compute()[1:])
        case, _ = self.assert_verdict("failed")
        self.assertEqual(case["error"]["nan_outputs"], 1)

    def test_known_mistakes_are_named(self):
        self.save_y(self.compute(bias=0))
        _, text = self.assert_verdict("failed")
        self.assertIn("matches: bias left out", text)

    def test_math_class_decides_what_is_right(self):
        self.save_y(self.compute(rounded=tf32))
        _, text = self.assert_verdict("failed")
        self.assertIn("matches: TF32 multiplicands", text)
        self.assert_verdict("passed", "--math-class", "tf32")

    def test_zeros_prove_nothing(self):
        self.bias = [0.0] * self.K
        self.filter = [0.0] * len(self.filter)
        self.save("bias", (self.K,), self.bias)
        self.save("filter", (self.K, self.C, 3, 3), self.filter)
        self.save_y([0.0] * (self.N * self.K * self.P * self.Q))
        self.assert_verdict("mistrusted")

    def test_nothing_finite_proves_nothing(self):
        """Not even where y is NaN as it should be, or an infinity."""
        for value, result in ((math.nan, math.nan), (math.inf, math.inf)):
            self.save("x", (self.N, self.C, self.H, self.W), [value] * len(self.x))
            self.save("filter", (self.K, self.C, 3, 3), [1.0] * len(self.filter))
            self.save_y([result] * (self.N * self.K * self.P * self.Q))
            case, text = self.assert_verdict("mistrusted")
            self.assertEqual(case["reason"], "weak_data")
            self.assertIn("no output that was compared is a finite number", text)

    def test_report_tells_nothing_that_was_not_so(self):
        report = self.folder / "given.json"
        self.verify("--json", report, "--csv", self.folder / "given.csv", "--layout", "nchw")
        document = json.loads(report.read_text())
        (case,) = document["cases"]
        for told in (case["seed"], case["checks"][0]["seed"], document["plan"]["seed"], document["plan"]["timing"]):
            self.assertIsNone(told)
        self.assertEqual(case["repeat"], f"convmish-bench verify --tensors {self.folder} --device cpu")
        (row,) = csv.DictReader((self.folder / "given.csv").read_text().splitlines())
        self.assertEqual(row["seed"], "")

    def assert_folder_refused(self, line):
        self.assert_refused(USAGE, line, "verify", "--tensors", self.folder, "--device", "cpu")

    def test_files_that_do_not_fit(self):
        zeros = lambda *extents: [0.0] * math.prod(extents)
        for name, extents, why in (
            ("x", (3, 8, 9), "its shape is (3, 8, 9); want 4 dimensions: n c h w"),
            ("x", (2, 3, 2, 9), "h is 2; want an integer of at least 3 (3x3 filter, no padding)"),
            ("filter", (4, 5, 3, 3), "its shape is (4, 5, 3, 3); want (4, 3, 3, 3), k c 3 3 with the c of x.npy"),
            ("bias", (5,), "its shape is (5,); want (4,), the k of filter.npy"),
            ("y", (2, 4, 8, 9), "its shape is (2, 4, 8, 9); want (2, 4, 6, 7), n k p q of the others: p = h-2, q = w-2"),
        ):  # fmt: skip
            file = self.folder / f"{name}.npy"
            right = file.read_bytes()
            self.save(name, extents, zeros(*extents))
            self.assert_folder_refused(f"{file}: {why}")
            file.write_bytes(right)

    def test_files_that_cannot_be_read(self):
        self.save("y", (2, 4, 3, 7), [0.0] * 336, dtype="<f8")
        self.assert_folder_refused(f'{self.folder}/y.npy: its dtype is <f8; want <f4: array.astype("<f4")')
        (self.folder / "bias.npy").unlink()
        self.assert_folder_refused(f"{self.folder}/bias.npy: cannot be read: No such file or directory")
        (self.folder / "weight.npy").touch()
        self.assert_folder_refused(f"{self.folder}: holds both filter.npy and weight.npy; want one of them")
        missing = self.folder / "none"
        self.assert_refused(
            USAGE, f"{missing}: is no folder; want one that holds x.npy, filter.npy, bias.npy and y.npy",
            "verify", "--tensors", missing)  # fmt: skip
        self.assert_refused(USAGE, "verify wants --tensors DIR", "verify")
        self.assert_refused(
            USAGE, 'unexpected "good" behind verify; want the folder as --tensors DIR', "verify", "good")


def read_npy(file):
    """Extents and values."""
    data = file.read_bytes()
    (length,) = struct.unpack_from("<H", data, 8)
    extents = ast.literal_eval(data[10 : 10 + length].decode())["shape"]
    return extents, struct.unpack_from(f"<{math.prod(extents)}f", data, 10 + length)


class Draw(Cli):
    """Operands of draw, an output computed here, and the verdict of verify on it."""

    SHAPE = "n2c3h6w7k4"
    N, C, H, W, K = 2, 3, 6, 7, 4
    P, Q = H - 2, W - 2

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "mine"

    def operands(self, *fills, seed=42):
        return ["--tensors", self.folder, "--shape", self.SHAPE, "--fill", ",".join(fills), "--seed", seed]

    def draw(self, *fills, **options):
        completed = run("draw", "--device", "cpu", *self.operands(*fills, **options))
        self.assertEqual((completed.returncode, completed.stderr), (OK, ""))
        return completed.stdout

    def compute(self, fill, rounded=lambda value: value):
        """y.npy beside what was drawn."""
        folder = self.folder / fill
        (extents, x), (_, weight), (_, bias) = (read_npy(folder / f"{name}.npy") for name in ("x", "filter", "bias"))
        self.assertEqual(extents, (self.N, self.C, self.H, self.W))
        y = []
        for n, k, p, q in itertools.product(range(self.N), range(self.K), range(self.P), range(self.Q)):
            z = bias[k]
            for c, r, s in itertools.product(range(self.C), range(3), range(3)):
                z += rounded(x[((n * self.C + c) * self.H + p + r) * self.W + q + s]) * rounded(
                    weight[((k * self.C + c) * 3 + r) * 3 + s]
                )
            y.append(mish(mish(z)))
        (folder / "y.npy").write_bytes(npy((self.N, self.K, self.P, self.Q), y))

    def verify(self, code, *fills, options=(), **drawn):
        report = self.folder / "report.json"
        completed = run("verify", "--device", "cpu", *self.operands(*fills, **drawn), "--json", report, *options)
        self.assertEqual((completed.returncode, completed.stderr), (code, ""), completed.stdout)
        (case,) = json.loads(report.read_text())["cases"]
        return case

    def test_right_outputs(self):
        fills = ("kernelbench", "normal", "exact")
        text = self.draw(*fills)
        self.assertIn(f"{self.folder}/normal: {self.SHAPE}\n", text)
        for fill in fills:
            self.compute(fill)
        case = self.verify(OK, *fills)
        self.assertEqual((case["variant"], case["verdict"], case["seed"]), ("mine", "passed", 42))
        self.assertEqual([check["fill"] for check in case["checks"]], list(fills))
        self.assertEqual([check["batch"] for check in case["checks"]], [2, 2, 2])
        self.assertEqual({check["repeatable"] for check in case["checks"]}, {None}, "there was no second run")
        self.assertEqual(case["checks"][1]["error"]["consistent_with"], "fp32")

    def test_less_precision_than_declared_is_named(self):
        self.draw("normal")
        self.compute("normal", rounded=tf32)
        case = self.verify(WRONG, "normal")
        self.assertEqual(case["checks"][0]["error"]["consistent_with"], "tf32 or fp16, rounded to nearest")
        self.assertEqual(self.verify(OK, "normal", options=["--math-class", "tf32"])["verdict"], "passed")

    def test_operands_of_another_seed(self):
        self.draw("normal", seed=7)
        self.compute("normal")
        self.assertEqual(self.verify(OK, "normal", seed=7)["seed"], 7)
        self.verify(WRONG, "normal", seed=8)

    def test_one_wrong_fill_fails_the_case(self):
        self.draw("normal", "wide")
        self.compute("normal")
        (self.folder / "wide" / "y.npy").write_bytes((self.folder / "normal" / "y.npy").read_bytes())
        case = self.verify(WRONG, "normal", "wide")
        self.assertEqual((case["fill"], case["reason"]), ("wide", "outside_tolerance"))

    def test_a_transform_is_not_judged_on_special_and_the_largest_values(self):
        fills = ("normal", "special", "delta")
        self.draw(*fills)
        self.compute("normal")
        for fill in fills[1:]:
            (self.folder / fill / "y.npy").write_bytes((self.folder / "normal" / "y.npy").read_bytes())
        case = self.verify(OK, *fills, options=["--algorithm", "transform"])
        self.assertEqual([check["verdict"] for check in case["checks"]], ["passed", "skipped", "skipped"])

    def test_repeat_repeats(self):
        self.draw("normal")
        self.compute("normal")
        words = shlex.split(self.verify(OK, "normal")["repeat"])
        self.assertEqual(words[0], "convmish-bench")
        self.assertEqual(run(*words[1:]).returncode, OK)

    def test_what_cannot_be_done_is_told(self):
        self.assert_refused(
            USAGE, "draw wants --tensors DIR and --shape SHAPE, one of each", "draw", "--tensors", self.folder)
        self.draw("normal")
        completed = run("verify", "--device", "cpu", *self.operands("normal"))
        self.assertEqual(completed.returncode, USAGE)
        self.assertRegex(completed.stderr, r"normal/y\.npy: cannot be read: No such file or directory\n$")


class Scripts(unittest.TestCase):
    """What scripts/test.sh says without testing anything."""

    def run_script(self, *arguments):
        return subprocess.run([SCRIPTS / "test.sh", *arguments], capture_output=True, text=True, timeout=60)

    def test_unknown_option(self):
        completed = self.run_script("--verbose")
        self.assertEqual((completed.returncode, completed.stdout), (USAGE, ""))
        self.assertRegex(completed.stderr, r'^test\.sh: unknown option "--verbose"; .*\n$')

    def test_help(self):
        completed = self.run_script("--help")
        self.assertEqual((completed.returncode, completed.stderr), (OK, ""))
        self.assertRegex(completed.stdout, r"^Builds and runs the whole test suite[^#]*\.\n$")


if __name__ == "__main__":
    BINARY = sys.argv.pop(1)
    unittest.main()
