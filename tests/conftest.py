"""Settings of all tests: one core, and the same random cases in every run."""

from __future__ import annotations

import os

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

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
