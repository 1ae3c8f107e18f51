"""Classifiers that only predict: a function, a scikit-learn pipeline, an ONNX file, an HTTP service.

They get whole texts and give probabilities. The scoring core asks each different text once, in batches, so that slow or
paid models are called as little as possible.
"""

from __future__ import annotations

import json
import time
import uuid
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import torch
from numpy.typing import NDArray

from unhans.checkpoint import check_labels, open_tokenizer
from unhans.errors import BadModel, ModelFailed, Unsupported
from unhans.model import TOKEN_BUDGET, Classifier
from unhans.packing import MAX_PADDING
from unhans.scoring import Answers, Question, batches_by_length
from unhans.text import Variant
from unhans.tokens import Row, Tokens, padded

Texts = list[str] | list[tuple[str, str]]
_TINY = 1e-12  # a black box may say 0; its logarithm must stay a number
_TRIES = 3
_PAUSE = 0.5  # seconds before a second try, doubled each time
_TRY_AGAIN = {429, 500, 502, 503, 504}


class BlackBox(Classifier):
    """A classifier that is asked in plain texts and answers in probabilities."""

    batch_size = 64

    @abstractmethod
    def probabilities(self, texts: Texts) -> Any:
        """Probability of every label, texts × labels; pairs come as tuples."""

    def questions(self, variants: Sequence[Variant]) -> Sequence[Question]:
        """Plain texts; a word can be deleted or replaced in them, but not hidden by a special token."""
        if any(variant.has_holes for variant in variants):
            raise Unsupported("Only a model whose tokenizer we know can have words masked. Delete the words instead.")
        return [variant.texts for variant in variants]

    def batches(self, questions: Sequence[Question]) -> Iterator[list[int]]:
        """`batch_size` texts at a time, in order; single texts and pairs never in one call."""
        for kind in (1, 2):
            numbers = [number for number, question in enumerate(questions) if len(question) == kind]
            yield from (numbers[start : start + self.batch_size] for start in range(0, len(numbers), self.batch_size))

    def answer(self, questions: Sequence[Any]) -> Answers:
        """Log-probabilities, after checking that they are probabilities at all."""
        texts: Any = [question[0] if len(question) == 1 else question for question in questions]
        given = _numbers(self.probabilities(texts))
        if given.shape != (len(texts), len(self.labels)):
            wanted = f"{len(texts)} × {len(self.labels)} probabilities"
            raise ModelFailed(f"The model gave an answer of shape {given.shape} where {wanted} were expected.")
        if not np.isfinite(given).all() or (given < -1e-6).any() or not np.allclose(given.sum(axis=1), 1, atol=1e-2):
            raise ModelFailed("The model's answers are not probabilities: each line must be positive and sum to 1.")
        return np.log(np.clip(given, _TINY, 1)).astype(np.float32)


def _numbers(given: Any) -> NDArray[np.float64]:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ModelFailed("The model's answer is not a table of numbers, texts × labels.") from error


class PredictFunction(BlackBox):
    """Any `predict(texts) -> probabilities`."""

    def __init__(
        self, predict: Callable[[Any], Any], labels: Sequence[str] | None, name: str | None, batch_size: int = 64
    ) -> None:
        self._predict, self.batch_size = predict, batch_size
        self.labels = check_labels(labels if labels is not None else self._count_labels())
        self.revision = _revision(name, self.labels)

    def probabilities(self, texts: Texts) -> Any:
        """The function's answer; whatever it raises is reported as its own failure."""
        try:
            return self._predict(texts)
        except Exception as error:
            raise ModelFailed(f"Your predict function failed: {type(error).__name__}: {error}") from error

    def _count_labels(self) -> list[str]:
        shape = _numbers(self.probabilities(["one text"])).shape
        if len(shape) != 2:
            raise ModelFailed(f"A predict function gives texts × labels, not an answer of shape {shape}.")
        return [str(number) for number in range(shape[1])]


class SklearnPipeline(PredictFunction):
    """A fitted scikit-learn pipeline that starts from raw texts."""

    def __init__(self, pipeline: Any, labels: Sequence[str] | None, name: str | None, batch_size: int = 1024) -> None:
        if not hasattr(pipeline, "predict_proba"):
            raise BadModel(
                "This scikit-learn model gives no probabilities. Wrap its last step in CalibratedClassifierCV."
            )
        if not hasattr(pipeline, "classes_"):
            raise BadModel("This scikit-learn pipeline is not fitted yet.")
        super().__init__(
            pipeline.predict_proba, labels or [str(label) for label in pipeline.classes_], name, batch_size
        )


