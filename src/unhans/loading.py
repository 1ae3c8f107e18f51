"""One way in for every kind of model: a folder, a hub id, an ONNX file, an address, a pipeline, a function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unhans.black_boxes import HttpClassifier, OnnxClassifier, PredictFunction, SklearnPipeline
from unhans.checkpoint import check_classifier, token_limit
from unhans.errors import BadModel, BadOption
from unhans.model import Classifier, TransformerClassifier
from unhans.select_then_predict import SelectThenPredict, is_select_then_predict


def load(  # noqa: PLR0911 - one return for each kind of thing a user may have
    source: Any,
    *,
    labels: Sequence[str] | None = None,
    max_length: int | None = None,
    device: str | None = None,
    name: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Classifier:
    """A classifier from whatever the user has.

    `source` is a Hugging Face folder or hub id, a folder that `SelectThenPredict.save` wrote, a `(model, tokenizer)`
    pair, a `pipeline("text-classification")`, a fitted scikit-learn pipeline, a path to an ONNX file, an `http(s)://`
    address, or a function from texts to probabilities.

    `labels` names the labels of a model that does not know its own, or renames them; for a Hugging Face **encoder** it
    asks for a new, untrained head. `name` tells one version of a function or service from another, so that answers can
    be cached across runs. `headers` go to an HTTP service with every request (such as a key).
    """
    match source:
        case Classifier():
            return source
        case str() if source.startswith(("http://", "https://")):
            return HttpClassifier(source, labels, name=name, headers=headers)
        case str() | Path():
            return _from_path(source, labels, max_length, device)
        case (model, tokenizer):
            return _from_objects(model, tokenizer, labels, max_length, device)
    if hasattr(source, "model") and hasattr(source, "tokenizer"):  # a transformers pipeline
        return _from_objects(source.model, source.tokenizer, labels, max_length, device)
    if hasattr(source, "predict_proba") or hasattr(source, "steps"):
        return SklearnPipeline(source, labels, name)
    if callable(source):
        return PredictFunction(source, labels, name)
    raise BadModel(
        f"A classifier cannot be made of {type(source).__name__}. Give a folder, a model id or a predict function."
    )


def _from_path(
    source: str | Path, labels: Sequence[str] | None, max_length: int | None, device: str | None
) -> Classifier:
    if is_select_then_predict(source):
        if labels is not None:
            raise BadOption("A select-then-predict model knows its own labels: load it without labels=.")
        return SelectThenPredict.open(Path(source).expanduser(), max_length=max_length, device=device)
    path = _onnx_file(source)
    if path is None:
        return TransformerClassifier.open(source, labels=labels, max_length=max_length, device=device)
    if not path.is_file():
        raise BadModel(f"There is no file {source}.")
    return OnnxClassifier(path, labels, max_length)


def _onnx_file(source: str | Path) -> Path | None:
    """The ONNX file that this names, or that is all there is in the folder it names."""
    try:
        path = Path(source).expanduser()
        if path.suffix == ".onnx":
            return path
        only = not any(path.glob("*.safetensors")) and (path / "model.onnx").is_file()
    except (OSError, RuntimeError, ValueError):  # not a name that a disk could have: the next door says so
        return None
    return path / "model.onnx" if only else None


def _from_objects(
    model: Any, tokenizer: Any, labels: Sequence[str] | None, max_length: int | None, device: str | None
) -> Classifier:
    if labels is not None:
        raise BadOption("A loaded model knows its own labels. Set model.config.id2label instead of labels=.")
    if not type(model).__name__.endswith("ForSequenceClassification"):
        raise BadModel(f"{type(model).__name__} is not a sequence classifier.")
    check_classifier(model.config.to_dict())
    limit = token_limit(model.config, tokenizer)
    return TransformerClassifier(model, tokenizer, min(limit, max_length or limit), device or str(model.device))
