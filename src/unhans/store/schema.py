"""The tables. A change here needs a migration (`unhans/store/migrations`); a test compares the two.

Every project has these tables to itself (a file, or a schema in PostgreSQL), and so has every workspace, which uses
those for people and jobs. Times are UTC in ISO 8601; order is always by a number, never by time.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData()
_Number = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers rows by itself only where it reads INTEGER
_Bytes = String(collation="C").with_variant(String(), "sqlite")  # compared by code point in both, whatever the locale

examples = Table(
    "examples",
    metadata,
    Column("place", Integer, primary_key=True, autoincrement=False),  # number in the data, from 0
    Column("id", _Bytes, nullable=False, unique=True),
    Column("text", Text, nullable=False),
    Column("pair", Text),
    Column("label", _Bytes),
    Column("group", _Bytes),
    Column("split", _Bytes),
    Column("highlights", Text),  # JSON, as are all columns that hold more than one value
    Column("notes", Text),
    Column("text_hash", _Bytes, nullable=False),
    Column("words", Integer, nullable=False),
    Index("examples_by_hash", "text_hash"),
    Index("examples_by_label", "label", "place"),
    Index("examples_by_split", "split", "place"),
    Index(
        "examples_noted", "place", sqlite_where=text("notes IS NOT NULL"), postgresql_where=text("notes IS NOT NULL")
    ),
)

set_aside = Table(
    "set_aside",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("row", Integer, nullable=False),
    Column("file", Text, nullable=False),
    Column("line", Integer),
    Column("reason", Text, nullable=False),
    Column("detail", Text, nullable=False),
)

predictions = Table(
    "predictions",
    metadata,
    Column("revision", _Bytes, primary_key=True),
    Column("place", Integer, ForeignKey("examples.place"), primary_key=True),
    Column("label", _Bytes, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("correct", Boolean),  # None: the example has no label
    Column("probabilities", Text, nullable=False),
    Column("unread", Text),
    Column("unknown", Float),  # share of the text's tokens that the model does not know; None: it cannot be told
    Index("predictions_by_correct", "revision", "correct", "place"),
    Index("predictions_by_label", "revision", "label", "place"),
    Index("predictions_by_confidence", "revision", "confidence", "place"),
)

explanation_sets = Table(
    "explanation_sets",
    metadata,
    Column("id", _Bytes, primary_key=True),  # fingerprint of all that makes explanations alike
    Column("revision", _Bytes, nullable=False),
    Column("recipe", Text, nullable=False),
    Column("target", _Bytes),
    Column("units", _Bytes, nullable=False),
    Column("at", _Bytes, nullable=False),
    Column("count", Integer, nullable=False),
    Column("scale", Float, nullable=False),
    Index("explanation_sets_by_revision", "revision", "at"),
)

explanations = Table(
    "explanations",
    metadata,
    Column("set", _Bytes, ForeignKey("explanation_sets.id"), primary_key=True),
    Column("text_hash", _Bytes, primary_key=True),  # a text is explained once, however often it occurs
    Column("attribution", Text, nullable=False),
)

ranked_words = Table(
    "ranked_words",
    metadata,
    Column("set", _Bytes, ForeignKey("explanation_sets.id"), primary_key=True),
    Column("label", _Bytes, primary_key=True),
    Column("rank", Integer, primary_key=True),
    Column("word", _Bytes, nullable=False),
    Column("score", Float, nullable=False),
    Column("spread", Float, nullable=False),
    Column("count", Integer, nullable=False),
    Column("correct", Float),
    Column("z", Float),
    Column("weight", Float),
    Column("coverage", Float),
    Column("disagreement", Float),
    Column("damage", Float),
    Index("ranked_words_by_word", "set", "label", "word", unique=True),
)

feedback = Table(  # the log: rows are added, never changed
    "feedback",
    metadata,
    Column("number", _Number, primary_key=True),
    Column("id", _Bytes, nullable=False, unique=True),
    Column("key", _Bytes, nullable=False),
    Column("author", _Bytes, nullable=False),
    Column("subject", _Bytes, nullable=False),  # the question that is answered
    Column("kind", _Bytes, nullable=False),
    Column("example", _Bytes),
    Column("retracts", _Bytes),
    Column("seconds", Float),
    Column("at", _Bytes, nullable=False),
    Column("entry", Text, nullable=False),  # the noun
    UniqueConstraint("author", "key", name="feedback_once"),
    Index("feedback_by_example", "author", "example", "number"),
    Index("feedback_by_author", "author", "number"),
    Index("feedback_by_subject", "author", "subject", "number"),
)

opinions = Table(  # what the log comes to: the last entry of each author on each question that was not taken back
    "opinions",
    metadata,
    Column("author", _Bytes, primary_key=True),
    Column("subject", _Bytes, primary_key=True),
    Column("feedback", _Bytes, ForeignKey("feedback.id"), nullable=False),
    Column("number", _Number, nullable=False),
    Column("kind", _Bytes, nullable=False),
    Column("example", _Bytes),
    Column("word", _Bytes),
    Column("label", _Bytes),
    Column("value", _Bytes, nullable=False),
    Index("opinions_by_example", "example", "kind", "author", "value"),  # all that a list of examples asks for
    Index("opinions_by_kind", "kind", "value", "author", "example"),
    Index("opinions_by_subject", "subject"),
    Index("opinions_by_word", "word", "label"),
)

reservations = Table(
    "reservations",
    metadata,
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("author", _Bytes, primary_key=True),
    Column("until", Float, nullable=False),
    Index("reservations_by_end", "until"),
)

reports = Table(  # what one version of the model changed against another
    "reports",
    metadata,
    Column("before", _Bytes, primary_key=True),  # names of versions: r0, r1 …
    Column("after", _Bytes, primary_key=True),
    Column("at", _Bytes, nullable=False),
    Column("report", Text, nullable=False),  # the noun
    Index("reports_by_after", "after", "at"),
)

curves = Table(  # losses of a training while it runs
    "curves",
    metadata,
    Column("job", _Bytes, primary_key=True),
    Column("at", _Bytes, nullable=False),
    Column("curve", Text, nullable=False),
)

flips = Table(
    "flips",
    metadata,
    Column("number", _Number, primary_key=True),
    Column("id", _Bytes, nullable=False, unique=True),
    Column("place", Integer, ForeignKey("examples.place"), nullable=False),
    Column("text_hash", _Bytes, nullable=False),  # of the original
    Column("revision", _Bytes, nullable=False),
    Column("method", _Bytes, nullable=False),
    Column("target", _Bytes),
    Column("before", _Bytes, nullable=False),  # labels
    Column("after", _Bytes, nullable=False),
    Column("probability", Float, nullable=False),  # of the label after
    Column("edits", Integer, nullable=False),
    Column("words", Integer, nullable=False),  # of the original
    Column("similarity", Float),
    Column("perplexity", Float),
    Column("flips", Boolean, nullable=False),
    Column("by", _Bytes, nullable=False),
    Column("at", _Bytes, nullable=False),
    Column("flip", Text, nullable=False),  # the noun
    Index("flips_by_place", "revision", "place", "number"),
    Index("flips_by_number", "revision", "number"),
)

flip_searches = Table(  # what was found for whom: the same search is not done twice
    "flip_searches",
    metadata,
    Column("asked", _Bytes, primary_key=True),  # fingerprint of all that a search depends on but the example
    Column("place", Integer, ForeignKey("examples.place"), primary_key=True),
    Column("found", Text, nullable=False),  # ids
)

traces = Table(  # the training examples behind an example, as one method found them
    "traces",
    metadata,
    Column("number", _Number, primary_key=True),
    Column("revision", _Bytes, nullable=False),
    Column("place", Integer, ForeignKey("examples.place"), nullable=False),  # of the anchor
    Column("asked", _Bytes, nullable=False),  # fingerprint of all that it depends on but the example
    Column("text_hash", _Bytes, nullable=False),  # of the anchor
    Column("leads", Boolean, nullable=False),  # everybody sees it in place of older ones
    Column("helpful", Text, nullable=False),  # ids of the training examples that helped
    Column("by", _Bytes, nullable=False),
    Column("at", _Bytes, nullable=False),
    Column("influence", Text, nullable=False),  # the noun
    UniqueConstraint("revision", "place", "asked", name="traces_once"),
    Index("traces_by_place", "place", "number"),
)

copies = Table(
    "copies",
    metadata,
    Column("number", _Number, primary_key=True),
    Column("id", _Bytes, nullable=False, unique=True),  # of the copy as it was made: edited, it keeps it
    Column("place", Integer, ForeignKey("examples.place"), nullable=False),  # of its source
    Column("text_hash", _Bytes, nullable=False),  # of its source
    Column("label", _Bytes, nullable=False),
    Column("label_kept", Float),
    Column("edited", Boolean, nullable=False),
    Column("deleted", Boolean, nullable=False),  # stays, so that it is not made again
    Column("by", _Bytes, nullable=False),
    Column("at", _Bytes, nullable=False),
    Column("copy", Text, nullable=False),  # the noun
    Index("copies_by_place", "place", "number"),
)

doubts = Table(  # a ranking of the training examples; another one of the same revision takes its place as a whole
    "doubts",
    metadata,
    Column("revision", _Bytes, primary_key=True),
    Column("rank", Integer, primary_key=True),  # from 1
    Column("place", Integer, ForeignKey("examples.place"), nullable=False),
    Column("text_hash", _Bytes, nullable=False),
    Column("label", _Bytes, nullable=False),  # that the revision was taught
    Column("score", Float, nullable=False),
    Column("doubt", Text, nullable=False),  # the noun
    Index("doubts_by_label", "revision", "label", "rank"),
)

audits = Table(  # what can be said against a revision; written again as its checks come in
    "audits",
    metadata,
    Column("number", _Number, primary_key=True),
    Column("id", _Bytes, nullable=False, unique=True),
    Column("revision", _Bytes, nullable=False),
    Column("asked", _Bytes, nullable=False),  # fingerprint of all that it depends on: one that was stopped goes on
    Column("complete", Boolean, nullable=False),
    Column("high", Integer, nullable=False),  # findings of each severity
    Column("medium", Integer, nullable=False),
    Column("low", Integer, nullable=False),
    Column("examples", Integer, nullable=False),
    Column("training", Integer, nullable=False),
    Column("warnings", Text, nullable=False),  # explanation methods not to be trusted, and why
    Column("job", _Bytes),
    Column("by", _Bytes, nullable=False),
    Column("at", _Bytes, nullable=False),
    Column("audit", Text, nullable=False),  # the noun
    Index("audits_by_revision", "revision", "number"),
    Index("audits_by_asked", "asked", "number"),
)

labs = Table(  # which explanation sees which planted bug, for a revision
    "labs",
    metadata,
    Column("number", _Number, primary_key=True),
    Column("id", _Bytes, nullable=False, unique=True),
    Column("revision", _Bytes, nullable=False),
    Column("warnings", Text, nullable=False),
    Column("by", _Bytes, nullable=False),
    Column("at", _Bytes, nullable=False),
    Column("lab", Text, nullable=False),  # the noun
    Index("labs_by_revision", "revision", "number"),
)

settings = Table(
    "settings",
    metadata,
    Column("name", _Bytes, primary_key=True),
    Column("value", Text, nullable=False),
)

users = Table(
    "users",
    metadata,
    Column("name", _Bytes, primary_key=True),
    Column("role", _Bytes, nullable=False),
    Column("password", _Bytes),  # scrypt; None: comes in by the token that the server prints
    Column("projects", Text, nullable=False),
    Column("preferences", Text, nullable=False),
    Column("at", _Bytes, nullable=False),
)

sessions = Table(
    "sessions",
    metadata,
    Column("secret", _Bytes, primary_key=True),  # its hash
    Column("user", _Bytes, ForeignKey("users.name", ondelete="CASCADE"), nullable=False),
    Column("until", Float, nullable=False),
    Index("sessions_by_user", "user"),
)

invites = Table(
    "invites",
    metadata,
    Column("id", _Bytes, primary_key=True),
    Column("secret", _Bytes, nullable=False, unique=True),  # its hash
    Column("role", _Bytes, nullable=False),
    Column("projects", Text, nullable=False),
    Column("by", _Bytes, nullable=False),
    Column("until", Float, nullable=False),
    Column("used_by", _Bytes),
)

uploads = Table(
    "uploads",
    metadata,
    Column("id", _Bytes, primary_key=True),
    Column("kind", _Bytes, nullable=False),
    Column("name", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("by", _Bytes, nullable=False),
    Column("at", _Bytes, nullable=False),
)

jobs = Table(
    "jobs",
    metadata,
    Column("number", _Number, primary_key=True),
    Column("id", _Bytes, nullable=False, unique=True),
    Column("kind", _Bytes, nullable=False),
    Column("project", _Bytes),
    Column("options", Text, nullable=False),
    Column("by", _Bytes, nullable=False),
    Column("state", _Bytes, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("done", BigInteger),
    Column("total", BigInteger),
    Column("step", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("result", Text),
    Column("cancel", Boolean, nullable=False),
    Column("holder", _Bytes),  # a secret of the process that has it: who does not know it may not write
    Column("pid", Integer),
    Column("born", Float),  # when that process started, so that another one with its number is not taken for it
    Column("lease", Float),  # until when it is believed alive
    Column("created", _Bytes, nullable=False),
    Column("started", _Bytes),
    Column("running_since", Float),
    Column("finished", _Bytes),
    Index("jobs_by_state", "state", "number"),
    Index("jobs_by_project", "project", "number"),
)
