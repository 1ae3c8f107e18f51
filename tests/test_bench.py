"""Benchmarks: how bars are stated, when a later run counts as worse, and that nothing is left out in silence."""

from __future__ import annotations

import importlib
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unhans.black_boxes import PredictFunction
from unhans.types import Example

BENCH = Path(__file__).resolve().parent.parent / "bench"


@pytest.fixture(scope="module")
def bars() -> Any:
    """The module of bars; benchmarks are scripts beside each other and no package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        yield importlib.import_module("_bars")
    for name in ("_bars", "harness"):
        sys.modules.pop(name, None)


def test_a_bar_counts_the_median_or_the_worst_and_tells_its_spread(bars: Any) -> None:
    rounds = bars.Bar("2", "LIME against lime", ">=", 2.0, (1.8, 2.5, 3.0))
    lengths = bars.Bar("1", "share of the limit", ">=", 2.0, (1.8, 2.5, 3.0), worst=True)
    dearer = bars.Bar("14", "a step", "<=", 2.0, (1.8, 2.5, 3.0), worst=True)

    assert (rounds.measured, rounds.holds, rounds.spread) == (2.5, True, (1.8, 3.0))
    assert (lengths.measured, lengths.holds) == (1.8, False)
    assert (dearer.measured, dearer.holds, dearer.beyond) == (3.0, False, 0.5)
    assert rounds.says == "holds: LIME against lime >= 2: 2.5 (1.8 to 3)"
    assert lengths.says == "FAILS: share of the limit >= 2: 1.8 (1.8 to 3), 10.0% beyond the limit"


def test_what_was_not_measured_says_why_and_neither_holds_nor_fails(bars: Any) -> None:
    bar = bars.Bar("13", "against TextAttack", ">=", 4.0, reason="no --textattack")

    assert bar.holds is None
    assert bar.says == "against TextAttack >= 4: not measured: no --textattack"
    with pytest.raises(ValueError, match="neither values nor a reason"):
        bars.Bar("13", "against TextAttack", ">=", 4.0)
    with pytest.raises(ValueError, match="no target"):
        bars.Bar("99", "against nobody", ">=", 4.0, (1.0,))


def test_a_bar_comes_back_from_its_file(bars: Any, tmp_path: Path) -> None:
    some = [bars.Bar("7", "a step", "<=", 2.3, (2.1, 2.2)), bars.Bar("9", "stability", ">=", reason="no model")]

    bars.finish(some, tmp_path / "folder" / "one.json", settings={"rounds": 2})

    assert bars.bars_of(tmp_path / "folder" / "one.json") == some
    told = json.loads((tmp_path / "folder" / "one.json").read_text(encoding="utf-8"))
    assert told["settings"] == {"rounds": 2}
    assert "torch threads" in told["machine"]


@pytest.mark.parametrize(
    ("way", "was", "now", "verdict"),
    [
        (">=", 4.0, 2.9, "WORSE"),
        (">=", 4.0, 3.1, "as good"),
        (">=", 4.0, 40.0, "as good"),
        ("<=", 2.0, 2.6, "WORSE"),
        ("<=", 2.0, 2.4, "as good"),
        ("<=", 2.0, 0.1, "as good"),
    ],
)
def test_only_what_got_worse_beyond_its_tolerance_fails(
    bars: Any, way: str, was: float, now: float, verdict: str
) -> None:
    committed = bars.Bar("core", "x", way, None, (was,))
    fresh = bars.Bar("core", "x", way, None, (now,))

    (change,) = bars.compare([committed], [fresh])

    assert change.verdict == verdict
    assert change.fails == (verdict == "WORSE")


def test_a_limit_that_holds_is_no_excuse_for_getting_worse(bars: Any) -> None:
    committed = bars.Bar("11", "against LiSSA", ">=", 1000, (9000.0,))
    assert bars.compare([committed], [bars.Bar("11", "against LiSSA", ">=", 1000, (1500.0,))])[0].fails


def test_a_figure_of_nothing_may_move_by_a_share_of_its_limit(bars: Any) -> None:
    committed = bars.Bar("4", "padded", "<=", 0.02, (0.0,))
    assert not bars.compare([committed], [bars.Bar("4", "padded", "<=", 0.02, (0.004,))])[0].fails
    assert bars.compare([committed], [bars.Bar("4", "padded", "<=", 0.02, (0.006,))])[0].fails


def test_each_figure_has_its_own_tolerance(bars: Any) -> None:
    def changed(tolerance: float | None) -> Any:
        committed = bars.Bar("12", "Spearman", ">=", 0.999, (1.0,), tolerance=tolerance)
        return bars.compare([committed], [bars.Bar("12", "Spearman", ">=", 0.999, (0.9,))])[0]

    assert changed(0.02).verdict == "WORSE"
    assert changed(0.2).verdict == "as good"
    assert changed(None).verdict == "not compared"


def test_a_figure_that_is_gone_fails_unless_the_run_says_why(bars: Any) -> None:
    committed = bars.Bar("13", "against TextAttack", ">=", 4.0, (4.2,))
    excused = bars.Bar("13", "against TextAttack", ">=", 4.0, reason="no --textattack")

    assert bars.compare([committed], [])[0].verdict == "MISSING"
    assert bars.compare([committed], [])[0].fails
    assert bars.compare([committed], [excused])[0].verdict == "not compared"
    assert "no --textattack" in bars.table(bars.compare([committed], [excused]))


# -- the harness, on benchmarks made up for it

SCRIPT = """
import json, sys
from pathlib import Path
value = float(Path(__file__).with_name("value").read_text())
if value < 0:
    sys.exit(3)
