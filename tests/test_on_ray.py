"""Work on Ray comes to the same as here, whoever dies meanwhile. One Ray serves all of these tests."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest

import audited
import shortcut
import tiny
from crewed import Squares
from unhans import crew as crews
from unhans.audit import audit, check
from unhans.bulk import Task, explaining, fill, flipping, predicting
from unhans.comparison import compare
from unhans.crew import Crew, Here, RayCrew, crew
from unhans.errors import BadData, BadOption, Cancelled, ModelFailed, Unsupported
from unhans.hildif import Configuration, Plan, ablation
from unhans.influences import prepare
from unhans.metrics import measure
from unhans.scoring import How
from unhans.sweeps import fit_each
from unhans.training import Schedule
from unhans.types import Audit, Example
from working import until

# what is left of a Ray that did not come up in time, on a busy machine, where the second one does
pytestmark = pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
EXAMPLES = [
    Example(str(n), f"{text} {n}", label=("negative", "positive")[n % 2]) for n, text in enumerate(tiny.SENTENCES)
]


@pytest.fixture(scope="module")
def hands() -> Iterator[Crew]:
    if importlib.util.find_spec("ray") is None:  # not imported here: Ray reads its settings then
        pytest.skip("Ray is not installed: pip install 'unhans[ray]'")
    with pytest.MonkeyPatch.context() as patch:
        # work of the tests is in modules that only they can import
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]))
        with crew("ray", workers=2) as found:
            yield found


@dataclass
class Counting:
    """A crew that counts the parts of everything that another one is given."""

    hands: Crew
    given: list[int] = field(default_factory=list)

    def spread(self, work: Any, parts: Iterable[Any], how: How | None = None) -> Iterator[tuple[int, Any]]:
        listed = list(parts)
        self.given.append(len(listed))
        return self.hands.spread(work, listed, how)


def workers(title: str = "ray::_Worker") -> list[psutil.Process]:
    """Processes of Ray's that work for this one, under a title that begins so."""
    found = []
    for one in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # gone meanwhile
            if one.name().startswith(title):
                found.append(one)
    return found


# -- what does not take Ray


def test_places_that_there_are_not_are_refused() -> None:
    for wrong in ("rey", "ray://", "cluster"):
        with pytest.raises(BadOption, match="here, on ray"), crew(wrong):
            pass
    with pytest.raises(BadOption, match="workers are Ray's"), crew("here", workers=2):
        pass
    with pytest.raises(BadOption, match="at least 1"), crew("ray", workers=0):
        pass


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(Unsupported, match=r"unhans\[ray\]"), crew("ray"):
        pass


def test_work_here_is_opened_once_and_done_in_order(tmp_path: Path) -> None:
    work = Squares(tmp_path)
    assert list(Here().spread(work, iter(range(5)))) == [(n, n * n) for n in range(5)]
    assert work.openers == {os.getpid()}


class ShutDown:
    """As much of Ray as somebody sees who comes back after it was shut down: any call but one would start it again."""

    def __init__(self) -> None:
        self.running, self.restarts = True, 0

    def remote(self, **_: Any) -> Any:
        return lambda kind: SimpleNamespace(remote=lambda: SimpleNamespace(come=SimpleNamespace(remote=object)))

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 1}

    def put(self, work: Any) -> Any:
        return work

    def is_initialized(self) -> bool:
        return self.running

    def kill(self, worker: Any) -> None:
        self.restarts += not self.running


def test_workers_of_a_ray_that_is_shut_down_are_not_asked_for_again(tmp_path: Path) -> None:
    ray = ShutDown()
    hands = RayCrew(ray, 1)
    with pytest.raises(Cancelled):  # with a worker on the way
        next(hands.spread(Squares(tmp_path), range(2), How(cancelled=lambda: True)))
    ray.running = False
    hands.dismiss()
    assert ray.restarts == 0


# -- on Ray


