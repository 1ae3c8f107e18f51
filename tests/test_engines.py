"""Engines answer as the model does, only where they are asked for and order words as fp32 does."""

from __future__ import annotations

import json
import logging
import pickle
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from click.testing import CliRunner, Result
from scipy.stats import spearmanr

import tiny
from unhans.attributions import attribute, choose_engine
from unhans.bulk import explaining, fill, reopen, settle
from unhans.cli import main
from unhans.engines import ENGINES, LEAST, TRIED, Choice, choose, open_engine
from unhans.errors import BadOption, Conflict, ModelFailed, UnhansError, Unsupported
from unhans.model import TransformerClassifier
from unhans.project import Project
from unhans.scoring import ScoreCache, Tally
from unhans.text import Hole, Words
from unhans.types import Attribution, Example, Recipe, Terms, from_json

TEXTS: list[Any] = [*tiny.SENTENCES, "good", ("The soup was cold", "It was warm."), "", "soup " * 100]
EXAMPLES = [Example(str(n), text) for n, text in enumerate(tiny.SENTENCES)]
LIME = {"method": "lime", "num_samples": 60}


def apart(one: Any, other: Any, texts: list[Any] = TEXTS) -> float:
    """The greatest difference of log-probabilities."""
    return float(np.abs(one.log_probs(texts) - other.log_probs(texts)).max())


def alike(found: Sequence[Attribution], wanted: Sequence[Attribution]) -> bool:
    """The same scores but for rounding: texts that a cache knows are not asked again, which makes other batches."""
    pairs = zip(found, wanted, strict=True)
    return all(np.allclose(one.scores, other.scores, rtol=1e-5, atol=1e-6) for one, other in pairs)


def with_outliers() -> TransformerClassifier:
    """A model that 8 bits ruin: two numbers that nobody reads are so large that all others round to nothing."""
    classifier = tiny.transformer(seed=1)
    with torch.no_grad():
        for layer in classifier.model.bert.encoder.layer:
            layer.attention.self.value.bias[0] = 1e5
            layer.attention.output.dense.weight[:, 0] = 0.0
            layer.intermediate.dense.bias[0] = 1e5
            layer.output.dense.weight[:, 0] = 0.0
    return classifier


class Unexportable(hf.BertForSequenceClassification):
    """Computes something that ONNX has no word for."""

    def forward(self, *given: Any, **named: Any) -> Any:
        found = super().forward(*given, **named)
        found.logits = found.logits + torch.special.bessel_j0(found.logits)
        return found


class Branching(hf.BertForSequenceClassification):
    """Does otherwise with long rows, which an export that followed a short one cannot know."""

    def forward(self, input_ids: Any, **named: Any) -> Any:
        found = super().forward(input_ids, **named)
        found.logits = found.logits + (1.0 if int(input_ids.shape[1]) > 25 else 0.0) * torch.eye(2)[0]
        return found


def of_kind(kind: Any) -> TransformerClassifier:
    plain = tiny.model("bert")
    own = kind(plain.config).eval()
    own.load_state_dict(plain.state_dict())
    return TransformerClassifier(own, tiny.bert_tokenizer(), tiny.LIMIT, "cpu")


# -- the same answers


@pytest.mark.parametrize("labels", [2, 3])
@pytest.mark.parametrize("kind", ["bert", "distilbert", "roberta", "deberta_v2", "gpt2"])
def test_onnx_answers_as_torch_does(kind: str, labels: int) -> None:
    classifier = tiny.transformer(kind, labels)
    engine = open_engine(classifier, "onnx")
    assert engine.labels == classifier.labels
    assert engine.capabilities == {"predict"}
    assert apart(engine, classifier) <= 1e-4


@pytest.mark.parametrize("tokenizer", tiny.TOKENIZERS)
def test_texts_are_read_with_the_tokenizer_of_the_model_whatever_it_is(tokenizer: str) -> None:
    classifier = tiny.transformer(tokenizer=tiny.TOKENIZERS[tokenizer](), max_position_embeddings=4 * tiny.LIMIT)
    assert apart(open_engine(classifier, "onnx"), classifier) <= 1e-4


