"""The shop's jobs: as functions, as what a request leaves behind, and run to the end."""

from bullpen import Bullpen
from bullpen.testing import (
    ManualClock,
    assert_not_queued,
    assert_queued,
    run_until_empty,
    test_context,
)
from shop.jobs import MailServer, ask_for_review, confirm, place_order


async def test_the_handler_by_itself(mail_server: list[str]) -> None:
    context = test_context(attempt=2, tenant="acme")
    assert await confirm(context, order_id=7, lang="de") == "confirmed 7"
    assert mail_server == ["order 7 confirmed (de)"]
    assert context.logs == ["attempt 2"]
    assert [job.name for job in context.follow_ups] == ["ask_for_review"]


async def test_an_order_asks_for_its_confirmation(pen: Bullpen) -> None:
    await place_order(7, tenant="acme")
    await assert_queued(pen, confirm.options(tenant="acme"), order_id=7)
    await assert_not_queued(pen, ask_for_review)


async def test_what_is_due_now_and_what_is_not(pen: Bullpen, mail_server: list[str]) -> None:
    await place_order(7, tenant="acme")
    report = await run_until_empty(pen)
    assert [run.result for run in report.check().runs] == ["confirmed 7"]
    assert mail_server == ["order 7 confirmed (en)"]
    await assert_queued(pen, ask_for_review.options(delay=7 * 86_400, tenant="acme"), order_id=7)


async def test_all_of_it_in_a_week(pen: Bullpen, bullpen_clock: ManualClock, mail_server: list[str]) -> None:
    start = bullpen_clock.now()
    await place_order(7, tenant="acme")
    await run_until_empty(pen, clock=bullpen_clock)
    assert mail_server == ["order 7 confirmed (en)", "how was order 7?"]
    assert (bullpen_clock.now() - start).days == 7


async def test_a_mail_server_that_is_away(pen: Bullpen, bullpen_clock: ManualClock, mail_server: list[str]) -> None:
    MailServer.away_for = 2
    start = bullpen_clock.now()
    await confirm.add(order_id=7)
    report = await run_until_empty(pen, clock=bullpen_clock, limit=10)
    assert [run.attempt for run in report.of(confirm)] == [1, 2, 3]
    assert mail_server[0] == "order 7 confirmed (en)"
    assert bullpen_clock.now() > start
