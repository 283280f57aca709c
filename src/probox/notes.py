"""Notes and warnings about input and results, and the table of their sentences."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError, Spelling, python_keyword, spell_options
from probox.support.formatting import with_count

Value = str | int | float | bool

LONGEST_TEXT = 1 << 16
"""Maximum number of characters of a text in a stored note."""

NOTES = {
    "text": "{text}",
    # --- evaluation ---
    "unknown-images": "{count:detection} in {images:image} missing from the ground truth {count:was|were} excluded",
    "below-threshold": "{count:detection} at or below the label threshold {threshold:g}: excluded",
    "repaired-covariances": "{count:detection} with an invalid covariance: replaced by the nearest valid one",
    "empty-masks": "{count:object} without mask pixels: excluded from PDQ, but not from mAP and LRP",
    "objects-outside": "{count:object} with a box outside the image: excluded from PDQ, but not from mAP and LRP",
    "unknown-classes": "{count:class} missing from the ground truth, with ignored probabilities: {names}",
    "repeated-classes": "{count:class} repeated in a later column, which is the one used: {names}",
    "unchecked-classes": "{count:detection} of a class that was not checked in its image: excluded",
    "surplus-detections": "{count:detection} beyond the {most} highest scores of an image (LVIS): excluded",
    "unthresholded-map": "mAP of all detections, without the label threshold: {value:.2f}%",
    "restricted": "restricted to {count:,} of {total:image}; counts in other notes refer to all images",
    "not-standard": "{words}",
    "sums-kept": "not computed, because tables are not kept: {names}",
    # --- tables and readers ---
    "image-level-labels": "{count:,} of {total:image} {count:has|have} labels in {file}: each is evaluated for these "
    "classes and those of its objects",
    "class-hierarchy": "{count:object} added for superclasses in {file}",
    "lvis-rules": "{count:image} of LVIS: each is evaluated for the classes of its objects and of neg_category_ids; "
    "unmatched detections of not_exhaustive_category_ids are ignored by mAP and LRP, and false positives in PDQ",
    "pixelless-masks": "{count:mask} without pixels: excluded",
    "annotations-without-place": "{count:annotation} with neither a bbox nor a mask pixel: excluded",
    "annotations-without-mask": "{count:annotation} without a segmentation: the box is used as mask",
    "annotations-without-box": "{count:annotation} without a bbox: the box around the mask is used",
    "objects-without-mask": "{count:object} without a mask: the box is used as mask",
    "objects-without-place": "{count:object} with neither a bounding_box nor a mask pixel: excluded",
    "objects-outside-challenge": "{count:object} of {count:a class|classes} outside the challenge: excluded",
    "objects-without-metadata": "{count:object} in images without _metadata {count:was|were} excluded",
    "unnamed-challenge-detections": "{count:detection} with label probabilities that sum to at most {least}: excluded",
    "challenge-columns-repeated": "{count:class} repeated in a later column, which is the one used ({names})",
    "lists-in-order": "the ground truth has no file names to match img_names: lists follow the order of image ids",
    "matched-by-name": "{count:image} {count:has|have} another image_id than in the ground truth and {count:is|are} "
    "matched by file_name: {name} has {number}, in the ground truth {other}",
    "scaled-probabilities": "{count:detection} with cls_prob that {count:sums|sum} to more than 1, as from one sigmoid "
    "per class: scaled down by probox.fusion.limit_to_distribution",
    "stated-class-replaced": "{count:detection} of a class missing from the ground truth: the next most probable class "
    "is written",
    "lost-classes": "{count:,} of {total:class} missing from the ground truth, with probabilities that are not "
    "written: {names}",
    "stated-class-lost": "{count:detection} of a class other than the most probable one: the format does not store it",
    "fewer-shards": "{wanted:shard} requested, but only {images:image} with rows: {count:,} written",
    "difficult-objects": "{count:difficult object}: ignored by mAP and LRP, counted by PDQ",
    "boxes-before-first-pixel": "{count:box} {count:begins|begin} before pixel 1, the first one in Pascal VOC; if "
    "these files count from 0, all boxes are read one pixel too far left and up, and one pixel too wide and high",
    "groups-of-objects": "{count:group} of objects (IsGroupOf): ignored by mAP and LRP, counted by PDQ",
    "classes-by-code": "no class-descriptions-boxable.csv beside the file: {count:class} named by {count:its|their} "
    "code",
    "regions-not-labelled": "{count:DontCare region}: detections there are false positives in PDQ only",
    "classes-numbered": "{where}: they are named {names}",
    "class-names-missing": "{file} has no names for {count:class number}: {names}",
    "class-numbers": "class numbers follow the ground truth's category ids in ascending order: 0 is {first}, {last} is "
    "{name}",
    "order-doubtful": "requested order, {order}: {count:,} of {total:box} {count:exceeds its image|exceed their "
    "images}; in the other order, {other:,} {other:does|do}",
    "score-first": "score read from the second column; with the score last, {count:,} of {total:box} would exceed "
    "{count:its image|their images}. Use {file}:score-last if the score comes last.",
    "order-unknown": "score read from the last column (Ultralytics); the second column would fit too. Use "
    "{file}:score-first if the score comes second.",
    "order-unfit": "score read from the last column (Ultralytics): {count:,} of {total:box} {count:exceeds its "
    "image|exceed their images}; with the score second, {other:,} {other:does|do}. Use {file}:score-first if the "
    "score comes second.",
    "all-annotations": "{file} is read without a split: {count:annotation}; {file}:{part} selects a split",
    "files-of-no-sequence": "{count:file} {count:matches|match} no sequence of the ground truth ({name})",
    "polygons": "{count:detection} {count:is a polygon: its box is|are polygons: their boxes are} used",
    "labels-missing": "{count:,} of {total:image} without a label file: treated as images without objects",
    "repeated-lines": "{count:line} repeated in the same label file: each is used once",
    "labels-of-no-image": "{count:label file} without an image: ignored",
    "keypoints-not-read": "keypoints are ignored: only boxes are read",
    "masks-not-validated": "PDQ of a validation compares boxes: its masks have a fraction of the resolution of images",
    "heatmaps-thresholded": "{count:heatmap} written as {count:a mask|masks} of pixels above 0.5: {format} cannot hold "
    "probabilities of pixels",
    "images-looked-for": "path {path!r:.120} does not exist: images were searched in {folder}",
    "split-chosen": "{file} has no val: its {name} images are used",
    "folder-chosen": "{folder} has no data.yaml that lists its images: those in images/{name} are used",
    "nameless-detections": "{count:detection} of {name}, an unknown class: excluded",
    "classes-not-named": "class names are missing: {count:class} assumed, {why}; label quality depends on this number",
    "repeated-images": "{count:image} seen by several processes: counted once",
    "sizes-unknown": "{count:image} without a size: assumed to contain all boxes; give image_size if boxes reach the "
    "border",
    "detections-not-checked": "detections were not checked: fix the ground truth first",
    # --- analyses ---
    "too-few-images-for-intervals": "no confidence intervals: expected two or more images, got {count:,}",
    "few-images": "only {count:image}: confidence intervals of fewer than {least} images tend to be too narrow",
    "infinite-columns": "{names}: infinite, so the confidence interval is undefined",
    "undefined-replicates": "{names}: undefined in {count:,} of {total:replicate}, which {count:was|were} excluded",
    "not-resampled": "no confidence intervals of {names}: resampling is not implemented for {count:it|them}",
    "measured-in-some": "not compared: {names}, which only {results} {many:has|have}",
    "no-classes-compared": "classes are not compared by {names}: values per class are missing",
    "settings-differ": "{first} has {setting} {a}, {second} {b}: compared as evaluated",
    "pdq-not-measured": "PDQ was not measured, so loss breakdown and what-if are missing; evaluate again with "
    "{option:measures=all}",
    "not-rescored": "no constant-variance baseline for PDQ, and no what-if for labels, boxes and covariances: "
    "{problem}",
    "no-constant-baseline": "no constant-variance baseline for PDQ: one half of the images has no match to fit it on",
    "no-label-metrics": "label probabilities were not stored, so label metrics are missing; evaluate again with "
    "{option:measures=all}",
    "last-pixels": "x2 and y2 are about one pixel too small, as if boxes ended on their last pixel: metrics of box "
    "errors count this as an error",
    "background-of-scores": "{count:,} of {total:detection} with a score only: the remaining probability counts as "
    "background",
    "other-images": "{count:,} of {total:detection} in other images {count:was|were} excluded",
    "no-spread": "{count:,} of {total:detection} without covariance {count:was|were} excluded",
    "images-last": "{count:,} of {total:image} {count:has|have} no detections and {count:comes|come} last",
    "images-numbered": "image ids count the file's images from 0; with {option:truth} they are those of the ground "
    "truth",
    "plain-boxes-skipped": "{count:pair} without covariance {count:was|were} skipped",
    "overlaps-only": "no box has a covariance: examples are chosen by IoU instead",
    "no-examples": "no examples: no detection away from the image border matches an object at IoU 0.5",
    # --- calibration ---
    "pinned-calibration": "{option:border=pin} limits the std of edges at the image border, for PDQ only; do not use "
    "these covariances in a filter",
    "not-pinned": "edges are not pinned, although {option:border=pin} was fitted: image sizes are unknown; give the "
    "ground truth of these images ({option:truth})",
    "heatmaps-rounded": "{count:heatmap} rounded to 8 bits, by at most 1/255 per pixel",
    "masks-not-fused": "{count:detection} {count:has a mask, which is|have masks, which are} dropped: boxes are fused",
    "heatmaps-kept": "{count:,} of {total:detection} {count:is a heatmap|are heatmaps}: left unchanged",
    "plain-boxes-kept": "{count:,} of {total:detection} without covariance: left unchanged",
    "classes-not-fitted": "{what}: {count:class} not in the fit {count:uses|use} the values of all classes ({names})",
    "temperature-at-bound": "the temperature {temperature:.3g} is at the bound of the search: the best one is {way}",
    "no-background": "label probabilities sum to 1, without background: a temperature cannot lower their sum",
    "plain-boxes-not-fitted": "{count:,} of {total:matched box} without covariance: excluded from the fit",
    "singular-boxes-not-fitted": "{count:,} of {total:matched box} with a singular covariance: excluded from the fit",
    "pinned-edges-fitted": "{count:,} of {total:edge} {count:is|are} pinned to a std of half the distance to the "
    "image border, which no fit can calibrate; fit to detections made without {option:border=pin}",
    "no-gain": "no held-out gain: cross-validation needs two or more images",
    "no-gain-of-folds": "no held-out gain: without the images of one fold, {problem}",
    "fewer-folds": "{count:image}: {count:fold} instead of {wanted:,}",
    "few-boxes-fitted": "only {count:matched box} to fit to: the fit is unreliable below {least}",
    "few-edges-fitted": "fewer than {least} edges {names}: the factor of all edges is used",
    "few-pairs-of-classes": "{count:class} with fewer than {least} pairs: the factor of all classes is used ({names})",
    "few-detections-of-classes": "{count:class} with fewer than {least} detections: the curve of all classes is used "
    "({names})",
    "learned-from": "std regression on {names} and class, ridge penalty {ridge:g}",
    "nll-worse": "NLL is worse by {by:,.3g} nats: the fit is for {target}, not for NLL",
    "nll-worse-pinned": "NLL is worse by {by:,.3g} nats: the fit is for {target}, with std limited by "
    "{option:border=pin}",
    "nll-worse-held-out": "NLL is worse by {by:,.3g} nats on held-out images, although the fit is for NLL; do not "
    "apply this calibration",
    "fall-below-threshold": "{count:,} of {total:detection} {count:falls|fall} below the label threshold {threshold:g}",
    # --- detectors and fusion ---
    "photos-changed": "{count:photo} changed since the interrupted run: detected again (first: {first})",
    "photos-turned": "{count:photo} rotated upright by {count:its|their} EXIF orientation (first: {first})",
    "photos-as-stored": "{count:photo} not rotated by EXIF: image sizes in the ground truth fit the stored pixels "
    "(first: {first})",
    "photos-with-frames": "{count:photo} with several frames: only the first frame is used (first: {first})",
    "pinned-edges": "{option:border=pin}: {count:,} of {total:edge} {count:has|have} a std of half {count:its|their} "
    "distance to the image border, which raises PDQ but is overconfident; do not use these covariances in a filter",
    # --- metrics ---
    "no-groups": "{names}: not defined per {group}",
    "few-pairs-in-groups": "fewer than {least} pairs, so metrics of matched pairs are unreliable: {names}",
    "few-pairs": "only {count:matched pair} ({pairing}): metrics are unreliable below {least}",
    "no-pairs": "no detection matches an object ({pairing}): metrics of matched pairs are undefined",
    "few-detections": "only {count:detection}: metrics are unreliable below {least}",
    "few-objects": "only {count:object}: metrics are unreliable below {least}",
    "plain-pairs": "{count:,} of {total:matched pair} without covariance: excluded where one is needed",
    "plain-distances": "{count:,} of {total:matched pair} without covariance: energy score and CRPS are distances",
    "singular-pairs": "{count:,} of {total:matched pair} with a singular covariance, without density: excluded",
    "edges-on-border": "{count:,} of {total:edge} {count:lies|lie} on the image border and {count:is|are} excluded",
    "edges-on-border-judged": "{count:,} of {total:edge} {count:lies|lie} on the image border and {count:is|are} "
    "excluded: {inside:.1%} of them are in their 68% interval, errors are {factor:.2g} times their std",
    "overlap-cut": "only pairs with an IoU of at least {least:g} are used, so calibration metrics are optimistic",
    "label-probs-not-kept": "label probabilities were not stored; evaluate again with {option:measures=all} {purpose}",
    "scores-alone": "{count:,} of {total:detection} with a score only: the remaining probability is spread over the "
    "other classes",
    "impossible-classes": "{count:,} of {total:matched pair} {count:gives|give} the true class a probability of 0: "
    "mean ignorance is infinite; ignorance_possible is the mean of the other pairs",
    "crowds-not-calibrated": "{count:,} of {total:detection} in crowds: excluded from score calibration",
    "not-exhaustive-not-calibrated": "{count:,} of {total:detection} without a match, of a class that is not "
    "exhaustively annotated (LVIS): excluded from score calibration",
    "unnamed-not-calibrated": "{count:,} of {total:detection} of unknown classes: excluded from score calibration",
    "surplus-not-calibrated": "{count:,} of {total:detection} beyond the {most} highest scores of an image and class: "
    "excluded from score calibration",
    "no-inverse-covariance": "{count:,} of {total:detection} without an invertible covariance: excluded from MUE by "
    "covariance",
    "pmb-labels-not-kept": "PMB-NLL is undefined: label probabilities were not stored; evaluate again with "
    "{option:measures=all}",
    "pmb-no-density": "PMB-NLL is undefined: none of {count:detection} has a density; give covariances",
    "pmb-floor": "PMB-NLL: {count:,} of {total:object} {count:is|are} far from every detection, or in images with too "
    "few; the value is {without:.2f}, and {floored:.2f} with a floor of 1e-6 objects spread evenly over the image",
    "pmb-infinite": "PMB-NLL: {count:,} of {total:object} {count:is|are} far from every detection, or in images with "
    "too few; the value is infinite in {infinite:,} of {images:image}, and {floored:.2f} on average with a floor of "
    "1e-6 objects spread evenly over the image",
    "pmb-left-out": "PMB-NLL: {count:,} of {total:detection} without a density (no covariance, or a heatmap) "
    "{count:counts|count} as unmatched",
    "pmb-scores-alone": "PMB-NLL: {count:,} of {total:detection} with a score only: the remaining probability counts "
    "as background",
    "pmb-little-background": "PMB-NLL: {count:,} of {total:detection} above 0.1 {count:leaves|leave} less than "
    "{least:g} for background; each false positive among {count:it|them} costs 7 to 14 nats",
    "pmb-crowds": "PMB-NLL: {count:crowd} {count:is|are} excluded; detections inside count as unmatched",
}
"""The sentence of each note. ``{count:image}`` is "2 images", ``{count:is|are}`` agrees with it, and
``{option:keyword=value}`` is spelled by the front end. ``text`` is for sentences without counts that are never merged:
those of readers, metrics and front ends."""

WARNINGS = {
    # --- readers ---
    "probabilities-of-other-classes": "{key}: only {count:,} of {total:detection} with a score of at least "
    "{least:.2g} {count:has|have} it at {count:its|their} category_id: the columns look like another order of "
    "categories; write them in ascending order of category id",
    "image-sizes-swapped": "boxes of {count:,} of {total:image} would fit if width and height were swapped: {order}",
    # --- objects and detections ---
    "no-objects": "the ground truth has no objects: every detection is wrong; check annotations and classes",
    "no-detections": "no detections left to score; check image ids and the label threshold",
    "images-without-detections": "{count:,} of {total:image} with objects {count:has|have} no detections, while the "
    "others have several; if the detector ran on some of the images only, evaluate these: {option:image_ids=IDS}",
    "duplicate-objects": "{count:,} of {total:object} {count:repeats|repeat} another one of the same image, class and "
    "box; remove the duplicates from the ground truth (files joined twice)",
    "duplicate-detections": "{count:,} of {total:detection} {count:repeats|repeat} another one of the same image, "
    "class and box; remove the duplicates (files joined twice, or no non-maximum suppression)",
    "swapped-masks": "<masks>: x and y of the masks look swapped; write x before y in polygons",
    "misplaced-masks": "<masks>: one of them looks scaled; give masks and boxes in pixels of the same image",
    "scaled-masks": "<masks>, and masks are {times:.2g} times as large (median): one of them looks scaled; give masks "
    "and boxes in pixels of the same image",
    "tiny-scores": "no score of {count:detection} is above {highest:.2g}: scores may have been divided by 100; give "
    "probabilities between 0 and 1",
    "constant-scores": "all {count:detection} have the score {score:.3g}, but only {right:.0%} reach IoU 0.5 with an "
    "object of their class; give the detector's own scores, which PDQ and mAP depend on",
    "false-positives-dominate": "{fraction:.0%} of PDQ's denominator TP + FP + FN are false positives: PDQ is "
    "{pdq:.2f}%, and {best:.2f}% at scores > {threshold:.4g} (threshold chosen on these images); evaluate with "
    "{option:label_threshold=auto}, which chooses it on other images",
    # --- classes ---
    "classes-unknown": "only {known:,} of {total:detection} {known:has|have} a class of the ground truth; rename the "
    "detector's classes to those of the ground truth",
    "all-classes-unknown": "none of {count:detection} has a class of the ground truth; rename the detector's classes "
    "to those of the ground truth",
    "classes-disagree": "only {fraction:.0%} of the detections that reach IoU 0.5 with an object have its class; check "
    "the order of classes and the category ids (COCO's go to 90 with gaps)",
    "classes-shifted": "detections that reach IoU 0.5 with an object have another class in {count:,} of {total:class}, "
    "for example {name!r:.40} for {there!r:.40}: class ids look shifted from some id on; check the category ids "
    "(COCO's go to 90 with gaps)",
    # --- boxes ---
    "box-outside-image": "{count:,} of {total:box} outside the image; check the scale of boxes, the order of "
    "images, and image ids that are shifted by one",
    "corner-outside-image": "{count:,} of {total:detection} {count:has|have} a corner more than one std outside the "
    "image: the probability outside is lost; move such corners onto the border with {option:clip=corners}",
    "corners-as-width-and-height": "boxes look like [x1, y1, x2, y2], expected [x, y, width, height]: <read>; write "
    "x2 - x1 and y2 - y1 as width and height",
    "width-and-height-as-corners": "boxes look like [x, y, width, height], expected [x1, y1, x2, y2]: <read>; write "
    "x + width and y + height as x2 and y2",
    "centres-as-corners": "boxes look like [center x, center y, ...], expected the top-left corner first: <read>; "
    "subtract half the width and height from x and y",
    "mirrored-left-to-right": "boxes look mirrored left to right: <read>; give boxes of the image as it is stored: "
    "replace x1 by width - x2 and x2 by width - x1",
    "mirrored-upside-down": "boxes look mirrored upside down: <read>; give boxes of the image as it is stored: "
    "replace y1 by height - y2 and y2 by height - y1",
    "axes-swapped": "boxes look as if y came before x: <read>; write x before y",
    "normalised-boxes": "boxes look like fractions of the image's width and height: <read>; multiply them by width "
    "and height",
    "normalised-corners-as-width-and-height": "boxes look like [x1, y1, x2, y2] in fractions of the image, expected "
    "[x, y, width, height] in pixels: <read>; multiply by width and height, and write x2 - x1 and y2 - y1 as width "
    "and height",
    "input-pixels": "boxes look like pixels of a detector input of {side} x {side}: <read>; scale them back to the "
    "image's width and height",
    "input-pixels-padded-at-end": "boxes look like pixels of a detector input of {side} x {side}, padded at one "
    "end: <read>; multiply by the image's longer side and divide by {side}",
    "input-pixels-padded-around": "boxes look like pixels of a detector input of {side} x {side}, padded at both "
    "ends: <read>; multiply by the image's longer side and divide by {side}, then subtract the padding",
    "boxes-far-from-objects": "in only {right:.0%} of the images the detection with the highest score reaches IoU 0.5 "
    "with an object of any class; check the scale and layout of boxes, the order of images, and image ids that are "
    "shifted by one",
    # --- covariances ---
    "variance-larger-than-image": "{count:,} of {total:probabilistic detection} {count:has|have} a corner whose "
    "standard deviation is larger than the image; give covariances in square pixels of the image",
    "deviations-as-variances": "<sizes> squares: the values look like standard deviations; square them",
    "squared-variances": "<sizes> square roots: the values look like squared variances; take the square root",
    "normalised-variances": "<sizes> products with the squared sides of the image: covariances look divided by the "
    "image's size; give them in square pixels",
    "inverse-variances": "<sizes> inverses: the values look like precision matrices; invert them",
    "variances-in-other-order": "corner errors follow their variances better if these are read as {order}, by "
    "{gain:.2g} nats per coordinate over {count:,} {count:match|matches}; give covariances in the order x1, y1, x2, y2",
    # --- detectors ---
    "no-class-in-truth": "no class of the detector ({names}) is in the ground truth ({theirs}): class ids count from 1",
    "photos-of-other-size": "{count:photo} of another size than in the ground truth: boxes will not fit (first: "
    "{first})",
    "photos-dark": "{count:photo} nearly black, with only the lowest of 16 bits used; rescale {count:it|them} first "
    "(first: {first})",
    "masks-costly": "masks remove {removed:.0%} and add {added:.0%} of the {which}: the network was not trained for "
    "such masks. Lower {option:dropout_rate}, or mask other layers.",
    "idle-option": "{name} has no effect here: it is for --uncertainty {meant}",
    # --- comparisons ---
    "regions-differ": "{masks} {many:was|were} scored against masks, {boxes} against boxes: PDQ is not comparable",
    "conventions-differ": "{text}: their numbers are not comparable",
}
"""The sentence of each warning: what was found, the likely cause or what to do."""

_SHARED = {
    "<read>": "read that way, {after:.0%} of {unit} reach IoU 0.5, as given {before:.0%}",
    "<sizes>": "squared corner errors are {times:,g} times the given variances, but {other:.2g} times their",
    "<masks>": "{count:,} of {total:mask} {count:has|have} an IoU below 0.5 with the box of {count:its|their} object",
}
for _mark, _text in _SHARED.items():
    WARNINGS = {code: sentence.replace(_mark, _text) for code, sentence in WARNINGS.items()}

_OF_IMAGES = {
    "unknown-images", "below-threshold", "repaired-covariances", "empty-masks", "objects-outside",
    "scaled-probabilities", "polygons", "nameless-detections", "unnamed-challenge-detections", "surplus-detections",
    "unchecked-classes",
}  # fmt: skip
"""Codes that count images or detections of one evaluation; other codes count in a ground truth file, which several
evaluations may share."""
UNJUDGED = ("surplus-detections", "unchecked-classes")
"""Codes that count detections that cannot be judged."""
_OF_THESE_IMAGES = {"restricted", "unthresholded-map"}
"""Codes that hold only for exactly the images of one evaluation, neither for a subset nor after a merge."""
_ON_TRUTH = {"no-objects", "duplicate-objects", "swapped-masks", "misplaced-masks", "scaled-masks"}
_NO_ROWS = np.zeros(0, np.int64)


class _Number(int):
    def __format__(self, spec: str) -> str:
        if "|" in spec:
            return spec.split("|")[self != 1]
        return with_count(self, spec) if len(spec) > 1 and spec[0].isalpha() else super().__format__(spec or ",")


class _Option:
    def __format__(self, spec: str) -> str:
        return f"{{option:{spec}}}"  # is spelled later, together with those in texts


@dataclasses.dataclass(frozen=True, init=False)
class Note:
    """Note on excluded or replaced data, or on the limits of a number: a code, a count and the values of its sentence.

    Parameters
    ----------
    code : str
        A key of `NOTES`.
    count : int, optional
        Number of rows, images or classes concerned.
    **fields
        Other values of the sentence; ``result`` names the result that the note is about.

    Examples
    --------
    >>> note = Note("unknown-images", 1, images=1)
    >>> print(note)
    1 detection in 1 image missing from the ground truth was excluded
    >>> note.to_dict()["code"], note.to_dict()["count"]
    ('unknown-images', 1)
    """

    code: str
    count: int | None
    fields: tuple[tuple[str, Value], ...]

    kind = "note"
    _sentences = NOTES

    def __init__(self, code: str, count: int | None = None, /, **fields: Value) -> None:
        self._sentences[code]  # every code has its sentence
        plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in fields.items()}
        put = object.__setattr__  # the dataclass is frozen
        put(self, "code", code)
        put(self, "count", None if count is None else int(count))
        put(self, "fields", tuple(sorted(plain.items())))

    @property
    def message(self) -> str:
        """Return the sentence, keywords spelled as in Python."""
        return self.spell()

    def spell(self, spell: Spelling = python_keyword) -> str:
        """Return the sentence as a front end spells keywords."""
        values = {"count": self.count, **dict(self.fields)}
        numbers = {name: _Number(value) if type(value) is int else value for name, value in values.items()}
        sentence = self._sentences[self.code].format(option=_Option(), **numbers)
        return spell_options(f"{values['result']}: {sentence}" if "result" in values else sentence, spell)

    def with_label(self, spell: Spelling = python_keyword) -> str:
        """Return the sentence after ``note:`` or ``warning:``."""
        return f"{self.kind}: {self.spell(spell)}"

    def __str__(self) -> str:
        return self.spell()

    def to_dict(self, spell: Spelling = python_keyword) -> dict[str, Any]:
        """Return code, count, message and fields, as in JSON output and in stored results."""
        return {"code": self.code, "count": self.count, "message": self.spell(spell), "fields": dict(self.fields)}

    def replace(self, count: int | None, **fields: Value) -> Note:
        """Return the note with another count and other fields."""
        return type(self)(self.code, count, **{**dict(self.fields), **fields})


@dataclasses.dataclass(frozen=True, init=False)
class InputWarning(Note):
    """Warning about a likely mistake in the input, which makes numbers low or meaningless but stops nothing.

    Parameters
    ----------
    code : str
        A key of `WARNINGS`.
    count : int, optional
        Number of rows, images or classes concerned.
    rows : (N,) int64, optional
        The detections concerned, if the warning is about individual ones.
    **fields
        Other values of the sentence.

    Examples
    --------
    >>> print(InputWarning("no-detections"))
    no detections left to score; check image ids and the label threshold
    """

    rows: npt.NDArray[np.int64] = dataclasses.field(repr=False, compare=False)

    kind = "warning"
    _sentences = WARNINGS

    def __init__(
        self, code: str, count: int | None = None, rows: npt.NDArray[np.int64] = _NO_ROWS, /, **fields: Value
    ) -> None:
        super().__init__(code, count, **fields)
        object.__setattr__(self, "rows", rows)

    @property
    def on_truth(self) -> bool:
        """Return whether the warning is about the ground truth, not the detections."""
        return self.code in _ON_TRUTH


def as_notes(notes: Iterable[Note | str]) -> tuple[Note, ...]:
    """Return notes; strings become notes of the code ``text``."""
    return tuple(Note("text", text=note) if isinstance(note, str) else note for note in notes)


def read_notes(words: Iterable[Any], file: str, entry: str = "notes") -> tuple[Note, ...]:
    """Return the notes of a file, in the form of `Note.to_dict`; raise `InputError` for any other form.

    >>> print(*read_notes([{"code": "keypoints-not-read", "count": None, "fields": {}}], "evaluation.json"))
    keypoints are ignored: only boxes are read
    """
    try:
        return tuple(map(_read_note, words))
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        problem = f"expected notes with code, count and fields ({error!r:.80})"
        raise InputError(problem, file=file, entry=entry, remedy="create the file again") from None


def _read_note(words: Any) -> Note:
    code, count, fields = words["code"], words["count"], words["fields"]
    if count is not None and (type(count) is not int or count < 0):
        raise ValueError("expected a count of at least 0")
    if not all(isinstance(value, Value) and len(str(value)) <= LONGEST_TEXT for value in fields.values()):
        raise ValueError("expected texts and numbers as fields")
    note = (InputWarning if code in WARNINGS else Note)(code, count, **fields)
    note.spell()  # raises if a field is missing
    return note


def merge_notes(parts: Iterable[Sequence[Note]], *, of_one: bool = False) -> tuple[Note, ...]:
    """Merge the notes of evaluations of different images: counts of the same code and fields add up.

    Equal counts in a ground truth file are counted once: the evaluations then share that file. Notes keep the order of
    the parts. The note on a restriction to some images is kept for parts `of_one` evaluation only.
    """
    order: list[Any] = []
    groups: dict[Any, list[Note]] = {}
    for notes in parts:
        dropped = _OF_THESE_IMAGES - {"restricted"} if of_one else _OF_THESE_IMAGES
        keyed = [(_key(note), note) for note in notes if note.code not in dropped]
        at = next((order.index(key) for key, _ in keyed if key in groups), len(order))
        for key, note in keyed:
            if key not in groups:
                order.insert(at, key)
            at = order.index(key) + 1
            groups.setdefault(key, []).append(note)
    return tuple(_add_notes(groups[key]) for key in order)


def _key(note: Note) -> tuple[object, ...]:
    return note.code, () if note.code == "unknown-images" else note.fields  # their images add up as well


def _add_notes(notes: Sequence[Note]) -> Note:
    """Return one note with the sum of the counts."""
    first = notes[0]
    if first.count is None or first.code == "restricted":
        return first
    if first.code not in _OF_IMAGES:
        notes = list(dict.fromkeys(notes))
    images = sum(int(dict(note.fields)["images"]) for note in notes) if first.code == "unknown-images" else 0
    return first.replace(sum(note.count or 0 for note in notes), **({"images": images} if images else {}))


def notes_of_part(notes: Iterable[Note], *, first: bool) -> tuple[Note, ...]:
    """Return the notes of a file for one of its parts: those that count images or detections go to the first part."""
    return tuple(note for note in notes if first or note.code not in _OF_IMAGES)


def notes_at_threshold(notes: Sequence[Note], below: int, threshold: float) -> tuple[Note, ...]:
    """Return notes after a label threshold excluded `below` more detections, with one note that counts all of them."""
    total = below + sum(note.count or 0 for note in notes if note.code == "below-threshold")
    others = [note for note in notes if note.code != "below-threshold"]
    return (*others, Note("below-threshold", total, threshold=threshold)) if total else tuple(others)


def notes_of_images(notes: Sequence[Note], part: int, whole: int) -> tuple[Note, ...]:
    """Return the notes for `part` of an evaluation's images; counts in images or detections are unknown and dropped."""
    if part == whole:
        return tuple(notes)
    whole = max([whole, *(int(dict(note.fields)["total"]) for note in notes if note.code == "restricted")])
    kept = [note for note in notes if note.code not in _OF_IMAGES | _OF_THESE_IMAGES]
    return (*kept, Note("restricted", part, total=whole))
