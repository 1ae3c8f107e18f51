"""Versions are whole or absent, whoever dies when."""

from __future__ import annotations

import errno
import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from alternating import add, fill
from unhans.artefacts import Artefacts, check_space
from unhans.errors import BadOption, Conflict, NoSpace, NotFound, ProjectProblem
from unhans.processes import alive, born_at

SCRIPT = str(Path(__file__).with_name("alternating.py"))


@pytest.fixture
def artefacts(tmp_path):
    return Artefacts(tmp_path / "models")


def number_of(version) -> int:
    """The one number that all files of a version carry."""
    numbers = {int((version.folder / "config.json").read_text()), version.facts["number"]}
    for path in (version.folder / "parts").iterdir():
        content = path.read_bytes()
        assert len(content) == 300_000
        numbers |= set(content)
    assert len(numbers) == 1
    return numbers.pop()


def hidden(artefacts) -> list[str]:
    return [path.name for path in artefacts.folder.iterdir() if path.name.startswith(".")]


def test_nothing_is_current_before_it_is_published(artefacts):
    assert artefacts.current is None
    assert artefacts.versions == artefacts.orphans() == ()
    add(artefacts, "r0", 1)
    assert artefacts.current is None
    assert artefacts.versions == ()
    assert [version.name for version in artefacts.orphans()] == ["r0"]
    artefacts.publish("r0")
    assert artefacts.current.name == "r0"
    assert artefacts.orphans() == ()


def test_versions_come_in_the_order_of_their_first_publication_and_an_older_one_can_be_current_again(artefacts):
    for name in ("b", "a", "c"):
        add(artefacts, name, 1)
        artefacts.publish(name)
    back = artefacts.publish("a")
    assert [(version.name, version.number) for version in artefacts.versions] == [("b", 1), ("a", 2), ("c", 3)]
    assert artefacts.current == back
    assert back.number == 2


def test_facts_and_size_come_back(artefacts):
    version = artefacts.add("r0", lambda folder: fill(3, folder), {"number": 3, "recipe": {"seed": 0}})
    assert version.facts == {"number": 3, "recipe": {"seed": 0}}
    assert version.size == 900_001
    assert artefacts.get("r0") == version


def test_the_manifest_names_no_place_on_this_machine(artefacts):
    add(artefacts, "r0", 1)
    text = (artefacts.folder / "r0" / "manifest.json").read_text()
    assert str(artefacts.folder.parent) not in text
    assert set(json.loads(text)["files"]) == {"config.json", "parts/0.bin", "parts/1.bin", "parts/2.bin"}


def test_only_the_owner_may_look_into_a_version(artefacts):
    seen = []
    artefacts.add("r0", lambda folder: seen.append(folder.stat().st_mode & 0o777), {})
    assert seen == [0o700]


def test_a_name_is_used_once(artefacts):
    add(artefacts, "r0", 1)
    with pytest.raises(Conflict, match="already"):
        add(artefacts, "r0", 2)
    assert number_of(artefacts.get("r0")) == 1
    assert hidden(artefacts) == []


