"""Who does the work: this process, or the workers of a Ray cluster.

Work that falls into parts which need nothing of each other is spread over them by a crew. What a part comes to does not
depend on who did it, so the results are the same; only the time is not.

    with crew("ray", workers=4) as hands:
        for number, found in hands.spread(work, parts):
            ...

`work` is called once by everyone who works, with whom to tell how far it is, and gives the function that does a part:
so a model is sent, or opened, once for each worker. On Ray it must be something that pickle can send.

Ray itself is the extra `unhans[ray]`. Its actors are used and not Ray Data: parts are then read as they are needed and
never all at once, a part whose worker died goes to another one, and a worker that takes its work down every time ends
with a sentence instead of starting again for ever.
"""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypeVar

from unhans import __version__
from unhans.errors import BadOption, Cancelled, ModelFailed, UnhansError, Unsupported
from unhans.scoring import How

HERE = "here"
_RAY = "ray"
_TRIES = 3  # times that one part may take its worker down
_STARTS = 2  # times that a Ray of our own is tried to be started
_PATIENCE = 0.2  # seconds between two questions whether to stop
_LONGEST = 900  # seconds that nobody may come for
P = TypeVar("P")
R = TypeVar("R")
Work = Callable[[How], Callable[[P], R]]
"""What is to be done: opened once by everyone who works, it gives the function that does a part."""


class Crew(Protocol):
    """Those who work."""

    def spread(self, work: Work[P, R], parts: Iterable[P], how: How | None = None) -> Iterator[tuple[int, R]]:
        """What each part comes to, with its number, as they are finished; parts are taken as they are needed.

        `how.progress` hears how far it is inside the part at hand, where there is but one at a time.
        """


class Here:
    """This process, one part after the other."""

    def spread(self, work: Work[P, R], parts: Iterable[P], how: How | None = None) -> Iterator[tuple[int, R]]:
        """The parts in their order."""
        how = how or How()
        act = work(how)
        for number, part in enumerate(parts):
            _check(how, number)
            yield number, act(part)


def check_place(on: str) -> str:
    """Where the work is to be done, if it is a place at all: here, ray, or ray:// with an address."""
    if on in (HERE, _RAY) or (on.startswith("ray://") and len(on) > len("ray://")):
        return on
    raise BadOption(
        f"Work can be done here, on ray (started on this machine), or on ray://ADDRESS of a cluster, not on {on!r}."
    )


def check_crew(on: str, workers: int | None) -> None:
    """Refuse a crew that there cannot be."""
    if check_place(on) == HERE and workers is not None:
        raise BadOption("workers are Ray's: say on='ray' (--on ray) as well, or leave them out.")
    if workers is not None and workers < 1:
        raise BadOption(f"workers must be at least 1, not {workers}.")


@contextmanager
def crew(on: str | Crew = HERE, workers: int | None = None) -> Iterator[Crew]:
    """Those who work here, or on Ray: on this machine (`ray`) or on a cluster (`ray://host:10001`, `ray://auto`).

    `ray://auto` is the cluster that this machine is a part of. A Ray that runs in this process already is used as it
    is. Without `workers` there are as many as the cluster has graphics cards, or else processors. A crew that is given
    is used, and left to whoever made it.
    """
    if not isinstance(on, str):
        yield on
        return
    check_crew(on, workers)
    if on == HERE:
        yield Here()
    else:
        with _connected(on, workers) as ray:
            hands = RayCrew(ray, workers or _room(ray))
            try:
                yield hands
            finally:
                hands.dismiss()


@dataclass
class _Given:
    """A part to be done, by whom, and how often it was tried."""

    number: int
    part: Any
    worker: Any = None
    tries: int = 0


