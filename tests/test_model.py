"""Classifiers: every architecture answers as Hugging Face does, and gradients belong to the text they are asked of."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import processors
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import tiny
import unhans
from unhans.data import read
from unhans.errors import BadModel, BadOption, Unsupported
from unhans.model import Predictions, TransformerClassifier
from unhans.scoring import Tally
from unhans.text import Hole, Words, as_variant
from unhans.tokens import padded
from unhans.types import Example, Prediction, Span

PAIRS = (
    ("The soup was cold.", "It was hot."),
    ("A wonderful film", "the plot makes no sense, the music saves it"),
    ("yes", "no"),
)
TEXTS = (*tiny.SENTENCES[:8], "good", "Is it?", "x", "cold " * 20)
EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Folders by architecture and number of labels, each made once."""
    made: dict[tuple[str, int], Path] = {}

    def folder(kind: str, labels: int = 2) -> Path:
        if (kind, labels) not in made:
            path = tmp_path_factory.mktemp("models") / f"{kind}-{labels}"
            made[kind, labels] = tiny.save_folder(path, kind, labels=labels)
        return made[kind, labels]

    return folder


def hugging_face(folder: Path, texts: Any) -> np.ndarray:
    """Probabilities by Hugging Face's own classes, one text at a time."""
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    lines = []
    for text in texts:
        parts = (text,) if isinstance(text, str) else text
        inputs = tokenizer(*parts, truncation=True, max_length=tiny.LIMIT, return_tensors="pt")
        with torch.no_grad():
            lines.append(model(**inputs).logits.softmax(-1)[0])
    return torch.stack(lines).numpy()


def examples(texts: Any) -> list[Example]:
    return [
        Example(str(n), text) if isinstance(text, str) else Example(str(n), text[0], text[1])
        for n, text in enumerate(texts)
    ]


# -- the answers


@pytest.mark.parametrize("labels", [2, 3])
@pytest.mark.parametrize("kind", tiny.KINDS)
def test_every_architecture_answers_as_hugging_face_does(folders: Any, kind: str, labels: int) -> None:
    classifier = unhans.load(folders(kind, labels))
    ours = [prediction.probabilities for prediction in classifier.predict(TEXTS)]
    theirs = hugging_face(folders(kind, labels), TEXTS)
    assert np.abs(np.array(ours) - theirs).max() < 1e-5
    assert np.ptp(theirs, axis=0).max() > 0.2  # the answers differ, so that equal ones mean something


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_every_architecture_reads_pairs_as_hugging_face_does(folders: Any, kind: str) -> None:
    classifier = unhans.load(folders(kind))
    ours = [prediction.probabilities for prediction in classifier.predict(list(PAIRS))]
    assert np.abs(np.array(ours) - hugging_face(folders(kind), PAIRS)).max() < 1e-5


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_the_order_of_the_texts_does_not_matter(folders: Any, kind: str) -> None:
    classifier = unhans.load(folders(kind))
    order = np.random.default_rng(0).permutation(len(TEXTS))
    straight = classifier.log_probs(TEXTS)
    shuffled = classifier.log_probs([TEXTS[place] for place in order])
    assert np.abs(shuffled - straight[order]).max() < 1e-5


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_the_path_for_gradients_gives_the_same_logits(folders: Any, kind: str) -> None:
    classifier = unhans.load(folders(kind))
    batch = classifier.batch(examples(TEXTS))
    with torch.no_grad():
        from_ids = classifier.logits(batch).log_softmax(-1).numpy()
        from_embeddings = classifier.logits(batch, classifier.embed(batch)).log_softmax(-1).numpy()
    assert np.abs(from_ids - classifier.log_probs(TEXTS)).max() < 1e-4
    assert np.abs(from_embeddings - classifier.log_probs(TEXTS)).max() < 1e-4


