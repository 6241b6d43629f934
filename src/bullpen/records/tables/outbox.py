"""The outbox: jobs that a transaction wants added, once it is committed.

On a metadata of its own, since it also stands in databases that are not ours.
"""

from sqlalchemy import BigInteger, Index, Integer, LargeBinary, MetaData, String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class OutboxBase(DeclarativeBase):
    metadata = MetaData()


class OutboxRow(OutboxBase):
    """One job to be added. `outbox.add` makes it; it is gone when the queue's store has the job."""

    __tablename__ = "bullpen_outbox"

    number: Mapped[int] = mapped_column(
        BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True
    )
    job_id: Mapped[str] = mapped_column(String(300))
    queue: Mapped[str] = mapped_column(String(200))
    job: Mapped[bytes] = mapped_column(LargeBinary)
    """The `NewJob` with its id, as JSON."""
    written_ms: Mapped[int] = mapped_column(BigInteger)
    tried_ms: Mapped[int | None] = mapped_column(BigInteger)
    """When it was first about to be added: the store remembers the id for a day from then on, at least."""
    holder: Mapped[str | None] = mapped_column(String(64))
    held_until_ms: Mapped[int] = mapped_column(BigInteger, default=0)
    """Until then the holder alone adds it; then another may. What has a problem is held for ever."""
    problem: Mapped[str | None] = mapped_column(Text)
    """Why no relay will add it any more, until a person decides."""

    __table_args__ = (Index("ix_bullpen_outbox_held_until_ms", "held_until_ms", "number"),)
