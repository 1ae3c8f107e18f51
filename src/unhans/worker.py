"""The process that does the work: `python -m unhans.worker`, with its settings as JSON on standard input.

It loads the heavy libraries once and stays single-threaded, so that each job can run in a fork of its own: niced,
with limits on memory and time, and free to die. The fork says itself how it goes and how it ended; the process above
watches it, stops it when asked, and says what became of it when it could not.
"""

from __future__ import annotations

import ctypes
import errno
import importlib
import json
import os
import re
import resource
import secrets
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn

from unhans.errors import Busy, Cancelled, NoSpace, UnhansError
from unhans.jobs import CANCELLED, Handle, Job, Jobs, LeaseLost, pace, stopped_unexpectedly
from unhans.processes import born_at
from unhans.store import Store
from unhans.supervising import WorkerSettings, log, tamed

Handlers = Mapping[str, Callable[[Handle], Any]]
_STOPPED, _NO_MEMORY, _BROKEN = 81, 82, 83  # how the fork ends where the process above has to say what became of it
_LOOK_SECONDS = 0.25
_BEAT_SECONDS = 1.0
_LONGEST_TRACE = 20_000
_PATH = re.compile(r"(?<![\w:/<.])~?/(?:[^\s/'\"]+/)+([^\s/'\",;]*)")
_SAID_MEMORY = re.compile(
    r"can't allocate memory|not enough memory|out of memory|bad_alloc|cannot allocate", re.IGNORECASE
)
_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG

Reason = Literal["", "asked", "stopping", "stalled", "silent", "overdue", "lost"]


def main() -> None:
    """Work until the server is gone or says so (SIGTERM)."""
    settings = WorkerSettings(**json.load(sys.stdin))
    for name in os.environ.keys() - tamed(os.environ, settings).keys():
        del os.environ[name]
    os.environ.update(tamed(os.environ, settings))  # before any library reads it
    try:
        module, _, name = settings.handlers.partition(":")
        stop = _Stop(settings.server)
        _work(settings, getattr(importlib.import_module(module), name), stop)
    except BaseException as error:
        _note(settings, "worker", error)
        raise


class _Stop:
    """Whether it is time to go: somebody said so, or the server is gone."""

    def __init__(self, server: int) -> None:
        self._server = server or os.getppid()
        self._said = False
        signal.signal(signal.SIGTERM, self._hear)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def __bool__(self) -> bool:
        return self._said or os.getppid() != self._server

    def _hear(self, *_: object) -> None:
        self._said = True


def _work(settings: WorkerSettings, handlers: Handlers, stop: _Stop) -> None:
    while claimed := _claim(settings, stop):
        # a fork takes only the thread that forks along: locks that others hold would be held for ever
        assert threading.active_count() == 1
        pid = os.fork()
        if pid == 0:
            _be_child(settings, handlers, claimed)
        _attend(settings, claimed, pid, stop)


@dataclass(frozen=True, slots=True)
class _Claim:
    """A job, and the secret that lets this worker write about it."""

    job: Job
    holder: str
    worker: int  # its process


def _claim(settings: WorkerSettings, stop: _Stop) -> _Claim | None:
    """Wait for a job. The database is closed again on return: neither its threads nor its connections can be forked."""
    born = born_at(os.getpid())
    assert born is not None
    holder = secrets.token_hex(16)
    with _open(settings) as store:
        jobs = Jobs(store)
        while not stop:
            try:
                if job := jobs.claim(holder, os.getpid(), born, settings.lease_seconds):
                    return _Claim(job, holder, os.getpid())
            except (Busy, NoSpace):  # the job waits, and so do we
                time.sleep(_LOOK_SECONDS)
            time.sleep(settings.poll_seconds)
    return None


def _open(settings: WorkerSettings) -> Store:
    database = settings.database if settings.schema else None
    return Store.open(Path(settings.root), database=database, schema=settings.schema or "unhans")


# -- in the fork


def _be_child(settings: WorkerSettings, handlers: Handlers, claim: _Claim) -> NoReturn:
    code = _BROKEN
    try:
        code = _do(settings, handlers, claim)
    except MemoryError:
        code = _NO_MEMORY
    except BaseException as error:  # noqa: BLE001 - nothing may run on into the code of the process above
        _note(settings, claim.job.id, error)
    finally:
        os._exit(code)


def _do(settings: WorkerSettings, handlers: Handlers, claim: _Claim) -> int:
    job, holder = claim.job, claim.holder
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    os.setsid()
    _die_with_parent()
    if os.getppid() != claim.worker:  # it died before that
        return _STOPPED
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    _limit(settings)
    with _open(settings) as store:
        jobs = Jobs(store)
        handle = _Handle(job, Path(settings.root), settings.database, stop)
        pulse = threading.Thread(target=_pulse, args=(jobs, handle, claim, settings), daemon=True)
        pulse.start()
        try:
            result = _handler(handlers, job)(handle)
            _still(handle, pulse)
            _beat(jobs, handle, holder, settings)
            jobs.finish(job.id, holder, "done", "", result)
        except (Cancelled, LeaseLost):
            return _STOPPED
        except BaseException as error:  # noqa: BLE001 - libraries in Rust raise what is not an Exception
            if _is_memory(error):
                return _NO_MEMORY
            _still(handle, pulse)
            _beat(jobs, handle, holder, settings)
            jobs.finish(job.id, holder, "failed", _sentence(settings, handle, error))
        finally:
            _still(handle, pulse)
    return 0


