"""Settings of all tests: one core, and the same random cases in every run."""

from __future__ import annotations

import os

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, settings

torch.set_num_threads(1)
common = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow],
    "phases": [Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
}
settings.register_profile("ci", derandomize=True, database=None, **common)
settings.register_profile("wide", max_examples=2000, **common)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture
def picky() -> Iterator[str]:
    """A method that serves one model alone, there for one test only."""
    import tiny
    from unhans.attributions import attribution
    from unhans.errors import Unsupported
    from unhans.types import Terms

    own = tiny.transformer().revision

    @attribution(needs={"predict"}, paper="none", terms=Terms())
    def picky(classifier, words):
        """Whatever comes first counts."""
        if classifier.revision != own:
            raise Unsupported("It is another model.")
        return [np.arange(len(one), 0, -1.0) for one in words]

    yield "picky"
    del attribution._entries["picky"]
