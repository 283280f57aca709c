"""Notes and warnings about input and results as data, and the one table of their sentences."""

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
    "unknown-images": "{count:detection} in {images:image} that the ground truth does not have {count:was|were} left "
    "out",
    "below-threshold": "{count:detection} {count:is|are} not above the label threshold {threshold:g}: left out",
    "repaired-covariances": "{count:detection} with an invalid covariance: replaced by the nearest valid one",
    "empty-masks": "{count:object} without a pixel in the mask: left out of PDQ, but not of mAP and LRP",
    "objects-outside": "{count:object} with a box outside the image: left out of PDQ, but not of mAP and LRP",
    "unknown-classes": "{count:class} unknown to the truth, with dropped probabilities: {names}",
    "repeated-classes": "{count:class} named again by a later column, which counts alone: {names}",
    "unthresholded-map": "mAP of all detections, without the label threshold: {value:.2f}%",
    "restricted": "restricted to {count:,} of {total:image}; what other notes count is of all of them",
    "sums-kept": "sums alone are kept, from which {names} do not follow",
    # --- tables and readers ---
    "pixelless-masks": "{count:mask} {count:has|have} no pixel: left out",
    "annotations-without-place": "{count:annotation} with neither a bbox nor a pixel of a mask: left out",
    "annotations-without-mask": "{count:annotation} without a segmentation: the box is used as mask",
    "annotations-without-box": "{count:annotation} without a bbox: the box around the mask is used",
    "objects-without-mask": "{count:object} without a mask: the box is used as mask",
    "objects-without-place": "{count:object} with neither a bounding_box nor a pixel of a mask: left out",
    "objects-outside-challenge": "{count:object} of {count:a class|classes} outside the challenge: left out",
    "objects-without-metadata": "{count:object} in images without _metadata {count:was|were} left out",
    "unnamed-challenge-detections": "{count:detection} with label probabilities of at most {least} in all: left out",
    "challenge-columns-repeated": "{count:class} named again by a later column, which counts alone ({names})",
    "lists-in-order": "the ground truth has no file names to match img_names: lists follow the order of image ids",
    "matched-by-name": "{count:image} {count:has|have} another image_id than in the ground truth, and {count:is|are} "
    "matched by file_name: {name} has {number}, there {other}",
    "scaled-probabilities": "{count:detection} {count:has|have} cls_prob that {count:adds|add} up to more than 1, one "
    "sigmoid per class: scaled down by probox.fusion.limit_to_distribution",
    "stated-class-replaced": "{count:detection} of a class that the truth lacks: the next probable class is stated",
    "lost-classes": "{count:,} of {total:class} unknown to the ground truth, with lost probabilities: {names}",
    "stated-class-lost": "{count:detection} of another class than {count:its|their} most probable one: not kept",
    "fewer-shards": "{wanted:shard} asked for, but only {images:image} with rows: written as {count:,}",
    "difficult-objects": "{count:,} difficult {count:object|objects}: ignored by mAP and LRP, ordinary objects in PDQ",
    "boxes-before-first-pixel": "{count:box} {count:begins|begin} before pixel 1, and Pascal VOC counts from 1: if "
    "these files count from 0, all boxes are read a pixel too far to the left and top, and a pixel too wide and high",
    "groups-of-objects": "{count:group} of objects (IsGroupOf): ignored by mAP and LRP, ordinary objects in PDQ",
    "classes-by-code": "no class-descriptions-boxable.csv beside the file: {count:class} called by {count:its|their} "
    "code",
    "regions-not-labelled": "{count:,} DontCare {count:region|regions}: detections there are false positives of PDQ "
    "alone",
    "classes-numbered": "{where}: they are called {names}",
    "class-names-missing": "{file} leaves out the names of {count:class number}: {names}",
    "class-numbers": "class numbers count the ground truth's classes by category id: 0 is {first}, {last} is {name}",
    "order-doubtful": "read with the {order}, as was asked, {count:,} of {total:box} {count:reaches outside its "
    "image|reach outside their images}; the other order leaves {other:,} outside",
    "score-first": "lines were read as class score cx cy w h: read as class cx cy w h score, {count:,} of {total:box} "
    "would reach outside {count:its image|their images}; {file}:score-last says otherwise",
    "order-unknown": "read as class cx cy w h score; class score cx cy w h would fit too: {file}:score-first reads it",
    "order-unfit": "lines were read as class cx cy w h score, as ultralytics writes; {count:,} of {total:box} then "
    "{count:reaches outside its image|reach outside their images}; read as class score cx cy w h, {other:,} "
    "{other:does|do}: if they are that, name {file}:score-first",
    "all-annotations": "all {count:annotation} of {file} are used; {file}:{part} is one of its parts",
    "files-of-no-sequence": "{count:file} {count:belongs|belong} to no sequence of the ground truth ({name})",
    "polygons": "{count:detection} {count:is a polygon: its box is|are polygons: their boxes are} used",
    "labels-missing": "{count:,} of {total:image} {count:has|have} no label file: taken for images without objects",
    "repeated-lines": "{count:line} {count:stands|stand} twice in {count:its|their} label file: one of each is used",
    "labels-of-no-image": "{count:label file} {count:belongs|belong} to none of the images: left out",
    "keypoints-not-read": "keypoints are not read: the boxes before them are",
    "images-looked-for": "the path {path!r:.120} is not there: images were looked for in {folder}",
    "split-chosen": "{file} has no val: its {name} images are used",
    "folder-chosen": "no data.yaml names the images of {folder}: those in images/{name} are used",
    "nameless-detections": "{count:detection} of {name}, which is no class, {count:was|were} left out",
    "classes-not-named": "classes are not named: {count:,} are counted, {why}; label qualities depend on that number",
    "repeated-images": "{count:image} {count:was|were} seen by several processes: counted once",
    "sizes-unknown": "{count:image} without a size, taken for large enough; give image_size if boxes lie at the border",
    "detections-not-checked": "the detections were not checked: the ground truth must be readable first",
    # --- analyses ---
    "too-few-images-for-intervals": "no intervals: images are drawn anew, and there {count:is only one|are none}",
    "few-images": "{count:image} {count:is|are} few: intervals of fewer than {least} tend to be too narrow",
    "infinite-columns": "{names}: infinite, so there is no interval",
    "undefined-replicates": "{names}: no number in {count:,} of {total:replicate}, which {count:was|were} left out",
    "not-resampled": "no intervals of {names}: probox does not know how to resample {count:it|them}",
    "measured-in-some": "not compared: {names}, for which only {results} {many:was|were} evaluated",
    "no-classes-compared": "no classes are compared by {names}: there are no numbers of single classes",
    "settings-differ": "{first} has {setting} {a}, {second} {b}: they are compared as measured",
    "pdq-not-measured": "PDQ was not measured: no budget, no what-if; evaluate with PDQ among the measures",
    "not-rescored": "nothing was scored anew: {problem}",
    "no-constant-baseline": "no constant sigma for PDQ: one half of the images has no detection to fit it on",
    "no-label-metrics": "label probabilities were not kept, so no rule about labels; evaluate anew with all measures",
    "last-pixels": "x2 and y2 are about a pixel too small: rules about boxes take a box's last pixel for an error",
    "background-of-scores": "{count:,} of {total:detection} with a score alone: what it leaves of 1 is background",
    "other-images": "{count:,} of {total:detection} {count:lies|lie} in other images and {count:was|were} left out",
    "no-spread": "{count:,} of {total:detection} without spread (plain boxes): left out",
    "images-last": "{count:,} of {total:image} {count:has|have} no detection to go by and {count:comes|come} last",
    "images-numbered": "image ids count the file's images from 0; with {option:truth} they are the truth's",
    "plain-boxes-skipped": "{count:pair} of plain boxes, which have no sigma to judge, {count:was|were} passed over",
    "overlaps-only": "no box has a covariance to judge: examples follow the overlap instead",
    "no-examples": "no detection is matched by COCO's rule, away from the border: no examples",
    # --- calibration ---
    "pinned-calibration": "{option:border=pin} limits the std of edges at the image border: for PDQ, not for a filter",
    "not-pinned": "edges are not pinned, though {option:border=pin} was fitted: the sizes of images are not known; "
    "give the ground truth of these images ({option:truth})",
    "heatmaps-kept": "{count:,} of {total:detection} {count:is a heatmap|are heatmaps}: left unchanged",
    "plain-boxes-kept": "{count:,} of {total:detection} {count:is a plain box|are plain boxes}: no sigma to calibrate",
    "classes-not-fitted": "{what}: {count:class} {count:uses|use} the values of all classes ({names})",
    "temperature-at-bound": "the temperature is at the bound of its search, {temperature:.3g}: labels need a {way} one",
    "no-background": "label probabilities leave nothing to background: a temperature cannot move scores towards it",
    "plain-boxes-not-fitted": "{count:,} of {total:matched box} {count:is|are} plain: left out of the fit",
    "singular-boxes-not-fitted": "{count:,} of {total:matched box} with a singular covariance: left out of the fit",
    "pinned-edges-fitted": "{count:,} of {total:edge} {count:is|are} pinned to a std of half the distance to the "
    "image border, and no fit can repair it; fit to detections made without {option:border=pin}",
    "no-gain": "no gain can be told: of one image none can be held out",
    "no-gain-of-folds": "no gain can be told: without the images of one fold, {problem}",
    "fewer-folds": "{count:image}: {count:fold} instead of {wanted:,}",
    "few-boxes-fitted": "only {count:matched box} to fit to, fewer than {least}",
    "few-edges-fitted": "fewer than {least} edges {names}: the factor of all is used",
    "few-pairs-of-classes": "the factor of all serves {count:class} of fewer than {least} pairs ({names})",
    "few-detections-of-classes": "the curve of all serves {count:class} of fewer than {least} detections ({names})",
    "learned-from": "sigmas are learned from {names} and class, with a ridge of {ridge:g}",
    "nll-worse": "NLL gets worse by {by:,.3g}: sigmas are fitted for {target}, not for NLL",
    "nll-worse-pinned": "NLL gets worse by {by:,.3g}: sigmas are fitted for {target}, and limited by "
    "{option:border=pin}",
    "nll-worse-held-out": "NLL gets worse by {by:,.3g} on images held out, though sigmas are fitted for it: do not "
    "apply",
    "fall-below-threshold": "{count:,} of {total:detection} {count:falls|fall} below the label threshold {threshold:g}",
    # --- detectors and fusion ---
    "photos-changed": "{count:photo} changed since the interrupted run, and looked at again (the first: {first})",
    "photos-turned": "{count:photo} turned upright, as the camera noted beside the pixels (EXIF) (the first: {first})",
    "photos-as-stored": "{count:photo} not turned (EXIF), since the truth's sizes fit as stored (the first: {first})",
    "photos-with-frames": "{count:photo} with several frames, of which the first was looked at (the first: {first})",
    "pinned-edges": "{option:border=pin}: {count:,} of {total:edge} {count:has|have} a std of half {count:its|their} "
    "distance to the image border, which raises PDQ and is overconfident; do not use these covariances in a filter",
    # --- metrics ---
    "no-groups": "{names}: no numbers per {group}",
    "few-pairs-in-groups": "fewer than {least} pairs, so numbers of pairs say little: {names}",
    "few-pairs": "only {count:pair} ({pairing}) {count:is|are} scored: fewer than {least} say little",
    "no-pairs": "no detection matches an object ({pairing}): metrics of matched pairs are undefined",
    "few-detections": "only {count:detection} {count:is|are} scored: fewer than {least} say little",
    "few-objects": "only {count:object} {count:is|are} scored: fewer than {least} say little",
    "plain-pairs": "{count:,} of {total:pair} without covariance (plain boxes): left out where one is needed",
    "plain-distances": "{count:,} of {total:pair} without covariance (plain boxes): energy and CRPS are distances",
    "singular-pairs": "{count:,} of {total:pair} with a singular covariance and no density: left out",
    "edges-on-border": "{count:,} of {total:edge} {count:lies|lie} on the image border and {count:is|are} left out",
    "edges-on-border-judged": "{count:,} of {total:edge} {count:lies|lie} on the image border and {count:is|are} left "
    "out: {inside:.1%} of them are in their 68% interval, errors are {factor:.2g} times their std",
    "overlap-cut": "pairs overlap by at least {least:g}, which cuts off large errors: covariances look too good",
    "label-probs-not-kept": "label probabilities were not kept; evaluate anew {purpose}",
    "scores-alone": "{count:,} of {total:detection} with a score alone, what it leaves of 1 spread over other classes",
    "impossible-classes": "{count:,} of {total:pair} {count:gives|give} the true class a probability of 0: "
    "{count:its|their} ignorance is infinite, and so is the mean; ignorance_possible is that of the others",
    "crowds-not-calibrated": "{count:,} of {total:detection} in crowds: left out of scores' calibration",
    "unnamed-not-calibrated": "{count:,} of {total:detection} of unknown classes: left out of scores' calibration",
    "surplus-not-calibrated": "{count:,} of {total:detection} beyond the {most} best: left out of scores' calibration",
    "no-inverse-covariance": "{count:,} of {total:detection} without an invertible covariance: left out of MUE by it",
    "pmb-labels-not-kept": "PMB-NLL: this result has kept no label probabilities, so there is none; evaluate anew",
    "pmb-no-density": "PMB-NLL: none of {count:detection} has a density, so there is none; give covariances",
    "pmb-floor": "PMB-NLL: {count:,} of {total:object} {count:is|are} far from every detection, or in images with too "
    "few: it is {without:.2f}, but {floored:.2f} with a floor of 1e-6 objects spread evenly over the image",
    "pmb-infinite": "PMB-NLL: {count:,} of {total:object} {count:is|are} far from every detection, or in images with "
    "too few: it is infinite in {infinite:,} of {images:image}, but {floored:.2f} with a floor of 1e-6 objects spread "
    "evenly over the image",
    "pmb-left-out": "PMB-NLL: {count:,} of {total:detection} without a density (plain box, heatmap): left unmatched",
    "pmb-scores-alone": "PMB-NLL: {count:,} of {total:detection} with a score alone: what it leaves of 1 is background",
    "pmb-little-background": "PMB-NLL: {count:,} of {total:detection} above 0.1 {count:leaves|leave} less than "
    "{least:g} for background; each that is right about nothing costs 7 to 14",
    "pmb-crowds": "PMB-NLL: {count:crowd} {count:is|are} left out, what was found in {count:it|them} is unmatched",
}
"""The sentence of each note. ``{count:image}`` is "2 images", ``{count:is|are}`` agrees with it, and
``{option:keyword=value}`` is spelled by the front end. ``text`` is for sentences of readers, measures and front ends of
which nothing is counted or merged."""

