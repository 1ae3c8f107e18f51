"""Audits of revisions, and what the lab found out about explanations of them."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_BYTES = sa.String(collation="C").with_variant(sa.String(), "sqlite")
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the two tables."""
    op.create_table(
        "audits",
        sa.Column("number", _NUMBER, nullable=False),
        sa.Column("id", _BYTES, nullable=False),
        sa.Column("revision", _BYTES, nullable=False),
        sa.Column("asked", _BYTES, nullable=False),
        sa.Column("complete", sa.Boolean(), nullable=False),
        sa.Column("high", sa.Integer(), nullable=False),
        sa.Column("medium", sa.Integer(), nullable=False),
        sa.Column("low", sa.Integer(), nullable=False),
        sa.Column("examples", sa.Integer(), nullable=False),
        sa.Column("training", sa.Integer(), nullable=False),
        sa.Column("warnings", sa.Text(), nullable=False),
        sa.Column("job", _BYTES, nullable=True),
        sa.Column("by", _BYTES, nullable=False),
        sa.Column("at", _BYTES, nullable=False),
        sa.Column("audit", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("id"),
    )
    op.create_index("audits_by_revision", "audits", ["revision", "number"], unique=False)
    op.create_index("audits_by_asked", "audits", ["asked", "number"], unique=False)
    op.create_table(
        "labs",
        sa.Column("number", _NUMBER, nullable=False),
        sa.Column("id", _BYTES, nullable=False),
        sa.Column("revision", _BYTES, nullable=False),
        sa.Column("warnings", sa.Text(), nullable=False),
        sa.Column("by", _BYTES, nullable=False),
        sa.Column("at", _BYTES, nullable=False),
        sa.Column("lab", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("id"),
    )
    op.create_index("labs_by_revision", "labs", ["revision", "number"], unique=False)
