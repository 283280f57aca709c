"""Changes to bytes and to JSON values; every one of them is decided by a random generator alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

__all__ = ["Pairs", "Raw", "dump", "mutate_bytes", "mutate_json", "parse"]

TOKENS = (
    b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\\u", b"\\ud800", b"null", b"true", b"NaN", b"Infinity",
    b"-Infinity", b"-", b"-0", b"0", b"1e999", b"-1e999", b"1e-400", b"9" * 400, b"0." + b"1" * 400, b".5", b"+1",
    b"01", b"1.", b"1e", b"\0", b"\x1b[31m", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xf4\x90\x80\x80",
    b" ", b"\n", b"//",
)  # fmt: skip
"""What parsers stumble over."""

NUMBERS = (
    0, 1, -1, 2, 3, 7, 127, 128, 255, 256, 32767, 65535, 65536, 999_999, 1_000_000, 1_000_001, 2**24, 2**31 - 1, 2**31,
    2**32 - 1, 2**32, 2**53, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64, -(2**31), -(2**31) - 1, -(2**63), -(2**63) - 1,
    10**30, 10**300, 0.5, -0.5, 1e-300, 5e-324, 1e300, 1e9, 1.0000001e9, 1e18, 1.7976931348623157e308, 0.1, 1 - 2**-53,
)  # fmt: skip
"""Numbers at the borders of what types and checks can hold."""

WIDTHS = (1, 2, 4, 8)


class Raw(str):
    """JSON text that is written as it is."""


class Pairs(list[tuple[str, Any]]):
    """A JSON object as its pairs, of which several may have the same key."""


RAW = tuple(
    Raw(text)
    for text in (
        "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e-999", "9" * 400, "-" + "9" * 30, "0." + "3" * 300,
        "1E+2", "-0.0", '"\\ud800"', '"\\u0000"', '"\\u001b[31m"', "[" * 200 + "]" * 200,
        '{"a":' * 140 + "1" + "}" * 140, "[" * 3000, "01", "+1", ".5", "1.", "nul", "tru", "'x'", "", "[,]", "{,}",
        "/**/1", "1 1",
    )
)  # fmt: skip


def mutate_bytes(rng: Random, data: bytes, others: Sequence[bytes] = ()) -> bytes:
    """Return the data with one to a few changes; `others` lend pieces to splice in."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        changed = bytearray(rng.choice(BYTE_CHANGES)(rng, changed, others))
    return bytes(changed)


def _flip(rng: Random, data: bytearray, others: Sequence[bytes]) -> bytearray:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return data


def _overwrite(rng: Random, data: bytearray, others: Sequence[bytes]) -> bytearray:
    if data:
        at = rng.randrange(len(data))
        new = rng.choice((bytes([rng.randrange(256)]), b"\0", b"\xff", rng.choice(TOKENS)))
        data[at : at + len(new)] = new
    return data


def _put_number(rng: Random, data: bytearray, others: Sequence[bytes]) -> bytearray:
    """Overwrite a few bytes by a number at a border: what lengths and offsets are made of."""
    width = rng.choice(WIDTHS)
    at = rng.randrange(len(data) + 1)
    value = int(rng.choice(NUMBERS)) + rng.choice((-1, 0, 1))
    data[at : at + width] = (value % 256**width).to_bytes(width, rng.choice(("little", "big")))
    return data


def _insert(rng: Random, data: bytearray, others: Sequence[bytes]) -> bytearray:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.choice((rng.choice(TOKENS), rng.randbytes(rng.randrange(1, 9))))
    return data


def _delete(rng: Random, data: bytearray, others: Sequence[bytes]) -> bytearray:
    at = rng.randrange(len(data) + 1)
    del data[at : at + rng.choice((1, 1, 2, 4, 8, 16, rng.randrange(1, 200)))]
    return data


def _cut(rng: Random, data: bytearray, others: Sequence[bytes]) -> bytearray:
    at = rng.randrange(len(data) + 1)
    return data[:at] if rng.random() < 0.8 else data[at:]


def _repeat(rng: Random, data: bytearray, others: Sequence[bytes]) -> bytearray:
    begin = rng.randrange(len(data) + 1)
    piece = data[begin : begin + rng.randrange(1, 64)] * rng.choice((1, 2, 20))
    at = rng.randrange(len(data) + 1)
    data[at:at] = piece
    return data


def _splice(rng: Random, data: bytearray, others: Sequence[bytes]) -> bytearray:
    other = rng.choice(others) if others else bytes(data)
    at, begin = rng.randrange(len(data) + 1), rng.randrange(len(other) + 1)
    end = begin + rng.randrange(1, 200)
    data[at : at + (end - begin if rng.random() < 0.5 else 0)] = other[begin:end]
    return data


