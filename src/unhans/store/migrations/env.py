"""Run the steps on the connection, and in the transaction, that the caller holds."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
context.run_migrations()
