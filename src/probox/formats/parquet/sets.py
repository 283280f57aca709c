"""Tables in one or several Parquet files: a file, a folder of files, or the URL of either."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.files.reading import Paths, inside, is_url
from probox.formats.format import Draft
from probox.formats.parquet.shards import ENDS, STARTS, Ids, Shard, pyarrow, shard_names
from probox.notes import Note
from probox.tables.dataset import CLASS_LISTS, MAX_SIDE, PARTLY_ANNOTATED, Dataset, chosen_ids
from probox.tables.geometry import extents_of
from probox.tables.groundtruth import GroundTruth
from probox.tables.heatmaps import WindowHeatmap
from probox.tables.label_probs import LabelProbs, check_matrix_size
from probox.tables.labels import probabilities_of
from probox.tables.masks import Masks, count_pixels, unusable_masks
from probox.tables.table import join_tables, join_values, take_rows

COVARIANCES = ("cov1_xx", "cov1_xy", "cov1_yy", "cov2_xx", "cov2_xy", "cov2_yy")
TRANSPOSED = ("cov1_yx", "cov2_yx")
IMAGE_COLUMNS = ("image_id", "image_width", "image_height", "file_name")
MASK_BOX = ("mask_x0", "mask_y0", "mask_x1", "mask_y1")
RUNS = ("run_y", "run_begin", "run_end")
HEATMAP_BLOCK = ("heatmap_height", "heatmap_width", "block_y", "block_x", "block_height", "block_width")
HEATMAP_BYTES = "heatmap"
OBJECT_COLUMNS = ("object_id", "class", "area", "crowd", *MASK_BOX, *RUNS)

CONNECTIONS = 16
"""Number of remote shards that are opened at a time."""

Columns = dict[str, Any]
Chosen = list[tuple[Shard, list[int]]]


def open_truth(path: Paths) -> TruthSet:
    """Open ground truth in Parquet: a file, a folder of shards, or the URL of either."""
    return TruthSet(path)


def open_detections(path: Paths) -> DetectionSet:
    """Open detections in Parquet: a file, a folder of shards, or the URL of either."""
    return DetectionSet(path)


def probability_names(classes: int) -> list[str]:
    """Return the names of the columns of label probabilities."""
    return [f"prob_{column}" for column in range(classes)]


class _Set:
    """Shards of one table; a single file is a set of one."""

    table: str

    def __init__(self, path: Paths) -> None:
        names = shard_names(path)
        places: list[Paths] = [inside(path, name) if name else path for name in names]
        self._connections = CONNECTIONS if is_url(path) else 1
        self._shards: list[Shard] = self._pool_map(lambda place: Shard(place, self.table), places)
        self._names = names
        self.name = str(path) if names == [""] else str(path).rstrip("/") or str(path)
        self._common: Columns = {}
        first: dict[str, str] = {}
        for shard in self._shards:
            for word, value in self._words(shard).items():
                if self._common.setdefault(word, value) is None:
                    self._common[word] = value
                if value is not None and value != self._common[word]:
                    raise shard.error(
                        f"{DIFFERENCES[word]} {first[word]}",
                        remedy="write all shards of a set from one table",
                    )
                if value is not None:
                    first.setdefault(word, shard.path)
        self.classes: tuple[str, ...] = self._shards[0].classes
        self.notes: tuple[Note, ...] = tuple(
            dict.fromkeys(note for shard in self._shards for note in shard.header["notes"])
        )

    @property
    def shards(self) -> int:
        """Return the number of files."""
        return len(self._shards)

    @cached_property
    def _images(self) -> tuple[Ids, Ids, Ids, Ids]:
        """All image ids in ascending order, with shard, row group and number of rows of each.

        They are read from the column, not from its statistics: statistics may be wrong, and reading them from a damaged
        file can abort the process with a C++ exception, also through a filter of pyarrow.dataset.
        """
        parts = self._pool_map(Shard.read_images, self._shards)
        numbers = np.repeat(np.arange(len(parts)), [len(ids) for ids, _, _ in parts])
        ids, groups, rows = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.lexsort((groups, numbers, ids))
        ids, numbers, groups, rows = ids[order], numbers[order], groups[order], rows[order]
        twice = np.flatnonzero((ids[1:] == ids[:-1]) & (numbers[1:] != numbers[:-1]))
        if len(twice):  # its rows would be counted twice, or split
            one, other = (self._shards[int(numbers[twice[0] + step])].path for step in (0, 1))
            raise InputError(
                f"the image is also in {other}",
                file=one, image=int(ids[twice[0]]), remedy="keep each image in one shard",
            )  # fmt: skip
        return ids, numbers, groups, rows

    def _pool_map(self, function: Callable[[Any], Any], values: Sequence[Any]) -> list[Any]:
        """Apply a function to each value; remote files are read concurrently."""
        with ThreadPoolExecutor(self._connections) as pool:
            return list(pool.map(function, values))

    def fingerprint(self) -> str:
        """Return a SHA-256 of names, sizes and footers of all files, independent of their order."""
        files = zip(self._names, self._shards, strict=True)
        lines = sorted(f"{name}\0{shard.size}\0{shard.footer_hash}\n" for name, shard in files)
        return hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()

    def _all(self) -> Chosen:
        if self.shards > 1:
            _ = self._images  # raises for an image in two shards
        return [(shard, shard.all_groups()) for shard in self._shards]

    def _holding(self, image_ids: Ids) -> Chosen:
        """Return the shards and row groups that hold any of the given ascending image ids."""
        ids, numbers, groups, _ = self._images
        begins, ends = (np.searchsorted(ids, image_ids, side=side) for side in ("left", "right"))
        counts = ends - begins
        rows = np.repeat(begins - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
        chosen: dict[int, list[int]] = defaultdict(list)
        for number, group in np.unique(np.stack([numbers[rows], groups[rows]]), axis=1).T.tolist():
            chosen[number].append(group)
        return [(self._shards[number], found) for number, found in chosen.items()]

    def _words(self, shard: Shard) -> Mapping[str, Any]:
        """Return the properties that all shards must share; None matches any value."""
        raise NotImplementedError


DIFFERENCES = {
    "classes": "has other classes than",
    "category_ids": "has other category ids than",
    "rules": "has other rules than",
    "frequencies": "has other frequencies of classes than",
    "filter_small": "has another filter_small setting than",
    "covariances": "differs in having covariances from",
    "masks": "differs in having masks from",
    "heatmaps": "differs in having heatmaps from",
}


class TruthSet(_Set):
    """Ground truth in Parquet: one row per object, and one row per image without objects; masks as runs."""

    table = "truth"

    @property
    def source(self) -> str:
        """Return the name of the file or set."""
        return self.name

    @property
    def image_ids(self) -> Ids:
        """Return the ids of all images, ascending; only this column is read."""
        return np.unique(self._images[0])

    def read(self) -> GroundTruth:
        """Return the table of all images."""
        return self._join(self._all())

    def select_images(self, image_ids: Ids) -> GroundTruth:
        """Return the table of these images only, as `GroundTruth.select_images` does; raise for unknown ids."""
        wanted = np.unique(image_ids)
        return self._join(self._holding(wanted), wanted)

    def _words(self, shard: Shard) -> Mapping[str, Any]:
        shared = ("classes", "category_ids", "filter_small", "rules", "frequencies")
        return {word: shard.header[word] for word in shared}

    def _join(self, chosen: Chosen, wanted: Ids | None = None) -> GroundTruth:
        """Return one table of some row groups, with all or the wanted images, by ascending image id."""
        parts = [_read_truth(shard, groups) for shard, groups in chosen or [(self._shards[0], [])]]
        if wanted is not None:
            known = np.concatenate([part.image_ids for part in parts])
            chosen_ids(wanted, np.sort(known), file=self.name)
            parts = [part.select_images(np.intersect1d(wanted, part.image_ids)) for part in parts]
        datasets = [part.dataset for part in parts]
        order = np.argsort(np.concatenate([dataset.image_ids for dataset in datasets]), kind="stable")
        if len(parts) == 1:
            return parts[0].replace(dataset=datasets[0].replace(source=self.name), notes=self.notes)
        before = np.cumsum([0, *map(len, datasets)])
        image_rows = np.concatenate([part.image_rows + at for part, at in zip(parts, before, strict=False)])
        image_rows = np.argsort(order)[image_rows]
        by_image = np.argsort(image_rows, kind="stable")
        columns: Columns = {
            name: np.concatenate([getattr(part, name) for part in parts])[by_image]
            for name in ("labels", "boxes", "extents", "areas", "crowd", "ids")
        }
        return parts[0].replace(
            dataset=join_tables(datasets, order).replace(source=self.name),
            image_rows=image_rows[by_image],
            masks=Masks.concatenate([part.masks for part in parts]).take(by_image),
            notes=self.notes,
            **columns,
        )


def _read_truth(shard: Shard, groups: Sequence[int]) -> GroundTruth:
    """Return the images and objects of some row groups."""
    arrow, _ = pyarrow()
    listed = CLASS_LISTS if shard.header["rules"] in PARTLY_ANNOTATED else ()
    table = shard.read([*IMAGE_COLUMNS, *listed, *shard.box_names(), *OBJECT_COLUMNS], groups)
    ids = shard.numbers(table, "image_id", np.int64)
    shard.check_order(ids)
    _, first, place = np.unique(ids, return_index=True, return_inverse=True)
    place = place.reshape(-1)
    sizes: Columns = {}
    for name in ("image_width", "image_height"):
        column = shard.numbers(table, name, np.int32)
        wrong = np.flatnonzero(column != column[first][place])
        if len(wrong):
            raise shard.error(f"rows of one image differ in {name}", image=int(ids[wrong[0]]))
        sizes[name.removeprefix("image_") + "s"] = column[first]
    names = table.column("file_name")
    if not (arrow.types.is_string(names.type) or arrow.types.is_large_string(names.type)):
        raise shard.error(f"expected text, but the column is {names.type}", entry="file_name")
    rows = shard.row_numbers(groups)
    there = np.asarray(table.column("class").is_valid().to_numpy())
    lost = np.flatnonzero(np.asarray(table.column("object_id").is_valid().to_numpy()) & ~there)
    if len(lost):
        raise shard.error(
            "an object has no class",
            image=int(ids[lost[0]]),
            entry=f"row {int(rows[lost[0]])}: class",
            remedy="give every object a class",
        )
    objects = table.filter(arrow.array(there)) if not there.all() else table
    masks = _masks(shard, objects, ids[there], lambda row: f"object {row}")
    boxes, extents = shard.boxes(objects, rows[there])
    areas = shard.numbers(objects, "area", np.float64)
    shard.check_values("area", areas, rows[there], at_least=0.0)
    for name, column in zip((*STARTS, *ENDS), boxes.T, strict=True):
        shard.check_values(name, column, rows[there])
    try:
        file_names = tuple(name or "" for name in names.take(arrow.array(first)).to_pylist())
    except UnicodeDecodeError:
        raise shard.error("expected UTF-8 text", entry="file_name") from None
    lists = {name: _class_lists(shard, table, name, first) for name in listed}
    try:
        return GroundTruth(
            dataset=Dataset(
                classes=shard.classes,
                image_ids=ids[first],
                **sizes,
                file_names=file_names,
                category_ids=shard.header["category_ids"],
                rules="challenge" if shard.header["filter_small"] else shard.header["rules"],
                source=shard.path,
                frequencies=shard.header["frequencies"],
                **lists,
            ),
            image_rows=place[there],
            labels=shard.numbers(objects, "class", np.int32),
            boxes=boxes,
            masks=masks,
            extents=extents,  # type: ignore[arg-type]  # None: the table derives them
            areas=areas,
            crowd=shard.numbers(objects, "crowd", np.bool_),
            ids=shard.numbers(objects, "object_id", np.int64),
        )
    except InputError as error:
        error.file = error.file or shard.path
        raise


def _class_lists(shard: Shard, table: Any, name: str, rows: Ids) -> Any:
    """Return a list of classes from each of these rows."""
    arrow, _ = pyarrow()
    column = table.column(name)
    if not arrow.types.is_list(column.type) or not arrow.types.is_integer(column.type.value_type) or column.null_count:
        raise shard.error(f"expected a list of classes per image, but the column is {column.type}", entry=name)
    return column.take(arrow.array(rows)).to_pylist()


def _masks(shard: Shard, objects: Any, image_ids: Ids, entry: Callable[[int], str]) -> Masks:
    boxes = shard.matrix(objects, MASK_BOX, np.int32)
    counts, columns = _runs(shard, objects)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    runs = np.ascontiguousarray(np.stack(columns, axis=1), dtype=np.int32)
    wrong = np.flatnonzero(unusable_masks(boxes, offsets, runs))
    if len(wrong):
        raise shard.error(
            "expected runs by row and column, not touching, that fill the mask's box to its edges",
            image=int(image_ids[wrong[0]]),
            entry=entry(int(wrong[0])),
        )
    return Masks(boxes, count_pixels(boxes, offsets, runs), offsets, runs)


def _runs(shard: Shard, objects: Any) -> tuple[Ids, list[npt.NDArray[np.int32]]]:
    """Return the number of runs of each object, and the three columns of all runs."""
    arrow, _ = pyarrow()
    counts: list[Ids] = []
    columns = []
    for name in RUNS:
        lists = objects.column(name)
        kind = lists.type
        if not (arrow.types.is_list(kind) or arrow.types.is_large_list(kind)) or lists.null_count:
            raise shard.error(
                f"expected a list of whole numbers per object, but the column is {kind}"
                + (f" with {lists.null_count} missing" if lists.null_count else ""),
                entry=name,
            )
        flat = arrow.table({name: arrow.chunked_array([c.flatten() for c in lists.chunks], kind.value_type)})
        columns.append(shard.numbers(flat, name, np.int32))
        lengths = [np.diff(chunk.offsets.to_numpy()).astype(np.int64) for chunk in lists.chunks]
        counts.append(np.concatenate([np.zeros(0, np.int64), *lengths]))
        if not np.array_equal(counts[0], counts[-1]):
            raise shard.error(f"expected as many numbers as in {RUNS[0]}", entry=name)
    return counts[0], columns


class DetectionSet(_Set):
    """Detections in Parquet: one row per detection."""

    table = "detections"

    @property
    def has_pixels(self) -> bool:
        """Whether rows may have masks or heatmaps."""
        return any(self._words(shard)[name] for shard in self._shards for name in ("masks", "heatmaps"))

    def image_counts(self) -> tuple[Ids, Ids]:
        """Return the ascending ids of images with detections, and their numbers of detections; reads one column."""
        ids, _, _, rows = self._images
        known, place = np.unique(ids, return_inverse=True)
        return known, np.bincount(place.reshape(-1), rows, len(known)).astype(np.int64)

    def read(self) -> Draft:
        """Return all rows by ascending image id."""
        return self._join(self._all())

    def read_images(self, image_ids: Ids) -> Draft:
        """Return the rows of these images by ascending image id; row groups without them are skipped."""
        wanted = np.unique(image_ids)
        return self._join(self._holding(wanted), wanted)

    def pieces(self, image_ids: Ids | None = None) -> Iterator[Draft]:
        """Yield the rows of one row group after the other, optionally of these images only.

        Each image is in one piece. Row groups without wanted rows are skipped.
        """
        wanted = None if image_ids is None else np.unique(image_ids)
        for shard, groups in self._all() if wanted is None else self._holding(wanted):
            last: int | None = None
            for group in groups:
                piece = self._join([(shard, [group])])
                shard.check_order(piece.image_ids, after=last)
                last = int(piece.image_ids[-1])
                piece = piece if wanted is None else _rows_among(piece, wanted)
                if len(piece):
                    yield piece

    def _words(self, shard: Shard) -> Mapping[str, Any]:
        there = {
            "covariances": _has_covariances(shard),
            "masks": MASK_BOX[0] in shard.columns,
            "heatmaps": HEATMAP_BYTES in shard.columns,
        }
        return {"classes": shard.header["classes"], **(there if shard.rows else dict.fromkeys(there))}

    def _join(self, chosen: Chosen, wanted: Ids | None = None) -> Draft:
        """Return the rows of some row groups, of all or the wanted images, by ascending image id."""
        # One by one: a row group's label probabilities may be a matrix that is stored in a smaller form.
        chosen = [(shard, [group]) for shard, groups in chosen for group in groups] or [(self._shards[0], [])]
        rows = [shard.row_numbers(groups) for shard, groups in chosen]
        starts = np.cumsum([0, *map(len, rows)])
        parts = [_read_rows(shard, groups) for shard, groups in chosen]
        found: dict[Shard, list[Ids]] = defaultdict(list)
        for (shard, _), part in zip(chosen, parts, strict=True):
            found[shard].append(part["image_ids"])
        for shard, image_ids in found.items():
            shard.check_order(np.concatenate(image_ids))
        columns: Columns = {}
        for name in parts[0]:
            values = [part[name] for part in parts]
            if name in ("extents", "scores") and any(value is not None for value in values):
                values = [_default(name, part) if part[name] is None else part[name] for part in parts]
            with_rows = [value for value, part in zip(values, parts, strict=True) if len(part["image_ids"])] or values
            alone = len(with_rows) == 1 or with_rows[0] is None
            columns[name] = with_rows[0] if alone else join_values(with_rows)
        order = np.arange(starts[-1]) if len(found) == 1 else np.argsort(columns["image_ids"], kind="stable")
        if wanted is not None:
            order = order[np.isin(columns["image_ids"][order], wanted)]
        if len(found) > 1 or len(order) < starts[-1]:
            columns = {name: value if value is None else take_rows(value, order) for name, value in columns.items()}

        def place(row: int) -> tuple[str, str]:
            at = int(order[row])
            part = int(np.searchsorted(starts, at, side="right")) - 1
            return chosen[part][0].path, f"row {rows[part][at - int(starts[part])]}"

        return Draft(classes=self.classes, source=self.name, notes=self.notes, place=place, **columns)


def _rows_among(draft: Draft, image_ids: Ids) -> Draft:
    known = np.isin(draft.image_ids, image_ids)
    return draft if known.all() else draft.select(np.flatnonzero(known))


def _has_covariances(shard: Shard) -> bool:
    return any(name in shard.columns for name in (*COVARIANCES, *TRANSPOSED))


def _default(name: str, part: Columns) -> npt.NDArray[np.float64]:
    """Return sizes or scores derived from the other columns of a shard."""
    return extents_of(part["boxes"]) if name == "extents" else probabilities_of(part["label_probs"], part["labels"])


def _read_rows(shard: Shard, groups: Sequence[int]) -> Columns:
    """Return the columns of some row groups."""
    probs = probability_names(len(shard.classes))
    given = [name for name in probs if name in shard.columns]
    stated = ["score"] if not given or "score" in shard.columns else []
    covariances = COVARIANCES if _has_covariances(shard) else ()
    masked, mapped = MASK_BOX[0] in shard.columns, HEATMAP_BYTES in shard.columns
    areas = ("area",) if "area" in shard.columns else ()
    of_masks = ("has_mask", *MASK_BOX, *RUNS) if masked else ()
    of_heatmaps = (*HEATMAP_BLOCK, HEATMAP_BYTES) if mapped else ()
    names = ["image_id", *shard.box_names(), "label", *stated, *covariances, *(probs if given else ())]
    names += [*areas, *of_masks, *of_heatmaps]
    table = shard.read(names, groups, optional=TRANSPOSED)
    image_ids = shard.numbers(table, "image_id", np.int64)
    labels = shard.numbers(table, "label", np.int32)
    wrong = np.flatnonzero((labels < 0) | (labels >= max(1, len(shard.classes))))
    if len(wrong):
        raise shard.error(
            f"expected a label below {len(shard.classes)}, but got {labels[wrong[0]]}",
            image=int(image_ids[wrong[0]]),
            remedy="count in the classes of the metadata, from 0",
        )
    scores = shard.numbers(table, "score", np.float64) if stated else None
    if given:
        check_matrix_size(len(table), len(probs), shard.path)
        label_probs = LabelProbs(shard.single_matrix(table, probs))
    else:
        assert scores is not None
        label_probs = LabelProbs.from_scores(scores, labels, len(shard.classes))
    rows = shard.row_numbers(groups)
    boxes, extents = shard.boxes(table, rows)
    if scores is not None:
        shard.check_values("score", scores, rows)
    return {
        "image_ids": image_ids,
        "boxes": boxes,
        "label_probs": label_probs,
        "labels": labels,
        "scores": scores,
        "extents": extents,
        "covariances": _covariances(shard, table) if covariances else None,
        "masks": _masks(shard, table, image_ids, lambda row: f"row {rows[row]}") if masked else None,
        "has_mask": shard.numbers(table, "has_mask", np.bool_) if masked else None,
        "areas": shard.numbers(table, "area", np.float64) if areas else None,
        "heatmaps": _heatmaps(shard, table, image_ids, rows) if mapped else None,
    }


def _heatmaps(shard: Shard, table: Any, image_ids: Ids, rows: Ids) -> tuple[WindowHeatmap | None, ...]:
    arrow, _ = pyarrow()
    column, places = table.column(HEATMAP_BYTES), shard.matrix(table, HEATMAP_BLOCK, np.int64)
    kind = column.type
    if not (arrow.types.is_binary(kind) or arrow.types.is_large_binary(kind)) or column.null_count:
        raise shard.error(f"expected bytes in every row, but the column is {kind}", entry=HEATMAP_BYTES)
    sizes, corners, extents = places[:, :2], places[:, 2:4], places[:, 4:]
    fits = ((sizes >= 0) & (sizes <= MAX_SIDE) & (corners >= 0) & (extents >= 0) & (corners <= sizes - extents)).all(1)
    heatmaps: list[WindowHeatmap | None] = []
    blocks = (chunk[at].as_buffer() for chunk in column.chunks for at in range(len(chunk)))
    for row, block in enumerate(blocks):
        (height, width), corner, extent = sizes[row].tolist(), corners[row].tolist(), extents[row].tolist()
        if not fits[row] or len(block) != extent[0] * extent[1]:
            raise shard.error(
                "expected a block of a heatmap inside its image, with one byte per pixel",
                image=int(image_ids[row]),
                entry=f"row {rows[row]}",
            )
        window = np.frombuffer(block, np.uint8).reshape(extent)
        heatmaps.append(WindowHeatmap((height, width), tuple(corner), window) if height and width else None)
    return tuple(heatmaps)


def _covariances(shard: Shard, table: Any) -> npt.NDArray[np.float64]:
    columns = {name: shard.numbers(table, name, np.float64) for name in COVARIANCES}
    for name in TRANSPOSED:
        given = name in table.column_names
        columns[name] = shard.numbers(table, name, np.float64) if given else columns[name.replace("yx", "xy")]
    order = [columns[f"cov{corner}_{entry}"] for corner in (1, 2) for entry in ("xx", "xy", "yx", "yy")]
    return np.ascontiguousarray(np.stack(order).T).reshape(-1, 2, 2, 2)
