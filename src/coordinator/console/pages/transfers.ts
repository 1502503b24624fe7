import { tableOf } from "../table.ts";
import { durationText } from "../../../common/text/duration.ts";
import { problemNote, type Page } from "../layout.ts";
import { fieldValue, html, type Markup, type Part } from "../markup.ts";
import {
  cellLink,
  factsOf,
  failedPage,
  nextLink,
  reasonField,
  transferLink,
  whenOf,
  type Outcome,
  type View,
} from "../view.ts";
import type { AnswerOf } from "../../api/internal-api.ts";

const PAGE = "50";

type Transfer = AnswerOf<"getTransfer">["transfer"];
type Step = Transfer["prepared"];
type Side = keyof Transfer["reports"];

const SIDES = ["from", "to"] as const satisfies readonly Side[];

/** Transfers in pages, as the API lists them: by destination. Within a page, the open ones come first. */
export async function transfersPage(view: View): Promise<Page> {
  const { api, input, nowMs } = view;
  const from = input.get("from") ?? "";
  const to = input.get("to") ?? "";
  const token = input.get("page_token") ?? "";
  const listed = await api.call("listTransfers", { query: { page_size: PAGE, from, to, page_token: token } });
  const filters = html`<form class="filters panel" action="/console/transfers">
    <label for="from">From cell<input id="from" name="from" size="8" value="${fieldValue(from)}" /></label>
    <label for="to">To cell<input id="to" name="to" size="8" value="${fieldValue(to)}" /></label>
    <button>Filter</button>
  </form>`;
  if (!listed.ok)
    return {
      title: "Transfers",
      status: listed.problem.status,
      main: html`${filters}${problemNote(listed.problem)}`,
    };
  const { transfers, next_page_token: next } = listed.value;
  const none =
    next === ""
      ? html`No transfer was made, or it was forgotten. <code>leasehold transfers plan --help</code>`
      : "No transfer is on this page. The next one may have some.";
  return {
    title: "Transfers",
    main: html`${filters}
    ${tableOf(
      "Open transfers first",
      transfers.toSorted((a, b) => Number(isOver(a)) - Number(isOver(b))),
      [
        { title: "Transfer", value: ({ id }) => transferLink(id) },
        { title: "Scope", value: ({ scope }) => scope },
        { title: "From", value: (transfer) => cellLink(transfer.from) },
        { title: "To", value: (transfer) => cellLink(transfer.to) },
        { title: "State", value: transferState },
        { title: "Since", value: (transfer) => agoSince(transfer) },
        { title: "Names", value: ({ expected }) => expected.from?.count, isNumber: true },
        { title: "Shards left", value: (transfer) => transfer.unfinished_shards, isNumber: true },
        { title: "Accepted", value: ({ accepted }) => accepted && whenOf(accepted.at, nowMs) },
        { title: "Source's rows", value: ({ reports }) => equalityOf(reports.from) },
        { title: "Destination's rows", value: ({ reports }) => equalityOf(reports.to) },
      ],
      none,
    )}
    ${nextLink(view, next)}`,
  };
}

/** Nothing is left to do. */
const isOver = ({ state, unfinished_shards: left }: Transfer): boolean =>
  state === "FINISHED" || (state === "ABORTED" && left === 0);

const transferState = ({ state }: Transfer): Markup =>
  html`<span class="state ${state === "FINISHED" ? "good" : "warn"}">${state}</span>`;

const agoSince = ({ prepared, decided }: Transfer): string =>
  `${durationText((decided ?? prepared).age_ms)} ago`;

const equalityOf = (report: Transfer["reports"][Side]): Part =>
  report &&
  (report.is_equal
    ? html`<span class="good">equal the claims</span>`
    : html`<span class="bad">differ from the claims</span>`);

export async function transferPage(view: View): Promise<Page> {
  const [id = ""] = view.rest;
  const found = await view.api.call("getTransfer", { params: { id } });
  if (!found.ok) return failedPage("Transfer", found.problem);
  const { transfer } = found.value;
  return {
    title: `Transfer ${transfer.id}`,
    main: html`${transferFacts(transfer, view.nowMs)}${nextNote(transfer)}${reportsOf(transfer, view.nowMs)}
    ${view.canChange && canAbort(transfer) ? abortForm(view, transfer) : undefined}`,
  };
}

const transferFacts = (transfer: Transfer, nowMs: number): Markup =>
  factsOf([
    ["Scope", transfer.scope],
    ["From", html`cell ${cellLink(transfer.from)}`],
    ["To", html`cell ${cellLink(transfer.to)}`],
    ["State", transferState(transfer)],
    ["Undoes", transfer.switch_back_of && transferLink(transfer.switch_back_of)],
    ["Names that move", transfer.expected.from?.count],
    ["Shards left", transfer.unfinished_shards],
    ["Prepared", stepOf(transfer.prepared, nowMs)],
    ["Accepted", transfer.accepted ? stepOf(transfer.accepted, nowMs) : "not yet"],
    [transfer.state === "ABORTED" ? "Aborted" : "Cut", transfer.decided && stepOf(transfer.decided, nowMs)],
  ]);

const BY = { operator: "an operator", from: "the source", to: "the destination" } as const;

const stepOf = ({ at, by, key_id: key, reason }: Step, nowMs: number): Markup =>
  html`${whenOf(at, nowMs)} by ${BY[by]}, key <span class="id">${key}</span>${
      reason === null ? undefined : html`: ${reason}`
    }`;

