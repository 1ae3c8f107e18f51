"""Maps of pictures against the formulas, written out slowly on networks small enough to be matrices; and captum."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from captum import attr
from torch import nn

from unhans.errors import BadData, BadOption, Cancelled, Unsupported
from unhans.vision import METHODS, ImageClassifier, attribute
from unhans.vision.attributing import regions_of

SIDE = 6
LABELS = ("a", "b", "c")


def seeded(seed, make):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def network(channels=1, *, bias=True, pool=True):
    """Two convolutions, a pooling, two linear layers."""
    side = SIDE // 2 if pool else SIDE
    return seeded(
        0,
        lambda: nn.Sequential(
            nn.Conv2d(channels, 3, 3, padding=1, bias=bias),
            nn.ReLU(),
            nn.Conv2d(3, 4, 3, padding=1, bias=bias),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2) if pool else nn.Identity(),
            nn.Flatten(),
            nn.Linear(4 * side * side, 5, bias=bias),
            nn.ReLU(),
            nn.Linear(5, 3, bias=bias),
        ).double(),
    )


def linear(channels=1):
    """Two labels; the second's logit is a sum over pixels, the first's is 0."""
    made = nn.Sequential(nn.Flatten(), nn.Linear(channels * SIDE * SIDE, 2, bias=False)).double()
    weights = torch.randn(channels * SIDE * SIDE, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    with torch.no_grad():
        made[1].weight.copy_(torch.stack([torch.zeros_like(weights), weights / 4]))
    return ImageClassifier(made, ("no", "yes"))


def pictures(n=3, channels=1, seed=0):
    return torch.rand(n, channels, SIDE, SIDE, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


COLOURED, GREY = ImageClassifier(network(3), LABELS), ImageClassifier(network(), LABELS)
BACKGROUND = pictures(40, seed=9)
TARGETS = [0, 1, 2]


def mapped(classifier, images, method, **options):
    return attribute(classifier, images, method=method, target=TARGETS[: len(images)], **options)


# -- against captum


def summed(found):
    return found.sum(1).detach().numpy()


def test_gradients_are_captums():
    images = pictures(channels=3)
    theirs = attr.Saliency(COLOURED.model).attribute(images.requires_grad_(), target=TARGETS, abs=False).detach()
    np.testing.assert_allclose(mapped(COLOURED, images, "gradient"), theirs.norm(dim=1).numpy(), rtol=1e-9)
    times = attr.InputXGradient(COLOURED.model).attribute(images, target=TARGETS)
    np.testing.assert_allclose(mapped(COLOURED, images, "input_x_gradient"), summed(times), atol=1e-12)


def test_integrated_gradients_are_captums_and_add_up():
    images = pictures(channels=3)
    theirs = attr.IntegratedGradients(COLOURED.model).attribute(images, target=TARGETS, n_steps=20)
    ours = mapped(COLOURED, images, "integrated_gradients", n_steps=20)
    np.testing.assert_allclose(ours, summed(theirs), atol=1e-12)
    exact = mapped(COLOURED, images, "integrated_gradients", n_steps=400)
    with torch.no_grad():
        rise = (COLOURED.model(images) - COLOURED.model(torch.zeros_like(images))).gather(
            1, torch.tensor(TARGETS)[:, None]
        )
    np.testing.assert_allclose(exact.sum((1, 2)), rise[:, 0].numpy(), atol=1e-3)


@pytest.mark.filterwarnings("ignore:Setting backward hooks")
@pytest.mark.parametrize(
    ("method", "theirs"), [("guided_backprop", attr.GuidedBackprop), ("deconvnet", attr.Deconvolution)]
)
def test_changed_relus_are_captums(method, theirs):
    images = pictures(channels=3).requires_grad_()
    plain = network(3)
    plain[3] = nn.ReLU()  # captum's hooks do not like it in place
    np.testing.assert_allclose(
        mapped(COLOURED, images.detach(), method), summed(theirs(plain).attribute(images, target=TARGETS)), atol=1e-12
    )


# -- against matrices


def matrices(model):
    """The layers of a network without pooling as matrices and biases, from the bottom."""
    layers = []
    for layer, channels in ((model[0], 1), (model[2], 3)):
        units = torch.eye(channels * SIDE * SIDE, dtype=torch.float64).reshape(-1, channels, SIDE, SIDE)
        weights = F.conv2d(units, layer.weight, padding=1).flatten(1).T.detach().numpy()
        layers.append((weights, biases(layer).repeat(SIDE * SIDE)))
    return layers + [(layer.weight.detach().numpy(), biases(layer)) for layer in (model[6], model[8])]


def biases(layer):
    return np.zeros(len(layer.weight)) if layer.bias is None else layer.bias.detach().numpy()


PLAIN, BIASED = network(bias=False, pool=False), network(pool=False)


def by_hand(model, send_back, start=None):
    """The maps of three pictures, layer by layer; from the logit on unless there is another start."""
    found = []
    for image, target in zip(pictures(), TARGETS, strict=True):
        x, passed = image.reshape(-1).numpy(), []
        for weights, bias in matrices(model):
            passed.append(((weights, bias), x, weights @ x + bias))
            x = np.maximum(passed[-1][2], 0)
        back = np.zeros(3)
        back[target] = passed[-1][2][target] if start is None else start
        for number in reversed(range(4)):
            back = send_back(number, *passed[number], back)
        found.append(back.reshape(SIDE, SIDE))
    return found


def test_guided_backpropagation_and_deconvnets_by_hand():
    def guided(number, layer, into, out, back):
        return layer[0].T @ (np.maximum(back, 0) * (out > 0) if number < 3 else back)

    def deconvnet(number, layer, into, out, back):
        return layer[0].T @ (np.maximum(back, 0) if number < 3 else back)

    for method, rule in (("guided_backprop", guided), ("deconvnet", deconvnet)):
        found = mapped(ImageClassifier(BIASED, LABELS), pictures(), method)
        np.testing.assert_allclose(found, by_hand(BIASED, rule, start=1.0), atol=1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_relevance_by_hand_and_nothing_is_lost(epsilon):
    def rule(number, layer, into, out, back):
        return into * (layer[0].T @ (back / (out + epsilon * np.where(out < 0, -1, 1) + (out == 0))))

    for model in (PLAIN, BIASED):
        found = mapped(ImageClassifier(model, LABELS), pictures(), "lrp_epsilon", epsilon=epsilon)
        np.testing.assert_allclose(found, by_hand(model, rule), atol=1e-9)
    whole = mapped(ImageClassifier(PLAIN, LABELS), pictures(), "lrp_epsilon", epsilon=0.0)
    np.testing.assert_allclose(whole.sum((1, 2)), PLAIN(pictures())[range(3), TARGETS].detach().numpy(), rtol=1e-6)


class Gated(nn.Module):
    """Two convolutions, one of which opens and shuts the other: two values of the picture multiplied; no biases."""

    def __init__(self):
        super().__init__()
        self.value, self.gate = (nn.Conv2d(1, 4, 3, padding=1, bias=False) for _ in range(2))
        self.head = nn.Linear(4 * SIDE**2, 3, bias=False)

    def forward(self, images):
        return self.head((self.value(images) * self.gate(images).tanh()).flatten(1))


def test_nothing_is_counted_twice_where_two_values_of_the_picture_are_multiplied():
    gated, images = seeded(0, Gated).double(), pictures()
    found = mapped(ImageClassifier(gated, LABELS), images, "lrp_epsilon", epsilon=0.0)
    np.testing.assert_allclose(found.sum((1, 2)), gated(images)[range(3), TARGETS].detach().numpy(), rtol=1e-6)


@pytest.mark.parametrize("model", [PLAIN, BIASED])
def test_preset_a_flat_by_hand(model):
    def rule(number, layer, into, out, back):
        weights, bias = layer
        if number >= 2:  # linear: epsilon
            return into * (weights.T @ (back / (out + 0.1 * np.where(out < 0, -1, 1))))
        if number == 1:  # convolution: what speaks for it
            speaks = np.maximum(weights * into, 0)
            whole = speaks.sum(1, keepdims=True) + np.maximum(bias, 0)[:, None]
            return (np.divide(speaks, whole, out=np.zeros_like(speaks), where=whole > 0) * back[:, None]).sum(0)
        touched = (weights != 0).astype(float)  # the first layer: evenly
        return (touched / touched.sum(1, keepdims=True) * back[:, None]).sum(0)

    found = mapped(ImageClassifier(model, LABELS), pictures(), "lrp_preset_a_flat")
    np.testing.assert_allclose(found, by_hand(model, rule), atol=1e-9)
    black = mapped(ImageClassifier(model, LABELS), pictures() * torch.eye(SIDE), "lrp_preset_a_flat")
    assert (np.abs(black[:, 0, 1]) > 0).all()  # beside a bright pixel, and black itself


@pytest.mark.parametrize("method", ["pattern_net", "pattern_attribution"])
def test_patterns_by_hand(method):
    """A convolution's pattern is that of a linear layer on all patches; what goes back goes through it."""
    background = pictures(30, seed=5)
    x, kernels = background, []
    for layer in (PLAIN[0], PLAIN[2]):
        y = layer(x).detach()
        patches = F.unfold(x, 3, padding=1).transpose(1, 2).reshape(-1, x.shape[1] * 9)
        kernels.append(pattern(layer, patches, y.flatten(2).transpose(1, 2).reshape(len(patches), -1), True))
        x = y.relu()
    x, dense = x.flatten(1), []
    for layer, fires in ((PLAIN[6], True), (PLAIN[8], False)):
        y = layer(x).detach()
        dense.append(pattern(layer, x, y, fires))
        x = y.relu()
    if method == "pattern_attribution":
        for own, layer in zip(kernels + dense, (PLAIN[0], PLAIN[2], PLAIN[6], PLAIN[8]), strict=True):
            own.mul_(layer.weight.detach().flatten(1))
    image = pictures(1)
    first = PLAIN[0](image)
    second = PLAIN[2](first.relu())
    third = PLAIN[6](second.relu().flatten(1))
    back = dense[1][TARGETS[0]] * (third > 0)
    back = (back @ dense[0]).view_as(second) * (second > 0)
    back = F.conv_transpose2d(back, kernels[1].view(4, 3, 3, 3), padding=1) * (first > 0)
    back = F.conv_transpose2d(back, kernels[0].view(3, 1, 3, 3), padding=1)
    found = mapped(ImageClassifier(PLAIN, LABELS), image, method, background=background)
    np.testing.assert_allclose(found, back[:, 0].detach().numpy(), rtol=1e-6, atol=1e-9)


