"""LIME with a language model's words in place of gaps (Pham et al. 2022, "Double Trouble")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np

from unhans.attributions import Estimate, attribution
from unhans.attributions._erasing import Measured
from unhans.attributions._surrogates import NumSamples, Tolerance, estimates
from unhans.attributions.lime import KernelWidth, Sampling, slopes
from unhans.language_model import Filler, LanguageModel
from unhans.model import Classifier
from unhans.text import Hole, Variant, Words
from unhans.types import Terms


@attribution(
    needs={"predict"},
    paper="arXiv:2110.11929",
    aliases=("lime_bert",),
    at_once=8,
    terms=lambda o: Terms(
        o["unit"], "what a language model would write there", "slopes of a linear model fitted to samples"
    ),
)
def lime_mlm(  # noqa: PLR0917 - what every attribution is given, and the language model
    classifier: Classifier,
    words: Sequence[Words],
    targets: Sequence[int],
    rngs: Sequence[np.random.Generator],
    language_model: LanguageModel,
    how: dict[str, Any],
    *,
    num_samples: NumSamples = 1000,
    tolerance: Tolerance = 0.0,
    kernel_width: KernelWidth = 25.0,
    unit: Measured = "probability",
    sampling: Sampling = "paired",
    fill: Annotated[
        Literal["at_once", "left_to_right"], "whether words are filled in all at once, or each in sight of those before"
    ] = "at_once",
) -> list[Estimate]:
    """LIME on fluent texts: words that are taken out are replaced by a language model's likeliest.

    The likeliest may be the very word that was taken out, as in the paper. A gap beyond the language model's length
    limit is left empty. `left_to_right` asks the language model once for every gap instead of once for every sample.
    """
    draw, fit = slopes(sampling, kernel_width, num_samples)
    cancelled = how.get("cancelled")

    def change(asked: Sequence[tuple[Words, Sequence[int]]]) -> list[Variant]:
        """Gaps filled, a few in each text or all of them, until none is left."""
        edits: list[dict[int, str | Hole]] = [dict.fromkeys(gaps, Hole.MASK) for _, gaps in asked]
        while open_to := [n for n, edit in enumerate(edits) if Hole.MASK in edit.values()]:
            masked = [asked[n][0].variant(edits[n]) for n in open_to]
            for n, found in zip(open_to, language_model.fill(masked, k=1, cancelled=cancelled), strict=True):
                new = _said(asked[n][0], edits[n], found)
                edits[n] |= new if fill == "at_once" else dict([min(new.items())])
        return [one.variant(edit) for (one, _), edit in zip(asked, edits, strict=True)]

    return estimates(
        classifier,
        words,
        targets,
        rngs,
        how,
        draw=draw,
        change=change,
        fit=fit,
        unit=unit,
        num_samples=num_samples,
        tolerance=tolerance,
    )


def _said(words: Words, edit: dict[int, str | Hole], found: Sequence[Sequence[Filler]]) -> dict[int, str]:
    """The likeliest filling of each unit that is hidden; every word of a unit is a hole of its own."""
    fillers = iter(found)
    hidden = sorted(unit for unit, new in edit.items() if isinstance(new, Hole))
    holes = {unit: [next(fillers) for _ in words.groups[unit]] for unit in hidden}
    return {unit: " ".join(best[0].word for best in some if best) for unit, some in holes.items()}
