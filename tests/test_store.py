"""The database: what is written stays, several may write at once, and a file that is not ours is never replaced."""

from __future__ import annotations

import os
import sqlite3
import threading

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from databases import another, store  # noqa: F401 - a fixture
from unhans.errors import Busy, NoSpace, ProjectProblem
from unhans.store import FILE, Store, batches, metadata
from unhans.store.schema import settings


def put(name, value="x"):
    return lambda connection: connection.execute(settings.insert().values(name=name, value=value))


def names(store):  # noqa: F811
    with store.read() as connection:
        return set(connection.execute(sa.select(settings.c.name)).scalars())


def test_the_migrations_make_exactly_the_tables_of_the_schema(store):  # noqa: F811
    with store._writer.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), metadata)
    assert differences == []


def test_what_was_written_is_there_for_others_at_once(store, tmp_path):  # noqa: F811
    store.write(put("a"))
    with another(store, tmp_path) as other:
        assert names(other) == {"a"}
        other.write(put("b"))
    assert names(store) == {"a", "b"}


def test_an_act_that_fails_leaves_nothing_and_does_not_touch_its_neighbours(store):  # noqa: F811
    def half(connection):
        connection.execute(settings.insert().values(name="half", value="x"))
        raise KeyError("stop")

    began, results = threading.Barrier(9), {}

    def run(n):
        began.wait()
        try:
            store.write(half if n == 4 else put(f"n{n}"))
            results[n] = "ok"
        except KeyError:
            results[n] = "failed"

    threads = [threading.Thread(target=run, args=(n,)) for n in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n: "failed" if n == 4 else "ok" for n in range(9)}
    assert names(store) == {f"n{n}" for n in range(9) if n != 4}


def test_what_an_act_returns_comes_back(store):  # noqa: F811
    assert store.write(lambda connection: connection.execute(sa.select(sa.literal(7))).scalar()) == 7


def test_readers_cannot_write(store):  # noqa: F811
    with pytest.raises((ProjectProblem, sa.exc.DBAPIError)), store.read() as connection:
        connection.execute(settings.insert().values(name="a", value="x"))
    assert names(store) == set()


def test_a_reader_sees_one_moment(store):  # noqa: F811
    store.write(put("a"))
    with store.read() as connection:
        query = sa.select(sa.func.count()).select_from(settings)
        assert connection.execute(query).scalar() == 1
        store.write(put("b"))
        assert connection.execute(query).scalar() == 1
    assert names(store) == {"a", "b"}


def test_names_that_are_locked_wait_for_each_other(store):  # noqa: F811
    """Read, think, write: without a lock two of them would both write the same number."""

    def count_up(connection):
        store.lock(connection, "counter")
        found = connection.execute(sa.select(settings.c.value).where(settings.c.name == "n")).scalar()
        connection.execute(settings.delete().where(settings.c.name == "n"))
        connection.execute(settings.insert().values(name="n", value=str(int(found or 0) + 1)))

    threads = [threading.Thread(target=lambda: [store.write(count_up) for _ in range(10)]) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with store.read() as connection:
        assert connection.execute(sa.select(settings.c.value)).scalar() == "60"


def test_a_closed_store_takes_nothing(tmp_path):
    one = Store.open(tmp_path, create=True)
    one.write(put("a"))
    one.close()
    with pytest.raises(Busy, match="Nothing was stored"):
        one.write(put("b"))


# -- SQLite


@pytest.fixture
def file(tmp_path):
    with Store.open(tmp_path, create=True) as made:
        made.write(put("a"))
    return tmp_path / FILE


def test_writers_begin_at_once_and_wait_for_the_disk(file):
    with Store.open(file.parent) as one:
        said = []

        def watch(connection):
            connection.connection.set_trace_callback(said.append)
            connection.execute(settings.insert().values(name="b", value="x"))
            names = ("journal_mode", "synchronous", "foreign_keys")
            return {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names}

        assert one.write(watch) == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
        one.write(put("c"))
        assert "BEGIN IMMEDIATE" in said
        assert "BEGIN" not in said


def test_acts_that_wait_together_share_a_transaction(file):
    with Store.open(file.parent) as one:
        commits, gate, entered = [], threading.Event(), threading.Event()

        def slow(connection):
            connection.connection.set_trace_callback(lambda said: commits.append(said) if said == "COMMIT" else None)
            entered.set()
            gate.wait()

        threads = [threading.Thread(target=one.write, args=(slow,))]
        threads[0].start()
        entered.wait()
        threads += [threading.Thread(target=one.write, args=(put(f"n{n}"),)) for n in range(20)]
        for thread in threads[1:]:
            thread.start()
        while one._group()._waiting.qsize() < 20:
            pass
        gate.set()
        for thread in threads:
            thread.join()
        assert len(commits) == 2


def test_nobody_is_told_before_it_is_on_disk(file):
    with Store.open(file.parent) as one:
        gate, told_early = threading.Event(), []

        def act(connection):
            gate.wait()
            put("b")(connection)

        sa.event.listen(one._writer, "commit", lambda _: told_early.append(future.done()))  # just before it commits
        future = one._group().submit(act)
        gate.set()
        future.result()
    assert told_early == [False]


def test_too_many_waiting_acts_are_refused(file, monkeypatch):
    monkeypatch.setattr("unhans.store._WAITING", 2)
    with Store.open(file.parent) as one:
        gate, entered = threading.Event(), threading.Event()

        def slow(_):
            entered.set()
            gate.wait()

        group = one._group()
        waiting = [group.submit(slow)]
        entered.wait()
        waiting += [group.submit(put(str(n))) for n in range(2)]
        with pytest.raises(Busy, match="try again"):
            one.write(put("too much"))
        gate.set()
        for future in waiting:
            future.result()


def test_a_full_disk_stores_nothing_and_goes_on_when_there_is_room(file):
    with Store.open(file.parent) as one:
        limit = one.write(lambda c: c.exec_driver_sql("PRAGMA page_count").scalar())
        one.write(lambda c: c.exec_driver_sql(f"PRAGMA max_page_count={limit + 2}").scalar())
        with pytest.raises(NoSpace, match="Nothing was stored"):
            one.write(put("big", "x" * 100_000))
        assert names(one) == {"a"}
        one.write(lambda c: c.exec_driver_sql("PRAGMA max_page_count=1000000").scalar())
        one.write(put("big", "x" * 100_000))
        assert one.check() is None


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda file: file.unlink(), "missing"),
        (lambda file: file.write_bytes(b""), "is empty"),
        (lambda file: file.write_bytes(b"not a database" * 1000), "damaged"),
        (lambda file: file.write_bytes(file.read_bytes()[:5000]), "damaged|no tables"),
        (lambda file: _set_version(file, "9999"), "newer version"),
    ],
    ids=["missing", "empty", "not a database", "cut off", "newer"],
)
def test_a_database_that_is_not_ours_is_refused_and_left_alone(file, spoil, said):
    for other in ("-wal", "-shm"):
        file.with_name(file.name + other).unlink(missing_ok=True)
    spoil(file)
    before = file.read_bytes() if file.exists() else None
    with pytest.raises(ProjectProblem, match=said):
        Store.open(file.parent)
    assert (file.read_bytes() if file.exists() else None) == before


