"""Tiny real things, built on the spot: tokenizers, transformers with random weights, a classifier with known weights.

Nothing here is a stand-in: the models are Hugging Face's own architectures, only small, with weights large enough that
every word of a text visibly changes the answer. The vocabularies of WordPiece and Unigram are written out rather than
trained, because their trainers give another vocabulary in every process.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers as hf
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from unhans import averaging
from unhans.averaging import AveragingConfig
from unhans.black_boxes import PredictFunction
from unhans.checkpoint import token_limit
from unhans.language_model import LanguageModel
from unhans.model import TransformerClassifier
from unhans.text import Words

SENTENCES = (
    "The soup was cold and the waiter did not care.",
    "A wonderful film, warm and funny from the first minute to the last!",
    "I don't think that this phone is worth 299.95 euros.",
    "Never again: the room smelled, the bed was hard, the breakfast a joke.",
    "She liked the book; he did not like the ending.",
    "Is the battery good? It lasts two days, maybe three.",
    "Well-made, light, quick, and the screen is bright.",
    "The plot makes no sense, the actors try hard, the music saves it.",
    "Grüße aus Köln, das Essen war köstlich.",
    "Le café est fermé, quelle déception.",
    "日本語の映画はとても良かった。",
    "Great value 😀 would buy again #recommended @shop",
)
LIMIT = 32

ENCODERS = ("bert", "roberta", "distilbert", "albert", "electra", "deberta", "deberta_v2", "mpnet")
DECODERS = ("gpt2", "llama")
KINDS = ENCODERS + DECODERS
PACKING = ("bert", "roberta", "distilbert", "albert", "electra")


# -- tokenizers


@cache
def bert_tokenizer() -> Any:
    """Uncased WordPiece, as BERT, DistilBERT and ELECTRA have it."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = Counter(_plain_words(" ".join(SENTENCES)))
    signs = sorted({sign for word in words for sign in word})
    pieces = [
        *special,
        *signs,
        *(f"##{sign}" for sign in signs),
        *sorted(w for w in words if len(w) > 1),
        "##ing",
        "##s",
    ]
    tokenizer = Tokenizer(
        models.WordPiece({piece: n for n, piece in enumerate(dict.fromkeys(pieces))}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
    return hf.BertTokenizerFast(tokenizer_object=tokenizer, model_max_length=LIMIT)


@cache
def roberta_tokenizer() -> Any:
    """Byte-level BPE, as RoBERTa has it: two separators inside a pair, and a mask that swallows the blank before it."""
    special = [
        AddedToken(name, special=True, normalized=False, lstrip=name == "<mask>")
        for name in ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
    ]
    tokenizer = _byte_level(special)
    tokenizer.post_processor = processors.RobertaProcessing(
        sep=("</s>", tokenizer.token_to_id("</s>")),
        cls_token=("<s>", tokenizer.token_to_id("<s>")),
        add_prefix_space=False,
        trim_offsets=True,
    )
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=LIMIT,
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        mask_token=special[-1],
        model_input_names=["input_ids", "attention_mask"],
    )


@cache
def gpt_tokenizer() -> Any:
    """Byte-level BPE without a frame, a mask or an unknown token, as GPT-2 has it."""
    tokenizer = _byte_level([AddedToken("<|endoftext|>", special=True, normalized=False)])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=LIMIT,
        eos_token="<|endoftext|>",
        model_input_names=["input_ids", "attention_mask"],
    )


def _plain_words(text: str) -> list[str]:
    plain = normalizers.BertNormalizer(lowercase=True).normalize_str(text)
    return [word for word, _ in pre_tokenizers.BertPreTokenizer().pre_tokenize_str(plain)]


