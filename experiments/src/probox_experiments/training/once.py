"""Made once, though several ask at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import wraps
from typing import Generic, ParamSpec, TypeVar

__all__ = ["once"]

Given = ParamSpec("Given")
Made = TypeVar("Made")


class _Kept(Generic[Made]):
    def __init__(self, keep: int) -> None:
        self.keep = keep
        self.lock = threading.Lock()
        self.futures: dict[object, Future[Made]] = {}

    def get(self, key: object, make: Callable[[], Made]) -> Made:
        with self.lock:
            future = self.futures.pop(key, None)
            asked_first = future is None
            if future is None:
                future = Future()
            self.futures[key] = future  # now the last to go
            while len(self.futures) > self.keep:
                del self.futures[next(iter(self.futures))]
        if asked_first:
            try:
                future.set_result(make())
            except BaseException as error:
                with self.lock:
                    self.futures.pop(key, None)
                future.set_exception(error)
                raise
        return future.result()


def once(keep: int) -> Callable[[Callable[Given, Made]], Callable[Given, Made]]:
    """Keep what a function made of its last so many arguments; whoever asks for what is being made waits for it."""

    def decorate(function: Callable[Given, Made]) -> Callable[Given, Made]:
        kept: _Kept[Made] = _Kept(keep)

        @wraps(function)
        def kept_function(*args: Given.args, **options: Given.kwargs) -> Made:
            return kept.get((args, tuple(sorted(options.items()))), lambda: function(*args, **options))

        return kept_function

    return decorate