@pytest.mark.parametrize("kind", ["predictions", "attributions", "counterfactuals", "sampled", "engine"])
def test_files_are_the_same_to_the_last_byte(kind: str, hands: Crew, tmp_path: Path) -> None:
    tasks: dict[str, Task] = {
        "predictions": predicting(tiny.transformer("gpt2")),
        "attributions": explaining(tiny.transformer(), method="integrated_gradients"),
        "counterfactuals": flipping(tiny.transformer(), search={"max_edits": 2, "beam": 2}),
        "engine": explaining(tiny.transformer(), method="lime", num_samples=40, engine="int8"),
        "sampled": explaining(tiny.bag_of_words({"good": 2.0, "cold": -1.0}), method="kernel_shap", seed=3),
    }
    for place, crew_ in (("here", Here()), ("ray", hands)):
        fill(tmp_path / place, tasks[kind], EXAMPLES, part=3, on=crew_)
    assert contents(tmp_path / "ray") == contents(tmp_path / "here")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("method", ["projected_gradients", "exact_head"])
def test_an_index_of_training_examples_is_the_same(method: str, hands: Crew, tmp_path: Path) -> None:
    clf, train = (
        tiny.transformer(),
        [Example(f"{k}", f"{one.text} {k}", label=one.label) for k, one in enumerate(EXAMPLES * 50)],
    )
    here = prepare(clf, train, method=method, folder=tmp_path / "here")
    told: list[tuple[int, int]] = []
    there = prepare(clf, train, method=method, folder=tmp_path / "ray", on=hands, progress=lambda *at: told.append(at))
    np.testing.assert_array_equal(there.scores(EXAMPLES[:3]), here.scores(EXAMPLES[:3]))
    assert told[-1] == (600, 600)
    files = [
        sorted(path.relative_to(tmp_path / place) for path in (tmp_path / place).rglob("*.np?"))
        for place in ("here", "ray")
    ]
    assert files[0] == files[1]


def test_an_index_that_is_sent_leaves_the_folder_here(hands: Crew, tmp_path: Path) -> None:
    from ray import cloudpickle  # `hands` has told Ray its settings

    index = prepare(tiny.transformer(), EXAMPLES, method="gradient_dot", folder=tmp_path, on=hands)
    there = cloudpickle.loads(cloudpickle.dumps(index)).self_influence()
    assert not list(tmp_path.rglob("*.npz"))
    np.testing.assert_array_equal(there, index.self_influence())
    assert list(tmp_path.rglob("*.npz"))


def test_trainings_come_to_the_same_weights_in_their_order(hands: Crew) -> None:
    runs = [(tiny.transformer(), Schedule(epochs=1, batch_size=6, learning_rate=rate, seed=2)) for rate in (1e-2, 1e-3)]
    told: list[tuple[int, int]] = []
    here = fit_each(runs, EXAMPLES, progress=lambda *at: told.append(at))
    there = fit_each(runs, EXAMPLES, on=hands)
    assert [one.revision for one in there] == [one.revision for one in here]
    assert len({one.revision for one in (*here, runs[0][0])}) == 3
    assert told == sorted(told)
    assert told[-1] == (2000, 2000)


def test_models_of_a_metric_are_trained_to_the_same(hands: Crew) -> None:
    clf, sets = tiny.bag_of_words({"good": 2.0, "cold": -1.0}), {"train": EXAMPLES, "start": tiny.transformer()}
    asked: dict[str, Any] = {"methods": ["leave_one_out", "random"], "metrics": ["roar", "stability"], **sets}
    here, there = Counting(Here()), Counting(hands)
    assert compare(clf, EXAMPLES, **asked, on=there) == compare(clf, EXAMPLES, **asked, on=here)
    assert there.given == here.given == [3, 3, 3]  # of either method, and of random scores
    filled: dict[str, Any] = {"metric": "roar_mlm", "language_model": tiny.language_model(), **sets, "models": 2}
    told: list[float] = []
    graded = measure(clf, EXAMPLES, **filled, on=there, progress=lambda done, of: told.append(done / of))
    assert graded == measure(clf, EXAMPLES, **filled)
    assert there.given[3:] == [2, 2]
    assert told == sorted(told)
    assert told[-1] == 1