class RayCrew:
    """Workers of Ray, each a process with a processor (or a graphics card) of its own and one part at a time."""

    def __init__(self, ray: Any, size: int) -> None:
        self._ray, self._size = ray, size
        self._kind = ray.remote(num_cpus=1, num_gpus=int(_cards(ray) > 0), max_restarts=0)(_Worker)
        self._coming: dict[Any, Any] = {}  # those who were sent for, by what tells that they came
        self._idle: list[Any] = []
        self._lost = self._works = 0

    def spread(self, work: Work[P, R], parts: Iterable[P], how: How | None = None) -> Iterator[tuple[int, R]]:
        """The parts as they are finished. One whose worker died is given to another."""
        how, ahead = how or How(), (_Given(number, part) for number, part in enumerate(parts))
        self._works += 1
        sent = [self._sent(work)]  # in a list Ray passes it on unopened: who has it already need not read it again
        waiting = deque(islice(ahead, self._size))
        busy: dict[Any, _Given] = {}
        self._send_for(len(waiting) - len(self._idle) - len(self._coming))
        done, came = 0, time.monotonic()
        try:
            while True:
                while self._idle and (waiting or _more(waiting, ahead)):
                    given = waiting.popleft()
                    given.worker = self._idle.pop()
                    busy[given.worker.do.remote(self._works, sent, given.part)] = given
                if not busy and not waiting:
                    return
                _check(how, done)
                came = time.monotonic() if busy else came
                for ref in self._ready([*busy, *self._coming], came):
                    if ref not in busy:
                        self._welcome(ref)
                        continue
                    given = busy.pop(ref)
                    if (made := self._made(ref, given)) is None:
                        waiting.appendleft(given)
                        continue
                    self._idle.append(given.worker)
                    done += 1
                    yield given.number, made[0]
        finally:  # whoever is still at it works for nobody now
            self._let_go(given.worker for given in busy.values())

    def dismiss(self) -> None:
        """Let all of them go."""
        self._let_go([*self._idle, *self._coming.values()])
        self._idle, self._coming = [], {}

    def _sent(self, work: Any) -> Any:
        try:
            return self._ray.put(work)
        except (TypeError, AttributeError, ValueError) as error:  # what pickle says of locks, files and the like
            raise Unsupported(
                f"This cannot be sent to other processes: {error}. Nothing was done; leave --on out, or load the model "
                "from a folder."
            ) from error

    def _send_for(self, more: int) -> None:
        for _ in range(more):
            worker = self._kind.remote()
            self._coming[worker.come.remote()] = worker

    def _let_go(self, workers: Iterable[Any]) -> None:
        if self._ray.is_initialized():  # they went with a Ray that is shut down; asked again, Ray would start a new one
            for worker in workers:
                self._ray.kill(worker)

    def _ready(self, refs: list[Any], came: float) -> list[Any]:
        """What has happened since, or nothing for a moment."""
        ready, _ = self._ray.wait(refs, num_returns=1, timeout=_PATIENCE)
        if not ready and time.monotonic() - came > _LONGEST:
            raise Unsupported(
                f"No worker has come for {_LONGEST // 60} minutes: the cluster has no processor free. What is finished "
                "is kept; try again when it has, or with fewer --workers."
            )
        return list(ready)

    def _welcome(self, ref: Any) -> None:
        """Somebody came, or will not."""
        worker = self._coming.pop(ref)
        try:
            version = self._ray.get(ref)
        except self._ray.exceptions.RayTaskError:
            raise
        except self._ray.exceptions.RayError as error:
            self._replace(f"A worker could not start ({_first_line(error)}).")
            return
        if version != __version__:
            raise Unsupported(
                f"The workers have unhans {version}, and this is {__version__}: results could differ. Nothing was "
                "done; install the same version on both."
            )
        self._idle.append(worker)

    def _made(self, ref: Any, given: _Given) -> tuple[Any] | None:
        """What a part came to; None if its worker died over it, and it is to be tried again."""
        given.tries += 1
        try:
            made: tuple[Any] = self._ray.get(ref)
        except self._ray.exceptions.RayTaskError as error:
            self._idle.append(given.worker)  # it is well, the part is not
            if isinstance(error.cause, UnhansError):
                raise error.cause from None
            raise
        except self._ray.exceptions.RayError as error:  # died with its process or its machine
            if given.tries >= _TRIES:
                raise ModelFailed(
                    f"Part {given.number + 1:,} took down the worker {given.tries} times ({_first_line(error)}). What "
                    "is finished is kept. Perhaps memory ran out: try smaller parts, or fewer --workers."
                ) from error
            self._send_for(1)
            return None
        self._lost = 0
        return made

    def _replace(self, what: str) -> None:
        self._lost += 1
        if self._lost >= _TRIES:
            raise Unsupported(f"{what} What is finished is kept; is unhans installed on the machines of the cluster?")
        self._send_for(1)


