// The real Bull Board on a port of its own, on the loopback only.

import { createBullBoard } from "@bull-board/api";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { ExpressAdapter } from "@bull-board/express";

export async function openBoard(queues) {
  // The adapter takes a queue of another major by its version, which the queue has once it is ready.
  await Promise.all(queues.map((queue) => queue.waitUntilReady()));
  const serverAdapter = new ExpressAdapter();
  createBullBoard({ queues: queues.map((queue) => new BullMQAdapter(queue)), serverAdapter });
  return new Promise((ready) => {
    const server = serverAdapter.getRouter().listen(0, "127.0.0.1", () => ready(server));
  });
}
