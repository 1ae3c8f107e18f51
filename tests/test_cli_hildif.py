"""The command hildif: what it takes, and what it refuses before hours have gone by."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

import shortcut
import tiny
from unhans.cli import main

TRAIN = shortcut.texts()[:10]


def saved(path: Path) -> str:
    path.write_text("".join(json.dumps({"text": e.text, "label": e.label}) + "\n" for e in TRAIN), encoding="utf-8")
    return str(path)


def test_the_command_refuses_at_once_what_would_fail_late(tmp_path):
    shortcut.classifier().save(tmp_path / "model")
    texts = saved(tmp_path / "texts.jsonl")
    (tmp_path / "pairs.csv").write_text("text,pair,label\na dog ran,a dog ran,positive\na cat,no cat,negative\n")
    pairs = str(tmp_path / "pairs.csv")
    for data, asked, said in (
        (texts, ("--copies-by", "word_dropout"), "try --pattern negation"),
        (texts, ("--copies-by", "word_dropout", "--pattern", "contains_word"), "Name another --pattern"),
        (texts, ("--copies-by", "masked_lm", "--pattern", "negation"), "name one with --language-model"),
        (pairs, ("--copies-by", "word_dropout"), "word_dropout is for single texts"),
    ):
        words = ["hildif", str(tmp_path / "model"), data, "--stress", data, "--held-out", data, *asked]
        done = CliRunner().invoke(main, words)
        assert (done.exit_code, said in done.output) == (2, True), done.output


def test_the_command_takes_a_language_model(tmp_path):
    shortcut.classifier().save(tmp_path / "model")
    tiny.save_folder(tmp_path / "words", head="MaskedLM")
    data = saved(tmp_path / "texts.jsonl")
    words = ["hildif", str(tmp_path / "model"), data, "--stress", data, "--held-out", data, "--only", "baseline"]
    words += ["--seeds", "1", "--pattern", "negation", "--language-model", str(tmp_path / "words")]
    assert CliRunner().invoke(main, [*words, "--copies-by", "masked_lm"]).exit_code == 0
    idle = CliRunner().invoke(main, [*words, "--copies-by", "word_dropout"])
    assert (idle.exit_code, "leave --language-model out" in idle.output) == (2, True)
