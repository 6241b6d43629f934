"""Alembic's entry: the migrations run on the connection, and in the transaction, that we are given."""

from alembic import context

from bullpen.records.migrating import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
with context.begin_transaction():
    context.run_migrations()
