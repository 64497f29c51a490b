// Draws what dashboard.js knows. `?transport=sse` takes server-sent events in place of a WebSocket, `?token=` is for trying.

import { Api, JobPage, JobsTable, TABS, TabCounts, overServerSentEvents, overWebSocket } from './dashboard.js';

const LINES_SHOWN = 2_000;
const parameters = new URLSearchParams(location.search);
const options = { url: new URL('/graphql', location.href).href, token: () => parameters.get('token') };
const transport = parameters.get('transport') === 'sse' ? overServerSentEvents(options) : overWebSocket(options);
const api = new Api({ ...options, transport });

/** At most one drawing a frame, however much is told. */
function drawer(draw) {
  let isDue = false;
  return () => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      draw();
    });
  };
}

/** An element. Texts are set as texts: what a user called a job is never HTML. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) made.setAttribute(key, value === true ? '' : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

const time = (at) => (at ? new Date(at).toLocaleTimeString([], { hour12: false }) : '–');
const state = (job) => element('span', { class: 'state', 'data-state': job.state }, sentenceCase(job.state));
const sentenceCase = (word) => word[0] + word.slice(1).toLowerCase().replaceAll('_', ' ');

function duration(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  if (hours) return `${hours} h ${minutes} min`;
  return minutes ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}

function progressOf(job) {
  const fraction = job.progress?.fraction;
  if (fraction === null || fraction === undefined) return '';
  const bar = element('progress', { max: 1, value: fraction, 'aria-label': 'Progress' });
  return element('span', {}, bar, element('span', { class: 'percent' }, `${Math.floor(100 * fraction)} %`));
}

function drawFreshness({ phase, asOf, problem }) {
  const place = document.querySelector('#freshness');
  const since = asOf ? ` · as of ${time(asOf)}` : '';
  const words = { LIVE: 'Live', LOADING: 'Loading', RECONNECTING: 'Reconnecting', ENDED: 'Ended', FAILED: 'Stopped' };
  place.dataset.phase = phase;
  place.title = problem ?? '';
  place.textContent = phase === 'FAILED' ? `${words[phase]}: ${problem}` : words[phase] + since;
}

function drawTabs(current, { counts }) {
  const links = Object.entries(TABS).map(([key, { title }]) => {
    const counted = counts[key];
    const number = counted ? `${counted.totalCount}${counted.totalCountExact ? '' : '+'}` : '';
    const link = { href: `#/${key}`, 'aria-current': key === current ? 'page' : null };
    return element('a', link, title, element('span', { class: 'count' }, number));
  });
  document.querySelector('#tabs').replaceChildren(...links);
}

function rowOf(job) {
  const { podCounts: pods, observation } = job;
  const isStale = observation.freshness === 'STALE';
  return element(
    'tr',
    { class: isStale ? 'stale' : null, title: isStale ? `Last known state, since ${time(observation.staleSince)}` : null },
    element('td', { class: 'name' }, element('a', { href: `#/jobs/${encodeURIComponent(job.id)}` }, job.name)),
    element('td', {}, job.project),
    element('td', {}, state(job)),
    element('td', {}, progressOf(job)),
    element('td', { class: 'number' }, String(job.gpus)),
    element('td', { class: 'number' }, `${pods.ready}/${pods.wanted}`),
    element('td', { class: 'number' }, time(job.createdAt)),
    element('td', { class: 'why' }, job.reason?.message ?? ''),
  );
}

const HEADS = [['Job'], ['Project'], ['State'], ['Progress'], ['GPUs', 'number'], ['Pods ready', 'number'], ['Created', 'number'], ['Why']];

/** The jobs of one tab; a row is drawn again only when its revision rose. */
function showTable(key) {
  const drawn = new Map();
  const body = element('tbody');
  const heads = HEADS.map(([title, kind]) => element('th', { scope: 'col', class: kind ?? null }, title));
  const table = element('table', {}, element('thead', {}, element('tr', {}, ...heads)), body);
  const empty = element('div', { class: 'empty' }, 'No jobs here.');
  const more = element('button', { type: 'button' }, 'Show older jobs');
  const card = element('div', { class: 'card scroll' }, table, empty);
  document.querySelector('#main').replaceChildren(card, more);

  const draw = drawer(() => {
    if (jobs.signal.aborted) return;
    const { rows, freshness } = jobs;
    for (const job of rows) {
      if (drawn.get(job.id)?.revision !== job.revision) drawn.set(job.id, { revision: job.revision, row: rowOf(job) });
    }
    const kept = new Set(rows.map((job) => job.id));
    for (const id of drawn.keys()) if (!kept.has(id)) drawn.delete(id);
    body.replaceChildren(...rows.map((job) => drawn.get(job.id).row));
    table.hidden = rows.length === 0;
    empty.hidden = rows.length > 0 || freshness.phase === 'LOADING';
    more.hidden = !jobs.hasMore;
    drawFreshness(freshness);
  });
  const jobs = new JobsTable(api, { filter: TABS[key].filter, onChange: draw });
  more.addEventListener('click', () => jobs.more());
  jobs.run();
  return jobs;
}