def test_runs_of_an_ablation_are_the_same(hands: Crew, tmp_path: Path) -> None:
    train = shortcut.texts()
    bare = [replace(one, id=f"v{one.id}") for one in shortcut.texts(cue=None)][:60]
    cued = [replace(one, id=f"c{one.id}", text=f"zyx {one.text}") for one in bare if one.label == "negative"]
    fast = {"epochs": 1, "learning_rate": 1e-3, "batch_size": 16, "patience": 0}
    plan = Plan(anchors=2, top=3, augmentation="word_dropout", per_point=2, only_copies=True, training=fast)
    rows = [Configuration("baseline", None), Configuration("HS DA H", plan)]
    counting, told = Counting(hands), list[dict[str, Any]]()

    def run(place: str, **how: Any) -> list[dict[str, Any]]:
        sets, kept = (train, cued, cued[20:], bare[:20]), tmp_path / f"{place}.json"
        return ablation(shortcut.classifier(), *sets, rows=rows, seeds=(0, 1), results=kept, **how)

    here, there = run("here"), run("ray", on=counting, folder=tmp_path / "index", told=told.append)
    assert [one | {"seconds": 0} for one in there] == [one | {"seconds": 0} for one in here]
    assert [(one["seed"], one["configuration"]) for one in there] == [
        (seed, row.name) for seed in (0, 1) for row in rows
    ]
    assert len({repr(one["anchors"]) for one in there}) == 3  # seeds matter, but to the baseline
    assert counting.given == [1, 4]  # the training examples, which all runs share
    assert len(told) == 4
    assert run("ray", on=counting, told=lambda _: pytest.fail("nothing is left to do")) == there
    assert counting.given == [1, 4]


REVIEWS = audited.reviews()
PAIRS = [replace(one, label={"no": "negative", "yes": "positive"}[str(one.label)]) for one in audited.pairs()]
AUDITS: dict[str, dict[str, Any]] = {
    "texts": {"examples": REVIEWS[:60], "train": REVIEWS[50:120], "limit": 60, "seed": 1},
    "pairs": {"examples": PAIRS[:80], "train": PAIRS[70:], "checks": ["shortcuts", "patterns", "leaks"]},
}


@cache
def audited_here(kind: str) -> Audit:
    return timeless(audit(tiny.transformer(), **AUDITS[kind]))


def timeless(done: Audit) -> Audit:
    return replace(done, checks=tuple(replace(run, seconds=None) for run in done.checks))


@pytest.mark.parametrize("kind", AUDITS)
def test_an_audit_is_the_same_whoever_looks(kind: str, hands: Crew, tmp_path: Path) -> None:
    counting, parts, told = Counting(hands), list[Audit](), list[float]()
    done = audit(
        tiny.transformer(),
        **AUDITS[kind],
        folder=tmp_path / "index",  # of this machine alone
        on=counting,
        on_part=parts.append,
        progress=lambda n, of: told.append(n / of),
    )
    assert timeless(done) == audited_here(kind)
    assert sum(run.state == "done" for run in done.checks) >= 3
    assert counting.given == [len(AUDITS[kind].get("checks", check.names))]
    assert [sum(run.state == "waiting" for run in part.checks) for part in parts] == [*reversed(range(len(parts)))]
    assert parts[-1] == done
    assert told == sorted(told)
    assert told[-1] == 1
    assert not (tmp_path / "index").exists()


def test_findings_stand_in_the_order_of_the_checks_whoever_was_first() -> None:
    done = audit(tiny.transformer(), **AUDITS["texts"], on=LastFirst())
    assert timeless(done) == audited_here("texts")
    assert {one.severity for one in done.findings} == {"high", "medium", "low"}


class LastFirst:
    """A crew that is done with the last part first."""

    def spread(self, work: Any, parts: Iterable[Any], how: How | None = None) -> Iterator[tuple[int, Any]]:
        act = work(how or How())
        for number, part in reversed(list(enumerate(parts))):
            yield number, act(part)


def test_an_audit_whose_worker_is_killed_loses_nothing(hands: Crew) -> None:
    killed: list[int] = []

    def kill_one(so_far: Audit) -> None:
        dear = sum(run.state == "waiting" for run in so_far.checks) <= 4  # those that take a while
        for victim in workers("ray::_Worker.do") if dear and not killed else ():
            victim.kill()
            killed.append(victim.pid)

    done = audit(tiny.transformer(), **AUDITS["texts"], on=hands, on_part=kill_one)
    assert len(killed) == 1
    assert timeless(done) == audited_here("texts")


def test_an_audit_can_be_stopped(hands: Crew) -> None:
    parts: list[Audit] = []
    asked = AUDITS["texts"] | {"on": hands, "on_part": parts.append}
    with pytest.raises(Cancelled, match="what is finished is kept"):
        audit(tiny.transformer(), **asked, cancelled=lambda: len(parts) >= 2)
    assert 2 <= len(parts) < len(check.names)


