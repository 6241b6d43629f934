// BullMQ at the tests' command: one JSON object a line in, one a line out.
//
//   in   {"call": 7, "verb": "add", ...}
//   out  {"call": 7, "answer": ...} or {"call": 7, "error": "..."}
//        {"event": "completed", ...} from a worker that was started by "work"

import readline from "node:readline";
import { Queue, QueueEvents, Worker } from "bullmq";
import IORedis from "ioredis";

const [port, prefix] = process.argv.slice(2);
const connection = { host: "127.0.0.1", port: Number(port), maxRetriesPerRequest: null };
const opened = [];
const queues = new Map();
const listeners = new Map();

function say(message) {
  process.stdout.write(JSON.stringify(message) + "\n");
}

function connect() {
  return new IORedis(connection);
}

function open(maker, name, ...more) {
  const client = connect();
  const made = new maker(name, ...more, { connection: client, prefix });
  made.on("error", (error) => say({ event: "error", message: String(error) }));
  opened.push(async () => {
    await made.close();
    client.disconnect();
  });
  return made;
}

function queue(name) {
  if (!queues.has(name)) queues.set(name, open(Queue, name));
  return queues.get(name);
}

async function jobOf({ queue: name, id }) {
  const job = await queue(name).getJob(id);
  if (!job) return null;
  const { data, opts, returnvalue, failedReason, stacktrace } = job;
  return { state: await job.getState(), data, opts, returnvalue, failedReason, stacktrace };
}

// What the worker does is told by the job's data: fail, or return what was sent.
async function handle(job) {
  if (job.data.fail) throw new Error(job.data.fail);
  return { echo: job.data, name: job.name, attempt: job.attemptsMade + 1 };
}

const verbs = {
  async add({ queue: name, name: job, data, opts }) {
    return (await queue(name).add(job, data, opts)).id;
  },
  job: jobOf,
  counts: ({ queue: name }) => queue(name).getJobCounts(),
  pause: ({ queue: name }) => queue(name).pause(),
  resume: ({ queue: name }) => queue(name).resume(),
  async listen({ queue: name }) {
    listeners.set(name, open(QueueEvents, name));
    await listeners.get(name).waitUntilReady();
  },
  async result({ queue: name, id, timeout }) {
    const job = await queue(name).getJob(id);
    return { value: await job.waitUntilFinished(listeners.get(name), timeout) };
  },
  async work({ queue: name }) {
    const worker = open(Worker, name, handle);
    worker.on("completed", (job) => say({ event: "completed", id: job.id }));
    worker.on("failed", (job, error) => say({ event: "failed", id: job.id, message: error.message }));
    await worker.waitUntilReady();
  },
};

async function carryOut(line) {
  const { call, verb, ...asked } = JSON.parse(line);
  try {
    say({ call, answer: (await verbs[verb](asked)) ?? null });
  } catch (error) {
    say({ call, error: error.message });
  }
}

const input = readline.createInterface({ input: process.stdin });
input.on("line", carryOut);
input.on("close", async () => {
  for (const close of opened.reverse()) await close();
  process.exit(0);
});
say({ event: "ready" });
