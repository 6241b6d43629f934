# ruff: noqa: A005 - mirrors the room of the same name
