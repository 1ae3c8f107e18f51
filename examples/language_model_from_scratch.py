"""How good is a masked language model fitted from scratch on the demo reviews?

    python examples/language_model_from_scratch.py

Fits one on 3,000 synthetic film reviews with the default settings, hides every fifth word of 100 others, and prints how
often the hidden word is among the five best fillers.
"""

from __future__ import annotations

import time

from unhans import LanguageModel
from unhans.demo_data import reviews
from unhans.text import Hole, Words, visible_form


def main() -> None:
    """Fit, fill, count."""
    started = time.perf_counter()
    texts = [example.text for example in reviews(3000, domain="films", seed=1)]
    model = LanguageModel.fit(texts)
    seconds = time.perf_counter() - started
    words = [Words(example) for example in reviews(100, domain="films", seed=5, split="test")]
    asked = [(one, place) for one in words for place in range(0, len(one), 5)]
    filled = model.fill([one.without([place], Hole.MASK) for one, place in asked], k=5)
    hits = [
        visible_form(one.strings[place]) in {filler.word for filler in found[0]}
        for (one, place), found in zip(asked, filled, strict=True)
    ]
    print(f"fitted in {seconds:.0f} s; of {len(hits)} hidden words {sum(hits) / len(hits):.0%} are among the best five")


if __name__ == "__main__":
    main()
