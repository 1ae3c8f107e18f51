"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_BYTES = sa.String(collation="C").with_variant(sa.String(), "sqlite")
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "examples",
        sa.Column("place", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("id", _BYTES, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("pair", sa.Text(), nullable=True),
        sa.Column("label", _BYTES, nullable=True),
        sa.Column("group", _BYTES, nullable=True),
        sa.Column("split", _BYTES, nullable=True),
        sa.Column("highlights", sa.Text(), nullable=True),
        sa.Column("notes", sa.Text(), nullable=True),
        sa.Column("text_hash", _BYTES, nullable=False),
        sa.Column("words", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("place"),
        sa.UniqueConstraint("id"),
    )
    op.create_index("examples_by_hash", "examples", ["text_hash"], unique=False)
    op.create_index("examples_by_label", "examples", ["label", "place"], unique=False)
    op.create_index("examples_by_split", "examples", ["split", "place"], unique=False)
    op.create_index(
        "examples_noted",
        "examples",
        ["place"],
        unique=False,
        sqlite_where=sa.text("notes IS NOT NULL"),
        postgresql_where=sa.text("notes IS NOT NULL"),
    )
    op.create_table(
        "explanation_sets",
        sa.Column("id", _BYTES, nullable=False),
        sa.Column("revision", _BYTES, nullable=False),
        sa.Column("recipe", sa.Text(), nullable=False),
        sa.Column("target", _BYTES, nullable=True),
        sa.Column("units", _BYTES, nullable=False),
        sa.Column("at", _BYTES, nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("scale", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("explanation_sets_by_revision", "explanation_sets", ["revision", "at"], unique=False)
    op.create_table(
        "feedback",
        sa.Column("number", _NUMBER, nullable=False),
        sa.Column("id", _BYTES, nullable=False),
        sa.Column("key", _BYTES, nullable=False),
        sa.Column("author", _BYTES, nullable=False),
        sa.Column("subject", _BYTES, nullable=False),
        sa.Column("kind", _BYTES, nullable=False),
        sa.Column("example", _BYTES, nullable=True),
        sa.Column("retracts", _BYTES, nullable=True),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("at", _BYTES, nullable=False),
        sa.Column("entry", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("author", "key", name="feedback_once"),
        sa.UniqueConstraint("id"),
    )
    op.create_index("feedback_by_author", "feedback", ["author", "number"], unique=False)
    op.create_index("feedback_by_example", "feedback", ["author", "example", "number"], unique=False)
    op.create_index("feedback_by_subject", "feedback", ["author", "subject", "number"], unique=False)
    op.create_table(
        "invites",
        sa.Column("id", _BYTES, nullable=False),
        sa.Column("secret", _BYTES, nullable=False),
        sa.Column("role", _BYTES, nullable=False),
        sa.Column("projects", sa.Text(), nullable=False),
        sa.Column("by", _BYTES, nullable=False),
        sa.Column("until", sa.Float(), nullable=False),
        sa.Column("used_by", _BYTES, nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("secret"),
    )
    op.create_table(
        "jobs",
        sa.Column("number", _NUMBER, nullable=False),
        sa.Column("id", _BYTES, nullable=False),
        sa.Column("kind", _BYTES, nullable=False),
        sa.Column("project", _BYTES, nullable=True),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("by", _BYTES, nullable=False),
        sa.Column("state", _BYTES, nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("done", sa.BigInteger(), nullable=True),
        sa.Column("total", sa.BigInteger(), nullable=True),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("cancel", sa.Boolean(), nullable=False),
        sa.Column("holder", _BYTES, nullable=True),
        sa.Column("pid", sa.Integer(), nullable=True),
        sa.Column("born", sa.Float(), nullable=True),
        sa.Column("lease", sa.Float(), nullable=True),
        sa.Column("created", _BYTES, nullable=False),
        sa.Column("started", _BYTES, nullable=True),
        sa.Column("running_since", sa.Float(), nullable=True),
        sa.Column("finished", _BYTES, nullable=True),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("id"),
    )
    op.create_index("jobs_by_project", "jobs", ["project", "number"], unique=False)
    op.create_index("jobs_by_state", "jobs", ["state", "number"], unique=False)
    op.create_table(
        "reservations",
        sa.Column("place", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("author", _BYTES, nullable=False),
        sa.Column("until", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("place", "author"),
    )
    op.create_index("reservations_by_end", "reservations", ["until"], unique=False)
    op.create_table(
        "set_aside",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("row", sa.Integer(), nullable=False),
        sa.Column("file", sa.Text(), nullable=False),
        sa.Column("line", sa.Integer(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
    )
    op.create_table(
        "settings",
        sa.Column("name", _BYTES, nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "uploads",
        sa.Column("id", _BYTES, nullable=False),
        sa.Column("kind", _BYTES, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("by", _BYTES, nullable=False),
        sa.Column("at", _BYTES, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "users",
        sa.Column("name", _BYTES, nullable=False),
        sa.Column("role", _BYTES, nullable=False),
        sa.Column("password", _BYTES, nullable=True),
        sa.Column("projects", sa.Text(), nullable=False),
        sa.Column("preferences", sa.Text(), nullable=False),
        sa.Column("at", _BYTES, nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "explanations",
        sa.Column("set", _BYTES, nullable=False),
        sa.Column("text_hash", _BYTES, nullable=False),
        sa.Column("attribution", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["set"],
            ["explanation_sets.id"],
        ),
        sa.PrimaryKeyConstraint("set", "text_hash"),
    )
    op.create_table(
        "opinions",
        sa.Column("author", _BYTES, nullable=False),
        sa.Column("subject", _BYTES, nullable=False),
        sa.Column("feedback", _BYTES, nullable=False),
        sa.Column("number", _NUMBER, nullable=False),
        sa.Column("kind", _BYTES, nullable=False),
        sa.Column("example", _BYTES, nullable=True),
        sa.Column("word", _BYTES, nullable=True),
        sa.Column("label", _BYTES, nullable=True),
        sa.Column("value", _BYTES, nullable=False),
        sa.ForeignKeyConstraint(
            ["feedback"],
            ["feedback.id"],
        ),
        sa.PrimaryKeyConstraint("author", "subject"),
    )
    op.create_index("opinions_by_example", "opinions", ["example", "kind", "author", "value"], unique=False)
    op.create_index("opinions_by_kind", "opinions", ["kind", "value", "author", "example"], unique=False)
    op.create_index("opinions_by_subject", "opinions", ["subject"], unique=False)
    op.create_index("opinions_by_word", "opinions", ["word", "label"], unique=False)
    op.create_table(
        "predictions",
        sa.Column("revision", _BYTES, nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("label", _BYTES, nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("correct", sa.Boolean(), nullable=True),
        sa.Column("probabilities", sa.Text(), nullable=False),
        sa.Column("unread", sa.Text(), nullable=True),
        sa.Column("unknown", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(
            ["place"],
            ["examples.place"],
        ),
        sa.PrimaryKeyConstraint("revision", "place"),
    )
    op.create_index("predictions_by_confidence", "predictions", ["revision", "confidence", "place"], unique=False)
    op.create_index("predictions_by_correct", "predictions", ["revision", "correct", "place"], unique=False)
    op.create_index("predictions_by_label", "predictions", ["revision", "label", "place"], unique=False)
    op.create_table(
        "ranked_words",
        sa.Column("set", _BYTES, nullable=False),
        sa.Column("label", _BYTES, nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("word", _BYTES, nullable=False),
        sa.Column("score", sa.Float(), nullable=False),
        sa.Column("spread", sa.Float(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("correct", sa.Float(), nullable=True),
        sa.Column("z", sa.Float(), nullable=True),
        sa.Column("weight", sa.Float(), nullable=True),
        sa.Column("coverage", sa.Float(), nullable=True),
        sa.Column("disagreement", sa.Float(), nullable=True),
        sa.Column("damage", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(
            ["set"],
            ["explanation_sets.id"],
        ),
        sa.PrimaryKeyConstraint("set", "label", "rank"),
    )
    op.create_index("ranked_words_by_word", "ranked_words", ["set", "label", "word"], unique=True)
    op.create_table(
        "sessions",
        sa.Column("secret", _BYTES, nullable=False),
        sa.Column("user", _BYTES, nullable=False),
        sa.Column("until", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["user"], ["users.name"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("secret"),
    )
    op.create_index("sessions_by_user", "sessions", ["user"], unique=False)
