"""Bulk work goes to disk part by part, goes on where it stopped, and holds one part at a time."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

import tiny
from unhans.attributions import attribute
from unhans.black_boxes import PredictFunction
from unhans.bulk import Filled, Task, explaining, fill, flipping, predicting, reopen
from unhans.bulk._tables import KINDS
from unhans.counterfactuals import find_flips
from unhans.data import iter_examples
from unhans.errors import BadData, BadOption, Cancelled, Conflict, NotFound, UnhansError
from unhans.types import Example

WEIGHTS = {"good": 2.0, "fine": 1.0, "bad": -2.0, "dull": -1.0}
TEXTS = ("a good film", "a bad film", "fine and good", "dull, bad and long", "good but dull")
SEARCH = {"max_edits": 2, "beam": 2, "alternatives": 0}


def examples(n: int = 11) -> list[Example]:
    return [Example(f"e{k}", TEXTS[k % len(TEXTS)], label="positive") for k in range(n)]


def task_of(kind: str) -> Task:
    clf = tiny.bag_of_words(WEIGHTS)
    if kind == "predictions":
        return predicting(clf)
    return explaining(clf) if kind == "attributions" else flipping(clf, method="deletion", search=SEARCH)


def front_door(kind: str, some: list[Example]) -> list[object]:
    clf = tiny.bag_of_words(WEIGHTS)
    if kind == "predictions":
        return list(clf.predict(some))
    if kind == "attributions":
        return list(attribute(clf, some))
    return list(find_flips(clf, some, method="deletion", search=SEARCH))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_back_is_what_the_front_door_gives(kind: str, tmp_path: Path) -> None:
    done = fill(tmp_path / "out", task_of(kind), examples(), part=4)
    assert list(done) == front_door(kind, examples())
    assert (done.examples, len(done.files)) == (11, 3)
    again = reopen(tmp_path / "out")
    assert list(again) == list(done)
    assert again.facts["revision"] == tiny.bag_of_words(WEIGHTS).revision


def test_a_manifest_that_was_cut_short_keeps_nobody_out(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / ".manifest.json.123.part").write_text('{"format')
    assert list(fill(out, task_of("predictions"), examples())) == front_door("predictions", examples())
    assert not list(out.glob(".*"))


@pytest.mark.parametrize("kind", KINDS)
def test_nouns_of_a_transformer_survive_as_they_are(kind: str, tmp_path: Path) -> None:
    clf, some = tiny.transformer(), [Example(str(n), text) for n, text in enumerate(tiny.SENTENCES[:4])]
    some.append(Example("long", " ".join(["good"] * 60)))  # beyond what it reads
    some.append(Example("pair", "The soup was cold.", "The waiter did not care."))
    made: dict[str, tuple[Task, list[object]]] = {
        "predictions": (predicting(clf), list(clf.predict(some))),
        "attributions": (
            explaining(clf, method="lime", num_samples=20, units="phrase", target="positive"),
            list(attribute(clf, some, method="lime", num_samples=20, units="phrase", target="positive")),
        ),
        "counterfactuals": (
            flipping(clf, method="deletion", search=SEARCH, keep=2),
            list(find_flips(clf, some, method="deletion", search=SEARCH, keep=2)),
        ),
    }
    task, expected = made[kind]
    assert list(fill(tmp_path / "out", task, some)) == expected


def test_half_a_character_becomes_a_replacement(tmp_path: Path) -> None:
    """Parquet has none; they come from texts that did not pass the data door."""
    found = next(iter(fill(tmp_path / "out", task_of("attributions"), [Example("odd", "good \ud800 film")])))
    assert found.words == ("good", "\ufffd", "film")


def test_the_same_call_again_asks_the_model_nothing(tmp_path: Path) -> None:
    fill(tmp_path / "out", task_of("attributions"), examples(), part=4)
    before, asked = contents(tmp_path / "out"), []
    done = fill(tmp_path / "out", explaining(tiny.bag_of_words(WEIGHTS, asked=asked)), examples())
    assert not asked
    assert done.computed == 0
    assert contents(tmp_path / "out") == before


def test_after_a_stop_only_what_is_missing_is_done(tmp_path: Path) -> None:
    whole = fill(tmp_path / "whole", task_of("attributions"), examples(), part=4)
    told: list[tuple[int, int | None]] = []
    with pytest.raises(Cancelled):
        fill(
            tmp_path / "out",
            task_of("attributions"),
            examples(),
            part=4,
            total=11,
            progress=lambda done, total: told.append((done, total)),
            cancelled=lambda: bool(told) and told[-1][0] >= 4,
        )
    assert reopen(tmp_path / "out").examples is None
    assert len(reopen(tmp_path / "out").files) == 1
    seen: list[int] = []
    done = fill(tmp_path / "out", task_of("attributions"), examples(), progress=lambda n, _: seen.append(n))
    assert done.computed == 7
    assert seen[0] == 4
    assert seen == sorted(seen)
    assert seen[-1] == 11
    assert contents(tmp_path / "out") == contents(whole.folder)


def test_reading_over_what_is_there_tells_how_far_it_is_and_can_be_stopped(tmp_path: Path) -> None:
    fill(tmp_path / "out", task_of("predictions"), examples(), part=4)
    before, seen = contents(tmp_path / "out"), list[tuple[int, int | None]]()
    fill(tmp_path / "out", task_of("predictions"), examples(), total=11, progress=lambda *at: seen.append(at))
    assert seen == [(4, 11), (8, 11), (11, 11), (11, 11)]
    with pytest.raises(Cancelled, match=r"Stopped after 4 examples.*kept"):
        fill(tmp_path / "out", task_of("predictions"), examples(), cancelled=lambda: True)
    assert contents(tmp_path / "out") == before


def test_what_a_killed_process_left_is_made_good(tmp_path: Path) -> None:
    """Half a part under its name (a machine that lost power), none at all, and a file that was being written."""
    whole = fill(tmp_path / "whole", task_of("attributions"), examples(), part=4)
    done = fill(tmp_path / "out", task_of("attributions"), examples(), part=4)
    done.files[0].write_bytes(done.files[0].read_bytes()[:100])
    done.files[1].unlink()
    (done.folder / ".part-0000001.parquet.99999.part").write_bytes(b"PAR1")
    assert fill(done.folder, task_of("attributions"), examples()).computed == 8
    assert contents(done.folder) == contents(whole.folder)


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (
            lambda: explaining(tiny.bag_of_words(WEIGHTS), method="kernel_shap"),
            "recipe was leave_one_out.* and is kernel_shap",
        ),
        (lambda: explaining(tiny.bag_of_words(WEIGHTS), target="negative"), "target was nothing and is negative"),
        (lambda: explaining(tiny.bag_of_words({"good": 1.0})), "revision was"),
        (lambda: predicting(tiny.bag_of_words(WEIGHTS)), "kind was attributions"),
    ],
)
def test_a_folder_of_another_task_is_refused_and_left_alone(other, named: str, tmp_path: Path) -> None:
    fill(tmp_path / "out", task_of("attributions"), examples(), part=4)
    before = contents(tmp_path / "out")
    with pytest.raises(Conflict, match=f"{named}.*Nothing was changed"):
        fill(tmp_path / "out", other(), examples())
    assert contents(tmp_path / "out") == before


def test_other_data_is_refused_from_where_it_differs(tmp_path: Path) -> None:
    fill(tmp_path / "out", task_of("predictions"), examples(), part=4)
    before = contents(tmp_path / "out")
    changed = [*examples()[:6], Example("e6", "another text"), *examples()[7:]]
    with pytest.raises(Conflict, match="other texts than the data has now, from example 5 on"):
        fill(tmp_path / "out", task_of("predictions"), changed)
    with pytest.raises(Conflict, match="more than the 8 examples"):
        fill(tmp_path / "out", task_of("predictions"), examples(8))
    assert contents(tmp_path / "out") == before


def test_rows_of_examples_that_are_gone_are_seen_also_after_a_gap(tmp_path: Path) -> None:
    """Workers that are stopped leave later parts and not the next one."""
    done = fill(tmp_path / "out", task_of("predictions"), examples(), part=4)
    done.files[1].unlink()
    before = contents(tmp_path / "out")
    with pytest.raises(Conflict, match=r"more than the 4 examples.*Nothing was removed"):
        fill(tmp_path / "out", task_of("predictions"), examples(4))
    assert contents(tmp_path / "out") == before


def test_what_is_in_the_way_is_named(tmp_path: Path) -> None:
    task = task_of("predictions")
    fill(tmp_path / "out", task, examples(), part=4)
    with pytest.raises(BadOption, match="parts of 4 examples, not 5"):
        fill(tmp_path / "out", task, examples(), part=5)
    with pytest.raises(BadOption, match="at least 1"):
        fill(tmp_path / "new", task, examples(), part=0)
    with pytest.raises(BadOption, match="other files in it"):
        fill(tmp_path, task, examples())
    with pytest.raises(NotFound, match="no manifest"):
        reopen(tmp_path)
    handle = os.open(tmp_path / "out", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(Conflict, match="Another process"):
        fill(tmp_path / "out", task, examples())
    os.close(handle)
    (tmp_path / "out" / "manifest.json").write_text("{")
    with pytest.raises(BadData, match="damaged"):
        fill(tmp_path / "out", task, examples())
    with pytest.raises(BadData, match="no examples"):
        fill(tmp_path / "none", task, [])


def failing(texts: list[str]) -> list[list[float]]:
    raise RuntimeError("no answer")


@pytest.mark.parametrize("how", ["no examples", "no such crew", "the model fails", "stopped"])
def test_what_never_began_keeps_no_other_work_out(how: str, tmp_path: Path) -> None:
    broken = predicting(PredictFunction(failing, ["negative", "positive"], "broken"))
    with pytest.raises(UnhansError):
        fill(
            tmp_path / "out",
            broken if how == "the model fails" else task_of("predictions"),
            [] if how == "no examples" else examples(),
            workers=2 if how == "no such crew" else None,
            cancelled=lambda: how == "stopped",
        )
    assert not list(tmp_path.glob("out/*"))
    assert fill(tmp_path / "out", task_of("attributions"), examples()).examples == 11


def test_a_crew_that_there_cannot_be_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    def stream() -> Iterator[Example]:
        raise AssertionError("it was read")
        yield

    task = explaining(tiny.transformer(), method="lime", engine="autocast")
    with pytest.raises(BadOption, match="workers are Ray's"):
        fill(tmp_path / "out", task, stream(), workers=2)
    assert not (tmp_path / "out").exists()


def test_a_disk_without_locks_is_not_taken_for_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(BadOption, match=r"cannot be locked .*\(No locks available\)"):
        fill(tmp_path / "out", task_of("predictions"), examples())


def test_a_folder_in_the_home_folder_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    done = fill("~/out", task_of("predictions"), examples())
    assert list(reopen("~/out")) == list(done)


def test_a_model_that_may_have_changed_is_not_gone_on_with(tmp_path: Path) -> None:
    clf = tiny.bag_of_words(WEIGHTS)
    clf.lasting = False
    fill(tmp_path / "out", predicting(clf), examples())
    with pytest.raises(Conflict, match="cannot be told"):
        fill(tmp_path / "out", predicting(clf), examples())


def test_the_manifest_says_what_was_done(tmp_path: Path) -> None:
    done = fill(tmp_path / "out", task_of("attributions"), examples(), part=4)
    told = json.loads((done.folder / "manifest.json").read_text(encoding="utf-8"))
    assert told["facts"]["recipe"]["name"] == "leave_one_out"
    assert told["columns"].keys() == set(KINDS["attributions"].schema.names)
    assert told["part"] == 4
    assert told["data"].keys() == {"examples", "parts", "texts"}
    assert (told["data"]["examples"], told["data"]["parts"]) == (11, 3)


def test_examples_are_read_as_they_are_needed(tmp_path: Path) -> None:
    read = 0

    def stream() -> Iterator[Example]:
        nonlocal read
        for example in examples(40):
            read += 1
            yield example

    ahead: list[int] = []
    fill(tmp_path / "out", task_of("predictions"), stream(), part=4, progress=lambda done, _: ahead.append(read - done))
    assert max(ahead) <= 4


def peak(folder: Path, n: int) -> int:
    """Most bytes held at once while n rows of a file are explained, and read back."""
    data = folder / f"{n}.jsonl"
    data.write_text("".join(json.dumps({"id": f"{k:05}", "text": f"good {k:05} film"}) + "\n" for k in range(n)))
    tracemalloc.start()
    done: Filled = fill(folder / str(n), task_of("attributions"), iter_examples(data), part=20)
    assert sum(1 for _ in done) == n
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def test_memory_does_not_grow_with_the_number_of_examples(tmp_path: Path) -> None:
    peak(tmp_path, 20)  # what is needed once: imports, adapters
    small, large = peak(tmp_path, 100), peak(tmp_path, 400)
    assert large < 1.1 * small + 50_000, (small, large)
