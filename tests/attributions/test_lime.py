from __future__ import annotations

import warnings

import numpy as np
import pytest

import tiny
from unhans.attributions import attribute
from unhans.attributions.lime import kernel, ridge
from unhans.errors import BadOption
from unhans.ranks import spearman
from unhans.types import Example

TEXT = Example("x", "The soup was cold and the waiter did not care at all so we left early")
PLAIN = {"method": "lime", "sampling": "plain", "target": 1}


def limes_own(classifier, text, *, label=1, num_samples=1000, seed=0, **options):
    """The `lime` package's answer for every occurrence of a word, and all that it was computed from."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lime_text = pytest.importorskip("lime.lime_text")
        explainer = lime_text.LimeTextExplainer(
            bow=False, mask_string="", feature_selection="none", random_state=seed, **options
        )
        seen, explain = {}, explainer.base.explain_instance_with_data

        def spy(data, answers, distances, *rest, **more):
            seen.update(masks=data == 1, values=answers[:, label])
            return explain(data, answers, distances, *rest, **more)

        explainer.base.explain_instance_with_data = spy
        found = explainer.explain_instance(
            text,
            lambda texts: np.exp(classifier.log_probs(texts)),
            labels=(label,),
            num_features=1000,
            num_samples=num_samples,
        )
    return np.array([score for _, score in sorted(found.local_exp[label])]), seen["masks"], seen["values"]


@pytest.mark.parametrize("width", [25.0, 5.0])
@pytest.mark.parametrize("text", [TEXT.text, "cold soup", "soup"])
def test_given_limes_own_masks_it_gives_limes_own_answer(width, text):
    theirs, masks, values = limes_own(tiny.transformer(), text, kernel_width=width)
    assert np.allclose(ridge(masks, values, kernel(masks, width)), theirs, atol=1e-8)


def test_plain_sampling_counts_every_sample_as_lime_does():
    theirs, masks, values = limes_own(tiny.transformer(), TEXT.text, num_samples=300)
    from unhans.attributions.lime import slopes

    _, fit = slopes("plain", 25.0, 300)
    assert np.allclose(fit(masks, values, np.ones(300)), theirs, atol=1e-8)


WEIGHTS = {word: n / 4 - 2 for n, word in enumerate(TEXT.text.split())}


@pytest.mark.parametrize("sampling", ["paired", "plain"])
@pytest.mark.parametrize(
    ("classifier", "text"),
    [
        (tiny.bag_of_words(WEIGHTS), TEXT.text),
        (tiny.transformer(), "The soup was cold and wonderful today"),
        (tiny.transformer(labels=3), "The soup was cold and wonderful today"),
    ],
)
def test_it_orders_words_as_lime_does(sampling, classifier, text):
    label = len(classifier.labels) - 1
    theirs, *_ = limes_own(classifier, text, label=label)
    (one,) = attribute(classifier, text, method="lime", sampling=sampling, target=label)
    assert spearman(np.array(one.scores), theirs) >= 0.9


def test_paired_samples_estimate_what_lime_estimates():
    classifier, text = tiny.transformer(), Example("x", "The soup was cold and wonderful")
    (paired,) = attribute(classifier, [text], method="lime", target=1)
    assert paired.asked == 2**6
    runs = [attribute(classifier, [text], **PLAIN, seed=seed)[0].scores for seed in range(30)]
    spread = np.std(runs, axis=0) / np.sqrt(len(runs))
    assert np.all(np.abs(np.mean(runs, axis=0) - paired.scores) < 4 * spread)
    assert np.all(spread > 0)


def test_paired_samples_are_nearer_to_the_truth_than_plain_ones():
    classifier = tiny.transformer()
    text = Example("x", "The soup was cold and the waiter did not care")
    truth = np.array(attribute(classifier, [text], method="lime", target=1, num_samples=1024)[0].scores)

    def off(sampling):
        options = {"method": "lime", "target": 1, "sampling": sampling, "num_samples": 200}
        runs = [attribute(classifier, [text], **options, seed=seed)[0] for seed in range(8)]
        return np.mean([np.square(run.scores - truth).sum() for run in runs])

    assert off("paired") < off("plain")


def test_stopping_early_does_not_change_what_the_penalty_does():
    model = tiny.bag_of_words(WEIGHTS)
    options = {"method": "lime", "target": 1, "unit": "log_odds", "num_samples": 2000}
    (whole,) = attribute(model, [TEXT], **options)
    for sampling in ("paired", "plain"):
        (early,) = attribute(model, [TEXT], **options, tolerance=0.1, sampling=sampling)
        assert early.asked < 500
        slope = np.dot(early.scores, whole.scores) / np.dot(whole.scores, whole.scores)
        assert slope == pytest.approx(1, abs=0.05)


def test_a_repeated_word_has_a_score_at_each_place():
    (one,) = attribute(tiny.transformer(), [Example("x", "soup and soup")], method="lime", target=1)
    assert one.scores[0] != pytest.approx(one.scores[2], abs=1e-3)


def test_a_pair_is_explained_as_one():
    weights = {"good": 1.0, "bad": -1.0}
    asked = []

    def predict(texts):
        asked.extend(texts)
        x = [sum(weights.get(word, 0) for part in text for word in part.split()) for text in texts]
        return np.array([(1 / (1 + np.exp(v)), 1 / (1 + np.exp(-v))) for v in x])

    from unhans.black_boxes import PredictFunction

    model = PredictFunction(predict, ("no", "yes"), "pairs")
    (one,) = attribute(model, [Example("x", "good day", "bad day")], method="lime", target="yes")
    assert one.scores[0] > 0.05
    assert one.scores[2] == pytest.approx(-one.scores[0], abs=1e-6)
    assert ("good", "day") in asked


@pytest.mark.parametrize("erase", ["mask", "unk", "pad"])
def test_words_can_be_hidden_instead_of_deleted(erase):
    deleted, hidden = (
        attribute(tiny.transformer(), [TEXT], method="lime", target=1, erase=how)[0].scores for how in ("delete", erase)
    )
    assert not np.allclose(deleted, hidden, atol=1e-3)


def test_a_narrow_kernel_is_more_local():
    model = tiny.bag_of_words({"good": 9.0, "fine": 9.0, "bad": -1.0})
    example = Example("x", "good and fine and bad")
    wide, narrow = (
        attribute(model, [example], method="lime", target=1, kernel_width=width)[0].scores for width in (25.0, 5.0)
    )
    assert 0 < narrow[0] < wide[0]  # where the other word stays, one of them more or less makes no difference
    with pytest.raises(BadOption, match="kernel_width"):
        attribute(model, [example], method="lime", kernel_width=0)
