"""The runtime: fetches, runs, settles; keeps leases; supervises processes; stops without loss."""
