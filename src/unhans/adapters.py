"""Low-rank adapters (LoRA) inside a model, through the `peft` library: for models too large to train whole."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from unhans.errors import Unsupported

_HEADS = ("classifier", "score", "pre_classifier", "classification_head", "out_proj")


def add_adapters(model: Any, rank: int, *, seed: int) -> None:
    """Freeze the model but for its head, and put trainable low-rank additions beside its linear layers, in place.

    They begin at zero, so that the model says what it said before.
    """
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError as error:
        raise Unsupported("Low-rank adapters need peft: pip install 'unhans[lora]'.") from error
    head = {name for name, _ in model.named_modules() if name.split(".")[0] in _HEADS}
    inner = [name for name, part in model.named_modules() if type(part) is nn.Linear and name not in head]
    if not inner:
        raise Unsupported("This model has no linear layers for adapters. Train all its weights: lora=0.")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        config = LoraConfig(r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules=inner)
        inject_adapter_in_model(config, model)
    for name, weight in model.named_parameters():
        weight.requires_grad_("lora_" in name or name.split(".")[0] in _HEADS)


def merge_adapters(model: Any) -> None:
    """Add what the adapters learned to the weights, and take them out: the model is of its own kind again."""
    from peft.tuners.lora import LoraLayer

    for name, part in list(model.named_modules()):
        if isinstance(part, LoraLayer):
            part.merge()
            parent, _, own = name.rpartition(".")
            setattr(model.get_submodule(parent), own, part.get_base_layer())
    for attribute in ("peft_config", "_hf_peft_config_loaded", "active_adapter"):
        model.__dict__.pop(attribute, None)