def test_of_two_that_add_one_name_at_once_one_is_told(artefacts):
    meeting, outcomes = threading.Barrier(2), []

    def write(number: int, folder: Path) -> None:
        fill(number, folder)
        meeting.wait()  # both passed the first look at the name

    def attempt(number: int) -> None:
        try:
            artefacts.add("r0", lambda folder: write(number, folder), {"number": number})
            outcomes.append(number)
        except Conflict:
            outcomes.append(None)

    threads = [threading.Thread(target=attempt, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [number for number in outcomes if number]
    assert len(winners) == 1
    assert number_of(artefacts.get("r0")) == winners[0]
    assert hidden(artefacts) == []


def test_publications_at_once_all_count(artefacts):
    names = [f"r{n}" for n in range(8)]
    for name in names:
        add(artefacts, name, 1)
    threads = [threading.Thread(target=artefacts.publish, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {version.name for version in artefacts.versions} == set(names)
    assert sorted(version.number for version in artefacts.versions) == list(range(1, 9))


@pytest.mark.parametrize("name", ["", "current", "..", ".hidden", "a/b", "a\n", "x" * 101])
def test_names_that_are_paths_or_hidden_are_refused(artefacts, name):
    with pytest.raises(BadOption):
        add(artefacts, name, 1)
    with pytest.raises(NotFound):
        artefacts.get(name)
    assert artefacts.verify(name) is not None


def test_what_is_not_there_cannot_be_published(artefacts):
    with pytest.raises(NotFound):
        artefacts.publish("r0")
    add(artefacts, "r0", 1)
    with pytest.raises(NotFound):
        artefacts.publish("r1")
    assert artefacts.current is None


def test_a_writer_that_fails_leaves_nothing(artefacts):
    def write(folder: Path) -> None:
        fill(1, folder)
        raise FileExistsError(errno.EEXIST, "its own trouble")

    with pytest.raises(FileExistsError, match="its own trouble"):
        artefacts.add("r0", write, {})
    assert list(artefacts.folder.iterdir()) == []


def test_links_are_not_part_of_a_version(artefacts):
    with pytest.raises(ProjectProblem, match="link"):
        artefacts.add("r0", lambda folder: (folder / "passwords").symlink_to("/etc/passwd"), {})
    assert list(artefacts.folder.iterdir()) == []


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: (folder / "parts/1.bin").write_bytes(bytes([7]) * 300_000), "parts/1.bin"),
        (lambda folder: (folder / "parts/1.bin").unlink(), "lacks"),
        (lambda folder: (folder / "parts/more.bin").write_bytes(b""), "not written with it"),
        (lambda folder: (folder / "parts/1.bin").write_bytes(b"short"), "changed"),
        (lambda folder: (folder / "manifest.json").write_text("{}"), "manifest"),
        (lambda folder: (folder / "manifest.json").unlink(), "manifest"),
    ],
)
def test_damage_is_noticed(artefacts, damage, said, published):
    add(artefacts, "r0", 1)
    if published:
        artefacts.publish("r0")
    assert artefacts.verify("r0") is None
    damage(artefacts.folder / "r0")
    assert said in artefacts.verify("r0")


def test_a_file_replaced_by_a_link_to_its_like_is_noticed(artefacts, tmp_path):
    add(artefacts, "r0", 1)
    file = artefacts.folder / "r0" / "config.json"
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert "changed" in artefacts.verify("r0")


def test_a_manifest_rewritten_to_fit_changed_files_is_noticed_once_published(artefacts):
    add(artefacts, "r0", 1)
    artefacts.publish("r0")
    other = Artefacts(artefacts.folder.parent / "others")
    add(other, "r0", 2)
    (artefacts.folder / "r0").rename(artefacts.folder.parent / "away")
    (other.folder / "r0").rename(artefacts.folder / "r0")
    assert "manifest" in artefacts.verify("r0")


def test_a_version_that_lost_a_file_is_neither_listed_nor_current(artefacts):
    add(artefacts, "r0", 1)
    artefacts.publish("r0")
    (artefacts.folder / "r0" / "config.json").unlink()
    assert artefacts.versions == ()
    with pytest.raises(ProjectProblem, match="r0"):
        _ = artefacts.current


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 1}', '{"format": 1, "current": "a", "published": [1]}'])
def test_a_damaged_pointer_is_told_and_not_taken_for_none(artefacts, content):
    add(artefacts, "r0", 1)
    (artefacts.folder / "current").write_text(content)
    with pytest.raises(ProjectProblem, match="damaged"):
        _ = artefacts.current


