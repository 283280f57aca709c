"""Pages of the API reference and the names on each. Their text comes from docstrings."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PAGES", "Page", "index_page"]

PACKAGES = (
    "probox.adapters",
    "probox.calibration",
    "probox.detect",
    "probox.distributed",
    "probox.fusion",
    "probox.torch",
)
"""Packages of which every name of ``__all__`` is documented."""


@dataclass(frozen=True)
class Page:
    """A page: title, introduction, single names, and modules with all public names."""

    title: str
    about: str
    names: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    """Constants; they have no docstring at run time."""
    elsewhere: tuple[str, ...] = ()
    """Names of the modules that are on another page."""
    further: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """Further sections: a heading, an introduction, and names; upper-case names are constants."""
    first: tuple[str, ...] = ()
    """Names that the index lists for a page of modules."""

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
    """Return autodoc directives of single names."""
    fetched = [f".. auto{_kind_of(name)}:: {name}" for name in names]
    fetched = [f"{one}\n   :no-value:" if "autodata" in one else one for one in fetched]
    return ["```{eval-rst}", "\n\n".join(fetched), "```", ""] if names else []


def _kind_of(name: str) -> str:
    """Return the autodoc directive of a name: class names start with a capital letter."""
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
        "Evaluate two files or tables with `probox.evaluate`; use `Evaluator` or `PDQ` in loops.",
        _probox("evaluate", "Evaluator", "PDQ", "Convention"),
    ),
    "api/results": Page(
        "Results",
        "`probox.evaluate` returns an `Evaluation`: metrics, and tables of detections, objects and pairs. "
        "`result.matched_pairs` has the [matched pairs](../measures/index.md#matched-pairs) at IoU 0.5, "
        "`result.per_class()` and `result.per_image()` have metrics per group.",
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
        "`probox.read_truth` and `probox.read_detections` detect the format from the content, or take its name. "
        "[File formats](../formats.md) specifies each format.",
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
        "Ground truth and detections as read-only tables of arrays. Read them from files, or create them with "
        "`probox.Detections.from_scores` and `probox.GroundTruth.from_boxes`.",
        _probox("Detections", "GroundTruth", "Dataset", "Masks"),
    ),
    "api/analysing": Page(
        "Analysing and comparing",
        "Diagnosis, confidence intervals, comparison, label thresholds, and ranking of images for annotation.",
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
        "COCO's mean average precision and LRP without PDQ; `probox.evaluate` computes them beside PDQ.",
        (
            *_probox("average_precision", "AveragePrecisionResult", "lrp", "LRPResult"),
            "probox.measures.boxes.mean_ap.PrecisionRecallCurve",
            "probox.measures.boxes.optimal_lrp.LRPCurve",
        ),
    ),
    "api/parts": Page(
        "Parts",
        "Merge parts of an evaluation, made with `probox.evaluate(part=...)`. The merged result is bit-identical to a "
        "single run ([scaling out](../cluster.md)).",
        _probox("merge", "load", "from_bytes"),
    ),
    "api/drawing": Page(
        "Drawing",
        "Images, plots and the HTML report; see [pictures and plots](../pictures.md) and the "
        "[HTML report](../explorer.md). Needs the extra `report`.",
        (
            *_probox("draw"),
            "probox.plots.Plots",
            "probox.explorer.write_report",
            "probox.pictures.rendering.text_stays_text",
        ),
    ),
    "api/errors": Page(
        "Errors and version",
        "All exceptions of probox are `probox.ProboxError`. Invalid input or arguments raise `probox.InputError` with "
        "a one-line message. `probox.__version__` is the version, such as `0.1.0`.",
        _probox("ProboxError", "InputError"),
        data=_probox("__version__"),
    ),
    "api/adapters": Page(
        "Adapters of frameworks",
        "Convert objects of detector frameworks to tables, and evaluate during training. "
        "[Load your data](../load-data.md) has an example of each.",
        modules=("probox.adapters",),
        elsewhere=("PDQ",),
        first=("from_ultralytics", "from_transformers", "from_torchvision", "from_detectron2", "UltralyticsPDQ"),
    ),
    "api/torch": Page(
        "Losses for training",
        "Losses and a regression head for PyTorch ([guide](../training.md)). Needs the extra `torch`.",
        modules=("probox.torch",),
        further=(("Output of the head", "Returned by `GaussianCorners`.", ("probox.torch.head.CornerSpread",)),),
        first=("GaussianCorners", "ppdq_loss", "nll_loss", "energy_score_loss"),
    ),
    "api/calibration": Page(
        "Calibration",
        "Fit and apply calibrations of standard deviations and scores ([guide](../calibration.md)).",
        modules=("probox.calibration",),
        first=("fit", "Calibration", "StdRegressor"),
    ),
    "api/fusion": Page(
        "Fusion",
        "Merge dropout passes, members of an ensemble or NMS candidates into probabilistic detections "
        "([guide](../fusion.md)).",
        modules=("probox.fusion",),
        first=("fuse_samples", "fuse_candidates", "fuse_detections", "convert_boxes", "from_edge_distributions"),
    ),
    "api/detect": Page(
        "Running detectors",
        "`probox.detect.Detector` opens an ONNX file and `probox.detect.open_detector` any supported model. "
        "`probox.detect.detect_images` runs it on image files, `probox.detect.detect` on arrays "
        "([guide](../detect.md)).",
        modules=("probox.detect",),
        further=(
            (
                "Choices by name",
                "Values of `--family` and `--uncertainty`.",
                ("probox.detect.families.FAMILIES", "probox.detect.uncertainty.UNCERTAINTIES"),
            ),
            (
                "Custom families",
                "Base classes for a [new detector family](../extending.md#a-detector-family).",
                ("probox.detect.families.base.Family", "probox.detect.families.base.Signature"),
            ),
        ),
        first=("Detector", "Options", "Dropout", "detect_images", "detect"),
    ),
    "api/distributed": Page(
        "Clusters",
        "Evaluate and detect on a Dask cluster ([guide](../cluster.md)).",
        modules=("probox.distributed",),
        first=("open_client", "evaluate", "detect_images", "map_tasks"),
    ),
    "api/measures": Page(
        "Metrics and their definitions",
        "The registry of metrics, and each metric as plain NumPy that reads like its equation. The fast code is tested "
        "against these definitions.",
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
                "Outcomes of detections",
                "Outcomes of all detections, matched or not. Examples of the [metrics](../measures/index.md) use them; "
                "`probox.measures.matched.MatchedPairs` has the matched pairs.",
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
        "The synthetic demo data and simulated detectors.",
        (
            "probox.demo.make_demo",
            "probox.demo.Demo",
            "probox_experiments.SimulatedDetector",
            "probox_experiments.synthetic_truth",
        ),
        further=(
            (
                "Experiments",
                "The [experiments](../experiments.md) are functions of `probox_experiments`. Each returns a table from "
                "which its claims are checked.",
                (
                    "probox_experiments.Experiment",
                    "probox_experiments.ResultTable",
                    "probox_experiments.Claim",
                ),
            ),
        ),
    ),
}
"""Pages by name, in the order of the menu."""


def index_page() -> str:
    """Return the index of the API reference as Markdown."""
    lines = [
        "# API reference",
        "",
        "The public Python interface, generated from docstrings. `help(probox.evaluate)` prints the same text. "
        "[API stability](../stability.md) defines which changes later versions may make.",
        "",
        "| page | names |",
        "| --- | --- |",
    ]
    for name, page in PAGES.items():
        full = [f"{page.modules[0]}.{one}" for one in page.first] or list(page.listed)
        own = [one for one in full if one.count(".") == 1] if len(full) > 5 else []  # prefer names of probox itself
        names = ", ".join(
            f"`{one.removeprefix('probox.') if one.count('.') == 1 else one}`" for one in (own or full)[:5]
        )
        names += ", ..." if page.first or len(full) > 5 else ""
        lines.append(f"| [{page.title}]({name.removeprefix('api/')}.md) | {names} |")
    return "\n".join(lines) + "\n"
