// BullMQ of either major at the tests' command: one JSON object a line in, one a line out.
//
//   node bullmq.mjs <package> <redis port>
//
//   in   {"call": 7, "verb": "add", "prefix": "p", "queue": "mail", ...}
//   out  {"call": 7, "answer": ...} or {"call": 7, "error": "..."}
//        {"prefix": "p", "queue": "mail", "source": "worker", "event": "completed", ...} by itself
//
// pypi.py speaks the same, word for word.

import readline from "node:readline";

const [packageName, port] = process.argv.slice(2);
const bullmq = await import(packageName);
const connection = { host: "127.0.0.1", port: Number(port), maxRetriesPerRequest: null };
const EVENTS = [
  "active", "added", "cleaned", "completed", "deduplicated", "delayed", "drained", "duplicated", "failed",
  "paused", "progress", "removed", "resumed", "retries-exhausted", "stalled", "waiting",
];

function say(message) {
  process.stdout.write(JSON.stringify(message) + "\n");
}

// ── what was opened for one prefix, to be closed with its test ──────────────────────────────

const places = new Map();

class Place {
  constructor(prefix) {
    this.prefix = prefix;
    this.queues = new Map();
    this.listeners = new Map();
    this.workers = new Map();
    this.held = [];
    this.boards = [];
  }

  tell(queue, source, event, more) {
    say({ prefix: this.prefix, queue, source, event, ...more });
  }

  open(maker, source, name, handler, options) {
    const given = { connection, prefix: this.prefix, ...options };
    const made = handler ? new maker(name, handler, given) : new maker(name, given);
    made.on("error", (error) => this.tell(name, source, "error", { message: String(error) }));
    return made;
  }

  queue(name) {
    if (!this.queues.has(name)) this.queues.set(name, this.open(bullmq.Queue, "queue", name));
    return this.queues.get(name);
  }

  flows() {
    this.producer ??= new bullmq.FlowProducer({ connection, prefix: this.prefix });
    return this.producer;
  }

  async job({ queue, id }) {
    const job = await this.queue(queue).getJob(id);
    if (!job) throw new Error(`no job ${id}`);
    return job;
  }

  release() {
    for (const goOn of this.held.splice(0)) goOn();
  }

  // What the handler does is told by the job's data: hold, speak, fail, or return what was sent.
  async handle(job, queue) {
    const { data } = job;
    for (const line of data.logs ?? []) await job.log(line);
    if (data.progress !== undefined) await job.updateProgress(data.progress);
    if (data.hold) await this.hold(job, queue);
    if (data.gather) return job.getChildrenValues();
    if (data.unrecoverable) throw new bullmq.UnrecoverableError(data.unrecoverable);
    if (data.fail && job.attemptsMade < (data.times ?? Infinity)) throw new Error(data.fail);
    return { echo: data, name: job.name, attempt: job.attemptsMade + 1 };
  }

  hold(job, queue) {
    const released = new Promise((goOn) => this.held.push(goOn));
    this.tell(queue, "worker", "holding", { id: job.id });
    return released;
  }

  async work({ queue, options }) {
    // An idle worker sleeps until it is woken: whoever adds a job must leave the marker that does it.
    const settings = { drainDelay: 3600, ...options };
    const worker = this.open(bullmq.Worker, "worker", queue, (job) => this.handle(job, queue), settings);
    worker.on("completed", (job) => this.tell(queue, "worker", "completed", { id: job.id }));
    worker.on("failed", (job, error) => this.tell(queue, "worker", "failed", { id: job?.id, message: error.message }));
    worker.on("stalled", (id) => this.tell(queue, "worker", "stalled", { id }));
    this.workers.set(queue, worker);
    await worker.waitUntilReady();
  }

  // Its workers end their jobs and take no more.
  async rest() {
    const workers = [...this.workers.values()];
    this.workers.clear();
    await Promise.all(workers.map((worker) => worker.close()));
  }

  async listen({ queue }) {
    const listener = this.open(bullmq.QueueEvents, "events", queue, null, { lastEventId: "0-0" });
    for (const event of EVENTS) {
      listener.on(event, (args) => this.tell(queue, "events", event, { args: typeof args === "object" ? args : {} }));
    }
    this.listeners.set(queue, listener);
    await listener.waitUntilReady();
  }

  async close() {
    this.release();
    for (const board of this.boards) board.close();
    await this.rest();
    const opened = [...this.listeners.values(), ...this.queues.values()];
    if (this.producer) opened.push(this.producer);
    await Promise.all(opened.map((one) => one.close()));
  }
}

function place(prefix) {
  if (!places.has(prefix)) places.set(prefix, new Place(prefix));
  return places.get(prefix);
}

