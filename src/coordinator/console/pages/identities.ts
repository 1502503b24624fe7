import type { AnswerOf } from "../../api/internal-api.ts";
import type { Page } from "../layout.ts";
import { html, type Markup } from "../markup.ts";
import { tableOf } from "../table.ts";
import { agoOf, cellLink, failedPage, hourOf, nextLink, type View } from "../view.ts";

type Use = AnswerOf<"listCredentialUses">["uses"][number];

/** What is accepted beside keys, and which certificates and subjects of tokens were used. */
export async function identitiesPage(view: View): Promise<Page> {
  const { api, input, nowMs } = view;
  const kind = input.get("kind") === "token" ? "token" : "certificate";
  const [accepted, used] = await Promise.all([
    api.call("getIdentities"),
    api.call("listCredentialUses", {
      query: { kind, page_size: "50", page_token: input.get("page_token") ?? "" },
    }),
  ]);
  if (!accepted.ok) return failedPage("Certificates and tokens", accepted.problem);
  const { authority_expiries: authorities, issuers } = accepted.value;
  return {
    title: "Certificates and tokens",
    main: html`<p>
        <a href="/console/identities">Certificates</a>, <a href="/console/identities?kind=token">tokens</a>,
        <a href="/console/keys">keys</a>
      </p>
      ${tableOf(
        "Authorities of client certificates",
        authorities,
        [
          { title: "Name", value: ({ name }) => name },
          { title: "Expires", value: ({ expires_at: at }) => dayOf(at, nowMs) },
        ],
        "No authority is accepted.",
      )}
      ${tableOf(
        "Issuers of tokens",
        issuers,
        [
          { title: "Name", value: ({ name }) => name },
          { title: "Issuer", value: ({ issuer }) => issuer },
          { title: "Rules", value: ({ rules }) => rules.length, isNumber: true },
        ],
        "No issuer is accepted.",
      )}
      ${
        used.ok
          ? html`${usesTable(kind, used.value.uses, nowMs)} ${nextLink(view, used.value.next_page_token)}`
          : html`<p class="soft">The uses can't be read now.</p>`
      }
      <p class="soft">
        Run <code>leasehold identities plan</code> to see what your file would change. Last uses are recorded
        once per hour.
      </p>`,
  };
}

const usesTable = (kind: "certificate" | "token", uses: readonly Use[], nowMs: number): Markup =>
  tableOf(
    kind === "token" ? "Subjects of tokens that were used" : "Certificates that were used",
    uses,
    [
      { title: "Id", value: ({ id }) => html`<a class="id" href="/console/keys/${id}">${id}</a>` },
      { title: "Issued by", value: ({ issued_by: by }) => by },
      { title: "Name", value: ({ name }) => name },
      { title: "Role", value: ({ role }) => role },
      { title: "Cell", value: ({ cell_id: cell }) => (cell === null ? null : cellLink(cell)) },
      { title: "Last used", value: ({ last_used_at: at }) => hourOf(at) },
      { title: "Expires", value: ({ expires_at: at }) => (at === null ? null : dayOf(at, nowMs)) },
      {
        title: "Revoked",
        value: ({ revoked_at: at }) =>
          at === null ? null : html`<span class="bad">${agoOf(at, nowMs)}</span>`,
      },
    ],
    "None is recorded.",
  );

const dayOf = (at: string, nowMs: number): Markup | string =>
  Date.parse(at) > nowMs ? at.slice(0, 10) : html`<span class="bad">${at.slice(0, 10)}</span>`;
