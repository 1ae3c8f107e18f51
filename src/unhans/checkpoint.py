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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError, safe_open
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
from transformers.utils import logging as transformers_logging

from unhans.errors import BadModel

MAX_LABELS = 500
_MAX_LAYERS = 100  # or as many as there are weights in the files
_MAX_TOKENS = 1_000_000_000  # a tokenizer that does not state its limit says 1e30
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_WANTED_FILES = ["*.json", "*.safetensors", "*.txt", "*.model"]
_NEW_HEAD = 1_000_000  # numbers that a head may add to what is stored
_LAYERS = re.compile(r"(layers?|experts|groups)$")
_PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".joblib", ".ckpt", ".h5", ".npy", ".msgpack")
_HEADS = {
    "classifier": AutoModelForSequenceClassification,
    "language_model": AutoModelForMaskedLM,
    "writer": AutoModelForCausalLM,
    "rewriter": AutoModelForSeq2SeqLM,
}
Kind = Literal["classifier", "language_model", "writer", "rewriter"]


@dataclass(frozen=True)
class Checkpoint:
    """A model that has passed the door, with its tokenizer and how many tokens it can read."""

    model: Any
    tokenizer: Any
    limit: int


def open_checkpoint(
    source: str | Path,
    kind: Kind,
    *,
    new_labels: Sequence[str] | None = None,
    new_head: bool = False,
    seed: int = 0,
) -> Checkpoint:
    """Load a folder or a hub id as a classifier or a masked language model, or say in a sentence why not.

    A model without the head that is asked for is refused, because its head would be random; `new_labels` (for a
    classifier) or `new_head` (for a language model) ask for a fresh head to be trained, drawn from the seed. Where a
    trained head is there, `new_labels` only gives its labels other names.
    """
    folder = _folder(source)
    config = _read_config(folder)
    shapes = _read_shapes(folder)
    _check_sizes(config, shapes)
    names = None if new_labels is None else check_labels(new_labels)
    if kind == "classifier" and names is None:
        check_classifier(config)
    model = _build(folder, kind, shapes, names, new_head or names is not None, seed)
    tokenizer = _tokenizer(folder)
    _check_finite(model)
    rows = model.get_input_embeddings().weight.shape[0]
    if len(tokenizer) > rows:
        raise BadModel(
            f"The tokenizer has {len(tokenizer)} tokens but the model only knows {rows}: they do not belong together."
        )
    return Checkpoint(model.eval(), tokenizer, token_limit(model.config, tokenizer))


def open_writer(source: str | Path) -> Checkpoint:
    """Load a folder or a hub id as a model that writes texts: one that goes on with a text, or one that rewrites it."""
    folder = _folder(source)
    return open_checkpoint(folder, "rewriter" if _read_config(folder).get("is_encoder_decoder") else "writer")


def open_tokenizer(folder: Path) -> tuple[Any, int]:
    """Only the tokenizer of a folder and its limit, for models whose weights are read by something else."""
    _check_sizes(_read_config(folder), {})
    tokenizer = _tokenizer(folder)
    with _quiet():
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    return tokenizer, token_limit(config, tokenizer)


def save_folder(folder: str | Path, model: Any, tokenizer: Any) -> Path:
    """Write a folder that Hugging Face, and this door, can load again: whole or not at all, never over another."""
    with whole_folder(folder) as partial:
        write_files(partial, model, tokenizer)
    return Path(folder)


