"""The one door through which weights enter: Hugging Face folders and hub ids, checked before anything is built.

Whoever supplies a model controls every byte of it, so nothing in a folder is believed: only safetensors are read,
never pickles; no code of the folder's own is run; sizes in the config must fit the weights that are really there.
A test forbids `from_pretrained` and its relatives everywhere else.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError, safe_open
from transformers import AutoConfig, AutoModelForMaskedLM, AutoModelForSequenceClassification, AutoTokenizer
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
from transformers.utils import logging as transformers_logging

from unhans.errors import BadModel

MAX_LABELS = 500
_MAX_LAYERS = 1000
_MAX_TOKENS = 1_000_000_000  # a tokenizer that does not state its limit says 1e30
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_WANTED_FILES = ["*.json", "*.safetensors", "*.txt", "*.model"]
_PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".joblib", ".ckpt", ".h5", ".npy", ".msgpack")
_HEADS = {"classifier": AutoModelForSequenceClassification, "language_model": AutoModelForMaskedLM}
Kind = Literal["classifier", "language_model"]


@dataclass(frozen=True)
class Checkpoint:
    """A model that has passed the door, with its tokenizer and how many tokens it can read."""

    model: Any
    tokenizer: Any
    limit: int


def open_checkpoint(
    source: str | Path, kind: Kind, *, new_labels: Sequence[str] | None = None, new_head: bool = False
) -> Checkpoint:
    """Load a folder or a hub id as a classifier or a masked language model, or say in a sentence why not.

    A model without the head that is asked for is refused, because its head would be random; `new_labels` (for a
    classifier) or `new_head` (for a language model) ask for a fresh head to be trained.
    """
    folder = _folder(source)
    config = _read_config(folder)
    shapes = _read_shapes(folder)
    _check_sizes(config, shapes)
    if kind == "classifier" and new_labels is None:
        _check_classifier(config)
    model = _build(folder, kind, new_labels, allow_missing=new_head or new_labels is not None)
    tokenizer = _tokenizer(folder)
    _check_finite(model)
    rows = model.get_input_embeddings().weight.shape[0]
    if len(tokenizer) > rows:
        raise BadModel(
            f"The tokenizer has {len(tokenizer)} tokens but the model only knows {rows}: they do not belong together."
        )
    return Checkpoint(model.eval(), tokenizer, token_limit(model.config, tokenizer))


def open_tokenizer(folder: Path) -> tuple[Any, int]:
    """Only the tokenizer of a folder and its limit, for models whose weights are read by something else."""
    _read_config(folder)  # refuses what must not be opened
    tokenizer = _tokenizer(folder)
    with _quiet():
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    return tokenizer, token_limit(config, tokenizer)


def save_folder(folder: str | Path, model: Any, tokenizer: Any) -> Path:
    """Write a folder that Hugging Face, and this door, can load again: whole or not at all, never over another."""
    target = Path(folder)
    if target.exists():
        raise BadModel(f"{target} exists already. Nothing was written; choose a new folder.")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
    try:
        with _quiet():
            model.save_pretrained(partial, safe_serialization=True)
            tokenizer.save_pretrained(partial)
        for path in partial.iterdir():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        partial.chmod(0o755)
        partial.rename(target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return target


def token_limit(config: Any, tokenizer: Any) -> int:
    """How many tokens the model can read: what the tokenizer says or the positions there are, whichever is less.

    Tokenizers that do not know their limit claim 1e30, and then nothing would ever be cut.
    """
    claimed = tokenizer.model_max_length
    limits = [int(claimed)] if claimed and claimed < _MAX_TOKENS else []
    positions = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    if isinstance(positions, int) and positions > 0:
        # RoBERTa and its kin number positions from the padding index on, so the first ones are never used
        shifted = config.model_type in _SHIFTED_POSITIONS
        limits.append(positions - (config.pad_token_id + 1) if shifted else positions)
    return min(limits, default=512)


_SHIFTED_POSITIONS = {
    "roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "roberta-prelayernorm", "longformer", "mpnet", "ibert",
    "data2vec-text", "xmod", "bertweet", "esm", "luke",
}  # fmt: skip


def _folder(source: str | Path) -> Path:
    """The folder itself, or the hub's files fetched into the local cache: only those we would read."""
    folder = Path(source).expanduser()
    if folder.is_dir():
        return folder
    if folder.is_file():
        raise BadModel(f"{source} is a file. Give the model's folder, the one with config.json in it.")
    if isinstance(source, Path) or not _HUB_ID.fullmatch(source):
        raise BadModel(f"There is no folder {source}, and it is not a Hugging Face model id (like name/model) either.")
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(source, allow_patterns=_WANTED_FILES))
    except (OSError, ValueError) as error:  # HTTP errors and time-outs are OSErrors in httpx and requests alike
        reason = type(error).__name__
        raise BadModel(
            f"{source} is not a folder here, and the Hugging Face hub could not give it ({reason})."
        ) from error
    except Exception as error:  # the hub client's own tree of errors has no other common root
        if type(error).__module__.split(".")[0] not in ("huggingface_hub", "httpx", "httpcore", "requests"):
            raise
        reason = type(error).__name__
        raise BadModel(
            f"{source} is not a folder here, and the Hugging Face hub could not give it ({reason})."
        ) from error


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not path.is_file():
        raise BadModel(f"{folder.name} is not a Hugging Face model folder: it has no config.json.")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadModel(f"The config.json of {folder.name} is not valid JSON.") from error
    kind = config.get("model_type") if isinstance(config, dict) else None
    if kind not in CONFIG_MAPPING_NAMES:
        if isinstance(config, dict) and config.get("auto_map"):
            raise BadModel(
                "This model needs to run its own code (auto_map), which is not allowed. Ask for a converted one."
            )
        raise BadModel(f"The model type {kind!r} is not one that the installed transformers library knows.")
    assert isinstance(config, dict)
    return config