def _still(handle: _Handle, pulse: threading.Thread) -> None:
    """Have the pulse end: what it was about to say is older than what comes now."""
    handle.over.set()
    pulse.join()


def _handler(handlers: Handlers, job: Job) -> Callable[[Handle], Any]:
    if job.kind not in handlers:
        raise UnhansError(f"This version of unhans does not know how to do {job.kind!r}. Update it and try again.")
    return handlers[job.kind]


def _die_with_parent() -> None:
    """Have the system end this process when the one above dies, even while a library holds all of Python up."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)


def _limit(settings: WorkerSettings) -> None:
    os.nice(19)
    memory = settings.memory_bytes or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 8 // 10
    seconds = settings.cpu_seconds
    limits = (
        (resource.RLIMIT_AS, memory, memory),
        (resource.RLIMIT_CPU, seconds, seconds + 5),
        (resource.RLIMIT_CORE, 0, 0),  # a picture of the memory would hold people's texts
    )
    for limit, soft, hard in limits:
        allowed = resource.getrlimit(limit)[1]
        fits = [value if allowed == resource.RLIM_INFINITY else min(value, allowed) for value in (soft, hard)]
        resource.setrlimit(limit, (fits[0], fits[1]))


@dataclass
class _Handle:
    """What the work says of itself. The thread that beats reads it, so saying something costs nothing."""

    job: Job
    root: Path
    database: str | None
    stop: threading.Event
    over: threading.Event = field(default_factory=threading.Event)
    now: tuple[int | None, int | None] = (None, None)
    first: tuple[int, float] = (0, 0.0)
    text: str = ""

    def progress(self, done: int, total: int) -> None:
        if total != self.now[1] or done < (self.now[0] or 0):  # something new is counted
            self.first = done, time.time()
        self.now = done, total

    def step(self, text: str) -> None:
        self.text = text

    def cancelled(self) -> bool:
        return self.stop.is_set()


def _pulse(jobs: Jobs, handle: _Handle, claim: _Claim, settings: WorkerSettings) -> None:
    """Renew the lease until the work is over; end it all if the job is no longer ours, or the worker is gone."""
    pause, longest = 0.1, min(_BEAT_SECONDS, settings.lease_seconds / 4)
    while not handle.over.wait(pause):
        pause = min(longest, pause * 2)
        try:
            asked = _beat(jobs, handle, claim.holder, settings)
        except LeaseLost:
            if not handle.over.is_set():
                os.killpg(0, signal.SIGKILL)
            return
        except Exception:  # noqa: BLE001 - tried again in a second; if it stays so, the lease ends and so do we
            continue
        if asked:
            handle.stop.set()
        if os.getppid() != claim.worker:
            os.killpg(0, signal.SIGKILL)


def _beat(jobs: Jobs, handle: _Handle, holder: str, settings: WorkerSettings) -> bool:
    (done, total), (first, at), now = handle.now, handle.first, time.time()
    since = now if done is None or total is None else pace(first, at, done, total, now)
    lease = settings.lease_seconds
    return jobs.beat(handle.job.id, holder, done, total, handle.text, lease_seconds=lease, since=since)


def _is_memory(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return True
        if isinstance(error, RuntimeError) and _SAID_MEMORY.search(str(error)):  # as torch says it
            return True
        error = error.__cause__ or error.__context__
    return False


def _sentence(settings: WorkerSettings, handle: _Handle, error: BaseException) -> str:
    """What people are told. Where it happened in the code is for the log."""
    if isinstance(error, UnhansError):
        return without_paths(str(error), settings)
    reference = _note(settings, handle.job.id, error)
    done, total = handle.now
    where = f" at {done:,} of {total:,}" if done is not None and total else ""
    if type(error).__name__ == "PanicException":
        return (
            f"A library that reads texts for the model broke down{where} (ref {reference}). What was finished is kept. "
            "The model's tokenizer is the likely cause; try another model, or without that text."
        )
    return (
        f"Something unforeseen happened{where} (ref {reference}). What was finished is kept. Try again; if it happens "
        "again, whoever runs the server finds the reference in the log."
    )


def without_paths(text: str, settings: WorkerSettings) -> str:
    """The text with places of this machine, and the database's address, taken out; names of files stay."""
    if settings.database:
        text = text.replace(settings.database, "the database")
    text = text.replace(settings.root.rstrip("/") + "/", "")
    return _PATH.sub(r"\1", text)


def _note(settings: WorkerSettings, job: str, error: BaseException) -> str:
    """Write what happened into the log, and give the reference that finds it."""
    reference = secrets.token_hex(4).upper()
    trace = "".join(traceback.format_exception(error))[-_LONGEST_TRACE:]
    if settings.database:
        trace = trace.replace(settings.database, "…")
    log(Path(settings.root), {"ref": reference, "job": job, "error": type(error).__name__, "trace": trace})
    return reference


