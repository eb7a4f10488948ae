"""Settings by which Sphinx makes the site of the guide; build.py beside this file collects its pages.

Why Sphinx, and not Material for MkDocs: MkDocs had its last release in 2024, the support of the theme ends in
2026, and its successor is young and shows no notebooks. Sphinx is kept up, shows notebooks, and searches in a
file that needs no server.
"""

import re
from functools import cache
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

project = "fecbench"
author = "The fecbench developers"
root_doc = "index"
extensions = ["myst_nb", "sphinx.ext.autodoc"]
exclude_patterns = ["out", "changelog.d/+*"]  # fragments of a changelog are no pages

html_theme = "pydata_sphinx_theme"
html_title = "fecbench"
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["site.css"]
html_favicon = str(Path(__file__).parent / "static" / "mark.svg")
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_persistent": ["search-button-field"],
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

# Headings get the anchors that readers of the Markdown know.
myst_heading_anchors = 4
myst_disable_syntax = ["myst_line_comment"]  # A line may begin with "% of all packets".
nb_execution_mode = "cache"
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_merge_streams = True

default_role = "code"  # in docstrings
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
# The guide has few words that differ, and finding stems of all for the search was a tenth of the time.
SearchEnglish.stem = cache(SearchEnglish.stem)  # type: ignore[method-assign]
# A lexer that is missing changes nothing but colours.
suppress_warnings = ["misc.highlighting_failure"]


def _leave_links_to_folders_out(app: Sphinx, name: str, source: list[str]) -> None:
    """Show a link to a folder, which is no page, as its text. A link to nothing stays a warning."""
    folder = Path(app.env.doc2path(name)).parent

    def link_or_text(link: re.Match[str]) -> str:
        return link[1] if (folder / link[2]).is_dir() else link[0]

    source[0] = re.sub(r"\[([^\]\[]+)\]\(([^()#:\s]+)\)", link_or_text, source[0])


def setup(app: Sphinx) -> None:
    app.connect("source-read", _leave_links_to_folders_out)
