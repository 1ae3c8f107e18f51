"""Classifiers that only predict: asked as little as possible, and never believed without a look."""

from __future__ import annotations

import json
import shutil
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from transformers import pipeline

import tiny
import unhans
from unhans.black_boxes import HttpClassifier, OnnxClassifier, PredictFunction
from unhans.errors import BadModel, ModelFailed, Unsupported
from unhans.scoring import Tally
from unhans.text import Hole, Words

TEXTS = ["a good film", "a bad film", "good", "", "a good film"]


def count_good(texts: Any) -> list[list[float]]:
    """Sure of "yes" by the number of times that "good" occurs."""
    shares = [0.1 + 0.2 * min(4, str(text).count("good")) for text in texts]
    return [[1 - share, share] for share in shares]


# -- functions


def test_a_function_is_a_classifier() -> None:
    classifier = unhans.load(count_good, labels=["no", "yes"])
    predictions = classifier.predict(TEXTS)
    assert predictions.labels == ["no"] * 5
    assert np.allclose([p.probabilities for p in predictions], count_good(TEXTS), atol=1e-6)
    assert classifier.capabilities == {"predict"}


def test_labels_are_counted_where_they_are_not_named() -> None:
    assert unhans.load(count_good).labels == ("0", "1")
    assert unhans.load(lambda texts: np.full((len(texts), 4), 0.25)).labels == ("0", "1", "2", "3")
    assert unhans.load(count_good, labels=[0, 1]).labels == ("0", "1")


def test_a_function_is_asked_each_different_text_once_and_in_batches() -> None:
    asked: list[list[str]] = []

    def predict(texts: list[str]) -> Any:
        asked.append(list(texts))
        return count_good(texts)

    classifier = PredictFunction(predict, ["no", "yes"], "mine", batch_size=3)
    tally = Tally()
    texts = [f"text {number % 7}" for number in range(50)]
    classifier.predict(texts, tally=tally)
    assert sorted(chain.from_iterable(asked)) == sorted(set(texts))
    assert [len(batch) for batch in asked] == [3, 3, 1]
    assert tally.answered == 7


def test_pairs_come_as_tuples_and_never_together_with_single_texts() -> None:
    asked: list[Any] = []

    def predict(texts: Any) -> Any:
        asked.append(texts)
        return count_good(texts)

    unhans.load(predict, labels=["no", "yes"]).predict([("good", "day"), "good", ("a", "b")])
    assert asked == [["good"], [("good", "day"), ("a", "b")]]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([[0.5, 0.5]] * 3, "shape"),
        ([0.5, 0.5], "shape"),
        ([[0.2, 0.3, 0.5]] * 2, "shape"),
        ([[0.5, 0.5], [1.0]], "not a table of numbers"),
        ([["a", "b"]] * 2, "not a table of numbers"),
        (None, "shape"),
        ({"a": 1}, "not a table of numbers"),
        ([[2.0, 3.0]] * 2, "not probabilities"),
        ([[-0.5, 1.5]] * 2, "not probabilities"),
        ([[0.1, 0.1]] * 2, "not probabilities"),
        ([[float("nan"), 0.5]] * 2, "not probabilities"),
        ([[float("inf"), 0.5]] * 2, "not probabilities"),
    ],
)
def test_answers_that_are_no_probabilities_are_refused(answer: Any, said: str) -> None:
    with pytest.raises(ModelFailed, match=said):
        unhans.load(lambda _: answer, labels=["no", "yes"]).predict(["one", "two"])


def test_answers_may_be_arrays_and_tensors_and_a_little_off() -> None:
    for form in (
        np.array,
        torch.tensor,
        lambda x: np.array(x, np.float16),
        lambda x: [np.float32(line) for line in x],
    ):
        classifier = unhans.load(lambda texts, form=form: form(count_good(texts)), labels=["no", "yes"])
        assert classifier.predict("good good good")[0].label == "yes"


def test_a_certain_answer_stays_a_number() -> None:
    classifier = unhans.load(lambda texts: [[1.0, 0.0]] * len(texts), labels=["no", "yes"])
    assert np.isfinite(classifier.log_probs(["a"])).all()
    assert classifier.predict("a")[0].confidence == pytest.approx(1)