@contextmanager
def whole_folder(folder: str | Path) -> Iterator[Path]:
    """A folder to write into, which gets its name when all is written, or is gone; never over another."""
    target = Path(folder)
    if target.exists():
        raise BadModel(f"{target} exists already. Nothing was written; choose a new folder.")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
    try:
        yield partial
        for path in partial.rglob("*"):
            if path.is_file():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
        partial.chmod(0o755)
        partial.rename(target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def write_files(folder: Path, model: Any, tokenizer: Any) -> None:
    """Write the files of a model into a folder that is there; it is whole only when this returns."""
    with _quiet():
        model.save_pretrained(folder, safe_serialization=True)
        tokenizer.save_pretrained(folder)


def token_limit(config: Any, tokenizer: Any) -> int:
    """How many tokens the model can read: what the tokenizer says or the positions there are, whichever is less.

    Tokenizers that do not know their limit claim 1e30, and then nothing would ever be cut.
    """
    claimed = tokenizer.model_max_length
    limits = [int(claimed)] if 0 < claimed < _MAX_TOKENS else []
    positions = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    if isinstance(positions, int) and positions > 0:
        # RoBERTa and its kin number positions from the padding index on, so the first ones are never used
        shifted = config.model_type in _SHIFTED_POSITIONS
        first = 2 if config.model_type == "mpnet" else (config.pad_token_id or 0) + 1  # MPNet does not ask its config
        limits.append(positions - first if shifted else positions)
    return min(limits, default=512)


_SHIFTED_POSITIONS = {
    "roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "roberta-prelayernorm", "longformer", "mpnet", "ibert",
    "data2vec-text", "xmod", "bertweet", "esm", "luke",
}  # fmt: skip


def _folder(source: str | Path) -> Path:
    """The folder itself, or the hub's files fetched into the local cache: only those we would read."""
    try:
        folder = Path(source).expanduser()
        if folder.is_dir():
            return folder
        if folder.is_file():
            raise BadModel(f"{source} is a file. Give the model's folder, the one with config.json in it.")
    except (OSError, RuntimeError) as error:  # a name too long for the disk; ~ of an unknown user
        raise BadModel(f"There is no folder {str(source)[:200]}.") from error
    if isinstance(source, Path) or not _HUB_ID.fullmatch(source):
        raise BadModel(f"There is no folder {source}, and it is not a Hugging Face model id (like name/model) either.")
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(source, allow_patterns=_WANTED_FILES))
    except Exception as error:  # the hub client's errors, httpx's and the disk's have no other common root
        raise BadModel(
            f"There is no folder {source} here, and the Hugging Face hub could not be reached or does not have it."
        ) from error


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not path.is_file():
        raise BadModel(f"{folder.name} is not a Hugging Face model folder: it has no config.json.")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadModel(f"The config.json of {folder.name} is not valid JSON.") from error
    if not isinstance(config, dict):
        raise BadModel(f"The config.json of {folder.name} does not describe a model.")
    kind = config.get("model_type")
    # here and not above: it takes seconds to import what all architectures share, which black boxes do without
    from unhans.averaging import AveragingConfig

    if not isinstance(kind, str) or kind not in {*CONFIG_MAPPING_NAMES, AveragingConfig.model_type}:
        if config.get("auto_map"):
            raise BadModel(
                "This model needs to run its own code (auto_map), which is not allowed. Ask for a converted one."
            )
        raise BadModel(f"The model type {kind!r} is not one that the installed transformers library knows.")
    if config.get("quantization_config"):
        raise BadModel(f"The weights of {folder.name} are quantised. Only full-precision weights are read.")
    if (folder / "adapter_config.json").exists():
        raise BadModel(
            f"{folder.name} is an adapter, which fetches its model from elsewhere. Merge the two first, and give that."
        )
    return config


def _read_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Name and shape of every weight, from the files' headers; refuses anything that is not safetensors."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        others = sorted(path.name for path in folder.iterdir() if path.suffix in _PICKLES)
        found = f" It has {others[0]}, which could run code when loaded." if others else ""
        raise BadModel(f"{folder.name} has no weights in the safetensors format, and no other is read.{found}")
    _check_index(folder / "model.safetensors.index.json", {path.name for path in files})
    shapes: dict[str, tuple[int, ...]] = {}
    for path in files:
        try:
            with safe_open(path, framework="pt") as weights:
                shapes |= {name: tuple(weights.get_slice(name).get_shape()) for name in weights.keys()}  # noqa: SIM118
        except (SafetensorError, OSError, ValueError) as error:
            raise BadModel(f"The weight file {path.name} is damaged or not safetensors at all.") from error
    return shapes


def _check_index(path: Path, files: set[str]) -> None:
    """Refuse an index of weights that leads to other files than these: out of the folder, or to a pickle."""
    if not path.is_file():
        return
    try:
        named = set(json.loads(path.read_text(encoding="utf-8"))["weight_map"].values())
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise BadModel(f"The index of the weights, {path.name}, is damaged.") from error
    if not named <= files:
        raise BadModel(f"The index of the weights, {path.name}, names files that are not safetensors of this folder.")