bar = {"target": "2", "name": "so much", "way": ">=", "limit": 3.0, "values": [value], "tolerance": 0.25}
bar |= {"measured": value, "holds": value >= 3.0, "says": f"so much: {value}"}
Path(sys.argv[sys.argv.index("--json") + 1]).write_text(json.dumps({"at": None, "machine": "m", "bars": [bar]}))
"""


@pytest.fixture
def harness(bars: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The harness with two benchmarks: one measures what is in a file, the other needs a folder."""
    module = importlib.import_module("harness")
    bench = tmp_path / "bench"
    (bench / "results").mkdir(parents=True)
    (bench / "made_up.py").write_text(SCRIPT)
    made_up = module.Benchmark("made_up", "made_up", ("2", "3"), "--all", "--few")
    needy = module.Benchmark("needy", "made_up", ("audit",), "DATA/sst", needs=("DATA",))
    monkeypatch.setattr(module, "BENCHMARKS", (made_up, needy))
    monkeypatch.setattr(module, "BENCH", bench)
    monkeypatch.setattr(module, "RESULTS", bench / "results")
    monkeypatch.setattr(module, "OPPONENTS", tmp_path / "none")
    monkeypatch.setattr(module, "BESIDE", tmp_path / "none")
    return module


def act(harness: Any, what: str, value: float, monkeypatch: pytest.MonkeyPatch, *more: str) -> int:
    (harness.BENCH / "value").write_text(str(value))
    monkeypatch.setattr(sys, "argv", ["harness.py", what, *more])
    return harness.main()


