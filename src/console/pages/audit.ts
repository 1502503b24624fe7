import { auditActions } from "../../core/audit.ts";
import { problemNote, type Page } from "../layout.ts";
import { fieldValue, html, type Part } from "../markup.ts";
import { agoOf, cellLink, nextLink, tableOf, type View } from "../view.ts";

const FILTERS = ["action", "cell", "target", "key_id", "after", "before"] as const;

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
    ${FILTERS.slice(1).map(
      (name) =>
        html`<label for="${name}"
          >${name.replace("_", " ")}<input
            id="${name}"
            name="${name}"
            size="12"
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
      ${tableOf("What operators changed, the latest first", entries, [
        { title: "When", value: ({ at }) => agoOf(at, nowMs) },
        { title: "What", value: ({ action }) => action },
        { title: "Target", value: ({ target }) => html`<span class="id">${target}</span>` },
        { title: "Cell", value: ({ cell_id: cell }) => (cell === null ? null : cellLink(cell)) },
        { title: "Reason", value: ({ reason }) => reason },
        {
          title: "Key",
          value: ({ key_note: note, key_id: id }) => note ?? html`<span class="id">${id}</span>`,
        },
        { title: "Before", value: ({ before }) => statesOf(before) },
        { title: "After", value: ({ after }) => statesOf(after) },
      ])}
      ${nextLink(view, token)}
      <p class="soft">
        ${through === null ? "Some entries are not copied into D1 yet." : html`Complete up to ${through}.`}
      </p>`,
  };
}

const statesOf = (state: Record<string, unknown> | null): Part =>
  state === null ? null : html`<span class="id">${JSON.stringify(state)}</span>`;
