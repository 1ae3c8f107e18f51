"""Small transformers from scratch: a vocabulary fitted on the user's texts and a little BERT around it.

For the demo, for tests, and for everyone who needs a classifier or a masked language model where no hub can be reached.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, BertTokenizerFast

from unhans.averaging import AveragingConfig, AveragingForSequenceClassification
from unhans.model import TransformerClassifier

_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def fresh_tokenizer(texts: Iterable[str], *, vocab_size: int = 4000, max_length: int = 128) -> Any:
    """An uncased WordPiece tokenizer whose vocabulary is fitted on these texts, always the same for the same texts."""
    pieces = _vocabulary(texts, vocab_size)
    tokenizer = Tokenizer(models.WordPiece({piece: n for n, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
    return BertTokenizerFast(tokenizer_object=tokenizer, model_max_length=max_length)


def _vocabulary(texts: Iterable[str], size: int) -> list[str]:
    """Every character, then the commonest words, then the commonest word endings.

    Chosen by count and then by alphabet. The library's own WordPiece trainer breaks ties by chance, so that the same
    seed would give another model in every process.
    """
    normalise, split = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    words = Counter(word for text in texts for word, _ in split.pre_tokenize_str(normalise.normalize_str(text)))
    signs = sorted({sign for word in words for sign in word})
    endings: Counter[str] = Counter()
    for word, count in words.items():
        endings.update({f"##{word[-length:]}": count for length in range(2, 5) if len(word) > length})
    room = max(0, size - len(_SPECIAL) - 2 * len(signs))
    common = _commonest(words, room * 9 // 10)
    pieces = [*_SPECIAL, *signs, *(f"##{sign}" for sign in signs), *common]
    return list(dict.fromkeys([*pieces, *_commonest(endings, room - len(common))]))


def _commonest(counts: Counter[str], n: int) -> list[str]:
    return sorted(counts, key=lambda piece: (-counts[piece], piece))[:n]


def fresh_classifier(
    texts: Iterable[str],
    labels: Sequence[str],
    *,
    layers: int = 2,
    width: int = 128,
    vocab_size: int = 4000,
    max_length: int = 128,
    seed: int = 0,
) -> TransformerClassifier:
    """An untrained little BERT with these labels; `training.fit` makes it a classifier."""
    tokenizer = fresh_tokenizer(texts, vocab_size=vocab_size, max_length=max_length)
    names = dict(enumerate(labels))
    config = _config(tokenizer, layers, width, max_length)
    config.id2label, config.label2id = names, {name: number for number, name in names.items()}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = BertForSequenceClassification(config)
    return TransformerClassifier(model, tokenizer, max_length)


def fresh_averaging_classifier(
    texts: Iterable[str],
    labels: Sequence[str],
    *,
    layers: int = 2,
    width: int = 64,
    vocab_size: int = 4000,
    max_length: int = 512,
    seed: int = 0,
) -> TransformerClassifier:
    """An untrained deep averaging network with these labels: seconds to train, a plain path from words to labels."""
    tokenizer = fresh_tokenizer(texts, vocab_size=vocab_size, max_length=max_length)
    names = dict(enumerate(labels))
    config = AveragingConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        hidden_layers=layers,
        max_position_embeddings=max_length,
        pad_token_id=tokenizer.pad_token_id,
        id2label=names,
        label2id={name: number for number, name in names.items()},
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AveragingForSequenceClassification(config)
    return TransformerClassifier(model, tokenizer, max_length)


def fresh_language_model(
    tokenizer: Any, *, layers: int = 2, width: int = 128, max_length: int = 128, seed: int = 0
) -> Any:
    """An untrained little BERT with a language-model head."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return BertForMaskedLM(_config(tokenizer, layers, width, max_length))


def _config(tokenizer: Any, layers: int, width: int, max_length: int) -> BertConfig:
    return BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=max(1, width // 32),
        intermediate_size=4 * width,
        max_position_embeddings=max_length,
        pad_token_id=tokenizer.pad_token_id,
    )
