"""Several methods by several metrics: what is run, what is left out, and what follows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import rankdata

import tiny
import unhans
from unhans.attributions import attribution
from unhans.comparison import compare
from unhans.errors import BadOption, Cancelled, Unsupported
from unhans.metrics import measure
from unhans.types import Comparison, Example, Span, Terms, from_json, to_json

WEIGHTS = {"good": 2.0, "fine": 1.0, "bad": -1.5, "dull": -1.0}
BAG = tiny.bag_of_words(WEIGHTS)
_RNG = np.random.default_rng(0)
EXAMPLES = [
    Example(str(n), " ".join(str(w) for w in _RNG.choice([*WEIGHTS, "the", "film", "was", "and", "so", "it"], size=9)))
    for n in range(30)
]
SENTENCES = [Example(str(n), text) for n, text in enumerate(tiny.SENTENCES)]
PROBABILITY = ("leave_one_out", {"unit": "probability"})


@pytest.fixture
def word_length():
    """A method that does not look at the model, there for one test only."""

    @attribution(needs={"predict"}, paper="none", terms=Terms(signed=False))
    def word_length(words):
        """Longer words count more."""
        return [np.array([float(len(word)) for word in one.strings]) for one in words]

    yield "word_length"
    del attribution._entries["word_length"]


def test_the_method_that_knows_the_model_is_trusted_and_the_other_named(word_length):
    found = compare(BAG, EXAMPLES, methods=[word_length, "leave_one_out"])
    assert [row.method.name for row in found.methods] == ["leave_one_out", "word_length"]
    assert found.verdict.startswith("On these 30 texts trust leave_one_out most: mean rank 1.")
    assert "word_length is no better than random by " in found.verdict
    assert "within noise" not in found.verdict
    assert found.methods[0].beats_random == found.methods[0].contests > 3


def test_a_method_that_does_not_depend_on_the_model_is_never_recommended(word_length):
    found = compare(tiny.transformer(), SENTENCES, methods=[word_length], metrics=["sanity_spearman"])
    assert found.methods[0].warning == "does not depend on the model"
    assert found.verdict == (
        "On these 12 texts none of the methods can be trusted. word_length does not depend on the model."
    )


def test_a_method_with_a_warning_stands_behind_one_without_whatever_its_rank(word_length):
    metrics = ["stability", "sanity_spearman", "auprc"]
    marked = [  # people marked the longest words, so the blind method agrees with them best
        Example(e.id, e.text, highlights=(_longest(e.text),), label=p.label)
        for e, p in zip(SENTENCES, tiny.transformer().predict(SENTENCES), strict=True)
    ]
    found = compare(tiny.transformer(), marked, methods=[word_length, "leave_one_out"], metrics=metrics)
    best, other = found.methods
    assert (best.method.name, other.method.name) == ("leave_one_out", "word_length")
    assert other.rank <= best.rank
    assert not other.within_noise


def _longest(text):
    from unhans.text import Words

    return max(Words(text).spans, key=lambda span: span.end - span.start)


def test_grades_are_those_of_measure():
    found = compare(BAG, EXAMPLES, methods=["leave_one_out", PROBABILITY], metrics=["deletion", "infidelity"], seed=2)
    for grade in found.grades:
        options = dict(grade.method.options)
        alone = measure(BAG, EXAMPLES, metric=grade.metric, method_options=options, seed=2)
        assert grade == alone


def test_ranks_are_averaged_inside_each_family_first(word_length):
    marked = [Example(e.id, e.text, highlights=(Span(0, 3),), label=p.label)
              for e, p in zip(EXAMPLES, BAG.predict(EXAMPLES), strict=True)]  # fmt: skip
    found = compare(BAG, marked, methods=["leave_one_out", PROBABILITY, word_length])
    by_family: dict[str, list] = {}
    for metric in dict.fromkeys(grade.metric for grade in found.grades):
        grades = [g for row in found.methods for g in found.grades if g.metric == metric and g.method == row.method]
        sign = -1 if grades[0].better == "higher" else 1
        by_family.setdefault(grades[0].family, []).append(rankdata([round(sign * g.value, 12) for g in grades]))
    assert {len(ranks) for ranks in by_family.values()} >= {1, 5, 7}
    wanted = np.mean([np.mean(ranks, axis=0) for ranks in by_family.values()], axis=0)
    assert [row.rank for row in found.methods] == pytest.approx(wanted.tolist())


def test_methods_that_order_words_alike_are_within_noise():
    found = compare(BAG, EXAMPLES, methods=["leave_one_out", PROBABILITY], metrics=["deletion", "stability"])
    assert found.methods[1].within_noise
    assert "leave_one_out(erase=delete, unit=probability) is within noise" in found.verdict


def test_a_lead_that_other_texts_might_undo_is_within_noise():
    classifier = tiny.transformer()
    marked = [
        Example(e.id, e.text, highlights=(Span(0, 9),), label=p.label)
        for e, p in zip(SENTENCES, classifier.predict(SENTENCES), strict=True)
    ]
    methods = ["leave_one_out", "input_x_gradient"]
    found = compare(classifier, marked, methods=methods, metrics=["auprc", "stability"])
    first, second = found.methods
    assert first.rank < second.rank
    assert second.within_noise


def test_where_only_erasure_is_asked_for_another_family_is_added():
    black_box = compare(BAG, EXAMPLES[:5], methods=["leave_one_out"], metrics=["deletion", "sufficiency"])
    assert {grade.metric for grade in black_box.grades} == {"deletion_auc", "sufficiency", "stability"}
    assert any(note.startswith("stability was added") for note in black_box.notes)
    weights = compare(tiny.transformer(), SENTENCES[:5], methods=["leave_one_out"], metrics=["deletion"])
    assert {grade.metric for grade in weights.grades} == {"deletion_auc", "sanity_spearman"}


def test_another_family_is_not_added_where_there_is_one():
    found = compare(BAG, EXAMPLES[:5], methods=["leave_one_out"], metrics=["deletion", "stability"])
    assert not any("was added" in note for note in found.notes)


def test_what_is_left_out_is_said_with_the_reason():
    found = compare(BAG, EXAMPLES[:5], methods=["leave_one_out"])
    notes = " ".join(found.notes)
    assert "token_iou, token_precision, token_recall: needs examples with highlights" in notes
    assert "Left out: deletion_mlm_auc: needs language_model=" in notes
    assert "sanity_spearman: needs train" in notes
    assert "roar" not in notes + repr(found)  # training is for those who ask for it


class Sines(torch.nn.Module):
    """An activation that DeepLift has no rule for."""

    def forward(self, x):
        return 5 * torch.sin(8 * x)


def bent():
    classifier = tiny.transformer().clone()
    for layer in classifier.model.bert.encoder.layer:
        layer.intermediate.intermediate_act_fn = Sines()
    return classifier


def test_a_usual_method_that_refuses_the_model_is_left_out_and_one_asked_for_is_an_error():
    found = compare(bent(), SENTENCES[:4], metrics=["sanity_spearman"])
    assert sorted(recipe.name for recipe in {row.method for row in found.methods}) == [
        "input_x_gradient",
        "integrated_gradients",
        "leave_one_out",
        "lrp",
    ]
    (note,) = (note for note in found.notes if "deeplift" in note)
    assert note.startswith("Left out: deeplift: DeepLift's scores do not add up")
    with pytest.raises(Unsupported, match="do not add up"):
        compare(bent(), SENTENCES[:4], methods=["leave_one_out", "deeplift"], metrics=["sanity_spearman"])


def test_a_method_that_refuses_the_models_of_a_metric_has_no_grade_by_it(picky):
    methods, metrics = [picky, "leave_one_out"], ["sanity_spearman", "deletion"]
    found = compare(tiny.transformer(), SENTENCES[:4], methods=methods, metrics=metrics)
    assert "sanity_spearman does not grade picky: It is another model." in found.notes
    assert {row.method.name for row in found.methods} == set(methods)


def test_retraining_runs_when_asked_for():
    train = [Example(f"t{n}", e.text, label=("negative", "positive")[n % 2]) for n, e in enumerate(EXAMPLES)]
    found = compare(BAG, train[:6], methods=["leave_one_out"], metrics=["roar"], train=train, start=tiny.transformer())
    assert {grade.metric for grade in found.grades} == {"roar", "stability"}


def test_it_says_whom_the_metrics_favour():
    found = compare(BAG, EXAMPLES[:5], methods=["leave_one_out"], metrics=["deletion", "sufficiency", "stability"])
    assert any(note.startswith("deletion_auc, sufficiency: Favours methods that delete") for note in found.notes)


def test_a_metric_that_does_not_grade_all_is_shown_and_not_ranked(word_length):
    methods = [word_length, "leave_one_out"]
    metrics = ["sanity_sign_changes", "deletion"]
    found = compare(tiny.transformer(), SENTENCES, methods=methods, metrics=metrics)
    notes = " ".join(found.notes)
    assert "sanity_sign_changes does not grade word_length" in notes
    assert "sanity_sign_changes: shown, but not ranked" in notes
    _, rows = found.table()
    assert any(row[0] == "sanity_sign_changes" and "–" in row for row in rows)


def test_after_the_budget_no_metric_is_begun():
    found = compare(BAG, EXAMPLES[:5], methods=["leave_one_out"], metrics=["deletion", "stability"], budget=0.0)
    assert {grade.metric for grade in found.grades} == {"deletion_auc"}
    assert "Not measured: stability, because the budget of 0 seconds was used up." in found.notes


@pytest.mark.parametrize("methods", [[], ["leave_one_out", "leave_one_out"]])
def test_methods_must_be_named_each_once(methods):
    with pytest.raises(BadOption, match="each once"):
        compare(BAG, EXAMPLES[:3], methods=methods, metrics=["stability"])


def test_metrics_that_all_cannot_be_used_are_an_error_with_the_reasons():
    with pytest.raises(BadOption, match="needs examples with highlights"):
        compare(BAG, EXAMPLES[:3], methods=["leave_one_out"], metrics=["token_f1"])


def test_cancelling_stops_the_work():
    with pytest.raises(Cancelled):
        compare(BAG, EXAMPLES[:3], methods=["leave_one_out"], cancelled=lambda: True)


def test_the_model_is_asked_each_question_once():
    asked = []
    model = tiny.bag_of_words(WEIGHTS, asked=asked)
    compare(model, EXAMPLES[:8], methods=["leave_one_out", PROBABILITY])
    assert len(asked) == len(set(asked))


def test_the_same_seed_gives_the_same_comparison_and_it_survives_json():
    first, second = (compare(BAG, EXAMPLES[:8], methods=["leave_one_out"], seed=4) for _ in range(2))
    assert first == second == from_json(Comparison, to_json(first))


def test_progress_climbs_to_the_end():
    told = []
    compare(
        BAG,
        EXAMPLES[:4],
        methods=["leave_one_out", PROBABILITY],
        metrics=["deletion", "stability"],
        progress=lambda done, total: told.append((done, total)),
    )
    assert told == [(n, 6) for n in range(1, 7)]


def test_a_comparison_is_printed_as_a_table_with_the_verdict():
    found = unhans.compare(BAG, EXAMPLES, methods=["leave_one_out", PROBABILITY], metrics=["deletion", "stability"])
    told = repr(found).splitlines()
    assert told[0].split()[:3] == ["metric", "family", "better"]
    assert told[1].startswith("deletion_auc")
    assert "*" in told[1]
    assert found.verdict in told
    assert unhans.compare is compare  # the module must not take the function's name