// The ids of a tree that was added.
function ids({ job, children }) {
  return { id: job.id, children: (children ?? []).map(ids) };
}

// ── the verbs ───────────────────────────────────────────────────────────────────────────────

async function told(job) {
  const { id, name, data, opts, returnvalue, failedReason, stacktrace, progress, priority, delay } = job;
  const { attemptsMade, attemptsStarted, stalledCounter, deferredFailure, processedBy } = job;
  return {
    id, name, data, opts, returnvalue, failedReason, stacktrace, progress, priority, delay,
    attemptsMade, attemptsStarted, stalledCounter, deferredFailure, processedBy, state: await job.getState(),
  };
}

const verbs = {
  add: async (at, { queue, name, data, opts }) => (await at.queue(queue).add(name, data, opts)).id,
  addBulk: async (at, { queue, jobs }) => (await at.queue(queue).addBulk(jobs)).map((job) => job.id),
  flow: async (at, { tree }) => ids(await at.flows().add(tree)),
  childrenValues: async (at, asked) => (await at.job(asked)).getChildrenValues(),
  job: async (at, asked) => {
    const job = await at.queue(asked.queue).getJob(asked.id);
    return job ? told(job) : null;
  },
  ids: async (at, { queue, state, asc }) => (await at.queue(queue).getJobs([state], 0, -1, asc)).map((job) => job.id),
  counts: (at, { queue }) => at.queue(queue).getJobCounts(),
  logs: async (at, { queue, id }) => (await at.queue(queue).getJobLogs(id)).logs,
  workers: async (at, { queue }) => (await at.queue(queue).getWorkers()).map((worker) => worker.rawname),
  subject: (at, { queue, id }) => at.queue(queue).getDeduplicationJobId(id),

  pause: (at, { queue }) => at.queue(queue).pause(),
  resume: (at, { queue }) => at.queue(queue).resume(),
  isPaused: (at, { queue }) => at.queue(queue).isPaused(),
  limitActive: (at, { queue, most }) => at.queue(queue).setGlobalConcurrency(most),
  limitRate: (at, { queue, most, duration }) => at.queue(queue).setGlobalRateLimit(most, duration),
  drain: (at, { queue, delayed }) => at.queue(queue).drain(delayed),
  clean: (at, { queue, grace, limit, state }) => at.queue(queue).clean(grace, limit, state),
  obliterate: (at, { queue, force }) => at.queue(queue).obliterate({ force }),

  upsertScheduler: async (at, { queue, id, repeat, name, data, opts }) =>
    (await at.queue(queue).upsertJobScheduler(id, repeat, { name, data, opts })).id,
  schedulers: (at, { queue }) => at.queue(queue).getJobSchedulers(0, -1, true),
  removeScheduler: (at, { queue, id }) => at.queue(queue).removeJobScheduler(id),

  promote: async (at, asked) => (await at.job(asked)).promote(),
  retry: async (at, asked) => (await at.job(asked)).retry(asked.state),
  remove: async (at, asked) => (await at.job(asked)).remove(),
  log: async (at, asked) => (await at.job(asked)).log(asked.line),
  progress: async (at, asked) => (await at.job(asked)).updateProgress(asked.value),
  updateData: async (at, asked) => (await at.job(asked)).updateData(asked.data),
  changeDelay: async (at, asked) => (await at.job(asked)).changeDelay(asked.delay),
  changePriority: async (at, asked) => (await at.job(asked)).changePriority({ priority: asked.priority }),

  work: (at, asked) => at.work(asked),
  rest: (at) => at.rest(),
  release: (at) => at.release(),
  listen: (at, asked) => at.listen(asked),
  result: async (at, { queue, id, timeout }) => {
    const job = await at.job({ queue, id });
    return { value: await job.waitUntilFinished(at.listeners.get(queue), timeout) };
  },
  board: async (at, { queues }) => {
    const { openBoard } = await import("./board.mjs");
    const board = await openBoard(queues.map((name) => at.queue(name)));
    at.boards.push(board);
    return board.address().port;
  },

  // "Job.waitUntilFinished": whether this client has it.
  has: (_, { path }) => {
    const [owner, method] = path.split(".");
    return typeof bullmq[owner]?.prototype?.[method] === "function";
  },
  close: async (at) => {
    places.delete(at.prefix);
    await at.close();
  },
};

async function carryOut(line) {
  const { call, verb, prefix, ...asked } = JSON.parse(line);
  try {
    say({ call, answer: (await verbs[verb](place(prefix), asked)) ?? null });
  } catch (error) {
    say({ call, error: error.message });
  }
}

const input = readline.createInterface({ input: process.stdin });
input.on("line", carryOut);
input.on("close", async () => {
  for (const open of places.values()) await open.close();
  process.exit(0);
});
say({ event: "ready" });
