"""Engines: the same transformer, with its answers computed by something faster, for methods that only ask.

    engine = open_engine(classifier, "onnx")  # a classifier that only predicts

- `onnx`: ONNX Runtime in fp32
- `int8`: ONNX Runtime, with the weights and inputs of linear layers rounded to 8 bits
- `autocast`: torch in half precision, on the model's own device

Texts are read as the transformer reads them. A rounded answer can turn the order of words round, so nobody gets an
engine who has not asked for it by name, and `attribute` uses one only where it orders the words of some examples as
fp32 does: `choose` tries that, and a `Choice` tells what came of it.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from unhans.black_boxes import OnnxGraph, padded_cells, row_batches
from unhans.errors import BadOption, ModelFailed, Unsupported
from unhans.model import Classifier, TransformerClassifier
from unhans.packing import MAX_PADDING
from unhans.ranks import Values, spearman
from unhans.scoring import Answers, Question
from unhans.text import Text, Unit, Variant, Words, as_variant
from unhans.tokens import Row
from unhans.types import Attribution, Example, Span

LEAST = 0.95  # mean Spearman to fp32 below which an engine is not used
TRIED = 8  # examples that decide it
_PAIRS = 6  # of words that must be in order: four words have them, and come to it by chance once in 24 times
_LOOKED = 1000  # examples among which those are sought
_TOLERANCE = 1e-4  # of an exported model's logits
_LONG = 200  # words: a length that no other probe has, and no model need be slow with
_PROBES: tuple[Text, ...] = ("Good.", ("The soup was cold, and dear.", "It was warm."), "a b c d " * (_LONG // 4))
_WAY_OUT = "Nothing was changed, and fp32 works: leave the engine out."
_EXPORTER = (  # what torch's exporter says of itself, and of what it took for constant: the trial would show that
    "You are using the legacy TorchScript-based ONNX export",
    "The feature will be removed",
    "Exporting aten::index operator of advanced indexing",
    "To copy construct from a tensor",
)


class Engine(Classifier):
    """A transformer that is asked as ever, and whose answers something else computes."""

    name: str

    def __init__(self, of: TransformerClassifier, by: str) -> None:
        self.of, self.labels = of, of.labels
        told = f"{of.revision} {self.name} {by}"  # answers of engines must never be taken for the model's
        self.revision = blake2b(told.encode(), digest_size=8).hexdigest()

    def log_probs(self, texts: Iterable[Text], **how: Any) -> NDArray[np.float64]:
        """Log-probabilities; who gets none must know that the engine failed, and not the model."""
        try:
            return super().log_probs(texts, **how)
        except ModelFailed as error:
            raise ModelFailed(
                f"The engine {self.name} failed: {error} fp32 may well answer: leave the engine out (--engine)."
            ) from error

    def questions(self, variants: Sequence[Variant]) -> Sequence[Row]:
        """Token rows, the model's own."""
        return self.of.questions(variants)

    def unread(self, example: Example) -> tuple[Span, ...]:
        """What the model does not read."""
        return self.of.unread(example)

    def unknown_share(self, example: Example) -> float | None:
        """What the model does not know."""
        return self.of.unknown_share(example)


def _probes(of: TransformerClassifier) -> Sequence[Row]:
    return of.questions([as_variant(probe) for probe in _PROBES])


class AutocastEngine(Engine):
    """Half precision where torch holds it to be safe: faster on graphics cards, slower on most processors."""

    name = "autocast"

    def __init__(self, of: TransformerClassifier) -> None:
        self._device = of.model.device.type
        if not torch.amp.is_autocast_available(self._device):
            raise Unsupported(f"torch has no autocast on {self._device}. Leave the engine out: fp32 works there.")
        self._dtype = _half(self._device)
        super().__init__(of, f"{self._device} {self._dtype}")
        try:
            self.answer(_probes(of))
        except RuntimeError as error:  # code that takes numbers of fp32 for granted, as DeBERTa's does
            raise Unsupported(f"{type(of.model).__name__} cannot be computed in {self._dtype}. {_WAY_OUT}") from error

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process, and the device that is there."""
        return type(self), (self.of,)

    def batches(self, questions: Sequence[Question]) -> Iterator[list[int]]:
        """The model's."""
        return self.of.batches(questions)

    def padding(self, rows: Sequence[Row]) -> int:
        """The model's."""
        return self.of.padding(rows)

    def answer(self, questions: Sequence[Row]) -> Answers:
        """Logits, rounded on the way."""
        with torch.autocast(self._device, self._dtype):
            return self.of.answer(questions)


def _half(device: str) -> torch.dtype:
    """bf16 has the range of fp32 and cannot overflow, but not every graphics card computes in it."""
    if device == "cpu" or (device == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)):
        return torch.bfloat16
    return torch.float16