BYTE_CHANGES: tuple[Callable[[Random, bytearray, Sequence[bytes]], bytearray], ...] = (
    _flip, _flip, _overwrite, _overwrite, _put_number, _insert, _delete, _cut, _repeat, _splice,
)  # fmt: skip


# --- JSON ---


def parse(text: bytes) -> Any:
    """Return a JSON value, objects as `Pairs`."""
    return json.loads(text, object_pairs_hook=Pairs)


def dump(value: Any) -> bytes:
    """Return the JSON text of a value, whatever a mutation made of it."""
    return _text(value).encode("utf-8", "surrogatepass")


def _text(value: Any) -> str:
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, Pairs):
        return "{" + ", ".join(f"{json.dumps(key, ensure_ascii=False)}: {_text(item)}" for key, item in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def mutate_json(rng: Random, value: Any) -> Any:
    """Return a value with one to a few changes of its structure; the given one stays as it is."""
    changed = _copy(value)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 4))):
        places = _places(changed)
        if not places:
            return rng.choice(RAW)
        container, key = rng.choice(places)
        rng.choice(JSON_CHANGES)(rng, container, key, places)
    return changed


def _copy(value: Any) -> Any:
    if isinstance(value, Pairs):
        return Pairs((key, _copy(item)) for key, item in value)
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _places(value: Any) -> list[tuple[list[Any], int]]:
    """Return every place of a value: the list or object, and the position in it."""
    found: list[tuple[list[Any], int]] = []
    todo = [value]
    while todo:
        container = todo.pop()
        if isinstance(container, list):
            for at, item in enumerate(container):
                found.append((container, at))
                todo.append(item[1] if isinstance(container, Pairs) else item)
    return found


def _get(container: list[Any], at: int) -> Any:
    return container[at][1] if isinstance(container, Pairs) else container[at]


def _set(container: list[Any], at: int, value: Any) -> None:
    container[at] = (container[at][0], value) if isinstance(container, Pairs) else value


def _replace(rng: Random, container: list[Any], at: int, places: Any) -> None:
    kinds: tuple[Any, ...] = (
        None, True, False, "", "x", "cup", "\x1b[2J", "é" * 50, [], Pairs(), [[]], Pairs([("a", 1)]), rng.choice(RAW),
        rng.choice(NUMBERS), rng.choice(NUMBERS), [rng.choice(NUMBERS)] * rng.choice((1, 2, 4, 5, 500)), 1.5, -3,
        "x" * 5000,
    )  # fmt: skip
    _set(container, at, rng.choice(kinds))


def _nudge(rng: Random, container: list[Any], at: int, places: Any) -> None:
    """Change a number a little, or a lot; anything else becomes a number."""
    value = _get(container, at)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        _set(container, at, rng.choice(NUMBERS))
        return
    try:
        new = rng.choice((value + 1, value - 1, -value, value * 10, value * 1e6, value / 3, float(value), int(value)))
    except (OverflowError, ValueError):
        new = 0
    _set(container, at, new)


def _remove(rng: Random, container: list[Any], at: int, places: Any) -> None:
    if at < len(container):
        del container[at]


def _duplicate(rng: Random, container: list[Any], at: int, places: Any) -> None:
    if at < len(container):
        container.insert(rng.randrange(len(container) + 1), _copy_entry(container, at))


def _copy_entry(container: list[Any], at: int) -> Any:
    entry = container[at]
    return (entry[0], _copy(entry[1])) if isinstance(container, Pairs) else _copy(entry)


def _swap(rng: Random, container: list[Any], at: int, places: Any) -> None:
    """Put here what stands somewhere else: a copy, so that no value holds itself."""
    other, there = rng.choice(places)
    if at < len(container) and there < len(other):
        _set(container, at, _copy(_get(other, there)))


def _rename(rng: Random, container: list[Any], at: int, places: Any) -> None:
    if isinstance(container, Pairs) and at < len(container):
        key = rng.choice(
            (container[rng.randrange(len(container))][0], "", "x", "id", "name", "é", container[at][0] + " ")
        )
        container[at] = (key, container[at][1])


def _reverse(rng: Random, container: list[Any], at: int, places: Any) -> None:
    container.reverse() if rng.random() < 0.5 else rng.shuffle(container)


def _wrap(rng: Random, container: list[Any], at: int, places: Any) -> None:
    if at < len(container):
        value = _get(container, at)
        _set(container, at, rng.choice(([value], Pairs([("x", value)]), [value, value])))


JSON_CHANGES: tuple[Callable[[Random, list[Any], int, Any], None], ...] = (
    lambda rng, container, at, places: _replace(rng, container, at, places) if at < len(container) else None,
    lambda rng, container, at, places: _nudge(rng, container, at, places) if at < len(container) else None,
    lambda rng, container, at, places: _nudge(rng, container, at, places) if at < len(container) else None,
    _remove, _duplicate, _swap, _rename, _reverse, _wrap,
)  # fmt: skip
