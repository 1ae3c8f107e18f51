"""The queue: each job is claimed once, ends once, and is never lost."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
import sqlalchemy as sa

from databases import another, store  # noqa: F401 - a fixture
from unhans.errors import BadOption, Conflict, NotFound
from unhans.jobs import Jobs, LeaseLost, pace
from unhans.store import Store
from unhans.store.schema import jobs as table


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def jobs(store, clock):  # noqa: F811
    return Jobs(store, clock)


def add(jobs: Jobs, kind: str = "explain", **options):
    return jobs.add(kind, project="reviews", by="ann", options=options)


def claim(jobs: Jobs, holder: str = "h", *, lease: float = 60.0):
    return jobs.claim(holder, 1, 1.0, lease)


def living(pid: int, born: float) -> bool:
    return True


def dead(pid: int, born: float) -> bool:
    return False


def test_a_job_comes_back_as_it_was_added(jobs):
    job = jobs.add("explain", project="reviews", by="ann", options={"method": "lime", "text": "a\0b \ud800 ä"})
    assert jobs.get(job.id) == job
    assert (job.kind, job.project, job.by, job.state, job.tries) == ("explain", "reviews", "ann", "queued", 0)
    assert job.options == {"method": "lime", "text": "a\0b \ud800 ä"}
    assert job.created == "1970-01-12T13:46:40+00:00"
    assert (job.started, job.finished, job.result, job.eta_seconds) == (None, None, None, None)


@pytest.mark.parametrize("id", ["", "none", "a\0b", "' OR 1=1"])
def test_an_unknown_job_is_not_found(jobs, id):
    add(jobs)
    for act in (jobs.get, jobs.cancel, jobs.retry):
        with pytest.raises(NotFound):
            act(id)


def test_what_is_not_json_is_refused(jobs):
    with pytest.raises(BadOption):
        add(jobs, size=float("nan"))
    with pytest.raises(BadOption):
        add(jobs, size=object())
    assert jobs.list(projects=None) == ()


def test_the_oldest_is_claimed_first_even_if_the_clock_goes_back(jobs, clock):
    ids = []
    for _ in range(3):
        ids.append(add(jobs).id)
        clock.now -= 1000
    assert [claim(jobs, f"h{n}").id for n in range(3)] == ids
    assert claim(jobs, "h4") is None


def test_a_claim_that_is_repeated_after_a_lost_answer_takes_no_second_job(jobs):
    first = add(jobs)
    add(jobs)
    assert claim(jobs).id == first.id
    assert claim(jobs).id == first.id
    assert [job.state for job in jobs.list(projects=None)] == ["queued", "running"]


def test_lists_are_by_project_and_state_the_newest_first(jobs):
    mine = jobs.add("explain", project="mine", by="ann", options={})
    theirs = jobs.add("explain", project="theirs", by="ann", options={})
    making = jobs.add("create", project=None, by="ann", options={})
    other = jobs.add("create", project=None, by="bob", options={})
    ids = lambda found: [job.id for job in found]  # noqa: E731
    assert ids(jobs.list(projects=None)) == [other.id, making.id, theirs.id, mine.id]
    assert ids(jobs.list(projects=None, limit=2)) == [other.id, making.id]
    assert ids(jobs.list(projects={"mine"})) == [mine.id]
    assert ids(jobs.list(projects=())) == []
    assert ids(jobs.list(projects={"mine"}, by="ann")) == [making.id, mine.id]
    jobs.cancel(mine.id)
    assert ids(jobs.list(projects=None, states=["cancelled"])) == [mine.id]
    assert ids(jobs.list(projects={"theirs"}, states=["cancelled"])) == []


def test_a_waiting_job_is_cancelled_at_once_and_a_running_one_is_asked(jobs):
    waiting, running = add(jobs), None
    assert jobs.cancel(waiting.id).state == "cancelled"
    assert claim(jobs) is None
    running = add(jobs)
    claim(jobs)
    assert jobs.beat(running.id, "h", 1, 10, "") is False
    assert jobs.cancel(running.id).state == "running"
    assert jobs.beat(running.id, "h", 2, 10, "") is True
    done = jobs.finish(running.id, "h", "done", "")
    assert jobs.cancel(running.id) == done


def test_only_failed_and_cancelled_jobs_are_tried_again(jobs):
    job = add(jobs)
    with pytest.raises(Conflict, match="queued"):
        jobs.retry(job.id)
    claim(jobs)
    with pytest.raises(Conflict, match="running"):
        jobs.retry(job.id)
    jobs.beat(job.id, "h", 5, 10, "reading")
    jobs.cancel(job.id)
    jobs.finish(job.id, "h", "failed", "No luck.")
    again = jobs.retry(job.id)
    assert (again.state, again.tries, again.message, again.done, again.finished) == ("queued", 0, "", None, None)
    claim(jobs, "h2")
    assert jobs.beat(job.id, "h2", 1, 10, "") is False, "the wish to cancel was for the former try"
    jobs.finish(job.id, "h2", "done", "", {"answer": [1, None, "ä"]})
    assert jobs.get(job.id).result == {"answer": [1, None, "ä"]}
    with pytest.raises(Conflict, match="done"):
        jobs.retry(job.id)


def test_who_does_not_hold_a_job_cannot_write_about_it(jobs):
    job = add(jobs)
    with pytest.raises(LeaseLost):
        jobs.beat(job.id, "h", 1, 2, "")
    claim(jobs)
    for act in (
        lambda: jobs.beat(job.id, "other", 1, 2, ""),
        lambda: jobs.finish(job.id, "other", "done", ""),
        lambda: jobs.put_back(job.id, "other", ""),
        lambda: jobs.held(job.id, "other"),
    ):
        with pytest.raises(LeaseLost):
            act()
    assert jobs.get(job.id).state == "running"
    assert jobs.get(job.id).done is None


def test_a_job_ends_once(jobs):
    job = add(jobs)
    claim(jobs)
    ended = jobs.finish(job.id, "h", "done", "", 1)
    assert jobs.finish(job.id, "h", "done", "", 1) == ended, "the same again, after a lost answer"
    for act in (
        lambda: jobs.finish(job.id, "h", "failed", "late"),
        lambda: jobs.beat(job.id, "h", 1, 2, ""),
        lambda: jobs.put_back(job.id, "h", ""),
    ):
        with pytest.raises(LeaseLost):
            act()
    assert jobs.get(job.id) == ended
    with pytest.raises(BadOption):
        jobs.finish(job.id, "h", "running", "")


def test_a_process_taken_for_dead_cannot_spoil_what_another_does_now(jobs, clock):
    job = add(jobs)
    claim(jobs, "slow", lease=10)
    clock.now += 11
    assert [taken.id for taken in jobs.recover(living)] == [job.id]
    claim(jobs, "quick")
    for act in (lambda: jobs.beat(job.id, "slow", 9, 10, ""), lambda: jobs.finish(job.id, "slow", "done", "", "wrong")):
        with pytest.raises(LeaseLost):
            act()
    assert jobs.finish(job.id, "quick", "done", "", "right").result == "right"


def test_jobs_of_the_living_are_left_alone_as_long_as_they_beat(jobs, clock):
    job = add(jobs)
    claim(jobs, lease=10)
    for _ in range(5):
        clock.now += 9
        assert jobs.recover(living) == ()
        jobs.beat(job.id, "h", 1, 10, "", lease_seconds=10)
    clock.now += 9
    assert jobs.get(job.id).state == "running"
    assert [taken.state for taken in jobs.recover(dead)] == ["queued"]


def test_recovery_asks_for_the_process_by_number_and_time_of_birth(jobs):
    add(jobs)
    jobs.claim("h", 4711, 12.5, 60)
    asked = []
    jobs.recover(lambda pid, born: asked.append((pid, born)) or True)
    assert asked == [(4711, 12.5)]


def test_what_dies_three_times_fails_and_says_where(jobs):
    job = add(jobs)
    for attempt in (1, 2, 3):
        assert claim(jobs, f"h{attempt}").tries == attempt
        jobs.beat(job.id, f"h{attempt}", 340, 1000, "training")
        jobs.recover(dead)
        now = jobs.get(job.id)
        assert now.message.startswith("Stopped unexpectedly at 340 of 1,000. What was finished is kept.")
    assert now.state == "failed"
    assert now.tries == 3
    assert now.finished is not None
    assert claim(jobs, "h4") is None


def test_a_try_that_was_ended_politely_does_not_count(jobs):
    job = add(jobs)
    for n in range(5):
        assert claim(jobs, f"h{n}").tries == 1
        assert jobs.put_back(job.id, f"h{n}", "Server stopped.", counts=False).state == "queued"


def test_a_job_can_be_put_back_with_other_options(jobs):
    job = add(jobs, batch_size=16)
    claim(jobs)
    jobs.put_back(job.id, "h", "Smaller.", options={"batch_size": 8})
    assert claim(jobs, "h2").options == {"batch_size": 8}


def test_who_wanted_it_cancelled_does_not_get_it_again(jobs):
    job = add(jobs)
    claim(jobs)
    jobs.cancel(job.id)
    assert [taken.state for taken in jobs.recover(dead)] == ["cancelled"]
    assert jobs.get(job.id).message == "Cancelled. What was finished is kept."


def test_queued_jobs_keep_their_order_through_recovery(jobs):
    ids = [add(jobs).id for _ in range(3)]
    claim(jobs)
    jobs.recover(dead)
    assert [claim(jobs, f"h{n}").id for n in range(3)] == ids


def test_no_estimate_is_given_before_two_seconds_and_three_percent(jobs, clock):
    job = add(jobs)
    claim(jobs)

    def eta(seconds: float, done: int | None, total: int | None) -> float | None:
        clock.now = 1_000_000.0 + seconds
        jobs.beat(job.id, "h", done, total, "")
        return jobs.get(job.id).eta_seconds

    assert eta(100, None, None) is None
    assert eta(100, 0, 100) is None
    assert eta(1.9, 50, 100) is None
    assert eta(100, 29, 1000) is None
    assert eta(100, 30, 1000) == pytest.approx(100 * 970 / 30)
    assert eta(100, 50, 100) == pytest.approx(100)
    assert eta(100, 100, 100) == 0
    assert eta(-100, 50, 100) is None, "the clock was set back"
    jobs.finish(job.id, "h", "done", "")
    assert jobs.get(job.id).eta_seconds is None


def test_work_that_goes_on_from_a_former_try_is_not_taken_for_fast(jobs, clock):
    """It began at 900 of 1,000 and needed 10 s for 50 more: another 10 s for the rest, not half a second."""
    job = add(jobs)
    claim(jobs)
    first, at = 900, clock.now
    clock.now += 10
    jobs.beat(job.id, "h", 950, 1000, "", since=pace(first, at, 950, 1000, clock.now))
    assert jobs.get(job.id).eta_seconds == pytest.approx(10)
    jobs.beat(job.id, "h", 910, 1000, "", since=pace(first, at, 910, 1000, clock.now))
    assert jobs.get(job.id).eta_seconds is None, "one percent has been seen, which is too little"


def test_whatever_people_can_see_changes_the_number_of_changes(jobs, clock):
    seen = [jobs.changes()]

    def changed() -> bool:
        seen.append(jobs.changes())
        return seen[-1] not in seen[:-1]

    job = add(jobs)
    assert changed()
    jobs.get(job.id), jobs.list(projects=None)
    assert not changed()
    claim(jobs)
    assert changed()
    jobs.beat(job.id, "h", 1, 10, "reading")
    assert changed()
    clock.now += 1
    jobs.beat(job.id, "h", 1, 10, "reading")
    assert not changed(), "only the lease is new"
    jobs.beat(job.id, "h", 1, 10, "writing")
    assert changed()
    jobs.cancel(job.id)
    assert changed()
    jobs.put_back(job.id, "h", "")
    assert changed()
    jobs.retry(job.id)
    assert changed()
    claim(jobs, "h2")
    assert changed()
    jobs.recover(dead)
    assert changed()
    jobs.cancel(job.id)
    assert changed()


def test_a_message_is_one_line_that_any_database_and_terminal_can_take(jobs):
    job = add(jobs)
    claim(jobs)
    jobs.beat(job.id, "h", 1, 2, "reading\x1b[31m\r\nü \ud800")
    assert jobs.get(job.id).step == "reading [31m ü  "
    jobs.finish(job.id, "h", "failed", "x\0y\u2028z" + "!" * 5000)
    assert jobs.get(job.id).message.startswith("x y z!!!")
    assert len(jobs.get(job.id).message) == 2000


def test_a_claim_that_waits_for_nothing_writes_nothing(jobs, store):  # noqa: F811
    job = add(jobs)
    claim(jobs)
    before = jobs.changes()
    assert claim(jobs, "other") is None
    assert jobs.changes() == before
    with store.read() as connection:
        assert connection.execute(sa.select(table.c.holder).where(table.c.id == job.id)).scalar_one() == "h"


def test_eight_claimers_take_two_hundred_jobs_once_each(jobs, store: Store, tmp_path):  # noqa: F811
    ids = [add(jobs).id for _ in range(200)]
    taken: list[list[str]] = [[] for _ in range(8)]
    meeting = threading.Barrier(8)

    def work(number: int) -> None:
        with another(store, tmp_path) as own:
            queue = Jobs(own)
            meeting.wait()
            while job := claim(queue, holder := f"{number}-{len(taken[number])}"):
                taken[number].append(job.id)
                queue.finish(job.id, holder, "done", "", number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(id for some in taken for id in some) == Counter(ids)
    ended = jobs.list(projects=None, limit=1000)
    assert {job.state for job in ended} == {"done"}
    assert {job.tries for job in ended} == {1}