@pytest.mark.parametrize("kind", tiny.KINDS)
@pytest.mark.parametrize(
    "text", ["", " ", "\n", "good", "\u200b", "[MASK]", "</s> <s> <|endoftext|>", ("", ""), ("a", "")]
)
def test_texts_of_almost_nothing_are_answered(folders: Any, kind: str, text: Any) -> None:
    classifier = unhans.load(folders(kind))
    prediction = classifier.predict(text)[0]
    assert sum(prediction.probabilities) == pytest.approx(1)
    batch = classifier.batch(examples([text]))
    assert torch.isfinite(classifier.logits(batch, classifier.embed(batch))).all()
    assert batch.owners.shape == batch.ids.shape
    assert batch.to_words(torch.ones(batch.ids.shape)).shape == (1, batch.n_words)


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_a_text_whose_only_word_is_deleted_can_be_asked_about(folders: Any, kind: str) -> None:
    classifier = unhans.load(folders(kind))
    assert np.isfinite(classifier.log_probs([Words("good").without([0]), as_variant("good")])).all()


@pytest.mark.parametrize("kind", ["bert", "roberta", "albert", "gpt2"])
def test_a_control_word_in_a_text_is_read_as_text(folders: Any, kind: str) -> None:
    classifier = unhans.load(folders(kind))
    control = str(classifier.tokenizer.mask_token or classifier.tokenizer.eos_token)
    words = Words(f"The soup was {control}.")
    spelled = classifier.questions([as_variant(f"The soup was {control}.")])[0]
    frame = set(classifier.questions([as_variant("")])[0].ids)
    assert (
        not (set(spelled.ids) & set(classifier.tokenizer.all_special_ids)) - frame - {classifier.tokenizer.unk_token_id}
    )
    if classifier.tokenizer.mask_token:
        hidden = words.without(range(3, len(words)), Hole.MASK)
        assert classifier.questions([hidden])[0] != spelled


# -- what was not read


def test_a_long_text_tells_from_which_word_on_it_was_not_read(folders: Any) -> None:
    classifier = unhans.load(folders("bert"))
    text = " ".join(["soup"] * 29 + ["cold"] * 4 + ["   "])
    (unread,) = classifier.predict(text)[0].unread
    assert unread == Span(30 * 5, len(text.rstrip()))
    assert classifier.predict(" ".join(["soup"] * 30))[0].unread == ()


def test_what_is_unread_has_no_say_and_what_is_read_has(folders: Any) -> None:
    classifier = unhans.load(folders("bert"))
    text = " ".join(["soup"] * 28 + ["cold", "good", "last", "word"])
    (unread,) = classifier.predict(text)[0].unread
    same = text[: unread.start] + "film"
    other = text[: unread.start - len("good ")] + "film film"
    assert classifier.predict(same)[0].probabilities == classifier.predict(text)[0].probabilities
    assert classifier.predict(other)[0].probabilities != classifier.predict(text)[0].probabilities


def test_a_full_stop_that_is_one_token_with_its_word_counts_as_read(folders: Any) -> None:
    classifier = unhans.load(folders("albert"))
    assert "▁care." in classifier.tokenizer.get_vocab()
    text = "did not care. " * 3 + "The soup was cold. " * 20
    (unread,) = classifier.predict(text)[0].unread
    assert unread.start > text.rindex("care.")


