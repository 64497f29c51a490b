// dashboard.js by itself, on a transport and a fetch that do what each test says.

import assert from 'node:assert/strict';
import { afterEach, beforeEach, mock, test } from 'node:test';

import { Api, JobLog, JobPage, JobsTable } from './dashboard.js';

const AT = '2026-03-01T09:30:00.000Z';
let transport;
let api;
let answers;
let asked;
let opened = [];

class FakeTransport {
  streams = [];
  cuts = 0;
  #waiting = [];

  subscribe(request, sink) {
    const stream = { request, sink, sent: { ...request.variables }, isOpen: true };
    this.streams.push(stream);
    this.#waiting.shift()?.(stream);
    return () => {
      stream.isOpen = false;
    };
  }

  next() {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  cut() {
    this.cuts += 1;
  }

  dispose() {}
}

beforeEach(() => {
  mock.timers.enable({ apis: ['setTimeout'] });
  transport = new FakeTransport();
  api = new Api({ url: 'http://gateway/graphql', transport });
  [answers, asked] = [[], []];
  mock.method(globalThis, 'fetch', async (_, { body }) => {
    asked.push(JSON.parse(body).variables);
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return Response.json(answer);
  });
});

afterEach(() => {
  for (const one of opened) one.close();
  opened = [];
  mock.timers.reset();
  mock.restoreAll();
});

const job = (id, revision, more = {}) => ({ id, revision, createdAt: `2026-03-01T09:00:0${id}Z`, ...more });
const page = (nodes, { cursor = 'c0', hasNextPage = false } = {}) => ({
  data: { feed: { cursor, at: AT }, jobs: { nodes, pageInfo: { hasNextPage, endCursor: nodes.at(-1)?.id ?? null } } },
});
const step = (field, cursor, kind, more = {}) => ({ data: { [field]: { cursor, kind, at: AT, ...more } } });
const updated = (cursor, one) => step('jobs', cursor, 'UPDATED', { jobId: one.id, job: one });
const refused = (code, more = {}) => [{ message: `${code}.`, extensions: { code, retryable: false, ...more } }];
const shown = (table) => table.rows.map(({ id, revision }) => `${id}@${revision}`);

/** Lets everything happen that waits for nothing but promises. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

async function open(live) {
  opened.push(live);
  const first = transport.next();
  live.ended = live.run();
  return { live, stream: await first };
}

async function resumed(after = 300) {
  const next = transport.next();
  await settle();
  mock.timers.tick(after);
  return next;
}

test('a table subscribes after the cursor that its query gave, and takes the newest revision', async () => {
  answers = [page([job('2', 5), job('1', 3)])];
  const { live, stream } = await open(new JobsTable(api, { filter: { active: true } }));
  assert.deepEqual(stream.sent, { filter: { active: true }, after: 'c0' });
  stream.sink.next(updated('c1', job('1', 4)));
  stream.sink.next(updated('c2', job('2', 4)));
  stream.sink.next(updated('c3', job('3', 1)));
  assert.deepEqual(shown(live), ['3@1', '2@5', '1@4']);
  assert.equal(live.freshness.phase, 'LIVE');
});

test('a job that leaves goes, unless what is shown is newer', async () => {
  answers = [page([job('2', 5), job('1', 3)])];
  const { live, stream } = await open(new JobsTable(api));
  stream.sink.next(step('jobs', 'c1', 'REMOVED', { jobId: '2', job: job('2', 4) }));
  stream.sink.next(step('jobs', 'c2', 'REMOVED', { jobId: '1', job: job('1', 4) }));
  stream.sink.next(updated('c3', job('1', 4)));
  assert.deepEqual(shown(live), ['2@5']);
  stream.sink.next(updated('c4', job('1', 5)));
  stream.sink.next(step('jobs', 'c5', 'REMOVED', { jobId: '2', job: null }));
  assert.deepEqual(shown(live), ['1@5']);
});

test('an older job that no page holds stays out, and a page does not bring back what left', async () => {
  answers = [page([job('5', 1), job('4', 1)], { hasNextPage: true }), page([job('3', 1), job('2', 1)])];
  const { live, stream } = await open(new JobsTable(api, { pageSize: 2 }));
  stream.sink.next(updated('c1', job('1', 9)));
  stream.sink.next(step('jobs', 'c2', 'REMOVED', { jobId: '3', job: job('3', 2) }));
  assert.deepEqual(shown(live), ['5@1', '4@1']);
  await live.more();
  assert.deepEqual(asked[1], { filter: null, first: 2, after: '4' });
  assert.deepEqual(shown(live), ['5@1', '4@1', '2@1']);
  assert.equal(live.hasMore, false);
});

test('after a cut it resumes after the last cursor, a bookmark’s included', async () => {
  answers = [page([job('1', 1)])];
  const { live, stream } = await open(new JobsTable(api));
  stream.sink.next(updated('c1', job('1', 2)));
  stream.sink.next(step('jobs', 'c2', 'BOOKMARK'));
  stream.sink.error({ code: 1006, reason: '' });
  const second = await resumed();
  assert.equal(second.sent.after, 'c2');
  assert.equal(live.freshness.phase, 'RECONNECTING');
  stream.sink.next(updated('c9', job('1', 9)));
  assert.deepEqual(shown(live), ['1@2'], 'nothing of a stream that is over');
  second.sink.complete();
  assert.equal((await resumed()).sent.after, 'c2', 'an end without an error is a cut as well');
});

test('a client that sends the request again by itself sends the newest cursor', async () => {
  answers = [page([])];
  const { stream } = await open(new JobsTable(api));
  stream.sink.next(step('jobs', 'c7', 'BOOKMARK'));
  assert.equal(JSON.parse(JSON.stringify(stream.request)).variables.after, 'c7');
});

test('a cursor that is too old loads again', async () => {
  answers = [page([job('1', 1)]), page([job('2', 1)], { cursor: 'c50' })];
  const { live, stream } = await open(new JobsTable(api));
  const again = transport.next();
  stream.sink.error(refused('CURSOR_EXPIRED'));
  assert.equal((await again).sent.after, 'c50');
  assert.deepEqual(shown(live), ['2@1']);
  assert.equal(live.loads, 2);
});

test('errors come the other way over server-sent events, and mean the same', async () => {
  answers = [page([job('1', 1)]), page([], { cursor: 'c50' })];
  const { stream } = await open(new JobsTable(api));
  const again = transport.next();
  stream.sink.next({ errors: refused('CURSOR_EXPIRED') });
  assert.equal((await again).sent.after, 'c50');
});

test('a slow reader resumes where the gateway says', async () => {
  answers = [page([])];
  const { stream } = await open(new JobsTable(api));
  stream.sink.error(refused('SLOW_CONSUMER', { retryable: true, cursor: 'c30' }));
  assert.equal((await resumed()).sent.after, 'c30');
});

test('a stream that says nothing for too long is cut', async () => {
  answers = [page([])];
  const { stream } = await open(new JobsTable(api));
  stream.sink.next(step('jobs', 'c1', 'BOOKMARK'));
  mock.timers.tick(39_000);
  assert.ok(stream.isOpen);
  mock.timers.tick(1_000);
  assert.ok(!stream.isOpen);
  assert.equal(transport.cuts, 1);
  assert.equal((await resumed()).sent.after, 'c1');
});

test('what trying again does not help ends it with a sentence', async () => {
  answers = [page([])];
  const { live, stream } = await open(new JobsTable(api));
  stream.sink.error(refused('FORBIDDEN'));
  await live.ended;
  assert.equal(live.freshness.phase, 'FAILED');
  assert.equal(live.freshness.problem, 'FORBIDDEN.');
  assert.equal(transport.streams.length, 1);
});

test('a gateway that is away is asked again until it answers', async () => {
  answers = [new TypeError('fetch failed'), new TypeError('fetch failed'), page([job('1', 1)])];
  const live = new JobsTable(api);
  opened.push(live);
  live.run();
  for (const ms of [300, 600]) {
    await settle();
    assert.equal(live.freshness.phase, 'RECONNECTING');
    mock.timers.tick(ms);
  }
  await settle();
  assert.deepEqual(shown(live), ['1@1']);
});

test('a log goes on after its last line and ends with it', async () => {
  const { live, stream } = await open(new JobLog(api, { id: 'j', attempt: 1, tail: 10 }));
  assert.deepEqual(stream.sent, { id: 'j', attempt: 1, after: null, tail: 10 });
  stream.sink.next(step('jobLogs', 'l2', 'UPDATED', { lines: [{ number: 1 }, { number: 2 }], end: false }));
  stream.sink.error(new Error('broken'));
  const second = await resumed();
  assert.deepEqual(second.sent, { id: 'j', attempt: 1, after: 'l2', tail: null });
  second.sink.next(step('jobLogs', 'l2', 'BOOKMARK', { lines: null, end: false }));
  second.sink.next(step('jobLogs', 'l3', 'UPDATED', { lines: [{ number: 3 }], end: true }));
  second.sink.complete();
  await live.ended;
  assert.deepEqual(live.lines.map(({ number }) => number), [1, 2, 3]);
  assert.ok(live.isWhole);
  assert.equal(live.freshness.phase, 'ENDED');
  assert.equal(transport.streams.length, 2);
});

test('a job that is retried shows the log of the new attempt', async () => {
  answers = [{ data: { feed: { cursor: 'c0', at: AT }, job: { id: 'j', revision: 1, attempt: 1 } } }];
  const live = new JobPage(api, { id: 'j' });
  opened.push(live);
  live.run();
  await settle();
  const [logs, jobs] = transport.streams;
  assert.equal(logs.sent.attempt, 1);
  jobs.sink.next(step('job', 'c1', 'UPDATED', { job: { id: 'j', revision: 2, attempt: 2 } }));
  await settle();
  assert.ok(!logs.isOpen);
  assert.equal(transport.streams[2].sent.attempt, 2);
  assert.equal(live.log.attempt, 2);
});

test('a job that is not there is told', async () => {
  answers = [{ data: { feed: { cursor: 'c0', at: AT }, job: null } }];
  const live = new JobPage(api, { id: 'j' });
  await live.run();
  assert.equal(live.freshness.phase, 'FAILED');
  assert.match(live.freshness.problem, /no job j/);
});