class OnnxGraph:
    """An ONNX model that is loaded; one that takes `input_ids` gives logits of token rows."""

    def __init__(self, source: Path | bytes, name: str, *, on_card: bool = False) -> None:
        self._session = _onnx_session(source, name, on_card)
        self.inputs = {given.name: given.type for given in self._session.get_inputs()}
        self.rank = len(self._session.get_inputs()[0].shape)

    def logits(self, rows: Sequence[Row], pad: int, labels: int) -> Answers:
        """One line for each row, so many numbers in it."""
        feeds = {
            "input_ids": np.array(padded([row.ids for row in rows], pad)),
            "attention_mask": np.array(padded([(1,) * len(row) for row in rows], 0)),
            "token_type_ids": np.array(padded([row.types or (0,) * len(row) for row in rows], 0)),
        }
        given = self.run({name: feeds[name] for name in feeds.keys() & self.inputs.keys()})[0]
        found: Answers = np.asarray(given, np.float32)
        if found.shape != (len(rows), labels):
            wanted = f"{len(rows)} × {labels} logits"
            raise ModelFailed(f"The ONNX file gave an answer of shape {found.shape} where {wanted} were expected.")
        return found

    def run(self, feeds: Mapping[str, NDArray[Any]]) -> Any:
        """All outputs for these inputs."""
        types = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
        cast = {name: value.astype(types.get(self.inputs[name], value.dtype)) for name, value in feeds.items()}
        try:
            return self._session.run(None, cast)
        except Exception as error:  # onnxruntime's errors have no root of their own
            raise ModelFailed(f"The ONNX model failed: {type(error).__name__}.") from error


def row_batches(rows: Sequence[Question], waste: float = MAX_PADDING) -> Iterator[list[int]]:
    """Numbers of token rows of (nearly) equal length, in batches for a model that has them padded."""
    return batches_by_length([len(row) for row in rows], TOKEN_BUDGET, waste)


def padded_cells(rows: Sequence[Row]) -> int:
    """Cells beyond the tokens in such a batch."""
    return max(map(len, rows)) * len(rows) - sum(map(len, rows))


class OnnxClassifier(BlackBox):
    """An ONNX file: of a Hugging Face classifier (tokenizer and config.json beside it), or one that takes strings."""

    def __init__(self, path: Path, labels: Sequence[str] | None = None, max_length: int | None = None) -> None:
        self._given = (path.resolve(), labels, max_length)
        self._graph = OnnxGraph(path, path.name)
        self._tokens: Tokens | None = None
        if "input_ids" in self._graph.inputs:
            tokenizer, limit = open_tokenizer(path.parent)
            self._tokens = Tokens(tokenizer, min(limit, max_length or limit))
            self._pad = tokenizer.pad_token_id or 0
        elif list(self._graph.inputs.values()) != ["tensor(string)"]:
            takes = ", ".join(self._graph.inputs)
            raise BadModel(f"An ONNX text classifier takes input_ids or one string per text; this one takes: {takes}.")
        self.labels = check_labels(labels if labels is not None else self._label_names(path.parent / "config.json"))
        digest = blake2b(repr((self.labels, max_length)).encode(), digest_size=8)
        for file in sorted(path.parent.glob(f"{path.name}*")):  # large models keep their weights in a file beside it
            digest.update(file.read_bytes())
        self.revision = digest.hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process, which opens the same file."""
        return type(self), self._given

    def questions(self, variants: Sequence[Variant]) -> Sequence[Question]:
        """Token rows if the file takes those, else texts."""
        return self._tokens.rows(variants) if self._tokens else super().questions(variants)

    def batches(self, questions: Sequence[Question]) -> Iterator[list[int]]:
        """Rows of (nearly) equal length together."""
        return super().batches(questions) if self._tokens is None else row_batches(questions)

    def answer(self, questions: Sequence[Any]) -> Answers:
        """The file's logits."""
        if self._tokens is None:
            return super().answer(questions)
        return self._graph.logits(questions, self._pad, len(self.labels))

    def padding(self, rows: Sequence[Any]) -> int:
        """Padded cells in such a batch."""
        return padded_cells(rows) if self._tokens else 0

    def probabilities(self, texts: Texts) -> Any:
        """The last output: a table of numbers, or one mapping from label to number per text."""
        if texts and not isinstance(texts[0], str):
            raise Unsupported("An ONNX file that takes strings classifies single texts, not pairs.")
        given = self._ask_texts(texts)
        if isinstance(given, list):
            return [[float(line[key]) for key in line] for line in given]
        return given

    def _ask_texts(self, texts: Sequence[Any]) -> Any:
        strings = np.array(texts, object).reshape((len(texts), *[1] * (self._graph.rank - 1)))
        return self._graph.run({next(iter(self._graph.inputs)): strings})[-1]

    def _label_names(self, config: Path) -> list[str]:
        if config.is_file():
            try:
                names = json.loads(config.read_text(encoding="utf-8")).get("id2label")
                if names:
                    return [str(names[key]) for key in sorted(names, key=int)]
            except (ValueError, TypeError, AttributeError, RecursionError) as error:
                raise BadModel("The config.json beside the ONNX file has no usable label names (id2label).") from error
        if self._tokens is None:
            line = self._ask_texts(["one text"])[0]
            return [str(key) for key in line] if isinstance(line, dict) else [str(n) for n in range(len(line))]
        raise BadModel("The ONNX folder has no config.json with label names. Give them: labels=[...].")


