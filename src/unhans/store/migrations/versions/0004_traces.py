"""Training examples behind examples, copies of them, and how doubtful their labels are."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_BYTES = sa.String(collation="C").with_variant(sa.String(), "sqlite")
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the three tables."""
    op.create_table(
        "traces",
        sa.Column("number", _NUMBER, nullable=False),
        sa.Column("revision", _BYTES, nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("asked", _BYTES, nullable=False),
        sa.Column("text_hash", _BYTES, nullable=False),
        sa.Column("leads", sa.Boolean(), nullable=False),
        sa.Column("helpful", sa.Text(), nullable=False),
        sa.Column("by", _BYTES, nullable=False),
        sa.Column("at", _BYTES, nullable=False),
        sa.Column("influence", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["place"], ["examples.place"]),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("revision", "place", "asked", name="traces_once"),
    )
    op.create_index("traces_by_place", "traces", ["place", "number"], unique=False)
    op.create_table(
        "copies",
        sa.Column("number", _NUMBER, nullable=False),
        sa.Column("id", _BYTES, nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("text_hash", _BYTES, nullable=False),
        sa.Column("label", _BYTES, nullable=False),
        sa.Column("label_kept", sa.Float(), nullable=True),
        sa.Column("edited", sa.Boolean(), nullable=False),
        sa.Column("deleted", sa.Boolean(), nullable=False),
        sa.Column("by", _BYTES, nullable=False),
        sa.Column("at", _BYTES, nullable=False),
        sa.Column("copy", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["place"], ["examples.place"]),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("id"),
    )
    op.create_index("copies_by_place", "copies", ["place", "number"], unique=False)
    op.create_table(
        "doubts",
        sa.Column("revision", _BYTES, nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("text_hash", _BYTES, nullable=False),
        sa.Column("label", _BYTES, nullable=False),
        sa.Column("score", sa.Float(), nullable=False),
        sa.Column("doubt", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["place"], ["examples.place"]),
        sa.PrimaryKeyConstraint("revision", "rank"),
    )
    op.create_index("doubts_by_label", "doubts", ["revision", "label", "rank"], unique=False)