def pattern(layer, x, y, fires):
    """Kindermans et al.'s estimator, unit by unit; of a unit that never fires, nothing."""
    rows = torch.zeros(y.shape[1], x.shape[1], dtype=torch.float64)
    for number, (unit, weights) in enumerate(zip(y.T, layer.weight.detach().flatten(1), strict=True)):
        on = unit > 0 if fires else torch.ones_like(unit, dtype=torch.bool)
        if on.any():
            own = (x[on] * unit[on, None]).mean(0) - x[on].mean(0) * unit.mean()
            rows[number] = own / (weights @ own)  # so it explains all that the unit gives
    assert rows.abs().sum() > 0
    return rows


# -- where the answer is known beforehand


def test_noise_does_nothing_to_a_straight_line():
    classifier, images = linear(), pictures()
    weights = classifier.model[1].weight[1].detach().numpy().reshape(SIDE, SIDE)
    for method, expected in (
        ("smoothgrad", np.abs(weights)),
        ("smoothgrad_squared", weights**2),
        ("vargrad", np.zeros_like(weights)),
    ):
        found = attribute(classifier, images, method=method, target="yes")
        np.testing.assert_allclose(found, [expected] * 3, atol=1e-9)
    still = mapped(GREY, images, "smoothgrad", noise=0.0)
    np.testing.assert_allclose(still, mapped(GREY, images, "gradient"), atol=1e-9)
    assert mapped(GREY, images, "vargrad").max() > 0


