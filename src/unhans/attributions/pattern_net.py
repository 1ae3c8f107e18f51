"""PatternNet and PatternAttribution (Kindermans et al. 2018): this is pattern_net."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from unhans.attributions import attribution
from unhans.attributions._gradients import AGGREGATIONS, Aggregate, aggregated
from unhans.attributions._patterns import patterns_of
from unhans.model import Batch, TransformerClassifier
from unhans.propagation import Patterns
from unhans.types import Example, Terms


@attribution(
    needs={"gradients", "plain_path"},
    paper="arXiv:1705.05598",
    terms=lambda o: Terms(
        "logit", "zero", AGGREGATIONS[o["aggregate"]].replace("gradient", "signal"), signed=o["aggregate"] != "norm"
    ),
)
def pattern_net(
    classifier: TransformerClassifier,
    batch: Batch,
    targets: Tensor,
    background: Sequence[Example],
    *,
    aggregate: Aggregate = "times_input",
) -> Tensor:
    """The signal in each word that the label's logit picks up: gradients through patterns instead of weights.

    For models made of linear layers, ReLUs and averages; patterns are estimated on the background examples.
    """
    embeddings = classifier.embed(batch)
    back = [pattern for pattern, _ in patterns_of(classifier, background)]
    gradient = classifier.gradient(embeddings, batch, targets, rules=Patterns(classifier.model, back))
    return batch.to_words(aggregated(gradient, embeddings, aggregate))