def test_what_the_dead_left_is_removed_and_what_the_living_write_is_not(artefacts):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        ours, theirs = born_at(os.getpid()), born_at(child.pid)
        names = {
            f".partial-r1-{child.pid}-{theirs:.2f}-00000000": True,
            f".partial-r1-{child.pid}-{theirs + 1:.2f}-00000000": False,  # another process had this number before
            f".partial-r-2-{os.getpid()}-{ours:.2f}-00000000": True,
            ".partial-r3-999999999-1.00-00000000": False,
        }
        for name in names:
            (artefacts.folder / name / "parts").mkdir(parents=True)
        (artefacts.folder / ".pointer-r3-999999999-1.00-00000000").write_text("half")
        (artefacts.folder / ".somebody-else").mkdir()
        artefacts.clean()
        assert set(hidden(artefacts)) == {name for name, stays in names.items() if stays} | {".somebody-else"}
    finally:
        child.communicate(b"\n")
    assert not alive(child.pid, theirs)
    artefacts.clean()
    assert f".partial-r1-{child.pid}-{theirs:.2f}-00000000" not in hidden(artefacts)


def test_a_dead_process_that_nobody_has_taken_note_of_is_dead():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    born = born_at(child.pid)
    assert alive(child.pid, born)
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, but still in the table of processes
    assert not alive(child.pid, born)
    child.communicate()


def test_too_little_space_is_told_before_anything_is_begun(artefacts):
    begun = []
    with pytest.raises(NoSpace, match=r"needs 1,000,000\.0 GB, but only .* free"):
        artefacts.add("r0", begun.append, {}, needs=10**15)
    assert begun == []
    assert list(artefacts.folder.iterdir()) == []
    check_space(artefacts.folder / "not" / "yet" / "there", 1)


class OtherLanguageError(Exception):
    """As libraries in Rust raise it: not an OSError."""


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "full"), OtherLanguageError("I/O error: No space left on device (os error 28)")]
)
def test_a_disk_that_fills_up_meanwhile_costs_only_the_new_version(artefacts, error):
    add(artefacts, "r0", 1)
    artefacts.publish("r0")

    def write(folder: Path) -> None:
        fill(2, folder)
        raise error

    with pytest.raises(NoSpace, match=r"900\.0 kB were written and more are needed, but only .* free"):
        artefacts.add("r1", write, {})
    assert number_of(artefacts.current) == 1
    assert hidden(artefacts) == []


