"""Run a transformer on many texts of different length without a single padded cell, and exactly.

The rows of a batch are laid end to end as one long row. Every layer but attention works on single tokens and does not
notice; attention is computed row by row (rows of equal length together), through the attention hook that transformers
offers. After the last layer only the positions that the head reads are kept, and in BERT-shaped models the last layer
is evaluated for those alone. The results are the model's own numbers.

Gradients by the embeddings go the same way (`from_embeddings`), in evaluation mode; training is left to the plain way.

A model qualifies when its architecture takes attention from outside and a trial at load time agrees with the plain
forward pass (for gradients, at their first use, with the plain backward pass). Any other model (DeBERTa, MPNet,
decoders, …) is run plainly, in batches of equal or nearly equal length.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, groupby
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from unhans.scoring import batches_by_length
from unhans.tokens import Row, padded

_TOLERANCE = 1e-5
MAX_PADDING = 0.02  # share of padded cells a plain batch may have


@dataclass
class _Plan:
    """How a long row is made of rows: (first token, number of rows, their length), and what the head reads."""

    groups: list[tuple[int, int, int]]
    reads: Tensor
    one_read_each: bool
    attended: int = field(default=0)


class _PlainFormula:
    """Attention by the plain formula, which fused attention lacks: a second derivative.

    Torch's switch for it holds for the whole process. So it stays over while any thread needs it, and the last one
    turns it back. Who does not need it gets the same numbers meanwhile, but for rounding, only more slowly.
    """

    def __init__(self) -> None:
        self._alone, self._users, self._turned = threading.Lock(), 0, ExitStack()

    def __enter__(self) -> None:
        with self._alone:
            if not self._users:
                self._turned.enter_context(sdpa_kernel(SDPBackend.MATH))
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._alone:
            self._users -= 1
            if not self._users:
                self._turned.close()


twice_differentiable = _PlainFormula()
_plan: ContextVar[_Plan | None] = ContextVar("plan", default=None)


def _attend(query: Tensor, key: Tensor, value: Tensor, groups: list[tuple[int, int, int]], scale: float) -> Tensor:
    """Attention within each row; tensors are tokens × heads × size. With one query per row, tokens are rows."""
    sizes = [n * length for _, n, length in groups]
    asked = sizes if query.shape[0] == key.shape[0] else [n for _, n, _ in groups]
    outputs = []
    # split and not sliced: a slice's way back writes zeros for all other rows
    split = (x.split_with_sizes(own) for x, own in ((query, asked), (key, sizes), (value, sizes)))
    for (_, n, _), *parts in zip(groups, *split, strict=True):
        q, k, v = (x.reshape(n, -1, *x.shape[1:]).transpose(1, 2) for x in parts)
        outputs.append(scaled_dot_product_attention(q, k, v, scale=scale).transpose(1, 2).flatten(0, 1))
    return torch.cat(outputs)


def _packed_attention(  # noqa: PLR0917 - the signature transformers calls
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attention as transformers calls it (1 × heads × tokens × size), on the rows of the current plan."""
    plan = _plan.get()
    assert plan is not None, "packed attention only runs inside Forward"
    plan.attended += 1
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    q, k, v = (x.squeeze(0).transpose(0, 1) for x in (query, key, value))
    return _attend(q, k, v, plan.groups, scale)[None], None