@pytest.mark.parametrize(("name", "most"), [("int8", 0.5), ("autocast", 0.2)])
@pytest.mark.parametrize("kind", ["bert", "distilbert", "roberta"])
def test_rounded_answers_are_near_and_not_the_same(kind: str, name: str, most: float) -> None:
    classifier = tiny.transformer(kind)
    assert 1e-4 < apart(open_engine(classifier, name), classifier) < most


@pytest.mark.parametrize("name", ENGINES)
def test_what_is_not_read_or_hidden_is_the_same(name: str) -> None:
    classifier = tiny.transformer()
    engine, long = open_engine(classifier, name), Example("1", "soup " * 100)
    assert engine.unread(long) == classifier.unread(long) != ()
    assert engine.unknown_share(long) == classifier.unknown_share(long)
    hidden = [Words(tiny.SENTENCES[0]).without([n], Hole.MASK) for n in range(4)]
    assert engine.questions(hidden) == classifier.questions(hidden)


@pytest.mark.parametrize("name", ENGINES)
def test_each_text_is_asked_once_with_hardly_any_padding(name: str) -> None:
    tally = Tally()
    open_engine(tiny.transformer(), name).predict([*tiny.SENTENCES, *tiny.SENTENCES], tally=tally)
    assert tally.answered == len(tiny.SENTENCES)
    assert tally.padded <= 0.02 * tally.cells


def test_the_given_model_is_left_as_it_is() -> None:
    classifier = tiny.transformer()
    before, attention = classifier.revision, classifier.model.config._attn_implementation
    for name in ENGINES:
        open_engine(classifier, name)
    del classifier.__dict__["revision"]
    assert classifier.revision == before
    assert classifier.model.config._attn_implementation == attention
    assert classifier.capabilities >= {"gradients", "train"}


def test_answers_of_engines_are_never_taken_for_one_another() -> None:
    classifier = with_outliers()
    engines = [open_engine(classifier, name) for name in ENGINES]
    assert len({one.revision for one in (classifier, *engines)}) == 1 + len(ENGINES)
    shared = ScoreCache()
    for one in (classifier, *engines):
        np.testing.assert_array_equal(one.log_probs(TEXTS, cache=shared), one.log_probs(TEXTS))
    assert open_engine(with_outliers(), "int8").revision == engines[list(ENGINES).index("int8")].revision


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_can_be_sent_to_another_process(name: str) -> None:
    engine = open_engine(tiny.transformer("distilbert"), name)
    arrived = pickle.loads(pickle.dumps(engine))
    assert (arrived.revision, arrived.labels) == (engine.revision, engine.labels)
    np.testing.assert_array_equal(arrived.log_probs(TEXTS), engine.log_probs(TEXTS))


