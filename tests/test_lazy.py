"""Packages stand aside while others load, and are whole when they are used."""

import subprocess
import sys
from collections.abc import Mapping
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


OF_PARENT = {
    "parent/__init__.py": (
        "__all__ = ['child', 'number']\nnumber = 4\n"
        "def __getattr__(name):\n    import parent.child as child\n    return child\n"
    ),
    "parent/child.py": "print('loaded')\nVALUE = 5\n",
}
SCRIPT_OF_PARENT = """
import parent
from fecbench.lazy import standing_aside
with standing_aside("parent.child"):
    from parent import *
print(number, "child" in vars(parent))
print(parent.child.VALUE)
"""


def test_a_child_that_stands_aside_is_not_loaded_with_all_names_of_its_parent(tmp_path: Path) -> None:
    assert printed_by(OF_PARENT, SCRIPT_OF_PARENT, tmp_path) == ["4 False", "loaded", "5"]


def test_a_package_that_stands_aside_is_loaded_whole_when_a_name_of_it_is_used(tmp_path: Path) -> None:
    assert printed_by(PARTS, SCRIPT, tmp_path) == ["package.part", "loaded", "2 3 Class", "3 True", "True"]


def printed_by(files: Mapping[str, str], script: str, folder: Path) -> list[str]:
    """The lines that a script prints, which imports from these files in a folder, and tells no error."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(folder)!r})\n{script}"]
    result = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert result.stderr == ""
    return result.stdout.splitlines()
