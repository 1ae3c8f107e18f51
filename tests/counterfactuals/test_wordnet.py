"""WordNet: the words and the parts of speech that its files have, in the form of the word asked about."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wordnets
from unhans.errors import BadData, Unsupported
from unhans.wordnet import USUAL, VARIABLE, WordNet, in_the_case_of, open_wordnet


@pytest.fixture(scope="module")
def wordnet() -> WordNet:
    return wordnets.needed()


def lines(wordnet: WordNet, name: str) -> list[list[str]]:
    """The entries of a data file, read the slow way: every line, split at blanks, without its gloss."""
    raw = (wordnet.folder / f"data.{name}").read_text(encoding="ascii").splitlines()
    return [line.partition("|")[0].split() for line in raw if not line.startswith(" ")]


def words_of(entry: list[str]) -> list[str]:
    return [entry[4 + 2 * n].partition("(")[0] for n in range(int(entry[3], 16))]


def test_synonyms_of_a_noun_are_the_words_that_share_an_entry_with_it(wordnet: WordNet) -> None:
    entries = [words_of(entry) for name in ("noun", "verb") for entry in lines(wordnet, name)]
    for word in ("film", "cinema", "idea"):
        found = set(wordnet.synonyms(word, senses=100))
        wanted = {other for entry in entries if word in entry for other in entry if re.fullmatch("[a-z-]+", other)}
        assert found == wanted - {word}
        assert found


def test_direct_opposites_are_those_that_the_files_name(wordnet: WordNet) -> None:
    """Every pointer between two verbs that is a "!", read the slow way."""
    entries = {entry[0]: entry for entry in lines(wordnet, "verb")}
    checked = 0
    for entry in list(entries.values())[:3000]:
        own, rest = words_of(entry), entry[4 + 2 * int(entry[3], 16) :]
        for n in range(int(rest[0])):
            symbol, offset, part, ends = rest[1 + 4 * n : 5 + 4 * n]
            if symbol == "!" and part == "v":
                word, other = own[int(ends[:2], 16) - 1], words_of(entries[offset])[int(ends[2:], 16) - 1]
                if re.fullmatch("[a-z]+", word) and re.fullmatch("[a-z]+", other) and wordnet.senses(word):
                    assert other in wordnet.antonyms(word, senses=100), (word, other)
                    checked += 1
    assert checked > 100


@pytest.mark.parametrize(
    ("word", "some"),
    [("good", {"bad", "evil"}), ("awful", {"good"}), ("arid", {"wet"}), ("love", {"hate"}), ("slowly", {"quickly"})],
)
def test_opposites_of_adjectives_are_borrowed_from_those_they_are_like(
    wordnet: WordNet, word: str, some: set[str]
) -> None:
    assert some <= set(wordnet.antonyms(word))


@pytest.mark.parametrize(
    ("word", "some"),
    [
        ("films", {"movies", "pictures", "flicks"}),
        ("children", {"kids", "youngsters"}),
        ("hated", {"detested"}),
        ("loving", {"enjoying"}),
        ("bought", {"purchased"}),
        ("begins", {"starts", "commences"}),
        ("stopping", {"halting", "ceasing"}),
        ("started", {"began", "begun", "commenced"}),  # past tense and participle are not told apart
        ("Film", {"Movie", "Picture"}),
        ("FILM", {"MOVIE", "PICTURE"}),
    ],
)
def test_synonyms_have_the_form_and_the_capitals_of_the_word(wordnet: WordNet, word: str, some: set[str]) -> None:
    assert some <= set(wordnet.synonyms(word))


def test_the_commonest_sense_comes_first(wordnet: WordNet) -> None:
    assert wordnet.synonyms("film")[0] == "movie"
    assert wordnet.antonyms("good")[0] == "bad"
    met = [sense.met for sense in wordnet.senses("good")]
    assert met == sorted(met, reverse=True)
    assert met[0] == 190  # "good%3:00:01:: 1 190" in cntlist.rev


@pytest.mark.parametrize(
    "word", ["film", "good", "funny", "went", "Hated", "masterpiece", "worst", "the", "xyzzy", "…"]
)
def test_a_word_is_neither_its_own_synonym_nor_its_own_opposite(wordnet: WordNet, word: str) -> None:
    for found in (wordnet.synonyms(word), wordnet.antonyms(word)):
        assert word.lower() not in {other.lower() for other in found}
        assert len(found) == len(set(found))
        assert all(re.fullmatch(r"[A-Za-z]+(?:[-'][A-Za-z]+)*", other) for other in found)


@pytest.mark.parametrize("word", ["a", "in", "he", "It", "was", "don't", "don’t", "", "?", "12", "日本", "xyzzy"])
def test_small_words_signs_and_strangers_have_no_synonyms(wordnet: WordNet, word: str) -> None:
    assert wordnet.synonyms(word) == wordnet.antonyms(word) == []


def test_each_word_gets_its_most_frequent_part_of_speech(wordnet: WordNet) -> None:
    known = {
        "The": "determiner",
        "funny": "adjective",
        "film": "noun",
        "quickly": "adverb",
        "made": "verb",
        "3": "number",
        "children": "noun",
        "laugh": "verb",
        ",": "sign",
        "and": "conjunction",
        "I": "pronoun",
        "don't": "auxiliary",
        "xyzzy": "noun",
        "it": "pronoun",
    }
    assert wordnet.tag(list(known)) == list(known.values())
    assert wordnet.parts_of_speech("film") == ["noun", "verb"]
    assert wordnet.parts_of_speech("xyzzy") == []


@given(st.text())
def test_any_string_can_be_asked_about(word: str) -> None:
    wordnet = wordnets.needed()
    assert word not in wordnet.synonyms(word) + wordnet.antonyms(word)
    assert len(wordnet.tag([word])) == 1


@given(st.from_regex(r"[A-Za-z]+", fullmatch=True), st.from_regex(r"[a-z]+", fullmatch=True))
def test_capitals_follow_the_old_word(old: str, new: str) -> None:
    written = in_the_case_of(old, new)
    assert written.lower() == new
    assert written[0].isupper() == old[0].isupper()
    assert in_the_case_of(old, "McCoy") == "McCoy"


# -- where it is


def test_without_it_the_way_to_install_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unsupported, match="apt-get install wordnet-base"):
        open_wordnet(tmp_path)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(Unsupported, match=r"nowhere.*UNHANS_WORDNET"):
        open_wordnet()


def test_another_folder_can_be_named(wordnet: WordNet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = tmp_path / "dict"
    moved.symlink_to(wordnet.folder)
    assert open_wordnet(moved).synonyms("film") == wordnet.synonyms("film")
    monkeypatch.setenv(VARIABLE, str(moved))
    assert open_wordnet().folder == moved
    monkeypatch.setenv(VARIABLE, "")
    assert open_wordnet("").folder == Path(USUAL) or not Path(USUAL).is_dir()


def test_damaged_files_are_told_of(wordnet: WordNet, tmp_path: Path) -> None:
    for name in ("data.noun", "index.noun"):
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        for path in wordnet.folder.iterdir():
            if path.name != name:
                (folder / path.name).symlink_to(path)
        shutil.copy(wordnet.folder / name, folder / name)
        raw = (folder / name).read_bytes()
        (folder / name).write_bytes(raw[: len(raw) // 20] if name == "data.noun" else b"film n x\n")
        with pytest.raises(BadData, match=r"damaged.*Install it anew"):
            WordNet(folder).synonyms("film")
