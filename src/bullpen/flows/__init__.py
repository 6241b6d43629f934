"""Trees of jobs: parents that run after their children, and the usual shapes of them."""
