#!/usr/bin/env python3
"""Checks the source tree against its own rules: lint.py [--root DIR] CHECK

Prints one line a violation. Exit code: 0 clean, 1 violations, 77 not checkable here (CTest shows it as skipped).
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

CXX_SUFFIXES = {".cpp", ".hpp", ".cu", ".cuh"}

# Folder or file -> what it may include from this repository. The longest matching key decides. `check` belongs
# to the core: it is the same code on every device.
MAY_INCLUDE = {
    "src/core": ["src/core", "src/check"],
    "src/check": ["src/core", "src/check"],
    "src/report": ["src/report", "src/core", "src/check"],
    "src/run": ["src/run", "src/core", "src/check"],
    "src/worker": ["src/worker", "src/run", "src/report", "src/core", "src/check"],
    "src/cpu": ["src/cpu", "src/core", "src/check"],
    "src/gpu": ["src/gpu", "src/core", "src/check"],
    "src/cli": ["src/cli", "src/worker", "src/run", "src/report", "src/core", "src/check"],
    "src/main.cpp": ["src"],
    "variants/mutants": ["variants/mutants", "variants/common", "src/core", "src/gpu/check.hpp", "src/cpu/simt"],
    "variants": ["variants/common", "src/core", "src/gpu/check.hpp", "src/gpu/stopwatch.hpp", "src/cpu/simt"],
}

# What nvcc does not compile, or compiles slowly in every file.
NOT_IN_DEVICE_CODE = re.compile(r"(fmt|nlohmann)/|cxxopts\.hpp")

# Where a string outside variants/ may name a variant: the help's examples, and the default of an option.
NAMES_ALLOWED_IN = ["src/cli/options.cpp"]
DEFAULT_BASELINE = "cudnn_unfused"  # in one file


class Tree:
    """The files of the project: what git tracks, or would track."""

    def __init__(self, root):
        self.root = root
        try:
            listing = subprocess.run(
                ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"],
                capture_output=True, text=True, check=True).stdout.splitlines()
        except (OSError, subprocess.CalledProcessError):  # no git, or an unpacked archive
            listing = [str(path.relative_to(root)) for path in sorted(root.rglob("*")) if path.is_file()]
        skipped = ("build", ".deps", ".git/")
        self.files = sorted(name for name in set(listing)
                            if not name.startswith(skipped) and "__pycache__" not in name
                            and (root / name).is_file())

    def text(self, name):
        """Empty where there is no such file: each check then misses in it what it looks for."""
        return "" if not (self.root / name).is_file() else (self.root / name).read_text(encoding="utf-8", errors="replace")

    def cxx(self, *folders):
        return [name for name in self.files
                if Path(name).suffix in CXX_SUFFIXES and (not folders or name.startswith(folders))]

    def includes(self, name):
        """What each #include names: a file of the repository, or the text as it stands."""
        for quote, target in re.findall(r'^\s*#\s*include\s*(["<])([^">]+)[">]', self.text(name), re.MULTILINE):
            for base in (str(Path(name).parent), "src", "."):
                candidate = os.path.normpath(os.path.join(base, target))
                if quote == '"' and (self.root / candidate).is_file():
                    target = candidate
                    break
            yield target

    def variants(self):
        """Name -> file of each variant."""
        return {Path(name).stem: name for name in self.files if re.fullmatch(r"variants/[^/]+\.(cu|cpp)", name)}


def is_within(name, folder):
    return name == folder or name.startswith(folder + "/")


def check_includes(tree):
    """Who may include whom, and nothing in device code that nvcc should not see."""
    for name in tree.cxx("src/", "variants/"):
        rules = [key for key in MAY_INCLUDE if is_within(name, key)]
        if not rules:
            yield f"{name}: its folder has no rule in tests/lint/lint.py; add one to MAY_INCLUDE"
            continue
        allowed = MAY_INCLUDE[max(rules, key=len)]
        for target in tree.includes(name):
            if target.startswith(("src/", "variants/", "tests/")) and not any(
                    is_within(target, folder) for folder in allowed):
                yield f"{name}: includes {target}; it may include {', '.join(allowed)}"
            if target == "cxxopts.hpp" and name != "src/cli/tokens.cpp":
                yield f"{name}: includes {target}; only src/cli/tokens.cpp may"

    for start in tree.cxx():
        if Path(start).suffix not in (".cu", ".cuh"):
            continue
        came_from, queue = {start: None}, [start]
        while queue:
            name = queue.pop()
            for target in tree.includes(name):
                if NOT_IN_DEVICE_CODE.match(target):
                    path = [name]
                    while came_from[path[-1]]:
                        path.append(came_from[path[-1]])
                    yield f"{' <- '.join(path)}: device code includes {target}"
                elif target in tree.files and target not in came_from:
                    came_from[target] = name
                    queue.append(target)


def without_comments(text):
    """The text with comments blanked, strings kept."""
    pattern = r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/'
    return re.sub(pattern, lambda match: match.group(1) or " ", text, flags=re.DOTALL)


