import { auditChanges } from "../../../common/status/audit-changes.ts";
import { problemNote, type Page } from "../layout.ts";
import { html, fieldValue, type Markup, type Part } from "../markup.ts";
import {
  agoOf,
  allCells,
  findCell,
  cellLink,
  entityOf,
  leaseLink,
  transferLink,
  factsOf,
  nextLink,
  stateOf,
  whenOf,
  type View,
} from "../view.ts";
import { nameLink } from "./leases.ts";
import { tableOf } from "../table.ts";
import type { AnswerOf } from "../../api/internal-api.ts";

const HINT =
  "Give a name, the id of a lease, a transfer, a request, a cell or a key, or a subject or a source such " +
  "as USER 42.";

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** The id of a transfer has the cell whose ledger has it. */
const TRANSFER_ID = /^[1-9]\d{0,18}-[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** The cells whose ledgers are asked for a lease or a transfer. */
const MAX_ASKED = 100;

/** The keys that are searched, in pages of 100. */
const MAX_KEY_PAGES = 20;

/** The latest audit entries that are searched for a request. */
const MAX_ENTRIES = 1_000;

/** Says what a text is: a name, a lease, a transfer, a request, a cell, a key, a subject or a source. */
export async function searchPage(view: View): Promise<Page> {
  const text = (view.input.get("q") ?? "").trim();
  if (text === "") return { title: "Search", main: html`<p class="panel empty">${HINT}</p>` };
  const [names, leases, transfers, entries, sources, subjects, cell, key] = await Promise.all([
    namesOf(view, text),
    UUID.test(text) ? leasesOf(view, text) : [],
    UUID.test(text) ? transfersOf(view, text) : TRANSFER_ID.test(text) ? transferOf(view, text) : [],
    UUID.test(text) ? entriesOf(view, text) : [],
    sourcesOf(view, text),
    subjectsOf(view, text),
    /^[1-9]\d{0,18}$/.test(text) ? cellOf(view, text) : [],
    /^[\w-]{8,64}$/.test(text) ? keyOf(view, text) : [],
  ]);
  const found = [...cell, ...leases, ...transfers, ...key, ...entries, ...subjects, ...sources, ...names];
  return {
    title: found.length === 0 ? "Nothing found" : `Found: ${found.length}`,
    main: html`<p class="panel"><code>${text}</code></p>
      ${
        found.length === 0
          ? html`<p class="panel empty">${HINT}</p>`
          : html`<ul class="panel reasons">
              ${found.map((each) => html`<li>${each}</li>`)}
            </ul>`
      }`,
  };
}

/** Looks the text up as a name of every declared type. */
async function namesOf({ api }: View, text: string): Promise<Markup[]> {
  const declared = await api.call("getTypes");
  if (!declared.ok) return [html`Names can't be searched: ${declared.problem.detail}`];
  const types = Object.keys(declared.value.types.bucket_types);
  const answers = await Promise.all(
    types.map(async (type) => {
      const found = await api.call("getRecord", { params: { bucket_type: type, value: text } });
      return found.ok
        ? [
            html`Name ${nameLink({ type, value: text })} of the type ${type}, owned by cell
            ${cellLink(found.value.record.cell_id)}`,
          ]
        : [];
    }),
  );
  return answers.flat();
}

async function leasesOf({ api }: View, uuid: string): Promise<Markup[]> {
  const cells = await allCells(api);
  if (!cells.ok) return [html`Leases can't be searched: ${cells.problem.detail}`];
  const answers = await Promise.all(
    cells.value.slice(0, MAX_ASKED).map(async ({ cell_id: cell }) => {
      const found = await api.call("getLease", { params: { cell, uuid } });
      return found.ok
        ? [html`Lease ${leaseLink(cell, uuid)} of cell ${cellLink(cell)}: ${found.value.lease.state}`]
        : [];
    }),
  );
  return answers.flat();
}

/** Only the ledger of its destination has a transfer (Y1). */
async function transfersOf(view: View, uuid: string): Promise<Markup[]> {
  const cells = await allCells(view.api);
  if (!cells.ok) return [html`Transfers can't be searched: ${cells.problem.detail}`];
  const some = cells.value.slice(0, MAX_ASKED);
  const found = await Promise.all(some.map(({ cell_id: cell }) => transferOf(view, `${cell}-${uuid}`)));
  return found.flat();
}

async function transferOf({ api }: View, id: string): Promise<Markup[]> {
  const found = await api.call("getTransfer", { params: { id } });
  if (!found.ok) return [];
  const { transfer } = found.value;
  return [
    html`Transfer ${transferLink(transfer.id)} from cell ${cellLink(transfer.from)} to cell
    ${cellLink(transfer.to)}: ${transfer.state}`,
  ];
}

/** What operators changed with a request. */
async function entriesOf({ api, nowMs }: View, requestId: string): Promise<Markup[]> {
  const listed = await api.call("listAudit", { query: { page_size: String(MAX_ENTRIES) } });
  if (!listed.ok) return [html`Requests can't be searched: ${listed.problem.detail}`];
  return auditChanges(listed.value.entries.filter(({ request_id: id }) => id === requestId)).map(
    ({ action, target, at }) =>
      html`Request ${requestId}: <code>${action}</code> of
        <a class="id" href="/console/audit?target=${target}">${target}</a>, ${agoOf(at, nowMs)}`,
  );
}

/** The names of a source with a decimal id, such as `RAILS_TABLE_USERS 42`. */
async function sourcesOf({ api }: View, text: string): Promise<Markup[]> {
  const [, type = "", id = ""] = /^([A-Z][A-Z0-9_]{0,63})[ :]+([1-9]\d{0,17}|0)$/.exec(text) ?? [];
  if (id === "") return [];
  const cells = await allCells(api);
  if (!cells.ok) return [html`Sources can't be searched: ${cells.problem.detail}`];
  const range = {
    source_type: type,
    source_id_gt: id === "0" ? undefined : String(BigInt(id) - 1n),
    source_id_lte: id,
  };
  const answers = await Promise.all(
    cells.value.slice(0, MAX_ASKED).map(async ({ cell_id: cell }) => {
      const listed = await api.call("listRecords", { params: { cell }, query: range });
      if (!listed.ok) return [];
      return listed.value.records.map(
        ({ bucket, subject }) =>
          html`Name ${nameLink(bucket)} of the type ${bucket.type}, with the source ${text} and the subject
          ${entityOf(subject)}, owned by cell ${cellLink(cell)}`,
      );
    }),
  );
  return answers.flat();
}

/** The names of a subject, such as `USER 42`, as far as one call of the API searches. */
async function subjectsOf({ api, input }: View, text: string): Promise<Markup[]> {
  const [, type = "", id = ""] = /^([A-Z][A-Z0-9_]{0,63})[ :]+(\S.*)$/.exec(text) ?? [];
  if (id === "") return [];
  const token = input.get("page_token") ?? "";
  const query = { subject_type: type, subject_id: id, page_token: token };
  const searched = await api.call("searchRecords", { query });
  if (!searched.ok)
    return searched.problem.field === "subject_type"
      ? []
      : [html`Subjects can't be searched: ${searched.problem.detail}`];
  const { records, next_page_token: next } = searched.value;
  const found = records.map(
    ({ bucket, cell_id: cell }) =>
      html`Name ${nameLink(bucket)} of the type ${bucket.type}, with the subject ${text}, owned by cell
      ${cellLink(cell)}`,
  );
  if (next === "") return found;
  const more = `/console/search?${String(new URLSearchParams({ q: text, page_token: next }))}`;
  return [
    ...found,
    html`Some claims have not been searched for this subject yet.
      <a class="button" href="${more}">Search on</a>`,
  ];
}

async function cellOf({ api }: View, id: string): Promise<Markup[]> {
  const found = await findCell(api, id);
  const cell = found.ok ? found.value : undefined;
  return cell === undefined ? [] : [html`Cell ${cellLink(id)}: ${cell.name}`];
}

async function keyOf({ api }: View, id: string): Promise<Markup[]> {
  let token = "";
  for (let page = 0; page < MAX_KEY_PAGES; page += 1) {
    const listed = await api.call("listKeys", { query: { page_size: "100", page_token: token } });
    if (!listed.ok) return [];
    const key = listed.value.keys.find((each) => each.id === id);
    if (key !== undefined)
      return [
        html`Key <a class="id" href="/console/keys/${id}">${id}</a> of the role ${key.role}
          ${key.note === null ? undefined : html`(${key.note})`}`,
      ];
    token = listed.value.next_page_token;
    if (token === "") return [];
  }
  return [];
}

/** One name: its record, and what a router learns of it. */
export async function namePage(view: View): Promise<Page> {
  const { api, input, nowMs } = view;
  const [type, value] = [input.get("type") ?? "", input.get("value") ?? ""];
  const params = { bucket_type: type, value };
  const declared = await api.call("getTypes");
  const types = declared.ok ? Object.keys(declared.value.types.bucket_types) : [];
  const lookUp = lookUpForm(types, type, value);
  if (value === "" || type === "") return { title: "Look up a name", main: lookUp };
  const [record, route, history] = await Promise.all([
    api.call("getRecord", { params }),
    api.call("getRoute", { params }),
    api.call("listHistory", {
      params,
      query: { page_size: "50", page_token: input.get("page_token") ?? "" },
    }),
  ]);
  const found = record.ok && "uuid" in record.value.record ? record.value.record : undefined;
  return {
    title: `Name ${value}`,
    status: record.ok ? 200 : record.problem.status,
    main: html`<p class="soft">Of the type ${type}.</p>
      <h2>Owner</h2>
      ${
        found === undefined
          ? record.ok
            ? undefined
            : problemNote(record.problem)
          : factsOf([
              ["Cell", cellLink(found.cell_id)],
              ["Status", stateOf(found.status)],
              ["Canonical form", found.bucket.value],
              ["Epoch", found.epoch],
              ["Subject", entityOf(found.subject)],
              ["Source", entityOf(found.source)],
              ["Held by", holderOf(found)],
              ["Claimed", whenOf(found.created_at, nowMs)],
              ["Changed", whenOf(found.updated_at, nowMs)],
            ])
      }
      <h2>As a router sees it</h2>
      ${
        route.ok
          ? factsOf([
              ["Cell", cellLink(route.value.cell.id)],
              ["Address", route.value.cell.address],
              ["Epoch", route.value.epoch],
              ["Key", html`<code>${route.value.key}</code>`],
              ["Shard", route.value.shard],
              ["Position", route.value.position],
              ["May be kept", route.value.settled ? "yes" : "no: a lease holds it"],
            ])
          : problemNote(route.problem)
      }
      <h2>History</h2>
      ${history.ok ? historyOf(history.value, view) : problemNote(history.problem)}
      <h2>Another name</h2>
      ${lookUp}`,
  };
}

type WholeRecord = Extract<AnswerOf<"getRecord">["record"], { uuid: string }>;

function holderOf({ cell_id: cell, lease_uuid: lease, transfer_id: transfer }: WholeRecord): Part {
  if (transfer !== undefined) return html`transfer ${transferLink(transfer)}`;
  return lease === null ? "no lease" : html`lease ${leaseLink(cell, lease)}`;
}

function historyOf(history: AnswerOf<"listHistory">, view: View): Markup {
  const { periods, complete_since: since, next_page_token: token } = history;
  const { nowMs } = view;
  return html`${tableOf(
    "Who owned it, the latest first",
    periods,
    [
      { title: "From", value: ({ from }) => whenOf(from, nowMs) },
      {
        title: "Until",
        value: ({ until }) => (until === null ? html`<span class="good">now</span>` : whenOf(until, nowMs)),
      },
      { title: "Cell", value: ({ cell_id: cell }) => cellLink(cell) },
      { title: "Spelling", value: ({ value }) => value },
      { title: "Subject", value: ({ subject }) => entityOf(subject) },
      { title: "Source", value: ({ source }) => entityOf(source) },
      { title: "Epoch", value: ({ epoch }) => epoch, isNumber: true },
      {
        title: "Ended by",
        value: (period) => {
          // The page lists the latest first.
          const next = periods[periods.indexOf(period) - 1];
          return period.ended_by && html`${period.ended_by.kind}, ${endLink(period, next)}`;
        },
      },
    ],
    token === "" ? "No cell had this name." : "No period on this page.",
  )}
  ${nextLink(view, token)}
  ${
    since === null
      ? undefined
      : html`<p class="soft">Periods that ended before ${whenOf(since, nowMs)} are not kept.</p>`
  }`;
}

type Period = AnswerOf<"listHistory">["periods"][number];

/** What has ended a period. A transfer is named after its destination, the cell of the next period. */
function endLink({ cell_id: cell, ended_by: end }: Period, next: Period | undefined): Part {
  if (end === null) return null;
  if (end.kind !== "move") return leaseLink(cell, end.lease_uuid);
  return next === undefined
    ? html`<span class="id">${end.lease_uuid}</span>`
    : transferLink(`${next.cell_id}-${end.lease_uuid}`);
}

const lookUpForm = (types: readonly string[], type: string, value: string): Markup =>
  html`<form class="filters panel" action="/console/name">
    <label for="type"
      >Type
      <select id="type" name="type" required>
        ${[...new Set([...types, ...(type === "" ? [] : [type])])].map(
          (each) => html`<option ${each === type ? html`selected` : undefined}>${each}</option>`,
        )}
      </select></label
    >
    <label for="value"
      >Name<input id="value" name="value" required maxlength="1024" value="${fieldValue(value)}"
    /></label>
    <button>Look up</button>
  </form>`;
