"""Attributions as files."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from unhans import figures
from unhans.errors import BadData, BadOption, Unsupported
from unhans.figures import save, save_figure
from unhans.text import Words
from unhans.types import Attribution, Attributions, Example, Prediction, Recipe, Terms, from_json

PNG = b"\x89PNG\r\n\x1a\n"


def explained(text, pair=None, units="word", **facts):
    words = Words(Example("x", text, pair), units=units)
    scores = tuple(float((-1) ** n * (n % 5)) for n in range(len(words)))
    recipe = Recipe("attributions", "leave_one_out", (("erase", "delete"),))
    return Attribution("x", "positive", words.strings, words.spans, scores, recipe, "r", **facts)


SHORT = explained("A wonderful film.")


def test_data_files_hold_the_attributions(tmp_path):
    save([SHORT, SHORT], tmp_path / "a.jsonl")
    assert [from_json(Attribution, line) for line in (tmp_path / "a.jsonl").read_bytes().splitlines()] == [SHORT] * 2
    save([SHORT], tmp_path / "a.json")
    (line,) = json.loads((tmp_path / "a.json").read_text())
    assert from_json(Attribution, json.dumps(line)) == SHORT


def test_a_table_is_safe_to_open_in_a_spreadsheet(tmp_path):
    one = replace(SHORT, words=("=cmd()", "b", "film", "."))
    lines = save([one], tmp_path / "a.csv").read_text().splitlines()
    assert lines[0].startswith("example,label,position,word")
    assert ",'=cmd()," in lines[1]
    assert len(lines) == len(one.words) + 1


def test_a_page_shows_labels_and_predictions(tmp_path):
    example = Example("x", "A wonderful film.", label="positive")
    said = Prediction("x", ("negative", "positive"), (0.1, 0.9), "r")
    html = save([SHORT], tmp_path / "a.HTML", examples=[example], predictions=[said], title="Mine").read_text()
    assert "✓ right" in html
    assert "<title>Mine</title>" in html


@pytest.mark.parametrize("name", ["a.pdf", "a", "a.html.gz"])
def test_another_suffix_names_those_there_are(tmp_path, name):
    with pytest.raises(BadOption, match=r"\.json, \.jsonl, \.csv, \.html, \.svg, \.png"):
        save([SHORT], tmp_path / name)
    with pytest.raises(BadOption, match=r"\.svg or \.png"):
        save_figure([SHORT], tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["json", "html", "svg", "png"])
def test_a_file_is_whole_or_as_it_was(tmp_path, monkeypatch, suffix):
    path = tmp_path / f"a.{suffix}"
    path.write_text("precious")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(BadData, match="No space left"):
        save([SHORT], path)
    assert path.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [path]


def pixels(path):
    from matplotlib.image import imread

    return imread(path)[:, :, :3]


def test_a_figure_is_white_with_blue_and_orange_and_the_same_every_time(tmp_path):
    first = save([SHORT], tmp_path / "a.png").read_bytes()
    assert first.startswith(PNG)
    assert save([SHORT], tmp_path / "b.png").read_bytes() == first
    image = pixels(tmp_path / "a.png")
    assert (image[0] == 1).all()
    red, blue = image[:, :, 0], image[:, :, 2]
    assert (blue - red > 0.2).any()
    assert (red - blue > 0.2).any()
    svg = save([SHORT], tmp_path / "a.svg").read_bytes()
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert b"stroke-dasharray" in svg
    assert save([SHORT], tmp_path / "b.svg").read_bytes() == svg


def test_strength_without_sign_is_drawn_without_lines_below(tmp_path):
    one = replace(SHORT, scores=tuple(map(abs, SHORT.scores)), terms=Terms(signed=False, warning="Hint only."))
    assert b"stroke-dasharray" not in save([one], tmp_path / "a.svg").read_bytes()


@pytest.mark.parametrize(
    "one",
    [
        explained("The plot makes no sense, the actors try hard. " * 12, unread=tuple(range(60, 120))),
        explained("The plot makes no sense, the actors try hard and the music saves it all. " * 6, units="sentence"),
        explained("https://example.org/" + "a-very-long-address/" * 20 + " end"),
        explained("The soup was cold. " * 8, "Nobody complained. " * 8),
        replace(explained("cost $5 and <b>x</b>"), label="$\\frac{$"),
    ],
    ids=["long", "sentences", "one long word", "pair", "mathematics"],
)
def test_long_texts_wrap_inside_the_margins(tmp_path, one):
    image = pixels(save([one], tmp_path / "a.png"))
    edge = 8  # pixels; the margin is 16
    assert (image[:, :edge] == 1).all()
    assert (image[:, -edge:] == 1).all()
    assert (image[-edge:] == 1).all()
    assert np.ptp(image) > 0.5


def test_no_line_of_words_begins_with_the_comma_of_the_line_before():
    starts = []
    for n in range(1, 40):
        layout = figures._Layout(lambda text, size: size * 0.6 * len(text))
        layout.add(explained("a" * n + " plot makes no sense, and then, suddenly, it does, or not. " * 8), "")
        words = [piece for piece in layout.pieces if piece.size == figures._TEXT]
        starts += [piece.text for before, piece in pairwise(words) if piece.y > before.y]
    assert len(starts) > 100
    assert not {",", "."} & set(starts)


def test_too_many_texts_and_none_are_refused(tmp_path):
    with pytest.raises(BadOption, match=r"Choose fewer, or save them as \.html"):
        save_figure(Attributions([SHORT]) * 500, tmp_path / "a.png")
    with pytest.raises(BadOption, match="no attributions"):
        save_figure([], tmp_path / "a.png")


def test_without_matplotlib_a_figure_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(Unsupported, match=r"pip install 'unhans\[figures\]'"):
        save_figure([SHORT], tmp_path / "a.png")