def check_variants(tree):
    """Each variant is registered under its file's name, built, told in README, and named nowhere else."""
    cmake = tree.text("variants/CMakeLists.txt")
    readme = tree.text("README.md")
    variants = tree.variants()
    if not variants:
        yield "variants/: no variant found"
    for name, file in variants.items():
        text = without_comments(tree.text(file))
        if f'"{name}"' not in text or "RegisterVariant" not in text:
            yield f'{file}: registers no variant named "{name}", its file\'s stem'
        if not re.search(rf"\b{name}\b", cmake):
            yield f"{file}: is not in variants/CMakeLists.txt"
        if f"`{name}`" not in readme:
            yield f"{file}: `{name}` is not in README.md"

    holders = {name: [] for name in variants}
    for file in set(tree.cxx("src/")) - set(NAMES_ALLOWED_IN):
        literals = re.findall(r'"(?:\\.|[^"\\\n])*"', without_comments(tree.text(file)))
        for name in variants:
            if any(re.search(rf"(?<!\w){name}(?!\w)", literal) for literal in literals):
                holders[name].append(file)
    for name, files in holders.items():
        for file in sorted(files)[1 if name == DEFAULT_BASELINE else 0:]:
            yield f'{file}: names the variant "{name}"; only variants/ may'


def check_paths(tree):
    """Nothing of the machine it was written on: no absolute path of a home or a workplace."""
    machine_path = re.compile(r"(?<![\w./])/(" + "|".join(("home", "root", "Users", "work", "mnt")) + r")/\w")
    for name in tree.files:
        if Path(name).suffix in (".png", ".gz"):
            continue
        for number, line in enumerate(tree.text(name).splitlines(), 1):
            if machine_path.search(line):
                yield f"{name}:{number}: a path of one machine: {line.strip()[:80]}"


def check_format(tree):
    """clang-format finds nothing to change. Other versions break lines elsewhere, so only this one decides."""
    wanted = 14
    if not shutil.which("clang-format"):
        skip("clang-format is not installed")
    version = subprocess.run(["clang-format", "--version"], capture_output=True, text=True, check=True).stdout
    if not re.search(rf"version {wanted}\.", version):
        skip(f"clang-format {wanted} decides; here is: {version.strip()}")
    for name in tree.cxx():
        text = (tree.root / name).read_bytes()
        formatted = subprocess.run(["clang-format", f"--assume-filename={tree.root / name}"], input=text,
                                   capture_output=True, check=True).stdout
        if text != formatted:
            yield f"{name}: not formatted; run clang-format -i {name}"


def check_scripts(tree):
    """Shell scripts parse, and shellcheck (where there is one) accepts them; Python scripts compile."""
    for name in tree.files:
        path, text = tree.root / name, ""
        if name.startswith((".ci/", "scripts/", "tests/")) and Path(name).suffix in (".sh", ".py", ""):
            text = tree.text(name)
        if Path(name).suffix == ".py":
            try:
                compile(text or tree.text(name), name, "exec")
            except SyntaxError as error:
                yield f"{name}:{error.lineno}: {error.msg}"
        if text.startswith("#!") and not os.access(path, os.X_OK):
            yield f"{name}: begins with #! but is not executable"
        if not (Path(name).suffix == ".sh" or text.startswith(("#!/bin/sh", "#!/usr/bin/env bash"))):
            continue
        commands = [["bash", "-n", name]]
        if shutil.which("shellcheck"):
            commands.append(["shellcheck", "--external-sources", name])
        for command in commands:
            result = subprocess.run(command, cwd=tree.root, capture_output=True, text=True, check=False)
            if result.returncode != 0:
                yield f"{' '.join(command)}:\n{result.stdout}{result.stderr}"


def check_readme(tree):
    """README's commands, links and options exist."""
    readme = tree.text("README.md")
    blocks = "\n".join(re.findall(r"```(?:sh|console)?\n(.*?)```", readme, re.DOTALL))
    if "./scripts/run.sh" not in blocks or "./scripts/test.sh" not in blocks:
        yield "README.md: the two commands ./scripts/run.sh and ./scripts/test.sh are not shown"
    for script in sorted(set(re.findall(r"\./(scripts/[\w.-]+)", blocks))):
        if not os.access(tree.root / script, os.X_OK):
            yield f"README.md: ./{script} does not exist, or is not executable"
    for config in sorted(set(re.findall(r"\bconfigs/[\w./-]+", readme))):
        if not (tree.root / config.rstrip("./")).exists():
            yield f"README.md: {config} does not exist"
    for link in re.findall(r"\]\(([^)#]+)\)", readme):
        if "://" not in link and not (tree.root / link).exists():
            yield f"README.md: the link {link} leads nowhere"
    options = tree.text("src/cli/options.cpp")
    own_lines = "\n".join(line for line in readme.splitlines() if not re.search(r"\b(cmake|ctest|git|report\.py|pytorch_baseline\.py) ", line))
    for option in sorted(set(re.findall(r"(?<![\w-])--([a-z][a-z-]+)", own_lines))):
        if f'"{option.removeprefix("no-")}"' not in options:
            yield f"README.md: --{option} is no option of src/cli/options.cpp"


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


CHECKS = {name.removeprefix("check_"): check for name, check in globals().items() if name.startswith("check_")}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("check", choices=sorted(CHECKS))
    arguments = parser.parse_args()
    violations = list(CHECKS[arguments.check](Tree(arguments.root)))
    print("\n".join(violations))
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
