"""A deep averaging network (Iyyer et al. 2015): mean of the word embeddings, linear layers with ReLUs, labels.

The plainest neural text classifier, trained in seconds: a baseline for transformers, and a model for the methods that
only work on plain feed-forward paths. It saves and loads as any Hugging Face classifier does.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForSequenceClassification, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput


class AveragingConfig(PreTrainedConfig):  # type: ignore[misc]
    """The sizes of one."""

    model_type = "averaging"

    def __init__(  # noqa: PLR0917 - Hugging Face passes them by name
        self,
        vocab_size: int = 4000,
        hidden_size: int = 64,
        hidden_layers: int = 2,
        max_position_embeddings: int = 512,
        initializer_range: float = 0.1,
        pad_token_id: int = 0,
        **rest: Any,
    ) -> None:
        self.vocab_size, self.hidden_size, self.hidden_layers = vocab_size, hidden_size, hidden_layers
        self.max_position_embeddings, self.initializer_range = max_position_embeddings, initializer_range
        super().__init__(pad_token_id=pad_token_id, **rest)


class AveragingForSequenceClassification(PreTrainedModel):  # type: ignore[misc]
    """The network. Neither order nor position plays a part."""

    config_class = AveragingConfig
    base_model_prefix = "averaging"

    def __init__(self, config: AveragingConfig) -> None:
        super().__init__(config)
        width = config.hidden_size
        self.embeddings = nn.Embedding(config.vocab_size, width)
        self.layers = nn.Sequential(
            *(part for _ in range(config.hidden_layers) for part in (nn.Linear(width, width), nn.ReLU()))
        )
        self.classifier = nn.Linear(width, config.num_labels)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        spread = self.config.initializer_range
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=spread)

    def get_input_embeddings(self) -> nn.Module:
        """The word embeddings."""
        return self.embeddings

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        **_: Any,
    ) -> SequenceClassifierOutput:
        """Logits from ids or embeddings; what the mask hides does not count."""
        words = self.embeddings(input_ids) if inputs_embeds is None else inputs_embeds
        mask = words.new_ones(words.shape[:2]) if attention_mask is None else attention_mask.to(words.dtype)
        state = (words * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
        return SequenceClassifierOutput(logits=self.classifier(self.layers(state)))


AutoConfig.register("averaging", AveragingConfig)
AutoModelForSequenceClassification.register(AveragingConfig, AveragingForSequenceClassification)