def test_expected_gradients_start_from_other_pictures():
    classifier, images, one = linear(), pictures(), pictures(1, seed=4)
    weights = classifier.model[1].weight[1].detach().reshape(1, 1, SIDE, SIDE)
    found = attribute(classifier, images, method="expected_gradients", target=1, background=one)
    np.testing.assert_allclose(found, ((images - one) * weights)[:, 0].numpy(), atol=1e-9)


@pytest.mark.parametrize("units", ["pixel", "superpixel"])
def test_shapley_values_of_a_sum_are_its_terms(units):
    classifier, images = linear(), pictures(2)
    weights = classifier.model[1].weight[1].detach().reshape(SIDE, SIDE).numpy()
    found = attribute(classifier, images, method="kernel_shap", target=1, units=units, segments=6, num_samples=400)
    for image, own in zip(images, found, strict=True):
        owners = regions_of(classifier, image, units, 6)
        terms = np.bincount(owners, ((image[0].numpy() - 0.5) * weights).reshape(-1))
        np.testing.assert_allclose(own.reshape(-1), (terms / np.bincount(owners))[owners], atol=1e-6)


def test_lime_finds_the_region_that_counts():
    classifier = linear()
    weights = torch.zeros(SIDE, SIDE, dtype=torch.float64)
    weights[:3, :3] = 1.0
    with torch.no_grad():
        classifier.model[1].weight[1] = weights.reshape(-1)
    image = torch.full((1, 1, SIDE, SIDE), 0.6, dtype=torch.float64)
    image[..., :3, :3] = 1.0
    found = attribute(classifier, image, method="lime", target=1, segments=4)[0]
    assert found[:3, :3].min() > 5 * np.abs(found[3:, 3:]).max()


