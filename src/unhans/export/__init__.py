"""What a project gives away: a model folder, the feedback as a data set, the report as a page, or all of them at once.

Everything is written into a new folder, whole or not at all, with a manifest of sizes and hashes (`unhans.artefacts`).
A model is loaded again from what was written and must answer as before, or nothing is kept. Its card states facts that
were handed in, and what got worse comes first.

    bundle/
    ├── manifest.json         size and sha256 of every file, versions, revision
    ├── model/                config, weights, tokenizer, README.md: transformers loads it
    ├── feedback/             feedback.parquet, highlights.parquet, README.md: datasets loads it
    └── report.html           opens offline
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch

from unhans.artefacts import Artefacts
from unhans.checkpoint import token_limit
from unhans.data.writing import new_file
from unhans.errors import BadData, BadModel, BadOption, Conflict, NotAllowed, ProjectProblem, Unsupported
from unhans.export.card import Facts, facts_of, model_card
from unhans.export.dataset import write_feedback
from unhans.export.flips import export_flips, read_flips
from unhans.export.keeping import Exported, keep
from unhans.feedback import resolve
from unhans.model import Classifier, TransformerClassifier
from unhans.reporting import report_page
from unhans.scoring import ask
from unhans.types import Example, Feedback, Report, Revision

__all__ = [
    "PARTS",
    "Exported",
    "Facts",
    "check_export",
    "export_bundle",
    "export_feedback",
    "export_flips",
    "export_model",
    "export_report",
    "facts_of",
    "model_card",
    "push",
    "read_flips",
]

PARTS = ("model", "feedback", "report")
_CHECKED = 50  # examples on which a written model must answer as before
_TOLERANCE = 1e-4  # logits
_HAND_ON = "The export itself is whole, in {folder}."


# -- the four exports


def export_model(
    classifier: Classifier,
    folder: str | Path,
    *,
    card: Facts,
    check_on: Sequence[Example],
    push_to: str | None = None,
    token: str | None = None,
    private: bool = True,
) -> Exported:
    """A new folder that `AutoModelForSequenceClassification` and `AutoTokenizer` load, with a card and a manifest.

    What was written is loaded again and must give the same predictions on up to 50 of the examples in `check_on`.
    `push_to` is the id of a repository on the Hugging Face hub (made if need be, private unless told otherwise) that
    gets the same files.
    """
    if push_to is not None:
        _check_repository(push_to)
    own = _with_weights(classifier)
    made = keep(
        folder,
        lambda partial: _write_model(own, partial, card, check_on),
        parts=("model",),
        revision=classifier.revision,
        needs=_bytes(own),
    )
    if push_to is not None:
        push(made.folder, push_to, token=token, private=private)
    return made


def export_feedback(
    folder: str | Path, examples: Iterable[Example], feedback: Sequence[Feedback], *, revision: str, names: bool = False
) -> Exported:
    """A new folder that `datasets.load_dataset` loads, with the configurations `feedback` and `highlights`.

    `feedback` has a row for each answer that stands; it is stale if the text has changed since, or if it was given
    about another revision than this. `highlights` has a row for each example and label that people agree on something
    about: which words are to count more, which less, by majority; it is left out if there is none. Authors are
    person-1, person-2, … and notes are left out unless `names` are asked for.
    """
    return keep(
        folder,
        lambda partial: write_feedback(partial, examples, feedback, revision, names),
        parts=("feedback",),
        revision=revision,
    )


def export_report(report: Report, path: str | Path, title: str = "Before and after") -> Path:
    """The report as one HTML file that needs nothing else; never over another file."""
    target = Path(path).expanduser()
    if target.exists():
        raise Conflict(f"{target} exists already. It is unchanged; choose another name.")
    target.parent.mkdir(parents=True, exist_ok=True)
    page = report_page(report, title).encode(errors="replace")
    with new_file(target) as file:
        file.write(page)
    return target


def export_bundle(
    folder: str | Path,
    *,
    classifier: Classifier,
    report: Report | None,
    feedback: Sequence[Feedback],
    examples: Sequence[Example],
    parts: Sequence[str] = PARTS,
    revision: Revision | None = None,
    card: Facts | None = None,
    names: bool = False,
    title: str = "Before and after",
) -> Exported:
    """A new folder with the parts asked for, under one manifest: all of it, or nothing.

    Without a report there is no page, and without feedback no data set, even if asked for; `parts` of what comes back
    says what there is.
    """
    if strange := sorted(set(parts) - set(PARTS)):
        raise BadOption(f"An export has no part {strange[0]!r}. There is: {', '.join(PARTS)}.")
    there = {"model": True, "feedback": bool(resolve(feedback)), "report": report is not None}
    chosen = tuple(part for part in PARTS if part in parts and there[part])
    if not chosen:
        raise BadOption("There is nothing to export: ask for the model, for feedback or a report where there is one.")
    own = _with_weights(classifier) if "model" in chosen else None
    id_ = revision.id if revision is not None else classifier.revision

    def write(partial: Path) -> str:
        told = []
        if own is not None:
            facts = card or facts_of(
                Path(folder).name, examples=examples, feedback=feedback, revision=revision, report=report, names=names
            )
            told.append(_write_model(own, _inside(partial, "model"), facts, examples))
        if "feedback" in chosen:
            told.append(write_feedback(_inside(partial, "feedback"), examples, feedback, id_, names))
        if "report" in chosen and report is not None:
            export_report(report, partial / "report.html", title)
        return " ".join(told)

    return keep(folder, write, parts=chosen, revision=id_, needs=0 if own is None else _bytes(own))


def check_export(folder: str | Path) -> str | None:
    """None if an export is as it was written, byte by byte, or a sentence that says what is not."""
    place = Path(folder).expanduser().absolute()
    return Artefacts(place.parent).verify(place.name)


def push(
    folder: str | Path,
    repository: str,
    *,
    token: str | None = None,
    private: bool = True,
) -> str:
    """Upload an exported model to the Hugging Face hub (or to HF_ENDPOINT); the address of the commit comes back.

    The repository is made if it is not there. What is not as it was written is not uploaded.
    """
    place = Path(folder).expanduser().absolute()
    _check_repository(repository)
    if problem := check_export(place):
        raise ProjectProblem(f"{problem} Nothing was uploaded; export again.")
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, OfflineModeIsEnabled

    safe = _HAND_ON.format(folder=place)
    hub = HfApi(token=token)
    try:
        hub.create_repo(repository, private=private, exist_ok=True)
        done = hub.upload_folder(repo_id=repository, folder_path=place, commit_message="Exported by unhans")
    except OfflineModeIsEnabled as error:
        raise Unsupported(f"Nothing was uploaded: HF_HUB_OFFLINE forbids to reach the hub. {safe}") from error
    except LocalTokenNotFoundError as error:
        raise NotAllowed(f"Nothing was uploaded: the hub wants a token that may write. {safe}") from error
    except HfHubHTTPError as error:
        status = getattr(error.response, "status_code", None)
        if status in (401, 403):
            raise NotAllowed(
                f"The hub does not let this token write to {repository}. Nothing was uploaded. {safe}"
            ) from error
        raise Unsupported(f"The hub refused the upload to {repository} (HTTP {status}). {safe}") from error
    except Exception as error:  # the client's errors, its HTTP library's and the network's have no other common root
        raise Unsupported(f"The hub could not be reached ({type(error).__name__}). {safe}") from error
    return str(done.commit_url)


def _check_repository(repository: str) -> None:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(repository)
    except HFValidationError as error:
        raise BadOption(f"{repository[:100]!r} cannot be a repository on the hub: give it as name/model.") from error


def _inside(folder: Path, name: str) -> Path:
    inner = folder / name
    inner.mkdir()
    return inner


# -- the model


def _with_weights(classifier: Classifier) -> TransformerClassifier:
    if not isinstance(classifier, TransformerClassifier):
        raise Unsupported(
            f"{type(classifier).__name__} runs elsewhere: its weights are not here to be written. Export the feedback "
            "and the report without the model."
        )
    for name, weight in classifier.model.state_dict().items():
        if weight.is_floating_point() and not torch.isfinite(weight).all():
            raise BadModel(
                f"The weights contain values that are not numbers (in {name}); such a model answers nonsense. Nothing "
                "was written; go back to an earlier revision."
            )
    return classifier


def _bytes(classifier: TransformerClassifier) -> int:
    return sum(weight.numel() * weight.element_size() for weight in classifier.model.state_dict().values())


def _write_model(classifier: TransformerClassifier, folder: Path, card: Facts, check_on: Sequence[Example]) -> str:
    """Write the files of a model and its card; what comes back says what was checked."""
    _stating_its_limit(classifier).save_into(folder)
    checked = _check(classifier, folder, check_on)
    (folder / "README.md").write_text(model_card(classifier, card, checked), encoding="utf-8", errors="replace")
    return checked


def _stating_its_limit(classifier: TransformerClassifier) -> TransformerClassifier:
    """The classifier with a tokenizer that says how much is read, so that a loaded one reads no more."""
    tokenizer, limit = classifier.tokenizer, classifier.limit
    if token_limit(classifier.model.config, tokenizer) == limit:
        return classifier
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.model_max_length = limit
    return TransformerClassifier(classifier.model, tokenizer, limit, str(classifier.model.device))


def _check(classifier: TransformerClassifier, folder: Path, check_on: Sequence[Example]) -> str:
    """Load what was written, and ask it: a sentence, or an error if it answers otherwise."""
    n = min(_CHECKED, len(check_on))
    chosen = [check_on[number * len(check_on) // n] for number in range(n)]  # from all over the data, perhaps sorted
    if not chosen:
        raise BadData("An export is checked on examples, and there are none. Nothing was written; give check_on=.")
    again = TransformerClassifier.open(folder, device=str(classifier.model.device))
    before, after = ask(classifier, chosen), ask(again, chosen)
    apart = float(np.abs(before - after).max()) if before.shape == after.shape else float("inf")
    others = int((before.argmax(1) != after.argmax(1)).sum()) if before.shape == after.shape else len(chosen)
    if again.labels != classifier.labels or others or not apart <= _TOLERANCE:
        raise BadModel(
            f"The model does not answer as before once it is written and loaded again: {others} of {len(chosen)} "
            f"predictions differ, logits by up to {apart:.2g}. Nothing was kept; the model here is unchanged."
        )
    what = "prediction is" if len(chosen) == 1 else "predictions are"
    return (
        f"Loaded again from these files, {len(chosen)} {what} the same as before; logits differ by at most {apart:.1e}."
    )
