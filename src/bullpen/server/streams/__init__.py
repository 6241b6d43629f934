"""Events as they happen, to many listeners at once.

    event log of a queue ──read once──▶ Channel ──by job, tenant or all──▶ Listener ──▶ SSE, WebSocket, long poll
                                         (Hub)                              (bounded)

A log is read only while somebody listens, once for all of them. A listener that comes with a cursor
is told what it missed from the store, and joins the others where that ends. One that does not keep
up loses what waits for it and is told of a gap: memory is bounded however slow it reads.
"""
