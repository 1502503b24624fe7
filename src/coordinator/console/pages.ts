import { html } from "./markup.ts";
import { auditPage } from "./pages/audit.ts";
import { cellPage, cellsPage, changeCellState } from "./pages/cells.ts";
import { healthPage, settingsPage } from "./pages/deployment.ts";
import { identitiesPage } from "./pages/identities.ts";
import { keysPage, mintKey, revokeKey, revokePage } from "./pages/keys.ts";
import { decideLease, leasePage, leasesPage } from "./pages/leases.ts";
import { namePage, searchPage } from "./pages/search.ts";
import { overviewPage } from "./pages/overview.ts";
import { shardsPage } from "./pages/shards.ts";
import { abortTransfer, transferPage, transfersPage } from "./pages/transfers.ts";
import { verificationPage } from "./pages/verification.ts";
import {
  webhookPage,
  webhooksPage,
  addWebhook,
  changePage,
  changeWebhook,
  removePage,
  removeWebhook,
  testWebhook,
} from "./pages/webhooks.ts";
import type { Outcome, View } from "./view.ts";

type Make = (view: View) => Promise<Outcome> | Outcome;

interface Entry {
  /** `*` stands for one part of the path. */
  path: string;
  show: Make;
  /** Takes the page's form. */
  change?: Make;
}

const entries: readonly Entry[] = [
  { path: "/console", show: overviewPage },
  { path: "/console/search", show: searchPage },
  { path: "/console/name", show: namePage },
  { path: "/console/leases", show: leasesPage },
  { path: "/console/leases/*/*", show: leasePage, change: decideLease },
  { path: "/console/cells", show: cellsPage },
  { path: "/console/cells/*", show: cellPage, change: changeCellState },
  { path: "/console/shards", show: shardsPage },
  { path: "/console/transfers", show: transfersPage },
  { path: "/console/transfers/*", show: transferPage, change: abortTransfer },
  { path: "/console/verification", show: verificationPage },
  { path: "/console/audit", show: auditPage },
  { path: "/console/keys", show: keysPage, change: mintKey },
  { path: "/console/keys/*", show: revokePage, change: revokeKey },
  { path: "/console/identities", show: identitiesPage },
  { path: "/console/webhooks", show: webhooksPage, change: addWebhook },
  { path: "/console/webhooks/*", show: webhookPage, change: testWebhook },
  { path: "/console/webhooks/*/change", show: changePage, change: changeWebhook },
  { path: "/console/webhooks/*/remove", show: removePage, change: removeWebhook },
  { path: "/console/settings", show: settingsPage },
  { path: "/console/health", show: healthPage },
];

/** Makes the page at a path, or takes its form. */
export async function pageAt(path: string, isForm: boolean, view: View): Promise<Outcome> {
  const parts = path.split("/");
  for (const entry of entries) {
    const rest = restOf(entry.path.split("/"), parts);
    const make = isForm ? entry.change : entry.show;
    if (rest !== undefined && make !== undefined) return make({ ...view, rest });
  }
  return {
    title: "No such page",
    status: 404,
    main: html`<p class="panel">There is no such page, or it has no form.</p>`,
  };
}

/** The parts that the asterisks stand for. Undefined: the path is another one. */
function restOf(pattern: readonly string[], parts: readonly string[]): string[] | undefined {
  if (pattern.length !== parts.length) return undefined;
  const rest: string[] = [];
  for (const [index, part] of parts.entries()) {
    if (pattern[index] === "*" && /^[\w-]{1,64}$/.test(part)) rest.push(part);
    else if (pattern[index] !== part) return undefined;
  }
  return rest;
}
