"""Packages stand aside while others load, and are whole when they are used."""

import subprocess
import sys
from pathlib import Path

from fecbench.checkout import REPOSITORY

PARTS = {
    "package/__init__.py": "print('loaded')\n",
    "package/part.py": "from package.other import Class, function, module\n",
    "package/other/__init__.py": "class Class: pass\ndef function(n): return n + 1\n",
    "package/other/module.py": "VALUE = 3\n",
}
SCRIPT = """
import sys
from fecbench.lazy import standing_aside
with standing_aside("package", "package.other"):
    from package.part import Class, function, module
print(*sorted(name for name in sys.modules if name.startswith("package")))
print(function(1), module.VALUE, type(Class()).__name__)
import package
print(package.other.function(2), package.other.Class is type(Class()))
with standing_aside("package"):
    print(sys.modules["package"] is package)
"""


def test_a_package_that_stands_aside_is_loaded_whole_when_a_name_of_it_is_used(tmp_path: Path) -> None:
    for name, text in PARTS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{SCRIPT}"]
    result = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert (result.stdout.splitlines(), result.stderr) == (
        ["package.part", "loaded", "2 3 Class", "3 True", "True"],
        "",
    )
