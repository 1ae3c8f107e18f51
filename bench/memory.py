"""How much memory explaining takes beside the bare model on the same texts.

    python bench/memory.py [--shape minilm] [--texts 32] [--tokens 64] [--rounds 3] [--threads 1] [--json out.json]

Every piece of work is done in a process of its own, which ends by telling the most memory it ever had (peak resident
set). `bare` opens the same model and has Hugging Face's forward pass answer the same texts in batches of 32; its peak
is what anybody pays who uses the model at all. `loaded` only opens it. Works take turns; memory hardly varies from
round to round, and the spread says by how much.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from _bars import Bar, finish, peak_memory

WORKS = {  # limits in peaks of the bare model
    "leave_one_out": 1.15,
    "lime": 1.15,
    "kernel_shap": 1.15,
    "integrated_gradients": 1.5,
    "input_x_gradient": 1.5,
    "hotflip": 1.5,
}


def work(name: str, folder: Path, texts: list[str], threads: int) -> None:
    """One piece of work in this process; prints the peak in MB."""
    import torch

    torch.set_num_threads(threads)
    if name in ("bare", "loaded"):
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
        tokenizer = AutoTokenizer.from_pretrained(folder)
        for start in range(0, len(texts) if name == "bare" else 0, 32):
            with torch.inference_mode():
                model(**tokenizer(texts[start : start + 32], padding=True, return_tensors="pt"))
    else:
        import unhans

        classifier = unhans.load(folder)
        if name == "hotflip":
            unhans.find_flips(classifier, texts[:2], method="hotflip", search={"max_edits": 2})
        else:
            options: dict[str, Any] = {"num_samples": 200} if name in ("lime", "kernel_shap") else {}
            unhans.attribute(classifier, texts, method=name, target=1, **options)
    print(json.dumps({"peak": peak_memory()}))


def measured(name: str, folder: Path, options: argparse.Namespace) -> float:
    """The peak of a process that does this."""
    command = [sys.executable, __file__, "--work", name, "--folder", str(folder), "--threads", str(options.threads)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return float(json.loads(done.stdout.splitlines()[-1])["peak"])


def main() -> None:
    """Measure in turns, print, and say whether the bars hold; with --work, be one of the processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="minilm")
    parser.add_argument("--texts", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.work:
        texts = json.loads((options.folder / "texts.json").read_text(encoding="utf-8"))
        work(options.work, options.folder, texts, options.threads)
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = prepared(Path(scratch), options)
        rounds = [
            {name: measured(name, folder, options) for name in ("bare", "loaded", *WORKS)}
            for _ in range(options.rounds)
        ]
    peaks = {name: median(one[name] for one in rounds) for name in rounds[0]}
    for name, value in peaks.items():
        print(f"{name:24} {value:8,.0f} MB")
    bars = [
        Bar(
            "memory",
            f"peak of {name}, against the bare model",
            "<=",
            limit,
            tuple(one[name] / one["bare"] for one in rounds),
        )
        for name, limit in WORKS.items()
    ]
    settings = {"shape": options.shape, "texts": options.texts, "tokens": options.tokens, "rounds": options.rounds}
    finish(bars, options.json, settings=settings, peaks=peaks)


def prepared(scratch: Path, options: argparse.Namespace) -> Path:
    """The folder of a model with random weights, with the texts in it."""
    from scoring import make_classifier, texts_of_length

    from unhans.demo_data import reviews

    corpus = [example.text for example in reviews(2000, seed=1)]
    classifier = make_classifier(options.shape, corpus)
    folder = classifier.save(scratch / "model")
    texts = texts_of_length(classifier, corpus, options.tokens, options.texts)
    (folder / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    return folder


if __name__ == "__main__":
    main()