def test_a_disk_that_is_really_full_costs_only_the_new_version(artefacts):
    """The kernel refuses, in the middle of a file: 400 kB is all that a file may take."""
    add(artefacts, "r0", 1)
    artefacts.publish("r0")
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, limits[1]))
    try:
        with pytest.raises(NoSpace):
            artefacts.add("r1", lambda folder: (folder / "weights").write_bytes(b"x" * 900_000) and None, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert number_of(artefacts.current) == 1
    assert hidden(artefacts) == []


FULL_DISK = """
import sys
from pathlib import Path
import numpy
from alternating import fill
from safetensors.numpy import save_file
from unhans.artefacts import Artefacts
from unhans.errors import NoSpace

artefacts = Artefacts(Path(sys.argv[1]) / "models")
artefacts.add("r0", lambda folder: fill(1, folder), {"number": 1})
artefacts.publish("r0")
for write in (
    lambda folder: fill(2, folder),
    lambda folder: save_file({"weights": numpy.zeros(500_000)}, folder / "model.safetensors"),
):
    try:
        artefacts.add("r1", write, {"number": 2})
    except NoSpace as error:
        sys.stdout.write(f"{error}\\n")
assert sorted(path.name for path in artefacts.folder.iterdir()) == ["current", "r0"]
assert artefacts.verify("r0") is None
(artefacts.folder / "r0" / "config.json").unlink()  # there is room again
artefacts.add("r2", lambda folder: (folder / "small").write_text("1"), {})
artefacts.publish("r2")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_small_disk_that_is_full_is_told_whoever_writes(tmp_path):
    run = 'mount -t tmpfs -o size=1m tmpfs "$1" && exec "$0" -c "$2" "$1"'  # the disk goes away with the process
    command = ["unshare", "-m", "sh", "-c", run, sys.executable, tmp_path, FULL_DISK]
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    ran = subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False)
    if "mount" in ran.stderr or "unshare" in ran.stderr:
        pytest.skip("this machine lets nobody mount a disk")
    assert ran.returncode == 0, ran.stderr
    said = ran.stdout.splitlines()
    assert len(said) == 2
    assert all(line.startswith("The disk is full: ") for line in said)


def test_all_of_a_version_is_on_disk_before_it_has_its_name_and_the_name_before_it_is_told(artefacts, monkeypatch):
    """No kill shows this, only a loss of power does; so the calls of the system are read."""
    calls = []
    for name in ("fsync", "rename", "replace"):
        monkeypatch.setattr(os, name, recorded(name, getattr(os, name), calls))
    add(artefacts, "r0", 1)
    renamed = [call for call, _ in calls].index("rename")
    synced = {Path(path).relative_to(calls[renamed][1]).as_posix() for _, path in calls[:renamed]}
    assert synced == {"config.json", "parts", "parts/0.bin", "parts/1.bin", "parts/2.bin", "manifest.json", "."}
    assert calls[renamed + 1 :] == [("fsync", str(artefacts.folder))]
    calls.clear()
    artefacts.publish("r0")
    (first, new), (second, old), third = calls
    assert (first, second, third) == ("fsync", "replace", ("fsync", str(artefacts.folder)))
    assert new == old


def recorded(name: str, function, calls: list[tuple[str, str]]):
    def call(what, *rest):
        calls.append((name, os.readlink(f"/proc/self/fd/{what}") if isinstance(what, int) else str(what)))
        return function(what, *rest)

    return call


def test_the_pointer_is_replaced_and_never_rewritten(artefacts):
    for number, name in enumerate(("r0", "r1"), start=1):
        add(artefacts, name, number)
    artefacts.publish("r0")
    os.link(artefacts.folder / "current", artefacts.folder.parent / "as it was")
    artefacts.publish("r1")
    assert json.loads((artefacts.folder.parent / "as it was").read_text())["current"] == "r0"


@pytest.mark.parametrize("when", ["before", "after"])
def test_death_at_any_step_leaves_the_former_or_the_new_one_whole(tmp_path, when):
    for step in range(1, 100):
        artefacts = Artefacts(tmp_path / str(step))
        add(artefacts, "old", 1)
        artefacts.publish("old")
        ended = subprocess.run([sys.executable, SCRIPT, artefacts.folder, str(step), when], check=False).returncode
        current = artefacts.current
        assert number_of(current) == {"old": 1, "new": 2}[current.name]
        artefacts.clean()
        assert hidden(artefacts) == []
        assert all(artefacts.verify(version.name) is None for version in artefacts.versions + artefacts.orphans())
        if current.name == "old":  # and it can go on from there, whatever was left
            if not artefacts.orphans():
                add(artefacts, "new", 2)
            assert number_of(artefacts.publish("new")) == 2
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
    assert step > 10, "there are more steps than that: the deaths did not happen"


def kill_at_random(folder: Path, rounds: int) -> None:
    artefacts, seen = Artefacts(folder), 0
    for turn in range(rounds):
        child = subprocess.Popen([sys.executable, SCRIPT, folder], stdout=subprocess.PIPE, text=True)
        told = child.stdout.readline().strip()  # it is at work
        timer = threading.Timer(random.Random(turn).uniform(0, 0.1), child.kill)
        timer.start()
        told = (child.stdout.read().split() or [told])[-1]
        child.wait()
        timer.join()
        child.stdout.close()
        assert child.returncode == -signal.SIGKILL
        current = artefacts.current
        assert number_of(current) == current.facts["number"]
        assert artefacts.verify(current.name) is None
        names = [version.name for version in artefacts.versions]
        assert told in names, "what was acknowledged is there"
        assert names[-1] == current.name
        artefacts.clean()
        assert hidden(artefacts) == []
        assert len(names) > seen
        seen = len(names)


def test_twenty_kills_at_random_moments_never_mix_versions(tmp_path):
    kill_at_random(tmp_path / "models", 20)


@pytest.mark.slow
def test_two_hundred_kills_at_random_moments_never_mix_versions(tmp_path):
    kill_at_random(tmp_path / "models", 200)
