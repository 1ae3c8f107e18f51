"""The front door of the attributions, and word rankings."""

from __future__ import annotations

import pytest

import tiny
from unhans.attributions import attribute
from unhans.errors import BadData, BadOption, Cancelled
from unhans.scoring import ScoreCache
from unhans.task import rank_words
from unhans.types import Attribution, Example, from_json

EXAMPLES = [Example(str(n), text) for n, text in enumerate(["Good film", "good soup", "bad soup", "bad GOOD"])]
MODEL = tiny.bag_of_words({"good": 1.0, "Good": 1.0, "GOOD": 1.0, "bad": -2.0})


def test_an_unknown_method_names_its_neighbour():
    with pytest.raises(BadOption, match="leave_one_out"):
        attribute(MODEL, EXAMPLES, method="leave_one")


def test_an_unknown_option_names_those_there_are():
    with pytest.raises(BadOption, match="erase"):
        attribute(MODEL, EXAMPLES, erases="mask")


def test_an_unknown_label_names_those_there_are():
    with pytest.raises(BadOption, match="negative, positive"):
        attribute(MODEL, EXAMPLES, target="neutral")


def test_the_recipe_says_what_was_run():
    (one,) = attribute(MODEL, EXAMPLES[:1], unit="probability")
    assert str(one.recipe) == "leave_one_out(erase=delete, unit=probability)"


def test_cancelling_stops_the_work():
    with pytest.raises(Cancelled):
        attribute(MODEL, EXAMPLES, cancelled=lambda: True)


def test_a_cache_answers_what_was_asked_before():
    asked, cache = [], ScoreCache()
    model = tiny.bag_of_words({"good": 1.0}, asked=asked)
    first = attribute(model, EXAMPLES, cache=cache)
    n = len(asked)
    assert attribute(model, EXAMPLES, cache=cache) == first
    assert len(asked) == n > 0


def test_plain_texts_are_numbered_as_in_predictions():
    assert [one.example for one in attribute(MODEL, ["good soup", "bad soup"])] == ["1", "2"]


def test_a_batch_size_of_nothing_is_refused():
    with pytest.raises(BadOption, match="at least 1"):
        attribute(MODEL, EXAMPLES, batch_size=0)


def test_words_that_were_not_read_are_not_ranked():
    long = [Example("x", "soup " * 31 + "film")]  # 32 tokens, two of them control tokens: the film is not seen
    found = attribute(tiny.transformer(), long, target="positive")
    assert [row.word for row in rank_words(found, label="positive", min_count=1).words] == ["soup"]


def test_progress_ends_at_the_number_of_examples():
    seen = []
    attribute(MODEL, EXAMPLES, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (4, 4)


def test_words_that_look_alike_are_ranked_together():
    ranking = rank_words(attribute(MODEL, EXAMPLES, target="positive"), label="positive", min_count=1)
    by_word = {row.word: row for row in ranking.words}
    assert by_word["good"].count == 3
    assert by_word["good"].score == pytest.approx(1.0, abs=1e-4)
    assert by_word["bad"].score == pytest.approx(-2.0, abs=1e-4)
    assert ranking.words[0].word == "good"
    assert ranking.words[-1].word == "bad"


def test_a_word_that_occurs_twice_counts_once_per_example():
    ranking = rank_words(
        attribute(MODEL, [Example("x", "good good")], target="positive"), label="positive", min_count=1
    )
    assert ranking.words[0].count == 1
    assert ranking.words[0].score == pytest.approx(2.0, abs=1e-4)


def test_rare_words_are_left_out_and_total_prefers_common_ones():
    model = tiny.bag_of_words({"rare": 3.0, "common": 1.0})
    examples = [Example(str(n), "common") for n in range(5)] + [Example("r", "rare")]
    found = attribute(model, examples, target="positive")
    assert [row.word for row in rank_words(found, label="positive", min_count=2).words] == ["common"]
    ordered = rank_words(found, label="positive", order="total", min_count=1)
    assert [row.word for row in ordered.words] == ["common", "rare"]
    assert [row.word for row in rank_words(found, label="positive", min_count=1).words] == ["rare", "common"]


def test_ranking_for_a_label_nobody_explained_is_an_error():
    with pytest.raises(BadData, match="nothing to rank"):
        rank_words(attribute(MODEL, EXAMPLES, target="positive"), label="negative")


def test_attributions_become_plain_data_lines_tables_and_pages():
    found = attribute(MODEL, EXAMPLES, target="positive")
    assert [from_json(Attribution, line) for line in found.to_json().splitlines()] == list(found)
    assert found.to_dict()[0]["words"] == ["Good", "film"]
    table = found.to_dataframe()
    assert list(table["word"][:2]) == ["Good", "film"]
    assert table["score"].sum() == pytest.approx(sum(score for one in found for score in one.scores))
    assert found.to_html().count("for positive") == len(found)
    assert "leave_one_out" in repr(found)


def test_a_target_can_be_a_number():
    by_name, by_number = (attribute(MODEL, EXAMPLES, target=target) for target in ("positive", 1))
    assert by_name == by_number


def test_unknown_units_are_refused():
    with pytest.raises(BadOption, match="word, phrase, sentence"):
        attribute(MODEL, EXAMPLES, units="paragraph")


def test_a_bar_is_shown_where_someone_looks(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    attribute(MODEL, EXAMPLES, show_progress=True)
    assert "Explaining" in capsys.readouterr().err
    attribute(MODEL, EXAMPLES)
    assert "Explaining" not in capsys.readouterr().err


def test_words_the_model_does_not_read_do_not_move_up_when_others_are_deleted():
    classifier = tiny.transformer()
    read, tail = "soup was cold and the film " * 5, "wonderful " * 30  # 32 tokens, two of them control tokens
    short, long = (attribute(classifier, [Example("x", text)], target=1)[0] for text in (read, read + tail))
    assert long.unread == tuple(range(30, 60))
    assert long.scores[:30] == pytest.approx(short.scores, abs=1e-5)


def test_gradients_of_a_sentence_are_the_sum_over_its_words_and_erasing_takes_it_whole():
    classifier, example = tiny.transformer(), Example("x", "The soup was cold. A wonderful film!")
    by_word, by_sentence = (
        attribute(classifier, [example], method="ixg", target=1, units=units)[0] for units in ("word", "sentence")
    )
    assert by_sentence.scores == pytest.approx((sum(by_word.scores[:5]), sum(by_word.scores[5:])), abs=1e-5)
    model = tiny.bag_of_words({"cold": -1.0, "wonderful": 2.0, "film": 0.5})
    (erased,) = attribute(model, [example], target="positive", units="sentence")
    assert erased.scores == pytest.approx((-1.0, 2.5), abs=1e-4)
