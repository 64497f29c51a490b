// What a dashboard knows and how it stays true. There is no drawing in here, so that it runs in a page and under node.
//
// Load by one query that also asks `feed { cursor }`, subscribe after that cursor, and after a cut subscribe after the
// last cursor received. Nothing is polled, nothing is missed.

import { createClient as createSseClient } from 'graphql-sse';
import { createClient as createWebSocketClient } from 'graphql-ws';

const QUERY_TIMEOUT_MS = 15_000;
// A quiet subscription says so every 15 s, so that a silent one is dead, whatever the network pretends.
const SILENCE_MS = 40_000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 10_000;
// After these the same message would be refused again: the client has a defect.
const FATAL_CLOSE_CODES = new Set([4400, 4401, 4406, 4409, 4429]);
// Every other status may be gone in a moment.
const FATAL_STATUSES = new Set([400, 401, 403, 404, 405, 406, 413, 415, 422]);

const JOB_ROW = `
  fragment JobRow on Job {
    id revision name project state outcome gpus attempt createdAt startedAt endedAt
    reason { code message whose }
    progress { step total fraction }
    podCounts { wanted running ready failed }
    observation { freshness staleSince }
  }`;

const JOB_HEAD = `
  fragment JobHead on Job {
    id revision name project state outcome exitCode gpus attempt createdAt startedAt endedAt
    reason { code message advice whose retryable }
    clocks { kind state dueAt }
    progress { step total fraction stepsPerSecond estimatedEndAt metrics { name value } }
    observation { freshness staleSince problem { message } }
  }`;

const JOBS_TABLE = `
  query JobsTable($filter: JobFilter, $first: Int!, $after: String) {
    feed { cursor at }
    jobs(filter: $filter, first: $first, after: $after) {
      nodes { ...JobRow }
      pageInfo { hasNextPage endCursor }
    }
  } ${JOB_ROW}`;

const LIVE_JOBS_TABLE = `
  subscription LiveJobsTable($filter: JobFilter, $after: String) {
    jobs(filter: $filter, after: $after) { cursor kind at jobId job { ...JobRow } }
  } ${JOB_ROW}`;

const TAB_COUNTS = `
  query TabCounts {
    feed { cursor at }
    active: jobs(first: 1, filter: { active: true }) { totalCount totalCountExact }
    succeeded: jobs(first: 1, filter: { states: [SUCCEEDED] }) { totalCount totalCountExact }
    failed: jobs(first: 1, filter: { states: [FAILED] }) { totalCount totalCountExact }
    canceled: jobs(first: 1, filter: { states: [CANCELED] }) { totalCount totalCountExact }
    all: jobs(first: 1) { totalCount totalCountExact }
  }`;

const LIVE_TAB_COUNTS = `
  subscription LiveTabCounts($after: String) {
    jobs(after: $after) { cursor kind at aspects }
  }`;

const JOB_PAGE = `
  query JobPage($id: ID!) {
    feed { cursor at }
    job(id: $id) { ...JobHead }
  } ${JOB_HEAD}`;

const LIVE_JOB_PAGE = `
  subscription LiveJobPage($id: ID!, $after: String) {
    job(id: $id, after: $after) { cursor kind at jobId job { ...JobHead } }
  } ${JOB_HEAD}`;

const LIVE_LOG = `
  subscription LiveLog($id: ID!, $attempt: Int!, $after: String, $tail: Int) {
    jobLogs(id: $id, attempt: $attempt, after: $after, tail: $tail) {
      cursor kind at end
      lines { number at text }
    }
  }`;

export const TABS = {
  active: { title: 'Active', filter: { active: true } },
  succeeded: { title: 'Succeeded', filter: { states: ['SUCCEEDED'] } },
  failed: { title: 'Failed', filter: { states: ['FAILED'] } },
  canceled: { title: 'Canceled', filter: { states: ['CANCELED'] } },
  all: { title: 'All', filter: null },
};