def _byte_level(special: Sequence[AddedToken]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=list(special),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return tokenizer


@cache
def unigram_tokenizer() -> Any:
    """A SentencePiece-like Unigram model, as ALBERT, DeBERTa-v3 and XLM-R have it."""
    special = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
    words = Counter(f"▁{word}" for word in " ".join(SENTENCES).split())
    parts = Counter({word[:n]: count for word, count in words.items() for n in range(2, len(word))})
    signs = Counter(sign for word in words for sign in word)
    counts = words + parts + signs
    scored = [(piece, math.log(counts[piece] / counts.total())) for piece in sorted(counts)]
    tokenizer = Tokenizer(models.Unigram([*((name, 0.0) for name in special), *scored], unk_id=1))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(" {2,}", " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=LIMIT,
        cls_token="[CLS]",
        sep_token="[SEP]",
        unk_token="<unk>",
        pad_token="<pad>",
        mask_token=AddedToken("[MASK]", special=True, normalized=False, lstrip=True),
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


@cache
def boundless_tokenizer() -> Any:
    """A BPE without a pre-tokenizer: its merges cross spaces, so a text is not the sum of its chunks."""
    special = ["<pad>", "<unk>", "<s>", "</s>", "<mask>"]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.train_from_iterator(
        [sentence.lower() for sentence in SENTENCES] * 3,
        trainers.BpeTrainer(vocab_size=300, special_tokens=special, show_progress=False),
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> $B </s>",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("<s>", "</s>")],
    )
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=LIMIT,
        cls_token="<s>",
        sep_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        mask_token="<mask>",
        model_input_names=["input_ids", "attention_mask"],
    )


@cache
def bytes_tokenizer() -> Any:
    """ByT5's: slow, one token per byte."""
    return hf.ByT5Tokenizer(model_max_length=LIMIT * 4)


@cache
def characters_tokenizer() -> Any:
    """CANINE's: slow, one token per character."""
    return hf.CanineTokenizer(model_max_length=LIMIT * 4)


FAST: dict[str, Callable[[], Any]] = {
    "bert": bert_tokenizer,
    "roberta": roberta_tokenizer,
    "gpt": gpt_tokenizer,
    "unigram": unigram_tokenizer,
    "boundless": boundless_tokenizer,
}
SLOW: dict[str, Callable[[], Any]] = {"bytes": bytes_tokenizer, "characters": characters_tokenizer}
TOKENIZERS = FAST | SLOW

_TOKENIZER_OF = {
    "roberta": roberta_tokenizer,
    "mpnet": roberta_tokenizer,
    "deberta": roberta_tokenizer,
    "albert": unigram_tokenizer,
    "deberta_v2": unigram_tokenizer,
    "gpt2": gpt_tokenizer,
    "llama": gpt_tokenizer,
}


# -- models

_SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
_FAMILIES: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "bert": (hf.BertConfig, "Bert", {"max_position_embeddings": LIMIT}),
    "roberta": (hf.RobertaConfig, "Roberta", {"max_position_embeddings": LIMIT + 2}),
    "distilbert": (
        hf.DistilBertConfig,
        "DistilBert",
        {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "max_position_embeddings": LIMIT},
    ),
    "albert": (hf.AlbertConfig, "Albert", {"embedding_size": 16, "max_position_embeddings": LIMIT}),
    "electra": (hf.ElectraConfig, "Electra", {"embedding_size": 16, "max_position_embeddings": LIMIT}),
    "deberta": (
        hf.DebertaConfig,
        "Deberta",
        {"relative_attention": True, "pos_att_type": "c2p|p2c", "type_vocab_size": 0, "max_position_embeddings": LIMIT},
    ),
    "deberta_v2": (
        hf.DebertaV2Config,
        "DebertaV2",
        {"relative_attention": True, "pos_att_type": "c2p|p2c", "type_vocab_size": 0, "max_position_embeddings": LIMIT},
    ),
    "mpnet": (hf.MPNetConfig, "MPNet", {"max_position_embeddings": LIMIT + 2}),
    "gpt2": (hf.GPT2Config, "GPT2", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": LIMIT}),
    "llama": (hf.LlamaConfig, "Llama", {"num_key_value_heads": 2, "max_position_embeddings": LIMIT}),
    "averaging": (AveragingConfig, "Averaging", {"hidden_size": 32, "max_position_embeddings": LIMIT}),
}


def tokenizer_of(kind: str) -> Any:
    """The kind of tokenizer that this architecture is used with."""
    return _TOKENIZER_OF.get(kind, bert_tokenizer)()


def label_names(n: int) -> tuple[str, ...]:
    return ("negative", "positive") if n == 2 else tuple(f"label {number}" for number in range(n))


def model(
    kind: str, *, labels: int = 2, tokenizer: Any = None, seed: int = 0, head: str | None = None, **own: Any
) -> Any:
    """A bare Hugging Face model of this architecture: a classifier, or another `head` such as `MaskedLM`."""
    config, tokenizer = _config(kind, labels, tokenizer or tokenizer_of(kind), own)
    name = f"{_FAMILIES[kind][1]}For{head or 'SequenceClassification'}"
    built = getattr(averaging if kind == "averaging" else hf, name)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return built(config).eval()


def transformer(
    kind: str = "bert", labels: int = 2, tokenizer: Any = None, seed: int = 0, **own: Any
) -> TransformerClassifier:
    """A classifier of this architecture with random weights, the same for the same seed."""
    tokenizer = tokenizer or tokenizer_of(kind)
    built = model(kind, labels=labels, tokenizer=tokenizer, seed=seed, **own)
    return TransformerClassifier(built, tokenizer, token_limit(built.config, tokenizer), "cpu")


@cache
def language_model() -> LanguageModel:
    """A masked language model with random weights: what it fills in makes no sense, and is always the same."""
    tokenizer = bert_tokenizer()
    built = model("bert", tokenizer=tokenizer, head="MaskedLM")
    return LanguageModel(built, tokenizer, token_limit(built.config, tokenizer), "cpu")


def save_folder(
    folder: Path, kind: str = "bert", *, labels: int = 2, tokenizer: Any = None, seed: int = 0, head: str | None = None
) -> Path:
    """Such a model as Hugging Face itself writes it to disk; tests of the door damage it afterwards."""
    tokenizer = tokenizer or tokenizer_of(kind)
    model(kind, labels=labels, tokenizer=tokenizer, seed=seed, head=head).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _config(kind: str, labels: int, tokenizer: Any, asked: Mapping[str, Any]) -> tuple[Any, Any]:
    make, _, own = _FAMILIES[kind]
    names = dict(enumerate(label_names(labels)))
    sizes = {} if kind in ("distilbert", "gpt2", "averaging") else _SMALL
    return make(
        vocab_size=len(tokenizer),
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        id2label=names,
        label2id={name: number for number, name in names.items()},
        **({"initializer_range": 0.3} | sizes | own | asked),
    ), tokenizer


# -- a classifier whose every answer is known beforehand


def bag_of_words(
    weights: Mapping[str, float], *, bias: float = 0.0, name: str | None = None, asked: list[Any] | None = None
) -> PredictFunction:
    """P(positive) = sigmoid(bias + the sum of the weights of the text's words); words without a weight count 0.

    What is asked of it is appended to `asked`, text by text.
    """

    def predict(texts: Any) -> Any:
        if asked is not None:
            asked.extend(texts)
        logits = [bias + sum(weights.get(word, 0.0) for word in Words(text).strings) for text in texts]
        return np.array([(1 / (1 + math.exp(x)), 1 / (1 + math.exp(-x))) for x in logits])

    return PredictFunction(predict, ("negative", "positive"), name or repr((sorted(weights.items()), bias)))
