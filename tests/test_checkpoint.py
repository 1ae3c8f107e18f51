"""The door for weights: hostile and damaged folders are refused in a sentence, and nothing in them is run."""

from __future__ import annotations

import ast
import json
import os
import pickle
import re
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import tiny
import unhans
from unhans.checkpoint import open_checkpoint, save_folder, token_limit
from unhans.errors import BadModel, ModelFailed, Unsupported
from unhans.language_model import LanguageModel
from unhans.model import TransformerClassifier

SOURCES = sorted(Path(unhans.__file__).parent.rglob("*.py"))


class Payload:
    """Unpickling it makes a directory: a harmless stand-in for what an attacker would do."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.marker),)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save_folder(tmp_path_factory.mktemp("good") / "model")


@pytest.fixture
def folder(good: Path, tmp_path: Path) -> Path:
    """A fresh copy to damage."""
    return Path(shutil.copytree(good, tmp_path / "a secret place" / "victim"))


@pytest.fixture
def marker(tmp_path: Path) -> Iterator[Path]:
    """A path that exists only if a payload has run; no test may leave it behind."""
    path = tmp_path / "the payload ran"
    yield path
    assert not path.exists()


def change(folder: Path, name: str = "config.json", **values: Any) -> Path:
    path = folder / name
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    return folder


def change_weights(folder: Path, act: Callable[[dict[str, torch.Tensor]], None]) -> Path:
    weights = load_file(folder / "model.safetensors")
    act(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def refusal(folder: Path, **how: Any) -> str:
    """The sentence with which a folder is refused; it must not give away where on this machine the folder is."""
    with pytest.raises(BadModel) as refused:
        unhans.load(folder, **how)
    sentence = str(refused.value)
    assert "secret place" not in sentence
    assert str(folder.parent) not in sentence
    assert sentence.endswith((".", "…", "'", ")")) or ":" in sentence
    return sentence


def evil_module(folder: Path, marker: Path) -> None:
    (folder / "evil.py").write_text(f"import os\nos.mkdir({str(marker)!r})\nclass Thing: pass\nThing2 = Thing\n")


# -- pickles (S-01 to S-03)


def test_pickled_weights_are_refused_and_never_opened(folder: Path, marker: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Payload(marker)))
    sentence = refusal(folder)
    assert "safetensors" in sentence
    assert "pytorch_model.bin" in sentence


@pytest.mark.parametrize("name", ["m.pt", "m.pth", "m.pkl", "m.pickle", "m.joblib", "m.ckpt", "m.h5", "m.npy"])
def test_pickles_with_other_suffixes_are_refused_and_named(folder: Path, marker: Path, name: str) -> None:
    (folder / "model.safetensors").rename(folder / name)
    (folder / name).write_bytes(pickle.dumps(Payload(marker)))
    sentence = refusal(folder)
    assert "safetensors" in sentence
    assert name in sentence


def test_a_pickle_renamed_to_safetensors_is_refused(folder: Path, marker: Path) -> None:
    (folder / "model.safetensors").write_bytes(pickle.dumps(Payload(marker)))
    assert "not safetensors" in refusal(folder)


def test_an_archive_of_torch_save_renamed_to_safetensors_is_refused(folder: Path, marker: Path) -> None:
    torch.save({"weights": Payload(marker)}, folder / "model.safetensors")
    assert "not safetensors" in refusal(folder)


def test_a_decoy_of_safetensors_does_not_open_the_way_to_a_pickle(folder: Path, marker: Path) -> None:
    (folder / "model.safetensors").rename(folder / "decoy.safetensors")
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Payload(marker)))
    assert "model.safetensors" in refusal(folder)  # the library's own sentence, without its path


@pytest.mark.parametrize("named", ["evil.bin", "../victim/evil.bin", "../elsewhere/model.safetensors", "/etc/passwd"])
def test_an_index_of_weights_cannot_lead_to_a_pickle_or_out_of_the_folder(
    folder: Path, marker: Path, named: str
) -> None:
    shutil.copytree(folder, folder.parent / "elsewhere")
    (folder / "evil.bin").write_bytes(pickle.dumps(Payload(marker)))
    names = list(load_file(folder / "model.safetensors"))
    index = {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(names, named)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
    assert "index" in refusal(folder)


@pytest.mark.parametrize("index", ["{", "5", "{}", '{"weight_map": 5}', '{"weight_map": {"a": [1]}}'])
def test_a_damaged_index_of_weights_is_refused(folder: Path, index: str) -> None:
    (folder / "model.safetensors.index.json").write_text(index)
    assert "index" in refusal(folder)


def test_weights_in_several_files_load(folder: Path) -> None:
    before = unhans.load(folder)
    weights = load_file(folder / "model.safetensors")
    names = sorted(weights)
    shards = {"model-00001-of-00002.safetensors": names[:9], "model-00002-of-00002.safetensors": names[9:]}
    for shard, own in shards.items():
        save_file({name: weights[name] for name in own}, folder / shard, metadata={"format": "pt"})
    where = {name: shard for shard, own in shards.items() for name in own}
    index = {"metadata": {"total_size": 1}, "weight_map": where}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "model.safetensors").unlink()
    assert unhans.load(folder).revision == before.revision


def test_pickles_beside_good_weights_are_ignored_and_not_exported(folder: Path, marker: Path, tmp_path: Path) -> None:
    for name in ("training_args.bin", "optimizer.pt", "scheduler.pt", "rng_state.pth"):
        (folder / name).write_bytes(pickle.dumps(Payload(marker)))
    evil_module(folder, marker)
    loaded = unhans.load(folder)
    assert isinstance(loaded, TransformerClassifier)
    exported = {path.name for path in loaded.save(tmp_path / "export").iterdir()}
    assert exported == {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}


# -- code (S-04 to S-06)


def test_a_model_that_needs_code_of_its_own_is_refused_with_the_reason(folder: Path, marker: Path) -> None:
    evil_module(folder, marker)
    auto_map = {"AutoConfig": "evil.Thing", "AutoModelForSequenceClassification": "evil.Thing2"}
    change(folder, model_type="evil", auto_map=auto_map)
    assert "its own code" in refusal(folder)


def test_code_named_beside_a_known_architecture_is_neither_run_nor_exported(
    folder: Path, marker: Path, tmp_path: Path
) -> None:
    plain = unhans.load(folder).revision
    evil_module(folder, marker)
    auto_map = {"AutoConfig": "evil.Thing", "AutoModelForSequenceClassification": "evil.Thing2"}
    change(folder, auto_map=auto_map)
    change(folder, "tokenizer_config.json", auto_map={"AutoTokenizer": ["evil.Thing", "evil.Thing2"]})
    loaded = unhans.load(folder)
    assert isinstance(loaded, TransformerClassifier)
    assert loaded.revision == plain
    assert type(loaded.model).__module__.startswith("transformers.")
    export = loaded.save(tmp_path / "export")
    for path in export.glob("*.json"):
        assert "evil" not in path.read_text()
        assert "auto_map" not in path.read_text()
    assert not list(export.glob("*.py"))


def test_a_tokenizer_with_code_of_its_own_is_not_run(folder: Path, marker: Path) -> None:
    evil_module(folder, marker)
    (folder / "tokenizer.json").unlink()
    change(
        folder,
        "tokenizer_config.json",
        auto_map={"AutoTokenizer": ["evil.Thing", "evil.Thing2"]},
        tokenizer_class="Thing",
    )
    refusal(folder)


@pytest.mark.parametrize("key", ["_attn_implementation", "attn_implementation", "_attn_implementation_internal"])
@pytest.mark.parametrize("wish", ["flash_attention_2", "someone/attention-kernel", "eager"])
def test_a_folder_cannot_choose_attention_code_to_be_fetched(folder: Path, key: str, wish: str) -> None:
    plain = unhans.load(folder)
    changed = unhans.load(change(folder, **{key: wish}))
    assert isinstance(plain, TransformerClassifier)
    assert isinstance(changed, TransformerClassifier)
    assert changed.model.config._attn_implementation == plain.model.config._attn_implementation
    assert changed.revision == plain.revision


def test_an_adapter_that_would_fetch_its_model_from_elsewhere_is_refused(folder: Path) -> None:
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "someone/else", "peft_type": "LORA"}')
    assert "adapter" in refusal(folder)


def test_a_worker_thread_gets_the_same_refusal(folder: Path, marker: Path) -> None:
    (folder / "model.safetensors").write_bytes(pickle.dumps(Payload(marker)))
    here = refusal(folder)
    with ThreadPoolExecutor(2) as pool, pytest.raises(BadModel, match=re.escape(here)):
        pool.submit(unhans.load, folder).result()


def test_only_the_door_reads_weights_and_nothing_reads_pickles() -> None:
    def called(path: Path) -> Iterator[str]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                yield ast.unparse(node)
            elif isinstance(node, ast.Import):
                yield from (name.name for name in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from (f"{node.module}.{name.name}" for name in node.names)
            elif isinstance(node, ast.keyword) and node.arg in ("trust_remote_code", "allow_pickle", "weights_only"):
                yield f"{node.arg}={ast.unparse(node.value)}"
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                yield f"{node.func.id}()"

    unsafe = re.compile(
        r"^(torch\.load|torch\.hub|(np|numpy)\.load|yaml\.(load|unsafe_load|full_load)|eval\(\)|exec\(\)|compile\(\)"
        r"|(pickle|joblib|dill|cloudpickle|marshal|shelve)\b.*|trust_remote_code=(?!False).*|allow_pickle=(?!False).*"
        r"|weights_only=(?!True).*|os\.system|.*\.load_state_dict_from_url)$"
    )
    found = {(path.name, name) for path in SOURCES for name in called(path)}
    assert len(found) > 500  # the walk sees something
    assert sorted(use for use in found if unsafe.match(use[1])) == []
    assert {path for path, name in found if name.endswith("from_pretrained")} == {"checkpoint.py"}


# -- tokenizers (S-07, D-21)


def test_a_tokenizer_rule_that_never_ends_is_a_sentence_and_not_a_crash(folder: Path) -> None:
    rules = json.loads((folder / "tokenizer.json").read_text())
    rules["normalizer"] = {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": "b"}
    (folder / "tokenizer.json").write_text(json.dumps(rules))
    change(folder, "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")  # which believes the rules
    classifier = unhans.load(folder)
    with pytest.raises(ModelFailed, match="tokenizer"):
        classifier.predict("a" * 40 + "!")
    assert classifier.predict("the soup").labels[0] in classifier.labels


def test_a_tokenizer_of_another_model_is_refused(folder: Path) -> None:
    tiny.roberta_tokenizer().save_pretrained(folder)
    assert "do not belong together" in refusal(folder)


def test_a_folder_without_its_tokenizer_is_refused(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    assert "tokenizer" in refusal(folder)
    (folder / "tokenizer_config.json").unlink()
    assert "tokenizer" in refusal(folder)


@pytest.mark.parametrize("rules", ["{", "[]", '{"model": {"type": "Evil"}}', "\x00\xff"])
def test_a_damaged_tokenizer_is_refused(folder: Path, rules: str) -> None:
    (folder / "tokenizer.json").write_text(rules)
    assert "tokenizer" in refusal(folder)


def test_a_limit_that_is_no_number_is_refused(folder: Path) -> None:
    assert "limit" in refusal(change(folder, "tokenizer_config.json", model_max_length="many"))


# -- sizes (S-08)

ABSURD = {
    "layers": {"num_hidden_layers": 1_000_000},
    "many layers": {"num_hidden_layers": 900},
    "vocabulary": {"vocab_size": 10**12},
    "width": {"hidden_size": 4 * 10**8},
    "inner width": {"intermediate_size": 10**10},
    "positions": {"max_position_embeddings": 10**12},
    "types": {"type_vocab_size": 10**12},
    "heads": {"num_attention_heads": 10**9},
    "no heads": {"num_attention_heads": 0},
    "labels": {"id2label": None, "num_labels": 10**9},
    "beyond 64 bits": {"vocab_size": 10**30},
    "negative": {"hidden_size": -1},
    "a word": {"hidden_size": "wide"},
    "nothing": {"num_hidden_layers": None},
    "a fraction": {"num_hidden_layers": 2.5},
    "a list": {"vocab_size": [1]},
}


@pytest.mark.parametrize("what", ABSURD)
def test_absurd_sizes_are_refused_before_anything_is_built(folder: Path, what: str) -> None:
    start = time.monotonic()
    refusal(change(folder, **ABSURD[what]))
    if "labels" not in what:
        refusal(folder, labels=["one", "two", "three"])  # a new head must not open a way round
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("gpt2", {"n_layer": 1_000_000}),
        ("gpt2", {"num_hidden_layers": 1_000_000}),
        ("distilbert", {"n_layers": 1_000_000}),
        ("distilbert", {"sinusoidal_pos_embds": True, "max_position_embeddings": 10**8}),
        ("albert", {"num_hidden_groups": 1_000_000}),
        ("albert", {"embedding_size": 10**9}),
        ("llama", {"num_hidden_layers": 1_000_000}),
    ],
)
def test_absurd_sizes_are_refused_under_every_name(tmp_path: Path, kind: str, sizes: dict[str, int]) -> None:
    folder = tiny.save_folder(tmp_path / "a secret place" / kind, kind)
    start = time.monotonic()
    refusal(change(folder, **sizes))
    refusal(folder, labels=["one", "two", "three"])
    assert time.monotonic() - start < 5


# -- damaged files (S-09)


def test_a_header_of_absurd_length_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", 2**62) + b"{}")
    assert "damaged" in refusal(folder)


def test_a_truncated_weight_file_is_refused(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    for keep in (0, 4, 100, len(whole) - 1):
        (folder / "model.safetensors").write_bytes(whole[:keep])
        assert "damaged" in refusal(folder)


def write_header(folder: Path, header: dict[str, Any], n_bytes: int) -> None:
    said = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(said)) + said + b"\0" * n_bytes)


def test_a_header_that_lies_about_places_or_types_is_refused(folder: Path) -> None:
    overlapping = {name: {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} for name in "ab"}
    write_header(folder, overlapping, 8)
    assert "damaged" in refusal(folder)
    write_header(folder, {"a": {"dtype": "F64", "shape": [2], "data_offsets": [0, 8]}}, 8)
    assert "damaged" in refusal(folder)
    write_header(folder, {"a": {"dtype": "EVIL", "shape": [2], "data_offsets": [0, 8]}}, 8)
    assert "damaged" in refusal(folder)


def test_weights_of_something_else_are_refused(folder: Path) -> None:
    save_file({"a": torch.zeros(100_000)}, folder / "model.safetensors", metadata={"format": "pt"})
    assert "lacks weights" in refusal(folder)
    assert "inside the model itself" in refusal(folder, labels=["one", "two"])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_numbers_are_refused(folder: Path, value: float) -> None:
    def poison(weights: dict[str, torch.Tensor]) -> None:
        weights["bert.encoder.layer.1.output.dense.weight"][3, 4] = value

    assert "not numbers" in refusal(change_weights(folder, poison))


# -- heads and labels (S-10, D-15, D-16)


def test_a_missing_head_is_refused_unless_a_new_one_is_asked_for(tmp_path: Path) -> None:
    folder = tiny.save_folder(tmp_path / "encoder", head="MaskedLM")
    assert "would be random" in refusal(folder)
    assert unhans.load(folder, labels=["one", "two", "three"]).labels == ("one", "two", "three")


def test_a_head_of_another_size_is_refused(folder: Path) -> None:
    names = {str(number): name for number, name in enumerate("abc")}
    sentence = refusal(change(folder, id2label=names, label2id={name: int(n) for n, name in names.items()}))
    assert "classifier." in sentence
    assert "another size" in sentence


def test_an_encoder_of_another_size_is_refused_even_when_the_head_is_new(folder: Path) -> None:
    change(folder, intermediate_size=65)
    assert "another size" in refusal(folder)
    assert "inside the model itself" in refusal(folder, labels=["one", "two", "three"])


def test_a_new_head_is_the_same_in_every_run_and_leaves_global_chance_alone(tmp_path: Path) -> None:
    folder = tiny.save_folder(tmp_path / "encoder", head="MaskedLM")
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = unhans.load(folder, labels=["one", "two"])
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    assert unhans.load(folder, labels=["one", "two"]).revision == first.revision


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"0": "same", "1": "same"}, "both called 'same'"),
        ({"0": "good", "1": "  "}, "empty name"),
        ({"0": "only"}, "single output"),
        ({str(n): f"label {n}" for n in range(501)}, "too many"),
        ({"0": "a", "2": "b"}, "not numbered"),
        ({"x": "a", "y": "b"}, "not numbered"),
        ({}, "at least two"),
        (["a", "b"], "not usable"),
        (5, "not usable"),
    ],
)
def test_unusable_labels_are_refused(folder: Path, names: Any, said: str) -> None:
    assert said in refusal(change(folder, id2label=names))


def test_a_million_labels_are_refused_quickly(folder: Path) -> None:
    change(folder, id2label={str(n): f"label {n}" for n in range(1_000_000)})
    start = time.monotonic()
    assert "too many" in refusal(folder)
    assert time.monotonic() - start < 20


def test_five_hundred_labels_work(tmp_path: Path) -> None:
    folder = tiny.save_folder(tmp_path / "wide", labels=500)
    classifier = unhans.load(folder)
    assert len(classifier.labels) == 500
    assert sum(classifier.predict("the soup")[0].probabilities) == pytest.approx(1)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"num_labels": 1}, "regression"),
        ({"problem_type": "regression"}, "regression"),
        ({"problem_type": "multi_label_classification"}, "multi-label"),
    ],
)
def test_models_that_do_not_choose_one_label_are_refused(folder: Path, setting: dict[str, Any], said: str) -> None:
    assert said in refusal(change(folder, **setting))


def test_a_real_one_label_model_is_refused_by_folder_and_as_an_object(tmp_path: Path) -> None:
    folder = tiny.save_folder(tmp_path / "regression", labels=1)
    assert "regression" in refusal(folder)
    with pytest.raises(BadModel, match="regression"):
        unhans.load((tiny.model("bert", labels=1), tiny.bert_tokenizer()))


# -- what is not a model at all


def test_a_folder_without_a_config_is_refused(folder: Path) -> None:
    (folder / "config.json").unlink()
    assert refusal(folder) == "victim is not a Hugging Face model folder: it has no config.json."


@pytest.mark.parametrize("config", ["{", "", "[" * 100_000, "\x00", "[]", "5", "null", '"bert"'])
def test_a_config_that_is_no_config_is_refused(folder: Path, config: str) -> None:
    (folder / "config.json").write_text(config)
    assert "config.json" in refusal(folder)


def test_a_config_that_is_no_text_is_refused(folder: Path) -> None:
    (folder / "config.json").write_bytes(b"\xff\xfe\x80")
    assert "config.json" in refusal(folder)


@pytest.mark.parametrize("kind", ["evil", "", None, [], {}, 5, "../bert"])
def test_an_unknown_architecture_is_refused(folder: Path, kind: Any) -> None:
    assert "transformers library knows" in refusal(change(folder, model_type=kind))


@pytest.mark.parametrize("kind", ["vit", "whisper", "clip"])
def test_a_model_that_does_not_read_text_is_refused(folder: Path, kind: str) -> None:
    refusal(change(folder, model_type=kind))


@pytest.mark.parametrize(
    "setting",
    [
        {"hidden_act": "evil"},
        {"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}},
        {"quantization_config": 5},
        {"dtype": "evil"},
        {"pad_token_id": 10**9},
        {"layer_norm_eps": "x"},
        {"num_hidden_layers": True},
    ],
)
def test_strange_settings_are_refused_in_a_sentence(folder: Path, setting: dict[str, Any]) -> None:
    refusal(change(folder, **setting))


@pytest.mark.parametrize(
    "setting",
    [
        {"return_dict": False},
        {"output_attentions": True},
        {"output_hidden_states": True},
        {"torchscript": True},
        {"chunk_size_feed_forward": 7},
        {"architectures": 5},
        {"label2id": 3},
        {"use_cache": True},
    ],
)
def test_settings_that_change_only_the_form_of_answers_do_not_matter(folder: Path, setting: dict[str, Any]) -> None:
    plain = unhans.load(folder).predict("the soup was cold")
    changed = unhans.load(change(folder, **setting)).predict("the soup was cold")
    assert changed[0].probabilities == pytest.approx(plain[0].probabilities, abs=1e-6)


def test_a_file_instead_of_a_folder_is_refused(folder: Path) -> None:
    path = folder / "config.json"
    with pytest.raises(BadModel, match="is a file"):
        unhans.load(path)  # here the user gave the path, and is told it


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="There is no folder"):
        unhans.load(tmp_path / "nowhere")
    with pytest.raises(BadModel, match="There is no folder"):
        unhans.load(str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    "name",
    [
        "../../etc",
        "a/b@refs/../",
        "a/b/c",
        "a b",
        "a/../b",
        "/etc",
        "~no_such_user/model",
        "a" * 5000,
        "a\0b",
        "a/b\n",
        "file:///etc/passwd",
        "C:\\models",
        "-rf",
        ".",
        "",
    ],
)
def test_strange_names_are_refused_without_asking_the_hub(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: Any, **__: Any) -> None:
        pytest.fail("the hub was asked")

    monkeypatch.setattr("huggingface_hub.snapshot_download", asked)
    with pytest.raises(BadModel) as refused:
        unhans.load(name)
    assert len(str(refused.value)) < 400


def test_an_address_is_never_taken_for_a_model_to_download(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: pytest.fail("the hub was asked"))
    with pytest.raises(BadModel, match="There is no folder"):
        TransformerClassifier.open("http://169.254.169.254/x")
    with pytest.raises(BadModel, match="There is no folder"):
        LanguageModel.open("http://169.254.169.254/x")


@pytest.mark.parametrize("setting", [{"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}])
def test_a_hub_that_cannot_be_reached_is_a_sentence(tmp_path: Path, setting: dict[str, str]) -> None:
    """In a process of its own, because the hub client reads its settings once, at import."""
    script = "import unhans\ntry: unhans.load('someone/some-model')\nexcept unhans.UnhansError as error: print(error)"
    away = {"HF_HOME": str(tmp_path), "HF_HUB_ETAG_TIMEOUT": "1", "HF_HUB_DOWNLOAD_TIMEOUT": "1", "NO_PROXY": "*"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | away | setting,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.startswith("There is no folder someone/some-model here, and the Hugging Face hub could not be")


# -- how much can be read (D-03)


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_a_text_of_as_many_tokens_as_the_limit_runs(tmp_path: Path, kind: str) -> None:
    folder = tiny.save_folder(tmp_path / kind, kind)
    change(folder, "tokenizer_config.json", model_max_length=10**30)
    classifier = unhans.load(folder)
    assert isinstance(classifier, TransformerClassifier)
    assert classifier.limit == tiny.LIMIT
    long = "soup " * 500
    assert len(classifier.questions([unhans.text.as_variant(long)])[0]) == classifier.limit
    assert classifier.predict(long)[0].unread != ()
    batch = classifier.batch([unhans.Example("1", long)])
    assert torch.isfinite(classifier.logits(batch, classifier.embed(batch))).all()


def test_the_tokenizers_own_limit_holds_where_it_is_lower(folder: Path) -> None:
    change(folder, "tokenizer_config.json", model_max_length=12)
    assert open_checkpoint(folder, "classifier").limit == 12


@pytest.mark.parametrize("claimed", [10**30, 0, -5, None])
def test_a_tokenizer_without_a_usable_limit_leaves_it_to_the_positions(folder: Path, claimed: int | None) -> None:
    change(folder, "tokenizer_config.json", model_max_length=claimed)
    assert open_checkpoint(folder, "classifier").limit == tiny.LIMIT


def test_mpnet_counts_positions_from_two_whatever_its_padding_is() -> None:
    model, tokenizer = tiny.model("mpnet"), tiny.roberta_tokenizer()
    model.config.pad_token_id = 0
    limit = token_limit(model.config, tokenizer)
    ids = torch.full((1, limit), 7)
    assert model(ids).logits.shape == (1, 2)


def test_a_limit_without_room_for_text_is_refused(folder: Path) -> None:
    assert "no room for text" in refusal(folder, max_length=2)


# -- saving


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_a_saved_model_is_the_same_model(tmp_path: Path, kind: str) -> None:
    before = tiny.transformer(kind, labels=3)
    after = unhans.load(before.save(tmp_path / "deep" / "down" / "saved"))
    assert after.revision == before.revision
    assert np.abs(after.log_probs(tiny.SENTENCES) - before.log_probs(tiny.SENTENCES)).max() < 1e-6


def test_saving_never_touches_an_existing_folder(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(BadModel, match="exists already"):
        tiny.transformer().save(tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_a_failed_save_leaves_nothing_behind(tmp_path: Path) -> None:
    class Failing:
        def save_pretrained(self, folder: Path) -> None:
            (folder / "tokenizer.json").write_text("half of")
            raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left"):
        save_folder(tmp_path / "export", tiny.model("bert"), Failing())
    assert list(tmp_path.iterdir()) == []


def test_a_tokenizer_with_several_chat_templates_can_be_saved(folder: Path, tmp_path: Path) -> None:
    templates = [{"name": "default", "template": "x"}, {"name": "other", "template": "y"}]
    loaded = unhans.load(change(folder, "tokenizer_config.json", chat_template=templates))
    assert isinstance(loaded, TransformerClassifier)
    assert unhans.load(loaded.save(tmp_path / "export")).revision == loaded.revision


def test_a_language_model_without_a_mask_token_is_refused(tmp_path: Path) -> None:
    folder = tiny.save_folder(tmp_path / "mlm", head="MaskedLM")
    change(folder, "tokenizer_config.json", mask_token=None)
    with pytest.raises((Unsupported, BadModel)):
        LanguageModel.open(folder)


def test_labels_rename_a_trained_head_and_never_replace_it(tmp_path: Path) -> None:
    folder = tiny.save_folder(tmp_path / "m", labels=2)
    renamed = unhans.load(folder, labels=["no", "yes"])
    assert renamed.labels == ("no", "yes")
    assert np.allclose(renamed.log_probs(["soup"]), unhans.load(folder).log_probs(["soup"]))
    with pytest.raises(BadModel, match="another number of labels than the 3 given"):
        unhans.load(folder, labels=["a", "b", "c"])
