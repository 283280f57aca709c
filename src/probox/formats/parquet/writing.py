"""Tables as Parquet files: compact columns of numbers, in row groups of whole images."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from probox.files.output import Content, Kind
from probox.formats.parquet.sets import (
    COVARIANCES,
    HEATMAP_BLOCK,
    HEATMAP_BYTES,
    MASK_BOX,
    RUNS,
    TRANSPOSED,
    probability_names,
)
from probox.formats.parquet.shards import (
    ENDS,
    FORMAT,
    KEY,
    MAX_DIGITS,
    SIZES,
    STARTS,
    Doubles,
    Ids,
    decimal_array,
    footer_of,
    from_integers,
    pyarrow,
)
from probox.notes import Note
from probox.tables.dataset import CLASS_LISTS
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.heatmaps import count_stored, crop_heatmap
from probox.tables.label_probs import LabelProbs
from probox.tables.labels import probabilities_of
from probox.tables.masks import Masks
from probox.version import __version__

GROUP_BYTES = 16 << 20
"""Approximate number of bytes of a row group before compression."""
ZSTD_LEVEL = 3
DIGEST = "probox_digest"
"""Metadata key of a digest of all row groups."""
MAX_SINGLE = 1 << 24
"""Integers up to 2^24 are exact in float32; label probabilities with more digits are not printed decimals."""


Floats = npt.NDArray[np.floating[Any]]


def says(file: BinaryIO, table: str) -> bool:
    """Return whether the footer marks a Parquet file as such a table."""
    return f'"table": "{table}"'.encode() in footer_of(file)


def _kind_of(table: str) -> Callable[[Path], bool]:
    def has_word(path: Path) -> bool:
        try:
            with open(path, "rb") as file:
                return says(file, table)
        except (OSError, ValueError):
            return False

    return has_word


DETECTIONS_FILE = Kind("detections in Parquet", _kind_of("detections"))
TRUTH_FILE = Kind("ground truth in Parquet", _kind_of("truth"))


def table_content(table: Detections | GroundTruth) -> Content:
    """Return a function that writes a table to an open file.

    Detections are written by ascending image id, otherwise in table order.
    """
    return _truth_content(table) if isinstance(table, GroundTruth) else _detections_content(table)


def by_images(found: Detections) -> Detections:
    """Sort detections by image id, keeping the order within an image."""
    order = np.argsort(found.image_ids, kind="stable")
    return found if np.array_equal(order, np.arange(len(order))) else found.select(order)


def rounding_notes(found: Detections) -> tuple[Note, ...]:
    """Return a note if heatmaps of floating-point numbers are rounded to 8 bits."""
    rounded = sum(heatmap is not None and heatmap.dtype != np.uint8 for heatmap in found.heatmaps or ())
    return (Note("heatmaps-rounded", rounded),) if rounded else ()


def _detections_content(found: Detections) -> Content:
    arrow, _ = pyarrow()
    by_image = by_images(found)
    arrays: dict[str, Any] = {"image_id": arrow.array(by_image.image_ids)}
    arrays |= _as_columns(_box_columns(by_image.boxes, by_image.extents))
    arrays |= _as_columns(_covariance_columns(by_image))
    arrays["label"] = arrow.array(by_image.labels)
    spread = _is_spread(by_image)
    if spread or not _same_bits(probabilities_of(by_image.label_probs, by_image.labels), by_image.scores):
        arrays |= _as_columns({"score": by_image.scores})
    probs, heatmaps = by_image.label_probs, by_image.heatmaps
    scale = None if spread else _scale_of_probs(probs)
    if by_image.areas is not None:
        arrays |= _as_columns({"area": by_image.areas})
    row_bytes = 0
    if by_image.masks is not None:
        arrays |= {"has_mask": arrow.array(by_image.has_mask), **_mask_arrays(by_image.masks)}
        row_bytes += 12 * len(by_image.masks.runs) // max(1, len(found))
    if heatmaps is not None:
        row_bytes += sum(count_stored(heatmap) for heatmap in heatmaps) // max(1, len(found))

    def made_late(rows: slice) -> dict[str, Any]:
        """Return the columns of these rows that would take too much memory for all rows."""
        columns = () if spread else np.ascontiguousarray(probs[rows].matrix.T)
        names = probability_names(len(columns))
        made = {name: _as_array(values, scale) for name, values in zip(names, columns, strict=True)}
        return made if heatmaps is None else made | _heatmap_arrays(heatmaps[rows])

    types = {name: array.type for name, array in (arrays | made_late(slice(0))).items()}
    schema = arrow.schema([arrow.field(name, kind, nullable=False) for name, kind in types.items()])
    whole = arrow.table(arrays)
    row_bytes += sum(kind.bit_width // 8 for name, kind in types.items() if name not in (*RUNS, HEATMAP_BYTES))
    cuts = _cut_at_images(by_image.image_ids, row_bytes)

    def parts() -> Iterator[Any]:
        for rows in cuts:
            part = dict(zip(arrays, whole.slice(rows.start, rows.stop - rows.start).columns, strict=True))
            yield arrow.table(part | made_late(rows), schema=schema)

    words = {
        "table": "detections",
        "classes": list(found.classes),
        "source": found.source,
        "notes": [note.to_dict() for note in found.notes],
    }
    return _row_groups(schema, words, parts(), ["label"])


def _mask_arrays(masks: Masks) -> dict[str, Any]:
    arrow, _ = pyarrow()
    arrays = {name: arrow.array(np.ascontiguousarray(c)) for name, c in zip(MASK_BOX, masks.boxes.T, strict=True)}
    offsets = arrow.array(masks.offsets)
    for name, column in zip(RUNS, masks.runs.T, strict=True):
        values = arrow.array(np.ascontiguousarray(column))
        arrays[name] = arrow.LargeListArray.from_arrays(offsets, values)
    return arrays


def _heatmap_arrays(heatmaps: Sequence[Any]) -> dict[str, Any]:
    """Return heatmaps as blocks of bytes: size of the image, place and size of the block, and its bytes."""
    arrow, _ = pyarrow()
    places = np.zeros((len(heatmaps), len(HEATMAP_BLOCK)), np.int32)
    blocks: list[bytes] = []
    for row, heatmap in enumerate(heatmaps):
        if heatmap is None:
            blocks.append(b"")
            continue
        own = crop_heatmap(heatmap)
        places[row] = *own.shape, *own.corner, *own.window.shape
        blocks.append(own.window.tobytes())
    columns = zip(HEATMAP_BLOCK, np.ascontiguousarray(places.T), strict=True)
    arrays = {name: arrow.array(column) for name, column in columns}
    return arrays | {HEATMAP_BYTES: arrow.array(blocks, arrow.large_binary())}


def _covariance_columns(found: Detections) -> dict[str, Doubles]:
    if found.covariances is None:
        return {}
    columns = {
        f"cov{corner + 1}_{'xy'[row]}{'xy'[column]}": found.covariances[:, corner, row, column]
        for corner in (0, 1)
        for row in (0, 1)
        for column in (0, 1)
    }
    wanted = [*COVARIANCES]
    wanted += [name for name in TRANSPOSED if not _same_bits(columns[name], columns[name.replace("yx", "xy")])]
    return {name: columns[name] for name in wanted}


def _is_spread(found: Detections) -> bool:
    """Return whether label probabilities follow from class and score, so that they need not be stored."""
    if not len(found.classes):
        return True
    again = LabelProbs.from_scores(found.scores, found.labels, len(found.classes))
    return again.equals(found.label_probs)


def _truth_content(truth: GroundTruth) -> Content:
    arrow, _ = pyarrow()
    objects = _object_arrays(truth)
    lists = {name: getattr(truth.dataset, name) for name in CLASS_LISTS if truth.dataset.partly_annotated}
    listed = {name: arrow.array(own, arrow.list_(arrow.int32())) for name, own in lists.items()}
    # An image without objects has one row, whose object columns are null.
    counts = np.diff(truth.dataset.offsets(truth.image_rows))
    image_of_row = np.repeat(np.arange(len(counts)), np.maximum(counts, 1))
    has_object = (counts > 0)[image_of_row]
    object_of_row = np.cumsum(has_object) - 1
    fields = [
        arrow.field("image_id", arrow.int64(), nullable=False),
        arrow.field("image_width", arrow.int32(), nullable=False),
        arrow.field("image_height", arrow.int32(), nullable=False),
        arrow.field("file_name", arrow.string(), nullable=False),
        *(arrow.field(name, lists.type, nullable=False) for name, lists in listed.items()),
        *(arrow.field(name, array.type) for name, array in objects.items()),
    ]
    schema = arrow.schema(fields)
    table = arrow.table(objects)
    runs_per_row = 1 + len(truth.masks.runs) // max(1, len(truth))
    cuts = _cut_at_images(truth.image_ids[image_of_row], 128 + 12 * runs_per_row)

    def parts() -> Iterator[Any]:
        for rows in cuts:
            images = image_of_row[rows]
            chosen = table.take(arrow.array(object_of_row[rows], mask=~has_object[rows]))
            columns = [
                arrow.array(truth.image_ids[images]),
                arrow.array(truth.dataset.widths[images]),
                arrow.array(truth.dataset.heights[images]),
                arrow.array([truth.dataset.file_names[int(image)] for image in images], arrow.string()),
                *(own.take(arrow.array(images)) for own in listed.values()),
                *(column.combine_chunks() for column in chosen.columns),
            ]
            yield arrow.Table.from_arrays(columns, schema=schema)

    words = {
        "table": "truth",
        "classes": list(truth.classes),
        "category_ids": truth.dataset.category_ids.tolist(),
        "filter_small": truth.dataset.rules == "challenge",
        **({"rules": truth.dataset.rules, "frequencies": list(truth.dataset.frequencies)} if listed else {}),
        "source": truth.source,
        "notes": [note.to_dict() for note in truth.notes],
    }
    return _row_groups(schema, words, parts(), ["image_width", "image_height", "file_name", "class"])


def _object_arrays(truth: GroundTruth) -> dict[str, Any]:
    arrow, _ = pyarrow()
    arrays: dict[str, Any] = {
        "object_id": arrow.array(truth.ids),
        "class": arrow.array(truth.labels),
    }
    arrays |= _as_columns(_box_columns(truth.boxes, truth.extents))
    arrays |= _as_columns({"area": truth.areas})
    arrays["crowd"] = arrow.array(truth.crowd)
    return arrays | _mask_arrays(truth.masks)


def _as_columns(columns: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """Convert columns to Arrow arrays, as decimals where that is lossless.

    Numbers printed with a few digits take half the space as decimals: ``0.01561`` is the integer 1561 with scale 5, and
    ``float(1561) / float(100000)`` is the same float, because the division is correctly rounded.
    """
    return {name: _as_array(values, _scale_of(values)) for name, values in columns.items()}


def _as_array(values: npt.NDArray[Any], scale: int | None) -> Any:
    """Convert a column to an Arrow array, of decimals if there is a scale."""
    arrow, _ = pyarrow()
    if scale is None:
        return arrow.array(np.ascontiguousarray(values))
    return decimal_array(_as_integers(values, scale), scale)


def _scale_of(values: npt.NDArray[Any]) -> int | None:
    if not np.issubdtype(values.dtype, np.floating) or not values.size:
        return None
    return _decimal_scale(values[:: max(1, len(values) // 100)], lambda: [values])


def _scale_of_probs(probs: LabelProbs) -> int | None:
    """Return the common scale of all columns of label probabilities."""
    if not probs.size:
        return None
    return _decimal_scale(probs[:: max(1, len(probs) // 100)].matrix, lambda: (matrix for _, matrix in probs.blocks()))


def _decimal_scale(sample: Floats, blocks: Callable[[], Iterable[Floats]]) -> int | None:
    """Return the fewest decimal places that restore all floats bit-identically, None if nine digits are not enough."""
    for scale in range(MAX_DIGITS):
        if _comes_back(sample, scale) and all(_comes_back(values, scale) for values in blocks()):
            return scale
    return None


def _comes_back(values: Floats, scale: int) -> bool:
    limit = MAX_SINGLE if values.dtype == np.float32 else 10**MAX_DIGITS
    if not bool((np.abs(values.astype(np.float64)) * 10.0**scale < limit - 1).all()):  # False for NaN
        return False
    bits = np.uint32 if values.dtype == np.float32 else np.uint64
    again = from_integers(_as_integers(values, scale), scale, values.dtype)
    return np.array_equal(again.view(bits), np.ascontiguousarray(values).view(bits))


def _as_integers(values: Floats, scale: int) -> npt.NDArray[np.int32]:
    return np.rint(values.astype(np.float64) * 10.0**scale).astype(np.int32)


def _box_columns(boxes: Doubles, sizes: Doubles) -> dict[str, Doubles]:
    """Return the columns of boxes and sizes, without those that follow exactly from the others."""
    low, high = boxes[:, :2], boxes[:, 2:]
    columns = dict(zip((*STARTS, *ENDS, *SIZES), (*low.T, *high.T, *sizes.T), strict=True))
    if _same_bits(high - low, sizes):
        return {name: columns[name] for name in (*STARTS, *ENDS)}
    if _same_bits(low + sizes, high):
        return {name: columns[name] for name in (*STARTS, *SIZES)}
    return columns


def _same_bits(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    """Return whether two float64 arrays are bit-identical, including signs of zeros and NaN."""
    return np.array_equal(np.ascontiguousarray(one).view(np.uint64), np.ascontiguousarray(other).view(np.uint64))


def _cut_at_images(image_ids: Ids, bytes_per_row: int) -> list[slice]:
    """Return row ranges of about `GROUP_BYTES` that end at image boundaries; `image_ids` ascend."""
    wanted = max(1, GROUP_BYTES // max(1, bytes_per_row))
    if not len(image_ids):
        return []
    borders = np.flatnonzero(np.concatenate([[True], image_ids[1:] != image_ids[:-1], [True]]))
    cuts: list[slice] = []
    begin = 0
    while begin < len(image_ids):
        at = int(np.searchsorted(borders, begin + wanted, side="right")) - 1
        end = int(borders[at])
        if end <= begin:  # an image larger than a row group
            end = int(borders[at + 1])
        cuts.append(slice(begin, end))
        begin = end
    return cuts


def _row_groups(schema: Any, words: Mapping[str, Any], tables: Iterable[Any], dictionaries: Sequence[str]) -> Content:
    """Return a function that writes each Arrow table as a row group, with `words` in the metadata."""
    arrow, parquet = pyarrow()
    text = json.dumps({"format": FORMAT, "version": __version__, **words}, ensure_ascii=False)
    full = schema.with_metadata({KEY: text.encode()})

    def write(file: Any) -> None:
        hashed = _Hashed(file)
        with parquet.ParquetWriter(
            arrow.PythonFile(hashed, mode="w"),
            full,
            compression="zstd",
            compression_level=ZSTD_LEVEL,
            use_dictionary=list(dictionaries),
            column_encoding={
                name: encoding
                for field in full
                for name, encoding in _encoding(arrow, field)
                if field.name not in dictionaries
            },
            write_statistics=["image_id"],
            store_decimal_as_integer=True,
            write_page_checksum=True,
        ) as writer:
            for table in tables:
                writer.write_table(table.cast(full), row_group_size=max(1, len(table)))
            # Files of equal sizes differ in this digest, which is part of the footer and so of the fingerprint.
            writer.add_key_value_metadata({DIGEST: hashed.digest()})

    return write


class _Hashed:
    """A file object that computes a digest of the written bytes."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._state = hashlib.blake2b(digest_size=16)

    def write(self, data: Any) -> int:
        """Write bytes."""
        self._state.update(data)
        return self._file.write(data)

    def tell(self) -> int:
        """Return the number of written bytes."""
        return self._file.tell()

    def flush(self) -> None:
        """Flush the file."""
        self._file.flush()

    def close(self) -> None:
        """Keep the file open; the caller closes it."""

    def digest(self) -> str:
        """Return the digest of all bytes written so far."""
        return self._state.hexdigest()


def _encoding(arrow: Any, field: Any) -> Iterator[tuple[str, str]]:
    """Yield the path and encoding of a column: split bytes for floats and decimals, deltas for integers."""
    if arrow.types.is_list(field.type):
        yield f"{field.name}.list.element", "DELTA_BINARY_PACKED"
    elif arrow.types.is_decimal(field.type) or arrow.types.is_floating(field.type):
        yield field.name, "BYTE_STREAM_SPLIT"
    elif arrow.types.is_integer(field.type):
        yield field.name, "DELTA_BINARY_PACKED"