class Forward:
    """Logits of token rows: packed where the model allows it, plain otherwise."""

    def __init__(self, model: Any, pad_id: int | None) -> None:
        # here and not above: it takes seconds to import, which black boxes do without
        from transformers import AttentionInterface

        AttentionInterface.register("unhans_packed", _packed_attention)
        self.model, self.pad_id = model, pad_id
        self.is_causal = bool(getattr(model.config, "is_decoder", False)) or _reads_last_token(model)
        self.lock = threading.Lock()  # packing, and rules of propagation, rewire the model for the length of a call
        self._encoder, self._last_layer = _parts(model)
        self.packed = self._can_pack()

    def __call__(self, rows: Sequence[Row], reads: Sequence[Sequence[int]] | None = None) -> Tensor:
        """One line of logits per row; or, with `reads`, one per token position that is asked for, in order."""
        if self.packed:
            return self._packed(rows, reads)
        return self._plain(rows, reads)

    def padding(self, lengths: Sequence[int]) -> int:
        """How many padded cells a batch of these lengths costs."""
        return 0 if self.packed else max(lengths) * len(lengths) - sum(lengths)

    def batches(self, lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
        """Row numbers in batches of about `budget` tokens, (nearly) without padding."""
        waste = 1.0 if self.packed else 0.0 if self.is_causal else MAX_PADDING
        return batches_by_length(lengths, budget, waste)

    # -- plain

    def _plain(self, rows: Sequence[Row], reads: Sequence[Sequence[int]] | None) -> Tensor:
        lines = {"input_ids": padded([row.ids for row in rows], self.pad_id or 0)}
        if rows[0].types is not None:
            lines["token_type_ids"] = padded([row.types or () for row in rows], 0)
        if len({len(row) for row in rows}) > 1:
            lines["attention_mask"] = padded([(1,) * len(row) for row in rows], 0)
        inputs = {name: torch.tensor(values, device=self.model.device) for name, values in lines.items()}
        with self.lock:
            logits: Tensor = self.model(**inputs).logits
        if reads is None:
            return logits
        picked = [(row, position) for row, positions in enumerate(reads) for position in positions]
        return logits[[row for row, _ in picked], [position for _, position in picked]]

    # -- packed

    def _packed(self, rows: Sequence[Row], reads: Sequence[Sequence[int]] | None) -> Tensor:
        order = sorted(range(len(rows)), key=lambda number: len(rows[number]))
        ordered = [rows[number] for number in order]
        starts = [0, *accumulate(map(len, ordered))]
        asked = [reads[number] if reads else (0,) for number in order]
        flat = [start + position for start, positions in zip(starts, asked, strict=False) for position in positions]
        device = self.model.device
        inputs = {
            "input_ids": torch.tensor([[token for row in ordered for token in row.ids]], device=device),
            "position_ids": torch.tensor([[p for row in ordered for p in self._positions(row)]], device=device),
        }
        if ordered[0].types is not None:
            inputs["token_type_ids"] = torch.tensor(
                [[kind for row in ordered for kind in row.types or ()]], device=device
            )
        one_each = all(len(positions) == 1 for positions in asked)
        logits = self._run(inputs, list(map(len, ordered)), torch.tensor(flat, device=device), one_each)
        if reads is not None:
            logits = logits[:, 0]
        sizes = [len(positions) for positions in asked]
        begin = {number: start for number, start in zip(order, [0, *accumulate(sizes)], strict=False)}
        back = torch.tensor(
            [begin[n] + i for n in range(len(rows)) for i in range(len(reads[n]) if reads else 1)], device=device
        )
        return logits[back]

    def _run(self, inputs: dict[str, Tensor], lengths: Sequence[int], reads: Tensor, one_read_each: bool) -> Tensor:
        """The model on one long row made of rows of these lengths, equal ones side by side."""
        groups, at = [], 0
        for length, group in groupby(lengths):
            n = len(list(group))
            groups.append((at, n, length))
            at += n * length
        plan = _Plan(groups, reads, one_read_each)
        with self.lock, self._rewired(plan):
            logits: Tensor = self.model(**inputs).logits
        self._attended = plan.attended
        return logits

    # -- packed, from embeddings: for gradients

    def from_embeddings(self, embeddings: Tensor, mask: Tensor, types: Tensor | None) -> Tensor:
        """Logits of rows that are given as word-piece embeddings, padded on the right; they carry gradients.

        Only where `differentiates` says so.
        """
        order = mask.sum(1).argsort(stable=True)
        real = mask[order].bool()
        width = mask.shape[1]
        places = (order[:, None] * width + torch.arange(width, device=mask.device))[real]
        lengths = real.sum(1)
        shift = self._shift
        # from embeddings, Hugging Face counts straight on whatever the tokens are
        positions = torch.arange(width, device=mask.device).expand_as(mask)[real] + (0 if shift is None else shift + 1)
        inputs = {"inputs_embeds": embeddings.flatten(0, 1)[places][None], "position_ids": positions[None]}
        if types is not None:
            inputs["token_type_ids"] = types.flatten()[places][None]
        logits = self._run(inputs, lengths.tolist(), lengths.cumsum(0) - lengths, one_read_each=True)
        return logits[order.argsort()]

    @cached_property
    def differentiates(self) -> bool:
        """Whether rows can be packed for gradients too: tried once, against the plain way."""
        if not self.packed or _reads_tokens(self.model):
            return False
        rows = [_trial_row(self.model, length, self.pad_id) for length in (4, 9, 4)]
        lines = [torch.tensor(padded([getattr(row, name) or () for row in rows], 0)) for name in ("ids", "types")]
        ids, types = (line.to(self.model.device) for line in lines)
        mask = torch.tensor(padded([(1,) * len(row) for row in rows], 0), device=self.model.device)
        given = {"attention_mask": mask} | ({"token_type_ids": types} if rows[0].types is not None else {})
        leaf = self.model.get_input_embeddings()(ids).detach().requires_grad_()
        try:
            one = self.from_embeddings(leaf, mask, given.get("token_type_ids"))
            with self.lock:  # a call in another thread has the model rewired while it runs
                other: Tensor = self.model(inputs_embeds=leaf, **given).logits
            packed, plain = (torch.autograd.grad(logits[:, 0].sum(), leaf)[0] for logits in (one, other))
        except (RuntimeError, TypeError, IndexError, AttributeError, AssertionError):
            return False
        scale = float(plain.abs().max())
        return torch.allclose(one, other, atol=_TOLERANCE, rtol=1e-4) and torch.allclose(
            packed, plain, atol=_TOLERANCE * max(1.0, scale), rtol=1e-3
        )

    def _positions(self, row: Row) -> Sequence[int]:
        shift = self._shift
        if shift is None:
            return range(len(row))
        seen, positions = 0, []  # as Hugging Face numbers them: padding inside a text has no position of its own
        for token in row.ids:
            seen += token != shift
            positions.append(shift + seen if token != shift else shift)
        return positions

    @property
    def _shift(self) -> int | None:
        """RoBERTa and its kin count positions from after the padding index on."""
        embeddings = getattr(self.model.base_model, "embeddings", None)
        table = getattr(embeddings, "position_embeddings", None)
        return getattr(table, "padding_idx", None)

    @contextmanager
    def _rewired(self, plan: _Plan) -> Iterator[None]:
        """Attention from the plan, and an encoder that keeps only what the head reads."""
        config, layer = self.model.config, self._last_layer
        before = config._attn_implementation
        config._attn_implementation = "unhans_packed"
        token = _plan.set(plan)
        shortened = plan.one_read_each and layer is not None
        hook = None
        try:
            if shortened:
                layer.forward = lambda hidden, *_, **__: _read_last_layer(layer, hidden, plan)
            else:
                hook = self._encoder.register_forward_hook(_keep_reads(plan))
            yield
        finally:
            if shortened:
                del layer.forward
            if hook is not None:
                hook.remove()
            _plan.reset(token)
            config._attn_implementation = before

    def _can_pack(self) -> bool:
        """Try it: the right number of attention calls, and the same logits as the plain forward pass."""
        model = self.model
        takes_positions = "position_ids" in inspect.signature(model.base_model.forward).parameters
        if self.is_causal or self._encoder is None or not takes_positions or not model._supports_attention_backend:
            return False
        rows = [_trial_row(model, length, self.pad_id) for length in (3, 9, 5, 9, 4)]
        every = [list(range(len(row))) for row in rows]
        layers = model.config.num_hidden_layers
        reads_tokens = _reads_tokens(model)
        with torch.inference_mode():
            try:
                for asked in [None] if not reads_tokens else [every, [[1]] * len(rows)]:
                    packed = self._packed(rows, asked)
                    plain = torch.cat([self._plain([row], [asked[n]] if asked else None) for n, row in enumerate(rows)])
                    shortened = self._last_layer is not None and (asked is None or len(asked[0]) == 1)
                    if self._attended != layers - shortened or not torch.allclose(
                        packed, plain, atol=_TOLERANCE, rtol=1e-4
                    ):
                        return False
            except (RuntimeError, TypeError, IndexError, AttributeError, AssertionError):
                return False
        return True


def _trial_row(model: Any, length: int, pad_id: int | None) -> Row:
    """Some token ids that are not padding; what they mean does not matter."""
    n = model.get_input_embeddings().weight.shape[0]
    usable = [token for token in range(min(n, 50)) if token != pad_id]
    types = (0,) * length if getattr(model.config, "type_vocab_size", 0) > 0 else None
    return Row(tuple(usable[(7 * i * length + 3) % len(usable)] for i in range(length)), types)


def _reads_last_token(model: Any) -> bool:
    """Whether the classification head reads the last token, as decoder models do (their head is called `score`)."""
    return hasattr(model, "score")


def _reads_tokens(model: Any) -> bool:
    """Whether the head answers for every token (a language model) and not once per text."""
    return type(model).__name__.endswith("ForMaskedLM")


def _parts(model: Any) -> tuple[Any, Any]:
    """The encoder of a model, and its last layer if that is one we can evaluate at single positions."""
    base = model.base_model
    encoder = getattr(base, "encoder", None) or getattr(base, "transformer", None)
    layers = getattr(encoder, "layer", None)
    last = layers[-1] if layers is not None and len(layers) else None
    return encoder, last if last is not None and _last_layer_reader(last) else None


def _keep_reads(plan: _Plan) -> Callable[..., Any]:
    def hook(module: Any, inputs: Any, output: Any) -> Any:
        if isinstance(output, tuple):
            return (output[0][0, plan.reads][:, None], *output[1:])
        output["last_hidden_state"] = output["last_hidden_state"][0, plan.reads][:, None]
        return output

    return hook


def _read_last_layer(layer: Any, hidden: Tensor, plan: _Plan) -> Tensor:
    """The last layer's output at the positions that are read, one per row: rows × 1 × width."""
    reader = _last_layer_reader(layer)
    assert reader is not None  # _parts has made sure
    return reader(layer, hidden[0], plan)[:, None]


def _last_layer_reader(layer: Any) -> Callable[[Any, Tensor, _Plan], Tensor] | None:
    inner = getattr(layer, "attention", None)
    own = getattr(inner, "self", None)
    if all(hasattr(own, name) for name in ("query", "key", "value")) and hasattr(layer, "feed_forward_chunk"):
        return _bert_last_layer
    if all(hasattr(inner, name) for name in ("q_lin", "k_lin", "v_lin", "out_lin")) and hasattr(layer, "sa_layer_norm"):
        return _distilbert_last_layer
    return None


def _bert_last_layer(layer: Any, hidden: Tensor, plan: _Plan) -> Tensor:
    own, read = layer.attention.self, hidden[plan.reads]
    mixed = _single_query(own.query(read), own.key(hidden), own.value(hidden), own.num_attention_heads, plan)
    return layer.feed_forward_chunk(layer.attention.output(mixed, read))  # type: ignore[no-any-return]


def _distilbert_last_layer(layer: Any, hidden: Tensor, plan: _Plan) -> Tensor:
    own, read = layer.attention, hidden[plan.reads]
    mixed = _single_query(own.q_lin(read), own.k_lin(hidden), own.v_lin(hidden), own.n_heads, plan)
    attended = layer.sa_layer_norm(own.out_lin(mixed) + read)
    return layer.output_layer_norm(layer.ffn(attended) + attended)  # type: ignore[no-any-return]


def _single_query(query: Tensor, key: Tensor, value: Tensor, heads: int, plan: _Plan) -> Tensor:
    q, k, v = (x.reshape(len(x), heads, -1) for x in (query, key, value))
    return _attend(q, k, v, plan.groups, q.shape[-1] ** -0.5).flatten(1)
