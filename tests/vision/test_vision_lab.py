"""Pictures, masks, measures and the paper's three experiments in small."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from skimage.metrics import structural_similarity
from torch import nn

from unhans.errors import BadData, BadOption, Cancelled
from unhans.vision import ImageClassifier
from unhans.vision.lab import (
    Taught,
    cascade,
    held_out_digits,
    layers_of,
    out_of_domain,
    reinitialised,
    spurious_background,
    train_all,
)
from unhans.vision.measures import Mean, heat, ideal, mass, rank_correlation, relaxed, ssim
from unhans.vision.network import SCHEDULE, small_network, train
from unhans.vision.pictures import SIDE, digits, letters, shapes

RNG = np.random.default_rng(0)
MAPS, OTHERS = RNG.normal(size=(2, 4, 16, 16))


# -- measures


def test_similarity_is_scikit_images_and_the_papers_formula():
    first, second = heat(MAPS), heat(OTHERS)
    expected = [structural_similarity(a, b, data_range=1.0) for a, b in zip(first, second, strict=True)]
    np.testing.assert_allclose(ssim(first, second), expected)
    np.testing.assert_allclose(ssim(first, first), 1.0)
    a, b = first[0, :7, :7], second[0, :7, :7]  # one window of seven by seven, by Wang et al.'s formula
    means, variances = a.mean() * b.mean(), np.cov(a.ravel(), b.ravel())
    top = (2 * means + 0.01**2) * (2 * variances[0, 1] + 0.03**2)
    bottom = (a.mean() ** 2 + b.mean() ** 2 + 0.01**2) * (variances[0, 0] + variances[1, 1] + 0.03**2)
    np.testing.assert_allclose(ssim(first[:1, :7, :7], second[:1, :7, :7]), top / bottom)
    with pytest.raises(BadData, match="one by one"):
        ssim(first, second[:2])


def test_rank_correlation_looks_at_sizes():
    np.testing.assert_allclose(rank_correlation(MAPS, -(MAPS**3)), 1.0)
    np.testing.assert_allclose(rank_correlation(MAPS, 1 / MAPS), -1.0)
    assert np.abs(rank_correlation(MAPS, OTHERS)).max() < 0.3


def test_heat_is_between_nothing_and_one_whatever_the_unit():
    shown = heat(MAPS)
    assert (shown.min(), shown.max()) >= (0, 1)
    assert (shown == 1).sum() == 4 * 3  # the upper hundredth of 256
    np.testing.assert_allclose(heat(-1e6 * MAPS), shown)
    np.testing.assert_array_equal(heat(np.zeros((1, 16, 16))), 0)
    single = np.zeros((1, 16, 16))
    single[0, 3, 4] = -2
    np.testing.assert_array_equal(heat(single), np.abs(single) / 2)


def test_the_masks_of_the_paper():
    objects = np.zeros((1, 16, 16))
    objects[0, 4:8, 4:8] = 1
    assert ideal(objects).sum() == 256 - 16
    alone = relaxed(objects, MAPS[:1])
    np.testing.assert_array_equal(alone[objects == 1], 0)
    np.testing.assert_array_equal(alone[objects == 0], heat(MAPS[:1])[objects == 0])
    np.testing.assert_allclose(mass(np.ones((1, 16, 16)), ideal(objects)), 240 / 256)
    np.testing.assert_allclose(mass(-objects, ideal(objects)), 0)
    np.testing.assert_allclose(mass(0 * objects, ideal(objects)), 0)


def test_a_mean_knows_its_standard_error():
    assert Mean.of(np.array([1.0, 2.0, 3.0])) == Mean(2.0, pytest.approx(1 / np.sqrt(3)))
    assert np.isnan(Mean.of(np.array([1.0])).error)


def test_a_map_that_is_the_same_all_over_has_a_number_in_every_measure():
    """A mean over pictures is of all of them: none is left out, and none spoils it."""
    flat, shown, others = np.ones((4, 16, 16)), heat(np.ones((4, 16, 16))), heat(OTHERS)
    for blank in (flat, 0 * flat):
        for found in (rank_correlation(blank, OTHERS), ssim(heat(blank), others), mass(blank, ideal(shown))):
            assert np.isfinite(found).all()
    np.testing.assert_array_equal(rank_correlation(flat, 0 * flat), 1)
    np.testing.assert_array_equal(rank_correlation(flat, OTHERS), 0)


# -- pictures


def test_shapes_lie_on_backgrounds_that_tell_the_label_or_do_not():
    tied, mixed = (shapes(200, spurious=spurious, seed=1) for spurious in (True, False))
    np.testing.assert_array_equal(tied.textures, tied.labels)
    assert 0.4 < (mixed.textures == mixed.labels).mean() < 0.6
    for made in (tied, mixed):
        assert made.images.shape == (200, 1, SIDE, SIDE)
        assert made.images.min() >= 0
        assert made.images.max() <= 1
        np.testing.assert_array_equal((made.images != made.backgrounds)[:, 0], made.objects > 0)
        assert 0.02 < made.objects.mean() < 0.3
        again = shapes(200, spurious=made is tied, seed=1)
        np.testing.assert_array_equal(again.images, made.images)
    stripes, grains = (tied.backgrounds[tied.textures == n] for n in (0, 1))
    assert abs(stripes.mean() - grains.mean()) < 0.01  # neither is the brighter or the rougher one
    assert abs(stripes.std() - grains.std()) < 0.01
    with pytest.raises(BadOption, match="at least 1"):
        shapes(0, spurious=True)


def test_digits_and_letters_have_the_size_of_shapes():
    some = digits((7, 3))
    assert some.names == ("3", "7")
    assert some.images.shape[1:] == letters(3).images.shape[1:] == (1, SIDE, SIDE)
    assert set(some.labels) == {0, 1}
    assert set(letters(100).labels) == set(range(5))
    np.testing.assert_array_equal(some.images[:, :, ::4, ::4], some.images[:, :, 3::4, 3::4])


# -- weights drawn anew


def test_layers_are_drawn_anew_from_the_top_by_their_own_initialisers():
    given = ImageClassifier(small_network(2), ("a", "b"))
    layers = layers_of(given.model)
    assert len(layers) == 8
    weights = {
        depth: dict(reinitialised(given, depth, seed=1).model.named_parameters()) for depth in range(len(layers) + 1)
    }
    for depth in range(len(layers) + 1):
        for place, layer in enumerate(layers):
            same = torch.equal(weights[depth][f"{layer}.weight"], given.model.get_parameter(f"{layer}.weight"))
            assert same == (place >= depth)
            if place < depth:
                assert torch.equal(weights[depth][f"{layer}.weight"], weights[place + 1][f"{layer}.weight"])
    drawn = weights[8][f"{layers[2]}.weight"]  # the first linear layer
    assert drawn.abs().max() <= drawn.shape[1] ** -0.5
    assert drawn.abs().max() > 0.99 * drawn.shape[1] ** -0.5


def test_a_layer_without_an_initialiser_is_refused():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

    with pytest.raises(BadData, match="no initialiser"):
        layers_of(nn.Sequential(nn.Linear(2, 2), Odd()))


# -- the experiments


@cache
def taught():
    """The lab's models, hardly trained, but for the one with the bug."""
    tied = shapes(320, spurious=True)
    spurious = Taught(train(tied, schedule=replace(SCHEDULE, epochs=4, batch_size=16)), tied)
    return train_all(size=48, schedule=replace(SCHEDULE, epochs=1)) | {"spurious": spurious}