def _check_sizes(config: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse, before anything is built, counts that alone would keep the machine busy."""
    limit = max(_MAX_LAYERS, len(shapes))
    for name, value in _numbers(config):
        if _LAYERS.search(name) and value > limit:
            raise BadModel(
                f"config.json describes a model with {name} = {value}, but there are only {len(shapes)} weights: "
                "they do not belong together."
            )
        if name == "num_labels" and value > MAX_LABELS:
            raise BadModel(f"{value} labels are too many: at most {MAX_LABELS} are supported.")


def _numbers(config: Any) -> Iterator[tuple[str, float]]:
    """Every number in a config with its name, at any depth."""
    for name, value in config.items():
        if isinstance(value, dict):
            yield from _numbers(value)
        elif isinstance(value, int | float):
            yield str(name), value


def _check_skeleton(kind: Kind, config: Any, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse a config that would build a far larger model than the weights could fill."""
    with torch.device("meta"):  # shapes without memory
        built = sum(weight.numel() for weight in _HEADS[kind].from_config(config).parameters())
    stored = sum(map(math.prod, shapes.values()))
    if built > 2 * stored + _NEW_HEAD:
        raise BadModel(
            f"config.json describes a model of {built:,} numbers, but the weights hold only {stored:,}: "
            "they do not belong together."
        )


def check_classifier(config: Mapping[str, Any]) -> None:
    """Refuse a config of something else than a choice among named labels."""
    problem, names = config.get("problem_type"), config.get("id2label")
    if names is not None and not isinstance(names, dict):
        raise BadModel("The model's label list (id2label in config.json) is not usable.")
    if problem == "regression" or (names is not None and len(names) == 1) or config.get("num_labels") == 1:
        raise BadModel(
            "This model has a single output: it measures something (regression) and does not choose among labels."
        )
    if problem == "multi_label_classification":
        raise BadModel(
            "This model may give several labels to one text (multi-label). Only one label per text is supported."
        )
    if names is not None:
        check_labels([str(name) for name in names.values()])
        if {str(number) for number in names} != set(map(str, range(len(names)))):
            raise BadModel(f"The model's labels (id2label in config.json) are not numbered from 0 to {len(names) - 1}.")


def check_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """The label names if they can serve: at least two, each with a name of its own. Numbers are taken as names."""
    names = [str(label) for label in labels]
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


def _build(  # noqa: PLR0917 - the second half of open_checkpoint
    folder: Path,
    kind: Kind,
    shapes: Mapping[str, tuple[int, ...]],
    new_labels: Sequence[str] | None,
    allow_missing: bool,
    seed: int,
) -> Any:
    settings: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
    called = f"a {kind.replace('_', ' ')}"
    try:
        with _quiet(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            config = _settle(AutoConfig.from_pretrained(folder, **settings), new_labels)
            _check_skeleton(kind, config, shapes)
            model, report = _HEADS[kind].from_pretrained(
                folder,
                config=config,
                use_safetensors=True,
                dtype=torch.float32,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # looked at below, where we can say it better
                **settings,
            )
    except BadModel:
        raise
    except Exception as error:  # a hostile or damaged config can make the library raise anything
        raise BadModel(f"{folder.name} does not load as {called}: {_first_line(error, folder)}") from error
    other_size = sorted(name for name, *_ in report["mismatched_keys"])
    missing = sorted(report["missing_keys"])
    if other_size and not allow_missing:
        raise BadModel(
            f"{folder.name} does not load as {called}: {other_size[0]} has another size than config.json says."
        )
    if missing and not allow_missing:
        raise BadModel(
            f"{folder.name} lacks weights that {called} needs (such as {missing[0]}); "
            "they would be random. Train the model first, or ask for a new head."
        )
    if inner := [name for name in missing + other_size if not _is_head(model, name)]:
        raise BadModel(f"{folder.name} lacks weights inside the model itself (such as {inner[0]}), not only the head.")
    if other_size and new_labels is not None:
        raise BadModel(
            f"{folder.name} has a trained head for another number of labels than the {len(new_labels)} given. "
            "Give as many names as it has labels, or load the encoder without its head."
        )
    return model


def _settle(config: Any, new_labels: Sequence[str] | None) -> Any:
    """The config without what a folder must not decide: code of its own, kernels to fetch, other forms of output."""
    if hasattr(config, "auto_map"):
        del config.auto_map  # a known architecture needs no code of its own; nor must an export carry the hint
    config._attn_implementation = None
    config._experts_implementation = None
    config.return_dict = True
    config.chunk_size_feed_forward = 0
    if new_labels is not None:
        config.id2label = dict(enumerate(new_labels))
        config.label2id = {name: number for number, name in config.id2label.items()}
        config.problem_type = None
    return config


def _is_head(model: Any, name: str) -> bool:
    """Whether this weight lies outside the encoder (its pooler counts as head: many encoders come without)."""
    return not name.startswith(f"{model.base_model_prefix}.") or ".pooler." in name


def _tokenizer(folder: Path) -> Any:
    try:
        with _quiet():
            tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except Exception as error:
        raise BadModel(f"The tokenizer of {folder.name} does not load: {_first_line(error, folder)}") from error
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # the Rust tokenizers' own, outside Exception
            raise BadModel(f"The tokenizer of {folder.name} is damaged.") from error
        raise
    tokenizer.init_kwargs.pop("auto_map", None)  # as with the model: an export must not name code
    if not isinstance(tokenizer.model_max_length, int | float):
        raise BadModel(f"The tokenizer of {folder.name} does not give its limit (model_max_length) as a number.")
    if len(tokenizer) <= len(set(tokenizer.all_special_ids)):  # what transformers makes up when the files are missing
        raise BadModel(f"{folder.name} has no tokenizer that knows a single word: its files are missing or empty.")
    return tokenizer


def _check_finite(model: Any) -> None:
    for name, weight in model.named_parameters():
        if not torch.isfinite(weight).all():
            raise BadModel(
                f"The weights contain values that are not numbers (in {name}); such a model answers nonsense."
            )


def _first_line(error: BaseException, folder: Path) -> str:
    """The first line of a library's message, without folders of this machine."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0].replace(str(folder), "…")
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
