"""Counterfactuals, and what was looked for when they were found."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_BYTES = sa.String(collation="C").with_variant(sa.String(), "sqlite")
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the two tables."""
    op.create_table(
        "flips",
        sa.Column("number", _NUMBER, nullable=False),
        sa.Column("id", _BYTES, nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("text_hash", _BYTES, nullable=False),
        sa.Column("revision", _BYTES, nullable=False),
        sa.Column("method", _BYTES, nullable=False),
        sa.Column("target", _BYTES, nullable=True),
        sa.Column("before", _BYTES, nullable=False),
        sa.Column("after", _BYTES, nullable=False),
        sa.Column("probability", sa.Float(), nullable=False),
        sa.Column("edits", sa.Integer(), nullable=False),
        sa.Column("words", sa.Integer(), nullable=False),
        sa.Column("similarity", sa.Float(), nullable=True),
        sa.Column("perplexity", sa.Float(), nullable=True),
        sa.Column("flips", sa.Boolean(), nullable=False),
        sa.Column("by", _BYTES, nullable=False),
        sa.Column("at", _BYTES, nullable=False),
        sa.Column("flip", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["place"], ["examples.place"]),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("id"),
    )
    op.create_index("flips_by_place", "flips", ["revision", "place", "number"], unique=False)
    op.create_index("flips_by_number", "flips", ["revision", "number"], unique=False)
    op.create_table(
        "flip_searches",
        sa.Column("asked", _BYTES, nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("found", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["place"], ["examples.place"]),
        sa.PrimaryKeyConstraint("asked", "place"),
    )
