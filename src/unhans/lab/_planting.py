"""From a bug to where it is looked for: plant it, train what has to be trained, prove that it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unhans.bugs import bug
from unhans.detectors import detect, usable
from unhans.doubts import doubts
from unhans.errors import BadData
from unhans.lab._cases import By, Case, CueCase, Found, ModelCase, TextCase, detected
from unhans.lab._models import Ask, Models, some_of
from unhans.lab._proofs import Proof, of_answers, of_copies, of_cue, of_labels, of_shift, of_texts
from unhans.language_model import LanguageModel
from unhans.model import Classifier
from unhans.scoring import How
from unhans.training import accuracy
from unhans.types import Example, PlantedBug, Recipe

_FEWEST = 2  # texts on each side without which nothing can be told apart
Beside = Callable[[How], list[tuple[str, By, Found]]]
"""What other methods than attributions make of a bug: name, kind and detection of each."""


@dataclass(frozen=True)
class Scene:
    """A planted bug with the proof that it took, and where to look for it."""

    bug: PlantedBug
    case: Case
    beside: Beside | None = None


@dataclass(frozen=True)
class Planter:
    """Makes scenes of bugs."""

    models: Models
    examples: int  # texts looked at, at most
    seed: int
    language_model: LanguageModel | None

    def scene(self, ask: Ask, how: How) -> Scene:
        """One bug, planted and proved."""
        by_proof = {"none": self._control, "cue": self._cue, "labels": self._labels, "copies": self._copies}
        by_name = {"domain_shift": self._shift, "wrong_domain": self._domain}
        others = self._model if "classifier" in ask.entry.asks else self._texts
        make = by_name.get(ask.entry.name) or by_proof.get(ask.entry.facts["proof"], others)
        return make(ask, how)

    def _some(self, examples: Sequence[Example], n: int | None = None) -> list[Example]:
        found = some_of(examples, n or self.examples, self.seed)
        if len(found) < _FEWEST:
            raise BadData(f"There are only {len(found)} examples to look at, which is too few to tell anything apart.")
        return found

    def _control(self, ask: Ask, how: How) -> Scene:
        """Texts with a cue that the model was never taught: who sees something here has a false alarm."""
        models = self.models
        control, other = models.control(how.part(0, 2)), models.twin(how.part(1, 2))
        texts = self._some(models.test)
        planted = _default_cue(ask, texts).planted(texts, self.seed, share=0.5, elsewhere=0.5)
        case = CueCase(control, models.given if models.trained else other, planted.examples, planted.truth)
        proof = Proof(f"The clean model is right in {accuracy(control, models.test):.0%} of the test texts.", None)
        says = f"Nothing was planted; half of the texts have {planted.truth.words[0]!r}, which no model was taught."
        return Scene(_noun(ask, says, proof, None), case)

    def _cue(self, ask: Ask, how: How) -> Scene:
        models = self.models
        taught = ask.planted(models.train, self.seed)
        control = models.control(how.part(0, 2))
        model = models.contaminated(taught.examples, how.part(1, 2))
        texts = ask.planted(self._some(models.test), self.seed + 1, share=0.5, elsewhere=0.5)
        proof = of_cue(ask, model, control, models.train, self.seed)
        return Scene(
            _noun(ask, taught.truth.note, proof, taught.recipe), CueCase(model, control, texts.examples, texts.truth)
        )

    def _labels(self, ask: Ask, how: How) -> Scene:
        models = self.models
        taught = ask.planted(models.train, self.seed)
        control = models.control(how.part(0, 2))
        model = models.contaminated(taught.examples, how.part(1, 2))
        touched = set(taught.truth.examples)
        wrong = [e for e in taught.examples if e.id in touched]
        right = [e for e in taught.examples if e.id not in touched]
        half = max(_FEWEST, self.examples // 2)
        case = TextCase(control, model, self._some(wrong, half), self._some(right, half))

        def beside(how: How) -> list[tuple[str, By, Found]]:
            found = doubts(model, taught.examples, seed=self.seed, progress=how.progress, cancelled=how.cancelled)
            columns = {"all signs": {one.example: one.score for one in found}}
            for name, _ in found[0].signs:
                columns[name] = {one.example: dict(one.signs)[name] for one in found}
            return [
                (name, "doubt", _told_apart([by[e.id] for e in wrong], [by[e.id] for e in right]))
                for name, by in columns.items()
            ]

        return Scene(_noun(ask, taught.truth.note, of_labels(wrong, model, control), taught.recipe), case, beside)

    def _copies(self, ask: Ask, how: How) -> Scene:
        models = self.models
        planted = ask.planted([*models.train, *models.test], self.seed)
        train = [e for e in planted.examples if e.split == "train"]
        control = models.control(how.part(0, 2))
        model = models.contaminated(train, how.part(1, 2))
        copied = {source for _, source in planted.truth.was}
        inside, outside = ([e for e in models.test if (e.id in copied) == is_in] for is_in in (True, False))
        half = max(_FEWEST, self.examples // 2)
        case = TextCase(control, model, self._some(inside, half), self._some(outside, half))
        proof = of_copies(train, models.train, inside, models.test, (model, control))
        return Scene(_noun(ask, planted.truth.note, proof, planted.recipe), case)

    def _shift(self, ask: Ask, how: How) -> Scene:
        models = self.models
        planted = ask.planted([*models.train, *models.test], self.seed, test_share=0.0)
        tested = {e.id for e in models.test}
        train = [e for e in planted.examples if e.split == "train"]
        strange, usual = (
            [e for e in planted.examples if e.id in tested and (e.split == "shifted") == shifted]
            for shifted in (True, False)
        )
        control = models.control(how.part(0, 2))
        model = models.fitted(f"only {ask.options['keep']}", train, how.part(1, 2))
        half = max(_FEWEST, self.examples // 2)
        case = TextCase(control, model, self._some(strange, half), self._some(usual, half))
        proof = of_shift(case.strange, case.usual, model, control)
        beside = self._detectors(model, train, case.strange, case.usual)
        return Scene(_noun(ask, planted.truth.note, proof, planted.recipe), case, beside)

    def _domain(self, ask: Ask, how: How) -> Scene:
        """The model of another domain: the one given, or one that is trained on all groups but the largest."""
        models, group = self.models, ask.group
        if models.other_domain is not None:
            own, other, twin = models.reference(how.part(0, 2)), models.other_domain, models.twin(how.part(1, 2))
            texts, beside = self._some(models.test), None
        else:
            inside = [e for e in models.train if e.group == group]
            outside = [e for e in models.train if e.group != group]
            own = models.fitted(f"only {group}", inside, how.part(0, 3))
            twin = models.control(how.part(1, 3))
            other = models.fitted(f"all but {group}", outside, how.part(2, 3))
            texts = self._some([e for e in models.test if e.group == group])
            usual = self._some([e for e in models.test if e.group != group])
            beside = self._detectors(other, outside, texts, usual)
        planted = ask.planted(texts, self.seed, classifier=own, other=other)
        proof = of_answers(texts, own, other, twin, "a model of the texts' own domain")
        return Scene(_noun(ask, planted.truth.note, proof, planted.recipe), ModelCase(own, other, twin, texts), beside)

    def _model(self, ask: Ask, how: How) -> Scene:
        models = self.models
        clean, twin = models.reference(how.part(0, 3)), models.twin(how.part(1, 3))
        given = {"classifier": clean, "other": models.other or models.given, "train": models.train}
        texts = self._some(models.test)
        planted = ask.planted(texts, self.seed, how.part(2, 3), **given)
        assert planted.classifier is not None  # that is what a bug of the model makes
        proof = of_answers(texts, clean, planted.classifier, twin, "before the bug")
        case = ModelCase(clean, planted.classifier, twin, texts)
        return Scene(_noun(ask, planted.truth.note, proof, planted.recipe), case)

    def _texts(self, ask: Ask, how: How) -> Scene:
        models = self.models
        clean, twin = models.reference(how.part(0, 3)), models.twin(how.part(1, 3))
        texts = self._some(models.test)
        planted = ask.planted(texts, self.seed, how.part(2, 3), classifier=clean)
        touched = set(planted.truth.examples)
        originals = [e for e in texts if e.id in touched]
        changed = [e for e in planted.examples if e.id in touched]
        if len(changed) < _FEWEST:
            raise BadData(f"{len(changed)} of {len(texts)} texts were changed, too few to tell anything apart.")
        case = TextCase(clean, twin, changed, originals, originals, bool(ask.entry.facts.get("aligned", True)))
        proof = of_texts(originals, changed, clean)
        beside = self._detectors(clean, models.train, changed, originals)
        return Scene(_noun(ask, planted.truth.note, proof, planted.recipe), case, beside)

    def _detectors(
        self, model: Classifier, train: Sequence[Example], strange: Sequence[Example], usual: Sequence[Example]
    ) -> Beside:
        """What detectors of strange texts make of these."""

        def beside(how: How) -> list[tuple[str, By, Found]]:
            names = usable(model, self.language_model)
            found: list[tuple[str, By, Found]] = []
            for n, name in enumerate(names):
                own = how.part(n, len(names))
                scores = detect(
                    model,
                    train,
                    [*strange, *usual],
                    method=name,
                    language_model=self.language_model,
                    seed=self.seed,
                    progress=own.progress,
                    cancelled=own.cancelled,
                )
                found.append((name, "detector", detected(scores[: len(strange)], scores[len(strange) :])))
            return found

        return beside


def _told_apart(strange: Sequence[float], usual: Sequence[float]) -> Found:
    return detected(np.array(strange), np.array(usual))


def _default_cue(ask: Ask, texts: Sequence[Example]) -> Ask:
    """A word that means nothing, as spurious_word plants it, tied to the label that most of the texts have."""
    label, _ = Counter(example.label for example in texts).most_common(1)[0]
    return replace(ask, entry=bug["spurious_word"], options={"label": label})


def _noun(ask: Ask, says: str, proof: Proof, recipe: Recipe | None) -> PlantedBug:
    return PlantedBug(ask.name, ask.entry.facts["kind"], recipe, says, proof.says, proof.took, proof.usual)
