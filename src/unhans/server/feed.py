"""News of jobs for everybody who watches: one look at the table serves all of them."""

from __future__ import annotations

import asyncio
import logging

from starlette.concurrency import run_in_threadpool

from unhans.errors import UnhansError
from unhans.jobs import Jobs

_EVERY = 0.5  # seconds between two looks
_log = logging.getLogger("unhans.server")


class JobFeed:
    """Watches the table of jobs while the server runs."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._changed = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self.seen = 0  # grows whenever a job changed

    async def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """Stop looking."""
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def next(self, after: int, seconds: float) -> int:
        """Wait until there is news that came after `after`, or for so many seconds."""
        async with self._changed:
            try:
                async with asyncio.timeout(seconds):
                    await self._changed.wait_for(lambda: self.seen > after)
            except TimeoutError:
                pass
            return self.seen

    async def _watch(self) -> None:
        known: int | None = None
        while True:
            try:
                now: int | None = await run_in_threadpool(self._jobs.changes)
            except UnhansError as error:  # a database that is away for a moment comes back
                _log.warning("jobs cannot be watched: %s", error)
                now = known
            if now != known:
                known = now
                async with self._changed:
                    self.seen += 1
                    self._changed.notify_all()
            await asyncio.sleep(_EVERY)