def _set_version(file, version):
    connection = sqlite3.connect(file)
    connection.execute("UPDATE alembic_version SET version_num = ?", (version,))
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def test_the_file_is_for_its_owner_only(file):
    assert file.stat().st_mode & 0o077 == 0


def test_a_copy_is_whole_while_others_write(file, tmp_path):
    with Store.open(file.parent) as one:
        stop = threading.Event()

        def busy():
            n = 0
            while not stop.is_set():
                one.write(put(f"n{n}"))
                n += 1

        thread = threading.Thread(target=busy)
        thread.start()
        counts = []
        for n in range(3):
            folder = tmp_path / f"copy{n}"
            folder.mkdir()
            one.backup(folder / FILE)
            with Store.open(folder) as copy:
                assert copy.check() is None
                counts.append(len(names(copy)))
        stop.set()
        thread.join()
    assert counts == sorted(counts)
    assert not list(tmp_path.glob("copy*/.*"))


@pytest.mark.parametrize("name", ["", "A", "x;drop", "1a", "x" * 64])
def test_schema_names_are_plain(tmp_path, name):
    with pytest.raises(ProjectProblem, match="cannot be the name"):
        Store.open(tmp_path, database="postgresql+psycopg://localhost/x", schema=name)


@pytest.mark.parametrize("address", ["mysql://x/y", "nonsense"])
def test_only_postgresql_is_an_address(tmp_path, address):
    with pytest.raises(ProjectProblem, match=r"PostgreSQL|cannot be read"):
        Store.open(tmp_path, database=address)


def test_a_folder_where_nothing_can_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ProjectProblem, match="cannot be made"):
        Store.open(tmp_path / "file" / "below", create=True)
    assert os.listdir(tmp_path) == ["file"]


def test_batches_are_full_but_for_the_last():
    assert list(batches(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(batches([], 2)) == []


def test_a_file_that_was_deleted_meanwhile_is_missed_and_not_made_anew(file):
    with Store.open(file.parent) as one:
        one.write(put("b"))
        one._reader.dispose()
        one._writer.dispose()
        for path in file.parent.iterdir():
            path.unlink()
        with pytest.raises(ProjectProblem, match="cannot be opened"):
            one.write(put("c"))
        assert not file.exists()


def test_folders_may_have_odd_names(tmp_path):
    folder = tmp_path / "a b?c#d%20é&mode=memory"
    with Store.open(folder, create=True) as one:
        one.write(put("a"))
    assert (folder / FILE).stat().st_size
    with Store.open(folder) as one:
        assert names(one) == {"a"}