/** What is to be done next, and by whom. */
function nextNote(transfer: Transfer): Markup {
  const lines = nextOf(transfer);
  return html`<section class="panel">
    <h2>What is next</h2>
    ${lines.map(({ text, command }) =>
      command === undefined
        ? html`<p>${text}</p>`
        : html`<p>${text}<br /><code>leasehold transfers ${command}</code></p>`,
    )}
  </section>`;
}

interface Next {
  text: string;
  command?: string;
}

function nextOf({ id, from, to, state, accepted, reports, missing, ...transfer }: Transfer): Next[] {
  switch (state) {
    case "PREPARED":
      if (transfer.is_rebuilt)
        return [
          {
            text:
              `The ledger of cell ${to} has lost this transfer and got it back from the shards. It may ` +
              "have been cut. An operator looks which cell works with the names, then cuts or aborts it.",
            command: `show ${id}`,
          },
        ];
      if (missing.length === 0)
        return [
          {
            text: `The source, cell ${from}, or an operator cuts it. That is final.`,
            command: `cut ${id} --reason TEXT`,
          },
        ];
      return [
        ...(accepted === null
          ? [
              {
                text: `The destination, cell ${to}, or an operator accepts it.`,
                command: `accept ${id} --reason TEXT`,
              },
            ]
          : []),
        ...(reports.from?.is_equal === true
          ? []
          : [{ text: `The source, cell ${from}, reports rows that equal its claims.` }]),
        ...(reports.to?.is_equal === true
          ? []
          : [{ text: `The destination, cell ${to}, copies the rows and reports that they are equal.` }]),
        { text: `A cut would be refused now: ${missing.join("; ")}.`, command: `verify ${id}` },
      ];
    case "CUT":
      return [
        {
          text:
            `Mark the scope as moved in cell ${from}, and as active in cell ${to}. Shards rewrite the ` +
            "names by themselves.",
          command: `finish ${id}`,
        },
      ];
    case "FINISHED":
      return [
        {
          text: `The names belong to cell ${to}. A switch-back undoes the transfer.`,
          command: `switch-back ${id} --reason TEXT`,
        },
      ];
    case "ABORTED":
      return [
        {
          text: transfer.is_rebuilt
            ? `The ledger of cell ${to} had lost this transfer. If it was cut before, names belong to it, ` +
              "and the abort has not given them back. Look which cell has each name."
            : `The names belong to cell ${from}. ${letGoOf(transfer.unfinished_shards)}`,
        },
      ];
  }
}

/** Which shards have let go of an aborted transfer. */
function letGoOf(left: number | null): string {
  if (left === 0) return "Nothing is left to do.";
  return left === null
    ? "Shards let go of the scope by themselves. It is not known yet whether all have."
    : "Shards let go of the scope by themselves.";
}

const reportsOf = ({ expected, reports, ...cells }: Transfer, nowMs: number): Markup =>
  tableOf("What both cells have reported", SIDES, [
    { title: "Cell", value: (side) => html`${cellLink(cells[side])} (${BY[side]})` },
    { title: "Claims", value: (side) => expected[side]?.count, isNumber: true },
    { title: "Rows", value: (side) => reports[side]?.count, isNumber: true },
    { title: "Verified", value: (side) => equalityOf(reports[side]) },
    {
      title: "Reported",
      value: (side) => {
        const report = reports[side];
        return report && stepOf(report, nowMs);
      },
    },
  ]);

/** A transfer that the ledger has lost may have been cut, so its decision is not left to a form. */
const canAbort = ({ state, is_rebuilt: isRebuilt }: Transfer): boolean => state === "PREPARED" && !isRebuilt;

const abortForm = ({ formToken, input }: View, { id, from, to }: Transfer, fault?: string): Markup =>
  html`<h2>Abort this transfer</h2>
    <p>Cell ${from} keeps the names. An abort is final; afterwards, another transfer can be prepared.</p>
    ${fault === undefined ? undefined : html`<p class="panel bad" role="alert">${fault}</p>`}
    <form class="stack panel" method="post" action="/console/transfers/${id}">
      <input type="hidden" name="token" value="${formToken}" />
      <label for="typed"
        >Type the id of the destination, cell ${to}<input
          id="typed"
          name="typed_cell"
          required
          autocomplete="off"
          maxlength="19"
      /></label>
      ${reasonField(input.get("reason") ?? "")}
      <button class="danger">Abort the transfer</button>
    </form>`;

export async function abortTransfer(view: View): Promise<Outcome> {
  const { api, input, rest, canChange, nowMs } = view;
  const [id = ""] = rest;
  const reason = input.get("reason") ?? "";
  // The API refuses what a viewer sends.
  if (canChange) {
    const found = await api.call("getTransfer", { params: { id } });
    if (!found.ok) return failedPage("Transfer", found.problem);
    const { transfer } = found.value;
    const fault =
      input.get("typed_cell") !== transfer.to
        ? `The id that you typed is not the destination: it is ${transfer.to}. Nothing was done.`
        : reason.trim() === ""
          ? "Give a reason. Nothing was done."
          : undefined;
    if (!canAbort(transfer) || fault !== undefined)
      return {
        title: `Transfer ${transfer.id}`,
        status: 422,
        main: html`${transferFacts(transfer, nowMs)}
        ${
          canAbort(transfer)
            ? abortForm(view, transfer, fault)
            : html`<p class="panel bad" role="alert">
                It is ${transfer.state}${transfer.is_rebuilt ? " and rebuilt" : ""}, so it can't be aborted
                here. Nothing was done.
              </p>`
        }`,
      };
  }
  const aborted = await api.call("abortTransfer", { params: { id }, body: { reason } });
  return aborted.ok
    ? { location: `/console/transfers/${id}` }
    : failedPage("The transfer was not aborted", aborted.problem);
}
