"""How often the interval of a risk holds the true risk, and how well it says how many more ratings are needed.

    python bench/risk.py [--studies 300] [--seed 0]

Simulated studies: texts and people differ in how much they disagree with the model, and single ratings vary. The scale
is symmetric, so that the true risk is 2. Beside ours: the interval for which every rating is a draw of its own.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unhans.risk import assess
from unhans.types import Counterfactual, Edit, Feedback, FlipRating, Prediction, Recipe

TRUE, WISHED = 2.0, 0.5


@dataclass(frozen=True)
class Study:
    """Everybody rates one to three flips of every text; how far texts, people and single ratings are spread."""

    texts: int
    people: int
    of_text: float
    of_person: float
    of_rating: float

    def run(self, rng: np.random.Generator) -> tuple[list[Feedback], dict[str, Counterfactual]]:
        """Ratings, and the flips they are about."""
        texts, people = rng.normal(0, self.of_text, self.texts), rng.normal(0, self.of_person, self.people)
        flips: dict[str, Counterfactual] = {}
        ratings: list[Feedback] = []
        for number, of_text in enumerate(texts):
            own = [flip(f"e{number}", n) for n in range(rng.integers(1, 4))]
            flips |= {one.id: one for one in own}
            for person, of_person in enumerate(people):
                drawn = 3 + of_text + of_person + rng.normal(0, self.of_rating, len(own))
                given = np.clip(drawn.round(), 1, 5).astype(int).tolist()
                ratings += [rate(one.id, f"p{person}", agrees) for one, agrees in zip(own, given, strict=True)]
        return ratings, flips


STUDIES = {
    "ratings alike": Study(30, 3, 0.0, 0.0, 1.2),
    "texts differ": Study(30, 3, 1.0, 0.0, 0.7),
    "texts and 8 people differ": Study(30, 8, 1.0, 0.5, 0.7),
    "texts and 3 people differ": Study(30, 3, 1.0, 0.5, 0.7),
    "one person, 20 texts": Study(20, 1, 1.0, 0.0, 0.7),
}


def flip(example: str, number: int) -> Counterfactual:
    """Some flip of an example."""
    before, after = (Prediction(example, ("a", "b"), said, "r") for said in ((0.9, 0.1), (0.1, 0.9)))
    edits, recipe = (Edit(number, "old", "new"),), Recipe("counterfactuals", "hotflip")
    return Counterfactual(example, edits, "new", None, before, after, recipe)


def rate(flip_id: str, author: str, agrees: int) -> Feedback:
    """One rating."""
    says = FlipRating(flip_id, None, None, agrees)
    return Feedback(f"{author} {flip_id}", says, author, "2026-01-01T00:00:00Z", "r")


def naive(values: NDArray[np.float64]) -> tuple[float, float]:
    """The interval of unrelated ratings."""
    half = 1.96 * float(values.std(ddof=1)) / math.sqrt(len(values))
    return float(values.mean()) - half, float(values.mean()) + half


def measured(study: Study, times: int, seed: int) -> tuple[float, float, float, float, float | None]:
    """Share of intervals that hold the true risk, ours and naive; mean width; ideal width; median of more ratings."""
    rng = np.random.default_rng(seed)
    hits, others, widths, values, more = [], [], [], [], []
    for _ in range(times):
        ratings, flips = study.run(rng)
        found = assess(ratings, flips, width=WISHED)
        if found.low is None or found.high is None or found.value is None:
            continue
        low, high = naive(np.array([5 - one.says.agrees for one in ratings]))  # type: ignore[union-attr,operator]
        hits.append(found.low <= TRUE <= found.high)
        others.append(low <= TRUE <= high)
        widths.append(found.high - found.low)
        values.append(found.value)
        more.append(math.inf if found.more is None else found.more)
    needed = float(np.median(more))
    ideal = 2 * 1.96 * float(np.std(values))
    return float(np.mean(hits)), float(np.mean(others)), float(np.mean(widths)), ideal, needed


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    print(f"{'':28}{'holds':>8}{'naive':>8}{'width':>8}{'ideal':>8}{f'more for {WISHED}':>14}")
    for name, study in STUDIES.items():
        hits, others, width, ideal, more = measured(study, asked.studies, asked.seed)
        print(f"{name:28}{hits:>8.1%}{others:>8.1%}{width:>8.2f}{ideal:>8.2f}{more:>14.0f}", flush=True)


if __name__ == "__main__":
    main()
