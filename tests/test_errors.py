"""What a message says, and that it says the same after a trip to another process."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from probox import InputError

PLACES = [
    ({}, "x2 is left of x1"),
    ({"file": "d.json"}, "d.json: x2 is left of x1"),
    ({"image": 0}, "image 0: x2 is left of x1"),
    ({"image": "a"}, "image a: x2 is left of x1"),
    ({"entry": "detection 3"}, "detection 3: x2 is left of x1"),
    ({"remedy": "swap them"}, "x2 is left of x1; swap them"),
    (
        {"file": "d.json", "image": 7, "entry": "detection 3", "remedy": "swap them"},
        "d.json: image 7: detection 3: x2 is left of x1; swap them",
    ),
]


def trips(error: InputError) -> list[InputError]:
    return [copy.copy(error), copy.deepcopy(error), *(pickle.loads(pickle.dumps(error, kind)) for kind in range(6))]


@pytest.mark.parametrize(("place", "text"), PLACES)
def test_a_message_names_what_is_known_in_order_and_survives_pickling(place, text):
    error = InputError("x2 is left of x1", **place)
    assert str(error) == text
    for again in trips(error):
        assert type(again) is InputError
        assert str(again) == text
        assert vars(again) == vars(error)


def test_a_message_has_one_line_whatever_names_hold():
    error = InputError("two\nlines", file="a\r\nb.json", entry="c\u2028d", remedy="e\nf")
    assert str(error) == "a b.json: c d: two lines; e f"


def raise_far_away() -> None:
    raise InputError("nothing there", file="f", image=3, entry="e", remedy="look elsewhere")


def test_a_message_crosses_processes():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool, pytest.raises(InputError) as caught:
        pool.submit(raise_far_away).result(timeout=60)
    assert str(caught.value) == "f: image 3: e: nothing there; look elsewhere"
    assert caught.value.remedy == "look elsewhere"


def test_an_input_error_is_a_value_error():
    assert issubclass(InputError, ValueError)
