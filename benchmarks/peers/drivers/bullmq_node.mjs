// Drives BullMQ of Node at the benchmark's command, in the words of benchmarks/peers/driving.py.
//
//   bullmq_node.mjs PACKAGE drive URL --concurrency N      PACKAGE is the folder of BullMQ
//
// Everything as it comes: events, locks, retries, all results kept. Its worker is a process of its own.

import readline from "node:readline";
import { fork } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const [folder, role, url, , concurrency] = process.argv.slice(2);
const require = createRequire(import.meta.url);
const { Queue, Worker } = require(folder);
const { version } = require(`${folder}/package.json`);

const NAME = "bench";
const JOB = "noop";
const COMPANY = 200;
const WARM_UP = 20;
const { hostname, port } = new URL(url);
const connection = { host: hostname, port: Number(port), maxRetriesPerRequest: null };

function say(message) {
  process.stdout.write(JSON.stringify(message) + "\n");
}

/** On the clock that all processes of a machine share. */
function nowNs() {
  return Number(process.hrtime.bigint());
}

// ── the worker ──────────────────────────────────────────────────────────────────────────

/** Tells its parent the time from its first claim to its last verdict, or how late each job came. */
async function work() {
  let completed = 0;
  let start = 0;
  let awaited = 0;
  const handler = async (job) => {
    if (job.data.sent_ns) process.send({ delay_ns: nowNs() - job.data.sent_ns });
    return true;
  };
  const worker = new Worker(NAME, handler, { connection, concurrency: Number(concurrency), autorun: false });
  worker.on("completed", () => {
    completed += 1;
    if (completed === awaited) process.send({ seconds: (nowNs() - start) / 1e9 });
  });
  worker.on("failed", (_, error) => process.send({ error: String(error) }));
  worker.on("error", (error) => process.send({ error: String(error) }));
  process.on("disconnect", () => process.exit(0));
  process.on("message", (order) => {
    awaited = order.jobs;
    start = nowNs();
    worker.run();
  });
  await worker.waitUntilReady();
  process.send({ ready: true });
}

/** A worker for as long as `use` takes; `use` is given a function that awaits its next word. */
async function withWorker(jobs, use) {
  const child = fork(fileURLToPath(import.meta.url), process.argv.slice(2).with(1, "work"), { stdio: "inherit" });
  const heard = [];
  let wake = () => {};
  const hear = (message) => {
    heard.push(message);
    wake();
  };
  child.on("message", hear);
  child.on("exit", (code) => hear({ error: `the worker ended with ${code}` }));
  const next = async () => {
    while (heard.length === 0) await new Promise((resolve) => (wake = resolve));
    const message = heard.shift();
    if (message.error) throw new Error(message.error);
    return message;
  };
  try {
    await next(); // ready
    child.send({ jobs });
    return await use(next);
  } finally {
    child.kill("SIGKILL");
  }
}

// ── what is asked ───────────────────────────────────────────────────────────────────────

async function add(queue, { way, jobs, data, delay_ms: delay }) {
  const opts = delay ? { delay } : undefined;
  const start = nowNs();
  if (way === "one") {
    for (let n = 0; n < jobs; n++) await queue.add(JOB, data, opts);
  } else if (way === "concurrent") {
    const produce = async (_, first) => {
      for (let n = first; n < jobs; n += COMPANY) await queue.add(JOB, data, opts);
    };
    await Promise.all(Array.from({ length: COMPANY }, produce));
  } else {
    for (let n = 0; n < jobs; n += COMPANY) {
      await queue.addBulk(Array.from({ length: Math.min(COMPANY, jobs - n) }, () => ({ name: JOB, data, opts })));
    }
  }
  return { seconds: (nowNs() - start) / 1e9 };
}

async function drain(_, { jobs }) {
  return withWorker(jobs, (next) => next());
}

async function pickup(queue, { samples, data }) {
  const delays = await withWorker(0, async (next) => {
    const found = [];
    for (let n = 0; n < WARM_UP + samples; n++) {
      await new Promise((resolve) => setTimeout(resolve, 10 + 20 * Math.random()));
      await queue.add(JOB, { ...data, sent_ns: nowNs() });
      found.push((await next()).delay_ns);
    }
    return found.slice(WARM_UP).sort((a, b) => a - b);
  });
  const share = (percent) => delays[Math.ceil((delays.length * percent) / 100) - 1] / 1e6;
  return { p50: share(50), p99: share(99) };
}

if (role === "work") {
  await work();
} else {
  const queue = new Queue(NAME, { connection });
  await queue.waitUntilReady();
  say({ version });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { do: verb, ...asked } = JSON.parse(line);
    say(await { add, drain, pickup }[verb](queue, asked));
  }
  process.exit(0);
}
