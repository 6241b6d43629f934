"""For users and for ourselves: a manual clock, and the conformance kit of stores."""