def _read_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Name and shape of every weight, from the files' headers; refuses anything that is not safetensors."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        others = sorted(path.name for path in folder.iterdir() if path.suffix in _PICKLES)
        found = f" It has {others[0]}, which could run code when loaded." if others else ""
        raise BadModel(f"{folder.name} has no weights in the safetensors format, and no other is read.{found}")
    shapes: dict[str, tuple[int, ...]] = {}
    for path in files:
        try:
            with safe_open(path, framework="pt") as weights:
                shapes |= {name: tuple(weights.get_slice(name).get_shape()) for name in weights.keys()}  # noqa: SIM118
        except (SafetensorError, OSError, ValueError) as error:
            raise BadModel(f"The weight file {path.name} is damaged or not safetensors at all.") from error
    return shapes


def _check_sizes(config: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse a config that would build a far larger model than the weights could fill."""
    stored = sum(math.prod(shape) for shape in shapes.values())
    layers = next((config[key] for key in ("num_hidden_layers", "n_layers", "n_layer") if key in config), 1)
    width = next((config[key] for key in ("hidden_size", "dim", "n_embd", "d_model") if key in config), 1)
    inner = config.get("embedding_size", width)
    vocabulary = config.get("vocab_size", 1)
    sizes = (layers, width, inner, vocabulary)
    if not all(isinstance(size, int) and size >= 0 for size in sizes):
        raise BadModel("The sizes in config.json are not whole numbers.")
    largest = max((max(shape, default=1) for shape in shapes.values()), default=1)
    if layers > _MAX_LAYERS or vocabulary * min(inner, width) > stored or width > largest:
        raise BadModel(
            f"config.json describes a model of {layers} layers, width {width} and {vocabulary} tokens, "
            f"but the weights hold only {stored:,} numbers: they do not belong together."
        )


def _check_classifier(config: Mapping[str, Any]) -> None:
    problem, names = config.get("problem_type"), config.get("id2label")
    if problem == "regression" or (names is not None and len(names) == 1) or config.get("num_labels") == 1:
        raise BadModel(
            "This model has a single output: it measures something (regression) and does not choose among labels."
        )
    if problem == "multi_label_classification":
        raise BadModel(
            "This model may give several labels to one text (multi-label). Only one label per text is supported."
        )
    if names is not None:
        if not isinstance(names, dict) or len(names) > MAX_LABELS:
            raise BadModel(f"The model's label list is not usable: at most {MAX_LABELS} named labels are supported.")
        check_labels([str(name) for name in names.values()])


def check_labels(names: Sequence[str]) -> tuple[str, ...]:
    """The label names if they can serve: at least two, each with a name of its own."""
    if len(names) < 2:
        raise BadModel("A classifier needs at least two labels.")
    if len(names) > MAX_LABELS:
        raise BadModel(f"{len(names)} labels are too many: at most {MAX_LABELS} are supported.")
    if any(not name.strip() for name in names):
        raise BadModel("A label has an empty name.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadModel(f"Two labels are both called {twice[0]!r}.")
    return tuple(names)


def _build(folder: Path, kind: Kind, new_labels: Sequence[str] | None, allow_missing: bool) -> Any:
    settings: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
    try:
        with _quiet():
            config = AutoConfig.from_pretrained(folder, **settings)
            if hasattr(config, "auto_map"):
                del config.auto_map  # a known architecture needs no code of its own; nor must an export carry the hint
            if new_labels is not None:
                config.id2label = dict(enumerate(check_labels(new_labels)))
                config.label2id = {name: number for number, name in config.id2label.items()}
                config.problem_type = None
            model, report = _HEADS[kind].from_pretrained(
                folder,
                config=config,
                use_safetensors=True,
                dtype=torch.float32,
                output_loading_info=True,
                ignore_mismatched_sizes=new_labels is not None,
                **settings,
            )
    except (RuntimeError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadModel(f"{folder.name} does not load as a {kind.replace('_', ' ')}: {_first_line(error)}") from error
    missing = sorted(report["missing_keys"])
    if missing and not allow_missing:
        raise BadModel(
            f"{folder.name} lacks weights that a {kind.replace('_', ' ')} needs (such as {missing[0]}); "
            "they would be random. Train the model first, or ask for a new head."
        )
    if missing and not _is_head(model, missing):
        raise BadModel(
            f"{folder.name} lacks weights inside the model itself (such as {missing[0]}), not only the head."
        )
    return model


def _is_head(model: Any, names: Sequence[str]) -> bool:
    """Whether all these weights lie outside the encoder (its pooler counts as head: many encoders come without)."""
    encoder = f"{model.base_model_prefix}."
    return all(not name.startswith(encoder) or ".pooler." in name for name in names)


def _tokenizer(folder: Path) -> Any:
    try:
        with _quiet():
            return AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except Exception as error:
        raise BadModel(f"The tokenizer of {folder.name} does not load: {_first_line(error)}") from error
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # the Rust tokenizers' own, outside Exception
            raise BadModel(f"The tokenizer of {folder.name} is damaged.") from error
        raise


def _check_finite(model: Any) -> None:
    for name, weight in model.named_parameters():
        if not torch.isfinite(weight).all():
            raise BadModel(
                f"The weights contain values that are not numbers (in {name}); such a model answers nonsense."
            )


def _first_line(error: BaseException) -> str:
    """The first line of a library's message, without folders of this machine."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return re.sub(r"(/[\w.@+-]+){2,}/?", "…", line)[:200]


@contextmanager
def _quiet() -> Any:
    """Keep transformers' bars and advice off the user's screen; our own sentences say what matters."""
    level = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        if bars:
            transformers_logging.enable_progress_bar()
