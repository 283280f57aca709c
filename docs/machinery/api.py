"""The pages of the API reference: which names stand on which page. What is said of them is in their docstrings."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PAGES", "Page", "index_page"]

ROOMS = (
    "probox.adapters",
    "probox.calibration",
    "probox.detect",
    "probox.distributed",
    "probox.fusion",
    "probox.torch",
)
"""Packages that are documented whole: every name of their ``__all__``."""


@dataclass(frozen=True)
class Page:
    """A page: its title, what it is about, single names, and modules of which every public name is shown."""

    title: str
    about: str
    names: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    """Constants, which have no docstring that Python could find at run time."""
    elsewhere: tuple[str, ...] = ()
    """Names of the modules that stand on another page."""

    def source(self) -> str:
        """Return the page as MyST."""
        lines = [f"# {self.title}", "", self.about, ""]
        directives = [f".. autodata:: {name}\n   :no-value:" for name in self.data]
        # A capital begins a class; `auto` directives must be told.
        directives += [f".. auto{_kind_of(name)}:: {name}" for name in self.names]
        if directives:
            lines += ["```{eval-rst}", "\n\n".join(directives), "```", ""]
        for module in self.modules:
            if len(self.modules) > 1 or self.names:
                lines += [f"## `{module}`", ""]
            if module.endswith("definition"):
                path = module.replace(".", "/") + ".py"
                lines += [f"The source: [{path}](../../src/{path})", ""]
            options = "\n   :members:" + "".join(f"\n   :exclude-members: {name}" for name in self.elsewhere)
            lines += ["```{eval-rst}", f".. automodule:: {module}{options}", "```", ""]
        return "\n".join(lines)


def _kind_of(name: str) -> str:
    last = name.rsplit(".", 1)[-1]
    if last.endswith("Error"):
        return "exception"
    return "class" if last[0].isupper() else "function"


def _probox(*names: str) -> tuple[str, ...]:
    return tuple(f"probox.{name}" for name in names)


PAGES: dict[str, Page] = {
    "api/evaluating": Page(
        "Evaluating",
        "From two files or tables to a result. `probox.evaluate` is where nearly everything begins.",
        _probox("evaluate", "evaluate_parquet", "Evaluator", "PDQ", "Convention"),
    ),
    "api/results": Page(
        "Results",
        "What an evaluation gives: numbers, and tables of who was matched with whom.",
        (
            *_probox("Evaluation"),
            "probox.tables.results.DetectionTable",
            "probox.tables.results.ObjectTable",
            "probox.tables.results.PairTable",
            "probox.tables.results.Verdict",
            "probox.evaluation.grouped.GroupTable",
            "probox.evaluation.grouped.ImageTable",
            "probox.evaluation.oddities.columns.Oddity",
            "probox.evaluation.part.Part",
        ),
    ),
    "api/reading": Page(
        "Reading and writing files",
        "`probox.read_truth` and `probox.read_detections` tell formats by their content; the others are for one format "
        "each. [Formats](../formats.md) says what the files look like.",
        _probox(
            "read_truth",
            "read_detections",
            "read_coco",
            "read_coco_results",
            "read_rvc1_truth",
            "read_rvc1",
            "read_parquet_truth",
            "read_parquet",
            "write_parquet",
            "read_yolo_truth",
            "read_yolo",
            "read_voc_truth",
            "read_voc",
            "read_kitti_truth",
            "read_kitti",
            "read_open_images_truth",
            "read_open_images",
        ),
    ),
    "api/tables": Page(
        "Tables",
        "What is evaluated, as frozen tables of plain arrays.",
        _probox("Detections", "GroundTruth", "Dataset", "Masks"),
    ),
    "api/analysing": Page(
        "Analysing and comparing",
        "Why a result has its numbers, how sure they are, which of two is better, and what to annotate next.",
        (
            *_probox("diagnose", "best_threshold", "bootstrap", "compare", "stories", "rank", "Ranking"),
            "probox.analysis.diagnosis.Diagnosis",
            "probox.analysis.budget.Budget",
            "probox.analysis.calibration_table.CalibrationRow",
            "probox.analysis.skill.Skill",
            "probox.analysis.what_if.WhatIf",
            "probox.analysis.thresholds.BestThreshold",
            "probox.analysis.comparison.Comparison",
            "probox.analysis.comparison.PairOfResults",
            "probox.analysis.comparison.Difference",
            "probox.analysis.intervals.Interval",
            "probox.analysis.intervals.Intervals",
            "probox.analysis.stories.Stories",
            "probox.analysis.stories.Story",
        ),
    ),
    "api/boxes": Page(
        "mAP and LRP",
        "COCO's mean average precision and LRP by themselves; `probox.evaluate` has them beside PDQ.",
        (
            *_probox("average_precision", "AveragePrecision", "lrp", "LRP"),
            "probox.measures.boxes.mean_ap.PrecisionRecallCurve",
            "probox.measures.boxes.optimal_lrp.LRPCurve",
        ),
    ),
    "api/parts": Page(
        "Parts",
        "An evaluation in parts, on several machines or one after the other, and their join: "
        "to the bit that of one machine. [Cluster](../cluster.md) shows how.",
        _probox("evaluate_part", "join", "load", "from_bytes", "CompactEvaluation"),
    ),
    "api/drawing": Page(
        "Drawing",
        "Pictures of images, plots of results, and the explorer's page. Needs the extra `report`.",
        (*_probox("draw"), "probox.plots.Plots", "probox.explorer.write_report"),
    ),
    "api/errors": Page(
        "Errors and version",
        "What goes wrong is a `probox.ProboxError`; what is wrong with an input, a `probox.InputError` of one line.",
        _probox("ProboxError", "InputError"),
        data=_probox("__version__"),
    ),
    "api/adapters": Page(
        "Adapters of frameworks",
        "Outputs of detectors in memory, and callbacks.",
        modules=("probox.adapters",),
        elsewhere=("PDQ",),
    ),
    "api/torch": Page(
        "Losses for training",
        "For PyTorch. Needs the extra `torch`. [Training](../training.md) shows how.",
        modules=("probox.torch",),
    ),
    "api/calibration": Page(
        "Calibration", "[The guide](../calibration.md) shows how.", modules=("probox.calibration",)
    ),
    "api/fusion": Page("Fusion", "[The guide](../fusion.md) shows how.", modules=("probox.fusion",)),
    "api/detect": Page(
        "Running detectors",
        "[The guide](../detect.md) shows how.",
        ("probox.detect.families.base.Family", "probox.detect.families.base.Signature"),
        modules=("probox.detect",),
        data=("probox.detect.families.FAMILIES", "probox.detect.uncertainty.UNCERTAINTIES"),
    ),
    "api/distributed": Page("Many machines", "[The guide](../cluster.md) shows how.", modules=("probox.distributed",)),
    "api/measures": Page(
        "Measures and their definitions",
        "The registry that says which measures there are, and each measure as plain NumPy that reads like its "
        "equations. The fast code is tested against these definitions.",
        modules=(
            "probox.measures.registry",
            "probox.measures.measure",
            "probox.measures.pdq.definition",
            "probox.measures.pdq.definition_heatmap",
            "probox.measures.boxes.definition",
            "probox.measures.scoring.definition",
            "probox.measures.pmb.definition",
            "probox.fusion.definition",
        ),
    ),
    "api/demo": Page(
        "Demo and simulated detectors",
        "Scenes to try things on.",
        ("probox.demo.make_demo", "probox.demo.Demo", "probox.experiments.SimulatedDetector"),
    ),
}
"""The pages by their names, in the menu's order."""


def index_page() -> str:
    """Return the index of the reference, as plain Markdown."""
    lines = [
        "# API reference",
        "",
        "Everything that a program may call, from the docstrings. The names of `probox` itself load when they are "
        "first used; `help(probox.evaluate)` says the same as these pages. Commands have `--help` instead.",
        "",
        "| page | what it has |",
        "| --- | --- |",
    ]
    for name, page in PAGES.items():
        shown = ", ".join(f"`{full.removeprefix('probox.')}`" for full in (*page.names, *page.data)[:5])
        if len(page.names) > 5:
            shown += ", ..."
        shown = shown or ", ".join(f"`{module}`" for module in page.modules[:3])
        lines.append(f"| [{page.title}]({name.removeprefix('api/')}.md) | {shown} |")
    return "\n".join(lines) + "\n"
