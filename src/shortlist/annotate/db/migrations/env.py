"""Called by alembic: runs the migrations on the connection that `upgrade` opened."""

from alembic import context

from shortlist.annotate.db.schema import Base

context.configure(
    connection=context.config.attributes["connection"], target_metadata=Base.metadata, render_as_batch=True
)
context.run_migrations()
