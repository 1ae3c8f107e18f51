"""What is kept of the training examples."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier

import numpy as np
import pytest

from unhans.crew import Here
from unhans.influences import Shelf


def test_without_a_folder_everything_is_worked_out_again():
    shelf, asked = Shelf(None), []
    for _ in range(2):
        shelf.arrays("x", lambda: asked.append(1) or {"x": np.ones(2)})
    assert len(asked) == 2


def test_what_is_in_the_folder_is_not_worked_out_again(tmp_path):
    first = Shelf(tmp_path / "deep" / "folder").arrays("x", lambda: {"a": np.arange(3.0), "b": np.eye(2)})
    again = Shelf(tmp_path / "deep" / "folder").arrays("x", lambda: pytest.fail("it is there"))
    assert all(np.array_equal(first[name], again[name]) for name in ("a", "b"))
    assert not list(tmp_path.rglob("*.partial"))


def test_rows_go_on_after_the_last_whole_part(tmp_path):
    asked, told = [], []

    def compute(start, end):
        asked.append((start, end))
        if start == 4 and len(asked) == 3:
            raise InterruptedError
        return np.arange(start, end, dtype=np.float32)[:, None]

    with pytest.raises(InterruptedError):
        Shelf(tmp_path).rows("r", 5, compute, lambda *at: told.append(at), 2)
    rows = Shelf(tmp_path).rows("r", 5, compute, lambda *at: told.append(at), 2)
    assert rows.ravel().tolist() == [0, 1, 2, 3, 4]
    assert asked == [(0, 2), (2, 4), (4, 5), (4, 5)]
    assert told[-1] == (5, 5)


def test_a_stop_ends_the_work_before_those_who_do_it_are_let_go():
    happened = []

    class Hands:
        def spread(self, work, parts, how=None):
            try:
                yield from Here().spread(work, parts, how)
            finally:
                happened.append("the work ends")

    @contextmanager
    def sent_for():
        try:
            yield Hands()
        finally:
            happened.append("they are let go")

    def stop(done, of):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        Shelf(None, sent_for).rows("r", 2, lambda start, end: np.ones((end - start, 1)), stop, 1)
    assert happened == ["the work ends", "they are let go"]


@pytest.mark.parametrize("left", [0, 10, -30])
def test_what_was_cut_off_is_worked_out_again(tmp_path, left):
    shelf, line = Shelf(tmp_path), np.arange(50.0)
    for _ in range(2):
        assert np.array_equal(shelf.arrays("x", lambda: {"a": line})["a"], line)
        (part,) = shelf.parts("r", 50, lambda start, end: line[start:end], lambda *_: None, 50)
        assert np.array_equal(part, line)
        for path in tmp_path.iterdir():
            path.write_bytes(path.read_bytes()[:left])
    assert np.array_equal(shelf.arrays("x", lambda: {"a": line})["a"], line)


def test_what_is_no_archive_is_worked_out_again(tmp_path):
    (tmp_path / "x.npz").write_bytes(b"no archive of arrays, whatever its name says")
    assert Shelf(tmp_path).arrays("x", lambda: {"a": np.ones(1)})["a"] == 1


def test_threads_do_not_write_over_each_other_and_failures_leave_nothing(tmp_path):
    shelf, meet = Shelf(tmp_path), Barrier(4)

    def compute():
        meet.wait()
        return {"a": np.ones(1_000)}

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: shelf.arrays("x", compute)["a"].sum(), range(4)))
    assert found == [1_000] * 4
    with pytest.raises(TypeError):
        shelf.arrays("y", lambda: {"file": np.ones(1)})  # a name that numpy keeps for itself
    assert [path.name for path in tmp_path.iterdir()] == ["x.npz"]


def test_rows_of_many_examples_are_in_a_bounded_number_of_files():
    parts = Shelf(None).parts("r", 1_000_000, np.arange, lambda *_: None, 512)
    assert len(parts) <= 128
    assert np.array_equal(np.concatenate(parts), np.arange(1_000_000))
