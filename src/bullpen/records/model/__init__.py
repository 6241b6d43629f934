"""The read model: what lists, search and charts read, so that nothing pages through the queue's store.

    event log ──▶ which jobs changed ──▶ look at them ──▶ rows, words, counts, minutes and the cursor
                                                          in one transaction

Events only say *that* a job changed; what it is now is read from the store, for a page of events in
one trip. So a row is never older than the events that were read, the same events read twice do no
harm, and a rescan writes the very same rows.
"""
