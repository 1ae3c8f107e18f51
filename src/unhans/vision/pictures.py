"""Pictures made on the spot: shapes and letters on textures, and scikit-learn's digits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unhans.errors import BadOption

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SHAPES = ("disc", "cross")
TEXTURES = ("stripes", "grains")
SIDE = 32
_LETTERS = ("T", "L", "U", "Z", "H")
_STROKES = {  # on a grid of five by five
    "T": ("11111", "00100", "00100", "00100", "00100"),
    "L": ("10000", "10000", "10000", "10000", "11111"),
    "U": ("10001", "10001", "10001", "10001", "11111"),
    "Z": ("11111", "00010", "00100", "01000", "11111"),
    "H": ("10001", "10001", "11111", "10001", "10001"),
}


@dataclass(frozen=True)
class Pictures:
    """Grey pictures between 0 and 1 with their labels, and what they were made of."""

    images: NDArray[np.float32]  # n × 1 × side × side
    labels: Ints
    names: tuple[str, ...]
    textures: Ints  # which background each has
    objects: Floats  # n × side × side: 1 where the object is
    backgrounds: NDArray[np.float32]  # the same pictures without it

    def __len__(self) -> int:
        return len(self.labels)


def shapes(n: int, *, spurious: bool, seed: int = 0) -> Pictures:
    """Discs and crosses on stripes or grains; if `spurious`, discs always on stripes and crosses on grains."""
    _check(n)
    rng = np.random.default_rng([seed, 31])
    labels = rng.integers(2, size=n)
    textures = labels if spurious else rng.integers(2, size=n)
    masks = np.stack([_disc(rng) if label == 0 else _cross(rng) for label in labels])
    return _drawn(rng, masks, labels, SHAPES, textures)


def letters(n: int, *, seed: int = 0) -> Pictures:
    """Five letters, bright on black, as digits are."""
    _check(n)
    rng = np.random.default_rng([seed, 37])
    labels = rng.integers(len(_LETTERS), size=n)
    masks = np.stack([_letter(rng, _LETTERS[label]) for label in labels])
    return _on_black(masks * rng.uniform(0.7, 1.0, (n, 1, 1)), labels, _LETTERS)


def digits(which: tuple[int, ...] = tuple(range(10))) -> Pictures:
    """Scikit-learn's handwritten digits of these classes, enlarged four times; in the order of the data set."""
    from sklearn.datasets import load_digits

    found = load_digits()
    kept = np.isin(found.target, which)
    pictures = np.kron(found.images[kept] / 16.0, np.ones((1, SIDE // 8, SIDE // 8)))
    labels = np.searchsorted(np.sort(which), found.target[kept])
    return _on_black(pictures, labels, tuple(str(digit) for digit in sorted(which)))


def _drawn(rng: np.random.Generator, masks: Floats, labels: Ints, names: tuple[str, ...], textures: Ints) -> Pictures:
    backgrounds = np.stack([_stripes(rng) if texture == 0 else _grains(rng) for texture in textures])
    ink = rng.uniform(0.75, 1.0, (len(masks), 1, 1))
    images = backgrounds * (1 - masks) + ink * masks
    return Pictures(_floats(images), labels, names, textures, masks, _floats(backgrounds))


def _on_black(pictures: Floats, labels: Ints, names: tuple[str, ...]) -> Pictures:
    nothing = np.zeros_like(pictures)
    return Pictures(
        _floats(pictures), labels, names, np.zeros(len(labels), int), (pictures > 0).astype(float), _floats(nothing)
    )


def _floats(pictures: Floats) -> NDArray[np.float32]:
    return pictures[:, None].astype(np.float32)


def _check(n: int) -> None:
    if n < 1:
        raise BadOption(f"There must be at least 1 picture, not {n}.")


def _grid() -> tuple[Floats, Floats]:
    rows, columns = np.mgrid[:SIDE, :SIDE].astype(float)
    return rows, columns


def _place(rng: np.random.Generator) -> tuple[float, float, float]:
    """The middle and the radius of an object that is wholly inside the picture."""
    size = rng.uniform(5.0, 8.0)
    row, column = rng.uniform(size + 1, SIDE - size - 2, 2)
    return float(row), float(column), float(size)


def _disc(rng: np.random.Generator) -> Floats:
    (rows, columns), (row, column, size) = _grid(), _place(rng)
    return ((rows - row) ** 2 + (columns - column) ** 2 <= size**2).astype(float)


def _cross(rng: np.random.Generator) -> Floats:
    (rows, columns), (row, column, size) = _grid(), _place(rng)
    down, across = np.abs(rows - row), np.abs(columns - column)
    thick = size / 2.5
    return (((down <= thick) & (across <= size)) | ((across <= thick) & (down <= size))).astype(float)


def _letter(rng: np.random.Generator, name: str) -> Floats:
    strokes = np.array([[int(cell) for cell in line] for line in _STROKES[name]], float)
    large = np.kron(strokes, np.ones((int(rng.integers(3, 6)), int(rng.integers(3, 6)))))
    picture = np.zeros((SIDE, SIDE))
    row, column = (int(rng.integers(0, SIDE - length + 1)) for length in large.shape)
    picture[row : row + large.shape[0], column : column + large.shape[1]] = large
    return picture


def _stripes(rng: np.random.Generator) -> Floats:
    """Slanted waves of any phase, four to six pixels long."""
    rows, columns = _grid()
    angle = rng.uniform(np.pi / 6, np.pi / 3)
    along = rows * np.sin(angle) + columns * np.cos(angle)
    waves: Floats = 0.3 + 0.2 * np.sin(2 * np.pi * along / rng.uniform(4.0, 6.0) + rng.uniform(0, 2 * np.pi))
    return waves


def _grains(rng: np.random.Generator) -> Floats:
    """Blocks of two by two pixels, each of its own grey: as bright as stripes on average, and as uneven."""
    coarse = rng.uniform(0.3 - 0.245, 0.3 + 0.245, (SIDE // 2, SIDE // 2))
    grains: Floats = coarse.repeat(2, axis=0).repeat(2, axis=1)
    return grains
