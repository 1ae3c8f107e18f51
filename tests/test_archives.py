"""Models that others send, from the archive to the project: what is odd is refused as a whole, and nothing is left."""

from __future__ import annotations

import io
import json
import pickle
import random
import shutil
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tiny
from unhans import work
from unhans.accounts import Accounts, Role
from unhans.archives import unpack_model
from unhans.errors import BadModel, NotFound, TooMuch, UnhansError
from unhans.jobs import Job
from unhans.records import Records
from unhans.records import examples as example_table
from unhans.workspace import Workspace

Entries = list[tuple[zipfile.ZipInfo | str, bytes]]
DATA = "text,label\n" + "".join(f"the text number {n} is good,{('negative', 'positive')[n % 2]}\n" for n in range(8))


@cache
def good() -> dict[str, bytes]:
    """The files of a model that is in order."""
    with tempfile.TemporaryDirectory() as folder:
        tiny.save_folder(Path(folder) / "model")
        return {path.name: path.read_bytes() for path in (Path(folder) / "model").iterdir()}


def zipped(entries: Entries, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return made.getvalue()


def with_good(*more: tuple[zipfile.ZipInfo | str, bytes], without: tuple[str, ...] = ()) -> bytes:
    files: Entries = [(name, content) for name, content in good().items() if name not in without]
    return zipped([*files, *more])


def link(name: str, target: str) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(name)
    made.external_attr = (stat.S_IFLNK | 0o777) << 16
    made.comment = target.encode()
    return made


def device(name: str) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(name)
    made.external_attr = (stat.S_IFCHR | 0o666) << 16
    return made


class Payload:
    """A pickle that would leave a mark if somebody read it."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return (Path.touch, (self.mark,))


def encrypted() -> bytes:
    made = bytearray(with_good())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = made.find(signature)
        while at >= 0:
            made[at + offset] |= 1
            at = made.find(signature, at + 4)
    return bytes(made)


def lying(claimed: int) -> bytes:
    """The sizes in both headers of a large file of zeros say something else."""
    made = bytearray(zipped([("config.json", b"{}"), ("model.safetensors", b"\0" * 3_000_000)]))
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = made.rfind(signature)
        struct.pack_into("<I", made, at + offset, claimed)
    return bytes(made)


def overlapping() -> bytes:
    """Entries that all end in one compressed piece: each passes the header of the next on as a part of its content."""
    content = random.Random(0).randbytes(20_000) + b"\0" * 3_000_000
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = squeeze.compress(content) + squeeze.flush()
    directory: list[tuple[bytes, int, bytes]] = []  # name, distance from the end, what the directory says of it
    for n in range(20):
        name = f"a{n:02d}.json".encode()
        facts = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 0x21, zlib.crc32(content), len(packed), len(content), 8, 0)
        header = b"PK\x03\x04" + facts + name
        directory.append((name, len(packed) + len(header), facts))
        quote = struct.pack("<BHH", 0, len(header), len(header) ^ 0xFFFF)
        content, packed = header + content, quote + header + packed
    packed = packed[5:]  # nobody quotes the first header
    ends = b"".join(
        b"PK\x01\x02" + struct.pack("<H", 20) + facts + struct.pack("<HHHII", 0, 0, 0, 0, len(packed) - distance) + name
        for name, distance, facts in directory
    )
    count = len(directory)
    return packed + ends + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, count, count, len(ends), len(packed), 0)


def tar() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        entry = tarfile.TarInfo("../evil")
        entry.size = 1
        archive.addfile(entry, io.BytesIO(b"x"))
    return made.getvalue()


ARCHIVES: dict[str, Callable[[], bytes]] = {
    "a name that climbs": lambda: with_good(("../evil.json", b"{}")),
    "a name that climbs in the middle": lambda: with_good(("a/../../evil.json", b"{}")),
    "an absolute name": lambda: with_good(("/tmp/evil.json", b"{}")),
    "a drive": lambda: with_good(("C:\\evil.json", b"{}")),
    "a drive with slashes": lambda: with_good(("C:/evil.json", b"{}")),
    "backslashes": lambda: with_good(("..\\evil.json", b"{}")),
    "a name with a NUL": lambda: with_good(("evil?.json", b"{}")).replace(b"evil?.json", b"evil\0.json"),
    "a name with control characters": lambda: with_good(("ev\x1bil.json", b"{}")),
    "a name that turns the reading direction": lambda: with_good(("evil\u202enosj.json", b"{}")),
    "an empty part": lambda: with_good(("a//evil.json", b"{}")),
    "a deep folder": lambda: with_good(("a/b/c/evil.json", b"{}")),
    "two folders": lambda: with_good(("other/evil.json", b"{}")),
    "a link": lambda: with_good((link("evil.json", "/etc/passwd"), b"/etc/passwd")),
    "a link as the weights": lambda: with_good(
        (link("model.safetensors", "x"), b"/etc/passwd"), without=("model.safetensors",)
    ),
    "a device": lambda: with_good((device("evil.json"), b"")),
    "one name in two cases": lambda: with_good(("CONFIG.json", b"{}")),
    "100,000 entries": lambda: zipped([(f"{n}.json", b"") for n in range(100_000)], zipfile.ZIP_STORED),
    "a name of 4,000 characters": lambda: with_good((f"{'x' * 4000}.json", b"{}")),
    "a bomb": lambda: zipped([("config.json", b"{}"), ("model.safetensors", b"\0" * 50_000_000)]),
    "a bomb of entries that share one piece": overlapping,
    "a size that is too small": lambda: lying(10),
    "a size that is far too large": lambda: lying(2**32 - 2),
    "a password": encrypted,
    "a tar": tar,
    "nothing": lambda: b"",
    "not an archive": lambda: b"hello" * 1000,
    "an archive that is cut off": lambda: with_good()[:-100],
    "an archive with a damaged middle": lambda: with_good()[:2000] + b"\0" * 500 + with_good()[2500:],
    "no files": lambda: zipped([]),
    "no files of a model": lambda: zipped([("README.md", b"<script>"), ("evil.py", b"import os")]),
    "only an archive in the archive": lambda: zipped([("model.zip", with_good())]),
}  # fmt: skip


@pytest.mark.parametrize("which", ARCHIVES)
def test_an_odd_archive_is_refused_as_a_whole_and_nothing_is_left(tmp_path: Path, which: str) -> None:
    archive = tmp_path / "sent" / "model.zip"
    archive.parent.mkdir()
    archive.write_bytes(ARCHIVES[which]())
    with pytest.raises(BadModel) as refused:
        unpack_model(archive, tmp_path / "sent" / "unpacked")
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == ["sent", "sent/model.zip"]
    assert str(tmp_path) not in str(refused.value)
    assert "\x1b" not in str(refused.value)


def test_a_bomb_is_stopped_while_it_is_unpacked_and_not_after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "model.zip"
    archive.write_bytes(zipped([("config.json", b"{}"), ("model.safetensors", b"\0" * 50_000_000)]))
    read = 0
    really = zipfile.ZipExtFile.read

    def counted(self: Any, n: int = -1) -> bytes:
        nonlocal read
        found = really(self, n)
        read += len(found)
        return found

    monkeypatch.setattr(zipfile.ZipExtFile, "read", counted)
    with pytest.raises(BadModel):
        unpack_model(archive, tmp_path / "unpacked")
    assert read < 15_000_000


@pytest.mark.parametrize("folder", ["", "my model/"])
def test_of_a_good_archive_only_the_files_of_a_model_are_unpacked(tmp_path: Path, folder: str) -> None:
    mark = tmp_path / "mark"
    extra = {
        name: pickle.dumps(Payload(mark))
        for name in ("training_args.bin", "optimizer.pt", "scheduler.pt", "rng_state.pth", "x.pkl", "x.joblib", "x.npy")
    }
    extra |= {
        "README.md": b"<script>",
        "run.py": b"import os",
        "nested.zip": with_good(),
        ".hidden": b"x",
        "x.onnx": b"",
    }
    archive = tmp_path / "model.zip"
    files = [(f"{folder}{name}", content) for name, content in (good() | extra).items()]
    archive.write_bytes(zipped([*files, ("__MACOSX/._config.json", b"x")]))
    made = unpack_model(archive, tmp_path / "unpacked")
    assert {path.name: path.read_bytes() for path in made.iterdir()} == good()
    assert all(path.is_file() and not path.is_symlink() for path in made.iterdir())
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert not mark.exists()


@given(st.binary(max_size=300), st.integers(0, 10_000))
def test_no_damage_to_an_archive_does_more_than_have_it_refused(noise: bytes, at: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        whole = zipped([("config.json", b"{}" * 100), ("vocab.txt", b"abc\n" * 500)])
        start = at % len(whole)
        archive = Path(place) / "model.zip"
        archive.write_bytes(whole[:start] + noise + whole[start + len(noise) :])
        try:
            unpack_model(archive, Path(place) / "unpacked")
        except BadModel:
            assert not (Path(place) / "unpacked").exists()
        assert {path.name for path in Path(place).iterdir()} <= {"model.zip", "unpacked"}


# -- the work on what was sent


@dataclass
class Working:
    """What a function that does the work of a job is given, here without a process of its own."""

    root: Path
    job: Job
    database: str | None = None
    steps: list[str] = field(default_factory=list)

    def progress(self, done: int, total: int) -> None:
        assert 0 <= done <= total

    def step(self, text: str) -> None:
        self.steps.append(text)

    def cancelled(self) -> bool:
        return False


class Desk:
    """A workspace to which things are sent."""

    def __init__(self, root: Path) -> None:
        self.root = root
        with Workspace.open(root):
            pass

    def send(self, kind: str, content: bytes, name: str) -> str:
        with Workspace.open(self.root) as workspace:
            with workspace.receive(kind, name, "amy") as file:
                file.write(content)
            assert file.upload
            return file.upload.id

    def work(self, kind: str, model: bytes, data: bytes = DATA.encode(), **plan: Any) -> Any:
        sent = {"model": self.send("model", model, "m.zip"), "data": self.send("data", data, "d.csv")}
        options = {"title": "New project", **sent, **plan}
        with Workspace.open(self.root) as workspace:
            job = workspace.jobs.add(kind, project=None, by="amy", options=options)
        return work.HANDLERS[kind](Working(self.root, job))

    def left(self) -> set[str]:
        """Files besides the databases and what was sent."""
        kept = {"unhans.sqlite", "unhans.sqlite-wal", "unhans.sqlite-shm", "workspace.json"}
        return {
            path.relative_to(self.root).as_posix()
            for path in self.root.rglob("*")
            if path.is_file() and path.name not in kept and path.name not in ("model.zip", "data.csv")
        }


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "workspace")


def with_config(**changed: Any) -> dict[str, bytes]:
    config = json.loads(good()["config.json"]) | changed
    return good() | {"config.json": json.dumps({k: v for k, v in config.items() if v is not None}).encode()}


def headless() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        tiny.save_folder(Path(folder) / "model", head="MaskedLM")
        files = {path.name: path.read_bytes() for path in (Path(folder) / "model").iterdir()}
    return files | {"config.json": with_config()["config.json"]}


def of(files: dict[str, bytes]) -> bytes:
    return zipped(list(files.items()))


def pickled(*names: str) -> Callable[[Path], bytes]:
    def make(mark: Path) -> bytes:
        kept = {name: content for name, content in good().items() if name != "model.safetensors"}
        return of(kept | {name: pickle.dumps(Payload(mark)) for name in names})

    return make


MODELS: dict[str, Callable[[Path], bytes]] = {
    "weights in a pickle": pickled("pytorch_model.bin"),
    "a pickle called safetensors": pickled("model.safetensors"),
    "a pickle called json": pickled("model.safetensors", "vocab.json", "added_tokens.json"),
    "pickles of every suffix": pickled("model.pt", "model.pkl", "model.joblib", "model.ckpt", "model.h5", "model.npy"),
    "a scikit-learn pipeline": pickled("pipeline.joblib"),
    "an ONNX file": pickled("model.onnx"),
    "code of its own": lambda mark: of(
        with_config(auto_map={"AutoModelForSequenceClassification": "evil.Evil"}, model_type="evil")
        | {"evil.py": f"open({str(mark)!r}, 'w')".encode()}
    ),
    "code in another place": lambda mark: of(
        with_config(auto_map={"AutoConfig": "somebody/repo--evil.Evil"}, model_type="evil")
    ),
    "no head": lambda mark: of(headless()),
    "a head of another size": lambda mark: of(
        with_config(id2label={str(n): f"l{n}" for n in range(7)}, label2id={f"l{n}": n for n in range(7)})
    ),
    "a label without a name": lambda mark: of(with_config(id2label={"0": "", "1": "x"}, label2id={"": 0, "x": 1})),
    "two labels of one name": lambda mark: of(with_config(id2label={"0": "x", "1": "x"}, label2id={"x": 0})),
    "a million layers": lambda mark: of(with_config(num_hidden_layers=1_000_000)),
    "a vocabulary that does not fit": lambda mark: of(with_config(vocab_size=2_000_000_000)),
    "a config that is no object": lambda mark: of(good() | {"config.json": b"[]"}),
    "a config that is no JSON": lambda mark: of(good() | {"config.json": b"{" * 10_000}),
    "weights that are cut off": lambda mark: of(good() | {"model.safetensors": good()["model.safetensors"][:-10]}),
    "weights with a header of 2^62 bytes": lambda mark: of(
        good() | {"model.safetensors": struct.pack("<Q", 2**62) + b"{}"}
    ),
    "an index that leads elsewhere": lambda mark: of(
        good() | {"model.safetensors.index.json": b'{"weight_map": {"x": "../../x.safetensors"}}'}
    ),
    "no tokenizer": lambda mark: of({k: v for k, v in good().items() if "token" not in k and k != "vocab.txt"}),
}


@pytest.mark.parametrize("which", MODELS)
def test_a_model_that_cannot_be_trusted_is_refused_and_nothing_of_it_runs_or_stays(
    desk: Desk, tmp_path: Path, which: str
) -> None:
    mark = tmp_path / "mark"
    model = MODELS[which](mark)
    report = desk.work("check", model)
    bad = [check for check in report["checks"] if check["state"] == "bad"]
    assert bad
    with pytest.raises(UnhansError) as refused:
        desk.work("create", model)
    for told in (json.dumps(report), str(refused.value)):
        assert str(tmp_path) not in told
        assert "unpacked" not in told
        assert "Traceback" not in told
    assert not mark.exists()
    assert desk.left() == set()
    with Workspace.open(desk.root) as workspace:
        assert workspace.names() == []
        assert len(workspace.uploads("amy")) == 4  # what was sent is kept for another try


@pytest.mark.parametrize("which", sorted(ARCHIVES.keys() - {"100,000 entries"}))  # which takes long to make
def test_an_odd_archive_is_told_of_by_the_check_and_refused_by_the_making(desk: Desk, which: str) -> None:
    model = ARCHIVES[which]()
    (first, *_) = desk.work("check", model)["checks"]
    assert (first["name"], first["state"]) == ("Model archive", "bad")
    with pytest.raises(BadModel):
        desk.work("create", model)
    assert desk.left() == set()


def test_code_beside_a_model_of_a_known_kind_is_not_run_and_not_kept(desk: Desk, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    files = with_config(auto_map={"AutoModelForSequenceClassification": "evil.Evil"}) | {
        "evil.py": f"open({str(mark)!r}, 'w')".encode(),
        "training_args.bin": pickle.dumps(Payload(mark)),
        "optimizer.pt": pickle.dumps(Payload(mark)),
        "README.md": b"---\nlicense: x\n---\n<script>alert(1)</script>",
    }
    made = desk.work("create", of(files))
    folder = desk.root / made["project"] / "models" / "r0"
    names = {path.name for path in folder.rglob("*") if path.is_file()}
    assert not {name for name in names if name.endswith((".py", ".bin", ".pt", ".pkl", ".md", ".zip"))}
    assert "auto_map" not in (folder / "config.json").read_text()
    assert not mark.exists()
    with Workspace.open(desk.root) as workspace:
        assert workspace.names() == ["new-project"]
        assert workspace.uploads("amy") == []
        assert workspace.records("new-project").table.count() == 8
    assert not list((desk.root / "uploads").iterdir())


@pytest.mark.parametrize(("role", "sees"), [("manager", True), ("annotator", False), (None, False)])
def test_whoever_has_a_project_made_may_work_in_it_if_they_are_still_a_manager(
    desk: Desk, role: Role | None, sees: bool
) -> None:
    with Workspace.open(desk.root) as workspace:
        accounts = Accounts(workspace.store, cost=(2**4, 8, 1))
        accounts.add("ben", "manager", None)
        if role is not None:
            accounts.add("amy", role, None, ["older"])
    name = desk.work("create", of(good()))["project"]
    with Workspace.open(desk.root) as workspace:
        accounts = Accounts(workspace.store, cost=(2**4, 8, 1))
        amy, ben = accounts.get("amy"), accounts.get("ben")
        assert ben is not None
        assert ben.projects == ()
        assert (amy is not None and amy.may_manage(name)) == sees
        assert amy is None or amy.may_see("older")


def test_a_good_model_passes_the_check_which_makes_nothing(desk: Desk) -> None:
    report = desk.work("check", of(good()))
    assert {check["state"] for check in report["checks"]} <= {"ok", "note"}
    assert (report["examples"], report["model_labels"]) == (8, ["negative", "positive"])
    assert desk.left() == set()


def test_one_example_too_many_is_refused_by_both(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (work, example_table):
        monkeypatch.setattr(module, "MAX_EXAMPLES", 7)
    report = desk.work("check", of(good()))
    assert any(check["name"] == "Data" and check["state"] == "bad" for check in report["checks"])
    with pytest.raises(TooMuch):
        desk.work("create", of(good()))
    assert desk.left() == set()
    monkeypatch.setattr(work, "MAX_EXAMPLES", 8)
    monkeypatch.setattr(example_table, "MAX_EXAMPLES", 8)
    assert desk.work("create", of(good()))["project"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 1000,
        b"text\n",
        b'text,label\n"never closed',
        b"\xff\xfe\x00",
        b"a,b\n" + b"x," * 20_000,
        b"{" * 9999,
    ],
)
def test_data_that_cannot_be_used_is_told_of_without_saying_where_it_is(desk: Desk, data: bytes) -> None:
    report = desk.work("check", of(good()), data)
    assert any(check["state"] == "bad" for check in report["checks"])
    with pytest.raises(UnhansError):
        desk.work("create", of(good()), data)
    assert str(desk.root) not in json.dumps(report)
    assert desk.left() == set()


TITLES = [
    "../../evil",
    "/abs",
    "..",
    ".",
    "",
    "uploads",
    "CON",
    "\u202e",
    "a/b",
    "\0",
    "日本",
    "x" * 200,
    "'; DROP",
    "~",
]


@pytest.mark.parametrize("title", TITLES)
def test_a_title_never_becomes_a_path(desk: Desk, title: str) -> None:
    (desk.root / "uploads").mkdir()
    with Workspace.open(desk.root) as workspace:
        name = workspace.free_name(title)
        assert (desk.root / name).resolve().parent == desk.root.resolve()
        assert name not in ("uploads", ".", "..")
        assert not (desk.root / name).exists()
        assert name.isascii()
        assert name.replace("-", "").isalnum()


# -- names of projects


@pytest.fixture(scope="module")
def surrounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A workspace with a project inside, one beside it, one below it, and links that lead out."""
    root = tmp_path_factory.mktemp("surrounded")
    desk = Desk(root / "workspace")
    desk.work("create", of(good()), title="inside")
    inside = desk.root / "inside"
    for place in (root / "outside", desk.root / ".hidden", desk.root / "folder" / "below"):
        shutil.copytree(inside, place)
    (desk.root / "link").symlink_to(root / "outside")
    (desk.root / "up").symlink_to(root)
    with Workspace.open(desk.root) as workspace:
        yield workspace


PIECES = st.sampled_from(
    [
        "..",
        ".",
        "/",
        "\\",
        "inside",
        "outside",
        "link",
        "up",
        ".hidden",
        "folder",
        "below",
        "\0",
        "~",
        "",
        "%2e",
        "unhans",
    ]
)


@given(st.one_of(st.lists(PIECES, max_size=5).map("/".join), st.lists(PIECES, max_size=4).map("".join), st.text()))
@example("../outside")
@example("link")
@example("up/outside")
@example(".hidden")
@example("folder/below")
@example("inside/../../outside")
@example("")
def test_no_name_opens_anything_but_a_project_of_the_workspace(surrounded: Workspace, name: str) -> None:
    try:
        found: Records = surrounded.records(name)
    except NotFound:
        assert name != "inside"
    else:
        assert name == "inside"
        assert found.folder.resolve() == surrounded.root / "inside"