# -- laws of every method


@pytest.mark.parametrize("method", METHODS)
def test_neither_order_nor_company_matters(method):
    images = pictures(5)
    found = attribute(GREY, images, method=method, background=BACKGROUND)
    assert found.shape == (5, SIDE, SIDE)
    assert np.isfinite(found).all()
    other = attribute(GREY, images.flip(0), method=method, background=BACKGROUND, batch_size=2)
    np.testing.assert_allclose(other[::-1], found, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_superpixel_gets_what_its_pixels_get(method):
    image = pictures(1)
    coarse = attribute(GREY, image, method=method, background=BACKGROUND, units="superpixel", segments=6)[0]
    owners = regions_of(GREY, image[0], "superpixel", 6)
    assert len(np.unique(coarse)) <= owners.max() + 1 < SIDE**2
    if method not in ("lime", "kernel_shap", "random"):
        fine = attribute(GREY, image, method=method, background=BACKGROUND)[0]
        sums = np.bincount(owners, fine.reshape(-1)) / np.bincount(owners)
        np.testing.assert_allclose(coarse.reshape(-1), sums[owners], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_the_module_is_left_as_it_was(method):
    before = {name: weight.clone() for name, weight in GREY.model.state_dict().items()}
    answer = GREY.log_probs(pictures())
    attribute(GREY, pictures(), method=method, background=BACKGROUND)
    assert all(torch.equal(weight, before[name]) for name, weight in GREY.model.state_dict().items())
    np.testing.assert_array_equal(GREY.log_probs(pictures()), answer)


def test_it_tells_how_far_it_is_and_can_be_stopped():
    told = []
    attribute(GREY, pictures(5), method="gradient", batch_size=2, progress=lambda *so_far: told.append(so_far))
    assert told == [(2, 5), (4, 5), (5, 5)]
    for method in ("gradient", "lime"):
        with pytest.raises(Cancelled, match="Stopped"):
            attribute(GREY, pictures(), method=method, cancelled=lambda: True)


def test_the_label_explained_is_the_predicted_one_or_the_one_asked_for():
    images = pictures()
    best = GREY.log_probs(images).argmax(1).tolist()
    np.testing.assert_array_equal(attribute(GREY, images), attribute(GREY, images, target=best))
    named, numbered = (attribute(GREY, images, target=target) for target in ("c", [2, 2, 2]))
    np.testing.assert_array_equal(named, numbered)
    for target in (np.int64(2), np.array([2, 2, 2]), torch.tensor([2, 2, 2]), torch.tensor(2)):
        np.testing.assert_array_equal(attribute(GREY, images, target=target), named)
    with pytest.raises(BadOption, match="no label"):
        attribute(GREY, images, target="d")
    with pytest.raises(BadOption, match="2 targets for 3"):
        attribute(GREY, images, target=[0, 1])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"method": "nonsense"}, "There is no 'nonsense'"),
        ({"method": "lime", "erase": "mask"}, "option for texts"),
        ({"method": "integrated_gradients", "baseline": "pad"}, "option for texts"),
        ({"method": "gradient", "steps": 3}, "no option steps"),
        ({"method": "pattern_net"}, "needs background="),
        ({"method": "lrp_preset_a_flat", "epsilon": -1.0}, "epsilon"),
        ({"units": "word"}, "units must be"),
        ({"units": "superpixel", "segments": 0}, "segments must be"),
        ({"batch_size": 0}, "batch_size"),
    ],
)
def test_wrong_options_are_refused(given, told):
    with pytest.raises(BadOption, match=told):
        attribute(GREY, pictures(), **given)


def test_wrong_pictures_and_modules_are_refused():
    for wrong in (pictures()[0], pictures() * 3, pictures() - 0.5, pictures() / 0, pictures()[:0]):
        with pytest.raises(BadData, match=r"Pictures are|Some pixels"):
            attribute(GREY, wrong)
    with pytest.raises(BadData, match="answer of shape"):
        attribute(ImageClassifier(network(), ("a", "b")), pictures())
    with pytest.raises(BadOption, match="range"):
        ImageClassifier(network(), LABELS, low=1.0, high=0.0)
    normed = ImageClassifier(nn.Sequential(nn.BatchNorm2d(1), network()).double(), LABELS)
    with pytest.raises(Unsupported, match="lrp works"):
        attribute(normed, pictures(), method="pattern_net", background=BACKGROUND)
    assert attribute(normed, pictures(), method="lrp_epsilon").shape == (3, SIDE, SIDE)
