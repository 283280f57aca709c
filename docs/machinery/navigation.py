"""What the site's menu shows, in which order. A page that is listed must exist, and every page must be listed."""

from __future__ import annotations

__all__ = ["CHILDREN", "MENU", "REDIRECTS"]

MENU: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Start",
        (
            "installation",
            "concepts",
            "load-data",
            "which-measure",
        ),
    ),
    ("Learn", ("tutorials/", "measures/", "measure", "boxes")),
    (
        "Guides",
        (
            "calibration",
            "diagnosis",
            "comparing",
            "pictures",
            "explorer",
            "ranking",
            "mistakes",
            "spread",
            "training",
            "cluster",
        ),
    ),
    ("Files", ("formats", "formats/coco", "formats/rvc1", "formats/label-files", "formats/parquet", "formats/results")),
    ("Detectors", ("detect", "families", "own-detector", "fusion")),
    ("Studies", ("experiments", "beyond", "informative", "table1", "mutants")),
    (
        "Reference",
        (
            "api/",
            "faq",
            "eight-d-eces",
            "parity",
            "speed",
            "design",
        ),
    ),
    (
        "Project",
        (
            "examples/",
            "contributing",
            "stability",
            "changelog",
        ),
    ),
)
"""Headings and the pages under each. ``folder/`` is the folder's index, if there is one; its pages stand below it."""

CHILDREN = {
    "tutorials/index": ("tutorials/*",),
    "measures/index": ("measures/*",),
    "api/index": ("api/*",),
    "examples/index": ("examples/*", "files/*"),
}
"""The pages below an index, by patterns, in the order of their names; an index that lists pages itself sets theirs."""

REDIRECTS = {
    "dropout": "detect",
    "glossary": "concepts",
    "i-have": "load-data",
    "uncertainty": "measures/index",
}
"""Former addresses of pages, and the pages that took their place."""
