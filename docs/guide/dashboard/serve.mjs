// Serves this folder and passes /graphql on to a gateway, so that page and API have one origin, as behind an ingress.
//   node serve.mjs [gateway, by default http://127.0.0.1:8000] [port, by default 5173]

import { createReadStream } from 'node:fs';
import { createServer, request } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { pipeline } from 'node:stream';

const gateway = new URL(process.argv[2] ?? 'http://127.0.0.1:8000');
const port = Number(process.argv[3] ?? 5173);
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript', '.css': 'text/css' };

function toGateway({ method, url, headers }) {
  return request({ hostname: gateway.hostname, port: gateway.port || 80, method, path: url, headers });
}

function isForGateway(url) {
  return url.split('?')[0] === '/graphql';
}

function serveFile(url, response) {
  const path = normalize(decodeURIComponent(new URL(url, 'http://x').pathname));
  const file = createReadStream(join(import.meta.dirname, path === '/' ? 'index.html' : path));
  file.on('open', () => response.writeHead(200, { 'content-type': `${TYPES[extname(file.path)] ?? 'text/plain'}; charset=utf-8` }));
  file.on('error', () => response.writeHead(404).end('There is no such file.\n'));
  file.pipe(response);
}

const server = createServer((incoming, response) => {
  if (!isForGateway(incoming.url)) return serveFile(incoming.url, response);
  const passed = toGateway(incoming);
  passed.on('response', (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    pipeline(answer, response, () => {});
  });
  passed.on('error', () => (response.headersSent ? response.destroy() : response.writeHead(502).end('The gateway is away.\n')));
  response.on('close', () => passed.destroy());
  incoming.pipe(passed);
});

server.on('upgrade', (incoming, socket) => {
  const passed = toGateway(incoming);
  socket.on('error', () => passed.destroy());
  passed.on('error', () => socket.destroy());
  passed.on('response', () => socket.destroy()); // it did not agree to a WebSocket
  passed.on('upgrade', (answer, other) => {
    const lines = Object.entries(answer.headers).map(([name, value]) => `${name}: ${value}`);
    socket.write(['HTTP/1.1 101 Switching Protocols', ...lines, '', ''].join('\r\n'));
    pipeline(other, socket, other, () => {});
  });
  passed.end();
});

server.listen(port, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/ shows ${gateway.origin}`));