class _Worker:
    """One worker, in a process of Ray's: it holds what it worked on last."""

    def __init__(self) -> None:
        self._number, self._act = 0, None

    def come(self) -> str:
        """Tells which version of the work it can do."""
        return __version__

    def do(self, number: int, sent: list[Any], part: Any) -> tuple[Any]:
        """What a part comes to, by this work."""
        if number != self._number:
            import ray

            self._act = None  # two models may be one too many
            self._act = ray.get(sent[0])(How())
            self._number = number
        assert self._act is not None
        return (self._act(part),)


def _more(waiting: deque[_Given], ahead: Iterator[_Given]) -> bool:
    waiting.extend(islice(ahead, 1))
    return bool(waiting)


def _check(how: How, done: int) -> None:
    if how.cancelled is not None and how.cancelled():
        raise Cancelled(f"Stopped after {done:,} parts; what is finished is kept.")


def _cards(ray: Any) -> int:
    return int(ray.cluster_resources().get("GPU", 0))


def _room(ray: Any) -> int:
    """How many workers the cluster has room for."""
    return max(1, _cards(ray) or int(ray.cluster_resources().get("CPU", 1)))


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].strip(" .")


@contextmanager
def _connected(on: str, workers: int | None) -> Iterator[Any]:
    """Ray, started on this machine or connected to a cluster, and left again; one that runs already stays."""
    private = on == _RAY
    told = {name: os.environ.get(name, "").lower() for name in _ALONE}
    late = private and "ray" in sys.modules and told != _ALONE
    other = [name for name, value in told.items() if private and value not in ("", _ALONE[name])]
    for name, value in (_PRIVATE if private else _QUIET).items():
        os.environ.setdefault(name, value)  # Ray reads them when it is imported, and so do the processes it starts
    if private:  # Ray would write a token of its own into the home folder
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    try:
        import ray
    except ImportError as error:
        raise Unsupported("Ray is not installed: pip install 'unhans[ray]'.") from error
    with ExitStack() as stack:
        if not ray.is_initialized():
            if other:
                raise Unsupported(
                    f"{other[0]} is set to {os.environ[other[0]]!r}, and a Ray of our own listens to this machine "
                    "alone and asks for a token. Nothing was done; unset it, or call ray.init() yourself, as you want "
                    "it, and it will be used."
                )
            if late:
                raise Unsupported(
                    "Ray was imported before it could be told to listen to this machine alone. Nothing was done; call "
                    "ray.init() yourself, as you want it, and it will be used."
                )
            _begin(ray, on, _own(stack, workers) if private else {"address": _address(on)}, _STARTS if private else 1)
            stack.callback(ray.shutdown)
        yield ray


def _begin(ray: Any, on: str, how: dict[str, Any], times: int) -> None:
    """Start it, or connect; on a busy machine Ray may give up too early the first time."""
    for left in reversed(range(times)):
        try:
            ray.init(**how, log_to_driver=False, logging_level="ERROR")
            return
        except Exception as error:  # Ray's own, gRPC's and plain ones have no other common root
            ray.shutdown()
            if not left:
                raise Unsupported(f"Ray cannot be used at {on} ({_first_line(error)}). Nothing was done.") from error


def _address(on: str) -> str:
    return "auto" if on == "ray://auto" else on


def _own(stack: ExitStack, workers: int | None) -> dict[str, Any]:
    """A Ray of our own: nobody else can reach it, and nothing of it stays."""
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True))
    # Ray refuses more workers than processors, and who asks for more gets them
    size = max(workers or 0, os.cpu_count() or 1)
    return {"address": "local", "num_cpus": size, "include_dashboard": False, "_temp_dir": folder}


_QUIET = {"RAY_USAGE_STATS_ENABLED": "0"}
_ALONE = {
    "RAY_AUTH_MODE": "token",  # other people on this machine cannot hand it work
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # despite its name: listen at 127.0.0.1 only, on every system
}
_PRIVATE = _QUIET | _ALONE | {"RAY_worker_niceness": "0"}  # workers do what this process would do, and no less
