import { tableOf } from "../table.ts";
import type { AnswerOf } from "../../api/internal-api.ts";
import { problemNote, type Page } from "../layout.ts";
import { fieldValue, html, type Markup, type Part } from "../markup.ts";
import {
  cellLink,
  entityOf,
  factsOf,
  leaseLink,
  nextLink,
  stateOf,
  transferLink,
  whenOf,
  type View,
} from "../view.ts";

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
