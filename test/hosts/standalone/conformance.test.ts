/** What can differ by host, against the server of `npm run standalone`, over HTTP. */
import type { Started, StartOptions } from "../../suites/conformance/coordinator.ts";
import { hostSuite } from "../../suites/conformance/suite.ts";
import { serveFiles } from "./served.ts";

async function start({ cells = ["1", "2"], variables = {} }: StartOptions): Promise<Started> {
  const served = await serveFiles(cells, variables);
  const { host, url, keys } = served;
  for (const cell of cells) {
    const answer = await fetch(`${url}/v1/admin/cells`, {
      method: "POST",
      headers: { authorization: `Bearer ${keys.operator}`, "content-type": "application/json" },
      body: JSON.stringify({ cell_id: cell, name: `cell-${cell}`, address: `https://cell-${cell}.test` }),
    });
    if (!answer.ok) throw new Error(`cell ${cell} could not be registered: ${await answer.text()}`);
  }
  return {
    url,
    fetch: (to, init) => fetch(to, init),
    keys,
    cron: async () => void (await host.cron()),
    close: () => served.close(),
  };
}

hostSuite("a server in one process", start);