class OnnxEngine(Engine):
    """The model exported to ONNX, at once and in memory; the export is tried against the model."""

    name = "onnx"
    on_cards = True  # whether ONNX Runtime computes it on graphics cards too

    def __init__(self, of: TransformerClassifier, made: bytes | None = None) -> None:
        for package in ("onnx", "onnxruntime"):
            _check_installed(package)
        on_card = self.on_cards and of.model.device.type == "cuda"
        super().__init__(of, f"onnxruntime {version('onnxruntime')} {on_card}")
        self._made = made if made is not None else self._make()
        self._graph = OnnxGraph(self._made, "The export", on_card=on_card)

    def _make(self) -> bytes:
        return exported(self.of)

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process, which need not export it again."""
        return type(self), (self.of, self._made)

    def batches(self, questions: Sequence[Question]) -> Iterator[list[int]]:
        """Rows of (nearly) equal length together; a head that reads the last token gets no padding at all."""
        return row_batches(questions, 0.0 if self.of.reads_last else MAX_PADDING)

    def padding(self, rows: Sequence[Row]) -> int:
        """Padded cells in such a batch."""
        return padded_cells(rows)

    def answer(self, questions: Sequence[Row]) -> Answers:
        """The export's logits."""
        return self._graph.logits(questions, self.of.model.config.pad_token_id, len(self.labels))


class Int8Engine(OnnxEngine):
    """The same with linear layers in 8 bits; what they say is rounded, and not all methods can bear that."""

    name = "int8"
    on_cards = False

    def _make(self) -> bytes:
        return quantised(super()._make())


ENGINES: dict[str, type[AutocastEngine | OnnxEngine]] = {
    kind.name: kind for kind in (AutocastEngine, Int8Engine, OnnxEngine)
}


def check_name(name: str) -> str:
    """An engine's name, if it is one."""
    if name not in ENGINES:
        raise BadOption(f"There is no engine {name!r}. There is: {', '.join(ENGINES)}.")
    return name


def open_engine(classifier: Classifier, name: str) -> Engine:
    """A classifier that only predicts, with the labels and tokens of this one; exporting takes seconds."""
    kind = ENGINES[check_name(name)]
    if not isinstance(classifier, TransformerClassifier):
        raise Unsupported(
            f"The engine {name} computes what a transformer's weights say, and this classifier "
            f"({type(classifier).__name__}) does not show any. Leave the engine out."
        )
    return kind(classifier)


# -- exporting


class _Logits(nn.Module):
    """A model as a function of tensors, which is what can be exported."""

    def __init__(self, model: Any, names: Sequence[str]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *given: Any) -> Any:
        return self.model(**dict(zip(self.names, given, strict=True))).logits


def exported(of: TransformerClassifier) -> bytes:
    """The model as ONNX, in fp32; refused unless its logits are the model's, for short, long and padded rows."""
    rows = _probes(of)
    try:
        made = _export(of, rows[1])
        apart = _apart(of, OnnxGraph(made, "The export"), rows)
    except Exception as error:  # the exporter's, the runtime's and the model's own have no common root
        raise Unsupported(f"{_cannot(of)} ({type(error).__name__}). {_WAY_OUT}") from error
    if not apart <= _TOLERANCE:
        raise Unsupported(f"{_cannot(of)}: the export's logits are up to {apart:.1g} from the model's. {_WAY_OUT}")
    return made


def _export(of: TransformerClassifier, row: Row) -> bytes:
    """What torch's exporter makes of a copy of the model when it follows this row, twice, on its way."""
    ids = torch.tensor([row.ids] * 2)
    given = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if row.types is not None:
        given["token_type_ids"] = torch.tensor([row.types] * 2)
    names = list(given)
    with tempfile.TemporaryDirectory() as folder, _quiet_exporter():
        file = Path(folder) / "fp32.onnx"
        torch.onnx.export(
            _Logits(of.copied().cpu().float(), names),
            tuple(given.values()),
            file,
            input_names=names,
            output_names=["logits"],
            dynamic_axes={name: {0: "texts", 1: "tokens"} for name in names} | {"logits": {0: "texts"}},
            dynamo=False,  # the other exporter needs onnxscript
        )
        return file.read_bytes()


def _cannot(of: TransformerClassifier) -> str:
    return f"{type(of.model).__name__} cannot be exported to ONNX"


def _apart(of: TransformerClassifier, graph: OnnxGraph, rows: Sequence[Row]) -> float:
    """The greatest difference between logits, of rows alone and (padded) together."""
    pad, labels = of.model.config.pad_token_id, len(of.labels)
    alone = np.concatenate([graph.logits([row], pad, labels) for row in rows])
    found = [alone] if of.reads_last else [alone, graph.logits(rows, pad, labels)]
    return float(np.abs(np.stack(found) - of.answer(rows)).max())


def quantised(model: bytes) -> bytes:
    """An ONNX model with its linear layers in 8 bits; embeddings stay, for rounding them would save no time."""
    from onnxruntime.quantization import quantize_dynamic

    with tempfile.TemporaryDirectory() as folder, _quiet_root():
        before, after = Path(folder) / "fp32.onnx", Path(folder) / "int8.onnx"
        before.write_bytes(model)
        # weights in 7 bits: with 8, sums overflow on processors without VNNI, and answers are another machine's
        quantize_dynamic(before, after, op_types_to_quantize=["MatMul"], per_channel=True, reduce_range=True)
        return after.read_bytes()


