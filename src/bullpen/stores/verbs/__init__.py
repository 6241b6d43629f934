"""The verbs of a store by family, each with its promise; `stores.base` puts them together."""
