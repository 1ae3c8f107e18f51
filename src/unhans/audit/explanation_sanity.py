"""Whether the explanations that people see depend on the model at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from unhans.attributions import attribution
from unhans.audit import Find, How, Outcome, check
from unhans.audit._look import drawn
from unhans.audit._rules import SANITY
from unhans.errors import BadData, BadOption, Unsupported
from unhans.language_model import LanguageModel
from unhans.metrics import measure
from unhans.model import Classifier
from unhans.types import Evidence, Example


@check(
    title="Sanity of the explanations",
    needs={"train"},
    cost=1.2,
    order=11,
    paper="Adebayo et al. 2018, arXiv:1810.03292",
)
def explanation_sanity(
    classifier: Classifier,
    examples: Sequence[Example],
    train: Sequence[Example],
    method: str,
    language_model: LanguageModel | None,
    find: Find,
    how: How,
    seed: int,
    *,
    texts: Annotated[int, "texts that are explained, each by four models"] = 40,
) -> Outcome:
    """Rank correlation between the explanations of this model and of models whose head was drawn anew.

    A method that says the same of both does not depend on the model: it describes the text.
    """
    if texts < 2:
        raise BadOption(f"texts must be at least 2, not {texts}.")
    background = drawn(train or examples, 200, seed)
    entry = attribution[method]
    if "language_model" in entry.asks and language_model is None:
        raise Unsupported(f"{method} needs a language model, and none was given.")
    given: dict[str, Any] = {"language_model": language_model, "background": background}
    some = drawn([e for e in examples if e.text.strip()], texts, seed)
    if len(some) < 2:
        raise BadData(f"It takes two texts or more to explain, and there are {len(some)}.")
    how.tell(0, 1)
    grade = measure(
        classifier, some, metric="sanity_spearman", method=method, seed=seed, cancelled=how.cancelled,
        progress=how.tell, **given,
    )  # fmt: skip
    said = f"{method}: rank correlation {grade.value:.2f} with models whose head was drawn anew, on {len(some)} texts."
    severity = SANITY(grade.value)
    if severity is None:
        return Outcome(said)
    what = "rank correlation with the explanations of models whose head was drawn anew"
    finding = find(
        severity,
        f"{method} explains the text and not the model",
        says=f"{said} An explanation that stays as it was when the model is another says nothing about the model.",
        evidence=[Evidence(what, grade.value, 0.0, grade.low, grade.high, grade.examples)],
        examples=[example.id for example in some],
        next="Choose another method to explain with: unhans compare says which to trust.",
        screen="bugs",
        limits="A method that passes may still be wrong in other ways; the lab shows which bugs it sees.",
    )
    return Outcome(said, (finding,))