/** `errors` of an answer, or of the end of a subscription. */
export class Refused extends Error {
  constructor(errors) {
    super(errors.map((error) => error.message).join(' '));
    this.name = 'Refused';
    const extensions = errors[0]?.extensions ?? {};
    this.code = extensions.code ?? 'UNKNOWN';
    this.cursor = extensions.cursor ?? null;
    this.retryable = extensions.retryable ?? false;
    this.retryAfterMs = (extensions.retryAfterSeconds ?? 0) * 1000;
  }
}

/** What trying again does not help: a defect of this page, or an object that is not there. */
export class Hopeless extends Error {
  name = 'Hopeless';
}

/** Subscriptions over one WebSocket. `token` is asked at each connect, so that it may answer a fresh one. */
export function overWebSocket({ url, token = () => null, webSocketImpl }) {
  const client = createWebSocketClient({
    url: url.replace(/^http/, 'ws'),
    webSocketImpl,
    retryAttempts: 0, // `follow` does it for both transports, as long as the page is open
    lazyCloseTimeout: 3_000,
    connectionParams: async () => authorization(await token()),
  });
  return {
    subscribe: (request, sink) => client.subscribe(request, sink),
    cut: () => client.terminate(),
    dispose: () => client.dispose(),
  };
}

/** Subscriptions over server-sent events, a request each: a browser wants HTTP/2 for more than six. */
export function overServerSentEvents({ url, token = () => null }) {
  const client = createSseClient({
    url,
    retryAttempts: 0,
    headers: async () => authorization(await token()),
  });
  return {
    subscribe: (request, sink) => client.subscribe(request, sink),
    cut: () => {}, // ending the subscription ends its request
    dispose: () => client.dispose(),
  };
}

function authorization(token) {
  return token ? { authorization: `Bearer ${token}` } : {};
}

/** Queries by HTTP, subscriptions by `transport`. */
export class Api {
  constructor({ url, transport, token = () => null }) {
    this.url = url;
    this.transport = transport;
    this.token = token;
  }

  /** The `data` of an answer. Throws Refused, or whatever fetch throws where there is no answer. */
  async query(query, variables = {}) {
    const response = await fetch(this.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/graphql-response+json, application/json;q=0.9',
        ...authorization(await this.token()),
      },
      body: JSON.stringify({ query, variables }),
      signal: AbortSignal.timeout(QUERY_TIMEOUT_MS),
    });
    if (!(response.headers.get('content-type') ?? '').includes('json')) {
      throw new Error(`The gateway answered ${response.status} and no JSON.`);
    }
    const { data, errors } = await response.json();
    if (!data) throw new Refused(errors);
    return data;
  }

  dispose() {
    this.transport.dispose();
  }
}

/**
 * How true what is shown is: `phase` is LOADING, LIVE, RECONNECTING, ENDED or FAILED; `asOf` is the server's time up to
 * which everything was told, in milliseconds; `skewMs` is how far the server's clock is ahead of ours.
 */
export class Freshness {
  phase = 'LOADING';
  asOf = null;
  skewMs = 0;
  problem = null;

  /** Told by the server as its present, and not as the time of some change. */
  isNow(at) {
    this.asOf = Date.parse(at);
    this.skewMs = this.asOf - Date.now();
  }

  is(phase, problem = null) {
    this.phase = phase;
    this.problem = problem;
  }
}

/** Does `work` until it succeeds, with growing pauses; throws what can't be helped by trying again. */
async function persist(work, { signal, freshness, onChange }) {
  for (let tries = 0; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (signal.aborted) throw error;
      if (isFatal(error)) throw error;
      freshness.is('RECONNECTING', sentence(error));
      onChange();
      await pause(pauseMs(tries, error), signal);
    }
  }
}

