import { tableOf } from "../table.ts";
import {
  samplesIn,
  type Samples,
  agoOf,
  cellLink,
  factsOf,
  failedPage,
  leaseLink,
  nextLink,
  reasonField,
  stateOf,
  whenOf,
  typedCellField,
  type Outcome,
  type View,
} from "../view.ts";
import { adviceOn } from "../../../common/status/lease-advice.ts";
import { durationText } from "../../../common/text/duration.ts";
import { problemNote, type Page } from "../layout.ts";
import { fieldValue, html, type Markup } from "../markup.ts";
import type { AnswerOf } from "../../api/internal-api.ts";
import { barsOf } from "../bars.ts";

const PAGE = "50";

type Lease = AnswerOf<"getLease">["lease"];

/** Leases of all cells by age, the oldest first. */
export async function leasesPage(view: View): Promise<Page> {
  const { api, input } = view;
  const cell = input.get("cell") ?? "";
  const isStale = input.get("stale") === "1";
  const token = input.get("page_token") ?? "";
  const [listed, metrics] = await Promise.all([
    api.call("listStaleLeases", {
      query: { page_size: PAGE, cell, older_than_s: isStale ? undefined : "0", page_token: token },
    }),
    token === "" ? api.call("getMetrics") : undefined,
  ]);
  const ages = metrics?.ok === true ? leaseAgesOf(samplesIn(metrics.value), cell) : undefined;
  const filters = html`<form class="filters panel" action="/console/leases">
    <label for="cell">Cell<input id="cell" name="cell" size="8" value="${fieldValue(cell)}" /></label>
    <label class="check"
      ><input type="checkbox" name="stale" value="1" ${isStale ? html`checked` : undefined} /> only stale
      ones</label
    >
    <button>Filter</button>
  </form>`;
  if (!listed.ok)
    return {
      title: "Open leases",
      status: listed.problem.status,
      main: html`${filters}${problemNote(listed.problem)}`,
    };
  const { leases, last_pulled_at: pulledAt, next_page_token: next } = listed.value;
  const none = isStale ? "No lease is stale." : "No lease is open.";
  return {
    title: isStale ? "Stale leases" : "Open leases",
    main: html`${filters}${ages}
      ${tableOf(
        "The oldest first",
        leases,
        [
          { title: "Lease", value: ({ cell_id: id, uuid }) => leaseLink(id, uuid) },
          { title: "Cell", value: ({ cell_id: id }) => cellLink(id) },
          { title: "Age", value: ({ age_ms: ms }) => durationText(ms), isNumber: true },
          { title: "Names", value: ({ counts }) => countOf(counts), isNumber: true },
          { title: "Confirmed", value: ({ confirmed }) => (confirmed ? "by its ledger" : "only in D1") },
        ],
        next === "" ? none : "No lease of this page is open any more.",
      )}
      ${nextLink(view, next)}
      <p class="soft">
        ${
          pulledAt === null
            ? "D1 does not have the leases of every cell yet."
            : html`From D1, copied ${agoOf(pulledAt, view.nowMs)}.`
        }
      </p>`,
  };
}

const countOf = ({ creates, destroys, replaces }: Lease["counts"]): number => creates + destroys + replaces;

export async function leasePage(view: View): Promise<Page> {
  const [cell = "", uuid = ""] = view.rest;
  const found = await view.api.call("getLease", { params: { cell, uuid } });
  if (!found.ok) return failedPage("Lease", found.problem);
  const { nowMs } = view;
  const { lease } = found.value;
  const isOpen = lease.state === "GRANTED";
  const reported = isOpen && view.canChange ? await reportedNote(view, lease) : undefined;
  return {
    title: `Lease ${lease.uuid}`,
    main: html`${leaseFacts(lease, nowMs)}${namesOf(lease)}
    ${reported && decisionForm(view, lease, undefined, reported)}`,
  };
}

const leaseFacts = (lease: Lease, nowMs: number): Markup =>
  factsOf([
    ["Cell", cellLink(lease.cell_id)],
    ["State", stateOf(lease.state)],
    ["Granted", whenOf(lease.created_at, nowMs)],
    ["Decided", whenOf(lease.decided_at, nowMs)],
    ["Decided by", lease.decided_by],
    ["Decided by key", lease.decided_by_key],
    ["Reason", lease.reason],
    ["Names", countOf(lease.counts)],
  ]);

function namesOf({ creates = [], destroys = [], replaces = [] }: Lease): Markup {
  const ops = [
    ...creates.map(({ bucket }) => ({ op: "create", bucket })),
    ...destroys.map(({ bucket }) => ({ op: "destroy", bucket })),
    ...replaces.map(({ bucket }) => ({ op: "replace", bucket })),
  ];
  if (ops.length === 0) return html``;
  return tableOf("Names of the lease", ops, [
    { title: "Name", value: ({ bucket }) => nameLink(bucket) },
    { title: "Type", value: ({ bucket }) => bucket.type },
    { title: "Change", value: ({ op }) => op },
  ]);
}

export const nameLink = ({ type, value }: { type: string; value: string }): Markup =>
  html`<a href="/console/name?${new URLSearchParams({ type, value }).toString()}">${value}</a>`;

/** What the cell reported last: one that is alive decides its leases by itself. And how to decide. */
async function reportedNote({ api }: View, lease: Lease): Promise<Markup> {
  const cell = lease.cell_id;
  const answer = await api.call("getStatus", { params: { cell } });
  const [reported = "", ...advice] = adviceOn(lease, answer.ok ? answer.value.status : null);
  return html`<div class="panel">
    <h3>What the cell reported last</h3>
    <p>${answer.ok ? reported : answer.problem.detail}</p>
    ${advice.map((line) => html`<p>${line}</p>`)}
    <p><a href="/console/cells/${cell}#reported">The whole report of cell ${cell}</a></p>
  </div>`;
}