def test_what_a_function_raises_is_told_as_its_own_failure() -> None:
    def predict(texts: Any) -> Any:
        raise ZeroDivisionError("by me")

    with pytest.raises(ModelFailed, match=r"Your predict function failed: ZeroDivisionError: by me") as failed:
        unhans.load(predict, labels=["a", "b"]).predict("x")
    assert isinstance(failed.value.__cause__, ZeroDivisionError)
    with pytest.raises(ModelFailed, match="Your predict function failed"):
        unhans.load(predict)


def test_unusable_labels_and_answers_are_refused_at_once() -> None:
    with pytest.raises(BadModel, match="at least two"):
        unhans.load(count_good, labels=["only"])
    with pytest.raises(BadModel, match="both called 'a'"):
        unhans.load(count_good, labels=["a", "a"])
    with pytest.raises(ModelFailed, match="texts × labels"):
        unhans.load(lambda texts: [0.5] * len(texts))
    with pytest.raises(ModelFailed, match="not a table of numbers"):
        unhans.load(lambda _: ["good"])


def test_a_function_with_a_name_keeps_its_revision_and_one_without_does_not() -> None:
    def load(name: str | None) -> str:
        return unhans.load(count_good, labels=["no", "yes"], name=name).revision

    assert load("mine 1") == load("mine 1")
    assert load("mine 1") != load("mine 2")
    assert load(None) != load(None)


def test_hiding_words_of_a_black_box_is_refused_and_deleting_them_works() -> None:
    classifier = unhans.load(count_good, labels=["no", "yes"])
    words = Words("a good film")
    for hole in Hole:
        with pytest.raises(Unsupported, match="Delete the words instead"):
            classifier.log_probs([words.without([1], hole)])
    less, more = np.exp(classifier.log_probs([words.without([1]), "a good film"]))[:, 1]
    assert less == pytest.approx(0.1)
    assert more == pytest.approx(0.3)


def test_gradients_and_training_of_a_black_box_are_refused_with_what_would_work() -> None:
    classifier = unhans.load(count_good, labels=["no", "yes"])
    with pytest.raises(Unsupported, match=r"input_x_gradient needs gradients, .*leave_one_out"):
        unhans.attribute(classifier, "a good film", method="input_x_gradient")
    with pytest.raises(Unsupported, match="Training needs train"):
        unhans.fit(classifier, [unhans.Example("1", "a", label="no"), unhans.Example("2", "b", label="yes")])  # type: ignore[arg-type]


# -- scikit-learn

REVIEWS = ["good film", "bad film", "good food", "bad food", "fine day", "sad day"]
MOODS = ["yes", "no", "yes", "no", "yes", "no"]


def test_a_scikit_learn_pipeline_answers_as_itself() -> None:
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10)).fit(REVIEWS, MOODS)
    classifier = unhans.load(model)
    assert classifier.labels == tuple(model.classes_) == ("no", "yes")
    assert np.allclose(np.exp(classifier.log_probs(REVIEWS)), model.predict_proba(REVIEWS), atol=1e-6)
    assert classifier.predict(REVIEWS).labels == MOODS


def test_classes_that_are_numbers_become_labels_and_can_be_named() -> None:
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(REVIEWS, [1, 0, 1, 0, 2, 2])
    assert unhans.load(model).labels == ("0", "1", "2")
    assert unhans.load(model, labels=["bad", "good", "day"]).labels == ("bad", "good", "day")


def test_a_pipeline_without_probabilities_is_refused_with_the_way_out() -> None:
    with pytest.raises(BadModel, match="CalibratedClassifierCV"):
        unhans.load(make_pipeline(TfidfVectorizer(), LinearSVC()).fit(REVIEWS, MOODS))


def test_a_pipeline_that_is_not_fitted_is_refused() -> None:
    with pytest.raises(BadModel, match="not fitted"):
        unhans.load(make_pipeline(TfidfVectorizer(), LogisticRegression()))


def test_pairs_to_a_pipeline_of_single_texts_are_its_failure() -> None:
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(REVIEWS, MOODS)
    with pytest.raises(ModelFailed, match="failed"):
        unhans.load(model).predict(("good", "film"))


