"""Reports about revisions, and the losses of trainings."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_BYTES = sa.String(collation="C").with_variant(sa.String(), "sqlite")


def upgrade() -> None:
    """Make the two tables."""
    op.create_table(
        "reports",
        sa.Column("before", _BYTES, nullable=False),
        sa.Column("after", _BYTES, nullable=False),
        sa.Column("at", _BYTES, nullable=False),
        sa.Column("report", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("before", "after"),
    )
    op.create_index("reports_by_after", "reports", ["after", "at"], unique=False)
    op.create_table(
        "curves",
        sa.Column("job", _BYTES, nullable=False),
        sa.Column("at", _BYTES, nullable=False),
        sa.Column("curve", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("job"),
    )