WARNINGS = {
    # --- readers ---
    "masks-not-read": "{count:detection} {count:has a mask, which is not read: its box is|have a mask, which is not "
    "read: their boxes are} scored; give masks as heatmaps (RVC1 files with masks_file, or Detections with heatmaps=)",
    "probabilities-of-other-classes": "{key}: only {count:,} of {total:detection} with a score of at least "
    "{least:.2g} {count:has|have} it at {count:its|their} category_id; they look like those of another order of "
    "categories: write them in ascending order of category id",
    "partial-annotations": "{count:image} {count:is|are} annotated in some categories only (LVIS: neg_category_ids, "
    "not_exhaustive_category_ids), but {count:is|are} scored as in COCO: right detections of other categories count "
    "as false positives; remove detections of categories that were not checked in their image",
    "image-sizes-swapped": "boxes of {count:,} of {total:image} would fit if width and height were exchanged: {order}",
    # --- objects and detections ---
    "no-objects": "the ground truth has not one object: every detection is wrong; check annotations and classes",
    "no-detections": "there is not one detection to be scored; check image ids and the label threshold",
    "images-without-detections": "{count:,} of {total:image} with objects {count:has|have} no detections, while the "
    "others have several; if the detector saw a part of the images, evaluate it on these: {option:image_ids=IDS}",
    "duplicate-objects": "{count:,} of {total:object} {count:repeats|repeat} another one of the same image, class and "
    "box; remove the copies from the ground truth (files joined twice)",
    "duplicate-detections": "{count:,} of {total:detection} {count:repeats|repeat} another one of the same image, "
    "class and box; leave out the copies (files joined twice, or no suppression)",
    "swapped-masks": "<masks>; x and y of the masks look exchanged: write x before y in polygons",
    "misplaced-masks": "<masks>; give masks and boxes in pixels of the same image: one of them looks scaled",
    "scaled-masks": "<masks>; they are {times:.2g} times as large (median); give masks and boxes in pixels of the "
    "same image: one of them looks scaled",
    "tiny-scores": "no score of {count:detection} is above {highest:.2g}; scores may have been divided by 100: give "
    "probabilities between 0 and 1",
    "constant-scores": "all {count:detection} have the score {score:.3g}, but only {right:.0%} overlap an object of "
    "their class by half; give the detector's own scores: PDQ and mAP go by them",
    "false-positives-dominate": "{fraction:.0%} of PDQ's denominator TP + FP + FN are false positives: PDQ is "
    "{pdq:.2f}%, and {best:.2f}% at scores > {threshold:.4g} (threshold chosen on these images); evaluate with "
    "{option:label_threshold=auto}, which chooses it on other images",
    # --- classes ---
    "classes-unknown": "only {known:,} of {total:detection} {known:names|name} a class that the ground truth has; "
    "give the detector's classes the names that the ground truth uses",
    "all-classes-unknown": "not one of {count:detection} names a class that the ground truth has; give the detector's "
    "classes the names that the ground truth uses",
    "classes-disagree": "only {fraction:.0%} of the detections that overlap an object by half name its class; check "
    "the order of classes and the category ids (COCO's go to 90 and leave some out)",
    "classes-shifted": "detections that overlap an object by half name another class in {count:,} of {total:class}: "
    "{there!r:.40}, for example, is called {name!r:.40}; class ids look shifted from some id on: check the category "
    "ids (COCO's go to 90 and leave some out)",
    # --- boxes ---
    "box-outside-image": "{count:,} of {total:box} outside the image; check the scale of boxes and the order of images",
    "corner-outside-image": "{count:,} of {total:detection} {count:has|have} a corner outside the image by more than "
    "its sigma: the probability outside is lost; move such corners onto the border with {option:clip=corners}",
    "corners-as-width-and-height": "boxes look like [x1, y1, x2, y2] where [x, y, width, height] is expected: <read>; "
    "write x2 - x1 and y2 - y1 as width and height",
    "width-and-height-as-corners": "boxes look like [x, y, width, height] where [x1, y1, x2, y2] is expected: <read>; "
    "write x + width and y + height as x2 and y2",
    "centres-as-corners": "boxes look as if their centre stood in place of the top-left corner: <read>; subtract half "
    "the width and height from x and y",
    "mirrored-left-to-right": "boxes look mirrored left to right: <read>; give boxes of the image as it is stored: "
    "replace x1 by width - x2 and x2 by width - x1",
    "mirrored-upside-down": "boxes look mirrored upside down: <read>; give boxes of the image as it is stored: "
    "replace y1 by height - y2 and y2 by height - y1",
    "axes-swapped": "boxes look as if y came before x: <read>; write x before y",
    "normalised-boxes": "boxes look like fractions of the image's width and height: <read>; multiply them by width "
    "and height",
    "normalised-corners-as-width-and-height": "boxes look like [x1, y1, x2, y2] in fractions of the image where [x, "
    "y, width, height] in pixels is expected: <read>; multiply by width and height, and write x2 - x1 and y2 - y1 as "
    "width and height",
    "input-pixels": "boxes look like pixels of a detector's input of {side} x {side}: <read>; scale them back to the "
    "image's width and height",
    "input-pixels-padded-at-end": "boxes look like pixels of a detector's input of {side} x {side}, padded at one "
    "end: <read>; multiply by the image's longer side and divide by {side}",
    "input-pixels-padded-around": "boxes look like pixels of a detector's input of {side} x {side}, padded at both "
    "ends: <read>; multiply by the image's longer side and divide by {side}, then subtract the padding",
    "boxes-far-from-objects": "the surest detection overlaps an object by half in only {right:.0%} of the images, "
    "whatever its class; check the scale and layout of boxes, and the order of images",
    # --- covariances ---
    "variance-larger-than-image": "{count:,} of {total:probabilistic detection} {count:has|have} a corner whose "
    "standard deviation is larger than the image; give covariances in square pixels of the image",
    "deviations-as-variances": "<sizes> squares; these are likely standard deviations: square them",
    "squared-variances": "<sizes> roots; these are likely squares of variances: take the square root",
    "normalised-variances": "<sizes> products with the squared sides of the image; covariances look divided by the "
    "image's size: give them in square pixels",
    "inverse-variances": "<sizes> inverses; these are likely precision matrices: invert them",
    "variances-in-other-order": "errors of corners follow their variances better if these are read as {order}, by "
    "{gain:.2g} nats per coordinate over {count:,} {count:match|matches}; give covariances in the order x1, y1, x2, y2",
    # --- detectors ---
    "no-class-in-truth": "no class of the detector ({names}) is one of the truth's ({theirs}): ids count from 1",
    "photos-of-other-size": "{count:photo} of another size than the truth says: boxes won't fit (the first: {first})",
    "photos-dark": "{count:photo} nearly black, of 16 bits only the lowest used; scale first (the first: {first})",
    "masks-costly": "masks remove {removed:.0%} and add {added:.0%} of the {which}: the network was not trained for "
    "such masks. Lower {option:dropout_rate}, or mask other layers.",
    "idle-option": "{name} changes nothing here: it is for --uncertainty {meant}",
    # --- comparisons ---
    "regions-differ": "{masks} {many:was|were} scored against masks, {boxes} against boxes: PDQ is not comparable",
    "conventions-differ": "{text}: their numbers are not comparable",
}
"""The sentence of each warning: what was found, the likely cause or what to do."""

