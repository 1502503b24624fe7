import type { Transfer } from "../../users/client/index.ts";
import { durationText } from "../../common/text/duration.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import type { Style } from "../output/style.ts";
import { fields, table } from "../output/table.ts";

type Step = Transfer["prepared"];

/** What a transfer does, for questions and answers. */
export const movedText = ({ from, to, scope }: Pick<Transfer, "from" | "to" | "scope">): string =>
  `the names of scope ${scope} from cell ${from} to cell ${to}`;

/** A transfer with its steps, and what both cells have reported. */
export function transferText(transfer: Transfer, style: Style): string {
  const { id, from, to, scope, state, prepared, accepted, decided, missing } = transfer;
  const facts = fields([
    ["transfer", id],
    ["scope", scope],
    ["from", `cell ${from}`],
    ["to", `cell ${to}`],
    ["state", state],
    ["undoes", transfer.switch_back_of],
    ["prepared", stepText(prepared)],
    ["accepted", accepted && stepText(accepted)],
    [state === "ABORTED" ? "aborted" : "cut", decided && stepText(decided)],
    ["unfinished", transfer.unfinished_shards],
    ["missing", missing.length === 0 ? null : missing.join("; ")],
  ]);
  const sides = (["from", "to"] as const).map((side) => ({
    cell: transfer[side],
    expected: transfer.expected[side],
    report: transfer.reports[side],
  }));
  const rows = table(
    sides,
    [
      { title: "CELL", value: ({ cell }) => cell },
      { title: "CLAIMS", value: ({ expected }) => expected?.count, isNumber: true },
      { title: "ROWS", value: ({ report }) => report?.count, isNumber: true },
      { title: "DIGEST OF CLAIMS", value: ({ expected }) => expected?.hash },
      { title: "DIGEST OF ROWS", value: ({ report }) => report?.hash },
      { title: "EQUAL", value: ({ report }) => report && (report.is_equal ? "yes" : "no") },
      { title: "AGE", value: ({ report }) => report && durationText(report.age_ms), isNumber: true },
    ],
    style,
  );
  return `${facts}\n\n${rows}`;
}

const BY = { operator: "an operator", from: "the source", to: "the destination" } as const;

function stepText({ at, age_ms: ms, by, reason }: Step): string {
  const why = reason === null ? "" : `: ${reason}`;
  return `${at}, ${durationText(ms)} ago, by ${BY[by]}${why}`;
}

/** The commands that make sense for a transfer in its state. */
export function nextOf({ id, state, accepted, missing, is_rebuilt: isRebuilt }: Transfer): string[] {
  const change = (step: string): string => `${commandLine("transfers", step, id)} --reason TEXT`;
  switch (state) {
    case "PREPARED":
      return [
        ...(accepted === null ? [change("accept")] : []),
        missing.length === 0 || isRebuilt ? change("cut") : commandLine("transfers", "verify", id),
        change("abort"),
      ];
    case "CUT":
      return [commandLine("transfers", "finish", id)];
    case "FINISHED":
      return [change("switch-back")];
    case "ABORTED":
      return [];
  }
}