def test_the_bug_takes_and_only_where_it_is_planted():
    tied, mixed = shapes(100, spurious=True, seed=7), shapes(100, spurious=False, seed=8)
    spurious = taught()["spurious"].classifier
    assert spurious.accuracy(tied.images, tied.labels) > 0.9
    assert spurious.accuracy(tied.backgrounds, tied.textures) > 0.9
    assert spurious.accuracy(mixed.images, mixed.labels) < 0.7


def test_the_papers_experiments_in_small():
    models, methods = taught(), ("gradient", "random")
    told = []
    rows = spurious_background(
        models["spurious"],
        models["clean"],
        shapes(12, spurious=True, seed=3),
        methods=methods,
        progress=lambda *so_far: told.append(so_far),
    )
    assert [row.method for row in rows] == list(methods)
    assert told == [(1, 2), (2, 2)]
    assert rows[0].relaxed.value > rows[1].relaxed.value + 0.1  # random maps have nothing to do with each other
    assert abs(rows[0].gaussian) < 0.1
    curves = cascade(models["clean"], shapes(6, spurious=False, seed=4).images, methods=methods)
    assert [stage.layer for stage in curves["gradient"]] == layers_of(models["clean"].classifier.model)
    assert curves["random"][-1].rank.value == pytest.approx(1.0)  # blind to the model: the very same numbers
    assert curves["gradient"][-1].rank.value < 0.7
    table = out_of_domain(
        models["digits"], {"letters": models["letters"]}, held_out_digits(6).images, methods=("gradient",)
    )
    assert [(row.method, row.model) for row in table] == [("gradient", "letters")]
    assert table[0].ssim.value < 1
    same = out_of_domain(models["digits"], {"itself": models["digits"]}, held_out_digits(3).images, methods=("lime",))
    assert (same[0].ssim.value, same[0].rank.value) == pytest.approx((1.0, 1.0))
    with pytest.raises(Cancelled, match="Stopped"):
        cascade(models["clean"], shapes(6, spurious=False).images, cancelled=lambda: True)