_SHARED = {
    "<read>": "read that way, {after:.0%} of the {unit} by half, as they stand {before:.0%}",
    "<sizes>": "squared errors of corners are {times:,g} times as large as their variances, but {other:.2g} times as "
    "large as the variances'",
    "<masks>": "{count:,} of {total:mask} {count:overlaps|overlap} the box of {count:its|their} own object by less "
    "than half",
}
for _mark, _text in _SHARED.items():
    WARNINGS = {code: sentence.replace(_mark, _text) for code, sentence in WARNINGS.items()}

_OF_IMAGES = {
    "unknown-images", "below-threshold", "repaired-covariances", "empty-masks", "objects-outside", "masks-not-read",
    "scaled-probabilities", "polygons", "nameless-detections", "unnamed-challenge-detections",
}  # fmt: skip
"""Codes that count in the images or detections of one evaluation; others count in a file of ground truth, of which
several evaluations may be."""
_OF_THESE_IMAGES = {"restricted", "unthresholded-map"}
"""Codes that hold for the images of one evaluation alone: neither for some of them nor together with others."""
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
    """What was left out or replaced, or what numbers do not tell: a code, a count, and the values in its sentence.

    Parameters
    ----------
    code : str
        A key of `NOTES`.
    count : int, optional
        How many rows, images or classes it is about.
    **fields
        Other values of the sentence; ``result`` is the name of the result that it is about.

    Examples
    --------
    >>> note = Note("unknown-images", 1, images=1)
    >>> print(note)
    1 detection in 1 image that the ground truth does not have was left out
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
        put = object.__setattr__  # the dataclass is frozen for everybody else
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
        """Return the sentence behind "note" or "warning"."""
        return f"{self.kind}: {self.spell(spell)}"

    def __str__(self) -> str:
        return self.spell()

    def to_dict(self, spell: Spelling = python_keyword) -> dict[str, Any]:
        """Return code, count, message and fields for JSON; what is stored too."""
        return {"code": self.code, "count": self.count, "message": self.spell(spell), "fields": dict(self.fields)}

    def replace(self, count: int | None, **fields: Value) -> Note:
        """Return the note with another count and other fields."""
        return type(self)(self.code, count, **{**dict(self.fields), **fields})


@dataclasses.dataclass(frozen=True, init=False)
class InputWarning(Note):
    """What stops nothing, but makes numbers low or meaningless: a likely mistake in the input.

    `rows` are the detections that show it, if it is about single ones.

    Examples
    --------
    >>> print(InputWarning("no-detections"))
    there is not one detection to be scored; check image ids and the label threshold
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
        """Return whether it is about the ground truth, not the detections."""
        return self.code in _ON_TRUTH


