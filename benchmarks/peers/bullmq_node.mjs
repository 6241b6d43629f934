// Drives BullMQ of Node at the benchmark's command: one JSON object a line in, one a line out.
//
//   bullmq_node.mjs PACKAGE PORT        PACKAGE is the folder of BullMQ
//   in   {"do": "add", "way": "one" | "concurrent" | "bulk", "jobs": N, "data": {…}, "delay_ms": 0}
//        {"do": "drain", "jobs": N, "concurrency": 50}
//   out  {"seconds": …}, after {"version": …} once it is connected

import readline from "node:readline";
import { createRequire } from "node:module";

const [folder, port] = process.argv.slice(2);
const require = createRequire(import.meta.url);
const { Queue, Worker } = require(folder);
const { version } = require(`${folder}/package.json`);

const NAME = "bench";
const JOB = "noop";
const COMPANY = 200;
const connection = { host: "127.0.0.1", port: Number(port), maxRetriesPerRequest: null };
const queue = new Queue(NAME, { connection });

function say(message) {
  process.stdout.write(JSON.stringify(message) + "\n");
}

async function add({ way, jobs, data, delay_ms }) {
  const opts = delay_ms ? { delay: delay_ms } : undefined;
  if (way === "one") {
    for (let n = 0; n < jobs; n++) await queue.add(JOB, data, opts);
    return;
  }
  for (let n = 0; n < jobs; n += COMPANY) {
    const size = Math.min(COMPANY, jobs - n);
    if (way === "concurrent") {
      await Promise.all(Array.from({ length: size }, () => queue.add(JOB, data, opts)));
      continue;
    }
    await queue.addBulk(Array.from({ length: size }, () => ({ name: JOB, data, opts })));
  }
}

async function drain({ jobs, concurrency }) {
  const worker = new Worker(NAME, async () => true, { connection, concurrency, autorun: false });
  await worker.waitUntilReady();
  const start = performance.now();
  let completed = 0;
  await new Promise((resolve, reject) => {
    worker.on("completed", () => {
      completed += 1;
      if (completed === jobs) resolve();
    });
    worker.on("failed", (_, error) => reject(error));
    worker.on("error", reject);
    worker.run().catch(reject);
  });
  const seconds = (performance.now() - start) / 1000;
  worker.close(true).catch(() => {});
  return seconds;
}

async function timed({ do: verb, ...asked }) {
  if (verb === "drain") return drain(asked);
  const start = performance.now();
  await add(asked);
  return (performance.now() - start) / 1000;
}

await queue.waitUntilReady();
say({ version });
for await (const line of readline.createInterface({ input: process.stdin })) {
  say({ seconds: await timed(JSON.parse(line)) });
}
process.exit(0);