class HttpClassifier(BlackBox):
    """A service that classifies texts: Hugging Face's inference format, or a plain table of probabilities.

    Asked with `{"inputs": [text, …]}` (pairs as `{"text": …, "text_pair": …}`); answers with a list per text of
    `{"label": …, "score": …}`, or a list of probabilities, or `{"probabilities": …, "labels": …}`.
    """

    def __init__(
        self,
        url: str,
        labels: Sequence[str] | None = None,
        *,
        name: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30.0,
        batch_size: int = 32,
    ) -> None:
        self._url, self.batch_size = url, batch_size
        self._given: dict[str, Any] = {"name": name, "headers": headers, "timeout": timeout, "batch_size": batch_size}
        self._client = httpx.Client(headers=dict(headers or {}), timeout=timeout, follow_redirects=False)
        self.lasting = name is not None  # behind an address the model may change; a name says that it has not
        if labels is None:
            found = self._ask(["one text"])
            labels = _labels_of(found) or [str(number) for number in range(len(next(iter(_table(found, ())), ())))]
        self.labels = check_labels(labels)
        self.revision = _revision(f"{url} {name}", self.labels)

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process, which has a connection of its own."""
        return partial(type(self), self._url, self.labels, **self._given), ()

    def probabilities(self, texts: Texts) -> Any:
        """The service's answer in the order of our labels."""
        return _table(
            self._ask([t if isinstance(t, str) else {"text": t[0], "text_pair": t[1]} for t in texts]), self.labels
        )

    def _ask(self, inputs: Sequence[Any]) -> Any:
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(_PAUSE * 2 ** (attempt - 1))
            try:
                reply = self._client.post(self._url, json={"inputs": inputs, "parameters": {"top_k": None}})
                if reply.status_code == 200:
                    return reply.json()
                problem = f"it answered with status {reply.status_code}"
                if reply.status_code not in _TRY_AGAIN:
                    break
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                problem = f"no answer ({type(error).__name__})"
            except (ValueError, RecursionError):
                problem = "its answer is not JSON"
                break
        raise ModelFailed(f"The service could not be used: {problem}. Nothing was changed; try again when it works.")


def _labels_of(answer: Any) -> list[str] | None:
    if isinstance(answer, dict):
        names = answer.get("labels")
        return [str(name) for name in names] if isinstance(names, list) else None
    first = answer[0] if isinstance(answer, list) and answer else None
    line = answer if isinstance(first, dict) else first  # one text's answer may come unwrapped
    if isinstance(line, list) and line and isinstance(line[0], dict):
        return sorted(str(item.get("label")) for item in line)
    return None


def _table(answer: Any, labels: Sequence[str]) -> list[list[float]]:
    """The three shapes of answer as texts × labels."""
    try:
        if isinstance(answer, dict):
            names = [str(name) for name in answer.get("labels") or labels]
            order = [names.index(label) for label in labels or names]
            given = answer["probabilities"]
            return [[float(line[place]) for place in order] if order else list(line) for line in given]
        if isinstance(answer[0], dict):  # one text, unwrapped
            answer = [answer]
        if isinstance(answer[0][0], dict):
            scores = [{str(item["label"]): float(item["score"]) for item in line} for line in answer]
            return [[line[label] for label in labels or sorted(line)] for line in scores]
        return [[float(value) for value in line] for line in answer]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ModelFailed("The service answered in a form we do not know, or without one of the labels.") from error


def _onnx_session(source: Path | bytes, name: str, on_card: bool) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise Unsupported("ONNX models need the onnxruntime package: pip install 'unhans[onnx]'.") from error
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = torch.get_num_threads()  # a worker of Ray's has one, and would take them all
    places = [*(["CUDAExecutionProvider"] if on_card else []), "CPUExecutionProvider"]
    here = [place for place in places if place in onnxruntime.get_available_providers()]
    try:
        given = source if isinstance(source, bytes) else str(source)
        return onnxruntime.InferenceSession(given, settings, providers=here)
    except Exception as error:
        raise BadModel(f"{name} does not load as an ONNX model ({type(error).__name__}).") from error


def _revision(name: str | None, labels: Sequence[str]) -> str:
    """By the name the user gives; without one nothing is known about the function, so never twice the same."""
    return blake2b(repr((name, labels)).encode(), digest_size=8).hexdigest() if name else uuid.uuid4().hex[:16]
