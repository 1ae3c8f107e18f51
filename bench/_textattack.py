"""TextAttack's side of bench/counterfactuals.py; runs in TextAttack's own environment and answers line by line.

    python bench/_textattack.py FOLDER THREADS        (FOLDER: model and tokenizer)

Each line of standard input is a JSON object with `text`, `edits`, `beam` and `candidates`; the answer is one line with
the seconds, the best score (log-odds against the original label) and the numbers of gradients and questions.

TextAttack accepts only its own LSTM for gradients: the check is left out. Its wrapper for Hugging Face models pads
every text to the model's limit, takes gradients in training mode, and counts the first token as a word; here texts are
not padded, dropout is 0, and gradients belong to the words. All else is TextAttack's own. Packages that only
constraints and reports need are replaced by empty ones.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import json
import math
import os
import sys
import tempfile
import time
import types

NOT_NEEDED = (
    "OpenHowNet",
    "bert_score",
    "datasets",
    "flair",
    "jieba",
    "langdetect",
    "language_tool_python",
    "lemminflect",
    "nltk",
    "num2words",
    "pinyin",
    "sentence_transformers",
    "tensorflow_hub",
    "word2number",
)


class Empty(types.ModuleType):
    """A module with any class and any function, which gives back nothing."""

    def __call__(self, *_: object, **__: object) -> list[str]:
        """What a list of stop words, say, comes to."""
        return []

    def __getattr__(self, name: str) -> object:
        """A class for a name with a capital, an empty module for any other."""
        if name.startswith("__"):
            raise AttributeError(name)
        return importlib.import_module(f"{self.__name__}.{name}") if name[0].islower() else type(name, (), {})


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the packages that are not needed, and finds them empty."""

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        """Of the named packages and all that is in them."""
        known = name.split(".", maxsplit=1)[0] in NOT_NEEDED
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if known else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Empty:
        """An empty one."""
        return Empty(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run."""


sys.meta_path.insert(0, Finder())
os.environ["TA_CACHE_DIR"] = tempfile.mkdtemp()
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # whatever TextAttack prints is no answer

import torch  # noqa: E402
import transformers  # noqa: E402
from textattack import Attack  # noqa: E402
from textattack.attack_results import AttackResult  # noqa: E402
from textattack.constraints.overlap import MaxWordsPerturbed  # noqa: E402
from textattack.constraints.pre_transformation import RepeatModification  # noqa: E402
from textattack.goal_functions import UntargetedClassification  # noqa: E402
from textattack.models.wrappers import HuggingFaceModelWrapper  # noqa: E402
from textattack.search_methods import BeamSearch  # noqa: E402
from textattack.shared import AttackedText  # noqa: E402
from textattack.transformations import WordSwapGradientBased  # noqa: E402
from textattack.transformations.word_swaps import word_swap_gradient_based  # noqa: E402

word_swap_gradient_based.validate_model_gradient_word_swap_compatibility = lambda _: True


class Unpadded:
    """A tokenizer that pads no further than to the longest text, whatever it is told."""

    def __init__(self, tokenizer: transformers.PreTrainedTokenizerFast) -> None:
        self.tokenizer = tokenizer
        self.model_max_length, self.pad_token_id = tokenizer.model_max_length, tokenizer.pad_token_id
        words = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
        # what is no word by itself gets no letters: the search passes over those
        self.words = [word if word.isalnum() else "" for word in words]

    def __call__(self, texts: list[str], **options: object) -> transformers.BatchEncoding:
        """Tokens of texts."""
        return self.tokenizer(list(texts), **options | {"padding": True})

    def convert_id_to_word(self, number: int) -> str:
        """The word of a token, empty where it is none."""
        return self.words[number] if number < len(self.words) else ""


class Wrapper(HuggingFaceModelWrapper):
    """TextAttack's own, without padding, for texts whose words are one token each."""

    def __init__(self, folder: str) -> None:
        found = transformers.AutoModelForSequenceClassification.from_pretrained(
            folder, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        super().__init__(found.eval(), tokenizer)
        self.tokenizer = Unpadded(tokenizer)
        self.gradients = 0

    def get_grad(self, text_input: str) -> dict[str, object]:
        """Gradients by word: those of the first and the last token are left out."""
        self.gradients += 1
        found = super().get_grad(text_input)
        return {"ids": found["ids"][0, 1:-1], "gradient": found["gradient"][1:-1]}


def clock() -> float:
    """As in bench/scoring.py."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def search(wrapper: Wrapper, text: str, edits: int, beam: int, candidates: int) -> dict[str, float]:
    """One attack that cannot succeed, so that all edits are made."""
    goal = UntargetedClassification(wrapper, target_max_score=-1.0, model_batch_size=32)
    rules = [RepeatModification(), MaxWordsPerturbed(max_num_words=edits)]
    attack = Attack(goal, rules, WordSwapGradientBased(wrapper, top_n=candidates), BeamSearch(beam_width=beam))
    label = int(wrapper([text]).argmax())
    wrapper.gradients = 0
    started = clock()
    result: AttackResult = attack.attack(AttackedText(text), label)
    seconds = clock() - started
    best = float(result.perturbed_result.score)
    found = {"seconds": seconds, "score": math.log(best / (1 - best)), "gradients": wrapper.gradients}
    return found | {"questions": int(result.perturbed_result.num_queries)}


def main() -> None:
    """Answer until there are no more questions."""
    torch.set_num_threads(int(sys.argv[2]))
    wrapper = Wrapper(sys.argv[1])
    for line in sys.stdin:
        print(json.dumps(search(wrapper, **json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