def test_nothing_is_said_aside(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Exporter and quantiser warn (here that would be an error), and log through the root, which must stay as it is."""
    with caplog.at_level(logging.INFO):
        open_engine(tiny.transformer(), "int8")
    assert caplog.records == []
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    open_engine(tiny.transformer(), "int8")
    assert (logging.getLogger().handlers, logging.getLogger().filters) == ([], [])
    assert capfd.readouterr() == ("", "")


# -- what is refused


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"method": "lime", "engine": "openvino"}, "no engine 'openvino'. There is: autocast, int8, onnx"),
        ({"method": "ig", "engine": "onnx"}, "integrated_gradients looks inside the model.*only asks: .*lime"),
        ({"method": "loo", "engine": "int8"}, "leave_one_out is never computed by int8: rounding.*kernel_shap, lime"),
    ],
)
def test_an_engine_that_a_method_cannot_use_is_refused_before_any_work(how: dict[str, Any], said: str) -> None:
    classifier = tiny.transformer()
    for door in (
        lambda: attribute(classifier, EXAMPLES, **how),
        lambda: explaining(classifier, **how),
        lambda: choose_engine(classifier, EXAMPLES, **how),
    ):
        with pytest.raises(BadOption, match=said):
            door()


def test_leave_one_out_is_refused_int8_even_if_somebody_has_chosen_it() -> None:
    classifier = tiny.transformer()
    with pytest.raises(BadOption, match="never computed by int8"):
        attribute(classifier, EXAMPLES, engine=Choice("int8", open_engine(classifier, "int8"), 1.0, 8))


def test_a_black_box_has_no_engine() -> None:
    with pytest.raises(Unsupported, match=r"PredictFunction.*Leave the engine out"):
        attribute(tiny.bag_of_words({"good": 1.0}), ["a good film"], method="lime", engine="onnx")


@pytest.mark.parametrize("package", ["onnx", "onnxruntime"])
def test_a_missing_package_is_told_with_the_extra_that_brings_it(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(Unsupported, match=rf"package {package}: pip install 'unhans\[onnx\]'"):
        open_engine(tiny.transformer(), "int8")
    assert open_engine(tiny.transformer(), "autocast").predict("good")


@pytest.mark.parametrize(
    ("kind", "said"), [(Unexportable, r"cannot be exported to ONNX \(.*Error\)"), (Branching, "logits are up to 1")]
)
def test_a_model_that_cannot_be_exported_is_refused(kind: Any, said: str) -> None:
    classifier = of_kind(kind)
    with pytest.raises(Unsupported, match=rf"{kind.__name__} .*{said}.*Nothing was changed, and fp32 works"):
        open_engine(classifier, "onnx")
    assert classifier.predict("good")


def test_a_model_that_cannot_be_computed_in_half_precision_is_refused() -> None:
    with pytest.raises(Unsupported, match=r"Deberta.* cannot be computed in torch.bfloat16.*leave the engine out"):
        open_engine(tiny.transformer("deberta"), "autocast")


# -- the check


@pytest.mark.parametrize("method", ["lime", "kernel_shap", "partition_shap", "leave_one_out"])
def test_an_exact_engine_is_used_and_the_result_says_so(method: str) -> None:
    classifier = tiny.transformer()
    plain, fast = (attribute(classifier, EXAMPLES, method=method, engine=engine) for engine in (None, "onnx"))
    assert {one.terms.engine for one in plain} == {""}
    (told,) = {one.terms.engine for one in fast}
    assert told == (
        "Answers are onnx's: it orders words as fp32 does (mean Spearman to fp32 1.000 on 8 examples, where 0.95 is "
        "asked for)."
    )
    for exact, other in zip(plain, fast, strict=True):
        np.testing.assert_allclose(other.scores, exact.scores, atol=1e-4)
        assert (other.revision, other.recipe, other.label) == (exact.revision, exact.recipe, exact.label)


@pytest.mark.parametrize("name", ["int8", "autocast"])
def test_a_rounding_engine_that_passes_answers_itself(name: str) -> None:
    classifier = tiny.transformer()
    choice = choose_engine(classifier, EXAMPLES, name, **LIME)
    assert choice.engine is not None
    assert LEAST <= (choice.spearman or 0) < 1
    assert choice.examples == TRIED
    by_engine = attribute(choice.engine, EXAMPLES[:2], target="positive", **LIME)
    found = attribute(classifier, EXAMPLES[:2], target="positive", engine=choice, **LIME)
    assert [one.scores for one in found] == [one.scores for one in by_engine]
    assert [one.scores for one in found] != [
        one.scores for one in attribute(classifier, EXAMPLES[:2], target="positive", **LIME)
    ]


def test_an_engine_that_orders_words_otherwise_is_not_used_and_that_is_said() -> None:
    classifier = with_outliers()
    plain, asked = (attribute(classifier, EXAMPLES, engine=engine, **LIME) for engine in (None, "int8"))
    assert alike(asked, plain)
    (told,) = {one.terms.engine for one in asked}
    assert re.match(r"Answers are fp32's: int8 orders words otherwise \(mean Spearman to fp32 -?0\.\d{3} on 8", told)
    assert "Answers are onnx's" in attribute(classifier, EXAMPLES, engine="onnx", **LIME)[0].terms.engine


def test_the_label_that_is_explained_is_the_models_own() -> None:
    classifier = with_outliers()
    choice = Choice("int8", open_engine(classifier, "int8"))
    labels = [one.label for one in attribute(classifier, EXAMPLES, engine=choice, **LIME)]
    assert labels == classifier.predict(EXAMPLES).labels
    assert labels != choice.engine.predict(EXAMPLES).labels  # type: ignore[union-attr] # it was given


def test_where_too_little_can_be_compared_fp32_answers() -> None:
    (one,) = attribute(tiny.transformer(), ["good"], engine="onnx", **LIME)
    assert one.terms.engine == "Answers are fp32's: the examples have too few words to compare onnx with fp32 by."
    (whole,) = attribute(tiny.transformer(), ["The soup was cold."], units="sentence", engine="onnx", **LIME)
    assert whole.terms.engine == one.terms.engine.replace("words", "sentences")
    assert attribute(tiny.transformer(), [], engine="onnx", **LIME) == []


@pytest.mark.parametrize(
    ("sizes", "compared"),
    [
        ([2], 0),  # in order by chance every other time
        ([2] * 5, 0),
        ([2] * 6, 6),
        ([3], 0),
        ([4], 1),
        ([1] * 20 + [4] * TRIED + [2] * 20, TRIED),
    ],
)
def test_texts_are_drawn_and_counted_by_the_units_that_get_the_scores(sizes: list[int], compared: int) -> None:
    some = [Example(str(n), " ".join(["The soup was cold."] * size)) for n, size in enumerate(sizes)]
    drawn: list[int] = []

    def explain(_: Choice | None, these: Sequence[Example]) -> list[Attribution]:
        made = [Words(one, units="sentence") for one in these]
        drawn.extend(map(len, made))
        return [
            Attribution(
                "1", "a", words.strings, words.spans, tuple(map(float, range(len(words)))), Recipe("f", "n"), "r"
            )
            for words in made
        ]

    choice = choose(tiny.transformer(), "autocast", some, explain, "sentence")
    assert (choice.examples, choice.engine is not None) == (compared, compared > 0)
    assert ("too few sentences" in str(choice)) == (not compared)
    assert set(drawn) == {max(sizes)}


def test_lines_without_an_order_are_no_evidence() -> None:
    """A model that says the same of everything: fp32 and engine agree, and that shows nothing."""
    classifier = tiny.transformer()
    with torch.no_grad():
        classifier.model.classifier.weight.zero_()
    (said,) = {one.terms.engine for one in attribute(classifier, EXAMPLES, engine="autocast")}
    assert said == "Answers are fp32's: the examples have too few words to compare autocast with fp32 by."


def overflow(self: Any, questions: Any) -> Any:
    """What half precision says where numbers are too large for it."""
    return np.full((len(questions), len(self.labels)), np.nan, np.float32)


def test_an_engine_that_fails_its_trial_leaves_the_answers_to_fp32_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    classifier = tiny.transformer()
    plain = attribute(classifier, EXAMPLES, **LIME)
    monkeypatch.setattr(ENGINES["autocast"], "answer", overflow)
    asked = attribute(classifier, EXAMPLES, engine="autocast", **LIME)
    assert alike(asked, plain)
    (said,) = {one.terms.engine for one in asked}
    assert said.startswith("Answers are fp32's: autocast failed where fp32 did not. The model answered with values")
    task = explaining(classifier, engine="autocast", **LIME)
    for computed in (12, 0):  # whoever goes on is told the same
        done = fill(tmp_path / "out", task, EXAMPLES)
        assert (done.computed, {one.terms.engine for one in done}) == (computed, {said})


def test_a_failure_of_fp32_is_the_models_own_also_where_an_engine_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TransformerClassifier, "answer", overflow)
    with pytest.raises(ModelFailed, match=r"^The model answered with values that are not numbers"):
        attribute(tiny.transformer(), EXAMPLES, engine="autocast", **LIME)


def test_an_engine_that_fails_after_its_trial_names_itself_and_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = tiny.transformer()
    choice = choose_engine(classifier, EXAMPLES, "autocast", **LIME)
    monkeypatch.setattr(ENGINES["autocast"], "answer", overflow)
    with pytest.raises(ModelFailed, match=r"The engine autocast failed: .*not numbers.*leave the engine out"):
        attribute(classifier, EXAMPLES, engine=choice, **LIME)


def test_words_beyond_the_limit_do_not_count() -> None:
    """They score 0 by everyone, and there may be more of them than of the others."""
    classifier, long = tiny.transformer(), [Example("1", " ".join(tiny.SENTENCES[:8]))]
    opened = Choice("int8", open_engine(classifier, "int8"))
    (exact,), (other,) = (attribute(classifier, long, engine=engine, **LIME) for engine in (None, opened))
    read = [n for n in range(len(exact.words)) if n not in exact.unread]
    wanted = spearmanr(np.array(exact.scores)[read], np.array(other.scores)[read]).statistic
    assert len(read) < len(exact.words) / 2
    assert choose_engine(classifier, long, "int8", **LIME).spearman == pytest.approx(wanted, abs=1e-3)
    assert abs(spearmanr(exact.scores, other.scores).statistic - wanted) > 1e-2  # so it does matter


def test_the_same_examples_decide_every_time() -> None:
    first, again = (choose_engine(tiny.transformer(), EXAMPLES, "int8", **LIME) for _ in range(2))
    assert first.facts == again.facts
    assert json.loads(json.dumps(first.facts)) == first.facts
    assert str(Choice.again(tiny.transformer(), "int8", first.facts)) == str(first)


def test_terms_that_were_written_before_there_were_engines_can_be_read() -> None:
    old = '{"space":"logit","baseline":"b","aggregation":"a","signed":true,"unit":"word","warning":""}'
    assert from_json(Terms, old) == Terms("logit", "b", "a")


# -- bulk work and projects


def told(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["facts"]


def rows(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


def test_without_an_engine_a_folder_is_what_it_was(tmp_path: Path) -> None:
    fill(tmp_path / "out", explaining(tiny.transformer(), **LIME), EXAMPLES)
    facts = told(tmp_path / "out")
    assert facts.keys() == {"recipe", "revision", "target", "units", "terms", "background", "language_model"}
    assert facts["terms"].keys() == {"space", "baseline", "aggregation", "signed", "unit", "warning"}


def test_bulk_work_chooses_once_and_the_folder_says_what(tmp_path: Path) -> None:
    task = explaining(tiny.transformer(), engine="onnx", **LIME)
    done = fill(tmp_path / "out", task, iter(EXAMPLES), part=4)
    assert told(done.folder)["engine"] == {"name": "onnx", "used": True, "spearman": 1.0, "examples": TRIED}
    found, asked = list(reopen(done.folder)), attribute(tiny.transformer(), EXAMPLES, engine="onnx", **LIME)
    assert [one.terms for one in found] == [one.terms for one in asked]
    assert [one.example for one in found] == [one.id for one in EXAMPLES]
    settled = settle(task, tmp_path / "new", EXAMPLES)
    assert settled.engine is None
    assert settle(settled, tmp_path / "new", []) == settled
    fill(tmp_path / "new", settled, EXAMPLES, part=4)
    assert rows(tmp_path / "new") == rows(done.folder)


def test_bulk_work_in_fp32_after_all_has_the_rows_of_fp32(tmp_path: Path) -> None:
    fill(tmp_path / "asked", explaining(with_outliers(), engine="int8", **LIME), EXAMPLES, part=4)
    fill(tmp_path / "plain", explaining(with_outliers(), **LIME), EXAMPLES, part=4)
    assert rows(tmp_path / "asked") == rows(tmp_path / "plain")
    assert told(tmp_path / "asked")["engine"]["used"] is False
    assert "orders words otherwise" in next(iter(reopen(tmp_path / "asked"))).terms.engine


def test_who_goes_on_with_a_folder_goes_on_with_its_engine(tmp_path: Path) -> None:
    """Also where the check would now say otherwise: rows of two engines must not be in one folder."""
    out, task = tmp_path / "out", explaining(tiny.transformer(), engine="int8", **LIME)
    fill(out, task, EXAMPLES, part=4)
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    choice = Choice("int8", None, 0.5, TRIED)
    manifest["facts"]["engine"], manifest["facts"]["terms"]["engine"] = choice.facts, str(choice)
    (out / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (out / "part-0000001.parquet").unlink()
    assert fill(out, task, EXAMPLES).computed == 4
    fill(tmp_path / "plain", explaining(tiny.transformer(), **LIME), EXAMPLES, part=4)
    assert rows(out)["part-0000001.parquet"] == rows(tmp_path / "plain")["part-0000001.parquet"]
    assert told(out)["engine"] == choice.facts


@pytest.mark.parametrize("other", [None, "autocast"])
def test_a_folder_of_another_engine_is_refused(other: str | None, tmp_path: Path) -> None:
    fill(tmp_path / "out", explaining(tiny.transformer(), engine="onnx", **LIME), EXAMPLES)
    with pytest.raises(Conflict, match=r"engine was \{'name': 'onnx'.* and is (nothing|\{'name': 'autocast').*changed"):
        fill(tmp_path / "out", explaining(tiny.transformer(), engine=other, **LIME), EXAMPLES)


def test_a_project_keeps_nothing_that_an_engine_answered(tmp_path: Path) -> None:
    folder = tiny.save_folder(tmp_path / "bert")
    with Project.create(tmp_path / "p", model=str(folder), data=EXAMPLES) as project:
        found = project.explain(engine="int8", **LIME)
        assert {one.terms.engine for one in found} == {str(choose_engine(project.classifier, EXAMPLES, "int8", **LIME))}
        assert project.explained.sets(project.current.id) == ()
        with pytest.raises(UnhansError, match="never computed by int8"):
            project.explain(engine="int8")


# -- the command line


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("engines")
    tiny.save_folder(folder / "bert")
    lines = [json.dumps({"id": one.id, "text": one.text}) for one in EXAMPLES]
    (folder / "data.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return ["--model", str(folder / "bert"), "--data", str(folder / "data.jsonl"), "--method", "lime"]


def run(*words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--set", "num_samples=60"] if "lime" in words else list(words))


@pytest.mark.parametrize("name", ENGINES)
def test_the_sentence_goes_beside_what_is_printed(name: str, source: list[str]) -> None:
    done = run("explain", *source, "--engine", name, "--json")
    assert done.exit_code == 0, done.output
    assert done.stderr.count(f"Answers are {name}'s: it orders words as fp32 does (mean Spearman to fp32 ") == 1
    found = [from_json(Attribution, line) for line in done.stdout.splitlines()]
    assert {one.terms.engine for one in found} == {done.stderr.strip()}


def test_words_are_ranked_by_what_an_engine_answered(source: list[str]) -> None:
    done = run("words", *source, "--engine", "int8", "--json")
    assert done.exit_code == 0, done.output
    assert "Answers are int8's" in done.stderr
    assert json.loads(done.stdout)["ranking"]["words"]


def test_a_folder_is_filled_by_an_engine_that_is_told_before(source: list[str], tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "out"), "--part", "5", "--engine", "onnx"]
    for computed in (12, 0):
        done = run("explain", *source, *out, "--json")
        assert done.exit_code == 0, done.output
        assert done.stderr.count("Answers are onnx's") == 1
        assert json.loads(done.stdout)["computed"] == computed
    refused = run("explain", *source, "--out", str(tmp_path / "out"))
    assert refused.exit_code == 3
    assert "engine was" in refused.output


def test_a_wrong_engine_is_refused_before_the_model_is_loaded() -> None:
    for words, said in (
        (["--engine", "int8"], "never computed by int8"),
        (["--engine", "tpu", "--method", "lime"], "There is: autocast, int8, onnx"),
        (["--engine", "onnx", "--method", "ig"], "looks inside the model"),
    ):
        done = run("explain", "--model", "nowhere", "--text", "good", *words)
        assert done.exit_code == 2
        assert said in done.output
