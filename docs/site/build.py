"""Make the guide's site: `python docs/site/build.py FOLDER [NAME=DATABASE…]`, or `make site`.

FOLDER/source gets a copy of the files that git knows, with the recorded campaigns that notebooks read, and
FOLDER/html the site. Each NAME=DATABASE becomes a report to explore. `--without-outputs` runs no notebook.

Refused: a link that leads nowhere, and a page that Sphinx warns of. The site asks no other host for anything.
"""

import argparse
import filecmp
import lzma
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

SITE = Path(__file__).resolve().parent
REPOSITORY = SITE.parent.parent
OWN = sorted(page.name for page in SITE.glob("*.md"))
"""The pages that the site alone has, at its root."""


def stage(source: Path, with_outputs: bool) -> list[str]:
    """Copy what git knows, and unpack the campaigns that notebooks read, where these are run. Returns the
    names of the pages."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    paths = subprocess.run(
        listed, cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    files = [name for name in paths if (REPOSITORY / name).is_file() and not name.startswith("docs/site/")]
    for name in files:
        copy(REPOSITORY / name, source / name)
    for name in OWN:
        copy(SITE / name, source / name)
    for name in files if with_outputs else ():
        if name.startswith("notebooks/samples/") and name.endswith(".xz"):
            unpack(source / name, source / "out" / Path(name).stem)
    return [name for name in files if name.endswith((".md", ".ipynb"))]


def copy(file: Path, to: Path) -> None:
    """Leave a copy that is the same as it is, so that Sphinx reads again only what has changed."""
    if not to.exists() or not filecmp.cmp(file, to, shallow=False):
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, to)


def unpack(compressed: Path, database: Path) -> None:
    if not database.exists() or database.stat().st_mtime < compressed.stat().st_mtime:
        database.parent.mkdir(exist_ok=True)
        database.write_bytes(lzma.decompress(compressed.read_bytes()))


def report(source: Path, databases: dict[str, Path]) -> None:
    """Write a report of each database, and the page that leads to them."""
    lines = ["# Reports to explore", ""]
    lines += [
        "Each report is one file: the answer first, then charts in which you hover, filter and choose.",
        "",
    ]
    for name, database in databases.items():
        folder = source / "extra" / "reports" / name
        command = [Path(sys.executable).parent / "fecbench", "report", "--db", database, "--output", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        lines.append(f'- <a href="reports/{name}/report.html">{name}</a>, of the design `{name}`')
    if not databases:
        lines.append("This site was made without any.")
    (source / "reports.md").write_text("\n".join(lines) + "\n")


def build(folder: Path, databases: dict[str, Path], with_outputs: bool) -> int:
    """Make the site in `folder/html`. Returns the status of Sphinx."""
    source = folder / "source"
    (source / "extra").mkdir(parents=True, exist_ok=True)
    pages = stage(source, with_outputs)
    report(source, databases)
    settings = {
        "include_patterns": ",".join([*OWN, "reports.md", *pages]),
        "html_extra_path": str(source / "extra"),
        "nb_execution_cache_path": str(folder / "executed"),
        **({} if with_outputs else {"nb_execution_mode": "off"}),
    }
    definitions = [f"--define={name}={value}" for name, value in settings.items()]
    program = [
        sys.executable,
        "-m",
        "sphinx",
        "--builder",
        "html",
        "--quiet",
        "--fail-on-warning",
        "--keep-going",
    ]
    return subprocess.run(
        [
            *program,
            "--conf-dir",
            SITE,
            "--doctree-dir",
            folder / "doctrees",
            *definitions,
            source,
            folder / "html",
        ]
    ).returncode


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Make the guide's site.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("databases", nargs="*", metavar="NAME=DATABASE")
    parser.add_argument("--without-outputs", action="store_true", help="do not run the notebooks")
    options = parser.parse_intermixed_args(arguments)
    databases = {
        name: Path(path).resolve()
        for name, _, path in (assignment.partition("=") for assignment in options.databases)
    }
    return build(options.folder.resolve(), databases, not options.without_outputs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
