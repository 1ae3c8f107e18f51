"""Hearing what the parts of a model are given and give back, while other threads use the same model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

Hear = Callable[[nn.Module, tuple[Any, ...], Any], None]
"""Told the part, what it was given, and what it gave back; `None` for the latter when it is told as it begins."""


class _Ear:
    """A hook that hears the thread that made it: all threads meet it, and what others ask is none of its business."""

    def __init__(self, hear: Hear | None) -> None:
        self._hear, self._mine = hear, threading.get_ident()

    def __call__(self, part: nn.Module, given: tuple[Any, ...], returned: Any = None) -> None:
        if self._hear is not None and threading.get_ident() == self._mine:
            self._hear(part, given, returned)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies of the model that other threads make meanwhile get one that hears nothing: nobody removes it there."""
        return _Ear, (None,)


@contextmanager
def listening(parts: Iterable[nn.Module], hear: Hear, *, beginning: bool = False) -> Iterator[None]:
    """Inside, `hear` is told of every use of the parts by this thread, when it ends or as it begins."""
    ear = _Ear(hear)
    hooks = [part.register_forward_pre_hook(ear) if beginning else part.register_forward_hook(ear) for part in parts]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