function isFatal(error) {
  if (error instanceof Hopeless) return true;
  if (error instanceof Refused) return !error.retryable;
  if (FATAL_CLOSE_CODES.has(error?.code)) return true;
  return FATAL_STATUSES.has(error?.response?.status);
}

function sentence(error) {
  if (error?.message) return error.message;
  return error?.code ? `The connection was closed with ${error.code} ${error.reason ?? ''}`.trim() : 'The connection broke.';
}

/** Random, so that a thousand pages do not come back in the same moment. */
function pauseMs(tries, error) {
  const most = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** tries);
  return (error?.retryAfterMs ?? 0) + most * (0.5 + Math.random() / 2);
}

function pause(ms, signal) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
    if (signal.aborted) done();
  });
}

/** One stream, until it completes; throws what it ends with. Nothing is handed on once this has returned. */
function streamOnce(transport, request, onStep, signal) {
  return new Promise((resolve, reject) => {
    let isOver = false;
    let watch = null;
    let stop = () => {};
    const end = (settle, value) => {
      if (isOver) return;
      isOver = true;
      clearTimeout(watch);
      signal.removeEventListener('abort', leave);
      stop();
      settle(value);
    };
    const leave = () => end(resolve);
    const listen = () => {
      clearTimeout(watch);
      watch = setTimeout(() => {
        end(reject, new Error('Nothing was heard for too long.'));
        transport.cut();
      }, SILENCE_MS);
    };
    signal.addEventListener('abort', leave);
    listen();
    stop = transport.subscribe(request, {
      next: ({ data, errors }) => {
        if (isOver) return;
        listen();
        if (!data) return end(reject, new Refused(errors));
        try {
          onStep(Object.values(data)[0]);
        } catch (error) {
          end(reject, error instanceof Hopeless ? error : new Hopeless(error.message, { cause: error }));
        }
      },
      error: (error) => end(reject, Array.isArray(error) ? new Refused(error) : error),
      complete: () => end(resolve),
    });
    if (isOver) stop();
    if (signal.aborted) leave();
  });
}

/**
 * Follows one subscription over any number of cuts, until `signal` is aborted or `onStep` answers `true` for "this was
 * the last one". Throws Refused if it can't be resumed, as with CURSOR_EXPIRED.
 */
async function follow(api, { query, variables, cursor, onStep, signal, freshness, onChange }) {
  let after = cursor;
  let isLast = false;
  // Read at each sending: a client that subscribes again by itself must not send the cursor of the beginning.
  const request = {
    query,
    get variables() {
      return variables(after);
    },
  };
  const take = (step) => {
    if (step.kind === 'BOOKMARK') freshness.isNow(step.at);
    else freshness.asOf = Math.max(freshness.asOf ?? 0, Date.parse(step.at));
    freshness.is('LIVE');
    isLast = onStep(step) === true;
    after = step.cursor; // only now: what it stands for is shown
    onChange();
  };
  const listen = async () => {
    let heard = false;
    let problem = null;
    const onNext = (step) => {
      heard = true;
      take(step);
    };
    try {
      await streamOnce(api.transport, request, onNext, signal);
    } catch (error) {
      if (error.code === 'SLOW_CONSUMER' && error.cursor) after = error.cursor;
      if (!heard || isFatal(error)) throw error;
      problem = sentence(error);
    }
    if (isLast || signal.aborted) return;
    if (!heard) throw new Error('The subscription ended before it said anything.');
    freshness.is('RECONNECTING', problem);
    onChange();
    await pause(pauseMs(0), signal); // it worked a moment ago
  };
  while (!isLast && !signal.aborted) await persist(listen, { signal, freshness, onChange });
}

