#!/usr/bin/env python3
"""Plants a violation of each rule of lint.py in a small tree and expects it to be found."""

import os
import tempfile
import unittest
from pathlib import Path

import lint

CLEAN = {
    "README.md": "```sh\n./scripts/run.sh --variant all\n./scripts/test.sh\n```\n`naive` `configs/a.json`\n",
    "configs/a.json": "{}\n",
    "scripts/run.sh": "#!/usr/bin/env bash\nset -e\n",
    "scripts/test.sh": "#!/usr/bin/env bash\nset -e\n",
    "src/cli/options.cpp": '#include "core/shape.hpp"\nauto o = "variant";\n',
    "src/cli/tokens.cpp": "#include <cxxopts.hpp>\n",
    "src/core/shape.hpp": "#pragma once\n",
    "src/core/text.hpp": "#pragma once\n#include <fmt/core.h>\n",
    "src/gpu/check.hpp": "#pragma once\n",
    "src/gpu/memory.hpp": "#pragma once\n",
    "variants/CMakeLists.txt": "set(variants naive)\n",
    "variants/naive.cu": '#include "core/shape.hpp"\n#include "gpu/check.hpp"\nRegisterVariant r{"naive"};\n',
}


class LintTest(unittest.TestCase):
    def violations(self, check, changes):
        """What the check says of the clean tree with these files written over it."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in {**CLEAN, **changes}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
                if name.endswith(".sh"):
                    os.chmod(root / name, 0o755)
            return list(lint.CHECKS[check](lint.Tree(root)))

    def expect(self, check, changes, message):
        found = self.violations(check, changes)
        self.assertEqual(len(found), 1, found)
        self.assertIn(message, found[0])

    def test_a_clean_tree_passes(self):
        for check in ("includes", "variants", "paths", "scripts", "readme"):
            self.assertEqual(self.violations(check, {}), [], check)

    def test_core_may_not_include_cli(self):
        self.expect("includes", {"src/cli/table.hpp": "", "src/core/shape.hpp": '#include "cli/table.hpp"\n'},
                    "src/core/shape.hpp: includes src/cli/table.hpp")

    def test_a_variant_may_not_include_a_variant(self):
        self.expect("includes", {"variants/tiled.cu": '#include "variants/naive.cu"\n'},
                    "variants/tiled.cu: includes variants/naive.cu")

    def test_a_variant_may_include_one_header_of_gpu(self):
        self.expect("includes", {"variants/naive.cu": '#include "gpu/memory.hpp"\n'},
                    "variants/naive.cu: includes src/gpu/memory.hpp")

    def test_device_code_may_not_reach_fmt(self):
        self.expect("includes", {"variants/naive.cu": '#include "core/text.hpp"\n'},
                    "src/core/text.hpp <- variants/naive.cu: device code includes fmt/core.h")

    def test_only_the_options_include_the_option_parser(self):
        self.expect("includes", {"src/cli/list.cpp": "#include <cxxopts.hpp>\n"}, "src/cli/list.cpp: includes")

    def test_a_new_folder_needs_a_rule(self):
        self.expect("includes", {"src/new/a.hpp": ""}, "src/new/a.hpp: its folder has no rule")

    def test_a_variant_is_registered_under_its_stem(self):
        self.expect("variants", {"variants/naive.cu": 'RegisterVariant r{"naif"};  // "naive"\n'},
                    'registers no variant named "naive"')

    def test_a_variant_is_built(self):
        self.expect("variants", {"variants/CMakeLists.txt": ""}, "is not in variants/CMakeLists.txt")

    def test_a_variant_is_in_the_readme(self):
        self.expect("variants", {"README.md": ""}, "is not in README.md")

    def test_the_tool_names_no_variant(self):
        self.expect("variants", {"src/core/shape.hpp": 'const char* name = "run naive";\n'},
                    'src/core/shape.hpp: names the variant "naive"')
        self.assertEqual(self.violations("variants", {"src/core/shape.hpp": '// as "naive" does\n'}), [])

    def test_no_path_of_a_machine(self):
        self.expect("paths", {"configs/a.json": '{"why": "/ho' + 'me/me/x"}\n'}, "configs/a.json:1")

    def test_scripts_parse(self):
        self.assertIn("scripts/run.sh",
                      "".join(self.violations("scripts", {"scripts/run.sh": "#!/bin/sh\nif true\n"})))

    def test_the_readme_names_what_exists(self):
        self.expect("readme", {"README.md": CLEAN["README.md"] + "`configs/none.json`"}, "configs/none.json")
        self.expect("readme", {"README.md": CLEAN["README.md"] + "`--variants`"}, "--variants is no option")
        self.expect("readme", {"README.md": CLEAN["README.md"] + "[text](nowhere.md)"}, "nowhere.md")
        self.expect("readme", {"README.md": CLEAN["README.md"] + "```sh\n./scripts/none.sh\n```"},
                    "scripts/none.sh does not exist")


if __name__ == "__main__":
    unittest.main()
