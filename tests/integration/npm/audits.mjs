// All server audits of graphql-http on the address that is given, as a line of JSON each.

import { auditServer } from 'graphql-http';

for (const { id, name, status, reason = null } of await auditServer({ url: process.argv[2] })) {
  console.log(JSON.stringify({ id, name, status, reason }));
}
