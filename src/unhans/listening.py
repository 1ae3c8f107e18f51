"""Hearing what the parts of a model are given and give back, while other threads use the same model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

Hear = Callable[[nn.Module, tuple[Any, ...], Any], None]
"""Told the part, what it was given, and what it gave back; `None` for the latter when it is told as it begins."""


@contextmanager
def listening(parts: Iterable[nn.Module], hear: Hear, *, beginning: bool = False) -> Iterator[None]:
    """Inside, `hear` is told of every use of the parts by this thread, when it ends or as it begins.

    Hooks are seen by all threads, and what others ask meanwhile is none of our business.
    """
    mine = threading.get_ident()

    def begun(part: nn.Module, given: tuple[Any, ...]) -> None:
        if threading.get_ident() == mine:
            hear(part, given, None)

    def ended(part: nn.Module, given: tuple[Any, ...], returned: Any) -> None:
        if threading.get_ident() == mine:
            hear(part, given, returned)

    hooks = [
        part.register_forward_pre_hook(begun) if beginning else part.register_forward_hook(ended) for part in parts
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
