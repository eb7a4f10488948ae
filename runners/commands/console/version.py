"""The line of `fecbench --version`: the version, the commit, and whether that is the release.

A release is the commit with the version's tag, unchanged. A wheel has no history: `make wheel` writes down
the commit that it is made of.
"""

import fecbench
from fecbench.runners.campaign.provenance import revision
from fecbench.runners.probe import output_of


def version_line() -> str:
    """Return `fecbench 0.1.0 (release)`, or the commit where it is none."""
    version, at = fecbench.__version__, revision()
    commit, changed = at["commit"], at["changed"]
    if commit is None:
        return f"fecbench {version} (unknown commit)"
    tags = (output_of(["git", "tag", "--points-at", commit]) or "").split()
    if f"v{version}" in tags and not changed:
        return f"fecbench {version} (release, commit {commit[:12]})"
    changes = ", with changes" if changed else ""
    return f"fecbench {version} (no release: commit {commit[:12]}{changes})"
