// The Node half of a mixed fleet: `node fleet.mjs producer|worker <part as JSON>`.
//
// The part: {port, prefix, queue, folder, lease_ms, concurrency, jobs}. Notes go where redis_actors.py
// has them: a line in `acknowledged` for each add that returned, in `done` for each job that was run,
// in `begun` for each worker that ran one.

import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(new URL("../interop/package.json", import.meta.url));
const { Queue, Worker } = require("bullmq");

const [role, words] = process.argv.slice(2);
const part = JSON.parse(words);
const connection = { host: "127.0.0.1", port: part.port, maxRetriesPerRequest: null };
const AT_ONCE = 50;

function notes(name) {
  return fs.openSync(path.join(part.folder, name), "a");
}

async function produce() {
  const acknowledged = notes("acknowledged");
  // No event may be dropped: the test reads them all.
  const queue = new Queue(part.queue, {
    connection, prefix: part.prefix, streams: { events: { maxLen: 100_000_000 } },
  });
  for (let n = 0; n < part.jobs; n += AT_ONCE) {
    const adding = [];
    for (let i = n; i < Math.min(n + AT_ONCE, part.jobs); i += 1) {
      const key = `node-${i}`;
      const opts = { ...(i % 5 === 1 && { priority: 3 }), ...(i % 5 === 2 && { delay: 50 }) };
      adding.push(queue.add(key, { key }, opts).then(() => fs.writeSync(acknowledged, `${key}\n`)));
    }
    await Promise.all(adding);
  }
  await queue.close();
}

async function work() {
  const done = notes("done");
  let hasBegun = false;
  const worker = new Worker(part.queue, async ({ data }) => {
    if (!hasBegun) fs.writeSync(notes("begun"), `${process.pid}\n`);
    hasBegun = true;
    await new Promise((goOn) => setTimeout(goOn, Math.random() * 20));
    fs.writeSync(done, `${data.key}\n`);
    return data.key;
  }, {
    connection, prefix: part.prefix, name: "node", concurrency: part.concurrency, drainDelay: 1,
    lockDuration: part.lease_ms, stalledInterval: part.lease_ms,
    maxStalledCount: 1_000_000, // kills must not fail a job here
  });
  // A lock that was lost while the machine was busy is told as an error; its job is run again.
  worker.on("error", (error) => fs.writeSync(errors, `${error.message}\n`));
  process.on("SIGTERM", async () => {
    await worker.close();
    process.exit(0);
  });
}

const errors = notes("node-errors");
const parent = process.ppid;
// Whoever started us and was killed cannot end us.
setInterval(() => process.ppid === parent || process.exit(1), 1_000).unref();
await (role === "producer" ? produce() : work());
