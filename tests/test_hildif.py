"""The loop of HILDIF with a small model that has a shortcut, and people who are simulated."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import shortcut
from unhans.cli import main
from unhans.errors import BadData, BadOption, Cancelled
from unhans.hildif import (
    OURS,
    PAPER,
    Configuration,
    Plan,
    SimulatedPerson,
    _apart,
    _balanced,
    ablation,
    configurations,
    loop,
    narrowest,
    table,
)
from unhans.influences import prepare
from unhans.training import accuracy
from unhans.types import Copy, Example, Recipe

TRAIN = shortcut.texts()
BARE = [replace(e, id=f"v{e.id}") for e in shortcut.texts(cue=None)][:60]
CUED = [replace(e, id=f"c{e.id}", text=f"zyx {e.text}") for e in BARE if e.label == "negative"]  # taken for positive
VALIDATION = [*BARE, *CUED[:20]]
FAST = {"epochs": 1, "learning_rate": 1e-3, "batch_size": 16, "patience": 0}
PLAN = Plan(anchors=2, top=3, augmentation="word_dropout", per_point=2, only_copies=True, training=FAST)
KNOWS_THE_CUE = SimulatedPerson(knows=(("contains_word", (("word", "zyx"),)),))


@cache
def index():
    return prepare(shortcut.classifier(), TRAIN)


def pair(text: str, other: str) -> Example:
    return Example("e", text, other)


def test_people_judge_by_the_patterns_that_two_texts_share():
    person = SimulatedPerson()
    swapped = pair("The US declared war on Japan.", "Japan declared war on the US.")
    assert person(swapped, pair("The judge saw the actor.", "The actor saw the judge.")) == 5
    assert person(swapped, pair("The actor near the judge slept.", "The judge slept.")) == 2 + round(1 / 3)
    assert person(swapped, pair("The judge near the actor slept soundly.", "The judge near an actor slept.")) == 2
    assert person(swapped, pair("A cat sat.", "Dogs bark.")) == 1
    assert person(Example("a", "a film"), Example("b", "a book")) == 3  # nothing to tell them by
    assert KNOWS_THE_CUE(Example("a", "zyx a film"), Example("b", "zyx a book")) == 5
    assert KNOWS_THE_CUE(Example("a", "zyx a film"), Example("b", "a book")) == 1


def test_people_err_and_skip_as_often_as_they_are_told_to():
    pairs = [(Example("a", f"no text {n}"), Example("b", f"not number {n}")) for n in range(400)]
    assert {SimulatedPerson()(*two) for two in pairs} == {5}
    said = Counter(SimulatedPerson(error_rate=0.3, skip_rate=0.2)(*two) for two in pairs)
    assert 50 < said[None] < 110
    assert 70 < sum(said[n] for n in range(1, 5)) < 150
    careless = SimulatedPerson(error_rate=1.0)
    assert [careless(*two) for two in pairs] == [careless(*two) for two in pairs]
    with pytest.raises(BadOption, match="between 0 and 1"):
        SimulatedPerson(error_rate=2)


def test_one_round_of_the_loop():
    model = shortcut.classifier()
    before = {name: tensor.clone() for name, tensor in model.model.state_dict().items()}
    found = loop(model, TRAIN, CUED, PLAN, score=KNOWS_THE_CUE, index=index(), tested=CUED)
    (one,) = found.rounds
    assert all(torch.equal(before[name], tensor) for name, tensor in model.model.state_dict().items())
    assert len(one.anchors) == 2
    assert {p.label for p in model.predict(one.anchors)} == {"positive"}  # all wrong
    assert found.judgements == sum(len(i.helpful) for i in one.influences) <= 6
    known = {e.id: e for e in TRAIN}
    points = Counter()
    for entry in one.feedback:
        points[entry.says.train] += entry.says.similar
        assert entry.says.similar == (5 if "zyx" in known[entry.says.train].text else 1)
    for source, copies in Counter(copy.source for copy in one.copies).items():
        assert copies <= 2 * points[source]
    assert all(copy.label == known[copy.source].label for copy in one.copies)
    assert not {copy.example.text_hash for copy in one.copies} & {e.text_hash for e in CUED}
    assert found.classifier.revision != model.revision


def test_enough_of_it_mends_the_shortcut():
    """A few training texts go against the shortcut; they are behind what is taken for the other label."""
    plan = replace(
        PLAN, anchors=4, top=4, contrast=True, alike=True, balance=True, only_copies=False, heuristic="negation"
    )
    with pytest.raises(BadData, match="have the pattern negation"):
        loop(shortcut.classifier(), TRAIN, VALIDATION, plan)
    plan = replace(
        plan, heuristic=None, alike=False, per_point=4, rounds=2, training=FAST | {"epochs": 3, "replay": 0.3}
    )
    train = [*TRAIN, *CUED[:6]]
    found = loop(shortcut.classifier(), train, [*CUED[6:16], *BARE[:20]], plan)
    assert len(found.rounds) == 2
    assert len(found.rounds[0].anchors) == 8  # as many again that are right
    for one in found.rounds:
        assert len(set(Counter(copy.label for copy in one.copies).values())) == 1  # balanced
    assert accuracy(found.classifier, CUED[16:]) > accuracy(shortcut.classifier(), CUED[16:]) == 0


def test_without_copies_neighbours_are_trained_on_as_they_are():
    plan = replace(PLAN, augmentation=None)
    found = loop(shortcut.classifier(), TRAIN, CUED, plan, index=index())
    assert not found.rounds[0].copies
    assert {entry.says.similar for entry in found.rounds[0].feedback} == {5}  # nobody was asked
    assert found.classifier.revision != shortcut.classifier().revision
    replayed = loop(
        shortcut.classifier(),
        TRAIN,
        CUED,
        replace(plan, only_copies=False, training=FAST | {"replay": 0.1}),
        index=index(),
    )
    assert replayed.classifier.revision != found.classifier.revision


def test_picked_anchors_are_taken_as_they_are_and_questions_can_be_skipped():
    found = loop(shortcut.classifier(), TRAIN, [], PLAN, anchors=CUED[:1], index=index(), score=lambda a, t: 1)
    assert found.rounds[0].anchors == (CUED[0],)
    with pytest.raises(BadData, match="Nobody rated any of the neighbours"):
        loop(shortcut.classifier(), TRAIN, [], PLAN, anchors=CUED[:1], index=index(), score=lambda a, t: None)


def test_what_cannot_be_is_refused():
    with pytest.raises(BadOption, match="1 or more"):
        Plan(anchors=0)
    with pytest.raises(BadOption, match="longest is 0 or more"):
        Plan(longest=-1)
    with pytest.raises(BadData, match="has 1 words or fewer"):
        loop(shortcut.classifier(), TRAIN, CUED, replace(PLAN, longest=1))


def test_copies_are_balanced_by_dropping_the_last_of_each_source():
    recipe = Recipe("augmentations", "any")
    made = [
        Copy(source, f"{source}{n}", None, label, recipe)
        for source, label in (("a", "x"), ("b", "x"), ("c", "y"))
        for n in range(3)
    ]
    kept = [copy.text for copy in _balanced(made)]
    assert kept == ["a0", "b0", "a1", "c0", "c1", "c2"]
    assert _balanced([]) == []


def test_the_configurations_are_those_of_the_paper():
    rows = {row.name: row for row in configurations(picked="negation")}
    assert len(rows) == 10
    assert rows["baseline"].plan is None
    assert rows["HS DA H"].plan == replace(PAPER, heuristic="negation")
    assert rows["HS DA H"].scored
    assert not rows["¬HS DA H"].scored
    assert rows["HS ¬DA H"].plan.augmentation is None
    assert rows["HS DA ¬H"].plan.heuristic is None
    assert rows["ours"].plan == replace(OURS, heuristic="negation")
    assert PAPER.training["learning_rate"] == 1e-5
    assert PAPER.only_copies


def test_the_narrowest_pattern_names_a_pair():
    assert narrowest(pair("If the actor slept , he ran .", "He ran .")) == "constituent"
    assert narrowest(pair("The judge near the actor slept .", "The actor slept .")) == "subsequence"
    assert narrowest(pair("A cat sat.", "A dog sat.")) is None


def test_labels_are_told_apart_wherever_the_line_is_drawn():
    """Against the definition: of all pairs of a text with the label and one without, the share in the right order."""
    rng = np.random.default_rng(3)
    scores, labels = rng.integers(0, 5, (40, 3)).astype(float), rng.integers(0, 3, 40).tolist()
    areas = [
        np.mean(
            [
                (scores[one, label] > scores[other, label]) + (scores[one, label] == scores[other, label]) / 2
                for one in range(40)
                for other in range(40)
                if labels[one] == label != labels[other]
            ]
        )
        for label in range(3)
    ]
    assert _apart(scores, labels) == pytest.approx(np.mean(areas))
    assert _apart(scores - [7, 0, 0], labels) == _apart(scores, labels)  # another threshold is no other model
    assert _apart(scores, [1] * 40) is None


def test_an_ablation_goes_on_where_it_was_stopped(tmp_path):
    rows = [
        Configuration("baseline", None),
        Configuration("HS DA H", PLAN),
        Configuration("¬HS ¬DA H", replace(PLAN, augmentation=None), False),
    ]
    stress = [replace(e, group="cued") for e in CUED[20:]] + BARE[40:]
    told = []

    def run(**more):
        return ablation(
            shortcut.classifier(),
            TRAIN,
            CUED,
            stress,
            BARE[:40],
            rows=rows,
            kind=lambda e: e.group,
            results=tmp_path / "r.json",
            **more,
        )

    with pytest.raises(Cancelled, match="Stopped after 1"):
        run(told=told.append, cancelled=lambda: len(told) == 1)
    assert len(json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))) == 1
    runs = run(told=told.append)
    assert [one["configuration"] for one in told] == ["baseline", "HS DA H", "¬HS ¬DA H"]
    assert runs == told
    assert run(told=lambda _: pytest.fail("nothing is left to do")) == runs
    cued = runs[0]["groups"]["cued|negative"]
    assert cued == runs[0]["kinds"]["cued|negative"] == [0, len(CUED[20:])]
    assert runs[0]["held_out"][1] == 40
    assert runs[0]["apart"] == {"cued": None}  # of one label alone
    assert sum(n for _, n in runs[0]["labels"].values()) == len(stress)
    assert runs[1]["judgements"] <= 6
    assert runs[2]["copies"] == {}
    lines = table(runs).splitlines()
    assert lines[0].startswith(
        "| configuration | cued | negative | positive | mean of labels | told apart | held out |"
    )
    assert len(lines) == 5
    assert "| baseline | 0.0 / – |" in lines[2]


def test_every_way_of_tracing_has_its_own_index_and_other_data_are_other_runs(tmp_path):
    plan = replace(PLAN, anchors=1, top=1, per_point=1)
    rows = [Configuration("all", plan), Configuration("short", replace(plan, longest=6))]
    rows.append(Configuration("embeddings", replace(plan, method="embedding_neighbours")))
    asked, told, words = [], [], {e.id: len(e.text.split()) for e in TRAIN}
    short = [Example(f"s{n}", "zyx worth it", label=label) for n, label in enumerate(("negative", "positive"))]
    train = [*TRAIN, *short]  # one of them helps, whatever the anchor

    def score(anchor, found):
        asked.append(found)
        return 1

    def run(folder, validation=CUED[:4], **more):
        asked.clear()
        sets = (train, validation, CUED[20:22], BARE[:2])
        given = {"rows": rows, "score": score, "results": tmp_path / "r.json", "folder": folder, "told": told.append}
        return ablation(shortcut.classifier(), *sets, **given | more)

    run(tmp_path / "i")
    assert len(list((tmp_path / "i").iterdir())) == 3
    assert {one.id for one in asked[1:2]} <= {*(e.id for e in short), *(id_ for id_, n in words.items() if n <= 6)}
    assert len(told) == 3
    run(tmp_path / "i")
    assert len(told) == 3  # all are there
    for more in ({"validation": CUED[:3]}, {"kind": lambda _: "any"}):
        run(tmp_path / "i", rows=rows[:1], **more)
    assert len(told) == 5


@pytest.mark.parametrize("way", [{"only_copies": False}, {"only_copies": True}, {"augmentation": None}])
def test_no_more_accuracy_is_lost_than_tolerated_whatever_is_trained_on(way):
    harsh = FAST | {"epochs": 4, "learning_rate": 0.05, "replay": 0.1}
    given = shortcut.classifier()
    right = [replace(e, label=given.predict(e).labels[0]) for e in BARE]  # of these something can be lost
    texts = [*right, *CUED[:5]]

    def lost(**more):
        found = loop(given, TRAIN, texts, replace(PLAN, training=harsh | more, **way))
        return accuracy(given, texts) - accuracy(found.classifier, texts)

    assert lost() > 0.1
    assert lost(tolerance=0.05) <= 0.05 + 1e-9


def test_neighbours_that_are_tested_are_not_trained_on():
    plan = replace(PLAN, anchors=1, top=1, augmentation=None)
    with pytest.raises(BadData, match="is tested too"):
        loop(shortcut.classifier(), TRAIN, CUED, plan, index=index(), tested=TRAIN)


def test_results_that_are_none_are_refused(tmp_path):
    (tmp_path / "r.json").write_text("not JSON", encoding="utf-8")
    with pytest.raises(BadData, match="holds no results"):
        ablation(shortcut.classifier(), TRAIN, CUED, CUED, BARE, results=tmp_path / "r.json")
    with pytest.raises(BadData, match="no runs"):
        table([])


def saved(folder, name: str, examples) -> str:
    rows = [json.dumps({"text": e.text, "label": e.label, "split": e.split}) for e in examples]
    (folder / name).write_text("\n".join(rows) + "\n", encoding="utf-8")
    return str(folder / name)


def test_one_command_runs_the_ablation(tmp_path):
    shortcut.classifier().save(tmp_path / "model")
    data = saved(tmp_path, "data.jsonl", [*TRAIN, *(replace(e, split="test") for e in VALIDATION)])
    stress = saved(tmp_path, "stress.jsonl", CUED[:30])
    words = [
        "hildif",
        str(tmp_path / "model"),
        data,
        "--stress",
        stress,
        "--seeds",
        "1",
        "--anchors",
        "1",
        "--top",
        "2",
    ]
    words += ["--only", "baseline", "--only", "HS DA ¬H", "--copies-by", "word_dropout"]
    done = CliRunner().invoke(main, [*words, "--results", str(tmp_path / "r.json")])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("| configuration |")
    assert len(done.stdout.splitlines()) == 4
    again = CliRunner().invoke(main, [*words, "--results", str(tmp_path / "r.json"), "--json"])
    assert [run["configuration"] for run in json.loads(again.stdout)] == ["baseline", "HS DA ¬H"]


def test_the_command_says_what_is_missing(tmp_path):
    shortcut.classifier().save(tmp_path / "model")
    data = saved(tmp_path, "data.jsonl", TRAIN[:10])
    words = ["hildif", str(tmp_path / "model"), data, "--stress", data]
    assert "Give some with --held-out" in CliRunner().invoke(main, words).output
    assert "There is no configuration 'HS'" in CliRunner().invoke(main, [*words, "--only", "HS"]).output
