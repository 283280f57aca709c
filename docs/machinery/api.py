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
    further: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """Sections after all that: a heading, what is to be said, and names; those in capitals are constants."""
    first: tuple[str, ...] = ()
    """What the index names of a page of modules."""

    @property
    def listed(self) -> tuple[str, ...]:
        """Return the single names of the page, in its order."""
        return (*self.data, *self.names, *(name for _, _, names in self.further for name in names))

    def source(self) -> str:
        """Return the page as MyST."""
        lines = [f"# {self.title}", "", self.about, "", *_directives((*self.data, *self.names))]
        for module in self.modules:
            if len(self.modules) > 1 or self.names:
                lines += [f"## `{module}`", ""]
            if module.endswith("definition"):
                path = module.replace(".", "/") + ".py"
                lines += [f"The source: [{path}](../../src/{path})", ""]
            options = "\n   :members:" + "".join(f"\n   :exclude-members: {name}" for name in self.elsewhere)
            lines += ["```{eval-rst}", f".. automodule:: {module}{options}", "```", ""]
        for heading, words, names in self.further:
            lines += [f"## {heading}", "", words, "", *_directives(names)]
        return "\n".join(lines)


def _directives(names: tuple[str, ...]) -> list[str]:
    """Return the lines that fetch what is said of single names."""
    fetched = [f".. auto{_kind_of(name)}:: {name}" for name in names]
    fetched = [f"{one}\n   :no-value:" if "autodata" in one else one for one in fetched]
    return ["```{eval-rst}", "\n\n".join(fetched), "```", ""] if names else []


def _kind_of(name: str) -> str:
    """Return which directive fetches a name, as they must be told: a capital begins a class."""
    last = name.rsplit(".", 1)[-1]
    if (last.isupper() and len(last) > 3) or last.startswith("__"):
        return "data"
    if last.endswith("Error"):
        return "exception"
    return "class" if last[0].isupper() else "function"


def _probox(*names: str) -> tuple[str, ...]:
    return tuple(f"probox.{name}" for name in names)


