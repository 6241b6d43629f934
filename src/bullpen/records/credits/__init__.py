"""Credits: what organisations and budgets have, what is held for calls under way, and every move of it."""