# -- in the process above


def _attend(settings: WorkerSettings, claim: _Claim, pid: int, stop: _Stop) -> None:
    """Watch over the fork until it is gone, and see to it that the job is not left behind."""
    try:
        with _open(settings) as store:
            jobs = Jobs(store)
            reason = _watch(settings, jobs, claim, pid, stop)
            _settle(settings, jobs, claim, _reap(pid), reason)
    finally:
        _reap(pid)


def _watch(settings: WorkerSettings, jobs: Jobs, claim: _Claim, pid: int, stop: _Stop) -> Reason:
    """Until the fork has ended by itself or must be ended; why, comes back."""
    reason: Reason = ""
    still = silent = grace = taken = 0.0
    seen: Any = None
    pause, looked = 0.01, time.monotonic()
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        time.sleep(pause)
        pause = min(_LOOK_SECONDS, pause * 1.5)
        # a machine that slept must not make us think that the fork did: no look counts for more than a second
        passed, looked = min(1.0, time.monotonic() - looked), time.monotonic()
        if stop and not reason:  # before the database is asked, which may be gone as well
            reason = "stopping"
            _signal(pid, signal.SIGTERM)
        if reason:
            grace += passed
            if grace > settings.grace_seconds:
                return reason
            continue
        try:
            now, asked, lease = jobs.held(claim.job.id, claim.holder)
        except LeaseLost:  # it has just ended, or it was given to another
            reason = "lost"
            continue
        except (Busy, NoSpace):
            continue
        still = 0.0 if seen is None or seen[0] != (now.done, now.total, now.step) else still + passed
        silent = 0.0 if seen is None or seen[1] != lease else silent + passed
        seen = (now.done, now.total, now.step), lease
        taken += passed
        if taken > settings.wall_seconds:
            return "overdue"
        if still > settings.stall_seconds:
            return "stalled"
        if silent > settings.lease_seconds:
            return "silent"
        if asked:
            reason = "asked"
            _signal(pid, signal.SIGTERM)
    return reason


def _signal(pid: int, number: signal.Signals) -> None:
    """To the fork and all it started. It is ours and not yet taken note of, so its number is still its own."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:  # it has not yet made a group of its own
        os.kill(pid, number)


def _reap(pid: int) -> int | None:
    """Make an end of the fork and all it started; how it ended comes back, None if that was known already."""
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    _signal(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _settle(settings: WorkerSettings, jobs: Jobs, claim: _Claim, code: int | None, reason: Reason) -> None:
    """Say what became of a job whose fork could not say it."""
    id, holder = claim.job.id, claim.holder
    try:
        job, asked, _ = jobs.held(id, holder)
        if asked or (code == _STOPPED and reason != "stopping"):
            jobs.finish(id, holder, "cancelled", CANCELLED)
        elif reason == "stopping":
            jobs.put_back(id, holder, "The server was stopped. It goes on when the server is back.", counts=False)
        elif reason in ("stalled", "silent", "overdue") or code == -signal.SIGXCPU:
            jobs.finish(id, holder, "failed", _too_long(settings, reason))
        else:
            _settle_death(jobs, job, holder, code)
    except LeaseLost:  # it ended well, or is another's by now
        return


def _too_long(settings: WorkerSettings, reason: Reason) -> str:
    what = {
        "stalled": f"No progress for {_duration(settings.stall_seconds)}.",
        "silent": f"No sign of life for {_duration(settings.lease_seconds)}.",
        "overdue": f"It took more than {_duration(settings.wall_seconds)}.",
    }.get(reason, f"It took more than {_duration(settings.cpu_seconds)} of the processor's time.")
    return f"{what} Stopped. What was finished is kept. Try again to go on from there, or with fewer texts."


def _settle_death(jobs: Jobs, job: Job, holder: str, code: int | None) -> None:
    """The fork died. The system kills who takes too much memory, so with a batch size that is what we take it for."""
    size = job.options.get("batch_size")
    size = size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else None
    halved = "halved_from" in job.options
    killed = code in (-signal.SIGKILL, -signal.SIGABRT)
    if size and size > 1 and not halved and (killed or code == _NO_MEMORY):
        options = job.options | {"batch_size": size // 2, "halved_from": size}
        message = f"Ran out of memory at batch size {size}. What was finished is kept. Trying again with {size // 2}."
        jobs.put_back(job.id, holder, message, options=options)
    elif code == _NO_MEMORY or (killed and halved):
        where = f" at batch size {size}" if size else ""
        advice = f"batch size {size // 2}, " if size and size > 1 else ""
        message = f"Ran out of memory{where}. What was finished is kept. Try {advice}a smaller model or shorter texts."
        jobs.finish(job.id, holder, "failed", message)
    else:
        jobs.put_back(job.id, holder, stopped_unexpectedly(job.done, job.total))


def _duration(seconds: float) -> str:
    for size, name in ((3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:,.0f} {name}{'' if seconds == size else 's'}"
    return f"{seconds:g} seconds"


if __name__ == "__main__":
    main()
