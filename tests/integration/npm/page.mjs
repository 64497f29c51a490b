// The guide's dashboard.js without a browser. It takes orders as lines of JSON and tells as such what it would show.
//   node page.mjs URL ws|sse

import { createInterface } from 'node:readline';
import WebSocket from 'ws';

import { Api, JobPage, JobsTable, TABS, TabCounts, overServerSentEvents, overWebSocket } from './dashboard.js';

const [url, kind] = process.argv.slice(2);
const transport = kind === 'sse' ? overServerSentEvents({ url }) : overWebSocket({ url, webSocketImpl: WebSocket });
const api = new Api({ url, transport });
const tables = {};
const pages = {};
let counts = null;
let isDue = false;

function tell() {
  if (isDue) return;
  isDue = true;
  setImmediate(() => {
    isDue = false;
    console.log(JSON.stringify({ tables: mapped(tables, tableNow), pages: mapped(pages, pageNow), counts: counts.counts }));
  });
}

function mapped(them, now) {
  return Object.fromEntries(Object.entries(them).map(([key, one]) => [key, now(one)]));
}

function tableNow({ rows, hasMore, loads, freshness }) {
  return { rows, hasMore, loads, phase: freshness.phase, problem: freshness.problem };
}

function pageNow({ job, log, freshness }) {
  const lines = log?.lines.length ?? 0;
  return { job, lines, isWhole: log?.isWhole ?? false, phase: freshness.phase, logPhase: log?.freshness.phase };
}

const ORDERS = {
  show: ({ tab, pageSize }) => {
    tables[tab] = new JobsTable(api, { filter: TABS[tab].filter, pageSize, onChange: tell });
    tables[tab].run();
  },
  more: ({ tab }) => tables[tab].more(),
  open: ({ id }) => {
    pages[id] = new JobPage(api, { id, onChange: tell });
    pages[id].run();
  },
  lines: ({ id }) => console.log(JSON.stringify({ lines: pages[id].log.lines })),
};

counts = new TabCounts(api, { onChange: tell });
counts.run();
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line);
  ORDERS[order.do](order);
}
for (const one of [...Object.values(tables), ...Object.values(pages), counts]) one.close();
api.dispose();
// Nothing is left that would keep node from ending: a timer or a socket that stays is a defect, and the test sees it.
