"""The conformance kit: a test for each promise, refusal and race of `bullpen.stores.base.Store`.

To prove a store, write a `conftest.py` that says
`pytest.register_assert_rewrite("bullpen.testing.conformance")` and has two fixtures: `harness`
(see `bullpen.testing.harness`) and `store`, which is `await harness.open()`. Then, for each
family of verbs, one test module of one line:

    from bullpen.testing.conformance.adding import *

Tests are plain async functions, and pytest with pytest-asyncio in auto mode runs them. A name
says the behaviour and its kind, and the docstring is the promise:

    test_…           a promise
    test_refuses_…   what the store does not do, and that nothing changed
    test_race_…      what holds though two stores act at once

`scripts/promises.py` makes the table in `docs/explanation/promises.md` from them.
"""