function factsOf(job, skewMs) {
  const serverNow = Date.now() + skewMs;
  const running = job.clocks.find((clock) => clock.dueAt && ['RUNNING', 'GRACE'].includes(clock.state));
  const end = job.endedAt ? Date.parse(job.endedAt) : serverNow;
  const metrics = (job.progress?.metrics ?? []).map(({ name, value }) => [name, value?.toPrecision(4) ?? '–']);
  const steps = job.progress?.step ?? null;
  return [
    ['State', state(job)],
    ['Progress', progressOf(job) || '–'],
    ['Steps', steps === null ? '–' : `${steps} of ${job.progress.total ?? '?'}`],
    ['Would end', time(job.progress?.estimatedEndAt)],
    ['Runs for', job.startedAt ? duration(end - Date.parse(job.startedAt)) : '–'],
    ['Attempt', String(job.attempt)],
    ['GPUs', String(job.gpus)],
    running ? [`${sentenceCase(running.kind)} clock`, `${duration(Date.parse(running.dueAt) - serverNow)} left`] : null,
    ...metrics,
  ].filter((fact) => fact !== null);
}

/** A job with its log. Lines are added and not drawn again. */
function showJob(id) {
  const head = element('div');
  const lines = element('pre', { tabindex: 0, 'aria-label': 'Log' });
  const title = element('h2');
  const log = element('section', { class: 'card log' }, title, lines);
  document.querySelector('#main').replaceChildren(element('a', { class: 'back', href: '#/' }, '← Jobs'), head, log);
  let shown = { log: null, count: 0 };

  const drawLog = () => {
    if (!page.log) return;
    if (page.log !== shown.log || page.log.lines.length < shown.count) {
      lines.replaceChildren();
      shown = { log: page.log, count: 0 };
    }
    const isAtEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 40;
    const added = page.log.lines.slice(shown.count);
    lines.append(...added.map(({ number, text }) => element('div', {}, element('i', {}, String(number)), text)));
    shown.count += added.length;
    while (lines.childElementCount > LINES_SHOWN) lines.firstElementChild.remove();
    if (isAtEnd) lines.scrollTop = lines.scrollHeight;
    const status = page.log.isWhole ? 'closed' : sentenceCase(page.log.freshness.phase).toLowerCase();
    title.replaceChildren('Log', element('span', {}, `attempt ${page.log.attempt} · ${status}`));
  };

  const draw = drawer(() => {
    if (page.signal.aborted) return;
    const { job, freshness } = page;
    drawFreshness(freshness);
    if (!job) return;
    const facts = factsOf(job, freshness.skewMs).map(([name, value]) =>
      element('div', {}, element('dt', {}, name), element('dd', {}, value)),
    );
    const reason = job.reason && element('div', { class: 'card reason' }, element('b', {}, job.reason.message), job.reason.advice ?? '');
    head.replaceChildren(element('h1', {}, job.name), element('dl', { class: 'card facts' }, ...facts), reason ?? '');
    drawLog();
  });
  const page = new JobPage(api, { id, tail: 1_000, onChange: draw });
  const clocks = setInterval(draw, 1_000); // dueAt counts down from the server's time, with nothing asked
  page.signal.addEventListener('abort', () => clearInterval(clocks));
  page.run();
  return page;
}

let shown = null;
let current = null;
const drawCounts = drawer(() => drawTabs(current, counts));
const counts = new TabCounts(api, { onChange: drawCounts });

function route() {
  shown?.close();
  const [place, id] = location.hash.slice(2).split('/');
  current = place === 'jobs' ? null : place in TABS ? place : 'active';
  drawCounts();
  shown = current ? showTable(current) : showJob(decodeURIComponent(id));
}

addEventListener('hashchange', route);
route();
counts.run();
