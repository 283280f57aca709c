"""Ways from an evaluation to what higher rooms make of it."""

from __future__ import annotations

from functools import partial, update_wrapper
from importlib import import_module
from typing import Any

__all__ = ["Upstairs"]


class Upstairs:
    """An attribute that hands its owner to a class of a higher room, which is imported when it is first asked for.

    No room imports a higher one, but ``result.plot`` is where people look for plots. So the one thing that an
    evaluation knows of them is a name, given here; without it, importing probox would load them all.

    Parameters
    ----------
    module, name : str
        Where the class is, and what it is called; it is made of the owner alone.
    doc : str
        What the attribute returns.
    method : bool
        It is a function of the owner and more: the attribute is called like a method.
    """

    def __init__(self, module: str, name: str, doc: str, *, method: bool = False) -> None:
        self.module = module
        self.name = name
        self.__doc__ = doc
        self.method = method

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        if owner is None:
            return self
        upstairs = getattr(import_module(self.module), self.name)
        return update_wrapper(partial(upstairs, owner), upstairs) if self.method else upstairs(owner)
