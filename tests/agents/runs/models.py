"""The table of models that these tests ask: one, at a price that is easily reckoned."""

from bullpen.agents.llm.models import ModelTable, table_of

MODEL = "parrot"
MODELS: ModelTable = table_of(
    {
        "version": "test",
        "credits_per_dollar": "100",
        "models": {
            MODEL: {
                "provider": "scripted", "context_window": 100_000, "max_output": 4_096, "input": "1", "output": "1",
            }
        },
    }
)  # fmt: skip
TOKEN = 100
"""Micro-credits, of one read or written."""