# -- transformers objects


def test_a_transformers_pipeline_and_a_pair_of_objects_have_gradients() -> None:
    model, tokenizer = tiny.model("bert"), tiny.bert_tokenizer()
    whole = pipeline("text-classification", model=model, tokenizer=tokenizer, device="cpu")
    from_pipeline, from_pair = unhans.load(whole), unhans.load((model, tokenizer))
    assert from_pipeline.revision == from_pair.revision
    assert from_pipeline.capabilities == {"predict", "gradients", "train"}
    theirs = {line["label"]: line["score"] for line in whole("The soup was cold.", top_k=None)}
    ours = from_pipeline.predict("The soup was cold.")[0]
    assert dict(zip(ours.labels, ours.probabilities, strict=True)) == pytest.approx(theirs, abs=1e-5)


def test_an_object_with_several_labels_per_text_is_refused() -> None:
    model = tiny.model("bert")
    model.config.problem_type = "multi_label_classification"
    with pytest.raises(BadModel, match="multi-label"):
        unhans.load((model, tiny.bert_tokenizer()))


# -- ONNX


class _Logits(torch.nn.Module):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
        return self.model(input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids).logits


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT as people export it: model.onnx beside the tokenizer and the config."""
    folder = tiny.save_folder(tmp_path_factory.mktemp("onnx") / "bert")
    names = ["input_ids", "attention_mask", "token_type_ids"]
    ids = torch.tensor([[2, 9, 8, 7, 3]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns about itself
        torch.onnx.export(
            _Logits(tiny.model("bert")).eval(),
            (ids, torch.ones_like(ids), torch.zeros_like(ids)),
            folder / "model.onnx",
            input_names=names,
            output_names=["logits"],
            dynamic_axes={name: {0: "texts", 1: "tokens"} for name in names} | {"logits": {0: "texts"}},
            dynamo=False,
        )
    return folder


@pytest.fixture
def onnx_folder(exported: Path, tmp_path: Path) -> Path:
    copy = Path(shutil.copytree(exported, tmp_path / "bert"))
    (copy / "model.safetensors").unlink()
    return copy


def test_an_onnx_export_answers_as_the_model_it_was_made_of(exported: Path, onnx_folder: Path) -> None:
    original, export = unhans.load(exported), unhans.load(onnx_folder)
    assert isinstance(export, OnnxClassifier)
    assert export.labels == original.labels
    texts = [*tiny.SENTENCES, "good", ("The soup", "was cold"), "", "soup " * 100]
    assert np.abs(export.log_probs(texts) - original.log_probs(texts)).max() < 1e-4
    assert unhans.load(onnx_folder / "model.onnx").revision == export.revision


def test_words_of_an_onnx_export_can_be_hidden_because_its_tokenizer_is_known(
    exported: Path, onnx_folder: Path
) -> None:
    variants = [Words(tiny.SENTENCES[0]).without([n], Hole.MASK) for n in range(4)]
    original, export = unhans.load(exported).log_probs(variants), unhans.load(onnx_folder).log_probs(variants)
    assert np.abs(export - original).max() < 1e-4


def test_an_onnx_export_is_asked_each_different_text_once_with_hardly_any_padding(onnx_folder: Path) -> None:
    tally = Tally()
    unhans.load(onnx_folder).predict([*tiny.SENTENCES, *tiny.SENTENCES], tally=tally)
    assert tally.answered == len(tiny.SENTENCES)
    assert tally.padded <= 0.02 * tally.cells


def test_labels_of_an_onnx_export_come_from_its_config_or_the_user(onnx_folder: Path) -> None:
    assert unhans.load(onnx_folder, labels=["bad", "good"]).labels == ("bad", "good")
    config = json.loads((onnx_folder / "config.json").read_text())
    del config["id2label"]
    (onnx_folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(BadModel, match="label names"):
        unhans.load(onnx_folder)
    for unusable in (["a", "b"], 5, {"x": "y"}):
        (onnx_folder / "config.json").write_text(json.dumps(config | {"id2label": unusable}))
        with pytest.raises(BadModel):
            unhans.load(onnx_folder)


def test_an_onnx_file_with_more_answers_than_labels_is_refused(onnx_folder: Path) -> None:
    with pytest.raises(ModelFailed, match="shape"):
        unhans.load(onnx_folder, labels=["a", "b", "c"]).predict("good")
    with pytest.raises(ModelFailed, match="shape"):
        unhans.load(onnx_folder, labels=["a", "b", "c", "d"]).predict(["good", "bad"])


@pytest.mark.parametrize("content", [b"", b"not onnx", b"\x80\x04K\x01."])
def test_a_damaged_onnx_file_is_refused(onnx_folder: Path, content: bytes) -> None:
    (onnx_folder / "model.onnx").write_bytes(content)
    with pytest.raises(BadModel, match=r"model\.onnx does not load"):
        unhans.load(onnx_folder)


def test_a_missing_onnx_file_or_tokenizer_is_refused(onnx_folder: Path) -> None:
    with pytest.raises(BadModel, match="There is no file"):
        unhans.load(onnx_folder / "other.onnx")
    (onnx_folder / "config.json").unlink()
    with pytest.raises(BadModel, match=r"config\.json"):
        unhans.load(onnx_folder)


def write_onnx(path: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any], constants: Any = ()) -> Path:
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, list(constants))
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=versions, ir_version=9), path)
    return path


def string_onnx(path: Path, *, rank: int, as_mapping: bool) -> Path:
    """Knows "good" (0.9 for yes) and "bad" (0.2), and calls anything else 0.5; strings in, probabilities out."""
    column = ("Identity", ["text"]) if rank == 2 else ("Unsqueeze", ["text", "one"])
    nodes = [
        helper.make_node(*column, ["column"]),
        helper.make_node(
            "LabelEncoder",
            ["column"],
            ["yes"],
            domain="ai.onnx.ml",
            keys_strings=["good", "bad"],
            values_floats=[0.9, 0.2],
            default_float=0.5,
        ),
        helper.make_node("Sub", ["whole", "yes"], ["no"]),
        helper.make_node("Concat", ["no", "yes"], ["table"], axis=1),
    ]
    result = helper.make_tensor_value_info("table", TensorProto.FLOAT, [None, 2])
    if as_mapping:
        nodes.append(
            helper.make_node("ZipMap", ["table"], ["named"], domain="ai.onnx.ml", classlabels_strings=["no", "yes"])
        )
        mapping = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
        result = helper.make_value_info("named", helper.make_sequence_type_proto(mapping))
    text = helper.make_tensor_value_info("text", TensorProto.STRING, [None, 1] if rank == 2 else [None])
    constants = [
        helper.make_tensor("one", TensorProto.INT64, [1], [1]),
        helper.make_tensor("whole", TensorProto.FLOAT, [1], [1.0]),
    ]
    return write_onnx(path, nodes, [text], [result], constants)


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("as_mapping", [True, False])
def test_an_onnx_file_that_takes_strings_is_a_classifier(tmp_path: Path, rank: int, as_mapping: bool) -> None:
    classifier = unhans.load(string_onnx(tmp_path / "texts.onnx", rank=rank, as_mapping=as_mapping))
    assert classifier.labels == (("no", "yes") if as_mapping else ("0", "1"))
    found = np.exp(classifier.log_probs(["good", "bad", "what"]))[:, 1]
    assert found == pytest.approx([0.9, 0.2, 0.5], abs=1e-6)
    with pytest.raises(Unsupported, match="not pairs"):
        classifier.predict(("a", "b"))
    with pytest.raises(Unsupported, match="Delete the words"):
        classifier.log_probs([Words("good").without([0], Hole.MASK)])


def test_an_onnx_file_that_takes_something_else_is_refused(tmp_path: Path) -> None:
    pixels = helper.make_tensor_value_info("pixels", TensorProto.FLOAT, [None, 3])
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, [None, 3])
    path = write_onnx(tmp_path / "image.onnx", [helper.make_node("Identity", ["pixels"], ["out"])], [pixels], [out])
    with pytest.raises(BadModel, match="this one takes: pixels"):
        unhans.load(path)


def test_an_onnx_file_that_fails_while_running_is_told_as_its_failure(onnx_folder: Path) -> None:
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT32, [None, 3])
    out = helper.make_tensor_value_info("out", TensorProto.INT32, [None, 3])
    write_onnx(onnx_folder / "model.onnx", [helper.make_node("Identity", ["input_ids"], ["out"])], [ids], [out])
    classifier = unhans.load(onnx_folder, labels=["a", "b", "c"])
    assert classifier.predict("good")[0].labels == ("a", "b", "c")  # [CLS] good [SEP]: the three it was built for
    with pytest.raises(ModelFailed, match="ONNX model failed"):
        classifier.predict("good and bad")


# -- HTTP

Reply = tuple[int, Any]


class Service:
    """A real server on this machine; `reply` makes the answer, `asked` keeps the questions."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.paths: list[str] = []
        self.headers: list[Any] = []
        self.reply: Callable[[list[Any]], Reply] = lambda inputs: (200, count_good(inputs))
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                service.asked.append(question["inputs"])
                service.paths.append(self.path)
                service.headers.append(self.headers)
                status, body = service.reply(question["inputs"])
                said = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                if status in (301, 302, 307, 308):
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/classify"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setattr("unhans.black_boxes._PAUSE", 0.01)
    running = Service()
    yield running
    running.close()


