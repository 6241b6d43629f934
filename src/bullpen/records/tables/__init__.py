"""Every table of the records, on one `metadata`. What is built on them changes by migrations only."""

from sqlalchemy import MetaData

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)
"""Names begin with `bullpen_`, since a database may be shared with an application's own tables."""
