"""Back-translation: there and back again (Sennrich et al. 2016), by Apertium's rules or by two translation models."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from unhans.augmentations import augmentation
from unhans.errors import BadOption, Cancelled, ModelFailed, Unsupported
from unhans.types import Example

if TYPE_CHECKING:  # Apertium needs no models, and these take seconds to import
    from unhans.checkpoint import Checkpoint

_INSTALL = "(on Debian and Ubuntu: apt-get install apertium apertium-eng-spa)"
_SECONDS = 600  # that Apertium may take for a batch of texts
_POLL = 0.5  # seconds between looks at whether to stop
_DRAWN = 50  # translations of one text that are drawn at most
_ROOM = 32  # tokens that a translation may have more than twice the text
Cancel = Callable[[], bool] | None


def _missing() -> str:
    try:
        pivots_of("eng")
    except Unsupported as error:
        return str(error)
    return ""


@augmentation(paper="arXiv:1511.06709", opens=("there", "back"), installed=_missing)
def back_translation(
    examples: Sequence[Example],
    wanted: Sequence[int],
    rngs: Sequence[np.random.Generator],
    cancelled: Callable[[], bool] | None,
    *,
    language: Annotated[str, "Apertium's code of the language of the texts"] = "eng",
    pivots: Annotated[str, "Apertium's codes of the languages to go through, with blanks between; empty: all"] = "",
    there: Annotated[str, "instead of Apertium: folder or hub id of a model (such as Marian) that translates"] = "",
    back: Annotated[str, "and of one that translates back"] = "",
) -> list[list[tuple[str, ...]]]:
    """The text is translated into another language and back, both texts of a pair alike.

    Apertium translates by dictionaries and rules, without a network: one copy for each language there is, the same each
    time. Two models give as many as are asked for, at most 50, by drawing translations on the way there. A text that is
    longer than a model reads gets no copies from it.
    """
    if bool(there) != bool(back):
        raise BadOption("there and back go together: one model translates, the other translates back.")
    if there:
        return _by_models(examples, wanted, rngs, (there, back), cancelled)
    known = pivots_of(language)
    chosen = pivots.split() or known
    if strange := [name for name in chosen if name not in known]:
        raise BadOption(f"Apertium cannot go from {language} to {strange[0]} and back. There is: {', '.join(known)}.")
    return _by_apertium(examples, language, chosen, cancelled)


@cache
def pivots_of(language: str) -> list[str]:
    """The languages to which Apertium can go and from which it comes back, by its codes."""
    if shutil.which("apertium") is None:
        raise Unsupported(f"back_translation needs Apertium, which is not installed {_INSTALL}, or two models.")
    modes = set(_run(["apertium", "-l"], "", None).split())
    found = sorted(mode.partition("-")[2] for mode in modes if mode.startswith(f"{language}-"))
    known = [name for name in found if f"{name}-{language}" in modes]
    if not known:
        raise Unsupported(f"Apertium is installed, but cannot go from {language} elsewhere and back {_INSTALL}.")
    return known


def _by_apertium(
    examples: Sequence[Example], language: str, pivots: Sequence[str], cancelled: Cancel
) -> list[list[tuple[str, ...]]]:
    """All texts at once, for starting Apertium takes longer than translating one."""
    parts = [part for example in examples for part in example.parts]
    made = []
    for name in pivots:
        away = translated(parts, f"{language}-{name}", cancelled)
        made.append(translated(away, f"{name}-{language}", cancelled))
    found: list[list[tuple[str, ...]]] = []
    at = 0
    for example in examples:
        until = at + len(example.parts)
        found.append([tuple(column[at:until]) for column in made])
        at = until
    return found


def translated(texts: Sequence[str], mode: str, cancelled: Cancel = None) -> list[str]:
    """What `apertium -u MODE` makes of each text, line by line; runs of blanks become one."""
    lines = [" ".join(line.split()) for text in texts for line in text.splitlines()]
    said = [line for line in dict.fromkeys(lines) if line]
    told = dict(zip(said, _paragraphs(said, mode, cancelled), strict=True))
    rest = iter(lines)
    return ["\n".join(told.get(next(rest), "") for _ in text.splitlines()) for text in texts]


def _paragraphs(lines: Sequence[str], mode: str, cancelled: Cancel) -> list[str]:
    """Each line as a paragraph of one stream: Apertium ends a sentence there, so that neighbours have no say.

    Should the paragraphs not come back as many as they went, half of them are tried, down to one.
    """
    if not lines:
        return []
    came = _run(["apertium", "-u", mode], "".join(f"{line}\n\n" for line in lines), cancelled)
    found = [" ".join(paragraph.split()) for paragraph in came.split("\n\n") if paragraph.strip()]
    if len(found) == len(lines):
        return found
    if len(lines) == 1:
        return [" ".join(found)]
    half = len(lines) // 2
    return [*_paragraphs(lines[:half], mode, cancelled), *_paragraphs(lines[half:], mode, cancelled)]


def _run(command: Sequence[str], given: str, cancelled: Cancel) -> str:
    """What a command answers; stopped with all that it started when it takes too long or somebody wants that."""
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    waited = 0.0
    sent: bytes | None = given.encode(errors="replace")
    with subprocess.Popen(command, start_new_session=True, **pipes) as process:
        try:
            while True:
                try:
                    out, err = process.communicate(sent, timeout=_POLL)
                    break
                except subprocess.TimeoutExpired:
                    waited, sent = waited + _POLL, None  # it is on its way
                    if cancelled is not None and cancelled():
                        raise Cancelled("Translating was stopped.") from None
                    if waited > _SECONDS:
                        raise ModelFailed(f"Apertium did not answer for {_SECONDS} seconds. Give it less.") from None
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        said = err.decode(errors="replace").strip()[-300:]
        raise ModelFailed(f"{' '.join(command)} failed: {said or f'it ended with {process.returncode}'}.")
    return bytes(out).decode(errors="replace")


# Translation models


def _by_models(
    examples: Sequence[Example],
    wanted: Sequence[int],
    rngs: Sequence[np.random.Generator],
    models: tuple[str, str],
    cancelled: Cancel,
) -> list[list[tuple[str, ...]]]:
    """Example by example, so that the others in a batch have no say in what is drawn."""
    there, back = (_opened(source) for source in models)
    found = []
    for example, n, rng in zip(examples, wanted, rngs, strict=True):
        seed = int(rng.integers(2**31))
        columns = [_there_and_back(part, there, back, min(n, _DRAWN), seed, cancelled) for part in example.parts]
        found.append([tuple(row) for row in zip(*columns, strict=False)])
    return found


def _there_and_back(  # noqa: PLR0917 - what one text needs
    text: str, there: Checkpoint, back: Checkpoint, n: int, seed: int, cancelled: Cancel
) -> list[str]:
    if not text.strip():
        return [text] * n
    away = _written(there, [text], n, seed, cancelled)
    return [home for pivot in away for home in _written(back, [pivot], 1, None, cancelled)]


def _written(translator: Checkpoint, texts: Sequence[str], n: int, seed: int | None, cancelled: Cancel) -> list[str]:
    """Translations of a text: drawn, or without a seed the likeliest; none of one that is too long."""
    import torch

    if cancelled is not None and cancelled():
        raise Cancelled("Translating was stopped.")
    model, tokenizer = translator.model, translator.tokenizer
    ids = tokenizer(list(texts), return_tensors="pt", verbose=False)["input_ids"].to(model.device)
    if not 0 < ids.shape[1] <= translator.limit:
        return []
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        torch.manual_seed(seed or 0)
        answers = model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            do_sample=seed is not None,
            num_beams=1,
            num_return_sequences=n,
            max_new_tokens=min(2 * ids.shape[1] + _ROOM, translator.limit),
        )
    return [str(line).strip() for line in tokenizer.batch_decode(answers, skip_special_tokens=True)]


@lru_cache(maxsize=2)
def _opened(source: str) -> Checkpoint:
    """A model that translates, kept for the next batch: one there, one back."""
    from unhans.checkpoint import Checkpoint, open_writer
    from unhans.model import best_device

    found = open_writer(source)
    if not found.model.config.is_encoder_decoder:
        raise BadOption(f"{source} goes on with a text, and does not translate it: it has no encoder of its own.")
    return Checkpoint(found.model.to(best_device()), found.tokenizer, found.limit)