const decisionForm = (
  { formToken, input }: View,
  { uuid, cell_id: cell }: Lease,
  fault: string | undefined,
  reported: Markup,
): Markup =>
  html`<h2>Decide this lease</h2>
    <p>
      Its cell decides it by itself. Decide it here only if the cell is gone for good: the cell may have
      committed or rolled back its own transaction. A decision is final.
    </p>
    ${fault === undefined ? undefined : html`<p class="panel bad" role="alert">${fault}</p>`}
    <div class="beside">
      <form class="stack panel" method="post" action="/console/leases/${cell}/${uuid}">
        <input type="hidden" name="token" value="${formToken}" />
        <label for="decision"
          >Decision
          <select id="decision" name="decision">
            <option value="rollback">Roll back</option>
            <option value="commit" ${input.get("decision") === "commit" ? html`selected` : undefined}>
              Commit
            </option>
          </select></label
        >
        ${typedCellField} ${reasonField(input.get("reason") ?? "")}
        <button>Review the decision</button>
      </form>
      ${reported}
    </div>`;

/** The first form leads to a page that asks again, and its form decides. */
export async function decideLease(view: View): Promise<Outcome> {
  const { api, input, rest, formToken, canChange, nowMs } = view;
  const [cell = "", uuid = ""] = rest;
  const decision = input.get("decision") === "commit" ? "commit" : "rollback";
  const reason = input.get("reason") ?? "";
  const isConfirmed = input.get("confirmed") === "yes";
  // What a viewer sends goes to the API at once, which refuses it.
  if (canChange && !isConfirmed) {
    const found = await api.call("getLease", { params: { cell, uuid } });
    if (!found.ok) return failedPage("Lease", found.problem);
    const { lease } = found.value;
    const fault =
      input.get("typed_cell") !== cell
        ? `The id that you typed is not the lease's cell: it is ${cell}. Nothing was done.`
        : reason.trim() === ""
          ? "Give a reason. Nothing was done."
          : undefined;
    if (lease.state !== "GRANTED")
      return {
        title: `Lease ${uuid}`,
        status: 422,
        main: html`<p class="panel bad" role="alert">It is decided already. Nothing was done.</p>
          ${leaseFacts(lease, nowMs)}`,
      };
    if (fault !== undefined) {
      const reported = await reportedNote(view, lease);
      return {
        title: `Lease ${uuid}`,
        status: 422,
        main: html`${leaseFacts(lease, nowMs)}${decisionForm(view, lease, fault, reported)}`,
      };
    }
    const verb = decision === "commit" ? "Commit" : "Roll back";
    return {
      title: `${verb} this lease of cell ${cell}?`,
      main: html`${leaseFacts(lease, nowMs)}${namesOf(lease)}
        <form class="panel" method="post" action="/console/leases/${cell}/${uuid}">
          ${[
            ["token", formToken],
            ["decision", decision],
            ["typed_cell", cell],
            ["reason", reason],
            ["confirmed", "yes"],
          ].map(
            ([name = "", value = ""]) =>
              html`<input type="hidden" name="${name}" value="${fieldValue(value)}" />`,
          )}
          <p>Reason: ${reason}</p>
          <p class="actions">
            <button class="danger">${verb}, which is final</button>
            <a class="button" href="/console/leases/${cell}/${uuid}">Cancel</a>
          </p>
        </form>`,
    };
  }
  if (canChange && input.get("typed_cell") !== cell) return { location: `/console/leases/${cell}/${uuid}` };
  const decided = await api.call(decision === "commit" ? "commitLease" : "rollbackLease", {
    params: { cell, uuid },
    body: { reason },
  });
  return decided.ok
    ? { location: `/console/leases/${cell}/${uuid}` }
    : failedPage("The lease was not decided", decided.problem);
}

/** The buckets of the family `leasehold_lease_age_seconds`, by their upper ends. */
const BUCKETS = [
  ["under 1 s", 1],
  ["1 to 10 s", 10],
  ["10 s to 1 min", 60],
  ["1 to 10 min", 600],
  ["10 min to 1 h", 3_600],
  ["1 h to 1 day", 86_400],
  ["older", Infinity],
] as const;

const LINE = /^leasehold_lease_age_seconds_bucket\{(?<labels>.*)\}$/;

/**
 * The ages of the open leases as a histogram.
 *
 * @param cell only the leases of this cell
 */
function leaseAgesOf(samples: Samples, cell: string): Markup | undefined {
  const upTo = BUCKETS.map(() => 0);
  for (const [name, count] of samples) {
    const labels = LINE.exec(name)?.groups?.["labels"];
    if (labels === undefined) continue;
    const of = (label: string): string | undefined => new RegExp(`${label}="([^"]*)"`).exec(labels)?.[1];
    if (cell !== "" && of("cell") !== cell) continue;
    const end = of("le") === "+Inf" ? Infinity : Number(of("le"));
    const at = BUCKETS.findIndex(([, seconds]) => seconds === end);
    upTo[at] = (upTo[at] ?? 0) + count;
  }
  if (upTo.at(-1) === 0) return undefined;
  const bars = BUCKETS.map(([name], at) => ({ name, value: (upTo[at] ?? 0) - (upTo[at - 1] ?? 0) }));
  return html`${barsOf("Ages of the open leases, of the oldest 1,000 of each cell", bars)}`;
}