def as_notes(notes: Iterable[Note | str]) -> tuple[Note, ...]:
    """Return notes; plain sentences become notes of the code ``text``."""
    return tuple(Note("text", text=note) if isinstance(note, str) else note for note in notes)


def read_notes(words: Iterable[Any], file: str, entry: str = "notes") -> tuple[Note, ...]:
    """Return the notes that a file holds as `Note.to_dict` describes them; others raise `InputError`.

    >>> print(*read_notes([{"code": "keypoints-not-read", "count": None, "fields": {}}], "evaluation.json"))
    keypoints are not read: the boxes before them are
    """
    try:
        return tuple(map(_read_note, words))
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        problem = f"expected notes with code, count and fields ({error!r:.80})"
        raise InputError(problem, file=file, entry=entry, remedy="make the file anew") from None


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
    """Return the notes of evaluations of different images as those of one: counts of the same code and fields add up.

    What is counted in a file is counted once where counts are equal, that is, where several evaluations are of that
    file. Notes stand in the order that they have in the parts. What parts `of_one` evaluation were restricted to is
    said of it too, but not of several evaluations.
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
    return note.code, () if note.code == "unknown-images" else note.fields  # whose images add up, too


def _add_notes(notes: Sequence[Note]) -> Note:
    """Return one note with the counts of all."""
    first = notes[0]
    if first.count is None or first.code == "restricted":
        return first
    if first.code not in _OF_IMAGES:
        notes = list(dict.fromkeys(notes))
    images = sum(int(dict(note.fields)["images"]) for note in notes) if first.code == "unknown-images" else 0
    return first.replace(sum(note.count or 0 for note in notes), **({"images": images} if images else {}))


def notes_of_part(notes: Iterable[Note], *, first: bool) -> tuple[Note, ...]:
    """Return the notes of all of a file that a part of it has: what counts in images stands in the first part alone."""
    return tuple(note for note in notes if first or note.code not in _OF_IMAGES)


def notes_at_threshold(notes: Sequence[Note], below: int, threshold: float) -> tuple[Note, ...]:
    """Return notes after a label threshold left out `below` more detections: one note counts all of them."""
    total = below + sum(note.count or 0 for note in notes if note.code == "below-threshold")
    others = [note for note in notes if note.code != "below-threshold"]
    return (*others, Note("below-threshold", total, threshold=threshold)) if total else tuple(others)


def notes_of_images(notes: Sequence[Note], part: int, whole: int) -> tuple[Note, ...]:
    """Return the notes of `part` of an evaluation's images.

    What was counted in single images is not known of the part and not repeated.
    """
    if part == whole:
        return tuple(notes)
    whole = max([whole, *(int(dict(note.fields)["total"]) for note in notes if note.code == "restricted")])
    kept = [note for note in notes if note.code not in _OF_IMAGES | _OF_THESE_IMAGES]
    return (*kept, Note("restricted", part, total=whole))