def test_a_run_lists_what_it_measured_what_it_could_not_and_why(harness: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert act(harness, "run", 4.0, monkeypatch) == 0

    told = json.loads((harness.RESULTS / "bars.json").read_text(encoding="utf-8"))
    rows = {(row["target"], row["benchmark"]): row for row in told["bars"]}
    assert rows["2", "made_up"]["measured"] == 4.0
    assert "no such figure" in rows["3", "made_up"]["reason"]
    assert rows["audit", "needy"]["reason"] == "needs DATA, which was not given"
    assert [one["state"] for one in told["benchmarks"]] == ["ran", "not run"]
    assert told["benchmarks"][0]["command"] == "python bench/made_up.py --all"


def test_a_folder_is_handed_on_and_not_told(harness: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert act(harness, "run", 4.0, monkeypatch, "--data", str(tmp_path)) == 0

    told = json.loads((harness.RESULTS / "bars.json").read_text(encoding="utf-8"))
    assert told["benchmarks"][1]["state"] == "ran"
    assert told["benchmarks"][1]["command"] == "python bench/made_up.py DATA/sst"
    assert str(tmp_path) not in json.dumps(told)


def test_a_benchmark_that_breaks_is_told_of_and_its_earlier_figures_stay(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    act(harness, "run", 4.0, monkeypatch)
    assert act(harness, "run", -1.0, monkeypatch) == 1

    told = json.loads((harness.RESULTS / "bars.json").read_text(encoding="utf-8"))
    assert (told["benchmarks"][0]["state"], told["bars"][0]["measured"]) == ("failed", 4.0)
    assert "exit code 3" in told["benchmarks"][0]["reason"]


def test_a_check_fails_for_what_is_worse_and_not_for_what_is_better(
    harness: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    act(harness, "run", 4.0, monkeypatch)
    before = (harness.RESULTS / "made_up.json").read_text(encoding="utf-8")

    assert act(harness, "check", 2.9, monkeypatch) == 1
    assert "WORSE" in capsys.readouterr().out
    assert act(harness, "check", 9.0, monkeypatch) == 0
    assert act(harness, "check", 3.1, monkeypatch) == 0  # within the tolerance
    assert act(harness, "check", -1.0, monkeypatch) == 1  # it broke
    assert (harness.RESULTS / "made_up.json").read_text(encoding="utf-8") == before


def test_what_is_worse_once_and_not_again_is_the_machines_mood(harness: Any, bars: Any) -> None:
    worse, good = (bars.Change("x", 4.0, now, 3.0, verdict) for now, verdict in ((2.0, "WORSE"), (4.0, "as good")))

    assert harness.settled([[worse, good], [good, worse]]) == [good, good]
    assert harness.settled([[worse], [worse]]) == [worse]


def test_an_unknown_benchmark_is_refused(harness: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="There is: made_up, needy"):
        act(harness, "run", 4.0, monkeypatch, "--only", "nonsense")


def test_every_target_of_the_design_belongs_to_a_benchmark(bars: Any) -> None:
    module = importlib.import_module("harness")
    covered = {target for one in module.BENCHMARKS for target in one.targets}
    assert covered == set(bars.TARGETS)


TRAINING = """
import sys
from pathlib import Path
_, encoder, data, folder = sys.argv
(Path(folder) / "model").mkdir(parents=True)
(Path(folder) / "texts.txt").write_text(f"{encoder} {data}")
"""


def test_a_classifier_is_trained_where_there_is_an_encoder_and_data_and_none_was_given(
    harness: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "TRAINED", tmp_path / "sst")
    (harness.BENCH / "sst_model.py").write_text(TRAINING)
    whole = {"ENCODER": "e", "DATA": "d", "MODEL": "m", "TEXTS": "t"}
    asks, does_not = harness.Benchmark("a", "a", (), uses={"MODEL": "--model MODEL"}), harness.Benchmark("b", "b", ())
    assert harness.with_model(whole, [asks]) == (whole, "")
    assert harness.with_model({"DATA": "d"}, [asks]) == ({"DATA": "d"}, "")
    assert harness.with_model({"ENCODER": "e", "DATA": "d"}, [does_not]) == ({"ENCODER": "e", "DATA": "d"}, "")
    assert not (tmp_path / "sst").exists()
    for encoder in ("e", "f"):
        made, trouble = harness.with_model({"ENCODER": encoder, "DATA": "d", "TEXTS": "t"}, [does_not, asks])
        assert (made["TEXTS"], trouble) == ("t", "")
        assert (Path(made["MODEL"]).parent / "texts.txt").read_text() == f"{encoder} d"
    (harness.BENCH / "sst_model.py").write_text("raise SystemExit(3)")
    given, trouble = harness.with_model({"ENCODER": "g", "DATA": "d"}, [asks])
    assert "MODEL" not in given
    assert trouble.endswith("could not be trained (bench/sst_model.py ended with 3)")


def test_no_check_of_an_audit_is_charged_with_the_predictions(bars: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    monkeypatch.delitem(sys.modules, "audit", raising=False)
    bench = importlib.import_module("audit")
    monkeypatch.delitem(sys.modules, "audit")
    asked: list[str] = []

    def slow(texts: list[str]) -> Any:
        asked.extend(texts)
        until = time.process_time() + 0.002 * len(texts)
        while time.process_time() < until:
            pass
        return np.tile([0.4, 0.6], (len(texts), 1))

    labels = ("bad", "good")
    texts = [Example(f"e{n}", f"the film was seen by {n} of us", label=labels[n % 2]) for n in range(60)]
    monkeypatch.setattr(bench, "audit", partial(bench.audit, checks=["leaks", "calibration"]))

    told = bench.measured(PredictFunction(slow, labels, name="slow"), texts, texts[:20], once=0.12)

    assert list(told["checks"]) == [bench.PREDICTIONS, "leaks", "calibration"]
    assert told["checks"][bench.PREDICTIONS]["cpu"] >= 0.12
    assert len(asked) == len(texts)
    assert told["cpu"] >= sum(row["cpu"] for row in told["checks"].values())
