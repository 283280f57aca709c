"""The site's menu: six sections and their pages. Listed pages must exist, and every page must be listed."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CHILDREN", "REDIRECTS", "SECTIONS", "Section"]


class Section(NamedTuple):
    """A top entry of the menu: its index page and the pages below, each with its content in a few words."""

    title: str
    index: str
    about: str = ""
    pages: tuple[tuple[str, str], ...] = ()


SECTIONS = (
    Section(
        "Get started",
        "get-started",
        "Install probox and learn its terms. The [start page](index.md) has a quick start.",
        (
            ("installation", "requirements, extras, shell completion"),
            ("concepts", "terms, and the columns of tables"),
        ),
    ),
    Section("Tutorials", "tutorials/index"),
    Section(
        "How-to guides",
        "how-to",
        "Each guide answers one question with commands and code that run.",
        (
            ("load-data", "arrays, frameworks, files and training loops"),
            ("which-measure", "from a question to a metric and a command"),
            ("diagnosis", "loss breakdown, calibration, possible gains"),
            ("comparing", "differences with confidence intervals and p-values"),
            ("pictures", "images, plots and notebooks"),
            ("explorer", "the interactive page of `probox report`"),
            ("calibration", "which method first, and how to validate it"),
            ("detect", "uncertainty methods for existing detectors"),
            ("own-detector", "run a detector of your own"),
            ("fusion", "merge the detections of several detectors"),
            ("training", "losses and a regression head"),
            ("ranking", "which images to annotate next"),
            ("cluster", "parts, Dask, Slurm, Ray and Spark"),
            ("faq", "errors, warnings and common questions"),
        ),
    ),
    Section(
        "Reference",
        "reference",
        "Definitions, formats and interfaces.",
        (
            ("measure", "PDQ with every constant, and the presets"),
            ("boxes", "mAP and LRP"),
            ("measures/index", "one page per metric"),
            ("formats", "COCO, RVC1, label files, Parquet, results"),
            ("families", "supported detectors and their outputs"),
            ("cli", "help of every command"),
            ("api/index", "Python API"),
            ("parity", "agreement with other programs"),
            ("speed", "time and memory beside other programs"),
            ("stability", "what later versions keep"),
        ),
    ),
    Section(
        "Studies",
        "studies",
        "Experiments with predictions, intervals and limits. Each number names its command.",
        (
            ("experiments", "the paper's experiments and its Table 1"),
            ("informative", "covariances against a constant variance"),
            ("beyond", "what metrics react to, and proper scores"),
            ("training-study", "losses in a controlled experiment"),
        ),
    ),
    Section(
        "Project",
        "project",
        "For contributors.",
        (
            ("design", "layers, definitions and the kernel"),
            ("contributing", "map of the code, setup and rules"),
            ("extending", "add a metric, format, detector family, plot or experiment"),
            ("examples/index", "example programs"),
            ("changelog", "changes per version"),
        ),
    ),
)

CHILDREN = {
    "tutorials/index": ("tutorials/*",),
    "measures/index": ("measures/*",),
    "formats": ("formats/*",),
    "api/index": ("api/*",),
    "examples/index": ("examples/*", "files/*"),
}
"""Patterns of the pages below an index, sorted by name; links on the index page set another order."""

REDIRECTS = {
    "dropout": "detect",
    "eight-d-eces": "measures/d-ece",
    "glossary": "concepts",
    "i-have": "load-data",
    "mistakes": "faq",
    "mutants": "beyond",
    "spread": "informative",
    "table1": "experiments",
    "tutorials/a-cluster": "cluster",
    "uncertainty": "measures/index",
}
"""Former addresses of pages, and the pages that took their place."""
