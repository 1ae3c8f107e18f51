"""The scoring core: every different question once, the answers in order, nothing lost."""

from __future__ import annotations

import json
import math
import sqlite3
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny
import unhans.model
import unhans.scoring
from unhans.black_boxes import PredictFunction
from unhans.errors import Cancelled, ModelFailed, Unsupported
from unhans.scoring import ScoreCache, Tally, ask, batches_by_length
from unhans.text import Hole, Words, as_variant
from unhans.tokens import Row
from unhans.types import Example

WEIGHTS = {"good": 2.0, "bad": -1.5, "not": -0.5, "soup": 0.25}
texts = st.lists(st.sampled_from([*WEIGHTS, "a", "the", "!"]), max_size=6).map(" ".join)


@cache
def transformer(kind: str = "bert", labels: int = 2) -> Any:
    return tiny.transformer(kind, labels=labels)


def log_odds(answers: Any) -> list[float]:
    return (answers[:, 1] - answers[:, 0]).tolist()


def known(text: str) -> float:
    return sum(WEIGHTS.get(word, 0.0) for word in text.split())


# -- ask


@given(st.lists(texts, max_size=40))
def test_answers_come_in_the_order_of_the_texts_and_each_text_is_asked_once(given_texts: list[str]) -> None:
    asked: list[str] = []
    tally = Tally()

    answers = ask(tiny.bag_of_words(WEIGHTS, asked=asked), given_texts, tally=tally)

    assert len(answers) == len(given_texts)
    if given_texts:
        assert log_odds(answers) == pytest.approx([known(text) for text in given_texts], abs=1e-4)
    assert sorted(asked) == sorted(set(given_texts))
    assert (tally.variants, tally.answered) == (len(given_texts), len(set(given_texts)))


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_a_transformer_answers_equal_rows_once(kind: str) -> None:
    model = transformer(kind)
    words = Words("good good soup good")
    variants = [words.without([k]) for k in range(len(words))] * 3
    tally = Tally()

    answers = ask(model, variants, tally=tally)

    rows = model.tokens.rows(variants)
    assert tally.variants == 12
    assert tally.answered == len(set(rows)) < 12
    assert tally.cells == sum(len(row) for row in set(rows))
    for answer, row in zip(answers, rows, strict=True):
        np.testing.assert_allclose(answer, model.answer([row])[0], atol=1e-5)


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_order_and_batch_size_change_no_answer(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = transformer(kind)
    some = [f"{sentence} {n}" for n in range(4) for sentence in tiny.SENTENCES]
    order = np.random.default_rng(0).permutation(len(some))
    wanted = ask(model, some)

    np.testing.assert_allclose(ask(model, [some[n] for n in order]), wanted[order], atol=1e-5)
    for budget in (1, 40, 10**6):
        monkeypatch.setattr(unhans.model, "TOKEN_BUDGET", budget)
        np.testing.assert_allclose(ask(model, some), wanted, atol=1e-5)
    monkeypatch.setattr(unhans.scoring, "_WINDOW", 5)
    np.testing.assert_allclose(ask(model, some), wanted, atol=1e-5)


@pytest.mark.parametrize("kind", ["bert", "deberta", "llama"])
def test_next_to_nothing_is_spent_on_padding(kind: str) -> None:
    tally = Tally()
    words = [Words(sentence) for sentence in tiny.SENTENCES]
    variants = [one.without([k, j]) for one in words for k in range(len(one)) for j in range(k)]

    ask(transformer(kind), variants, tally=tally)

    assert tally.answered > 300
    assert tally.padded <= 0.02 * tally.cells
    assert tally.batches < tally.answered


@pytest.mark.parametrize("window", [1, 3, 1000])
def test_questions_are_remembered_beyond_the_window_they_are_looked_at_in(
    window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unhans.scoring, "_WINDOW", window)
    asked: list[str] = []
    some = ["good", "bad", "good soup", "good", "bad", "good", "soup", "good soup"]

    answers = ask(tiny.bag_of_words(WEIGHTS, asked=asked), some)

    assert log_odds(answers) == pytest.approx([known(text) for text in some], abs=1e-4)
    assert len(asked) == 4


@pytest.mark.parametrize("model", [transformer(), tiny.bag_of_words(WEIGHTS)], ids=["transformer", "black box"])
def test_nothing_asked_is_nothing_answered(model: Any) -> None:
    tally = Tally()

    assert len(ask(model, [], tally=tally, progress=lambda done, total: None, cache=ScoreCache())) == 0
    assert model.log_probs([]).shape == (0, 2)
    assert model.predict([]) == []
    assert tally == Tally()


@pytest.mark.parametrize("labels", [2, 3])
@pytest.mark.parametrize("text", ["good", "", ("good", "bad"), Example("1", "good", "bad"), as_variant("good soup")])
def test_one_text_of_any_kind_can_be_asked(labels: int, text: Any) -> None:
    model = transformer(labels=labels)
    answers = model.log_probs([text])

    assert answers.shape == (1, labels)
    assert np.exp(answers).sum() == pytest.approx(1.0)


def test_a_generator_of_texts_will_do() -> None:
    assert ask(tiny.bag_of_words(WEIGHTS), (text for text in ("good", "bad"))).shape == (2, 2)


def test_single_texts_and_pairs_are_not_confused() -> None:
    model = transformer()
    answers = ask(model, ["good soup", ("good", "soup"), ("soup", "good"), "good soup"], cache=ScoreCache())

    np.testing.assert_array_equal(answers[0], answers[3])
    assert len({line.tobytes() for line in answers}) == 3


def test_rows_that_differ_only_in_the_types_of_their_tokens_are_different_questions() -> None:
    ids = (2, 20, 3, 30, 3)
    rows = [Row(ids, (0, 0, 0, 1, 1)), Row(ids, (0, 0, 0, 0, 0)), Row(ids)]

    assert len({unhans.scoring._key("r", row) for row in rows}) == 3


@pytest.mark.parametrize("text", ["a\x00b", "a\x00\x00b"])
def test_a_pair_is_not_confused_with_a_text_that_has_a_nul_in_it(text: str) -> None:
    def tell(texts: Any) -> Any:
        return [(0.25, 0.75) if isinstance(text, tuple) else (0.75, 0.25) for text in texts]

    model = PredictFunction(tell, ("no", "yes"), "tells pairs")
    first, _, second = text.partition("\x00")

    assert np.exp(ask(model, [text, (first, second)], cache=ScoreCache()))[:, 1].tolist() == pytest.approx([0.25, 0.75])


def test_a_black_box_cannot_be_asked_about_hidden_words() -> None:
    with pytest.raises(Unsupported, match="Delete the words instead"):
        ask(tiny.bag_of_words(WEIGHTS), [Words("good soup").without([0], Hole.MASK)])


# -- batches


@settings(max_examples=300)
@given(
    st.lists(st.integers(1, 600), max_size=80),
    st.integers(1, 3000),
    st.sampled_from([0.0, 0.02, 0.1, 0.5, 1.0]),
)
def test_batches_hold_every_row_once_within_budget_and_waste(lengths: list[int], budget: int, waste: float) -> None:
    batches = list(batches_by_length(lengths, budget, waste))

    assert sorted(number for batch in batches for number in batch) == list(range(len(lengths)))
    for batch in batches:
        sizes = [lengths[number] for number in batch]
        assert sizes
        assert len(sizes) == 1 or sum(sizes) <= budget
        cells = max(sizes) * len(sizes)
        assert cells - sum(sizes) <= waste * cells
    if waste == 1.0:  # where padding does not matter, batches are full: no two neighbours would fit into one
        totals = [sum(lengths[number] for number in batch) for batch in batches]
        firsts = [lengths[batch[0]] for batch in batches]
        assert all(total + first > budget for total, first in zip(totals, firsts[1:], strict=False))


# -- cache


def test_what_is_cached_is_not_asked_again() -> None:
    cache, asked = ScoreCache(), []
    model = tiny.bag_of_words(WEIGHTS, asked=asked)
    first = ask(model, ["good", "bad"], cache=cache)
    tally = Tally()

    again = ask(model, ["bad", "soup", "good", "bad"], cache=cache, tally=tally)

    np.testing.assert_array_equal(again[[2, 0]], first)
    assert asked == ["good", "bad", "soup"]
    assert tally.answered == 1


def test_another_model_does_not_get_the_first_ones_answers() -> None:
    cache = ScoreCache()
    one, other = tiny.transformer("bert", seed=1), tiny.transformer("bert", seed=2)
    ask(one, tiny.SENTENCES, cache=cache)

    np.testing.assert_array_equal(ask(other, tiny.SENTENCES, cache=cache), ask(other, tiny.SENTENCES))


def test_a_cached_answer_is_the_answer_bit_for_bit() -> None:
    cache, model = ScoreCache(), transformer("roberta")

    np.testing.assert_array_equal(
        ask(model, tiny.SENTENCES, cache=cache), ask(model, list(reversed(tiny.SENTENCES)), cache=cache)[::-1]
    )


def test_memory_keeps_the_answers_used_last(tmp_path: Path) -> None:
    cache, asked = ScoreCache(size=3), []
    model = tiny.bag_of_words(WEIGHTS, asked=asked)
    for text in ("good", "bad", "soup"):
        ask(model, [text], cache=cache)
    ask(model, ["good"], cache=cache)  # now "bad" is the one not used for longest
    ask(model, ["not"], cache=cache)
    asked.clear()

    ask(model, ["good", "soup", "not"], cache=cache)
    assert asked == []
    ask(model, ["bad"], cache=cache)
    assert asked == ["bad"]
    assert len(cache._recent) == 3


def test_what_memory_forgot_is_still_in_the_file(tmp_path: Path) -> None:
    cache, asked = ScoreCache(tmp_path / "scores" / "cache.db", size=2), []
    model = tiny.bag_of_words(WEIGHTS, asked=asked)
    some = [f"good {n}" for n in range(1200)]  # more than one look-up in the file

    first = ask(model, some, cache=cache)
    asked.clear()

    np.testing.assert_array_equal(ask(model, some, cache=cache), first)
    assert asked == []
    cache.close()


def test_a_damaged_file_is_begun_anew(tmp_path: Path) -> None:
    path, asked = tmp_path / "cache.db", []
    path.write_bytes(b"this is not a database" * 100)
    (tmp_path / "cache.db-wal").write_bytes(b"nor is this" * 100)
    model = tiny.bag_of_words(WEIGHTS, asked=asked)

    for _ in range(2):
        cache = ScoreCache(path)
        ask(model, ["good"], cache=cache)
        cache.close()

    assert asked == ["good"]


def test_a_file_that_is_only_locked_is_not_thrown_away(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("CREATE TABLE answers (question BLOB PRIMARY KEY, answer BLOB) WITHOUT ROWID")
    holder.execute("INSERT INTO answers VALUES (x'00', x'01')")
    holder.execute("BEGIN EXCLUSIVE")

    with pytest.raises(sqlite3.OperationalError, match="locked"):
        ScoreCache(path)

    holder.execute("COMMIT")
    assert holder.execute("SELECT count(*) FROM answers").fetchone() == (1,)
    assert path.exists()
    holder.close()


PROGRAM = """
import json, sys, tiny
from pathlib import Path
from unhans.scoring import ScoreCache, ask
asked = []
cache = ScoreCache(Path(sys.argv[1]))
texts = ["good soup", ("good", "pair"), "bad\\ud83d", "new"]
answers = ask(tiny.bag_of_words({"good": 2.0}, name="one", asked=asked), texts, cache=cache)
print(json.dumps([asked, answers.tolist()]))
"""


def test_another_process_finds_the_answers_in_the_file_but_not_those_of_another_revision(tmp_path: Path) -> None:
    path, asked = tmp_path / "cache.db", []
    some = ["good soup", ("good", "pair"), "bad\ud83d"]
    cache = ScoreCache(path)
    answers = ask(tiny.bag_of_words({"good": 2.0}, name="one"), some, cache=cache)

    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)],
        env={"PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    other = tiny.bag_of_words({"bad": 2.0}, name="two", asked=asked)
    ask(other, some, cache=cache)
    cache.close()

    asked_there, answers_there = json.loads(ran.stdout)
    assert asked_there == ["new"]
    assert answers_there[:3] == answers.tolist()
    assert len(asked) == 3


def test_threads_may_share_a_cache() -> None:
    cache = ScoreCache(size=20)
    keys = [bytes([number]) for number in range(60)]
    failures: list[Exception] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(3000):
            some = rng.integers(0, 60, 5).tolist()
            try:
                found = cache.get([keys[number] for number in some])
                assert all(value[0] == key[0] for key, value in found.items())
                cache.put({keys[number]: np.full(2, number, np.float32) for number in some})
            except Exception as error:  # noqa: BLE001 - a thread's failure must reach the test
                failures.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        in_parallel(work)
    finally:
        sys.setswitchinterval(before)

    assert not failures


def test_threads_may_share_a_cache_file(tmp_path: Path) -> None:
    cache = ScoreCache(tmp_path / "cache.db", size=3)
    model = tiny.bag_of_words(WEIGHTS, name="shared")
    found: list[list[float]] = []

    def work(seed: int) -> None:
        for n in range(10):
            found.append(log_odds(ask(model, ["good " * n, "bad " * n], cache=cache)))

    in_parallel(work)
    cache.close()

    assert len(found) == 40
    for n in range(10):
        wanted = [known("good " * n), known("bad " * n)]
        assert sum(line == pytest.approx(wanted, abs=1e-2) for line in found) == 4


def in_parallel(work: Any) -> None:
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# -- progress and cancellation


@pytest.mark.parametrize("window", [4, 1000])
@pytest.mark.parametrize("kind", ["bert", "gpt2", "black box"])
def test_progress_never_runs_backwards_and_ends_at_the_total(
    kind: str, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unhans.scoring, "_WINDOW", window)
    monkeypatch.setattr(unhans.model, "TOKEN_BUDGET", 20)
    model = tiny.bag_of_words(WEIGHTS) if kind == "black box" else transformer(kind)
    for kept in (None, ScoreCache()):
        for some in (tiny.SENTENCES, tiny.SENTENCES[:1], (*tiny.SENTENCES, *tiny.SENTENCES)):
            told: list[tuple[int, int]] = []
            ask(model, some, cache=kept, progress=lambda done, total, told=told: told.append((done, total)))  # type: ignore[misc]

            assert [done for done, _ in told] == sorted(done for done, _ in told)
            assert {total for _, total in told} == {len(some)}
            assert told[-1] == (len(some), len(some))


@pytest.mark.parametrize("after", [0, 1, 3])
def test_stopping_keeps_what_was_answered_before(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unhans.model, "TOKEN_BUDGET", 40)
    model, cache, first, second = transformer(), ScoreCache(), Tally(), Tally()
    looks = iter(range(1000))

    with pytest.raises(Cancelled):
        ask(model, tiny.SENTENCES, cache=cache, tally=first, cancelled=lambda: next(looks) >= after)
    answers = ask(model, tiny.SENTENCES, cache=cache, tally=second)

    assert first.batches == after
    assert first.answered + second.answered == len(tiny.SENTENCES)
    np.testing.assert_allclose(answers, ask(model, tiny.SENTENCES), atol=1e-5)


def test_a_model_that_breaks_half_way_loses_nothing_that_was_answered() -> None:
    cache, calls = ScoreCache(), []

    def predict(texts: Any) -> Any:
        calls.append(list(texts))
        if len(calls) == 2:
            raise ConnectionError("gone")
        return [(0.5, 0.5)] * len(texts)

    model = PredictFunction(predict, ("a", "b"), "breaks", batch_size=4)
    some = [f"text {n}" for n in range(10)]
    with pytest.raises(ModelFailed):
        ask(model, some, cache=cache)

    ask(model, some, cache=cache)

    assert [len(call) for call in calls] == [4, 4, 4, 2]
    assert math.isclose(float(np.exp(ask(model, some, cache=cache)).sum()), 10.0, rel_tol=1e-5)
