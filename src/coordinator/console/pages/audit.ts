import { auditChanges } from "../../../common/status/audit-changes.ts";
import { tableOf } from "../table.ts";
import { auditActions } from "../../capabilities/audit/audit.ts";
import type { AnswerOf } from "../../api/internal-api.ts";
import { problemNote, type Page } from "../layout.ts";
import { fieldValue, html, type Markup, type Part } from "../markup.ts";
import { agoOf, cellLink, leaseLink, nextLink, type View } from "../view.ts";

const FIELDS = [
  ["cell", "Cell", "7"],
  ["target", "Target", "id"],
  ["key_id", "Key", "id"],
  ["after", "From", "2026-11-25T12:00:00Z"],
  ["before", "Before", "2026-11-26T12:00:00Z"],
] as const;

const FILTERS = ["action", ...FIELDS.map(([name]) => name)];

type Entry = AnswerOf<"listAudit">["entries"][number];

export async function auditPage(view: View): Promise<Page> {
  const { api, input, nowMs } = view;
  const given = Object.fromEntries(FILTERS.map((name) => [name, input.get(name) ?? ""]));
  const listed = await api.call("listAudit", {
    query: { ...given, page_size: "50", page_token: input.get("page_token") ?? "" },
  });
  const filters = html`<form class="filters panel" action="/console/audit">
    <label for="action"
      >Action
      <select id="action" name="action">
        <option value="">any</option>
        ${auditActions.map(
          (action) =>
            html`<option ${action === given["action"] ? html`selected` : undefined}>${action}</option>`,
        )}
      </select></label
    >
    ${FIELDS.map(
      ([name, title, example]) =>
        html`<label for="${name}"
          >${title}<input
            id="${name}"
            name="${name}"
            size="14"
            placeholder="${example}"
            value="${fieldValue(given[name] ?? "")}"
        /></label>`,
    )}
    <button>Filter</button>
  </form>`;
  if (!listed.ok)
    return {
      title: "Audit",
      status: listed.problem.status,
      main: html`${filters}${problemNote(listed.problem)}`,
    };
  const { entries, complete_through: through, next_page_token: token } = listed.value;
  return {
    title: "Audit",
    main: html`${filters}
      ${tableOf(
        "What operators changed, the latest first",
        auditChanges(entries),
        [
          { title: "When", value: ({ at }) => agoOf(at, nowMs) },
          { title: "What", value: ({ action }) => html`<code>${action}</code>` },
          { title: "Target", value: (entry) => targetOf(entry) },
          { title: "Change", value: (entry) => changeOf(entry) },
          { title: "Reason", value: ({ reason }) => reason },
          {
            title: "Key",
            value: ({ key_note: note, key_id: id }) =>
              html`${note === null ? undefined : html`<div>${note}</div>`}${keyLink(id, id)}`,
          },
        ],
        "No change of an operator fits. The cron copies new ones once a minute.",
      )}
      ${nextLink(view, token)}
      <p class="soft">
        ${through === null ? "Some entries are not copied into D1 yet." : html`Complete up to ${through}.`}
      </p>`,
  };
}

/** Links to what was changed, if it has a page. */
function targetOf({ action, target, cell_id: cell }: Entry): Part {
  if (cell !== null && target === cell) return html`cell ${cellLink(cell)}`;
  if (cell !== null && action.endsWith("_lease")) return html`lease ${leaseLink(cell, target)}`;
  if (action.endsWith("_key")) return html`key ${keyLink(target, target)}`;
  return html`<span class="id">${target}</span
    >${cell === null ? undefined : html` of cell ${cellLink(cell)}`}`;
}

const keyLink = (id: string, text: string): Markup =>
  html`<a class="id" href="/console/keys/${id}">${text}</a>`;

/** What differs between the states before and after. */
function changeOf({ before, after }: Entry): Part {
  const names = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  const changes = [...names].flatMap((name) => {
    const [from, to] = [valueText(before?.[name]), valueText(after?.[name])];
    if (from === to) return [];
    return [from === "" ? html`${name}: ${to}` : html`${name}: ${from} → ${to === "" ? "none" : to}`];
  });
  return changes.length === 0 ? null : html`${changes.map((change) => html`<div>${change}</div>`)}`;
}

const valueText = (value: unknown): string =>
  value === null || value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