/** Loads and follows, and again from the start each time that a cursor is too old. */
async function keep(live, load, followFrom) {
  const { freshness, onChange, signal } = live;
  try {
    while (!signal.aborted) {
      const cursor = await persist(load, live);
      onChange();
      try {
        await followFrom(cursor);
        if (!signal.aborted) freshness.is('ENDED');
        return;
      } catch (error) {
        if (!(error instanceof Refused) || !['CURSOR_EXPIRED', 'CURSOR_INVALID'].includes(error.code)) throw error;
        freshness.is('LOADING', error.message);
      }
    }
  } catch (error) {
    if (!signal.aborted) freshness.is('FAILED', sentence(error));
  } finally {
    onChange();
  }
}

/** Something live that is shown: `run` keeps it true until `close`. */
class Live {
  freshness = new Freshness();
  #controller = new AbortController();

  constructor(api, { onChange } = {}) {
    this.api = api;
    this.onChange = onChange ?? (() => {});
  }

  get signal() {
    return this.#controller.signal;
  }

  close() {
    this.#controller.abort();
  }

  follow(query, cursor, variables, onStep) {
    const { signal, freshness, onChange } = this;
    return follow(this.api, { query, cursor, variables, onStep, signal, freshness, onChange });
  }
}

/** Jobs that match a filter, newest first: the first page, and as many more as were asked for. */
export class JobsTable extends Live {
  #rows = new Map();
  #gone = new Map(); // revision at which a job left the filter, so that a slower page does not bring it back
  #oldest = null;
  #endCursor = null;
  hasMore = false;
  loads = 0;

  constructor(api, { filter = null, pageSize = 50, onChange } = {}) {
    super(api, { onChange });
    this.filter = filter;
    this.pageSize = pageSize;
  }

  get rows() {
    return [...this.#rows.values()].sort(newestFirst);
  }

  run() {
    return keep(
      this,
      () => this.#load(),
      (cursor) =>
        this.follow(LIVE_JOBS_TABLE, cursor, (after) => ({ filter: this.filter, after }), (step) => this.apply(step)),
    );
  }

  async #load() {
    const { feed, jobs } = await this.api.query(JOBS_TABLE, { filter: this.filter, first: this.pageSize });
    this.loads += 1;
    this.#rows.clear();
    this.#gone.clear();
    this.#take(jobs);
    this.freshness.isNow(feed.at);
    this.freshness.is('LIVE');
    return feed.cursor;
  }

  /** The next page. What the subscription told meanwhile is newer, and stays. */
  async more() {
    if (!this.hasMore) return;
    const { loads } = this;
    const variables = { filter: this.filter, first: this.pageSize, after: this.#endCursor };
    const { jobs } = await persist(() => this.api.query(JOBS_TABLE, variables), this);
    if (loads !== this.loads) return; // of a table that was loaded again since
    this.#take(jobs);
    this.onChange();
  }

  #take({ nodes, pageInfo }) {
    for (const job of nodes) this.#put(job);
    this.#oldest = nodes.at(-1) ?? this.#oldest;
    this.#endCursor = pageInfo.endCursor ?? this.#endCursor;
    this.hasMore = pageInfo.hasNextPage;
  }

  #put(job) {
    const known = this.#rows.get(job.id)?.revision ?? this.#gone.get(job.id) ?? -1;
    if (job.revision <= known) return;
    this.#gone.delete(job.id);
    this.#rows.set(job.id, job);
  }

  /** One step of the subscription. */
  apply({ kind, jobId, job }) {
    if (kind === 'BOOKMARK') return;
    if (kind === 'REMOVED') this.#remove(jobId, job?.revision ?? Infinity);
    else if (this.#isLoaded(job)) this.#put(job);
  }

  #remove(id, revision) {
    if (revision < (this.#rows.get(id)?.revision ?? -1)) return;
    this.#rows.delete(id);
    this.#gone.set(id, revision);
  }

  /** Whether it belongs to the pages that are shown, and not to one that was not asked for yet. */
  #isLoaded(job) {
    return !this.hasMore || this.#rows.has(job.id) || newestFirst(job, this.#oldest) <= 0;
  }
}

