"""Makes a photo site's front page from a seed: its own numbers, the kind of page of rQUIC's §VI-C.

The document brings styles and scripts; styles bring fonts and icons; the first photos stand in the document,
the others are asked for by the last script; two scripts report to another origin.
"""

from collections.abc import Iterator

from fecbench.runners.workloads.chance import Sizes
from fecbench.runners.workloads.page.graph import Page, PageObject

SMALLEST_BYTES = 100_000
LARGEST_BYTES = 10**9

WWW, STATIC, PHOTOS, METRICS = (
    f"{name}.photo-site.example" for name in ("www", "static", "photos", "metrics")
)
EARLY_PHOTOS, LATE_PHOTOS = 24, 18
SMALLEST_OBJECT_BYTES = 40


def make(seed: int, size_bytes: int, made_by: str) -> Page:
    """A page of exactly `size_bytes` in all its objects."""
    items = list(_objects(Sizes(seed)))
    scale = size_bytes / sum(item.size_bytes for item in items)
    scaled = [
        item.model_copy(update={"size_bytes": max(SMALLEST_OBJECT_BYTES, round(item.size_bytes * scale))})
        for item in items
    ]
    # The document gets the remainder of the rounding.
    rest = size_bytes - sum(item.size_bytes for item in scaled)
    scaled[0] = scaled[0].model_copy(update={"size_bytes": scaled[0].size_bytes + rest})
    return Page(title=f"photo site, front page, seed {seed}", made_by=made_by, objects=scaled)


def _objects(draw: Sizes) -> Iterator[PageObject]:
    def one(
        name: str, origin: str, parents: list[str], size: tuple[float, float], work_ms: tuple[float, float]
    ) -> PageObject:
        processing = round(draw.uniform(*work_ms), 1)
        drawn_bytes = max(SMALLEST_OBJECT_BYTES, round(draw.lognormal(*size)))
        return PageObject(
            name=name, origin=origin, parents=parents, size_bytes=drawn_bytes, processing_ms=processing
        )

    yield one("document", WWW, [], (38_000, 0.1), (20, 40))
    styles = [f"style-{number}" for number in range(3)]
    for style in styles:
        yield one(style, STATIC, ["document"], (18_000, 0.7), (2, 8))
    scripts = [f"script-{number}" for number in range(6)]
    for script in scripts:
        yield one(script, STATIC, ["document"], (35_000, 0.8), (5, 40))
    for number in range(2):
        yield one(f"font-{number}", STATIC, [styles[0]], (24_000, 0.2), (0, 1))
    for number in range(6):
        yield one(f"icon-{number}", STATIC, [styles[number % 3]], (2_500, 0.8), (0, 1))
    for number in range(EARLY_PHOTOS):
        yield one(f"photo-{number}", PHOTOS, ["document"], (26_000, 0.6), (0, 3))
    # A script runs when the styles before it are known, and after the scripts before it.
    yield one("feed", WWW, [*styles, *scripts], (9_000, 0.3), (3, 10))
    for number in range(EARLY_PHOTOS, EARLY_PHOTOS + LATE_PHOTOS):
        yield one(f"photo-{number}", PHOTOS, ["feed"], (26_000, 0.6), (0, 3))
    for number in range(4):
        yield one(f"metric-{number}", METRICS, [scripts[number % 2]], (300, 0.5), (0, 0.5))
