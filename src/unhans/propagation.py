"""Other ways of sending an output back to the inputs: forward passes in which chosen operations propagate differently.

DeepLift, LRP, guided back-propagation, deconvnets and patterns are all "gradients" in which some operations have
another slope than their derivative. A set of `Rules` is entered around a forward pass; it sees every torch operation
the model makes (`TorchFunctionMode`), whatever the architecture, and gives those it knows their own backward pass.
Values are never changed, and the model is never touched.

The changed gradient can itself be differentiated, as fixes do that train through it. Each backward pass is written in
differentiable operations, and rules hold for one way back only: a derivative of what they sent back is a true one, in
which every operation has its own slope again (`Rules.gradient`).

captum hooks module types instead, and so misses the operations that Hugging Face models write as functions or as
activation classes of their own: its DeepLift on a BERT is gradient × difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import Function
from torch.overrides import TorchFunctionMode

from unhans.errors import Unsupported

Slope = Callable[[Tensor], Tensor]
_BENT = (  # functions like a ReLU
    *(F.relu, torch.relu, Tensor.relu, F.relu6, F.hardswish, F.leaky_relu, F.elu, F.celu, F.selu),
    *(F.gelu, F.silu, F.mish, F.softplus),
)
_ACTIVATIONS = (*_BENT, torch.tanh, F.tanh, Tensor.tanh, torch.sigmoid, F.sigmoid, Tensor.sigmoid, F.hardsigmoid)
_PRODUCTS = (torch.mul, Tensor.mul, torch.multiply)
_QUOTIENTS = (torch.div, Tensor.div, torch.true_divide)
_MATMULS = (torch.matmul, Tensor.matmul, torch.bmm, Tensor.bmm)
_BIASED_MATMULS = (torch.baddbmm, Tensor.baddbmm)
_POWERS = (torch.pow, Tensor.pow, Tensor.square, torch.square, torch.sqrt, Tensor.sqrt, torch.rsqrt, Tensor.rsqrt)
_SOFTMAXES = (F.softmax, torch.softmax, Tensor.softmax)


class Rules(TorchFunctionMode):
    """Plain back-propagation, with attention taken apart into its matrix products; subclasses change operations.

    Activation classes of transformers that consist of several operations count as one.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.changing = True  # whether operations send back what the rules say, or their derivative
        self.rows = 1  # of the input
        self._composed = [m for m in model.modules() if type(m).__module__ == "transformers.activations"]
        self._table: dict[Any, Callable[..., Any]] = {
            **dict.fromkeys(_ACTIVATIONS, self._activation),
            **dict.fromkeys(_PRODUCTS, self._product),
            **dict.fromkeys(_QUOTIENTS, self._quotient),
            **dict.fromkeys(_MATMULS, self._matmul),
            **dict.fromkeys(_BIASED_MATMULS, self._biased_matmul),
            **dict.fromkeys(_POWERS, self._power),
            **dict.fromkeys(_SOFTMAXES, self._softmax),
            F.hardtanh: self._hardtanh,
            F.layer_norm: self._layer_norm,
            F.linear: self._linear,
            torch.addmm: self._linear,
            F.conv2d: self._convolution,
            F.scaled_dot_product_attention: self._attention,
        }

    def __enter__(self) -> Self:
        for module in self._composed:
            module.forward = self._as_one(type(module).forward.__get__(module))
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)  # type: ignore[no-untyped-call]
        for module in self._composed:
            del module.forward

    def __torch_function__(
        self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        rule = self._table.get(function)
        found = function(*args, **kwargs) if rule is None else rule(function, *args, **kwargs)
        if any(_from_input(arg) for arg in (*args, *kwargs.values())):
            _mark(found)
        return found

    def follow(self, source: Tensor) -> None:
        """Take this for the input; what is computed from it is told from weights and constants."""
        self.rows = len(source)
        _mark(source)

    def gradient(self, outputs: Tensor, source: Tensor, create_graph: bool) -> Tensor:
        """What the rules send back to the input; only now, for whatever comes later asks for derivatives."""
        self.outputs = outputs.detach()
        try:
            return torch.autograd.grad(outputs.sum(), source, create_graph=create_graph)[0]
        finally:
            self.changing = False

    def _as_one(self, function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        def forward(x: Tensor) -> Tensor:
            with torch._C.DisableTorchFunction():  # what it does inside is its own affair
                found = self.elementwise(function, x, bent=True)
            _mark(found)
            return found

        return forward

    # -- torch's many spellings, brought to the few operations below

    def _activation(self, function: Any, x: Tensor, *rest: Any, **options: Any) -> Tensor:
        options.pop("inplace", None)
        return self.elementwise(lambda t: function(t, *rest, **options), x, bent=function in _BENT)

    def _hardtanh(
        self, function: Any, x: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
    ) -> Tensor:
        # nn.ReLU6 is one; one that lets negative values through is no more like a ReLU than tanh is
        return self.elementwise(lambda t: function(t, min_val, max_val), x, bent=min_val >= 0)

    def _product(self, function: Any, a: Any, b: Any, **options: Any) -> Tensor:
        return self.product(a, b) if _from_input(a) and _from_input(b) else function(a, b, **options)

    def _quotient(self, function: Any, a: Any, b: Any, **options: Any) -> Tensor:
        return (
            self.product(a, self.power(torch.reciprocal, b))
            if _from_input(a) and _from_input(b)
            else function(a, b, **options)
        )

    def _matmul(self, function: Any, a: Tensor, b: Tensor, **options: Any) -> Tensor:
        return self.matmul(a, b) if _from_input(a) and _from_input(b) else function(a, b, **options)

    def _biased_matmul(
        self, function: Any, input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1.0, alpha: float = 1.0
    ) -> Tensor:
        if not (_from_input(batch1) and _from_input(batch2)):
            return function(input, batch1, batch2, beta=beta, alpha=alpha)  # type: ignore[no-any-return]
        product = alpha * self.matmul(batch1, batch2)
        return beta * input + product if beta else product  # as torch: times 0, what is not a number does not count

    def _power(self, function: Any, x: Any, *rest: Any, **options: Any) -> Tensor:
        if not _from_input(x):
            return function(x, *rest, **options)  # type: ignore[no-any-return]
        return self.power(lambda t: function(t, *rest, **options), x)

    def _softmax(self, function: Any, x: Tensor, dim: int | None = None, *_: Any, **options: Any) -> Tensor:
        dtype = options.get("dtype")
        return self.softmax(x if dtype is None else x.to(dtype), -1 if dim is None else dim)

    def _layer_norm(  # noqa: PLR0917 - torch's own signature
        self,
        function: Any,
        x: Tensor,
        shape: Sequence[int],
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        places = tuple(range(-len(shape), 0))
        normed = self.normalised(x - x.mean(places, keepdim=True), places, eps)
        normed = normed if weight is None else normed * weight
        return normed if bias is None else normed + bias

    def _linear(self, function: Any, *args: Any, **options: Any) -> Tensor:
        if function is torch.addmm:  # GPT-2 writes its linear layers so: bias, input, weight
            bias, x, weight = args
            return self.linear(x, weight.t(), bias)
        return self.linear(*args, **options)

    def _convolution(  # noqa: PLR0917 - torch's own signature
        self,
        function: Any,
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        return self.convolution(input, weight, bias, **how)

    def _attention(  # noqa: PLR0917 - torch's own signature
        self,
        function: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        if enable_gqa:
            groups = query.shape[-3] // key.shape[-3]
            key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
        scores = self.matmul(query * (scale or query.shape[-1] ** -0.5), key.transpose(-1, -2))
        least = torch.finfo(scores.dtype).min / 2  # not minus infinity: a row of nothing else would have no softmax
        if is_causal:
            attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, least)
        elif attn_mask is not None:
            scores = (scores + attn_mask).clamp(min=least)
        return self.matmul(self.softmax(scores, -1), value)

    # -- the operations that rules change

    def elementwise(self, function: Slope, x: Tensor, bent: bool) -> Tensor:
        """An activation; `bent` if it lets positive values through and holds negative ones back, as a ReLU does."""
        return function(x)

    def power(self, function: Slope, x: Tensor) -> Tensor:
        """A power, root or reciprocal of each value: parts of normalisations."""
        return function(x)

    def product(self, a: Tensor, b: Tensor) -> Tensor:
        """The product of two values that both come from the input."""
        return a * b

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        """The matrix product of two values that both come from the input."""
        return a @ b

    def softmax(self, x: Tensor, dim: int) -> Tensor:
        """Attention's own normalisation."""
        return x.softmax(dim)

    def normalised(self, centred: Tensor, places: tuple[int, ...], eps: float) -> Tensor:
        """A layer normalisation's division by the standard deviation."""
        return centred * (centred.square().mean(places, keepdim=True) + eps).rsqrt()

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """A layer of weights."""
        return F.linear(x, weight, bias)

    def convolution(self, x: Tensor, weight: Tensor, bias: Tensor | None, **how: Any) -> Tensor:
        """A layer of weights that looks at one patch of a picture after another; `how` is its geometry."""
        return F.conv2d(x, weight, bias, **how)


class Guided(Rules):
    """Guided back-propagation: only positive gradients pass an activation, where its input was positive."""

    def elementwise(self, function: Slope, x: Tensor, bent: bool) -> Tensor:
        """Its derivative, times what is positive of the gradient."""
        return _apply(_Clamped, self, function(x)) if bent else function(x)


class Deconvnet(Rules):
    """Deconvnets: only positive gradients pass an activation, whatever its input was."""

    def elementwise(self, function: Slope, x: Tensor, bent: bool) -> Tensor:
        """What is positive of the gradient."""
        return _apply(_Sloped, self, x, function, torch.ones_like, True) if bent else function(x)


class LayerwiseRelevance(Rules):
    """Layer-wise relevance propagation, as input × changed gradient.

    Activations and normalisations pass relevance on as if they were linear with the slope they have from the origin;
    what an activation gives there, such as a sigmoid's half, counts as a bias.
    Attention-aware (AttnLRP, arXiv:2402.05602): both factors of a product get half, the softmax its derivative.
    Otherwise attention weights count as constants (arXiv:2202.07304). `epsilon` damps relevance that passes through
    sums near zero.
    """

    def __init__(self, model: nn.Module, *, attention_aware: bool, epsilon: float) -> None:
        super().__init__(model)
        self._aware, self._epsilon = attention_aware, epsilon

    def elementwise(self, function: Slope, x: Tensor, bent: bool) -> Tensor:
        """Rise of the output per input."""
        return _apply(_Sloped, self, x, function, lambda t: _from_origin(function, t), False)

    def power(self, function: Slope, x: Tensor) -> Tensor:
        """A constant: it is only met where values are normalised."""
        return self._constant(function(x))

    def product(self, a: Tensor, b: Tensor) -> Tensor:
        """Half to each."""
        return _apply(_Halved, self, a) * _apply(_Halved, self, b)

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        """Half to each; where attention weights are constants, all to the values."""
        if self._aware:
            return _apply(_Halved, self, a) @ _apply(_Halved, self, b)
        return a @ b

    def softmax(self, x: Tensor, dim: int) -> Tensor:
        """Its derivative, or a constant."""
        return x.softmax(dim) if self._aware else self._constant(x.softmax(dim))

    def normalised(self, centred: Tensor, places: tuple[int, ...], eps: float) -> Tensor:
        """Division by a constant."""

        def scale(t: Tensor) -> Tensor:
            return (t.square().mean(places, keepdim=True) + eps).rsqrt().expand_as(t)

        return _apply(_Sloped, self, centred, lambda t: t * scale(t), scale, False)

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """The epsilon rule."""
        return self._damped(F.linear(x, weight, bias))

    def convolution(self, x: Tensor, weight: Tensor, bias: Tensor | None, **how: Any) -> Tensor:
        """The epsilon rule."""
        return self._damped(F.conv2d(x, weight, bias, **how))

    def _damped(self, z: Tensor) -> Tensor:
        if not self._epsilon:
            return z

        def damped(t: Tensor) -> Tensor:
            return t / (t + self._epsilon * torch.where(t < 0, -1.0, 1.0))

        return _apply(_Sloped, self, z, lambda t: t.clone(), damped, False)

    def _constant(self, x: Tensor) -> Tensor:
        held = _apply(_Held, self, x)
        held._constant = True  # type: ignore[attr-defined]
        return held


class Differences(Rules):
    """DeepLift's rescale rule, for every operation of a transformer: slopes between two inputs instead of at one.

    The first half of the batch holds the texts, the second their references. Each rule is exact: slope times the
    difference of the inputs is the difference of the outputs, so the scores add up to the difference of the logits.
    What comes back to the texts never passes through their references, which are sent nothing: half the work.
    """

    def elementwise(self, function: Slope, x: Tensor, bent: bool) -> Tensor:
        """Difference of the outputs per difference of the inputs."""
        return _apply(_Secant, self, x, function)

    def power(self, function: Slope, x: Tensor) -> Tensor:
        """As any function of one value."""
        return self.elementwise(function, x, bent=False)

    def product(self, a: Tensor, b: Tensor) -> Tensor:
        """Each factor times the mean of the other: ab - a'b' = (a - a')(b + b')/2 + (b - b')(a + a')/2."""
        return _apply(_MeanProduct, self, a, b, torch.mul)

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        """The same for matrices."""
        return _apply(_MeanProduct, self, a, b, torch.matmul)

    def softmax(self, x: Tensor, dim: int) -> Tensor:
        """Logarithmic means of the weights, which make it exact and never explode."""
        return _apply(_SoftmaxBetween, self, x, dim)

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """As it is, for the texts alone."""
        return _apply(_LinearForTexts, self, x, weight, bias) if _from_input(x) else F.linear(x, weight, bias)

    def normalised(self, centred: Tensor, places: tuple[int, ...], eps: float) -> Tensor:
        """Squares, their mean, its root's reciprocal, and a product."""
        variance = self.power(torch.square, centred).mean(places, keepdim=True)
        return self.product(centred, self.power(lambda t: (t + eps).rsqrt(), variance))


class Patterns(Rules):
    """PatternNet and PatternAttribution: linear layers send back what carries their signal, not their weights.

    Only for models whose path from embeddings to logits is made of linear layers, ReLUs and averages.
    """

    def __init__(self, model: nn.Module, patterns: Sequence[Tensor]) -> None:
        super().__init__(model)
        self._patterns = iter(patterns)

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """Back through the next layer's pattern."""
        return _apply(_Replaced, x, weight, bias, next(self._patterns))

    def convolution(self, x: Tensor, weight: Tensor, bias: Tensor | None, **how: Any) -> Tensor:
        """Back through the next layer's pattern, patch by patch."""
        other = F.conv2d(x, next(self._patterns).view_as(weight), None, **how)
        return sent_through(F.conv2d(x, weight, bias, **how), other, 1.0)


class Watching(Rules):
    """Changes nothing; keeps what linear layers get and give, and the attention weights, in the order they occur."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model)
        self.linears: list[tuple[Tensor, Tensor, Tensor]] = []  # input, weight, output
        self.attentions: list[Tensor] = []  # rows × heads × tokens × tokens
        self.plain = True  # whether the model is made of linear layers, ReLUs and averages

    def elementwise(self, function: Slope, x: Tensor, bent: bool) -> Tensor:
        """As it is; only a ReLU lets patterns through."""
        y = function(x)
        self.plain = self.plain and torch.equal(y, x.relu())
        return y

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        """As it is; not a plain path any more."""
        self.plain = False
        return a @ b

    def normalised(self, centred: Tensor, places: tuple[int, ...], eps: float) -> Tensor:
        """As it is; not a plain path any more."""
        self.plain = False
        return super().normalised(centred, places, eps)

    def softmax(self, x: Tensor, dim: int) -> Tensor:
        """As it is, and kept."""
        self.plain = False
        weights = x.softmax(dim)
        if weights.dim() == 4:
            self.attentions.append(weights)
        return weights

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """As it is, and kept."""
        y = F.linear(x, weight, bias)
        self.linears.append((x, weight, y))
        return y

    def convolution(self, x: Tensor, weight: Tensor, bias: Tensor | None, **how: Any) -> Tensor:
        """As it is, and kept as the linear layer that it is for every patch."""
        y = F.conv2d(x, weight, bias, **how)
        if how.pop("groups") != 1 or isinstance(how["padding"], str):
            self.plain = False
            return y
        patches = F.unfold(x, weight.shape[2:], **how).transpose(1, 2)
        self.linears.append((patches, weight.flatten(1), y.flatten(2).transpose(1, 2)))
        return y


def sent_through(value: Tensor, other: Tensor, share: Tensor | float) -> Tensor:
    """A value whose gradient goes back by way of another, times a share."""
    return value.detach() + (other - other.detach()) * share


def _apply(function: type[Function], *args: Any) -> Tensor:
    return function.apply(*args)  # type: ignore[no-any-return, no-untyped-call]


class _Sloped(Function):
    """A function with a slope of our own."""

    @staticmethod
    def forward(ctx: Any, rules: Rules, x: Tensor, function: Slope, slope: Slope, positive: bool) -> Tensor:  # noqa: PLR0917
        ctx.save_for_backward(x)
        ctx.rules, ctx.function, ctx.slope, ctx.positive = rules, function, slope, positive
        return function(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        if not ctx.rules.changing:
            return None, *_derivatives(ctx.function, gradient, x), None, None, None
        return None, (gradient.relu() if ctx.positive else gradient) * ctx.slope(x), None, None, None


class _Clamped(Function):
    """Nothing, but that negative gradients stop here."""

    @staticmethod
    def forward(ctx: Any, rules: Rules, x: Tensor) -> Tensor:
        ctx.rules = rules
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return None, gradient.relu() if ctx.rules.changing else gradient


class _Halved(Function):
    """Nothing, but that half of the gradient passes."""

    @staticmethod
    def forward(ctx: Any, rules: Rules, x: Tensor) -> Tensor:
        ctx.rules = rules
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return None, gradient / 2 if ctx.rules.changing else gradient


class _Held(Function):
    """Nothing, but that no gradient passes."""

    @staticmethod
    def forward(ctx: Any, rules: Rules, x: Tensor) -> Tensor:
        ctx.rules = rules
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return None, None if ctx.rules.changing else gradient


class _Secant(Function):
    """A function of each value whose slope is that between text and reference."""

    @staticmethod
    def forward(ctx: Any, rules: Rules, x: Tensor, function: Slope) -> Tensor:
        y = function(x)
        ctx.save_for_backward(x, y)
        ctx.rules, ctx.function = rules, function
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        x, y = ctx.saved_tensors
        if not ctx.rules.changing:
            return None, *_derivatives(ctx.function, gradient, x), None
        return None, _to_texts(_texts(gradient, ctx.rules) * _secant(ctx.function, x, y)), None


class _MeanProduct(Function):
    """A product whose factors each see the mean of the other over text and reference."""

    @staticmethod
    def forward(ctx: Any, rules: Rules, a: Tensor, b: Tensor, multiply: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        ctx.save_for_backward(a, b)
        ctx.rules, ctx.multiply = rules, multiply
        return multiply(a, b)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        a, b = ctx.saved_tensors
        if not ctx.rules.changing:
            return None, *_derivatives(ctx.multiply, gradient, a, b), None
        back = _texts(gradient, ctx.rules, a, b)
        mean_a, mean_b = (sum(t.chunk(2)) / 2 for t in (a, b))
        if ctx.multiply is torch.mul:
            to_a, to_b = (back * mean_b).sum_to_size(mean_a.shape), (back * mean_a).sum_to_size(mean_b.shape)
        else:
            to_a, to_b = back @ mean_b.transpose(-1, -2), mean_a.transpose(-1, -2) @ back
        return None, _to_texts(to_a), _to_texts(to_b), None


class _SoftmaxBetween(Function):
    """A softmax with the slope between text and reference.

    log s is x up to a constant, so s - s' = L(s, s')·(x - x' - c) with the logarithmic mean L; that the differences
    cancel gives c = ΣL(x - x') / ΣL. The slope is then diag(L) - LLᵀ/ΣL: the softmax's own Jacobian, with L for s.
    """

    @staticmethod
    def forward(ctx: Any, rules: Rules, x: Tensor, dim: int) -> Tensor:
        ctx.save_for_backward(x)
        ctx.rules, ctx.dim = rules, dim
        return x.softmax(dim)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        if not ctx.rules.changing:
            return None, *_derivatives(lambda t: t.softmax(ctx.dim), gradient, x), None
        back = _texts(gradient, ctx.rules)
        first, second = x.log_softmax(ctx.dim).chunk(2)
        gap = first - second
        near = gap.abs() < 1e-2
        means = torch.where(
            near, ((first + second) / 2).exp(), (first.exp() - second.exp()) / torch.where(near, 1.0, gap)
        )
        total = means.sum(ctx.dim, keepdim=True)
        return None, _to_texts(means * (back - (means * back).sum(ctx.dim, keepdim=True) / total)), None


class _LinearForTexts(Function):
    """A linear layer; its references are sent nothing."""

    @staticmethod
    def forward(ctx: Any, rules: Rules, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight, bias)
        ctx.rules = rules
        return F.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        x, weight, bias = ctx.saved_tensors
        if ctx.rules.changing:
            return None, _to_texts(_texts(gradient, ctx.rules) @ weight), None, None
        inputs = (x, weight) if bias is None else (x, weight, bias)
        return None, *_derivatives(F.linear, gradient, *inputs), *([None] if bias is None else [])


class _Replaced(Function):
    """A linear layer whose gradient goes back through other weights."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, back: Tensor) -> Tensor:
        ctx.save_for_backward(back)
        return F.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return gradient @ ctx.saved_tensors[0], None, None, None


def does_not_add_up() -> Unsupported:
    """What to say of a model on which slopes between texts and references do not tell the rise between the two."""
    return Unsupported(
        "DeepLift's scores do not add up to the rise of the logit on this model, which has operations that no rule is "
        "for, rows that are not its texts, or a baseline that it cannot be compared with (such as an embedding of "
        "zeros before a normalisation). integrated_gradients works with it."
    )


def _derivatives(function: Callable[..., Tensor], gradient: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    """What the function sends back to each input by itself."""
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        # views, because one input may have been computed from another
        leaves = [x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in inputs]
        return torch.autograd.grad(function(*leaves), leaves, gradient, create_graph=again)


def _secant(function: Slope, x: Tensor, y: Tensor) -> Tensor:
    """Slope between texts and references; where they nearly meet, the slope half-way: as exact, and does not round."""
    (first, second), (high, low) = x.chunk(2), y.chunk(2)
    gap = first - second
    near = gap.abs() <= 1e-3 * (first.abs() + second.abs())
    return _half_way((high - low) / torch.where(near, 1.0, gap), near, function, (first + second) / 2)


def _from_origin(function: Slope, x: Tensor) -> Tensor:
    """Slope from the origin; near it the slope half-way, for the difference of two nearly equal values is rounded."""
    near = x.abs() < torch.finfo(x.dtype).eps ** (1 / 3)
    rise = function(x) - function(x.new_zeros(()))
    return _half_way(rise / torch.where(near, 1.0, x), near, function, x / 2)


def _half_way(slope: Tensor, near: Tensor, function: Slope, middle: Tensor) -> Tensor:
    """The slopes, where it is near replaced by the derivative in the middle."""
    if not near.any():
        return slope
    some = middle[near]
    return slope.masked_scatter(near, *_derivatives(function, torch.ones_like(some), some))


def _texts(gradient: Tensor, rules: Rules, *factors: Tensor) -> Tensor:
    """The half that belongs to texts, if the first dimension is that of texts, here and in what was multiplied."""
    if any(t.dim() != gradient.dim() or t.shape[:1].numel() % rules.rows for t in (gradient, *factors)):
        raise does_not_add_up()
    return gradient[: len(gradient) // 2]


def _to_texts(back: Tensor) -> Tensor:
    """To texts this, to their references nothing."""
    return torch.cat([back, torch.zeros_like(back)])


def _mark(found: Any) -> None:
    for one in found if isinstance(found, tuple | list) else (found,):
        # not what a rule made a constant
        if isinstance(one, Tensor) and one.requires_grad and not getattr(one, "_constant", False):
            one._from_input = True  # type: ignore[attr-defined]  # weights require gradients too: that does not tell


def _from_input(value: Any) -> bool:
    if isinstance(value, tuple | list):  # as for `cat`
        return any(map(_from_input, value))
    return isinstance(value, Tensor) and getattr(value, "_from_input", False)