function newestFirst(one, other) {
  return compare(other.createdAt, one.createdAt) || compare(other.id, one.id);
}

function compare(one, other) {
  return one < other ? -1 : Number(one > other);
}

/** How many jobs each tab has: counted anew when the state of a job changed, and then once in `EVERY_MS` at most. */
export class TabCounts extends Live {
  static EVERY_MS = 1_000;
  counts = {};
  #timer = null;
  #isOld = false;

  run() {
    this.signal.addEventListener('abort', () => clearTimeout(this.#timer));
    return keep(
      this,
      () => this.#count(),
      (cursor) => this.follow(LIVE_TAB_COUNTS, cursor, (after) => ({ after }), (step) => this.#step(step)),
    );
  }

  async #count() {
    const { feed, ...counts } = await this.api.query(TAB_COUNTS);
    this.counts = counts;
    this.freshness.isNow(feed.at);
    return feed.cursor;
  }

  #step({ kind, aspects }) {
    if (kind !== 'REMOVED' && !aspects.includes('STATE')) return;
    this.#isOld = true;
    this.#timer ??= setTimeout(() => this.#recount(), TabCounts.EVERY_MS);
  }

  async #recount() {
    this.#isOld = false; // what changes from here on may not be counted
    try {
      await persist(() => this.#count(), this);
      this.#timer = this.#isOld ? setTimeout(() => this.#recount(), TabCounts.EVERY_MS) : null;
    } catch (error) {
      if (!this.signal.aborted) this.freshness.is('FAILED', sentence(error));
    } finally {
      this.onChange();
    }
  }
}

/** One job with its progress, and the log of its current attempt. */
export class JobPage extends Live {
  job = null;
  log = null;
  #work = [];

  constructor(api, { id, tail = null, onChange } = {}) {
    super(api, { onChange });
    this.id = id;
    this.tail = tail;
  }

  async run() {
    await keep(
      this,
      () => this.#load(),
      (cursor) => this.follow(LIVE_JOB_PAGE, cursor, (after) => ({ id: this.id, after }), (step) => this.apply(step)),
    );
    await Promise.all(this.#work);
  }

  close() {
    super.close();
    this.log?.close();
  }

  async #load() {
    const { feed, job } = await this.api.query(JOB_PAGE, { id: this.id });
    if (!job) throw new Hopeless(`There is no job ${this.id} that you may see.`);
    this.#put(job);
    this.freshness.isNow(feed.at);
    this.freshness.is('LIVE');
    return feed.cursor;
  }

  apply({ kind, job }) {
    if (kind === 'REMOVED' && !job) throw new Hopeless('The job was removed for good.');
    if (job) this.#put(job);
  }

  #put(job) {
    if (job.revision <= (this.job?.revision ?? -1)) return;
    this.job = job;
    if (this.log?.attempt !== job.attempt) this.#followLog(job.attempt);
  }

  #followLog(attempt) {
    this.log?.close();
    this.log = new JobLog(this.api, { id: this.id, attempt, tail: this.tail, onChange: this.onChange });
    this.#work.push(this.log.run());
  }
}

/** The log of one attempt, from the first line or the last `tail` of them, until it is closed. */
export class JobLog extends Live {
  lines = [];
  isWhole = false;

  constructor(api, { id, attempt, tail = null, onChange }) {
    super(api, { onChange });
    Object.assign(this, { id, attempt, tail });
  }

  run() {
    const { id, attempt, tail } = this;
    return keep(
      this,
      async () => {
        this.lines = [];
        return null; // it starts at its first line
      },
      (cursor) =>
        this.follow(
          LIVE_LOG,
          cursor,
          (after) => ({ id, attempt, after, tail: after ? null : tail }),
          (step) => this.apply(step),
        ),
    );
  }

  apply({ lines, end }) {
    this.lines.push(...(lines ?? []));
    this.isWhole = end;
    return end;
  }
}
