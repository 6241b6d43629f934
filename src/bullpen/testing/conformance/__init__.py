"""The conformance kit: one test for each promise of `bullpen.stores.base.Store`.

To prove a store, write a `harness` fixture (see `bullpen.testing.harness`) in a `conftest.py`
that says `pytest.register_assert_rewrite("bullpen.testing.conformance")`, and one test module:

    from bullpen.testing.conformance.adding import *
    from bullpen.testing.conformance.claiming import *
    …

Tests are plain functions, by verb family. Their names say the promise; `scripts/promises.py`
makes the table in `docs/explanation/promises.md` from them.
"""
