"""scripts/pytorch_baseline.py and its parts. Usage: pytorch_rows_test.py BINARY CLASS

Exit code 77: skipped, for want of PyTorch or of the package that holds reports to the schema.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "pytorch_baseline.py"
SCHEMA = ROOT / "configs" / "schema" / "report.schema.json"
CHECK_JSONSCHEMA = ROOT / ".deps" / "venv" / "bin" / "check-jsonschema"
SKIPPED = 77
sys.path.insert(0, str(ROOT / "scripts"))

from pytorch_rows import cases, rounds  # noqa: E402
from pytorch_rows.summary import median_interval, summary  # noqa: E402
from pytorch_rows.tool import Tool  # noqa: E402
from report_page.input_error import InputError  # noqa: E402

SHAPE = {"n": 1, "c": 2, "h": 5, "w": 6, "k": 3}
SMALL = ["--device", "cpu", "--variant", "naive", "--shape", "n1c2h5w6k3", "--samples", "40"]
TIMING = {"samples": None, "min_time_s": 0.0, "max_time_s": 5.0, "ci_half_width": 0.005, "cache": None}


class InFolder(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def tool(self) -> Tool:
        tool = Tool(BINARY, self.folder)
        tool.device = "cpu"
        return tool

    def script(self, *arguments: object, **environment: str) -> subprocess.CompletedProcess:
        command = [sys.executable, SCRIPT, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=500, env=os.environ | environment)

    def compare(self, old: Path, new: Path) -> subprocess.CompletedProcess:
        return subprocess.run([BINARY, "compare", old, new], capture_output=True, text=True, timeout=60)

    def assert_follows_schema(self, report: Path) -> None:
        if not CHECK_JSONSCHEMA.exists():
            self.skipTest("check-jsonschema is not installed; scripts/setup.sh does it")
        command = [CHECK_JSONSCHEMA, "--schemafile", SCHEMA, report]
        completed = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual(completed.returncode, 0, completed.stdout)


class Summary(InFolder):
    def test_is_that_of_the_tool(self) -> None:
        for samples in ("1", "5", "6", "40", "1001"):
            report, code = self.tool().run([*SMALL[:-1], samples, "--no-check"])
            self.assertEqual(code, 0)
            (time,) = (case["time_ms"] for case in report["cases"])
            for figure, value in summary(time["samples"]).items():
                close = self.assertEqual if figure in ("ci95", "samples", "min") else self.assertAlmostEqual
                close(value, time[figure], msg=figure)

    def test_interval_covers_at_least_95_percent(self) -> None:
        """Ranks from tables of the sign test."""
        for count, rank in ((6, 0), (8, 0), (9, 1), (20, 5), (100, 39)):
            self.assertEqual(median_interval(list(range(count))), [rank, count - 1 - rank])
        self.assertIsNone(median_interval([1.0] * 5))


class Rounds(unittest.TestCase):
    """Scripted launches."""

    def setUp(self) -> None:
        self.launched: list[tuple[str, int, float]] = []

    def launch(self, name: str, milliseconds=lambda turn: 2.0, enqueue_us=lambda lead: 1.0) -> rounds.Launch:
        turn = 0

        def launch(input_set: int, lead_us: float) -> tuple[float, float]:
            nonlocal turn
            turn += 1
            self.launched.append((name, input_set, lead_us))
            return milliseconds(turn), enqueue_us(lead_us)

        return launch

    def time(self, *launches: rounds.Launch, **timing: object) -> list:
        duty_cycle = timing.pop("duty_cycle", None)
        return rounds.time_launches(list(launches), TIMING | timing, seed=1, warm_up_ms=0, duty_cycle=duty_cycle)

    def test_rounds_are_interleaved_and_inputs_take_turns(self) -> None:
        self.time(self.launch("a"), self.launch("b"), self.launch("c"), samples=20)
        names = [name for name, _, _ in self.launched]
        order = ["".join(names[at : at + 3]) for at in range(3, len(names), 3)]  # behind the warm-up
        self.assertEqual(len(order), 20)
        self.assertEqual({"".join(sorted(names)) for names in order}, {"abc"})
        self.assertGreater(len(set(order)), 2, "each round in an order of its own")
        self.assertEqual([at % 2 for _, at, _ in self.launched], [1, 0] * (len(self.launched) // 2) + [1])

    def test_stops_when_the_interval_is_narrow(self) -> None:
        steady, wide = self.time(
            self.launch("steady"), self.launch("wide", lambda turn: 1.0 + turn % 2), max_time_s=0.05)  # fmt: skip
        self.assertEqual((len(steady["samples"]), steady["converged"]), (6, True))
        self.assertFalse(wide["converged"])
        self.assertGreater(len(wide["samples"]), 6)

    def test_least_time_is_kept(self) -> None:
        (time,) = self.time(self.launch("a"), min_time_s=0.1)
        self.assertEqual(len(time["samples"]), 50)

    def test_samples_are_in_launch_order(self) -> None:
        (time,) = self.time(self.launch("a", float), samples=5)
        self.assertEqual(time["samples"], [2.0, 3.0, 4.0, 5.0, 6.0])

    def test_what_throws_ends_alone(self) -> None:
        def broken(turn: int) -> float:
            if turn == 3:
                raise RuntimeError("broken")
            return 1.0

        failed, time = self.time(self.launch("broken", broken), self.launch("a"), samples=5)
        self.assertIsInstance(failed, RuntimeError)
        self.assertEqual(len(time["samples"]), 5)

    def test_a_gpu_rests_as_long_as_its_duty_cycle_says(self) -> None:
        with unittest.mock.patch("time.sleep") as sleep:
            (time,) = self.time(self.launch("a"), samples=5, duty_cycle=0.25)
        self.assertEqual(time["duty_cycle"], 0.25)
        rests = [call.args[0] for call in sleep.call_args_list]
        self.assertEqual(len(rests), 6, "after the warm-up too")
        self.assertAlmostEqual(max(rests), 3 * 2.03e-3)

    def test_a_gap_of_the_host_is_not_timed(self) -> None:
        """The launch is made again with a longer lead; one that no lead covers is told."""
        slow, slower = self.time(
            self.launch("slow", enqueue_us=lambda lead: 100.0), self.launch("slower", enqueue_us=lambda lead: 1e4),
            samples=6)  # fmt: skip
        self.assertEqual((len(slow["samples"]), slow["host_gaps"]), (6, 0))
        self.assertEqual(max(lead for name, _, lead in self.launched if name == "slow"), 120.0)
        self.assertEqual(slower["host_gaps"], 6)
        self.assertEqual(max(lead for name, _, lead in self.launched if name == "slower"), rounds.MOST_LEAD_US)


class Selection(unittest.TestCase):
    def chosen(self, pattern: str) -> list[str]:
        return [str(variant) for variant in cases.all_variants("cuda") if cases.matches(variant, pattern)]

    def test_every_combination_once(self) -> None:
        self.assertEqual(len(self.chosen("*")), 16)
        self.assertEqual(len(set(self.chosen("*"))), 16)
        self.assertNotIn("tf32", {variant.math for variant in cases.all_variants("cpu")})

    def test_by_name_class_and_layout(self) -> None:
        self.assertEqual(self.chosen("torch_eager:fp32:nhwc"), ["torch_eager:fp32:nhwc"])
        self.assertEqual(len(self.chosen("torch_compile*:tf32")), 6)
        self.assertEqual(len(self.chosen("*:*:nhwc")), 8)
        self.assertEqual(self.chosen("torch_eager:fp32:nhwc:more"), [])


class BadInput(InFolder):
    """Without PyTorch, or with a stand-in that sees no GPU."""

    def fake(self, torch: str) -> dict[str, str]:
        (self.folder / "torch.py").write_text(torch)
        (self.folder / "numpy.py").touch()
        return {"PYTHONPATH": str(self.folder)}

    def assert_refused(self, code: int, line: str, *arguments: object, **environment: str) -> None:
        completed = self.script(*arguments, **environment)
        self.assertEqual((completed.returncode, completed.stdout), (code, ""), completed.stderr)
        self.assertRegex(completed.stderr, rf"^pytorch_baseline\.py: {line}\n$")

    def test_pytorch_that_is_missing(self) -> None:
        environment = self.fake("raise ModuleNotFoundError(name='torch')")
        self.assert_refused(4, "needs the Python package torch, which .+ lacks", "--device", "cpu", **environment)

    def test_gpu_that_is_missing(self) -> None:
        environment = self.fake(
            "class cuda:\n  is_available = staticmethod(lambda: False)\n__version__ = '2.11.0'\n"
        )
        self.assert_refused(4, "PyTorch 2.11.0 sees no CUDA GPU; --device cpu runs on the CPU", **environment)

    def test_variant_that_is_none(self) -> None:
        self.assert_refused(3, '--torch: no variant on cuda matches "torch_eagre"; there are torch_eager:.+',
                            "--torch", "torch_eagre")  # fmt: skip

    def test_report_that_cannot_be_written(self) -> None:
        self.assert_refused(3, "cannot write .+none/out.json: No such file or directory",
                            "--json", self.folder / "none" / "out.json")  # fmt: skip

    def test_config_is_not_replaced(self) -> None:
        config = self.folder / "config.json"
        config.write_text("{}")
        self.assert_refused(3, "cannot write .+config.json: it is .+ to read; name another file",
                            "--config", config, "--json", config)  # fmt: skip
        self.assertEqual(config.read_text(), "{}")

    def test_options_that_contradict(self) -> None:
        self.assert_refused(3, "--shape is of a run of the tool, and --beside old.json stands for one; .+",
                            "--beside", "old.json", "--shape", "n1c1h3w3k1")  # fmt: skip
        self.assert_refused(3, "--csv is not of use here: .+", "--csv", "out.csv")
        self.assert_refused(3, "argument --json: expected one argument; .+", "--json")

    def test_the_tool_tells_of_its_own_options(self) -> None:
        tool = self.tool()
        with self.assertRaises(InputError) as refusal:
            tool.draw(self.folder, SHAPE | {"h": 2}, ["normal"], 1)
        self.assertIn("h is 2; want an integer of at least 3", str(refusal.exception))


class Assembly(InFolder):
    """A report of the tool with a case beside it, without PyTorch: the checks are those of a variant of the tool."""

    def report(self, verdict: str = "passed") -> dict:
        report, _ = self.tool().run(SMALL)
        variant = cases.Variant("torch_eager", "fp32", "nhwc")
        case = cases.new_case(variant, SHAPE, report["plan"], "cpu", cases.repeat_command(variant, SHAPE, report))
        (judged,) = (case for case in report["cases"])
        cases.adopt_check(case, judged, {"normal": True})
        case["prepare_ms"] = 1.5
        if verdict == "passed":
            case["time_ms"] = summary([1.0, 1.25, 1.5, 1.0, 1.0, 1.0]) | {
                "converged": False, "host_gaps": 0, "cache": "hot", "duty_cycle": None}  # fmt: skip
            cases.tell_distances(case, report)
        else:
            cases.fail(case, verdict, "exception", "RuntimeError: broken")
        report["cases"].append(case)
        return report

    def write(self, report: dict, name: str = "report.json") -> Path:
        path = self.folder / name
        path.write_text(json.dumps(report))
        return path

    def test_follows_the_schema(self) -> None:
        for verdict in ("passed", "crashed"):
            self.assert_follows_schema(self.write(self.report(verdict)))

    def test_merges_in_compare(self) -> None:
        old = self.write(self.report(), "old.json")
        report = self.report()
        report["cases"][-1] |= {"verdict": "failed", "reason": "outside_tolerance", "detail": "wrong"}
        completed = self.compare(old, self.write(report, "new.json"))
        self.assertEqual((completed.returncode, completed.stderr), (2, ""))
        self.assertRegex(completed.stdout, r"torch_eager")
        self.assertEqual(self.compare(old, old).returncode, 0)

    def test_merges_in_the_page(self) -> None:
        page = self.folder / "page.html"
        command = [sys.executable, ROOT / "scripts" / "report.py", self.write(self.report()), "-o", page]
        completed = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if completed.returncode == 4:
            self.skipTest(completed.stderr.strip())
        self.assertEqual((completed.returncode, completed.stderr), (0, ""))
        self.assertIn("torch_eager", page.read_text())

    def test_headline_table_has_every_row(self) -> None:
        report = self.report()
        report["cases"][-1]["note"] = "PyTorch 2.11.0+cu130, its cuDNN 9.19.0; some_kernel"
        document = self.write(report).with_name("document.md")
        document.write_text("<!-- table: headline report.json -->\n<!-- end of table -->\n")
        command = [sys.executable, ROOT / "scripts" / "document_tables.py", "--update", document]
        subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        table = document.read_text()
        self.assertIn("PyTorch 2.11.0+cu130; n1c2h5w6k3", table)
        self.assertRegex(table, r"\| `torch_eager` \| fp32 \| nhwc \| 1\.000 \|")

    def test_repeat_has_the_options_of_the_run(self) -> None:
        case = self.report()["cases"][-1]
        self.assertRegex(
            case["repeat"],
            r"^scripts/pytorch_baseline\.py --torch torch_eager:fp32:nhwc --variant naive:fp32 --shape n1c2h5w6k3 .*"
            "--samples 40")  # fmt: skip

    def test_distances_are_those_of_the_tool(self) -> None:
        """Floor and speed-up of a library's convolution, whose pipe is not known."""
        rate = {"measured": 2e9, "data_sheet": 4e9}
        baseline = {"variant": "eager", "math_class": "tf32", "shape": SHAPE, "device": "cuda", "verdict": "passed",
                    "time_ms": {"median": 6.0}}  # fmt: skip
        report = {
            "plan": {"baseline": "eager"},
            "ceilings": {"dram_bytes_per_s": rate, "special_functions_per_s": {"measured": None, "data_sheet": None}},
            "cases": [baseline, baseline | {"math_class": "fp32", "time_ms": {"median": 60.0}}],
        }
        case = {"math_class": "tf32", "shape": SHAPE, "device": "cuda", "time_ms": {"median": 2.0}}
        cases.tell_distances(case, report)
        least = 4 * (2 * 5 * 6 + 3 * 2 * 9 + 3 + 3 * 3 * 4)
        self.assertAlmostEqual(case["floor_ms"], 1e3 * least / 2e9)
        self.assertEqual((case["binding_ceiling"], case["speedup"]), ("dram", 3.0))


@unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
class EndToEnd(InFolder):
    def test_cpu(self) -> None:
        out = self.folder / "out.json"
        completed = self.script("--tool", BINARY, *SMALL, "--json", out)
        self.assertEqual((completed.returncode, completed.stderr), (0, ""), completed.stdout)
        self.assert_follows_schema(out)
        report = json.loads(out.read_text())
        named = {(case["variant"], case["layout"]): case for case in report["cases"]}
        self.assertEqual(len(named), 1 + 8)
        for (name, _), case in named.items():
            self.assertEqual(case["verdict"], "passed", case["detail"])
            self.assertEqual(len(case["time_ms"]["samples"]), 40)
            if name != "naive":
                self.assertEqual([check["repeatable"] for check in case["checks"]], [True] * len(case["fills"]))
                self.assertRegex(case["note"], "^PyTorch ")

        again = self.script("--tool", BINARY, "--beside", out, "--torch", "torch_eager", "--json", self.folder / "2.json")
        self.assertEqual((again.returncode, again.stderr), (0, ""))
        self.assertEqual(len(json.loads((self.folder / "2.json").read_text())["cases"]), 9, "replaced, not added")
        self.assertIn(self.compare(out, self.folder / "2.json").returncode, (0, 2))


if __name__ == "__main__":
    BINARY = Path(sys.argv.pop(1))
    result = unittest.main(exit=False).result
    skipped_all = result.testsRun and len(result.skipped) == result.testsRun
    sys.exit(SKIPPED if skipped_all and result.wasSuccessful() else not result.wasSuccessful())