@contextmanager
def _quiet_exporter() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", torch.jit.TracerWarning)  # type: ignore[attr-defined] # it is public
        for message in _EXPORTER:
            warnings.filterwarnings("ignore", message)
        yield


@contextmanager
def _quiet_root() -> Iterator[None]:
    """The quantiser tells each of its steps to the root logger, which would then stay switched on for everyone."""
    root, silent = logging.getLogger(), logging.NullHandler()

    def others(record: logging.LogRecord) -> bool:
        return "onnxruntime" not in record.pathname

    root.addHandler(silent)
    root.addFilter(others)
    try:
        yield
    finally:
        root.removeFilter(others)
        root.removeHandler(silent)


def _check_installed(package: str) -> None:
    """Refuse to begin without it, and name the extra that brings it."""
    try:
        import_module(package)
    except ImportError as error:
        raise Unsupported(f"This engine needs the package {package}: pip install 'unhans[onnx]'.") from error


# -- choosing


@dataclass(frozen=True)
class Choice:
    """Whether an engine that was asked for answers, or fp32 in its place, and how alike they order words."""

    name: str
    engine: Engine | None  # None: fp32
    spearman: float | None = None  # mean over the examples; None if they were not compared
    examples: int = 0
    reason: str = ""  # why fp32 answers, where it is not the order of words

    @classmethod
    def again(cls, classifier: Classifier, name: str, facts: Mapping[str, Any] | None) -> Choice:
        """What was chosen before, by its facts; nothing is used that was not tried."""
        if facts is None or facts["name"] != name:
            return cls(name, None)
        engine = open_engine(classifier, name) if facts["used"] else None
        return cls(name, engine, facts["spearman"], facts["examples"], facts.get("reason", ""))

    @property
    def facts(self) -> dict[str, Any]:
        """In plain JSON, without the engine itself; with a reason only where there is one, as folders had it before."""
        return {
            "name": self.name,
            "used": self.engine is not None,
            "spearman": self.spearman,
            "examples": self.examples,
        } | ({"reason": self.reason} if self.reason else {})

    def __str__(self) -> str:
        if self.reason:
            return f"Answers are fp32's: {self.reason}"
        if self.spearman is None:
            return f"{self.name} was not compared with fp32, and {'answers' if self.engine else 'fp32 answers'}."
        on = f"{self.examples} example{'' if self.examples == 1 else 's'}"
        told = f"mean Spearman to fp32 {self.spearman:.3f} on {on}, where {LEAST} is asked for"
        if self.engine is not None:
            return f"Answers are {self.name}'s: it orders words as fp32 does ({told})."
        return f"Answers are fp32's: {self.name} orders words otherwise ({told})."


Explain = Callable[[Choice | None, Sequence[Example]], Sequence[Attribution]]


def choose(
    classifier: Classifier, name: str, examples: Sequence[Example], explain: Explain, units: Unit = "word"
) -> Choice:
    """Explain some of the examples with fp32 and with the engine, and compare the order of their words (or units)."""
    engine = open_engine(classifier, name)
    some = _drawn(examples, units)
    exact = explain(None, some)
    try:
        others = explain(Choice(name, engine), some)
    except ModelFailed as error:  # fp32 has just answered the same questions, so it is not the model's failure
        return Choice(name, None, reason=f"{name} failed where fp32 did not. {error.__cause__ or error}")
    lines = [line for pair in zip(exact, others, strict=True) if (line := _lines(*pair)) is not None]
    if sum(len(one) * (len(one) - 1) // 2 for one, _ in lines) < _PAIRS:
        return Choice(name, None, reason=f"the examples have too few {units}s to compare {name} with fp32 by.")
    mean = round(float(np.mean([spearman(*line) for line in lines])), 4)
    return Choice(name, engine if mean >= LEAST else None, mean, len(lines))


def _drawn(examples: Sequence[Example], units: Unit) -> list[Example]:
    """A few that have units to put in order, the same ones every time; those of two only where there are no others."""
    order = np.random.default_rng(0).permutation(len(examples))[:_LOOKED]
    several, two = list[Example](), list[Example]()
    for example in (examples[n] for n in order):
        if (size := len(Words(example, units=units))) > 1:
            (several if size > 2 else two).append(example)
        if len(several) == TRIED:
            break
    return [*several, *two][:TRIED]


def _lines(exact: Attribution, other: Attribution) -> tuple[Values, Values] | None:
    """The scores of what was read; None where that is too little to have an order, or neither of them has one."""
    read = [n for n in range(len(exact.words)) if n not in set(exact.unread)]
    lines = np.array(exact.scores)[read], np.array(other.scores)[read]
    return lines if len(read) > 1 and any(np.ptp(line) > 0 for line in lines) else None