PAGES: dict[str, Page] = {
    "api/evaluating": Page(
        "Evaluating",
        "From two files or tables to a result. `probox.evaluate` is where nearly everything begins.",
        _probox("evaluate", "Evaluator", "PDQ", "Convention"),
    ),
    "api/results": Page(
        "Results",
        "What `probox.evaluate` gives: numbers, and tables of who was matched with whom. "
        "`result.detections`, `result.objects` and `result.pairs` are the tables, `result.matched_pairs` the pairs of "
        "[matched pairs](../measures/index.md#matched-pairs), `result.per_class()` and `result.per_image()` the "
        "groups.",
        (
            *_probox("Evaluation"),
            "probox.notes.Note",
            "probox.tables.flat.NumberTable",
            "probox.tables.results.DetectionTable",
            "probox.tables.results.ObjectTable",
            "probox.tables.results.PairTable",
            "probox.tables.results.Verdict",
            "probox.measures.matched.MatchedPairs",
            "probox.evaluation.group_tables.GroupTable",
            "probox.evaluation.group_tables.ImageTable",
            "probox.notes.InputWarning",
            "probox.evaluation.parts.Part",
            "probox.evaluation.verdicts.ThresholdChoice",
        ),
    ),
    "api/reading": Page(
        "Reading and writing files",
        "`probox.read_truth` and `probox.read_detections` tell formats by their content, or take their names; "
        "`probox.write_parquet`, `probox.formats.write_coco_results` and `probox.formats.write_rvc1` "
        "write. [Formats](../formats.md) says what the files look like.",
        _probox(
            "read_truth",
            "read_detections",
            "write_parquet",
            "formats.write_coco_results",
            "formats.write_rvc1",
        ),
    ),
    "api/tables": Page(
        "Tables",
        "What is evaluated, as frozen tables of plain arrays: read from files, or made of what you hold by "
        "`probox.Detections.from_scores` and `probox.GroundTruth.from_boxes`.",
        _probox("Detections", "GroundTruth", "Dataset", "Masks"),
    ),
    "api/analysing": Page(
        "Analysing and comparing",
        "Why a result has its numbers, how sure they are, which of two is better, and what to annotate next.",
        (
            *_probox("diagnose", "best_threshold", "compare", "example_detections", "rank", "Ranking"),
            "probox.analysis.loss_breakdown.confusion",
            "probox.analysis.loss_breakdown.Confusion",
            "probox.analysis.diagnosis.Diagnosis",
            "probox.analysis.loss_breakdown.Budget",
            "probox.analysis.calibration_table.CalibrationRow",
            "probox.analysis.calibration_table.ErrorFactor",
            "probox.analysis.calibration_table.Outliers",
            "probox.analysis.baseline.Skill",
            "probox.analysis.loss_breakdown.WhatIf",
            "probox.analysis.thresholds.BestThreshold",
            "probox.analysis.comparison.Comparison",
            "probox.analysis.comparison.PairOfResults",
            "probox.analysis.comparison.Difference",
            "probox.analysis.resampling.Interval",
            "probox.analysis.resampling.Intervals",
            "probox.analysis.examples.Examples",
            "probox.analysis.examples.Example",
        ),
    ),
    "api/boxes": Page(
        "mAP and LRP",
        "COCO's mean average precision and LRP by themselves; `probox.evaluate` has them beside PDQ.",
        (
            *_probox("average_precision", "AveragePrecisionResult", "lrp", "LRPResult"),
            "probox.measures.boxes.mean_ap.PrecisionRecallCurve",
            "probox.measures.boxes.optimal_lrp.LRPCurve",
        ),
    ),
    "api/parts": Page(
        "Parts",
        "Parts of an evaluation, from `probox.evaluate(part=...)` on several machines or one after the other, and the "
        "whole, bit-identical to that of one machine. [Cluster](../cluster.md) shows how.",
        _probox("merge", "load", "from_bytes"),
    ),
    "api/drawing": Page(
        "Drawing",
        "Pictures of images, plots of results, and the explorer's page; [Pictures and plots](../pictures.md) and "
        "[The explorer](../explorer.md) show them. Needs the extra `report`.",
        (
            *_probox("draw"),
            "probox.plots.Plots",
            "probox.explorer.write_report",
            "probox.pictures.rendering.text_stays_text",
        ),
    ),
    "api/errors": Page(
        "Errors and version",
        "What probox raises on purpose is a `probox.ProboxError`; what is wrong with an input or an argument, a "
        "`probox.InputError` of one line. Every function may raise it. `probox.__version__` is the version as text, "
        "such as `0.1.0`.",
        _probox("ProboxError", "InputError"),
        data=_probox("__version__"),
    ),
    "api/adapters": Page(
        "Adapters of frameworks",
        "What detectors of other frameworks return, as tables, and callbacks for their trainings. "
        "[I have ... → do this](../load-data.md) shows each in a few lines.",
        modules=("probox.adapters",),
        elsewhere=("PDQ",),
        first=("from_ultralytics", "from_transformers", "from_torchvision", "from_detectron2", "UltralyticsPDQ"),
    ),
    "api/torch": Page(
        "Losses for training",
        "For PyTorch. Needs the extra `torch`. [Training](../training.md) shows how.",
        modules=("probox.torch",),
        further=(
            ("What the head returns", "Nobody makes it by hand: the head does.", ("probox.torch.head.CornerSpread",)),
        ),
        first=("GaussianCorners", "ppdq_loss", "nll_loss", "energy_score_loss"),
    ),
    "api/calibration": Page(
        "Calibration",
        "Sigmas and scores put right. [The guide](../calibration.md) shows how.",
        modules=("probox.calibration",),
        first=("fit", "Calibration", "StdRegressor"),
    ),
    "api/fusion": Page(
        "Fusion",
        "Passes, members of an ensemble, or candidates, as one probabilistic detection each. "
        "[The guide](../fusion.md) shows how.",
        modules=("probox.fusion",),
        first=("fuse_samples", "fuse_candidates", "fuse_detections", "convert_boxes", "from_edge_distributions"),
    ),
    "api/detect": Page(
        "Running detectors",
        "`probox.detect.Detector` opens an ONNX file, `probox.detect.detect_images` runs it over photos, "
        "`probox.detect.detect` over arrays. `probox.detect.open_detector` opens any model by its name, and "
        "`probox.adapters.UltralyticsDetector` holds one of Ultralytics. "
        "[The guide](../detect.md) shows how.",
        modules=("probox.detect",),
        further=(
            (
                "Choices by name",
                "What `--family` and `--uncertainty` take.",
                ("probox.detect.families.FAMILIES", "probox.detect.uncertainty.UNCERTAINTIES"),
            ),
            (
                "A family of one's own",
                "Base classes for a [new detector family](../extending.md#a-detector-family).",
                ("probox.detect.families.base.Family", "probox.detect.families.base.Signature"),
            ),
        ),
        first=("Detector", "Options", "Dropout", "detect_images", "detect"),
    ),
    "api/distributed": Page(
        "Many machines",
        "The same work over a Dask cluster. [The guide](../cluster.md) shows how.",
        modules=("probox.distributed",),
        first=("open_client", "evaluate", "detect_images", "map_tasks"),
    ),
    "api/measures": Page(
        "Measures and their definitions",
        "The registry that says which measures there are, and each measure as plain NumPy that reads like its "
        "equations. The fast code is tested against these definitions.",
        modules=(
            "probox.measures.registry",
            "probox.measures.measure",
            "probox.measures.pdq.definition",
            "probox.measures.boxes.box_definition",
            "probox.measures.scoring.score_definition",
            "probox.measures.pmb_definition",
            "probox.fusion.fusion_definition",
        ),
        further=(
            (
                "What became of detections",
                "Of all detections, matched or not: examples on the [pages of the measures](../measures/index.md) "
                "begin with it. Those of matched pairs begin with `probox.measures.matched.MatchedPairs`.",
                (
                    "probox.measures.scoring.score_rows.outcomes",
                    "probox.measures.scoring.score_rows.Outcomes",
                ),
            ),
        ),
        first=("MEASURES", "named_measures", "measure_names"),
    ),
    "api/demo": Page(
        "Demo and simulated detectors",
        "Scenes to try things on.",
        (
            "probox.demo.make_demo",
            "probox.demo.Demo",
            "probox_experiments.SimulatedDetector",
            "probox_experiments.synthetic_truth",
        ),
        further=(
            (
                "Experiments",
                "[The experiments](../experiments.md) are functions of `probox_experiments`. Each returns a table, by "
                "which its claims are judged.",
                (
                    "probox_experiments.Experiment",
                    "probox_experiments.ResultTable",
                    "probox_experiments.Claim",
                ),
            ),
        ),
    ),
}
"""The pages by their names, in the menu's order."""


def index_page() -> str:
    """Return the index of the reference, as plain Markdown."""
    lines = [
        "# API reference",
        "",
        "Everything that a program may call, from the docstrings. The names of `probox` itself load when they are "
        "first used; `help(probox.evaluate)` says the same as these pages. Commands have `--help` instead. "
        "[What stays](../stability.md) says what you may build on.",
        "",
        "| page | what it has |",
        "| --- | --- |",
    ]
    for name, page in PAGES.items():
        full = [f"{page.modules[0]}.{one}" for one in page.first] or list(page.listed)
        own = [one for one in full if one.count(".") == 1] if len(full) > 5 else []  # of probox itself, where many are
        names = ", ".join(
            f"`{one.removeprefix('probox.') if one.count('.') == 1 else one}`" for one in (own or full)[:5]
        )
        names += ", ..." if page.first or len(full) > 5 else ""
        lines.append(f"| [{page.title}]({name.removeprefix('api/')}.md) | {names} |")
    return "\n".join(lines) + "\n"
