"""Real workers: what they finish is kept, what they cannot finish is told, and nothing survives them."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import pytest

from databases import KINDS, new_database
from small_work import items
from unhans.jobs import Job, Jobs
from unhans.processes import alive
from unhans.store import Store
from unhans.supervising import Supervisor, WorkerSettings, log, tamed
from unhans.worker import without_paths

PATHS = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}


class Office:
    """A workspace and its queue."""

    def __init__(self, root: Path, kind: str) -> None:
        self.root, self.database = root, new_database() if kind == "postgresql" else None
        self.store = Store.open(root, database=self.database, create=True)
        self.jobs = Jobs(self.store)

    def settings(self, **options) -> WorkerSettings:
        usual = {"handlers": "small_work:HANDLERS", "lease_seconds": 5.0, "poll_seconds": 0.02, "grace_seconds": 0.5}
        return WorkerSettings(str(self.root), self.database, **usual | {"server": os.getpid()} | options)

    @contextmanager
    def worker(self, **options) -> Iterator[subprocess.Popen]:
        process = subprocess.Popen(
            [sys.executable, "-m", "unhans.worker"],
            stdin=subprocess.PIPE,
            env=os.environ | PATHS | {"HF_TOKEN": "a-secret", "HUGGING_FACE_HUB_TOKEN": "a-secret"},
        )
        process.stdin.write(json.dumps(asdict(self.settings(**options))).encode())
        process.stdin.close()
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)

    def add(self, kind: str, **options) -> Job:
        return self.jobs.add(kind, project=None, by="ann", options=options)

    def ended(self, job: Job) -> Job:
        until(lambda: self.jobs.get(job.id).finished)
        return self.jobs.get(job.id)

    def process_of(self, job: Job) -> tuple[int, float]:
        """The process that does this job now."""
        file = self.root / f"{job.id}.pid"
        until(file.exists)
        pid, born = file.read_text().split()
        file.unlink()
        return int(pid), float(born)

    def items_of(self, job: Job) -> list[int]:
        connection = items(self.root)
        found = connection.execute("SELECT item FROM items WHERE job = ? ORDER BY item", (job.id,)).fetchall()
        connection.close()
        return [item for (item,) in found]

    def done_by(self, job: Job, pid: int) -> int:
        connection = items(self.root)
        (found,) = connection.execute("SELECT count(*) FROM items WHERE job = ? AND pid = ?", (job.id, pid)).fetchone()
        connection.close()
        return found

    def records(self) -> list[dict]:
        return [json.loads(line) for line in (self.root / "logs" / "jobs.jsonl").read_text().split("\n")[:-1]]


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def kill(pid: int, born: float) -> bool:
    """SIGKILL to a process that one of our workers started, if it is still there."""
    if not alive(pid, born):
        return False
    os.kill(pid, signal.SIGKILL)
    return True


@contextmanager
def opened(tmp_path: Path, kind: str) -> Iterator[Office]:
    office = Office(tmp_path, kind)
    yield office
    office.store.close()


@pytest.fixture(scope="module")
def manned(tmp_path_factory) -> Iterator[Office]:
    """An office with a worker that all tests share which do it no harm."""
    with opened(tmp_path_factory.mktemp("office"), "sqlite") as office, office.worker(memory_bytes=4 * 10**9):
        yield office


@pytest.fixture
def office(tmp_path) -> Iterator[Office]:
    with opened(tmp_path, "sqlite") as made:
        yield made


@pytest.fixture(params=KINDS)
def either(request, tmp_path) -> Iterator[Office]:
    with opened(tmp_path, request.param) as made:
        yield made


def test_jobs_are_done_in_their_order_and_give_results(either):
    jobs = [either.add("count", items=30) for _ in range(3)]
    with either.worker():
        ended = [either.ended(job) for job in jobs]
    assert [(job.state, job.message, job.tries, job.step) for job in ended] == [("done", "", 1, "")] * 3
    assert [(job.result, job.done, job.total) for job in ended] == [({"from": 0, "to": 30}, 30, 30)] * 3
    assert [either.items_of(job) for job in jobs] == [list(range(30))] * 3


def test_progress_can_be_seen_meanwhile(manned):
    job = manned.add("count", items=10_000, seconds=0.05)
    until(lambda: manned.jobs.get(job.id).done)
    seen = manned.jobs.get(job.id)
    assert (seen.state, seen.total, seen.step) == ("running", 10_000, "counting")
    manned.jobs.cancel(job.id)
    assert manned.ended(job).state == "cancelled"


def test_a_job_has_no_tokens_is_nice_and_limited(manned):
    assert manned.ended(manned.add("surroundings")).result == {
        "environ": {"HF_HUB_OFFLINE": "1", "RUST_BACKTRACE": "0", "OMP_WAIT_POLICY": "PASSIVE"},
        "secret": False,
        "first environ": True,  # as the test started the worker; the supervisor does not pass it on at all
        "nice": 19,
        "leads its session": True,
        "memory": 4 * 10**9,
        "cpu": 24 * 3600,
        "core": 0,
        "root": str(manned.root),
        "database": None,
    }


def test_a_foreseen_failure_is_told_in_its_own_words_without_places_of_the_machine(manned):
    job = manned.ended(manned.add("foreseen"))
    assert job.state == "failed"
    assert job.message == "There is no folder models/one, nor two. Choose 1/2 of https://a/b/c."


def test_an_unforeseen_failure_gives_a_reference_and_keeps_the_rest_for_the_log(manned):
    job = manned.ended(manned.add("unforeseen"))
    assert job.state == "failed"
    assert job.message.startswith("Something unforeseen happened at 17 of 100 (ref ")
    assert "/" not in job.message
    assert "ZeroDivision" not in job.message
    (record,) = [record for record in manned.records() if record["job"] == job.id]
    assert f"(ref {record['ref']})" in job.message
    assert record["error"] == "ZeroDivisionError"
    assert "small_work.py" in record["trace"]
    text = (manned.root / "logs" / "jobs.jsonl").read_text()
    assert "\x1b" not in text
    assert "\r" not in text
    assert (manned.root / "logs" / "jobs.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_hostile_tokenizer_costs_its_own_job_only(manned):
    job, after = manned.add("panic"), manned.add("count", items=10)
    job = manned.ended(job)
    assert job.state == "failed"
    assert "A library that reads texts for the model broke down at 3 of 9" in job.message
    assert [record["error"] for record in manned.records() if record["job"] == job.id] == ["PanicException"]
    assert manned.ended(after).state == "done"


def test_a_result_that_cannot_be_kept_and_a_kind_nobody_knows_fail(manned):
    assert manned.ended(manned.add("odd")).state == "failed"
    unknown = manned.ended(manned.add("nonsense"))
    assert unknown.state == "failed"
    assert "'nonsense'" in unknown.message


def test_a_job_that_exits_without_a_word_is_tried_three_times(manned):
    job = manned.ended(manned.add("leaves"))
    assert (job.state, job.tries) == ("failed", 3)
    assert job.message.startswith("Stopped unexpectedly.")


def test_work_that_stops_by_itself_is_cancelled(manned):
    assert manned.ended(manned.add("stops_by_itself")).state == "cancelled"


def test_what_a_job_started_ends_with_it(manned):
    pid, born = manned.ended(manned.add("litters")).result
    until(lambda: not alive(pid, born))


def test_a_cancelled_job_keeps_what_it_finished(manned):
    job = manned.add("count", items=100_000)
    until(lambda: manned.items_of(job))
    manned.jobs.cancel(job.id)
    ended = manned.ended(job)
    assert (ended.state, ended.message) == ("cancelled", "Cancelled. What was finished is kept.")
    kept = manned.items_of(job)
    assert kept == list(range(len(kept)))
    assert manned.jobs.retry(job.id).state == "queued"
    manned.jobs.cancel(job.id)


def test_a_job_that_does_not_listen_is_killed_when_cancelled(manned):
    job = manned.add("stubborn")
    process = manned.process_of(job)
    manned.jobs.cancel(job.id)
    assert manned.ended(job).state == "cancelled"
    assert not alive(*process)


def test_memory_that_runs_out_is_tried_once_more_with_half_the_batch(manned):
    job = manned.ended(manned.add("greedy", batch_size=16, bytes=3 * 10**8))
    assert (job.state, job.tries, job.result) == ("done", 2, 24 * 10**8), job.message
    assert job.options["batch_size"] == 8


def test_memory_that_runs_out_again_is_told_with_what_to_try(manned):
    job = manned.ended(manned.add("greedy", batch_size=16, bytes=10**9))
    assert (job.state, job.tries) == ("failed", 2)
    assert job.message.startswith("Ran out of memory at batch size 8. What was finished is kept. Try batch size 4,")


def test_memory_that_runs_out_without_a_batch_size_is_told_at_once(manned):
    job = manned.ended(manned.add("greedy", bytes=10**9))
    assert (job.state, job.tries) == ("failed", 1)
    assert job.message.startswith("Ran out of memory. What was finished is kept.")


def test_a_job_that_the_system_killed_is_taken_for_too_large(manned):
    assert manned.ended(manned.add("killed_if_large", batch_size=16, fits=8)).result == "fits"
    job = manned.ended(manned.add("killed_if_large", batch_size=16, fits=7))
    assert (job.state, job.tries) == ("failed", 2)
    assert job.message.startswith("Ran out of memory at batch size 8.")


def test_no_progress_and_no_sign_of_life_end_a_job(office):
    with office.worker(stall_seconds=1.0):
        job = office.add("stubborn")
        process = office.process_of(job)
        ended = office.ended(job)
        assert ended.state == "failed"
        assert ended.message.startswith("No progress for 1 second. Stopped. What was finished is kept.")
        assert not alive(*process)
    with office.worker(lease_seconds=1.0):
        job = office.add("frozen")
        process = office.process_of(job)
        ended = office.ended(job)
        assert ended.state == "failed"
        assert ended.message.startswith("No sign of life for 1 second. Stopped.")
        assert not alive(*process)


def test_a_job_that_takes_too_much_of_the_processor_is_ended(office):
    with office.worker(cpu_seconds=1):
        job = office.ended(office.add("busy"))
    assert (job.state, job.tries) == ("failed", 1)
    assert job.message.startswith("It took more than 1 second of the processor's time. Stopped.")


def test_a_job_that_takes_too_long_is_ended_though_it_makes_progress(office):
    with office.worker(wall_seconds=1.0):
        job = office.add("count", items=100_000)
        ended = office.ended(job)
    assert ended.state == "failed"
    assert ended.message.startswith("It took more than 1 second. Stopped. What was finished is kept.")
    assert office.items_of(job)


@pytest.mark.slow
def test_a_machine_that_slept_has_not_made_its_job_silent(office):
    """Worker and job stand still for longer than the lease; the worker is the first to go on."""
    with office.worker(lease_seconds=4.0) as worker:
        job = office.add("count", items=500, seconds=0.05)
        process, _ = office.process_of(job)
        os.kill(process, signal.SIGSTOP)
        os.kill(worker.pid, signal.SIGSTOP)
        time.sleep(5)
        os.kill(worker.pid, signal.SIGCONT)
        time.sleep(0.5)
        os.kill(process, signal.SIGCONT)
        ended = office.ended(job)
    assert (ended.state, ended.tries) == ("done", 1)


def kill_at_random(office: Office, rounds: int) -> None:
    chance = random.Random(rounds)
    with office.worker():
        jobs = [office.add("count", items=200, seconds=0.005) for _ in range(rounds)]
        kills = 0
        for job in jobs:
            process = office.process_of(job)
            time.sleep(chance.uniform(0, 0.1))
            kills += kill(*process)
            ended = office.ended(job)
            assert ended.state == "done"
            assert office.items_of(job) == list(range(200))
            if ended.tries == 2:
                assert office.done_by(job, process[0]) == ended.result["from"], "what was finished is kept"
    again = sum(office.jobs.get(job.id).tries - 1 for job in jobs)
    assert rounds // 2 < again <= kills, "most were still at work when they were killed"


def test_twenty_jobs_killed_at_random_moments_end_once_with_every_item(office):
    kill_at_random(office, 20)


@pytest.mark.slow
def test_two_hundred_jobs_killed_at_random_moments_end_once_with_every_item(either):
    kill_at_random(either, 200)


def test_a_killed_worker_takes_its_job_along_and_the_next_one_completes_all_three(either):
    jobs = [either.add("count", items=500) for _ in range(3)]
    with either.worker() as worker:
        process = either.process_of(jobs[0])
        until(lambda: either.items_of(jobs[0]))
        worker.kill()
        worker.wait()
        until(lambda: not alive(*process))
    assert [either.jobs.get(job.id).state for job in jobs] == ["running", "queued", "queued"]
    assert [job.id for job in either.jobs.recover(alive)] == [jobs[0].id]
    with either.worker():
        ended = [either.ended(job) for job in jobs]
    assert [(job.state, job.tries) for job in ended] == [("done", 2), ("done", 1), ("done", 1)]
    assert [either.items_of(job) for job in jobs] == [list(range(500))] * 3
    assert ended[0].result["from"] > 0, "it went on where it was"


def test_a_killed_worker_takes_along_even_a_job_that_cannot_run(office):
    with office.worker() as worker:
        process = office.process_of(office.add("frozen"))
        worker.kill()
        worker.wait()
        until(lambda: not alive(*process))


def test_a_job_that_was_given_to_another_stops_its_first_process(office):
    """As after a lease that ended by mistake: the second try must not meet the first."""
    with office.worker():
        job = office.add("count", items=1000, seconds=0.02)
        first = office.process_of(job)
        office.jobs.recover(lambda pid, born: False)
        second = office.process_of(job)
        assert second != first
        assert not alive(*first)
        assert office.ended(job).state == "done"
    assert office.items_of(job) == list(range(1000))
    assert office.jobs.get(job.id).tries == 2


def test_a_worker_that_is_asked_to_go_leaves_its_job_in_the_queue(office):
    for kind, options in (("count", {"items": 100_000}), ("stubborn", {})):
        with office.worker() as worker:
            job = office.add(kind, **options)
            process = office.process_of(job)
            worker.terminate()
            assert worker.wait(10) == 0
        now = office.jobs.get(job.id)
        assert (now.state, now.tries) == ("queued", 0)
        assert not alive(*process)
        office.jobs.cancel(job.id)


def test_a_job_hears_that_the_worker_goes_and_may_tidy_up(office):
    with office.worker(grace_seconds=5.0) as worker:
        job = office.add("polite")
        office.process_of(job)
        worker.terminate()
        worker.wait()
    assert office.jobs.get(job.id).state == "queued"
    assert (office.root / f"{job.id}.goodbye").exists()


def test_worker_and_job_do_not_outlive_the_server(office):
    settings = json.dumps(asdict(office.settings(server=0)))
    server = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import subprocess, sys\n"
            "worker = subprocess.Popen([sys.executable, '-m', 'unhans.worker'], stdin=subprocess.PIPE)\n"
            "worker.stdin.write(sys.argv[1].encode()); worker.stdin.close()\n"
            "print(worker.pid, flush=True)\n"
            "worker.wait()",
            settings,
        ],
        env=os.environ | PATHS,
        stdout=subprocess.PIPE,
    )
    worker = int(server.stdout.readline())
    job = office.add("stubborn")
    process = office.process_of(job)
    server.kill()
    server.communicate()
    until(lambda: not alive(*process))
    until(lambda: office.jobs.get(job.id).state == "queued")
    until(lambda: not Path(f"/proc/{worker}").exists())


@pytest.fixture
def supervised(office, monkeypatch) -> Iterator[Supervisor]:
    monkeypatch.setenv("PYTHONPATH", PATHS["PYTHONPATH"])
    monkeypatch.setenv("HF_TOKEN", "a-secret")
    supervisor = Supervisor(office.jobs, office.settings())
    yield supervisor
    supervisor.stop()


def test_a_supervisor_brings_back_what_was_left_and_replaces_a_worker_that_dies(office, supervised):
    left, job = office.add("count", items=10), office.add("count", items=2000)
    office.jobs.claim("somebody dead", 999_999_999, 1.0, 3600)
    supervised.start()
    supervised.start()  # once is enough, twice does no harm
    assert office.ended(left).state == "done"
    process, worker = office.process_of(job), supervised.pid
    os.kill(worker, signal.SIGKILL)
    ended = office.ended(job)
    assert (ended.state, ended.tries) == ("done", 2)
    assert office.items_of(job) == list(range(2000))
    assert not alive(*process)
    assert supervised.starts == 2
    assert supervised.pid != worker


def test_a_supervisor_that_stops_leaves_no_process_and_the_job_in_the_queue(office, supervised):
    job = office.add("stubborn")
    supervised.start()
    process, worker = office.process_of(job), supervised.pid
    supervised.stop()
    supervised.stop()
    assert not alive(*process)
    assert not Path(f"/proc/{worker}").exists()
    assert supervised.pid is None
    assert office.jobs.get(job.id).state == "queued"


def test_the_supervisor_passes_no_token_on(office, supervised):
    supervised.start()
    result = office.ended(office.add("surroundings")).result
    assert result["first environ"] is False
    assert result["secret"] is False


def test_a_worker_that_cannot_start_is_told_and_tried_again(office, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", PATHS["PYTHONPATH"])
    supervisor = Supervisor(office.jobs, office.settings(handlers="no_such_module:HANDLERS"))
    supervisor.start()
    until(lambda: supervisor.starts > 1)
    assert "stopped unexpectedly" in supervisor.problem
    supervisor.stop()
    assert {record["error"] for record in office.records()} == {"ModuleNotFoundError"}


def test_a_job_that_seems_to_have_no_process_is_found_while_the_supervisor_runs(office, supervised):
    """A server that was killed leaves a worker that needs a moment to notice: nobody may wait for ever."""
    supervised.start()
    assert office.ended(office.add("count", items=10)).state == "done"
    os.kill(supervised.pid, signal.SIGSTOP)
    job = office.add("count", items=10)
    assert office.jobs.claim("somebody dead", 999_999_999, 1.0, 3600).id == job.id
    os.kill(supervised.pid, signal.SIGCONT)
    ended = office.ended(job)
    assert (ended.state, ended.tries) == ("done", 2)
    assert supervised.starts == 1


def test_the_hub_is_allowed_only_where_the_workspace_says_so():
    environ = {"HF_TOKEN": "t", "HUGGING_FACE_HUB_TOKEN": "t", "UNHANS_DATABASE": "d", "PATH": "p"}
    closed, open_ = (tamed(environ, WorkerSettings("/w", allow_hub=allowed)) for allowed in (False, True))
    assert closed["HF_HUB_OFFLINE"] == "1"
    assert "HF_HUB_OFFLINE" not in open_
    for tame in (closed, open_):
        assert not {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "UNHANS_DATABASE"} & tame.keys()
        assert tame["HF_HUB_DISABLE_IMPLICIT_TOKEN"] == "1"
        assert tame["PATH"] == "p"


def test_messages_hold_no_places_of_the_machine():
    settings = WorkerSettings("/home/ann/work space", "postgresql://ann:pw@host/db")
    said = (
        "'/home/ann/work space/reviews/a.csv' or ~/x/y.txt: 3/4 </s></p> at postgresql://ann:pw@host/db (/usr/lib/z.so)"
    )
    assert without_paths(said, settings) == "'reviews/a.csv' or y.txt: 3/4 </s></p> at the database (z.so)"


def test_a_large_log_is_set_aside(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "jobs.jsonl").write_bytes(b"x" * 10_000_001)
    log(tmp_path, {"ref": "1"})
    assert (tmp_path / "logs" / "jobs.old.jsonl").stat().st_size == 10_000_001
    assert json.loads((tmp_path / "logs" / "jobs.jsonl").read_text())["ref"] == "1"


def test_the_web_process_needs_none_of_the_heavy_libraries():
    code = (
        "import sys, unhans.artefacts, unhans.jobs, unhans.supervising, unhans.worker\n"
        "assert not {'torch', 'transformers', 'tokenizers', 'numpy'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], env=os.environ | PATHS, check=True)