def test_both_parts_of_a_long_pair_tell_what_was_not_read(folders: Any) -> None:
    classifier = unhans.load(folders("bert"))
    prediction = classifier.predict(("soup " * 40, "film " * 40))[0]
    assert [span.part for span in prediction.unread] == ["text", "pair"]
    room = tiny.LIMIT - 3
    assert {span.start // 5 for span in prediction.unread} == {room // 2, room - room // 2}
    (only,) = classifier.predict(("soup " * 40, "film"))[0].unread
    assert only.part == "text"


def test_a_tokenizer_that_cuts_at_the_left_leaves_the_beginning_unread(folders: Any, tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folders("bert"), truncation_side="left")
    classifier = unhans.load((tiny.model("bert"), tokenizer))
    (unread,) = classifier.predict("soup " * 40)[0].unread
    assert unread == Span(0, 10 * 5 - 1)


def test_max_length_lowers_the_limit_and_never_raises_it(folders: Any) -> None:
    assert unhans.load(folders("bert"), max_length=10).limit == 10
    assert unhans.load(folders("bert"), max_length=1000).limit == tiny.LIMIT


# -- gradients


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_gradients_are_those_of_each_text_alone(folders: Any, kind: str) -> None:
    """Straight autograd on Hugging Face's model, one text at a time, without padding or a mask."""
    classifier = unhans.load(folders(kind, 3))
    model = AutoModelForSequenceClassification.from_pretrained(folders(kind, 3)).eval()
    texts = [TEXTS[0], "good", TEXTS[1], PAIRS[0] if kind != "distilbert" else "a film", "cold " * 40]
    targets = torch.tensor([0, 1, 2, 1, 0])
    batch = classifier.batch(examples(texts))
    ours = classifier.gradient(classifier.embed(batch), batch, targets)
    for row, target in enumerate(targets):
        inside = batch.mask[row].bool()
        ids = batch.ids[row, inside][None]
        types = {} if batch.types is None else {"token_type_ids": batch.types[row, inside][None]}
        leaf = model.get_input_embeddings()(ids).detach().requires_grad_()
        model(inputs_embeds=leaf, **types).logits[0, target].backward()
        assert leaf.grad is not None
        assert leaf.grad.abs().max() > 1e-4
        assert torch.allclose(ours[row, inside], leaf.grad[0], atol=1e-5, rtol=1e-3)
        assert ours[row, ~inside].abs().max() == 0 if (~inside).any() else True


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_gradients_are_the_slope_of_the_logit(folders: Any, kind: str) -> None:
    classifier = unhans.load(folders(kind))
    classifier.model.double()
    batch = classifier.batch(examples(TEXTS[:2]))
    start = classifier.embed(batch).detach()
    targets = torch.tensor([0, 1])
    direction = torch.randn(start.shape, generator=torch.Generator().manual_seed(0), dtype=start.dtype)
    direction *= batch.mask[..., None]

    def logit(step: float) -> torch.Tensor:
        with torch.no_grad():
            return classifier.logits(batch, start + step * direction).gather(1, targets[:, None])[:, 0]

    slope = (logit(1e-3) - logit(-1e-3)) / 2e-3  # some architectures compute parts in single precision all the same
    told = (classifier.gradient(start, batch, targets) * direction).sum((1, 2))
    assert torch.allclose(told, slope, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_a_loss_on_gradients_reaches_the_weights_inside(folders: Any, kind: str) -> None:
    classifier = unhans.load(folders(kind)).clone()
    batch = classifier.batch(examples(TEXTS[:3]))
    gradient = classifier.gradient(classifier.embed(batch), batch, torch.tensor([0, 1, 0]), create_graph=True)
    assert gradient.requires_grad
    batch.to_words((gradient * classifier.embed(batch)).sum(-1)).square().sum().backward()
    embeddings = {id(weight) for weight in classifier.model.get_input_embeddings().parameters()}
    moved = [
        name
        for name, weight in classifier.model.named_parameters()
        if id(weight) not in embeddings and weight.ndim > 1 and weight.grad is not None and weight.grad.abs().max() > 0
    ]
    assert any("layer" in name or ".h." in name for name in moved)
    assert any(
        word in name.lower() for name in moved for word in ("query", "q_lin", "q_proj", "attn.q", "c_attn", "in_proj")
    )


def test_a_gradient_of_gradients_is_the_true_one(folders: Any) -> None:
    """The change of a gradient's norm along one attention weight, against a finite difference."""
    classifier = unhans.load(folders("bert")).clone()
    classifier.model.double()
    batch = classifier.batch(examples(TEXTS[:2]))
    weight = classifier.model.bert.encoder.layer[0].attention.self.query.weight
    targets = torch.tensor([0, 1])

    def norm() -> torch.Tensor:
        return classifier.gradient(classifier.embed(batch).detach(), batch, targets, create_graph=True).square().sum()

    (told,) = torch.autograd.grad(norm(), weight)
    values = []
    for step in (1e-5, -2e-5):
        weight.data[3, 5] += step
        values.append(float(norm().detach()))
    assert (values[0] - values[1]) / 2e-5 == pytest.approx(float(told[3, 5]), rel=1e-3)


def test_asking_for_gradients_leaves_weights_and_embeddings_alone(folders: Any) -> None:
    classifier = unhans.load(folders("bert"))
    batch = classifier.batch(examples(TEXTS[:2]))
    embeddings = classifier.embed(batch).detach()
    classifier.gradient(embeddings, batch, torch.tensor([0, 1]))
    assert not embeddings.requires_grad
    assert all(weight.grad is None for weight in classifier.model.parameters())


# -- words


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_token_scores_are_summed_into_the_words_they_belong_to(folders: Any, kind: str) -> None:
    classifier = unhans.load(folders(kind))
    batch = classifier.batch(
        examples([TEXTS[0], "good", "Don't (never) smoke!", ("The soup", "was cold, unbelievably")])
    )
    scores = torch.randn(batch.ids.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    scores.requires_grad_()
    pooled = batch.to_words(scores)
    assert pooled.shape == (4, max(len(words) for words in batch.words))
    for row, words in enumerate(batch.words):
        for word in range(pooled.shape[1]):
            own = batch.owners[row] == word
            assert pooled[row, word].item() == pytest.approx(scores[row, own].sum().item())
            assert not own.any() or word < len(words)
    pooled.sum().backward()
    assert torch.equal(scores.grad, (batch.owners >= 0).double())


def test_words_beyond_the_limit_score_nothing(folders: Any) -> None:
    classifier = unhans.load(folders("bert"))
    batch = classifier.batch(examples(["soup " * 40]))
    scores = batch.to_words(torch.ones(batch.ids.shape))
    assert scores.tolist() == [[1.0] * (tiny.LIMIT - 2) + [0.0] * (40 - tiny.LIMIT + 2)]


def test_lines_are_filled_at_the_side_asked_for() -> None:
    assert padded([[1], [2, 3]], 0, left=True) == [[0, 1], [2, 3]]
    assert padded([[1], [2, 3]], 9) == [[1, 9], [2, 3]]


# -- one object, many threads


def test_predictions_and_gradients_may_run_at_the_same_time(folders: Any) -> None:
    classifier = unhans.load(folders("bert"))
    batch = classifier.batch(examples(TEXTS[:4]))
    targets = torch.tensor([0, 1, 0, 1])
    wanted, wanted_gradient = classifier.log_probs(TEXTS), classifier.gradient(classifier.embed(batch), batch, targets)

    def predict() -> None:
        assert np.abs(classifier.log_probs(TEXTS) - wanted).max() < 1e-5

    def explain() -> None:
        assert torch.allclose(classifier.gradient(classifier.embed(batch), batch, targets), wanted_gradient, atol=1e-5)

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(act) for _ in range(30) for act in (predict, explain, predict)]:
            done.result()


@pytest.mark.parametrize("kind", tiny.DECODERS)
def test_an_empty_text_is_read_where_it_stands_beside_longer_ones(kind: str) -> None:
    """It may be nothing but the token that padding is made of."""
    classifier = tiny.transformer(kind)
    some = [Example("", ""), Example("long", "The soup was cold.")]
    wanted = classifier.log_probs(some)
    batch = classifier.batch(some)
    for embeddings in (None, classifier.embed(batch)):
        found = classifier.logits(batch, embeddings).log_softmax(1).detach().numpy()
        np.testing.assert_allclose(found, wanted, atol=1e-5)


# -- revisions and copies


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_changing_one_weight_changes_the_revision(kind: str) -> None:
    classifier = tiny.transformer(kind)
    changed = classifier.clone()
    assert changed.revision == classifier.revision
    changed = classifier.clone()
    with torch.no_grad():
        next(iter(changed.model.parameters())).view(-1)[7] += 1e-6
    assert changed.revision != classifier.revision


def test_whatever_changes_answers_changes_the_revision(folders: Any) -> None:
    model, tokenizer = tiny.model("bert"), tiny.bert_tokenizer()
    plain = unhans.load((model, tokenizer)).revision
    assert unhans.load((model, tokenizer), max_length=9).revision != plain

    cased = AutoTokenizer.from_pretrained(folders("bert"), do_lower_case=False)
    assert unhans.load((model, cased)).revision != plain

    fewer_heads = tiny.model("bert")
    fewer_heads.config.num_attention_heads = 2
    for layer in fewer_heads.bert.encoder.layer:
        layer.attention.self.num_attention_heads, layer.attention.self.attention_head_size = 2, 16
    assert unhans.load((fewer_heads, tokenizer)).revision != plain

    renamed = tiny.model("bert")
    renamed.config.id2label = {0: "bad", 1: "good"}
    assert unhans.load((renamed, tokenizer)).revision != plain

    for setting, value in (("truncation_side", "left"), ("mask_token", "[UNK]")):  # which end is cut; what a hole is
        other = AutoTokenizer.from_pretrained(folders("bert"))
        setattr(other, setting, value)
        assert unhans.load((model, other)).revision != plain


def test_where_a_model_comes_from_does_not_change_its_revision(folders: Any) -> None:
    from_folder = unhans.load(folders("bert"))
    from_object = unhans.load((tiny.model("bert"), tiny.bert_tokenizer()))
    assert from_folder.revision == from_object.revision == unhans.load(str(folders("bert"))).revision


def test_a_clone_can_be_changed_without_the_original(folders: Any) -> None:
    classifier = unhans.load(folders("bert"))
    before = classifier.predict(TEXTS)
    copy = classifier.clone()
    assert copy.predict(TEXTS) == before
    with torch.no_grad():
        for weight in copy.model.parameters():
            weight.add_(1.0)
    assert classifier.predict(TEXTS) == before
    assert TransformerClassifier.open(folders("bert")).revision == classifier.revision


# -- how it is asked


def test_one_text_may_come_in_any_form(folders: Any) -> None:
    classifier = unhans.load(folders("bert"))
    text, pair = "The soup was cold.", ("The soup", "was cold.")
    (single,) = classifier.predict(text)
    assert single.example == "1"
    assert classifier.predict([text]) == [single]
    assert classifier.predict(t for t in [text]) == [single]
    assert classifier.predict(Example("mine", text))[0].example == "mine"
    assert classifier.predict(Example("mine", text))[0].probabilities == single.probabilities
    (both,) = classifier.predict(pair)
    assert classifier.predict([pair]) == [both]
    assert classifier.predict(Example("mine", *pair))[0].probabilities == both.probabilities
    assert both.probabilities != single.probabilities
    assert len(classifier.predict([text, pair, Example("a", text)])) == 3


def test_a_corpus_is_predicted_in_its_order(folders: Any, tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    lines = [f'"{text}",{"good" if n % 2 else "bad"}' for n, text in enumerate(tiny.SENTENCES[:6])]
    path.write_text("\n".join(["text,label", *lines]), encoding="utf-8")
    corpus = read(path)
    classifier = unhans.load(folders("bert"))
    predictions = classifier.predict(corpus)
    assert [p.example for p in predictions] == [example.id for example in corpus]
    assert np.allclose([p.probabilities for p in predictions], np.exp(classifier.log_probs(tiny.SENTENCES[:6])))


def test_nothing_in_nothing_out(folders: Any) -> None:
    classifier = unhans.load(folders("bert"))
    assert classifier.predict([]) == []
    assert classifier.log_probs([]).shape == (0, 2)
    assert repr(classifier.predict([])) == "no predictions"


@pytest.mark.parametrize("text", [5, None, b"bytes", [5], [None], ["good", None], [("a", "b", "c")], {"text": 1}])
def test_what_is_no_text_is_refused_in_a_sentence(folders: Any, text: Any) -> None:
    with pytest.raises(BadOption, match="text"):
        unhans.load(folders("bert")).predict(text)


def test_equal_texts_are_asked_once(folders: Any) -> None:
    tally = Tally()
    unhans.load(folders("bert")).predict(["one", "two", "one"] * 10, tally=tally)
    assert (tally.variants, tally.answered) == (30, 2)


def test_a_stream_of_predictions_comes_in_order(folders: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unhans.model._STREAM", 3)
    classifier = unhans.load(folders("bert"))
    stream = list(classifier.predict_stream(iter(TEXTS)))
    assert [prediction.example for prediction in stream] == [str(n) for n in range(1, len(TEXTS) + 1)]
    assert np.allclose([p.probabilities for p in stream], np.exp(classifier.log_probs(TEXTS)), atol=1e-6)


def test_labels_are_known_by_name_and_by_number(folders: Any) -> None:
    classifier = unhans.load(folders("bert"))
    assert classifier.label_number("positive") == classifier.label_number(1) == 1
    for wrong in ("Positive", "", 2, -1, "1", None):
        with pytest.raises(BadOption, match=r"There is: negative, positive\."):
            classifier.label_number(wrong)  # type: ignore[arg-type]


def test_what_is_lacking_is_said_with_the_way_out(folders: Any) -> None:
    box = tiny.bag_of_words({"good": 1.0})
    with pytest.raises(Unsupported, match=r"^Integrated gradients needs gradients, .* only: predict\. Load the model"):
        box.require({"gradients", "predict"}, "Integrated gradients")
    with pytest.raises(Unsupported, match=r"needs gradients and train, .* Do it by hand\.$"):
        box.require({"train", "gradients"}, "This", "Do it by hand.")
    box.require({"predict"}, "This")
    unhans.load(folders("bert")).require({"predict", "gradients", "train"}, "This")


# -- how it is drawn


def test_names_are_escaped_where_they_are_drawn() -> None:
    drawn = Predictions([Prediction(EVIL, (EVIL, "b"), (0.9, 0.1), "r")])._repr_html_()
    assert "<img" not in drawn
    assert drawn.count("&lt;img") == 2
    single = Prediction(EVIL, (EVIL, "b"), (0.9, 0.1), "r")._repr_html_()
    assert "<img" not in single


def test_long_lists_are_drawn_short() -> None:
    many = Predictions([Prediction(str(n), ("a", "b"), (0.9, 0.1), "r") for n in range(60)])
    assert many._repr_html_().count("<tr>") == 51
    assert "and 50 more" in repr(many)
    assert many.labels == ["a"] * 60


def test_a_classifier_tells_what_it_is(folders: Any) -> None:
    shown = repr(unhans.load(folders("bert")))
    assert "negative, positive" in shown
    assert "gradients, predict, train" in shown


# -- objects


def test_a_pad_id_outside_the_vocabulary_is_not_used() -> None:
    model = tiny.model("llama")
    model.config.pad_token_id = -1
    classifier = unhans.load((model, tiny.gpt_tokenizer()))
    batch = classifier.batch(examples(["good", TEXTS[0]]))
    assert torch.isfinite(classifier.logits(batch)).all()


@pytest.mark.parametrize("in_config", [True, False])
@pytest.mark.parametrize("kind", tiny.DECODERS)
def test_texts_that_end_in_the_padding_token_are_read_as_hugging_face_does(kind: str, in_config: bool) -> None:
    tokenizer = copy.deepcopy(tiny.gpt_tokenizer())
    end = tokenizer.eos_token
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{end} $A {end}" if kind == "llama" else f"$A {end}", special_tokens=[(end, tokenizer.eos_token_id)]
    )
    model = tiny.model(kind)
    model.config.pad_token_id = tokenizer.eos_token_id if in_config else None
    texts = TEXTS[:3]
    with torch.no_grad():
        theirs = torch.cat([model(torch.tensor([tokenizer(text)["input_ids"]])).logits for text in texts])
    classifier = unhans.load((model, tokenizer))
    batch = classifier.batch(examples(texts))
    with torch.no_grad():
        assert torch.allclose(classifier.logits(batch), theirs, atol=1e-4)
        assert torch.allclose(classifier.logits(batch, classifier.embed(batch)), theirs, atol=1e-4)
    assert np.abs(np.exp(classifier.log_probs(texts)) - theirs.softmax(-1).numpy()).max() < 1e-5


def test_other_objects_are_refused() -> None:
    with pytest.raises(BadModel, match="not a sequence classifier"):
        unhans.load((tiny.model("bert", head="MaskedLM"), tiny.bert_tokenizer()))
    with pytest.raises(BadModel, match="cannot be made of int"):
        unhans.load(5)
    with pytest.raises(BadModel, match="cannot be made of NoneType"):
        unhans.load(None)


def test_a_classifier_is_itself(folders: Any) -> None:
    classifier = unhans.load(folders("bert"))
    assert unhans.load(classifier) is classifier
