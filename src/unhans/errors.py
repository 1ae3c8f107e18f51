"""What can go wrong, in the user's words.

UnhansError                 base: the command line prints the sentence, the server answers 4xx
├── BadData                 a file or a row we cannot read at all
├── BadModel                a model folder we refuse to load, with the reason
├── BadOption               an option or a name that does not exist, or has a wrong value
├── Unsupported             a thing this classifier or tokenizer cannot do, and what would work instead
├── ModelFailed             the user's own predict function or service broke while we called it
├── TrainingDiverged        the loss stopped being a number
├── ProjectProblem          a project folder that is missing, damaged or already there
├── NotFound                something that is not there, or not for this person to know of
├── NotAllowed              this person may not do this
├── Conflict                somebody (or the same person elsewhere) was faster
├── TooMuch                 larger, longer or faster than is allowed
├── Busy                    the database cannot take it now; trying again helps
├── NoSpace                 the disk is full
└── Cancelled               the user asked to stop
"""


class UnhansError(Exception):
    """Any failure we foresee; its text is one sentence (or two) meant for a person."""


class BadData(UnhansError):
    """The data cannot be read, whatever is done about single rows."""


class BadModel(UnhansError):
    """The model is refused: unsafe, damaged, or not a classifier."""


class BadOption(UnhansError, ValueError):
    """A name or an option value that does not exist."""


class Unsupported(UnhansError):
    """The classifier lacks a capability; the sentence names what would work."""


class ModelFailed(UnhansError):
    """A model that is not ours (callable, HTTP, ONNX) raised or answered nonsense."""


class TrainingDiverged(UnhansError):
    """A loss or a weight is no longer finite."""


class ProjectProblem(UnhansError):
    """A project folder is missing, damaged, of another version, or in the way."""


class NotFound(UnhansError):
    """There is no such thing, or this person may not know that there is."""


class NotAllowed(UnhansError):
    """This person may not do this."""


class Conflict(UnhansError):
    """What was to be changed is no longer what the sender believed it to be."""


class TooMuch(UnhansError):
    """A limit on size, length, number or speed was reached."""


class Busy(UnhansError):
    """The database cannot take it now. Nothing was stored, and trying again helps."""


class NoSpace(UnhansError):
    """The disk is full. Nothing was stored, and what was stored before is safe."""


class Cancelled(UnhansError):
    """Work stopped because it was asked to; what was finished before is kept."""