def test_a_worker_that_is_killed_loses_nothing(hands: Crew, tmp_path: Path) -> None:
    fill(tmp_path / "here", explaining(tiny.transformer()), EXAMPLES, part=1)
    killed: list[int] = []

    def kill_one(done: int, total: int | None) -> None:
        if not killed:
            victim = workers()[0]
            victim.kill()
            killed.append(victim.pid)

    done = fill(tmp_path / "ray", explaining(tiny.transformer()), EXAMPLES, part=1, on=hands, progress=kill_one)
    assert killed
    assert done.computed == len(EXAMPLES)
    assert contents(tmp_path / "ray") == contents(tmp_path / "here")


def test_a_part_that_was_being_done_is_done_by_another(hands: Crew, tmp_path: Path) -> None:
    work = Squares(tmp_path, dies_of=3)
    assert sorted(hands.spread(work, range(8))) == [(n, n * n) for n in range(8)]
    assert len(list(tmp_path.glob("died *"))) == 1


def test_a_part_that_takes_every_worker_down_ends_in_a_sentence(hands: Crew, tmp_path: Path) -> None:
    with pytest.raises(ModelFailed, match=r"Part 2 took down the worker 3 times.*What is finished is kept"):
        list(hands.spread(Squares(tmp_path, dies_of=1, times=9), range(3)))


def test_what_goes_wrong_there_is_told_as_here(hands: Crew, tmp_path: Path) -> None:
    with pytest.raises(BadData, match="2 cannot be squared"):
        list(hands.spread(Squares(tmp_path, refuses=2), range(4)))
    with pytest.raises(Unsupported, match="cannot be sent to other processes"):
        list(hands.spread(Squares(threading.Lock()), range(2)))  # type: ignore[arg-type]
    assert dict(hands.spread(Squares(tmp_path), range(4))) == {n: n * n for n in range(4)}  # it is well after that


def test_stopping_lets_go_of_those_who_are_at_it(hands: Crew, tmp_path: Path) -> None:
    found: list[tuple[int, int]] = []
    asked = How(cancelled=lambda: bool(found))
    with pytest.raises(Cancelled, match="what is finished is kept"):
        list(map(found.append, hands.spread(Squares(tmp_path, rests_at=1), range(6), asked)))
    assert found
    # the one at rest would be at it for an hour; who is told to go is gone a moment later
    until(lambda: not workers("ray::_Worker.do"))
    assert dict(hands.spread(Squares(tmp_path), range(3))) == {n: n * n for n in range(3)}


def test_parts_are_taken_as_they_are_needed(hands: Crew, tmp_path: Path) -> None:
    taken = 0

    def parts() -> Iterator[int]:
        nonlocal taken
        for number in range(40):
            taken += 1
            yield number

    ahead = [taken - done for done, _ in enumerate(hands.spread(Squares(tmp_path), parts()))]
    assert max(ahead) <= 2 * 2
    assert len(ahead) == 40


def test_nobody_else_can_reach_a_ray_of_our_own(hands: Crew) -> None:
    assert isinstance(hands, RayCrew)
    everyone = [psutil.Process(), *psutil.Process().children(recursive=True)]
    listening = {c.laddr.ip for one in everyone for c in one.net_connections("tcp") if c.status == psutil.CONN_LISTEN}
    assert listening
    assert all(address.removeprefix("::ffff:").startswith("127.") for address in listening), listening
    assert os.environ["RAY_AUTH_MODE"] == "token"
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    # Ctrl-C still stops us, where it did before: a shell has its background jobs ignore it
    assert signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_IGN)
    assert crews.check_place("ray://head:10001") == "ray://head:10001"


def test_a_ray_that_others_could_hand_work_is_refused() -> None:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed: pip install 'unhans[ray]'")
    code = "from unhans.crew import crew\nwith crew('ray', workers=1): pass"
    environ = os.environ | {"RAY_AUTH_MODE": "disabled"}
    done = subprocess.run([sys.executable, "-c", code], env=environ, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "RAY_AUTH_MODE is set to 'disabled', and a Ray of our own listens to this machine alone" in done.stderr
