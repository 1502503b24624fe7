import { tableOf } from "../table.ts";
import type { Page } from "../layout.ts";
import { html, type Markup } from "../markup.ts";
import {
  agoOf,
  cellLink,
  factsOf,
  failedPage,
  hourOf,
  nextLink,
  reasonField,
  type Outcome,
  type View,
} from "../view.ts";

export async function keysPage(view: View): Promise<Page> {
  const { api, input, nowMs } = view;
  const listed = await api.call("listKeys", {
    query: { page_size: "50", page_token: input.get("page_token") ?? "" },
  });
  if (!listed.ok) return failedPage("Keys", listed.problem);
  const { keys, next_page_token: nextPageToken } = listed.value;
  const lastUses = await lastUsesOf(
    api,
    keys.map(({ id }) => id),
  );
  return {
    title: "Keys",
    main: html`<p><a href="/console/identities">Certificates and tokens</a></p>
      ${tableOf(
        "Keys in the order of their last change",
        keys,
        [
          { title: "Id", value: ({ id }) => html`<a class="id" href="/console/keys/${id}">${id}</a>` },
          { title: "Role", value: ({ role }) => role },
          { title: "Cell", value: ({ cell_id: cell }) => (cell === null ? null : cellLink(cell)) },
          { title: "Note", value: ({ note }) => note },
          { title: "Made", value: ({ created_at: at }) => agoOf(at, nowMs) },
          { title: "Last used", value: ({ id }) => hourOf(lastUses?.get(id)) },
          { title: "Expires", value: ({ expires_at: at }) => at.slice(0, 10) },
          {
            title: "Revoked",
            value: ({ revoked_at: at }) =>
              at === null ? null : html`<span class="bad">${agoOf(at, nowMs)}</span>`,
          },
        ],
        "No key was made here or with the API yet. Keys that are made offline are not listed.",
      )}
      ${lastUses === undefined ? html`<p class="soft">The last uses can't be read now.</p>` : undefined}
      ${nextLink(view, nextPageToken)} ${view.canChange ? mintForm(view) : undefined}`,
  };
}

/** Undefined: D1 can't be read. */
async function lastUsesOf(
  api: View["api"],
  ids: readonly string[],
): Promise<ReadonlyMap<string, string> | undefined> {
  if (ids.length === 0) return new Map();
  const listed = await api.call("listCredentialUses", { query: { id: ids, page_size: "50" } });
  return listed.ok ? new Map(listed.value.uses.map(({ id, last_used_at: at }) => [id, at])) : undefined;
}

const ROLES = ["cell", "router", "operator", "viewer", "scraper", "bridge"] as const;

const mintForm = ({ formToken }: View): Markup =>
  html`<h2>Make a key</h2>
    <form class="stack panel" method="post" action="/console/keys">
      <input type="hidden" name="token" value="${formToken}" />
      <label for="role"
        >Role
        <select id="role" name="role">
          ${ROLES.map((role) => html`<option>${role}</option>`)}
        </select></label
      >
      <label for="cell"
        >Cell <small>Only for the role cell</small><input id="cell" name="cell" maxlength="19"
      /></label>
      <label for="days"
        >Days until it expires<input id="days" name="days" type="number" min="1" value="90"
      /></label>
      <label for="note"
        >Note <small>What it is for</small><input id="note" name="note" maxlength="256"
      /></label>
      ${reasonField()}
      <button class="primary">Make the key</button>
    </form>`;

/** The answer is the only page that ever has the key. */
export async function mintKey({ api, input }: View): Promise<Page> {
  const given = (name: string): string | undefined => input.get(name)?.trim() || undefined;
  const days = Number(given("days") ?? "90");
  const made = await api.call("mintKey", {
    body: {
      role: given("role"),
      cell_id: given("cell"),
      expires_in_s: Math.round(days * 86_400),
      note: given("note"),
      reason: given("reason"),
    },
  });
  if (!made.ok) return failedPage("No key was made", made.problem);
  const { key, id, role, expires_at: expiresAt } = made.value;
  return {
    title: "The new key",
    main: html`<p class="panel warn" role="status">
        Copy the key now. It is shown only here, and stored nowhere.
      </p>
      <p class="secret"><code>${key}</code></p>
      ${factsOf([
        ["Id", html`<a class="id" href="/console/keys/${id}">${id}</a>`],
        ["Role", role],
        ["Expires", expiresAt],
      ])}
      <p><a href="/console/keys">All keys</a></p>`,
  };
}

const OWN_KEY = html`<p class="panel warn">This is your own key: your session ends with it.</p>`;

export function revokePage({ rest, canChange, formToken, session }: View): Page {
  const [id = ""] = rest;
  const isOwn = id === session.keyId;
  return {
    title: `Key ${id}`,
    main: html`<p>
        <a href="/console/audit?key_id=${id}">What was changed with this key</a>,
        <a href="/console/audit?target=${id}">what was changed about it</a>
      </p>
      ${
        canChange
          ? html`<h2>Revoke it</h2>
              ${isOwn ? OWN_KEY : undefined}
              <form class="stack panel" method="post" action="/console/keys/${id}">
                <input type="hidden" name="token" value="${formToken}" />
                <label for="cell"
                  >Cell <small>Only of a cell key that was made offline</small
                  ><input id="cell" name="cell" maxlength="19"
                /></label>
                ${reasonField()}
                <button class="danger">Revoke the key, which is final</button>
              </form>`
          : undefined
      }`,
  };
}

export async function revokeKey({ api, rest, input }: View): Promise<Outcome> {
  const cell = input.get("cell")?.trim() || undefined;
  const revoked = await api.call("revokeKey", {
    params: { id: rest[0] ?? "" },
    body: { cell_id: cell, reason: input.get("reason") ?? "" },
  });
  return revoked.ok ? { location: "/console/keys" } : failedPage("The key was not revoked", revoked.problem);
}