def named(inputs: list[Any], names: tuple[str, str] = ("no", "yes")) -> list[Any]:
    """Hugging Face's form: for each text its labels, the likeliest first."""
    lines = [[{"label": n, "score": s} for n, s in zip(names, line, strict=True)] for line in count_good(inputs)]
    return [sorted(line, key=lambda item: -item["score"]) for line in lines]


FORMS: dict[str, Callable[[list[Any]], Any]] = {
    "labels and scores": named,
    "one text unwrapped": lambda inputs: named(inputs)[0] if len(inputs) == 1 else named(inputs),
    "a table": count_good,
    "a table with its labels": lambda inputs: {"labels": ["no", "yes"], "probabilities": count_good(inputs)},
    "a table with labels turned": lambda inputs: {
        "labels": ["yes", "no"],
        "probabilities": [line[::-1] for line in count_good(inputs)],
    },
    "a table in a mapping": lambda inputs: {"probabilities": count_good(inputs)},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("given", [True, False])
def test_a_service_may_answer_in_several_forms(service: Service, form: str, given: bool) -> None:
    service.reply = lambda inputs: (200, FORMS[form](inputs))
    classifier = unhans.load(service.url, labels=["no", "yes"] if given else None)
    knows = "labels" in form or "unwrapped" in form
    assert sorted(classifier.labels) == (["no", "yes"] if given or knows else ["0", "1"])
    yes = classifier.label_number("yes" if given or knows else "1")
    texts = ["a good good good film", "a bad film", "good"]
    assert np.exp(classifier.log_probs(texts))[:, yes] == pytest.approx([0.7, 0.1, 0.3], abs=1e-6)
    assert np.exp(classifier.log_probs(["good"]))[:, yes] == pytest.approx([0.3], abs=1e-6)


def test_labels_that_are_numbers_are_understood(service: Service) -> None:
    service.reply = lambda inputs: (200, {"labels": [0, 1], "probabilities": count_good(inputs)})
    classifier = unhans.load(service.url)
    assert classifier.labels == ("0", "1")
    assert classifier.predict("good good good")[0].label == "1"


def test_a_service_is_asked_each_different_text_once(service: Service) -> None:
    classifier = HttpClassifier(service.url, ["no", "yes"], batch_size=4)
    texts = [f"text {n % 9}" for n in range(40)]
    classifier.predict(texts)
    assert sorted(chain.from_iterable(service.asked)) == sorted(set(texts))
    assert len(service.asked) == 3


def test_pairs_and_headers_reach_the_service(service: Service) -> None:
    classifier = HttpClassifier(service.url, ["no", "yes"], headers={"Authorization": "Bearer secret"})
    classifier.predict([("good", "day"), "good"])
    assert service.asked == [["good"], [{"text": "good", "text_pair": "day"}]]
    assert service.headers[0]["Authorization"] == "Bearer secret"


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_service_that_is_busy_is_asked_again(service: Service, status: int) -> None:
    replies = iter([status, status, 200])
    service.reply = lambda inputs: (next(replies), count_good(inputs))
    assert unhans.load(service.url, labels=["no", "yes"]).predict("good good good")[0].label == "yes"
    assert len(service.asked) == 3


def test_a_service_that_stays_busy_is_given_up(service: Service) -> None:
    service.reply = lambda _: (503, {})
    with pytest.raises(ModelFailed, match="status 503"):
        unhans.load(service.url, labels=["no", "yes"]).predict("good")
    assert len(service.asked) == 3


@pytest.mark.parametrize("status", [400, 401, 404, 204])
def test_a_refusal_is_not_repeated(service: Service, status: int) -> None:
    service.reply = lambda _: (status, b"")
    with pytest.raises(ModelFailed, match=f"status {status}"):
        unhans.load(service.url, labels=["no", "yes"]).predict("good")
    assert len(service.asked) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed(service: Service, status: int) -> None:
    service.reply = lambda _: (status, b"")
    with pytest.raises(ModelFailed, match=f"status {status}"):
        unhans.load(service.url, labels=["no", "yes"]).predict("good")
    assert service.paths == ["/classify"]


@pytest.mark.parametrize("body", [b"<html>", b"", b"\xff\xfe", b"[" * 100_000])
def test_an_answer_that_is_no_json_is_refused(service: Service, body: bytes) -> None:
    service.reply = lambda _: (200, body)
    with pytest.raises(ModelFailed, match="not JSON"):
        unhans.load(service.url, labels=["no", "yes"]).predict("good")
    with pytest.raises(ModelFailed, match="not JSON"):
        unhans.load(service.url)


@pytest.mark.parametrize(
    "body",
    [
        5,
        None,
        "good",
        [],
        {},
        [[]],
        [{}],
        [[{"label": "no", "score": 1.0}]],
        [[{"label": "no", "score": 0.5}, {"label": "maybe", "score": 0.5}]],
        [[{"label": "no", "score": None}, {"label": "yes", "score": 0.5}]],
        [[0.5]],
        [["a", "b"]],
        [[0.5, 0.5], [0.5, 0.5]],
        {"probabilities": []},
        {"probabilities": [[0.5, 0.5]], "labels": ["no", "maybe"]},
        {"probabilities": [[0.5, 0.5]], "labels": 5},
        {"probabilities": 5},
        {"error": "model is loading"},
        [[float("nan"), 0.5]],
        [[3.0, 4.0]],
    ],
)
def test_an_answer_of_another_form_or_without_a_label_is_refused(service: Service, body: Any) -> None:
    service.reply = lambda _: (200, body)
    with pytest.raises(ModelFailed):
        unhans.load(service.url, labels=["no", "yes"]).predict("good")


@pytest.mark.parametrize("body", [5, None, "good", [], {}, [[]], [{}], {"probabilities": []}, {"labels": 5}, [[0.5]]])
def test_a_service_that_does_not_tell_its_labels_is_refused(service: Service, body: Any) -> None:
    service.reply = lambda _: (200, body)
    with pytest.raises((ModelFailed, BadModel)):
        unhans.load(service.url)


def test_a_service_that_never_answers_is_given_up(service: Service) -> None:
    def sleep(inputs: list[Any]) -> Reply:
        time.sleep(0.3)
        return 200, count_good(inputs)

    service.reply = sleep
    with pytest.raises(ModelFailed, match="no answer"):
        HttpClassifier(service.url, ["no", "yes"], timeout=0.05).predict("good")


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/x", "http://", "http://[bad", "https://127.0.0.1:9"])
def test_a_service_that_is_not_there_is_a_sentence(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unhans.black_boxes._PAUSE", 0.01)
    with pytest.raises(ModelFailed, match=r"The service could not be used"):
        unhans.load(url)


def test_equal_addresses_have_equal_revisions(service: Service) -> None:
    first, again = (unhans.load(service.url, labels=["no", "yes"]) for _ in range(2))
    assert first.revision == again.revision
    assert first.revision != unhans.load(service.url + "2", labels=["no", "yes"]).revision
